"""The report of a study: one page to sign, the same as JSON, the questions of a guideline, the record for a registry."""

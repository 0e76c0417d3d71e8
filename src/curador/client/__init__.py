"""A client of the service: `cu.connect(url, token=…)` has the verbs of a local curator. Imports no engine."""

"""What becomes of exact tallies: released integers, estimates with error bars, the table, and what the ledger keeps of it."""

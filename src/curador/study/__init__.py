"""What the owner declares: tables, columns, who one person is, the budget, the analysts."""

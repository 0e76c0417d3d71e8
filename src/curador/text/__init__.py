"""Numbers and tables as people read them. Imports errors and numerics only, so that every room may use it."""

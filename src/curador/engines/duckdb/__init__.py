"""The embedded engine: reads a study's files, prepares a data version once, tallies plans in a process of its own."""

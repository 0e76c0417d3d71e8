"""Engines compute a plan's exact integers; nothing an analyst wrote reaches them."""

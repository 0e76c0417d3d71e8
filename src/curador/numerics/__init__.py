"""Numbers that a guarantee may rest on: exact at the border, rounded in a named direction inside.

Imports nothing of ours but the errors.
"""

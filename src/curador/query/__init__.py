"""From an analyst's text to our own small tree, through an allow-list."""

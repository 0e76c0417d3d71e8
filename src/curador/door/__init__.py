"""PostgreSQL's protocol in front of a service: its clients connect as if to PostgreSQL."""

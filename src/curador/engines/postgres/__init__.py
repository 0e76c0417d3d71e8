"""PostgreSQL: tables of a server, prepared into a schema of ours there, and questions that it computes."""

"""Spark, and Sail which speaks its language, through Spark Connect."""

"""What ships for testing a study, an engine or a mechanism: strategies, redraws and conformance suites."""

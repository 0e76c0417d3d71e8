"""From plans to an engine's SQL, and from its results to exact tallies. Every name and function in it is ours."""

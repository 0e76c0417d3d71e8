"""Regressions from second moments and from gradients: rows in a public frame, exact sums, what is made of noisy ones."""

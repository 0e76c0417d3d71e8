"""Figures: values in, a matplotlib figure out. Nothing is shown or saved unless the caller does."""

from curador.plots.laplace_bits import reachable_floats
from curador.plots.law import law
from curador.plots.learning import convergence, lost_variance, spectrum

__all__ = ["convergence", "law", "lost_variance", "reachable_floats", "spectrum"]

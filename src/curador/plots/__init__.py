"""Figures: values in, a matplotlib figure out. Nothing is shown or saved unless the caller does."""

from curador.plots.laplace_bits import reachable_floats
from curador.plots.law import law

__all__ = ["law", "reachable_floats"]

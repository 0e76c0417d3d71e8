"""Means of bounded numbers: each person sends one noisy number, or one bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.errors import require
from curador.local.means.base import Means
from curador.local.means.duchi import DuchiMean
from curador.local.means.laplace import LaplaceMean
from curador.local.means.piecewise import HybridMean, PiecewiseMean

if TYPE_CHECKING:
    from curador.numerics.exact import Number

METHODS: dict[str, type[Means]] = {
    "laplace": LaplaceMean,
    "duchi": DuchiMean,
    "piecewise": PiecewiseMean,
    "hybrid": HybridMean,
}


def mean(*, lower: Number, upper: Number, epsilon: Number, method: str = "auto") -> Means:
    """Return the protocol for the mean of numbers from lower to upper: by a method, or by the one of the least variance.

    The least variance where the numbers are the worst for it: one bit up to ε ≈ 0.61, the mixture of one bit and a piecewise
    report from there on. Source: [WXY+19] for the comparison; here by the exact variances.
    """
    require(method in ("auto", *METHODS), "method", "auto, " + ", ".join(METHODS), method)
    if method != "auto":
        return METHODS[method](lower=lower, upper=upper, epsilon=epsilon)
    protocols = [kind(lower=lower, upper=upper, epsilon=epsilon) for kind in METHODS.values()]
    return min(protocols, key=lambda one: one.worst_variance)


__all__ = ["DuchiMean", "HybridMean", "LaplaceMean", "Means", "PiecewiseMean", "mean"]

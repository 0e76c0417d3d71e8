"""Divergences between two distributions of the same family, as exact values.

Distributions    Bernoulli, Finite, Normal, Laplace: parameters are exact rationals
Divergences      kl, renyi (every order in [1, ∞]), max_divergence, hockey_stick (every real ε)
Inequalities     weak_triangle, probability_preservation: bounds, rounded in the safe direction

The values are closed forms of balls, which are proved to hold them, with as many bits as it takes to tell the float;
so they hold to the last place at every extreme: orders next to 1, probabilities of 1e-300, shifts of 1e-8. A value that is
positive never becomes 0, one beyond the largest float becomes +∞, and NaN does not occur.
"""

from __future__ import annotations

from curador.privacy.divergence.measures import (
    Bernoulli,
    Distribution,
    Finite,
    Laplace,
    Normal,
    hockey_stick,
    kl,
    max_divergence,
    probability_preservation,
    renyi,
    weak_triangle,
)

__all__ = [
    "Bernoulli",
    "Distribution",
    "Finite",
    "Laplace",
    "Normal",
    "hockey_stick",
    "kl",
    "max_divergence",
    "probability_preservation",
    "renyi",
    "weak_triangle",
]

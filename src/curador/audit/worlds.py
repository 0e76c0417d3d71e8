"""Pairs of neighbouring worlds that are hard for a mechanism, its outputs as scores, and laws in closed form."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.audit.fit import LawCells, staircase_cells
from curador.audit.trial import HALFWAY, Worlds, delta_of
from curador.mechanisms.grid import steps_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.mechanisms.exponential import Exponential
    from curador.mechanisms.keys import GaussianKeys, LaplaceKeys
    from curador.mechanisms.noisy_max import NoisyMax
    from curador.mechanisms.optimal_keys import OptimalKeys
    from curador.mechanisms.quantile import Quantile
    from curador.mechanisms.randomized_response import RandomizedResponse
    from curador.mechanisms.staircase import Staircase

# ---- outputs as scores ----------------------------------------------------------------------------------------------


def itself(outputs: Any) -> NDArray[Any]:
    """Numbers are their own score."""
    return np.asarray(outputs)


def code(outputs: Any) -> NDArray[Any]:
    """Bits by rows as one number."""
    return outputs @ (1 << np.arange(outputs.shape[1]))


def count_if_shown(outputs: Any) -> NDArray[Any]:
    """The noisy count of the first key, below all counts where the key is not shown."""
    return np.nan_to_num(outputs[:, 0].astype(np.float64), nan=-1e9)


def is_first(outputs: Any) -> NDArray[Any]:
    """Whether the first candidate wins."""
    return (np.asarray(outputs) == 0).astype(np.int64)


def of_first_two(outputs: Any) -> NDArray[Any]:
    """How many of the two winners are among the first two candidates."""
    return (outputs.indices <= 1).sum(axis=1)


def gap_of_first(outputs: Any) -> NDArray[Any]:
    """How far ahead the first candidate is; below 0 where another one wins."""
    return np.where(outputs.indices[:, 0] == 0, outputs.gaps[:, 0], -1.0)


def first_above(outputs: Any) -> NDArray[Any]:
    """The place of the first query that passes; the number of queries where none does."""
    above = outputs == 1
    return np.where(above.any(axis=1), above.argmax(axis=1), above.shape[1])


def gap_of_last(outputs: Any) -> NDArray[Any]:
    """The gap of the last query where it is the one that passes."""
    return np.where(outputs.above[:, -1] == 1, outputs.gaps[:, -1], -1.0)


def place_of_65(outputs: Any) -> NDArray[Any]:
    """The place of a point on the grid of 0, 1/64, …, 1."""
    return np.rint(np.asarray(outputs) * 64).astype(np.int64)


def place_of_3(outputs: Any) -> NDArray[Any]:
    """The place of 0, 1/2 or 1."""
    return np.rint(np.asarray(outputs) * 2).astype(np.int64)


def how_many_shown(outputs: Any) -> NDArray[Any]:
    """How many keys are shown."""
    return (~np.isnan(outputs.astype(np.float64))).sum(axis=1)


def how_many(outputs: Any) -> NDArray[Any]:
    """How many keys are shown, where only that is told."""
    return np.asarray(outputs).sum(axis=1)


def last_two_lead(outputs: Any) -> NDArray[Any]:
    """How many more of the last two queries pass than of those before."""
    passes = outputs == 1
    return passes[:, -2:].sum(axis=1) - passes[:, :-2].sum(axis=1)


def moved_cell(outputs: Any) -> NDArray[Any]:
    """The log-likelihood ratio of counts (5, 4) and (4, 5) under Laplace noise, up to its scale."""
    return np.clip(outputs[:, 0], 4, 5) - np.clip(outputs[:, 1], 4, 5)


def along(outputs: Any) -> NDArray[Any]:
    """The coordinate along (3, 4)/5: all that Gaussian noise leaves of a move that way."""
    return outputs @ np.array([0.6, 0.8])


def both_halves(outputs: Any) -> NDArray[Any]:
    """The log-likelihood ratio of two numbers that both move from 0 to 1/2 under Laplace noise, up to its scale."""
    return np.clip(outputs, 0.0, 0.5).sum(axis=1)


# ---- worlds ---------------------------------------------------------------------------------------------------------


def fixed_worlds(one: Any, other: Any) -> Worlds:
    """Two worlds for every ε."""
    return lambda _: (one, other)


def _two(mechanism: Any, log_odds: float) -> tuple[Any, Any]:
    """Two candidates, the first with these log-odds; it gains a sensitivity, the other loses one."""
    behind = log_odds / (float(mechanism.rate) / float(mechanism.grid))
    return [behind, 0.0], [behind + 1.0, -1.0]


def unlikely_first(mechanism: Exponential) -> tuple[Any, Any]:
    """The ratio is near e^ε where the candidate that gains is unlikely in both worlds."""
    return _two(mechanism, -float(mechanism.epsilon) - 1.4)


def rising_first(mechanism: Exponential) -> tuple[Any, Any]:
    """The same where nobody loses."""
    (behind, _), _ = unlikely_first(mechanism)
    return [behind, 0.0], [behind + 1.0, 0.0]


def bounded_range(mechanism: Exponential) -> tuple[Any, Any]:
    """The pair for which bounded range is exact at the δ under audit: log-ratios t and t − ε, t = (ε + claim)/2."""
    epsilon = float(mechanism.epsilon)
    half = (epsilon + mechanism.loss.epsilon(delta_of(HALFWAY, mechanism.loss))) / 2
    share = (math.exp(epsilon) - math.exp(half)) / math.expm1(epsilon)
    return _two(mechanism, math.log(share / (1 - share)) - epsilon)


def behind(count: int, reach: float, others: float) -> Worlds:
    """The first `count` candidates, which are behind by the more the larger ε is, gain one; the others lose `others`."""

    def worlds(mechanism: NoisyMax) -> tuple[Any, Any]:
        gap = reach * max(0.0, float(mechanism.epsilon) - 1)
        rest = 4 if count == 2 else 11
        return [-gap] * count + [0.0] * rest, [1.0 - gap] * count + [-others] * rest

    return worlds


MEDIAN = ([0.8], [0.8, 0.0])
"""One unit at four fifths of the range, and one more at its lower end: every point below gains, every point above loses."""

MEDIAN_REPLACED = ([0.85, 1.0], [0.85, 0.0])
"""The same by a unit that moves from one end to the other."""


def at_the_bottom(mechanism: Quantile) -> tuple[Any, Any]:
    """Units at the lower end and one more: only the smallest point keeps its score, and so many that it is the likeliest."""
    data = [0.0] * math.ceil(1.5 / float(mechanism.epsilon))
    return data, [*data, 0.0]


def around_half(mechanism: OptimalKeys) -> tuple[Any, Any]:
    """Every key of a unit is shown half of the time."""
    units = next(n for n in range(1 << 18) if mechanism.pass_probability(n + 1) >= 0.5)
    return [units] * mechanism.keys, [units + 1] * mechanism.keys


def at_threshold(mechanism: GaussianKeys | LaplaceKeys) -> tuple[Any, Any]:
    """Every key of a unit is at the threshold."""
    units = max(1, math.floor(mechanism.threshold))
    return [units] * mechanism.keys, [units + 1] * mechanism.keys


QUEUE = ([0.0] * 5 + [1.0], [1.0] * 5 + [0.0])
"""Queries that all rise, and a last one that falls."""


# ---- laws -----------------------------------------------------------------------------------------------------------


def steps(value: Fraction, mechanism: Any) -> Fraction:
    """In steps of the grid."""
    return value / mechanism.grid


def categories(probabilities: Any) -> LawCells:
    """Outputs 0, 1, … by their probabilities."""
    return LawCells(np.arange(1, len(probabilities)), np.asarray(probabilities))


def chances(mechanism: Any, world: Any) -> LawCells:
    """What the mechanism says of itself."""
    return categories(mechanism.probabilities(world))


def answers(mechanism: RandomizedResponse, world: int) -> LawCells:
    """The truth with probability γ, the others evenly."""
    other = (1 - mechanism.gamma) / (mechanism.categories - 1)
    return categories([mechanism.gamma if place == world else other for place in range(mechanism.categories)])


def stairs(mechanism: Staircase, _: Any) -> LawCells:
    """The staircase in steps of the grid."""
    width = steps_of(mechanism.sensitivity_squared, mechanism.exponent)
    return staircase_cells(mechanism.epsilon, width, int(mechanism.gamma * width))

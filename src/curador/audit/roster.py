"""Every mechanism with two neighbouring worlds that are hard for it, and how its outputs are looked at."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.audit.fit import Cells, gaussian_cells, laplace_cells, staircase_cells
from curador.mechanisms.above_threshold import AboveThreshold
from curador.mechanisms.exponential import Exponential
from curador.mechanisms.gaussian import DiscreteGaussian, Gaussian
from curador.mechanisms.keys import GaussianKeys, LaplaceKeys, OptimalKeys
from curador.mechanisms.laplace import DiscreteLaplace, Laplace
from curador.mechanisms.noisy_max import NoisyMax
from curador.mechanisms.parameters import steps_of
from curador.mechanisms.permute_and_flip import PermuteAndFlip
from curador.mechanisms.quantile import Quantile
from curador.mechanisms.randomized_response import RandomizedResponse
from curador.mechanisms.staircase import Staircase
from curador.mechanisms.truncated_laplace import TruncatedLaplace
from curador.privacy.loss import Loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPSILONS = ("0.1", "1", "4")
SMALL = "1e-5"
"""The δ of Gaussian noise."""

LARGE = "1e-3"
"""The δ of mechanisms whose δ is an event of its own: large enough to be seen."""

HALFWAY = "halfway"
"""Also audit where δ is half of the total variation: there Gaussian curves can be seen with few samples."""

Worlds: TypeAlias = Callable[[Any], tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A mechanism under audit: how to make it for an ε, its worlds, its outputs as scores, and the claims to test.

    `law` gives the cells of its law in the first world, where the law has a closed form; `real` marks releases of floats on
    a public grid, whose bits are looked at.
    """

    name: str
    make: Callable[[str], Any]
    worlds: Worlds
    score: Callable[[Any], NDArray[Any]]
    deltas: tuple[str, ...] = ("0",)
    law: Callable[[Any, Any], Cells] | None = None
    real: bool = False
    many: str = "release_many"

    def draw(self, mechanism: Any, world: Any, size: int) -> NDArray[Any]:
        """Return scores of `size` releases in a world."""
        arguments = world if isinstance(world, tuple) else (world,)
        return self.score(getattr(mechanism, self.many)(*arguments, size=size))


def delta_of(word: str, loss: Loss) -> Fraction:
    """Return the δ that an entry names."""
    return Fraction(loss.delta(0)) / 2 if word == HALFWAY else Fraction(word)


# ---- outputs as scores ----------------------------------------------------------------------------------------------


def itself(outputs: Any) -> NDArray[Any]:
    """Numbers are their own score."""
    return np.asarray(outputs)


def _code(outputs: Any) -> NDArray[Any]:
    """Bits by rows as one number."""
    return outputs @ (1 << np.arange(outputs.shape[1]))


def _shown(outputs: Any) -> NDArray[Any]:
    """The noisy count of the first key, below all counts where the key is not shown."""
    return np.nan_to_num(outputs[:, 0].astype(np.float64), nan=-1e9)


def _is_first(outputs: Any) -> NDArray[Any]:
    return (np.asarray(outputs) == 0).astype(np.int64)


def _of_first_two(outputs: Any) -> NDArray[Any]:
    """How many of the two winners are among the first two candidates."""
    return (outputs.indices <= 1).sum(axis=1)


def _gap_of_first(outputs: Any) -> NDArray[Any]:
    """How far ahead the first candidate is; below 0 where another one wins."""
    return np.where(outputs.indices[:, 0] == 0, outputs.gaps[:, 0], -1.0)


def _first_above(outputs: Any) -> NDArray[Any]:
    above = outputs == 1
    return np.where(above.any(axis=1), above.argmax(axis=1), above.shape[1])


def _gap_of_last(outputs: Any) -> NDArray[Any]:
    """The gap of the last query where it is the one that passes."""
    return np.where(outputs.above[:, -1] == 1, outputs.gaps[:, -1], -1.0)


def _both_halves(outputs: Any) -> NDArray[Any]:
    """The log-likelihood ratio of two numbers that both move from 0 to 1/2 under Laplace noise, up to its scale."""
    return np.clip(outputs, 0.0, 0.5).sum(axis=1)


# ---- worlds ---------------------------------------------------------------------------------------------------------


def _fixed(one: Any, other: Any) -> Worlds:
    return lambda _: (one, other)


def _two(mechanism: Any, log_odds: float) -> tuple[Any, Any]:
    """Two candidates, the first with these log-odds; it gains a sensitivity, the other loses one."""
    behind = log_odds / (float(mechanism.rate) / float(mechanism.grid))
    return [behind, 0.0], [behind + 1.0, -1.0]


def _unlikely_first(mechanism: Exponential) -> tuple[Any, Any]:
    """The ratio is near e^ε where the candidate that gains is unlikely in both worlds."""
    return _two(mechanism, -float(mechanism.epsilon) - 1.4)


def _bounded_range(mechanism: Exponential) -> tuple[Any, Any]:
    """The pair for which bounded range is exact at the δ under audit: log-ratios t and t − ε, t = (ε + claim)/2."""
    epsilon = float(mechanism.epsilon)
    half = (epsilon + mechanism.loss.epsilon(delta_of(HALFWAY, mechanism.loss))) / 2
    share = (math.exp(epsilon) - math.exp(half)) / math.expm1(epsilon)
    return _two(mechanism, math.log(share / (1 - share)) - epsilon)


def _behind(count: int, reach: float, others: float) -> Worlds:
    """The first `count` candidates, which are behind by the more the larger ε is, gain one; the others lose `others`."""

    def worlds(mechanism: NoisyMax) -> tuple[Any, Any]:
        gap = reach * max(0.0, float(mechanism.epsilon) - 1)
        rest = 4 if count == 2 else 11
        return [-gap] * count + [0.0] * rest, [1.0 - gap] * count + [-others] * rest

    return worlds


def _quantile(mechanism: Quantile) -> tuple[Any, Any]:
    """Some units high up; one more comes at the bottom, which makes the points between likelier and those above less so."""
    epsilon = float(mechanism.epsilon)
    data = [0.75] * round(2 * (epsilon + 2.1) / epsilon)
    return data, [*data, 0.0]


def _around_half(mechanism: OptimalKeys) -> tuple[Any, Any]:
    units = next(n for n in range(1 << 18) if mechanism.pass_probability(n + 1) >= 0.5)
    return [units], [units + 1]


def _at_threshold(mechanism: GaussianKeys | LaplaceKeys) -> tuple[Any, Any]:
    units = max(1, math.floor(mechanism.threshold))
    return [units], [units + 1]


_QUEUE = ([0.0] * 5 + [1.0], [1.0] * 5 + [0.0])
"""Queries that all rise, and a last one that falls."""


# ---- laws -----------------------------------------------------------------------------------------------------------


def _steps(value: Fraction, mechanism: Any) -> Fraction:
    return value / mechanism.grid


def _categories(probabilities: Any) -> Cells:
    return Cells(np.arange(1, len(probabilities)), np.asarray(probabilities))


def _chances(mechanism: Any, world: Any) -> Cells:
    return _categories(mechanism.probabilities(world))


def _answers(mechanism: RandomizedResponse, world: int) -> Cells:
    other = (1 - mechanism.gamma) / (mechanism.categories - 1)
    return _categories([mechanism.gamma if place == world else other for place in range(mechanism.categories)])


def _stairs(mechanism: Staircase, _: Any) -> Cells:
    width = steps_of(mechanism.sensitivity_squared, mechanism.exponent)
    return staircase_cells(mechanism.epsilon, width, int(mechanism.gamma * width))


ROSTER: tuple[Entry, ...] = (
    Entry(
        "Laplace",
        lambda e: Laplace.calibrate(epsilon=e, sensitivity=1),
        _fixed(0, 1),
        itself,
        law=lambda m, _: laplace_cells(_steps(m.scale, m)),
        real=True,
    ),
    Entry(
        "Laplace, two numbers",
        lambda e: Laplace.calibrate(epsilon=e, sensitivity=1, dimension=2),
        _fixed([0.0, 0.0], [0.5, 0.5]),
        _both_halves,
    ),
    Entry(
        "Gaussian",
        lambda e: Gaussian.calibrate(epsilon=e, delta=SMALL, sensitivity=1),
        _fixed(0, 1),
        itself,
        deltas=(SMALL, HALFWAY),
        law=lambda m, _: gaussian_cells(_steps(m.sigma, m) ** 2),
        real=True,
    ),
    Entry(
        "DiscreteLaplace",
        lambda e: DiscreteLaplace.calibrate(epsilon=e, sensitivity=1),
        _fixed(0, 1),
        itself,
        law=lambda m, _: laplace_cells(m.scale),
    ),
    Entry(
        "DiscreteGaussian",
        lambda e: DiscreteGaussian.calibrate(epsilon=e, delta=SMALL, sensitivity=1),
        _fixed(0, 1),
        itself,
        deltas=(SMALL, HALFWAY),
        law=lambda m, _: gaussian_cells(m.sigma**2),
    ),
    Entry(
        "Staircase",
        lambda e: Staircase.calibrate(epsilon=e, sensitivity=1),
        _fixed(0, 1),
        itself,
        law=_stairs,
        real=True,
    ),
    Entry(
        "TruncatedLaplace",
        lambda e: TruncatedLaplace.calibrate(epsilon=e, delta=LARGE, sensitivity=1),
        _fixed(0, 1),
        itself,
        deltas=(LARGE,),
        law=lambda m, _: laplace_cells(_steps(m.scale, m), reach=int(_steps(m.reach, m))),
        real=True,
    ),
    Entry(
        "RandomizedResponse",
        lambda e: RandomizedResponse.calibrate(epsilon=e),
        _fixed(0, 1),
        itself,
        law=_answers,
    ),
    Entry(
        "RandomizedResponse, four answers",
        lambda e: RandomizedResponse.calibrate(epsilon=e, categories=4),
        _fixed(0, 1),
        itself,
        law=_answers,
    ),
    Entry(
        "RandomizedResponse, three bits",
        lambda e: RandomizedResponse.calibrate(epsilon=e, answers=3),
        _fixed([0, 0, 0], [1, 1, 1]),
        _code,
    ),
    Entry(
        "Exponential",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1),
        _unlikely_first,
        itself,
        law=_chances,
    ),
    Entry(
        "Exponential, bounded range",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1),
        _bounded_range,
        itself,
        deltas=(HALFWAY,),
    ),
    Entry(
        "Exponential, between numbers",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1),
        _fixed(([0.0, 0.1, 1.0], [0, 1]), ([0.0, 0.1, 1.0], [1, 0])),
        itself,
        many="release_between_many",
    ),
    Entry(
        "PermuteAndFlip",
        lambda e: PermuteAndFlip.calibrate(epsilon=e, sensitivity=1),
        _fixed([0, 0], [1, -1]),
        itself,
        law=_chances,
    ),
    Entry(
        "NoisyMax",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1),
        _behind(1, 0.45, 1.0),
        itself,
        law=_chances,
    ),
    Entry(
        "NoisyMax, monotone",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1, monotone=True),
        _behind(1, 0.22, 0.0),
        _is_first,
    ),
    Entry(
        "NoisyMax, top two",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1, top=2),
        _behind(2, 0.27, 1.0),
        _of_first_two,
    ),
    Entry(
        "NoisyMax, gap",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1, gap=True),
        _fixed([0] * 6, [1] + [-1] * 5),
        _gap_of_first,
    ),
    Entry(
        "AboveThreshold",
        lambda e: AboveThreshold.calibrate(epsilon=e, sensitivity=1, threshold="0.5"),
        _fixed(*_QUEUE),
        _first_above,
    ),
    Entry(
        "AboveThreshold, gap",
        lambda e: AboveThreshold.calibrate(epsilon=e, sensitivity=1, threshold="0.5", gap=True),
        _fixed(*_QUEUE),
        _gap_of_last,
    ),
    Entry(
        "Quantile",
        lambda e: Quantile.calibrate(q="0.5", lower=0, upper=1, epsilon=e, adjacency="add_or_remove_one", cells=5),
        _quantile,
        itself,
    ),
    Entry(
        "GaussianKeys",
        lambda e: GaussianKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        _at_threshold,
        _shown,
        deltas=(LARGE, HALFWAY),
    ),
    Entry(
        "GaussianKeys, a key alone",
        lambda e: GaussianKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        _fixed([0], [1]),
        _shown,
        deltas=(LARGE,),
    ),
    Entry(
        "LaplaceKeys",
        lambda e: LaplaceKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        _at_threshold,
        _shown,
        deltas=(LARGE,),
    ),
    Entry(
        "LaplaceKeys, a key alone",
        lambda e: LaplaceKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        _fixed([0], [1]),
        _shown,
        deltas=(LARGE,),
    ),
    Entry(
        "OptimalKeys",
        lambda e: OptimalKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        _around_half,
        _shown,
        deltas=(LARGE,),
    ),
    Entry(
        "OptimalKeys, a key alone",
        lambda e: OptimalKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        _fixed([0], [1]),
        _shown,
        deltas=(LARGE,),
    ),
)

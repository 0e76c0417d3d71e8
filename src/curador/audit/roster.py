"""Every mechanism and every protocol of local privacy under audit, with worlds that are hard for it.

Of a local protocol it is one person's report, on two values that are hard for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.audit import worlds
from curador.audit.fit import gaussian_cells, laplace_cells
from curador.audit.trial import ALONE, HALFWAY, LARGE, SMALL, AuditedMechanism
from curador.local.direct import Direct
from curador.local.hadamard import Hadamard
from curador.local.hashing import Hashing
from curador.local.means.duchi import DuchiMean
from curador.local.means.laplace import LaplaceMean
from curador.local.means.piecewise import HybridMean, PiecewiseMean
from curador.local.rappor import Rappor
from curador.local.subset import Subset
from curador.local.unary import Unary
from curador.mechanisms.above_threshold import AboveThreshold
from curador.mechanisms.exponential import Exponential, PermuteAndFlip
from curador.mechanisms.gaussian import DiscreteGaussian, Gaussian
from curador.mechanisms.keys import GaussianKeys, LaplaceKeys
from curador.mechanisms.laplace import DiscreteLaplace, Laplace, TruncatedLaplace
from curador.mechanisms.noisy_max import NoisyMax
from curador.mechanisms.optimal_keys import OptimalKeys
from curador.mechanisms.quantile import Quantile
from curador.mechanisms.randomized_response import RandomizedResponse
from curador.mechanisms.staircase import Staircase

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from curador.numerics.rounding import FloatArray
    from curador.privacy.loss import Loss
    from curador.randomness.entropy import Bytes, Entropy, IntArray


# ---- local roster ----------------------------------------------------------------------------------------------------------


SIZE, ONE, OTHER = 20, 3, 19
"""A domain whose size is no multiple of eight; its last value is the one that a careless client leaves out."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A protocol, its reports told as the evidence that they give for one of two values."""

    protocol: Any

    @property
    def loss(self) -> Loss:
        """What a report costs."""
        return self.protocol.loss

    def release(self, value: int) -> float:
        """Return the evidence of one report."""
        return float(self.protocol.log_odds(self.protocol.privatise([value]), ONE, OTHER)[0])

    def release_many(self, value: int, size: int) -> FloatArray:
        """Return the evidence of many."""
        return self.protocol.log_odds(self.protocol.release_many(value, size), ONE, OTHER)


@dataclass(frozen=True, slots=True)
class Sent:
    """A protocol of means; what is sent is the score, and where two kinds of reports are sent the kinds lie apart."""

    protocol: Any

    @property
    def loss(self) -> Loss:
        """What a report costs."""
        return self.protocol.loss

    def release(self, value: float) -> float:
        """Return the score of one report."""
        return float(self._score(self.protocol.privatise([value]))[0])

    def release_many(self, value: float, size: int) -> FloatArray:
        """Return the scores of many."""
        return self._score(self.protocol.release_many(value, size))

    def _score(self, reports: Any) -> FloatArray:
        kinds = np.asarray(reports)
        return (kinds if kinds.ndim == 1 else kinds[:, 1] + 4 * self.protocol.steps * kinds[:, 0]).astype(np.float64)


def _values(name: str, make: Callable[[str], Any]) -> AuditedMechanism:
    return AuditedMechanism(f"Local, {name}", lambda e: Witness(make(e)), worlds.fixed_worlds(ONE, OTHER), worlds.itself)


def _numbers(name: str, kind: Callable[..., Any]) -> AuditedMechanism:
    def make(epsilon: str) -> Sent:
        return Sent(kind(lower=0, upper=1, epsilon=epsilon))

    return AuditedMechanism(f"Local, {name}", make, worlds.fixed_worlds(0.0, 1.0), worlds.itself)


LOCAL: tuple[AuditedMechanism, ...] = (
    _values("direct", lambda e: Direct(SIZE, epsilon=e)),
    _values("optimal unary", lambda e: Unary(SIZE, epsilon=e)),
    _values("symmetric unary", lambda e: Unary(SIZE, epsilon=e, kind="symmetric")),
    _values("hashing", lambda e: Hashing(SIZE, epsilon=e)),
    _values("Hadamard", lambda e: Hadamard(SIZE, epsilon=e)),
    _values("subset", lambda e: Subset(SIZE, epsilon=e)),
    _values("memoised", lambda e: Rappor(SIZE, epsilon_forever=6, epsilon_once=e)),
    _numbers("Laplace mean", LaplaceMean),
    _numbers("one-bit mean", DuchiMean),
    _numbers("piecewise mean", PiecewiseMean),
    _numbers("hybrid mean", HybridMean),
)


# ---- seeded bugs ----------------------------------------------------------------------------------------------------


class LastBitLeftOut(Unary):
    """A client whose loop ends one bit too early: the last value's bit is sent as it is."""

    __slots__ = ()

    def draw(self, value: IntArray, source: Entropy, size: int | None = None) -> Bytes:
        """Draw as always, then forget to."""
        reports = Unary.draw(self, value, source, size)
        truth = np.broadcast_to(value, reports.shape[:-1])
        place, bit = self.size - 1 >> 3, np.uint8(1 << (self.size - 1 & 7))
        reports[..., place] = reports[..., place] & ~bit | bit * (truth == self.size - 1)
        return reports


class TooTrue(Direct):
    """Randomized response of twenty values with the γ of two."""

    __slots__ = ()

    @property
    def p(self) -> Fraction:
        return Direct(2, epsilon=self.epsilon).p


def leaking(kind: Callable[..., Any]) -> Callable[[str], Witness]:
    """Return how to make a witness of a protocol with a bug."""
    return lambda epsilon: Witness(kind(SIZE, epsilon=epsilon))


# ---- roster ----------------------------------------------------------------------------------------------------------------


ADD, REPLACE = "add_or_remove_one", "replace_one"

ROSTER: tuple[AuditedMechanism, ...] = (
    AuditedMechanism(
        "Laplace",
        lambda e: Laplace.calibrate(epsilon=e, sensitivity=1),
        worlds.fixed_worlds(0, 1),
        worlds.itself,
        law=lambda m, _: laplace_cells(worlds.steps(m.scale, m)),
        real=True,
    ),
    AuditedMechanism(
        "Laplace, two numbers",
        lambda e: Laplace.calibrate(epsilon=e, sensitivity=1, dimension=2),
        worlds.fixed_worlds([0.0, 0.0], [0.5, 0.5]),
        worlds.both_halves,
    ),
    AuditedMechanism(
        "Gaussian",
        lambda e: Gaussian.calibrate(epsilon=e, delta=SMALL, sensitivity=1),
        worlds.fixed_worlds(0, 1),
        worlds.itself,
        deltas=(SMALL, HALFWAY),
        law=lambda m, _: gaussian_cells(worlds.steps(m.sigma, m) ** 2),
        real=True,
    ),
    AuditedMechanism(
        "Gaussian, two numbers",
        lambda e: Gaussian.calibrate(epsilon=e, delta=SMALL, sensitivity=1, dimension=2),
        worlds.fixed_worlds([0.0, 0.0], [0.6, 0.8]),
        worlds.along,
        deltas=(SMALL, HALFWAY),
    ),
    AuditedMechanism(
        "DiscreteLaplace",
        lambda e: DiscreteLaplace.calibrate(epsilon=e, sensitivity=1),
        worlds.fixed_worlds(0, 1),
        worlds.itself,
        law=lambda m, _: laplace_cells(m.scale),
    ),
    AuditedMechanism(
        "DiscreteLaplace, replace-one",
        lambda e: DiscreteLaplace.calibrate(epsilon=e, sensitivity=2),
        worlds.fixed_worlds([5, 4], [4, 5]),
        worlds.moved_cell,
    ),
    AuditedMechanism(
        "DiscreteGaussian",
        lambda e: DiscreteGaussian.calibrate(epsilon=e, delta=SMALL, sensitivity=1),
        worlds.fixed_worlds(0, 1),
        worlds.itself,
        deltas=(SMALL, HALFWAY),
        law=lambda m, _: gaussian_cells(m.sigma**2),
    ),
    AuditedMechanism(
        "Staircase",
        lambda e: Staircase.calibrate(epsilon=e, sensitivity=1),
        worlds.fixed_worlds(0, 1),
        worlds.itself,
        law=worlds.stairs,
        real=True,
    ),
    AuditedMechanism(
        "TruncatedLaplace",
        lambda e: TruncatedLaplace.calibrate(epsilon=e, delta=LARGE, sensitivity=1),
        worlds.fixed_worlds(0, 1),
        worlds.itself,
        deltas=(LARGE,),
        law=lambda m, _: laplace_cells(worlds.steps(m.scale, m), reach=int(worlds.steps(m.reach, m))),
        real=True,
    ),
    AuditedMechanism(
        "RandomizedResponse",
        lambda e: RandomizedResponse.calibrate(epsilon=e),
        worlds.fixed_worlds(0, 1),
        worlds.itself,
        law=worlds.answers,
    ),
    AuditedMechanism(
        "RandomizedResponse, four answers",
        lambda e: RandomizedResponse.calibrate(epsilon=e, categories=4),
        worlds.fixed_worlds(0, 1),
        worlds.itself,
        law=worlds.answers,
    ),
    AuditedMechanism(
        "RandomizedResponse, three bits",
        lambda e: RandomizedResponse.calibrate(epsilon=e, answers=3),
        worlds.fixed_worlds([0, 0, 0], [1, 1, 1]),
        worlds.code,
    ),
    AuditedMechanism(
        "Exponential",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1),
        worlds.unlikely_first,
        worlds.itself,
        law=worlds.chances,
    ),
    AuditedMechanism(
        "Exponential, monotone",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1, monotone=True),
        worlds.rising_first,
        worlds.itself,
        law=worlds.chances,
    ),
    AuditedMechanism(
        "Exponential, bounded range",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1),
        worlds.bounded_range,
        worlds.itself,
        deltas=(HALFWAY,),
    ),
    AuditedMechanism(
        "Exponential, between numbers",
        lambda e: Exponential.calibrate(epsilon=e, sensitivity=1),
        worlds.fixed_worlds(([0.0, 0.1, 1.0], [0, 1]), ([0.0, 0.1, 1.0], [1, 0])),
        worlds.itself,
        many="release_between_many",
    ),
    AuditedMechanism(
        "PermuteAndFlip",
        lambda e: PermuteAndFlip.calibrate(epsilon=e, sensitivity=1),
        worlds.fixed_worlds([0, 0], [1, -1]),
        worlds.itself,
        law=worlds.chances,
    ),
    AuditedMechanism(
        "PermuteAndFlip, monotone",
        lambda e: PermuteAndFlip.calibrate(epsilon=e, sensitivity=1, monotone=True),
        worlds.fixed_worlds([0, 0], [1, 0]),
        worlds.itself,
        law=worlds.chances,
    ),
    AuditedMechanism(
        "NoisyMax",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1),
        worlds.behind(1, 0.45, 1.0),
        worlds.itself,
        law=worlds.chances,
    ),
    AuditedMechanism(
        "NoisyMax, monotone",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1, monotone=True),
        worlds.behind(1, 0.22, 0.0),
        worlds.is_first,
    ),
    AuditedMechanism(
        "NoisyMax, top two",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1, top=2),
        worlds.behind(2, 0.27, 1.0),
        worlds.of_first_two,
    ),
    AuditedMechanism(
        "NoisyMax, gap",
        lambda e: NoisyMax.calibrate(epsilon=e, sensitivity=1, gap=True),
        worlds.fixed_worlds([0] * 6, [1] + [-1] * 5),
        worlds.gap_of_first,
    ),
    AuditedMechanism(
        "AboveThreshold",
        lambda e: AboveThreshold.calibrate(epsilon=e, sensitivity=1, threshold="0.5"),
        worlds.fixed_worlds(*worlds.QUEUE),
        worlds.first_above,
    ),
    AuditedMechanism(
        "AboveThreshold, monotone",
        lambda e: AboveThreshold.calibrate(epsilon=e, sensitivity=1, threshold="0.5", monotone=True),
        worlds.fixed_worlds([0.0] * 5 + [1.0], [1.0] * 6),
        worlds.first_above,
    ),
    AuditedMechanism(
        "AboveThreshold, two hits",
        lambda e: AboveThreshold.calibrate(epsilon=e, sensitivity=1, threshold="0.5", hits=2),
        worlds.fixed_worlds([0.0] * 5 + [1.0] * 2, [1.0] * 5 + [0.0] * 2),
        worlds.last_two_lead,
    ),
    AuditedMechanism(
        "AboveThreshold, gap",
        lambda e: AboveThreshold.calibrate(epsilon=e, sensitivity=1, threshold="0.5", gap=True),
        worlds.fixed_worlds(*worlds.QUEUE),
        worlds.gap_of_last,
    ),
    AuditedMechanism(
        "Quantile",
        lambda e: Quantile.calibrate(q="0.5", lower=0, upper=1, epsilon=e, adjacency=ADD, cells=65),
        worlds.fixed_worlds(*worlds.MEDIAN),
        worlds.place_of_65,
        law=worlds.chances,
    ),
    AuditedMechanism(
        "Quantile, replace-one",
        lambda e: Quantile.calibrate(q="0.5", lower=0, upper=1, epsilon=e, adjacency=REPLACE, cells=65),
        worlds.fixed_worlds(*worlds.MEDIAN_REPLACED),
        worlds.place_of_65,
        law=worlds.chances,
    ),
    AuditedMechanism(
        "Quantile, minimum",
        lambda e: Quantile.calibrate(q=0, lower=0, upper=1, epsilon=e, adjacency=ADD, cells=3),
        worlds.at_the_bottom,
        worlds.place_of_3,
        law=worlds.chances,
    ),
    AuditedMechanism(
        "GaussianKeys",
        lambda e: GaussianKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        worlds.at_threshold,
        worlds.count_if_shown,
        deltas=(LARGE, HALFWAY),
    ),
    AuditedMechanism(
        "GaussianKeys, a key alone",
        lambda e: GaussianKeys.calibrate(epsilon=e, delta=ALONE, keys=1),
        worlds.fixed_worlds([0], [1]),
        worlds.count_if_shown,
        deltas=(ALONE,),
    ),
    AuditedMechanism(
        "LaplaceKeys",
        lambda e: LaplaceKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        worlds.at_threshold,
        worlds.count_if_shown,
        deltas=(LARGE,),
    ),
    AuditedMechanism(
        "LaplaceKeys, two keys",
        lambda e: LaplaceKeys.calibrate(epsilon=e, delta=LARGE, keys=2),
        worlds.at_threshold,
        worlds.how_many_shown,
        deltas=(LARGE,),
    ),
    AuditedMechanism(
        "LaplaceKeys, a key alone",
        lambda e: LaplaceKeys.calibrate(epsilon=e, delta=ALONE, keys=1),
        worlds.fixed_worlds([0], [1]),
        worlds.count_if_shown,
        deltas=(ALONE,),
    ),
    AuditedMechanism(
        "OptimalKeys",
        lambda e: OptimalKeys.calibrate(epsilon=e, delta=LARGE, keys=1),
        worlds.around_half,
        worlds.count_if_shown,
        deltas=(LARGE,),
    ),
    AuditedMechanism(
        "OptimalKeys, two keys",
        lambda e: OptimalKeys.calibrate(epsilon=e, delta=LARGE, keys=2),
        worlds.around_half,
        worlds.how_many,
        deltas=(LARGE,),
    ),
    AuditedMechanism(
        "OptimalKeys, a key alone",
        lambda e: OptimalKeys.calibrate(epsilon=e, delta=ALONE, keys=1),
        worlds.fixed_worlds([0], [1]),
        worlds.count_if_shown,
        deltas=(ALONE,),
    ),
    *LOCAL,
)

"""The protocols of local privacy under audit: one person's report, on two values that are hard for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.audit import worlds
from curador.audit.entry import Entry
from curador.local.direct import Direct
from curador.local.hadamard import Hadamard
from curador.local.hashing import Hashing
from curador.local.means.duchi import DuchiMean
from curador.local.means.laplace import LaplaceMean
from curador.local.means.piecewise import HybridMean, PiecewiseMean
from curador.local.rappor import Rappor
from curador.local.subset import Subset
from curador.local.unary import Unary

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from curador.numerics.rounding import FloatArray
    from curador.privacy.loss import Loss
    from curador.randomness.entropy import Bytes, Entropy, IntArray

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


def _values(name: str, make: Callable[[str], Any]) -> Entry:
    return Entry(f"Local, {name}", lambda e: Witness(make(e)), worlds.fixed(ONE, OTHER), worlds.itself)


def _numbers(name: str, kind: Callable[..., Any]) -> Entry:
    def make(epsilon: str) -> Sent:
        return Sent(kind(lower=0, upper=1, epsilon=epsilon))

    return Entry(f"Local, {name}", make, worlds.fixed(0.0, 1.0), worlds.itself)


LOCAL: tuple[Entry, ...] = (
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

"""Losses of one record (a, b, y) under a model X, and made-up problems of such records whose best model is known.

What a record costs is a function of the margin a'Xb, with constants that clipping enforces.

The gradient of a record is rank one, coefficient · a b'. A loss declares the longest a and b, the largest coefficient and by
how much a coefficient moves with the margin; whoever sums gradients clips all of them (records.py), so that the constants
hold for every record there can be.

Made-up problems are bilinear regressions whose best model is known: to compare optimisers, and to show what a budget buys.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter, require

if TYPE_CHECKING:
    from curador.learn.sums import Floats


# ---- losses ----------------------------------------------------------------------------------------------------------------


LEAST, MOST = 1e-30, 1e30
"""Between these declared numbers lie: their inverses and products are floats with room to spare."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records as they came: rows of a, rows of b, targets."""

    left: Floats
    right: Floats
    targets: Floats


class ObjectiveLoss(ABC):
    """A convex function of the margin a'Xb and the target.

    left_norm, right_norm  what a and b are clipped to
    slope                  the largest |coefficient|: coefficients are clipped to it
    bend                   the largest |coefficient(s) − coefficient(t)| / |s − t|

    Claim   The gradient of a record moves by at most `lipschitz` in the Frobenius norm when the record comes or goes, and by
            at most `smoothness` times the operator norm (hence the nuclear norm) of a step of X.
    """

    __slots__ = ()
    left_norm: float
    right_norm: float

    @property
    @abstractmethod
    def slope(self) -> float: ...

    @property
    @abstractmethod
    def bend(self) -> float: ...

    @abstractmethod
    def values(self, margins: Floats, targets: Floats) -> Floats:
        """Return the loss of each record."""

    @abstractmethod
    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        """Return the coefficient of each record, by functions that take each number for itself; NaN where a target is."""

    def mean(self, margins: Floats) -> Floats:
        """Return what is predicted at these margins."""
        return margins

    @property
    def lipschitz(self) -> float:
        """The longest gradient of a record, in the Frobenius norm."""
        return self.slope * self.left_norm * self.right_norm

    @property
    def smoothness(self) -> float:
        """By how much gradients move, in the Frobenius norm, for a step of operator norm 1."""
        return self.bend * (self.left_norm * self.right_norm) ** 2

    def coefficients(self, X: Floats, batch: Batch) -> Floats:  # noqa: N803 -- a matrix
        """Return the coefficients of the records at X: clipped, of clipped records."""
        margins = ((clip_rows(batch.left, self.left_norm) @ X) * clip_rows(batch.right, self.right_norm)).sum(axis=1)
        return np.clip(self.slopes(margins, batch.targets), -self.slope, self.slope)

    def risk(self, X: Floats, batch: Batch) -> float:  # noqa: N803 -- a matrix
        """Return the mean loss of the records at X. Not private."""
        margins = ((clip_rows(batch.left, self.left_norm) @ X) * clip_rows(batch.right, self.right_norm)).sum(axis=1)
        return float(self.values(margins, batch.targets).mean())


def clip_rows(rows: Floats, norm: float) -> Floats:
    """Return rows no longer than `norm` in l2."""
    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return rows * (norm / np.maximum(lengths, norm))


@dataclass(frozen=True, slots=True)
class BilinearHuber(ObjectiveLoss):
    """Half the square of a'Xb − y up to delta, a line from there on: regression that no record can pull far."""

    delta: float = 1.0
    left_norm: float = 1.0
    right_norm: float = 1.0

    def __post_init__(self) -> None:
        _all_positive(self)

    @property
    def slope(self) -> float:
        return self.delta

    @property
    def bend(self) -> float:
        return 1.0

    def values(self, margins: Floats, targets: Floats) -> Floats:
        """Return the loss of each record."""
        away = np.abs(margins - targets)
        near = np.minimum(away, self.delta)
        return near * (away - near / 2)

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        """Return the coefficient of each record: its residual, clipped."""
        return np.clip(margins - targets, -self.delta, self.delta)


@dataclass(frozen=True, slots=True)
class BilinearLogistic(ObjectiveLoss):
    """log(1 + exp(−y·a'Xb)) with y = 1 where the target is above 0, and −1 elsewhere."""

    left_norm: float = 1.0
    right_norm: float = 1.0

    def __post_init__(self) -> None:
        _all_positive(self)

    @property
    def slope(self) -> float:
        return 1.0

    @property
    def bend(self) -> float:
        return 0.25

    def values(self, margins: Floats, targets: Floats) -> Floats:
        """Return the loss of each record."""
        return np.logaddexp(0.0, np.where(targets > 0, -margins, margins))

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        """Return the coefficient of each record: minus y times how unlikely its y is."""
        from scipy.special import expit

        sign = np.where(targets > 0, 1.0, -1.0)
        doubt: Floats = np.asarray(expit(-sign * margins), np.float64)
        return np.where(np.isnan(targets), np.nan, -sign * doubt)

    def mean(self, margins: Floats) -> Floats:
        """Return the probability that y = 1."""
        from scipy.special import expit

        return np.asarray(expit(margins), np.float64)


@dataclass(frozen=True, slots=True)
class EntrySquared(ObjectiveLoss):
    """Half the square of X[i, j] − y, of records (i, j, y): matrix completion. Clipped: a line beyond `clip`."""

    clip: float = 1.0
    left_norm: float = 1.0
    right_norm: float = 1.0

    def __post_init__(self) -> None:
        _all_positive(self)

    @property
    def slope(self) -> float:
        return self.clip

    @property
    def bend(self) -> float:
        return 1.0

    def values(self, margins: Floats, targets: Floats) -> Floats:
        """Return the loss of each record."""
        return BilinearHuber(self.clip).values(margins, targets)

    def slopes(self, margins: Floats, targets: Floats) -> Floats:
        """Return the coefficient of each record: its residual, clipped."""
        return np.clip(margins - targets, -self.clip, self.clip)


_NAMES: dict[str, type[BilinearHuber | BilinearLogistic | EntrySquared]] = {
    "huber": BilinearHuber,
    "logistic": BilinearLogistic,
    "squared": EntrySquared,
}
_SPELLED = re.compile(r"([a-z]+)(?:\(([^()]*)\))?")


def loss_of(value: object) -> ObjectiveLoss:
    """Return the loss that a parameter names: a Loss, or text such as 'huber', 'logistic', 'squared(2.0)'."""
    if isinstance(value, ObjectiveLoss):
        return value
    hint = "'huber', 'logistic', 'squared', each with its numbers in brackets where they are not 1"
    found = _SPELLED.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found[1] not in _NAMES:
        raise InvalidParameter.must_be("loss", "a loss or the name of one", value, hint)
    try:
        numbers = [float(one) for one in (found[2] or "").split(",") if one.strip()]
        return _NAMES[found[1]](*numbers)
    except (TypeError, ValueError):
        raise InvalidParameter.must_be("loss", f"a name with numbers between {LEAST:g} and {MOST:g}", value, hint) from None


def loss_text(value: object) -> str:
    """Return the text that `loss_of` reads as the same loss."""
    loss = loss_of(value)
    for name, kind in _NAMES.items():
        if type(loss) is kind:
            return f"{name}({', '.join(repr(float(stored_number)) for stored_number in _stored_numbers(loss))})"
    raise InvalidParameter.must_be("loss", "one of curador's own, where a model is written", type(loss).__name__)


def _stored_numbers(loss: ObjectiveLoss) -> tuple[float, ...]:
    """The numbers of a loss in the order in which a text holds them, for ever."""
    match loss:
        case BilinearHuber():
            return loss.delta, loss.left_norm, loss.right_norm
        case EntrySquared():
            return loss.clip, loss.left_norm, loss.right_norm
        case _:
            return loss.left_norm, loss.right_norm


def _all_positive(loss: BilinearHuber | BilinearLogistic | EntrySquared) -> None:
    for name, value in zip(loss.__dataclass_fields__, astuple(loss), strict=True):
        good = isinstance(value, (int, float)) and LEAST <= value <= MOST
        require(good, f"{name} of the loss", f"a number between {LEAST:g} and {MOST:g}", value)


# ---- problems --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BilinearProblem:
    """Records y = a'X*b + noise, as many more to judge by, and the model X* that made them (its nuclear norm is `radius`)."""

    train: Batch
    test: Batch
    best: Floats
    radius: float = 1.0

    def excess(self, model: Floats, loss: ObjectiveLoss | None = None) -> float:
        """Return the mean loss of a model on the other records, minus that of X*."""
        loss = BilinearHuber() if loss is None else loss
        return loss.risk(model, self.test) - loss.risk(self.best, self.test)


def bilinear_problem(
    n: int,
    shape: tuple[int, int] = (20, 20),
    rank: int = 2,
    *,
    energy: float = 0.8,
    noise: float = 0.1,
    test: int = 200_000,
    seed: int | None = None,
) -> BilinearProblem:
    """Return n records with unit rows, `energy` of whose squared length lies in the `rank` directions of X*, whose singular
    values fall evenly and add up to 1.
    """  # noqa: D205 -- one sentence
    chance = np.random.default_rng(seed)
    frames = [np.linalg.qr(chance.standard_normal((size, size)))[0] for size in shape]
    weights = np.arange(rank, 0, -1) * 2.0 / (rank * (rank + 1))
    best = (frames[0][:, :rank] * weights) @ frames[1][:, :rank].T

    def rows(count: int, frame: Floats) -> Floats:
        inside, outside = _units(chance, count, rank), _units(chance, count, len(frame) - rank)
        return np.hstack([np.sqrt(energy) * inside, np.sqrt(1.0 - energy) * outside]) @ frame.T

    def batch(count: int) -> Batch:
        left, right = rows(count, frames[0]), rows(count, frames[1])
        targets: Any = ((left @ best) * right).sum(axis=1) + noise * chance.standard_normal(count)
        return Batch(left, right, targets)

    return BilinearProblem(batch(n), batch(test), best)


def _units(chance: np.random.Generator, count: int, size: int) -> Floats:
    drawn = chance.standard_normal((count, size))
    return drawn / np.maximum(np.linalg.norm(drawn, axis=1, keepdims=True), 1e-300)

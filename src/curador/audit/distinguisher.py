"""A small learned adversary: it looks at values, at their distance from the middle, and at the bits that only computers see.

Every view of an output is cut into cells; the weight of evidence of a cell, the logarithm of how much likelier it is in the
second world, is learned on one half of the releases; how far each view can be trusted, by logistic regression on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from curador.audit.attack import Attack, arrays_of, first_releases, later_releases
from curador.errors import InvalidParameter, require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray

CELLS = 48
"""Most cells of a view."""

MOST_COLUMNS = 4096
"""Numbers an output may have."""

BITS_COLUMNS = 32
"""Numbers of an output up to which bits and distances are looked at, too."""

SQUARES_COLUMNS = 64
"""Up to which the first regression sees squares; it sees products up to 6."""

LEAST = 64
"""Releases of a world below which nothing can be learned."""

_FARTHEST = 1e150  # its square is a float
_MISSING = -(2.0**60)  # below every view: a cell of its own
_OFTEN = 12
_PRODUCTS = 6
_ROUNDS = 30
_RIDGE = 4.0
_SMOOTH = 1.0


def learn_attack(outputs0: Any, outputs1: Any) -> Attack:
    """Return a score that was learned from releases of both worlds; it must be tested on others."""
    return Attack("learned", train(outputs0, outputs1).score)


def train(outputs0: Any, outputs1: Any) -> Distinguisher:
    """Learn to tell outputs of the second world from those of the first.

    A function of the given releases alone. Whatever it returns is a valid score: what it overlooks makes an audit weaker,
    never wrong.
    """
    one, other = columns_of(outputs0), columns_of(outputs1)
    require(len(one) == len(other), "outputs", "of one shape in both worlds", f"{len(one)} and {len(other)} numbers")
    size = min(len(one[0]), len(other[0]))
    require(size >= LEAST, "samples", f"at least {LEAST} to learn from", size)
    half = size // 2
    truth = np.repeat([0.0, 1.0], [half, half])
    halves = [
        [np.concatenate([a[part], b[part]]) for a, b in zip(one, other, strict=True)]
        for part in (slice(0, half), slice(half, 2 * half))
    ]
    direction = _direction(halves[0], truth) if len(one) > 1 else None
    frame = _Frame(_middles(halves[0]), direction)
    views = tuple(_View.learn(view, truth) for view in frame.views(halves[0]))
    evidence = _evidence(frame, views, halves[1])
    weights = logistic(evidence, truth)
    return Distinguisher(frame, views, weights)


@dataclass(frozen=True, slots=True, eq=False)
class Distinguisher:
    """What was learned: how to look, what each cell of a view says, and how far each view is trusted."""

    frame: _Frame
    views: tuple[_View, ...]
    weights: FloatArray

    def score(self, outputs: Any) -> FloatArray:
        """Return the learned log-odds of the second world, one number a release."""
        return _predict(_evidence(self.frame, self.views, columns_of(outputs)), self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class _Direction:
    """A regression on standardised numbers, squares and products: what several numbers say together."""

    middle: FloatArray
    spread: FloatArray
    weights: FloatArray

    def along(self, columns: list[NDArray[Any]]) -> FloatArray:
        return _predict(_standardise(columns, self.middle, self.spread), self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """Which views of an output there are."""

    middles: FloatArray
    direction: _Direction | None

    def views(self, columns: list[NDArray[Any]]) -> Iterator[FloatArray]:
        """Yield the views, each one number a release."""
        for column, middle in zip(columns, self.middles.tolist(), strict=True):
            values = _plain(column)
            yield values
            if len(columns) <= BITS_COLUMNS:
                yield np.where(values == _MISSING, _MISSING, np.abs(values - middle))
                yield from _bits(column)
        if self.direction is not None:
            yield self.direction.along(columns)


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """Cells of a view, and the weight of evidence of each."""

    edges: FloatArray
    weights: FloatArray

    @classmethod
    def learn(cls, view: FloatArray, truth: FloatArray) -> _View:
        edges = _edges(view)
        cell = np.searchsorted(edges, view, side="right")
        seen = [np.bincount(cell[truth == world], minlength=len(edges) + 1) for world in (0.0, 1.0)]
        return cls(edges, np.log(seen[1] + _SMOOTH) - np.log(seen[0] + _SMOOTH))

    def evidence(self, view: FloatArray) -> FloatArray:
        return self.weights[np.searchsorted(self.edges, view, side="right")]


def _evidence(frame: _Frame, views: tuple[_View, ...], columns: list[NDArray[Any]]) -> FloatArray:
    return np.column_stack([known.evidence(view) for known, view in zip(views, frame.views(columns), strict=True)])


def _edges(view: FloatArray) -> FloatArray:
    """One value a cell where there are few; else shares of the releases, smaller at both ends, where rare events live."""
    values, counts = np.unique(view, return_counts=True)
    if len(values) <= CELLS:
        return values[1:]
    ends = np.cumsum(counts)
    shares = np.sin(np.linspace(0.0, np.pi / 2, CELLS + 1)[1:-1]) ** 2
    places = np.searchsorted(ends, shares * ends[-1], side="left")
    often = np.flatnonzero((counts >= _OFTEN) & (counts > 4 * np.median(counts)))
    often = often[np.argsort(-counts[often], kind="stable")[: CELLS // 2]]  # an atom among spread values: a cell of its own
    kept = np.unique(np.concatenate([places, often, often + 1]))
    return values[kept[(kept > 0) & (kept < len(values))]]


# ---- what is looked at ----------------------------------------------------------------------------------------------


def columns_of(outputs: Any) -> list[NDArray[Any]]:
    """Return the numbers of an output as columns of floats, integers or booleans, one entry a release."""
    if not isinstance(outputs, np.ndarray):
        return [column for part in arrays_of(outputs) if part is not None for column in columns_of(part)]
    array = cast("NDArray[Any]", outputs)
    if array.dtype.names is not None:
        return [column for name in array.dtype.names for column in columns_of(array[name])]
    if array.dtype.kind in "SV":
        array = np.unpackbits(np.frombuffer(array.tobytes(), np.uint8).reshape(len(array), -1), axis=1)
    elif array.dtype.kind == "O":
        array = _numbers(array)
    if array.dtype.kind not in "fiub":
        raise InvalidParameter.must_be(
            "outputs", "numbers", f"an array of {array.dtype}", "give a score of your own as attack"
        )
    table = array.reshape(len(array), -1)
    hint = "give a score of your own as attack"
    require(0 < table.shape[1] <= MOST_COLUMNS, "outputs", f"of 1 to {MOST_COLUMNS} numbers", table.shape[1], hint)
    return list(table.T)


def _numbers(array: NDArray[Any]) -> FloatArray:
    """Objects as floats; None is a NaN, and so are masked entries."""
    try:
        return np.array([np.nan if one is None else float(one) for one in array.ravel().tolist()]).reshape(array.shape)
    except (TypeError, ValueError):
        raise InvalidParameter.must_be("outputs", "numbers", "objects", "give a score of your own as attack") from None


def _plain(column: NDArray[Any]) -> FloatArray:
    """The numbers themselves; what is none lies below all of them."""
    values = np.clip(column.astype(np.float64), -_FARTHEST, _FARTHEST)  # infinite ones have no differences
    return np.where(np.isnan(values), _MISSING, values)


def _middles(columns: list[NDArray[Any]]) -> FloatArray:
    plain = [_plain(column) for column in columns]
    return np.array([float(np.median(one[one != _MISSING])) if np.any(one != _MISSING) else 0.0 for one in plain])


def _bits(column: NDArray[Any]) -> Iterator[FloatArray]:
    """Of a float the exponent, the place of its lowest set bit and the last digits; of an integer the last two of these.

    A sum of floats keeps the spacing of its larger operand, so the lowest bit tells what was added [Mir12].
    """
    if column.dtype.kind == "f":
        finite = np.where(np.isfinite(column), column, 0.0).astype(np.float64)
        fraction, exponent = np.frexp(finite)
        digits = np.ldexp(np.abs(fraction), 53).astype(np.int64)
        yield np.where(digits == 0, _MISSING, exponent.astype(np.float64))
        yield np.where(digits == 0, _MISSING, exponent - 53.0 + _trailing(digits))
        yield (digits & 7).astype(np.float64)
    else:
        digits = column.astype(np.int64)
        yield np.where(digits == 0, _MISSING, _trailing(digits))
        yield (digits & 7).astype(np.float64)


def _trailing(digits: NDArray[np.int64]) -> FloatArray:
    """How many zeros the binary digits end in."""
    lowest = (digits & -digits).astype(np.float64)
    return np.frexp(lowest)[1].astype(np.float64) - 1.0


# ---- regressions ----------------------------------------------------------------------------------------------------


def _direction(columns: list[NDArray[Any]], truth: FloatArray) -> _Direction:
    table = np.column_stack([_finite_numbers(column) for column in columns])
    middle = np.median(table, axis=0)
    spread = np.median(np.abs(table - middle), axis=0) * 1.5
    spread = np.where(spread > 0, spread, np.maximum(table.std(axis=0), 1e-300))
    return _Direction(middle, spread, logistic(_standardise(columns, middle, spread), truth))


def _finite_numbers(column: NDArray[Any]) -> FloatArray:
    values = column.astype(np.float64)
    return np.where(np.isfinite(values), values, 0.0)


def _standardise(columns: list[NDArray[Any]], middle: FloatArray, spread: FloatArray) -> FloatArray:
    """Standardised numbers, cut at eight spreads; squares and products where there are few."""
    table = np.clip((np.column_stack([_finite_numbers(column) for column in columns]) - middle) / spread, -8.0, 8.0)
    parts = [table]
    if table.shape[1] <= SQUARES_COLUMNS:
        parts.append(table**2)
    if table.shape[1] <= _PRODUCTS:
        parts.extend(table[:, [i]] * table[:, [j]] for i in range(table.shape[1]) for j in range(i))
    return np.column_stack(parts)


def logistic(features: FloatArray, truth: FloatArray) -> FloatArray:
    """Return the weights, the constant first, of a logistic regression with a ridge penalty, by Newton's method."""
    table = np.column_stack([np.ones(len(features)), features])
    scale = np.maximum((table**2).mean(axis=0), 1e-12)
    penalty = _RIDGE * scale
    penalty[0] = 1e-6
    weights = np.zeros(table.shape[1])
    loss = _logistic_loss(table, truth, weights, penalty)
    for _ in range(_ROUNDS):
        chance = _chance(table @ weights)
        gradient = table.T @ (chance - truth) + penalty * weights
        curve = (table * (chance * (1 - chance))[:, None]).T @ table
        curve[np.diag_indices_from(curve)] += penalty
        step = np.linalg.solve(curve, gradient)
        for _ in range(8):  # halved until it helps: Newton's step may overshoot
            tried = weights - step
            after = _logistic_loss(table, truth, tried, penalty)
            if after <= loss:
                break
            step = step / 2
        else:
            break
        weights, gained, loss = tried, loss - after, after
        if gained <= 1e-9 * abs(loss):
            break
    return weights


def _logistic_loss(table: FloatArray, truth: FloatArray, weights: FloatArray, penalty: FloatArray) -> float:
    odds = table @ weights
    return float(np.sum(np.logaddexp(0.0, odds) - truth * odds) + 0.5 * np.sum(penalty * weights**2))


def _chance(odds: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-np.clip(odds, -40.0, 40.0)))


def _predict(features: FloatArray, weights: FloatArray) -> FloatArray:
    return features @ weights[1:] + weights[0]


def split_outputs(outputs: Any, count: int) -> tuple[Any, Any]:
    """Return the first `count` releases, to learn from, and the others, to be tested on."""
    return first_releases(outputs, count), later_releases(outputs, count)

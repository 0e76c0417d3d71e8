"""Which keys exist is itself private: a key is shown only where enough people hold it, by a noisy number of units.

What selections of keys share comes first: numbers of units by key come in, in an order that says nothing, and go out.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import enum
import itertools
import math
import numbers
import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, cast, overload

import numpy as np

from curador.errors import InvalidParameter, require
from curador.mechanisms.additive import miss_of_each
from curador.mechanisms.calibration import find_scale, read_goal
from curador.mechanisms.grid import (
    GRID_BITS,
    decimal_text,
    floor_log2,
    power_of_two,
    refusal_of_value,
    round_up,
    to_whole,
    unwrap_value,
    whole_array,
)
from curador.mechanisms.laplace import discrete_variance
from curador.mechanisms.seam import perform
from curador.mechanisms.tails import Enclosed, any_of, delta_for_record, first_whole, gaussian_tail, laplace_tail, share_of
from curador.numerics.exact import Number, open_probability, positive, whole
from curador.numerics.rounding import Interval, float_up
from curador.privacy.adjacency import Adjacency, as_adjacency
from curador.privacy.loss import Loss
from curador.privacy.losses import Approx, KeySelection
from curador.randomness.entropy import BoolArray, Entropy, IntArray
from curador.randomness.noise import Noise, gaussian, laplace

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# ---- units by key ----------------------------------------------------------------------------------------------------------

Counts: TypeAlias = Mapping[Any, int]
"""Units by key; a key that nobody holds may be there with 0, or not at all: it is never shown."""

_MOST_UNITS = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """Numbers with the keys they belong to: what stands at the seam for a mapping, in and out.

    A key that is not there has 0 units, so two neighbours need not have the same keys; and what comes out names its keys,
    so that it can be shown without knowing what went in.
    """

    keys: tuple[Any, ...]
    numbers: NDArray[Any]

    def chosen(self, places: BoolArray, values: NDArray[Any]) -> Keyed:
        """Return the keys at the true places, each with its value."""
        return Keyed(tuple(itertools.compress(self.keys, places.tolist())), values[places])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy the numbers; the keys stay the same objects, as a key that is equal to itself alone has no equal copy."""
        return type(self)(self.keys, self.numbers.copy())


def as_units(counts: object) -> IntArray:
    """Return the numbers of units as integers, refused unless whole, at least 0 and in one dimension.

    No numbers at all are an answer wherever some would be: an error would tell that nobody is there.
    """
    given = unwrap_value(counts, "counts")
    if isinstance(given, (list, tuple)) and not given:
        return np.empty(0, np.int64)
    if hasattr(given, "__array__"):
        column: NDArray[Any] = np.asarray(given)
        if column.shape == (0,) and column.dtype.kind in "iuO":
            return np.empty(0, np.int64)
        given = column
    units = whole_array(given, "counts")
    if units.ndim != 1:
        raise refusal_of_value("counts", "a mapping or an array of one dimension", f"an array of {units.ndim} dimensions")
    if (units < 0).any():
        raise refusal_of_value("counts", "at least 0", "a negative number")
    return units


def from_mapping(counts: Counts) -> Keyed:
    """Return the keys that somebody holds, sorted, and their numbers of units.

    Claim   The order is a function of the set of keys alone, not of the order in which the data brought them, except
            between keys whose `order` is the same (two NaNs, or objects of one type with the same repr).
    """
    keys, units = list(counts), whole_units(counts.values())
    if (units < 0).any():
        raise refusal_of_value("counts", "at least 0", "a negative number")
    if not units.all():
        keys, units = list(itertools.compress(keys, (units > 0).tolist())), units[units > 0]
    order = sorted_places(keys)
    return Keyed(tuple([keys[place] for place in order.tolist()]), units[order])


def whole_units(counts: Collection[Any]) -> IntArray:
    """Return numbers of units, each at most so large that noise beside it does not overflow."""
    held = list(counts)
    if set(map(type, held)) - {int}:
        held = [to_whole(one, "counts") for one in held]
    try:
        return np.minimum(np.array(held, np.int64), _MOST_UNITS)
    except OverflowError:
        return np.array([max(min(one, _MOST_UNITS), -1) for one in held], np.int64)


# ---- the order of keys -----------------------------------------------------------------------------------------------------

# A function of the set of keys alone, so that it says nothing of how the data brought them. Keys of a few plain types, which
# are all that an engine groups by, are put into that order column by column, a hundred times faster.

_SIZES: dict[type, type] = {bool: np.bool_, int: np.int64, float: np.float64}
_PLAIN: frozenset[type] = frozenset({bool, int, float, str, dt.date, dt.datetime})


def sorted_places(keys: Sequence[Hashable]) -> IntArray:
    """Return the places of keys in the order of `sort_key`, those that it does not tell apart as they come.

    Claim   The fast order is that of `sort_key`: NULL first, then by size, letter or time, as both compare values of one
            plain type.
    Source  `tests/unit/test_keys.py` compares the two on random keys.
    """
    columns = _plain_columns(keys)
    if columns is None:
        order = sorted(range(len(keys)), key=lambda place: sort_key(keys[place]))
        return np.array(order, np.int64)
    codes = [code for column in columns for code in _codes(column)]
    return np.lexsort(codes[::-1]) if codes else np.arange(len(keys))


def settled_places(keys: Sequence[Hashable], counts: NDArray[np.float64]) -> IntArray:
    """Return the places of keys that are in order already, those that `sort_key` does not tell apart by their counts.

    Different keys of plain types are told apart, so nothing is to be settled there.
    """
    if _plain_columns(keys) is not None:
        return np.arange(len(keys))
    held = counts.tolist()
    return np.array(sorted(range(len(keys)), key=lambda place: (sort_key(keys[place]), held[place])), np.int64)


def _plain_columns(keys: Sequence[Hashable]) -> list[list[Any]] | None:
    """Return keys column by column; None where a column holds anything but values of one plain type and NULLs."""
    columns: list[list[Any]] = [list(keys)]
    if keys and set(map(type, keys)) == {tuple}:
        rows = cast("Sequence[tuple[Hashable, ...]]", keys)
        if len(set(map(len, rows))) > 1:
            return None
        columns = [[row[place] for row in rows] for place in range(len(rows[0]))]  # no iterator for each row, as zip has
    return columns if all(_is_plain(column) for column in columns) else None


def _is_plain(values: list[Any]) -> bool:
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) > 1 or not kinds <= _PLAIN:
        return False
    if kinds == {float}:
        return all(value == value for value in values)  # noqa: PLR0124 -- NaN compares with nothing
    return kinds != {dt.datetime} or all(value is None or value.tzinfo is None for value in values)


def _codes(values: list[Any]) -> list[NDArray[Any]]:
    """Return numbers whose order is that of the values, the first decides: whether there is one, and its size or rank."""
    there = np.array([value is not None for value in values], bool)
    kinds = set(map(type, values)) - {type(None)}
    size = _SIZES.get(kinds.pop()) if kinds else None
    with contextlib.suppress(OverflowError):
        if size is not None:
            return [there, np.array([0 if value is None else value for value in values], size)]
    different: list[Any] = sorted({value for value in values if value is not None})
    ranks = {value: rank for rank, value in enumerate(different)}
    return [there, np.array([ranks.get(value, 0) for value in values], np.int64)]


def sort_key(key: Hashable) -> tuple[Any, ...]:
    """Numbers by size, texts by letter, tuples place by place; kinds that do not compare, by the name of their kind.

    Every key has a place, kinds that are not known by type and repr: a refusal would tell that somebody holds such a key.
    """
    if isinstance(key, enum.Enum):
        return ("Enum", 0, type(key).__qualname__, repr(key))
    if isinstance(key, (decimal.Decimal, numbers.Rational, float, np.floating)):
        return _by_size(key)
    if isinstance(key, (str, bytes)):
        return (type(key).__name__.rstrip("_"), 0, key)
    if isinstance(key, (dt.date, dt.time, np.datetime64, np.timedelta64, uuid.UUID)):
        return (type(key).__name__, 0, str(key))
    if isinstance(key, dt.timedelta):
        return ("timedelta", 0, key)
    if isinstance(key, tuple):
        return ("tuple", 0, tuple(sort_key(cast("Hashable", one)) for one in cast("tuple[object, ...]", key)))
    if isinstance(key, frozenset):  # its repr has no order of its own
        return ("frozenset", 0, tuple(sorted(sort_key(one) for one in cast("frozenset[Hashable]", key))))
    if key is None:
        return ("", 0, "")
    return (type(key).__name__, 2, repr(key))


def _by_size(key: decimal.Decimal | numbers.Rational | float | np.floating[Any]) -> tuple[Any, ...]:
    """As a rational: floats of different widths, decimals and fractions do not all compare with each other."""
    if isinstance(key, numbers.Rational):
        return ("Real", 0, Fraction(int(key.numerator), int(key.denominator)))
    near = float(key)
    if math.isnan(near):  # compares with nothing
        return ("Real", 1, "")
    if isinstance(key, decimal.Decimal) and (math.isinf(near) or near == 0):  # as a rational it might fill the memory
        return ("Real", 0, key)
    return ("Real", 0, near if math.isinf(near) else Fraction(*key.as_integer_ratio()))


# ---- neighbours ------------------------------------------------------------------------------------------------------------


def count_touched(keys: int, adjacency: Adjacency) -> int:
    """Return how many keys change: those of one person, or those of the person who goes and of the one who comes."""
    return keys if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2 * keys


def differ_by_one_unit(one: IntArray | Keyed, other: IntArray | Keyed, keys: int, adjacency: Adjacency) -> bool:
    """Whether the counts can be those of two neighbours: by one each, at most `keys` keys up, or down, or (replaced) both.

    Arrays place by place; mappings by key, a key that is not there having 0 units.
    """
    if isinstance(one, Keyed) and isinstance(other, Keyed):
        change = _change(one, other)
    elif isinstance(one, Keyed) or isinstance(other, Keyed) or one.shape != other.shape:
        return False
    else:
        change = one - other
    more, fewer = int((change > 0).sum()), int((change < 0).sum())
    both = adjacency is Adjacency.REPLACE_ONE or min(more, fewer) == 0
    return both and max(more, fewer) <= keys and bool((np.abs(change) <= 1).all())


def _change(one: Keyed, other: Keyed) -> IntArray:
    """By how much each key of either differs. NaNs, which cannot be told apart, are matched by their numbers of units."""
    before, after = _by_identity(one), _by_identity(other)
    moves: list[int] = []
    for key in before.keys() | after.keys():
        pairs = itertools.zip_longest(before.get(key, []), after.get(key, []), fillvalue=0)
        moves.extend(a - b for a, b in pairs)
    return np.array(moves, np.int64)


def _by_identity(counts: Keyed) -> dict[Any, list[int]]:
    """Numbers of units, largest first, by what an analyst who sees the key could tell: 1 and 1.0 are not the same."""
    out: dict[Any, list[int]] = {}
    for key, units in zip(counts.keys, counts.numbers.tolist(), strict=True):
        out.setdefault(_identity(key), []).append(units)
    for units in out.values():
        units.sort(reverse=True)
    return out


def _identity(key: Hashable) -> tuple[Any, ...]:
    if isinstance(key, tuple):
        return (type(key), *(_identity(cast("Hashable", one)) for one in cast("tuple[object, ...]", key)))
    told_by_repr = isinstance(key, (numbers.Number, np.generic))  # a NaN does not equal itself
    return (type(key), repr(key) if told_by_repr else key)


# ---- by noise and a threshold ----------------------------------------------------------------------------------------------

HIDDEN = -(1 << 63)
"""Stands at the seam for the count of a key that is not shown."""

_SMALLEST, _LARGEST = power_of_two(-20), power_of_two(40)


class KeptKeys(NamedTuple):
    """Places of the keys that are shown, in order, and their noisy numbers of units."""

    places: IntArray
    counts: NDArray[np.float64]


class _NoisyKeys(ABC):
    """units·G + N ≥ τ·G, on the grid of 1/G units. What the two laws of N share."""

    __slots__ = ()
    threshold: Fraction
    keys: int
    adjacency: Adjacency

    @property
    @abstractmethod
    def _spread(self) -> Fraction:
        """The scale of the noise, in units."""

    @abstractmethod
    def _noise(self) -> Noise: ...

    @abstractmethod
    def _tail(self, reach: int) -> Enclosed:
        """Enclose P[N ≥ reach steps of the grid]."""

    @property
    def grid(self) -> Fraction:
        """The step that noisy counts live on, in units: 2⁻⁴⁰ of the noise, at most 1."""
        return power_of_two(-self._places)

    @property
    def delta(self) -> Fraction:
        """That some key held by one person alone is shown: 1 − (1 − P[N ≥ (τ − 1)G])^keys. Rounds: up."""
        return _delta_of(self)

    def tail_of_one(self) -> Enclosed:
        """Enclose P[N ≥ (τ − 1)G]: that a key held by one person alone is shown."""
        return self._tail(int((self.threshold - 1) / self.grid))

    def pass_probability(self, units: int) -> float:
        """Return the probability that a key held by so many units is shown; 0 for a key that nobody holds. Rounds: up."""
        held = whole(units, "units", least=0)
        return float_up(self._tail(int((self.threshold - held) / self.grid)).upper) if held else 0.0

    def interval(self, confidence: Number = "0.95", *, together: Number = 1) -> Interval:
        """Return the error bar of a noisy count: its noise lies in it with at least this probability.

        Of noisy counts before the threshold chose: those just above it are there because their noise is large.
        together: the probability that the noises of this many keys all lie within theirs.
        """
        reach = float_up(self._reach(1 - miss_of_each(confidence, together)) * self.grid)
        return Interval(-reach, reach)

    def _reach(self, confidence: Fraction) -> int:
        allowed = (1 - confidence) / 2
        guess = int(self._spread / self.grid * Fraction(2 * math.log(1 / float(allowed)) ** 0.5))
        return first_whole(lambda reach: self._tail(reach + 1).upper <= allowed, guess)

    @overload
    def release(self, counts: Counts) -> dict[Any, float]: ...
    @overload
    def release(self, counts: ArrayLike) -> KeptKeys: ...
    def release(self, counts: Counts | ArrayLike) -> dict[Any, float] | KeptKeys:
        """Return the keys that pass with their noisy numbers of units.

        From a mapping: a dictionary sorted by key. From an array: the places that pass and their noisy counts.
        """
        if isinstance(counts, Mapping):
            kept: Keyed = perform(self, from_mapping(counts))
            noisy = self._shown(kept.numbers)
            # keys that cannot be told apart by their noisy counts, not by the order in which the data brought them
            order = settled_places(kept.keys, noisy).tolist()
            return {kept.keys[place]: count for place, count in zip(order, noisy[order].tolist(), strict=True)}
        noisy = self._shown(perform(self, as_units(counts)))
        places = np.flatnonzero(~np.isnan(noisy))
        return KeptKeys(places.astype(np.int64), noisy[places])

    def release_many(self, counts: ArrayLike, size: int) -> NDArray[np.float64]:
        """Return `size` independent releases of an array of counts, one a row; NaN where the key is not shown.

        Costs `size` times the loss.
        """
        return self._shown(perform(self, as_units(counts), whole(size, "size")))

    @overload
    def draw(self, value: IntArray, source: Entropy, size: int | None = None) -> IntArray: ...
    @overload
    def draw(self, value: Keyed, source: Entropy, size: None = None) -> Keyed: ...
    def draw(self, value: IntArray | Keyed, source: Entropy, size: int | None = None) -> IntArray | Keyed:
        """Return pairs (whole units, steps of the grid) of the noisy counts; HIDDEN where the key is not shown.

        By key, only those that are shown.

        Claim   A place with 0 units is hidden with probability 1. G is a power of two, so the pair is units·G + N itself,
                and nothing overflows however fine the grid is.
        """
        if isinstance(value, Keyed):
            pairs = self.draw(value.numbers, source)
            return value.chosen(pairs[:, 0] != HIDDEN, pairs)
        rows = 1 if size is None else size
        noise = self._noise().several(rows * len(value), source).reshape(rows, len(value)) if value.size else _nothing(rows)
        places, line = self._places, int(self.threshold / self.grid)
        out = np.stack([value + (noise >> places), noise & ((1 << places) - 1)], axis=-1)
        units, steps = line >> places, line & ((1 << places) - 1)
        passes = (out[..., 0] > units) | ((out[..., 0] == units) & (out[..., 1] >= steps))
        out[~passes | (value == 0)] = (HIDDEN, 0)
        return out[0] if size is None else out

    def within(self, one: IntArray | Keyed, other: IntArray | Keyed) -> bool:
        """Whether the two can be the counts of neighbours."""
        return differ_by_one_unit(one, other, self.keys, self.adjacency)

    @property
    def _places(self) -> int:
        """G = 2^places."""
        return places_of(self._spread)

    def _shown(self, pairs: IntArray) -> NDArray[np.float64]:
        counts = pairs[..., 0] + np.ldexp(pairs[..., 1].astype(np.float64), -self._places)
        return np.where(pairs[..., 0] == HIDDEN, np.nan, counts)


@lru_cache(256)  # a loss, a cost and a receipt ask for it, and an exact tail is dear
def _delta_of(selection: _NoisyKeys) -> Fraction:
    return any_of(selection.tail_of_one().upper, selection.keys)


def _nothing(rows: int) -> IntArray:
    return np.empty((rows, 0), np.int64)


def places_of(spread: Fraction) -> int:
    """Return the bits of the grid below one unit."""
    return max(GRID_BITS - floor_log2(spread), 0)


def _require_fit(spread: Fraction, name: str) -> None:
    """Noise that its 64-bit integers hold together with any count."""
    require(_SMALLEST <= spread <= _LARGEST, name, "such that the noise is between 2^-20 and 2^40 units", float(spread))


@dataclass(frozen=True, slots=True, init=False)
class GaussianKeys(_NoisyKeys):
    """Keys whose number of units plus discrete Gaussian noise is at least `threshold`; one person holds at most `keys`.

    Claim   δ-approximately ρ-zCDP with ρ = c/2σ² and δ = 1 − (1 − P[N ≥ (τ − 1)G])^keys, c = keys where a person is added or
            removed, 2 keys where one is replaced; the loss record carries the exact law. Let u leave (and u′ come).
            Only counts of keys of u and u′ change, by 1 each: c of them. Call a key of u that nobody else held before
            and nobody holds after *alone*; before it passes with probability P[G + N ≥ τG], after never, since 0 units
            are never shown. E, that no alone key of u passes before, has probability at least 1 − δ, and E′ for u′ and
            after likewise. Noise is independent between keys, so given E, and given E′, the output is one function of the
            noisy counts of the keys held both before and after: at most c of them moved by G steps. So for every set S,
            P(S) ≤ δ + (1 − δ) P(S | E) ≤ δ + (1 − δ)(e^ε P′(S | E′) + δ₀) ≤ δ + (1 − δ) δ₀ + e^ε P′(S), δ₀ the divergence of
            c discrete Gaussians, E and E′ shrunk by coins to probability 1 − δ exactly.
    Needs   Numbers of units, not of rows: one unit with 20 rows would pass almost surely. At most `keys` keys a person,
            bounded before. Keys with 0 units never shown. `≥` where the tail says ≥.
    Rounds  δ up; the threshold up to the grid.
    Source  [Kor09] for the threshold, [BS16] for approximate zCDP; the exact tail is in mechanisms/tails.py.
    """

    sigma: Fraction
    threshold: Fraction
    keys: int
    adjacency: Adjacency

    def __init__(
        self,
        *,
        sigma: Number,
        threshold: Number,
        keys: Number,
        adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    ) -> None:
        object.__setattr__(self, "sigma", positive(sigma, "sigma"))
        _require_fit(self.sigma, "sigma")
        grain = 1 << places_of(self.sigma)
        object.__setattr__(self, "threshold", Fraction(math.ceil(positive(threshold, "threshold") * grain), grain))
        object.__setattr__(self, "keys", whole(keys, "keys"))
        object.__setattr__(self, "adjacency", as_adjacency(adjacency))

    def __repr__(self) -> str:
        return f"GaussianKeys(sigma={decimal_text(self.sigma)}, threshold={float(self.threshold):.12g}, keys={self.keys})"

    @property
    def _spread(self) -> Fraction:
        return self.sigma

    @property
    def _squared(self) -> Fraction:
        return (self.sigma / self.grid) ** 2

    def _noise(self) -> Noise:
        return gaussian(self._squared)

    def _tail(self, reach: int) -> Enclosed:
        return gaussian_tail(self._squared, reach)

    @property
    def loss(self) -> Loss:
        """What one release costs, the noisy counts included."""
        return _gaussian_loss(self.sigma, self.keys, self.delta, self.adjacency)

    @property
    def variance(self) -> float:
        """σ², of a noisy count before the threshold. Rounds: up."""
        return float_up(self.sigma * self.sigma)

    @classmethod
    def calibrate(
        cls,
        *,
        keys: Number,
        rho: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        delta_keys: Number | None = None,
        adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    ) -> Self:
        """Return the selection with the least noise, and then the smallest threshold, that reaches the goal.

        rho: the noise costs that, and the threshold delta_keys. epsilon and delta: both together, delta_keys of it (half,
        unless given) going to the threshold.
        """
        many, near = whole(keys, "keys"), as_adjacency(adjacency)
        aim = read_goal(epsilon=epsilon, delta=delta, rho=rho, count=1, adjacency=None)
        if aim.rho is None and delta is None:
            raise InvalidParameter(
                "keys need a delta; got none.", hint="a key held by one person is shown with probability delta."
            )
        if delta_keys is None and aim.rho is not None:
            raise InvalidParameter(subject="delta_keys", rule="must be given with rho", got="none")
        part = aim.delta / 2 if delta_keys is None else open_probability(delta_keys, "delta_keys")
        require(aim.rho is not None or 0 < part < aim.delta, "delta_keys", "above 0 and below delta", part)
        changed = count_touched(many, near)
        if aim.rho is not None:
            sigma = round_up(math.sqrt(changed / (2 * aim.rho)))
            while Fraction(changed) / (2 * sigma * sigma) > aim.rho:
                sigma = round_up(sigma * (1 + Fraction(1, 10**11)))
        else:
            from curador.privacy.gaussian import gaussian_mu

            start = math.sqrt(changed) / gaussian_mu(epsilon=aim.epsilon or 1, delta=aim.delta - part)
            sigma = find_scale(lambda trial: _gaussian_loss(trial, many, part, near), aim, start)
        return cls(sigma=sigma, threshold=_gaussian_threshold(sigma, many, part), keys=many, adjacency=near)


def _gaussian_loss(sigma: Fraction, keys: int, delta: Fraction, adjacency: Adjacency) -> Loss:
    grain = 1 << places_of(sigma)
    return KeySelection(
        sigma2=(sigma * grain) ** 2,
        sensitivity=grain,
        keys=count_touched(keys, adjacency),
        delta=delta_for_record(delta),
        adjacency=adjacency,
    )


def _gaussian_threshold(sigma: Fraction, keys: int, delta: Fraction) -> Fraction:
    """The smallest τ on the grid whose exact δ is at most the one given."""
    from scipy.special import ndtri_exp

    _require_fit(sigma, "sigma")
    grain, single = 1 << places_of(sigma), share_of(delta, keys)
    log = math.log(single.numerator) - math.log(single.denominator)
    guess = int(sigma * grain * Fraction(-float(ndtri_exp(log))))
    reach = first_whole(lambda m: any_of(gaussian_tail((sigma * grain) ** 2, m).upper, keys) <= delta, guess)
    return 1 + Fraction(reach, grain)


@dataclass(frozen=True, slots=True, init=False)
class LaplaceKeys(_NoisyKeys):
    """Keys whose number of units plus discrete Laplace noise of scale keys/ε is at least a threshold that follows from δ.

    Claim   (ε, δ)-private, all `keys` keys of a person together. The proof is that of GaussianKeys with another noise: of the
            keys held before and after at most c move, by 1 each, and each multiplies probabilities by e^(ε/c) at most, so
            P(S) ≤ δ + (1 − δ) P(S | E) ≤ δ + (1 − δ) e^ε P′(S | E′) ≤ δ + e^ε P′(S). c = keys; 2 keys for one replaced.
    Needs   As GaussianKeys.
    Rounds  The threshold up to the grid, by the exact tail r^m/(1 + r); δ up.
    Source  [Kor09]
    """

    epsilon: Fraction
    threshold: Fraction
    keys: int
    adjacency: Adjacency

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        keys: Number,
        adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    ) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "keys", whole(keys, "keys"))
        object.__setattr__(self, "adjacency", as_adjacency(adjacency))
        _require_fit(self._spread, "epsilon")
        allowed = open_probability(delta, "delta")
        object.__setattr__(self, "threshold", _laplace_threshold(self._spread, self.keys, allowed))

    def __repr__(self) -> str:
        return f"LaplaceKeys(epsilon={decimal_text(self.epsilon)}, delta={float(self.delta):.12g}, keys={self.keys})"

    @classmethod
    def calibrate(
        cls,
        *,
        epsilon: Number,
        delta: Number,
        keys: Number,
        adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    ) -> Self:
        """Return the selection with the smallest threshold that is (epsilon, delta)-private."""
        return cls(epsilon=epsilon, delta=delta, keys=keys, adjacency=adjacency)

    @property
    def scale(self) -> Fraction:
        """Of the noise, in units."""
        return count_touched(self.keys, self.adjacency) / self.epsilon

    @property
    def _spread(self) -> Fraction:
        return self.scale

    def _noise(self) -> Noise:
        return laplace(self.scale / self.grid)

    def _tail(self, reach: int) -> Enclosed:
        return laplace_tail(self.scale / self.grid, reach)

    @property
    def loss(self) -> Loss:
        """What one release costs, the noisy counts included."""
        return Approx(epsilon=self.epsilon, delta=delta_for_record(self.delta), adjacency=self.adjacency)

    @property
    def variance(self) -> float:
        """Of a noisy count before the threshold. Rounds: up."""
        return discrete_variance(self.scale / self.grid) * float(self.grid) ** 2


def _laplace_threshold(scale: Fraction, keys: int, delta: Fraction) -> Fraction:
    """The smallest τ on the grid whose exact δ is at most the one given."""
    grain, single = 1 << places_of(scale), share_of(delta, keys)
    log = math.log(single.numerator) - math.log(single.denominator)
    ratio = math.exp(-1 / float(scale * grain))
    guess = int(scale * grain * Fraction(-log - math.log1p(ratio)))
    reach = first_whole(lambda m: any_of(laplace_tail(scale * grain, m).upper, keys) <= delta, guess, least=-(1 << 60))
    return 1 + Fraction(reach, grain)

"""Keys shown with the largest probability that (ε, δ) allows, given how many people hold them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from attrs import field, frozen

from curador.errors import InvalidParameter, require
from curador.mechanisms.grid import decimal_text
from curador.mechanisms.keys import Counts, Keyed, as_units, count_touched, differ_by_one_unit, from_mapping
from curador.mechanisms.seam import perform
from curador.mechanisms.tails import exponential, share_of
from curador.numerics.exact import OPEN_PROBABILITY, POSITIVE, WHOLE, Number, whole
from curador.privacy.adjacency import Adjacency, as_adjacency
from curador.privacy.loss import Loss
from curador.privacy.losses import Approx
from curador.randomness.entropy import U64, BoolArray, Entropy, IntArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

PLACES = 128
ONE = 1 << PLACES
LONGEST = 1 << 18
"""Most entries of a table of probabilities; about (2/ε) log(ε/δ) are needed, ε and δ being those of one key."""

_WORD = (1 << 64) - 1
_LARGEST = Fraction(128)


@frozen(kw_only=True)
class OptimalKeys:
    """Keys shown with probability π(number of units), as large as (ε, δ) allows; no counts. A person holds at most `keys`.

    Claim   (ε, δ)-private for all c keys that change together, c = keys, or 2 keys for a person replaced. Each key gets
            ε/c and a δ₁ with 1 − (1 − δ₁)^c ≤ δ, and keys are independent, so c of them compose to (ε, δ).
            One key: with a rational E ≤ e^(ε/c), π(0) = 0 and
            π(n + 1) = ⌊min(E π(n) + δ₁, 1 − (1 − π(n) − δ₁)/E, 1)⌋, the floor on multiples of 2⁻¹²⁸. Then
            π(n + 1) ≤ E π(n) + δ₁ and 1 − π(n) ≤ E (1 − π(n + 1)) + δ₁, since both bounds are floored; and both bounds are at
            least π(n), a multiple of 2⁻¹²⁸, so π(n) ≤ π(n + 1), which gives the two inequalities in the other direction.
            E ≤ e^(ε/c) makes all four hold for e^(ε/c). A 128-bit uniform number is below π with probability π.
    Needs   Numbers of units, not of rows; at most `keys` keys a person, bounded before; π(0) = 0.
    Rounds  E, δ₁ and π down.
    Source  [DVGM22] for optimality; [KOV15] for the composition.
    """

    epsilon: Fraction = field(converter=POSITIVE)
    delta: Fraction = field(converter=OPEN_PROBABILITY)
    keys: int = field(default=1, converter=WHOLE)
    adjacency: Adjacency = field(default=Adjacency.ADD_OR_REMOVE_ONE, converter=as_adjacency)

    def __attrs_post_init__(self) -> None:
        require(
            share_of(self.delta, self._changed) >= Fraction(1, 1 << 100), "delta", "at least 2^-100 a key", float(self.delta)
        )
        self.table()  # refuses here what is too long, before any data is read

    def __repr__(self) -> str:
        return f"OptimalKeys(epsilon={decimal_text(self.epsilon)}, delta={decimal_text(self.delta)}, keys={self.keys})"

    @classmethod
    def calibrate(
        cls,
        *,
        epsilon: Number,
        delta: Number,
        keys: Number = 1,
        adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    ) -> Self:
        """Return the selection that shows most and is (epsilon, delta)-private."""
        return cls(epsilon=epsilon, delta=delta, keys=keys, adjacency=adjacency)

    @property
    def _changed(self) -> int:
        return count_touched(self.keys, self.adjacency)

    @property
    def single(self) -> tuple[Fraction, Fraction]:
        """E and δ₁ of one key: multiples of 2⁻¹²⁸. Rounds: down."""
        rate = min(self.epsilon / self._changed, _LARGEST)
        growth = 1 / exponential(rate, 2 * PLACES).upper
        delta = share_of(self.delta, self._changed)
        return max(Fraction(int(growth * ONE), ONE), Fraction(1)), Fraction(int(delta * ONE), ONE)

    def table(self) -> tuple[int, ...]:
        """Return 2¹²⁸ π(n) for n = 0, 1, …; the last one stays."""
        growth, delta = self.single
        return _table(int(growth * ONE), int(delta * ONE))

    def pass_probability(self, units: int) -> float:
        """Return π(units), the probability that a key held by so many is shown."""
        table = self.table()
        return table[min(whole(units, "units", least=0), len(table) - 1)] / ONE

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        return Approx(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency)

    @overload
    def release(self, counts: Counts) -> list[Any]: ...
    @overload
    def release(self, counts: ArrayLike) -> IntArray: ...
    def release(self, counts: Counts | ArrayLike) -> list[Any] | IntArray:
        """Return the keys that are shown, sorted; from an array, their places."""
        if isinstance(counts, Mapping):
            kept: Keyed = perform(self, from_mapping(counts))
            return list(kept.keys)
        return np.flatnonzero(perform(self, as_units(counts))).astype(np.int64)

    def release_many(self, counts: ArrayLike, size: int) -> BoolArray:
        """Return `size` independent releases of an array of counts, one a row: which keys are shown.

        Costs `size` times the loss.
        """
        return perform(self, as_units(counts), whole(size, "size"))

    @overload
    def draw(self, value: IntArray, source: Entropy, size: int | None = None) -> BoolArray: ...
    @overload
    def draw(self, value: Keyed, source: Entropy, size: None = None) -> Keyed: ...
    def draw(self, value: IntArray | Keyed, source: Entropy, size: int | None = None) -> BoolArray | Keyed:
        """Return which keys are shown; by key, only those. Claim: independent, each with probability π exactly."""
        if isinstance(value, Keyed):
            kept = self.draw(value.numbers, source)
            return value.chosen(kept, kept)
        table = self.table()
        needed = np.minimum(value, len(table) - 1)
        distinct, back = np.unique(needed, return_inverse=True)
        chances = [table[units] for units in distinct.tolist()]
        high = np.array([min(chance, ONE - 1) >> 64 for chance in chances], np.uint64)[back]
        low = np.array([min(chance, ONE - 1) & _WORD for chance in chances], np.uint64)[back]
        certain = np.array([chance == ONE for chance in chances], np.bool_)[back]
        shape = (1 if size is None else size, len(value))
        first = source.words(shape[0] * shape[1], U64).reshape(shape)
        second = source.words(shape[0] * shape[1], U64).reshape(shape)
        shown = (first < high) | ((first == high) & (second < low)) | certain
        return shown[0] if size is None else shown

    def within(self, one: IntArray | Keyed, other: IntArray | Keyed) -> bool:
        """Whether the two can be the counts of neighbours."""
        return differ_by_one_unit(one, other, self.keys, self.adjacency)


@functools.lru_cache(maxsize=8)
def _table(growth: int, delta: int) -> tuple[int, ...]:
    """2¹²⁸ π(n) until it is 2¹²⁸, in integers; growth and delta are 2¹²⁸ E and 2¹²⁸ δ₁."""
    out = [0]
    while out[-1] < ONE:
        if len(out) == LONGEST:
            raise InvalidParameter(
                subject="epsilon and delta",
                rule=f"must be such that {LONGEST} units show a key for certain",
                got="smaller ones",
                hint="LaplaceKeys and GaussianKeys have no such bound.",
            )
        now = out[-1]
        rising = (growth * now >> PLACES) + delta
        falling = ONE - max(-(-((ONE - now - delta) << PLACES) // growth), 0)
        out.append(min(rising, falling, ONE))
    return tuple(out)

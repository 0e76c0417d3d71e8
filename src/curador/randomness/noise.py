"""Integer noise of any rational scale: tables made once, vectors at NumPy's speed, scalars from a pool.

What everything rests on is one comparison: is a uniform number below c e^(−φ)? It is decided by floats where an error bound
proves it, by integers otherwise. The floats use + − × and exact scalings by powers of two only, which IEEE 754 rounds
correctly everywhere: no trust in a library's exp.

The laws have masses ∝ e^(−φ(x)) on the integers, φ exact and in floats: discrete Laplace, Gaussian and geometric. Of each a
table of strips proposes, a proved comparison accepts.

The integers are cut into cells of 2^k, at least 32 of them to a scale. A cell y gets n_y of 65,536 slots, the tails n_T. A
draw takes 16 bits for the slot, k bits for the place inside the cell, and compares another uniform number W with the
acceptance probability A f(x)/n_y. Most draws are accepted by 16 bits of W alone.

Claim   Exact: an accepted x has mass f(x)/Σf on all integers, and the number of tries says nothing about x.
Needs   (1) n_y ≥ A max f on the cell; (2) n_T ≥ A 2^(s+b−k) f(X_T), s = 2 (1 if one-sided); (3) f at least halves over 2^b
        beyond X_T. A, n_y, n_T are any numbers with that: a float's error at set-up costs speed, never exactness.
Source  docs/explanation/exact-noise.md, theorem 1.
"""

from __future__ import annotations

import enum
import math
import threading
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from curador.errors import require
from curador.randomness.entropy import U16, U64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray
    from curador.randomness.entropy import BoolArray, Bytes, Entropy, IntArray, Words


# ---- decisions -------------------------------------------------------------------------------------------------------------

LARGEST = 64.0
"""Largest φ at which the float exponential is a two-sided bound; beyond, e^(−64) is an upper bound only."""

_MARGIN = 2.0**-40
_UNREAD = 2.0**-79


def _powers() -> FloatArray:
    """2^(−j/64) for j = 0 … 63, each within one ulp: products of integer square roots with 200 bits."""
    places = 200
    out: list[float] = []
    for j in range(64):
        value, root = 1 << places, 1 << (places - 1)
        for bit in (32, 16, 8, 4, 2, 1):
            root = math.isqrt(root << places)
            if j & bit:
                value = value * root >> places
        out.append(value / (1 << places))
    return np.array(out)


_POWERS = _powers()
_POWER_LIST: list[float] = _POWERS.tolist()
_PER_UNIT = 64 / math.log(2)
_STEP = math.log(2) / 64


def exp_negative(phi: FloatArray) -> FloatArray:
    """Return e^(−φ) for 0 ≤ φ ≤ 64.

    Claim   Relative error below 2⁻⁴⁴. φ = n log2/64 − r with |r| < 0.0055: the product n log2/64 is off by 192 u at most
            (u = 2⁻⁵³; the constant by 2 u, the product by u, both of at most 64), the Taylor rest is below 2⁻⁶⁴, Horner,
            table and product below 14 u.
    """
    turns = phi * _PER_UNIT
    np.rint(turns, out=turns)
    rest = turns * _STEP
    rest -= phi
    value = rest * (1 / 720.0)
    value += 1 / 120.0
    for coefficient in (1 / 24.0, 1 / 6.0, 0.5, 1.0, 1.0):
        value *= rest
        value += coefficient
    whole = turns.astype(np.int32)
    value *= _POWERS.take(whole & 63)
    whole >>= 6
    np.negative(whole, out=whole)
    return np.ldexp(value, whole, out=value)


def _exp_negative_one(phi: float) -> float:
    """`exp_negative` of one number, by the same steps."""
    turns = round(phi * _PER_UNIT)
    rest = turns * _STEP - phi
    value = rest * (1 / 720.0) + 1 / 120.0
    for coefficient in (1 / 24.0, 1 / 6.0, 0.5, 1.0, 1.0):
        value = value * rest + coefficient
    return math.ldexp(value * _POWER_LIST[turns & 63], -(turns >> 6))


def certainly_below(top: Words, rest: Words, factor: FloatArray | float, phi: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Return (W < c e^(−φ), whether that is proved) for W = (top + (rest + U)/2⁶⁴)/2¹⁶, U in [0, 1) not read yet.

    Claim   Where the second is true, the first is right for every U.
    Needs   `factor` within a relative 2⁻⁵⁰ of c; `phi` within a relative 5 u of φ, hence within 320 u where it is at most 64.
            Then a = factor · exp_negative(φ) is within a relative 2⁻⁴³ of c e^(−φ), W within 2 u and 2⁻⁸⁰: the margin
            2⁻⁴⁰ (W + a) + 2⁻⁷⁹ covers the relative errors eight times, the absolute one twice. Beyond φ = 64, a is only an
            upper bound: good for refusing alone. A NaN is unsure, never sure.
    Source  docs/explanation/exact-noise.md, theorem 2.
    """
    word = rest * 2.0**-64
    word += top
    word *= 2.0**-16
    bound = exp_negative(np.minimum(phi, LARGEST))
    bound *= factor
    below = word < bound
    distance = word - bound
    np.abs(distance, out=distance)
    word += bound
    word *= _MARGIN
    word += _UNREAD
    sure = distance > word
    sure &= ~(below & (phi > LARGEST))
    return below, sure


def exactly_below(word: int, read: int, factor: Fraction, phi: Fraction, source: Entropy) -> bool:
    """Return W < c e^(−φ) for W = (word + U)/2^read, U uniform, of which as many bits are read as the decision takes.

    Claim   Both answers are proved; undecided after p bits with probability below (4 c + 2) 2^(−p), so it ends with
            probability 1.
    """
    places = 128
    while True:
        if read < places:
            word, read = (word << (places - read)) | source.bits(places - read), places
        low, high = exp_bounds(phi, places)
        top, bottom = factor.numerator, factor.denominator
        if ((word + 1) * bottom) << places <= (top * low) << read:
            return True
        if (word * bottom) << places >= (top * high) << read:
            return False
        places *= 2


def exp_bounds(phi: Fraction, places: int) -> tuple[int, int]:
    """Return integers low ≤ 2^places e^(−φ) ≤ high, at most a few units apart, for φ ≥ 0. Rounds: outward at each step."""
    if phi == 0:
        return 1 << places, 1 << places
    if phi >= places:
        return 0, 1
    halvings = max(0, (phi.numerator // phi.denominator).bit_length()) + 3
    work = places + 2 * halvings + 16
    top, bottom = phi.numerator, phi.denominator << halvings  # φ/2^halvings < 1/8: terms alternate and fall
    low = high = term_low = term_high = 1 << work
    k = 0
    while term_high > 1:
        k += 1
        term_low = term_low * top // (bottom * k)
        term_high = -(-term_high * top // (bottom * k))
        if k & 1:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
    low, high = low - 2, high + 2  # what is left out is below the last term
    for _ in range(halvings):
        low = (low * low) >> work if low > 0 else 0
        high = -((-high * high) >> work)
    shift = work - places
    return low >> shift, min(-(-high >> shift), 1 << places)


# ---- laws ------------------------------------------------------------------------------------------------------------------


class LawKind(enum.Enum):
    """What φ is."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    GEOMETRIC = "geometric"

    def phi(self, size: int, rate: Fraction) -> Fraction:
        """Return |x| rate (Laplace, geometric) or x² rate (Gaussian) for |x| = size, exactly."""
        return (size * size if self is LawKind.GAUSSIAN else size) * rate

    def scale(self, rate: Fraction) -> float:
        """Return 1/rate, or σ: how far the mass reaches. Only speed depends on it."""
        inverse = rate.denominator / rate.numerator
        return math.sqrt(inverse / 2) if self is LawKind.GAUSSIAN else inverse


# ---- noise, drawn and drawn ahead ------------------------------------------------------------------------------------------

BOUND = 1 << 62
"""Two 64-bit integers smaller than that can be added."""

_SMALLEST_POOL, _MOST_POOLS = 8, 64
_MOST_LEVEL = 4096
_FEW = 256


class Noise(ABC):
    """Exact noise of one law: a `Strip`, or a `WideNoise`. Made by `laplace`, `gaussian` and `geometric`.

    wide       whether its integers are Python's own, beyond 64 bits
    unbounded  whether one of its integers may be 2⁶² or beyond, so that sums must be checked
    """

    wide: ClassVar[bool]
    unbounded: bool
    _largest_pool: ClassVar[int]
    _pool_size = _SMALLEST_POOL

    @abstractmethod
    def draw(self, size: int, source: Entropy, *, level: bool = False) -> NDArray[Any]:
        """Return `size` independent integers: 64-bit ones, or Python's own where the law is wide.

        level: every draw takes the same arithmetic, for whoever can be timed; otherwise most take less. What is left are
        caches, one draw in 2³⁸, how many tail slots a vector met, and the length of Python's integers where the law is wide.
        """

    @abstractmethod
    def _ahead(self, size: int, source: Entropy) -> NDArray[Any]:
        """Return `size` integers in level mode."""

    def one(self, source: Entropy) -> int:
        """Return one integer, from a pool drawn ahead (in level mode) where the source keeps pools."""
        pools = source.pools
        if pools is None:
            return int(self.draw(1, source, level=True)[0])
        pool = pools.get(self)
        if pool and source.current():
            return pool.pop()
        self._stock_up(source, 1)
        pool = self._cut(source, min(_FEW, len(source.stocks[self]))).tolist()
        if source.pools is not None:
            source.pools[self] = pool
        return pool.pop()

    def several(self, size: int, source: Entropy) -> NDArray[Any]:
        """Return `size` integers, cut from what was drawn ahead: a vector's fixed cost is paid once for many. More by `draw`.

        What can be timed draw by draw comes from there or from level mode.
        """
        if source.pools is None or size > _MOST_LEVEL:
            return self.draw(size, source, level=size <= _MOST_LEVEL)
        stock = source.stocks.get(self)
        if stock is None or len(stock) < size or not source.current():
            self._stock_up(source, size)
        return self._cut(source, size)

    def _cut(self, source: Entropy, size: int) -> NDArray[Any]:
        """The last ones of the stock. First they leave it, so that whoever interrupts gets others; zeros stay behind."""
        stock = source.stocks[self]
        left = len(stock) - size
        source.stocks[self] = stock[:left]
        place = stock[left:]
        out = place.copy()
        place.fill(0)
        return out

    def _stock_up(self, source: Entropy, wanted: int) -> None:
        """See that the stock has `wanted` integers: as it is, or with fresh ones before those left over.

        It grows from 8 to thousands as it is used, so that a scale used once costs little; anew when stocks were dropped. A
        vector for which nothing was drawn ahead draws no more than it wants.
        """
        stock = source.stocks.get(self) if source.current() else None
        if stock is not None and len(stock) >= wanted:
            return
        if stock is None:
            self._pool_size = _SMALLEST_POOL
        drawn = max(wanted, self._pool_size)
        values = self._ahead(drawn, source)  # after a fork, and after a minute, this drops the old ones
        source.erase()
        stocks = source.stocks
        left = stocks.get(self)
        if left is None and len(stocks) >= _MOST_POOLS:
            oldest = next(iter(stocks))
            stocks.pop(oldest)
            (source.pools or {}).pop(oldest, None)
        stocks[self] = values if left is None or not len(left) else np.concatenate([values, left])
        self._pool_size = min(2 * drawn, self._largest_pool)


# ---- the table of strips ---------------------------------------------------------------------------------------------------


SLOTS = 1 << 16
WIDEST = 46
"""Largest k: cells of 2⁴⁶ serve scales up to 2⁵²."""

_CELL_BITS = 5
_REACH = {LawKind.LAPLACE: 12.0, LawKind.GEOMETRIC: 12.0, LawKind.GAUSSIAN: 4.9}
_ABOVE, _UNDER = 1 + 2.0**-30, 1 - 2.0**-30
_QUICK_CHUNK, _LEVEL_CHUNK = 1 << 17, 17 << 10
_LONGEST_RUN = 40
_SPARE, _LEAST_SPARE = 32, 8
"""One more proposal for every 32, and 8: at most about one in 43 is refused."""
_TAIL_BYTES = 16
_ONE = np.int64(1023 << 52)


class Strip(Noise):
    """The table of one law, and draws from it: φ(x) is that of its kind and rate; a geometric law lives on x ≥ 0.

    `mirrored`: |x| is replaced by x or −x − 1, whichever is at least 0. The coarse part of a wide draw needs that.
    """

    wide = False
    unbounded = False  # until it happens, which 64 bits of a run of zeros come before: see `_exactly`
    _largest_pool = 1 << 14

    def __init__(self, kind: LawKind, rate: Fraction, *, mirrored: bool = False) -> None:
        self.kind, self.rate, self.mirrored = kind, rate, mirrored
        self.rate_float = rate.numerator / rate.denominator
        self.one_sided = kind is LawKind.GEOMETRIC  # negative integers have no mass
        scale = kind.scale(rate)
        self.k = max(0, math.frexp(scale)[1] - 1 - _CELL_BITS)
        if self.k > WIDEST:
            raise ValueError("the scale is above 2^52: draw it in two parts")
        self.cells = max(1, math.ceil(_REACH[kind] * scale / 2.0**self.k))
        self.first = 0 if self.one_sided else -self.cells
        self.tail_start = self.cells << self.k
        self.tail_bits = _halving_bits(kind, rate, self.tail_start)
        self.tail_power = (1 if self.one_sided else 2) + self.tail_bits - self.k
        highest, lowest = self._bounds()
        self._share_slots(highest)
        self._write_tables(lowest)

    def phi(self, x: int) -> Fraction:
        """Return φ exactly."""
        return self.kind.phi(x if x >= 0 else (~x if self.mirrored else -x), self.rate)

    def phi_float(self, x: IntArray) -> FloatArray:
        """Return φ within a relative 5 u: 64 · 5 u = 320 u absolutely where it is at most 64."""
        out = np.empty(len(x), np.float64)
        self._phi_into(out, x)
        return out

    def _phi_into(self, out: FloatArray, x: IntArray) -> None:
        out[:] = x ^ (x >> 63) if self.mirrored else x
        if self.kind is LawKind.GAUSSIAN:
            out *= out
        else:
            np.abs(out, out=out)
        out *= self.rate_float

    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """Upper bounds of f on each cell and, last, of 2^power f(X_T); lower bounds on each cell."""
        cell = np.arange(self.first, self.cells, dtype=np.int64)
        start, end = cell << self.k, ((cell + 1) << self.k) - 1
        near, far = np.where(cell >= 0, start, end), np.where(cell >= 0, end, start)
        highest = _float_f(self.phi_float(np.append(near, self.tail_start))) * _ABOVE
        highest[-1] *= 2.0**self.tail_power
        phi = self.phi_float(far)
        lowest = np.where(phi > LARGEST, 0.0, _float_f(phi) * _UNDER)  # beyond, the float exponential bounds from above only
        return highest, lowest

    def _share_slots(self, highest: FloatArray) -> None:
        """The largest A (nearly) whose slots fit; what is left over goes to the cell of 0."""
        total = float(highest.sum())
        fits, fails = (SLOTS - len(highest) - 1) / total, SLOTS / total
        for _ in range(12):
            middle = (fits + fails) / 2
            if np.ceil(middle * highest).sum() <= SLOTS:
                fits = middle
            else:
                fails = middle
        slots = np.ceil(fits * highest).astype(np.int64)
        slots[-self.first] += SLOTS - int(slots.sum())
        self.area, self.slots = Fraction(fits), slots

    def _write_tables(self, lowest: FloatArray) -> None:
        area = float(self.area)
        cell = np.append(np.arange(self.first, self.cells, dtype=np.int64), self.cells)
        sure = np.append(np.floor(area * lowest / self.slots[:-1] * 65536 * _UNDER), 0.0)  # a tail is never accepted at once
        self.thresholds = np.minimum(sure, 65535).astype(np.int64)
        self.table = np.repeat(((cell << 16) | self.thresholds).astype(np.int32), self.slots)
        factor = area / self.slots
        factor[-1] *= 2.0**self.tail_power
        self.factor = factor
        self.factor_of_tail = float(factor[-1])
        self._write_levels()

    def _write_levels(self) -> None:
        """For level draws: c e^(−φ) in the middle of each cell, and φ there, as one number; 0 for the tail."""
        cell = np.arange(self.first, self.cells, dtype=np.int64)
        ends = self.phi_float(cell << self.k), self.phi_float(((cell + 1) << self.k) - 1)
        middle = (ends[0] + ends[1]) * 0.5
        chance = np.where(middle > LARGEST, 0.0, _float_f(middle) * self.factor[:-1])  # beyond, below 2⁻⁷⁶
        self.levels = np.append(chance + 1j * middle, 0.0)
        self.taylor = _taylor(float(np.abs(ends[0] - middle).max()) if self.k else 0.0)

    # ---- draws ------------------------------------------------------------------------------------------------------

    def _ahead(self, size: int, source: Entropy) -> IntArray:
        """Some more are proposed than are wanted: a second round for the few that are refused costs as much as the first."""
        values = self.accepted(size + size // _SPARE + _LEAST_SPARE, source)[:size]
        missing = size - len(values)
        return np.concatenate([values, self.draw(missing, source, level=True)]) if missing else values

    def draw(self, size: int, source: Entropy, *, level: bool = False) -> IntArray:
        """Return `size` independent integers. With level, every draw takes the same arithmetic; otherwise most take less."""
        out = np.empty(size, np.int64)
        todo = self._try(out, source, level=level)
        while len(todo):
            again = np.empty(len(todo), np.int64)
            refused = self._try(again, source, level=level)
            out[todo] = again
            todo = todo[refused]
        return out

    def accepted(self, size: int, source: Entropy) -> IntArray:
        """Return those of `size` proposals that are accepted, level: independent and of the law, but how many is chance."""
        out = np.empty(size, np.int64)
        refused = self._try(out, source, level=True)
        end = size - len(refused)
        holes = refused[refused < end]
        if len(holes):  # filled by as many from behind the end: a choice that no value has a part in
            behind = np.ones(len(refused), np.bool_)
            behind[refused[len(holes) :] - end] = False
            out[holes] = out[end:][behind]
        return out[:end]

    def _try(self, out: IntArray, source: Entropy, *, level: bool) -> IntArray:
        """Write one proposal to every place; return the places whose proposal was refused."""
        step = _LEVEL_CHUNK if level else _QUICK_CHUNK
        refused = [self._chunk(out[start : start + step], source, level=level) + start for start in range(0, len(out), step)]
        return refused[0] if len(refused) == 1 else np.concatenate([np.empty(0, np.int64), *refused])

    def _chunk(self, x: IntArray, source: Entropy, *, level: bool) -> IntArray:
        """Write one proposal to every place; return the places whose proposal was refused."""
        if level:
            return self._level(x, source)
        entry, top = self._propose(x, source)
        unsure = np.flatnonzero(top >= (entry & 0xFFFF))
        return self._compare(x, entry, top, unsure, source) if len(unsure) else unsure

    def _propose(self, x: IntArray, source: Entropy) -> tuple[Words, Words]:
        """Write a proposal to every place; return table entries and the first 16 bits of W.

        The bits of the slot, of the place in the cell and of W are disjoint bits of the stream.
        """
        size, k = len(x), self.k
        if k == 0:
            words = source.words(2 * size, U16)
            entry = self.table.take(words[:size])
            top = words[size:]
            np.right_shift(entry, 16, out=x, casting="unsafe")
        elif k <= 16:
            raw = source.fill(6 * size)
            entry = self.table.take(raw[4 * size :].view(U16))
            place = entry >> 16
            place <<= k  # |cell| < 2^11: fits 32 bits
            place |= raw[: 4 * size].view("<i4") & np.int32((1 << k) - 1)
            x[:] = place
            top = raw[: 4 * size].view(U16)[1::2]
        else:
            raw = source.fill(10 * size)
            entry = self.table.take(raw[8 * size :].view(U16))
            np.right_shift(entry, 16, out=x, casting="unsafe")
            x <<= k
            x |= raw[: 8 * size].view("<i8") & ((1 << k) - 1)
            top = raw[: 8 * size].view(U16)[3::4]
        return entry, top

    def _level(self, x: IntArray, source: Entropy) -> IntArray:
        """A try for every place, the same arithmetic for each: W against c e^(−φ) from the middle of the cell on.

        64 bits of W for each draw, then slot and place in a word, the slot in its upper 16 bits; then two words for a tail.

        Claim   a − W decides by its sign where it is more than 2⁻³⁹ from 0, for every continuation of W: a = c e^(−φ₀) e^r,
                φ₀ in the middle of the cell and r = φ₀ − φ, is at most 1 and within 2⁻⁴³ (e^(−φ₀) 2⁻⁴⁴, Taylor's rest
                2⁻⁴⁴·⁵, φ 65 u); 52 bits of W are within 2⁻⁵². What is closer, one draw in 2³⁸, and a NaN go to integers.
        Source  docs/explanation/exact-noise.md, theorem 2.
        """
        size, k = len(x), self.k
        octets = 2 if k == 0 else 4 if k <= 16 else 8
        raw = source.fill((8 + octets) * size + _TAIL_BYTES)
        words, slots = raw[: 8 * size].view(U64), raw[8 * size : -_TAIL_BYTES]
        known, step, ahead, whole = arrays = _borrow(size)
        entry = self.table.take(slots.view(U16)[octets // 2 - 1 :: octets // 2])
        entry >>= 16
        np.subtract(entry, self.first, out=whole)
        self.levels.take(whole, out=known, mode="clip")  # all are in range; "raise" would copy
        if k:
            np.left_shift(entry, k, out=x, dtype=np.int64)
            x |= slots.view("<i4" if octets == 4 else "<i8") & ((1 << k) - 1)
            self._phi_into(step, x)
            np.subtract(known.imag, step, out=step)
            np.multiply(step, self.taylor[0], out=ahead)
            ahead += self.taylor[1]
            for coefficient in self.taylor[2:]:
                ahead *= step
                ahead += coefficient
            ahead *= known.real
        else:
            x[:] = entry
            ahead[:] = known.real
        np.right_shift(words, 12, out=whole.view(np.uint64))
        whole |= _ONE  # the float 1 + W
        ahead -= whole.view(np.float64)
        (left,) = (~(ahead > 2 * _MARGIN - 1)).nonzero()  # refused, tails, too close: no accepted place of a cell
        behind = ahead.take(left)
        behind += 1.0
        _give_back(arrays)
        return self._settle(x, left, behind, words, raw[-_TAIL_BYTES:], source)

    def _settle(self, x: IntArray, left: IntArray, ahead: FloatArray, words: Words, code: Bytes, source: Entropy) -> IntArray:
        """Give tail slots their place and decide them; decide by integers what is close. Return the places refused."""
        tails = (x.take(left) >= self.tail_start).nonzero()[0].tolist()  # no cell reaches there
        coded: dict[int, tuple[int, int, int]] = {}
        for number, i in enumerate(tails or (-1,)):  # the same calls whether a draw needs them or not
            at = int(left[i]) if tails else 0
            two = int.from_bytes((code if number == 0 else source.fill(_TAIL_BYTES)).tobytes(), "little")
            place, far, coding = self._in_tail(two & ((1 << 64) - 1), two >> 64, int(words[at]))
            if tails:
                x[at], ahead[i], coded[i] = place, far, coding
        refused = ahead < -2 * _MARGIN
        unsure = ~(np.abs(ahead) > 2 * _MARGIN)
        if unsure.any():
            for i in np.flatnonzero(unsure).tolist():
                at = int(left[i])
                slot = len(self.slots) - 1 if i in coded else (int(x[at]) >> self.k) - self.first
                x[at], taken = self._exactly(int(x[at]), slot, coded.get(i), int(words[at]), 64, source)
                refused[i] = not taken
        return left[refused]

    def _in_tail(self, lead: int, offset: int, word: int) -> tuple[int, float, tuple[int, int, int]]:
        """(x, a − W, coding) of a tail slot: `_tail` and the float exponential for one draw, in Python's floats."""
        run, sign = 53 - (lead >> 11).bit_length(), 0 if self.one_sided else lead & 1
        low, short = offset >> (64 - self.tail_bits), min(run, _LONGEST_RUN)
        place = self.tail_start + (short << self.tail_bits) + low
        size = float(place + (0 if self.mirrored else sign))
        phi = (size * size if self.kind is LawKind.GAUSSIAN else size) * self.rate_float
        ahead = math.ldexp(self.factor_of_tail * _exp_negative_one(min(phi, LARGEST)), short) - word * 2.0**-64
        ahead = min(ahead, 0.0 if phi > LARGEST else math.inf)  # beyond, an upper bound only: good for refusing
        return place ^ -sign, 0.0 if run > _LONGEST_RUN else ahead, (run, low, sign)

    def _compare(self, x: IntArray, entry: Words, top: Words, which: IntArray, source: Entropy) -> IntArray:
        """Accept or refuse by all bits of W; tail slots get their place here. Return the places that were refused."""
        slot = (entry[which] >> 16) - self.first
        place, first_bits = x[which], top[which]
        rest = source.words(len(slot), U64)
        factor = self.factor.take(slot)
        tail = np.flatnonzero(slot == len(self.slots) - 1)
        run = offset = sign = np.empty(0, np.int64)
        if len(tail):
            run, offset, sign = self._tail(len(tail), source)
            short = np.minimum(run, _LONGEST_RUN)
            place[tail] = (self.tail_start + (short << self.tail_bits) + offset) ^ -sign
            factor[tail] = np.ldexp(self.factor[-1], short.astype(np.int32))
        taken, sure = certainly_below(first_bits, rest, factor, self.phi_float(place))
        sure[tail[run > _LONGEST_RUN]] = False
        if not sure.all():
            runs = dict(zip(tail.tolist(), zip(run.tolist(), offset.tolist(), sign.tolist(), strict=True), strict=True))
            for i in np.flatnonzero(~sure).tolist():
                word = (int(first_bits[i]) << 64) | int(rest[i])
                place[i], taken[i] = self._exactly(int(place[i]), int(slot[i]), runs.get(i), word, 80, source)
        x[which] = place
        return which[np.flatnonzero(~taken)]

    def _tail(self, size: int, source: Entropy) -> tuple[IntArray, IntArray, IntArray]:
        """(g, u, sign): g zeros before the first one, b uniform bits, a sign. g above 40 is counted on exactly later."""
        words = source.words(2 * size, U64)
        lead = words[:size]
        run = 53 - np.frexp((lead >> np.uint64(11)).astype(np.float64))[1].astype(np.int64)
        sign = np.zeros(size, np.int64) if self.one_sided else (lead & np.uint64(1)).astype(np.int64)
        bits = self.tail_bits
        offset = (words[size:] >> np.uint64(64 - bits)).astype(np.int64) if bits else np.zeros(size, np.int64)
        return run, offset, sign

    def _exactly(
        self, place: int, slot: int, tail: tuple[int, int, int] | None, word: int, read: int, source: Entropy
    ) -> tuple[int, bool]:
        """The same decision in integers; rare."""
        factor = self.area / int(self.slots[slot])
        if tail is not None:
            run, offset, sign = tail
            if run > _LONGEST_RUN:
                run = _LONGEST_RUN + 1
                while not source.bits(1):
                    run += 1
            place = self.tail_start + (run << self.tail_bits) + offset
            place = ~place if sign else place
            factor *= Fraction(2) ** (self.tail_power + run)
        if abs(place) >= BOUND:
            self.unbounded = True
        taken = exactly_below(word, read, factor, self.phi(place), source)
        # an accepted value outside 64 bits has probability below 2^-2900; drawing it again is all that is left to do
        return (place, taken) if -(1 << 63) <= place < 1 << 63 else (0, False)


class _Room(threading.local):
    """Arrays for level draws, one set a thread: to allocate and free large ones each time costs more than the sums.

    They are taken out while they are used, so that whoever interrupts brings others, and come back empty.
    """

    arrays: tuple[NDArray[Any], ...] = ()


_room = _Room()


def _borrow(size: int) -> tuple[NDArray[Any], ...]:
    arrays, _room.arrays = _room.arrays, ()
    if not arrays or len(arrays[0]) != size:
        arrays = tuple(np.empty(size, kind) for kind in (np.complex128, np.float64, np.float64, np.int64))
    return arrays


def _give_back(arrays: tuple[NDArray[Any], ...]) -> None:
    for array in arrays:
        array.fill(0)
    _room.arrays = arrays


def _float_f(phi: FloatArray) -> FloatArray:
    """e^(−φ) where φ ≤ 64, e^(−64) beyond: within 2⁻⁴³, an upper bound beyond."""
    return exp_negative(np.minimum(phi, LARGEST))


def _taylor(reach: float) -> list[float]:
    """Coefficients, the highest first, of a polynomial within a relative 2⁻⁴⁴·⁵ of e^r for |r| ≤ reach ≤ 1/8."""
    last, rest = 1, reach * reach / 2
    while rest * 1.15 >= 2.0**-44.5:  # what is left out is at most the first term of it times e^(1/8)
        last += 1
        rest *= reach / (last + 1)
    return [1 / math.factorial(power) for power in range(last, -1, -1)]


def _halving_bits(kind: LawKind, rate: Fraction, start: int) -> int:
    """The smallest b such that f at least halves from x to x + 2^b for every x ≥ start, decided on rationals.

    Laplace: 2^b rate ≥ log 2. Gaussian: ((x + B)² − x²) rate ≥ 2 start B rate ≥ log 2.
    """
    slope = rate.numerator * (2 * start if kind is LawKind.GAUSSIAN else 1) * _LOG_TWO_ABOVE.denominator
    wanted = _LOG_TWO_ABOVE.numerator * rate.denominator  # both over one denominator: integers are compared
    return (-(-wanted // slope) - 1).bit_length()


_LOG_TWO_ABOVE = Fraction(math.nextafter(math.log(2), 1.0)) + Fraction(1, 1 << 50)

# ---- noise of any scale ----------------------------------------------------------------------------------------------------


def make_noise(kind: LawKind, parameter: Fraction) -> Noise:
    """Return noise of a law by its scale, or by σ² where it is Gaussian."""
    rate = 1 / (2 * parameter) if kind is LawKind.GAUSSIAN else 1 / parameter
    if kind.scale(rate) < 2.0**52:
        return Strip(kind, rate)
    from curador.randomness.wide import WideNoise

    return WideNoise(kind, rate)


_MOST_TABLES = 64
_tables: dict[tuple[LawKind, int, int], Noise] = {}
_lock = threading.Lock()


def laplace(scale: Fraction) -> Noise:
    """Return noise with P[k] ∝ e^(−|k|/scale)."""
    return _find_noise(LawKind.LAPLACE, scale, "scale")


def gaussian(sigma2: Fraction) -> Noise:
    """Return noise with P[k] ∝ e^(−k²/2σ²)."""
    return _find_noise(LawKind.GAUSSIAN, sigma2, "sigma2")


def geometric(scale: Fraction) -> Noise:
    """Return noise with P[k] ∝ e^(−k/scale), k ≥ 0."""
    return _find_noise(LawKind.GEOMETRIC, scale, "scale")


def _find_noise(kind: LawKind, parameter: Fraction, name: str) -> Noise:
    key = (kind, parameter.numerator, parameter.denominator)  # a rational's own hash is slow
    found = _tables.get(key)
    if found is None:
        small, large = Fraction(1, 10**80), Fraction(10**80)
        shown = float(parameter) if abs(parameter) < 10**300 else math.copysign(math.inf, 1 if parameter > 0 else -1)
        require(small <= parameter <= large, name, "between 1e-80 and 1e80 grid steps", shown)
        found = make_noise(kind, parameter)
        with _lock:
            while len(_tables) >= _MOST_TABLES:
                _tables.pop(next(iter(_tables)))
            _tables[key] = found
    return found

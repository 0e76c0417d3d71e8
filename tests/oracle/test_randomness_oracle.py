"""The premises of exact noise, in integers and rationals; the decisions, against mpmath.

Nothing here is statistical: a table is certified cell by cell, and words of the stream are written by hand.
"""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from curador.randomness import noise as noises
from curador.randomness.choice import Choice, bernoulli, bernoulli_exp
from curador.randomness.injected import Scripted, Seeded
from curador.randomness.noise import (
    SLOTS,
    LawKind,
    Strip,
    certainly_below,
    exactly_below,
    exp_bounds,
    exp_negative,
    make_noise,
)

MP = mpmath.mp.clone()
MP.dps = 60
FINE = mpmath.mp.clone()
FINE.prec = 1200
NEVER = FINE.mpf(2) ** -3000

SCALES = (
    "1e-6", "0.01", "0.1", "0.3", "1/3", "0.5", "0.7", "1", "1.4142135623730951", "2", "3", "10", "31.9", "32", "63.99", "64",
    "100", "1000", "2097151", "2097152", "1e6", "1e9", "1e12", "1e15", "2251799813685248", "4.5e15", "4503599627370495",
)  # fmt: skip


def strip_of(kind, scale, *, mirrored=False):
    """The strip of that scale; for a Gaussian the scale is σ, squared exactly."""
    scale = Fraction(scale)
    return Strip(kind, 1 / (2 * scale**2) if kind is LawKind.GAUSSIAN else 1 / scale, mirrored=mirrored)


def random_scales(count, seed=20):
    rng = random.Random(seed)
    for _ in range(count):
        size = 10 ** rng.uniform(-6, 15.65)
        bottom = rng.randrange(1, 10**6)
        yield Fraction(max(1, round(size * bottom)), bottom)


STRIPS = [strip_of(kind, scale) for kind in LawKind for scale in SCALES]
MIRRORED = [
    strip_of(kind, scale, mirrored=True) for kind in LawKind for scale in ("1125899906842624", "1.7e15", "2251799813685247")
]
RANDOM = [strip_of(kind, scale) for kind in LawKind for scale in random_scales(16)]


def label(one):
    return f"{one.kind.value}-{one.kind.scale(one.rate):.6g}{'-mirrored' if one.mirrored else ''}"


def real(value, context=MP):
    value = Fraction(value)
    return context.mpf(value.numerator) / value.denominator


# ---- the certificate ----------------------------------------------------------------------------------------------------


def at_least(left: Fraction, right: Fraction, phi: Fraction) -> bool:
    """Whether left ≥ right e^(−φ) is proved, in integers."""
    _, high = exp_bounds(phi, 128)
    return left * (1 << 128) >= right * high


def at_most(left: Fraction, right: Fraction, phi: Fraction) -> bool:
    """Whether left ≤ right e^(−φ) is proved, in integers."""
    places = 128 + int(phi) * 2
    low, _ = exp_bounds(phi, places)
    return left * (1 << places) <= right * low


def certified(strip: Strip) -> str | None:
    """None if the premises (1), (2), (3) and every threshold are proved for the table; else what is not.

    The masses are read off the table that draws use, not off the list it was made from.
    """
    one, k, area = strip, strip.k, strip.area
    cell, thresholds = strip.table >> 16, strip.table & 0xFFFF
    if len(strip.table) != SLOTS or (np.diff(cell) < 0).any():
        return "shape"
    if set(np.unique(cell).tolist()) != set(range(strip.first, strip.cells + 1)):
        return "cells"
    slots = np.bincount(cell - strip.first)
    if (slots != strip.slots).any():
        return "slots"
    ends_of = np.cumsum(slots)
    if strip.first != (0 if one.one_sided else -strip.cells) or strip.tail_start != strip.cells << k:
        return "layout"
    for place, y in enumerate(range(strip.first, strip.cells)):
        ends = (y << k, ((y + 1) << k) - 1)
        phis = sorted(one.phi(x) for x in ends)  # |x| is monotone on a cell, so the extremes of f are at its ends
        if not at_least(Fraction(int(slots[place])), area, phis[0]):
            return "(1)"
        inside = thresholds[ends_of[place] - slots[place] : ends_of[place]]
        if (inside != inside[0]).any():
            return "threshold"
        threshold = int(inside[0])
        if threshold and not at_most(Fraction(threshold * int(slots[place]), 1 << 16), area, phis[1]):
            return "threshold"
    if thresholds[cell == strip.cells].any():
        return "threshold of the tail"
    tail_power = (1 if one.one_sided else 2) + strip.tail_bits - k
    if strip.tail_power != tail_power:
        return "tail power"
    if not at_least(Fraction(int(slots[-1])), area * Fraction(2) ** tail_power, one.phi(strip.tail_start)):
        return "(2)"
    block, start = 1 << strip.tail_bits, strip.tail_start
    gain = one.rate * (2 * start * block if one.kind is LawKind.GAUSSIAN else block)  # φ(x + 2^b) − φ(x) for every x ≥ start
    _, high = exp_bounds(gain, 128)
    return None if 2 * high <= 1 << 128 else "(3)"


@pytest.mark.parametrize("one", STRIPS + MIRRORED, ids=label)
def test_every_premise_of_the_strip_is_certified(one):
    """Slots cover the mass of their cell, tails halve, thresholds never accept too early: proved in integers."""
    assert certified(one) is None


@pytest.mark.slow
def test_premises_hold_for_random_rational_scales():
    """The same certificate for rationals nobody chose."""
    assert {label(one): certified(one) for one in RANDOM if certified(one)} == {}


@pytest.mark.parametrize("bits", [46, 47, 52])
def test_wide_laws_have_certified_coarse_tables(bits):
    """The mirrored tables that wide scales use are the ones that are certified."""
    for kind in LawKind:
        scale = Fraction(3, 2) * (1 << (bits + 30))
        noise = make_noise(kind, scale**2 if kind is LawKind.GAUSSIAN else scale)
        assert noise.wide
        assert noise.coarse.mirrored
        assert certified(noise.coarse) is None


def corrupted_slot(strip):
    """One slot moved from a cell, which has none to spare, to its neighbour."""
    first_of_one = int(strip.slots[: 1 - strip.first].sum())
    strip.table[first_of_one] = strip.table[first_of_one - 1]
    strip.slots = np.bincount((strip.table >> 16) - strip.first)


def corrupted_area(strip):
    strip.area *= 1 + Fraction(1, 50)


def corrupted_threshold(strip):
    cell = strip.cells // 2
    strip.table[(strip.table >> 16) == cell] += 3


def corrupted_tail(strip):
    strip.tail_bits -= 1
    strip.tail_power -= 1


def corrupted_tail_power(strip):
    strip.tail_power -= 1


def corrupted_start(strip):
    strip.tail_start -= 1


@pytest.mark.parametrize(
    "spoil",
    [corrupted_slot, corrupted_area, corrupted_threshold, corrupted_tail, corrupted_tail_power, corrupted_start],
)  # fmt: skip
@pytest.mark.parametrize("kind", list(LawKind))
def test_certificate_refuses_a_corrupted_table(kind, spoil):
    """A table with one number wrong does not pass."""
    strip = strip_of(kind, 1000)
    spoil(strip)

    assert certified(strip) is not None


# ---- the mass of every integer ------------------------------------------------------------------------------------------


def proposed(strip: Strip, x: int) -> Fraction:
    """The probability that one try proposes x, from the table's counts and the tail's coding."""
    slots = np.bincount((strip.table >> 16) - strip.first)
    if strip.first << strip.k <= x < strip.tail_start:
        return Fraction(int(slots[(x >> strip.k) - strip.first]), SLOTS << strip.k)
    distance = (x if x >= 0 else ~x) - strip.tail_start
    run = distance >> strip.tail_bits
    sides = 1 if strip.one_sided else 2
    return Fraction(int(slots[-1]), SLOTS * sides << (run + 1 + strip.tail_bits))


def acceptance(strip: Strip, x: int, context=MP):
    """The probability that x is accepted, capped at 1 as a coin's is."""
    if strip.first << strip.k <= x < strip.tail_start:
        factor = strip.area / int(strip.slots[(x >> strip.k) - strip.first])
    else:
        run = ((x if x >= 0 else ~x) - strip.tail_start) >> strip.tail_bits
        factor = strip.area * Fraction(2) ** (strip.tail_power + run) / int(strip.slots[-1])
    return min(context.mpf(1), real(factor, context) * context.exp(-real(strip.phi(x), context)))


def total_mass(one: Strip):
    """Σ f over all integers."""
    rate = real(one.rate)
    if one.kind is LawKind.GAUSSIAN:
        return MP.jtheta(3, 0, MP.exp(-rate))
    ratio = MP.exp(-rate)
    return 1 / (1 - ratio) if one.one_sided else (1 + ratio) / (1 - ratio)


@pytest.mark.parametrize("kind", list(LawKind))
@pytest.mark.parametrize("scale", ["1e-6", "0.05", "0.2", "0.3", "1", "2.5", "11"])
def test_accepted_mass_is_the_law_to_thirty_digits(kind, scale):
    """Summed over all integers, proposals times acceptance make the law's own probability of each."""
    strip = strip_of(kind, scale)
    reach = strip.tail_start + (100 << strip.tail_bits)
    places = range(0 if strip.one_sided else -reach - 1, reach + 1)
    mass = {x: real(proposed(strip, x)) * acceptance(strip, x) for x in places}
    accepted = MP.fsum(mass.values())
    total = total_mass(strip)

    assert abs(float(accepted) - 1) < 0.05
    for x, value in mass.items():
        assert abs(value / accepted - MP.exp(-real(strip.phi(x))) / total) < MP.mpf("1e-30")


@pytest.mark.parametrize(
    "one", [strip_of(kind, scale) for kind in LawKind for scale in ("100", "1e6", "1e15", "4.5e15")], ids=label
)
def test_accepted_mass_has_one_constant_for_large_scales(one):
    """Every integer that was looked at, in cells and tails, has mass A 2^(−16−k) f(x)."""
    strip = one
    rng = random.Random(5)
    reach = strip.tail_start * 3
    places = [rng.randrange(0 if one.one_sided else -reach, reach) for _ in range(200)]
    places += [0, 1, (1 << strip.k) - 1, 1 << strip.k, strip.tail_start - 1, strip.tail_start]
    if not one.one_sided:
        places += [-1, -(1 << strip.k), -strip.tail_start, -strip.tail_start - 1]
    constant = real(strip.area / (SLOTS << strip.k))
    for x in places:
        value = real(proposed(strip, x)) * acceptance(strip, x)
        assert abs(value / (constant * MP.exp(-real(one.phi(x)))) - 1) < MP.mpf("1e-30")


# ---- exponentials -------------------------------------------------------------------------------------------------------


def test_exp_bounds_enclose_tightly():
    """3,000 random rationals and precisions: the bounds hold and are at most 4 units apart."""
    rng = random.Random(11)
    for _ in range(3000):
        places = rng.choice((16, 64, 128, 200, 256, 512))
        top = rng.choice((rng.randrange(1, 1 << 20), rng.randrange(1, 1 << 200)))
        phi = Fraction(top, rng.randrange(1, 1 << rng.choice((3, 20, 210))))
        if phi > 10**6:
            phi = Fraction(phi.numerator % 10**6 + 1, 7)
        low, high = exp_bounds(phi, places)
        truth = FINE.ldexp(FINE.exp(-real(phi, FINE)), places)
        assert low <= truth <= high
        assert high - low <= 4


def test_exp_bounds_at_their_corners():
    """Zero is exact; an argument beyond the precision leaves nothing; next to it the bounds still hold."""
    assert exp_bounds(Fraction(0), 128) == (1 << 128, 1 << 128)
    assert exp_bounds(Fraction(128), 128) == (0, 1)
    for phi in (Fraction(1, 1 << 300), Fraction(128) - Fraction(1, 1 << 90), Fraction(1), Fraction(1, 8), Fraction(7)):
        low, high = exp_bounds(phi, 128)
        assert low <= FINE.ldexp(FINE.exp(-real(phi, FINE)), 128) <= high <= 1 << 128


def test_float_exponential_error():
    """The relative error stays below 2⁻⁴⁴, at random points and where the reduction changes its table entry."""
    rng = np.random.default_rng(3)
    step = np.log(2) / 64
    points = np.concatenate(
        [
            rng.uniform(0, 64, 6000),
            10 ** rng.uniform(-20, 1.8, 2000),
            [0.0, 64.0, np.nextafter(64, 0), 5e-324],
            (np.arange(0, 5900, 7) + 0.5) * step,
            np.nextafter((np.arange(0, 5900, 7) + 0.5) * step, 100),
        ]
    )
    values = exp_negative(points)
    worst = max(abs(MP.mpf(float(v)) / MP.exp(-MP.mpf(float(x))) - 1) for x, v in zip(points, values, strict=True))

    assert worst < MP.mpf(2) ** -44


def test_table_of_powers_is_within_one_ulp():
    """2^(−j/64) needs no library's exp."""
    for j, value in enumerate(noises._POWERS.tolist()):  # noqa: SLF001
        assert abs(MP.mpf(value) - MP.mpf(2) ** (-MP.mpf(j) / 64)) <= MP.mpf(2) ** -53


# ---- decisions ----------------------------------------------------------------------------------------------------------


def split(word):
    """An 80-bit word as the two arrays that the decision reads."""
    return np.array([word >> 64], np.uint16), np.array([word & ((1 << 64) - 1)], np.uint64)


def near_ties(count, seed=7):
    """80-bit words next to c e^(−φ), at relative distances 2⁻²⁵ … 2⁻⁷⁵, with the law's own float errors in φ and c."""
    rng = random.Random(seed)
    for _ in range(count):
        one = strip_of(rng.choice(list(LawKind)), Fraction(rng.randrange(1, 10**9), rng.randrange(1, 1000)))
        reach = 12 if one.kind is not LawKind.GAUSSIAN else 5
        x = rng.randrange(int(reach * one.kind.scale(one.rate)) + 2)
        factor = Fraction(rng.randrange(1, 1 << 53), 1 << 53)
        phi = one.phi(x)
        bound = real(factor, FINE) * FINE.exp(-real(phi, FINE))
        shift = FINE.mpf(2) ** -rng.uniform(25, 75) * rng.choice((-1, 1))
        word = int(FINE.floor(FINE.ldexp(bound * (1 + shift), 80)))
        if 0 <= word < 1 << 80:
            yield one, x, factor, phi, bound, word


@pytest.mark.slow
def test_float_decisions_are_never_sure_and_wrong():
    """6,000 words next to a tie: whatever is called sure is right for every continuation of the word."""
    unsure = 0
    for one, x, factor, _, bound, word in near_ties(6_000):
        top, rest = split(word)
        below, sure = certainly_below(top, rest, float(factor), one.phi_float(np.array([x])))
        if not sure[0]:
            unsure += 1
            continue
        low, high = FINE.ldexp(FINE.mpf(word), -80), FINE.ldexp(FINE.mpf(word + 1), -80)
        assert (high <= bound) if below[0] else (low >= bound)

    assert 1_500 < unsure < 5_500  # the words are close enough to matter, and far enough that floats decide some


@pytest.mark.slow
def test_a_narrower_margin_would_be_wrong(monkeypatch):
    """The same words with hardly a margin: wrong decisions appear, so the test above can fail."""
    monkeypatch.setattr(noises, "_MARGIN", 2.0**-60)
    monkeypatch.setattr(noises, "_UNREAD", 0.0)
    wrong = 0
    for one, x, factor, _, bound, word in near_ties(3_000):
        top, rest = split(word)
        below, sure = certainly_below(top, rest, float(factor), one.phi_float(np.array([x])))
        wrong += bool(sure[0]) and bool(below[0]) != (FINE.ldexp(FINE.mpf(word), -80) < bound)

    assert wrong > 0


def test_unread_bits_keep_tiny_words_unsure():
    """Zero against 2⁻⁹⁰ is not decided: the bits not read yet may carry it over; φ beyond 64 is never accepted in floats."""
    top, rest = split(0)
    tiny = np.array([0.0])

    assert not certainly_below(top, rest, 2.0**-90, tiny)[1][0]
    below, sure = certainly_below(top, rest, 1.0, np.array([64.5]))
    assert below[0]
    assert not sure[0]
    top, rest = split(1 << 79)
    below, sure = certainly_below(top, rest, 1.0, np.array([1e9]))
    assert sure[0]
    assert not below[0]


def test_nan_and_infinity_are_never_accepted_in_floats():
    """A NaN is unsure, whatever the word; an infinite φ is refused or unsure."""
    for word in (0, 1 << 79, (1 << 80) - 1):
        top, rest = split(word)
        with np.errstate(invalid="ignore"):
            _, sure = certainly_below(top, rest, 1.0, np.array([np.nan]))
            _, sure_factor = certainly_below(top, rest, np.array([np.nan]), np.array([1.0]))
        assert not sure[0]
        assert not sure_factor[0]
        below, sure = certainly_below(top, rest, 1.0, np.array([np.inf]))
        assert not (below[0] and sure[0])


def test_exact_route_agrees_with_the_expansion():
    """Where floats leave a word undecided, the exact route decides it as 1,200 bits do."""
    for _, _, factor, phi, bound, word in near_ties(1_500, seed=8):
        low, high = FINE.ldexp(FINE.mpf(word), -80), FINE.ldexp(FINE.mpf(word + 1), -80)
        source = Scripted(b"", then=Seeded(1))
        got = exactly_below(word, 80, factor, phi, source)
        if high <= bound or low >= bound:
            assert got == (high <= bound)


@pytest.mark.parametrize("places", [256, 300, 511])
@pytest.mark.parametrize("phi", [Fraction(1, 3), Fraction(5), Fraction(10**9 + 7, 10**9), Fraction(63)])
def test_exact_route_reads_on_until_a_bit_differs(phi, places):
    """Bits that agree with the expansion for hundreds of places and then differ are decided by the difference."""
    factor = Fraction(3, 4)
    bound = real(factor, FINE) * FINE.exp(-real(phi, FINE))
    digits = int(FINE.floor(FINE.ldexp(bound, places)))
    read = 80
    word = digits >> (places - read)
    for last, expected in ((digits - 1, True), (digits + 1, False)):
        script = b""
        have = read
        ends = [128, 256, 512, 1024]
        stream = last << (1024 - places)  # the word's own bits, then zeros
        for end in ends:
            bits = (stream >> (1024 - end)) & ((1 << (end - have)) - 1)
            size = (end - have + 7) // 8
            script += (bits << (8 * size - (end - have))).to_bytes(size, "little")
            have = end
        if last >> (places - read) != word:
            continue
        source = Scripted(script)
        assert exactly_below(word, read, factor, phi, source) is expected
        assert len(script) - source.left >= (256 - read) // 8


def test_exact_route_at_certain_and_impossible_bounds():
    """Probability one is always below, probability zero never, and neither reads for ever."""
    for word in (0, (1 << 80) - 1):
        assert exactly_below(word, 80, Fraction(1), Fraction(0), Seeded(2)) is True
        assert exactly_below(word, 80, Fraction(0), Fraction(5), Seeded(2)) is False


# ---- words written by hand ----------------------------------------------------------------------------------------------


def script_of(strip: Strip, slots, low, tops):
    """The bytes of one chunk: these slots, these places inside the cell, these first sixteen bits of W."""
    slots, tops = np.asarray(slots, "<u2"), np.asarray(tops, "<u2")
    if strip.k == 0:
        return slots.tobytes() + tops.tobytes()
    if strip.k <= 16:
        words = (np.asarray(tops, np.uint64) << np.uint64(16)) | np.asarray(low, np.uint64)
        return words.astype("<u4").tobytes() + slots.tobytes()
    words = (np.asarray(tops, np.uint64) << np.uint64(48)) | np.asarray(low, np.uint64)
    return words.astype("<u8").tobytes() + slots.tobytes()


def level_script(strip: Strip, slots, low, words, code=bytes(16)):
    """The bytes of one level chunk: 64 bits of W for each, then slots and places inside the cell, then a tail's two words."""
    kind = "<u2" if strip.k == 0 else "<u4" if strip.k <= 16 else "<u8"
    high = np.dtype(kind).itemsize * 8 - 16
    both = np.asarray(slots, np.uint64) << np.uint64(high) if high else np.asarray(slots)
    both = both | np.asarray(low, np.uint64) if strip.k else both
    return np.asarray(words, "<u8").tobytes() + both.astype(kind).tobytes() + code


def read_on(rest, after, places=48):
    """The next 64 bits of W behind its first 64, where 80 are given: the last 16 of them, then zeros or ones."""
    return (((rest & 0xFFFF) << places) | (0 if after == b"\0" else (1 << places) - 1)).to_bytes(8, "little")


def attempt(strip: Strip, script, size, *, level, then=None):
    """One try with these bytes: (proposals, which were accepted)."""
    x = np.empty(size, np.int64)
    refused = strip._chunk(x, Scripted(script, then), level=level)  # noqa: SLF001
    taken = np.ones(size, np.bool_)
    taken[refused] = False
    return x, taken


ENUMERATED = [
    strip_of(kind, scale) for kind in LawKind for scale in ("1e-6", "0.05", "0.2", "0.7", "3", "1000", "1e9", "1e15")
]


@pytest.mark.parametrize("level", [False, True], ids=["quick", "level"])
@pytest.mark.parametrize("one", ENUMERATED, ids=label)
def test_all_first_words_of_a_cell(one, level):
    """Of the 65,536 first words of W exactly those below the acceptance probability are accepted, to the word."""
    strip = one
    everything = np.arange(SLOTS)
    cells = sorted({strip.first, -1, 0, 1, strip.cells // 2, strip.cells - 1} & set(range(strip.first, strip.cells)))
    ends = np.cumsum(strip.slots)
    for y in cells:
        slot = int(ends[y - strip.first]) - 1
        for low in sorted({0, (1 << strip.k) - 1}):
            x = (y << strip.k) + low
            bound = acceptance(strip, x)
            zeros = (
                MP.ceil(bound * SLOTS) if bound > MP.mpf(2) ** -80 else 0
            )  # bits beyond the 80 that are written decide there
            for rest, due in ((b"\0", zeros), (b"\xff", MP.floor(bound * SLOTS))):
                if level:
                    words = (everything.astype("<u8") << np.uint64(48)) | np.uint64((1 << 48) - 1 if rest != b"\0" else 0)
                    script = level_script(strip, np.full(SLOTS, slot), np.full(SLOTS, low), words)
                    script += rest * 64 if bound > MP.mpf(2) ** -80 else b""
                else:
                    script = script_of(strip, np.full(SLOTS, slot), np.full(SLOTS, low), everything) + rest * (8 * SLOTS + 16)
                got, taken = attempt(strip, script, SLOTS, level=level, then=Seeded(4))
                count = int(taken.sum())
                assert (got == x).all()
                assert (taken == (everything < count)).all()  # an initial segment
                assert count == due


@pytest.mark.parametrize("level", [False, True], ids=["quick", "level"])
@pytest.mark.parametrize("one", ENUMERATED, ids=label)
def test_forced_words_are_decided_as_mpmath_decides(one, level):
    """First words at a threshold and beside it, 0 and 2¹⁶ − 1, with rests 0, 2⁶⁴ − 1, the tie and its neighbours."""
    strip = one
    ends = np.cumsum(strip.slots)
    decided = 0
    for y in sorted({strip.first, -1, 0, strip.cells // 3, strip.cells - 1} & set(range(strip.first, strip.cells))):
        slot = int(ends[y - strip.first]) - 1
        threshold = int(strip.table[slot]) & 0xFFFF
        for low in sorted({0, (1 << strip.k) // 2, (1 << strip.k) - 1}):
            x = (y << strip.k) + low
            bound = acceptance(strip, x, FINE)
            tie = int(FINE.floor(FINE.ldexp(bound, 80)))
            firsts = {threshold - 1, threshold, threshold + 1, 0, 0xFFFF, tie >> 64, (tie >> 64) + 1, (tie >> 64) - 1}
            for top in sorted(firsts & set(range(SLOTS))):
                here = tie & ((1 << 64) - 1)
                for rest in {0, (1 << 64) - 1, here, max(here - 1, 0), min(here + 1, (1 << 64) - 1), 1 << 63}:
                    for tail in (b"\0", b"\xff"):  # the bits behind a tie
                        if bound < NEVER and not top and not rest and tail == b"\0":
                            continue  # a word of nothing but zeros: more of them than anybody can write
                        script = script_of(strip, [slot], [low], [top]) + rest.to_bytes(8, "little") + tail * 600
                        if level:
                            script = level_script(strip, [slot], [low], [(top << 48) | (rest >> 16)])
                            script += read_on(rest, tail) + tail * 600
                        got, taken = attempt(strip, script, 1, level=level)
                        word = FINE.mpf((top << 64) | rest)
                        word = FINE.ldexp(word + (0 if tail == b"\0" else 1 - FINE.mpf(2) ** -900), -80)
                        assert got[0] == x
                        assert taken[0] == (word < bound), (y, low, top, rest, tail)
                        decided += 1

    assert decided > 30


def level_ties(strip: Strip, count, seed):
    """Slots, places and 64-bit words next to the acceptance probability of cells, with that probability."""
    rng = random.Random(seed)
    ends = np.cumsum(strip.slots)
    for _ in range(count):
        y, low = rng.randrange(strip.first, strip.cells), rng.randrange(1 << strip.k)
        bound = acceptance(strip, (y << strip.k) + low, FINE)
        shift = FINE.mpf(2) ** -rng.uniform(25, 62) * rng.choice((-1, 1))
        word = int(FINE.floor(FINE.ldexp(bound * (1 + shift), 64)))
        yield int(ends[y - strip.first]) - 1, low, min(word, (1 << 64) - 1), bound


def wrong_of_ties(strip, count, seed):
    """How many level draws are decided otherwise than 1,200 bits decide, and how many were decided by integers."""
    slots, low, words, bounds = zip(*level_ties(strip, count, seed), strict=True)
    counted = []
    plain = strip._exactly  # noqa: SLF001
    strip._exactly = lambda *given: counted.append(1) or plain(*given)  # noqa: SLF001
    _, taken = attempt(strip, level_script(strip, slots, low, words), count, level=True, then=Seeded(6))
    del strip._exactly  # noqa: SLF001
    wrong = 0
    for word, bound, got in zip(words, bounds, taken.tolist(), strict=True):
        if FINE.ldexp(FINE.mpf(word + 1), -64) <= bound:
            wrong += not got
        elif FINE.ldexp(FINE.mpf(word), -64) >= bound:
            wrong += got
    return wrong, len(counted)


@pytest.mark.parametrize(
    "one", [strip_of(kind, scale) for kind in LawKind for scale in ("3", "1000", "1e9", "1e15")], ids=label
)
def test_level_decisions_are_right_next_to_ties(one):
    """2,000 words next to a tie: right, whether floats or integers decide; both do."""
    wrong, exact = wrong_of_ties(one, 2_000, 3)

    assert wrong == 0
    assert 600 < exact < 1_900


@pytest.mark.parametrize("scale", ["1000", "1e15"])
@pytest.mark.parametrize("kind", list(LawKind))
def test_a_narrower_margin_of_level_draws_would_be_wrong(kind, scale, monkeypatch):
    """The same words with hardly a margin: wrong decisions appear, so the test above can fail."""
    monkeypatch.setattr(noises, "_MARGIN", 2.0**-70)

    assert wrong_of_ties(strip_of(kind, scale), 2_000, 3)[0] > 0


def test_middles_of_cells_are_close_enough():
    """Chance and φ in the middle of a cell, and Taylor's polynomial from there to its ends: within 2⁻⁴³ in all."""
    for strip in (strip_of(kind, scale) for kind in LawKind for scale in ("40", "1000", "1e9", "4.5e15")):
        for y in {strip.first, -1 if strip.first else 0, 0, strip.cells // 2, strip.cells - 1}:
            known = strip.levels[y - strip.first]
            for x in (y << strip.k, ((y + 1) << strip.k) - 1):
                step = float(known.imag) - float(strip.phi_float(np.array([x]))[0])
                value = 0.0
                for coefficient in strip.taylor:
                    value = value * step + coefficient
                assert abs(MP.mpf(value * float(known.real)) - acceptance(strip, x)) < MP.mpf(2) ** -43


def tail_script(strip, top, rest, lead, offset, more=b"", *, level=False, after=b""):
    """One draw that lands in the last slot, which is a tail slot; `more` of a long run, then W's further bits."""
    code = lead.to_bytes(8, "little") + (offset << (64 - strip.tail_bits)).to_bytes(8, "little")
    if level:
        body = level_script(strip, [SLOTS - 1], [0], [(top << 48) | (rest >> 16)], code)
        return body + more + (read_on(rest, after) if after else b"") + after * 600
    return script_of(strip, [SLOTS - 1], [0], [top]) + rest.to_bytes(8, "little") + code + more + after * 600


@pytest.mark.parametrize("level", [False, True], ids=["quick", "level"])
@pytest.mark.parametrize(
    "one", [strip_of(kind, scale) for kind in LawKind for scale in ("0.5", "3", "1000", "1e15")], ids=label
)
def test_tail_slots_reach_every_place_beyond(one, level):
    """Zeros, offset and sign give x = ±(X_T + g 2^b + u), decided as mpmath does; runs beyond 40 count on bit by bit."""
    strip = one
    block = 1 << strip.tail_bits
    for run in (0, 1, 2, 7, 39, 40, 41, 42, 60):
        lead = (1 << (63 - run)) if run <= 40 else 0
        more = b"" if run <= 40 else b"\0" * (run - 41) + b"\x80"  # bits(1) reads the top bit of a byte
        for sign in (0, 1):
            for offset in sorted({0, block // 2, block - 1}) if block < 1 << 64 else (0,):
                x = strip.tail_start + run * block + offset
                x = ~x if sign and not one.one_sided else x
                bound = acceptance(strip, x, FINE)
                tie = int(FINE.floor(FINE.ldexp(bound, 80)))
                for word in {min(w, (1 << 80) - 1) for w in (0, tie, max(tie - 1, 0), tie + 1, 1 << 80)}:
                    for after in (b"\0", b"\xff"):
                        if bound < NEVER and not word and after == b"\0":
                            continue
                        top, rest = word >> 64, word & ((1 << 64) - 1)
                        body = tail_script(strip, top, rest, lead | sign, offset, more, level=level, after=after)
                        got, taken = attempt(strip, body, 1, level=level)
                        value = FINE.ldexp(FINE.mpf(word) + (0 if after == b"\0" else 1 - FINE.mpf(2) ** -900), -80)
                        assert got[0] == x
                        assert taken[0] == (value < bound)


def test_a_value_outside_64_bits_is_drawn_again():
    """A run so long that the integer does not fit is refused, never wrapped."""
    strip = strip_of(LawKind.LAPLACE, "4.5e15")
    body = tail_script(strip, 0, 0, 0, 0, b"\0" * 5000 + b"\x80" + bytes(4000))
    _, taken = attempt(strip, body, 1, level=False)

    assert not taken[0]


def test_a_value_beyond_sixty_two_bits_is_told():
    """Sums are checked from then on: until it happens, nothing that was drawn reaches there."""
    strip = strip_of(LawKind.LAPLACE, "4.5e15")
    assert strip.tail_start + (41 << strip.tail_bits) < 1 << 62  # what floats decide lies below
    run = (1 << 62 >> strip.tail_bits) + 1
    x, taken = attempt(strip, tail_script(strip, 0, 0, 0, 0, b"\0" * (run - 41) + b"\x80" + bytes(4000)), 1, level=False)

    assert taken[0]
    assert 1 << 62 <= x[0] < 1 << 63
    assert strip.unbounded
    assert not strip_of(LawKind.LAPLACE, "4.5e15").unbounded


class Coarse:
    """A strip that gives these values, then zeros."""

    def __init__(self, *values):
        self.values = list(values)

    def draw(self, size, source, *, level=False):  # noqa: ARG002 -- the signature of Strip.draw
        return np.array([self.values.pop(0) if self.values else 0 for _ in range(size)], np.int64)


@pytest.mark.parametrize("kind", list(LawKind))
@pytest.mark.parametrize("scale", [Fraction(1 << 52), Fraction(10**20), Fraction(10**31, 3)], ids=float)
def test_wide_draws_are_accepted_as_mpmath_decides(kind, scale):
    """Both parts given, on both sides and far out: the word at the tie, beside it and beside 1 − 2⁻⁴⁰ decide alike."""
    noise = make_noise(kind, scale**2 if kind is LawKind.GAUSSIAN else scale)
    bits = noise._low_bits  # noqa: SLF001
    octets = (bits + 7) // 8
    assert 1 << 50 <= scale / (1 << bits) < 1 << 51
    far = [1 << 50, 65 << 50, 200 << 50, 4000 << 50]
    nears = [1, 7, *far] if kind is LawKind.GEOMETRIC else [0, 1, 7, -1, -2, -8, *far, *(~h for h in far)]
    for high in nears:
        for low in {1, (1 << bits) // 2, (1 << bits) - 1}:
            x = (high << bits) + low
            coarse = high << bits if high >= 0 else (-high - 1) << bits
            rate = noise.rate
            gap = (x * x - coarse * coarse) * rate if kind is LawKind.GAUSSIAN else (abs(x) - coarse) * rate
            assert gap > 0
            chance = FINE.exp(-real(gap, FINE))
            tie = int(FINE.floor(FINE.ldexp(chance, 64)))
            ends = (0, tie - 1, tie, tie + 1, (1 << 64) - (1 << 24) - 1, (1 << 64) - (1 << 24), (1 << 64) - 1)
            for word in {w for w in ends if 0 <= w < 1 << 64}:
                for after in (b"\0", b"\xff"):
                    value = FINE.ldexp(FINE.mpf(word) + (0 if after == b"\0" else 1 - FINE.mpf(2) ** -900), -64)
                    script = (low << (8 * octets - bits)).to_bytes(octets, "little") + word.to_bytes(8, "little")
                    exact = word >= ends[5] or not value < chance or abs(high) > 64 << 50
                    noise.coarse = Coarse(high)
                    spare = after * 600 if exact else b""
                    got = accepted_wide(noise, Scripted(script + spare))
                    assert got == (x if value < chance else None), (high, low, word, after)


def accepted_wide(noise, source):
    """The integer that one try gives, or None if it is drawn again."""
    asked = []

    def counted(count, kind, plain=source.words):
        asked.append(count)
        if len(asked) == 2:
            raise _Again
        return plain(count, kind)

    source.words = counted
    try:
        return int(noise.draw(1, source)[0])
    except _Again:
        return None


# ---- coins --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "p", [Fraction(1, 3), Fraction(1, 2), Fraction(999, 1000), Fraction(1, 1 << 16), Fraction(1, 10**9), Fraction(0),
          Fraction(1), 1 - Fraction(1, 10**30), Fraction(12345, 65536), Fraction(1, 65537)],
    ids=str,
)  # fmt: skip
def test_all_first_words_of_a_coin(p):
    """Over all 65,536 first words and both ends of what follows, the coin is W < p exactly."""
    first = np.arange(1 << 16, dtype="<u2").tobytes()
    exact = p * 65536
    lowest = bernoulli(p, 1 << 16, Scripted(first + bytes(4000)))
    highest = bernoulli(p, 1 << 16, Scripted(first + b"\xff" * 4000))

    assert int(lowest.sum()) == -(-exact.numerator // exact.denominator)  # a tie and then zeros: below p
    assert int(highest.sum()) == exact.numerator // exact.denominator
    assert (np.diff(lowest.astype(int)) <= 0).all()


def test_ties_of_a_coin_are_resolved_digit_by_digit():
    """A word that equals p to 80, 81 and 300 bits is decided by the first bit that differs, or is not below."""
    for p in (Fraction(1, 3), Fraction(2, 7), Fraction(10**20 + 1, 3 * 10**20)):
        for places in (16, 80, 81, 120, 300):
            digits = (p.numerator << places) // p.denominator
            for change, expected in ((-1, True), (1, False)):
                value = digits + change
                bits = value << (400 - places)
                top, rest = bits >> 384, (bits >> 320) & ((1 << 64) - 1)
                script = top.to_bytes(2, "little") + rest.to_bytes(8, "little")
                script += bytes(128 * ((bits >> (319 - i)) & 1) for i in range(320))
                assert bernoulli(p, 1, Scripted(script))[0] == expected
    eighty = Fraction((1 << 79) + 1, 1 << 80)
    script = (1 << 15).to_bytes(2, "little") + (1).to_bytes(8, "little")
    assert not bernoulli(eighty, 1, Scripted(script))[0]


def test_exponential_coins_are_decided_as_mpmath_decides():
    """e^(−steps · rate) with words at the tie, one beside it, and at both ends."""
    few, one = Fraction(3, 10**6), Fraction(1)
    for steps, rate in (
        (1, one / 7),
        (10**6, few),
        (0, one),
        (1 << 62, one / (1 << 60)),
        (40, one),
        (3, 0 * one),
        (200, one),
    ):
        bound = FINE.exp(-real(steps * rate, FINE))
        tie = int(FINE.floor(FINE.ldexp(bound, 80)))
        for word in (0, tie - 1, tie, tie + 1, (1 << 80) - 1, 1 << 79):
            if not 0 <= word < 1 << 80:
                continue
            for after in (b"\0", b"\xff"):
                script = (word >> 64).to_bytes(2, "little") + (word & ((1 << 64) - 1)).to_bytes(8, "little") + after * 900
                value = FINE.ldexp(FINE.mpf(word) + (0 if after == b"\0" else 1 - FINE.mpf(2) ** -900), -80)
                got = bernoulli_exp(np.array([steps]), rate, Scripted(script))
                assert got[0] == (value < bound)


# ---- choices ------------------------------------------------------------------------------------------------------------

CHOICES = {
    "two": ([0, 1], Fraction(1), None),
    "rebased": ([1000, 1001, 1003], Fraction(1, 2), None),
    "multiplicities": ([0, 5, 9, 9], Fraction(1, 3), [1, (1 << 53) - 1, 7, 10**12]),
    "absent best": ([0, 5, 9, 9], Fraction(1, 3), [0, 3, 0, 2]),
    "huge deficits": ([0, 1 << 62, (1 << 62) - 1, 64], Fraction(1), None),
    "huge, rebased": ([(1 << 62) + 3, 1 << 62], Fraction(1, 4), [5, 6]),
    "zero rate": ([0, 10, 20], Fraction(0), None),
    "beyond the floats": ([0, 65, 66, 700], Fraction(1), [1, (1 << 53) - 1, 1, 1]),
    "many": (list(range(0, 50_000, 5)), Fraction(1, 10_000), None),
    "alone": ([7], Fraction(10**6), None),
    "tiny rate": ([0, 10**9], Fraction(1, 10**18), None),
}


def made(name):
    deficits, rate, many = CHOICES[name]
    return Choice(np.array(deficits, np.int64), rate, None if many is None else np.array(many, np.int64))


@pytest.mark.parametrize("name", CHOICES)
def test_choice_slots_make_one_constant(name):
    """Slots cover A m e^(−d rate), so slots times acceptance is that, and normalised it is the law; decided in integers."""
    deficits, rate, many = CHOICES[name]
    choice = made(name)
    many = many or [1] * len(deficits)
    slots = np.diff(np.concatenate([[0], choice._ends])).tolist()  # noqa: SLF001 -- what a word is compared with
    spread = choice._spread  # noqa: SLF001
    least = min(d for d, m in zip(deficits, many, strict=True) if m)

    assert sum(slots) <= 1 << 61
    assert sum(slots) > 0.95 * (1 << 61)
    for i, (d, m, n) in enumerate(zip(deficits, many, slots, strict=True)):
        if m == 0:
            assert n == 0
            continue
        assert n > 0
        assert choice._deficits[i] == d - least  # noqa: SLF001
        assert at_least(Fraction(n), spread * m, (d - least) * rate)
        if (d - least) * rate < 60 and n > 1 << 32:  # little is wasted
            assert at_most(Fraction(n - 1) * (1 - Fraction(1, 1 << 28)), spread * m, (d - least) * rate)


@pytest.mark.parametrize("name", ["two", "multiplicities", "absent best", "huge deficits", "beyond the floats"])
def test_choice_words_at_every_boundary(name):
    """The first and last word of each place lead to it, W decides as mpmath does, words past the end are drawn again."""
    deficits, rate, many = CHOICES[name]
    choice = made(name)
    many = many or [1] * len(deficits)
    least = min(d for d, m in zip(deficits, many, strict=True) if m)
    ends = choice._ends.tolist()  # noqa: SLF001
    keeper = next(i for i, (d, m) in enumerate(zip(deficits, many, strict=True)) if m and d == least)
    fallback = (ends[keeper] - 1 << 3).to_bytes(8, "little") + bytes(10)  # W = 0 is accepted
    start = 0
    for i, end in enumerate(ends):
        n, m = end - start, many[i]
        for word in {start, end - 1} if n else ():
            chance = real(choice._spread * m / n, FINE) * FINE.exp(-real((deficits[i] - least) * rate, FINE))  # noqa: SLF001
            tie = int(FINE.floor(FINE.ldexp(chance, 80)))
            for w in (tie, tie + 1, 0):
                if w >= 1 << 80:
                    continue
                for after in (b"\0", b"\xff"):
                    if chance < NEVER and not w and after == b"\0":
                        continue
                    script = (word << 3 | 5).to_bytes(8, "little") + (w >> 64).to_bytes(2, "little")
                    script += (w & ((1 << 64) - 1)).to_bytes(8, "little")
                    value = FINE.ldexp(FINE.mpf(w) + (0 if after == b"\0" else 1 - FINE.mpf(2) ** -2000), -80)
                    source = Scripted(script, then=Scripted(after * 4000))
                    taken = accepted_once(choice, source)
                    assert taken == (i if value < chance else None), (i, w, after)
        start = end
    past = Scripted(((1 << 64) - 1).to_bytes(8, "little") + b"\0\x80" + bytes(8) + fallback)
    assert choice.draw(1, past)[0] == keeper


class _Again(Exception):  # noqa: N818 -- a signal
    pass


def accepted_once(choice, source):
    """The place that one try gives, or None if it is drawn again."""
    tries = 0
    plain = source.words

    def counted(count, kind):
        nonlocal tries
        tries += np.dtype(kind).itemsize == 8 and count == 1
        if tries == 3:  # word, W's rest, and then the next try's word
            raise _Again
        return plain(count, kind)

    source.words = counted
    try:
        return int(choice.draw(1, source)[0])
    except _Again:
        return None

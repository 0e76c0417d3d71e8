"""Samplers: shapes, refusals, what is read from the stream, and that a redrawn place is redrawn alone."""

from __future__ import annotations

import gc
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest

from curador.errors import InvalidParameter
from curador.randomness import noise as noises
from curador.randomness.choice import Choice, Weighted, below, below_one, bernoulli, bernoulli_exp
from curador.randomness.entropy import U32, U64, Entropy, Keystream, entropy
from curador.randomness.injected import Scripted, Seeded
from curador.randomness.noise import SLOTS, LawKind, Strip, gaussian, geometric, laplace

MAKERS = [laplace, gaussian, geometric]


class Counted(Entropy):
    """A stream that counts what is read, request by request."""

    def __init__(self, source):
        self.source, self.requests = source, []

    def fill(self, count):
        self.requests.append(count)
        return self.source.fill(count)


def waiting(source, one):
    """What was drawn ahead and not handed out yet, in order: a vector takes from the end of the first part."""
    return source.stocks[one].tolist() + source.pools.get(one, [])


# ---- laws ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("kind", list(LawKind))
def test_float_phi_is_within_five_units(kind, mirrored):
    """φ in floats is within 5 · 2⁻⁵³ of φ in rationals, up to the largest 64-bit integers."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 63, 500)
    x = rng.integers(0, 1 << 62, 500) >> sizes
    if kind is not LawKind.GEOMETRIC:
        x = np.where(rng.integers(0, 2, 500) == 0, x, ~x)
    for rate in (Fraction(1, 3), Fraction(10**9 + 7, 10**13), Fraction(1, (1 << 52) - 1), Fraction(10**80, 7)):
        strip = Strip(kind, rate, mirrored=mirrored)
        for place, value in zip(x.tolist(), strip.phi_float(x).tolist(), strict=True):
            exact = strip.phi(place)
            assert abs(Fraction(value) - exact) <= exact * 5 / (1 << 53)


def test_phi_is_what_the_law_says():
    """|x|, x² and their mirrored forms, exactly."""
    rate = Fraction(2, 7)

    assert Strip(LawKind.LAPLACE, rate).phi(-3) == 3 * rate
    assert Strip(LawKind.GAUSSIAN, rate).phi(-3) == 9 * rate
    assert Strip(LawKind.GEOMETRIC, rate).phi(4) == 4 * rate
    assert Strip(LawKind.LAPLACE, rate, mirrored=True).phi(-3) == 2 * rate
    assert Strip(LawKind.GAUSSIAN, rate, mirrored=True).phi(-1) == 0
    assert Strip(LawKind.GEOMETRIC, rate).one_sided
    assert not Strip(LawKind.LAPLACE, rate).one_sided


# ---- noise --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("size", [0, 1, 7, 40_000])
@pytest.mark.parametrize("make", MAKERS)
def test_draws_come_in_the_asked_number(make, size, level):
    """So many 64-bit integers; geometric ones are not negative."""
    out = make(Fraction(5)).draw(size, entropy(), level=level)

    assert out.dtype == np.int64
    assert out.shape == (size,)
    assert make is not geometric or (out >= 0).all()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("parameter", [Fraction(0), Fraction(-1), Fraction(1, 10**81), Fraction(10**81), Fraction(10) ** 400, -Fraction(10) ** 400])  # fmt: skip  # noqa: E501
def test_parameters_out_of_range_are_refused(make, parameter):
    """Nothing is drawn for a scale that makes no sense, and the sentence says which."""
    name = "sigma2" if make is gaussian else "scale"
    with pytest.raises(InvalidParameter, match=rf"^{name} must be between 1e-80 and 1e80 grid steps; got "):
        make(parameter)


@pytest.mark.parametrize("make", MAKERS)
def test_extreme_parameters_draw(make):
    """The smallest scale gives zeros, the largest Python's integers."""
    small, large = make(Fraction(1, 10**80)), make(Fraction(10**80))

    assert not small.draw(10_000, entropy()).any()
    assert not small.draw(10_000, entropy(), level=True).any()
    assert all(isinstance(x, int) for x in large.draw(10, entropy()))
    assert max(abs(x) for x in large.draw(100, entropy())) > 10**38
    assert large.draw(0, entropy()).shape == (0,)


def test_wide_begins_at_two_to_the_fifty_two():
    """Below, 64-bit integers; from there on, Python's own."""
    edge = 1 << 52

    assert not laplace(edge - Fraction(1, 3)).wide
    assert laplace(Fraction(edge)).wide
    assert not gaussian((edge - 1) ** 2 * Fraction(1)).wide
    assert gaussian(Fraction(edge**2)).wide
    assert laplace(edge - Fraction(1, 3)).draw(5, entropy()).dtype == np.int64
    assert laplace(Fraction(edge)).draw(5, entropy()).dtype == object
    with pytest.raises(ValueError, match="two parts"):
        Strip(LawKind.LAPLACE, Fraction(1, edge))


def test_tables_are_made_once_and_forgotten_in_turn():
    """The same parameter gives the same table; no more than 64 are kept."""
    assert laplace(Fraction(17, 3)) is laplace(Fraction(34, 6))
    assert laplace(Fraction(17)) is not geometric(Fraction(17))
    for i in range(1, 80):
        laplace(Fraction(i, 1000))
    assert len(noises._tables) <= 64  # noqa: SLF001


@pytest.mark.slow
def test_tables_survive_threads():
    """Many threads making tables at once get working ones."""
    errors = []

    def work(start):
        try:
            for i in range(40):
                assert laplace(Fraction(start + i, 7)).draw(3, entropy()).shape == (3,)
        except Exception as error:  # noqa: BLE001 -- handed to the test's thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(1 + 20 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []


def test_refused_places_are_drawn_again_alone():
    """The accepted neighbours of a refused proposal keep their values."""
    strip = Strip(LawKind.LAPLACE, Fraction(1, 3))
    ends = np.cumsum(strip.slots)
    slot = [int(ends[y - strip.first]) - 1 for y in (2, -3, 5)]
    first = np.array([*slot, 0, 0xFFFF, 0], "<u2").tobytes()  # the second proposal meets the largest W
    rest = b"\xff" * 8
    second = np.array([int(ends[7 - strip.first]) - 1, 0], "<u2").tobytes()
    source = Scripted(first + rest + second)

    assert strip.draw(3, source).tolist() == [2, 7, 5]
    assert source.left == 0


def test_places_refused_again_and_again_are_all_drawn_again():
    """Three places refused, two of them twice, one three times: each ends with its own accepted value."""
    strip = Strip(LawKind.LAPLACE, Fraction(1, 3))
    ends = np.cumsum(strip.slots)

    def tries(*pairs):
        slots = [int(ends[y - strip.first]) - 1 for y, _ in pairs]
        refused = sum(not taken for _, taken in pairs)
        return np.array([*slots, *(0 if taken else 0xFFFF for _, taken in pairs)], "<u2").tobytes() + b"\xff" * (8 * refused)

    script = tries((2, False), (3, True), (4, False), (5, False))
    script += tries((6, False), (7, True), (8, False))
    script += tries((9, True), (10, False))
    script += tries((11, True))
    source = Scripted(script)

    assert strip.draw(4, source).tolist() == [9, 3, 7, 11]
    assert source.left == 0


@pytest.mark.parametrize("make", MAKERS)
def test_scripted_noise_repeats(make):
    """The same bytes give the same noise, in both modes; other bytes other noise."""
    one = make(Fraction(10**6))
    for level in (False, True):
        first, again = (one.draw(1000, Seeded(5), level=level) for _ in range(2))
        assert (first == again).all()
        assert (first != one.draw(1000, Seeded(6), level=level)).any()


# ---- scalars ------------------------------------------------------------------------------------------------------------


def test_pools_grow_as_they_are_used():
    """A scale used once draws 8 ahead, a busy one thousands, fewer of Python's integers; every value is handed out once."""
    for scale, most in ((Fraction(10**30), 4096), (Fraction(4 * 10**15), 16_384)):
        source, one = Keystream(), noises.make_noise(LawKind.LAPLACE, scale)
        seen = [one.one(source)]
        assert len(waiting(source, one)) == 7
        largest = 0
        for _ in range(25):
            seen += [one.one(source) for _ in range(3)] + one.several(1000, source).tolist()
            largest = max(largest, len(waiting(source, one)))

        assert most - 1300 <= largest < most + 1300  # what a refill adds to, and takes from
        assert not one.wide or len(set(seen)) == len(seen)  # two equal ones of 25,000: 1e-22


def test_what_a_pool_hands_out_is_gone_from_it():
    """A vector's numbers and a scalar are not among those that wait, nor in the array behind; the vector is a copy."""
    source, one = Keystream(), noises.make_noise(LawKind.LAPLACE, Fraction(10**30))
    one.several(50, source)
    one.several(50, source)  # the second draws ahead
    whole, before = source.stocks[one], waiting(source, one)
    taken = [*one.several(20, source).tolist(), one.one(source)]

    assert one.several(1, source).base is None
    assert set(taken) <= set(before)
    assert not set(taken) & {*waiting(source, one), *whole.tolist()}


def test_an_interrupted_vector_is_not_handed_out_again():
    """Whoever draws while a vector is being taken gets other numbers."""
    source, one = Keystream(), noises.make_noise(LawKind.LAPLACE, Fraction(4 * 10**15))
    for _ in range(2):
        one.several(100, source)
    inner = []

    class Interrupting(dict):
        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            if not inner:
                inner.append([])
                inner[0] = one.several(20, source).tolist()

    source.stocks = Interrupting(source.stocks)
    outer = one.several(30, source).tolist()

    assert len({*outer, *inner[0]}) == 50  # two equal ones: 1e-12
    assert 0 not in {*outer, *inner[0]}


def test_level_draws_may_interrupt_each_other(monkeypatch):
    """A draw in the middle of a draw leaves it as it was, and the room they share is left empty."""
    strip = Strip(LawKind.LAPLACE, Fraction(1, 1000))
    alone = strip.draw(500, Seeded(3), level=True)
    plain, depth = Strip._phi_into, []  # noqa: SLF001 -- to be interrupted

    def interrupted(self, out, x):
        plain(self, out, x)
        if not depth:
            depth.append(1)
            strip.draw(500, Seeded(4), level=True)

    monkeypatch.setattr(Strip, "_phi_into", interrupted)

    assert (strip.draw(500, Seeded(3), level=True) == alone).all()
    assert depth
    assert not any(array.any() for array in noises._room.arrays)  # noqa: SLF001


def test_pools_begin_anew_after_a_refresh():
    """What was dropped is not made up for: a scalar draws 8 ahead, a vector what it wants."""
    source, one = Keystream(), noises.make_noise(LawKind.GAUSSIAN, Fraction(10**6))
    for _ in range(12_000):
        one.one(source)
    source.refresh()
    one.one(source)
    assert len(waiting(source, one)) == 7
    source.refresh()
    assert len(one.several(300, source)) == 300
    assert waiting(source, one) == []


@pytest.mark.parametrize("refused", [[], [1, 3], [0], list(range(13)), list(range(16))])
def test_refused_proposals_are_never_in_a_pool(refused, monkeypatch):
    """A seeded round refuses these places of 16; what is missing of 8 is drawn in further rounds."""
    one, rounds = noises.make_noise(LawKind.LAPLACE, Fraction(1000)), []
    plain = Strip._try  # noqa: SLF001 -- to be seeded

    def seeded(self, out, source, *, level):
        if rounds:
            return plain(self, out, source, level=level)
        rounds.append(len(out))
        out[:] = 10**9 + np.arange(len(out))
        return np.array(refused, np.int64)

    monkeypatch.setattr(Strip, "_try", seeded)
    pool = one._ahead(8, Keystream()).tolist()  # noqa: SLF001 -- what fills a pool
    kept = {10**9 + place for place in range(16) if place not in refused}
    many = min(8, len(kept))

    assert rounds == [16]
    assert len(pool) == 8
    assert set(pool[:many]) <= kept
    assert len(set(pool[:many])) == many
    assert all(abs(value) < 10**6 for value in pool[many:])  # e^(−1000)


@pytest.mark.slow
def test_pools_are_few():
    """No more than 64 scales are kept ahead."""
    source = Keystream()
    for i in range(1, 100):
        noises.make_noise(LawKind.LAPLACE, Fraction(i)).one(source)

    assert len(source.pools) == 64


def test_pools_are_filled_level(monkeypatch):
    """What is drawn ahead takes the same arithmetic for every value."""
    asked = []
    plain = Strip.draw

    def noted(self, size, source, *, level=False):
        asked.append(level)
        return plain(self, size, source, level=level)

    monkeypatch.setattr(Strip, "draw", noted)
    noises.make_noise(LawKind.GAUSSIAN, Fraction(3)).one(Keystream())
    noises.make_noise(LawKind.GAUSSIAN, Fraction(10**40)).one(Keystream())
    noises.make_noise(LawKind.GAUSSIAN, Fraction(3)).one(Seeded(1))

    assert asked
    assert all(asked)


def test_scalars_without_a_pool():
    """An injected stream draws nothing ahead."""
    one = laplace(Fraction(1000))
    values = [one.one(Seeded(i)) for i in range(20)]

    assert all(type(value) is int for value in values)
    assert values == [one.one(Seeded(i)) for i in range(20)]
    assert len(set(values)) > 10


@pytest.mark.parametrize("size", [1, 7, 300, 1024, 4096, 4097, 5000])
def test_several_are_fresh_and_of_the_law(size):
    """Few come from the pool, many do not; none comes twice, and their spread is that of the scale."""
    noise, source = laplace(Fraction(4 * 10**15)), Keystream()
    drawn = np.concatenate([noise.several(size, source) for _ in range(1 + 2000 // size)])

    assert drawn.dtype == np.int64
    assert len(set(drawn.tolist())) == len(drawn)  # two equal ones of 5,000 at this scale: 8e-10
    assert 0.8 < np.abs(drawn).mean() / 4e15 < 1.2  # off by a fifth: e^(−35) by Chernoff's bound for 2,000


def test_several_use_up_the_pool():
    """What a vector took, a scalar does not get, and after a refresh nothing drawn ahead is left."""
    noise, source = laplace(Fraction(10**12 + 1)), Keystream()
    for _ in range(2):
        noise.several(100, source)
    held = waiting(source, noise)
    taken = noise.several(len(held) - 1, source).tolist()

    assert taken == held[1:]
    assert noise.one(source) == held[0]
    noise.several(5, source)
    source.refresh()
    assert source.pools == source.stocks == {}


def test_several_without_a_pool_and_wide():
    """An injected stream draws nothing ahead; wide noise is in Python's integers."""
    assert laplace(Fraction(5)).several(3, Seeded(1)).tolist() == laplace(Fraction(5)).draw(3, Seeded(1), level=True).tolist()
    assert laplace(Fraction(10) ** 30).several(3, Keystream()).dtype == object


# ---- the same work for every value --------------------------------------------------------------------------------------


def single_tries(strip, level):
    """For many single tries: what came out, what was read from the stream, and which functions were called."""
    source = Seeded(9)
    strip._chunk(np.empty(1, np.int64), source, level=level)  # noqa: SLF001 -- the first one makes room, for all later ones
    out = []
    for _ in range(1500):
        counted, x, calls = Counted(source), np.empty(1, np.int64), []

        def note(_, event, value, calls=calls):
            if event == "c_call":
                calls.append(value.__name__)

        gc.disable()  # a collection's callbacks are calls too, and none of ours
        sys.setprofile(note)
        try:
            refused = strip._chunk(x, counted, level=level)  # noqa: SLF001
        finally:
            sys.setprofile(None)
            gc.enable()
        out.append((int(x[0]), len(refused), tuple(counted.requests), tuple(calls[:-1])))
    return out


def with_more_tails(kind, scale):
    """A strip whose table has as many tail slots as others, so that a few hundred tries meet them."""
    strip = Strip(kind, 1 / Fraction(scale))
    strip.table[::2] = strip.cells << 16
    return strip


@pytest.mark.parametrize("scale", ["0.7", "1000", "1e15"])
@pytest.mark.parametrize("kind", list(LawKind))
@pytest.mark.slow
def test_level_tries_do_the_same_whatever_comes_out(kind, scale):
    """Accepted or refused, near or in the tail: a level try reads the same bytes and calls the same functions."""
    strip = with_more_tails(kind, Fraction(scale) ** 2 if kind is LawKind.GAUSSIAN else scale)
    tries = single_tries(strip, level=True)

    assert len({value for value, *_ in tries}) > 3
    assert any(abs(value) >= strip.tail_start for value, *_ in tries)
    assert {refused for _, refused, *_ in tries} == {0, 1}
    assert len({requests for _, _, requests, _ in tries}) == 1
    assert len({calls for *_, calls in tries}) == 1


@pytest.mark.slow
def test_quick_tries_do_not():
    """The measure above sees a difference where there is one."""
    tries = single_tries(with_more_tails(LawKind.LAPLACE, 1000), level=False)

    assert len({requests for _, _, requests, _ in tries}) > 1
    assert len({calls for *_, calls in tries}) > 1


@pytest.mark.slow
def test_tries_say_nothing_about_values():
    """A refused proposal is followed by a fresh one: the second try reads what the first did."""
    counted = Counted(Seeded(3))
    strip = Strip(LawKind.LAPLACE, Fraction(1, 1000))
    for _ in range(300):
        strip.draw(1, counted, level=True)

    assert len(counted.requests) > 300  # some were drawn again
    assert set(counted.requests) == {8 + 4 + 16}


# ---- uniform integers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 2**31, 2**31 + 1, 2**63 - 1, 2**63])
def test_below_stays_below(limit):
    """Every result is in range, across chunks, also none and one at a time."""
    for size in (0, 1, 70_000):
        out = below(limit, size, entropy())
        assert out.dtype == np.int64
        assert out.shape == (size,)
        assert all(0 <= value < limit for value in out.tolist())


@pytest.mark.parametrize("limit", [3, 5, 6, 1000, 2**31 - 1])
def test_narrow_words_are_shared_evenly(limit):
    """Multiply and shift: each result has ⌊2³²/limit⌋ words, the others are drawn again; seen at the boundaries."""
    each, excess = divmod(1 << 32, limit)
    for result in {0, 1, limit // 2, limit - 1}:
        first = -(-(result << 32) // limit)
        last = -(-((result + 1) << 32) // limit) - 1
        kept = [w for w in (first, last) if (w * limit) & 0xFFFFFFFF >= excess]
        for word in kept:
            source = Scripted(np.array([word], U32).tobytes())
            assert below(limit, 1, source)[0] == result
        if excess and (first * limit) & 0xFFFFFFFF < excess:
            assert last - first == each  # one too many, and the first is the one refused
            source = Scripted(np.array([first, last], U32).tobytes())
            assert below(limit, 1, source)[0] == result
            assert source.left == 0
        else:
            assert last - first + 1 == each


@pytest.mark.parametrize("limit", [2**31 + 1, 3 * 2**61, 2**63 - 1])
def test_broad_words_are_shared_evenly(limit):
    """Words from the last multiple of the limit on are drawn again; the one before is kept."""
    last = (1 << 64) // limit * limit
    for word, value in ((last - 1, limit - 1), (0, 0), (limit, 0 if 2 * limit <= last else None), (limit - 1, limit - 1)):
        if value is not None:
            assert below(limit, 1, Scripted(np.array([word], U64).tobytes()))[0] == value
    for word in (last, (1 << 64) - 1):
        source = Scripted(np.array([word, 5], U64).tobytes())
        assert below(limit, 1, source)[0] == 5
        assert source.left == 0


def test_below_redraws_only_the_refused_places():
    """Accepted neighbours keep their values."""
    words = np.array([1 << 31, 0, 3 << 30, 1 << 30], U32)  # the second is refused: 2³² mod 3 = 1 word is too many
    source = Scripted(words[:3].tobytes() + words[3:].tobytes())

    assert below(3, 3, source).tolist() == [1, 0, 2]
    assert source.left == 0


def test_below_one_takes_any_limit():
    """As many bits as the limit needs; too large a value is drawn again; one needs no bits."""
    assert below_one(1, Scripted(b"")) == 0
    assert below_one(5, Scripted(b"\xe0\xa0\x80")) == 4  # 7 and 5 are refused
    assert below_one(1 << 80, Scripted(b"\xff" * 10)) == (1 << 80) - 1


# ---- coins and choices --------------------------------------------------------------------------------------------------


def test_coins_of_certain_probability():
    """Probability one always, zero never; dyadic ones read 16 bits a coin and no more."""
    assert bernoulli(Fraction(1), 5, Scripted(b"")).all()
    assert not bernoulli(Fraction(0), 70_000, entropy()).any()
    source = Counted(Seeded(1))
    bernoulli(Fraction(3, 8), 10_000, source)
    assert source.requests == [20_000]
    assert bernoulli(Fraction(1, 3), 0, entropy()).shape == (0,)


def test_exponential_coins_read_the_same_for_each():
    """80 bits a coin, whatever the step; none for none."""
    source = Counted(Seeded(1))
    out = bernoulli_exp(np.arange(40_000), Fraction(1, 100), source)

    assert out.shape == (40_000,)
    assert sum(source.requests) == 10 * 40_000
    assert bernoulli_exp(np.zeros(9, np.int64), Fraction(5), entropy()).all()
    assert bernoulli_exp(np.arange(9), Fraction(0), entropy()).all()
    assert bernoulli_exp(np.zeros(0, np.int64), Fraction(1), entropy()).shape == (0,)


def test_choices_never_take_what_has_no_weight():
    """Multiplicity 0 is never drawn, not even as the best or the last."""
    choice = Choice(np.array([0, 3, 0, 9]), Fraction(1), np.array([0, 1, 0, 0]))

    assert set(choice.draw(10_000, entropy()).tolist()) == {1}
    assert choice.draw(0, entropy()).shape == (0,)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 10**18), Fraction(10**6)])
def test_choices_of_any_rate_fit_their_word(rate):
    """A hundred thousand places with large multiplicities: the slots fit and the draws are in range."""
    many = np.full(100_000, (1 << 53) - 1)
    out = Choice(np.arange(100_000), rate, many).draw(100, entropy())

    assert ((out >= 0) & (out < 100_000)).all()
    assert rate < 1 or not out.any()


def test_weights_are_checked():
    """Nothing to choose from is an error; a single weight is the answer; words map to places at every boundary."""
    for weights in ([], [0, 0], [1, -1], [-1]):
        with pytest.raises(ValueError, match="at least 0 with one above 0"):
            Weighted(weights)
    assert Weighted([0, 9]).draw(3, entropy()).tolist() == [1, 1, 1]
    for word, place in ((0, 0), (1, 2), (2, 2), (3, 3)):
        assert Weighted([1, 0, 2, 1]).draw(1, Scripted(np.array([word], U64).tobytes()))[0] == place
    huge = Weighted([1 << 80, 0, 3 << 80])
    for word, place in (((1 << 80) - 1, 0), (1 << 80, 2), ((1 << 82) - 1, 2)):
        bits = word << 6  # 82 of 88 bits
        assert huge.draw(1, Scripted(bits.to_bytes(11, "little")))[0] == place


def test_slots_are_sixteen_bits():
    """A slot is one word of 16 bits, so that no word is ever refused."""
    assert SLOTS == 1 << 16
    assert len(Strip(LawKind.GAUSSIAN, Fraction(1, 5)).table) == SLOTS

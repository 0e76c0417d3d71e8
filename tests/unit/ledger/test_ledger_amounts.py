"""Amounts are whole ticks: costs up, limits down, sums exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.errors import InvalidParameter, InvalidStudy, Refused, shown
from curador.ledger.amounts import DELTA_TICK, DIGITS, NOTHING, TICK, Amounts, amounts_text, down_to_tick, up_to_tick
from curador.ledger.limits import Limits
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE
from curador.privacy.convert import rho_to_epsilon
from curador.study.model import Budget

SMALL = settings(deadline=None, max_examples=15)
fractions = st.fractions(min_value=0, max_value=100)
ticks = st.integers(0, 10**20)


def limits(epsilon=1, delta=None, delta_keys=None):
    budget = Budget(epsilon=epsilon, delta=delta, delta_keys=delta_keys)
    return Limits.create(budget, adjacency=ADD_OR_REMOVE_ONE, unit="person", max_units=10**6)


@SMALL
@given(fractions)
def test_a_cost_rounds_up_and_a_grant_down(amount):
    """Both are multiples of the tick, on either side of the truth and less than a tick from it."""
    for tick in (TICK, DELTA_TICK):
        up, down = up_to_tick(amount, tick), down_to_tick(amount, tick)

        assert down <= amount <= up
        assert up - amount < tick
        assert amount - down < tick
        assert (up / tick).denominator == (down / tick).denominator == 1


@SMALL
@given(st.lists(fractions, max_size=12))
def test_sums_against_the_truth(spends):
    """The sum of costs is never below the truth and at most a tick a question above it."""
    total = sum((Amounts.cost(epsilon=one, rho=one, delta=one) for one in spends), NOTHING)
    truth = sum(spends, Fraction(0))

    assert truth <= total.epsilon == total.rho <= truth + len(spends) * TICK
    assert truth <= total.delta <= truth + len(spends) * DELTA_TICK


def test_floats_would_lose_what_ticks_keep():
    """The seeded bug: a spend of 1e-17 after 1 is nothing to a float, and something to the ledger."""
    assert 1.0 + 1e-17 == 1.0
    assert Amounts(Fraction(1)) + Amounts.cost(epsilon=Fraction("1e-17")) != Amounts(Fraction(1))


BAD = [
    -1,
    -0.5,
    0.5,
    math.nan,
    math.inf,
    True,
    False,
    "1",
    "1/2",
    None,
    [],
    Fraction(-1, 2),
    -TICK,
    TICK / 3,
    np.float64(1),
    1,
]


@pytest.mark.parametrize("place", range(3))
def test_each_amount_is_counted_by_itself(place):
    """Sums, differences, room, the larger and the smaller: one amount moves, the other two stay what they were."""
    base, other = [Fraction(7, 10), Fraction(5, 10), Fraction(3, 10)], [Fraction(2, 10), Fraction(2, 10), Fraction(2, 10)]
    other[place] = Fraction(1, 10)
    a, b = Amounts(*base), Amounts(*other)

    assert a + b == Amounts(*(x + y for x, y in zip(base, other, strict=True)))
    assert a - b == Amounts(*(x - y for x, y in zip(base, other, strict=True)))
    assert b.room_below(a) == a - b
    assert a.room_below(b) == NOTHING
    assert a.most(b) == b.most(a) == a
    assert a.least(b) == b.least(a) == b
    alone = [Fraction(0)] * 3
    alone[place] = TICK if place < 2 else DELTA_TICK
    more = Amounts(*alone)
    assert more
    assert not NOTHING
    assert not (a + more).within(a)
    assert a.within(a)
    assert a.within(a + more)
    assert a.most(a + more) == (a + more).most(a) == a + more
    assert a.least(a + more) == (a + more).least(a) == a
    assert (a + more).room_below(a) == NOTHING
    assert a.room_below(a + more) == more


def test_a_record_has_the_three_names_and_no_other():
    """What is read back is what was written, amount by amount; anything more, less or else is refused."""
    written = Amounts(Fraction(1, 10), Fraction(2, 10), Fraction(3, 10)).record()

    assert written == {"epsilon": "1/10", "rho": "1/5", "delta": "3/10"}
    assert Amounts.from_record(written) == Amounts(Fraction(1, 10), Fraction(2, 10), Fraction(3, 10))
    for bad in ({**written, "more": "0"}, {"epsilon": "0", "rho": "0"}, {**written, "rho": 1}, {**written, "rho": "1e3"}):
        with pytest.raises(
            InvalidParameter, match=r"^amounts must be an epsilon, a rho and a delta, exact rationals as texts; got \{"
        ):
            Amounts.from_record(bad)


def test_digits_read_back_and_are_of_one_width():
    """Each amount in its own ticks, 40 digits wide; the first number that is wider is refused."""
    amounts = Amounts(TICK, 2 * TICK, 3 * DELTA_TICK)

    assert amounts.digits() == tuple(f"{number:040d}" for number in (1, 2, 3))
    assert Amounts.from_digits(*amounts.digits()) == amounts
    widest = Amounts(epsilon=(10**DIGITS - 1) * TICK)
    assert widest.digits()[0] == "9" * DIGITS
    with pytest.raises(InvalidParameter, match=rf"^amounts must be of at most {DIGITS} digits in ticks; got \S*1\d*"):
        Amounts(epsilon=10**DIGITS * TICK).digits()


def test_costs_and_grants_round_each_amount_in_its_own_tick():
    """A third of a tick is a tick where it is charged and nothing where it is granted; δ has smaller ticks."""
    small, smaller = TICK / 3, DELTA_TICK / 3

    assert Amounts.cost(epsilon=small) == Amounts(TICK)
    assert Amounts.cost(rho=small) == Amounts(rho=TICK)
    assert Amounts.cost(delta=smaller) == Amounts(delta=DELTA_TICK)
    assert Amounts.grant(epsilon=small, rho=small, delta=smaller) == NOTHING
    whole = TICK + small, 2 * TICK + small, 3 * DELTA_TICK + smaller
    assert Amounts.grant(epsilon=whole[0], rho=whole[1], delta=whole[2]) == Amounts(TICK, 2 * TICK, 3 * DELTA_TICK)


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_what_is_no_amount(bad):
    """Floats, booleans, texts, negatives and parts of a tick are refused; only an exact Fraction of ticks counts."""
    for name in ("epsilon", "rho", "delta"):
        value = bad if bad != TICK / 3 or name != "delta" else DELTA_TICK / 3
        with pytest.raises(InvalidParameter) as refusal:
            Amounts(**{name: value})
        tick = DELTA_TICK if name == "delta" else TICK
        rule = f"amounts.{name} must be a Fraction of at least 0 and a multiple of {tick}"
        assert refusal.value.sentence == f"{rule}; got {shown(value)}."
        assert refusal.value.hint == "Amounts.cost rounds what must be charged up to the tick"


def test_differences_never_become_negative():
    """Giving back more than was spent is refused; room is 0 where a limit was passed."""
    one, two = Amounts(Fraction(1)), Amounts(Fraction(2))
    with pytest.raises(InvalidParameter):
        one - two
    assert two - one == one
    assert two.room_below(one) == NOTHING
    assert one.room_below(two) == one
    assert not NOTHING
    assert one


@SMALL
@given(ticks, ticks, ticks, ticks, ticks, ticks)
def test_stored_digits_compare_as_amounts_do(a, b, c, d, e, f):
    """Texts of one width keep value and order, so that the database can compare them."""
    one, other = Amounts(a * TICK, b * TICK, c * DELTA_TICK), Amounts(d * TICK, e * TICK, f * DELTA_TICK)

    assert Amounts.from_digits(*one.digits()) == one
    assert Amounts.from_record(one.record()) == one
    assert all(len(text) == DIGITS for text in one.digits())
    assert one.within(other) == all(x <= y for x, y in zip(one.digits(), other.digits(), strict=True))


def test_an_amount_that_no_column_holds():
    """Beyond forty digits nothing is stored."""
    with pytest.raises(InvalidParameter, match="digits"):
        Amounts(Fraction(10**23)).digits()
    for bad in (
        {},
        {"epsilon": "1", "rho": "0"},
        {"epsilon": "x", "rho": "0", "delta": "0"},
        {"epsilon": 1, "rho": 0, "delta": 0.5},
    ):
        with pytest.raises(InvalidParameter):
            Amounts.from_record(bad)


def test_amounts_in_words():
    """ε under a pure budget, else ρ, with δ where there is some; rounded as asked."""
    amounts = Amounts(Fraction(123456789, 10**9), Fraction(987654321, 10**9), DELTA_TICK * 3)
    bare = Amounts(rho=amounts.rho)

    assert amounts_text(amounts, pure=True, up=True) == "ε = 0.1235"
    assert amounts_text(amounts, pure=True, up=False) == "ε = 0.1234"
    assert amounts_text(amounts, pure=False, up=True) == "ρ = 0.9877, δ = 3e-30"
    assert amounts_text(bare, pure=False, up=False) == "ρ = 0.9876"
    uneven = Amounts(delta=DELTA_TICK * 123456789)
    assert amounts_text(uneven, pure=False, up=True).endswith("δ = 1.235e-22")
    assert amounts_text(uneven, pure=False, up=False).endswith("δ = 1.234e-22")


# ---- limits -------------------------------------------------------------------------------------------------------------


def test_limits_of_both_kinds():
    """Pure: ε. (ε, δ): ρ and the δ of keys, both rounded down, and ρ still converts into ε."""
    pure, both = limits(), limits(1, "1e-6")

    assert pure.total == Amounts(Fraction(1))
    assert both.total == Amounts(rho=both.rho_limit, delta=Fraction(1, 2_000_000))
    assert Fraction(rho_to_epsilon(both.rho_limit, delta=Fraction(1, 2_000_000))) <= 1
    assert (both.rho_limit / TICK).denominator == 1
    assert limits(1, "1e-6", 0).rho_limit > both.rho_limit


@SMALL
@given(st.fractions(min_value=Fraction(1, 1000), max_value=10), st.integers(1, 60), st.fractions(Fraction(1, 50), 1))
def test_n_times_an_nth_fit(epsilon, parts, share):
    """Twenty times 5 %, three thirds, any n of any share: grants rounded down fit together."""
    for made in (limits(epsilon), limits(epsilon, "1e-6")):
        part = made.share(share / parts)
        assert sum([part] * parts, NOTHING).within(made.share(share))
        assert made.share(share).within(made.total)


def test_thirds_rounded_up_do_not_fit():
    """The seeded bug: three thirds rounded up pass the limit by two ticks."""
    third = Amounts.cost(epsilon=Fraction(1, 3))

    assert not (third + third + third).within(limits().total)


def test_limits_survive_their_record():
    """What is written in the first entry is read back, and proved again."""
    for made in (limits(), limits("1/3"), limits(3, "1e-9", "1e-10")):
        assert Limits.from_record(made.record()) == made


@pytest.mark.parametrize(
    "change",
    [
        {"rho_limit": "1"},
        {"delta_keys": "99/100000000"},
        {"epsilon": "1/2"},
        {"kind": "other"},
        {"kind": "pure"},
        {"adjacency": "nobody"},
        {"unit": 7},
        {"unit": ""},
        {"max_units": 0},
        {"max_units": True},
        {"epsilon": "0"},
        {"epsilon": "10000000"},
    ],
    ids=str,
)
def test_limits_that_do_not_keep_the_budget(change):
    """A first entry that was changed to allow more is no set of limits."""
    with pytest.raises(InvalidParameter):
        Limits.from_record({**limits(1, "1e-6").record(), **change})


@pytest.mark.parametrize(
    ("budget", "changes", "name"),
    [
        ((2, "1e-6"), {}, "budget.epsilon"),
        ((1, "1e-5"), {}, "budget.delta "),
        ((1, None), {}, "budget.delta "),
        ((1, "1e-6", "1e-7"), {}, "budget.delta_keys"),
        ((1, "1e-6"), {"adjacency": REPLACE_ONE}, "adjacency"),
        ((1, "1e-6"), {"unit": "household"}, "unit"),
    ],
    ids=str,
)
def test_another_study_is_refused(budget, changes, name):
    """Budget, neighbours and unit are those of the creation, or the study is refused with what to do."""
    made = limits(1, "1e-6")
    same = {"adjacency": ADD_OR_REMOVE_ONE, "unit": "person"}
    made.require_same(Budget(epsilon=1, delta="1e-6"), **same)
    asked = dict(zip(("epsilon", "delta", "delta_keys"), budget, strict=False))

    with pytest.raises(InvalidStudy, match=rf"{name}.*must be that of the ledger|{name}must be") as refusal:
        made.require_same(Budget(**asked), **{**same, **changes})
    assert "Hint" in str(refusal.value)


def test_a_budget_below_the_smallest_step():
    """A budget that no tick can count is refused when the ledger is made."""
    with pytest.raises(Refused):
        limits("1e-20")
    with pytest.raises(Refused):
        limits("1e-12", "1e-12")
    with pytest.raises(Refused):
        limits(10**7, "1e-6")

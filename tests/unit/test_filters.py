from __future__ import annotations

import functools
import math
from dataclasses import FrozenInstanceError, dataclass, replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.errors import BudgetExceeded, InvalidParameter, NotPrivate, Refused
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE
from curador.privacy.filters import (
    ConcentratedFilter,
    PureFilter,
    RenyiFilter,
    adaptive_pure_epsilon,
    odometer_epsilon,
)
from curador.text import rounded_text

SMALL = settings(deadline=None, max_examples=60)

MP = mpmath.mp.clone()
MP.dps = 50


@dataclass(frozen=True)
class Spend:
    """A loss as a filter sees it."""

    pure_epsilon: object = None
    concentrated: object = None
    divergence: object = math.inf
    adjacency: object = None

    def renyi(self, alpha):
        """Return the divergence, a number or a function of the order."""
        return self.divergence(alpha) if callable(self.divergence) else self.divergence


def pure(amount):
    return Spend(pure_epsilon=Fraction(amount))


def zcdp(rho, delta=0):
    return Spend(concentrated=(Fraction(rho), Fraction(delta)))


@functools.cache
def budget(epsilon, delta, delta_keys=None):
    return ConcentratedFilter.create(epsilon=epsilon, delta=delta, delta_keys=delta_keys)


def spent_of(filter_):
    """Everything the filter counts, as one tuple."""
    return tuple(filter_.spent) if isinstance(filter_.spent, tuple) else (filter_.spent,)


def charge_what_fits(filter_, losses):
    """Charge in order, skipping what is refused."""
    for loss in losses:
        if filter_.fits(loss):
            filter_ = filter_.charge(loss)
        else:
            with pytest.raises(BudgetExceeded):
                filter_.charge(loss)
    return filter_


# ---- limits ----------------------------------------------------------------------------------------------


def test_pure():
    """ε adds up to the limit exactly, and not a hair beyond."""
    half = PureFilter(1).charge(pure("1/2"))
    full = half.charge(pure("1/2"))
    assert (full.spent, full.left, full.epsilon()) == (1, 0, 1.0)
    assert full.fits(pure(0))
    assert not full.fits(pure(Fraction(1, 10**30)))
    assert half.left == Fraction(1, 2)


def test_a_refusal_says_what_was_asked_and_what_is_left():
    """Short numbers are exact, long ones six digits: what is left rounded down, what is asked up."""
    third = PureFilter(1).charge(pure("2/3"))
    with pytest.raises(BudgetExceeded, match=r"epsilon must be at most 1/3, what is left of 1; got 1/2\."):
        third.charge(pure("1/2"))
    hair = Fraction(1, 3) + Fraction(1, 10**40)
    with pytest.raises(BudgetExceeded, match=r"at most 0\.333333, what is left of 1; got 0\.333334\."):
        PureFilter(1).charge(pure(Fraction(2, 3) - Fraction(1, 10**45))).charge(pure(hair))
    limit = budget(1, "1e-6")
    rho = rounded_text(limit.rho_limit, up=False, digits=6)
    with pytest.raises(BudgetExceeded, match=rf"rho must be at most {rho}, what is left of {rho}; got 1/10\."):
        limit.charge(zcdp("1/10"))
    with pytest.raises(BudgetExceeded, match=r"delta must be at most 1/2000000, what is left of 1/2000000; got 1/1000\."):
        limit.charge(zcdp("1/1000", "1/1000"))
    with pytest.raises(BudgetExceeded, match=r"zeta of order 8 must be at most 2, what is left of 2; got 5/2\."):
        RenyiFilter(alpha=8, limit=2).charge(Spend(divergence=2.5))


def test_creation_fixes_the_split():
    """δ is split once, in halves unless told; what converts and what keys cost together are δ."""
    limit = budget(1, "1e-6")
    assert limit.delta_keys == limit.delta_conv == Fraction(1, 2_000_000)
    assert limit.delta_keys + limit.delta_conv == limit.delta_limit == Fraction(1, 10**6)
    generous = budget(1, "1e-6", 0)
    assert generous.rho_limit > limit.rho_limit > budget(1, "1e-6", "9e-7").rho_limit > 0
    assert not generous.fits(zcdp(0, "1e-30"))
    with pytest.raises(FrozenInstanceError):
        limit.rho_limit = Fraction(1)


@pytest.mark.parametrize("delta_keys", ["1e-6", "2e-6", -1, math.nan, True, "abc"])
def test_a_split_leaves_something_to_convert_with(delta_keys):
    """delta_keys is at least 0 and below delta."""
    with pytest.raises(InvalidParameter, match="delta_keys must be"):
        ConcentratedFilter.create(epsilon=1, delta="1e-6", delta_keys=delta_keys)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, "1e-9"), (1, "1e-6"), (3, "1e-6"), (20, 0.1)])
def test_rho_limit_is_the_largest(epsilon, delta):
    """rho_limit converts into at most ε at delta_conv; a millionth more does not."""
    limit = budget(epsilon, delta)

    def reached(rho):
        """The least over orders of ρα + log((α−1)/α) − (log δ + log α)/(α−1), searched on a fine grid."""
        alpha = 1 + np.exp(np.linspace(-8, 12, 2_000_001))
        terms = rho * alpha + np.log1p(-1 / alpha) - (math.log(float(limit.delta_conv)) + np.log(alpha)) / (alpha - 1)
        return float(terms.min())

    assert reached(float(limit.rho_limit)) <= epsilon * (1 + 1e-9)
    assert reached(float(limit.rho_limit) * 1.000001) > epsilon


@settings(deadline=None, max_examples=20)
@given(st.floats(0.01, 30), st.floats(1e-12, 0.1), st.floats(0, 0.99))
@pytest.mark.slow
def test_every_budget_makes_a_filter(epsilon, delta, share):
    """Whatever the budget and its split, the limits found are limits that the constructor accepts as proved."""
    keys = Fraction(repr(delta)) * Fraction(repr(share))
    made = ConcentratedFilter.create(epsilon=epsilon, delta=delta, delta_keys=keys)
    assert made.charge(zcdp(made.rho_limit, keys)).epsilon() <= epsilon
    order = RenyiFilter.create(epsilon=epsilon, delta=delta, alpha=Fraction(repr(1 + 20 * share)) + 1)
    assert order.charge(Spend(divergence=float(order.limit))).epsilon(delta=delta) <= epsilon


def test_a_restored_filter_must_convert():
    """Parts that do not add up to the promise are no filter."""
    limit = budget(1, "1e-6")
    assert replace(limit) == limit
    for wrong in (
        {"rho_limit": limit.rho_limit * 2},
        {"epsilon_limit": Fraction(1, 2)},
        {"delta_keys": Fraction(99, 10**8)},
        {"spent": (limit.rho_limit * 2, 0)},
        {"spent": (0, limit.delta_limit)},
        {"spent": (-1, 0)},
    ):
        with pytest.raises(InvalidParameter):
            replace(limit, **wrong)
    with pytest.raises(InvalidParameter):
        PureFilter(1, spent=2)
    with pytest.raises(InvalidParameter):
        RenyiFilter(alpha=2, limit=1, spent=-1)


def test_both_amounts_must_fit():
    """ρ within its limit does not buy δ beyond its own, nor the reverse."""
    limit = budget(1, "1e-6")
    assert limit.fits(zcdp(limit.rho_limit, limit.delta_keys))
    assert not limit.fits(zcdp(0, limit.delta_keys + Fraction(1, 10**40)))
    assert not limit.fits(zcdp(limit.rho_limit + Fraction(1, 10**40), 0))
    full = limit.charge(zcdp(limit.rho_limit, limit.delta_keys))
    assert full.left == (0, 0)
    assert 1 - 1e-6 <= full.epsilon() <= 1
    assert limit.epsilon() == 0.0


@pytest.mark.parametrize("alpha", ["1.5", 8, 64])
def test_renyi_limit_of_a_budget(alpha):
    """The limit at an order is ε minus what the conversion adds there, or more by a better conversion."""
    a, epsilon, delta = MP.mpf(str(alpha)), 40, MP.mpf("1e-6")
    simple = epsilon - MP.log((a - 1) / a) + (MP.log(delta) + MP.log(a)) / (a - 1)
    limit = RenyiFilter.create(epsilon=epsilon, delta="1e-6", alpha=alpha)
    assert simple * (1 - MP.mpf("1e-12")) <= MP.mpf(float(limit.limit)) <= epsilon
    full = limit.charge(Spend(divergence=float(limit.limit)))
    assert full.left == 0
    assert full.epsilon(delta="1e-6") <= epsilon
    assert limit.epsilon(delta="1e-6") == 0.0


def test_an_order_that_delta_cannot_pay(monkeypatch):
    """Where no divergence above 0 converts into ε, there is nothing to limit."""
    from curador.privacy import convert

    def hopeless(alpha, zeta, *, delta):
        return 5.0 if zeta else 0.0

    monkeypatch.setattr(convert, "renyi_to_epsilon", hopeless)
    with pytest.raises(InvalidParameter) as refusal:
        RenyiFilter.create(epsilon=4, delta="1e-6", alpha="1.5")
    assert str(refusal.value) == (
        "alpha must be an order at which some divergence converts into epsilon 4; got 3/2.\n"
        "Hint: a higher order, or a larger delta"
    )


# ---- properties ------------------------------------------------------------------------------------------

amounts = st.fractions(min_value=0, max_value=1, max_denominator=10**6)


@pytest.mark.slow
@SMALL
@given(st.lists(amounts, max_size=30), st.fractions(min_value=Fraction(1, 100), max_value=3))
def test_charging_never_passes_the_limit(asked, limit):
    """Whatever is asked, what is spent is the exact sum of what was admitted and at most the limit."""
    end = charge_what_fits(PureFilter(limit), map(pure, asked))
    assert 0 <= end.spent <= limit
    assert end.spent + end.left == limit


@SMALL
@given(st.lists(st.tuples(amounts, amounts), max_size=30))
@pytest.mark.slow
def test_charging_never_passes_either_limit(asked):
    """The same for ρ and δ."""
    limit = budget(1, "1e-6")
    end = charge_what_fits(limit, [zcdp(r * limit.rho_limit, d * limit.delta_keys) for r, d in asked])
    assert end.spent.rho <= limit.rho_limit
    assert end.spent.delta <= limit.delta_keys
    assert end.spent.rho + end.left.rho == limit.rho_limit


@SMALL
@given(st.lists(st.floats(0, 1.5), max_size=30))
def test_charging_never_passes_a_divergence(asked):
    """The same for floats, which add exactly as the rationals that they are."""
    end = charge_what_fits(RenyiFilter(alpha=8, limit=2), [Spend(divergence=zeta) for zeta in asked])
    assert end.spent <= 2


@pytest.mark.parametrize("limit", ["1", "0.3", "1/3", "0.1"])
def test_twenty_times_five_percent(limit):
    """Twenty shares of 5 % fit exactly, as no sum of floats does; a twenty-first does not."""
    share = Fraction(limit) / 20
    filter_ = PureFilter(limit)
    for _ in range(20):
        filter_ = filter_.charge(pure(share))
    assert filter_.left == 0
    assert not filter_.fits(pure(share))
    renyi = RenyiFilter(alpha=2, limit=limit)
    assert renyi.limit == Fraction(limit)
    whole = RenyiFilter(alpha=2, limit=1).charge(Spend(divergence=0.25))
    assert whole.fits(Spend(divergence=0.75))
    assert not whole.fits(Spend(divergence=math.nextafter(0.75, 1)))
    both = budget(1, "1e-6")
    for _ in range(20):
        both = both.charge(zcdp(both.rho_limit / 20, both.delta_keys / 20))
    assert both.left == (0, 0)


def test_floats_would_refuse_the_twentieth_share():
    """The seeded bug: the same twenty shares added as floats pass the limit 0.3."""
    assert sum([0.3 / 20] * 20) > 0.3


@pytest.mark.slow
@SMALL
@given(st.lists(amounts, max_size=12), st.randoms(use_true_random=False))
def test_order_is_irrelevant(asked, shuffler):
    """The same losses in another order leave the same filter."""
    limit = PureFilter(12)
    other = list(asked)
    shuffler.shuffle(other)
    assert charge_what_fits(limit, map(pure, asked)) == charge_what_fits(limit, map(pure, other))


@SMALL
@given(amounts)
def test_a_refusal_changes_nothing(excess):
    """The filter that refused is as it was, and so is what it still admits."""
    for start, loss in (
        (PureFilter(1).charge(pure("1/3")), pure(Fraction(2, 3) + excess + Fraction(1, 10**9))),
        (budget(1, "1e-6").charge(zcdp("1/1000")), zcdp(1 + excess)),
        (RenyiFilter(alpha=3, limit=1), Spend(divergence=1.5)),
    ):
        before = (spent_of(start), start.left, start.adjacency)
        assert not start.fits(loss)
        with pytest.raises(BudgetExceeded):
            start.charge(replace(loss, adjacency=REPLACE_ONE))
        assert (spent_of(start), start.left, start.adjacency) == before


# ---- what is refused -------------------------------------------------------------------------------------

FILTERS = [
    PureFilter(10),
    RenyiFilter(alpha=2, limit=10),
]


def test_unknown_is_refused():
    """A loss without a bound of the filter's kind is not private, whatever else is known of it."""
    everything_else = [
        (PureFilter(1), Spend(concentrated=(Fraction(0), Fraction(0)), divergence=0.0)),
        (budget(1, "1e-6"), Spend(pure_epsilon=Fraction(0), divergence=0.0)),
        (
            RenyiFilter(alpha=2, limit=1),
            Spend(pure_epsilon=Fraction(0), concentrated=(Fraction(0), Fraction(0))),
        ),
    ]
    for filter_, loss in everything_else:
        for act in (filter_.fits, filter_.charge):
            with pytest.raises(NotPrivate):
                act(loss)


@pytest.mark.parametrize("bad", [-1, Fraction(-1, 10**9), math.nan, math.inf, 0.1, "0.1", True, None])
def test_an_amount_that_is_no_amount(bad):
    """Negative, inexact or absent amounts would give budget back or lose count of it."""
    with pytest.raises(NotPrivate):
        PureFilter(10).charge(Spend(pure_epsilon=bad))
    for pair in ((bad, Fraction(0)), (Fraction(0), bad)):
        with pytest.raises(NotPrivate):
            budget(1, "1e-6").charge(Spend(concentrated=pair))


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, -math.inf, "0.1", True, None, np.array([0.1, 0.2])])
def test_a_divergence_that_is_no_bound(bad):
    """NaN, infinities, negatives and arrays are no divergence; a plain 0 is."""
    filter_ = RenyiFilter(alpha=2, limit=10)
    with pytest.raises(NotPrivate):
        filter_.charge(Spend(divergence=bad))
    assert filter_.charge(Spend(divergence=-0.0)).spent == 0


def test_one_adjacency_a_filter():
    """The first typed loss fixes the neighbours; the other kind is refused, an untyped one is not."""
    for empty in (*FILTERS, budget(1, "1e-6")):
        free = Spend(pure_epsilon=Fraction(0), concentrated=(Fraction(0), Fraction(0)), divergence=0.0)
        assert empty.charge(free).adjacency is None
        typed = empty.charge(free).charge(replace(free, adjacency=ADD_OR_REMOVE_ONE))
        assert typed.adjacency is ADD_OR_REMOVE_ONE
        assert typed.charge(free) == typed
        assert typed.charge(free).charge(replace(free, adjacency=ADD_OR_REMOVE_ONE)) == typed
        for act in (typed.fits, typed.charge):
            with pytest.raises(Refused, match="neighbours"):
                act(replace(free, adjacency=REPLACE_ONE))
        fixed = replace(empty, adjacency="replace_one")
        assert fixed.adjacency is REPLACE_ONE
        with pytest.raises(InvalidParameter):
            fixed.charge(replace(free, adjacency=ADD_OR_REMOVE_ONE))


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "abc", None])
def test_bad_limits(bad):
    """A limit is a positive number, an order above 1, δ strictly between 0 and 1."""
    for make in (
        lambda: PureFilter(bad),
        lambda: RenyiFilter(alpha=2, limit=bad),
        lambda: RenyiFilter(alpha=bad, limit=1),
        lambda: ConcentratedFilter.create(epsilon=bad, delta="1e-6"),
        lambda: ConcentratedFilter.create(epsilon=1, delta=bad),
        lambda: RenyiFilter.create(epsilon=bad, delta="1e-6", alpha=8),
        lambda: RenyiFilter.create(epsilon=4, delta=bad, alpha=8),
        lambda: RenyiFilter.create(epsilon=4, delta="1e-6", alpha=bad),
        lambda: adaptive_pure_epsilon([1], delta=bad),
        lambda: odometer_epsilon(1, nu=bad, delta="1e-6"),
        lambda: odometer_epsilon(1, nu=1, delta=bad),
    ):
        with pytest.raises(InvalidParameter):
            make()


LIMITS = {"epsilon_limit": 1, "delta_limit": "1e-6", "delta_keys": "1e-7", "rho_limit": "1/1000"}
CREATE, ORDER = ConcentratedFilter.create, RenyiFilter.create


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: PureFilter(0), "limit must be positive; got 0."),
        (lambda: PureFilter(1, spent=-1), "spent must be at least 0; got -1."),
        (lambda: PureFilter(1, spent=2), "spent must be at most the limit (1); got 2."),
        (lambda: RenyiFilter(alpha=1, limit=1), "alpha must be above 1; got 1."),
        (lambda: RenyiFilter(alpha="x", limit=1), "alpha must be a number; got 'x'."),
        (lambda: RenyiFilter(alpha=2, limit=0), "limit must be positive; got 0."),
        (lambda: RenyiFilter(alpha=2, limit=1, spent="3/2"), "spent must be at most the limit (1); got '3/2'."),
        (lambda: ORDER(epsilon=0, delta="1e-6", alpha=2), "epsilon must be positive; got 0."),
        (lambda: ORDER(epsilon=1, delta=1, alpha=2), "delta must be strictly between 0 and 1; got 1."),
        (lambda: RenyiFilter(alpha=2, limit=1).epsilon(delta=1), "delta must be strictly between 0 and 1; got 1."),
        (lambda: CREATE(epsilon=0, delta="1e-6"), "epsilon must be positive; got 0."),
        (lambda: CREATE(epsilon=1, delta=0), "delta must be strictly between 0 and 1; got 0."),
        (lambda: CREATE(epsilon=1, delta="1/2", delta_keys=-1), "delta_keys must be at least 0; got -1."),
        (lambda: CREATE(epsilon=1, delta="1/2", delta_keys="1/2"), "delta_keys must be below delta (1/2); got '1/2'."),
        (lambda: ConcentratedFilter(**{**LIMITS, "epsilon_limit": 0}), "epsilon_limit must be positive; got 0."),
        (lambda: ConcentratedFilter(**{**LIMITS, "delta_limit": 1}), "delta_limit must be strictly between 0 and 1; got 1."),
        (lambda: ConcentratedFilter(**{**LIMITS, "rho_limit": 0}), "rho_limit must be positive; got 0."),
        (
            lambda: ConcentratedFilter(**{**LIMITS, "rho_limit": 1}),
            "rho_limit must be one that converts into at most epsilon_limit; got 1.",
        ),
        (lambda: ConcentratedFilter(**LIMITS, spent=(1, 0)), "rho must be at most the limit (1/1000); got 1."),
        (lambda: ConcentratedFilter(**LIMITS, spent=(0, 1)), "delta must be at most the limit (1/10000000); got 1."),
        (lambda: adaptive_pure_epsilon([-1], delta="1e-6"), "epsilon must be at least 0; got -1."),
        (lambda: adaptive_pure_epsilon([1], delta=1), "delta must be strictly between 0 and 1; got 1."),
        (lambda: odometer_epsilon(-1, nu=1, delta="1e-6"), "variance must be at least 0; got -1."),
        (lambda: odometer_epsilon(1, nu=0, delta="1e-6"), "nu must be positive; got 0."),
        (lambda: odometer_epsilon(1, nu=1, delta=1), "delta must be strictly between 0 and 1; got 1."),
    ],
)
def test_a_refusal_names_what_is_wrong(make, sentence):
    """The parameter, its rule and what was given."""
    with pytest.raises(InvalidParameter) as refusal:
        make()
    assert refusal.value.sentence == sentence


@pytest.mark.parametrize(
    ("make", "loss", "sentence"),
    [
        (
            lambda: PureFilter(1),
            Spend(pure_epsilon=0.5),
            "the loss has no known epsilon of pure privacy (an exact rational of at least 0); got 0.5",
        ),
        (
            lambda: budget(1, "1e-6"),
            Spend(concentrated=(-1, 0)),
            "the loss has no known rho (an exact rational of at least 0); got -1",
        ),
        (
            lambda: budget(1, "1e-6"),
            Spend(concentrated=(0, None)),
            "the loss has no known delta (an exact rational of at least 0); got None",
        ),
        (lambda: budget(1, "1e-6"), Spend(), "the loss has no known bound of zero-concentrated differential privacy"),
        (
            lambda: RenyiFilter(alpha="3/2", limit=1),
            Spend(),
            "the loss has no known finite Rényi divergence of order 3/2; got inf",
        ),
    ],
)
def test_a_loss_without_a_bound_is_told_which(make, loss, sentence):
    """The bound that is missing, and what stood in its place."""
    filter_ = make()
    for act in (filter_.fits, filter_.charge):
        with pytest.raises(NotPrivate) as refusal:
            act(loss)
        assert refusal.value.sentence == sentence


def test_refusals_have_hints_where_something_helps():
    """What to do about other neighbours, about an order that delta cannot pay, and about a split that leaves nothing."""
    with pytest.raises(InvalidParameter) as other:
        PureFilter(1, adjacency="replace_one").charge(replace(pure(0), adjacency=ADD_OR_REMOVE_ONE))
    assert str(other.value) == (
        "the loss must be about the filter's neighbours (replace_one); got add_or_remove_one.\n"
        "Hint: an add_or_remove_one loss becomes one for replace_one by .group(2)."
    )
    with pytest.raises(InvalidParameter) as split:
        CREATE(epsilon=1, delta="1/2", delta_keys="3/4")
    assert split.value.hint == "what is left of delta turns rho into epsilon"


def test_long_amounts_are_shortened():
    """Sixteen characters stand as they are; longer ones become six digits."""
    whole, longer = Fraction(1, 10**13), Fraction(1, 10**14)
    assert (len(str(whole)), len(str(longer))) == (16, 17)
    for left, shown in ((whole, "1/10000000000000"), (longer, "1e-14"), (Fraction(2, 3 * 10**14), "6.66666e-15")):
        with pytest.raises(BudgetExceeded) as refusal:
            PureFilter(1, spent=1 - left).charge(pure(1))
        assert refusal.value.sentence == f"epsilon must be at most {shown}, what is left of 1; got 1."


def test_limits_and_displays_are_those_of_the_conversions():
    """Each number that a filter shows or keeps is the conversion of its own amounts, at its own δ."""
    from curador.privacy.convert import renyi_to_epsilon, rho_for, rho_to_epsilon

    made = CREATE(epsilon=2, delta="1e-6", delta_keys="1e-7", adjacency="replace_one")
    left = Fraction(9, 10**7)
    assert (made.epsilon_limit, made.delta_limit, made.delta_keys, made.delta_conv) == (2, Fraction(1, 10**6), left / 9, left)
    assert made.rho_limit == rho_for(epsilon=2, delta=left)
    assert made.adjacency is REPLACE_ONE
    assert made.spent == (0, 0)
    half = made.charge(zcdp(made.rho_limit / 2, "1e-8")).charge(zcdp(made.rho_limit / 4, "2e-8"))
    assert half.spent == (made.rho_limit * 3 / 4, Fraction(3, 10**8))
    assert half.left == (made.rho_limit / 4, Fraction(7, 10**8))
    assert half.epsilon() == rho_to_epsilon(made.rho_limit * 3 / 4, delta=left)
    assert half.adjacency is REPLACE_ONE

    order = ORDER(epsilon=4, delta="1e-6", alpha=12, adjacency="replace_one")
    assert (order.alpha, order.adjacency, order.spent) == (12, REPLACE_ONE, 0)
    spent = order.charge(Spend(divergence=0.5)).charge(Spend(divergence=0.25))
    assert spent.spent == Fraction(3, 4)
    assert spent.left == order.limit - Fraction(3, 4)
    assert spent.epsilon(delta="1e-5") == renyi_to_epsilon(12, Fraction(3, 4), delta=Fraction(1, 10**5))

    assert PureFilter(1, adjacency="replace_one").adjacency is REPLACE_ONE
    third = PureFilter(1).charge(pure("1/6")).charge(pure("1/6"))
    assert Fraction(third.epsilon()) >= third.spent == Fraction(1, 3) > Fraction(math.nextafter(third.epsilon(), 0))
    assert RenyiFilter(alpha=2, limit=1, adjacency="replace_one").adjacency is REPLACE_ONE


@pytest.mark.parametrize(
    ("epsilon", "delta", "alpha"), [(4, "1e-6", 12), (1, "1/2", "1.2"), ("1/100", "9/10", "1.05"), (20, "1/10", 3)]
)
def test_the_limit_of_an_order_is_the_largest(epsilon, delta, alpha):
    """It converts into at most ε, and a billionth more does not, also where it lies far above ε."""
    from curador.privacy.convert import renyi_to_epsilon

    made = ORDER(epsilon=epsilon, delta=delta, alpha=alpha)
    above = made.limit * (1 + Fraction(1, 10**9))
    assert renyi_to_epsilon(made.alpha, made.limit, delta=delta) <= Fraction(epsilon)
    assert renyi_to_epsilon(made.alpha, above, delta=delta) > Fraction(epsilon)


def test_curador_losses_are_chargeable():
    """The project's own records carry what the filters ask for."""
    from curador.privacy.losses import Concentrated, GaussianLoss, Pure

    assert PureFilter(1).charge(Pure(epsilon="1/3")).left == Fraction(2, 3)
    assert budget(1, "1e-6").charge(Concentrated(rho="1e-3", delta="1e-9")).spent == (
        Fraction(1, 1000),
        Fraction(1, 10**9),
    )
    assert budget(1, "1e-6").charge(3 * GaussianLoss(mu="0.01")).spent.rho == Fraction(3, 20000)
    assert RenyiFilter(alpha=8, limit=1).charge(GaussianLoss(mu="0.1")).epsilon(delta="1e-6") < 2
    with pytest.raises(NotPrivate):
        PureFilter(1).charge(GaussianLoss(mu="0.01"))


# ---- the adversary of a running split of δ ---------------------------------------------------------------


def log_delta_of(rho, epsilon):
    """The least over orders α of (α−1)(αρ − ε) + α log(1 − 1/α) − log(α−1)."""
    from scipy.optimize import minimize_scalar

    def at(t):
        alpha = 1 + math.exp(t)
        return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)

    return minimize_scalar(at, bounds=(-6, 12), method="bounded", options={"xatol": 1e-10}).fun


@dataclass(frozen=True)
class RunningSplit:
    """WRONG: admits while Σρ converts into ε with whatever δ the keys have left over."""

    epsilon: float
    delta: float
    rho: Fraction = Fraction(0)
    keys: Fraction = Fraction(0)

    def fits(self, loss):
        """Decide, wrongly."""
        rho, keys = self.rho + loss.concentrated[0], self.keys + loss.concentrated[1]
        return keys < self.delta and math.exp(log_delta_of(float(rho), self.epsilon)) <= self.delta - float(keys)

    def charge(self, loss):
        """Spend what was admitted."""
        assert self.fits(loss)
        rho, keys = loss.concentrated
        return replace(self, rho=self.rho + rho, keys=self.keys + keys)


@functools.cache
def splitting_adversary():
    """Spend 65 % of ρ on Gaussian noise. Its loss L is low: all of δ for keys. It is high: the rest of ρ.

    Returns the loss before the branch, the two after it, and the true δ(ε) of the whole over the δ claimed.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    epsilon, delta, threshold = 1.0, 1e-6, 0.467
    whole = brentq(lambda rho: log_delta_of(rho, epsilon) - math.log(delta), 1e-6, 2)
    first = 0.65 * whole
    keys = delta - math.exp(log_delta_of(first, epsilon))
    mu1, mu2 = math.sqrt(2 * first), math.sqrt(2 * (whole - first))
    x = np.linspace(-12, 12, 60_001)
    weight = norm.pdf(x) * (x[1] - x[0])
    loss = mu1**2 / 2 + mu1 * x
    z = epsilon - loss
    # Keys: with probability δ_keys the person shows; otherwise nothing more is learnt.
    low = np.maximum(0, 1 - np.exp(z)) * (1 - keys) + keys
    high = norm.cdf(mu2 / 2 - z / mu2) - np.exp(z) * norm.cdf(-mu2 / 2 - z / mu2)
    true = float((weight * np.where(loss <= threshold, low, high)).sum())
    slightly_less = 1 - 1e-9  # so that no rounding of the conversion decides
    return (
        zcdp(Fraction(first * slightly_less)),
        zcdp(0, Fraction(keys * slightly_less)),
        zcdp(Fraction((whole - first) * slightly_less)),
        true / delta,
    )


def test_a_running_split_of_delta_is_not_private():
    """The wrong filter admits both branches, and together they reach 1.204 times the δ that it claims."""
    first, low, high, ratio = splitting_adversary()
    after = RunningSplit(1.0, 1e-6).charge(first)
    assert after.fits(low)
    assert after.fits(high)
    assert ratio == pytest.approx(1.204, abs=5e-4)


@pytest.mark.parametrize("delta_keys", [None, 0, "1e-9", "2e-7", "4e-7", "6e-7", "8e-7", "9.99e-7"])
def test_a_fixed_split_refuses_a_branch(delta_keys):
    """Whatever the split, one of the two branches does not fit, if the first step fits at all."""
    first, low, high, _ = splitting_adversary()
    start = budget(1, "1e-6", delta_keys)
    if start.fits(first):
        after = start.charge(first)
        assert not (after.fits(low) and after.fits(high))


def test_each_branch_fits_some_split():
    """The refusals above are not for want of room: each branch fits the split that is made for it."""
    first, low, high, _ = splitting_adversary()
    assert budget(1, "1e-6", 0).charge(first).fits(high)
    assert budget(1, "1e-6", low.concentrated[1]).charge(first).fits(low)


# ---- the adversary of "some order fits" ------------------------------------------------------------------

ORDERS = (8, 64)


def divergence(p, q, alpha):
    alpha = MP.mpf(alpha.numerator) / alpha.denominator if isinstance(alpha, Fraction) else alpha
    return MP.log(sum(x**alpha * y ** (1 - alpha) for x, y in zip(p, q, strict=True))) / (alpha - 1)


def worse(p, q, alpha):
    return max(divergence(p, q, alpha), divergence(q, p, alpha))


def room(alpha, epsilon, delta):
    """The divergence of order α that converts into (ε, δ)."""
    return epsilon - MP.log((alpha - 1) / MP.mpf(alpha)) + (MP.log(delta) + MP.log(alpha)) / (alpha - 1)


def pair(p, q):
    return Spend(divergence=lambda alpha: math.nextafter(float(worse(p, q, alpha)), math.inf))


@dataclass(frozen=True)
class SomeOrder:
    """WRONG: admits while, at some order, the divergences fit into that order's own budget."""

    epsilon: float
    delta: float
    spent: tuple[Fraction, ...] = (Fraction(0),) * len(ORDERS)

    def totals(self, loss):
        """Return what each order would have spent."""
        return tuple(used + Fraction(loss.renyi(a)) for a, used in zip(ORDERS, self.spent, strict=True))

    def fits(self, loss):
        """Decide, wrongly."""
        rooms = (float(room(a, self.epsilon, self.delta)) for a in ORDERS)
        return any(total <= limit for total, limit in zip(self.totals(loss), rooms, strict=True))

    def charge(self, loss):
        """Spend what was admitted."""
        assert self.fits(loss)
        return replace(self, spent=self.totals(loss))


@functools.cache
def order_adversary():
    """A first answer that leans to one order or the other; then two points that just fit that order.

    Returns the loss before the branch, the two after it, and the true δ(ε): a sum over four outcomes.
    """
    epsilon, delta = MP.mpf(4), MP.mpf("1e-6")
    tilt = MP.mpf(8) / (ORDERS[1] - ORDERS[0])
    p1 = [MP.mpf(1), MP.exp(-(MP.mpf(sum(ORDERS)) / 2 - 1) * tilt)]
    p1 = [x / sum(p1) for x in p1]
    q1 = [p1[0], p1[1] * MP.exp(-tilt)]
    q1 = [x / sum(q1) for x in q1]
    branches, true = [], MP.mpf(0)
    for outcome, alpha in enumerate(ORDERS):
        left = (room(alpha, epsilon, delta) - worse(p1, q1, alpha)) * (1 - MP.mpf("1e-13"))
        step = epsilon + MP.log(MP.mpf(alpha) / (alpha - 1)) - MP.log(p1[outcome] / q1[outcome])
        low, high = MP.mpf(-200), MP.mpf("-1e-9")
        for _ in range(200):
            middle = (low + high) / 2
            p, q = MP.exp(middle), MP.exp(middle - step)
            fits = worse([p, 1 - p], [q, 1 - q], alpha) <= left
            low, high = (middle, high) if fits else (low, middle)
        p, q = MP.exp(low), MP.exp(low - step)
        branches.append(pair([p, 1 - p], [q, 1 - q]))
        weight = MP.exp(epsilon)
        true += max(0, p1[outcome] * p - weight * q1[outcome] * q)
        true += max(0, p1[outcome] * (1 - p) - weight * q1[outcome] * (1 - q))
    return pair(p1, q1), branches[0], branches[1], float(true)


def test_some_order_fits_is_not_private():
    """The wrong filter admits both branches, and together they reach 1.964e-6 where it claims 1e-6."""
    first, one, other, true = order_adversary()
    after = SomeOrder(4.0, 1e-6).charge(first)
    assert after.fits(one)
    assert after.fits(other)
    assert true == pytest.approx(1.964e-6, rel=5e-4)


@pytest.mark.parametrize("alpha", [*ORDERS, "5.5", 12, 24, 40, 200])
def test_one_order_refuses_a_branch(alpha):
    """At any order fixed in advance one of the two branches does not fit."""
    first, one, other, _ = order_adversary()
    start = RenyiFilter.create(epsilon=4, delta="1e-6", alpha=alpha)
    assert start.fits(first)
    after = start.charge(first)
    assert not (after.fits(one) and after.fits(other))


def test_each_branch_fits_its_order():
    """The refusals above are not for want of room: each branch fits the order that it was made for."""
    first, *branches, _ = order_adversary()
    for alpha, branch in zip(ORDERS, branches, strict=True):
        assert RenyiFilter.create(epsilon=4, delta="1e-6", alpha=alpha).charge(first).fits(branch)


# ---- fully adaptive pure losses --------------------------------------------------------------------------


def test_golden():
    """100 times 0.1 at 1e-6, and the odometer at V = ν = 1, from above."""
    for got, true in (
        (adaptive_pure_epsilon([0.1] * 100, delta="1e-6"), "5.7565217697569319786"),
        (odometer_epsilon(1, nu=1, delta="1e-6"), "8.0265089246593594294"),
    ):
        assert Fraction(true) <= Fraction(got) <= Fraction(true) * (1 + Fraction(1, 10**14))


@SMALL
@given(st.lists(st.floats(1e-6, 5), min_size=1, max_size=20), st.floats(1e-300, 0.999), st.floats(1e-6, 1e3))
def test_adaptive_bounds_against_50_digits(epsilons, delta, nu):
    """Both formulas from above and within 1e-13, down to δ = 1e-300."""
    failure = MP.mpf(repr(delta))
    variance = sum(MP.mpf(repr(e)) ** 2 for e in epsilons)
    true = MP.sqrt(2 * variance * MP.log(1 / failure)) + variance / 2
    got = adaptive_pure_epsilon(epsilons, delta=delta)
    assert true <= got <= true * (1 + MP.mpf("1e-12"))
    total = sum(Fraction(repr(e)) ** 2 for e in epsilons)
    weight = MP.mpf(repr(nu))
    root = (variance + weight) * MP.log((variance + weight) / (weight * failure**2))
    true = variance / 2 + MP.sqrt(root)
    assert true <= odometer_epsilon(total, nu=nu, delta=delta) <= true * (1 + MP.mpf("1e-12"))


def test_nothing_ran():
    """No mechanism, no loss; the odometer starts at its price of being right for ever."""
    assert adaptive_pure_epsilon([], delta="1e-6") == 0.0
    assert odometer_epsilon(0, nu=1, delta="1e-6") == pytest.approx(math.sqrt(2 * math.log(1e6)))
    with pytest.raises(InvalidParameter):
        adaptive_pure_epsilon([-1], delta="1e-6")
    with pytest.raises(InvalidParameter):
        odometer_epsilon(-1, nu=1, delta="1e-6")


def test_the_odometer_costs_more_than_the_filter():
    """Being right at every moment costs more than being right at one limit fixed in advance."""
    for count in (1, 10, 100):
        once = adaptive_pure_epsilon(["0.1"] * count, delta="1e-6")
        assert odometer_epsilon(Fraction(count, 100), nu=1, delta="1e-6") > once


def test_what_a_refusal_says_is_true():
    """A charge of what is said to be left fits, and what was asked is not shown as less than it was."""
    third = Fraction(10**12, 3 * 10**12 + 1)
    full = PureFilter(limit=third)
    with pytest.raises(BudgetExceeded) as refusal:
        full.charge(pure(third + Fraction(1, 10**20)))
    left, asked = refusal.value.rule.split("at most ")[1].split(",")[0], refusal.value.got
    assert Fraction(left) <= third < Fraction(asked)
    assert full.fits(pure(left))

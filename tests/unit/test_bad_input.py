"""Whatever is wrong is refused in one sentence, at once, by the right error; and nothing ever answers NaN."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import curador as cu
from curador.errors import CuradorError, InvalidParameter, NotPrivate, Refused
from curador.privacy.loss import Loss, compose
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    KeySelection,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
)

SENTENCE = re.compile(r"\A[^\n]{1,300}\.?(\nHint: [^\n]{1,200})?\Z")
RULE = re.compile(r"\A[^\n;]+ must be [^\n]+; got [^\n]*\.(\nHint: [^\n]+)?\Z")

NOT_NUMBERS = [
    math.nan,
    math.inf,
    -math.inf,
    True,
    "abc",
    "",
    None,
    1j,
    [1],
    np.float64("nan"),
    Decimal("NaN"),
    b"1",
    np.array([1.0, 2.0]),
]
NEGATIVE = [-1, "-1e-9", Fraction(-1, 3)]
WRONG_DELTAS = [*NOT_NUMBERS, *NEGATIVE, 1, 1.0, 2, "1.0000001"]
WRONG_WHOLE = [*NOT_NUMBERS, *NEGATIVE, 1.5, "1/2"]


def name_of(value):
    return re.sub(r"\s+", " ", repr(value))


def refused(action, *, rule=True):
    """Run the action; it must be refused in the form that every refusal has."""
    with pytest.raises(Refused) as caught:
        action()
    text = str(caught.value)
    assert (RULE if rule else SENTENCE).match(text), text
    assert "Traceback" not in text
    assert "File " not in text
    return caught.value


PARAMETERS = {
    "GaussianLoss.mu": (lambda x: GaussianLoss(mu=x), [*NOT_NUMBERS, *NEGATIVE]),
    "DiscreteGaussianLoss.sigma2": (lambda x: DiscreteGaussianLoss(sigma2=x, sensitivity=1), [*NOT_NUMBERS, *NEGATIVE, 0]),
    "DiscreteGaussianLoss.sensitivity": (lambda x: DiscreteGaussianLoss(sigma2=1, sensitivity=x), WRONG_WHOLE),
    "DiscreteGaussianVectorLoss.sensitivity_squared": (
        lambda x: DiscreteGaussianVectorLoss(sigma2=1, sensitivity_squared=x, dimension=2),
        WRONG_WHOLE,
    ),
    "DiscreteGaussianVectorLoss.dimension": (
        lambda x: DiscreteGaussianVectorLoss(sigma2=1, sensitivity_squared=1, dimension=x),
        [*WRONG_WHOLE, 0],
    ),
    "LaplaceLoss.epsilon": (lambda x: LaplaceLoss(epsilon=x), [*NOT_NUMBERS, *NEGATIVE]),
    "DiscreteLaplaceLoss.scale": (lambda x: DiscreteLaplaceLoss(scale=x, sensitivity=1), [*NOT_NUMBERS, *NEGATIVE, 0]),
    "DiscreteLaplaceLoss.sensitivity": (lambda x: DiscreteLaplaceLoss(scale=1, sensitivity=x), WRONG_WHOLE),
    "RandomizedResponseLoss.epsilon": (lambda x: RandomizedResponseLoss(epsilon=x), [*NOT_NUMBERS, *NEGATIVE]),
    "RandomizedResponseLoss.categories": (lambda x: RandomizedResponseLoss(epsilon=1, categories=x), [*WRONG_WHOLE, 0, 1]),
    "BoundedRange.epsilon": (lambda x: BoundedRange(epsilon=x), [*NOT_NUMBERS, *NEGATIVE]),
    "Pure.epsilon": (lambda x: Pure(epsilon=x), [*NOT_NUMBERS, *NEGATIVE]),
    "Approx.epsilon": (lambda x: Approx(epsilon=x, delta=0), [*NOT_NUMBERS, *NEGATIVE]),
    "Approx.delta": (lambda x: Approx(epsilon=1, delta=x), WRONG_DELTAS),
    "Concentrated.rho": (lambda x: Concentrated(rho=x), [*NOT_NUMBERS, *NEGATIVE]),
    "Concentrated.delta": (lambda x: Concentrated(rho=1, delta=x), WRONG_DELTAS),
    "KeySelection.sigma2": (lambda x: KeySelection(sigma2=x, keys=1, delta=0), [*NOT_NUMBERS, *NEGATIVE, 0]),
    "KeySelection.keys": (lambda x: KeySelection(sigma2=1, keys=x, delta=0), [*WRONG_WHOLE, 0]),
    "KeySelection.delta": (lambda x: KeySelection(sigma2=1, keys=1, delta=x), WRONG_DELTAS),
    "Pure.adjacency": (lambda x: Pure(epsilon=1, adjacency=x), ["friends", 1, True, "REPLACE_ONE", ""]),
    "Loss.group": (lambda x: Pure(epsilon=1).group(x), [*WRONG_WHOLE, 0]),
    "Loss.subsample.rate": (lambda x: Pure(epsilon=1).subsample(rate=x), [*NOT_NUMBERS, *NEGATIVE, 0, 1.5, 2]),
    "Loss.subsample.scheme": (lambda x: Pure(epsilon=1).subsample(rate="0.5", scheme=x), ["", "Poisson", None, 1]),
    "Loss.subsample.adjacency": (lambda x: Pure(epsilon=1).subsample(rate="0.5", adjacency=x), ["", "friends", 1]),
    "Loss.mul": (lambda x: Pure(epsilon=1) * x, [value for value in WRONG_WHOLE if not isinstance(value, np.ndarray)]),
    "compose": (lambda x: compose([Pure(epsilon=1), x]), [1, None, "loss", 0, math.nan]),
    "Loss.epsilon": ((2 * Pure(epsilon=1)).epsilon, WRONG_DELTAS),
    "Loss.epsilon_interval": (lambda x: GaussianLoss(mu=1).epsilon_interval(x), WRONG_DELTAS),
    "Loss.readings": (GaussianLoss(mu=1).readings, WRONG_DELTAS),
    "Loss.delta": (lambda x: GaussianLoss(mu=1).delta(x), [*NOT_NUMBERS, *NEGATIVE]),
    "Loss.delta_interval": (lambda x: GaussianLoss(mu=1).delta_interval(x), [*NOT_NUMBERS, *NEGATIVE]),
    "Loss.renyi": (
        lambda x: GaussianLoss(mu=1).renyi(x),
        [
            value
            for value in (*NOT_NUMBERS, *NEGATIVE, 0, 0.5, "0.999")
            if not isinstance(value, np.ndarray) and value is not math.inf
        ],
    ),
    "Loss.renyi of arrays": (
        lambda x: GaussianLoss(mu=1).renyi(np.array(x)),
        [[0.5], [math.nan, 2.0], [-math.inf], [2.0, 0.0]],
    ),
    "Loss.tradeoff": (
        lambda x: GaussianLoss(mu=1).tradeoff(x),
        [value for value in (*NOT_NUMBERS, *NEGATIVE, 2) if not isinstance(value, np.ndarray)],
    ),
    "Gaussian.sigma": (lambda x: cu.Gaussian(sigma=x, sensitivity=1), [*NOT_NUMBERS, *NEGATIVE, 0]),
    "Gaussian.sensitivity": (lambda x: cu.Gaussian(sigma=1, sensitivity=x), [*NOT_NUMBERS, *NEGATIVE]),
    "Laplace.scale": (lambda x: cu.Laplace(scale=x, sensitivity=1), [*NOT_NUMBERS, *NEGATIVE, 0]),
    "DiscreteGaussian.sigma": (lambda x: cu.DiscreteGaussian(sigma=x, sensitivity=1), [*NOT_NUMBERS, *NEGATIVE, 0]),
    "DiscreteLaplace.scale": (lambda x: cu.DiscreteLaplace(scale=x, sensitivity=1), [*NOT_NUMBERS, *NEGATIVE, 0]),
    "RandomizedResponse.gamma": (
        lambda x: cu.RandomizedResponse(gamma=x),
        [value for value in (*NOT_NUMBERS, *NEGATIVE, 0, 1, "0.4") if value is not None],
    ),
    "Exponential.epsilon": (lambda x: cu.Exponential(epsilon=x, sensitivity=1), [*NOT_NUMBERS, *NEGATIVE, 0]),
    "calibrate.epsilon": (
        lambda x: cu.Gaussian.calibrate(sensitivity=1, epsilon=x, delta="1e-6"),
        [value for value in (*NOT_NUMBERS, *NEGATIVE, 0) if value is not None],
    ),
    "calibrate.delta": (
        lambda x: cu.Laplace.calibrate(sensitivity=1, epsilon=1, delta=x),
        [value for value in WRONG_DELTAS if value is not None],
    ),
    "calibrate.count": (lambda x: cu.Laplace.calibrate(sensitivity=1, epsilon=1, count=x), [*WRONG_WHOLE, 0]),
    "calibrate.rho": (
        lambda x: cu.Gaussian.calibrate(sensitivity=1, rho=x),
        [value for value in (*NOT_NUMBERS, *NEGATIVE, 0) if value is not None],
    ),
    "calibrate.accuracy": (
        lambda x: cu.Gaussian.calibrate(sensitivity=1, accuracy=x),
        [value for value in (*NOT_NUMBERS, *NEGATIVE, 0) if value is not None],
    ),
    "calibrate.confidence": (
        lambda x: cu.Gaussian.calibrate(sensitivity=1, accuracy=1, confidence=x),
        [*NOT_NUMBERS, *NEGATIVE, 0, 1, 2],
    ),
    "calibrate.rate": (
        lambda x: cu.Gaussian.calibrate(sensitivity=1, epsilon=1, delta="1e-6", rate=x),
        [value for value in (*NOT_NUMBERS, *NEGATIVE, 0, 1.5) if value is not None],
    ),
}
TABLE = [(place, value) for place, (_, values) in PARAMETERS.items() for value in values]


@pytest.mark.slow
@pytest.mark.parametrize(("place", "value"), TABLE, ids=[f"{place}={name_of(value)}" for place, value in TABLE])
def test_a_bad_parameter_is_refused_in_one_sentence(place, value):
    """*x must be rule; got value.*, by InvalidParameter, which is also a ValueError."""
    error = refused(lambda: PARAMETERS[place][0](value))
    assert isinstance(error, InvalidParameter)
    assert isinstance(error, ValueError)


FINITE = {
    "empty": ([], []),
    "text": ("ab", "ab"),
    "none": (None, None),
    "number": (1, 1),
    "lengths": (["0.5", "0.5"], [1]),
    "sum below": (["0.5", "0.4"], ["0.5", "0.5"]),
    "sum above": (["0.5", "0.5"], ["0.5", "0.6"]),
    "negative": (["1.5", "-0.5"], ["0.5", "0.5"]),
    "nan": ([math.nan, 1], ["0.5", "0.5"]),
    "bool": ([True, False], ["0.5", "0.5"]),
    "word": (["a", "b"], ["0.5", "0.5"]),
    "almost one": ([1 / 3, 1 / 3, 1 / 3], [1 / 3, 1 / 3, 1 / 3]),
}


@pytest.mark.parametrize("name", FINITE)
def test_a_bad_pair_is_refused(name):
    """A finite pair is two lists of the same length of exact probabilities."""
    p, q = FINITE[name]
    refused(lambda: Finite(p=p, q=q))


RECORDS = {
    "no mapping": 5,
    "none": None,
    "list": [],
    "text": "{}",
    "no version": {"kind": "Pure", "epsilon": "1"},
    "future": {"version": 2, "kind": "Pure", "epsilon": "1"},
    "version word": {"version": "1", "kind": "Pure", "epsilon": "1"},
    "no kind": {"version": 1},
    "unknown kind": {"version": 1, "kind": "Cauchy", "scale": "1"},
    "a class of ours": {"version": 1, "kind": "Loss"},
    "kind of a list": {"version": 1, "kind": ["Pure"]},
    "kind none": {"version": 1, "kind": None},
    "missing field": {"version": 1, "kind": "Pure"},
    "extra field": {"version": 1, "kind": "Pure", "epsilon": "1", "delta": "0"},
    "stored name": {"version": 1, "kind": "Pure", "epsilon0": "1"},
    "bad number": {"version": 1, "kind": "Pure", "epsilon": "one"},
    "nan": {"version": 1, "kind": "Pure", "epsilon": math.nan},
    "negative": {"version": 1, "kind": "Pure", "epsilon": "-1"},
    "bad relation": {"version": 1, "kind": "Pure", "epsilon": "1", "relation": "friends"},
    "parts number": {"version": 1, "kind": "Composed", "parts": 5},
    "parts none": {"version": 1, "kind": "Composed", "parts": None},
    "part number": {"version": 1, "kind": "Composed", "parts": [5]},
    "part list": {"version": 1, "kind": "Composed", "parts": [["count", "loss"]]},
    "part without loss": {"version": 1, "kind": "Composed", "parts": [{"count": 1}]},
    "part without count": {"version": 1, "kind": "Composed", "parts": [{"loss": {"kind": "Pure", "epsilon": "1"}}]},
    "count 0": {"version": 1, "kind": "Composed", "parts": [{"count": 0, "loss": {"kind": "Pure", "epsilon": "1"}}]},
    "count 1.5": {"version": 1, "kind": "Composed", "parts": [{"count": 1.5, "loss": {"kind": "Pure", "epsilon": "1"}}]},
    "count true": {"version": 1, "kind": "Composed", "parts": [{"count": True, "loss": {"kind": "Pure", "epsilon": "1"}}]},
    "base none": {"version": 1, "kind": "Group", "size": 2, "base": None},
    "rate 2": {
        "version": 1,
        "kind": "Subsampled",
        "rate": "2",
        "scheme": "poisson",
        "adjacency": "add_or_remove_one",
        "base": {"kind": "Pure", "epsilon": "1"},
    },
    "scheme list": {
        "version": 1,
        "kind": "Subsampled",
        "rate": "1",
        "scheme": ["poisson"],
        "adjacency": "add_or_remove_one",
        "base": {"kind": "Pure", "epsilon": "1"},
    },
    "key number": {1: 2, "version": 1, "kind": "Pure", "epsilon": "1"},
    "pair number": {"version": 1, "kind": "Finite", "p": 1, "q": 1},
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_bad_record_is_refused(name):
    """A record that is not exactly one of ours is refused, never guessed and never a trace."""
    refused(lambda: cu.loss_from_record(RECORDS[name]))


def test_an_unproved_record_is_refused_by_its_rule():
    """A stored sample that has no proof is not read back into one."""
    base = {"kind": "Concentrated", "rho": "1", "delta": "0", "relation": None}
    record = {
        "version": 1,
        "kind": "Subsampled",
        "rate": "0.1",
        "scheme": "poisson",
        "adjacency": "add_or_remove_one",
        "base": base,
    }
    error = refused(lambda: cu.loss_from_record(record), rule=False)
    assert isinstance(error, NotPrivate)


def test_operators_refuse_foreigners():
    """Only losses add; numbers that are not 0 and losses do not multiply."""
    for foreign in (1, "x", None, 1.5, [Pure(epsilon=1)]):
        with pytest.raises((TypeError, Refused)):
            _ = Pure(epsilon=1) + foreign
    with pytest.raises((TypeError, Refused)):
        _ = Pure(epsilon=1) * Pure(epsilon=1)
    with pytest.raises((TypeError, Refused)):
        _ = Pure(epsilon=1) - Pure(epsilon=1)


# ---- extremes: an answer on the safe side, or a refusal ---------------------------------------------------------------

EXTREMES: dict[str, Loss] = {
    "mu 1e-200": GaussianLoss(mu="1e-200"),
    "mu 1e-30": GaussianLoss(mu="1e-30"),
    "mu 1e10": GaussianLoss(mu="1e10"),
    "mu 1e200": GaussianLoss(mu="1e200"),
    "laplace 1e-200": LaplaceLoss(epsilon="1e-200"),
    "laplace 1e-12": LaplaceLoss(epsilon="1e-12"),
    "laplace 1e4": LaplaceLoss(epsilon="1e4"),
    "pure 1e-200": Pure(epsilon="1e-200"),
    "pure 1e-12": Pure(epsilon="1e-12"),
    "pure 1e4": Pure(epsilon="1e4"),
    "pure 1e320": Pure(epsilon="1e320"),
    "range 1e-12": BoundedRange(epsilon="1e-12"),
    "range 1e4": BoundedRange(epsilon="1e4"),
    "approx 1e-320": Approx(epsilon=1, delta="1e-320"),
    "approx almost 1": Approx(epsilon=1, delta="0.99999999999999999999"),
    "rho 1e-30": Concentrated(rho="1e-30"),
    "rho 1e10": Concentrated(rho="1e10"),
    "discrete laplace 1e-4": DiscreteLaplaceLoss(scale="1e-4", sensitivity=1),
    "discrete laplace 1e15": DiscreteLaplaceLoss(scale="1e15", sensitivity=10**15),
    "discrete gaussian 1e-6": DiscreteGaussianLoss(sigma2="1e-6", sensitivity=1),
    "discrete gaussian 1e40": DiscreteGaussianLoss(sigma2="1e40", sensitivity=10**20),
    "million": 10**6 * Pure(epsilon="1e-3"),
    "trillion": 10**12 * GaussianLoss(mu="1e-6"),
    "trillion responses": 10**12 * Pure(epsilon="1e-6"),
    "finite certain": Finite(p=[1, 0], q=[0, 1]),
    "finite nearly": Finite(p=["1e-300", 1 - Fraction("1e-300")], q=[Fraction(1, 2), Fraction(1, 2)]),
    "categories 1e9": RandomizedResponseLoss(epsilon=1, categories=10**9),
}
ASKED = {
    "epsilon": lambda loss: [loss.epsilon(delta) for delta in ("0", "1e-2", "1e-30", "1e-300", "1e-320", "1e-400")],
    "interval": lambda loss: [end for delta in ("0", "1e-2", "1e-30", "1e-400") for end in loss.epsilon_interval(delta)],
    "delta": lambda loss: [loss.delta(epsilon) for epsilon in ("0", "1e-300", "1", "700", "1e5")],
    "renyi": lambda loss: [loss.renyi(alpha) for alpha in (1, "1.0000000001", 2, 1e4, math.inf)],
    "rho": lambda loss: [loss.rho],
    "tradeoff": lambda loss: [loss.tradeoff(rate) for rate in ("0", "1e-300", "0.5", "1")],
}


LONG = {("trillion responses", "tradeoff")}
"""Ten seconds of CPU by itself, a quarter of all others together."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "question"),
    [
        pytest.param(name, question, marks=[pytest.mark.long] if (name, question) in LONG else [])
        for name in EXTREMES
        for question in ASKED
    ],
)
def test_extremes_are_answered_or_refused(name, question):
    """No NaN, no negative number, no trace: a float on the safe side, +∞, or a refusal."""
    try:
        answers = ASKED[question](EXTREMES[name])
    except CuradorError as error:
        answers = [] if SENTENCE.match(str(error)) else [math.nan]
    for answer in answers:
        assert answer >= 0  # no NaN: it is not


@pytest.mark.parametrize(
    "name", ["mu 1e-200", "mu 1e-30", "laplace 1e-200", "laplace 1e-12", "pure 1e-200", "pure 1e-12", "range 1e-12"]
)
def test_a_tiny_loss_is_not_nothing(name):
    """δ at ε = 0 of the smallest losses is at least the true one: 2Φ(μ/2) − 1, (1 − e^(−ε/2)), tanh(ε/2), about ε/4."""
    tiny = Fraction(name.split()[1])
    share = {"mu": Fraction(39, 100), "laplace": Fraction(49, 100), "pure": Fraction(49, 100), "range": Fraction(0)}[
        name.split()[0]
    ]
    assert EXTREMES[name].rho > 0
    try:
        got, order_two = EXTREMES[name].delta(0), EXTREMES[name].renyi(2)
    except CuradorError:  # beyond what is certified: told, not rounded away
        assert tiny < Fraction(1, 10**100)
        return
    assert Fraction(got) >= share * tiny
    assert order_two > 0


@pytest.mark.parametrize("order", ["1e18", "1e300", "1e400"])
@pytest.mark.parametrize(
    "loss", [GaussianLoss(mu=1), Pure(epsilon=1), LaplaceLoss(epsilon=1)], ids=["gaussian", "pure", "laplace"]
)
def test_orders_without_end(loss, order):
    """An order beyond the floats is answered like a very large one, or told to be too large."""
    try:
        got = loss.renyi(order)
    except CuradorError:
        return
    assert got >= (1 if loss.pure_epsilon == 1 else 1e17)


@pytest.mark.parametrize("epsilon", ["1e18", "1e300", "1e400"])
@pytest.mark.parametrize(
    "loss", [GaussianLoss(mu=1), 2 * Pure(epsilon=1), Approx(epsilon=1, delta="1e-9")], ids=["gaussian", "pure", "approx"]
)
def test_epsilons_without_end(loss, epsilon):
    """So is an ε beyond them."""
    try:
        got = loss.delta(epsilon)
    except CuradorError:
        return
    assert 0 <= got <= 1.1e-9


def test_doubt_is_never_zero():
    """Where the numerical reading cannot speak the others do, and where none can the answer is infinite or 1."""
    loss = Concentrated(rho=1, delta="1e-3") + GaussianLoss(mu=1)
    assert loss.epsilon("1e-4") == math.inf
    assert loss.epsilon_interval("1e-4").upper == math.inf
    assert loss.delta("1e5") >= 1e-3
    assert GaussianLoss(mu="1e10").delta(1) == 1


def test_messages_are_fit_for_json():
    """A refusal is text that a program can pass on."""
    error = refused(lambda: Pure(epsilon="\x00\n" * 100))
    assert json.loads(json.dumps(str(error))) == str(error)

"""The least spend: nothing new is given for less, what is charged is never below it, and what was given before stays free."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from curator_studies import BY_CITY, BY_SHOP, COUNT, make_study, open_curator, session_of

from curador.curator.options import QuestionOptions
from curador.curator.previewing import expected_errors
from curador.curator.price import price_at, price_question
from curador.errors import InvalidParameter
from curador.ledger.amounts import NOTHING, Amounts
from curador.study.model import DEFAULT_LEAST_SPEND, Budget

PURE = Budget(epsilon="1/3")
ODD = Budget(epsilon="0.7", delta="1e-9")
MANY = "SELECT " + ", ".join(f"SUM(spent + {n}) AS s{n}" for n in range(12)) + " FROM visits"


def asking_of(folder, *, budget=None, analyst=None, **changes):
    study = make_study(folder, budget=budget, **changes)
    return session_of(study, analyst=None if analyst is None else study.analyst(analyst))


def ready(asking, text=COUNT, *, raised=True, **wanted):
    return price_at(asking, text, QuestionOptions(**wanted), raised=raised)


def main(asking, amounts):
    return amounts.epsilon if asking.limits.kind == "pure" else amounts.rho


# ---- how much it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [None, PURE, ODD], ids=["three", "third", "odd"])
@pytest.mark.parametrize("analyst", [None, "ana", "leo"])
@pytest.mark.parametrize(("least", "times"), [("0.01%", 10_000), ("1/3%", 300), ("5%", 20), ("100%", 1)])
def test_as_many_as_it_says_fit(tmp_path, budget, analyst, least, times):
    """Ten thousand times 0.01 % fit, of the study for the owner and of the share for an analyst, whatever the limit."""
    part = Fraction(least.rstrip("%")) / 100
    asking = asking_of(tmp_path, budget=budget, analyst=analyst, least_spend=part)
    cost = ready(asking, spend=least).cost
    assert cost == asking.least
    all_of_them = Amounts(epsilon=times * cost.epsilon, rho=times * cost.rho)
    limit = asking.limits.share(asking.share)
    assert all_of_them.within(limit)
    assert main(asking, limit) * (1 - Fraction(1, 10**9)) <= main(asking, all_of_them)


def test_it_is_of_the_askers_own_limit(tmp_path):
    """A fifth of the study has a least of a fifth."""
    owner, ana = asking_of(tmp_path), asking_of(tmp_path, analyst="ana")
    assert owner.least.rho / 5 - ana.least.rho < Fraction(1, 10**17)
    ready(ana, rho=ana.least.rho)
    with pytest.raises(InvalidParameter, match="least spend"):
        ready(owner, rho=ana.least.rho)


def test_where_it_is_zero_nothing_is_too_little(tmp_path):
    """The owner's to decide."""
    asking = asking_of(tmp_path, least_spend=Fraction(0))
    assert asking.least == NOTHING
    assert ready(asking, rho="1e-17").cost.rho <= Fraction("1e-17")
    assert ready(asking, accuracy={"n": 10**9}).notes == ()


# ---- what is below it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "wanted"),
    [
        (None, {"spend": "0.0099%"}),
        (None, {"rho": "1e-5"}),
        (None, {"epsilon": "0.001"}),
        (PURE, {"spend": "0.0099%"}),
        (PURE, {"epsilon": "1e-5"}),
    ],
)
def test_a_cost_below_it_is_refused(tmp_path, budget, wanted):
    """One sentence: the least, and what it would give. Nothing is charged, no engine is asked; a preview says the same."""
    with open_curator(tmp_path, budget=budget) as curator:
        (name,) = wanted
        session = curator._session  # noqa: SLF001 -- what a preview is made from
        priced = price_question(session, COUNT, QuestionOptions(spend="0.01%")).priced
        at_least = expected_errors(priced[0], Fraction(95, 100))
        for verb in (curator.ask, curator.preview):
            with pytest.raises(InvalidParameter) as told:
                verb(COUNT, **wanted)
            said, hint = str(told.value).split("\nHint: ")
            assert said.startswith(f"{name} must be at least the study's least spend, 0.01% of your whole limit (")
            assert hint == f'spend="0.01%" would give {at_least[0].sentence()}.'
        assert curator.ledger.spent() == NOTHING
        assert curator._session.engine.tallied == []  # noqa: SLF001 -- the engine that holds no data
        assert curator.ledger.head.sequence == 0


def test_what_the_refusal_says_is_enough(tmp_path):
    """The amount in the sentence is rounded so that it is accepted."""
    for budget, name in ((None, "rho"), (PURE, "epsilon"), (ODD, "rho")):
        asking = asking_of(tmp_path, budget=budget)
        with pytest.raises(InvalidParameter) as told:
            ready(asking, **{name: "1e-9"})
        amount = str(told.value).split(f"({name} ")[1].split(")")[0]
        assert ready(asking, **{name: amount}).enough


@pytest.mark.parametrize(
    ("budget", "text", "wanted"),
    [
        (None, MANY, {"epsilon": "0.006"}),  # pure noise for twelve sums: a twelfth of the ρ of one
        (None, BY_SHOP, {"epsilon": "0.006"}),
        (None, BY_CITY, {"spend": "0.01%"}),
        (PURE, MANY, {"epsilon": "0.00004"}),
        (None, COUNT, {"accuracy": {"n": 10**6}}),
    ],
)
def test_a_charge_is_never_below_it(tmp_path, budget, text, wanted):
    """However little of the grant its noise needs."""
    asking = asking_of(tmp_path, budget=budget)
    assert main(asking, ready(asking, text, **wanted).cost) >= main(asking, asking.least)


def test_without_the_second_look_a_charge_would_be(tmp_path, monkeypatch):
    """The seeded bug: comparing what was asked for is not enough."""
    monkeypatch.setattr(Amounts, "most", lambda self, _: self)
    asking = asking_of(tmp_path)
    assert ready(asking, MANY, epsilon="0.006").cost.rho < asking.least.rho / 2


# ---- accuracy ------------------------------------------------------------------------------------------------------


def test_an_accuracy_is_raised_to_it_and_says_so(tmp_path):
    """The preview and the answer say what it gives; all that are too lazy are one question."""
    with open_curator(tmp_path) as curator:
        preview = curator.preview(COUNT, accuracy={"n": 10**6})
        answer = curator.ask(COUNT, accuracy={"n": 10**6})
        gives = f"{preview.errors[0].sentence()}"
        note = f"the accuracy costs less than the least spend (0.01% of your limit) and was raised to it: {gives}"
        assert preview.notes[0] == answer.notes[0] == note
        assert note in str(preview)
        assert note in str(answer)
        assert preview.errors[0].reach < 10**6
        assert answer.cost == curator.ledger.spent() == curator._session.least  # noqa: SLF001
        assert curator.ask(COUNT, accuracy={"n": 10**7}).stored
        assert curator.ask(COUNT, spend="0.01%").stored
        assert not any("least" in one for one in curator.ask(COUNT, accuracy={"n": 50}).notes)


def test_with_bias_the_accuracy_keeps_all_of_it(tmp_path):
    """What the estimates of lost rows cost comes on top."""
    asking = asking_of(tmp_path)
    how = QuestionOptions(accuracy={"n": 10**6}, bias=True)
    found = price_at(asking, COUNT, how, raised=True)
    assert found.priced[0].amount == asking.least.rho
    assert found.cost.rho > asking.least.rho


# ---- what was given before -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [{"rho": "1e-9"}, {"spend": "0.001%"}, {"accuracy": {"n": 10**6}}, {"epsilon": "1e-6"}])
def test_an_answer_that_was_given_for_less_stays_free(tmp_path, wanted):
    """An older ledger, or a higher least: the same question again costs nothing; drawing again would."""
    with open_curator(tmp_path, least_spend=Fraction(0)) as curator:
        first = curator.ask(COUNT, **wanted)
        spent = curator.ledger.spent()
        assert main(curator._session, spent) < curator.ledger.limits.share(DEFAULT_LEAST_SPEND).rho  # noqa: SLF001
    with open_curator(tmp_path) as curator:
        assert curator.preview(COUNT, **wanted).stored
        again = curator.ask(COUNT, **wanted)
        assert again.stored
        assert again.rows == first.rows
        assert curator.ledger.spent() == spent
        if "accuracy" in wanted:
            assert curator.ask(COUNT, **wanted, fresh=True).cost == curator._session.least  # noqa: SLF001
        else:
            with pytest.raises(InvalidParameter, match="least spend"):
                curator.ask(COUNT, **wanted, fresh=True)
            assert curator.ledger.spent() == spent


def test_it_is_no_part_of_what_an_answer_means(tmp_path):
    """Changing it keeps the study's digest, so stored answers and ledgers go on."""
    study = make_study(tmp_path)
    assert replace(study, least_spend=Fraction(0)).digest == study.digest

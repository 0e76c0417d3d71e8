"""How much a question may cost: shares of whole limits, exact amounts, and amounts that follow from an accuracy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from curator_studies import BY_CITY, BY_SHOP, COUNT, make_study, session_of

from curador.answers.release import ReleasedBlock
from curador.answers.table import item_column, sight_of
from curador.curator.options import QuestionOptions
from curador.curator.previewing import expected_errors
from curador.curator.price import plan_question, price_at, priced_plan, smallest
from curador.errors import InvalidParameter, InvalidQuery, NotPrivate, Refused
from curador.ledger.amounts import TICK, Amounts
from curador.plan.aggregates import linear_reach, mean_reach_at
from curador.plan.ahead import each_row, reach_ahead
from curador.plan.price import price
from curador.study.model import Budget

PURE = Budget(epsilon="1/3")


def asking_of(folder, *, budget=None, analyst=None):
    study = make_study(folder, budget=budget)
    return session_of(study, analyst=None if analyst is None else study.analyst(analyst))


def ready(asking, text=COUNT, **wanted):
    return price_at(asking, text, QuestionOptions(**wanted))


def total(limits, share=Fraction(1)):
    return limits.share(share)


# ---- spend ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [None, PURE, Budget(epsilon="0.7", delta="1e-9")], ids=["three", "third", "odd"])
@pytest.mark.parametrize(("part", "times"), [("5%", 20), ("10%", 10), ("33.333333%", 3), ("0.7%", 142), ("100%", 1)])
@pytest.mark.parametrize("analyst", [None, "ana"])
def test_parts_of_a_whole_fit(tmp_path, budget, part, times, analyst):
    """Twenty times 5 % fit, whatever the limit and the share are."""
    asking = asking_of(tmp_path, budget=budget, analyst=analyst)
    cost = ready(asking, spend=part).cost
    spent = Amounts()
    for _ in range(times):
        spent += cost
    assert spent.within(total(asking.limits, asking.share))
    main = cost.epsilon if asking.limits.kind == "pure" else cost.rho
    limit = total(asking.limits, asking.share)
    whole = limit.epsilon if asking.limits.kind == "pure" else limit.rho
    asked = Fraction(part.rstrip("%")) / 100
    assert asked * (1 - Fraction(1, 10**9)) <= main / whole + TICK <= asked + 2 * TICK / whole


def test_a_part_is_of_the_askers_whole_limit(tmp_path):
    """5 % of a fifth is 1 % of the whole."""
    owner, ana = asking_of(tmp_path), asking_of(tmp_path, analyst="ana")
    assert ready(ana, spend="5%").cost == ready(owner, spend="1%").cost


@pytest.mark.parametrize("spend", ["5", "0%", "101%", "-5%", "five", "", 5, 0.05, "5 % of it", "nan%", True])
def test_other_spends_are_refused(tmp_path, spend):
    """A spend is a percentage, written as one."""
    with pytest.raises(InvalidParameter, match="spend must be a percentage"):
        ready(asking_of(tmp_path), spend=spend)


# ---- rho and epsilon -----------------------------------------------------------------------------------------------


def test_rho_is_the_cost(tmp_path):
    """rho= costs what it says, rounded down to what noise can be found for."""
    cost = ready(asking_of(tmp_path), rho="0.01").cost
    assert Fraction("0.01") * (1 - Fraction(1, 10**9)) <= cost.rho <= Fraction("0.01")


def test_rho_is_refused_under_a_pure_budget(tmp_path):
    """A pure budget has no rho."""
    with pytest.raises(NotPrivate, match="pure budget"):
        ready(asking_of(tmp_path, budget=PURE), rho="0.01")


def test_epsilon_costs_itself_under_a_pure_budget(tmp_path):
    """epsilon= is the pure cost."""
    found = ready(asking_of(tmp_path, budget=PURE), epsilon="0.1")
    assert found.cost == Amounts(epsilon=Fraction(1, 10))


def test_epsilon_is_laplace_noise_at_its_tight_rho(tmp_path):
    """In an (ε, δ) study a question that is x-DP by itself costs the ρ of its noise: between x − 1 + e^−x and x tanh(x/2)."""
    found = ready(asking_of(tmp_path), epsilon="0.1")
    assert found.priced[0].kind == "laplace"
    assert type(found.priced[0].noises[0][0]).__name__ == "DiscreteLaplace"
    assert Fraction("0.0048374") < found.cost.rho < Fraction("0.0049959")


@pytest.mark.parametrize("name", ["rho", "epsilon"])
@pytest.mark.parametrize("value", [0, -1, "nan", "inf", "x", True, [1]])
def test_amounts_are_positive_numbers(tmp_path, name, value):
    """An amount that is none is refused."""
    with pytest.raises(InvalidParameter, match=name):
        ready(asking_of(tmp_path), **{name: value})


def test_an_amount_below_the_tick_is_refused(tmp_path):
    """Nothing is given for nothing."""
    with pytest.raises(InvalidParameter, match="smallest step"):
        ready(asking_of(tmp_path), rho="1e-19")


@pytest.mark.parametrize(
    "wanted", [{"spend": "5%", "rho": 1}, {"rho": 1, "epsilon": 1}, {"spend": "5%", "accuracy": {"n": 5}}]
)
def test_two_amounts_are_refused(tmp_path, wanted):
    """Exactly one of the four."""
    with pytest.raises(InvalidParameter, match="one of spend, rho, epsilon and accuracy"):
        ready(asking_of(tmp_path), **wanted)


def test_no_amount_is_refused_with_what_five_per_cent_would_give(tmp_path):
    """The refusal shows the error that 5 % buys."""
    asking = asking_of(tmp_path)
    expected = expected_errors(ready(asking, BY_CITY, spend="5%").priced[0], Fraction(95, 100))
    with pytest.raises(InvalidParameter) as caught:
        ready(asking, BY_CITY)
    assert all(one.sentence() in str(caught.value) for one in expected)


# ---- keys ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spend", "part"), [("5%", Fraction(5, 100)), ("10%", Fraction(1, 10)), ("40%", Fraction(1, 10))])
@pytest.mark.parametrize("analyst", [None, "ana"])
def test_keys_cost_the_same_part_of_delta_at_most_a_tenth(tmp_path, spend, part, analyst):
    """δ of private keys is the spend's share of the asker's delta_keys, and never above a tenth of it."""
    asking = asking_of(tmp_path, analyst=analyst)
    found = ready(asking, BY_SHOP, spend=spend)
    most = part * total(asking.limits, asking.share).delta
    assert found.priced[0].delta == most
    assert most * (1 - Fraction(1, 1000)) <= found.cost.delta <= most


def test_known_keys_cost_no_delta(tmp_path):
    """Declared values need no δ."""
    assert ready(asking_of(tmp_path), BY_CITY, spend="5%").cost.delta == 0


def test_private_keys_are_refused_under_a_pure_budget(tmp_path):
    """The hint names declared values."""
    with pytest.raises(NotPrivate, match="declare `values`"):
        ready(asking_of(tmp_path, budget=PURE), BY_SHOP, spend="5%")


def test_private_keys_are_refused_where_no_delta_is_kept_for_them(tmp_path):
    """delta_keys = 0 is the owner's choice."""
    asking = asking_of(tmp_path, budget=Budget(epsilon=1, delta="1e-9", delta_keys=0))
    with pytest.raises(NotPrivate, match="keeps none"):
        ready(asking, BY_SHOP, spend="5%")


# ---- accuracy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [None, PURE])
@pytest.mark.parametrize("error", ["50", "7.5", 1000])
def test_accuracy_is_kept_by_the_smallest_amount(tmp_path, budget, error):
    """The interval is as narrow as asked, and with a hundred-thousandth less it would not be."""
    asking = asking_of(tmp_path, budget=budget)
    found = ready(asking, BY_CITY, accuracy={"n": error}).priced[0]
    estimate = found.plan.blocks[0].estimates[found.plan.blocks[0].items[1].expression.index]
    assert linear_reach(estimate, found.noises[0], Fraction(95, 100)) <= Fraction(error)
    name = "epsilon" if budget is PURE else "rho"
    less = priced_plan(
        found.plan, QuestionOptions(**{name: found.amount * (1 - Fraction(1, 10**5))}), asking.limits, Fraction(1)
    )
    assert linear_reach(estimate, less.noises[0], Fraction(95, 100)) > Fraction(error)


def test_accuracy_of_a_mean_is_for_a_number_of_rows(tmp_path):
    """`at` says for which size of a group."""
    asking = asking_of(tmp_path)
    found = ready(asking, BY_CITY, accuracy={"mean": 5}, at=1000).priced[0]
    block = found.plan.blocks[0]
    estimate = block.estimates[block.items[2].expression.index]
    assert Fraction(49, 10) < mean_reach_at(estimate, found.noises[0], 1000, Fraction(95, 100)) <= 5
    with pytest.raises(InvalidParameter, match="at must be given"):
        ready(asking, BY_CITY, accuracy={"mean": 5})


def test_accuracy_does_not_depend_on_who_asks(tmp_path):
    """It is a function of plan and study: an analyst's stored answer is the owner's too."""
    owner, ana = asking_of(tmp_path), asking_of(tmp_path, analyst="ana")
    assert ready(owner, accuracy={"n": 90}).key == ready(ana, accuracy={"n": 90}).key


@pytest.mark.parametrize(
    ("text", "accuracy"),
    [
        ("SELECT MEDIAN(spent) AS m FROM visits", {"m": 1}),
        ("SELECT STDDEV(spent) AS m FROM visits", {"m": 1}),
        ("SELECT ROUND(AVG(spent), 1) AS m FROM visits", {"m": 1}),
        (BY_CITY, {"city": 1}),
        (BY_CITY, {"nobody": 1}),
        (BY_CITY, {}),
        (BY_CITY, 50),
        (BY_CITY, "n=50"),
        (BY_CITY, {1: 50}),
        (BY_CITY, {"n": 0}),
    ],
)
def test_other_accuracies_are_refused(tmp_path, text, accuracy):
    """Without the rows of a group, of a column that has none, or of another one."""
    with pytest.raises(InvalidParameter, match="accuracy"):
        ready(asking_of(tmp_path), text, accuracy=accuracy)


CALIBRATED = {
    "COUNT(*) / 2": 40,
    "SUM(spent) / COUNT(*)": 20,
    "100.0 * COUNT(*) FILTER (WHERE city = 'Lima') / COUNT(*)": 5,
    "AVG(spent) FILTER (WHERE city = 'Lima') - AVG(spent) FILTER (WHERE city <> 'Lima')": 20,
    "AVG(spent) * COUNT(*)": 30_000,
    "VARIANCE(spent)": 9_000,
    "STDDEV(spent)": 60,
    "MEDIAN(spent)": 20,
    "QUANTILE(spent, 0.9)": 20,
}


@pytest.mark.slow
@pytest.mark.parametrize("budget", [None, Budget(epsilon=10)])
@pytest.mark.parametrize("column", CALIBRATED)
def test_an_accuracy_is_kept_before_data_by_the_smallest_amount(tmp_path, column, budget):
    """In a group of 10,000 rows; a thousandth less does not keep it."""
    asking = asking_of(tmp_path, budget=budget) if budget else asking_of(tmp_path)
    found = ready(asking, f"SELECT {column} AS m FROM visits", accuracy={"m": CALIBRATED[column]}, at=10_000)
    main, (block,) = found.priced[0], found.priced[0].plan.blocks
    less = price(main.plan, main.kind, main.amount * Fraction(999, 1000))

    def reach(priced):
        return reach_ahead(block, block.items[0].expression, priced.noises[0], 10_000, Fraction(95, 100))

    assert reach(main) <= CALIBRATED[column] < reach(less)
    assert any("spread evenly" in note for note in found.notes) == column.startswith(("MEDIAN", "QUANTILE"))


@pytest.mark.parametrize("column", [name for name in CALIBRATED if "MEDIAN" not in name and "QUANT" not in name])
@pytest.mark.parametrize("kind", ["concentrated", "pure"])
def test_no_interval_is_longer_than_was_said_before_data(tmp_path, column, kind):
    """Whatever was released beside a divisor of 10,000 rows."""
    plan = ready(asking_of(tmp_path), f"SELECT {column} AS m FROM visits", spend="5%").priced[0].plan
    priced = price(plan, kind, Fraction(1, 10) if kind == "concentrated" else Fraction(1))
    (block,), dice = plan.blocks, np.random.default_rng()
    values, rows = [], 200
    for measurement in block.measurements:
        low, high = each_row(block, measurement)
        counted = all(block.tallies[place].kind == "rows" for place, _ in measurement.combination)
        filtered = counted and len(block.measurements) > 1 and column.startswith("100")
        share = dice.choice([0.0, 1.0, dice.random()], rows)
        drawn = np.rint((low + (high - low) * share) * 10_000).astype(np.int64)
        values.append(np.full(rows, 10_000) if counted and not (filtered and measurement is block.measurements[0]) else drawn)
    sight = sight_of(block, priced.noises[0], ReleasedBlock((), tuple(values)))
    found = item_column(block.items[0], sight, Fraction(95, 100))
    said = reach_ahead(block, block.items[0].expression, priced.noises[0], 10_000, Fraction(95, 100))
    halves = [(high - low) / 2 for low, high in zip(found.low, found.high, strict=True)]
    assert max(halves) <= said * (1 + 1e-9)


def test_at_needs_an_accuracy(tmp_path):
    """A size of groups means nothing to a spend."""
    with pytest.raises(InvalidParameter, match="at must be given together with accuracy"):
        ready(asking_of(tmp_path), spend="5%", at=100)


def test_smallest_finds_a_step():
    """The search ends at the step of a function that is kept from there on."""
    step = Fraction(123456789, 10**12)
    found = smallest(lambda amount: amount >= step, start=Fraction(1, 20), most=Fraction(1))
    assert step <= found <= step * (1 + Fraction(1, 10**6))
    with pytest.raises(InvalidParameter, match="within reach"):
        smallest(lambda _: False, start=Fraction(1, 20), most=Fraction(1))


# ---- weights and options of the statement --------------------------------------------------------------------------


def test_weights_move_noise_between_columns(tmp_path):
    """A column with a larger weight gets less noise, at the same cost."""
    asking = asking_of(tmp_path)
    text = "SELECT COUNT(*) AS n, SUM(spent) AS s FROM visits WHERE city = 'Lima'"
    even, uneven = ready(asking, text, spend="5%"), ready(asking, text, spend="5%", weights={"s": 9})
    errors = [expected_errors(one.priced[0], Fraction(95, 100)) for one in (even, uneven)]
    assert errors[1][0].reach >= errors[0][0].reach
    assert uneven.cost.rho <= asking.limits.share(Fraction(5, 100)).rho


@pytest.mark.parametrize("weights", [{"x": 1}, {"n": 0}, {"n": "many"}, {"city": 1}, 2, {}, [("n", 2)]])
def test_other_weights_are_refused(tmp_path, weights):
    """Weights are positive and of released columns."""
    with pytest.raises(Refused, match="weights"):
        ready(asking_of(tmp_path), BY_CITY, spend="5%", weights=weights)


def test_a_statement_may_bring_its_epsilon(tmp_path):
    """BigQuery's clause stands for epsilon=, and not beside another cost."""
    asking = asking_of(tmp_path)
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1) COUNT(*) AS n FROM visits"
    how = QuestionOptions(dialect="bigquery")
    assert price_at(asking, text, how).key == ready(asking, epsilon="0.1").key
    with pytest.raises(InvalidParameter, match="given once"):
        price_at(asking, text, QuestionOptions(spend="5%", dialect="bigquery"))


def test_a_grant_needs_no_accuracy(tmp_path):
    """A grant of a spend is a function of plan, limits and share alone."""
    asking = asking_of(tmp_path)
    _, plan, _ = plan_question(asking, COUNT, QuestionOptions())
    priced = [priced_plan(plan, QuestionOptions(spend="5%"), asking.limits, Fraction(1)) for _ in range(3)]
    assert len({(one.kind, one.amount, one.delta) for one in priced}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n, SUM(spent) AS n_low FROM visits",
        "SELECT city AS n_high, COUNT(*) AS n FROM visits GROUP BY city",
    ],
)
def test_a_clash_of_names_is_refused(tmp_path, text):
    """x_low and x_high belong to x."""
    with pytest.raises(InvalidQuery, match="clash"):
        ready(asking_of(tmp_path), text, spend="5%")


@pytest.mark.parametrize("caps", ["fast", 5, {"row": 3}, {"rows": 0}, {"rows": 6}, {"rows": 1.5}, {"groups": "x"}])
def test_other_caps_are_refused(tmp_path, caps):
    """Caps are lowered, by their names."""
    with pytest.raises(InvalidParameter, match="caps"):
        price_at(asking_of(tmp_path), COUNT, QuestionOptions(spend="5%", caps=caps))


@pytest.mark.parametrize(
    "bounds", [5, {"mean": (1,)}, {"mean": "0-1"}, {"mean": ("a", "b")}, {"mean": (0, 900)}, {"x": (0, 1)}]
)
def test_other_bounds_are_refused(tmp_path, bounds):
    """Bounds are narrowed, two numbers for a column of the answer."""
    with pytest.raises(Refused, match="bounds"):
        price_at(asking_of(tmp_path), BY_CITY, QuestionOptions(spend="5%", bounds=bounds))

"""Every aggregate of the catalogue has all of its parts: what is left out of one place fails here."""

import ast
import dataclasses
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import curador as cu
from curador.engines.lower.aggregates import EXACT, TALLIES
from curador.plan import aggregates
from curador.plan.aggregates import PLANNED, PlannedEstimate
from curador.plan.model import Range
from curador.query.functions import AGGREGATES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "sql.md"
SOURCE = ROOT / "src" / "curador"
ASKED = {
    "count": "COUNT(*)",
    "count_units": "COUNT(DISTINCT who)",
    "count_distinct": "COUNT(DISTINCT spent)",
    "quantile": "MEDIAN(spent)",
    "min": "MIN(spent)",
    "max": "MAX(spent)",
    "bool_and": "BOOL_AND(spent > 1)",
    "bool_or": "BOOL_OR(spent > 1)",
    "avg": "AVG(spent)",
    "var_pop": "VAR_POP(spent)",
    "var_samp": "VARIANCE(spent)",
}
"""How a question writes them; any other is called by its name."""

CALLED = {"count_units": "COUNT(DISTINCT user_id)", "count_distinct": "COUNT(DISTINCT x)", "var_samp": "VARIANCE"}
"""What the page calls them; any other by its name."""


def asked(name):
    return ASKED.get(name, f"{name.upper()}(spent)")


def parsed(name):
    return all(issubclass(getattr(exp, one), exp.Func) for one in AGGREGATES[name].parsed)


PARTS = {
    "a plan": lambda name: name in PLANNED,
    "a private form if it says so": lambda name: (PLANNED[name].estimate is not None) == AGGREGATES[name].private,
    "a range inside a unit if it is exact there": lambda name: (PLANNED[name].inside is not None) == AGGREGATES[name].exact,
    "SQL inside a unit if it is exact there": lambda name: (name in EXACT) == AGGREGATES[name].exact,
    "words": lambda name: AGGREGATES[name].means,
    "a class of the parser": parsed,
    "a place on the page": lambda name: CALLED.get(name, name.upper()) in PAGE.read_text(encoding="utf-8"),
}


def missing(names):
    """What aggregates have no part for."""
    return [f"{name} has not {part}" for name in names for part, there in PARTS.items() if not there(name)]


def test_every_aggregate_has_every_part():
    """An entry, a plan, a range and SQL inside a unit, words, and a word in the documents."""
    assert not missing(AGGREGATES)


def test_nothing_is_known_of_aggregates_that_do_not_exist():
    """The tables hold the catalogue and no more."""
    assert set(PLANNED) == set(AGGREGATES)
    assert set(EXACT) <= set(AGGREGATES)


@pytest.mark.parametrize("left_out", ["estimate", "inside", "EXACT"])
def test_a_part_that_is_left_out_is_seen(left_out, monkeypatch):
    """Seeded bug: the sum without its private form, its range or its SQL."""
    if left_out == "EXACT":
        monkeypatch.delitem(EXACT, "sum")
    else:
        monkeypatch.setitem(PLANNED, "sum", dataclasses.replace(PLANNED["sum"], **{left_out: None}))

    assert len(missing(AGGREGATES)) == 1


def test_ranges_inside_a_unit_know_what_a_unit_without_bounds_has():
    """No range claims an end that the argument does not have, but for counts and squares, which begin at 0."""
    for name, one in PLANNED.items():
        if one.inside is not None:
            found = one.inside(Range(None, None), 7)
            assert found.upper is None or AGGREGATES[name].counts


def kinds():
    """The kinds of tallies that the planners write."""
    tree = ast.parse((SOURCE / "plan" / "aggregates.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Tally":
            assert isinstance(node.args[0], ast.Constant)
            yield node.args[0].value


def test_every_tally_has_its_sql_and_no_sql_is_for_none():
    """Kinds of tallies are the keys of the engines' table."""
    assert set(kinds()) == set(TALLIES)


def test_no_room_switches_on_the_name_of_an_aggregate():
    """Whoever needs to know something of an aggregate asks its entry: only the tables compare names."""
    own = {"query/expressions.py", "plan/aggregates.py", "engines/lower/aggregates.py"}
    found = []
    for room in ("query", "plan", "engines", "answers", "curator"):
        for path in sorted((SOURCE / room).rglob("*.py")):
            name = path.relative_to(SOURCE).as_posix()
            if name not in own:
                found += [f"{name}:{line}" for line in switches(path.read_text(encoding="utf-8"))]
    assert not found


def switches(text):
    """Lines that compare the function of an aggregate with a name that no window has too."""
    private = {name for name, one in AGGREGATES.items() if one.private} - {"count", "sum", "avg"}
    for node in ast.walk(ast.parse(text)):
        held = []
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "function":
            held = [one.value for part in node.comparators for one in ast.walk(part) if isinstance(one, ast.Constant)]
        if isinstance(node, ast.match_case):
            held = [one.value.value for one in ast.walk(node.pattern) if isinstance(one, ast.MatchValue) and named(one)]
        if private & {one for one in held if isinstance(one, str)}:
            yield node.lineno if hasattr(node, "lineno") else node.pattern.lineno


def named(pattern):
    return isinstance(pattern.value, ast.Constant)


def test_a_switch_is_seen():
    """Seeded bugs: two ways of switching on a name."""
    assert list(switches('if one.function in {"quantile", "count_units"}:\n    pass'))
    assert list(switches('match one.function:\n    case "var_pop":\n        pass'))


def estimates():
    return [
        one
        for one in vars(aggregates).values()
        if isinstance(one, type) and issubclass(one, PlannedEstimate) and one is not PlannedEstimate
    ]


def test_an_estimate_that_forgets_a_part_cannot_be_made():
    """Reach, value, interval and measurements are abstract: one more without them is refused."""
    assert estimates()
    assert not [one for one in estimates() if one.__abstractmethods__]

    class Forgetful(PlannedEstimate):
        measurements = ()

    with pytest.raises(TypeError, match="interval"):
        Forgetful()


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    spent = np.tile([2.0, 4.0, 6.0, 8.0], 1500)
    pq.write_table(pa.table({"who": np.repeat(np.arange(3000), 2), "spent": spent}), folder / "visits.parquet")
    options = {
        "unit": "who",
        "budget": cu.Budget(epsilon=1000, delta=1e-6),
        "bounds": {"spent": (0, 10)},
        "caps": {"rows": 2},
    }
    with cu.open(folder / "visits.parquet", **options, engine={"worker": "inline", "threads": 1}) as opened:
        yield opened


@pytest.mark.parametrize("name", [name for name, one in AGGREGATES.items() if one.private])
def test_every_private_aggregate_is_asked(name, curator):
    """It is read, planned, explained, previewed, run, and has a value inside its interval."""
    question = f"SELECT {asked(name)} AS x FROM visits"
    assert curator.explain(question)
    assert curator.preview(question, spend="2%").errors
    (row,) = curator.ask(question, spend="2%").rows
    assert row["x_low"] <= row["x"] <= row["x_high"]


@pytest.mark.parametrize("name", [name for name, one in AGGREGATES.items() if one.exact])
def test_every_exact_aggregate_is_asked_inside_a_unit(name, curator):
    """It is computed for each unit, and what is computed of it is released."""
    condition = "x" if name.startswith("bool") else "x IS NOT NULL"
    if name == "count_units":
        pytest.skip("COUNT(DISTINCT unit) inside a unit is 1, and is not asked")
    inner = f"SELECT who, {asked(name)} AS x FROM visits GROUP BY who"
    (row,) = curator.ask(f"SELECT COUNT_IF({condition}) AS n FROM ({inner}) AS t", spend="2%").rows
    assert 2900 < row["n"] < 3100


@pytest.mark.parametrize("name", [name for name, one in AGGREGATES.items() if one.private])
def test_what_an_estimate_promises_before_data_is_a_number(name, curator):
    """Its ± for a thousand rows, or nothing where only data can tell; known without asking."""
    from curador.curator.options import QuestionOptions
    from curador.curator.price import price_question

    session = curator._session  # noqa: SLF001 -- the plan behind a preview
    priced = price_question(session, f"SELECT {asked(name)} AS x FROM visits", QuestionOptions(spend="0.01%")).priced[0]
    (estimate,) = priced.plan.blocks[0].estimates
    reach = estimate.reach_at(priced.noises[0], 1000, Fraction(95, 100))
    assert reach is None or reach >= 0
    assert set(estimate.measurements) <= set(range(len(priced.plan.blocks[0].measurements)))

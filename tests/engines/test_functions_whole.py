"""Every function of the catalogue has all of its parts: what is left out of one place fails here."""

import string
from fractions import Fraction
from pathlib import Path

import lower_reference as reference
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lower_shapes import SHAPES
from sqlglot import exp

import curador as cu
from curador.engines.lower.expression import LOWERED
from curador.plan import enclosure as on
from curador.plan import intervals
from curador.plan.functions import ENCLOSURES, RANGES, TRUTHS
from curador.query import calls, expressions
from curador.query.functions import FUNCTIONS, Function, Reads, Takes
from curador.study.values import Type

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "sql.md"
CALLED = {
    "is_null": "IS NULL",
    "neg": "−",
    "-": "−",
    "date_add": "± INTERVAL",
    "matches": "REGEXP_MATCHES",
    "from_days": "MIN and MAX of dates",
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), "comparisons"),
}
"""What the page calls functions that have no name in SQL."""

NUMBER, TRUTH = {Type.INTEGER, Type.FLOAT, Type.DECIMAL}, {Type.BOOLEAN}
GIVEN = {name: {node.type for found, _, node in SHAPES if found == name} for name in FUNCTIONS}
"""The types of each function's results, in the shapes that are tried."""


def page():
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index("Row functions:") : text.index("## After the release")].replace("\n", " ")


PARTS = {
    "a range": lambda name: name in RANGES,
    "an enclosure": lambda name: not GIVEN[name] & NUMBER or name in ENCLOSURES,
    "what it can be true of": lambda name: not GIVEN[name] & TRUTH or name in TRUTHS,
    "SQL": lambda name: name in LOWERED,
    "a signature": lambda name: FUNCTIONS[name].arguments and FUNCTIONS[name].result,
    "a cost": lambda name: FUNCTIONS[name].row > 0 and FUNCTIONS[name].byte >= 0,
    "words": lambda name: [field for _, field, _, _ in string.Formatter().parse(FUNCTIONS[name].words) if field],
    "a class of the parser with these arguments": lambda name: FUNCTIONS[name].reads is None or parsed(FUNCTIONS[name].reads),
    "shapes": lambda name: bool(GIVEN[name]),
    "a reference": lambda name: name == "cast" or any(name in one for one in TABLES),
    "a place on the page": lambda name: CALLED.get(name, name.upper()) in page(),
}
TABLES = (reference._LAZY, reference._ARITHMETIC, reference._OTHERS)  # noqa: SLF001 -- the reference's own tables


def parsed(reads):
    """Whether the parser's class has every argument that the entry takes; what is known by name only has none."""
    return not reads.parsed or {one.parsed for one in reads.takes} <= set(getattr(exp, reads.parsed).arg_types)


def missing(names):
    """What functions have no part for."""
    return [f"{name} has not {part}" for name in names for part, there in PARTS.items() if not there(name)]


def test_every_function_has_every_part():
    """Signature, range, enclosure, SQL, cost, words, shapes, reference and a word in the documents."""
    assert not missing(FUNCTIONS)


def test_nothing_is_known_of_functions_that_do_not_exist():
    """The tables hold the catalogue and no more."""
    for table in (RANGES, LOWERED):
        assert set(table) == set(FUNCTIONS)
    assert set(ENCLOSURES) | set(TRUTHS) == set(FUNCTIONS)


@pytest.mark.parametrize("table", [RANGES, ENCLOSURES, LOWERED, FUNCTIONS])
def test_a_part_that_is_left_out_is_seen(table, monkeypatch):
    """Seeded bug: the square root without its range, enclosure, SQL or entry."""
    monkeypatch.delitem(table, "sqrt")

    if table is FUNCTIONS:
        assert set(RANGES) != set(FUNCTIONS)
    else:
        assert len(missing(FUNCTIONS)) == 1


def test_functions_are_read_by_their_entry():
    """A new one needs no reader: it is known, and proposed to who misspells it."""
    for one in FUNCTIONS.values():
        if one.reads is not None:
            assert not one.reads.parsed or getattr(exp, one.reads.parsed) in calls.CALL_HANDLERS
            assert one.name in calls.FUNCTION_NAMES


@pytest.mark.slow
def test_a_function_is_added_in_three_places(tmp_path, monkeypatch):
    """The cube root: an entry, a range and an enclosure, its SQL. It is then read, planned, paid for, run and explained."""
    entry = Function(
        "cbrt", "number", "float", row=30, reads=Reads("Cbrt", (Takes("number"),), Type.FLOAT, nullable=True), number=True
    )
    monkeypatch.setitem(FUNCTIONS, "cbrt", entry)  # query/functions.py; its reader is made of the entry when it is loaded
    monkeypatch.setitem(expressions.HANDLERS, exp.Cbrt, calls.reader_of(entry, entry.reads))

    def ranged(call, ranges, relation):
        return intervals.monotone(ranges.of(call.arguments[0], relation), lambda end: Fraction(f"{np.cbrt(float(end)):.6f}"))

    monkeypatch.setitem(RANGES, "cbrt", ranged)  # plan/functions.py
    monkeypatch.setitem(ENCLOSURES, "cbrt", lambda call, walk: on.monotone(np.cbrt, 4)(walk.number(call.arguments[0])))
    monkeypatch.setitem(LOWERED, "cbrt", LOWERED["abs"])  # engines/lower/expression.py
    pq.write_table(pa.table({"who": np.arange(3000), "spent": np.full(3000, 8.0)}), tmp_path / "visits.parquet")
    options = {"unit": "who", "budget": cu.Budget(epsilon=10, delta=1e-6), "bounds": {"spent": (0, 64)}, "caps": {"rows": 10}}
    question = "SELECT AVG(CBRT(spent)) AS inside, CBRT(AVG(spent)) AS after FROM visits"
    with cu.open(tmp_path / "visits.parquet", **options, engine={"worker": "inline", "threads": 1}) as curator:
        assert "cbrt(spent) in [0, 4]" in curator.explain(question)
        (row,) = curator.ask(question, spend="50%").rows
    for name in ("inside", "after"):
        assert row[f"{name}_low"] - 0.2 < 2 < row[f"{name}_high"] + 0.2
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]

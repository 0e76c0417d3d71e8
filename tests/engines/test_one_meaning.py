"""A function means the same over rows and over what was released: the whole catalogue, both ways, on edge values."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lower_layout import F, I, S, T, connect
from lower_shapes import EDGES, SHAPES, in_batches, loaded, stranger

import curador as cu
from curador.answers import computed
from curador.answers.computed import ReleasedFrame, compute, evaluate
from curador.engines.lower import dialect_duckdb
from curador.engines.lower.dialect_duckdb import DUCKDB, DuckDB
from curador.engines.lower.expression import lower_text
from curador.query.tree import Call, Key, Ref

KINDS = list(dict.fromkeys(types for _, types, _ in SHAPES))


def rows_of(types):
    return [list(row) for row in itertools.product(*(EDGES[one] + stranger().get(one, []) for one in types))]


def over_rows(nodes, types, rows):
    """The values of expressions in every row of a table."""
    con = connect()
    loaded(con, types, rows)
    names = [f"c{place}" for place in range(len(types))]
    lowered = [lower_text(node, names, DUCKDB) for node in nodes]
    found = con.execute(f"SELECT {', '.join(lowered)} FROM edges ORDER BY i").fetchall()
    return [list(column) for column in zip(*found, strict=True)]


def after(nodes, types, rows):
    """The values of the same expressions over released keys."""
    frame = ReleasedFrame(len(rows), tuple(zip(*rows, strict=True)), types, ())
    compute([(keyed(node), node.type) for node in nodes], frame)
    return [evaluate(keyed(node), frame).listed() for node in nodes]


def keyed(node):
    """The expression over keys instead of columns."""
    match node:
        case Ref():
            return Key(node.index, node.type)
        case Call():
            return Call(node.function, tuple(map(keyed, node.arguments)), node.type)
        case _:
            return node


def differing(nodes, types, released):
    """The expressions that are not the same both ways, each with a row that shows it."""
    rows = rows_of(types)
    for node, one, other in zip(nodes, over_rows(nodes, types, rows), released(nodes, types, rows), strict=True):
        for row, wanted, found in zip(rows, one, other, strict=True):
            if repr(found) != repr(wanted):
                yield node, row, wanted, found
                break


@pytest.mark.parametrize("types", KINDS, ids="-".join)
def test_a_function_means_the_same_over_rows_and_after_the_release(types):
    """To the last bit, NULL where it is NULL, and of the same Python type."""
    found = [one for batch in in_batches(types) for one in differing([node for _, node in batch], types, after)]

    assert not found


@pytest.mark.slow
def test_a_group_has_one_name(tmp_path):
    """GROUP BY f(x) and SELECT f(x) … GROUP BY x, on real rows: the same names, letter by letter."""
    cities = ["straße", "İzmir", "Genève", "ǆ"]
    held = {"user_id": np.arange(4000), "city": [cities[place % 4] for place in range(4000)]}
    pq.write_table(pa.table(held), tmp_path / "visits.parquet")
    budget, engine = cu.Budget(epsilon=40, delta=1e-6), {"worker": "inline", "threads": 1}
    with cu.open(tmp_path / "visits.parquet", unit="user_id", budget=budget, engine=engine) as curator:
        for name in ("UPPER(city)", "LOWER(city)", "SUBSTR(UPPER(city), 2, 3)", "REPLACE(city, 'e', 'ß')"):
            before = curator.ask(f"SELECT {name} AS k, COUNT(*) AS n FROM visits GROUP BY {name}", spend="10%")
            later = curator.ask(f"SELECT {name} AS k, COUNT(*) AS n FROM visits GROUP BY city", spend="10%")
            assert len(before.rows) == 4
            assert sorted(row["k"] for row in before.rows) == sorted(row["k"] for row in later.rows)


# ---- seeded bugs -------------------------------------------------------------------------------------------------------


class HalvesToEven(DuckDB):
    """Python rounds so."""

    def nearest(self, x):
        return f"round_even({x}, 0)"


class OtherLetters(DuckDB):
    """Python writes two letters for one."""

    def text(self, name, x):
        return f"replace(upper({x}), 'ẞ', 'SS')" if name == "upper" else super().text(name, x)


class Uncut(DuckDB):
    """Nothing ends a text that grows."""

    def substring(self, x, start, length):
        return x if length == 4096 else super().substring(x, start, length)


class WeeksOfSevenDays(DuckDB):
    """Weeks that begin on the first day."""

    def date_diff(self, unit, start, end):
        return f"TRY(CAST(date_diff('{unit}', {start}, {end}) AS BIGINT))"


@pytest.mark.parametrize(
    ("wrong", "types", "function"),
    [
        (HalvesToEven(), (F,), "round"),
        (HalvesToEven(), (F,), "cast"),
        (OtherLetters(), (S,), "upper"),
        (Uncut(), (S, S), "concat"),
        (WeeksOfSevenDays(), (T, T), "date_diff"),
    ],
)
def test_a_function_with_two_meanings_is_caught(monkeypatch, wrong, types, function):
    """Each was, or could be, what a second way of computing says by itself."""
    monkeypatch.setattr(dialect_duckdb, "DUCKDB", wrong)
    nodes = [node for name, found, node in SHAPES if name == function and found == types]

    assert list(differing(nodes, types, after))


def test_keys_that_become_doubles_are_caught(monkeypatch):
    """Not the SQL, but what is handed to it."""
    true = computed.vector_of
    monkeypatch.setattr(
        computed,
        "vector_of",
        lambda values, kind: true([one and int(float(one)) for one in values], kind) if kind is I else true(values, kind),
    )
    nodes = [node for name, found, node in SHAPES if name == "=" and found == (I, I)]

    assert list(differing(nodes, (I, I), after))

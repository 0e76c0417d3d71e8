"""Numbers of rows and of values in a unit: against plain Python, on pieces cut anywhere, and in whole preparations."""

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from duckdb_studies import KEY, looking_into, prepared, study_of, visits_table, write

from curador.engines.duckdb import numbering, ranking
from curador.engines.duckdb.numbering import MORE, number_rows, number_values
from curador.study.model import Column, Table, UnitColumn
from curador.study.values import Type


def reference(units, values):
    """The rows' numbers, their values' numbers, and which are first, one by one."""
    rows, numbers, firsts, seen = [], [], [], {}
    for unit, value in zip(units, values, strict=True):
        own = seen.setdefault(unit, [0, {}])
        own[0] += 1
        rows.append(own[0])
        firsts.append(value not in own[1])
        numbers.append(min(own[1].setdefault(value, len(own[1]) + 1), MORE))
    return rows, numbers, firsts


def made(dice, units, most, kinds):
    """Units in order, values of few kinds or many, NULL among them."""
    numbered = [unit for unit in range(units) for _ in range(dice.randint(1, most))]
    return numbered, [dice.choice([None, *(f"v{kind}" for kind in range(kinds))]) for _ in numbered]


@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
@pytest.mark.parametrize("table", [1, 50, 1 << 22])
def test_numbers_are_those_of_plain_python(piece, table, monkeypatch):
    """However rows are cut, and however small the table of units and values is."""
    monkeypatch.setattr(numbering, "_PIECE", piece)
    monkeypatch.setattr(numbering, "_TABLE", table)
    dice = random.Random(piece + table)
    for units, most, kinds in ((1, 1, 1), (1, 900, 400), (40, 9, 3), (40, 30, 50), (300, 1, 2)):
        numbered, values = made(dice, units, most, kinds)
        begins = np.array([True, *(one != before for before, one in pairwise(numbered))])
        found = number_rows(begins), *number_values(begins, pa.array(values, pa.string()))
        assert [one.tolist() for one in found] == list(reference(numbered, values))


def test_a_value_is_what_it_is():
    """Booleans, dates and numbers as texts; NULL is a value."""
    begins = np.array([True, False, False, False])
    for values, kind in (
        ([True, None, False, True], pa.bool_()),
        ([1, 2, None, 1], pa.int64()),
        ([3, 3, 5, None], pa.date32()),
    ):
        numbers, firsts = number_values(begins, pa.array(values, kind))
        assert (numbers.tolist(), firsts.tolist()) == reference([0] * 4, values)[1:]


COLUMNS = (
    Column("user", Type.STRING),
    Column("city", Type.STRING),
    Column("kind", Type.INTEGER, values=(1, 2, 3)),
    Column("good", Type.BOOLEAN),
    Column("spent", Type.FLOAT),
)


def visits(dice, people=30, most=40):
    """Rows with ties (identical rows), units of one row and one of very many."""
    rows = []
    for person in range(people):
        for _ in range(dice.randint(1, most)):
            row = (
                f"p{person}",
                dice.choice(["a", "b", "c", None]),
                dice.choice([1, 2, 3, 9]),
                dice.choice([True, None]),
                dice.choice([0.5, None, dice.random()]),
            )
            rows += [row] * dice.choice([1, 1, 2])
    rows += [("crowd", f"c{number % 300}", 1, True, float(number)) for number in range(900)]
    dice.shuffle(rows)
    kinds = (pa.string(), pa.string(), pa.int64(), pa.bool_(), pa.float64())
    return pa.table(
        {one.name: pa.array(values, kind) for one, values, kind in zip(COLUMNS, zip(*rows, strict=True), kinds, strict=True)}
    )


def stored(study):
    """The prepared rows, in the order in which they lie."""
    with looking_into(study) as connection:
        return connection.execute(
            "SELECT c0, c1, c2, c3, __r, __d1, __f1, __d2, __f2, __d3, __f3 FROM t0 ORDER BY rowid"
        ).fetchall()


@pytest.mark.parametrize(("chunk", "written"), [(1, 0), (1, 1 << 28), (100, 5_000), (1 << 20, 1 << 28)])
def test_a_prepared_table_holds_the_numbers_of_its_rows(tmp_path, monkeypatch, chunk, written):
    """Of every column that one groups by, whatever is looked at together; the rows of a unit lie in the order of ranks."""
    monkeypatch.setattr(ranking, "_CHUNK", chunk)
    monkeypatch.setattr(ranking, "_WRITTEN_BYTES", written)
    monkeypatch.setattr(ranking, "_LOOK", max(1, chunk // 3))
    study = visits_table(tmp_path, visits(random.Random(3)), columns=COLUMNS)
    prepared(study)
    rows = stored(study)
    units = [row[0] for row in rows]
    for place, column in ((5, 1), (7, 2), (9, 3)):
        ranks, numbers, firsts = reference(units, [row[column] for row in rows])
        assert [row[4] for row in rows] == ranks
        assert [row[place] for row in rows] == numbers
        assert [row[place + 1] for row in rows] == firsts
    assert max(row[5] for row in rows) == MORE


def test_ranks_are_those_of_the_formula(tmp_path):
    """Whatever is sorted, numbered or appended behind: what preparation chose for a data version is the same for ever."""
    study = visits_table(tmp_path, visits(random.Random(5)), columns=COLUMNS)
    prepared(study)
    names = "c0, c1, c2, c3, c4"
    with looking_into(study) as connection:
        relation = f"(SELECT *, __u AS u, __h AS h, hash(hash(__h, {names})) AS p FROM t0)"
        wanted = connection.execute(ranking.rank_by_formula(relation, names, f"{names}, __h")).fetchall()
        found = connection.execute(f"SELECT {names}, __h, __r FROM t0").fetchall()
    assert sorted(map(repr, wanted)) == sorted(map(repr, found))


def test_a_giant_unit_is_found_to_have_equal_rows_late(tmp_path, monkeypatch):
    """Its first rows were numbered by then: they wait with the others, and none is stored twice."""
    monkeypatch.setattr(ranking, "_CHUNK", 1)
    source, frames = write(
        tmp_path, "parquet", pa.table({"user": ["x"] * 400, "spent": [float(n) for n in range(399)] + [5.0]})
    )
    study = study_of(
        tmp_path,
        Table("visits", source, UnitColumn("user"), (Column("user", Type.STRING), Column("spent", Type.FLOAT))),
        frames=frames,
    )
    object.__setattr__(study.engine, "unit_rows", 20)
    prepared(study)
    with looking_into(study) as connection:
        ranks = connection.execute("SELECT __r FROM t0 ORDER BY rowid").fetchall()
    assert [rank for (rank,) in ranks] == list(range(1, 21))
    assert KEY


def test_numbers_of_others_do_not_move_when_a_person_leaves(tmp_path):
    table = visits(random.Random(8))
    found = []
    for gone in (None, "p3", "crowd"):
        folder = tmp_path / str(gone)
        folder.mkdir()
        study = visits_table(
            folder, table.filter(pa.array([name != gone for name in table.column("user").to_pylist()])), columns=COLUMNS
        )
        prepared(study)
        found.append(
            {repr(row) + str(place) for place, row in enumerate(sorted(stored(study), key=repr)) if 0}
            or sorted(repr(row) for row in stored(study) if row[0] not in {"p3", "crowd"})
        )
    assert found[0] == found[1] == found[2]


# ---- seeded bugs ---------------------------------------------------------------------------------------------------------


def test_numbers_that_forget_where_a_unit_begins_are_seen():
    begins = np.array([True, False, True, False])
    numbers, _ = number_values(np.array([True, False, False, False]), pa.array(["a", "b", "c", "a"]))
    assert numbers.tolist() != number_values(begins, pa.array(["a", "b", "c", "a"]))[0].tolist()

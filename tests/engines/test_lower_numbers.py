"""Groups chosen by stored numbers, and units counted by stored first rows: the integers are those of plain Python."""

import contextlib
import random
from collections import defaultdict
from dataclasses import replace

import pyarrow as pa
import pytest
from duckdb_studies import engine_of, visits_table

from curador.engines.duckdb.versions import Folder, prepared_folder, read_manifest, write_manifest
from curador.engines.lower import block as lowered_block
from curador.engines.lower.block import lower_block, lower_kept
from curador.errors import NotPrivate
from curador.plan.build import build_plan
from curador.plan.ownership import RequestedCaps
from curador.plan.price import written_part
from curador.query.sql import parse
from curador.study.model import Caps, Column
from curador.study.values import Type

COLUMNS = (
    Column("user", Type.STRING),
    Column("city", Type.STRING),
    Column("kind", Type.INTEGER, values=(1, 2, 3)),
    Column("spent", Type.FLOAT),
)
BY_CITY = "SELECT city FROM visits GROUP BY city"
BY_KIND = "SELECT kind, COUNT(DISTINCT user) AS n FROM visits GROUP BY kind"


def table(seed=1, people=40):
    dice = random.Random(seed)
    rows = [
        (
            f"p{one}",
            dice.choice(["a", "b", "c", "d", None]),
            dice.choice([1, 2, 3, None]),
            dice.choice([1.0, None, dice.random()]),
        )
        for one in range(people)
        for _ in range(dice.randint(1, 30))
    ]
    return pa.table(dict(zip(("user", "city", "kind", "spent"), map(list, zip(*rows, strict=True)), strict=True)))


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    study = visits_table(
        tmp_path_factory.mktemp("numbers"),
        table(),
        columns=COLUMNS,
        caps=Caps(rows=8, groups=2),
        caps_max=Caps(rows=1_000, groups=1_000),
    )
    study = replace(study, budget=replace(study.budget, delta="1e-6"))
    with contextlib.closing(engine_of(study)) as found:
        yield found


def planned(engine, text, **caps):
    (block,) = build_plan(parse(text, engine.schema), engine.schema, asked=RequestedCaps(**caps) if caps else None).blocks
    return block


def rows_of(engine):
    """Every prepared row: unit, city, kind, rank."""
    from curador.engines.lower.sql import mark_generated

    return [
        tuple(row.values()) for row in engine.run([("a", mark_generated("SELECT c0, c1, c2, __r FROM t0"))])["a"].to_pylist()
    ]


def expected(rows, column, most, groups):
    """Units by group: the first rows of a unit, of the groups that appear first in them."""
    own, counts = defaultdict(list), defaultdict(set)
    for row in sorted(rows, key=lambda row: row[3]):
        chosen = own[row[0]]
        if row[3] <= most and (row[column] in chosen or len(chosen) < groups):
            chosen += [] if row[column] in chosen else [row[column]]
            counts[row[column]].add(row[0])
    return {group: len(units) for group, units in counts.items()}


@pytest.mark.parametrize(("text", "column"), [(BY_CITY, 1), (BY_KIND, 2)])
@pytest.mark.parametrize(("rows", "groups"), [(8, 2), (3, 1), (30, 2), (8, 3)])
def test_the_groups_that_appear_first_are_kept(engine, text, column, rows, groups):
    block = planned(engine, text, rows=rows, groups=groups)
    assert (block.cap.groups, block.cap.groups_by) == (groups, "first")
    (found,) = engine.tally(engine.compile([block]))
    place = next(place for place, tally in enumerate(block.tallies) if tally.kind == "units")
    counts = dict(zip(found.keys[0], map(int, found.tallies[place]), strict=True))
    assert counts == expected(rows_of(engine), column, rows, groups)


def test_nothing_is_sorted_for_it(engine):
    statement = lower_block(planned(engine, BY_CITY), engine.schema)
    assert "DENSE_RANK" not in statement
    assert "DISTINCT" not in statement
    assert "__d1 <= 2" in statement
    assert "FILTER (WHERE __f)" in statement


def test_what_is_kept_grows_with_both_caps(engine):
    kept = {}
    for rows in (1, 4, 9, 30):
        for groups in (1, 2, 3):
            if groups < rows:
                text = lower_kept(planned(engine, BY_CITY, rows=rows, groups=groups), engine.schema)
                kept[rows, groups] = {(row["__h"], row["__o0"]) for row in engine.run([("a", text)])["a"].to_pylist()}
    assert all(kept[one] <= kept[other] for one in kept for other in kept if one[0] <= other[0] and one[1] <= other[1])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT city FROM visits WHERE spent > 0.5 GROUP BY city",
        "SELECT city, kind FROM visits GROUP BY city, kind",
        "SELECT UPPER(city) AS up FROM visits GROUP BY up",
    ],
)
def test_other_questions_choose_groups_as_before(engine, text):
    """By a hash: a filter, several keys, a computed one."""
    cap = planned(engine, text).cap
    assert cap.groups is not None
    assert cap.groups_by == "hash"


def test_more_groups_than_bytes_count_are_chosen_by_a_hash(engine):
    assert planned(engine, BY_CITY, rows=900, groups=254).cap.groups_by == "first"
    assert planned(engine, BY_CITY, rows=900, groups=255).cap.groups_by == "hash"


def test_units_are_counted_by_first_rows_without_a_cap_on_groups(engine):
    """The same integers as counting different units."""
    block = planned(engine, BY_KIND, rows=8, groups=8)
    text = lower_block(block, engine.schema)
    assert "FILTER (WHERE __f)" in text
    (found,) = engine.tally(engine.compile([block]))
    counts = dict(zip(found.keys[0], map(int, found.tallies[0]), strict=True))
    assert counts == expected(rows_of(engine), 2, 8, 99)


def test_what_is_kept_has_a_name_of_its_own(engine):
    """A stored answer to a question whose groups were chosen by a hash is no answer to this one."""
    assert written_part(planned(engine, BY_CITY).cap)[1]["groups_by"] == "first"
    assert "groups_by" not in written_part(planned(engine, "SELECT city, kind FROM visits GROUP BY city, kind").cap)[1]


def test_a_version_that_is_older_keeps_its_choice(tmp_path):
    """What was asked about it is found again, also after it was prepared anew; the next version has the new one."""
    study = visits_table(tmp_path, table(), columns=COLUMNS, caps=Caps(rows=8, groups=2))
    study = replace(study, budget=replace(study.budget, delta="1e-6"))
    with contextlib.closing(engine_of(study)) as engine:
        assert engine.schema.numbered
        folder = Folder(prepared_folder(study))
        manifest = read_manifest(folder)
        write_manifest(folder, type(manifest)(manifest.version, "another layout", manifest.sources))
        engine.prepare(1)
        assert not engine.schema.numbered
        assert planned(engine, BY_CITY).cap.groups_by == "hash"
        engine.prepare(2)
        assert planned(engine, BY_CITY).cap.groups_by == "first"


def test_numbers_that_are_not_stored_are_refused(engine):
    """A plan that counts on them is lowered on no version that has none."""
    block = planned(engine, BY_CITY)
    bare = type(engine.schema)(engine.schema.study, engine.schema.tables, engine.schema.public)
    with pytest.raises(NotPrivate, match="stored column"):
        lower_block(block, bare)


def test_one_group_too_many_is_seen(engine, monkeypatch):
    """The seeded bug: an off-by-one in the number up to which groups count."""
    plain = lowered_block.stored_number
    monkeypatch.setattr(lowered_block, "stored_number", lambda *given: (plain(*given)[0], plain(*given)[1] + 1))
    block = planned(engine, BY_CITY)
    (found,) = engine.tally(engine.compile([block]))
    assert sum(map(int, found.tallies[0])) > sum(expected(rows_of(engine), 1, 8, 2).values())

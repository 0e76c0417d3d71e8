"""Preparation is unit-local: what a unit's rows become depends on its own rows and the study's key, on nothing else."""

import collections
import contextlib
import hashlib
import itertools
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from duckdb_studies import KEY, folder_of, prepared, rows, study_of, visits_table, write

from curador.engines.duckdb import prepare, ranking, reading, versions
from curador.engines.duckdb.connection import connect
from curador.engines.duckdb.schema import describe
from curador.engines.duckdb.worker import open_connection
from curador.errors import Failed, InvalidStudy
from curador.study.model import Column, Table, UnitColumn, UnitPath, UnitRow
from curador.study.values import Type

LOCAL = "c0, c1, c2, c3, g1, __h, __r"
"""Everything of a row but the number of its unit, which is for equality only."""


def people(seed=3, count=40):
    """Rows (user, spent, city, note) with ties of every kind, one person with 1,000 identical rows."""
    draw = random.Random(seed)
    listed = [
        (f"user {number}", draw.choice([None, 0.1, 0.2, 0.3]), draw.choice(["a", "b", None]), draw.choice(["", "x"]))
        for number in range(count)
        for _ in range(draw.randrange(1, 12))
    ]
    listed += [("twin", 1.5, "a", "x")] * 1000
    listed += [("near", 1.5, "a", note) for note in map(str, range(30))]
    draw.shuffle(listed)
    return listed


def as_table(listed):
    user, spent, city, note = zip(*listed, strict=True) if listed else ((), (), (), ())
    text = pa.string()
    return pa.table(
        {
            "user": pa.array(user, text),
            "spent": pa.array(spent, pa.float64()),
            "city": pa.array(city, text),
            "note": pa.array(note, text),
        }
    )


def local_rows(folder, listed, *, key=KEY, **changes):
    """The multiset of what each person's rows become."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    study = visits_table(folder, as_table(listed), **changes)
    by_unit = collections.defaultdict(collections.Counter)
    for row in rows(study, columns=LOCAL, key=key):
        by_unit[row[0]][row] += 1
    return by_unit


def moved(folder, listed, gone, **changes):
    """The people whose rows differ between the table and the same, shuffled, without one person."""
    whole = local_rows(folder / "whole", listed, **changes)
    others = [row for row in listed if row[0] != gone]
    random.Random(5).shuffle(others)
    without = local_rows(folder / "without", others, **changes)
    return {unit for unit in whole if unit != gone and whole[unit] != without[unit]}


def numbered(folder, listed):
    """The first, a middle and the last person in the order of their numbers."""
    folder.mkdir()
    found = rows(visits_table(folder, as_table(listed)), columns="__u, c0")
    in_order = [unit for _, unit in sorted(set(found))]
    return [in_order[0], in_order[len(in_order) // 2], in_order[-1]]


def test_nobody_elses_rows_change_when_a_person_leaves(tmp_path):
    """T-UL on the prepared table: the first, a middle and the last unit removed, rows shuffled."""
    listed = people()
    whole = local_rows(tmp_path / "whole", listed)
    for number, gone in enumerate(numbered(tmp_path / "order", listed)):
        others = [row for row in listed if row[0] != gone]
        random.Random(number).shuffle(others)
        without = local_rows(tmp_path / str(number), others)

        assert without == {unit: found for unit, found in whole.items() if unit != gone}


@pytest.mark.parametrize("threads", [2, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 8))])
def test_threads_and_order_of_rows_change_nothing(tmp_path, threads):
    """Twice, shuffled, on any number of threads: bit for bit the same."""
    listed = people()
    first = local_rows(tmp_path / "a", listed)
    random.Random(8).shuffle(listed)

    assert local_rows(tmp_path / "b", listed, threads=threads) == first


@pytest.mark.slow
def test_passes_change_nothing(tmp_path, monkeypatch):
    """In how many parts a table is ranked cannot be seen."""
    listed = people()
    first = local_rows(tmp_path / "a", listed)
    monkeypatch.setattr(ranking, "_passes", lambda *_: 7)

    assert local_rows(tmp_path / "b", listed) == first


@pytest.mark.slow
def test_every_kind_of_source_gives_the_same(tmp_path):
    """The file's format is no part of a rank."""
    listed = [row for row in people(count=10) if row[3]]
    found = {
        kind: local_rows(tmp_path / kind, listed, kind=kind)
        for kind in ("parquet", "csv", "database", "arrow", "pandas", "polars")
    }

    assert all(one == found["parquet"] for one in found.values())


@pytest.mark.slow
def test_views_are_unit_local_too(tmp_path):
    """`prepare = "never"` gives the same hash and rank, and is as local."""
    listed = people(count=15)

    assert local_rows(tmp_path / "never", listed, prepare="never") == local_rows(tmp_path / "always", listed)
    assert moved(tmp_path, listed, "twin", prepare="never") == set()


def test_ranks_of_a_unit_are_one_to_its_number_of_rows(tmp_path):
    """Also of a thousand identical rows: a cap of 5 keeps 5."""
    by_unit = local_rows(tmp_path, people())

    for unit, found in by_unit.items():
        assert sorted(row[-1] for row in found.elements()) == list(range(1, found.total() + 1)), unit


@pytest.mark.slow
def test_another_key_is_another_order(tmp_path):
    """Ranks and hashes are drawn from the study's key."""
    one = local_rows(tmp_path / "a", people())
    other = local_rows(tmp_path / "b", people(), key=bytes(32))

    assert not {row[-2] for found in one.values() for row in found} & {row[-2] for found in other.values() for row in found}
    assert sum(one[unit] != other[unit] for unit in one) == len(one)


@pytest.mark.slow
def test_identical_rows_are_chosen_one_by_one(tmp_path):
    """Ten copies of one row and ten of another mix: a cap of 10 does not keep or drop all copies together.

    The mixture of a unit fails to be strict with probability 2 · 10!²/20! = 1.1e-5; for 4 units at once 1e-20.
    """
    listed = [(f"user {unit}", spent, "a", "x") for unit in range(4) for spent in (1.0, 2.0) for _ in range(10)]
    by_unit = local_rows(tmp_path, listed)
    kept = [{row[1] for row in found.elements() if row[-1] <= 10} for found in by_unit.values()]

    assert any(len(one) == 2 for one in kept)


@pytest.mark.slow
def test_no_value_is_preferred(tmp_path):
    """Which of three values has rank 1 is even over 3,000 people: chi² with 2 degrees below 41.5 (1e-9)."""
    listed = [(f"user {unit}", value, "a", "x") for unit in range(3000) for value in (1.0, 2.0, 3.0)]
    first = collections.Counter(row[1] for found in local_rows(tmp_path, listed).values() for row in found if row[-1] == 1)

    assert sum((first[value] - 1000) ** 2 / 1000 for value in (1.0, 2.0, 3.0)) < 41.5


@pytest.mark.slow
def test_an_unmixed_hash_prefers_a_value(tmp_path, monkeypatch):
    """Seeded bug: without the outer hash the order inside every unit is that of XORs, and a value is first too often."""
    monkeypatch.setattr(ranking, "pseudorandom", lambda _: "hash(h, c0, c2, c3, c1)")
    listed = [(f"user {unit}", value, "a", "x") for unit in range(3000) for value in (1.0, 2.0, 3.0)]
    first = collections.Counter(row[1] for found in local_rows(tmp_path, listed).values() for row in found if row[-1] == 1)

    assert sum((first[value] - 1000) ** 2 / 1000 for value in (1.0, 2.0, 3.0)) > 41.5


# ---- seeded bugs: each must be caught by what was asserted above -----------------------------------------------------


def test_rank_instead_of_row_number_is_caught(tmp_path, monkeypatch):
    """Equal rows with equal ranks: all thousand would pass a cap of 5."""
    wrong = "SELECT {carried}, rank() OVER (PARTITION BY u ORDER BY p) AS r FROM {relation}"
    monkeypatch.setattr(
        ranking, "rank_by_formula", lambda relation, _, carried: wrong.format(relation=relation, carried=carried)
    )
    with pytest.raises(Failed, match="the same rank"):
        local_rows(tmp_path, people())


def test_a_rank_by_place_is_caught(tmp_path, monkeypatch):
    """The order of the file decides: others' rows move when a person leaves."""
    monkeypatch.setattr(ranking, "pseudorandom", lambda _: "hash(row_number() OVER ())")

    assert len(moved(tmp_path, people(), "twin")) > 5


def test_a_hash_of_the_dense_number_is_caught(tmp_path, monkeypatch):
    """Numbers shift when a person leaves, and with them everybody's order."""
    listed = people()
    gone = numbered(tmp_path / "order", listed)[0]
    monkeypatch.setattr(ranking, "pseudorandom", lambda names: f"hash(hash(u, {names}))")

    assert len(moved(tmp_path, listed, gone)) > 5


@pytest.mark.slow
def test_a_dense_number_as_the_units_hash_is_caught(tmp_path, monkeypatch):
    """The hash must be of the original unit."""
    listed = people()
    gone = numbered(tmp_path / "order", listed)[0]
    original = prepare._number_units  # noqa: SLF001 -- a bug is seeded inside

    def dense(work, roots):
        count = original(work, roots)
        work.run("UPDATE stage.units SET h = hash(u)")
        return count

    monkeypatch.setattr(prepare, "_number_units", dense)

    assert len(moved(tmp_path, listed, gone)) > 5


def test_a_partial_hash_is_caught(tmp_path, monkeypatch):
    """Rows that differ in a column that is neither hashed nor ordered by are told apart by their place."""
    whole = ranking.rank_by_formula
    monkeypatch.setattr(ranking, "pseudorandom", lambda _: "hash(hash(h, c0, c1, c2))")
    monkeypatch.setattr(
        ranking, "rank_by_formula", lambda relation, names, carried: whole(relation, names.removesuffix(", c3"), carried)
    )

    assert "near" in moved(tmp_path, people(), "twin")


@pytest.mark.slow
def test_an_order_that_the_engine_did_not_keep_is_noticed(tmp_path, monkeypatch):
    """The rank rests on rows lying as they were sorted; that is looked at, not assumed."""
    careful = ranking.RankingPass._do  # noqa: SLF001 -- what is run
    monkeypatch.setattr(
        ranking.RankingPass,
        "_do",
        lambda self, statement: careful(self, statement.replace("ORDER BY k", "ORDER BY random()")),
    )

    with pytest.raises(Failed, match="order"):
        local_rows(tmp_path, people())


@pytest.mark.slow
def test_rows_that_are_read_in_another_order_than_they_were_looked_at_are_noticed(tmp_path, monkeypatch):
    """The number that rows are ordered by is looked at first and alone; what is read afterwards is compared with it."""
    looked = ranking.RankingPass._order  # noqa: SLF001 -- what is looked at
    monkeypatch.setattr(ranking.RankingPass, "_order", lambda self, source: looked(self, source) + np.uint64(1))

    with pytest.raises(Failed, match="order"):
        local_rows(tmp_path, people())


def test_the_hash_of_a_unit_is_its_md5():
    """The same for ever, as the order of a unit's rows follows from it: eight bytes of MD5 of key, type and text."""
    key, values = "0f" * 16, ["", "1", "é" * 200, *map(str, range(2_000))]
    with contextlib.closing(connect(":memory:", {})) as connection:
        connection.register("units", pa.table({"value": values}))
        hashed = f"SELECT {prepare.unit_hash('value', 's', key)}, md5_number_lower('{key}s' || value) FROM units"
        found = connection.execute(hashed).fetchall()
    wanted = [int.from_bytes(hashlib.md5(f"{key}s{one}".encode()).digest()[8:], "little") for one in values]  # noqa: S324
    assert found == [(one, one) for one in wanted]


# ---- who a row belongs to ------------------------------------------------------------------------------------------


def test_one_two_and_three_spellings_are_three_people(tmp_path):
    """'01', ' 1' and '1' are different units, and NULL is nobody."""
    found = rows(
        visits_table(tmp_path, as_table([(who, 1.0, "a", "x") for who in ("01", " 1", "1", None)])),
        columns="c0, __u, __h, __r",
    )

    assert sorted(row[0] for row in found) == [" 1", "01", "1"]
    assert len({row[1] for row in found}) == len({row[2] for row in found}) == 3
    assert {row[3] for row in found} == {1}


@pytest.mark.slow
def test_text_and_number_are_two_people(tmp_path):
    """The canonical bytes carry the type: '1' and 1 have different hashes."""
    by_text = rows(visits_table(tmp_path, pa.table({"user": ["1"]}), columns=()), columns="__h")
    by_number = rows(visits_table(tmp_path, pa.table({"user": [1]}), columns=()), columns="__h")

    assert by_text != by_number


@pytest.mark.parametrize("small", [16_000_000, 1_000])
def test_rows_lie_unit_by_unit_in_the_order_of_ranks(tmp_path, monkeypatch, small):
    """In every number of passes: each unit in one stretch, its ranks 1, 2, …; units with equal rows behind the others."""
    monkeypatch.setattr(ranking, "_SMALL", small)
    study = visits_table(tmp_path, as_table(people()))
    found = rows(study, columns="__u, __r")

    stretches = [unit for unit, _ in itertools.groupby(unit for unit, _ in found)]
    assert len(stretches) == len(set(stretches))
    assert set(stretches) == set(range(len(stretches)))
    assert [rank for _, rank in found] == [
        rank for _, own in itertools.groupby(found, key=lambda row: row[0]) for rank, _ in enumerate(own, start=1)
    ]


@pytest.mark.parametrize(
    "wrong", ["DELETE FROM t0 WHERE rowid = 3", "UPDATE t0 SET __r = 2 WHERE rowid = 0", "INSERT INTO t0 FROM t0 LIMIT 1"]
)
def test_rows_that_lie_otherwise_are_no_version(tmp_path, wrong):
    """A gap, a wrong rank, a unit that begins twice: each is noticed."""
    study = visits_table(tmp_path, as_table(people()))
    _, folder = prepared(study)
    with contextlib.closing(connect(str(folder.version(1)), {})) as connection:
        ranking.verify_order(connection, "t0")
        connection.execute(wrong).fetchall()
        with pytest.raises(Failed, match="order"):
            ranking.verify_order(connection, "t0")


@pytest.mark.slow
def test_unique_keeps_one_row_of_a_unit(tmp_path):
    """A declared `unique` is executed, never assumed."""
    listed = people()
    every = local_rows(tmp_path / "a", listed)
    once = local_rows(tmp_path / "b", listed, unique=True)

    assert {unit: one.total() for unit, one in once.items()} == dict.fromkeys(every, 1)
    assert all(one <= every[unit] for unit, one in once.items())


@pytest.mark.slow
def test_a_row_as_its_own_unit(tmp_path):
    """Numbers differ, ranks are 1, and the hash is of the row: it stays when another row leaves."""
    listed = people()
    whole = visits_table(tmp_path, as_table(listed), unit=UnitRow())
    found = rows(whole, columns="__u, __r, __h, c0, c1, c2, c3")
    shorter = rows(visits_table(tmp_path, as_table(listed[1:]), unit=UnitRow()), columns="__h, c0, c1, c2, c3")

    assert len({row[0] for row in found}) == len(listed)
    assert {row[1] for row in found} == {1}
    assert collections.Counter(row[2:] for row in found) - collections.Counter(shorter) == collections.Counter(
        [next(row[2:] for row in found if row[3:] == listed[0])]
    )


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["-1", "2147483647"])
def test_a_stored_number_beside_its_grid_is_no_version(tmp_path, monkeypatch, wrong):
    """Questions sum stored numbers as they are: preparation verifies them, and views clamp them, whatever made them."""
    monkeypatch.setattr(reading, "put_on_grid", lambda *_: f"CAST({wrong} AS INTEGER)")

    with pytest.raises(Failed, match="not on its grid"):
        local_rows(tmp_path / "prepared", [("a", 0.5, None, "")])
    (row,) = local_rows(tmp_path / "never", [("a", 0.5, None, "")], prepare="never")["a"]
    assert row[4] == (0 if wrong == "-1" else 500 << 21)


def test_an_empty_table_is_prepared_like_any_other(tmp_path):
    """No row is no error."""
    assert rows(visits_table(tmp_path, as_table([]))) == []
    assert rows(visits_table(tmp_path, as_table([]), unit=UnitRow())) == []


# ---- key paths -----------------------------------------------------------------------------------------------------

CUSTOMERS = {"custkey": [1, 2, 3, None], "name": ["a", "b", "c", "d"]}
ORDERS = {"orderkey": [10, 20, 30, 40, 50], "custkey": [1, 1, 2, 9, None], "total": [1.0, 2.0, 3.0, 4.0, 5.0]}
ITEMS = {"orderkey": [10, 10, 20, 30, 40, 50, 99, None], "part": ["p", "q", "p", "p", "p", "p", "p", "p"]}


def shop(folder, customers=None, orders=None, items=None, **engine):
    for name, given in (("customer", customers or CUSTOMERS), ("orders", orders or ORDERS), ("item", items or ITEMS)):
        write(folder, "parquet", pa.table(given), name)
    return study_of(
        folder,
        Table("item", "item.parquet", UnitPath("orderkey", "orders", "orderkey")),
        Table("orders", "orders.parquet", UnitPath("custkey", "customer")),
        Table("customer", "customer.parquet", UnitColumn("custkey"), unique=True),
        **engine,
    )


@pytest.mark.parametrize("prepare_when", ["auto", pytest.param("never", marks=pytest.mark.slow)])
def test_units_are_found_along_a_key_path(tmp_path, prepare_when):
    """lineitem → orders → customer: each row has its customer's unit; rows that lead to nobody are dropped."""
    study = shop(tmp_path, prepare=prepare_when)
    items = rows(study, 0, "c0, c1, __u, __h, __r")
    orders = rows(study, 1, "c0, c1, __u, __h", again=False)
    customers = rows(study, 2, "c0, __u, __h, __r", again=False)
    owner = {key: unit for key, *unit in [(row[0], row[1], row[2]) for row in customers]}

    assert sorted(owner) == [1, 2, 3]
    assert sorted((key, customer) for key, customer, *_ in orders) == [(10, 1), (20, 1), (30, 2)]
    assert all(unit == owner[customer] for _, customer, *unit in orders)
    assert sorted(row[:2] for row in items) == [(10, "p"), (10, "q"), (20, "p"), (30, "p")]
    assert all(list(row[2:4]) == owner[{10: 1, 20: 1, 30: 2}[row[0]]] for row in items)
    assert sorted(row[4] for row in items) == [1, 1, 2, 3]


@pytest.mark.slow
def test_a_key_path_is_unit_local(tmp_path):
    """Without customer 1, the rows of the others are the same in every table."""
    for name in ("whole", "without"):
        (tmp_path / name).mkdir()
    whole = shop(tmp_path / "whole")
    gone = shop(
        tmp_path / "without",
        {"custkey": [3, None, 2], "name": ["c", "d", "b"]},
        {"orderkey": [50, 40, 30], "custkey": [None, 9, 2], "total": [5.0, 4.0, 3.0]},
        {"orderkey": [99, 30, None, 40, 50], "part": ["p"] * 5},
    )
    for place, columns, owner in ((0, "c0, c1", {30}), (1, "c0, c1, c2", {30}), (2, "c0, c1", {2, 3})):
        kept = sorted(row for row in rows(whole, place, f"{columns}, __h, __r") if row[0] in owner)
        assert kept == sorted(rows(gone, place, f"{columns}, __h, __r"))


@pytest.mark.slow
def test_units_of_a_path_that_ends_at_rows(tmp_path):
    """Items of an order where each order is its own unit."""
    write(tmp_path, "parquet", pa.table(ORDERS), "orders")
    write(tmp_path, "parquet", pa.table(ITEMS), "item")
    study = study_of(
        tmp_path,
        Table("item", "item.parquet", UnitPath("orderkey", "orders", "orderkey")),
        Table("orders", "orders.parquet", UnitRow()),
    )
    items, orders = rows(study, 0, "c0, __u, __h, __r"), rows(study, 1, "c0, __u, __h", again=False)

    assert {(row[0], row[1], row[2]) for row in items} == set(orders)
    assert sorted((row[0], row[3]) for row in items) == [(10, 1), (10, 2), (20, 1), (30, 1), (40, 1), (50, 1)]


@pytest.mark.slow
def test_a_reference_to_one_of_two_roots_keeps_who_stands_there(tmp_path):
    """`references = "customer"` drops units that stand in another table only."""
    write(tmp_path, "parquet", pa.table({"who": [1, 2]}), "customer")
    write(tmp_path, "parquet", pa.table({"who": [2, 3]}), "visitor")
    write(tmp_path, "parquet", pa.table({"who": [1, 2, 3, 4]}), "orders")
    study = study_of(
        tmp_path,
        Table("orders", "orders.parquet", UnitPath("who", "customer")),
        Table("customer", "customer.parquet", UnitColumn("who")),
        Table("visitor", "visitor.parquet", UnitColumn("who")),
    )

    assert sorted(rows(study, 0, "c0")) == [(1,), (2,)]
    assert len({row[1] for place in (0, 1, 2) for row in rows(study, place, "c0, __u", again=False)}) == 3


BROKEN = {
    "repeated": {**ORDERS, "orderkey": [10, 10, 30, 40, 50]},
    "null": {**ORDERS, "orderkey": [10, None, 30, 40, 50]},
}


@pytest.mark.parametrize("prepare_when", ["auto", pytest.param("never", marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", BROKEN)
def test_a_key_of_a_path_is_verified(tmp_path, how, prepare_when):
    """A repeated or missing key is the owner's error: table and column are told, no value, and no version is taken."""
    study = shop(tmp_path, orders=BROKEN[how], prepare=prepare_when)

    with pytest.raises(InvalidStudy, match=r"tables\.orders\.columns\.orderkey must be a key") as raised:
        prepared(study)

    assert "10" not in str(raised.value)
    assert not list(tmp_path.rglob("v1.duckdb*"))
    assert not list(tmp_path.rglob("manifest.json"))


# ---- public tables ---------------------------------------------------------------------------------------------------


def nations(folder, kind="parquet", key=("id",), **columns):
    write(folder, "parquet", pa.table({"user": [1]}))
    source, frames = write(folder, kind, pa.table(columns), "nation")
    return study_of(
        folder,
        Table("visits", "visits.parquet", UnitColumn("user")),
        Table("nation", source, None, (Column("name", Type.STRING, values=("x", "y")),), key=key),
        frames=frames,
    )


@pytest.mark.slow
def test_public_rows_are_numbered_in_the_order_of_their_columns(tmp_path):
    """The number depends on the rows as a set."""
    one = rows(nations(tmp_path, id=[3, 1, 2], name=["x", "z", "y"]), 1, "c0, c1, __p")
    other = rows(nations(tmp_path, id=[2, 3, 1], name=["y", "x", "z"]), 1, "c0, c1, __p")

    assert one == other == [(1, None, 1), (2, "y", 2), (3, "x", 3)]


def test_the_key_of_a_public_table_is_verified(tmp_path):
    """A declared key that repeats is the owner's error."""
    with pytest.raises(InvalidStudy, match=r"tables\.nation\.key must be columns that no two rows agree in"):
        prepared(nations(tmp_path, id=[1, 1], name=["x", "y"]))


# ---- scale, in slow tests ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("threads", [8, *(pytest.param(one, marks=pytest.mark.long) for one in (1, 2))])
def test_many_rows_in_little_memory(tmp_path, threads):
    """100,000 rows in many passes with 100 MB: T-UL, ranks complete, ties of every kind."""
    draw = random.Random(1)
    listed = [(f"u{draw.randrange(7_000)}", float(draw.randrange(3)), draw.choice("ab"), "x") for _ in range(100_000)]
    found = local_rows(tmp_path / "a", listed, threads=threads, memory=60_000_000)
    others = [row for row in listed if row[0] != "u7"]
    draw.shuffle(others)
    without = local_rows(tmp_path / "b", others, threads=threads, memory=60_000_000)

    assert {unit for unit in found if unit != "u7" and found[unit] != without[unit]} == set()
    assert all(max(row[-1] for row in one) == one.total() for one in found.values())


@pytest.mark.slow
def test_spilled_rows_are_the_owners_alone(tmp_path, monkeypatch):
    """With too little memory for one pass rows are moved to disk, in files that nobody else can read."""
    import threading

    seen = {}
    finished = threading.Event()

    def watch():
        while not finished.is_set():
            for file in tmp_path.rglob("*"):
                with contextlib.suppress(OSError):
                    seen[file] = (file.is_dir(), file.stat().st_mode & 0o777)
            finished.wait(0.005)

    draw = random.Random(2)
    count = 1_500_000
    table = pa.table({"user": [draw.randrange(1000) for _ in range(count)], "note": [f"{n:>40}" for n in range(count)]})
    study = visits_table(tmp_path, table, columns=(), memory=120_000_000)
    monkeypatch.setattr(ranking, "_passes", lambda *_: 1)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        prepared(study)
    finally:
        finished.set()
        watcher.join()
    inside = {file: mode for file, mode in seen.items() if "study.ledger.prepared" in str(file)}

    assert any("spill" in str(file) and not is_folder for file, (is_folder, _) in inside.items())
    assert {mode for is_folder, mode in inside.values() if is_folder} == {0o700}
    assert {mode for is_folder, mode in inside.values() if not is_folder} == {0o600}


@pytest.mark.slow
def test_the_views_need_no_file_but_the_sources(tmp_path):
    """Without preparation a question can read the sources and nothing else."""
    study = visits_table(tmp_path, as_table(people(count=3)), prepare="never")
    schema, folder = describe(study), folder_of(study)
    versions.take_version(schema, folder, 1)
    (tmp_path / "other.csv").write_text("a\n1\n")
    found = prepare.make_views(schema, "00", folder.frames)

    assert found.allowed == (str(tmp_path / "visits.parquet"),)
    with contextlib.closing(open_connection(versions.specification(schema, folder, 1))) as connection:
        assert connection.execute("SELECT count(*) > 0 FROM t0").fetchall() == [(True,)]
        with pytest.raises(Exception, match="disabled by configuration"):
            connection.execute(f"SELECT * FROM read_csv('{tmp_path / 'other.csv'}')").fetchall()
        with contextlib.closing(connect(":memory:", {})) as free:
            assert free.execute(f"SELECT * FROM read_csv('{tmp_path / 'other.csv'}')").fetchall() == [(1,)]

"""The engine of a Spark server: its rules, what preparation stores, ends in time, and what nobody but the owner is told."""

import contextlib
import dataclasses
import math
import time
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb_studies import engine_of, settings, study_of
from spark_layout import address, on_spark, opened, own_sail, settings_of

import curador as cu
from curador.engines.base import EngineFailed, Sources, at_most, engine_kind
from curador.engines.duckdb.numbering import number_rows, number_values
from curador.engines.duckdb.versions import unit_key
from curador.engines.lower.sql import mark_generated
from curador.engines.spark import prepare, server
from curador.engines.spark.engine import KIND, SparkEngine
from curador.engines.spark.server import fetch, read_address
from curador.engines.spark.versions import read_manifest
from curador.plan.build import build_plan
from curador.query.sql import parse
from curador.study.formats import FileFormat
from curador.study.model import Caps, Column, EngineSettings, Table, UnitColumn, UnitRow
from curador.study.values import Type
from curador.testing import NonconformingError, check_engine

pytestmark = pytest.mark.slow

COLUMNS = (
    Column("spent", Type.FLOAT, bounds=(Fraction(0), Fraction(500))),
    Column("city", Type.STRING),
    Column("day", Type.DATE),
)
VISITS = Table("visits", "visits.parquet", UnitColumn("user"), COLUMNS, caps=Caps(rows=20))


def rows_of(rows, seed=3, people=40):
    dice = np.random.default_rng(seed)
    return pa.table(
        {
            "user": [f"p{number}" for number in dice.integers(0, people, rows)],
            "spent": pa.array(dice.normal(100, 150, rows)),
            "city": pa.array(dice.choice(["Lima", "Cuzco", "Quito", ""], rows), pa.string()),
            "day": pa.array(dice.integers(10_000, 10_030, rows).astype("int32"), pa.int32()).cast(pa.date32()),
        }
    )


def study_on(folder, rows=None, table=VISITS, **engine):
    pq.write_table(rows_of(300) if rows is None else rows, folder / "visits.parquet")
    return study_of(folder, table, **engine)


def table_of(engine, name="t0"):
    return engine.run([("rows", mark_generated(f"SELECT * FROM {name}"))])["rows"]


def asked(engine, question="SELECT city, COUNT(*) AS n, SUM(spent) AS s FROM visits GROUP BY city"):
    return engine.tally(engine.compile(build_plan(parse(question, engine.schema), engine.schema).blocks))


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with contextlib.closing(opened(study_on(tmp_path_factory.mktemp("spark")))) as found:
        yield found


# ---- rules -------------------------------------------------------------------------------------------------------------


def test_it_keeps_the_rules_of_every_engine():
    check_engine(opened)


def test_a_broken_rule_is_caught():
    class OneMore(SparkEngine):
        def tally(self, compiled):
            found = super().tally(compiled)
            return [dataclasses.replace(one, tallies={place: n + 1 for place, n in one.tallies.items()}) for one in found]

    def wrong(study):
        made = OneMore(on_spark(study), 1)
        made.prepare(1)
        return made

    with pytest.raises(NonconformingError, match="not what Python counts"):
        check_engine(wrong, copies=False)


# ---- preparation -------------------------------------------------------------------------------------------------------


TRAPS = [
    "",
    " ",
    "a",
    "A",
    "a ",
    " a",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "1",
    "1.0",
    "01",
    "ﬁ",
    "İ",
    "日本",
    "\t",
    "x" * 256,
    "%s",
    "'; --",
    "\\",
]


@pytest.mark.parametrize("kind", ["string", "integer"])
def test_a_unit_is_the_same_person_as_on_the_embedded_engine(kind, tmp_path):
    """Numbers and hashes of units, bit for bit; who is nobody there is nobody here."""
    units = TRAPS if kind == "string" else [0, 1, -1, 7, 1 << 40, (1 << 63) - 1, -(1 << 63), *range(100, 400)]
    held = [*units, *units, None, *(["y" * 257] if kind == "string" else [])]
    rows = pa.table({"user": pa.array(held), "spent": pa.array([1.0] * len(held))})
    table = dataclasses.replace(VISITS, columns=COLUMNS[:1])
    study = study_on(tmp_path, rows, table)
    with contextlib.closing(engine_of(study)) as duck, contextlib.closing(opened(study)) as spark:
        statement = mark_generated("SELECT DISTINCT c0, __u, CAST(__h AS STRING) AS h FROM t0")
        (ours, theirs) = (one.run([("rows", statement)])["rows"].to_pylist() for one in (spark, duck))
        (key,) = {unit_key(one._folder) for one in (spark, duck)}  # noqa: SLF001
    assert len(key) == 32
    assert {(one["c0"], one["__u"], int(one["h"]) % (1 << 64)) for one in ours} == {
        (one["c0"], one["__u"], int(one["h"])) for one in theirs
    }
    assert {one["c0"] for one in ours} == set(units)


def ranks_follow(rows):
    """What is wrong with the numbers of a prepared table; c0 is the unit, c2 and c3 are numbered."""
    rows = rows.sort_by([("__u", "ascending"), ("__r", "ascending")])
    units = np.asarray(rows.column("__u").to_numpy())
    begins = np.concatenate(([True], units[1:] != units[:-1]))
    if rows.column("__r").to_pylist() != number_rows(begins).tolist():
        return "ranks"
    for name in ("2", "3"):
        numbers, firsts = number_values(begins, rows.column(f"c{name}").combine_chunks())
        if (
            rows.column(f"__d{name}").to_pylist() != numbers.tolist()
            or rows.column(f"__f{name}").to_pylist() != firsts.tolist()
        ):
            return f"numbers of c{name}"
    return None


def test_ranks_and_numbers_of_values_are_what_numbering_says(engine):
    rows = table_of(engine)
    assert rows.num_rows == 300
    assert ranks_follow(rows) is None
    assert ranks_follow(rows.set_column(rows.column_names.index("__d2"), "__d2", pa.array([1] * 300))) == "numbers of c2"


def test_rows_of_others_are_the_same_without_a_unit(tmp_path):
    """T-UL, bit for bit but for dense numbers: everything stored of a unit is a function of its own rows and the key."""
    whole = rows_of(300)
    less = whole.filter(pa.array([user != "p7" for user in whole.column("user").to_pylist()]))
    shuffled = less.take(np.random.default_rng(1).permutation(less.num_rows))
    with contextlib.closing(opened(study_on(tmp_path, whole))) as one:
        before = multiset(table_of(one))
        pq.write_table(shuffled, tmp_path / "visits.parquet")
        one.prepare(2)
        after = multiset(table_of(one))
    assert after == Counter({row: count for row, count in before.items() if ("c0", "'p7'") not in row})


def multiset(rows):
    return Counter(tuple((name, repr(value)) for name, value in row.items() if name != "__u") for row in rows.to_pylist())


def first_of_two(folder, people=1500):
    """In how many units of two rows the one with the smaller value is first."""
    rows = pa.table({"user": [*range(people), *range(people)], "spent": [1.0] * people + [2.0] * people})
    study = study_on(folder, rows, dataclasses.replace(VISITS, columns=COLUMNS[:1]))
    with contextlib.closing(opened(study)) as one:
        found = one.run(
            [("rows", mark_generated("SELECT SUM(CASE WHEN c1 = 1 THEN 1 ELSE 0 END) AS n FROM t0 WHERE __r = 1"))]
        )
    return found["rows"].column(0).to_pylist()[0]


def test_which_row_comes_first_is_drawn(tmp_path, monkeypatch):
    """Hoeffding: a fair draw is outside with probability 2·exp(−2·n·t²) < 10⁻⁶; by value alone it is always the smaller."""
    people = 1500
    reach = math.sqrt(math.log(2e6) / (2 * people)) * people
    for name in ("drawn", "by_value"):
        (tmp_path / name).mkdir()
    assert abs(first_of_two(tmp_path / "drawn") - people / 2) <= reach
    plain = prepare.SparkPreparation.write
    monkeypatch.setattr(
        prepare.SparkPreparation,
        "write",
        lambda self, name, text, **by: plain(self, name, text.replace("xxhash64(h, c0, c1)", "0L"), **by),
    )
    assert abs(first_of_two(tmp_path / "by_value") - people / 2) > reach


def test_rows_of_one_unit_are_limited(tmp_path):
    rows = pa.table({"user": ["a"] * 50 + ["b"] * 3, "spent": [1.0] * 53})
    study = study_on(tmp_path, rows, dataclasses.replace(VISITS, columns=COLUMNS[:1], caps=Caps(rows=10)), unit_rows=20)
    with contextlib.closing(opened(study)) as one:
        assert sorted(Counter(table_of(one).column("c0").to_pylist()).items()) == [("a", 20), ("b", 3)]


def test_rows_that_are_units_have_numbers_of_their_own(tmp_path):
    table = dataclasses.replace(VISITS, unit=UnitRow())
    with contextlib.closing(opened(study_on(tmp_path, table=table))) as one:
        rows = table_of(one)
        assert len(set(rows.column("__u").to_pylist())) == 300
        (tallied,) = asked(one, "SELECT COUNT(*) AS n FROM visits")
        assert int(tallied.tallies[0][0]) == 300


def test_the_rank_key_is_text_of_no_statement(tmp_path, monkeypatch):
    """Every statement and path that preparing sends is looked at: the key is in a table that goes with the plan."""
    said = []
    plain = server._new_session  # noqa: SLF001

    def listening(where):
        session = plain(where)
        sql, conf = session.sql, session.conf.set
        session.sql = lambda text, *more: said.append(text) or sql(text, *more)
        session.conf.set = lambda name, value: said.append(value) or conf(name, value)
        return session

    monkeypatch.setattr(server, "_new_session", listening)
    with contextlib.closing(opened(study_on(tmp_path))) as one:
        key = unit_key(one._folder)  # noqa: SLF001
    assert any("curador_key" in text for text in said)
    assert not any(key in text or key[:16] in text for text in said)


# ---- an end in time, and what is told ------------------------------------------------------------------------------------


CANARY = "Zanzibar-4711"


def test_what_a_server_says_stays_in_the_owners_log(engine):
    with pytest.raises(EngineFailed) as caught:
        engine.run([("x", mark_generated(f"SELECT raise_error('{CANARY}') AS x FROM t0"))])
    assert CANARY not in str(caught.value)
    assert (
        str(caught.value)
        == f"The engine could not answer; the owner finds the reason under incident {caught.value.incident}."
    )
    assert CANARY in engine._folder.incidents.read_text()  # noqa: SLF001
    assert len(asked(engine)) == 1  # and goes on


LONG = "SELECT COUNT(*) AS n FROM range(3000000) AS a JOIN range(200000) AS b ON a.id % 1000 <> b.id % 777"


def test_a_late_statement_ends_with_its_deadline(engine, monkeypatch):
    """It is interrupted by its tag on the server, too; the next question is answered."""
    ended = []
    plain = server._quietly  # noqa: SLF001
    monkeypatch.setattr(server, "_quietly", lambda work: (plain(work), ended.append(work)))
    with at_most(0.5), pytest.raises(EngineFailed):
        engine.run([("x", mark_generated(LONG))])
    waited = time.monotonic() + 60
    while not ended and time.monotonic() < waited:
        time.sleep(0.05)
    assert ended
    assert "The deadline passed." in engine._folder.incidents.read_text()  # noqa: SLF001
    with at_most(-1), pytest.raises(EngineFailed):
        asked(engine)
    assert len(asked(engine)) == 1


def test_an_interrupt_reaches_the_server(engine):
    """A statement under a tag that is interrupted fails on the server, long before it would be done."""
    session = engine._server.open_session()  # noqa: SLF001
    with pytest.raises(server.BrokenError, match="deadline"):
        fetch(session, LONG, time.monotonic() + 0.5)
    assert fetch(session, "SELECT 1 AS one", time.monotonic() + 60).column(0).to_pylist() == [1]
    session.stop()


def test_a_lost_server_keeps_the_charge_and_comes_back(tmp_path, monkeypatch):
    """Lost after the charge: the message is constant, the charge stays; once it is back, the same curator goes on."""
    running = own_sail()
    port = running.listening_address[1]
    study = study_on(tmp_path, deadline=Fraction(120))
    engine = dataclasses.replace(settings_of(tmp_path, study.engine), url=f"sc://127.0.0.1:{port}")
    study = dataclasses.replace(study, budget=cu.Budget(epsilon=10, delta=1e-6), allow_large_delta=True, engine=engine)
    question, tally = "SELECT COUNT(*) AS n FROM visits", SparkEngine.tally

    def losing(self, compiled):
        running.stop()
        with at_most(2):
            return tally(self, compiled)

    with cu.open(study) as curator:
        assert curator.ask(question, spend="1%")
        spent = str(curator.budget)
        with monkeypatch.context() as patch:
            patch.setattr(SparkEngine, "tally", losing)
            with pytest.raises(cu.Failed) as caught:
                curator.ask("SELECT COUNT(spent) AS n FROM visits", spend="1%")
        assert "127.0.0.1" not in str(caught.value)
        assert str(curator.budget) != spent
        again = own_sail(port)
        try:
            assert curator.ask("SELECT COUNT(city) AS n FROM visits", spend="1%")
        finally:
            again.stop()


# ---- what is refused, before anything is read ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sc://host:15002/;token=" + CANARY, "an address without"),
        ("postgresql://host/db", "the address of a Spark Connect server"),
        ("sc://", "the address of a Spark Connect server"),
        ("", "the address of a Spark Connect server"),
    ],
)
def test_addresses_that_are_none(url, said):
    with pytest.raises(cu.InvalidStudy, match=said) as caught:
        read_address(EngineSettings(kind="spark", url=url))
    assert CANARY not in str(caught.value)


def test_a_token_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv(server.TOKEN, CANARY)
    found = read_address(EngineSettings(kind="spark", url="sc://Host/;use_ssl=true"))
    assert found.place == "sc://host:15002"
    assert found.url == f"sc://host:15002/;use_ssl=true;token={CANARY}"


def refusal(folder, *, columns=COLUMNS, source="visits.parquet", store=None, how=None, **changes):
    pq.write_table(rows_of(10), folder / "visits.parquet")
    study = study_of(folder, Table("visits", source, UnitColumn("user"), columns, format=how))
    engine = settings_of(folder, study.engine, **changes)
    study = dataclasses.replace(study, engine=engine if store is None else dataclasses.replace(engine, store=store))
    with pytest.raises(cu.InvalidStudy) as caught:
        KIND.describe(study)
    return str(caught.value)


def test_studies_that_a_server_cannot_answer(tmp_path):
    assert "a folder in which the server may write" in refusal(tmp_path, store="")
    assert 'must be "auto"' in refusal(tmp_path, prepare="never")
    assert "a table that the server can read" in refusal(tmp_path, source="nowhere.visits")
    assert "Parquet files that the server can read" in refusal(tmp_path, source="nowhere.parquet")
    assert "a table such as hospital.visits" in refusal(tmp_path, source="visits; DROP TABLE x")
    assert "reads as integer" in refusal(tmp_path, columns=(Column("city", Type.INTEGER),))
    assert "a column of the source" in refusal(tmp_path, columns=(Column("nothing", Type.INTEGER),))
    assert "left out on this engine" in refusal(tmp_path, how=FileFormat(decimal=","))
    assert "a frame given from Python" in refusal(tmp_path, source="frame")


def test_a_server_that_does_not_answer(monkeypatch):
    monkeypatch.setattr(server, "_new_session", lambda _: time.sleep(60))
    with pytest.raises(cu.InvalidStudy, match="a Spark Connect server that answers") as caught:
        server.connect(EngineSettings(kind="spark", url="sc://host/"), seconds=0.1)
    assert "sc://host:15002" in str(caught.value)


def test_statements_that_nobody_lowered(engine):
    with pytest.raises(cu.Failed, match="made by the lowering"):
        engine.run([("x", "SELECT 1")])


# ---- versions ------------------------------------------------------------------------------------------------------------


def test_a_version_stays_what_it_was(tmp_path):
    """Sources are compared only where a version is made again; what was written over on the server is noticed."""
    study = study_on(tmp_path)
    with contextlib.closing(opened(study)) as one:
        assert one.ready
        kind, made = engine_kind("spark"), one._study  # noqa: SLF001
        pq.write_table(rows_of(10), tmp_path / "visits.parquet")
        assert kind.sources(made, 1) is Sources.SAME
        assert kind.sources(made, 2) is Sources.UNKNOWN
        declared = dataclasses.replace(VISITS, columns=COLUMNS[:1])
        otherwise = dataclasses.replace(made, tables=(declared,))
        assert kind.sources(otherwise, 1) is Sources.CHANGED
        assert not SparkEngine(otherwise, 1).ready
        place = read_manifest(one._folder).place  # noqa: SLF001
        assert place.startswith(str(tmp_path / "store" / "v1-"))
        assert KIND.drop_prepared(made).startswith("removed")
        assert KIND.drop_prepared(made) == "nothing was prepared"
        assert not SparkEngine(made, 1).ready


def test_rows_that_were_taken_away_are_noticed(tmp_path):
    with contextlib.closing(opened(study_on(tmp_path))) as one:
        (file, *_) = sorted((tmp_path / "store").rglob("t0/*.parquet"))
        file.unlink()
        again = SparkEngine(one._study, 1)  # noqa: SLF001
        assert again.altered
        assert not again.ready


def test_where_private_rows_come_from(tmp_path):
    study = on_spark(study_on(tmp_path))
    (found,) = KIND.private_sources(study)
    assert found.file == tmp_path / "visits.parquet"
    (found,) = KIND.private_sources(dataclasses.replace(study, tables=(dataclasses.replace(VISITS, source="Shop.visits"),)))
    assert (found.place, found.inside, found.file) == (read_address(study.engine).place, "shop.visits", None)
    assert address().startswith(found.place[:12])
    assert len(KIND.exposures(study)) == 2
    assert settings().kind == "duckdb"


def test_a_preparation_that_fails_leaves_no_rows(tmp_path, monkeypatch):
    """Neither what it stored on the way nor what it had finished; the owner is told, and the old version stays."""
    study = study_on(tmp_path)
    with contextlib.closing(opened(study)) as one:
        plain = prepare.SparkPreparation.rows

        def rows(self, statement):
            if "HAVING" in statement:
                raise server.BrokenError(CANARY)
            return plain(self, statement)

        monkeypatch.setattr(prepare.SparkPreparation, "rows", rows)
        with pytest.raises(EngineFailed) as caught:
            one.prepare(2)
        assert CANARY not in str(caught.value)
        held = [file for file in (tmp_path / "store").rglob("*.parquet") if pq.read_metadata(file).num_rows]
        assert {file.parent.parent.name.partition("-")[0] for file in held} == {"v1"}
        assert SparkEngine(one._study, 1).ready  # noqa: SLF001


def test_names_of_our_own_hide_no_table(tmp_path):
    for name in ("units", "T0", "source12", "s0"):
        assert "another name" in refusal(tmp_path, source=name)


def test_a_failure_ends_nobody_elses_question(engine):
    """Who fails retires the session; who is still asking keeps it until the answer is there. Nothing is left open."""
    until = time.monotonic() + 60
    with engine._session(empty=False, until=until) as session:  # noqa: SLF001
        with pytest.raises(EngineFailed):
            engine.run([("x", mark_generated("SELECT raise_error('x') AS x FROM t0"))])
        assert not engine._sessions  # noqa: SLF001
        assert fetch(session, "SELECT COUNT(*) AS n FROM t0", until).column(0).to_pylist() == [300]
    assert len(asked(engine)) == 1
    assert {lent.users for lent in engine._sessions.values()} == {0}  # noqa: SLF001

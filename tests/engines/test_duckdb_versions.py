"""A data version is an owner's act; what a source holds leaves the owner's store in no form."""

import contextlib
import dataclasses
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb_studies import engine_of, prepared, rows, study_of, visits_table, write

from curador.engines.duckdb import prepare as progress_module
from curador.engines.duckdb import versions
from curador.engines.duckdb.connection import connect
from curador.engines.duckdb.engine import DuckDBEngine
from curador.engines.duckdb.schema import describe
from curador.engines.duckdb.versions import Folder, have_sources_changed, prepared_folder
from curador.engines.lower.sql import GeneratedSQL
from curador.errors import InvalidStudy
from curador.study.model import Caps, Column, Table, UnitColumn
from curador.study.values import Type

TABLE = pa.table({"user": [1, 2, 3], "spent": [1.0, 2.0, 3.0], "city": ["a", "b", "c"]})


def folder_of(study):
    return Folder(prepared_folder(study))


@pytest.mark.parametrize("kind", ["csv", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("parquet", "database"))])
def test_a_file_that_was_touched_has_not_changed(tmp_path, kind):
    """Contents decide, and they are read only where size or time differ."""
    study = visits_table(tmp_path, TABLE, kind)
    prepared(study)
    file = next(tmp_path.glob("visits.*"))
    before = folder_of(study).manifest.read_bytes()
    os.utime(file, ns=(1, 1))

    assert not have_sources_changed(study)
    assert folder_of(study).manifest.read_bytes() != before  # the new time is remembered
    assert not have_sources_changed(study)


@pytest.mark.parametrize("kind", ["csv", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("parquet", "database"))])
def test_a_changed_file_is_noticed(tmp_path, kind):
    """Any change of contents."""
    study = visits_table(tmp_path, TABLE, kind)
    prepared(study)
    write(tmp_path, kind, TABLE.slice(1))

    assert have_sources_changed(study)


@pytest.mark.parametrize("kind", ["arrow", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("pandas", "polars"))])
def test_a_changed_frame_is_noticed(tmp_path, kind):
    """The same rows in other pieces are the same; other rows are not."""
    study = visits_table(tmp_path, TABLE, kind)
    prepared(study)
    pieces = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])
    others = pa.concat_tables([TABLE.slice(1), TABLE.slice(0, 1)])

    assert not have_sources_changed(study)
    assert not have_sources_changed(dataclasses.replace(study, frames=write(tmp_path, kind, pieces)[1]))
    assert have_sources_changed(dataclasses.replace(study, frames=write(tmp_path, kind, others)[1]))


@pytest.mark.slow
def test_a_new_file_of_a_glob_is_a_change(tmp_path):
    """Added and removed files are noticed; a moved study is not a change."""
    (tmp_path / "here").mkdir()
    pq.write_table(TABLE, tmp_path / "here" / "a.parquet")
    study = study_of(tmp_path / "here", Table("visits", "*.parquet", UnitColumn("user")))
    prepared(study)
    assert not have_sources_changed(study)
    (tmp_path / "here").rename(tmp_path / "there")
    study = dataclasses.replace(study, folder=tmp_path / "there")

    assert not have_sources_changed(study)
    pq.write_table(TABLE, tmp_path / "there" / "b.parquet")
    assert have_sources_changed(study)


def test_nothing_taken_yet_is_no_change(tmp_path):
    """A study that is opened the first time has no past."""
    assert not have_sources_changed(visits_table(tmp_path, TABLE))


def test_a_refresh_replaces_the_version_whether_or_not_anything_changed(tmp_path):
    """One prepared file, of the new number; the engine answers from it."""
    study = visits_table(tmp_path, TABLE)
    with contextlib.closing(engine_of(study)) as engine:
        assert (engine.version, engine.ready) == (1, True)
        engine.prepare(2)

        assert (engine.version, engine.ready) == (2, True)
    assert [file.name for file in folder_of(study).path.glob("v*")] == ["v2.duckdb"]
    with contextlib.closing(DuckDBEngine(study, 1)) as old:
        assert not old.ready


@pytest.mark.slow
def test_ranks_survive_a_refresh(tmp_path):
    """The key is the study's, so a person's rows keep their order over versions."""
    study = visits_table(tmp_path, TABLE)
    engine_of(study).close()
    folder = folder_of(study)
    with contextlib.closing(DuckDBEngine(study, 1)) as engine:
        first = versions.unit_key(folder), (folder.path / "key").read_bytes()
        engine.prepare(2)

    assert (versions.unit_key(folder), (folder.path / "key").read_bytes()) == first


@pytest.mark.slow
def test_other_declarations_need_another_preparation(tmp_path):
    """Bounds shape the stored grids, values and types the columns; analysts and caps do not."""
    study = visits_table(tmp_path, TABLE)
    engine_of(study).close()
    table = study.tables[0]
    other_bounds = dataclasses.replace(table, columns=(Column("spent", Type.FLOAT, bounds=(0, 9)),))
    more_rows = dataclasses.replace(table, caps=Caps(rows=3))

    assert not DuckDBEngine(dataclasses.replace(study, tables=(other_bounds,)), 1).ready
    assert DuckDBEngine(dataclasses.replace(study, tables=(more_rows,)), 1).ready


@pytest.mark.slow
def test_an_owners_error_leaves_the_old_version(tmp_path):
    """A preparation that fails takes nothing away."""
    write(tmp_path, "parquet", pa.table({"id": [1, 2]}), "nation")
    write(tmp_path, "parquet", TABLE)
    study = study_of(
        tmp_path,
        Table("visits", "visits.parquet", UnitColumn("user")),
        Table("nation", "nation.parquet", None, key=("id",)),
    )
    engine = engine_of(study)
    write(tmp_path, "parquet", pa.table({"id": [1, 1]}), "nation")
    with pytest.raises(InvalidStudy):
        engine.prepare(2)

    assert [file.name for file in folder_of(study).path.glob("v*")] == ["v1.duckdb"]
    assert DuckDBEngine(study, 1).ready


@pytest.mark.slow
def test_a_source_that_changes_while_it_is_read_is_noticed(tmp_path, monkeypatch):
    """No version is a mixture of two."""
    study = visits_table(tmp_path, TABLE)
    original = versions.prepare

    def slow(*given):
        original(*given)
        write(tmp_path, "parquet", TABLE.slice(1))

    monkeypatch.setattr(versions, "prepare", slow)

    with pytest.raises(InvalidStudy, match="changed meanwhile"):
        prepared(study)
    assert not (folder_of(study).manifest).exists()


@pytest.mark.slow
def test_digests_are_keyed_and_stay_in_the_manifest(tmp_path):
    """Two studies of one file have different digests, and no other file or message holds one."""
    digests = []
    for name, key in (("a", bytes(32)), ("b", bytes(range(32)))):
        (tmp_path / name).mkdir()
        study = visits_table(tmp_path / name, TABLE)
        prepared(study, key=key)
        digests.append(json.loads(folder_of(study).manifest.read_text())["sources"]["visits"][0]["digest"])
        others = [file for file in (tmp_path / name).rglob("*") if file.is_file() and file.name != "manifest.json"]
        assert not any(digests[-1].encode() in file.read_bytes() for file in others)

    assert len(set(digests)) == 2


@pytest.mark.slow
def test_the_same_version_can_be_made_again(tmp_path):
    """After the prepared copy was dropped: the same key, the same ranks."""
    study = visits_table(tmp_path, TABLE)
    first = rows(study)
    folder_of(study).remove_versions()
    assert not DuckDBEngine(study, 1).ready
    assert not have_sources_changed(study)

    assert rows(study) == first


@pytest.mark.slow
def test_a_copy_of_an_older_layout_is_not_read_and_is_made_again(tmp_path, monkeypatch):
    """Whoever asks is told what to do; the ranks of the new copy are those of the old one."""
    study = visits_table(tmp_path, TABLE)
    now = versions.PREPARATION
    monkeypatch.setattr(versions, "PREPARATION", 2)
    first = rows(study, columns="c0, c1, __u, __h, __r")
    numbered = versions.read_manifest(folder_of(study)).numbered
    with contextlib.closing(connect(str(folder_of(study).version(1)), {})) as connection:
        connection.execute("ALTER TABLE t0 DROP COLUMN __b").fetchall()
    monkeypatch.setattr(versions, "PREPARATION", now)

    with contextlib.closing(DuckDBEngine(study, 1)) as engine:
        assert not engine.ready
        assert not have_sources_changed(study)
        with pytest.raises(InvalidStudy, match="must be prepared for the study as it is declared") as refused:
            engine.run([("n", GeneratedSQL("SELECT count(*) AS n FROM t0"))])
        assert "curador prepare" in str(refused.value)
        engine.prepare(1)
        assert engine.ready

    assert rows(study, columns="c0, c1, __u, __h, __r", again=False) == first
    assert versions.read_manifest(folder_of(study)).numbered == numbered
    assert rows(study, columns="__b", again=False) == [(one[3] >> 60,) for one in first]


@pytest.mark.slow
def test_a_second_engine_reads_the_same_version(tmp_path):
    """Readers do not lock one another out."""
    study = visits_table(tmp_path, TABLE)
    count = [("n", GeneratedSQL("SELECT count(*) AS n FROM t0"))]
    with contextlib.closing(engine_of(study)) as one, contextlib.closing(DuckDBEngine(study, 1)) as other:
        assert one.schema.tables == other.schema.tables
        assert one.run(count)["n"].to_pylist() == other.run(count)["n"].to_pylist() == [{"n": 3}]


@pytest.mark.slow
@pytest.mark.parametrize("prepare", ["auto", "never"])
def test_several_tables_of_one_database(tmp_path, prepare):
    """One DuckDB file, tables in its schemas, opened by two engines of one process."""
    with contextlib.closing(connect(str(tmp_path / "all.duckdb"), {})) as connection:
        for statement in (
            "TABLE a AS SELECT 1 AS who",
            "SCHEMA more",
            "TABLE more.b AS SELECT 1 AS who",
            "TABLE n AS SELECT 7 AS id",
        ):
            connection.execute(f"CREATE {statement}").fetchall()
    study = study_of(
        tmp_path,
        Table("a", "all.duckdb#a", UnitColumn("who")),
        Table("b", "all.duckdb#more.b", UnitColumn("who")),
        Table("n", "all.duckdb#n", None),
        prepare=prepare,
    )
    joined = [("n", GeneratedSQL("SELECT count(*) AS n FROM t0 JOIN t1 ON t0.__u = t1.__u"))]
    with contextlib.closing(engine_of(study)) as one, contextlib.closing(DuckDBEngine(study, 1)) as other:
        assert one.run(joined)["n"].to_pylist() == other.run(joined)["n"].to_pylist() == [{"n": 1}]
        assert other.schema.public.distinct("n", "id", 5) == (7,)


def test_the_folder_says_how_large_it_is(tmp_path):
    """For `check`: a second copy of sensitive rows is never silent."""
    study = visits_table(tmp_path, TABLE)
    prepared(study)

    assert folder_of(study).size() > 0
    assert prepared_folder(study) == tmp_path / "study.ledger.prepared"


@pytest.mark.slow
def test_progress_is_told_by_the_clock(tmp_path, monkeypatch):
    """Nothing within two seconds; each step once where it takes longer."""
    study = visits_table(tmp_path, TABLE)
    schema, folder = describe(study), folder_of(study)
    told = []
    versions.take_version(schema, folder, 1, told.append)
    assert told == []

    monkeypatch.setattr(progress_module, "PATIENCE", 0.0)
    versions.take_version(schema, folder, 2, told.append)
    assert told[-3:] == ["reading visits", "ranking rows of visits", "writing"]  # digested only where others share it
    assert len(told) == len(set(told))


@pytest.mark.slow
def test_a_damaged_manifest_is_the_owners_error(tmp_path):
    """Told with a way out."""
    study = visits_table(tmp_path, TABLE)
    prepared(study)
    folder_of(study).manifest.write_text("{")

    with pytest.raises(InvalidStudy, match="curador refresh"):
        have_sources_changed(study)


def test_the_store_can_be_read_back(tmp_path):
    """What is written is what was seen."""
    study = visits_table(tmp_path, TABLE)
    prepared(study)
    manifest = versions.read_manifest(folder_of(study))

    assert (manifest.version, [one.path for one in manifest.sources["visits"]]) == (1, ["visits.parquet"])

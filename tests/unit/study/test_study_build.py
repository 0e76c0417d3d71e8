# ruff: noqa: E501 -- tables of sentences
"""A study made from Python arguments is the study that a file would declare."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from curador.errors import InvalidStudy
from curador.privacy.adjacency import Adjacency
from curador.study.build import build_study, override
from curador.study.file import parse_study, read_study
from curador.study.model import (
    Analyst,
    Budget,
    Caps,
    Column,
    EngineSettings,
    Table,
    UnitColumn,
    UnitPath,
    UnitRow,
)
from curador.study.values import Type

BUDGET = Budget(epsilon=3, delta=1e-6)
FRAMES = [pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]}), pa.RecordBatch.from_pydict({"a": [1]})]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def build(source, **arguments):
    return build_study(source, **{"unit": "user_id", "budget": BUDGET, **arguments})


def test_five_lines_make_a_study(here):
    """Path, unit, budget, bounds and ledger are enough; types come from the source."""
    study = build(
        "visits.parquet", bounds={"spent": (0, 500)}, ledger="visits.ledger", physical={"spent": Type.FLOAT, "x": None}
    )

    assert study.name == "visits"
    assert study.tables == (
        Table(
            "visits", "visits.parquet", UnitColumn("user_id"), (Column("spent", Type.FLOAT, (Fraction(0), Fraction(500))),)
        ),
    )
    assert (study.folder, study.ledger, study.budget) == (here, Path("visits.ledger"), BUDGET)
    assert study.unit_name == "person"


def test_it_is_the_study_of_its_file(here):
    """What to_toml writes beside the data reads back as the same study."""
    study = build(
        "data/visits.parquet",
        bounds={"visits.spent": (0, 0.1)},
        values={"city": {"b", "a"}, "n": np.array([2, 1])},
        types={"spent": "decimal", "city": Type.STRING, "n": "integer", "when": "date", "list": None},
        caps={"rows": 20, "groups": 5},
        adjacency="replace_one",
        engine={"memory": "1GB", "deadline": 30, "worker": "inline"},
        analysts={"ana": "20%", "eva": {"share": "50%", "tables": ("visits",), "train": True}},
        max_units=10_000,
        unit_name="guest",
        allow_large_delta=True,
    )
    file = here / "data" / "study.toml"
    file.parent.mkdir()
    file.write_text(study.to_toml(), encoding="utf-8")

    assert read_study(file) == study
    assert study.tables[0].columns[1] == Column("city", Type.STRING, values=("a", "b"), nullable=False)
    assert study.tables[0].columns[2] == Column("n", Type.INTEGER, values=(2, 1), nullable=False)
    assert study.tables[0].column("spent").bounds == (0, Fraction(1, 10))
    assert study.tables[0].column("when") == Column("when", Type.DATE)
    assert study.tables[0].column("list") is None
    assert study.tables[0].caps == Caps(rows=20, groups=5)
    assert study.adjacency is Adjacency.REPLACE_ONE
    assert (study.engine.memory, study.engine.deadline, study.engine.worker) == (10**9, 30, "inline")
    assert study.analysts == (Analyst("ana", Fraction(1, 5)), Analyst("eva", Fraction(1, 2), ("visits",), train=True))


def test_the_digest_does_not_depend_on_the_working_folder(here, monkeypatch):
    """The same file, seen from two folders, is one study."""
    one = build("data/visits.parquet")
    (here / "data").mkdir()
    monkeypatch.chdir(here / "data")
    two = build("visits.parquet")
    three = build(here / "data" / "visits.parquet")

    assert one == two == three
    assert one.digest == two.digest


@pytest.mark.parametrize(
    ("source", "name", "folder", "text", "ledger"),
    [
        ("visits.parquet", "visits", ".", "visits.parquet", "visits.ledger"),
        ("my.visits.CSV.gz", "my.visits", ".", "my.visits.CSV.gz", "my.visits.ledger"),
        ("visits/*.parquet", "visits", "visits", "*.parquet", "visits/visits.ledger"),
        ("visits/*/part-?.parquet", "visits", "visits", "*/part-?.parquet", "visits/visits.ledger"),
        ("data/all.duckdb#orders", "orders", "data", "all.duckdb#orders", "data/all.ledger"),
        ("data/a#b.parquet", "a#b", "data", "a#b.parquet", "data/a#b.ledger"),
        ("data/../visits", "visits", ".", "visits", "visits.ledger"),
        (Path("data") / "visits.pq", "visits", "data", "visits.pq", "data/visits.ledger"),
    ],
)
def test_names_and_places_follow_from_the_path(here, source, name, folder, text, ledger):
    """Table, folder and ledger have the file's name unless something else is said."""
    study = build(source)

    assert (study.name, study.tables[0].name) == (name, name)
    assert (study.folder, study.tables[0].source) == (here / folder, text)
    assert study.ledger_path == here / ledger


def test_a_name_and_a_ledger_may_be_said(here):
    """A ledger elsewhere is kept whole."""
    study = build("visits.parquet", name="guests", ledger="/elsewhere/x.ledger")

    assert (study.name, study.tables[0].name, study.ledger) == ("guests", "guests", Path("/elsewhere/x.ledger"))


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: f"{type(frame).__module__}.{type(frame).__name__}")
def test_a_data_frame_is_a_source(here, frame):
    """Frames of three libraries are handed on untouched; only their name and ledger must be said."""
    study = build(frame, name="visits", ledger="x.ledger", unit="row")

    assert study.tables == (Table("visits", "frame", UnitRow()),)
    assert study.frames["visits"] is frame
    assert study == build(FRAMES[0], name="visits", ledger="x.ledger", unit="row")


def test_several_tables(here):
    """A mapping gives several sources; unit, caps and columns are said by table."""
    study = build(
        {"customer": "c.parquet", "orders": "o.parquet", "items": FRAMES[0], "nation": "n.parquet"},
        unit={
            "customer": UnitColumn("id"),
            "orders": {"column": "cid", "references": "customer"},
            "items": UnitPath("oid", "orders", "id"),
        },
        public=["nation"],
        ledger="x.ledger",
        name="shop",
        physical={"orders.total": Type.DECIMAL, "customer.age": Type.INTEGER, "nation.age": Type.INTEGER},
        bounds={"total": (0, 10), "customer.age": (0, 120)},
        caps={"orders": Caps(rows=20)},
        analysts=[Analyst("ana", tables=("orders",))],
        engine=EngineSettings(threads=1),
    )
    customer, orders, items, nation = study.tables

    assert (study.name, study.folder, list(study.frames)) == ("shop", here, ["items"])
    assert (customer.unit, orders.unit) == (UnitColumn("id"), UnitPath("cid", "customer"))
    assert (items.unit, items.source, nation.public) == (UnitPath("oid", "orders", "id"), "frame", True)
    assert (customer.caps, orders.caps) == (None, Caps(rows=20))
    assert (orders.columns[0].bounds, customer.columns[0].bounds) == ((0, 10), (0, 120))
    assert parse_study(study.to_toml(), folder=here) == study


def test_one_unit_and_one_cap_for_all(here):
    """What is said once holds for every private table."""
    study = build({"a": "x/a.parquet", "b": "y/b.parquet"}, caps={"rows": 3}, ledger="x.ledger")

    assert {(table.unit, table.caps) for table in study.tables} == {(UnitColumn("user_id"), Caps(rows=3))}
    assert [table.source for table in study.tables] == ["x/a.parquet", "y/b.parquet"]


def test_a_study_of_a_file_may_be_run_elsewhere(here):
    """A ledger and engine settings given from Python lie over those of the study; its meaning stays."""
    study = build("visits.parquet", engine={"threads": 4, "memory": "1GB"})
    other = override(study, ledger="other.ledger", engine={"memory": "2GB", "worker": "inline"})

    assert (other.engine.threads, other.engine.memory, other.engine.worker) == (4, 2 * 10**9, "inline")
    assert (other.ledger_path, other.digest) == (here / "other.ledger", study.digest)
    assert override(study) == study
    assert override(study, engine=EngineSettings()).engine == EngineSettings()
    paced = override(study, engine={"answer_every": "2s"})
    assert (paced.engine.answer_every, paced.digest) == (2, study.digest)
    assert override(paced, engine={"answer_every": "off"}) == study
    with pytest.raises(InvalidStudy, match="deadline must be a whole number of answer_every"):
        override(study, engine={"answer_every": "7s"})
    with pytest.raises(InvalidStudy, match=r"^engine\.memory must be a size such as .4GB.; got 'much'\.$"):
        override(study, engine={"memory": "much"})
    with pytest.raises(InvalidStudy, match=r"^engine\.treads must be a known key"):
        override(study, engine={"treads": 3})


BAD = [
    ({"bounds": {"spent": (0, 1)}}, "tables.x.columns.spent.type must be declared or known from the source; got nothing."),
    ({"bounds": {"spnet": (0, 1)}, "physical": {"spent": Type.FLOAT}}, "tables.x.columns.spnet must be a column of the source; got 'spnet'."),
    ({"bounds": {"l": (0, 1)}, "physical": {"l": None}}, "tables.x.columns.l must be of a type that can be selected; got 'l'."),
    ({"bounds": {"s": 5}, "types": {"s": "float"}}, "tables.x.columns.s.bounds must be a list of two values, lower below upper; got 5."),
    ({"bounds": {"s": (5, 0)}, "types": {"s": "float"}}, "tables.x.columns.s.bounds must be two numbers, lower below upper; got [5, 0]."),
    ({"bounds": {"s": {5, 0}}, "types": {"s": "float"}}, "tables.x.columns.s.bounds must be a list of two values, lower below upper; got {0, 5}."),
    ({"bounds": {"s": (0, float("inf"))}, "types": {"s": "float"}}, "tables.x.columns.s.bounds must be two numbers, lower below upper; got [0, inf]."),
    ({"bounds": 5}, "bounds must be a mapping from columns; got 5."),
    ({"bounds": {5: (0, 1)}}, 'bounds must be "column", or "table.column" where there are several tables; got 5.'),
    ({"values": {"s": "abc"}, "types": {"s": "string"}}, "tables.x.columns.s.values must be a list of values; got 'abc'."),
    ({"values": {"s": [pd.NaT]}, "types": {"s": "timestamp"}}, 'tables.x.columns.s.values must be a list of timestamps; got "NaT".'),
    ({"types": {"s": "int"}}, "tables.x.columns.s.type must be one of boolean, integer, decimal, float, string, date, timestamp; got 'int'."),
    ({"budget": 3}, "budget must be a Budget; got 3."),
    ({"budget": {"epsilon": -1}}, "budget.epsilon must be positive; got -1."),
    ({"unit": None}, 'tables.x.unit must be a column, "row", or { column = …, references = … }; got nothing.'),
    ({"unit": {"colum": "u"}}, "tables.x.unit.colum must be a known key (column, references); got 'colum'."),
    ({"caps": 5}, "tables.x.caps must be a table such as { rows = 20, groups = 5 }; got 5."),
    ({"caps": {"rows": 0}}, "tables.x.caps.rows must be a whole number from 1 to 1,000,000; got 0."),
    ({"engine": {"treads": 1}}, "engine.treads must be a known key (answer_every, deadline, kind, memory, prepare, prepared, spill, threads, unit_rows, unit_work, url, worker, workers); got 'treads'."),
    ({"engine": "fast"}, "engine must be a table such as { threads = 2 }; got 'fast'."),
    ({"analysts": {"ana": 0.2}}, 'analysts.ana.share must be a share above 0 % and at most 100 %, such as "20%"; got 0.2.'),
    ({"analysts": ["ana"]}, 'analysts must be a mapping such as {"ana": "20%"}, or a list of Analyst; got ["ana"].'),
    ({"public": "y"}, "public must be a list of tables of this study; got 'y'."),
    ({"public": "x"}, "tables must be tables of which at least one is private; got none."),
    ({"adjacency": "no"}, 'adjacency must be "add_or_remove_one" or "replace_one"; got \'no\'.'),
    ({"max_units": 0}, "max_units must be a whole number from 1 to 2^62; got 0."),
    ({"name": "__x"}, 'tables.__x must be a name of 1 to 200 characters, without NUL, that does not begin with "__"; got \'__x\'.'),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[sentence.partition(" must")[0] for _, sentence in BAD])
def test_bad_arguments_give_their_sentence(here, arguments, sentence):
    """Arguments break the same rules as files, and are told by their path."""
    with pytest.raises(InvalidStudy) as told:
        build("x.parquet", **arguments)

    assert type(told.value) is InvalidStudy
    assert str(told.value).partition("\n")[0] == sentence


@pytest.mark.parametrize(
    ("source", "arguments", "sentence"),
    [
        (5, {}, "tables.table.source must be a path, or a pandas, Polars or Arrow table; got 'builtins.int'."),
        ("", {}, "tables.table.source must be a path, or a pandas, Polars or Arrow table; got ''."),
        (FRAMES[0], {}, "name must be given for a data frame; got nothing."),
        (FRAMES[0], {"name": "x"}, "ledger must be given for a data frame or several sources; got nothing."),
        (
            FRAMES[1].lazy(),
            {"name": "x", "ledger": "l"},
            "tables.x.source must be a path, or a pandas, Polars or Arrow table; got 'polars.lazyframe.frame.LazyFrame'.",
        ),
        ({"a": "a"}, {}, "ledger must be given for a data frame or several sources; got nothing."),
        ({5: "a"}, {"ledger": "l"}, "source must be a mapping from table names to sources; got 5."),
        ({}, {"ledger": "l"}, "tables must be tables of which at least one is private; got no table."),
        (
            {"a": "a", "b": "b"},
            {"ledger": "l", "bounds": {"s": (0, 1)}},
            'bounds must be "column", or "table.column" where there are several tables; got \'s\'.',
        ),
        (
            {"a": "a", "b": "b"},
            {"ledger": "l", "unit": {"a": "u"}},
            'tables.b.unit must be a column, "row", or { column = …, references = … }; got nothing.',
        ),
    ],
)
def test_bad_sources_give_their_sentence(here, source, arguments, sentence):
    """What cannot be a source, or needs a name or a ledger, is refused before anything is opened."""
    with pytest.raises(InvalidStudy) as told:
        build(source, **arguments)

    assert str(told.value).partition("\n")[0] == sentence

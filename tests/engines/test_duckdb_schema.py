"""Everything that is visible without rows is checked without rows, and told with table, column and a hint."""

import contextlib
import datetime as dt
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb_studies import engine_of, study_of, write

from curador.engines.duckdb.connection import connect
from curador.engines.duckdb.schema import describe, physical_types
from curador.errors import InvalidStudy
from curador.study.model import Column, Table, UnitColumn, UnitPath, UnitRow
from curador.study.values import Type

MADRID = pa.timestamp("us", "Europe/Madrid")
ALL = pa.table(
    {
        "user": pa.array([1], pa.int64()),
        "flag": pa.array([True]),
        "price": pa.array([None], pa.decimal128(15, 2)),
        "ratio": pa.array([1.5]),
        "city": pa.array(["a"]),
        "day": pa.array([dt.date(2020, 1, 1)]),
        "seen": pa.array([None], MADRID),
        "tags": pa.array([["x"]]),
        "raw": pa.array([b"x"]),
        "point": pa.array([{"x": 1}]),
    }
)


def test_columns_have_the_types_of_the_file(tmp_path):
    """In the file's order; lists, structs and blobs cannot be selected."""
    write(tmp_path, "parquet", ALL)
    schema = describe(study_of(tmp_path, Table("visits", "visits.parquet", UnitColumn("user"))))

    assert [(field.name, field.type, field.nullable) for field in schema.tables[0].fields] == [
        ("user", Type.INTEGER, False),
        ("flag", Type.BOOLEAN, True),
        ("price", Type.DECIMAL, True),
        ("ratio", Type.FLOAT, True),
        ("city", Type.STRING, True),
        ("day", Type.DATE, True),
        ("seen", Type.TIMESTAMP, True),
    ]


def test_declared_columns_win(tmp_path):
    """The declaration gives type and nullability."""
    write(tmp_path, "parquet", ALL)
    declared = Column("ratio", Type.INTEGER, bounds=(0, 9), nullable=False)
    schema = describe(study_of(tmp_path, Table("visits", "visits.parquet", UnitRow(), (declared,))))
    field = schema.tables[0].fields[3]

    assert (field.type, field.nullable, field.declared) == (Type.INTEGER, False, declared)


def test_columns_of_a_text_file_are_text(tmp_path):
    """Nothing is guessed from rows."""
    (tmp_path / "visits.csv").write_text("user,spent,day\n1,2.5,2020-01-01\n")
    schema = describe(study_of(tmp_path, Table("visits", "visits.csv", UnitColumn("user"))))

    assert [field.type for field in schema.tables[0].fields] == [Type.STRING] * 3


def test_physical_types_for_a_first_draft(tmp_path):
    """Name, physical type, type; the labels of an ENUM are data and are not shown."""
    with contextlib.closing(connect(str(tmp_path / "some.duckdb"), {})) as connection:
        connection.execute(
            "CREATE TABLE rows (a ENUM('secret', 'label'), b UUID, c HUGEINT, d INTEGER[], e DECIMAL(9, 2))"
        ).fetchall()
    found = physical_types("some.duckdb#rows", folder=tmp_path)

    assert found == [
        ("a", "ENUM", Type.STRING),
        ("b", "UUID", Type.STRING),
        ("c", "HUGEINT", Type.INTEGER),
        ("d", "INTEGER[]", None),
        ("e", "DECIMAL(9,2)", Type.DECIMAL),
    ]
    assert physical_types(pa.table({"x": [1]})) == [("x", "BIGINT", Type.INTEGER)]


@pytest.mark.slow
def test_physical_types_of_data_frames():
    """Columns of objects are text; categories are what they name."""
    import pandas as pd
    import polars as pl

    frame = pd.DataFrame({"a": pd.Series([1, "x"], dtype=object), "b": pd.Categorical(["x", "y"]), "c": pd.Series([1, None])})

    assert [kind for _, _, kind in physical_types(frame)] == [Type.STRING, Type.STRING, Type.FLOAT]
    assert [kind for _, _, kind in physical_types(pl.DataFrame({"a": [1], "b": ["x"], "c": [[1]]}))] == [
        Type.INTEGER,
        Type.STRING,
    ]


def rows_are_not_read(folder):
    """A Parquet file whose pages are destroyed, its footer whole."""
    write(folder, "parquet", pa.table({"user": list(range(1000)), "city": ["somewhere"] * 1000}))
    file = folder / "visits.parquet"
    content = bytearray(file.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = b"\xff" * (len(content) - footer - 4)
    file.write_bytes(content)


@pytest.mark.slow
def test_no_row_is_read(tmp_path):
    """The schema of a file with unreadable rows is the schema."""
    rows_are_not_read(tmp_path)
    study = study_of(tmp_path, Table("visits", "visits.parquet", UnitColumn("user"), (Column("city", Type.STRING),)))

    assert [field.name for field in describe(study).tables[0].fields] == ["user", "city"]
    with pytest.raises(InvalidStudy, match="user must be a column whose every value can be read"):  # preparing reads them
        engine_of(study)


def refused(folder, *tables, frames=None):
    with pytest.raises(InvalidStudy) as raised:
        describe(study_of(folder, *tables, frames=frames))
    return str(raised.value)


def visits(unit="user", source="visits.parquet", columns=(), **more):
    return Table("visits", source, UnitColumn(unit), columns, **more)


def test_what_cannot_be_used_is_said(tmp_path):
    """One sentence with the place, the rule and what was found, and a hint where one helps."""
    write(tmp_path, "parquet", ALL)
    write(tmp_path, "parquet", pa.table({"user": ["1"], "key": [1.5]}), "other")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "twice.csv").write_text("a,A\n1,2\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing PAR1")
    write(tmp_path, "database", pa.table({"user": [1]}), "data")
    wide = pa.table({"user": pa.array([1], pa.uint64())})
    pq.write_table(wide, tmp_path / "wide.parquet")

    says = {
        "tables.visits.source must be a file that exists; got 'nowhere.parquet'.": visits(source="nowhere.parquet"),
        "tables.visits.source must be a pattern that some file matches; got 'no*.parquet'.": visits(source="no*.parquet"),
        "tables.visits.source must be a file on this machine; got 's3://bucket/x.parquet'.": visits(
            source="s3://bucket/x.parquet"
        ),
        "tables.visits.source must be a DuckDB file with the table behind a #; got 'data.duckdb'.": visits(
            source="data.duckdb"
        ),
        "tables.visits.source must be a table of that DuckDB file; got 'nothing'.": visits(source="data.duckdb#nothing"),
        "tables.visits.source must be separated text whose first line names every column": visits(source="empty.csv"),
        """first line names every column, each once, in UTF-8; got 'twice.csv' with the column "A" twice (""": visits(
            source="twice.csv"
        ),
        "tables.visits.source must be files of one schema that can be read; got broken.parquet.": visits(
            source="broken.parquet"
        ),
        "tables.visits.source must be a file, or a frame given from Python; got 'frame'.": visits(source="frame"),
        "tables.visits.unit must be a column of the source; got 'usr'.\nHint: did you mean user?": visits("usr"),
        "tables.visits.unit must be a column of a type that can name a unit; got VARCHAR[].": visits("tags"),
        "tables.visits.columns.ratio.type must be a type that can name a unit; got float.": visits("ratio"),
        "tables.visits.columns.day.type must be a type that can name a unit; got date.": visits("day"),
        "tables.visits.columns.user must be declared, as its integers may be longer than 64 bits; got UBIGINT.": visits(
            source="wide.parquet"
        ),
        "tables.visits.columns.cty must be a column of the source; got 'cty'.\nHint: did you mean city?": visits(
            columns=(Column("cty", Type.STRING),)
        ),
        "tables.visits.columns.day must be stored in a physical type that can be read as integer; got DATE.": visits(
            columns=(Column("day", Type.INTEGER),)
        ),
        "must be stored in a physical type that can be read as string; got BLOB.\nHint: lists, structs": visits(
            columns=(Column("raw", Type.STRING),)
        ),
    }
    for sentence, table in says.items():
        assert sentence in refused(tmp_path, table)


def test_units_and_keys_have_one_type(tmp_path):
    """Nothing is compared through a cast."""
    write(tmp_path, "parquet", pa.table({"user": [1], "order": [1]}), "one")
    write(tmp_path, "parquet", pa.table({"user": ["1"], "order": ["1"], "part": [1.5]}), "two")
    one, two = Table("one", "one.parquet", UnitColumn("user")), Table("two", "two.parquet", UnitColumn("user"))

    assert "tables.two.columns.user.type must be integer, the type of one.user; got string." in refused(tmp_path, one, two)
    path = Table("two", "two.parquet", UnitPath("order", "one", "order"))
    assert "tables.two.columns.order.type must be integer, the type of one.order; got string." in refused(tmp_path, one, path)
    path = Table("two", "two.parquet", UnitPath("part", "one", "order"))
    assert "tables.two.columns.part.type must be a type that can name a unit; got float." in refused(tmp_path, one, path)
    path = Table("two", "two.parquet", UnitPath("order", "one", "nothing"))
    assert "tables.two.unit.references must be a column of one; got 'nothing'." in refused(tmp_path, one, path)


@pytest.mark.slow
def test_a_number_declared_text_joins_texts(tmp_path):
    """One declared type makes two files meet: 9.0, which pandas makes of 9 beside a gap, is '9'."""
    write(tmp_path, "parquet", pa.table({"user": ["9", "10"]}), "one")
    write(tmp_path, "parquet", pa.table({"user": [9.0, None]}), "two")
    study = study_of(
        tmp_path,
        Table("one", "one.parquet", UnitColumn("user")),
        Table("two", "two.parquet", UnitPath("user", "one"), (Column("user", Type.STRING),)),
    )
    with contextlib.closing(engine_of(study)) as engine:
        assert [field.type for table in engine.schema.tables for field in table.fields] == [Type.STRING, Type.STRING]


@pytest.mark.slow
def test_globs_read_all_files(tmp_path):
    """Columns by name; a column that a file lacks is NULL there."""
    (tmp_path / "[odd]").mkdir()
    pq.write_table(pa.table({"user": [1], "city": ["a"]}), tmp_path / "[odd]" / "a.parquet")
    pq.write_table(pa.table({"city": ["b"], "user": [2], "day": [1]}), tmp_path / "[odd]" / "b.parquet")
    schema = describe(study_of(tmp_path / "[odd]", visits(source="*.parquet")))

    assert [field.name for field in schema.tables[0].fields] == ["user", "city", "day"]


# ---- public tables -----------------------------------------------------------------------------------------------------


def lookup(folder):
    write(folder, "parquet", pa.table({"user": [1], "nation": [1]}))
    (folder / "nation.csv").write_text("id,region,size,day\n1,EU,0.5,2020-01-01\n2,EU,inf,\n3,,0.1,2020-01-02\n3,AS,0.1,x\n")
    columns = (
        Column("id", Type.INTEGER),
        Column("size", Type.DECIMAL),
        Column("day", Type.DATE),
        Column("region", Type.STRING, values=("EU",)),
    )
    return study_of(folder, visits(), Table("nation", "nation.csv", None, columns))


@pytest.mark.parametrize("how", ["source", "version"])
def test_facts_of_public_tables(tmp_path, how):
    """Rows that agree, values that stand there: of the cleaned table, from the sources or from the version."""
    study = lookup(tmp_path)
    with contextlib.ExitStack() as stack:
        schema = describe(study) if how == "source" else stack.enter_context(contextlib.closing(engine_of(study))).schema
        if how == "version":
            (tmp_path / "nation.csv").write_text("id,region,size,day\n")  # the version stays what it was
        facts = schema.public

        assert facts.multiplicity("nation", ()) == 4
        assert facts.multiplicity("nation", ("id",)) == 2
        assert facts.multiplicity("nation", ("region",)) == 2
        assert facts.multiplicity("nation", ("id", "region")) == 2
        assert facts.distinct("nation", "region", 10) == ("EU", None)
        assert facts.distinct("nation", "id", 3) == (1, 2, 3)
        assert facts.distinct("nation", "id", 2) is None
        assert facts.distinct("nation", "day", 9) == (dt.date(2020, 1, 1), dt.date(2020, 1, 2), None)
        assert facts.distinct("nation", "size", 9) is None  # infinity is no value


@pytest.mark.slow
def test_facts_are_exact_numbers(tmp_path):
    """Decimals come as rationals of the double that is kept."""
    write(tmp_path, "parquet", pa.table({"user": [1]}))
    write(tmp_path, "parquet", pa.table({"rate": [0.1, 0.5]}), "rate")
    facts = describe(study_of(tmp_path, visits(), Table("rate", "rate.parquet", None))).public

    assert facts.distinct("rate", "rate", 5) == (Fraction(0.1), Fraction(1, 2))


def test_nothing_is_known_of_private_tables(tmp_path):
    """The door is closed, not only unused."""
    facts = describe(lookup(tmp_path)).public

    with pytest.raises(AssertionError):
        facts.multiplicity("visits", ())


@pytest.mark.parametrize("kind", ["parquet", "csv", "frame"])
def test_more_columns_than_any_question_can_be_planned_on_are_refused_unread(tmp_path, kind):
    """Preparing takes time as columns squared; of text, the first line is enough to say no."""
    wide = pa.table({f"c{place}": [place] for place in range(2_001)})
    file = tmp_path / f"wide.{kind}"
    if kind == "parquet":
        pq.write_table(wide, file)
    elif kind == "csv":
        file.write_text(",".join(wide.column_names) + "\n", encoding="utf-8")
    with pytest.raises(
        InvalidStudy, match=r"a table of at most 2,000 columns; got 2,001\.\nHint: leave out what nobody asks"
    ):
        physical_types(wide if kind == "frame" else file)


@pytest.mark.slow
def test_a_thousand_columns_of_text_open_and_are_asked(tmp_path):
    """No expression of ours is as deep as a table is wide."""
    import curador as cu

    file = tmp_path / "wide.csv"
    names = ["user", *(f"c{place}" for place in range(1_100))]
    file.write_text("\n".join([",".join(names), *(",".join([str(row)] * len(names)) for row in range(3))]), encoding="utf-8")
    options = {"budget": cu.Budget(epsilon=1, delta="1e-6"), "ledger": tmp_path / "w.ledger", "engine": {"worker": "inline"}}
    with cu.open({"wide": file}, name="wide", unit="user", **options) as curator:
        assert len(curator.ask("SELECT COUNT(*) AS n FROM wide WHERE c1099 = 'x'", spend="5%")) == 1

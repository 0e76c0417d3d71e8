# ruff: noqa: DTZ001 -- no zone is meant

"""Declared formats: what is read by them is right, every value by itself, and no line changes how another one is read."""

import contextlib
import dataclasses
import datetime as dt
import random

import duckdb
import pytest
from duckdb_studies import describe, prepared, rows, study_of
from european_files import PEOPLE, european_rows, write_european, write_workbook

from curador.engines.duckdb import sources, streams
from curador.engines.duckdb.readable import require_readable
from curador.engines.duckdb.versions import layout_digest
from curador.errors import InvalidStudy, UnreadableData
from curador.study.formats import FileFormat
from curador.study.model import Column, Table, UnitColumn, UnitRow
from curador.study.values import Type

EUROPEAN = FileFormat(separator=";", decimal=",", thousands=".", dates=("%d/%m/%Y",), nulls=("N/A",))
DECLARED = (
    Column("Customer ID", Type.INTEGER),
    Column("Unit Price (£)", Type.DECIMAL),
    Column("Invoice Date", Type.TIMESTAMP),
    Column("Quantity", Type.INTEGER),
)


def sales(how, source="sales.csv", unit=None, columns=DECLARED):
    return Table("sales", source, unit or UnitColumn("Customer ID"), columns, format=how)


@pytest.mark.parametrize("prepare", ["auto", pytest.param("never", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("encoding", "declared"),
    [("utf-8-sig", "utf-8"), ("latin-1", "latin-1"), ("cp1252", "windows-1252"), ("utf-16", "utf-16")],
)
@pytest.mark.parametrize("newlines", [False, True])
def test_the_european_file_is_read_right(tmp_path, encoding, declared, newlines, prepare):
    """Every value, in every encoding, and one person for the three spellings of an id."""
    truth = european_rows()
    write_european(tmp_path / "sales.csv", truth, encoding)
    how = dataclasses.replace(EUROPEAN, encoding=declared, newlines=newlines)
    found = rows(study_of(tmp_path, sales(how), prepare=prepare), columns="c0, c1, c2, c3, c4")

    expected = [(person, country, cents / 100, moment, number) for person, country, cents, moment, number in truth]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert len({row[0] for row in found}) <= PEOPLE


def read_as(folder, values, kind, how):
    """Texts of one column as a type, by a declared format."""
    (folder / "one.csv").write_text("\n".join(["x", *(f'"{value}"' for value in values)]), encoding="utf-8")
    table = Table("one", "one.csv", UnitRow(), (Column("x", kind),), format=how)
    return dict(zip(values, (row[0] for row in rows(study_of(folder, table), columns="c0")), strict=True))


def test_numbers_with_the_declared_signs_and_no_others(tmp_path):
    """A number that has other signs may be another number: it is NULL."""
    how = FileFormat(decimal=",", thousands=".")
    texts = {
        "1.234,5": 1234.5,
        "12": 12,
        "-0,5": -0.5,
        ",5": 0.5,
        "1e3": 1000,
        "+7": 7,
        " 8 ": 8,
        "1.234": 1234,
        "1.234.567": 1234567,
    }
    wrong = (
        "1.5",
        "1,234.5",
        "1.23.456",
        "12.34,5",
        "1,2,3",
        "inf",
        "nan",
        "5 €",
        "",
        "1 234",
        "0x10",
        ".",
        ",",
        "1234.567,8",
    )
    assert read_as(tmp_path, [*texts, *wrong], Type.FLOAT, how) == {**texts, **dict.fromkeys(wrong)}

    whole = {"13047.0": 13047, "13047": 13047, "1.000": 1000, "7,0": 7, "7,5": None, "1.5": None}
    assert read_as(tmp_path, list(whole), Type.INTEGER, how) == whole
    blanks = {"1 234,5": 1234.5, "1\u00a0234": 1234, "1\u202f234": 1234, "1.234": None}
    assert read_as(tmp_path, list(blanks), Type.FLOAT, FileFormat(decimal=",", thousands=" ")) == blanks


def test_days_by_the_declared_pattern_and_no_other(tmp_path):
    """With and without a time of day; what is no day is NULL, and a year outside is clamped, as everywhere."""
    day = dt.date(2010, 12, 31)
    texts = {
        "31/12/2010": day,
        "31/12/2010 08:26": day,
        "31/12/2010 08:26:01": day,
        " 31/12/2010 ": day,
        "1/2/2010": dt.date(2010, 2, 1),
    }
    wrong = (
        "12/31/2010",
        "2010-12-31",
        "32/01/2010",
        "29/02/2011",
        "31.12.2010",
        "31/12/2010 25:00",
        "infinity",
        "epoch",
        "x",
    )
    assert read_as(tmp_path, [*texts, *wrong], Type.DATE, FileFormat(dates=("%d/%m/%Y",))) == {
        **texts,
        **dict.fromkeys(wrong),
    }
    moments = {"12/31/10 8:05 PM": dt.datetime(2010, 12, 31, 20, 5), "31/12/10 8:05 PM": None}
    assert read_as(tmp_path, list(moments), Type.TIMESTAMP, FileFormat(timestamps=("%m/%d/%y %I:%M %p",))) == moments


def test_words_for_null_and_blanks(tmp_path):
    """Words count with or without blanks around them; blanks of other texts go where that is said."""
    how = FileFormat(nulls=("N/A", "-"))
    assert read_as(tmp_path, ["N/A", " - ", " a ", "n/a"], Type.STRING, how) == {
        "N/A": None,
        " - ": None,
        " a ": " a ",
        "n/a": "n/a",
    }
    assert read_as(tmp_path, [" a "], Type.STRING, FileFormat(trim=True)) == {" a ": "a"}


@pytest.mark.parametrize("kind", list(Type))
def test_no_text_stops_reading(tmp_path, kind):
    """Hostile texts under every part of a format: a value or NULL, and those beside them as ever."""
    draw = random.Random(11)
    signs = "0123456789.,eE+-/: %dmYinfa'N_\u00a0é\U0001f600\x00"
    hostile = ["".join(draw.choice(signs) for _ in range(draw.randrange(1, 30))) for _ in range(300)]
    hostile += ["9" * 400, "1/1/" + "9" * 30, "-" * 300, "1e999999999", "31/12/9999", "01/01/0000", "1." + "234." * 50]
    beside = {Type.STRING: "a", Type.BOOLEAN: "true", Type.DATE: "31/12/2010", Type.TIMESTAMP: "31/12/2010"}.get(
        kind, "1.234,0"
    )
    alone = read_as(tmp_path, [beside], kind, EUROPEAN)[beside]
    found = read_as(tmp_path, [*dict.fromkeys(hostile), beside], kind, EUROPEAN)
    assert found[beside] == alone
    assert alone is not None


ODD = ['9;"hi', '"9;hi', '"', '9;h"i', "9;\x00", "\r", "9;\x85", "9;\u2028", "9;€", "9;\x01\x02\x03\x01", "9;a\rb"]


def read_lines(file, encoding, scan):
    source = sources.from_path(file.name, file.parent, "lines", how=FileFormat(encoding=encoding, separator=";"))
    if scan is not None:
        source = dataclasses.replace(source, stream=scan(source.files, encoding))
    with contextlib.closing(duckdb.connect(config={"threads": 1})) as connection:
        sources.bind(connection, source)
        return connection.execute(f"SELECT * FROM {source.scan}").fetchall()


def disturbed(folder, encoding, scan=None):
    """Odd lines, in this encoding, that change how other lines are read."""
    draw = random.Random(7)
    lines = [f"{n};{'ñü'[n % 2] * draw.choice((1, 50))}{n}" for n in range(30)] + ['200;"q;""z"""', '201;""']
    file, found = folder / "lines.csv", []
    for end in ("\n", "\r\n"):
        file.write_bytes(end.join(["user;x", *lines, ""]).encode(encoding, "replace"))
        expected = read_lines(file, encoding, scan)
        assert len(expected) == len(lines)
        for odd in ODD:
            for place in (0, draw.randrange(1, len(lines)), len(lines)):
                parts = ["user;x", *lines[:place], odd, *lines[place:]]
                file.write_bytes(end.join(parts).encode(encoding, "replace"))
                if [row for row in read_lines(file, encoding, scan) if row in set(expected)] != expected:
                    found.append(odd)
    return found


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "utf-16"])
def test_an_odd_line_changes_no_other_line(tmp_path, encoding, monkeypatch):
    """In other encodings as in UTF-8, wherever a block of bytes ends."""
    monkeypatch.setattr(streams, "_BLOCK", 64)
    assert disturbed(tmp_path, encoding) == []


def test_lines_that_end_where_unicode_says_are_caught(tmp_path):
    """What the test above is for: a reader that forgets a line's end at the end of a block, so that two lines become one."""

    def forgetful(files, encoding):
        def batches():
            content = files[0].read_bytes().decode(encoding)
            for block in (content[at : at + 64] for at in range(0, len(content), 64)):
                yield [[line for line in block.split("\n")[1:] if line]]

        return streams.SourceStream(("line",), batches)

    with pytest.raises(AssertionError):
        disturbed(tmp_path, "latin-1", forgetful)


def test_half_a_pair_stays_in_its_line(tmp_path):
    """A lone surrogate of UTF-16 is one bad character, and the lines beside it are as they were."""
    file = tmp_path / "lines.csv"
    file.write_bytes(
        b"\xff\xfe" + "user;x\n1;a\n".encode("utf-16-le") + b"2\x00;\x00\x00\xd8\n\x00" + "3;c\n".encode("utf-16-le")
    )
    assert read_lines(file, "utf-16", None) == [("1", "a"), ("2", "\ufffd"), ("3", "c")]


def test_quoted_newlines_are_part_of_a_field(tmp_path):
    """Where the owner says so; without a record the others are the same."""
    records = [f'{n};"a\n{n};""b"""\r\n' for n in range(50)]
    table = sales(FileFormat(newlines=True), unit=UnitColumn("user"), columns=())
    found = []
    for kept in (records, records[:20] + records[21:]):
        (tmp_path / "sales.csv").write_text("user;x\r\n" + "".join(kept), encoding="utf-8", newline="")
        found.append(set(rows(study_of(tmp_path, table), columns="c0, c1")))
    assert found[0] == {(str(n), f'a\n{n};"b"') for n in range(50)}
    assert found[1] == found[0] - {("20", 'a\n20;"b"')}


@pytest.mark.parametrize("bad", ['9;"open', '9;"a"b', "9;a;b", "9", '9;"a\n8;"b'])
def test_quotes_that_are_not_balanced_are_told_to_the_owner(tmp_path, bad):
    """One record that would swallow others stops the version: it is not read in another way."""
    (tmp_path / "sales.csv").write_text("user;x\n1;a\n" + bad + "\n2;b\n", encoding="utf-8")
    study = study_of(tmp_path, sales(FileFormat(newlines=True), unit=UnitColumn("user"), columns=()))
    with pytest.raises(UnreadableData, match=r"^tables\.sales\.source must be separated text in which quotes are balanced"):
        require_readable(describe(study))
    with pytest.raises(InvalidStudy, match="quotes are balanced"):
        prepared(study)


def test_a_sheet_is_read_by_its_cells(tmp_path):
    """Numbers, times, truths and texts, each by its own value; errors are NULL, empty rows are left out."""
    write_workbook(
        tmp_path / "book.xlsx",
        {
            "notes": [["nothing"]],
            "sales": [
                ["user", "price", "day", "ok", "word"],
                [13047, 1.5, dt.date(2020, 1, 31), True, " a "],
                ["13047 ", "2,5", "31/01/2020", False, "N/A"],
                [None] * 5,
                [("#N/A",), ("#DIV/0!",), dt.datetime(2020, 1, 31, 8, 26), None, "é"],
            ],
        },
    )
    columns = tuple(
        Column(name, kind)
        for name, kind in (("user", Type.INTEGER), ("price", Type.FLOAT), ("day", Type.TIMESTAMP), ("ok", Type.BOOLEAN))
    )
    how = FileFormat(decimal=",", dates=("%d/%m/%Y",), nulls=("N/A",))
    day = dt.datetime(2020, 1, 31)
    for prepare in ("auto", "never"):
        study = study_of(tmp_path, Table("sales", "book.xlsx#sales", UnitRow(), columns, format=how), prepare=prepare)
        assert sorted(rows(study, columns="c0, c1, c2, c3, c4"), key=repr) == sorted(
            [
                (13047, 1.5, day, True, " a "),
                (13047, 2.5, day, False, None),
                (None, None, day.replace(hour=8, minute=26), None, "é"),
            ],
            key=repr,
        )


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("book.xlsx", "a workbook with the sheet behind a #"),
        ("book.xlsx#none", "a sheet of book.xlsx; got 'none'.\nHint: it has 'one', 'two'"),
        ("book.xlsx#two", "each once; got 'book.xlsx#two' with the column \"A\" twice"),
        ("wrong.xlsx#one", "a workbook that can be opened"),
    ],
)
def test_sheets_that_cannot_be_used_are_said(tmp_path, source, sentence):
    """In one sentence, before a row is read."""
    write_workbook(tmp_path / "book.xlsx", {"one": [["a"], [1]], "two": [["a", "A"], [1, 2]]})
    (tmp_path / "wrong.xlsx").write_bytes(b"no workbook")
    with pytest.raises(InvalidStudy) as refused:
        describe(study_of(tmp_path, Table("t", source, UnitRow())))
    assert sentence in str(refused.value)


def test_a_sheet_without_its_library_is_a_hint(tmp_path, monkeypatch):
    """Which package to install."""
    import sys

    write_workbook(tmp_path / "another.xlsx", {"one": [["a"], [1]]})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(InvalidStudy, match=r"curador\[excel\]"):
        describe(study_of(tmp_path, Table("t", "another.xlsx#one", UnitRow())))


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        (b"a,b,A\n", 'with the column "A" twice'),
        (b"a,,b\n", "with no name for column 2 of 3"),
        (b'a,"b\n', "with a quote in the first line that nothing closes"),
        (b"\n", "with an empty first line"),
        ("año\n".encode("latin-1"), 'no UTF-8.\nHint: say how it is written, such as format = { encoding = "windows-1252" }'),
        ("a,b\n".encode("utf-16"), 'text in UTF-16.\nHint: say format = { encoding = "utf-16" }'),
    ],
)
def test_which_rule_a_header_breaks(tmp_path, head, sentence):
    """The sentence names it, and the column."""
    (tmp_path / "x.csv").write_bytes(head + b"1,2,3\n")
    with pytest.raises(InvalidStudy) as refused:
        describe(study_of(tmp_path, Table("t", "x.csv", UnitRow())))
    assert sentence in str(refused.value)


def test_a_format_of_bytes_is_for_text_only(tmp_path):
    """A sheet has no separator."""
    write_workbook(tmp_path / "book.xlsx", {"one": [["a"], [1]]})
    with pytest.raises(InvalidStudy, match=r"^tables\.t\.format\.separator must be absent for this source"):
        describe(study_of(tmp_path, Table("t", "book.xlsx#one", UnitRow(), format=FileFormat(separator=";"))))


def test_another_format_is_another_layout_and_another_study(tmp_path):
    """A copy that was prepared by one format is not read by another; without a format nothing is as it was not before."""
    (tmp_path / "sales.csv").write_text("a\n1\n")
    plain, declared = (study_of(tmp_path, sales(how, unit=UnitRow(), columns=())) for how in (None, FileFormat(decimal=",")))
    assert layout_digest(describe(plain)) != layout_digest(describe(declared))
    assert plain.digest != declared.digest

"""Reading is total and local: no line, text or time of one person changes what is read of another, or stops the reading."""

import gzip
import os
import random
import subprocess
import sys
import threading

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb_studies import a_table, engine_of, folder_of, prepared, rows, study_of, visits_table

from curador.engines.duckdb import sources
from curador.engines.duckdb.connection import private_files
from curador.engines.duckdb.engine import DuckDBEngine
from curador.engines.duckdb.schema import describe
from curador.engines.duckdb.versions import is_prepared
from curador.errors import InvalidStudy
from curador.study.model import Column, Table, UnitColumn, UnitRow
from curador.study.values import Type

ODD = [
    b'9,"hi',
    b'"9,hi',
    b'"',
    b'9,h"i',
    b'9,hi"',
    b'9,"a""',
    b'9,"a"b',
    b'9,"a\nb"',
    b'9,"a\r\nb"',
    b"9,a\rb",
    b"\r",
    b"",
    b"9,\x00",
    b'\x00"',
    b"9,\xff",
    b'9,"\xff',
    b"9,\xe2\x80",
    b"9,\x01\x02\x03\x01",
    b"9,\\",
    b"#9",
    b"\xef\xbb\xbf9,a",
]


def read_text(file, scan=sources.scan_separated):
    return duckdb.sql(f"SELECT * FROM {scan([file], ',', ['user', 'x'])}").fetchall()


def disturbed(folder, scan=sources.scan_separated):
    """Odd lines that change how other lines are read."""
    random.seed(7)
    lines = [f"{n},{'n' * random.choice((1, 50))}{n}".encode() for n in range(200)] + [b'200,"q,""z"""', b'201,""']
    file, found = folder / "visits.csv", []
    for end in (b"\n", b"\r\n"):
        file.write_bytes(b"user,x" + end + end.join(lines) + end)
        expected = read_text(file, scan)
        for odd in ODD:
            for place in (0, random.randrange(1, len(lines)), len(lines)):
                parts = [b"user,x", *lines[:place], odd, *lines[place:]]
                file.write_bytes(end.join(parts) + end * random.randrange(2))
                if [row for row in read_text(file, scan) if row in set(expected)] != expected:
                    found.append(odd)
    return found


def test_an_odd_line_changes_no_other_line(tmp_path):
    """Quotes left open, carriage returns, NUL, broken bytes; first, in the middle and last."""
    assert disturbed(tmp_path) == []


def test_quotes_that_reach_over_lines_are_caught(tmp_path):
    """What the test above is for: a reader in which a quoted field goes on behind its line."""

    def over_lines(files, separator, names):
        columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
        options = "auto_detect = false, header = true, null_padding = true, ignore_errors = true, strict_mode = false"
        return f"read_csv('{files[0]}', {options}, parallel = false, delim = '{separator}', columns = {{{columns}}})"

    assert b'9,"hi' in disturbed(tmp_path, over_lines)


@pytest.mark.slow
def test_a_line_beyond_every_limit_changes_no_other_line(tmp_path):
    """Longer than the reader's buffer: it is left out."""
    lines = [f"{n},{'n' * 3000}".encode() for n in range(10_000)]
    file = tmp_path / "visits.csv"
    file.write_bytes(b"\n".join([b"user,x", *lines]))
    expected = read_text(file)
    for odd in (b'9,"' + b"x" * (17 << 20), b"\xff" * (40 << 20)):
        for place in (0, 5000, 10_000):
            file.write_bytes(b"\n".join([b"user,x", *lines[:place], odd, *lines[place:]]))
            assert read_text(file) == expected


def test_several_files_packed_or_not(tmp_path):
    """Every file has its header, and its marks."""
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbfuser,x\n1,"a')
    with gzip.open(tmp_path / "b.csv.gz", "wb") as file:
        file.write(b'user,x\r\n2,"b"\r\n')
    (tmp_path / "c.csv").write_bytes(b"user,x\n3,c\n")
    study = study_of(tmp_path, Table("visits", "*.csv*", UnitRow()))
    assert sorted(rows(study, columns="c0, c1")) == [("1", '"a'), ("2", "b"), ("3", "c")]


def test_a_header_that_ends_in_a_carriage_return_alone_is_refused(tmp_path):
    """Such lines would make a header of the whole file."""
    (tmp_path / "visits.csv").write_bytes(b"user,x\r1,a\r")
    with pytest.raises(InvalidStudy, match="first line names every column"):
        describe(study_of(tmp_path, Table("visits", "visits.csv", UnitColumn("user"))))


def no_text():
    """Two texts, the first no UTF-8."""
    offsets = pa.py_buffer(np.array([0, 5, 7], np.int32).tobytes())
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abc\xff\xfeok")])


LAST = "9999-12-31 23:59:59.999999"
UNREADABLE = {
    "text": (no_text(), [None, "ok"]),
    "milliseconds": (pa.array([2**62, 0], pa.timestamp("ms")), [LAST, "1970-01-01 00:00:00"]),
    "milliseconds with zone": (pa.array([2**62, 0], pa.timestamp("ms", "UTC")), [LAST, "1970-01-01 00:00:00"]),
    "seconds": (pa.array([2**61, 0], pa.timestamp("s")), [LAST, "1970-01-01 00:00:00"]),
    "seconds with zone": (pa.array([2**61, 0], pa.timestamp("s", "UTC")), [LAST, "1970-01-01 00:00:00"]),
    "dictionary": (pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), no_text()), [None, "ok"]),
}
IN_PARQUET = ("text", "milliseconds", "milliseconds with zone")


def one_table(folder, kind, column, prepare="auto", unit=None):
    table = a_table(user=[1, 2], x=column, times=pa.array([1, 2], pa.time64("us")))
    return visits_table(folder, table, kind, unit=unit, columns=(), prepare=prepare)


@pytest.mark.parametrize("prepare", ["auto", pytest.param("never", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_stops_a_scan_of_a_frame_is_a_value(tmp_path, name, prepare):
    """NULL, or the last moment; the other rows are as they were."""
    column, expected = UNREADABLE[name]
    found = rows(one_table(tmp_path, "arrow", column, prepare), columns="c0, c1::VARCHAR")
    assert sorted(found) == list(zip([1, 2], expected, strict=True))


@pytest.mark.parametrize("unit", [UnitColumn("user"), UnitRow(), None])
@pytest.mark.parametrize("name", IN_PARQUET)
def test_what_stops_a_scan_of_parquet_is_a_value(tmp_path, name, unit):
    """Also in rows that are their own unit, and in public tables; the file is then read by another way."""
    column, expected = UNREADABLE[name]
    study = one_table(tmp_path, "parquet", column)
    if unit is None:
        study = study_of(tmp_path, Table("public", "visits.parquet", None), Table("rows", "rows.parquet", UnitRow()))
        pq.write_table(a_table(x=[1]), tmp_path / "rows.parquet")
    elif isinstance(unit, UnitRow):
        study = one_table(tmp_path, "parquet", column, unit=unit)
    assert sorted(rows(study, columns="c0, c1::VARCHAR")) == list(zip([1, 2], expected, strict=True))


def test_the_other_way_reads_other_rows_the_same(tmp_path):
    """A time that is out of reach does not move anybody else's, nor a rank or a hash."""
    times = [0, 1, -5, 10**15, -(10**15), None]
    found = []
    for last in (7, 2**62):
        table = a_table(
            user=list(range(7)),
            at=pa.array([*times, last], pa.timestamp("ms")),
            city=pa.array(["a", "", None, "é", "a\0b", "b", "c"]).dictionary_encode(),
            number=pa.array([1.5, None, float("nan"), -0.0, 1e300, 3, 4]),
            day=pa.array([0, 1, 2, -(10**6), 10**7, None, 6], pa.date32()),
        )
        study = visits_table(tmp_path, table, columns=())
        found.append(rows(study, columns="* EXCLUDE (__u)"))
    assert [row for row in found[0] if row[0] != 6] == [row for row in found[1] if row[0] != 6]


@pytest.mark.parametrize("name", IN_PARQUET)
def test_without_preparation_the_owner_is_told_before_any_question(tmp_path, name):
    """One sentence that names table and column, when the version is taken."""
    study = one_table(tmp_path, "parquet", UNREADABLE[name][0], "never")
    with pytest.raises(InvalidStudy, match=r"^tables\.visits\.columns\.x must be a column whose every value can be read"):
        prepared(study)
    assert not is_prepared(describe(study), folder_of(study), 1)


def test_files_of_frames_hold_what_can_be_selected(tmp_path):
    """Nothing else is copied."""
    study = one_table(tmp_path, "arrow", pa.array(["a", "b"]), "never")
    _, folder = prepared(study)

    assert pq.read_schema(folder.frames / "t0.parquet").names == ["user", "x"]


def test_preparing_describes_the_sources_again(tmp_path):
    """A new column is there, one that is declared and gone is an owner's error, and the version before stays."""
    study = visits_table(tmp_path, a_table(user=[1], city=["a"]), columns=(Column("city", Type.STRING),))
    engine = engine_of(study)
    pq.write_table(a_table(user=[1], city=["a"], more=[2]), tmp_path / "visits.parquet")
    engine.prepare(2)
    assert [field.name for field in engine.schema.tables[0].fields] == ["user", "city", "more"]

    pq.write_table(a_table(user=[1]), tmp_path / "visits.parquet")
    with pytest.raises(InvalidStudy, match=r"columns\.city must be a column of the source"):
        engine.prepare(3)
    assert (engine.version, engine.ready) == (2, True)
    engine.close()


def test_what_killed_processes_spilled_is_swept(tmp_path):
    """When an engine is opened; what a living process holds stays."""
    study = visits_table(tmp_path, a_table(user=[1]), columns=())
    folder = folder_of(study)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for name in (f"{gone.pid}-abcd", str(gone.pid), f"{os.getpid()}-abcd"):
        (folder.spill / name).mkdir()
    DuckDBEngine(study, 1).close()

    assert [one.name for one in folder.spill.iterdir()] == [f"{os.getpid()}-abcd"]


def test_removing_everything_removes_the_log(tmp_path):
    """It may hold values."""
    folder = folder_of(visits_table(tmp_path, a_table(user=[1]), columns=()))
    logs = (folder.incidents, folder.durations)
    for log in logs:
        folder.appending(log).close()
        assert log.stat().st_mode & 0o777 == 0o600
    folder.remove_versions(keep=1)
    assert all(log.exists() for log in logs)
    folder.remove_versions()
    assert not any(log.exists() for log in logs)


def test_threads_agree_on_the_umask():
    """Whoever leaves last sets it back."""
    before = os.umask(0o022)
    try:
        inside, leave = threading.Event(), threading.Event()

        def other():
            with private_files():
                inside.set()
                leave.wait(10)

        thread = threading.Thread(target=other)
        with private_files():
            thread.start()
            inside.wait(10)
        assert os.umask(0o077) == 0o077  # the other thread still needs it
        leave.set()
        thread.join()
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)

# ruff: noqa: DTZ001 -- times without zone are the study's UTC
"""Reading is total: every edge value of every physical type becomes its cleaned value or NULL, on every kind of source."""

import datetime as dt
import decimal
import math
from fractions import Fraction

import pyarrow as pa
import pytest
from duckdb_studies import looking_into, prepared, rows, study_of, visits_table, write

from curador.engines.duckdb.connection import connect
from curador.engines.duckdb.spelling import CARRIERS, family_of
from curador.plan.model import column_grid
from curador.study.model import Column, Table, UnitColumn, UnitRow
from curador.study.values import Type

D = decimal.Decimal
FIRST, LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)
BEGIN, END = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
NOON = dt.datetime(2020, 2, 29, 12, 0, 0, 5)
UTC = dt.UTC

TYPED = [
    (pa.int64(), Type.INTEGER, [(0, 0), (-(2**63), -(2**63)), (2**63 - 1, 2**63 - 1), (None, None)]),
    (pa.uint64(), Type.INTEGER, [(2**63, None), (2**64 - 1, None), (7, 7)]),
    (pa.int8(), Type.BOOLEAN, [(0, False), (1, True), (2, None), (-1, None), (None, None)]),
    (pa.bool_(), Type.BOOLEAN, [(True, True), (False, False), (None, None)]),
    (pa.bool_(), Type.INTEGER, [(True, 1), (False, 0), (None, None)]),
    (pa.bool_(), Type.STRING, [(True, "true"), (False, "false")]),
    (
        pa.float64(),
        Type.INTEGER,
        [
            (9.0, 9),
            (-0.0, 0),
            (1.5, None),
            (math.inf, None),
            (-math.inf, None),
            (math.nan, None),
            (2.0**63, None),
            (1e300, None),
        ],
    ),
    (
        pa.float64(),
        Type.FLOAT,
        [(math.nan, None), (math.inf, math.inf), (-math.inf, -math.inf), (-0.0, 0.0), (5e-324, 5e-324), (1.8e308, math.inf)],
    ),
    (pa.float32(), Type.DECIMAL, [(1e38, 9.999999680285692e37), (math.nan, None), (0.5, 0.5)]),
    (
        pa.float64(),
        Type.STRING,
        [
            (9.0, "9"),
            (-0.0, "0"),
            (1.5, "1.5"),
            (1e20, "100000000000000000000"),
            (math.nan, None),
            (math.inf, "inf"),
            (1e300, "1e+300"),
        ],
    ),
    (pa.int32(), Type.STRING, [(9, "9"), (-1, "-1"), (None, None)]),
    (pa.uint64(), Type.STRING, [(2**64 - 1, "18446744073709551615")]),
    (pa.int64(), Type.FLOAT, [(2**53 + 1, float(2**53)), (3, 3.0)]),
    (pa.decimal128(5, 2), Type.INTEGER, [(D("9.00"), 9), (D("9.50"), None), (D("999.99"), None), (None, None)]),
    (pa.decimal128(38, 38), Type.INTEGER, [(D("0.5"), None), (D("0"), 0)]),
    (pa.decimal128(38, 0), Type.INTEGER, [(D(2**63), None), (D(2**63 - 1), 2**63 - 1)]),
    (pa.decimal128(5, 2), Type.STRING, [(D("9.00"), "9"), (D("9.50"), "9.5"), (D("100.00"), "100"), (D("0.00"), "0")]),
    (pa.decimal128(15, 2), Type.DECIMAL, [(D("0.10"), 0.1), (None, None)]),
    (pa.string(), Type.STRING, [("", ""), (" 1", " 1"), ("é'\"", "é'\""), ("a\0b", "a\0b"), (None, None)]),
    (
        pa.string(),
        Type.INTEGER,
        [
            ("7", 7),
            ("1.5", None),
            ("2.0", 2),
            ("x", None),
            ("", None),
            ("9223372036854775807", 2**63 - 1),
            ("9223372036854775808", None),
        ],
    ),
    (pa.string(), Type.INTEGER, [("0x10", None), ("nan", None), ("1e3", 1000), (" 12 ", 12)]),
    (
        pa.string(),
        Type.FLOAT,
        [("nan", None), ("-inf", -math.inf), ("1e999", math.inf), ("-0.0", 0.0), ("1,5", None), ("0.1", 0.1)],
    ),
    (pa.string(), Type.BOOLEAN, [("true", True), ("F", False), ("1", True), ("0", False), ("2", None), ("", None)]),
    (
        pa.string(),
        Type.DATE,
        [
            ("2020-02-29", dt.date(2020, 2, 29)),
            ("2021-02-29", None),
            ("10000-01-01", LAST),
            ("0044-03-15 (BC)", FIRST),
            ("infinity", None),
        ],
    ),
    (
        pa.string(),
        Type.TIMESTAMP,
        [
            ("2020-01-01T10:00:00+02:00", dt.datetime(2020, 1, 1, 8)),
            ("2020-01-01 10:00:00", dt.datetime(2020, 1, 1, 10)),
            ("2020-01-01", dt.datetime(2020, 1, 1)),
            ("10000-01-01 00:00:00", END),
            ("-infinity", None),
            ("x", None),
        ],
    ),
    (pa.date32(), Type.DATE, [(FIRST, FIRST), (LAST, LAST), (None, None)]),
    (pa.date32(), Type.TIMESTAMP, [(LAST, dt.datetime(9999, 12, 31)), (None, None)]),
    (pa.date32(), Type.STRING, [(dt.date(2020, 1, 2), "2020-01-02")]),
    (pa.timestamp("us"), Type.TIMESTAMP, [(NOON, NOON), (BEGIN, BEGIN), (END, END), (None, None)]),
    (pa.timestamp("us"), Type.DATE, [(NOON, NOON.date()), (END, LAST)]),
    (pa.timestamp("s"), Type.TIMESTAMP, [(dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(1969, 12, 31, 23, 59, 59))]),
    (pa.timestamp("ns"), Type.TIMESTAMP, [(dt.datetime(2262, 4, 11), dt.datetime(2262, 4, 11)), (None, None)]),
    (
        pa.timestamp("us", "Europe/Madrid"),
        Type.TIMESTAMP,
        [(dt.datetime(2020, 1, 1, 0, 30, tzinfo=UTC), dt.datetime(2020, 1, 1, 0, 30)), (None, None)],
    ),
    (
        pa.timestamp("us", "Europe/Madrid"),
        Type.DATE,
        [(dt.datetime(2019, 12, 31, 23, 30, tzinfo=UTC), dt.date(2019, 12, 31))],
    ),
]


def same(found, expected):
    """Equal, of one type, and with the same sign of zero."""
    return type(found) is type(expected) and found == expected and str(found) == str(expected)


def wrong(folder, cases, kind):
    """All cases as the columns of one table; what is not as expected after preparation."""
    length = max(len(pairs) for _, _, pairs in cases)
    padded = [[value for value, _ in pairs] + [None] * (length - len(pairs)) for _, _, pairs in cases]
    columns = {
        f"x{place}": pa.array(values, type=case[0]) for place, (case, values) in enumerate(zip(cases, padded, strict=True))
    }
    table = pa.table({"id": pa.array(range(length)), **columns})
    declared = tuple(Column(f"x{place}", case[1]) for place, case in enumerate(cases))
    study = visits_table(folder, table, kind, unit=UnitRow(), columns=(Column("id", Type.INTEGER), *declared))
    names = ", ".join(f"c{place}" for place in range(len(cases) + 1))
    by_row = sorted(rows(study, columns=names))
    return [
        (str(case[0]), case[1], value, found[place + 1])
        for place, case in enumerate(cases)
        for (value, expected), found in zip(case[2], by_row, strict=False)
        if not same(found[place + 1], expected)
    ]


@pytest.mark.parametrize("kind", ["parquet", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("database", "arrow"))])
def test_edge_values_of_typed_sources(tmp_path, kind):
    """Each value becomes what its declared type says."""
    assert wrong(tmp_path, TYPED, kind) == []


def test_edge_values_of_separated_text(tmp_path):
    """Text files are read by the declared type; nothing is guessed."""
    texts = [(kind, declared, [pair for pair in pairs if "\0" not in str(pair[0])]) for kind, declared, pairs in TYPED]

    assert wrong(tmp_path, [case for case in texts if case[0] == pa.string()], "csv") == []


@pytest.mark.slow
def test_a_wrong_expectation_is_found(tmp_path):
    """The comparison itself can fail: on a value, on a sign of zero, on a type."""
    cases = [(pa.float64(), Type.FLOAT, [(1.5, 1.0), (-0.0, -0.0), (2.0, 2)])]

    assert len(wrong(tmp_path, cases, "parquet")) == 3


EXTREMES = {
    "DATE": ["'5881580-07-10'", "'infinity'", "'-infinity'", "'290309-12-22 (BC)'", "NULL"],
    "TIMESTAMP": ["make_timestamp(9223372036854775806)", "'infinity'", "'-infinity'", "make_timestamp(-9223372022400000000)"],
    "TIMESTAMP_S": ["'290000-01-01'", "'infinity'", "'290000-01-01 (BC)'"],
    "TIMESTAMP_MS": ["'290000-01-01'", "'-infinity'", "'290000-01-01 (BC)'"],
    "TIMESTAMP_NS": ["'2262-04-11'", "'infinity'", "'1677-09-22'"],
    "TIMESTAMPTZ": ["'290000-01-01'", "'infinity'", "'-infinity'", "'290000-01-01 (BC)'"],
    "HUGEINT": ["170141183460469231731687303715884105727", "-170141183460469231731687303715884105728", "0"],
    "UHUGEINT": ["340282366920938463463374607431768211455", "0"],
    "UUID": ["'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "ENUM('a', 'b')": ["'b'", "NULL"],
    "FLOAT": ["'nan'", "'inf'", "'-0'"],
    "DECIMAL(38, 10)": ["'9999999999999999999999999999'", "'0.5'"],
    "JSON": ["'{\"a\": 1}'", "'null'"],
}


@pytest.mark.slow
def test_extremes_of_every_physical_type_never_raise(tmp_path):
    """Whatever can be declared of a column, the furthest values of its physical type are read; years are 1 to 9999."""
    readings = [
        (physical, declared)
        for physical in EXTREMES
        for declared in Type
        if family_of(physical.replace(", ", ",")) in CARRIERS[declared]
    ]
    write(tmp_path, "database", pa.table({"id": [1]}))
    length = max(len(values) for values in EXTREMES.values())
    with connect(str(tmp_path / "visits.duckdb"), {}) as connection:
        types = [f"x{place} {physical}" for place, (physical, _) in enumerate(readings)]
        connection.execute(f"CREATE OR REPLACE TABLE rows (id INTEGER, {', '.join(types)})").fetchall()
        for row in range(length):
            values = [f"CAST({(EXTREMES[physical] * length)[row]} AS {physical})" for physical, _ in readings]
            connection.execute(f"INSERT INTO rows VALUES ({row}, {', '.join(values)})").fetchall()
    columns = tuple(Column(f"x{place}", declared) for place, (_, declared) in enumerate(readings))

    found = rows(study_of(tmp_path, Table("visits", "visits.duckdb#rows", UnitRow(), columns)))

    assert len(readings) > 40
    assert len(found) == length
    for place, (physical, declared) in enumerate(readings):
        if declared.temporal and physical.startswith(("DATE", "TIME")):
            values = EXTREMES[physical]
            nothing = ["infinity" in (values * length)[row] or (values * length)[row] == "NULL" for row in range(length)]
            times = [row[place + 1] for row in sorted(found, key=lambda row: row[0])]
            assert [one is None for one in times] == nothing
            assert all(one is None or 1 <= one.year <= 9999 for one in times)


def test_a_collation_of_the_source_merges_nobody(tmp_path):
    """'a' and 'A' of a NOCASE column stay two units, two values."""
    source, _ = write(tmp_path, "database", pa.table({"id": [1]}))
    with connect(str(tmp_path / "visits.duckdb"), {}) as connection:
        connection.execute("CREATE OR REPLACE TABLE rows (who VARCHAR COLLATE NOCASE, x VARCHAR COLLATE NOCASE)").fetchall()
        connection.execute("INSERT INTO rows VALUES ('a', 'b'), ('A', 'B')").fetchall()
    table = Table("visits", source, UnitColumn("who"), (Column("x", Type.STRING, values=("b",)),))

    found = rows(study_of(tmp_path, table), columns="c0, c1, __u, __r")

    assert sorted(row[:2] for row in found) == [("A", None), ("a", "b")]
    assert len({row[2] for row in found}) == 2
    assert {row[3] for row in found} == {1}


def test_values_outside_the_declared_list_are_null(tmp_path):
    """A list of values is exact, for text, numbers, dates and booleans."""
    table = pa.table(
        {"a": ["x", "X", None], "b": [0.1, 0.2, 0.3], "c": [1, 2, 3], "d": [dt.date(2020, 1, day) for day in (1, 2, 3)]}
    )
    columns = (
        Column("a", Type.STRING, values=("x",)),
        Column("b", Type.DECIMAL, values=(Fraction(1, 10),)),
        Column("c", Type.INTEGER, values=(2,)),
        Column("d", Type.DATE, values=(dt.date(2020, 1, 3),)),
    )

    found = rows(visits_table(tmp_path, table, unit=UnitRow(), columns=columns), columns="c0, c1, c2, c3")

    assert set(found) == {("x", 0.1, None, None), (None, None, 2, None), (None, None, None, dt.date(2020, 1, 3))}


OBJECTS = [
    (9.0, "9"),
    (9, "9"),
    (True, "true"),
    ("x", "x"),
    (None, None),
    (math.nan, None),
    (D("9.00"), "9"),
    (D("NaN"), None),
    (D("1e1000000"), "1E+1000000"),
    (10**5000, None),
    (dt.date(2020, 1, 2), "2020-01-02"),
    (b"x", None),
    ([1], None),
    (object(), None),
    ("\ud800", "?"),
]


@pytest.mark.slow
def test_a_pandas_column_of_objects_is_text_whatever_stands_in_it(tmp_path):
    """No type is inferred from rows: each value is spelled."""
    import pandas as pd

    frame = pd.DataFrame({"id": range(len(OBJECTS)), "x": pd.Series([value for value, _ in OBJECTS], dtype=object)})
    study = study_of(tmp_path, Table("visits", "frame", UnitRow()), frames={"visits": frame})

    assert [row[1] for row in sorted(rows(study, columns="c0, c1"))] == [text for _, text in OBJECTS]


def test_a_bad_row_does_not_change_the_type_of_a_text_file(tmp_path):
    """Row 10,001 with a word in a column of numbers is one NULL more."""
    (tmp_path / "visits.csv").write_text("id,x\n" + "".join(f"{n},{n}\n" for n in range(10_001)) + "10001,oops\n")
    study = study_of(tmp_path, Table("visits", "visits.csv", UnitRow(), (Column("x", Type.INTEGER),)))

    found = rows(study, columns="c0, c1")

    assert (len(found), [row for row in found if row[1] is None]) == (10_002, [("10001", None)])


TEXT_FILES = {
    "empty field is NULL, quoted empty is text": ('a,b\n1,\n2,""\n', [("1", None), ("2", "")]),
    "windows lines": ("a,b\r\n1,x\r\n", [("1", "x")]),
    "mixed lines": ("a,b\n1,x\r\n2,y\n", [("1", "x"), ("2", "y")]),
    "too few fields end in NULL": ("a,b\n1\n2,y\n", [("1", None), ("2", "y")]),
    "too many are cut": ("a,b\n1,2,3\n2,y\n", [("1", "2"), ("2", "y")]),
    "a line ends inside quotes too": ('a,b\n1,"x\ny"\n2,z\n', [("1", '"x'), ("2", "z"), ('y"', None)]),
    "a quote in the middle": ('a,b\n1,x"y\n2,"x"y\n', [("1", 'x"y'), ("2", '"x"y')]),
    "a separator inside quotes": ('a,b\n"1,""2""",z\n', [('1,"2"', "z")]),
    "empty lines": ("a,b\n\n1,x\n\n", [("1", "x")]),
    "doubled quotes": ('a,b\n1,"say ""hi"""\n', [("1", 'say "hi"')]),
    "semicolons": ("a;b\n1;x,y\n", [("1", "x,y")]),
    "tabs": ('a\tb\n1\tx\n2\t"x\ty"\n', [("1", "x"), ("2", "x\ty")]),
    "bars": ('a|b\n1|"x|y"\n', [("1", "x|y")]),
    "no row": ("a,b\n", []),
    "no line end": ("a,b\n1,x", [("1", "x")]),
    "mark at the beginning": ("\ufeffa,b\n1,x\n", [("1", "x")]),
}


def test_text_files_are_read_whatever_stands_in_them(tmp_path):
    """Separators, quotes and line ends; nothing that a row holds is an error."""
    for place, (content, _) in enumerate(TEXT_FILES.values()):
        (tmp_path / f"{place}.csv").write_bytes(content.encode())
    tables = [Table(f"t{place}", f"{place}.csv", None) for place in range(len(TEXT_FILES))]
    study = study_of(tmp_path, Table("private", "0.csv", UnitColumn("a")), *tables)
    prepared(study)

    with looking_into(study) as connection:
        found = [connection.execute(f"SELECT c0, c1 FROM t{place + 1}").fetchall() for place in range(len(TEXT_FILES))]
    assert dict(zip(TEXT_FILES, found, strict=True)) == {name: expected for name, (_, expected) in TEXT_FILES.items()}


def test_bytes_that_are_no_text_leave_their_row_out(tmp_path):
    """A row that is no UTF-8 is no row."""
    (tmp_path / "visits.csv").write_bytes(b"a,b\n1,\xff\xfe\n2,y\n")

    assert rows(study_of(tmp_path, Table("visits", "visits.csv", UnitRow())), columns="c0, c1") == [("2", "y")]


GRIDS = [
    (
        Type.FLOAT,
        Fraction(0),
        Fraction(500),
        [0.0, 500.0, 499.9999, 1e-9, 250.25, -1.0, 1e308, math.inf, -math.inf, math.nan],
    ),
    (Type.DECIMAL, Fraction(1, 10), Fraction(3, 10), [0.1, 0.2, 0.3, 0.05, 0.31, 0.15]),
    (Type.INTEGER, -5, 17, [-5, 17, 0, 3, -6, 18, 2**62]),
    (Type.INTEGER, 2**61, 2**61 + 9, [2**61, 2**61 + 1, 2**61 + 9, 2**61 + 10, 0, -(2**63), 2**63 - 1]),
    (Type.INTEGER, -(2**62), 2**62, [-(2**62), 2**62, 0, 1, 2**61, -(2**63), 2**63 - 1]),
    (Type.FLOAT, Fraction(1, 10**300), Fraction(2, 10**300), [1e-300, 1.5e-300, 2e-300, 0.0, 5e-324]),
    (Type.FLOAT, Fraction(-(10**300)), Fraction(10**300), [-1e300, 1e300, 0.0, 1e299, 1e308]),
]


@pytest.mark.parametrize("prepare", ["auto", "never"])
def test_columns_on_their_grid(tmp_path, prepare):
    """The stored step is that of the clamped value: within half a step of it, exact for whole numbers on a grid of ones."""
    length = max(len(values) for *_, values in GRIDS) + 1
    declared = tuple(Column(f"x{place}", kind, bounds=(lower, upper)) for place, (kind, lower, upper, _) in enumerate(GRIDS))
    columns = {
        column.name: pa.array(
            [*values, *[None] * (length - len(values))], pa.int64() if column.type == "integer" else pa.float64()
        )
        for column, (*_, values) in zip(declared, GRIDS, strict=True)
    }
    study = visits_table(
        tmp_path, pa.table({"id": list(range(length)), **columns}), unit=UnitRow(), columns=declared, prepare=prepare
    )
    names = ", ".join(f"g{place + 1}" for place in range(len(GRIDS)))

    found = [row[1:] for row in sorted(rows(study, columns=f"c0, {names}"), key=lambda row: row[0])]

    assert found[-1] == (None,) * len(GRIDS)
    for place, (_, lower, upper, values) in enumerate(GRIDS):
        for value, row in zip(values, found, strict=False):
            check_step(value, row[place], Fraction(lower), Fraction(upper), column_grid(declared[place]))


def check_step(value, step, lower, upper, grid):
    if isinstance(value, float) and math.isnan(value):
        assert step is None
        return
    clamped = lower if value <= lower else upper if value >= upper else Fraction(value)
    error = abs(grid.value(step) - clamped)
    assert 0 <= step <= grid.steps
    assert error <= grid.step * (Fraction(1, 2) + Fraction(1, 10**6))
    assert error == 0 or grid.exponent != 0

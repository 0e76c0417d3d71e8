"""A study file is read to the letter, refused with its line and what to write instead, and written so that it reads back."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import re
import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from bad_files import BAD_FILES, GOOD, change, column, more, path, table

from curador.errors import InvalidParameter, InvalidStudy, Refused
from curador.privacy.adjacency import Adjacency
from curador.study import file as study_file
from curador.study.check import check_study, opening_warnings, owner_warnings
from curador.study.file import find_places, nearest_place, parse_study, read_study
from curador.study.model import (
    Analyst,
    Budget,
    Caps,
    Column,
    EngineSettings,
    Study,
    Table,
    UnitColumn,
    UnitPath,
    UnitRow,
)
from curador.study.rules import broken_rule
from curador.study.values import Type

RULE = re.compile(r"\A[^\n;]+ must be [^\n]+; got [^\n]*\.(\nHint: [^\n]+)?\Z")
HERE = Path("/somewhere")

WHOLE = """
version = 1
name = "visits"
adjacency = "replace_one"
budget = { epsilon = "3", delta = "1e-6" }
ledger = "visits.ledger"
max_units = 1_000_000_000
[engine]
threads = 4
memory = "4GB"
spill = "1.5GiB"
deadline = "1.5min"
prepare = "never"
worker = "inline"
[unit]
name = "customer"
[tables.customer]
source = "customer.parquet"
unit = "c_custkey"
unique = true
[tables.orders]
source = "orders/*.parquet"
unit = { column = "o_custkey", references = "customer" }
caps = { rows = 20, groups = 5 }
caps_max = { rows = 50 }
[tables.lineitem]
source = "all.duckdb#lineitem"
unit = { column = "l_orderkey", references = "orders.o_orderkey" }
[tables.lineitem.columns]
l_quantity = { type = "decimal", bounds = [0, 0.1] }
l_returnflag = { type = "string", values = ["A", "N", "R"], length = 1 }
l_shipdate = { type = "date", bounds = ["1992-01-01", 1998-12-31], nullable = false }
l_time = { type = "timestamp", bounds = ["1992-01-01", 1998-12-31T23:00:00-02:00] }
l_number = { type = "integer", bounds = [-1e3, 7.0], values = [1, 2], nullable = true }
l_float = { type = "float", bounds = ["-1/3", "1e-20"] }
[tables.nation]
source = "nation.parquet"
public = true
key = ["n_nationkey"]
[analysts]
ana = { share = "20%" }
eva = { share = "100/3%", tables = ["orders"], train = true }
"""


def read(text):
    return parse_study(text, folder=HERE)


def refused(text):
    with pytest.raises(InvalidStudy) as told:
        read(text)
    return str(told.value)


@pytest.mark.parametrize("bad", BAD_FILES, ids=lambda bad: bad.name)
def test_a_bad_file_gives_its_sentence(bad):
    """The line, the key, the rule, the value and the hint are exactly these."""
    told = refused(bad.text)
    sentence, _, hint = told.partition("\nHint: ")

    assert sentence == f"study.toml{'' if bad.line is None else f', line {bad.line}'}: {bad.sentence}"
    assert bad.hint in {hint, None}
    assert RULE.match(told)


def test_the_good_file_of_the_table_is_good():
    """What the bad files differ from is accepted."""
    assert read(GOOD).tables[0].columns == (Column("spent", Type.FLOAT, (Fraction(0), Fraction(500))),)


def test_a_whole_file():
    """Every key of the format is read as it is meant."""
    study = read(WHOLE)
    customer, orders, lineitem, nation = study.tables

    assert (study.name, study.unit_name, study.adjacency) == ("visits", "customer", Adjacency.REPLACE_ONE)
    assert study.budget == Budget(epsilon=3, delta="1e-6")
    assert (study.ledger, study.folder, study.ledger_path) == (Path("visits.ledger"), HERE, HERE / "visits.ledger")
    assert study.engine == EngineSettings(4, 4 * 10**9, 3 * 2**29, Fraction(90), "never", "inline")
    assert (customer.unit, customer.unique, customer.caps) == (UnitColumn("c_custkey"), True, Caps(rows=1))
    assert (orders.unit, orders.caps) == (UnitPath("o_custkey", "customer"), Caps(rows=20, groups=5))
    assert orders.caps_max == Caps(rows=50, groups=5)
    assert (lineitem.unit, lineitem.caps, lineitem.caps_max) == (UnitPath("l_orderkey", "orders", "o_orderkey"), None, None)
    assert (nation.public, nation.key, nation.unit) == (True, ("n_nationkey",), None)
    assert study.analysts == (Analyst("ana", Fraction(1, 5)), Analyst("eva", Fraction(1, 3), ("orders",), train=True))
    assert [column.name for column in lineitem.columns][:2] == ["l_quantity", "l_returnflag"]
    assert study.table("lineitem") is lineitem
    assert lineitem.column("l_quantity").bounds == (0, Fraction(1, 10))
    assert lineitem.column("l_returnflag").values == ("A", "N", "R")
    assert lineitem.column("l_shipdate").bounds == (dt.date(1992, 1, 1), dt.date(1998, 12, 31))
    assert lineitem.column("l_time").bounds == (dt.datetime(1992, 1, 1), dt.datetime(1999, 1, 1, 1))  # noqa: DTZ001
    assert lineitem.column("l_number").bounds == (-1000, 7)
    assert {type(one) for one in lineitem.column("l_number").bounds} == {int}
    assert [column.nullable for column in lineitem.columns] == [True, False, False, True, True, True]


@pytest.mark.parametrize(
    ("written", "value"),
    [("0.1", Fraction(1, 10)), ('"0.1"', Fraction(1, 10)), ("1e-7", Fraction(1, 10**7)), ("1", 1), ('"1/3"', Fraction(1, 3))],
)
def test_numbers_are_the_decimals_that_were_written(written, value):
    """No number passes through a binary float."""
    assert read(change('epsilon = "3"', f"epsilon = {written}")).budget.epsilon == value


def test_a_pure_budget_has_no_delta():
    """Without delta there is no part of it either."""
    budget = read(change(', delta = "1e-6"', "")).budget

    assert (budget.pure, budget.delta, budget.delta_keys) == (True, None, None)


@pytest.mark.parametrize(
    ("written", "unit"),
    [
        ('"row"', UnitRow()),
        ('{ column = "row" }', UnitColumn("row")),
        ('"user id.x"', UnitColumn("user id.x")),
        ('{ column = "user_id" }', UnitColumn("user_id")),
    ],
)
def test_a_unit_is_a_column_or_the_row(written, unit):
    """The word row means every row; a column of that name is written as a table."""
    study = read(table(f"unit = {written}\n"))

    assert study.tables[0].unit == unit
    assert read(study.to_toml()) == study


def test_names_with_dots_are_referenced_by_a_list():
    """A reference that can be read in two ways is written as a list, and to_toml writes it so."""
    tables = '[tables.a]\nsource = "a"\nunit = "b"\n[tables."a.b"]\nsource = "b"\nunit = "c"\n'
    study = read(path('{ column = "u", references = ["a", "b"] }') + tables)
    other = read(path('{ column = "u", references = ["a.b"] }') + tables)

    assert (study.tables[0].unit, other.tables[0].unit) == (UnitPath("u", "a", "b"), UnitPath("u", "a.b"))
    assert 'references = ["a", "b"]' in study.to_toml()
    assert read(study.to_toml()) == study
    assert read(other.to_toml()) == other


def test_a_chain_may_end_at_a_row():
    """Rows of another table, reached by its key, are units."""
    study = read(path('{ column = "order_id", references = "users.id" }', 'unit = "row"\n'))

    assert study.tables[0].unit == UnitPath("order_id", "users", "id")


def test_a_chain_may_go_through_a_table_that_holds_the_unit():
    """A reference without key goes to a table whose own reference has no key either."""
    middle = 'unit = { column = "uid", references = "people" }\n[tables.people]\nsource = "p"\nunit = "id"\n'

    assert read(path('{ column = "user_id", references = "users" }', middle)).tables[0].unit == UnitPath("user_id", "users")


def test_declared_values_are_not_null_unless_said():
    """The default of nullable depends on values."""
    one, two = (read(column(f'c = {{ type = "boolean", values = [true]{more_}}}')) for more_ in ("", ", nullable = true"))

    assert [study.tables[0].columns[0].nullable for study in (one, two)] == [False, True]


@pytest.mark.parametrize("size", ["2000B", "2kB", "2 KB", "0.002mb", "2e3 B"])
def test_sizes(size):
    """Sizes are exact numbers of bytes, in decimal or binary units."""
    assert read(more(f'[engine]\nmemory = "{size}"\n')).engine.memory == 2000


@pytest.mark.parametrize(
    ("duration", "seconds"), [('"60s"', 60), ('"250ms"', Fraction(1, 4)), ('"2h"', 7200), ("0.5", Fraction(1, 2))]
)
def test_durations(duration, seconds):
    """Durations are exact numbers of seconds."""
    assert read(more(f"[engine]\ndeadline = {duration}\n")).engine.deadline == seconds


def test_a_file_is_read_from_its_folder(tmp_path):
    """Marks of other systems do not matter: a byte-order mark and carriage returns are read over."""
    file = tmp_path / "study.toml"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())

    assert read_study(file) == replace(read(GOOD), folder=tmp_path)
    assert read_study(str(file)).ledger_path == tmp_path / "visits.ledger"


def test_lines_are_right_with_carriage_returns(tmp_path):
    """The line is counted as an editor counts it."""
    file = tmp_path / "mine.toml"
    file.write_bytes(column('spent = { type = "float", bounds = [5, 0] }').replace("\n", "\r\n").encode())

    with pytest.raises(InvalidStudy, match=r"^mine.toml, line 9: \[tables.visits.columns\] spent.bounds must be"):
        read_study(file)


def test_a_file_that_cannot_be_read(tmp_path):
    """Absent files, folders and other encodings are refused in a sentence."""
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'version = 1\nname = "\xe9"\n')
    told = []
    for file in (tmp_path / "absent.toml", tmp_path, latin):
        with pytest.raises(InvalidStudy) as refusal:
            read_study(file)
        told.append(str(refusal.value))

    assert told[0] == f"{tmp_path}/absent.toml must be a file that can be read; got 'No such file or directory'."
    assert told[1] == f"{tmp_path} must be a file that can be read; got 'Is a directory'."
    assert told[2] == "latin.toml, line 2: the text must be UTF-8; got 'another encoding'."


def test_a_file_that_is_too_large(tmp_path, monkeypatch):
    """No more than the limit is ever read."""
    monkeypatch.setattr(study_file, "LARGEST_FILE", 100)
    file = tmp_path / "study.toml"
    file.write_text(GOOD, encoding="utf-8")

    with pytest.raises(InvalidStudy, match=r"study\.toml must be at most 100 bytes long; got 'more'"):
        read_study(file)


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 5000, 'a = "\\uD800"', "\0"])
def test_hostile_texts_are_refused(text):
    """What stops the parser is told as a refusal, never as another error."""
    assert " must be " in refused(text)


def test_every_key_has_its_line():
    """Strings of all kinds, comments, dotted and quoted keys do not lead the scanner astray."""
    lines_of_text = [
        "# a = 1",
        '"a b" = """',
        "x = 1 # not a comment",
        "[not.a.header]",
        '"""" # the text ends with a quote',
        "c.'d e'.f = { g = [",
        "  1, # one",
        "  [2, { h = '''",
        "]''''' }],",
        "], i = 1979-05-27 07:32:00 }",
        "",
        '[ x . "y.z" ]',
        "k = '#'",
        "l = -0.5e7#c",
    ]
    text = "\n".join(lines_of_text)
    document = tomllib.loads(text)
    found = find_places(text)
    lines = {path: place.line for path, place in found.items()}

    assert set(lines) == set(paths(document))
    assert [lines["a b",], lines["c",]] == [2, 6]
    assert [lines["c", "d e", "f", "g", 0], lines["c", "d e", "f", "g", 1, 1, "h"]] == [7, 8]
    assert [lines["c", "d e", "f", "i"], lines["x",], lines["x", "y.z", "k"], lines["x", "y.z", "l"]] == [10, 12, 13, 14]
    assert nearest_place(found, ("x", "y.z", "absent")).name(("x", "y.z", "absent")) == '[x."y.z"] absent'
    assert nearest_place(found, ("absent",)) is None


def paths(value, above=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*above, key)
        yield from paths(item, (*above, key))


def test_a_study_reads_back():
    """Everything that a study can hold is written and read back as the same."""
    odd = 'a "b"\\\n\té\u2028\x7f☃'
    study = Study(
        name=odd,
        tables=(
            Table(
                odd,
                source=odd,
                unit=UnitPath("row", "x.y", odd),
                columns=(
                    Column(odd, Type.STRING, values=("", odd, "#", "[x]"), nullable=True, length=50),
                    Column("f", Type.FLOAT, bounds=(Fraction(-1, 3), Fraction(10**300))),
                    Column("d", Type.DATE, bounds=(dt.date(1, 1, 1), dt.date(9999, 12, 31)), nullable=False),
                    Column("t", Type.TIMESTAMP, bounds=(dt.datetime.min, dt.datetime.max)),  # noqa: DTZ901
                    Column("i", Type.INTEGER, bounds=(-(2**62), 2**62)),
                    Column("b", Type.BOOLEAN, values=(True, False)),
                ),
                unique=True,
                caps_max=Caps(rows=10, rows_per_group=1_000_000),
            ),
            Table("x.y", "frame", UnitColumn("row"), caps=Caps(rows=7, groups=3, rows_per_group=2)),
            Table("p", "p", None, key=("a", odd)),
        ),
        budget=Budget(epsilon="1/3", delta="1e-300", delta_keys=0),
        ledger=Path("/abs/x.ledger"),
        adjacency=Adjacency.REPLACE_ONE,
        unit_name=odd,
        max_units=2**62,
        engine=EngineSettings(1, 1, 2**62, Fraction(1, 7), "always", "inline", Fraction(1, 21)),
        analysts=(Analyst(odd, Fraction(1, 7), (odd, "p"), train=True), Analyst("a")),
        folder=HERE,
        allow_large_delta=True,
        least_spend=Fraction(1, 300_000),
    )

    assert read(study.to_toml()) == study
    assert read(study.to_toml()).digest == study.digest


def test_a_description_is_kept_and_means_nothing():
    """Tables and columns say what they are about; answers, fingerprints and equality are as without it."""
    about = 'rows "of" people\n☃ = 1'
    table = Table("x", "x.csv", UnitRow(), columns=(Column("a", Type.FLOAT, description=about),), description=f"{about}!")
    plain = replace(table, columns=(Column("a", Type.FLOAT),), description=None)
    study, other = (Study("s", (one,), Budget(epsilon=1), Path("s.ledger"), folder=HERE) for one in (table, plain))

    found = read(study.to_toml()).tables[0]
    assert (found.description, found.columns[0].description) == (f"{about}!", about)
    assert "description" not in other.to_toml()
    assert (study.digest, study) == (other.digest, other)


@pytest.mark.parametrize("wrong", ["", "a" * 1_001, "a\0", 3, "\ud800"])
def test_a_description_is_a_short_text(wrong):
    with pytest.raises(InvalidStudy, match="description must be a text of 1 to 1,000 characters, without NUL"):
        Column("a", Type.FLOAT, description=wrong)
    with pytest.raises(InvalidStudy, match=r"tables\.x\.description must be a text"):
        Table("x", "x.csv", UnitRow(), description=wrong)


BASE = read(WHOLE)


def changed(old, new):
    text = BASE.to_toml()
    assert text.count(old) == 1, old
    return read(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "visits"', 'name = "visit"'),
        ('name = "customer"', 'name = "person"'),
        ("replace_one", "add_or_remove_one"),
        ('epsilon = "3"', 'epsilon = "3.1"'),
        ('delta = "1e-6"', 'delta = "1e-7"'),
        ('delta = "1e-6"', 'delta = "1e-6", delta_keys = "1e-7"'),
        (', delta = "1e-6"', ""),
        ("1_000_000_000", "1_000_000_001"),
        ('"customer.parquet"', '"customers.parquet"'),
        ('"c_custkey"', '"custkey"'),
        ("unique = true\n", ""),
        ("caps = { rows = 20, groups = 5 }", "caps = { rows = 21, groups = 5 }"),
        ("caps = { rows = 20, groups = 5 }", "caps = { rows = 20 }"),
        ("caps_max = { rows = 50, groups = 5 }\n", ""),
        ('references = "orders.o_orderkey"', 'references = "orders.other"'),
        ('references = "orders.o_orderkey"', 'references = "orders"'),
        ('type = "decimal"', 'type = "float"'),
        ("bounds = [0, 0.1]", "bounds = [0, 0.2]"),
        ('["A", "N", "R"]', '["A", "N"]'),
        (", nullable = false", ""),
        ("length = 1", "length = 2"),
        ('key = ["n_nationkey"]\n', ""),
        ('public = true\nkey = ["n_nationkey"]', 'unit = "x"'),
    ],
)
def test_the_digest_sees_what_changes_the_meaning(old, new):
    """No two studies that may answer differently share a fingerprint."""
    assert changed(old, new).digest != BASE.digest


def test_the_digest_tells_kinds_of_units_apart():
    """A row, a column of that name, and a column that refers to another table are three units."""
    units = (UnitRow(), UnitColumn("row"), UnitPath("row", "users"), UnitPath("row", "users", "id"))
    users = Table("users", "u", UnitColumn("id"))
    studies = [replace(read(GOOD), tables=(Table("t", "t", unit), users)) for unit in units[1:]]
    digests = {study.digest for study in [*studies, replace(read(GOOD), tables=(Table("t", "t", units[0]),))]}

    assert len(digests) == 4


@pytest.mark.parametrize(
    "same",
    [
        replace(BASE, engine=EngineSettings()),
        replace(BASE, folder=Path("/elsewhere"), ledger=Path("other.ledger")),
        replace(BASE, analysts=()),
        replace(BASE, allow_large_delta=True),
        replace(BASE, least_spend=Fraction(0)),
        replace(BASE, tables=BASE.tables[::-1]),
        replace(
            BASE, tables=(*BASE.tables[:2], replace(BASE.tables[2], columns=BASE.tables[2].columns[::-1]), BASE.tables[3])
        ),
        changed('["A", "N", "R"]', '["R", "A", "N"]'),
    ],
)
def test_the_digest_ignores_what_does_not(same):
    """Machine, place, analysts and the order of writing are no part of the meaning."""
    assert same.digest == BASE.digest


def test_the_digest_never_changes():
    """Fingerprints stand in ledgers: a study of today has the same one tomorrow."""
    assert read(GOOD).digest == "393dcd85434aaa71713e4023913274d1254fab5ddd9f86fdec7df1c13442ef8c"


def test_what_a_study_remembers_of_its_digest_stays_with_it():
    """Of a copy whose name is changed, whichever way, the digest is taken anew; a study equals one that was never asked."""
    study = read(GOOD)
    fresh = replace(study)
    taken = study.digest
    part = copy.copy(study)
    object.__setattr__(part, "name", "another")  # as parts of a study for analysts are made
    named = replace(study, name="another")

    assert part.digest == named.digest != taken
    assert (study.digest, study, hash(study)) == (taken, fresh, hash(fresh))


@pytest.mark.parametrize(
    ("written", "least"),
    [('"0.05%"', Fraction(5, 10_000)), ('"0%"', 0), ("0", 0), ('"100%"', 1), ('"1/3%"', Fraction(1, 300))],
)
def test_the_least_spend_is_read(written, least):
    """A share of the limit; nothing at all is a share too. Where nothing is said it is a ten-thousandth."""
    study = read(change("version = 1\n", f"version = 1\nleast_spend = {written}\n"))
    assert (study.least_spend, read(GOOD).least_spend) == (least, Fraction(1, 10_000))
    assert read(study.to_toml()) == study
    assert study.digest == read(GOOD).digest
    assert ["least_spend is 0" in one for one in opening_warnings(study)] == [True] * (least == 0)
    assert opening_warnings(study) == owner_warnings(study)[: least == 0]


@pytest.mark.parametrize(("written", "tick"), [('"2s"', 2), ('"500ms"', Fraction(1, 2)), ('"off"', 0), ("0", 0), ("3", 3)])
def test_the_tick_is_read(written, tick):
    """A duration of which the deadline is a multiple, or none."""
    study = read(f"{GOOD}\n[engine]\nanswer_every = {written}\n")
    assert (study.engine.answer_every, read(GOOD).engine.answer_every) == (tick, 0)
    assert read(study.to_toml()) == study


BY_HAND = [
    (lambda: Column("spent", Type.FLOAT, bounds=(5, 0)), "spent.bounds must be two numbers, lower below upper; got [5, 0]."),
    (
        lambda: Column("spent", Type.FLOAT, values=(Fraction(1, 3**2000),)),
        "spent.values must be a number of at most 400 characters; got a very long number.",
    ),
    (lambda: Column("spent", Type.BOOLEAN, values=(1,)), "spent.values must be a list of booleans; got 1."),
    (
        lambda: Column("spent", Type.INTEGER, values=tuple(range(100_001))),
        "spent.values must be a list of 1 to 100,000 whole numbers; got a list of 100,001.",
    ),
    (lambda: Column("spent", Type.FLOAT, nullable=1), "spent.nullable must be true or false; got 1."),
    (
        lambda: Column("spent", Type.STRING, values=("\ud800",)),
        "spent.values must be a list of strings without NUL; got '\\ud800'.",
    ),
    (
        lambda: Table("t", "", UnitRow()),
        "tables.t.source must be a file, a glob, a DuckDB file with #table, or \"frame\"; got ''.",
    ),
    (
        lambda: Table("t", "t", None, caps=Caps(rows=3)),
        "tables.t.caps must be absent for a public table; got { rows = 3 }.",
    ),
    (
        lambda: Table("t", "t", None, caps_max=Caps(rows=3)),
        "tables.t.caps_max must be absent for a public table; got { rows = 3 }.",
    ),
    (lambda: Table("t", "t", None, unique=True), "tables.t.unique must be absent for a public table; got true."),
    (
        lambda: Table("t", "t", UnitPath("a", "b", "__c")),
        "tables.t.unit must be a column, \"row\", or { column = …, references = … }; got '__c'.",
    ),
    (
        lambda: Analyst("ana", Fraction(2)),
        'analysts.ana.share must be a share above 0 % and at most 100 %, such as "20%"; got 2.',
    ),
    (lambda: EngineSettings(threads=0), "engine.threads must be a whole number from 1 to 1,024; got 0."),
    (lambda: EngineSettings(memory=0), 'engine.memory must be a size such as "4GB"; got 0.'),
    (lambda: EngineSettings(workers=3), "engine.workers must be a whole number from 1 to threads, which is 2; got 3."),
    (lambda: EngineSettings(workers=True), "engine.workers must be a whole number from 1 to threads, which is 2; got true."),
    (lambda: EngineSettings(answer_every=2), 'engine.answer_every must be a duration such as "2s", or "off"; got 2.'),
    (
        lambda: EngineSettings(answer_every=Fraction(7)),
        "engine.deadline must be a whole number of answer_every, which is 7s; got '60s'.",
    ),
    (
        lambda: replace(read(GOOD), least_spend=Fraction(2)),
        'least_spend must be a share from 0 % to 100 %, such as "0.01%"; got 2.',
    ),
    (
        lambda: replace(read(GOOD), least_spend=0.5),
        'least_spend must be a share from 0 % to 100 %, such as "0.01%"; got 0.5.',
    ),
    (lambda: Caps(rows=0), "caps.rows must be a whole number from 1 to 1,000,000; got 0."),
    (
        lambda: Budget(epsilon=Fraction(1, 3**2000)),
        "budget.epsilon must be a number of at most 400 characters; got a longer one.",
    ),
    (
        lambda: replace(read(GOOD), frames={"visits": object()}),
        "tables.visits.source must be \"frame\" for a table that is given from Python; got 'visits.parquet'.",
    ),
    (lambda: replace(read(GOOD), ledger=Path("..")), "ledger must be a file name; got '..'."),
    (
        lambda: replace(read(GOOD), tables=(Table("t", "t", UnitPath("a", "gone")),)),
        "tables.t.unit.references must be a table of this study, or table.column; got 'gone'.",
    ),
    (lambda: replace(read(GOOD), allow_large_delta="no"), "allow_large_delta must be true or false; got 'no'."),
]


@pytest.mark.parametrize(("make", "sentence"), BY_HAND, ids=[sentence.partition(" must")[0] for _, sentence in BY_HAND])
def test_a_value_made_by_hand_keeps_the_rules(make, sentence):
    """There is no way around the rules of the file."""
    with pytest.raises((InvalidStudy, InvalidParameter)) as told:
        make()

    assert str(told.value).partition("\n")[0] == sentence


def test_a_column_made_by_hand_reads_its_values():
    """Floats are the decimals they show, whole numbers become what the type holds."""
    column = Column("x", "float", bounds=[0, 0.1])

    assert column == Column("x", Type.FLOAT, bounds=(Fraction(0), Fraction(1, 10)))
    assert all(type(bound) is Fraction for bound in column.bounds)


def test_a_broken_rule_travels():
    """The refusal survives the way between processes and is safe to show."""
    rule = broken_rule(("tables", "a b", 3), "x", 7, "write it.")
    back = pickle.loads(pickle.dumps(rule))  # noqa: S301

    assert str(back) == str(rule) == 'tables."a b" must be x; got 7.\nHint: write it.'
    assert back.fields == rule.fields
    assert back.path == ("tables", "a b", 3)
    assert isinstance(rule, Refused)


def test_a_large_delta_is_refused_by_check_unless_allowed():
    """δ above 1/(100 · max_units) needs the owner's word, and is told even then."""
    fitting, large = read(change("version = 1\n", "version = 1\nmax_units = 10_000\n")), read(GOOD)
    allowed = read(change("version = 1\n", "version = 1\nallow_large_delta = true\n"))
    sentence = "budget.delta must be at most 1/(100 · max_units), which is 1e-11; got 1e-6."

    check_study(fitting)
    check_study(allowed)
    check_study(replace(large, budget=Budget(epsilon=1)))
    with pytest.raises(InvalidStudy) as told:
        check_study(large)
    assert str(told.value).split("\n")[0] == sentence
    assert owner_warnings(allowed) == (sentence,)
    assert owner_warnings(fitting) == owner_warnings(large) == ()


def test_the_owner_is_told_of_tables_that_cannot_be_summed():
    """A private table without bounds is accepted and mentioned."""
    study = read(change("version = 1\n", "version = 1\nmax_units = 10_000\n").replace(", bounds = [0, 500]", ""))

    assert owner_warnings(study) == ("tables.visits declares no bounds: its rows can be counted, never summed.",)


@pytest.mark.parametrize(
    ("written", "places", "each"),
    [
        ("", 2, (2, 2_000_000_000)),
        ("workers = 1", 1, (2, 4_000_000_000)),
        ("threads = 8\nworkers = 3", 3, (8, 1_333_333_333)),
        ('worker = "inline"\nthreads = 8', 1, (8, 4_000_000_000)),
    ],
)
def test_workers_share_what_is_declared(written, places, each):
    """Parts of memory and spill together are not above the whole; a worker gives no answer another meaning."""
    study = read(f"{GOOD}\n[engine]\n{written}\n")
    part = study.engine.of_worker
    assert (study.engine.places, (part.threads, part.memory), part.places) == (places, each, 1)
    assert part.threads == study.engine.threads
    assert part.memory * places <= study.engine.memory
    assert part.spill * places <= study.engine.spill
    assert study.digest == read(GOOD).digest
    assert read(study.to_toml()).engine == study.engine

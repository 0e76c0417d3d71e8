"""PostgreSQL as an engine, on a real server: identical integers, versions, faults, roles, and nothing told."""

import contextlib
import dataclasses

import duckdb
import pyarrow as pa
import pytest
from corpus_schemas import questions, schema
from corpus_studies import written
from postgres_studies import VISITS, database, on_postgres
from real_postgres import MISSING, find_installation
from same_integers import integers

import curador as cu
from curador.engines.base import EngineFailed, Sources, engine_kind
from curador.engines.duckdb.prepare import unit_hash
from curador.engines.duckdb.rank_key import VARIABLE
from curador.engines.duckdb.versions import Folder, prepared_folder, unit_key
from curador.engines.lower.dialect_duckdb import DuckDB
from curador.engines.lower.dialect_postgres import TYPES, PostgreSQL
from curador.engines.postgres.versions import read_record
from curador.plan.build import build_plan
from curador.query.sql import parse
from curador.study.file import parse_study, read_study
from curador.testing import check_engine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_installation() is None, reason=MISSING),
]
QUESTIONS = questions()
KEY = "5a" * 32


@pytest.fixture
def made(monkeypatch):
    """A database on the server of all these tests."""
    with database(monkeypatch) as found:
        yield found


def text_of(made, more="", engine=""):
    return f"""version = 1
name = "shop"
budget = {{ epsilon = "80", delta = "1e-6" }}
max_units = 1_000
ledger = "shop.ledger"
[engine]
kind = "postgres"
url = "{made.url}"
{engine}
[unit]
name = "user"
[tables.visits]
source = "visits"
unit = "user"
caps = {{ rows = 5 }}
[tables.visits.columns]
spent = {{ type = "float", bounds = [0, 500] }}
city = {{ type = "string", values = ["Cuzco", "Lima"] }}
{more}"""


def study_of(made, folder, **written_of):
    """Write a study of visits; return its file."""
    file = folder / "study.toml"
    file.write_text(text_of(made, **written_of), encoding="utf-8")
    return file


ASKED = "SELECT city, COUNT(*) AS n, SUM(spent) AS s FROM visits GROUP BY city"


# ---- the same integers -------------------------------------------------------------------------------------------------


def test_the_rules_of_engines(made):
    """The suite that ships; a version is a copy."""

    def opened(study):
        engine = engine_kind("postgres").open(on_postgres(study, made), 1)
        engine.prepare(1)
        return engine

    check_engine(opened)


def corpus(name, made, tmp_path):
    """Yield the questions of a schema whose integers differ between DuckDB and PostgreSQL, and how many were compared."""
    for folder in ("duck", "server"):
        (tmp_path / folder).mkdir()
    study = read_study(written(schema(name), tmp_path / "duck"))
    embedded = engine_kind().open(study, 1)
    embedded.prepare(1)
    there = engine_kind("postgres").open(dataclasses.replace(on_postgres(study, made), folder=tmp_path / "server"), 1)
    there.prepare(1)
    compared, wrong = 0, []
    with contextlib.closing(embedded), contextlib.closing(there):
        for one in QUESTIONS:
            if one["schema"] == name:
                try:
                    tree = parse(one["sql"], embedded.schema, dialect=one["dialect"])
                    blocks = build_plan(tree, embedded.schema).blocks
                except cu.Refused:
                    continue
                compared += 1
                if integers(embedded, blocks) != integers(there, blocks):
                    wrong.append(one["id"])
    return compared, wrong


def without_hashes(monkeypatch):
    """Let no engine choose by a hash of its own, which two engines need not share: what is chosen follows from keys alone."""
    for dialect in (DuckDB, PostgreSQL):
        monkeypatch.setattr(dialect, "hash", lambda *_: "CAST(0 AS BIGINT)")


@pytest.mark.parametrize("name", sorted({one["schema"] for one in QUESTIONS}))
def test_the_corpus_has_identical_integers(name, made, tmp_path, monkeypatch):
    """Every question of the corpus that is no refusal: the same integers before noise as on DuckDB, group by group."""
    monkeypatch.setenv(VARIABLE, KEY)
    without_hashes(monkeypatch)
    compared, wrong = corpus(name, made, tmp_path)
    assert compared
    assert not wrong


def test_what_is_prepared_is_the_same_bit_for_bit(made, tmp_path, monkeypatch):
    """Units, hashes, ranks and numbers of values: those that DuckDB stores of the same rows under the same key."""
    monkeypatch.setenv(VARIABLE, KEY)
    (tmp_path / "files").mkdir()
    made.give("visits", VISITS)
    there = read_study(study_of(made, tmp_path))
    with contextlib.closing(engine_kind("postgres").open(there, 1)) as engine:
        engine.prepare(1)
    import pyarrow.parquet as pq

    pq.write_table(VISITS, tmp_path / "files" / "visits.parquet")
    text = text_of(made).replace('source = "visits"', 'source = "visits.parquet"').replace('kind = "postgres"', "")
    here = parse_study(text.replace(f'url = "{made.url}"', ""), folder=tmp_path / "files")
    with contextlib.closing(engine_kind().open(here, 1)) as engine:
        engine.prepare(1)
    own = "c0, c1, c2, c3, g1, __u, __r, __d2, __f2, __d3, __f3"
    with duckdb.connect(str(Folder(prepared_folder(here)).version(1)), read_only=True) as connection:
        wanted = connection.execute(f"SELECT {own}, __h FROM t0 ORDER BY __u, __r").fetchall()
    kept = read_record(Folder(prepared_folder(there))).schema
    found = made.run(f"SELECT {own}, __h FROM {kept}.t0 ORDER BY __u, __r")
    assert [(*row[:-1], row[-1] % 2**64) for row in found] == wanted
    assert len(found) == 100


def null_if_any(_, name, given):
    return f"(CASE WHEN {' IS NOT NULL AND '.join(given)} IS NOT NULL THEN {name}({', '.join(given)}) END)"


def days_of_tokyo(_, unit, x, kind):
    return f"CAST(date_trunc('{unit}', {x}::TIMESTAMPTZ, 'Asia/Tokyo') AS {TYPES[kind]})"


BUGS = {
    "rounding half-even": ("nearest", lambda _, x: f"round({x})", "SELECT SUM(ROUND(spent / 2)) AS s FROM visits"),
    "a saturating cast": (
        "whole",
        lambda _, x: f"COALESCE(__whole({x}), {2**63 - 1})",
        "SELECT COUNT(CAST(spent * 1e30 AS INTEGER)) AS n FROM visits",
    ),
    "a collation": (
        "text",
        lambda _, name, x: f"{name}({x})" if name != "length" else f"octet_length({x})::bigint",
        "SELECT SUM(LENGTH(shop)) AS n FROM visits WHERE LENGTH(shop) < 10",
    ),
    "the order of NULL": ("extreme", null_if_any, "SELECT SUM(LEAST(spent, 100)) AS s FROM visits"),
    "an overflow": (
        "arithmetic",
        lambda _, operator, x, y: f"{x} {operator} {y}",
        "SELECT COUNT(*) AS n FROM visits WHERE spent * 1e300 * 1e300 > 0",
    ),
    "a time zone": ("date_trunc", days_of_tokyo, "SELECT DATE_TRUNC('day', at) AS d, COUNT(*) AS n FROM visits GROUP BY d"),
    "a mean of nothing": (
        "arithmetic",
        lambda _, operator, x, y: f"COALESCE(({x}) {operator} NULLIF({y}, 0), 'NaN')",
        "SELECT COUNT(m) AS n FROM (SELECT user, AVG(spent) AS m FROM visits GROUP BY user)",
    ),
}


@pytest.fixture(scope="module")
def made_twice(tmp_path_factory):
    """The same rows on both engines, with everything that the bugs below are about."""
    import pyarrow.parquet as pq

    folder, patch = tmp_path_factory.mktemp("both"), pytest.MonkeyPatch()
    patch.setenv(VARIABLE, KEY)
    rows = VISITS.append_column("at", pa.array([number * 3_600_000_000 for number in range(100)], pa.timestamp("us")))
    rows = rows.set_column(3, "shop", pa.array([("é", "Nord", "日本", None)[n % 4] for n in range(100)]))
    rows = rows.set_column(1, "spent", pa.array([None if n % 7 == 3 else float(n) for n in range(100)]))
    for one in ("duck", "server"):
        (folder / one).mkdir()
    pq.write_table(rows, folder / "duck" / "visits.parquet")
    with database(patch) as made:
        text = text_of(made, more='at = { type = "timestamp" }').replace("{ rows = 5 }", "{ rows = 40 }")
        here = text.replace('source = "visits"', 'source = "visits.parquet"').replace('kind = "postgres"', "")
        here = parse_study(here.replace(f'url = "{made.url}"', ""), folder=folder / "duck")
        made.give("visits", rows)
        there = parse_study(text, folder=folder / "server")
        engines = engine_kind().open(here, 1), engine_kind("postgres").open(there, 1)
        for engine in engines:
            engine.prepare(1)
        patch.undo()
        yield made, engines
        for engine in engines:
            engine.close()


@pytest.fixture
def both(made_twice, monkeypatch):
    """Those engines, and the roles of their database."""
    made_twice[0].name_roles(monkeypatch)
    monkeypatch.setenv(VARIABLE, KEY)
    return made_twice[1]


def differing(both, asked):
    """Whether two engines differ in a question, or the second cannot answer it."""
    blocks = build_plan(parse(asked, both[0].schema), both[0].schema).blocks
    try:
        return integers(both[0], blocks) != integers(both[1], blocks)
    except EngineFailed:
        return True


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_of_a_dialect_is_caught(name, both, monkeypatch):
    """Seeded bugs: each changes an integer, or raises, and without it nothing differs."""
    method, wrong, asked = BUGS[name]
    assert not differing(both, asked)
    monkeypatch.setattr(PostgreSQL, method, wrong)
    assert differing(both, asked)


# ---- versions ----------------------------------------------------------------------------------------------------------


def test_a_version_stays_and_is_known_again(made, tmp_path):
    """Rows that change on the server belong to the next version; what was written to is prepared again, not answered from."""
    made.give("visits", VISITS)
    file = study_of(made, tmp_path)
    with cu.open(file) as curator:
        first = curator.ask(ASKED, spend="10%")
    made.run("INSERT INTO visits SELECT 99, 1, 'Lima', '' FROM generate_series(1, 5000)")
    study, kind = read_study(file), engine_kind("postgres")
    assert kind.sources(study, 1) is Sources.SAME
    with cu.open(file) as curator:
        assert curator.ask(ASKED, spend="10%").stored
        other = curator.ask("SELECT COUNT(*) AS n FROM visits", spend="20%")
    assert abs(other.rows[0]["n"] - 35) < 30
    kept = read_record(Folder(prepared_folder(study)))
    made.run(f"INSERT INTO {kept.schema}.t0 SELECT * FROM {kept.schema}.t0")
    assert kind.sources(study, 1) is Sources.UNKNOWN
    with pytest.raises(cu.InvalidStudy, match="data version 1"):
        cu.open(file)
    with cu.open(file, refresh=True) as curator:
        assert curator.data_version == 2
        assert curator.ask(ASKED, spend="10%") is not first
    assert not made.run(f"SELECT 1 FROM pg_namespace WHERE nspname = '{kept.schema}'")
    assert "2 schemas" in kind.drop_prepared(study)
    assert not made.run("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'curador%'")


def test_another_study_over_the_table_finds_its_ledger(made, tmp_path):
    """By server, database and table, whatever the address looks like; a view stands for every table."""
    made.give("visits", VISITS)
    for one in ("first", "second"):
        (tmp_path / one).mkdir()
    with cu.open(study_of(made, tmp_path / "first")) as curator:
        curator.ask(ASKED, spend="10%")
        spent = curator.budget.spent
    again = study_of(made, tmp_path / "second")
    text = again.read_text().replace("postgresql:///", "postgres:///").replace('"shop"', '"other"')
    again.write_text(text.replace('source = "visits"', 'source = "public.visits"'))
    with cu.open(again) as curator:
        assert curator.budget.spent == spent
    made.run("CREATE VIEW seen AS SELECT * FROM visits", f"GRANT SELECT ON seen TO {made.preparer}")
    again.write_text(again.read_text().replace("public.visits", "seen").replace('epsilon = "80"', 'epsilon = "81"'))
    with pytest.raises(cu.InvalidStudy, match="these data have a ledger"):
        cu.open(again)


# ---- one person on every engine ----------------------------------------------------------------------------------------


TRAPS = {
    "blanks and case": ("text", ["a", "a ", " a", "A"]),
    "Unicode forms": ("text", ["\u00e9", "e\u0301", "\u212b", "\u00c5"]),
    "signs of CSV": ("text", ['"', '""', "a,b", "a\nb", "\\.", "a\n\\.\nb", "\\N", "\r\n"]),
    "digits": ("text", ["1", "1.0", "01", "1e0"]),
    "whole numbers": ("bigint", [1, -1, 2**63 - 1, -(2**63)]),
    "small numbers": ("smallint", [0, 1, -1, 32767]),
    "a scale": ("numeric(12,2)", ["1", "1.10", "-0.01", "0"]),
    "many digits": ("numeric(38,0)", ["1", "99999999999999999999", "100000000000000000000", "0"]),
    "UUIDs": ("uuid", ["00000000-0000-0000-0000-00000000000a", "0000000000000000000000000000000b"]),
    "labels": ("mood", ["sad", "Sad", "sad "]),
    "a domain": ("named", ["x", "X"]),
    "another deterministic collation": ("text COLLATE pg_c_utf8", ["a", "A", "\u00e4"]),
}
REFUSED = {
    "char(n)": ("char(5)", "blanks"),
    "citext": ("citext", "case"),
    "a collation that is not deterministic": ("text COLLATE nocase", "collation"),
    "numeric without a scale": ("numeric", "digits"),
    "a double": ("double precision", "can name a unit"),
    "a time": ("timestamptz", "can name a unit"),
    "an array": ("text[]", "a column of the source"),
}
# collations that are not deterministic are made with ICU, which not every build has
SETUP = (
    "CREATE TYPE mood AS ENUM ('sad', 'Sad', 'sad ')",
    "CREATE DOMAIN named AS text",
    "CREATE EXTENSION citext",
    'CREATE COLLATION nocase FROM "C"',
    "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'nocase'",
)
UNITS = """version = 1
name = "units"
max_units = 1_000
budget = {{ epsilon = "8", delta = "1e-6" }}
ledger = "units.ledger"
[engine]
kind = "postgres"
url = "{}"
[unit]
name = "user"
[tables.people]
source = "people"
unit = "who"
caps = {{ rows = 1 }}
{}"""


def people(made, kind, values, more=""):
    """Make a table with one row for each value of a column `who` of this type."""
    with made.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS people")
        connection.execute(f"CREATE TABLE people (who {kind}, n bigint {more})")
        for place, value in enumerate(values):
            connection.execute("INSERT INTO people (who, n) VALUES (%s, %s)", [value, place])
        connection.execute(f"GRANT SELECT ON people TO {made.preparer}")


@pytest.fixture(scope="module")
def trapped():
    with pytest.MonkeyPatch.context() as patch, database(patch) as made:
        patch.undo()
        for statement in SETUP:
            made.run(statement)
        yield made


@pytest.fixture
def traps(trapped, monkeypatch):
    """Their database, and its roles."""
    trapped.name_roles(monkeypatch)
    return trapped


@pytest.mark.parametrize("name", TRAPS)
def test_units_are_those_of_files_with_the_same_values(name, traps, tmp_path, monkeypatch):
    """As many units as the server counts, each with the hash that DuckDB gives the same value under the same key."""
    monkeypatch.setenv(VARIABLE, KEY)
    kind, values = TRAPS[name]
    people(traps, kind, values)
    counted = traps.run("SELECT count(DISTINCT who) FROM people")[0][0]
    study = parse_study(UNITS.format(traps.url, _declared(kind)), folder=tmp_path)
    with contextlib.closing(engine_kind("postgres").open(study, 1)) as engine:
        engine.prepare(1)
    kept = read_record(Folder(prepared_folder(study))).schema
    hashes = dict(traps.run(f"SELECT n, __h FROM (SELECT c1 AS n, __h FROM {kept}.t0) x"))
    assert len(set(hashes.values())) == counted == len(values)
    key = unit_key(Folder(prepared_folder(study)))
    tag = "i" if kind in {"bigint", "smallint"} else "s"
    for place, shown in traps.run("SELECT n, who::text FROM people"):
        canonical = shown.rstrip("0").rstrip(".") if kind == "numeric(12,2)" else shown
        with duckdb.connect() as connection:
            (wanted,) = connection.execute(f"SELECT {unit_hash('$1', tag, key)}", [canonical]).fetchone()
        assert hashes[place] % 2**64 == wanted


def _declared(kind):
    return '[tables.people.columns]\nwho = { type = "string" }\n' if kind.startswith(("numeric", "uuid")) else ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_say_who_somebody_is_is_refused_before_anything_is_prepared(name, traps, tmp_path):
    """Types in which the server's equal is not the same, by the catalogue alone; also where they are declared as text."""
    kind, said = REFUSED[name]
    people(traps, kind, [])
    text = UNITS.format(traps.url, "")
    with pytest.raises(cu.InvalidStudy, match=said):
        engine_kind("postgres").describe(parse_study(text, folder=tmp_path))
    assert not list(tmp_path.iterdir())


def test_columns_that_differ_by_case_alone_are_refused(traps, tmp_path):
    """Questions would not tell them apart."""
    people(traps, "bigint", [1], more=', "N" bigint')
    with pytest.raises(cu.InvalidStudy, match="letter case"):
        engine_kind("postgres").describe(parse_study(UNITS.format(traps.url, ""), folder=tmp_path))

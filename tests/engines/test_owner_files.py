"""An owner's own files, end to end: one declared line reads them; without it check and preparation say what is wrong."""

import contextlib
import io
import sys
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from european_files import LINE, PEOPLE, european_rows, european_study, write_european, write_workbook

import curador as cu
from curador.cli import main
from curador.cli.checking import FIRST_LINE
from curador.engines.duckdb.looking import look_at
from curador.engines.duckdb.owner_facts import owner_facts, share_words
from curador.engines.duckdb.schema import describe
from curador.engines.duckdb.versions import prepared_folder
from curador.errors import InvalidStudy, UnreadableData
from curador.study.file import parse_study, read_study
from curador.study.values import Type


class Screen(io.StringIO):
    """What somebody looks at."""

    def isatty(self):
        return True


def run(*arguments, screen=False):
    """Run a command; return its exit code and what it wrote."""
    out, err = Screen() if screen else io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["curador", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the European file, as UTF-8 with its mark and as Latin-1."""
    monkeypatch.chdir(tmp_path)
    write_european(tmp_path / "sales.csv", european_rows())
    write_european(tmp_path / "latin.csv", european_rows(), "latin-1")
    return tmp_path


def study_file(folder, **parts):
    parts = {"source": "sales.csv", **parts}
    (folder / "eu.toml").write_text(european_study(**parts), encoding="utf-8")
    return folder / "eu.toml"


def facts_of(study):
    return [str(fact) for fact in owner_facts(describe(read_study(study)), "eu.toml")]


# ---- reading -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "line"), [("sales.csv", LINE), ("latin.csv", LINE.replace("{", '{ encoding = "latin-1",'))]
)
def test_one_line_reads_the_european_file(here, source, line):
    """As many people, rows, prices and days as there are: with an ε at which noise is a hundredth of a row."""
    file = study_file(here, source=source, line=line)
    file.write_text(file.read_text(encoding="utf-8").replace('epsilon = "3"', 'epsilon = "100000"'), encoding="utf-8")
    with cu.open(file) as curator:
        question = 'SELECT COUNT(*) AS n, COUNT("Unit Price (£)") AS p, COUNT("Invoice Date") AS d FROM sales'
        answer = curator.ask(question, spend="60%").rows[0]
        people = curator.ask('SELECT COUNT(DISTINCT "Customer ID") AS n FROM sales', spend="20%").rows[0]
    assert all(abs(answer[name] - 600) <= 100 for name in "npd")
    assert abs(people["n"] - PEOPLE) <= 10


@pytest.mark.parametrize(
    ("column", "kinds"), [('"Unit Price (£)"', {"when": "string"}), ('"Invoice Date"', {"price": "string"})]
)
def test_without_it_preparation_says_what_is_wrong_and_nothing_begins(here, column, kinds):
    """Column and line are named; no ledger is made, so nothing can be spent."""
    text = european_study("sales.csv", **kinds).replace('"string", bounds = [0, 10000]', '"string"')
    (here / "eu.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableData) as stopped:
        cu.open("eu.toml")
    assert stopped.value.subject == f"tables.sales.columns.{column}"
    assert stopped.value.hint == f"below [tables.sales] write {LINE}"
    assert not (here / "eu.ledger").exists()


def test_a_file_that_cannot_be_decoded_is_no_empty_table(here):
    """Latin-1 as UTF-8: the header is no text; with a plain header no line is."""
    with pytest.raises(InvalidStudy, match="first line that is no UTF-8"):
        cu.open(study_file(here, source="latin.csv"))
    (here / "plain.csv").write_bytes(b"user,city\n" + "1,Zürich\n2,México\n".encode("latin-1"))
    with pytest.raises(UnreadableData, match="must be text in UTF-8; got a file of which no line is") as stopped:
        cu.open("plain.csv", unit="user", budget=cu.Budget(epsilon=1))
    assert "encoding" in stopped.value.hint
    (here / "empty.csv").write_bytes(b"user,city\n\n")
    cu.open("empty.csv", unit="user", budget=cu.Budget(epsilon=1), engine={"worker": "inline"}).close()


def plan_column(folder, cells, declared):
    pq.write_table(pa.table({"user": [1, 2], "plan": pa.array(cells, pa.string())}), folder / "t.parquet")
    (folder / "t.toml").write_text(
        f"""version = 1
name = "t"
budget = {{ epsilon = "1" }}
ledger = "t.ledger"
[engine]
worker = "inline"
[tables.t]
source = "t.parquet"
unit = "user"
columns.plan = {{ {declared} }}
"""
    )


def test_a_column_declared_without_null_and_empty_stops_too(here):
    """Nothing can be asked of it."""
    plan_column(here, [None, None], 'type = "string", nullable = false')
    with pytest.raises(UnreadableData, match=r"^tables\.t\.columns\.plan must be a column without NULL"):
        cu.open("t.toml")
    assert not (here / "t.ledger").exists()


@pytest.mark.parametrize(
    ("cells", "kind"),
    [(["Basic", "Plus"], 'type = "string", values = ["basic"]'), (["7", "8"], 'type = "integer", values = [1]')],
)
def test_values_that_do_not_occur_are_a_fact_and_stop_nothing(here, cells, kind):
    """They can be read; that they are not in the list is what a list is for."""
    plan_column(here, cells, kind)
    assert "all NULL: no declared value stands there" in facts_of("t.toml")[0]
    cu.open("t.toml").close()


# ---- analysts ------------------------------------------------------------------------------------------------------


def test_an_analyst_sees_one_sentence_whatever_the_rows_hold(here):
    """The owner's sentence names the column; the analyst's is the same for every cause."""
    study_file(here)
    code, _, told = run("ask", "eu.toml", "SELECT COUNT(*) AS n FROM sales", "--spend", "5%")
    assert (code, "Unit Price" in told) == (2, True)
    seen = []
    for parts in (
        {},
        {"price": "string", "line": ""},
        {"line": LINE.replace("%d/%m/%Y", "%Y %m %d")},
    ):
        text = european_study("sales.csv", **parts).replace('"string", bounds = [0, 10000]', '"string"')
        (here / "eu.toml").write_text(text, encoding="utf-8")
        question = ("eu.toml", "SELECT COUNT(*) AS n FROM sales", "--spend", "5%", "--as", "ana")
        seen += [run(verb, *question) for verb in ("ask", "preview")]
    assert set(seen) == {(2, "", "the study is not ready to be asked.\nHint: its owner runs `curador prepare`\n")}


def test_analysts_keep_the_version_they_have(here):
    """A refresh that cannot be read changes neither the ledger nor what is answered."""
    with cu.open(study_file(here, line=LINE)) as curator:
        write_european(here / "sales.csv", european_rows())
        text = (here / "sales.csv").read_text(encoding="utf-8-sig").replace("/2010 ", "-2010 ")
        (here / "sales.csv").write_text(text, encoding="utf-8")
        with pytest.raises(UnreadableData, match="Invoice Date"):
            curator.refresh("a bad export")
        assert curator.data_version == curator.ledger.data_version == 1
        assert curator.analyst("ana").ask("SELECT COUNT(*) AS n FROM sales", spend="5%").rows


# ---- facts ---------------------------------------------------------------------------------------------------------


def test_check_shows_facts_on_a_terminal_or_where_asked_and_makes_nothing(here):
    """The first line says for whom they are; a pipe gets none; no ledger, no copy."""
    study_file(here, ids="string")
    before = sorted(here.iterdir())
    assert FIRST_LINE not in run("check", "eu.toml")[1]
    code, out, _ = run("check", "eu.toml", "--facts")
    assert (code, sorted(here.iterdir())) == (0, before)
    assert out.split(FIRST_LINE)[1].count("→") == 4
    assert f"preparation stops here: below [tables.sales] write {LINE}" in out
    assert 'only by blanks and ".0" at the end\n  → one person counts as several' in out
    assert not any(word in out for word in ("13047", "México", "600"))

    code, deprecated, warned = run("check", "eu.toml", "--as-owner")
    assert (code, deprecated, "deprecated" in warned) == (0, out, True)
    assert FIRST_LINE in run("check", "eu.toml", screen=True)[1]
    assert FIRST_LINE not in run("check", "eu.toml", "--no-facts", screen=True)[1]


def test_with_the_line_little_stands_out(here):
    """Ids are one person each, prices and days are read."""
    study_file(here, line=LINE)
    assert facts_of("eu.toml") == []


def some_table(folder, columns, declared="", unit="user", more=""):
    pq.write_table(pa.table(columns), folder / "t.parquet")
    (folder / "t.toml").write_text(
        f"""version = 1
name = "t"
budget = {{ epsilon = "1" }}
ledger = "t.ledger"
[tables.t]
source = "t.parquet"
unit = "{unit}"
{more}
[tables.t.columns]
{declared}
""",
        encoding="utf-8",
    )
    return facts_of(folder / "t.toml")


MANY = [number % 40 for number in range(800)]
SEEN = {
    "no rows": ({"user": pa.array([], pa.int64())}, {}, "answers would be noise alone"),
    "all NULL: nothing stands": ({"user": MANY, "x": pa.nulls(800, pa.float64())}, {}, "leave the column out"),
    "every person has one row": ({"user": list(range(50))}, {}, "numbers rows and names no person"),
    "most rows lie beyond the cap": (
        {"user": MANY},
        {"more": "caps = { rows = 4 }"},
        "leave `caps` of this table out, and run `curador survey eu.toml`, which then finds",
    ),
    "the bounds are far too wide": (
        {"user": MANY, "x": [float(one) for one in MANY]},
        {"declared": "x = { type = 'float', bounds = [-1e12, 1e12] }"},
        "leave these bounds out, and run `curador survey eu.toml --columns`",
    ),
    "about half of the values lie beyond the bounds": (
        {"user": MANY, "x": [float(one) for one in MANY]},
        {"declared": "x = { type = 'float', bounds = [0, 20] }"},
        "leave these bounds out, and run `curador survey eu.toml --columns`",
    ),
    "about half of the rows belong to no person": (
        {"user": [one if one % 2 else None for one in MANY]},
        {},
        "right only if they are about nobody",
    ),
    "ids differ from another only by letter case": (
        {"user": [f"{'aA'[n % 2]}{n // 2 % 30}" for n in range(600)]},
        {},
        "each has one spelling",
    ),
    "further ones of their person": ({"user": MANY}, {"more": "unique = true"}, "is unique meant?"),
}


@pytest.mark.parametrize("fact", SEEN)
def test_each_fact_has_its_conclusion(tmp_path, fact):
    """And none where there is nothing to see."""
    columns, parts, conclusion = SEEN[fact]
    found = some_table(tmp_path, columns, **parts)
    assert any(fact in one and conclusion in one for one in found)
    usual = some_table(
        tmp_path,
        {"user": MANY, "x": [float(one) for one in MANY]},
        "x = { type = 'float', bounds = [0, 50] }",
        more="caps = { rows = 32 }",
    )
    assert usual == []


def test_no_fact_names_a_number_to_copy(tmp_path):
    """Shares are words, and the same for all tables that are nearly alike."""
    assert [share_words(part, 1000) for part in (0, 1, 100, 200, 500, 900, 990, 1000)] == [
        *("no", "a few", "some", "about a quarter of the", "about half of the", "most", "nearly all", "all")
    ]
    columns = {"user": [*MANY, *[7] * 977], "x": [*map(float, MANY), *[1234.5] * 977]}
    text = "".join(some_table(tmp_path, columns, "x = { type = 'float', bounds = [0, 1e9] }", more="caps = { rows = 3 }"))
    assert not set("0123456789") & set(text)


def test_epsilon_above_ten_is_told_to_everybody_who_checks(here):
    """It is no fact about rows."""
    text = european_study("sales.csv", LINE).replace('epsilon = "3"', 'epsilon = "100"')
    (here / "eu.toml").write_text(text, encoding="utf-8")
    assert "warning: budget.epsilon is above 10" in run("check", "eu.toml")[1]


# ---- drafts --------------------------------------------------------------------------------------------------------


def test_looking_proposes_the_line(here):
    """What nearly all values are; nothing of them is in the draft."""
    code, out, _ = run("init", "sales.csv", "--look")
    assert code == 0
    assert LINE in out
    assert "Rows were looked at" in out
    kinds = {name: one["type"] for name, one in tomllib.loads(out)["tables"]["sales"]["columns"].items()}
    assert list(kinds.values()) == ["integer", "string", "decimal", "timestamp", "integer"]
    assert not any(word in out for word in ("México", "13047", "2010"))
    assert 'encoding = "latin-1"' in run("init", "latin.csv", "--look")[1]
    plain = run("init", "sales.csv")[1]
    assert ("format" in plain, 'type = "integer"' in plain) == (False, False)


def test_one_persons_value_never_decides(here):
    """With or without one row the proposal is the same, and few rows bring none."""
    lines = (here / "sales.csv").read_text(encoding="utf-8-sig").splitlines()
    expected = look_at("sales.csv", here)
    for odd in ("x;y;z;no day;no number", '9;"open;1.5;12/31/2010;-', "13999;Peru;1,234.5;2010-01-31;?"):
        (here / "odd.csv").write_text("\n".join([*lines, odd]), encoding="utf-8")
        assert look_at("odd.csv", here) == expected
    (here / "few.csv").write_text("\n".join(lines[:60]), encoding="utf-8")
    few = look_at("few.csv", here)
    assert (few.format.said(), dict(few.types)) == ({"separator": ";"}, {})


def test_days_that_can_be_read_in_two_ways_are_left_to_the_owner(here):
    """Both patterns are named in a comment."""
    (here / "days.csv").write_text("day\n" + "\n".join(f"{n % 12 + 1:02}/{n % 11 + 1:02}/2010" for n in range(200)))
    looked = look_at("days.csv", here)
    assert "day" not in looked.types
    assert "%d/%m/%Y" in looked.notes["day"]
    assert "%m/%d/%Y" in looked.notes["day"]


def test_several_tables_are_one_draft_with_references_by_name(here):
    """Proposed as comments; filled in, the draft is a study."""
    pq.write_table(pa.table({"user_id": [1], "age": [3]}), "users.parquet")
    pq.write_table(pa.table({"id": [1], "user_id": [3]}), "orders.parquet")
    pq.write_table(pa.table({"orderId": [1], "price": [3.5]}), "lines.parquet")
    code, out, _ = run("init", "users.parquet", "orders.parquet", "lines.parquet")
    assert code == 0
    assert '# unit = { column = "user_id", references = "users.user_id" }' in out
    assert '# unit = { column = "orderId", references = "orders.id" }' in out
    first, *rest = out.split('unit = ""')
    text = first + 'unit = "user_id"' + rest[0] + rest[1].replace("# unit", "unit") + rest[2].replace("# unit", "unit")
    assert [table.name for table in parse_study(text, folder=here).tables] == ["users", "orders", "lines"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["*.parquet"], "a pattern whose files have the same columns; got '*.parquet'.\nHint: name each table by itself"),
        (["."], "must be a file; got 'the folder .'"),
        (["a.parquet", "a.parquet"], "tables must be of different names"),
    ],
)
def test_tables_that_are_not_one_are_not_made_one(here, given, sentence):
    """A quoted pattern of unrelated tables is refused, with what to write."""
    pq.write_table(pa.table({"user_id": [1]}), "a.parquet")
    pq.write_table(pa.table({"visit": [1]}), "b.parquet")
    code, _, told = run("init", *given)
    assert (code, sentence in told) == (2, True)


def test_sheets_are_drafted_and_opened(here):
    """From Python and by init."""
    write_workbook(
        here / "book.xlsx", {"visits": [["user", "spent"], *[[n % 9, n / 2] for n in range(300)]], "other": [["a"]]}
    )
    out = run("init", "book.xlsx#visits", "--look")[1]
    assert ('source = "book.xlsx#visits"' in out, out.count('type = "integer"'), out.count('type = "decimal"')) == (
        True,
        1,
        1,
    )
    options = {"types": {"user": "integer", "spent": "float"}, "bounds": {"spent": (0, 200)}, "caps": {"rows": 64}}
    with cu.open(
        "book.xlsx#visits", unit="user", budget=cu.Budget(epsilon=50), engine={"worker": "inline"}, **options
    ) as curator:
        assert abs(curator.ask("SELECT COUNT(*) AS n FROM visits", spend="50%").rows[0]["n"] - 300) < 64
        assert curator.study.tables[0].column("spent").type is Type.FLOAT


def test_bounds_of_a_text_column_say_which_type_to_write(here):
    """The hint is for Python, where columns of a CSV file are text until a type is given."""
    with pytest.raises(InvalidStudy, match=r"it holds text.*write types=\{\"Quantity\": \"integer\"\}"):
        cu.open("sales.csv", unit="Customer ID", budget=cu.Budget(epsilon=1), bounds={"Quantity": (0, 100)})


def test_prepared_copies_of_streams_are_the_owners(here):
    """Where nothing is prepared the worker reads a copy of a stream, in the prepared folder."""
    text = european_study("latin.csv", LINE.replace("{", '{ encoding = "latin-1",')).replace(
        "[engine]", '[engine]\nprepare = "never"'
    )
    (here / "eu.toml").write_text(text, encoding="utf-8")
    cu.open("eu.toml").close()
    copies = list((prepared_folder(read_study("eu.toml")) / "frames").iterdir())
    assert [copy.stat().st_mode & 0o077 for copy in copies] == [0]

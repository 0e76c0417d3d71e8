"""Who answers a statement of a PostgreSQL client: the curator, the door itself, the shadow, or nobody."""

import pytest

from curador.door.parameters import bind_text
from curador.door.problems import SqlProblem
from curador.door.results import ShownColumn, write_rows
from curador.door.statements import StatementKind, read_statements
from curador.study.values import Type

TABLES = frozenset({"visits"})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT COUNT(*) FROM visits", "question"),
        ('SELECT COUNT(*) FROM "visits"', "question"),
        ("SELECT count(*) FROM public.visits", "question"),
        ("WITH v AS (SELECT * FROM visits) SELECT COUNT(*) FROM v", "question"),
        ("EXPLAIN SELECT COUNT(*) FROM visits", "explain"),
        ("DECLARE c CURSOR FOR SELECT COUNT(*) FROM visits", "declare"),
        ("FETCH 10 FROM c", "fetch"),
        ("SET curador.spend = '1%'", "set"),
        ("SHOW server_version", "show"),
        ("SELECT relname FROM pg_catalog.pg_class", "shadow"),
        ("SELECT oid FROM pg_class WHERE oid = ANY($1::oid[])", "shadow"),
        ("WITH RECURSIVE t AS (SELECT oid FROM pg_type UNION SELECT typelem FROM pg_type, t) SELECT * FROM t", "shadow"),
        ("SELECT 1", "shadow"),
    ],
)
def test_every_statement_has_one_who_answers(text, kind):
    """A question about the study's tables is the curator's, whatever it is wrapped in."""
    assert [one.kind for one in read_statements(text, TABLES)] == [StatementKind(kind)]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a int)",
        "DROP TABLE visits",
        "DO $$ BEGIN END $$",
        "COPY visits TO STDOUT",
        "LISTEN a",
        "SELECT pg_sleep(10)",
        "SELECT * FROM visits, pg_class",
        "SELECT 1 FOR UPDATE",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 FROM pg_class UNION ALL SELECT i + 1 FROM n, visits) SELECT * FROM n",
        "WITH RECURSIVE visits AS (SELECT 1 FROM pg_class) SELECT * FROM visits",
    ],
)
def test_what_nobody_does_is_refused(text):
    """It reaches neither the curator nor the shadow."""
    with pytest.raises(SqlProblem):
        read_statements(text, TABLES)


def test_parameters_are_bound_as_values():
    """A text stays a text, whatever it holds, and a number in quotes or comments is no parameter."""
    hostile = "x' OR 1 = 1 --"
    bound = bind_text("SELECT COUNT(*) AS n FROM visits WHERE city = $1 AND '$2' <> city /* $2 */", [hostile])

    assert "x'' OR 1 = 1 --" in bound
    assert "'$2'" in bound


def test_rows_are_written_as_texts_and_bytes():
    """The first bytes are the kind and the length of each message; NULL has no bytes."""
    columns = [ShownColumn("city", Type.STRING), ShownColumn("n", Type.INTEGER)]
    texts, whole = (write_rows(columns, [("Chur", 7), (None, -1)], forms) for forms in ([0], [1]))

    assert texts[0] == b"D\x00\x00\x00\x13\x00\x02\x00\x00\x00\x04Chur\x00\x00\x00\x017"
    assert whole[0].endswith((7).to_bytes(8))
    assert b"\xff\xff\xff\xff" in texts[1]


@pytest.mark.parametrize(
    "text",
    [
        'SELECT 1 FROM U&"\\0076isits"',
        "SELECT 1 FROM u&\"!0076isits\" UESCAPE '!'",
        'SELECT U&"pg_sl\\0065ep"(1)',
        "SELECT U&'\\0076isits'",
        "SELECT (NULL::visits).city",
        "SELECT count(*) FROM unnest('{}'::public.visits[])",
        "SELECT '{}'::_visits",
        "SELECT * FROM jsonb_to_record('{}') AS x(a visits)",
    ],
)
def test_what_names_a_table_in_disguise_is_refused(text):
    """Names in escapes cannot be seen here, and of a type of rows the shadow would make empty ones."""
    with pytest.raises(SqlProblem):
        read_statements(text, TABLES)


@pytest.mark.parametrize("text", ["SELECT relname::name, oid::regclass FROM pg_class", "SELECT '{1}'::_int4", "SELECT 1 & 2"])
def test_other_types_and_operators_are_not_taken_for_one(text):
    """Tools cast to types of PostgreSQL's."""
    assert [one.kind for one in read_statements(text, TABLES)] == [StatementKind.SHADOW]

"""Functions that make rows or letters are let through only where what is written down says that they are few."""

# ruff: noqa: E501 -- statements stand side by side

import pytest

from curador.door.problems import SqlProblem
from curador.door.statements import StatementKind, read_statements

FEW = [
    "SELECT generate_series(1, 10000)",
    "SELECT generate_series(10, -5, -1)",
    "SELECT * FROM generate_series(0, 1, 0.01) AS g(i)",
    "SELECT pg_catalog.generate_series(1, 32)",
    "SELECT generate_series(DATE '2024-01-01', DATE '2024-12-31', INTERVAL '1 day')",
    "SELECT generate_series('2024-01-01'::date, '2024-12-31', '1 month'::interval)",
    "SELECT * FROM generate_series(timestamp '2024-01-01 00:00:00', timestamp '2024-01-02 00:00:00', '1 hour') t",
    "SELECT generate_series(1, array_upper(string_to_array(current_setting('search_path'), ','), 1))",
    "SELECT pg_catalog.generate_series(0, pg_catalog.array_upper(p.prattrs::pg_catalog.int2[], 1)) FROM pg_publication_rel p",
    "SELECT generate_series(array_lower(c.conkey, 1), array_upper(c.conkey, 1)) FROM pg_constraint c",
    "SELECT generate_series(array_lower(conkey, 1), array_upper(conkey, 1)) FROM pg_catalog.pg_constraint k, pg_class c WHERE true",
    "SELECT i FROM (SELECT generate_series(1, array_upper(indkey, 1)) AS i FROM pg_index) x",
    "SELECT repeat(relname, 3), lpad(relname, 10, '-'), rpad('a', 5) FROM pg_class",
]

MANY = [
    "SELECT generate_series(1, 10002)",
    "SELECT generate_series(1, x) FROM (VALUES (1000000000)) t(x)",
    "SELECT generate_series(1, oid::bigint) FROM pg_class",
    "SELECT generate_series(1, 0x7fffffff)",
    "SELECT generate_series(1, x'7fffffff'::bit(32)::int)",
    "SELECT generate_series(1, 1_000_000_000)",
    "SELECT generate_series(1, '1000000000')",
    "SELECT generate_series(1, '1000000000'::int)",
    "SELECT generate_series(1, 10, 0.00001)",
    "SELECT generate_series(1, 10, 0)",
    "SELECT generate_series(1, 1e9)",
    "SELECT generate_series(1, 2 + 2)",
    "SELECT generate_series(1, length(version()))",
    "SELECT generate_series(1, setting::int) FROM pg_settings",
    "SELECT generate_series(1, array_upper('[2147483646:2147483646]={1}'::int[], 1))",
    "SELECT generate_series(1, array_upper(string_to_array(proargnames, ','), 1)) FROM pg_proc",
    "SELECT pg_catalog.generate_series(1, max(oid)::int) FROM pg_class",
    "SELECT generate_series(1, array_upper(p.name::int[], 1)) FROM pg_prepared_statements p",
    "SELECT generate_series(1, array_upper(p.conkey::int[], 1)) FROM pg_prepared_statements p(conkey)",
    "SELECT generate_series(1, array_upper(c.conkey, 1)) FROM (VALUES ('[9999999:9999999]={1}'::int[])) c(conkey)",
    "WITH pg_c AS (SELECT '[9999:9999]={1}'::int[] conkey) SELECT generate_series(1, array_upper(pg_c.conkey, 1)) FROM pg_c",
    "SELECT generate_series(1, array_upper(c.conkey, 1)) FROM pg_constraint c, (SELECT name::int[] conkey FROM pg_cursors) c",
    "SELECT generate_series(1, array_upper(conkey, 1)) FROM pg_class",
    "SELECT generate_series(1, array_upper(conkey, 1)) FROM pg_index",
    "SELECT generate_series(1, array_upper(conkey, 1)) FROM pg_constraint k, (SELECT '[9999999:9999999]={1}'::int[] AS x) c",
    "SELECT generate_series(1, array_upper(conkey, 1)) FROM pg_constraint k(x, conkey)",
    "SELECT generate_series(1, array_upper(conkey, 1)) FROM pg_cursors pg_constraint",
    "WITH pg_constraint AS (SELECT '[99999:99999]={1}'::int[] conkey) SELECT generate_series(1, array_upper(conkey, 1)) FROM pg_constraint",
    "SELECT (SELECT generate_series(1, array_upper(conkey, 1)) FROM pg_class LIMIT 1) FROM (VALUES ('[99999:99999]={1}'::int[])) v(conkey)",
    "SELECT generate_series(1, array_upper(conkey, 1))",
    "SELECT generate_series(DATE '1000-01-01', DATE '2024-12-31', INTERVAL '1 second')",
    "SELECT generate_series('2024-01-01'::date, '2024-12-31', '1 microsecond')",
    "SELECT generate_series('-infinity'::timestamp, 'infinity', '1 day')",
    "SELECT generate_series('2024-01-01'::date, now(), '1 day')",
    "SELECT repeat('a', oid::int) FROM pg_class",
    "SELECT repeat('a', 0x7fffffff)",
    "SELECT repeat(repeat('a', 10000), 10000)",
    "SELECT lpad('a', length(prosrc) * 1000) FROM pg_proc",
    "SELECT \"repeat\"('a', x) FROM (VALUES (9)) v(x)",
]


@pytest.mark.parametrize("text", FEW)
def test_few_are_made(text):
    """Numbers, dates and intervals are written down."""
    assert [one.kind for one in read_statements(text, frozenset({"visits"}))] == [StatementKind.SHADOW]


@pytest.mark.parametrize("text", MANY)
def test_what_may_be_many_is_refused(text):
    """A column, another spelling of a number and a short step may each mean a billion."""
    with pytest.raises(SqlProblem, match="must be of written numbers"):
        read_statements(text, frozenset({"visits"}))

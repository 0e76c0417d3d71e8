"""What is in the shadow: tables of the names, types and comments that an analyst may see, and no right to read them.

Whatever would show that these tables are empty says NULL instead, or nothing: an empty table's size, its number of rows.
Columns of pg_class cannot be NULL; reltuples is -1 there, which is PostgreSQL's word for unknown, beside relpages 0. What
looks into other sessions, waits, takes memory without end, or takes a statement as a text may not be called.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from curador.door.values import TYPE_NAMES
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LONGEST_NAME = 63
"""Bytes of a name; PostgreSQL would cut a longer one, so it is left out."""

MOST_COLUMNS = 1_600

ROLE, KEEPER = "analyst", "keeper"
"""The role of everybody's statements, and the one that ends what goes on too long."""

NOT_CALLED = (
    "pg_sleep", "pg_sleep_for", "pg_sleep_until", "pg_notify", "pg_export_snapshot", "pg_cancel_backend",
    "pg_terminate_backend", "pg_stat_get_activity", "pg_stat_get_backend_activity", "pg_stat_get_backend_client_addr",
    "query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "table_to_xml", "table_to_xmlschema",
    "table_to_xml_and_xmlschema", "schema_to_xml", "schema_to_xmlschema", "schema_to_xml_and_xmlschema", "database_to_xml",
    "database_to_xmlschema", "database_to_xml_and_xmlschema", "cursor_to_xml", "cursor_to_xmlschema", "ts_stat", "ts_rewrite",
    "lo_creat", "lo_create", "lo_open", "lo_import", "lo_export", "lo_unlink", "lo_get", "lo_put", "lo_from_bytea", "loread",
    "lowrite", "lo_truncate", "lo_truncate64", "lo_lseek", "lo_lseek64", "lo_tell", "lo_tell64", "lo_close",
    "pg_advisory_lock", "pg_advisory_lock_shared", "pg_advisory_xact_lock", "pg_advisory_xact_lock_shared",
    "pg_try_advisory_lock", "pg_try_advisory_lock_shared", "pg_try_advisory_xact_lock", "pg_try_advisory_xact_lock_shared",
    "array_fill", "pg_wal_replay_wait", "pg_blocking_pids", "pg_isolation_test_session_is_blocked", "currtid2",
    "pg_get_shmem_allocations", "pg_get_wait_events", "pg_listening_channels", "pg_lock_status",
)  # fmt: skip
"""Functions that nobody may call here: they wait, see other sessions, or read a text as a statement."""

_SIZES = "pg_relation_size", "pg_table_size", "pg_total_relation_size", "pg_indexes_size"


def tables_text(tables: Sequence[Mapping[str, Any]], unit: str) -> str:
    """Return the statements that make the tables of a public description."""
    return ";\n".join(line for table in tables for line in _table(table, unit)) or "SELECT"


def _table(table: Mapping[str, Any], unit: str) -> Iterator[str]:
    if not _is_name(table["name"]):
        return
    name = f"public.{quote(table['name'])}"
    columns = [column for column in table["columns"] if _is_name(column["name"])][:MOST_COLUMNS]
    parts = [
        f"{quote(column['name'])} {TYPE_NAMES[Type(column['type'])]}{'' if column['nullable'] else ' NOT NULL'}"
        for column in columns
    ]
    yield f"CREATE TABLE {name} ({', '.join(parts)})"
    # a right that nobody can use here: catalogues list only what one has some right to
    yield f"GRANT REFERENCES ON {name} TO {ROLE}"
    kind = "public table" if table["public"] else f"private: answers are noisy; what is protected is one {unit}"
    yield f"COMMENT ON TABLE {name} IS {text(_joined(table.get('description'), kind))}"
    for column in columns:
        told = _joined(column.get("description"), _range(column))
        if told:
            yield f"COMMENT ON COLUMN {name}.{quote(column['name'])} IS {text(told)}"


def _range(column: Mapping[str, Any]) -> str | None:
    if column.get("bounds"):
        low, high = column["bounds"]
        return f"from {low} to {high}"
    values = column.get("values")
    if values:
        shown = ", ".join(str(value) for value in values[:20])
        return f"one of {shown}{', …' if len(values) > 20 else ''}"
    return None


def _joined(*parts: str | None) -> str:
    return "; ".join(part for part in parts if part)[:2000]


def database_text(database: str) -> str:
    """Return the statements that take rights away and make the roles, for the database of the tables."""
    forbidden = ", ".join(text(name) for name in NOT_CALLED)
    sizes = ", ".join(text(name) for name in _SIZES)
    return f"""
CREATE ROLE {ROLE} LOGIN;
CREATE ROLE {KEEPER} LOGIN IN ROLE pg_signal_backend;
REVOKE ALL ON DATABASE {quote(database)} FROM PUBLIC;
GRANT CONNECT ON DATABASE {quote(database)} TO {ROLE}, {KEEPER};
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {ROLE};
ALTER ROLE {ROLE} SET default_transaction_read_only = on;

DO $$
DECLARE one record; told text;
BEGIN
  FOR one IN SELECT oid::regprocedure AS name FROM pg_proc
      WHERE pronamespace = 'pg_catalog'::regnamespace
        AND (proname IN ({forbidden}) OR (proname LIKE 'pg_stat_get_%' AND pronargs = 0)) LOOP  -- what all together did
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one.name);
  END LOOP;
  -- what would tell that tables are empty says NULL; such a function acts where it is put in place of its call, so it is
  -- never STRICT, and whoever calls one by its name is refused before it comes here (`statements.py`)
  FOR one IN SELECT proname, pg_get_function_arguments(oid) AS takes, pg_get_function_result(oid) AS gives FROM pg_proc
      WHERE pronamespace = 'pg_catalog'::regnamespace AND NOT proretset AND prokind = 'f' AND prorettype <> 'record'::regtype
        AND (proname IN ({sizes}) OR (proname LIKE 'pg_stat_get_%' AND proargtypes = '26'::oidvector)) LOOP
    EXECUTE format('CREATE OR REPLACE FUNCTION pg_catalog.%I(%s) RETURNS %s LANGUAGE sql AS %L',
      one.proname, one.takes, one.gives, 'SELECT NULL::' || one.gives);
  END LOOP;
  -- settings are the door's: a value is told back and not taken
  CREATE OR REPLACE FUNCTION pg_catalog.set_config(setting_name text, new_value text, is_local boolean) RETURNS text
    LANGUAGE sql AS 'SELECT new_value';
  -- tools leave tables out that they may not read; these can be asked about, so the answer to "may I" is yes
  FOR one IN SELECT oid, proname, pg_get_function_arguments(oid) AS takes, pronargs, prosrc FROM pg_proc
      WHERE pronamespace = 'pg_catalog'::regnamespace
        AND proname IN ('has_table_privilege', 'has_any_column_privilege', 'has_column_privilege') LOOP
    EXECUTE format('CREATE FUNCTION pg_catalog.own_%s(%s) RETURNS boolean LANGUAGE internal STABLE STRICT AS %L',
      one.prosrc, one.takes, one.prosrc);
    SELECT string_agg('$' || n, ', ' ORDER BY n) INTO told FROM generate_series(1, one.pronargs - 1) n;
    EXECUTE format('CREATE OR REPLACE FUNCTION pg_catalog.%I(%s) RETURNS boolean LANGUAGE sql STABLE AS %L',
      one.proname, one.takes, format(
        'SELECT pg_catalog.own_%s(%s, $%s) OR pg_catalog.own_%s(%s, regexp_replace($%s, ''select'', ''REFERENCES'', ''gi''))',
        one.prosrc, told, one.pronargs, one.prosrc, told, one.pronargs));
  END LOOP;
END $$;

GRANT EXECUTE ON FUNCTION pg_catalog.pg_terminate_backend(integer, bigint) TO {KEEPER};  -- it was taken from all above
REVOKE ALL ON pg_catalog.pg_stat_activity, pg_catalog.pg_stats, pg_catalog.pg_statistic FROM PUBLIC;
DROP EXTENSION plpgsql;
"""  # noqa: S608 -- names of ours, quoted


def quote(name: str) -> str:
    """Return a name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text as a literal."""
    return "'" + value.replace("\0", "").replace("'", "''") + "'"


def _is_name(name: str) -> bool:
    return bool(name) and "\0" not in name and len(name.encode("utf-8", "replace")) <= LONGEST_NAME


def stable_text(description: object) -> str:
    """Return a public description as one text: equal ones have one shadow."""
    return json.dumps(description, sort_keys=True, default=str)

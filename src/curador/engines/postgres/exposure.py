# ruff: noqa: S608 -- names are quoted
"""Who else sees what is prepared on a server, by its catalogue, read as the least of roles.

Rows are refused to everybody but the two roles. Superusers and members of the preparer's role are trusted by whoever runs the
server. Sizes, counts of rows and running statements are shown by PostgreSQL to whoever can connect to the database: they are
named, and the owner decides (REVOKE CONNECT).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.errors import InvalidStudy
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from curador.engines.postgres.server import Cursor
    from curador.study.model import Study

_READERS = """
SELECT DISTINCT r.rolname FROM pg_catalog.pg_roles r, pg_catalog.pg_class c
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'v', 'm', 'p', 'f') AND NOT r.rolsuper AND r.oid <> n.nspowner
      AND r.rolname !~ '^pg_'
      AND NOT pg_catalog.pg_has_role(r.oid, n.nspowner, 'MEMBER')
      AND (pg_catalog.has_schema_privilege(r.oid, n.oid, 'USAGE')
           AND pg_catalog.has_any_column_privilege(r.oid, c.oid, 'SELECT')
           OR pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE')
           OR pg_catalog.pg_has_role(r.oid, 'pg_read_all_data', 'MEMBER')
           OR pg_catalog.pg_has_role(r.oid, 'pg_write_all_data', 'MEMBER')
           OR pg_catalog.pg_has_role(r.oid, 'pg_read_server_files', 'MEMBER')
           OR pg_catalog.pg_has_role(r.oid, 'pg_write_server_files', 'MEMBER')
           OR pg_catalog.pg_has_role(r.oid, 'pg_execute_server_program', 'MEMBER')
           OR pg_catalog.has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'))
ORDER BY 1
"""
_ROLE = """
SELECT rolsuper OR rolcreaterole OR rolreplication OR rolbypassrls,
       pg_catalog.pg_has_role(oid, current_user::regrole::oid, 'MEMBER')
FROM pg_catalog.pg_roles WHERE rolname = %s
"""
_READS = "SELECT pg_catalog.has_any_column_privilege(%s::text, %s::oid, 'SELECT')"
_STRANGERS = """
SELECT rolname FROM pg_catalog.pg_roles WHERE rolcanlogin AND NOT rolsuper AND rolname <> ALL(%s)
       AND pg_catalog.has_database_privilege(oid, current_database(), 'CONNECT') ORDER BY 1
"""
_TRUSTED = """
SELECT r.rolname FROM pg_catalog.pg_roles r WHERE r.rolname <> ALL(%s)
       AND (r.rolsuper OR pg_catalog.pg_has_role(r.oid, %s::name::regrole::oid, 'MEMBER')) AND r.rolname !~ '^pg_' ORDER BY 1
"""


def require_unexposed(cursor: Cursor, schema: str, ours: Iterable[str]) -> None:
    """Refuse a prepared schema that anybody but our roles can read or write, superusers and members of its owner aside."""
    cursor.execute(_READERS, [schema])
    others = [str(row[0]) for row in cursor.fetchall() if str(row[0]) not in set(ours)]
    if others:
        hint = f"take from them what lets them in, such as pg_read_all_data; then `curador prepare`: {', '.join(others[:5])}"
        raise InvalidStudy.must_be(
            "the prepared schema", "readable by the two roles alone", Plain("others who can read it"), hint
        )


def require_own_reader(cursor: Cursor, study: Study, reader: str) -> None:
    """Refuse a role for questions that can do more than read what is prepared for it."""
    from curador.engines.postgres.catalogue import find_table

    cursor.execute(_ROLE, [reader])
    found = cursor.fetchone()
    if found is None or any(found):
        hint = "CREATE ROLE curador_reader LOGIN, without any privilege: what it needs is granted by `curador prepare`"
        got = "one that is not there" if found is None else "one that may do more"
        raise InvalidStudy.must_be("the role that asks questions", "one that can only read", Plain(got), hint)
    for table in study.tables:
        if not table.public:
            cursor.execute(_READS, [reader, find_table(cursor, study, table).number])
            if cursor.fetchone() != (False,):
                hint = f"REVOKE SELECT ON {table.source} FROM {reader}, or from PUBLIC"
                rule = f"one that cannot read the rows of {table.name} themselves"
                raise InvalidStudy.must_be("the role that asks questions", rule, reader, hint)


def told_lines(cursor: Cursor, ours: list[str], owner: str) -> list[str]:
    """Return what the owner should know of others on the server."""
    cursor.execute(_TRUSTED, [ours, owner])
    trusted = [str(row[0]) for row in cursor.fetchall()]
    cursor.execute(_STRANGERS, [[*ours, *trusted]])
    strangers = [str(row[0]) for row in cursor.fetchall()]
    lines = []
    if trusted:
        lines.append(f"can read everything on this server, as superusers or members of {owner}: {', '.join(trusted)}")
    if strangers:
        told = "can connect to this database, and see sizes, numbers of rows and how long statements take"
        lines.append(f"{told}: {', '.join(strangers)} (REVOKE CONNECT ON DATABASE … keeps them out)")
    return lines

"""Tables of ledgers as they were made at different times, and how those of an old file learn kinds that they refuse.

A CHECK of the table `entry` lists the kinds that a file lets in. A file made before a kind existed refuses it, so its table
is made anew with the same rows, in one transaction: a crash leaves the old tables or the new ones. That happens when
something is first written that the old tables have no place for, and never before: whoever only looks changes nothing.

The first entry names the digest of the tables that its file was made with. A file has those, or later ones of the list below;
anything else was changed by somebody else, and is refused. So the texts here are written down, and not made by a library
whose next version may write them differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from curador.ledger.store import Cursor

SCHEMAS: Final = (
    "4164a8cf4cd6272e931fd279863e403b8e0bfabb32ffcaf17fb6e1c4f37dae90",  # eight kinds
    "9d061d0346c880638d41f5077db9c0e518fecbd9e949c79b9c690dbf4f1013ad",  # and recalled, surveyed
    "3662853b587c34030ab81f51e43a4f0cda6bef24f9e02993e82993c067b83bb9",  # and declared, joined; entries are found by kind
    "5266de88b04ff7520272f84a73fe1e7cbf866f4df099e6a8b541760e2cd7d8e8",  # and by question; counts of answers given again
)
"""Digests of all tables, indexes and triggers, oldest first."""

_KINDS: Final = (
    *("created", "reserved", "committed", "failed", "voided", "served", "refreshed", "reopened"),
    *("surveyed", "declared", "joined", "recalled"),
)
_KNOWN_KINDS: Final = 2
"""From these tables of the list on, every kind that is written now is let in."""
_NAMES: Final = "sequence, hash, kind, id, analyst, question_key, data_version, settles, body"
_COLUMNS: Final = (
    *("sequence INTEGER NOT NULL", "hash TEXT NOT NULL", "kind TEXT NOT NULL", "id TEXT NOT NULL", "analyst TEXT"),
    *("question_key TEXT", "data_version INTEGER NOT NULL", "settles TEXT", "body TEXT NOT NULL", "PRIMARY KEY (sequence)"),
    f"CONSTRAINT known_kind CHECK (kind IN ({', '.join(repr(kind) for kind in _KINDS)}))",
    *("CONSTRAINT sequence_from_zero CHECK (sequence >= 0)", "UNIQUE (id)", "UNIQUE (settles)"),
)
_COUNTS: Final = (
    *("line TEXT NOT NULL", "released TEXT NOT NULL", "holder TEXT NOT NULL", "day TEXT NOT NULL", "number INTEGER NOT NULL"),
    *("PRIMARY KEY (line)", "CONSTRAINT at_least_once CHECK (number >= 1)"),
    "CONSTRAINT one_line_a_day UNIQUE (released, holder, day)",
)
_COPIES: Final = (
    *("study TEXT NOT NULL", "data_version INTEGER NOT NULL", "digest TEXT NOT NULL", "PRIMARY KEY (study, data_version)"),
)
_APPEND_ONLY: Final = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
_ENTRIES_ANEW: Final = (
    f"CREATE TABLE entry_before AS SELECT {_NAMES} FROM entry ORDER BY sequence",  # noqa: S608 -- constants
    "DROP TABLE entry",
    "CREATE TABLE entry (\n\t" + ", \n\t".join(_COLUMNS) + "\n)",
    f"INSERT INTO entry ({_NAMES}) SELECT {_NAMES} FROM entry_before ORDER BY sequence",  # noqa: S608 -- constants
    "DROP TABLE entry_before",
    "CREATE INDEX entry_by_analyst ON entry (analyst, sequence)",
    "CREATE INDEX entry_by_kind ON entry (kind, sequence)",
    *(f"CREATE TRIGGER entry_no_{act} BEFORE {act} ON entry {_APPEND_ONLY}" for act in ("update", "delete")),
)
_NEW_TABLES: Final = (
    "CREATE INDEX entry_by_question ON entry (question_key, data_version, sequence)",
    "CREATE TABLE again (\n\t" + ", \n\t".join(_COUNTS) + "\n)",
    "CREATE TABLE prepared (\n\t" + ", \n\t".join(_COPIES) + "\n)",
    *(f"CREATE TRIGGER prepared_no_{act} BEFORE {act} ON prepared {_APPEND_ONLY}" for act in ("update", "delete")),
)


def is_old(schema: str) -> bool:
    """Whether tables of this digest lack a place for something that is written now."""
    return schema in SCHEMAS[:-1]


def refuses_kinds(schema: str) -> bool:
    """Whether tables of this digest refuse kinds that are written now."""
    return schema in SCHEMAS[:_KNOWN_KINDS]


def may_become(made: str, found: str) -> bool:
    """Whether a file whose first entry names one digest may have tables of another: its own, or later ones."""
    known = made in SCHEMAS and found in SCHEMAS
    return made == found or (known and SCHEMAS.index(made) < SCHEMAS.index(found))


def steps_from(schema: str) -> tuple[str, ...]:
    """Return the statements that bring tables of a digest up to date."""
    return (*_ENTRIES_ANEW, *_NEW_TABLES) if refuses_kinds(schema) else _NEW_TABLES


def renew_tables(cursor: Cursor, schema: str) -> bool:
    """Bring tables of a digest up to date inside the caller's transaction; False where they do not hold what they held.

    Needs   Foreign keys are not enforced on this connection: answers refer to a table that is away for a moment.
    """
    before = _count(cursor)
    for statement in steps_from(schema):
        cursor.execute(statement)
    cursor.execute("PRAGMA foreign_key_check")
    return not cursor.fetchall() and _count(cursor) == before


def _count(cursor: Cursor) -> object:
    cursor.execute("SELECT COUNT(*), MIN(sequence), MAX(sequence) FROM entry")
    return cursor.fetchone()

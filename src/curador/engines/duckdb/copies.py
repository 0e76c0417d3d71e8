# ruff: noqa: S608 -- names pass through `quoting`, the rest is ours
"""What a prepared copy is known by: a keyed digest of every row that it holds, kept beside it and compared with the ledger's.

`copies.json` in the prepared folder, the owner's alone:

version   the data version that is prepared
copies    the copy's digest, then those of copies of the same version, made of the same sources for other declarations
file      size, times and number of the file when it was last known to hold what the first digest says
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from curador.canonical import canonical_text
from curador.engines.base import CopyDigest
from curador.engines.duckdb.spelling import commas, identifier, text
from curador.errors import Failed, InvalidStudy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import duckdb

    from curador.engines.duckdb.versions import Folder

FORMAT = 1
DIGEST = 1
"""How rows are digested; in the digest, so that another way never looks like other rows."""

_TEXTS = {"VARCHAR", "ENUM"}
_PLAIN = {
    "BOOLEAN",
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    *("DECIMAL", "DATE", "TIME", "TIMESTAMP"),
}


# ---- digest ----------------------------------------------------------------------------------------------------------------


def digest_rows(
    connection: duckdb.DuckDBPyConnection, key: Callable[[str], bytes], *, about: Iterable[object], views: bool = False
) -> str:
    """Return the keyed digest of all tables of a connection's database, or of the cleaned sources where there are views.

    key    the study's key for a purpose
    about  what else is in it, such as the version

    Claim   Two databases whose tables differ in a name, a type or in the multiset of their rows, in whatever stored column,
            have the same digest with probability at most rows / 2¹²⁸ + 2⁻²⁵⁶ over the key. Neither the order in which rows
            lie, nor threads, nor the engine's own hashes enter. Without the key it says nothing of the rows.
    Needs   MD5 and HMAC-SHA-256 under a secret key are as good as random functions.
    Source  The text of a row can be read back: a text is preceded by its length, every other value ends at a semicolon that
            it cannot contain, NULL is the empty text, which no value is. So different rows have independent hashes; the sum
            of a multiset modulo 2¹²⁸ with each row's multiplicity d differs unless d · hash is one certain number, which it
            is for at most d hashes.
    """
    row_key = base64.b64encode(key("rows")[:16]).decode().rstrip("=")  # short: it is hashed once a row
    named = "s[0-9]+" if views else ".+"
    kind = "duckdb_views()" if views else "duckdb_tables()"
    column = "view_name" if views else "table_name"
    own = "NOT internal AND NOT temporary AND database_name = current_database()"
    found = connection.execute(
        f"SELECT {column} FROM {kind} WHERE {own} AND regexp_full_match({column}, {text(named)})"
    ).fetchall()
    body: dict[str, Any] = {"digest": DIGEST, "about": [str(one) for one in about]}
    body["tables"] = {str(name): _digest_table(connection, str(name), row_key) for (name,) in found}
    if views:  # ranks are computed in questions: whether engines do so alike is seen by an example
        body["engine"] = str(connection.execute("SELECT hash(hash(42::UBIGINT, 'a'))").fetchall()[0][0])
    return hmac.digest(key("copy"), canonical_text(body).encode(), hashlib.sha256).hex()


def _digest_table(connection: duckdb.DuckDBPyConnection, table: str, key: str) -> dict[str, Any]:
    own = "NOT internal AND database_name = current_database()"
    found = connection.execute(
        f"SELECT column_name, data_type FROM duckdb_columns() WHERE {own} AND table_name = {text(table)}"
    ).fetchall()
    columns = sorted((str(name), str(kind)) for name, kind in found)
    row = f"concat({commas([text(key), *(_written(name, kind) for name, kind in columns)])})"
    hashed = f"SELECT md5_number({row}) AS m FROM {identifier(table)}"
    ((rows, high, low),) = connection.execute(
        f"SELECT count(*), sum(CAST(m >> 64 AS UBIGINT)), sum(CAST(m & {(1 << 64) - 1}::UHUGEINT AS UBIGINT)) FROM ({hashed})"
    ).fetchall()
    total = ((int(high or 0) << 64) + int(low or 0)) % (1 << 128)
    return {"columns": [list(one) for one in columns], "rows": str(rows), "sum": f"{total:032x}"}


def _written(name: str, kind: str) -> str:
    """Return the expressions whose texts, one after the other, are a value's."""
    column, base = identifier(name), kind.partition("(")[0]
    if base in _TEXTS:
        return f"strlen(CAST({column} AS VARCHAR)), ':', {column}, ';'"
    if base == "DOUBLE":  # by its bits: the shortest text of a number may be another one in another version
        return f"CAST(CAST({column} AS BIT) AS UBIGINT), ';'"
    if base not in _PLAIN:
        raise Failed(f"A prepared copy has a column of type {kind}, whose text is not known.")
    return f"{column}, ';'"


UNDIGESTED = ""
"""In place of the digest of a copy that no other machine has: nobody would compare it."""


def check_key(key: Callable[[str], bytes], version: int) -> str:
    """Return what tells whether two machines have the same key for a data version, and nothing else of it."""
    return hmac.digest(key("check"), str(version).encode(), hashlib.sha256)[:16].hex()


# ---- beside the copy -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """What is kept beside a copy; file: of the copy itself, None where nothing is prepared."""

    version: int
    copies: tuple[CopyDigest, ...]
    file: tuple[int, ...] | None


def identify_file(path: Path) -> tuple[int, ...] | None:
    """Return what changes when somebody writes to a file: its size, times and number; None where there is none."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino


def read_record(folder: Folder) -> CopyRecord | None:
    """Return what the folder says of its copy; None where it says nothing that is understood."""
    try:
        held = json.loads((folder.path / "copies.json").read_text(encoding="utf-8"))
        if held["format"] != FORMAT:
            return None
        copies = tuple(CopyDigest(one["key"], one["layout"], one["content"]) for one in held["copies"])
        file = None if held["file"] is None else tuple(int(one) for one in held["file"])
        return CopyRecord(int(held["version"]), copies, file) if copies else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(folder: Folder, record: CopyRecord) -> None:
    """Store it."""
    from curador.engines.duckdb.versions import write_private

    copies = [{"key": one.key, "layout": one.layout, "content": one.content} for one in record.copies]
    file = None if record.file is None else list(record.file)
    content = {"format": FORMAT, "version": record.version, "copies": copies, "file": file}
    write_private(folder.path / "copies.json", json.dumps(content, indent=1).encode())


def is_as_recorded(record: CopyRecord | None, version: int, layout: str, file: Path | None) -> bool:
    """Whether the record is about this version for these declarations, and nobody wrote to the file since."""
    return (
        record is not None
        and (record.version, record.copies[0].layout) == (version, layout)
        and record.file == (None if file is None else identify_file(file))
    )


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """A prepared copy that is there: of which version and declarations, where, and how its rows are digested."""

    folder: Folder
    version: int
    layout: str
    file: Path | None
    about: tuple[object, ...]
    digest: Callable[[], str]
    shared: bool

    @property
    def key(self) -> str:
        """What tells the key: by version, whatever the copy was made for."""
        return check_key(self.folder.key, self.version)

    def record(self, content: str, others: Iterable[CopyDigest] = ()) -> None:
        """Write down what a copy that was just made is known by. others: of the same version, from the same sources."""
        own = CopyDigest(self.key, self.layout, content)
        kept = tuple(one for one in others if one.layout != self.layout and one.key == own.key)
        file = None if self.file is None else identify_file(self.file)
        write_record(self.folder, CopyRecord(self.version, (own, *kept), file))

    def is_intact(self) -> bool:
        """Whether the copy is what was prepared, under the key that lies here. Rows are read only where a file differs.

        A copy that was made before digests were kept is digested now. One whose file was touched or moved and holds the same
        rows is intact, and its file is remembered.
        """
        import duckdb

        record = read_record(self.folder)
        try:
            key = self.key
        except InvalidStudy:  # no key: whoever needs it says so
            return False
        if record is not None:
            own = record.copies[0]
            if (record.version, own.layout, own.key) != (self.version, self.layout, key):
                return False
            digested = own.content != UNDIGESTED or not self.shared
            if digested and is_as_recorded(record, self.version, self.layout, self.file):
                return True
            record = record if digested else None  # others came to share it since
        before = None if self.file is None else identify_file(self.file)
        try:
            content = self.digest()
        except duckdb.Error:
            return False
        if record is None:
            self.record(content)
        elif record.copies[0].content == content:
            write_record(self.folder, replace(record, file=before))
        else:
            return False
        return True

"""The page of stored formats says what the samples hold, and keeps names free that nothing uses."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from pathlib import Path

import pytest

from curador.canonical import canonical_text
from curador.ledger.entry import LATER, Entry, EntryKind, seal
from curador.local.files import FORMS

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "reference" / "stored-formats.md").read_text(encoding="utf-8")
LEDGER = HERE / "v2" / "ledgers" / "clinic"
NEWEST = HERE / "v4" / "ledgers" / "clinic"


def section(title):
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def listed(title):
    """Return the names in the first column of a section's table, in order."""
    return [found[1] for found in re.finditer(r"^\| `(\w+)` \|", section(title), re.MULTILINE)]


def loaded(path):
    return json.loads(path.read_text(encoding="utf-8"))


def entries():
    return [json.loads(line) for line in (LEDGER / "entries.jsonl").read_text(encoding="utf-8").splitlines()]


def newest_entry():
    """Return an entry that has all fields."""
    return next(one for one in entries() if one["kind"] == "surveyed")


def found_by(name):
    """Return what an entry says that was found, by one of its fields."""
    lines = (LEDGER.parent / "surveyed" / "entries.jsonl").read_text(encoding="utf-8").splitlines()
    return next(one for line in lines if name in (one := json.loads(line).get("survey") or {}))


def answer():
    with sqlite3.connect(f"file:{LEDGER / 'clinic.ledger'}?mode=ro&immutable=1", uri=True) as connection:
        (content,) = connection.execute("SELECT content FROM answer ORDER BY sequence LIMIT 1").fetchone()
    connection.close()
    return json.loads(zlib.decompress(content))["plans"][0][0]


def ledger_columns(table):
    with sqlite3.connect(f"file:{NEWEST / 'clinic.ledger'}?mode=ro&immutable=1", uri=True) as connection:
        found = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    connection.close()
    return found


def register_columns():
    with sqlite3.connect(f"file:{HERE / 'v2' / 'register'}?mode=ro&immutable=1", uri=True) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {row[1] for table in tables for row in connection.execute(f"PRAGMA table_info({table})")}
    connection.close()
    return found


def receipt(fit):
    asked = [loaded(LEDGER / case["receipt"]) for case in loaded(LEDGER / "asked.json") if ("fit" in case) is fit]
    return asked[0]


def local_texts(name):
    return [json.loads(one[name]) for one in loaded(HERE / "v1" / "local.json").values()]


HELD = {
    "Entry of a ledger": newest_entry,
    "Limits": lambda: entries()[0]["creation"]["limits"],
    "Stored answer": answer,
    "Witness": lambda: json.loads((NEWEST / "clinic.ledger.head").read_bytes()[:4096]),
    "Counts of answers given again": lambda: ledger_columns("again"),
    "Digests of prepared copies": lambda: ledger_columns("prepared"),
    "Pointer": lambda: loaded(HERE / "v4" / "pointer.ledger"),
    "Marker": lambda: loaded(next(LEDGER.glob(".curador-*"))),
    "Register": register_columns,
    "Checkpoint": lambda: loaded(LEDGER / "checkpoint"),
    "Manifest": lambda: loaded(LEDGER / "clinic.ledger.prepared" / "manifest.json"),
    "Canonical text of a question": lambda: json.loads(loaded(HERE / "v1" / "questions.json")[0]["texts"][0]),
    "Study digest": lambda: loaded(HERE / "v1" / "digests.json")["clinic.toml"]["meaning"],
    "Survey": lambda: found_by("tables"),
    "Counts": lambda: found_by("counts"),
    "Steps": lambda: found_by("tables")["tables"]["visits"]["rows"],
    "Receipt of a question": lambda: loaded(LEDGER.parent / "surveyed" / "receipts" / "0.json"),
    "Report": lambda: loaded(HERE / "reports" / "v1.json"),
    "Receipt of a fit": lambda: receipt(fit=True).keys() - receipt(fit=False).keys(),
    "Model": lambda: loaded(HERE / "v1" / "models" / "pca.json"),
    "Local protocol": lambda: set.intersection(*map(set, local_texts("protocol"))),
    "Local client": lambda: set.intersection(*map(set, local_texts("client"))) - {"epsilon"},
}


@pytest.mark.parametrize("title", HELD)
def test_the_page_lists_the_fields_of_every_format(title):
    """All of them, and no other."""
    assert sorted(listed(title)) == sorted(HELD[title]())


def test_the_page_lists_every_kind_of_loss_with_its_fields():
    """As the samples hold them."""
    held = {}
    for text in loaded(HERE / "v1" / "losses.json").values():
        body = json.loads(text)
        held[body["kind"]] = {name for name in body if name not in {"version", "kind"}}
    said = {
        name: {field.strip() for field in fields.partition(":")[0].split(",")}
        for name, fields in re.findall(r"^\| `(\w+)` \| (.+) \|$", section("Loss record"), re.MULTILINE)
    }

    assert said == held


def test_protocols_hold_what_is_written_for_them():
    """The parameters that the page refers to."""
    for body in local_texts("protocol"):
        own = body.keys() - set(listed("Local protocol"))

        assert own <= set(FORMS[body["protocol"]].names)


def kept_free():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section("Kept free"), re.MULTILINE)
    return [(name, place.strip()) for name, place in rows]


USED = {
    "entry": newest_entry,
    "kind of entry": lambda: {kind.value for kind in EntryKind},
    "receipt of a question": lambda: receipt(fit=False),
    "creation": lambda: entries()[0]["creation"],
    "kind of limits": lambda: {"pure", "concentrated"},
    "limits": lambda: entries()[0]["creation"]["limits"],
    "amounts": lambda: entries()[0]["amounts"],
}


@pytest.mark.parametrize(("name", "place"), kept_free())
def test_names_kept_free_are_used_by_nothing(name, place):
    """Whatever comes finds its name unused."""
    assert name not in USED[place]()


def test_readers_refuse_what_is_kept_free():
    """A field or kind of a later version is not guessed at; without it everything is read as before."""
    body = next(one for one in entries() if one["version"] == 1)
    text = canonical_text(body)

    assert seal(Entry.from_text(text))[1] == text
    for change in ({"memory": None}, {"survey": None}, {"kind": "recalled"}, {"version": 2}, {"version": 3}):
        with pytest.raises(ValueError, match="not that of an entry"):
            Entry.from_text(canonical_text({**body, **change}))


def test_kinds_kept_free_are_let_in_by_the_tables_of_new_ledgers():
    """An append-only file cannot be taught a kind that its tables refuse."""
    from sqlalchemy.dialects import sqlite

    from curador.ledger.store import tables

    with sqlite3.connect(":memory:") as connection:
        for statement in tables(sqlite.dialect()):
            connection.execute(statement)
        insert = "INSERT INTO entry (sequence, hash, kind, id, data_version, body) VALUES (?, '', ?, ?, 1, '')"
        for place, kind in enumerate((*LATER, *(kind.value for kind in EntryKind))):
            connection.execute(insert, (place, kind, kind))
        with pytest.raises(sqlite3.IntegrityError, match="known_kind"):
            connection.execute(insert, (99, "guessed", "guessed"))
    connection.close()
    assert set(LATER) == {name for name, place in kept_free() if place == "kind of entry"}

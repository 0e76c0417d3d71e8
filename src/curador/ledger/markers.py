"""Markers: in every folder with private files, a small file for each ledger that they have.

`.curador-<id of the ledger>` says which files of its folder the ledger is about. It travels with the folder, and tells other
users of the same folder what their own registers do not know. Where the folder cannot be written, the register alone
remembers. A ledger writes its own marker and no other; they are never removed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, cast

from curador.canonical import canonical_text
from curador.engines.base import EVERYTHING
from curador.errors import InvalidStudy
from curador.ledger.register import KnownLedger, SeenSource
from curador.ledger.witness import sync_folder, write_private

PREFIX: Final = ".curador-"
VERSION: Final = 1


def leave_markers(ledger: str, path: Path, study: str, sources: Iterable[SeenSource]) -> bool:
    """Leave a marker in every folder of the sources; return whether all of them could be written."""
    whole = True
    for folder, own in _by_folder(sources).items():
        place = folder / f"{PREFIX}{ledger}"
        files = sorted({_row(one) for one in own} | _files_in(place))
        body = {"version": VERSION, "ledger": ledger, "path": str(path), "study": study, "files": files}
        content = (canonical_text(body) + "\n").encode("ascii")
        try:
            if not place.is_file() or place.read_bytes() != content:
                write_private(place, content)
                sync_folder(folder)
        except OSError:
            whole = False
    return whole


def marked_ledgers(sources: Iterable[SeenSource]) -> list[KnownLedger]:
    """Return the ledgers that markers beside the sources name for them; refused where one cannot be read."""
    found: dict[str, KnownLedger] = {}
    for folder, own in _by_folder(sources).items():
        for place in sorted(folder.glob(f"{PREFIX}*")):
            if place.name.endswith(".new"):  # being written
                continue
            body = _read(place)
            owners = frozenset(
                (owner, seen.source.owner)
                for name, inside, owner in body["files"]
                for seen in own
                if name == Path(seen.source.place).name and (inside == seen.inside or EVERYTHING in {inside, seen.inside})
            )
            if owners:
                before = found.get(body["ledger"])
                owners |= frozenset() if before is None else before.owners
                found[body["ledger"]] = KnownLedger(body["ledger"], Path(body["path"]), body["study"], owners)
    return list(found.values())


def _by_folder(sources: Iterable[SeenSource]) -> dict[Path, list[SeenSource]]:
    """Return the sources that are files, by the folders in which they really lie."""
    found: dict[Path, list[SeenSource]] = {}
    for seen in sources:
        if seen.source.file is not None:
            found.setdefault(Path(seen.source.place).parent, []).append(seen)
    return found


def _row(one: SeenSource) -> tuple[str, str, str]:
    return Path(one.source.place).name, one.inside, one.source.owner


def _files_in(place: Path) -> set[tuple[str, str, str]]:
    """Return what a ledger's own marker lists already; nothing where there is none yet."""
    if not place.exists():
        return set()
    return {cast("tuple[str, str, str]", tuple(row)) for row in _read(place)["files"]}


def _read(place: Path) -> dict[str, Any]:
    try:
        body = json.loads(place.read_bytes())
    except (OSError, ValueError, RecursionError):
        body = None
    match body:
        case {"version": 1, "ledger": str(), "path": str(), "study": str(), "files": list(files)} if all(
            _is_row(row) for row in cast("list[object]", files)
        ):
            return cast("dict[str, Any]", body)
        case _:
            hint = "restore the file, or its mode: it says which ledger these data belong to"
            raise InvalidStudy.must_be("the marker beside the data", "a readable file", str(place), hint)


def _is_row(row: object) -> bool:
    if not isinstance(row, list):
        return False
    found = cast("Sequence[object]", row)
    return len(found) == 3 and all(isinstance(part, str) for part in found)

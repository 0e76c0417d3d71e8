"""What a report says of retention and erasure: what lies where, what it holds, how it is removed.

Claim   Of each place it is said whether something is there, and never how much: sizes depend on rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from curador.engines.base import engine_kind
from curador.ledger.checkpoint import checkpoint_of
from curador.ledger.register import register_path
from curador.ledger.witness import witness_of
from curador.study.check import FRAME

if TYPE_CHECKING:
    from curador.study.model import Study

NEVER = "not while the study lives: without it the budget would begin again"
WITH_ROWS = "remove it together with the rows"


def kept_body(study: Study, ledger: Path) -> list[dict[str, Any]]:
    """Return every place in which something of a study lies.

    ledger   the file of the ledger, which may be that of another study over the same rows
    """
    prepared = engine_kind(study.engine.kind).kept(study)
    copy = f"{prepared.prepared}, and the server {study.engine.url}" if study.engine.url else str(prepared.prepared)
    rows = [_source(table.name, table.source) for table in study.tables if not table.public]
    where = f"{ledger}, and the server {study.server}" if study.server else str(ledger)
    rows += [
        _place(
            "ledger",
            where,
            "who asked what and when, analysts' names, what was charged, answers with their noise",
            NEVER,
            there=ledger.exists(),
            personal="names of analysts; texts of questions",
        ),
        _file("witness of the ledger", witness_of(ledger), "the last entry's number and hash", NEVER),
        _file("checkpoint", checkpoint_of(ledger), "sums of the ledger so far", "it may be removed; it is made again"),
        _place(
            "prepared copy",
            copy,
            "a second copy of the rows, its key, and copies that were being sorted",
            "curador prepare STUDY --drop removes the rows; the key stays, so that the same copy can be made again",
            there=prepared.prepared.exists(),
            personal="the rows",
        ),
        _place(
            "log of failures",
            str(prepared.incidents),
            "what really happened when a question failed; it may quote values of rows",
            "remove the file when the failures are understood",
            there=None,  # whether it is there tells that a question failed, which rows may have caused
            personal="may quote rows",
        ),
        _file("log of durations", prepared.durations, "how long questions took, which depends on rows", "remove the file"),
        _file(
            "state of the service",
            ledger.with_name(f"{ledger.name}.service"),
            "digests of tokens, jobs, sessions",
            "remove it when the service is ended; all tokens end with it",
            personal="names of analysts",
        ),
        _file(
            "register of ledgers",
            register_path(),
            "which ledgers are about which files, and keyed digests of files",
            "not while any study of this user lives",
        ),
        _place(
            "markers",
            ".curador-… in the folders of the rows",
            "the id and the place of the ledger, names of files",
            WITH_ROWS,
            there=None,
        ),
        _place(
            "answers and receipts",
            "with those who asked",
            "released numbers; publishing or combining them weakens nothing",
            "nothing has to be removed; it cannot be tied to one person beyond the promise",
            there=None,
        ),
    ]
    return rows


def _source(table: str, source: str) -> dict[str, Any]:
    place = "in memory of the process that opened the study" if source == FRAME else source
    return _place(
        f"rows of table {table}",
        place,
        "the rows themselves; they are read and never written to",
        "by their owner, where they lie; then: curador refresh STUDY",
        there=None,
        personal="the rows",
    )


def _file(what: str, path: Path, holds: str, removed: str, *, personal: str | None = None) -> dict[str, Any]:
    return _place(what, str(path), holds, removed, there=path.exists(), personal=personal)


def _place(
    what: str, place: str, holds: str, removed: str, *, there: bool | None, personal: str | None = None
) -> dict[str, Any]:
    return {
        "what": what,
        "place": place,
        "holds": holds,
        "personal_data": personal,
        "is_there": there,
        "how_removed": removed,
    }


ERASURE = (
    "Erase the person where the rows lie. curador keeps no other list of persons.",
    "Run curador refresh: the next data version no longer has the person, and the prepared copy is made anew.",
    "Answers that were given before stay. What they tell of one person is limited by the promise above.",
    "The ledger stays. It holds no row; it names analysts, and questions may quote what analysts typed.",
)
"""What to do when a person asks to be erased."""

RETENTION = (
    "curador sets no period and removes nothing by itself: how long each place is kept is for the owner to say.",
    "The budget is spent for ever. A ledger that is removed, or set back, would let the same privacy be spent twice.",
)

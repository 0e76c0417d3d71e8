"""How far a ledger was read and found right, so that opening it reads what came since and not everything again.

`<ledger>.checkpoint` is written by an opening that read many entries. It is a convenience and never evidence: it is used only
where it is of this very file, of this ledger, of this witness and of an entry that still stands there; anything else, and
anything that does not add up after it, is read from the first entry on. So it can spare work, and neither refuse a ledger nor
let one pass that was changed after it. What was changed before it only a whole reading finds: `Ledger.verify`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from curador.canonical import canonical_digest, canonical_text
from curador.errors import CuradorError
from curador.ledger.amounts import Amounts
from curador.ledger.chain import ChainReplay
from curador.ledger.witness import Head, WitnessedHead, write_private

VERSION: Final = 2
"""Of the file, and of the rules that the entries before it were read by: a new rule of `chain.py` or of `entry_of` is a new
version."""
EVERY: Final = 100
"""Entries that an opening must have read before it writes a checkpoint: fewer are read again as quickly."""
MOST_WAITING: Final = 10_000
"""Open reservations that a checkpoint names; a ledger with more of them is read whole."""
_LARGEST: Final = 16_000_000  # bytes; anything longer was not written here


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a ledger added up to at one of its entries.

    file      device and number of the file that was read
    witness   where its witness lay
    first     hash of the first entry, which holds the limits
    head      the last entry that was read
    totals    what every holder had spent
    waiting   reservations that were not settled, by id
    """

    ledger: str
    file: tuple[int, int]
    witness: str
    first: str
    head: Head
    totals: Mapping[str, Amounts]
    waiting: Mapping[str, Head]

    def fits(self, *, ledger: str, file: tuple[int, int] | None, witness: Path, seen: WitnessedHead | None) -> bool:
        """Whether it is of this ledger in this file, and its witness has seen the entry it ends at."""
        same = (self.ledger, self.file, self.witness) == (ledger, file, str(witness))
        return same and seen is not None and seen.ledger == ledger and seen.head.sequence >= self.head.sequence


def checkpoint_of(ledger: Path) -> Path:
    """Return the place of a ledger's checkpoint."""
    return ledger.with_name(ledger.name + ".checkpoint")


def make_checkpoint(replay: ChainReplay, *, file: tuple[int, int], witness: Path) -> Checkpoint:
    """Return the checkpoint of a ledger that was read and compared."""
    waiting = {**replay.waiting, **{name: Head(one.sequence, one.hash) for name, one in replay.reserved.items()}}
    head = Head(replay.count - 1, replay.hash)
    return Checkpoint(replay.ledger, file, str(witness), replay.first, head, dict(replay.totals), waiting)


def keep(path: Path, checkpoint: Checkpoint) -> None:
    """Write it in one step, readable by the owner only; where it cannot be written, the next opening reads more."""
    if len(checkpoint.waiting) > MOST_WAITING:
        return
    body = {
        "version": VERSION,
        "ledger": checkpoint.ledger,
        "file": list(checkpoint.file),
        "witness": checkpoint.witness,
        "first": checkpoint.first,
        "head": list(checkpoint.head),
        "totals": {holder: spent.record() for holder, spent in checkpoint.totals.items()},
        "waiting": {name: list(head) for name, head in checkpoint.waiting.items()},
    }
    text = canonical_text({**body, "seal": _seal(body)})
    with contextlib.suppress(OSError):
        write_private(path, text.encode("ascii"))


def recall(path: Path) -> Checkpoint | None:
    """Return what was written; None for anything else: no file, a damaged one, one of another version."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        body = cast("dict[str, Any]", json.loads(path.read_bytes()))
        if body.pop("seal") != _seal(body) or body["version"] != VERSION:
            return None
        device, number = body["file"]
        return Checkpoint(
            ledger=body["ledger"],
            file=(device, number),
            witness=body["witness"],
            first=body["first"],
            head=Head(*body["head"]),
            totals={holder: Amounts.from_record(spent) for holder, spent in body["totals"].items()},
            waiting={name: Head(*head) for name, head in body["waiting"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, CuradorError):
        return None


def forget(path: Path) -> None:
    """Remove it: what a whole reading refused is not opened by a shorter one."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _seal(body: Mapping[str, Any]) -> str:
    """Return the digest that shows damage. It has no key: who can write the file can write a seal."""
    return canonical_digest(body)

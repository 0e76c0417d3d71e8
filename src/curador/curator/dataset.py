"""One data set, one budget: whose rows a study is about, and which ledger pays for answers about them.

A study finds the ledgers of its private sources by the register (`ledger/register.py`) and by markers beside the files
(`ledger/markers.py`), whatever the study is called and wherever its own ledger would lie.

none             a new ledger is made, and entered in both
its own          it goes on; a source that is new to it is entered
another one's    the study spends from that one, where it protects the same unit of these rows, has the same neighbours and
                 the same budget; else it is refused. A reason (`new_ledger=`) starts a ledger all the same, and becomes an
                 entry in both: what the two promise adds up for whoever is in the rows
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curador.engines.base import engine_kind
from curador.errors import CuradorError, InvalidStudy, LedgerBusy
from curador.ledger.entry import ANOTHER
from curador.ledger.ledger import Ledger
from curador.ledger.markers import leave_markers, marked_ledgers
from curador.ledger.opening import read_marker
from curador.ledger.register import KnownLedger, Register, SeenSource, open_register, register_path
from curador.study.check import FRAME

if TYPE_CHECKING:
    from types import TracebackType

    from curador.study.model import Study


@dataclass(slots=True)
class DataSet:
    """A study's private sources as they are now, and the register in which they are looked up. A context manager.

    A study whose private tables all lie in memory has no sources: its ledger is the one that lies where it says.
    """

    study: Study
    register: Register
    seen: list[SeenSource] = field(default_factory=list[SeenSource])

    @classmethod
    def of(cls, study: Study, *, known_to: str | None = None, progress: Callable[[str], None] | None = None) -> DataSet:
        """Look at the study's sources; contents are read where they were never read before.

        known_to   the study's own ledger, where it has one: what is known to be its own is not read again
        """
        sources = engine_kind(study.engine.kind).private_sources(study)
        register = open_register(warn) if sources else Register(None)
        try:
            return cls(study, register, register.look(sources, known_to=known_to, tell=progress))
        except BaseException:
            register.__exit__(None, None, None)
            raise

    def __enter__(self) -> DataSet:  # noqa: PYI034 -- nobody derives from it
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.register.__exit__(kind, error, trace)

    def others(self, own: str | None = None) -> list[KnownLedger]:
        """Return every ledger but one's own that is about some of these rows."""
        found = {known.id: known for known in marked_ledgers(self.seen)}
        for known in self.register.ledgers_of(self.seen):
            marked = found.get(known.id)
            owners = known.owners | (frozenset() if marked is None else marked.owners)
            found[known.id] = KnownLedger(known.id, known.path, known.study, owners)
        return [known for known in found.values() if known.id != own]

    def require_memory(self) -> None:
        """Refuse data of whose ledger nothing would be remembered: neither their folders nor the register can be written."""
        folders = {Path(one.source.place).parent for one in self.seen if one.source.file is not None}
        if self.seen and self.register.path is None and not all(os.access(folder, os.W_OK) for folder in folders):
            hint = "set CURADOR_REGISTER to a file that can be written, so that these data never start a second budget"
            told = "neither their folder nor the register can be"
            raise InvalidStudy(f"the ledger of these data must be written down somewhere; {told}.", hint=f"{hint}.")

    def enter(self, ledger: Ledger) -> None:
        """Write down that a ledger is about these sources: in the register, and beside the files where that is possible.

        Needs   `register.deciding` is held.
        """
        self.register.enter(ledger.id, ledger.path, self.study.name, self.seen)
        leave_markers(ledger.id, ledger.path, self.study.name, self.seen)


def ledgers_of_data(study: Study) -> list[KnownLedger]:
    """Return every ledger that is known to be about rows of the study, for looking: nothing is made, no contents are read."""
    sources = engine_kind(study.engine.kind).private_sources(study)
    place = register_path()
    with Register(place if place.exists() else None) as register:
        return DataSet(study, register, register.look(sources, contents=False)).others()


# ---- another one's ledger --------------------------------------------------------------------------------------------------


def shared_ledger(others: Sequence[KnownLedger], **options: Any) -> Ledger:
    """Return the ledger that the study may share with another one, or refuse: it says why, and what can be done.

    options   of `Ledger.open`

    Claim   What is returned protects the same unit of every source that both are about, with the same neighbours and the same
            budget, and no third ledger is about these rows that it does not know of.
    """
    why: list[str] = []
    for known in others:
        try:
            return _shared(known, others, options)
        except (InvalidStudy, LedgerBusy) as error:
            why.append(f"{known.path} of study {known.study}, which cannot be shared: {error.sentence.rstrip('.')}")
    raise InvalidStudy(
        f"these data have a ledger already, and a second one would be a second budget: {'; '.join(why)}.",
        hint=f"declare the same unit, neighbours and budget to spend from the one that is there; or {ANOTHER}.",
    )


def _shared(one: KnownLedger, others: Iterable[KnownLedger], options: dict[str, Any]) -> Ledger:
    if not one.owners:
        hint = f"open study {one.study} once, so that it is known which files it is about"
        raise InvalidStudy(f"it is not known which files of the folder it is about ({hint}).")
    for there, here in sorted(one.owners):
        if there != here:
            raise InvalidStudy.must_be("the unit of these rows", f"that of the ledger ({there})", here)
    if not one.path.is_file():
        raise InvalidStudy.must_be("the ledger", "where it was last seen", str(one.path))
    without_marker: dict[str, Any] = {**options, "study_name": None, "folder": None}
    ledger = Ledger.open(one.path, **without_marker)
    third = [other for other in others if other.id not in {one.id, *acknowledged_by(ledger)}]
    if ledger.id != one.id or third:
        ledger.close()
        rule = f"the one that these data had ({one.id})" if ledger.id != one.id else "the only one of these data"
        raise InvalidStudy.must_be("the ledger", rule, str(third[0].path) if third else ledger.id)
    return ledger


def acknowledged_by(ledger: Ledger) -> set[str]:
    """Return the ids of other ledgers about the same rows that the owner gave this one a reason for."""
    instead = (ledger.first.creation or {}).get("instead_of")
    return {str(one.details.get("ledger")) for one in ledger.joined() if one.details} | {str(instead)}


def join_both(ledger: Ledger, study: Study, others: Iterable[KnownLedger], reason: str) -> None:
    """Write into a ledger and into every other one about the same rows that there are two, and why.

    A ledger that is gone cannot be written to; the one that takes its place says so.
    """
    for known in others:
        here = {"ledger": known.id, "study": known.study}
        there = {"ledger": ledger.id, "study": study.name, "unit": study.unit_name}
        _write_there(known, there, f"another ledger is about the same rows, of study {study.name}: {reason}")
        ledger.join(here, note=f"the same rows have another ledger, of study {known.study}: {reason}"[:1000])


def _write_there(one: KnownLedger, details: dict[str, Any], note: str) -> None:
    if not one.path.exists():  # gone, which is mostly the reason that was given
        return
    try:
        other = Ledger.reach(one.path)
    except CuradorError as error:
        warn(f"the other ledger of these data, {one.path}, could not be told: {error.sentence}")
        return
    with other:
        if other.id == one.id:
            other.join(details, note=note[:1000])
        else:
            warn(f"the other ledger of these data is not at {one.path} any more, and could not be told")


def refuse_unacknowledged(others: Sequence[KnownLedger]) -> None:
    """Refuse a ledger beside which these data have another one that nobody gave a reason for."""
    if others:
        places = "; ".join(f"{one.path} of study {one.study}" for one in others)
        raise InvalidStudy(
            f"these data have another ledger, and two are two budgets: {places}.",
            hint="spend from one of them; or give the reason for both, which becomes an entry in each:"
            ' new_ledger="…" in Python, --new-ledger "…" in a shell.',
        )


def refuse_copy(data: DataSet, ledger: Ledger) -> None:
    """Refuse a copy of a ledger that is still where it was last seen: charges to one would be unknown to the other."""
    place = data.register.place_of(ledger.id)
    if place is None or not place.is_file() or place.samefile(ledger.path):
        return
    try:
        with Ledger.reach(place) as other:
            same = other.id == ledger.id
    except CuradorError:
        same = False
    if same:
        hint = "two copies would be two budgets; use the one that is there, or remove it if this one took its place"
        raise InvalidStudy.must_be("ledger", f"the only copy; it also lies at {place}", str(ledger.path), hint)


def unknown_ledgers(data: DataSet) -> list[KnownLedger]:
    """Return the ledgers that markers of older versions name, `.<study>.ledger-id`, and of which nothing more is known yet.

    Such a marker does not say which files it is about. Whoever opens its study once makes that known.
    """
    folders = {Path(one.source.place).parent for one in data.seen if one.source.file is not None}
    found: list[KnownLedger] = []
    for folder in sorted(folders):
        for marker in sorted(folder.glob(".*.ledger-id")):
            study = marker.name.removeprefix(".").removesuffix(".ledger-id")
            own = read_marker(folder, study)
            if own is None or study == data.study.name or data.register.place_of(own) is not None:
                continue
            place = folder / f"{study}.ledger"
            if not _about_frames(place, own):
                found.append(KnownLedger(own, place, study, frozenset()))
    return found


def _about_frames(place: Path, own: str) -> bool:
    """Whether a ledger was made for tables in memory alone: it is about no file, whatever lies beside it."""
    try:
        with Ledger.reach(place) as ledger:
            declared = ((ledger.first.details or {}).get("declarations") or {}).get("tables") or {}
            return ledger.id == own and bool(declared) and all(one.get("source") == FRAME for one in declared.values())
    except (CuradorError, OSError):
        return False


def warn(text: str) -> None:
    """Say something to the owner that must not pass in silence."""
    print(f"curador: warning: {text}", file=sys.stderr)  # noqa: T201 -- idem

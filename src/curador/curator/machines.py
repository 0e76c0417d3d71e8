"""Several machines, one truth: a data version has one content and one rank key for all curators of a ledger.

    refresh, or the first preparation ──► the ledger: the number; the owner's table: what the copy is known by (`CopyDigest`)
    every other curator ──► prepares the same number from its own sources, under the same key, and compares

Who answers from other rows, or ranks the same rows by another key, gives a second answer about the same version for which
nobody accounted: which rows of a person are kept would be chosen anew. So a curator answers what is not stored only where its
copy is the one that the ledger's owner settled, and its study the one that was declared last. The digest is in no entry, and
so in no receipt and no chain; what it is made with never leaves the prepared folders.

Analysts are told one sentence, whatever differs. The owner is told what.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from curador.curator.declarations import is_declared_otherwise
from curador.engines.base import CopyDigest
from curador.errors import InvalidStudy

if TYPE_CHECKING:
    from curador.curator.session import Session
    from curador.engines.base import Engine
    from curador.ledger.ledger import Ledger
    from curador.study.model import Study

HERE: Final = "the current data version must be prepared here"
"""All that an analyst is told."""

_TAKEN: Final = "taken"


@dataclass(frozen=True, slots=True)
class Difference:
    """In what a curator differs from what the ledger holds, and what its owner can do."""

    what: str
    hint: str

    def refusal(self) -> InvalidStudy:
        """Return the refusal for the owner's eyes."""
        return InvalidStudy(f"{HERE}; {self.what}.", hint=f"{self.hint}.")


_DECLARED = Difference(
    "the study was declared otherwise since this curator was opened",
    "open the study again, with the declarations that hold now: `curador log` shows what changed",
)
_ABSENT = Difference("it is not, or its file has changed since", "run `curador prepare`")
_ELSEWHERE = Difference(
    "another machine took it on and has not prepared it yet",
    "wait until it has, and run `curador prepare` here; or run `curador refresh`, which declares another one",
)
_KEY = Difference(
    "the rank key is not the one that it was prepared with",
    "put the key of a machine that answers in the place of `key` in the prepared folder, and run `curador prepare`",
)
_COPY = Difference(
    "the rank key is the same, and its rows, units or ranks are others",
    "bring the same sources, and the same versions of curador and DuckDB, and run `curador prepare`; or, where these rows"
    " are the right ones, run `curador refresh`",
)
_SETTINGS = Difference(
    "it is prepared for other declarations or settings than on other machines, so that nobody can compare",
    "open the study first where questions were answered before; unit_rows and prepare in [engine] must be the same",
)


# ---- the owner's acts ------------------------------------------------------------------------------------------------------


def take_on(study: Study, ledger: Ledger, machine: str) -> bool:
    """Whether this machine may prepare the current data version: one that nobody settled is its own who came first.

    While a refresh is being prepared, another machine that is opened must not settle the rows that it has.
    """
    version = ledger.data_version
    if not study.shared:
        return True
    return is_settled(study, ledger) or ledger.settle_digest(_part(study, _TAKEN), version, machine) == machine


def is_settled(study: Study, ledger: Ledger) -> bool:
    """Whether the ledger has a digest of the current data version."""
    return ledger.prepared_digest(study.name, ledger.data_version) is not None


def settle_copy(study: Study, ledger: Ledger, engine: Engine) -> None:
    """Write down what the copy of the current data version is known by, where nobody did: what others are compared with.

    A copy for other declarations than the first is settled by a machine that made both from the very same sources.
    """
    version, copies = ledger.data_version, engine.copies
    if not copies or engine.version != version or not engine.ready:
        return
    own, *before = copies
    first = ledger.settle_digest(study.name, version, str(own))
    if _layout(first) == own.layout or _standing(study, ledger, version, own.layout) is not None:
        return
    if any(_standing(study, ledger, version, one.layout) == str(one) for one in before):
        ledger.settle_digest(_part(study, own.layout), version, str(own))


def is_another(study: Study, ledger: Ledger, engine: Engine) -> bool:
    """Whether what was prepared here of the current data version was never the copy that is settled."""
    copies = engine.copies
    return bool(copies) and is_settled(study, ledger) and _compare(study, ledger, engine.version, copies[0]) is not None


# ---- every question --------------------------------------------------------------------------------------------------------


def require_one_truth(session: Session) -> None:
    """Refuse what is not stored where this curator differs from the ledger; an analyst learns that, and nothing of how.

    Claim   What is charged after this, about the version that was current here, is computed from the settled copy.
    Needs   `Ledger.reserve` refuses a version that is not current any more.
    """
    found = find_difference(session.study, session.ledger, session.engine, session.agreed)
    if found is None:
        return
    if session.analyst is None:
        raise found.refusal()
    if (found.what, session.version) not in session.agreed:  # once: analysts could fill a disk
        session.agreed.add((found.what, session.version))
        with contextlib.suppress(OSError):
            session.engine.record_failure("refused", f"questions that are not stored are refused: {HERE}; {found.what}")
    raise InvalidStudy(f"{HERE}.")


def refuse_difference(study: Study, ledger: Ledger, engine: Engine) -> None:
    """Refuse, to the owner, a curator that differs from the ledger."""
    found = find_difference(study, ledger, engine)
    if found is not None:
        raise found.refusal()


def find_difference(study: Study, ledger: Ledger, engine: Engine, agreed: set[Hashable] | None = None) -> Difference | None:
    """Return in what a curator differs from what the ledger holds; None: it may answer.

    agreed   what was compared before and was the same: entries and settled digests never change
    """
    known = set[Hashable]() if agreed is None else agreed
    declared, version = ledger.declared(study.name), ledger.data_version
    if declared is not None and declared.id not in known:
        if is_declared_otherwise(study, declared):
            return _DECLARED
        known.add(declared.id)
    if engine.version != version:
        what = f"this curator holds data version {engine.version}, and {version} is the current one"
        return Difference(what, "run `curador prepare` here, and open the study again")
    if not engine.ready:
        taken = ledger.prepared_digest(_part(study, _TAKEN), version) is not None and not is_settled(study, ledger)
        return _ELSEWHERE if taken else _ABSENT
    copies = engine.copies
    if not copies or (version, copies[0]) in known:
        return None
    found = _compare(study, ledger, version, copies[0])
    if found is None:
        known.add((version, copies[0]))
    return found


def _compare(study: Study, ledger: Ledger, version: int, own: CopyDigest) -> Difference | None:
    first = ledger.prepared_digest(study.name, version)
    if first is None:
        return _ABSENT
    settled = CopyDigest.read(first)
    if settled is None:
        return _COPY
    if settled.key != own.key:
        return _KEY
    standing = _standing(study, ledger, version, own.layout)
    if standing is None:
        return _SETTINGS
    return None if standing == str(own) else _COPY


def _standing(study: Study, ledger: Ledger, version: int, layout: str) -> str | None:
    """Return the digest that was settled for declarations of this layout."""
    first = ledger.prepared_digest(study.name, version)
    if first is not None and _layout(first) == layout:
        return first
    return ledger.prepared_digest(_part(study, layout), version)


def _layout(text: str) -> str | None:
    settled = CopyDigest.read(text)
    return None if settled is None else settled.layout


def _part(study: Study, name: str) -> str:
    """Return under which name the owner's table holds something else of a study than its first digest."""
    return f"{study.name}\n{name}"

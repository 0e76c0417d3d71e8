"""The way of one question to its answer: tried out, reserve, tally, draw, receipt, commit.

    stored? ──► served, for nothing
    tried out on tables without rows ──► refused: nothing is charged
    reserve ──► engine ──► noise ──► answer, receipt ──► commit      the charge is on disk before any data are read
                  └── failed: the charge is kept, the asker sees an id, the failure is counted
    either is told at a public moment, where the owner set a pace

After `reserve` nothing gives the charge back, and nothing that data could have caused is told.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from curador.curator.answer import Answer, table_digest
from curador.curator.asking import Asking, Ready
from curador.curator.bias import as_shares
from curador.curator.content import decoded, encoded
from curador.curator.pace import Pace
from curador.curator.post import answer_columns
from curador.curator.preview import bounding_notes
from curador.curator.receipt import Charged, make_receipt
from curador.curator.rehearsal import rehearsed, without_rows
from curador.curator.release import release
from curador.errors import CuradorError, Failed, InvalidQuery, InvalidStudy, NotAllowed, Refused, require
from curador.ledger.amounts import NOTHING
from curador.ledger.entry import BEFORE_ALL, Entry, Kind, State, new_id, now
from curador.ledger.ledger import Ledger
from curador.ledger.request import Request
from curador.mechanisms.seam import is_private
from curador.plan.explain import explain

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Generator, Sequence
    from fractions import Fraction

    from curador.curator.post import Column
    from curador.curator.release import Released
    from curador.engines.base import Engine, Tallied
    from curador.ledger.request import Reservation, Stored
    from curador.plan.price import Priced

log = logging.getLogger(__name__)

MOST_TRIED = 1_000
"""Questions that are remembered as tried out."""

KEPT = "the charge is kept and nothing was released"
CHARGING = "interrupted while the question was being charged: the charge may be kept, and nothing was released."
INTERRUPTED = f"interrupted after the question was charged: {KEPT}."
STORING = "interrupted while the answer was being stored: the charge is kept; if it was stored, asking again is free."
ANSWERED = "interrupted after the question was answered: the charge is kept; the same question again is free."


@dataclass(slots=True)
class _Way:
    """What an interrupt must say, by how far the question has come; None: nothing was charged yet."""

    said: str | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """What a question needs on its way: who asks, the ledger, the engine, and one turn at the engine at a time."""

    asking: Asking
    ledger: Ledger
    engine: Engine
    turn: threading.Lock
    pace: Pace = field(default_factory=Pace)
    tried: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    """Texts and keys of questions that went well without rows: trying them again would show the same."""

    def ask(self, ready: Ready, *, fresh: bool) -> Answer:
        """Return the stored answer of an identical question, or draw a new one and pay for it."""
        asked = now()  # before it waits for anybody
        with self.pace.still(self.turn):
            stored = None if fresh else self.stored(ready)
            if stored is not None:
                return self._served(ready, stored, asked)
        return self._asked(ready, asked, fresh=fresh)

    def stored(self, ready: Ready) -> Stored | None:
        """Return the last answer to the identical question on this data version."""
        return self.ledger.stored(ready.key, self.asking.data_version)

    # ---- for nothing ------------------------------------------------------------------------------------------------

    def _served(self, ready: Ready, stored: Stored, asked: str) -> Answer:
        released = decoded(stored.answer, ready.identities, ready.priced)
        parts = _columns(ready, released, ready.confidence)
        digest = table_digest(parts)
        entry = self.ledger.served(stored, self._name, question=ready.text, answer_digest=digest, asked=asked)
        return self._answer(ready, released, parts, self.given_again(entry))

    def given_again(self, entry: Entry) -> Charged:
        """Return what the ledger says of something that was released before: it cost nothing."""
        spent = entry.after.spent if entry.analyst is None else self.ledger.spent(entry.analyst)
        limit, study = self.ledger.limits.share(self.asking.share), (entry.after.spent, entry.after.spent)
        return Charged(entry=entry, cost=NOTHING, limit=limit, before=spent, after=spent, study=study, served=True)

    # ---- for its price ----------------------------------------------------------------------------------------------

    def _asked(self, ready: Ready, asked: str, *, fresh: bool) -> Answer:
        if not is_private():
            raise Failed("noise must come from the operating system's entropy")
        if not self.engine.ready:  # the owner's to mend, and nothing is spent on it
            raise InvalidStudy("the current data version must be prepared.\nHint: the owner runs `curador prepare`.")
        way = _Way()
        try:
            return self._drawn(ready, self._request(ready, asked), way, fresh=fresh)
        except KeyboardInterrupt:
            if way.said is None:
                raise
            raise KeyboardInterrupt(way.said) from None

    def _drawn(self, ready: Ready, request: Request, way: _Way, *, fresh: bool) -> Answer:
        """Try out, charge, read, draw and store, one question at a time.

        A refresh waits, so that the version that is charged is the one that is read. Who waits with the same question finds
        its answer stored and does not pay for it again.
        """
        with self.turn, self.pace.released() as mark:
            require_current(self.ledger, self.asking.data_version)
            stored = None if fresh else self.stored(ready)
            if stored is not None:
                return self._served(ready, stored, request.asked)
            if (ready.text, ready.key) not in self.tried:
                self.try_out(ready, self.engine.rehearse(ready.blocks))
                self._remember(ready)
            way.said = CHARGING
            reservation = self.ledger.reserve(request)
            mark.charged, way.said = True, INTERRUPTED
            with self.kept(reservation):
                released = _released(ready, self.engine.tally(ready.blocks), release)
                content = encoded(ready.identities, released)
                parts = _columns(ready, released, ready.confidence)
                answer = self._answer(ready, released, parts, paid(reservation))
            way.said = STORING
            self.ledger.commit(reservation, answer=content, answer_digest=table_digest(parts))
            way.said = ANSWERED
        return answer

    def try_out(self, ready: Ready, tallied: Sequence[Tallied] | None = None) -> None:
        """Go the whole way once on tables without rows, and refuse what fails: nothing is charged, nothing is read.

        tallied   what the engine gave for them; what any engine would give where it was not asked
        """
        with self.refusing():
            released = _released(ready, tallied or [without_rows(block) for block in ready.blocks], rehearsed)
            again = decoded(encoded(ready.identities, released), ready.identities, ready.priced)
            answer = self._answer(ready, again, _columns(ready, again, ready.confidence), self._imagined(ready))
            json.dumps(answer.receipt.record, allow_nan=False)

    def _remember(self, ready: Ready) -> None:
        self.tried[ready.text, ready.key] = None
        if len(self.tried) > MOST_TRIED:
            del self.tried[next(iter(self.tried))]

    def _imagined(self, ready: Ready) -> Charged:
        """What the ledger would say if this were the first question: for the receipt of a question that is tried out."""
        total = self.ledger.limits.total
        spent = ready.cost.least(total)  # what does not fit is refused by the ledger, with its own sentence
        entry = Entry(
            ledger=self.ledger.id,
            sequence=1,
            previous=BEFORE_ALL,
            time=now(),
            kind=Kind.RESERVED,
            id=new_id(),
            study_digest=self.asking.schema.study.digest,
            data_version=self.asking.data_version,
            after=State(spent, self.asking.data_version, 0),
            analyst=self._name,
        )
        both = (NOTHING, spent)
        return Charged(entry=entry, cost=spent, limit=total, before=NOTHING, after=spent, study=both, served=False)

    @contextlib.contextmanager
    def refusing(self) -> Generator[None]:
        """Before the charge: what fails here fails for the question's sake alone, and is refused under an id."""
        try:
            yield
        except Refused:
            raise
        except Exception as error:  # noqa: BLE001 -- nothing but an id leaves, here too
            incident = self._recorded(error)
            hint = f"ask it in another way; the owner finds the reason under incident {incident}"
            raise InvalidQuery(
                f"the question must be one that can be computed, even without rows; nothing was charged.\nHint: {hint}."
            ) from None

    @contextlib.contextmanager
    def kept(self, reservation: Reservation) -> Generator[None]:
        """After the charge: whatever is raised, data may have caused it, so only an id leaves; nor does the time it took."""
        begun = time.monotonic()
        try:
            yield
        except Exception as error:  # noqa: BLE001 -- see above
            raise self._failed(reservation, error) from None
        finally:
            with contextlib.suppress(Exception):  # an answer does not wait for a log
                self.engine.record_duration(reservation.entry.shown, time.monotonic() - begun)

    def _failed(self, reservation: Reservation, error: Exception) -> Failed:
        """Count the failure and return what the asker sees: that it failed, which is an answer too, and an id."""
        incident = self._recorded(error)
        with contextlib.suppress(CuradorError):  # an unsettled reservation stays charged as well
            self.ledger.fail(reservation, incident=incident)
        return Failed(f"the question could not be answered; {KEPT}. Incident {incident}.")

    def _recorded(self, error: Exception) -> str:
        """Return the id of a failure whose text stands in the owner's log: the engine's own, or a new one."""
        incident = getattr(error, "incident", None)
        if not isinstance(incident, str):
            incident = secrets.token_hex(8)
            with contextlib.suppress(Exception):  # a full disk must not tell more than the failure does
                self.engine.record_failure(incident, "".join(traceback.format_exception(error)))
        # the owner's own debugging log, silent unless the owner turns it on
        log.debug("a question failed", extra={"incident": incident}, exc_info=error)
        return incident

    def _request(self, ready: Ready, asked: str) -> Request:
        study = self.asking.schema.study
        return Request(
            amounts=ready.cost,
            losses=ready.losses,
            study_digest=study.digest,
            data_version=self.asking.data_version,
            question_key=ready.key,
            question=ready.text,
            plan_digest=ready.plan_digest,
            adjacency=study.adjacency,
            tables=ready.tables,
            analyst=self._name,
            share=self.asking.share,
            asked=asked,
        )

    # ---- what is shown ----------------------------------------------------------------------------------------------

    def _answer(
        self, ready: Ready, released: Sequence[Sequence[Released]], parts: tuple[Column, ...], charged: Charged
    ) -> Answer:
        study = self.asking.schema.study
        receipt = make_receipt(
            study,
            self.ledger.limits,
            ready.priced,
            charged,
            question=ready.text,
            plan_digest=ready.plan_digest,
            plan_text="\n".join(explain(one, self.asking.schema) for one in ready.priced),
            answer_digest=table_digest(parts),
        )

        def again(confidence: Fraction) -> tuple[Column, ...]:
            return _columns(ready, released, confidence)

        bias = as_shares(
            [
                column
                for one, own in zip(ready.priced[1:], released[1:], strict=True)
                for column in answer_columns(one, own, ready.confidence)
            ]
        )
        return Answer(
            parts,
            charged.cost,
            receipt,
            charged.served,
            ready.confidence,
            (*ready.notes, *bounding_notes(ready.plan, self.asking.schema)),
            bias,
            again=again,
        )

    @property
    def _name(self) -> str | None:
        return None if self.asking.analyst is None else self.asking.analyst.name


def _released(
    ready: Ready, tallied: Sequence[Tallied], draw: Callable[[Priced, Sequence[Tallied]], list[Released]]
) -> list[list[Released]]:
    """Draw the noise of every plan; the tallies of all of them came from one snapshot."""
    out: list[list[Released]] = []
    start = 0
    for one in ready.priced:
        end = start + len(one.plan.blocks)
        out.append(draw(one, tallied[start:end]))
        start = end
    return out


def _columns(ready: Ready, released: Sequence[Sequence[Released]], confidence: Fraction) -> tuple[Column, ...]:
    return tuple(answer_columns(ready.priced[0], released[0], confidence))


def paid(reservation: Reservation) -> Charged:
    """Return what the ledger says of a reservation: all of it was known before data were read."""
    cost, after = reservation.entry.amounts, reservation.entry.after.spent
    return Charged(
        entry=reservation.entry,
        cost=cost,
        limit=reservation.limit,
        before=reservation.before,
        after=reservation.after,
        study=(after - cost, after),
        served=False,
    )


def require_open(ledger: Ledger, analyst: str | None) -> None:
    """Refuse an analyst while the study is closed; stored answers too, until the owner has looked."""
    if analyst is not None and ledger.closed:
        hint = "the owner looks into the failures and reopens the study"
        raise NotAllowed(f"the study must be open to analysts; it closed after engine failures.\nHint: {hint}.")


def require_current(ledger: Ledger, version: int) -> None:
    """Refuse who holds a data version that is no longer the current one; its stored answers are not given any more."""
    current, hint = ledger.data_version, "the owner declared a new data version; open the study again"
    require(version == current, "data_version", f"the current one ({current})", version, hint)

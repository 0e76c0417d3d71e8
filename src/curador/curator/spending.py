"""The one door for spending: every question and every fit is charged, computed and stored by `spend`, and by nothing else.

    stored before? ──► given again, for nothing
    tried out on tables without rows ──► refused: nothing is charged
    reserve ──► rows, noise ──► what is shown, with its receipt ──► commit      the charge is on disk before any row is read
                  └── failed, or late: the charge is kept, the asker sees an id, the failure is counted
    either is settled and told at public moments, where the owner set a pace

After `reserve` nothing gives the charge back, and nothing that data could have caused is told. Before it nothing depends on
rows. What differs between a question (`asking.py`) and a fit (`training.py`) is a `Purchase`: how it is computed and shown.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import time
import traceback
from typing import TYPE_CHECKING, Protocol, TypeVar

from curador.curator.machines import require_one_truth
from curador.curator.ticket import PLAIN
from curador.errors import CuradorError, Failed, InvalidParameter, InvalidQuery, Refused
from curador.ledger.amounts import NOTHING
from curador.ledger.entry import BEFORE_ALL, AlreadyReserved, Entry, EntryKind, Spent, State, Stored, incident_of, new_id, now
from curador.ledger.writer import PATIENCE
from curador.mechanisms.seam import is_private

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Iterator

    from curador.curator.receipt import Receipt
    from curador.curator.session import Session
    from curador.curator.ticket import Ticket
    from curador.ledger.entry import Request

log = logging.getLogger(__name__)

Value = TypeVar("Value")
Result = TypeVar("Result", bound="Shown")
Result_co = TypeVar("Result_co", bound="Shown", covariant=True)

KEPT = "the charge is kept and nothing was released"
CHARGING = "interrupted while the question was being charged: the charge may be kept, and nothing was released."
INTERRUPTED = f"interrupted after the question was charged: {KEPT}."
STORING = "interrupted while the answer was being stored: the charge is kept; if it was stored, asking again is free."
_POLL = 0.05
ANSWERED = "interrupted after the question was answered: the charge is kept; the same question again is free."


class Shown(Protocol):
    """What the asker gets, with its receipt."""

    @property
    def receipt(self) -> Receipt: ...


class Purchase(Protocol[Value, Result_co]):
    """A question or a fit, planned and priced without data.

    what      "question" or "fit"
    request   its charge
    shape     what its way after the engine depends on, sizes of numbers by their magnitude; None: it has no like
    ticks     how many ticks it has, where answers leave on a clock: a function of the question and the study
    once      whether it is bought once, whoever asks for it at the same time, in whatever process
    """

    @property
    def what(self) -> str: ...
    @property
    def request(self) -> Request: ...
    @property
    def shape(self) -> Hashable | None: ...
    @property
    def once(self) -> bool: ...
    @property
    def ticks(self) -> int: ...

    def try_engine(self) -> None:
        """Do what is tried anew of every question, whatever its shape: the engine's part, and what its receipt says."""
        ...

    def compute(self, *, rehearsal: bool) -> bytes:
        """Read the rows, draw the noise, and return what the ledger keeps of it; in a rehearsal on tables without rows."""
        ...

    def restore(self, content: bytes) -> Value:
        """Return what was released from what the ledger keeps: what an asker sees is made of nothing else."""
        ...

    def digest(self, restored: Value) -> str:
        """Return the digest of what the asker sees of it."""
        ...

    def show(self, restored: Value, digest: str, spent: Spent) -> Result_co:
        """Return what the asker gets, with its receipt."""
        ...


def spend(session: Session, purchase: Purchase[Value, Result], *, fresh: bool = False, ticket: Ticket = PLAIN) -> Result:
    """Return what an identical question or fit gave before, for nothing; or try out, charge, compute, store and return it.

    A few at a time are charged and computed for every worker. A refresh waits, so that the version that is charged is
    the one that is read. Who comes with a question that is being answered waits for its end, finds its answer stored and does
    not pay for it again; if it failed, it is theirs to pay for.

    fresh   compute and pay again although it was stored
    ticket  of a door: an id that was handed over before has the outcome that it had, whatever is fresh; its limits are met
            right before the charge

    Claim   The charge is on disk before any row is read; nothing leaves that is not stored; whatever is raised after the
            charge, interrupts apart, says an id and nothing that rows could have caused. Where the owner set a pace, what
            was charged is settled and leaves at moments that are functions of the question, the study and of who came when.
            One id is charged once, computed by one process and released once, however often it is handed over.
    Needs   `purchase.compute` releases what `purchase.request.losses` account for and nothing else of the rows, and none of
            them in a rehearsal.
    """
    request, ledger = purchase.request, session.ledger
    if session.trial is not None:
        raise AssertionError("a trial is never charged")
    charged = False
    said: str | None = None  # what an interrupt must say, by how far it has come; None: nothing was charged yet
    same = None if fresh else (request.question_key, request.data_version)
    try:
        with session.told(lambda: charged):
            stored = _outcome_before(session, request, ticket) or _look_up(session, request, fresh=fresh)
            if stored is not None:
                return _give_again(session, purchase, stored)
            _require_means(session)
            with session.underway.one(same) as waited:
                stored = _look_up(session, request, fresh=fresh) if waited else None
                if stored is not None:
                    return _give_again(session, purchase, stored)
                with session.turn.asking() as place:
                    stored = _look_up(session, request, fresh=fresh)  # once more: much may have happened meanwhile
                    if stored is not None:
                        return _give_again(session, purchase, stored)
                    _try_once(session, purchase)
                    said = CHARGING
                    reserved = _reserve(session, purchase, fresh=fresh, ticket=ticket)
                    if not isinstance(reserved, Spent):
                        said = None
                        return _give_again(session, purchase, reserved)
                    charged, said = True, INTERRUPTED
                    run = session.pace.begin(lambda: purchase.ticks)
                    with _giving_up(session, reserved), run.left():
                        with _telling_an_id(session, reserved):
                            ticket.charged(reserved.entry)
                            content, digest, shown = run.computed(lambda: _compute(session, purchase, reserved))
                        if not session.pace.tick:
                            place.give_back()
                        said = STORING
                        ledger.commit(reserved, answer=content, answer_digest=digest)
                        said = ANSWERED
    except KeyboardInterrupt:
        if said is None:
            raise
        raise KeyboardInterrupt(said) from None
    return shown


def _try_once(session: Session, purchase: Purchase[Value, Result]) -> None:
    """Refuse what cannot be computed even without rows, unless it, or its like, was tried out before."""
    request = purchase.request
    if (request.question, request.question_key) in session.tried:
        return
    if purchase.shape is None or purchase.shape not in session.tried:
        try_out(session, purchase)
        session.tried.add(purchase.shape)  # None of a fit is never looked up
    else:
        with _refusing_under_an_id(session, purchase.what):
            purchase.try_engine()
    session.tried.add((request.question, request.question_key))


def try_out(session: Session, purchase: Purchase[Value, Result]) -> None:
    """Go the whole way once on tables without rows, and refuse what fails: nothing is charged, nothing is read.

    What fails here fails for the sake of the question or the fit alone, so it is refused under an id. What comes after the
    engine is tried once for all questions of one shape: the rows that a WHERE keeps, and the last digits of a scale, are
    nothing to it.
    """
    with _refusing_under_an_id(session, purchase.what):
        restored = purchase.restore(purchase.compute(rehearsal=True))
        shown = purchase.show(restored, purchase.digest(restored), _imagine_charge(session, purchase.request))
        json.dumps(shown.receipt.record, allow_nan=False)


@contextlib.contextmanager
def _refusing_under_an_id(session: Session, what: str) -> Generator[None]:
    try:
        yield
    except Refused:
        raise
    except Exception as error:  # noqa: BLE001 -- nothing but an id leaves, here too
        incident = _record_failure(session, error)
        hint = f"ask it in another way; the owner finds the reason under incident {incident}"
        rule = f"the {what} must be one that can be computed, even without rows; nothing was charged"
        raise InvalidQuery(f"{rule}.", hint=f"{hint}.") from None


# ---- before the charge ----------------------------------------------------------------------------------------------


def _look_up(session: Session, request: Request, *, fresh: bool) -> Stored | None:
    """Return what was stored for the identical request, unless it must be fresh; refuse a closed study and an old version."""
    session.require_admitted(request.data_version)
    return None if fresh else session.stored(request.question_key, request.data_version)


def _give_again(session: Session, purchase: Purchase[Value, Result], stored: Stored) -> Result:
    """Return what was released before, and record that it was given again: it is the same release and costs nothing."""
    request, ledger = purchase.request, session.ledger
    restored = purchase.restore(stored.answer)
    digest = purchase.digest(restored)
    entry = ledger.served(stored, request.analyst, question=request.question, answer_digest=digest, asked=request.asked)
    spent = entry.after.spent if entry.analyst is None else ledger.spent(entry.analyst)
    limit = ledger.limits.share(request.share)
    return purchase.show(restored, digest, Spent(entry=entry, limit=limit, before=spent, after=spent))


def _outcome_before(session: Session, request: Request, ticket: Ticket) -> Stored | None:
    """Return the answer of what was handed over before under the ticket's id, or raise its failure; None of what is new."""
    before = None if ticket.id is None else session.ledger.outcome(ticket.id)
    return None if before is None else _follow(session, request, before)


def _follow(session: Session, request: Request, own: Entry) -> Stored:
    """Return the answer that a reservation became, or raise its failure: it is the same request, and is charged once.

    Where it is still open somebody else computes it, or was killed: nobody computes it a second time, and at the deadline
    its charge is kept.
    """
    same = (own.kind, own.analyst, own.question_key, own.data_version)
    if same != (EntryKind.RESERVED, request.analyst, request.question_key, request.data_version):
        of = (EntryKind.RESERVED, request.analyst, request.question)
        if (own.kind, own.analyst, own.question) == of and own.data_version < request.data_version:
            hint = "ask with a new key, for a charge of its own, to have an answer on the data as they are now"
            rule = f"the key must be of a question on data version {request.data_version}"
            bought = f"this question was charged with it on version {own.data_version}, and that charge is kept"
            raise InvalidParameter(f"{rule}; {bought}.", hint=f"{hint}.")
        hint = "give a new question a key of its own"
        raise InvalidParameter("the key must be that of the question it was first given with, on the same data.", hint=hint)
    session.require_admitted(request.data_version)
    _await_end(session, own)
    found = session.ledger.end(own.id)
    if found is not None and found[1] is not None:
        return Stored(found[0], found[1])
    incident = None if found is None else incident_of(found[0])
    raise _unanswered(incident or own.shown[:16])


def _reserve(session: Session, purchase: Purchase[Value, Result], *, fresh: bool, ticket: Ticket) -> Spent | Stored:
    """Charge; or return what somebody else bought meanwhile, in this process or in another, and pay nothing.

    Engines are stopped at the deadline. Who has not stored anything by then, and the deadlines of the few before it, was
    killed: that charge is kept, and what it was for is bought anew.
    """
    request, dead = purchase.request, ()
    own = ticket.id or new_id()
    ticket.admit(own, request)
    while True:
        try:
            return session.ledger.reserve(request, once=purchase.once or not fresh, dead=dead, id=own, again=False)
        except (KeyboardInterrupt, Failed):
            session.abandoned.add(own)  # it may have been charged
            raise
        except AlreadyReserved as other:
            if other.entry.id == own:  # it was handed over twice at the same time
                return _follow(session, request, other.entry)
            stored = _await_other(session, request, other.entry)
            if stored is not None:
                ticket.spared(own)
                return stored
            dead = (*dead, other.entry.id)
        except Refused:
            ticket.spared(own)
            raise


def _await_other(session: Session, request: Request, other: Entry) -> Stored | None:
    """Return what somebody else is buying, once it is there; None where it does not come. Nothing is charged here.

    Claim   Who was charged less than `longest` ago is waited for, whenever their question came and whatever clocks on walls
            say; nobody waits longer than that and what settling takes.
    """
    found: Stored | None = None
    for _ in _moments(session, other):
        over = session.ledger.settled(other.id) is not None
        found = session.stored(request.question_key, request.data_version)  # after that look: what was settled is seen here
        if found is not None or over:
            return found
    return found


def _await_end(session: Session, own: Entry) -> None:
    for _ in _moments(session, own):
        if session.ledger.settled(own.id) is not None:
            return


def _moments(session: Session, other: Entry) -> Iterator[None]:
    """Moments to look at what became of a reservation, until nobody settles it any more; the last one is after that."""
    until = session.sightings.since(other, time.monotonic()) + _longest(session)
    while True:
        over = other.id in session.abandoned or time.monotonic() > until
        yield
        if over:
            return
        time.sleep(_POLL)


def _longest(session: Session) -> float:
    """Seconds until what was charged is settled, or never will be."""
    return float(session.study.engine.longest) + PATIENCE


def _require_means(session: Session) -> None:
    """Refuse where noise would not be private, or what is asked about is not what lies here: the owner's to mend."""
    if not is_private():
        raise Failed("noise must come from the operating system's entropy")
    require_one_truth(session)


def _imagine_charge(session: Session, request: Request) -> Spent:
    """What the ledger would say if this were the first charge: for the receipt of what is tried out."""
    total = session.limits.total
    cost = request.amounts.least(total)  # what does not fit is refused by the ledger, with its own sentence
    entry = Entry(
        ledger=session.ledger.id,
        sequence=1,
        previous=BEFORE_ALL,
        time=now(),
        kind=EntryKind.RESERVED,
        id=new_id(),
        study_digest=request.study_digest,
        data_version=request.data_version,
        after=State(cost, request.data_version, 0),
        analyst=request.analyst,
        amounts=cost,
    )
    return Spent(entry=entry, limit=total, before=NOTHING, after=cost)


# ---- after the charge -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _giving_up(session: Session, reserved: Spent) -> Generator[None]:
    """Remember a charge that this process does not settle: whoever asks the same again does not wait for it."""
    try:
        yield
    except BaseException:
        session.abandoned.add(reserved.id)
        raise


@contextlib.contextmanager
def _telling_an_id(session: Session, reserved: Spent) -> Generator[None]:
    """After the charge: whatever is raised, data may have caused it, so only an id leaves."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 -- see above
        raise _settle_failure(session, reserved, error) from None


def _compute(session: Session, purchase: Purchase[Value, Result], reserved: Spent) -> tuple[bytes, str, Result]:
    """Return what the ledger will keep, the digest of what is seen of it, and what is shown; its time is for the owner."""
    begun = time.monotonic()
    try:
        content = purchase.compute(rehearsal=False)
        restored = purchase.restore(content)
        digest = purchase.digest(restored)
        return content, digest, purchase.show(restored, digest, reserved)
    finally:
        with contextlib.suppress(Exception):  # an answer does not wait for a log
            session.engine.record_duration(reserved.entry.shown, time.monotonic() - begun)


def _settle_failure(session: Session, reserved: Spent, error: Exception) -> Failed:
    """Count the failure and return what the asker sees: that it failed, which is an answer too, and an id."""
    incident = _record_failure(session, error)
    with contextlib.suppress(CuradorError):  # an unsettled reservation stays charged as well
        session.ledger.fail(reserved, incident=incident)
    return _unanswered(incident)


def _unanswered(incident: str) -> Failed:
    return Failed(f"the question could not be answered; {KEPT}. Incident {incident}.")


def _record_failure(session: Session, error: Exception) -> str:
    """Return the id of a failure whose text stands in the owner's log: the engine's own, or a new one."""
    incident = getattr(error, "incident", None)
    if not isinstance(incident, str):
        incident = secrets.token_hex(8)
        with contextlib.suppress(Exception):  # a full disk must not tell more than the failure does
            session.engine.record_failure(incident, "".join(traceback.format_exception(error)))
    # the owner's own debugging log, silent unless the owner turns it on
    log.debug("a question failed", extra={"incident": incident}, exc_info=error)
    return incident

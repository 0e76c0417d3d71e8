"""The rules that every store of a ledger keeps, whatever database is behind it."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.errors import LedgerBusy
from curador.ledger.amounts import NOTHING, Amounts
from curador.ledger.entry import BEFORE_ALL, Entry, EntryKind, State, holder_of, new_id, next_entry, now, row_of, seal
from curador.testing.findings import require_conforming

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from curador.ledger.store import Page, Store

PLAN = hashlib.sha256(b"plan").hexdigest()
ANSWER = b"an answer"
ONE = Amounts.cost(epsilon=Fraction(1))
HALF = Amounts.cost(epsilon=Fraction(1, 2))
QUARTER = Amounts.cost(epsilon=Fraction(1, 4))


class _Given(Exception):  # noqa: N818 -- nothing failed: it is what the suite raises to leave a change in its middle
    """Raised by the suite inside a change."""


def check_ledger_store(open_store: Callable[[], Store]) -> None:  # noqa: PLR0915 -- nine rules on the same two stores
    """Raise NonconformingError, with a sentence a rule, unless the store keeps every rule that a ledger rests on.

    open_store   opens one and the same new ledger each time it is called: the tables are made, no entry is written

    Rules: what was written is read back, by every way it is found, also after closing and opening again; a change that fails
    leaves nothing behind; a reader sees one moment, and nothing of a change that is not complete; one writer at a time, and
    who does not wait is told LedgerBusy; entries and answers are never changed or removed; a reservation is settled once;
    every kind of entry is let in, and is found by its kind; totals stay within their limits. What happens when processes are
    killed is for tests with real processes.
    """
    store = open_store()
    other = open_store()

    def what_was_written_is_read_back() -> Iterator[str]:
        first = _first()
        with store.writing() as page:
            _write(page, first)
            page.put_total("study", NOTHING, ONE)
        asked = _after(store, EntryKind.RESERVED, question_key="key", amounts=HALF)
        with store.writing() as page:
            _charge(page, asked)
        answered = _after(store, EntryKind.COMMITTED, question_key="key", refers=asked.id)
        with store.writing() as page:
            _write(page, answered)
            page.keep(answered, ANSWER)
        for place, seen in (("it", store), ("another store of the ledger", other)):
            yield from (
                f"{what} must be read as it was written, through {place}" for what in _differences(seen, first, asked)
            )

    def a_change_that_fails_leaves_nothing() -> Iterator[str]:
        before = store.tip()
        lost = _after(store, EntryKind.RESERVED, amounts=HALF)
        with contextlib.suppress(_Given), store.writing() as page:
            _charge(page, lost)
            raise _Given
        with store.reading() as page:
            if store.tip() != before or page.named(lost.id) is not None or page.total("study") != HALF:
                yield "a change that ends in an error must leave nothing behind"

    def a_reader_sees_one_moment() -> Iterator[str]:
        added = _after(store, EntryKind.RESERVED)
        with other.reading() as page:
            before = page.tip()
            with store.writing() as change:
                _write(change, added)
                with _reading_elsewhere(open_store) as elsewhere:
                    if elsewhere.named(added.id) is not None:
                        yield "a change that is not complete must not be seen"
            if page.tip() != before or page.named(added.id) is not None:
                yield "what is read inside one block must be one moment: a change showed in its middle"
        if other.tip()[0] != added.sequence:
            yield "a change must be seen as soon as its block is left"

    def one_writer_at_a_time() -> Iterator[str]:
        with store.writing():
            try:
                with other.writing(patience=0.0):
                    yield "two writers at once must be impossible: the second one was let in"
            except LedgerBusy:
                pass
        with other.writing(patience=0.0) as page:
            page.tip()

    def nothing_is_written_over() -> Iterator[str]:
        statements = (
            "UPDATE entry SET kind = 'voided'",
            "DELETE FROM entry",
            "UPDATE answer SET question_key = 'x'",
            "DELETE FROM answer",
        )
        for statement in statements:
            if not _refuses(store, lambda page, text=statement: page.cursor.execute(text)):
                yield f"what was written must stay: {statement} was possible"

    def entries_are_unique() -> Iterator[str]:
        with store.reading() as page:
            asked, settled = page.at(1), page.at(2)
        if asked is None or settled is None:
            yield "entries must be found by their sequence"
            return
        again = _after(store, EntryKind.FAILED, refers=asked.id)
        if not _refuses(store, lambda page: _write(page, again)):
            yield "a reservation must be settled once: a second end was written"
        same = _after(store, EntryKind.RESERVED, id=asked.id)
        if not _refuses(store, lambda page: _write(page, same)):
            yield "an id must be that of one entry"
        place = _after(store, EntryKind.RESERVED, sequence=1)
        if not _refuses(store, lambda page: _write(page, place)):
            yield "a sequence must be that of one entry"

    def every_kind_is_let_in() -> Iterator[str]:
        for kind in EntryKind:

            def add(page: Page, kind: EntryKind = kind) -> None:
                begun = next_entry(page.head(), EntryKind.RESERVED)
                if kind.settles:
                    _write(page, begun)
                refers = begun.id if kind.settles else None
                _write(page, replace(next_entry(page.head(), kind), details={}, refers=refers))

            if _refuses(store, add):
                yield f"every kind of entry must be let in: {kind.value} was not"
        with store.writing() as page:
            failed, given = _after(store, EntryKind.RESERVED, question_key="once"), []
            for kind in (EntryKind.FAILED, EntryKind.VOIDED):
                _write(page, failed)
                given.append(page.standing("once", 1))
                _write(page, replace(next_entry(page.head(), kind), refers=failed.id, question_key="once"))
                given.append(page.standing("once", 1))
                given.append(page.standing("once", 1, end=failed.sequence + 1))
                failed = replace(next_entry(page.head(), EntryKind.RESERVED), question_key="once")
            if [one is None for one in given] != [False, True, True, False, True, True]:
                yield "a reservation stands while it is open, and not after it failed or was given back"

    def totals_stay_within_their_limits() -> Iterator[str]:
        above = _after(store, EntryKind.RESERVED, amounts=ONE)
        if not _refuses(store, lambda page: _charge(page, above)):
            yield "a total above its limit must be impossible"
        small = _after(store, EntryKind.RESERVED, amounts=HALF, analyst="somebody")
        if not _refuses(store, lambda page: _charge(page, small, share=QUARTER)):
            yield "a new total above its limit must be impossible"
        begun = _after(store, EntryKind.RESERVED, amounts=HALF)
        with store.writing() as page:
            _charge(page, begun)
            voided = replace(next_entry(page.head(), EntryKind.VOIDED), amounts=HALF, refers=begun.id)
            page.give_back("study", HALF)
            page.give_back("owner", HALF)
            _write(page, replace(voided, after=State(HALF, 1, 0)))
        with other.reading() as page:
            if page.total("study") != HALF or page.totals() != {"study": HALF, "owner": HALF}:
                yield "what is given back must be off the total"

    def what_was_written_stays() -> Iterator[str]:
        tip = store.tip()
        store.close()
        other.close()
        opened = open_store()
        try:
            with opened.reading() as page:
                stored = page.stored("key", 1)
                if page.tip() != tip or stored is None or stored[1] != ANSWER:
                    yield "what was written must be there after closing and opening again"
        finally:
            opened.close()

    require_conforming(
        type(store).__name__,
        (
            what_was_written_is_read_back,
            a_change_that_fails_leaves_nothing,
            a_reader_sees_one_moment,
            one_writer_at_a_time,
            nothing_is_written_over,
            entries_are_unique,
            every_kind_is_let_in,
            totals_stay_within_their_limits,
            what_was_written_stays,
        ),
    )


def _first() -> Entry:
    state = State(NOTHING, 1, 0)
    return Entry(
        ledger=new_id(),
        sequence=0,
        previous=BEFORE_ALL,
        time=now(),
        kind=EntryKind.CREATED,
        id=new_id(),
        study_digest=PLAN,
        data_version=1,
        after=state,
        creation={},
    )


def _after(store: Store, kind: EntryKind, **changes: Any) -> Entry:
    """Return an entry that follows the last one; one that reserves says what is spent with it."""
    with store.reading() as page:
        made = replace(next_entry(page.head(), kind), **changes)
    return replace(made, after=replace(made.after, spent=made.after.spent + made.amounts))


def _charge(page: Page, entry: Entry, share: Amounts = ONE) -> None:
    """Write a reservation and both sums that it moves, as a ledger does."""
    holder = holder_of(entry.analyst)
    own = page.total(holder)
    _write(page, entry)
    page.put_total("study", entry.after.spent, ONE)
    page.put_total(holder, own + entry.amounts, share)


def _write(page: Page, entry: Entry) -> None:
    whole, text = seal(entry)
    page.append(row_of(whole, text))


def _differences(store: Store, first: Entry, asked: Entry) -> Iterator[str]:
    """Yield what is not found as `what_was_written_is_read_back` wrote it."""
    with store.reading() as page:
        found = page.entries(0)
        if [entry.id for entry in found[:2]] != [first.id, asked.id] or len(found) != 3:
            yield "entries in their order"
        if [entry.sequence for entry in page.entries_of(0, None)] != [0, 1, 2] or page.entries_of(0, "ana"):
            yield "entries of one asker"
        if page.named(asked.id) != page.at(1) or page.named(new_id()) is not None or page.at(99) is not None:
            yield "an entry by id and by sequence"
        if page.head() != found[-1] or page.tip() != store.tip() or page.tip()[1] != found[-1].hash:
            yield "the last entry"
        if page.settled(asked.id) != EntryKind.COMMITTED.value or page.settled(first.id) is not None:
            yield "how a reservation ended"
        if list(page.of_kind(EntryKind.RESERVED)) != [page.at(1)] or list(page.of_kind(EntryKind.RESERVED, after=1)):
            yield "entries of one kind, from a sequence on"
        if page.standing("key", 1) != page.at(1) or page.standing("key", 2) or page.standing("other", 1):
            yield "the reservation of a question that stands"
        if page.stored("key", 1) != (2, ANSWER) or page.stored("key", 2) or page.stored("other", 1):
            yield "an answer by its question and version"
        if list(page.answers()) != [(2, "key", 1, ANSWER)]:
            yield "all answers"
        if page.total("study") != HALF or page.totals() != {"study": HALF, "owner": HALF} or page.total("nobody") != NOTHING:
            yield "totals"


@contextlib.contextmanager
def _reading_elsewhere(open_store: Callable[[], Store]) -> Generator[Page]:
    store = open_store()
    try:
        with store.reading() as page:
            yield page
    finally:
        store.close()


def _refuses(store: Store, change: Callable[[Page], object]) -> bool:
    """Whether the change raises, in which case nothing of it stays; where it does not, it is undone as well."""
    try:
        with store.writing() as page:
            change(page)
            raise _Given  # noqa: TRY301 -- leaves the change in its middle
    except _Given:
        return False
    except Exception:  # noqa: BLE001 -- a driver's own error, or ours
        return True

"""Seeded bugs: each breaks one rule of the ledger, as ledgers have been broken before; some of them were ours.

A bug is a function of a monkeypatch and of the rules of the simulated database. Some seed must find each of them.
"""

# ruff: noqa: SLF001, ARG005 -- a bug breaks what is private, and looks at less

import contextlib
import dataclasses
import datetime as dt

from simulated_product import STAGE

from curador.curator import spending
from curador.errors import CuradorError, Failed, LedgerBusy
from curador.ledger import acts, opening, witness, writer
from curador.ledger import ledger as ledgers
from curador.ledger.acts import Reserve, Serve, Settle
from curador.ledger.entry import STUDY, EntryKind, holder_of, new_id
from curador.ledger.ledger import Ledger
from curador.ledger.witness import Head, WitnessedHead, WitnessSlots
from curador.ledger.writer import PATIENCE, Writer


def _wrapped(patch, owner, name, change):
    plain = getattr(owner, name)
    patch.setattr(owner, name, lambda *given, **named: change(plain, *given, **named))


class _Page:
    """A page with some methods of another kind."""

    def __init__(self, page, **changes):
        self.__dict__.update(changes)
        self._page = page

    def __getattr__(self, name):
        return getattr(self._page, name)


# ---- the writer ----------------------------------------------------------------------------------------------------------


def _writes(patch, *, inside=lambda *_: None, after=lambda *_: None, mirrors=True, always=True):
    """A writer whose batches go another way: `inside` the transaction, and `after` it, before the witness."""

    def write(self, batch, patience):
        counted, self._counted = self._counted, {}
        try:
            witnessed = self._look()
            with self._store.writing(patience=patience) as page:
                self._refuse_what_forgot(page, witnessed)
                begun = page.tip()[0]
                for ticket in batch:
                    self._perform(page, ticket)
                for serve in counted.values():
                    self._perform(page, writer.Waiter(serve, 0.0))
                head = page.tip()
                inside(self, batch, head)
        except LedgerBusy:
            raise
        except Exception as error:  # noqa: BLE001 -- as the product
            for ticket in batch:
                ticket.end(writer._instead(error, ticket.act))
            return
        self._seen = head[0]
        after(self, batch, head)
        try:
            if mirrors and (always or head[0] > begun):
                self._mirror(*head)
        except (OSError, CuradorError) as error:
            for ticket in batch:
                ticket.end(ticket.error or writer._unwitnessed(error))
            return
        for ticket in batch:
            ticket.end()

    patch.setattr(Writer, "_write", write)


def _tell(_writer, batch, _head):
    for ticket in batch:
        ticket.end()


def told_before_the_commit(patch, rules):
    """Everybody is told when the acts were done, before they are on disk."""
    _writes(patch, inside=_tell)


def told_before_the_witness(patch, rules):
    """Everybody is told when the transaction is on disk, before the witness is."""
    _writes(patch, after=_tell)


def witness_before_commit(patch, rules):
    """The witness knows of entries that may never be there."""

    def mirror(own, _batch, head):
        try:
            own._mirror(*head)
        except OSError:
            raise Failed("the witness could not be written.") from None

    _writes(patch, inside=mirror, mirrors=False)


def no_witness(patch, rules):
    """The witness is never written."""
    _writes(patch, mirrors=False)


def found_again_without_witness(patch, rules):
    """Where nothing is new, the witness is not written: what is found again may have been left by one who was killed."""
    _writes(patch, always=False)


def judged_by_what_was_before_the_batch(patch, rules):
    """Every reservation of a batch is judged by the sums before the batch; and the tables let everything pass."""
    rules.check = False
    plain = acts.refuse_what_does_not_fit

    def judge(limits, request, *, total, own, limit):
        del total, own
        from simulated_product import STAGE

        page = STAGE.world.committed_page()
        plain(limits, request, total=page.total(STUDY), own=page.total(holder_of(request.analyst)), limit=limit)

    patch.setattr(acts, "refuse_what_does_not_fit", judge)


def no_judge_and_no_check(patch, rules):
    """Nobody judges whether there is room."""
    rules.check = False
    patch.setattr(acts, "refuse_what_does_not_fit", lambda *_, **__: None)


def no_savepoint(patch, rules):
    """What a poisoned request wrote stays."""

    def perform(self, page, ticket):
        try:
            ticket.outcome = ticket.act.perform(page, page.head(), self._limits, again=ticket.again)
        except Exception as error:  # noqa: BLE001 -- as the product
            ticket.error = self._store.explain(error) or error

    patch.setattr(Writer, "_perform", perform)


def settlements_last(patch, rules):
    """Settlements wait behind new reservations."""
    _wrapped(patch, Writer, "_take", lambda plain, own: plain(own)[::-1])


def one_at_a_time_as_they_come(patch, rules):
    """Batches of one, in the order of arrival: a settlement waits behind everybody."""

    def take(self):
        ticket = self._waiting.popleft()
        self._batch = [ticket]
        return self._batch

    patch.setattr(Writer, "_take", take)


def forgets_what_it_saw(patch, rules):
    """A ledger that was set back under a running process is written to."""
    patch.setattr(Writer, "_refuse_what_forgot", lambda *_: None)


def forgets_what_others_saw(patch, rules):
    """A process that was idle writes to a ledger that forgot what others had written: it does not ask the witness."""
    patch.setattr(WitnessSlots, "look", lambda _: None)


def unknown_is_nothing(patch, rules):
    """Who loses patience is told that nothing was spent, also when somebody is writing it."""

    def wait(self, ticket):
        if not ticket.told.wait(max(ticket.until - writer.time.monotonic(), 0)):
            self._withdraw(ticket)
            ticket.end(LedgerBusy("nothing was spent."))

    patch.setattr(Writer, "_wait", wait)


def retry_that_gave_up_is_nothing(patch, rules):
    """A request that was handed over again and lost its patience is told that nothing was spent."""
    plain = writer._too_late
    patch.setattr(writer, "_too_late", lambda ticket: plain(dataclasses.replace(ticket, again=False)))


def broken_batch_is_nothing(patch, rules):
    """A batch whose commit broke is told that nothing was spent."""
    patch.setattr(
        writer, "_instead", lambda error, act: Failed("failed.") if act.charged else LedgerBusy("nothing was spent.")
    )


def withdrawn_though_taken(patch, rules):
    """Who gives up is told that nothing was spent, though somebody took it and writes it."""
    _wrapped(patch, Writer, "_withdraw", lambda plain, own, ticket: ticket in own._batch or plain(own, ticket))


def put_back_as_new(patch, rules):
    """What an interrupt puts back is done once more, as if it had not been done."""
    plain = Writer._put_back

    def put_back(self, tickets):
        held = list(tickets)
        plain(self, held)
        for ticket in held:
            ticket.again = False

    patch.setattr(Writer, "_put_back", put_back)


# ---- acts ----------------------------------------------------------------------------------------------------------------


def retry_without_its_id(patch, rules):
    """A request that is handed over again is not looked for."""
    _wrapped(
        patch,
        Reserve,
        "perform",
        lambda plain, act, page, head, limits, *, again: plain(act, page, head, limits, again=False),
    )


def retry_is_charged_again(patch, rules):
    """A request that is handed over again is a new one."""

    def perform(plain, act, page, head, limits, *, again):
        own = dataclasses.replace(act, id=new_id()) if again and page.named(act.id) is not None else act
        return plain(own, page, head, limits, again=False)

    _wrapped(patch, Reserve, "perform", perform)


def settled_again(patch, rules):
    """A settlement that is handed over again is not looked for."""
    _wrapped(
        patch, Settle, "perform", lambda plain, act, page, head, limits, *, again: plain(act, page, head, limits, again=False)
    )


def failure_gives_back(patch, rules):
    """A question whose engine failed costs nothing."""

    def perform(plain, act, *given, **named):
        kind = EntryKind.VOIDED if act.kind is EntryKind.FAILED else act.kind
        return plain(dataclasses.replace(act, kind=kind), *given, **named)

    _wrapped(patch, Settle, "perform", perform)


def served_is_charged(patch, rules):
    """An answer that is given again is counted as a charge."""

    def perform(plain, act, page, *given, **named):
        made = plain(act, page, *given, **named)
        limit = given[1].total
        page.put_total(STUDY, (page.total(STUDY) + act.own.amounts).least(limit), limit)
        return made

    _wrapped(patch, Serve, "perform", perform)


def dead_is_given_back(patch, rules):
    """A reservation that somebody gave up waiting for counts no longer."""

    def perform(plain, act, page, head, limits, *, again):
        dead = page.named(act.dead[-1]) if act.dead else None
        if dead is not None:
            page.give_back(STUDY, page.total(STUDY) - dead.amounts)
            head = dataclasses.replace(head, after=dataclasses.replace(head.after, spent=head.after.spent - dead.amounts))
        return plain(act, page, head, limits, again=again)

    _wrapped(patch, Reserve, "perform", perform)


def given_back_after_a_restart(patch, rules):
    """Whoever holds a reservation may give it back."""
    patch.setattr(Ledger, "void", lambda own, spent: own._settle(Settle(EntryKind.VOIDED, spent.entry)))


def given_back_twice(patch, rules):
    """A reservation that was settled is settled again; and the tables let it pass."""
    rules.unique = False
    given_back_after_a_restart(patch, rules)
    _wrapped(
        patch,
        Settle,
        "perform",
        lambda plain, act, page, *given, **named: plain(act, _Page(page, settled=lambda _: None), *given, **named),
    )


def holder_not_counted(patch, rules):
    """The asker's own sum is not written."""

    def perform(plain, act, page, *given, **named):
        def put_total(holder, *what):
            if holder == STUDY:
                page.put_total(holder, *what)

        return plain(act, _Page(page, put_total=put_total), *given, **named)

    _wrapped(patch, Reserve, "perform", perform)


def shares_ignored(patch, rules):
    """An analyst may spend what is left of the study; and the tables let it pass."""
    rules.check = False
    plain = acts.refuse_what_does_not_fit

    def judge(limits, request, *, total, own, limit):
        del limit
        plain(limits, request, total=total, own=own, limit=limits.total)

    patch.setattr(acts, "refuse_what_does_not_fit", judge)


def any_version(patch, rules):
    """A question about data that are no longer current is charged."""
    plain = acts.admits
    for module in (acts, ledgers):
        patch.setattr(module, "admits", lambda head, analyst, _version: plain(head, analyst, head.after.data_version))


def closed_study_admits(patch, rules):
    """Failures close nothing."""
    plain = acts.admits
    for module in (acts, ledgers):
        patch.setattr(module, "admits", lambda head, _analyst, version: plain(head, None, version))


def commit_forgets_failures(patch, rules):
    """A question that is answered makes failures undone."""

    def perform(plain, act, page, head, limits, *, again):
        if act.kind is EntryKind.COMMITTED:
            head = dataclasses.replace(head, after=dataclasses.replace(head.after, failures=0))
        return plain(act, page, head, limits, again=again)

    _wrapped(patch, Settle, "perform", perform)


def once_ignored(patch, rules):
    """What is bought once is bought by everybody who asks at the same time."""
    _wrapped(
        patch,
        Reserve,
        "perform",
        lambda plain, act, *given, **named: plain(dataclasses.replace(act, once=False), *given, **named),
    )


def dead_though_committed(patch, rules):
    """Who waited looks for the answer first and for the settlement then: what is committed in between is bought again."""

    def wait(session, request, other):
        patience = spending.time.monotonic() + float(session.study.engine.longest)
        while True:
            stored = session.stored(request.question_key, request.data_version)
            if stored is not None:
                return stored
            if spending.time.monotonic() > patience or session.ledger.settled(other.id) is not None:
                return None
            spending.time.sleep(0.05)

    patch.setattr(spending, "_await_other", wait)
    _wrapped(
        patch,
        Reserve,
        "perform",
        lambda plain, act, page, *given, **named: plain(act, _Page(page, settled=lambda _: None), *given, **named),
    )


def deadline_since_the_question_came(patch, rules):
    """Who waited long for a turn, or whose clock jumped, is taken for dead as soon as it is charged."""

    def seen(session, request, other):
        age = (STAGE.world.scheduler.today() - dt.datetime.fromisoformat(other.time)).total_seconds()
        patch.setattr(session.sightings, "since", lambda _charge, now: now - age - PATIENCE)
        return plain(session, request, other)

    plain = spending._await_other
    patch.setattr(spending, "_await_other", seen)


# ---- the witness ---------------------------------------------------------------------------------------------------------


def _remembers(patch, *, newer=False, syncs=True, others=True):
    """A witness that is written in another way: over the newer slot, without a sync, whatever others left."""

    def remember(self, handle, sequence, hash_):
        os = witness.os
        with witness._locked(handle):
            slots = [witness.read_slot(os.pread(handle, witness.SLOT, place * witness.SLOT)) for place in (0, 1)]
            seen = [-1 if one is None else one.head.sequence for one in slots]
            if others:
                os.fdatasync(handle)
            if max(seen) < sequence:
                place = seen.index(max(seen) if newer else min(seen)) * witness.SLOT
                witness._write_all(handle, witness.slot_of(self.ledger, sequence, hash_), place)
                if syncs:
                    os.fdatasync(handle)
            return True

    patch.setattr(WitnessSlots, "_remember", remember)


def newer_slot_is_written(patch, rules):
    """What is written goes over the newer slot."""
    _remembers(patch, newer=True)


def witness_not_synced(patch, rules):
    """The witness is written and not synced."""
    _remembers(patch, syncs=False, others=False)


def slots_of_the_killed(patch, rules):
    """What another process left in the cache counts as seen, and is not synced first."""
    _remembers(patch, others=False)


def witness_not_written_when_busy(patch, rules):
    """While another process writes the witness, nobody waits for it."""
    plain = WitnessSlots.remember

    def remember(self, *head):
        if self.path.disk.names[self.path.name].holder is None:
            plain(self, *head)

    patch.setattr(WitnessSlots, "remember", remember)


def renewed_by_everybody(patch, rules):
    """A witness of version 1 is replaced by everybody who finds it."""

    def renew(self):
        seen = witness.recall(self.path)
        witness.make(self.path, self.ledger, *seen.head, replace=True)

    patch.setattr(WitnessSlots, "_renew", renew)


def no_checksum(patch, rules):
    """A slot is believed as it is."""

    def read_slot(content):
        try:
            body = witness.json.loads(content)
            return WitnessedHead(body["ledger"], Head(body["sequence"], body["hash"]))
        except (ValueError, KeyError, TypeError):
            return None

    patch.setattr(witness, "read_slot", read_slot)
    patch.setattr(opening, "ask_the_witness", _ask_without_hash)


def _ask_without_hash(page, places, ledger_id, *, excused):
    seen, (last, _) = witness.recall(places.witness), page.tip()
    if seen is None or seen.ledger != ledger_id or seen.head.sequence > last or (seen.torn and seen.head.sequence == last):
        raise opening.InvalidStudy("the ledger is behind its witness.")
    return seen.head.sequence


def hash_not_compared(patch, rules):
    """A ledger of another history that is long enough is opened."""
    patch.setattr(opening, "ask_the_witness", _ask_without_hash)


def torn_and_equal_is_opened(patch, rules):
    """A ledger that is where the older slot is, with the newer one torn, is opened."""
    _wrapped(
        patch,
        witness,
        "_read",
        lambda plain, content: (found := plain(content)) and dataclasses.replace(found, torn=False),
    )


def both_torn_is_opened(patch, rules):
    """A witness that cannot be read is taken for a new one."""

    def read(plain, content):
        from simulated_world import LEDGER, beginning

        return plain(content) or WitnessedHead(LEDGER, Head(0, beginning()[1].hash))

    _wrapped(patch, witness, "_read", read)


def slots_of_two_ledgers(patch, rules):
    """Of two slots the newer one holds, whosever the other one is."""

    def read(plain, content):
        slots = [witness.read_slot(content[place : place + witness.SLOT]) for place in (0, witness.SLOT)]
        whole = [one for one in slots if one is not None]
        return max(whole, key=lambda one: one.head.sequence) if len({one.ledger for one in whole}) > 1 else plain(content)

    _wrapped(patch, witness, "_read", read)


def witness_not_asked(patch, rules):
    """A ledger that was set back is opened: nobody asks the witness."""
    patch.setattr(opening, "ask_the_witness", lambda page, *_, **__: page.tip()[0])


def witness_may_be_gone(patch, rules):
    """A ledger without its witness is opened."""
    _wrapped(patch, opening, "ask_the_witness", lambda plain, *given, excused: plain(*given, excused=True) or 0)


# ---- the store and the door ----------------------------------------------------------------------------------------------


def synchronous_normal(patch, rules):
    """Commits are said to be done before they are on disk."""
    rules.sync = False


def two_writers_without_a_lock(patch, rules):
    """Two writers write at once, and the tables let everything pass."""
    rules.lock = rules.unique = rules.check = False


def uncommitted_is_seen(patch, rules):
    """Readers see what is being written."""
    rules.isolated = False


def found_and_not_synced(patch, rules):
    """What a killed writer left in the log counts as written when somebody finds it."""
    rules.found = False


def rows_before_the_charge(patch, rules):
    """The engine is started while the charge is being written."""

    def reserve(plain, session, purchase, **said):
        purchase.compute(rehearsal=False)
        return plain(session, purchase, **said)

    _wrapped(patch, spending, "_reserve", reserve)


def released_though_not_stored(patch, rules):
    """An answer leaves although its commit failed."""

    def commit(plain, *given, **named):
        with contextlib.suppress(Failed):
            return plain(*given, **named)

    _wrapped(patch, Ledger, "commit", commit)


BUGS = [
    told_before_the_commit,
    told_before_the_witness,
    witness_before_commit,
    no_witness,
    found_again_without_witness,
    judged_by_what_was_before_the_batch,
    no_judge_and_no_check,
    no_savepoint,
    settlements_last,
    one_at_a_time_as_they_come,
    forgets_what_it_saw,
    forgets_what_others_saw,
    unknown_is_nothing,
    retry_that_gave_up_is_nothing,
    broken_batch_is_nothing,
    withdrawn_though_taken,
    put_back_as_new,
    retry_without_its_id,
    retry_is_charged_again,
    settled_again,
    failure_gives_back,
    served_is_charged,
    dead_is_given_back,
    given_back_after_a_restart,
    given_back_twice,
    holder_not_counted,
    shares_ignored,
    any_version,
    closed_study_admits,
    commit_forgets_failures,
    once_ignored,
    dead_though_committed,
    deadline_since_the_question_came,
    newer_slot_is_written,
    witness_not_synced,
    slots_of_the_killed,
    witness_not_written_when_busy,
    renewed_by_everybody,
    no_checksum,
    hash_not_compared,
    torn_and_equal_is_opened,
    both_torn_is_opened,
    slots_of_two_ledgers,
    witness_not_asked,
    witness_may_be_gone,
    synchronous_normal,
    two_writers_without_a_lock,
    uncommitted_is_seen,
    found_and_not_synced,
    rows_before_the_charge,
    released_though_not_stored,
]

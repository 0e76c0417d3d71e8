"""Nothing that an analyst sees tells how long data were read: no later time, no order, no hash of either."""

from __future__ import annotations

import datetime as dt
import json
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from curator_studies import BY_CITY, COUNT, open_curator

from curador.curator.budget import log_table
from curador.curator.session import Session
from curador.errors import Failed
from curador.ledger import acts
from curador.ledger import entry as entries
from curador.ledger.entry import seal
from curador.text import plain_text

OPAQUE = {"id", "hash", "refers"}
"""Random, or a digest of what is."""


class Clock:
    """Time that passes when it is told to."""

    def __init__(self):
        self.time = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)

    def pass_(self, seconds):
        self.time += dt.timedelta(seconds=seconds)

    def now(self, _zone):
        return self.time


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(entries, "dt", SimpleNamespace(datetime=made, UTC=dt.UTC))
    return made


def told(value):
    """The value with what is random left out."""
    if isinstance(value, dict):
        return {name: told(one) for name, one in value.items() if name not in OPAQUE}
    return [told(one) for one in value] if isinstance(value, list) else value


def seen(folder, clock, seconds):
    """Everything that ana sees of two answers, one given again, and a failure, if data are read for so many seconds."""
    folder.mkdir()
    with open_curator(folder) as curator:
        engine, ana = curator._session.engine, curator.analyst("ana")  # noqa: SLF001 -- the engine has no other door
        engine.before = lambda: clock.pass_(seconds)
        answers = [ana.ask(COUNT, spend="5%"), ana.ask(BY_CITY, spend="5%"), ana.ask(COUNT, spend="5%")]
        engine.problem = RuntimeError("late")
        with pytest.raises(Failed):
            ana.ask(COUNT, spend="6%")
        receipts = [
            {name: one for name, one in answer.receipt.record.items() if name != "answer_digest"} for answer in answers
        ]
        lines = [{**line, "note": str(line["note"]).partition(";")[2]} for line in ana.log()]
        return (
            told(receipts),
            told(lines),
            told(ana.budget.to_dict()),
            plain_text(log_table(ana.log())),
            list(engine.durations),
        )


@pytest.mark.slow
def test_what_an_analyst_sees_is_the_same_however_long_data_were_read(tmp_path, clock):
    """But for the moments at which questions arrive, everything is the same for 0 and for 17 seconds."""
    fast = seen(tmp_path / "fast", clock, 0)
    clock.time = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    with_waits = seen(tmp_path / "slow", clock, 17)
    arrivals = [f"2030-01-01T00:00:{17 * place:02d}+00:00" for place in range(3)]

    def at_once(value):
        text = json.dumps(value, ensure_ascii=False)
        for moment in arrivals:
            text = text.replace(moment, arrivals[0])
        return text

    assert [line["time"] for line in with_waits[1]] == [arrivals[place] for place in (0, 0, 1, 1, 2, 2, 2)]
    assert [one["time"] for one in with_waits[0]] == arrivals
    for one, other in zip(fast[:3], with_waits[:3], strict=True):
        assert at_once(one) == at_once(other)
    assert len(fast[4]) == len(with_waits[4]) == 3  # the owner knows


def test_the_owner_knows_how_long_it_took_by_the_id_of_the_receipt(tmp_path):
    """The real duration is outside the chain, under the id that the receipt shows."""
    with open_curator(tmp_path) as curator:
        answer = curator.ask(COUNT, spend="5%")
        assert list(curator._session.engine.durations) == [answer.receipt["id"]]  # noqa: SLF001 -- idem


def test_who_waited_for_another_question_has_the_time_at_which_it_arrived(tmp_path, clock, monkeypatch):
    """The second of two equal questions is served when the first is ready: when that was, its entry does not say."""
    looked = threading.Semaphore(0)
    stored = Session.stored

    def seen_looking(self, *question):
        found = stored(self, *question)
        looked.release()
        return found

    with open_curator(tmp_path) as curator:
        ana, engine = curator.analyst("ana"), curator._session.engine  # noqa: SLF001 -- idem
        answers = []
        second = threading.Thread(target=lambda: answers.append(ana.ask(COUNT, spend="5%")))

        def reading():
            looked.acquire()
            looked.acquire()  # both looks of the first question
            second.start()
            looked.acquire()  # the second has arrived, and waits
            clock.pass_(100)

        monkeypatch.setattr(Session, "stored", seen_looking)
        engine.before = reading
        ana.ask(COUNT, spend="5%")
        second.join()
        assert answers[0].stored
        assert answers[0].receipt["time"] == "2030-01-01T00:00:00+00:00"
        assert {line["time"] for line in ana.log()} == {"2030-01-01T00:00:00+00:00"}


def test_which_of_two_questions_was_ready_first_is_not_told(tmp_path):
    """Two processes ask at once: what settles a question stands beside it, whichever of them was answered first."""
    with open_curator(tmp_path) as one, open_curator(tmp_path) as other:
        one._session.engine.before = lambda: other.analyst("ana").ask(BY_CITY, spend="5%")  # noqa: SLF001 -- idem
        one.analyst("ana").ask(COUNT, spend="5%")
        lines = one.analyst("ana").log()
        assert [(line["kind"], line["question"]) for line in lines] == [
            ("reserved", COUNT), ("committed", COUNT), ("reserved", BY_CITY), ("committed", BY_CITY),
        ]  # fmt: skip
        assert [line["kind"] for line in one.log()] == ["created", "reserved", "reserved", "committed", "committed"]
        assert one.log()[3]["question"] == BY_CITY


def test_nothing_that_is_shown_leads_to_the_hash_of_an_entry(tmp_path, clock):
    """The hash in a receipt could tell which entry came before by trying; the entry's own id, which is secret, is in it.

    The receipt of what is given again is of the entry that charged it, at the time at which it was asked for again.
    """
    with open_curator(tmp_path) as curator:
        ana = curator.analyst("ana")
        answers = []
        for question in (COUNT, COUNT, BY_CITY):
            answers.append(ana.ask(question, spend="5%"))
            clock.pass_(60)
        shown = json.dumps([ana.log(), curator.log(), [one.receipt.record for one in answers]], default=str)
        by_hash = {one.hash: one for one in curator.ledger.entries()}
        for answer in answers:
            own = by_hash[answer.receipt["ledger"]["hash"]]
            assert set(answer.receipt["ledger"]) == {"id", "hash"}
            assert own.kind.value == "reserved"
            assert answer.receipt["id"] == own.shown
        arrived = [f"2030-01-01T00:0{minute}:00+00:00" for minute in range(3)]
        assert [answer.receipt["time"] for answer in answers] == arrived
        assert [by_hash[answer.receipt["ledger"]["hash"]].time for answer in answers] == [arrived[0], arrived[0], arrived[2]]
        for one in by_hash.values():
            assert one.id not in shown
            assert seal(replace(one, id=one.shown))[0].hash != one.hash


def test_what_settles_a_question_is_stored_with_its_time(tmp_path, clock):
    """Nobody who reads the chain, or tries hashes, finds another time than that of the question."""
    with open_curator(tmp_path) as curator:
        engine = curator._session.engine  # noqa: SLF001 -- idem
        engine.before = lambda: clock.pass_(60)
        curator.ask(COUNT, spend="5%")
        engine.problem = RuntimeError("late")
        with pytest.raises(Failed):
            curator.ask(COUNT, spend="6%")
        times = {one.id: one.time for one in curator.ledger.entries()}
        settled = [one for one in curator.ledger.entries() if one.kind.settles]
        assert [one.kind.value for one in settled] == ["committed", "failed"]
        assert all(one.time == times[one.refers] for one in settled)


def test_a_ledger_with_times_of_settlements_is_still_read_and_does_not_tell_them(tmp_path, clock, monkeypatch):
    """Entries of older versions keep their hashes; an analyst sees the time of the question."""

    def as_before(entry):
        return seal(replace(entry, time=entries.now()))

    with open_curator(tmp_path) as curator, monkeypatch.context() as patch:
        patch.setattr(acts, "seal", as_before)
        curator._session.engine.before = lambda: clock.pass_(60)  # noqa: SLF001 -- idem
        curator.analyst("ana").ask(COUNT, spend="5%")
    with open_curator(tmp_path) as curator:  # reads and verifies every entry
        curator.ledger.verify()
        assert len({line["time"] for line in curator.log()[1:]}) == 2
        assert {line["time"] for line in curator.analyst("ana").log()} == {"2030-01-01T00:00:00+00:00"}
        assert curator.analyst("ana").ask(COUNT, spend="5%").stored

"""Who is waited for, and how long: by when a charge was seen, not by when its question came or by clocks on walls."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import pytest
from curator_studies import COUNT, open_curator

from curador.curator import spending
from curador.curator.options import QuestionOptions
from curador.curator.price import price_question
from curador.curator.session import Sightings
from curador.errors import Failed
from curador.ledger.entry import new_id, now

DEADLINE = 3 * 60.0
LONGEST = DEADLINE + spending.PATIENCE
LONG_AGO = "2020-01-01T00:00:00+00:00"


class Clock:
    """Seconds that pass when somebody waits; `then` are done at their moments."""

    def __init__(self, then=()):
        self.now, self.then = 1000.0, sorted(then, key=lambda one: one[0])

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        while self.then and self.now >= self.then[0][0]:
            self.then.pop(0)[1]()


@pytest.fixture
def curator(tmp_path):
    with open_curator(tmp_path) as made:
        yield made


def charged_elsewhere(curator, *, asked=LONG_AGO):
    """A charge of the same question, as another process makes it that was asked long ago and waited for its turn."""
    priced = price_question(curator._session, COUNT, QuestionOptions(spend="5%"))  # noqa: SLF001 -- as the verbs do
    return curator.ledger.reserve(replace(priced.request, asked=asked)), priced


def settle(curator, reserved, priced):
    content = priced.compute(rehearsal=False)
    digest = hashlib.sha256(content).hexdigest()
    return lambda: curator.ledger.commit(reserved, answer=content, answer_digest=digest)


def use(monkeypatch, clock):
    monkeypatch.setattr(spending, "time", SimpleNamespace(monotonic=clock.monotonic, sleep=clock.sleep))
    return clock


def test_a_question_that_waited_long_for_its_turn_is_waited_for(curator, monkeypatch):
    """It came years ago and was charged now; it is settled just before its deadline: nobody pays for it again."""
    reserved, priced = charged_elsewhere(curator)
    use(monkeypatch, Clock([(1000.0 + DEADLINE - 1, settle(curator, reserved, priced))]))

    answer = curator.ask(COUNT, spend="5%")

    assert answer.stored
    assert curator.ledger.spent() == reserved.entry.amounts


def test_who_was_killed_is_waited_for_once(curator, monkeypatch):
    """After a deadline it is bought anew; who comes back later, as that failed, does not wait again."""
    reserved, _ = charged_elsewhere(curator)
    clock = use(monkeypatch, Clock())
    request = price_question(curator._session, COUNT, QuestionOptions(spend="5%")).request  # noqa: SLF001

    assert spending._await_other(curator._session, request, reserved.entry) is None  # noqa: SLF001
    waited = clock.now - 1000.0
    assert LONGEST < waited < LONGEST + 1
    assert not curator.ask(COUNT, spend="5%").stored
    assert clock.now - 1000.0 == waited
    assert curator.ledger.spent() == reserved.entry.amounts + reserved.entry.amounts


def test_what_was_charged_before_this_process_began_is_as_old_as_it(curator, monkeypatch):
    """A charge that stood when the study was opened is over a deadline after that."""
    reserved, _ = charged_elsewhere(curator, asked=now())
    curator._session.sightings = Sightings(reserved.entry.sequence, 1000.0 - LONGEST - 1)  # noqa: SLF001
    clock = use(monkeypatch, Clock())

    assert not curator.ask(COUNT, spend="5%").stored
    assert clock.now == 1000.0


def test_a_curator_knows_since_when_it_knows(curator):
    """All that stands when it is opened is known from then on, the rest from when it is first seen."""
    sightings = curator._session.sightings  # noqa: SLF001
    old, young = SimpleNamespace(sequence=0, id=new_id()), SimpleNamespace(sequence=1, id=new_id())

    assert sightings.since(old, 1e12) < 1e12
    assert [sightings.since(young, moment) for moment in (5.0, 7.0)] == [5.0, 5.0]


def test_an_answer_that_was_given_up_but_stored_is_found(curator, monkeypatch):
    """Its asker was interrupted while others wrote it: who meets its commit finds it, and does not try for ever."""
    reserved, priced = charged_elsewhere(curator)
    curator._session.abandoned.add(reserved.id)  # noqa: SLF001
    reserve = curator.ledger.reserve
    tries = []

    def late(*given, **named):
        tries.append(named["dead"])
        assert len(tries) < 5
        if len(tries) == 1:
            settle(curator, reserved, priced)()
        return reserve(*given, **named)

    monkeypatch.setattr(curator.ledger, "reserve", late)

    assert curator.ask(COUNT, spend="5%").stored
    assert curator.ledger.spent() == reserved.entry.amounts


def test_what_was_given_up_here_is_bought_at_once(curator, monkeypatch):
    """Nobody waits for a charge that this process knows nobody will settle."""
    reserved, _ = charged_elsewhere(curator)
    curator._session.abandoned.add(reserved.id)  # noqa: SLF001
    clock = use(monkeypatch, Clock())

    assert not curator.ask(COUNT, spend="5%").stored
    assert clock.now == 1000.0


def test_a_charge_that_could_not_be_witnessed_is_given_up(curator, monkeypatch):
    """Its asker was told that it is kept and that nothing was released: whoever asks again does not wait for it."""
    with monkeypatch.context() as patch:
        mirror = curator.ledger._own_writer._mirror  # noqa: SLF001 -- a disk that fails
        patch.setattr(curator.ledger._own_writer, "_mirror", lambda *_: (_ for _ in ()).throw(OSError("full")))  # noqa: SLF001
        with pytest.raises(Failed, match="the charge is kept"):
            curator.ask(COUNT, spend="5%")
    assert curator.ledger._own_writer._mirror == mirror  # noqa: SLF001
    clock = use(monkeypatch, Clock())

    assert not curator.ask(COUNT, spend="5%").stored
    assert clock.now == 1000.0

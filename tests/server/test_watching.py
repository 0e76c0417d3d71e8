"""Moments: how often a token is looked at while something that it opened is open, and when previews are told."""

import asyncio
import time
from types import SimpleNamespace

import pytest
from served import QUESTION, serving

from curador.curator.pace import Pace
from curador.server import desk, routes
from curador.server.jobs import Outcome
from curador.server.refusals import NoToken

LONGEST = 0.5
"""Seconds: with what ending takes, what a token opened is closed within a second."""


class Clock:
    """A clock, and when the token was looked at."""

    def __init__(self, ends):
        self.now, self.ends, self.looks = 100.0, 100.0 + ends, [100.0]

    def monotonic(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds

    def still(self, _caller):
        self.looks.append(self.now)
        if self.now >= self.ends:
            raise NoToken("it ended.")

    def outcome(self, caller, job):
        self.still(caller)
        return Outcome(job, "running", time.time())

    def gaps(self):
        return [later - before for before, later in zip(self.looks, self.looks[1:], strict=False)]


def watched(monkeypatch, *, tick):
    """Let a stream of events run until its token ends; return the clock."""
    clock = Clock(ends=9.7)
    service = SimpleNamespace(tick=tick, deadline_ticks=10, outcome=clock.outcome, still=clock.still)

    async def look(work):
        return work()

    monkeypatch.setattr(routes, "asyncio", SimpleNamespace(sleep=clock.sleep))
    monkeypatch.setattr(routes, "time", SimpleNamespace(monotonic=clock.monotonic, time=time.time))

    async def run():
        return [part async for part in routes._events(SimpleNamespace(look=look), service, None, "job")]  # noqa: SLF001 -- the stream

    assert asyncio.run(run())
    return clock


@pytest.mark.parametrize("tick", [0.0, 0.25, 1.0, 4.0, 60.0])
def test_a_stream_looks_often_whatever_the_tick(monkeypatch, tick):
    clock = watched(monkeypatch, tick=tick)
    assert max(clock.gaps()) <= LONGEST
    assert clock.now <= clock.ends + LONGEST


def test_a_stream_that_looks_at_ticks_alone_is_found(monkeypatch):
    """Seeded bug."""
    monkeypatch.setattr(routes, "WATCH", 60.0)
    assert max(watched(monkeypatch, tick=4.0).gaps()) > LONGEST


def test_whoever_waits_for_an_answer_is_watched_as_often():
    assert desk.WATCH <= LONGEST


def test_a_preview_of_many_is_told_at_one_moment(tmp_path, monkeypatch):
    """With the columns of their answers: nobody waits for a tick for each of them. So is a refusal."""
    waits = []
    monkeypatch.setattr(Pace, "until", lambda _, moment: waits.append(moment))
    with serving(tmp_path, when_ready=False) as served:
        assert served.service.tick
        for body, status in (
            ({"question": QUESTION}, 200),
            ({"questions": [QUESTION] * 20}, 200),
            ({"questions": [QUESTION, "SELECT nothing FROM visits"]}, 400),
        ):
            waits.clear()
            response = served.send("ana", "POST", "/previews", {**body, "options": {"spend": "1%"}})
            assert (response.status_code, len(waits)) == (status, 1)

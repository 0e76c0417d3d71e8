"""How often a token is looked at while something that it opened is open, by a clock that the test turns."""

import asyncio
import time
from types import SimpleNamespace

import pytest

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

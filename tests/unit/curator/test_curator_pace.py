"""Where the owner set a pace, answers and failures leave at public moments only, and nothing can be seen in between."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from curator_studies import COUNT, make_study, open_curator
from hypothesis import given
from hypothesis import strategies as st

from curador.curator.pace import LateError, Pace, PacedRun, moments, pace_text
from curador.engines.base import EngineFailed
from curador.errors import BudgetExceeded, Failed
from curador.ledger.ledger import Ledger
from curador.study.model import EngineSettings

TICK = 2.0
BEGAN = 1000.0
"""A moment of the grid. Whoever asks then begins at the next."""

IN_TIME = [0, 0.001, 0.7, 1.4]
LATE = [1.5001, 1.9, 2, 31.9, 200]


class Clock:
    """Time that passes only where something is said to take time. Its sleeps may be too short."""

    def __init__(self, *, sleepy=False):
        self.now, self.sleepy, self.during = BEGAN, sleepy, None

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        assert seconds > 0
        if self.during is not None:
            self.during()
        self.now += seconds / 2 if self.sleepy and seconds > 1e-3 else seconds

    def wait(self, event, seconds):
        """Wait for the work itself, which says how long it took."""
        del seconds
        event.wait()


def paced(clock, tick=TICK):
    return Pace(tick, clock, clock.sleep, clock.wait)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def curator(tmp_path, clock):
    with open_curator(tmp_path) as made:
        made._session.pace = paced(clock)  # noqa: SLF001 -- what the study's engine settings make
        yield made


def takes(clock, monkeypatch, *, commit=0.0, settle=0.0, reserve=0.0):
    """Let the ledger's durable writes take time."""
    for name, seconds in (("commit", commit), ("fail", settle), ("reserve", reserve)):
        whole = getattr(Ledger, name)

        def slowly(self, *arguments, _whole=whole, _seconds=seconds, **options):
            done = _whole(self, *arguments, **options)
            clock.now += _seconds
            return done

        monkeypatch.setattr(Ledger, name, slowly)


def engine_takes(curator, clock, seconds, problem=None):
    engine = curator._session.engine  # noqa: SLF001 -- it holds no data

    def work():
        clock.now += seconds

    engine.before, engine.problem = work, problem


def asked(curator, clock, **options):
    """Ask once at a moment of the grid; return after how long the answer or failure came, and which it was."""
    clock.now = BEGAN
    try:
        curator.analyst("leo").ask(COUNT, spend="0.05%", fresh=True, **options)
    except Failed:
        return clock.now - BEGAN, "failed"
    return clock.now - BEGAN, "answered"


# ---- moments -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.floats(0, 1e6), st.floats(1e-3, 1e4), st.integers(1, 64))
def test_what_begins_does_so_at_a_multiple_of_the_tick(now, tick, ticks):
    """The next one, not this very moment; it is settled a quarter of a tick before it leaves, at most a second."""
    clock = Clock()
    clock.now = now
    run = paced(clock, tick).begin(lambda: ticks)
    number = round(run.begun / tick)
    assert run.begun == number * tick > now
    assert run.begun - now <= tick + 1e-9 * now
    assert clock.now >= run.begun
    assert run.leaves == pytest.approx(run.begun + ticks * tick)
    assert run.leaves - run.settled == pytest.approx(min(tick / 4, 1))


def test_a_machine_that_slept_goes_on_at_the_grid(clock):
    """What begins is late by less than a tick, whatever a sleep took."""

    def long(seconds):
        clock.now += seconds + 7

    run = Pace(TICK, clock, long, clock.wait).begin(lambda: 1)
    assert clock.now == BEGAN + 9
    assert run.begun == BEGAN + 8


def test_there_are_few_and_they_are_said():
    """The settings alone say which; the last is a tick beyond the deadline."""
    assert moments(EngineSettings()) == ()
    assert moments(EngineSettings(answer_every=Fraction(2))) == (2, 4, 8, 16, 32, 62)
    assert moments(EngineSettings(answer_every=Fraction(2), deadline=Fraction(64))) == (2, 4, 8, 16, 32, 64, 66)
    assert moments(EngineSettings(answer_every=Fraction(60))) == (60, 120)
    said = "answers leave 2, 4, 8, 16, 32 or 62 s after they began, by the question's class: time tells nothing but a failure"
    assert pace_text(EngineSettings(answer_every=Fraction(2))) == said
    assert "depends on rows" in pace_text(EngineSettings())


# ---- questions -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", [None, RuntimeError("a row"), EngineFailed("0" * 16)], ids=["answered", "broke", "failed"]
)
@pytest.mark.parametrize("sleepy", [False, True])
def test_whatever_an_engine_takes_the_moment_is_the_classs(curator, clock, monkeypatch, problem, sleepy):
    """Answers, failures and what is late alike: two ticks, one to begin and one for its class."""
    clock.sleepy = sleepy
    takes(clock, monkeypatch, commit=0.3, settle=0.3, reserve=0.2)
    chance = random.Random(11)
    for seconds in [*IN_TIME, *(chance.uniform(0, 1.4) for _ in range(4))]:
        engine_takes(curator, clock, seconds, problem)
        assert asked(curator, clock) == (pytest.approx(2 * TICK, abs=2e-3), "answered" if problem is None else "failed")
        curator.reopen("another one")


def test_what_is_not_done_when_it_must_be_settled_has_failed(curator, clock):
    """By a fake clock that the work moves on, so it is seen when it is over; a real one does not wait for it."""
    for seconds in LATE:
        engine_takes(curator, clock, seconds)
        found, how = asked(curator, clock)
        assert how == "failed"
        assert found % TICK == pytest.approx(0, abs=1e-6)
        curator.reopen("another one")
    assert all("LateError" in detail for detail in curator._session.engine.incidents.values())  # noqa: SLF001


@pytest.mark.slow
def test_who_is_late_is_not_waited_for():
    """With a real clock: the work goes on for nobody."""
    import threading
    import time

    pace, ends = Pace(0.1), threading.Event()
    run = pace.begin(lambda: 2)
    with pytest.raises(LateError):
        run.computed(lambda: ends.wait(20))
    assert run.settled <= time.monotonic() < run.begun + 15  # not 20 s: nobody waited
    ends.set()


def test_a_write_that_takes_longer_than_its_margin_waits_for_the_next_moment(curator, clock, monkeypatch):
    """A disk that is slow is no row's doing; the moment is one of the grid all the same."""
    takes(clock, monkeypatch, commit=0.7)
    engine_takes(curator, clock, 0.1)
    assert asked(curator, clock)[0] == pytest.approx(3 * TICK)


def test_a_write_that_fails_waits_too(curator, clock, monkeypatch):
    """The ledger is full: nothing is released, at a public moment."""

    def full(*_, **__):
        clock.now += 5
        raise Failed("the ledger could not be written; the charge is kept and nothing was released.")

    monkeypatch.setattr(Ledger, "commit", full)
    engine_takes(curator, clock, 0.1)
    assert asked(curator, clock) == (pytest.approx(10), "failed")  # settled from 3.5 to 8.5


def test_what_was_given_before_and_what_is_refused_leave_at_the_next_moment(curator, clock):
    """To analysts; the owner does not wait."""
    engine_takes(curator, clock, 0.5)
    curator.ask(COUNT, spend="60%")
    curator.analyst("leo").ask(COUNT, spend="10%")
    for asker, waited in ((curator, 0.0), (curator.analyst("leo"), 1.7)):
        share = "60%" if asker is curator else "10%"
        for verb in (
            lambda asker=asker, share=share: asker.ask(COUNT, spend=share),
            lambda asker=asker: asker.ask(COUNT, spend="99%"),
            lambda asker=asker: asker.ask("SELECT nothing FROM nowhere", spend="1%"),
            lambda asker=asker: asker.preview(COUNT, spend="5%"),
            lambda asker=asker: asker.preview([COUNT, COUNT], spend="5%"),
            lambda asker=asker: asker.explain(COUNT),
            lambda asker=asker: asker.budget,
            lambda asker=asker: asker.log(),
            lambda asker=asker: asker.rows("nowhere", columns=["spent"]),
        ):
            clock.now = BEGAN + 0.3
            with contextlib.suppress(BudgetExceeded, Exception):
                verb()
            assert clock.now == pytest.approx(BEGAN + 0.3 + waited)


def test_an_interrupt_does_not_wait(curator, clock):
    """It is the owner's own."""
    engine_takes(curator, clock, 0.5, KeyboardInterrupt())
    begun = clock.now
    with pytest.raises(KeyboardInterrupt, match="after the question was charged"):
        curator.ask(COUNT, spend="5%")
    assert clock.now == begun + TICK + 0.5


def test_off_nothing_waits(tmp_path, clock):
    """As a library comes."""
    with open_curator(tmp_path) as curator:
        curator._session.pace = replace(curator._session.pace, clock=clock, sleep=lambda _: pytest.fail("waited"))  # noqa: SLF001
        engine_takes(curator, clock, 0.5)
        assert asked(curator, clock) == (0.5, "answered")


def test_the_study_sets_it(tmp_path):
    """[engine] answer_every is the tick."""
    with open_curator(tmp_path, engine=EngineSettings(answer_every=Fraction(1, 2))) as curator:
        assert curator._session.pace.tick == 0.5  # noqa: SLF001
    assert Pace.of(make_study(tmp_path).engine).tick == 0


# ---- what others see -----------------------------------------------------------------------------------------------


def test_the_place_is_kept_until_the_moment(curator, clock):
    """Who comes next begins at a public moment, not when the engine was done."""
    places, held = curator._session.turn._places, []  # noqa: SLF001
    clock.during = lambda: held.append(places - curator._session.turn._free)  # noqa: SLF001
    engine_takes(curator, clock, 0.5)
    asked(curator, clock)
    engine_takes(curator, clock, 0.5, RuntimeError())
    asked(curator, clock)
    assert held == [1, 1, 1, 1, 1, 1]  # to begin, to settle, to leave


def test_a_settlement_is_written_at_a_public_moment(curator, clock, monkeypatch):
    """Whatever the run took, and whether it failed: a quarter of a tick before it is told."""
    written = []
    for name in ("commit", "fail"):
        whole = getattr(Ledger, name)

        def noted(self, *arguments, _whole=whole, **options):
            written.append(clock.now - BEGAN)
            return _whole(self, *arguments, **options)

        monkeypatch.setattr(Ledger, name, noted)
    for seconds, problem in ((0, None), (1.3, None), (0.2, RuntimeError("a row"))):
        engine_takes(curator, clock, seconds, problem)
        asked(curator, clock)
    assert written == [3.5, 3.5, 3.5]


# ---- seeded bugs ---------------------------------------------------------------------------------------------------


def settles_after_the_wait(clock, monkeypatch):
    """The wait stands before the settlement, whose time then shows."""
    commit = Ledger.commit

    def late(self, *arguments, **options):
        clock.now += 0.8
        return commit(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "commit", late)
    monkeypatch.setattr(PacedRun, "_leave", lambda *_: None)


def failures_return_at_once(clock, monkeypatch):
    """Only answers wait."""

    @contextlib.contextmanager
    def left(run):
        yield
        run._leave()  # noqa: SLF001

    monkeypatch.setattr(PacedRun, "left", left)


def sleeps_once(clock, monkeypatch):
    """A sleep that is too short is not noticed."""

    def once(self, moment):
        if moment > self.clock():
            self.sleep(moment - self.clock())

    clock.sleepy = True
    monkeypatch.setattr(Pace, "until", once)


@pytest.mark.parametrize("bug", [settles_after_the_wait, failures_return_at_once, sleeps_once])
def test_a_pace_that_is_wrong_is_caught(curator, clock, monkeypatch, bug):
    """The measure of the tests above finds each."""
    bug(clock, monkeypatch)
    found = []
    for problem in (None, RuntimeError("a row")):
        engine_takes(curator, clock, 0.7, problem)
        found.append(asked(curator, clock)[0])
    assert found != [pytest.approx(2 * TICK, abs=2e-3)] * 2

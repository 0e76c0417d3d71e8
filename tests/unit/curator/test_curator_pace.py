"""Where the owner set a pace, answers and failures leave at public moments only, and nothing can be seen in between."""

from __future__ import annotations

import contextlib
import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from curator_studies import COUNT, make_study, open_curator
from hypothesis import given
from hypothesis import strategies as st

from curador.curator.pace import Pace, moment_after, moments, pace_text
from curador.engines.base import EngineFailed
from curador.errors import BudgetExceeded, Failed
from curador.ledger.ledger import Ledger
from curador.ledger.sqlite import SQLiteStore
from curador.study.model import EngineSettings

TICK = 2.0
PUBLIC = {TICK * 2**k for k in range(12)}
DURATIONS = [0, 0.001, 1.9, 2, 2.001, 3.999, 4, 4.5, 31.9, 32.1, 59.999, 61, 200]


class Clock:
    """Time that passes only where something is said to take time. Its sleeps may be too short."""

    def __init__(self, *, sleepy=False):
        self.now, self.sleepy, self.during = 1000.0, sleepy, None

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        assert seconds > 0
        if self.during is not None:
            self.during()
        self.now += seconds / 2 if self.sleepy and seconds > 1e-3 else seconds


class Turn:
    """A lock that says whether it is held."""

    def __init__(self):
        self.held = False

    def __enter__(self):
        assert not self.held
        self.held = True

    def __exit__(self, *_):
        self.held = False


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def curator(tmp_path, clock):
    with open_curator(tmp_path) as made:
        made._session.pace = Pace(TICK, clock, clock.sleep)  # noqa: SLF001 -- what the study's engine settings make
        made._session.turn = Turn()  # noqa: SLF001 -- idem
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


def public(seconds):
    """Whether a duration is one of the public ones, but for the rounding of a clock."""
    return any(abs(seconds - one) < 1e-6 for one in PUBLIC)


def asked(curator, clock, **options):
    """Ask once and return after how long the answer or failure came."""
    begun = clock.now
    with contextlib.suppress(Failed):
        curator.analyst("leo").ask(COUNT, spend="0.05%", fresh=True, **options)
    return clock.now - begun


# ---- moments -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.floats(0, 1e6), st.floats(1e-3, 1e4))
def test_the_next_moment_is_a_doubling_and_the_first(elapsed, tick):
    """tick · 2ᵏ, not before, and half of it is too early unless it is the first."""
    found = moment_after(elapsed, tick)
    power = math.log2(found / tick)
    assert power == int(power) >= 0
    assert found >= elapsed
    assert found == tick or found / 2 < elapsed


def test_there_are_few_and_they_are_said():
    """The settings alone say which; the last is a tick beyond the deadline."""
    assert moments(EngineSettings()) == ()
    assert moments(EngineSettings(answer_every=Fraction(2))) == (2, 4, 8, 16, 32, 64)
    assert moments(EngineSettings(answer_every=Fraction(2), deadline=Fraction(64))) == (2, 4, 8, 16, 32, 64, 128)
    assert moments(EngineSettings(answer_every=Fraction(60))) == (60, 120)
    said = "answers leave 2, 4, 8, 16, 32 or 64 s after their turn came: time tells at most 2.6 bits of one"
    assert pace_text(EngineSettings(answer_every=Fraction(2))) == said
    assert "at most 1 bit of one" in pace_text(EngineSettings(answer_every=Fraction(60)))
    assert "depends on rows" in pace_text(EngineSettings())


# ---- questions -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", [None, RuntimeError("a row"), EngineFailed("0" * 16)], ids=["answered", "broke", "failed"]
)
@pytest.mark.parametrize("sleepy", [False, True])
def test_whatever_an_engine_takes_the_moment_is_public(curator, clock, monkeypatch, problem, sleepy):
    """Answers, failures and deadlines alike: the first moment that is not before the durable write is over."""
    clock.sleepy = sleepy
    takes(clock, monkeypatch, commit=0.3, settle=0.3, reserve=0.2)
    chance = random.Random(11)
    for seconds in [*DURATIONS, *(chance.uniform(0, 100) for _ in range(6))]:
        engine_takes(curator, clock, seconds, problem)
        found = asked(curator, clock)
        assert public(found)
        assert seconds + 0.5 <= found + 1e-6 < 2 * max(seconds + 0.5, TICK) + 1e-3
        curator.reopen("another one")


def test_a_write_that_fails_waits_too(curator, clock, monkeypatch):
    """The ledger is full: nothing is released, at a public moment."""

    def full(*_, **__):
        clock.now += 5
        raise Failed("the ledger could not be written; the charge is kept and nothing was released.")

    monkeypatch.setattr(Ledger, "commit", full)
    engine_takes(curator, clock, 0.1)
    assert asked(curator, clock) == pytest.approx(8)


def test_what_was_given_before_and_what_is_refused_do_not_wait(curator, clock):
    """Both are functions of the past."""
    engine_takes(curator, clock, 0.5)
    curator.ask(COUNT, spend="60%")
    begun = clock.now
    assert curator.ask(COUNT, spend="60%").stored
    with pytest.raises(BudgetExceeded):
        curator.ask(COUNT, spend="70%")
    assert clock.now == begun


def test_an_interrupt_does_not_wait(curator, clock):
    """It is the owner's own."""
    engine_takes(curator, clock, 0.5, KeyboardInterrupt())
    begun = clock.now
    with pytest.raises(KeyboardInterrupt, match="after the question was charged"):
        curator.ask(COUNT, spend="5%")
    assert clock.now == begun + 0.5


def test_off_nothing_waits(tmp_path, clock):
    """As a library comes."""
    with open_curator(tmp_path) as curator:
        curator._session.pace = replace(curator._session.pace, clock=clock, sleep=lambda _: pytest.fail("waited"))  # noqa: SLF001
        engine_takes(curator, clock, 0.5)
        assert asked(curator, clock) == 0.5


def test_the_study_sets_it(tmp_path):
    """[engine] answer_every is the tick."""
    with open_curator(tmp_path, engine=EngineSettings(answer_every=Fraction(1, 2))) as curator:
        assert curator._session.pace.tick == 0.5  # noqa: SLF001
    assert Pace.of(make_study(tmp_path).engine).tick == 0


# ---- what others see -----------------------------------------------------------------------------------------------


def test_the_turn_is_kept_until_the_moment(curator, clock):
    """Who comes next begins at a public moment, not when the engine was done."""
    held = []
    clock.during = lambda: held.append(curator._session.turn.held)  # noqa: SLF001
    engine_takes(curator, clock, 0.5)
    asked(curator, clock)
    engine_takes(curator, clock, 0.5, RuntimeError())
    asked(curator, clock)
    assert held == [True, True]


def test_nobody_reads_the_ledger_while_something_is_under_way(curator, clock, monkeypatch):
    """Every verb of an asker looks at it inside the turn: a settlement is not seen before its moment."""
    reading, seen = SQLiteStore.reading, []

    def watched(store):
        seen.append(curator._session.turn.held)  # noqa: SLF001
        return reading(store)

    monkeypatch.setattr(SQLiteStore, "reading", watched)
    ana = curator.analyst("leo")
    verbs = (
        lambda: ana.ask(COUNT, spend="5%"),
        lambda: ana.ask(COUNT, spend="5%"),  # stored
        lambda: ana.preview(COUNT, spend="5%"),
        lambda: ana.preview([COUNT, COUNT], spend="5%"),
        lambda: ana.budget,
        ana.log,
        lambda: curator.rows("visits", columns=["spent"]),
    )
    for verb in verbs:
        seen.clear()
        verb()
        assert seen
        assert all(seen)


# ---- seeded bugs ---------------------------------------------------------------------------------------------------


def waits_before_the_write(clock, monkeypatch):
    """The wait stands before the settlement, whose time then shows."""
    commit = Ledger.commit

    def early(self, *arguments, **options):
        clock.sleep(moment_after(0.7, TICK) - 0.7)
        clock.now += 0.3
        return commit(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "commit", early)
    monkeypatch.setattr(Pace, "_wait", lambda *_, **__: None)


def failures_return_at_once(clock, monkeypatch):
    """Only answers wait."""

    @contextlib.contextmanager
    def released(self, charged):
        begun = self.clock()
        yield
        self._wait(begun, charged=charged())

    monkeypatch.setattr(Pace, "released", released)


def sleeps_once(clock, monkeypatch):
    """A sleep that is too short is not noticed."""

    def once(self, begun, *, charged):
        if charged:
            self.sleep(moment_after(self.clock() - begun, self.tick) - (self.clock() - begun))

    clock.sleepy = True
    monkeypatch.setattr(Pace, "_wait", once)


@pytest.mark.parametrize("bug", [waits_before_the_write, failures_return_at_once, sleeps_once])
def test_a_pace_that_is_wrong_is_caught(curator, clock, monkeypatch, bug):
    """The measure of the tests above finds each."""
    bug(clock, monkeypatch)
    found = []
    for problem in (None, RuntimeError("a row")):
        engine_takes(curator, clock, 0.7, problem)
        found.append(asked(curator, clock))
    assert not all(map(public, found))

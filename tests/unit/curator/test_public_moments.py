"""Of several askers at once: whatever one's run takes, every moment that anybody can see is the same, and on the grid."""

from __future__ import annotations

import contextlib
import threading
from fractions import Fraction

import pytest
from curator_studies import BY_CITY, COUNT, FakeEngine, open_curator
from virtual_time import VirtualTime

from curador.curator.pace import Pace, PacedRun, Seat, Turn
from curador.engines.base import EngineFailed
from curador.errors import CuradorError
from curador.study.model import EngineSettings

pytestmark = pytest.mark.slow

TICK = 2
HEAVY = "SELECT MEDIAN(spent) AS a, MEDIAN(2 * spent) AS b, MEDIAN(3 * spent) AS c, COUNT(DISTINCT shop) AS d FROM visits"
"""What one analyst asks: of class 2, so it leaves 4 s after it began and is settled half a second before."""

WORLDS = {"no time": 0.0, "a little": 0.7, "more than a tick": 2.9, "just in time": 3.4}
FAILING = {"breaks at once": (0.0, True), "breaks late": (3.3, True), "is late": (9.0, False), "is very late": (300.0, False)}


class Watched:
    """A curator with two analysts who collude, and all that they see of one another's questions."""

    def __init__(self, folder, seconds, *, places, fails=False):
        settings = EngineSettings(answer_every=Fraction(TICK), threads=places)
        self.curator = open_curator(folder, engine=settings)
        self.time = VirtualTime(self.curator, float(TICK))
        self.seen, self.lock = [], threading.Lock()
        tally, engine = FakeEngine.tally, self.curator._session.engine  # noqa: SLF001 -- it holds no data

        def slowly(compiled):
            heavy = any(len(block.measurements) > 2 for block, _ in compiled)
            self.time.work(seconds if heavy else 0.3)
            if heavy and fails:
                raise EngineFailed("0" * 16)
            return tally(engine, compiled)

        engine.tally = slowly

    def call(self, name, moment, verb):
        """Call a verb at a moment; note when it came back, and with what, noise apart."""
        self.time.until(moment)
        begun = self.time.now
        try:
            found = outline(verb())
        except CuradorError as problem:
            found = type(problem).__name__
        with self.lock:
            self.seen.append((name, begun, self.time.now, found))

    def observed(self):
        """Let them ask, and return what all of them saw."""
        ana, leo, eva = (self.curator.analyst(name) for name in ("ana", "leo", "eva"))
        scripts = [
            [
                (0.3, lambda: leo.ask(HEAVY, spend="1%")),
                (14.1, lambda: leo.ask(HEAVY, spend="1%")),  # stored, or asked again after it failed
                (31.3, lambda: leo.ask(HEAVY, spend="1.1%", fresh=True)),
            ],
            [
                (0.6, lambda: eva.ask(BY_CITY, spend="1%")),
                (11.3, lambda: eva.ask(COUNT, spend="2%", fresh=True)),
                (15.2, lambda: eva.ask(COUNT, spend="3%", fresh=True)),
                (22.7, lambda: eva.ask(COUNT, spend="99%")),  # refused
                (33.4, lambda: eva.ask(COUNT, spend="4%")),
            ],
            [
                (0.9, lambda: ana.ask(HEAVY, spend="2.5%")),  # the same cost and key as leo's: waits for it
                (35.1, lambda: ana.preview(COUNT, spend="1%")),
            ],
            [(1.17 + 2.3 * k, verb) for k, verb in enumerate((lambda: leo.budget, leo.log) * 5)],
        ]

        def performed(name, script):
            for moment, verb in script:
                self.call(name, moment, verb)

        with self.curator:
            self.time.run([lambda p=place, s=script: performed(p, s) for place, script in enumerate(scripts)])
            self.time.now += 1
        return sorted(self.seen, key=lambda one: one[:3])


def outline(found):
    """What can be seen of an answer, a log, a budget or a preview that is not noise, an id or the time of a calendar."""
    if isinstance(found, list):
        return [(line["kind"], line["question"], sorted(line["cost"].items())) for line in found]
    if hasattr(found, "columns"):
        return tuple(found.columns), found.stored
    return str(found)


def on_grid(seen):
    """Whether everything came back at a multiple of the tick."""
    return all(end % TICK == 0 for _, _, end, _ in seen)


@pytest.mark.parametrize("places", [1, 2])
def test_however_long_a_run_takes_all_moments_are_the_same(tmp_path, places):
    """The first world says what must be seen in all others."""
    found = {}
    for name, seconds in WORLDS.items():
        (tmp_path / name).mkdir()
        found[name] = Watched(tmp_path / name, seconds, places=places).observed()
    first = found["no time"]
    assert on_grid(first)
    assert all(seen == first for seen in found.values())
    answered = [one for one in first if one[0] == 0]
    assert answered[0][2] == 6.0  # began at 2, of class 2
    assert answered[1][3][1]  # stored
    assert next(one[2:] for one in first if one[0] == 2) == (8.0, (answered[0][3][0], True))  # waited, and paid nothing


@pytest.mark.parametrize("places", [1, 2])
def test_nor_when_or_why_it_failed(tmp_path, places):
    """That it failed is told, at the same moment as an answer; not how long it ran."""
    found = {}
    for name, (seconds, fails) in FAILING.items():
        (tmp_path / name).mkdir()
        found[name] = Watched(tmp_path / name, seconds, places=places, fails=fails).observed()
    first = found["breaks at once"]
    assert on_grid(first)
    assert all(seen == first for seen in found.values())
    assert first[0][2:] == (6.0, "Failed")


# ---- seeded bugs ---------------------------------------------------------------------------------------------------


def gives_the_place_back_when_done(monkeypatch):
    """A worker is free when its work is done."""
    computed, held = PacedRun.computed, threading.local()

    @contextlib.contextmanager
    def asking(turn):
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(turn._held(Seat(turn, 1)))  # noqa: SLF001
            held.stack = stack
            yield place

    def early(run, work):
        stack = held.stack.pop_all()

        def worked():
            try:
                return work()
            finally:
                stack.close()

        return computed(run, worked)

    monkeypatch.setattr(Turn, "asking", asking)
    monkeypatch.setattr(PacedRun, "computed", early)


def takes_ticks_from_the_run(monkeypatch):
    """As many ticks as it took, rounded up to a power of two."""

    def computed(run, work):
        try:
            return work()
        finally:
            ticks = 1
            while run.begun + ticks * TICK < run.pace.clock():
                ticks *= 2
            run.leaves = run.begun + ticks * TICK

    monkeypatch.setattr(PacedRun, "computed", computed)


def settles_when_computed(monkeypatch):
    """The durable write follows the work; only telling waits."""

    def computed(run, work):
        found = work()
        if run.pace.clock() > run.settled:
            raise TimeoutError
        return found

    monkeypatch.setattr(PacedRun, "computed", computed)


def serves_out_of_ticks(monkeypatch):
    """Who waits begins when there is a place."""
    monkeypatch.setattr(Pace, "begin", lambda pace, ticks: PacedRun(pace, pace.clock(), ticks()))


def lets_failures_go(monkeypatch):
    """Only answers wait."""

    @contextlib.contextmanager
    def left(run):
        yield
        run._leave()  # noqa: SLF001

    monkeypatch.setattr(PacedRun, "left", left)


def waits_for_the_late(monkeypatch):
    """What is late is waited for and failed then."""
    computed = PacedRun.computed

    def patient(run, work):
        try:
            found = work()
        finally:
            run.settled = max(run.settled, run.pace.clock())
        return computed(run, lambda: found)

    monkeypatch.setattr(PacedRun, "computed", patient)


def tells_the_stored_at_once(monkeypatch):
    """Stored answers, refusals and previews do not wait."""
    monkeypatch.setattr(Pace, "_tell", lambda *_: None)


def settles_failures_at_once(monkeypatch):
    """A failure is written when it happens, an answer at its moment."""
    computed = PacedRun.computed

    def hasty(run, work):
        problems = []

        def caught():
            try:
                return work()
            except Exception as problem:
                problems.append(problem)
                run.settled = run.pace.clock()
                raise

        return computed(run, caught)

    monkeypatch.setattr(PacedRun, "computed", hasty)


BUGS = [
    gives_the_place_back_when_done,
    takes_ticks_from_the_run,
    settles_when_computed,
    serves_out_of_ticks,
    lets_failures_go,
    waits_for_the_late,
    tells_the_stored_at_once,
    settles_failures_at_once,
]


@pytest.mark.parametrize("bug", BUGS)
def test_what_is_wrong_shows(tmp_path, monkeypatch, bug):
    """The two laws above find each."""
    bug(monkeypatch)
    for group in ([(0.0, False), (2.9, False)], [(0.0, True), (3.3, True)], [(3.3, True), (300.0, False)]):
        worlds = []
        for number, (seconds, fails) in enumerate(group):
            folder = tmp_path / f"{len(list(tmp_path.iterdir()))}-{number}"
            folder.mkdir()
            worlds.append(Watched(folder, seconds, places=1, fails=fails).observed())
        if worlds[0] != worlds[1] or not on_grid(worlds[0]):
            return
    pytest.fail("nobody saw it")

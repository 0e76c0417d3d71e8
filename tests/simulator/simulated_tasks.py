"""Askers, openers and owners as tasks that one seed interleaves: only one runs at a time, and only until its next pause.

A task is a greenlet that runs the product's own code. Whatever may take time (a lock, a disk, a network, a sleep) is a pause:
there the task stops, and the seed decides who goes on, and whether something breaks first. The clock is simulated.
"""

import datetime as dt

from greenlet import getcurrent, greenlet

BEGUN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NEVER = float("inf")


class KilledError(BaseException):
    """The process of a task was killed: nothing of it runs any more, and whatever its clean-up tries has no effect."""


class Task:
    """Something that runs, in a process.

    ready   when it can go on; None: at once
    until   when it goes on in any case
    """

    __slots__ = ("greenlet", "label", "name", "process", "ready", "until")

    def __init__(self, process, name, function, hub):
        self.process, self.name, self.label = process, name, "begin"
        self.ready, self.until = None, NEVER
        self.greenlet = greenlet(function, hub)


class Scheduler:
    """One at a time, in the order that the seed says."""

    def __init__(self, random, trace=None):
        self.random, self.trace = random, trace
        self.now, self.wall, self.events = 1000.0, 0.0, 0
        self.tasks, self.current, self.hub = [], None, getcurrent()
        self.uncaught = lambda *_: None

    # ---- for everybody ------------------------------------------------------------------------------------------------

    def note(self, *what):
        """Record an event."""
        self.events += 1
        if self.trace is not None:
            who = "-" if self.current is None else f"{self.current.process}/{self.current.name}"
            self.trace.append(f"{self.events:5d} {self.now:9.3f} {who:14s} " + " ".join(str(one) for one in what))

    def clock(self):
        """Seconds that only grow."""
        return self.now

    def today(self, zone=None):  # noqa: ARG002 -- there is one
        """The clock on the wall: it may jump."""
        return BEGUN + dt.timedelta(seconds=self.now + self.wall)

    def pause(self, label):
        """Let others go on; outside of tasks nothing happens."""
        task = self.current
        if task is None:
            return
        self._refuse_dead(task)
        self.note(label)
        task.label, task.ready, task.until = label, None, NEVER
        self.hub.switch()

    def wait(self, label, ready, seconds):
        """Wait until something holds, or for so many seconds; return whether it does."""
        task = self.current
        if task is None or ready():
            return ready()
        self._refuse_dead(task)
        self.note(label)
        task.label, task.ready, task.until = label, ready, self.now + max(seconds, 0.0)
        self.hub.switch()
        return ready()

    def sleep(self, seconds):
        """Do nothing for a while, or for longer."""
        self.wait("sleep", lambda: False, seconds * self.random.choice((1, 1, 30)))

    def _refuse_dead(self, task):
        if not task.process.alive:
            raise KilledError

    # ---- for the one who drives ---------------------------------------------------------------------------------------

    def spawn(self, process, name, function):
        """Begin a task."""

        def run():
            try:
                function()
            except KilledError:
                pass
            except BaseException as error:  # noqa: BLE001 -- the oracle judges it
                self.uncaught(task, error)

        task = Task(process, name, run, self.hub)
        self.tasks.append(task)
        return task

    def runnable(self):
        """Return who can go on; where nobody can, the clock goes to the first who can then."""
        found = [one for one in self.tasks if one.ready is None or one.until <= self.now or one.ready()]
        if not found and self.tasks:
            self.now = min(one.until for one in self.tasks)
            found = [one for one in self.tasks if one.until <= self.now]
        return found

    def resume(self, task, error=None):
        """Let a task go on to its next pause, or raise something in it."""
        self.current = task
        task.ready, task.until = None, NEVER
        try:
            if error is None:
                task.greenlet.switch()
            else:
                task.greenlet.throw(error)
        except KilledError:  # it had not begun
            pass
        finally:
            self.current = None
        if task.greenlet.dead and task in self.tasks:
            self.tasks.remove(task)

    def kill(self, process):
        """End a process: its tasks end where they stand."""
        process.alive = False
        for task in [one for one in self.tasks if one.process is process]:
            self.resume(task, KilledError())
            if task in self.tasks:
                self.tasks.remove(task)


class SimulatedEvent:
    """What `threading.Event` is to threads."""

    __slots__ = ("scheduler", "set_")

    def __init__(self, scheduler):
        self.scheduler, self.set_ = scheduler, False

    def set(self):
        """Wake whoever waits."""
        self.set_ = True

    def is_set(self):
        """Whether somebody did."""
        return self.set_

    def wait(self, seconds=None):
        """Wait for it."""
        while not (told := self.scheduler.wait("told?", lambda: self.set_, 1e6 if seconds is None else seconds)):
            if seconds is not None:
                return told
        return told


class SimulatedLock:
    """What `threading.Lock` is to threads."""

    __slots__ = ("held", "scheduler")

    def __init__(self, scheduler):
        self.scheduler, self.held = scheduler, False

    def __enter__(self):
        while self.held:
            self.scheduler.wait("lock?", lambda: not self.held, 1e6)
        self.held = True

    def __exit__(self, *_):
        self.held = False

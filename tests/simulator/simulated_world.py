"""Machines, processes, askers and faults: one history, made by one seed out of the product's own code.

Real here: `Ledger`, `Writer`, acts, entries, the chain, limits, the witness, opening, `Session` and `spend`. Simulated: the
database, the disk, the network, the clock, ids, and the engine, whose answers are numbers that nobody has twice.
"""

import contextlib
import functools
import hashlib
from fractions import Fraction
from random import Random
from types import SimpleNamespace

from simulated_askers import Askers
from simulated_disk import Disk, SimulatedPath
from simulated_faults import Faults
from simulated_oracle import TICKS, Oracle, ViolationError, ticks
from simulated_store import Database, Rules, SimulatedPage, SimulatedStore
from simulated_tasks import Scheduler

from curador.curator.pace import Pace, Turn
from curador.curator.session import Session, Sightings
from curador.errors import CuradorError, Failed
from curador.ledger.amounts import NOTHING
from curador.ledger.entry import BEFORE_ALL, STUDY, Entry, EntryKind, State, row_of, seal
from curador.ledger.ledger import Ledger
from curador.ledger.limits import Limits
from curador.ledger.migration import SCHEMAS
from curador.ledger.witness import slot_of
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.study.model import Analyst, Budget

DIGEST = hashlib.sha256(b"study").hexdigest()
BUDGET = Budget(epsilon=1)
ANALYSTS = (Analyst("ann", Fraction(1, 2)), Analyst("bob", Fraction(1, 4)), Analyst("cem", Fraction(1)))
SHARES = {None: Fraction(1), **{one.name: one.share for one in ANALYSTS}}
LEDGER = "a" * 32
DEADLINE = 20.0
LEAST_EVENTS = 30


@functools.cache
def beginning():
    """The limits and the first entry: the same in all histories."""
    limits = Limits.create(BUDGET, adjacency=ADD_OR_REMOVE_ONE, unit="person", max_units=100)
    creation = {"limits": limits.record(), "study_name": "s", "reason": None, "instead_of": None, "witness_had": None}
    first = Entry(
        ledger=LEDGER,
        sequence=0,
        previous=BEFORE_ALL,
        time="2026-01-01T00:00:00+00:00",
        kind=EntryKind.CREATED,
        id="c" * 32,
        study_digest=DIGEST,
        data_version=1,
        after=State(NOTHING, 1, 0),
        creation={**creation, "schema": SCHEMAS[-1]},
    )
    made, text = seal(first)
    return limits, made, row_of(made, text)


class Machine:
    """A computer with a disk, on which the witness of its processes lies."""

    def __init__(self, world, number):
        self.number, self.disk = number, Disk(world.scheduler, world.random, 10_000 * number)
        self.place, self.ledger = SimulatedPath(self.disk, "ledger.head"), SimulatedPath(self.disk, "ledger")
        _, first, _ = beginning()
        old = f'{{"version":1,"ledger":"{LEDGER}","sequence":0,"hash":"{first.hash}"}}\n'.encode()
        self.disk.lay("ledger.head", old if world.random.random() < 0.2 else 2 * slot_of(LEDGER, 0, first.hash))
        self.processes = []

    def __str__(self):
        return f"m{self.number}"


class Process:
    """Something that can be killed; a curator once its ledger is open.

    cut    whether the database cannot be reached
    told   the last entry that somebody in it was told of; reserved: the reservations that it made
    """

    def __init__(self, machine, number):
        self.machine, self.number, self.alive, self.cut = machine, number, True, False
        self.ledger, self.session, self.told, self.reserved = None, None, 0, set()

    def __str__(self):
        return f"{self.machine}p{self.number}"


class Engine:
    """What the curator asks of an engine beside answers."""

    ready, version, schema = True, 1, None

    def record_duration(self, *_):
        """Nobody reads it."""

    def record_failure(self, *_):
        """Nor this."""


class World:
    """One history."""

    def __init__(self, seed, trace=None, rules=None):
        self.random, self.violation = Random(seed), None
        self.scheduler = Scheduler(self.random, trace)
        self.scheduler.uncaught = self._uncaught
        self.limits, self.first, row = beginning()
        self.limit, self.deadline = TICKS, DEADLINE
        self.served_by_server = self.random.random() < 0.5
        self.machines = [Machine(self, place) for place in range(1 + self.served_by_server)]
        self.server = Process("server", 0)
        self.client = Process("client", 0)
        self.version_of, self.fresh, self.numbers = {}, set(), 0
        self.oracle = Oracle(self)
        self.database = Database(self.scheduler, self.random, Rules() if rules is None else rules, self.oracle.lasts)
        self.committed_page().append(row)
        self.database.seen.totals[STUDY] = NOTHING.digits(), self.limits.total.digits()
        self.opening = None
        self.calm = False
        self.backups = self.database.backups
        self.backups.append(self.database.seen.copy())
        self.askers, self.faults = Askers(self), Faults(self)

    # ---- what the product asks of its surroundings -----------------------------------------------------------------------

    def now(self):
        """The time for people to read."""
        return self.scheduler.today().isoformat(timespec="seconds")

    def token(self, length):
        """A name that nobody has twice."""
        return f"{self.random.getrandbits(8 * length):0{2 * length}x}"

    def process(self):
        """Whose code runs."""
        task = self.scheduler.current
        return self.opening if task is None else task.process

    def store(self, _path):
        """The store that a process opens."""
        return SimulatedStore(self, self.process())

    # ---- what the oracle asks -------------------------------------------------------------------------------------------

    def limit_of(self, analyst):
        """The limit of an asker."""
        return ticks(SHARES[analyst])

    def is_fresh(self, question):
        """Whether its asker meant to pay again."""
        return question in self.fresh

    def _uncaught(self, task, error):
        if not isinstance(error, ViolationError) and self.violation is None:
            self.violation = ViolationError(f"{task.name} raised {type(error).__name__}: {error}")
            self.violation.__cause__ = error

    # ---- processes -------------------------------------------------------------------------------------------------------

    def start(self, machine):
        """Begin a process, which opens the ledger."""
        self.numbers += 1
        process = Process(machine, self.numbers)
        machine.processes.append(process)
        self.scheduler.spawn(process, "open", lambda: self._open(process))

    def _open(self, process):
        last = len(self.database.seen.rows) - 1
        try:
            ledger = self.open_ledger(process.machine)
            sightings = Sightings(ledger.head.sequence, self.scheduler.now)
        except (Failed, OSError) as error:  # the server is away, or the disk of the witness fails
            self.scheduler.note("not opened:", error)
            self.stop(process)
        except CuradorError as error:
            if "must be a file that can be written" in error.sentence:  # its disk fails: nothing is said of what was seen
                self.scheduler.note("not opened:", error)
                self.stop(process)
                return
            self.oracle.opened(process.machine, accepted=False, error=error, honest=True)
        else:
            self.scheduler.note("opened")
            process.ledger, process.told = ledger, last
            study = SimpleNamespace(name="s", engine=SimpleNamespace(longest=DEADLINE), tables=())
            turn = Turn(process.machine.disk.random.choice((1, 2, 3)))
            pace = Pace(0.0, self.scheduler.clock, self.scheduler.sleep)
            process.session = Session(study, ledger, Engine(), pace=pace, turn=turn, sightings=sightings)

    def open_ledger(self, machine):
        """Open the ledger as a machine sees it, by the product's own way."""
        settings = {"budget": BUDGET, "adjacency": ADD_OR_REMOVE_ONE, "unit": "person"}
        return Ledger.open(machine.ledger, witness=machine.place, **settings)

    def stop(self, process):
        """Kill a process; another one comes in its place later."""
        if process in process.machine.processes:
            process.machine.processes.remove(process)
        self.scheduler.kill(process)
        others = [one for machine in self.machines for one in machine.processes]
        given_up = set() if process.session is None else set(process.session.abandoned)
        before, self.oracle.left = self.oracle.left, self.oracle.left | given_up  # a server may finish its last commit now
        self.database.drop_process(process, server=self.served_by_server, last=not others)
        self.oracle.left = before if self.database.lasting is None else before | given_up
        process.machine.disk.forget_process(process)

    def lose_power(self, machine):
        """A machine stops at once."""
        for process in list(machine.processes):
            self.stop(process)
        machine.disk.lose_power()
        if not self.served_by_server:
            self.database.lose_power()

    def leave_to_server(self, change):
        """The server finishes a commit, or gives it up, when it comes to it."""
        change.process = self.server

        def finish():
            self.scheduler.sleep(self.random.choice((0.1, 3.0, 20.0)))
            if change.state == "ended":
                return
            if self.random.random() < 0.5:
                self.database.apply(change)
            else:
                self.database.end(change)

        self.scheduler.spawn(self.server, "commit", finish)

    def committed_page(self):
        """The rows that everybody sees."""
        return SimulatedPage(self.database.seen, self.database.rules)

    def ready(self):
        """Processes that have their ledger open."""
        return [one for machine in self.machines for one in machine.processes if one.ledger is not None]

    # ---- one history -----------------------------------------------------------------------------------------------------

    def play(self):
        """Play the history; return the violation, None where everything held."""
        with contextlib.suppress(ViolationError):
            self._play()
        for task in list(self.scheduler.tasks):  # let nothing of it run later
            task.process.alive = False
            self.scheduler.resume(task, self.askers.ended)
        return self.violation

    def _play(self):
        for machine in self.machines:
            for _ in range(self.random.choice((1, 1, 2))):
                self.start(machine)
        left = self.random.randrange(8, 15)
        while (left or self.scheduler.tasks) and self.violation is None:
            if left and (not self.scheduler.tasks or self.random.random() < 0.08):
                left -= 1
                self.askers.begin()
            self._step(faults=left > 0)
        if self.violation is None:
            self._end()

    def _step(self, *, faults):
        scheduler = self.scheduler
        found = scheduler.runnable()
        if found:
            task = self.random.choice(found)
            scheduler.now += self.random.choice((0.0, 0.001, 0.01, 0.05))
            if not (faults and self.faults.strike(task)) and task in scheduler.tasks:
                scheduler.resume(task)
        else:
            scheduler.now += 1.0
        for machine in self.machines:
            if not machine.processes and (self.random.random() < 0.3 or not faults):
                self.start(machine)
        if not faults:
            self.faults.heal()
        if scheduler.events > 20_000:
            self.oracle.fail("nobody comes to an end:", [(one.name, one.label) for one in scheduler.tasks])

    def _end(self):
        """Everything is mended, everybody opens the ledger again, and what was said still holds."""
        while self.violation is None:
            self.faults.heal()
            if self.scheduler.events >= LEAST_EVENTS and not self.scheduler.tasks:
                break
            if self.scheduler.events < LEAST_EVENTS:
                self.askers.begin()
            self._step(faults=False)
        if self.violation is not None:
            return
        for machine in self.machines:
            for process in list(machine.processes):
                self.stop(process)
            self.faults.open_calmly(machine, honest=True)
        self.oracle.lasts(self.database.seen)

"""What breaks, by the seed: each history has some kinds of faults and not others, so that rare ones meet.

A ledger that is set back is a fault of its own: everything stops, another state of the database or of the witness is put in
place, every machine tries to open it, and the right one is put back. Whoever's witness knows better must refuse.
"""

import hashlib
import json

from simulated_oracle import witnessed
from simulated_store import SimulatedPage

from curador.errors import CuradorError
from curador.ledger.acts import append
from curador.ledger.entry import EntryKind, next_entry

ATOMIC = frozenset({"commit written"})
"""Pauses inside a single call of the database, which an interrupt does not divide."""


class Faults:
    """The faults of a world."""

    def __init__(self, world):
        self.world, self.random, self.scheduler = world, world.random, world.scheduler
        kinds = [self.kill, self.power, self.stall, self.interrupt, self.jump, self.full, self.failing, self.backup]
        kinds += [self.set_back, self.set_back_running]
        kinds += [self.cut, self.cut, self.restart_server] if world.served_by_server else []
        self.kinds = [one for one in kinds if self.random.random() < 0.5]
        self.rate = self.random.choice((0.0, 0.02, 0.05, 0.1)) if self.kinds else 0.0
        self.workers, self.lost, self.doubled = (self.random.choice((0.0, 0.3)) for _ in range(3))
        for machine in world.machines:
            machine.disk.short = self.random.random() < 0.2

    def strike(self, task):
        """Let something break before a task goes on; return whether it must not go on now."""
        return self.rate and self.random.random() < self.rate and self.random.choice(self.kinds)(task)

    def heal(self):
        """Mend what is broken and lasts."""
        self.world.database.full = False
        for machine in self.world.machines:
            machine.disk.full = machine.disk.failing = False
            for process in machine.processes:
                process.cut = False

    # ---- faults that everybody knows -------------------------------------------------------------------------------------

    def kill(self, task):
        """Kill the process of whoever is next."""
        if task.process.alive and task.process.machine in self.world.machines:
            self.scheduler.note("KILL", task.process)
            self.world.stop(task.process)
        return True

    def power(self, task):
        """Cut the power of a machine."""
        machine = task.process.machine
        if machine in self.world.machines:
            self.scheduler.note("POWER", machine)
            self.world.lose_power(machine)
        return True

    def stall(self, task):
        """Let nothing of a task happen for a while: a slow disk, a stopped process."""
        self.scheduler.note("STALL", task.process, task.name, task.label)
        task.ready, task.until = (lambda: False), self.scheduler.now + self.random.choice((1.0, 6.0, 40.0, 80.0))
        return True

    def interrupt(self, task):
        """Interrupt an asker."""
        if task.process.ledger is None or task.label in ATOMIC or task.label == "begin":
            return False
        self.scheduler.note("INTERRUPT", task.process, task.name, task.label)
        self.scheduler.resume(task, KeyboardInterrupt())
        return True

    def jump(self, task):
        """Set the clock on the wall, or wake up after a while."""
        self.scheduler.note("JUMP")
        if self.random.random() < 0.5:
            self.scheduler.now += self.random.choice((7.0, 50.0, 4000.0))
        else:
            self.scheduler.wall += self.random.choice((-86400.0, -30.0, 30.0, 86400.0))
        del task
        return False

    def full(self, task):
        """Fill a disk, or make room."""
        del task
        self.scheduler.note("FULL")
        if self.random.random() < 0.5:
            self.world.database.full = not self.world.database.full
        else:
            disk = self.random.choice(self.world.machines).disk
            disk.full = not disk.full
        return False

    def failing(self, task):
        """Let writes of a disk fail, or mend it."""
        del task
        disk = self.random.choice(self.world.machines).disk
        disk.failing = not disk.failing
        self.scheduler.note("FAILING", disk.failing)
        return False

    def cut(self, task):
        """Cut a process off from the database, or let it reach it again."""
        if task.process.machine in self.world.machines:
            task.process.cut = not task.process.cut
            self.scheduler.note("CUT", task.process, task.process.cut)
        return False

    def restart_server(self, task):
        """Cut the power of the database's server."""
        del task
        self.scheduler.note("SERVER")
        self.world.database.lose_power()
        return False

    # ---- ledgers that were set back --------------------------------------------------------------------------------------

    def backup(self, task):
        """Make a copy of the database, as an owner does."""
        del task
        if self.world.database.lasting is None:
            self.world.backups.append(self.world.database.seen.copy())
        return False

    def open_calmly(self, machine, *, honest):
        """Open the ledger while nothing else happens; None: both are right."""
        process = type(self.world.server)(machine, 0)
        self.world.opening = process
        try:
            ledger = self.world.open_ledger(machine)
        except CuradorError as error:
            self.scheduler.note("refused", error.sentence)
            if honest is not None:
                self.world.oracle.opened(machine, accepted=False, error=error, honest=honest)
        else:
            self.scheduler.note("accepted")
            ledger.close()
            if honest is not None:
                self.world.oracle.opened(machine, accepted=True, error=None, honest=honest)
        finally:
            self.world.opening = None
            machine.disk.forget_process(process)

    def set_back(self, task):
        """Put another state in place, and let every machine open it."""
        del task
        world = self.world
        for machine in world.machines:
            for process in list(machine.processes):
                world.stop(process)
        for change in list(world.database.running):
            world.database.end(change)
        world.database.sync()
        self.heal()
        held, watch = world.database.seen, world.database.watch
        world.database.watch = lambda _: None
        try:
            for machine in world.machines:
                file = machine.disk.names["ledger.head"]
                kept = file.cache, file.durable, list(file.pending), list(machine.disk.seen)
                honest = self._prepare(machine, file)
                if honest is not True:
                    self.open_calmly(machine, honest=honest)
                machine.disk.names["ledger.head"] = file
                file.cache, file.durable, file.pending, machine.disk.seen = kept
                world.database.seen = held
        finally:
            world.database.seen, world.database.watch = held, watch
        return True

    def _prepare(self, machine, file):
        """Put something in place; return False where it must be refused, True where nothing is to be seen."""
        world, random = self.world, self.random
        slots = witnessed(file.cache)
        before = [one for one in machine.disk.seen if one < slots[0][1]]
        backup = random.choice(world.backups).copy()
        tip = len(backup.rows) - 1
        newest, older = slots[0][1], max(before, default=0) if len(slots) == 2 else None
        kind = random.choice(("behind", "torn", "flipped", "both torn", "fork", "another", "gone"))
        self.scheduler.note(
            "SET BACK", machine, kind, "to", tip, "of", len(world.database.seen.rows) - 1, "seen", newest, older
        )
        whole = len(file.cache) == 8192
        places = [] if not whole else [place for place in (0, 4096) if f'"sequence":{newest},'.encode() in _slot(file, place)]
        if kind == "fork" and tip < newest:
            page = SimulatedPage(backup, world.database.rules)
            for _ in range(newest - tip + random.choice((0, 1))):
                append(page, next_entry(page.head(), EntryKind.REOPENED))
            world.database.seen = backup
            return False
        if kind == "gone":
            del machine.disk.names["ledger.head"]
            return False
        if kind == "both torn" and whole:
            file.cache = file.cache.replace(b'"checksum":', b'"checksun":')
            return False
        if kind in {"torn", "flipped"} and whole and len(places) == 1 and older is not None:
            world.database.seen = backup
            file.cache = _damaged(file.cache, places[0], newest, older, torn=kind == "torn")
            return False if tip <= older else None
        if kind == "another" and whole and len(places) == 1:
            world.database.seen = random.choice((backup, world.database.seen))
            file.cache = _of_another(file.cache, places[0], random.choice((0, newest)))
            return False
        world.database.seen = backup
        return False if tip < newest else None

    def set_back_running(self, task):
        """Put an earlier state in place under a process that knows better, or whose witness does, while it writes nothing.

        Others may have gone on from that state, past what was forgotten: as many entries, and not the same.
        """
        del task
        world = self.world
        found = [
            (process, saw, [one for one in world.backups if len(one.rows) - 1 < saw])
            for process in world.ready()
            if process.ledger._writer._leader is None  # noqa: SLF001 -- whether somebody writes
            for saw in [max(process.told, _newest(process.machine))]
        ]
        found = [(process, saw, behind) for process, saw, behind in found if behind]
        if not found or world.database.running:
            return False
        process, saw, behind = self.random.choice(found)
        held, watch, state = world.database.seen, world.database.watch, self.random.choice(behind).copy()
        self.heal()
        others = self.random.choice((0, 0, 1, saw))
        if _newest(process.machine) == saw:  # what a process alone saw, it knows by its number and not by its hash
            page = SimulatedPage(state, world.database.rules)
            for _ in range(others):
                append(page, next_entry(page.head(), EntryKind.REOPENED))
        world.opening, world.database.seen, world.database.watch = process, state, lambda _: None
        self.scheduler.note("SET BACK under", process, "to", len(state.rows) - 1, "told", process.told, "seen", saw)
        try:
            process.ledger.refresh("simulated")
        except CuradorError as error:
            self.scheduler.note("refused", error.sentence)
        else:
            world.oracle.fail("a process went on with a ledger that was set back")
        finally:
            world.opening, world.database.seen, world.database.watch = None, held, watch
        return False


def _newest(machine):
    """The last entry that the witness of a machine saw, as far as it can be read."""
    file = machine.disk.names.get("ledger.head")
    slots = [] if file is None else witnessed(file.cache)
    return slots[0][1] if slots else -1


def _slot(file, place):
    return file.cache[place : place + 4096]


def _damaged(content, place, newest, older, *, torn):
    """A slot whose end is of another time, or whose number was changed."""
    slot = content[place : place + 4096]
    if torn:
        slot = slot[:40] + b"?" * 60 + slot[100:]
    else:
        slot = slot.replace(f'"sequence":{newest},'.encode(), f'"sequence":{older},'.encode()).ljust(4096)[:4096]
    return content[:place] + slot + content[place + 4096 :]


def _of_another(content, place, sequence):
    """A slot of another ledger, with the checksum that belongs to it."""
    body = {**json.loads(content[place : place + 4096]), "ledger": "b" * 32, "sequence": sequence}
    del body["checksum"]
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    body["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    made = (json.dumps(body, sort_keys=True, separators=(",", ":")) + "\n").encode().ljust(4096)
    return content[:place] + made + content[place + 4096 :]

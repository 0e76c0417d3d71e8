"""Puts the simulated surroundings under the product: its clock, ids, locks, disk and store, for as long as a patch holds."""

# ruff: noqa: PLW0108 -- the world is another one for every seed

import contextlib
import errno
import functools
import json
import os
from types import SimpleNamespace

from _pytest.monkeypatch import MonkeyPatch
from simulated_disk import EXCLUSIVE, UNLOCK
from simulated_store import Rules
from simulated_tasks import KilledError, SimulatedEvent, SimulatedLock
from simulated_world import World

from curador.curator import pace, spending
from curador.ledger import chain, entry, ledger, opening, witness, writer
from curador.ledger.limits import Limits
from curador.ledger.writer import Waiter, Writer


class Stage:
    """The world that is played now."""

    world: World


STAGE = Stage()


def _disk(handle_or_path):
    """The disk of a path, or of a handle: handles of machines differ."""
    disk = getattr(handle_or_path, "disk", None)
    if disk is not None:
        return disk
    for machine in STAGE.world.machines:
        if handle_or_path in machine.disk.open_files:
            return machine.disk
    if STAGE.world.process() is not None and not STAGE.world.process().alive:
        raise KilledError
    raise OSError(errno.EBADF, "simulated")


def _closing(handle):
    for machine in STAGE.world.machines:
        if handle in machine.disk.open_files:
            machine.disk.close(handle)


OS = SimpleNamespace(
    O_CREAT=os.O_CREAT,
    O_EXCL=os.O_EXCL,
    O_WRONLY=os.O_WRONLY,
    O_RDWR=os.O_RDWR,
    O_RDONLY=os.O_RDONLY,
    O_CLOEXEC=os.O_CLOEXEC,
    getpid=lambda: getattr(STAGE.world.process(), "number", 0),
    open=lambda path, *how: _disk(path).open(path, *how),
    close=_closing,
    pread=lambda handle, *what: _disk(handle).pread(handle, *what),
    pwrite=lambda handle, *what: _disk(handle).pwrite(handle, *what),
    write=lambda handle, *what: _disk(handle).write(handle, *what),
    fsync=lambda handle: _disk(handle).sync(handle),
    fdatasync=lambda handle: _disk(handle).sync(handle),
    fstat=lambda handle: _disk(handle).fstat(handle),
)
CLOCK = SimpleNamespace(
    monotonic=lambda: STAGE.world.scheduler.clock(),
    sleep=lambda seconds: STAGE.world.scheduler.sleep(seconds),
    time=lambda: 0.0,
)
SECRETS = SimpleNamespace(token_hex=lambda length: STAGE.world.token(length))


def _ticket(*given, **named):
    return Waiter(*given, told=SimulatedEvent(STAGE.world.scheduler), **named)


def _limits(record):
    return _limits_of(json.dumps(record, sort_keys=True))


@functools.cache
def _limits_of(text):
    """The limits of a ledger: they are proved once, and not at every opening."""
    return Limits.from_record(json.loads(text))


@contextlib.contextmanager
def simulated(bug=None):
    """Play worlds inside; `bug` patches the product, and may take rules away from the store."""
    patch, rules = MonkeyPatch(), Rules()
    try:
        if bug is not None:
            bug(patch, rules)
        now = lambda: STAGE.world.now()  # noqa: E731
        for module in (entry, ledger, opening, spending):
            patch.setattr(module, "now", now)
        for module in (entry, witness, spending):
            patch.setattr(module, "secrets", SECRETS)
        for module in (writer, spending, witness):
            patch.setattr(module, "time", CLOCK)
        for module in (writer, witness, pace):
            patch.setattr(module, "os", OS)
        threads = SimpleNamespace(
            Lock=lambda: SimulatedLock(STAGE.world.scheduler), Event=lambda: SimulatedEvent(STAGE.world.scheduler)
        )
        patch.setattr(pace, "threading", threads)
        patch.setattr(spending, "require_one_truth", lambda _: None)  # copies of the rows are no part of these worlds
        patch.setattr(
            witness,
            "fcntl",
            SimpleNamespace(LOCK_EX=EXCLUSIVE, LOCK_UN=UNLOCK, flock=lambda handle, how: _disk(handle).flock(handle, how)),
        )
        patch.setattr(spending, "is_private", lambda: True)
        patch.setattr(writer, "Waiter", _ticket)
        patch.setattr(opening, "store_at", lambda path: STAGE.world.store(path))
        patch.setattr(ledger, "SharedWriter", lambda own, _: own)  # another process is another world's: `from_afar` asks it
        patch.setattr(opening, "resolve_path", lambda path: path)
        patch.setattr(chain, "entry_of", functools.lru_cache(1024)(chain.entry_of))  # of one text there is one entry
        patch.setattr(witness, "read_slot", functools.lru_cache(256)(witness.read_slot))
        patch.setattr(chain, "Limits", SimpleNamespace(from_record=_limits))
        take = Writer._take  # noqa: SLF001 -- watched by the oracle

        def watched(own):
            batch = take(own)
            STAGE.world.oracle.takes(batch, own._waiting)  # noqa: SLF001
            return batch

        patch.setattr(Writer, "_take", watched)
        yield rules
    finally:
        patch.undo()


def is_found(world):
    """Whether a rule was seen to be broken: an error that nobody caught may be one of the seeded bug's own."""
    return world.violation is not None and world.violation.__cause__ is None


def play(seed, rules, trace=None):
    """Play one history; return its world."""
    STAGE.world = World(seed, trace, rules)
    STAGE.world.play()
    return STAGE.world

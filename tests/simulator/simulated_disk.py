"""A disk with a part that lasts and a part that does not, and the calls of `os` and `fcntl` by which the witness reaches it.

A write is in the cache until it is synced. A process that is killed leaves the cache as it is. A machine that loses power
keeps, loses or tears each write that was not synced, and each renaming whose folder was not.
"""

import errno
import os
from types import SimpleNamespace

from simulated_oracle import witnessed

EXCLUSIVE, UNLOCK = 2, 8


class SimulatedFile:
    """The bytes of a file: on the disk, and as programs see them."""

    __slots__ = ("cache", "durable", "holder", "number", "pending")

    def __init__(self, number, content=b""):
        self.number, self.durable, self.cache = number, bytes(content), bytes(content)
        self.pending, self.holder = [], None

    def write(self, place, content):
        """Write into the cache."""
        self.cache = _over(self.cache, place, content)
        self.pending.append((place, content))

    def sync(self):
        """Make it last."""
        self.durable, self.pending = self.cache, []

    def lose_power(self, random):
        """Keep, lose or tear what was not synced, in any order."""
        content = self.durable
        random.shuffle(self.pending)
        for place, written in self.pending:
            fate = random.random()
            if fate < 0.4:
                content = _over(content, place, written)
            elif fate < 0.75:
                content = _over(content, place, written[: random.randrange(1, 260)])
        self.durable = self.cache = content
        self.pending, self.holder = [], None


def _over(content, place, written):
    content = content.ljust(place, b"\0")
    return content[:place] + written + content[place + len(written) :]


class Disk:
    """The files of a machine."""

    def __init__(self, scheduler, random, handles):
        self.scheduler, self.random = scheduler, random
        self.names, self.durable_names, self.numbers = {}, {}, 100
        self.open_files, self.handles = {}, handles  # their numbers differ between machines
        self.full, self.failing, self.short = False, False, False
        self.seen = []  # what the witness said, each time that it came to lie on the disk

    def lay(self, name, content):
        """Put a file there, on disk."""
        self.numbers += 1
        self.names[name] = self.durable_names[name] = SimulatedFile(self.numbers, content)

    def lose_power(self):
        """What was not synced is kept, lost or torn."""
        if self.random.random() < 0.5:
            self.names = dict(self.durable_names)
        for file in self.names.values():
            file.lose_power(self.random)
        self.durable_names, self.open_files = dict(self.names), {}

    def forget_process(self, process):
        """Let go of the locks of a process that ended."""
        for file, owner in list(self.open_files.values()):
            if owner is process and file.holder is not None and file.holder[0] is process:
                file.holder = None
        self.open_files = {key: held for key, held in self.open_files.items() if held[1] is not process}

    # ---- calls ----------------------------------------------------------------------------------------------------------

    def _process(self):
        task = self.scheduler.current
        return None if task is None else task.process

    def _reach(self, label, *, writes=False):
        """Pause; then fail as the disk does."""
        self.scheduler.pause(label)
        if writes and self.failing:
            raise OSError(errno.EIO, "simulated")
        if writes and self.full:
            raise OSError(errno.ENOSPC, "simulated")

    def open(self, path, flags, mode=0o600):  # noqa: ARG002 -- as os.open
        """os.open of a file or of the folder."""
        self.handles += 1
        handle = self.handles  # creating takes a while, in which others open files, too
        if path.name == "":
            self.open_files[handle] = None, self._process()
            return handle
        if flags & os.O_CREAT:
            self._reach("create", writes=True)
            if path.name in self.names:
                raise FileExistsError(path.name)
            self.numbers += 1
            self.names[path.name] = SimulatedFile(self.numbers)
        if path.name not in self.names:
            raise FileNotFoundError(path.name)
        self.open_files[handle] = self.names[path.name], self._process()
        return handle

    def close(self, handle):
        """os.close."""
        file, _ = self.open_files.pop(handle, (None, None))
        if file is not None and file.holder is not None and file.holder[1] == handle:
            file.holder = None

    def pread(self, handle, length, place):
        """os.pread."""
        return self.open_files[handle][0].cache[place : place + length]

    def pwrite(self, handle, content, place):
        """os.pwrite: sometimes it writes less."""
        self._reach("witness write", writes=True)
        if self.short:
            content = content[: self.random.randrange(1, len(content) + 1)]
        self.open_files[handle][0].write(place, content)
        return len(content)

    def write(self, handle, content):
        """os.write into a new file."""
        return self.pwrite(handle, content, 0) if not self.short else self._whole(handle, content)

    def _whole(self, handle, content):
        self._reach("witness write", writes=True)
        self.open_files[handle][0].write(0, content)
        return len(content)

    def sync(self, handle):
        """os.fsync and os.fdatasync: a sync that fails leaves what was written as it is, in the cache."""
        file = self.open_files[handle][0]
        self._reach("witness sync", writes=file is not None)  # of a folder a failure is let pass, as some cannot be synced
        if file is None:
            self.durable_names = dict(self.names)
        else:
            file.sync()
            self.seen.extend(one[1] for one in witnessed(file.durable)[:1])
        self.scheduler.pause("witness synced")

    def fstat(self, handle):
        """os.fstat: device and number."""
        return SimpleNamespace(st_dev=1, st_ino=self.open_files[handle][0].number)

    def flock(self, handle, how):
        """fcntl.flock."""
        file, me = self.open_files[handle][0], (self._process(), handle)
        if how == UNLOCK:
            if file.holder == me:
                file.holder = None
            return
        while not self.scheduler.wait("witness lock?", lambda: file.holder is None or file.holder == me, 1e6):
            pass
        file.holder = me


class SimulatedPath:
    """The part of `pathlib.Path` that the ledger uses, for one flat folder."""

    def __init__(self, disk, name):
        self.disk, self.name = disk, name

    def __str__(self):
        return f"/simulated/{self.name}"

    @property
    def parent(self):
        """The folder."""
        return SimulatedPath(self.disk, "")

    def with_name(self, name):
        """A file beside it."""
        return SimulatedPath(self.disk, name)

    def stat(self):
        """Device, number and size."""
        file = self._file()
        return SimpleNamespace(st_dev=1, st_ino=file.number, st_size=len(file.cache), st_mtime=0.0)

    def read_bytes(self):
        """Its bytes, as programs see them."""
        self.disk.scheduler.pause("witness read")
        return self._file().cache

    def _file(self):
        if self.name not in self.disk.names:
            raise FileNotFoundError(self.name)
        return self.disk.names[self.name]

    def chmod(self, mode):
        """Modes are not simulated."""

    def replace(self, other):
        """Rename it."""
        self.disk.scheduler.pause("rename")
        self.disk.names[other.name] = self.disk.names.pop(self.name)

    def unlink(self, *, missing_ok=False):
        """Remove its name."""
        if self.disk.names.pop(self.name, None) is None and not missing_ok:
            raise FileNotFoundError(self.name)

    def iterdir(self):
        """Nothing that anybody sweeps."""
        return iter(())

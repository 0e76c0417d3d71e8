"""Registers of ledgers for tests: none writes into the home folder of whoever runs it, or knows the data of another test."""

import itertools
import os
import tempfile
from pathlib import Path

VARIABLE = "CURADOR_REGISTER"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- only as the parent of private temporary folders
_number = itertools.count()


def quick_folder():
    """Return a temporary folder, in memory where the system has such: fsync is slow elsewhere."""
    usable = _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK)
    return tempfile.TemporaryDirectory(prefix="registers-", dir=_SHARED_MEMORY if usable else None)


_folder = quick_folder()


def another_register():
    """Begin another register: equal tables in other folders are then not recognised, as on another machine."""
    os.environ[VARIABLE] = f"{_folder.name}/{next(_number)}"

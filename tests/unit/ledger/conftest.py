"""The ledgers of the slow tests serve here too; these lie in memory where the system has such a folder, as fsync is slow."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "ledger"))
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- only as the parent of a private temporary folder


@pytest.fixture(scope="session")
def memory():
    """Return a function that makes a new folder."""
    usable = SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK)
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if usable else None) as parent:
        yield lambda: Path(tempfile.mkdtemp(dir=parent))


@pytest.fixture
def tmp_path(memory):
    """A new folder."""
    return memory()

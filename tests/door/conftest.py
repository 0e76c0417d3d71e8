"""One door for all tests of a process: a study, its service, its shadow."""

import doors
import pytest

from curador.door.cluster import MISSING, find_installation


@pytest.fixture(scope="session")
def door(tmp_path_factory):
    """An open door; the tests are skipped, and say so, where there is no PostgreSQL for the shadow."""
    if find_installation() is None:
        pytest.skip(MISSING)
    with doors.open_door(tmp_path_factory.mktemp("door")) as opened:
        yield opened


@pytest.fixture
def unspent(door):
    """Require that the test leaves the ledger as it was."""
    before = door.entries()
    yield door
    assert door.entries() == before

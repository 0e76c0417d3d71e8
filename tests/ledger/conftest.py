"""A real PostgreSQL for the tests of the ledger: one server for all of them, a schema for each."""

import os

import pytest
from real_postgres import MISSING, find_installation, new_place, private_server, shared_server


@pytest.fixture(scope="session")
def installation():
    """The folder of PostgreSQL's programs; the tests that need a server are skipped, and say so, where there is none."""
    found = find_installation()
    return pytest.skip(MISSING) if found is None else found


@pytest.fixture(scope="session")
def postgres(installation, tmp_path_factory):
    """The server that all test processes share."""
    meeting = tmp_path_factory.getbasetemp()
    with shared_server(installation, meeting.parent if "PYTEST_XDIST_WORKER" in os.environ else meeting) as server:
        yield server


@pytest.fixture
def place(postgres):
    """A schema for a new ledger."""
    with new_place(postgres) as made:
        yield made


@pytest.fixture
def own_server(installation):
    """A server that a test may stop, restart or reconfigure."""
    with private_server(installation) as server:
        yield server

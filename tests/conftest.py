"""Settings shared by all tests."""

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import registers
import rooms

HERE = Path(__file__).parent
for folder in (
    "docs",
    "laws",
    "oracle",
    "replay",
    "simulator",
    "corpus",
    "engines",
    "compat",
    "server",
    "unit/client",
    "unit/plan",
    "unit/curator",
    "unit/learn",
    "door",
    "ledger",
    "../docs/figures",  # the figures that only documents show
):  # helper modules beside the tests that use them
    sys.path.insert(0, str((HERE / folder).resolve()))

settings.register_profile("house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("house"), derandomize=True)  # the same examples for everybody
settings.load_profile("ci" if os.environ.get("CI") else "house")


registers.another_register()  # also for fixtures of a whole session


def _another_register():
    before = os.environ[registers.VARIABLE]
    registers.another_register()
    yield
    os.environ[registers.VARIABLE] = before


@pytest.fixture(autouse=True, scope="module")
def _register_of_module():
    """Fixtures of a module know nothing of the data of another: many tests make the same table in folders of their own."""
    yield from _another_register()


@pytest.fixture(autouse=True)
def _register_of_test(_register_of_module):
    """Nor do tests."""
    yield from _another_register()


def pytest_addoption(parser):
    parser.addoption("--room", choices=rooms.ROOMS, help="only the tests of one room of src/curador (tests/rooms.py)")


def pytest_configure(config):
    gc.disable()  # while ten thousand tests are collected, of which nothing becomes garbage
    for room in rooms.ROOMS:
        config.addinivalue_line("markers", f"{room}: about this room, by the table of tests/rooms.py")


def pytest_ignore_collect(collection_path, config):
    """Files of other rooms are not even read: reading all of them takes longer than testing a room."""
    wanted = config.getoption("room")
    if wanted is None or not collection_path.match("test_*.py"):
        return None
    return True if rooms.room_of(collection_path) != wanted else None


def pytest_collection_modifyitems(config, items):
    for item in items:
        room = rooms.room_of(item.path)
        if room is not None:
            item.add_marker(getattr(pytest.mark, room))
    wanted = config.getoption("room")
    if wanted is not None:  # a file that is named on the command line is read whatever `pytest_ignore_collect` says
        items[:] = [item for item in items if item.get_closest_marker(wanted)]


def pytest_collection_finish(session):
    """From here on only what tests make is looked through for garbage, not the tests themselves."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config):
    """What was put aside is looked through again: extension modules complain of what is still there when Python ends."""
    gc.unfreeze()

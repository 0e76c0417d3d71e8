"""Every test file is about one room, and the table that says so has nothing that is not there."""

from collections import Counter

import pytest

import rooms

WRITTEN = sorted(rooms.TESTS.rglob("test_*.py"))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.relative_to(rooms.TESTS).as_posix())
def test_every_test_file_belongs_to_a_room(path):
    """A new file is found by `make test ROOM=…`."""
    assert rooms.room_of(path) in rooms.ROOMS


def test_a_file_outside_the_table_is_seen():
    """The check itself can fail: a file in a folder of many rooms that nobody listed has none."""
    assert rooms.room_of(rooms.TESTS / "laws" / "test_something_new.py") is None


def test_the_table_names_files_that_are_there_once():
    """No dead entry, and no file of two rooms."""
    listed = Counter(file for files in rooms.FILES.values() for file in files)

    assert [file for file, times in listed.items() if times > 1 or not (rooms.TESTS / file).is_file()] == []
    assert [folder for folder in rooms.FOLDERS if not (rooms.TESTS / folder).is_dir()] == []
    assert set(rooms.FILES) | set(rooms.FOLDERS.values()) <= set(rooms.ROOMS)


def test_items_carry_the_marker_of_their_room(request):
    """`-m docs` selects this very test."""
    assert request.node.get_closest_marker("docs")
    assert not request.node.get_closest_marker("privacy")

"""Every test file is about one room, the table that says so has nothing that is not there, and the gate has all rooms."""

import ast
import re
import subprocess
import sys
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


@pytest.mark.slow
@pytest.mark.parametrize(("room", "code"), [("docs", 0), ("privacy", 5), ("privcay", 4)])
def test_one_room_alone(room, code):
    """`--room` takes a file's tests only if they are of that room, and no room that there is not."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "--room", room, "tests/docs/test_types.py"]
    found = subprocess.run(command, cwd=rooms.TESTS.parent, capture_output=True, text=True, check=False)

    assert found.returncode == code  # pytest: 0 collected, 4 a wrong option, 5 nothing collected


def fast_and_all(text):
    """How many tests of a file are fast and how many there are: fast is what no mark of its own or of the file calls slow."""
    tree = ast.parse(text)
    whole = any("slow" in ast.unparse(node) for node in tree.body if re.match(r"pytestmark\b", ast.unparse(node)))
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    slow = ("pytest.mark.slow", "pytest.mark.long")
    marked = [any(ast.unparse(one).startswith(slow) for one in node.decorator_list) for node in tests]
    return (0 if whole else marked.count(False)), len(tests)


def in_the_gate():
    """The test files that `make check` reads, from the Makefile."""
    makefile = (rooms.TESTS.parent / "Makefile").read_text(encoding="utf-8")
    named = re.search(r"^FAST *:= *(.*)$", makefile, re.MULTILINE)[1].split()
    for path in WRITTEN:
        place = path.relative_to(rooms.TESTS.parent).as_posix()
        if any(place == one or place.startswith(f"{one}/") for one in named):
            yield path


@pytest.mark.parametrize("room", rooms.ROOMS)
def test_every_room_has_fast_tests_in_the_gate(room):
    """No room is left to `make test` alone."""
    inside = (path for path in in_the_gate() if rooms.room_of(path) == room)

    assert any(fast_and_all(path.read_text(encoding="utf-8"))[0] for path in inside)


@pytest.mark.parametrize("file", rooms.CORE)
def test_the_core_is_in_the_gate(file):
    """Most tests of what promises rest on run before every commit."""
    path = rooms.TESTS / file
    fast, every = fast_and_all(path.read_text(encoding="utf-8"))

    assert path in set(in_the_gate())
    assert 2 * fast > every


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pytestmark = pytest.mark.slow\ndef test_a(): pass", (0, 1)),
        ("@pytest.mark.slow\ndef test_a(): pass\ndef test_b(): pass", (1, 2)),
        ("@pytest.mark.long\n@given(x)\ndef test_a(): pass\ndef helper(): pass", (0, 1)),
        ("@pytest.mark.parametrize('a', [1, pytest.param(2, marks=pytest.mark.slow)])\ndef test_a(a): pass", (1, 1)),
    ],
)
def test_families_that_are_slow_are_seen(text, found):
    """The check itself can fail: a file whose tests are all slow has none."""
    assert fast_and_all(text) == found

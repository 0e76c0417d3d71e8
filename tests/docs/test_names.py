"""A class name stands for one thing, a function is a verb, a loop variable says what it is."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from parsed import tree_of, walk

SOURCE = Path(__file__).parents[2] / "src" / "curador"

TWINS = {
    "Finite": "a loss record, and a distribution of `curador.divergence`",
    "Laplace": "a mechanism, and a distribution of `curador.divergence`",
}
"""Public names that two rooms have, each under its own module."""

VERBS = {"need", "read", "seed"}
ENDINGS = ("ed", "ept", "hown", "ritten", "aken")
PUBLIC = {"advanced", "certified", "concentrated", "shown", "shuffled"}
"""Participles that are terms of the field, or decorators that read as one."""


def trees():
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), tree_of(path.read_text(encoding="utf-8"))


def homes_of_classes(sources):
    """The files that define each class name."""
    found = defaultdict(list)
    for file, tree in sources:
        for node in walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(file)
    return found


def test_a_class_name_stands_for_one_thing():
    """Whoever greps for a class finds one; a traceback leaves no doubt."""
    assert {name: files for name, files in homes_of_classes(trees()).items() if len(files) > 1 and name not in TWINS} == {}


def test_twins_are_twins():
    """No exception is left from before."""
    assert all(len(homes_of_classes(trees())[name]) == 2 for name in TWINS)


def test_a_second_class_is_caught():
    """The check itself can fail."""
    sources = [("a.py", ast.parse("class Plan: pass")), ("b.py", ast.parse("def f():\n    class Plan: pass"))]
    assert homes_of_classes(sources)["Plan"] == ["a.py", "b.py"]


def bare_participles(tree):
    """Public functions of a module whose whole name is a participle: what is done to what is not said."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) if "_" not in name and name not in VERBS | PUBLIC and name.endswith(ENDINGS):
                yield name


def test_functions_are_verbs():
    """`told` or `kept` tells no reader what it does to what."""
    assert {file: names for file, tree in trees() if (names := list(bare_participles(tree)))} == {}


@pytest.mark.parametrize("name", ["tell", "joined", "kept", "keep_rows", "written"])
def test_a_participle_is_caught(name):
    """The check itself can fail."""
    found = list(bare_participles(ast.parse(f"def {name}(x): return x")))
    assert found == ([name] if name in {"joined", "kept", "written"} else [])


def nameless_loops(tree):
    """Lines of loops, and of comprehensions over several lines, whose variable is called `one`."""
    for node in walk(tree):
        targets = [node.target] if isinstance(node, ast.For) else []
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)) and node.end_lineno > node.lineno:
            targets = [part.target for part in node.generators]
        for target in targets:
            names = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
            if "one" in names and not names & {"other", "zero"}:  # a pair has two names
                yield target.lineno


def test_loop_variables_say_what_they_are():
    """`one` is for comprehensions of one line."""
    assert {file: lines for file, tree in trees() if (lines := list(nameless_loops(tree)))} == {}


def test_a_nameless_loop_is_caught():
    """The check itself can fail."""
    assert list(nameless_loops(ast.parse("for one in rows:\n    print(one)\n"))) == [1]
    assert list(nameless_loops(ast.parse("total = sum(one for one in rows)\n"))) == []

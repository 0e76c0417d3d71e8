"""Who is a neighbour of whom has one name wherever it is a parameter or a field."""

import ast
from pathlib import Path

import pytest

from parsed import nodes_of

SOURCE = Path(__file__).parents[2] / "src" / "curador"


def other_names(text):
    """Parameters and fields of classes that hold an Adjacency under another name."""
    for node in nodes_of(text):
        match node:
            case ast.arg(arg=name, annotation=ast.expr() as said) if _says_adjacency(said) and name != "adjacency":
                yield name
            case ast.ClassDef(body=body):
                yield from (
                    one.target.id
                    for one in body
                    if isinstance(one, ast.AnnAssign) and _says_adjacency(one.annotation) and one.target.id != "adjacency"
                )


def _says_adjacency(annotation):
    """Whether it is Adjacency itself, or one of a union: not a container of several, nor what a function takes."""
    match annotation:
        case ast.Constant(value=str(quoted)):
            return _says_adjacency(ast.parse(quoted, mode="eval").body)
        case ast.BinOp(left=left, right=right):
            return _says_adjacency(left) or _says_adjacency(right)
    return isinstance(annotation, ast.Name) and annotation.id == "Adjacency"


def test_adjacency_has_one_name():
    """No parameter and no field calls it anything else."""
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in SOURCE.rglob("*.py")
        for name in other_names(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def f(*, relation: Adjacency | str | None = None): ...", "relation"),
        ("class C:\n    neighbours: Adjacency", "neighbours"),
        ("def f(own: 'Adjacency'): ...", "own"),
    ],
)
def test_another_name_is_caught(text, name):
    """The check itself can fail, and lets the one name pass."""
    assert list(other_names(text)) == [name]
    assert list(other_names(text.replace(name, "adjacency"))) == []

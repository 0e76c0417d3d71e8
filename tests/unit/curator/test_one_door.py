"""One door for spending: nothing but `curator/spending.py` charges, settles or gives again."""

from __future__ import annotations

import ast
from pathlib import Path

import curador
from parsed import nodes_of

SOURCE = Path(curador.__file__).parent
CHARGING = {"reserve", "commit"}
"""What a ledger does to a charge: nobody else may even take the method."""
SETTLING = CHARGING | {"fail", "void", "served"}
"""Words that other things have too: nobody else may call them."""

DOOR = "curator/spending.py"
ELSEWHERE = {
    "ledger": "the ledger itself",
}


def doors(files):
    """Every place that charges or settles: file and method."""
    for name, text in files:
        called = {id(node.func) for node in nodes_of(text) if isinstance(node, ast.Call)}
        for node in nodes_of(text):
            if isinstance(node, ast.Attribute) and (node.attr in CHARGING or (node.attr in SETTLING and id(node) in called)):
                yield name, node.attr


def sources():
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name not in ELSEWHERE and name.partition("/")[0] not in ELSEWHERE:
            yield name, path.read_text(encoding="utf-8")


def test_charges_are_made_and_settled_in_one_module():
    """A second way of spending would need its own proof that the charge comes first and that nothing leaves unstored."""
    found = set(doors(sources()))
    assert {name for name, _ in found} == {DOOR}
    assert {method for _, method in found} == SETTLING - {"void"}  # nobody knows that an engine never ran


def test_a_second_door_is_found():
    """The check itself can fail, also where the method is only taken and called elsewhere."""
    for text in ("def f(ledger, r):\n    return ledger.reserve(r)\n", "act = session.ledger.commit\n"):
        assert [name for name, _ in doors([("learn/base.py", text)])] == ["learn/base.py"]


def test_the_door_is_one_function_for_questions_and_fits():
    """Both callers hand a purchase to `spend` and touch neither the turn nor the pace."""
    for name in ("asking", "training"):
        text = (SOURCE / "curator" / f"{name}.py").read_text(encoding="utf-8")
        called = {node.func.id for node in nodes_of(text) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert "spend" in called
        assert not {"turn", "pace", "tried"} & {node.attr for node in nodes_of(text) if isinstance(node, ast.Attribute)}


def users_of(names, files):
    """(file, name) of every place that uses one of these names."""
    for file, text in files:
        for node in nodes_of(text):
            if isinstance(node, ast.Name) and node.id in names:
                yield file, node.id


def test_only_the_sandbox_takes_receipts_off():
    """The mark is no option of asking: one function makes it, and one module calls that."""
    found = set(users_of({"as_made_up", "temporary_ledger", "make_private"}, sources()))
    assert found == {
        ("curator/sandbox.py", "as_made_up"),
        ("curator/sandbox.py", "make_private"),
        ("curator/sandbox.py", "temporary_ledger"),
        ("curator/curator.py", "temporary_ledger"),  # ledger=":memory:", of frames only
        ("testing/running.py", "temporary_ledger"),  # an audit of a copy has a ledger of its own
    }
    assert list(users_of({"as_made_up"}, [("curator/asking.py", "x = as_made_up(answer, ())")]))

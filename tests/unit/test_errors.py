"""Errors carry fields, and their sentence is made of them."""

import ast
import copy
import pickle
from fractions import Fraction
from pathlib import Path

import pytest

import curador
from curador.errors import BudgetExceeded, CuradorError, InvalidParameter, InvalidQuery, NotPrivate
from curador.ledger.amounts import Amounts
from curador.ledger.limits import _no_room
from curador.query.messages import invalid
from curador.query.tree import Place
from parsed import nodes_of, tree_of, walk

SOURCE = Path(curador.__file__).parent


def test_a_broken_rule_has_subject_rule_and_value():
    """What the sentence says is known without reading it."""
    with pytest.raises(InvalidParameter) as caught:
        curador.Laplace(scale=-1, sensitivity=1)

    found = caught.value
    assert (found.subject, found.rule, found.got) == ("scale", "must be positive", "-1")
    assert str(found) == "scale must be positive; got -1."


def test_fields_are_what_there_is_to_say():
    """A program gets names and texts, and nothing that is empty."""
    error = InvalidParameter.must_be("rate", "at most 1", 2, "a share, not a percentage")

    assert error.fields == {
        "error": "InvalidParameter",
        "sentence": "rate must be at most 1; got 2.",
        "subject": "rate",
        "rule": "must be at most 1",
        "got": "2",
        "hint": "a share, not a percentage",
    }
    assert NotPrivate("no rule is known.").fields == {"error": "NotPrivate", "sentence": "no rule is known."}


def test_a_place_stands_before_the_sentence():
    """A refusal of a question says its line and column, in the text and as a field."""
    error = invalid(Place(2, 7), "x is no column", "did you mean y?")

    assert str(error) == f"{Place(2, 7)}: x is no column.\nHint: did you mean y?"
    assert (error.place, error.sentence) == (Place(2, 7), "x is no column.")
    assert str(invalid(None, "x is no column")) == "X is no column."


def test_a_budget_says_which_amount_lacks_room():
    """The subject is the amount, the rule what is left, the hint what would fit."""
    left, limit = Amounts(rho=Fraction(1, 100)), Amounts(rho=Fraction(1, 10))
    error = _no_room(Amounts(rho=Fraction(1, 20)), left, limit, "your share", left, limit)

    assert isinstance(error, BudgetExceeded)
    assert (error.subject, error.got) == ("rho", "0.05")
    assert "what is left of your share" in error.rule
    assert error.hint is not None
    assert 'spend="10%"' in error.hint


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy])  # noqa: S301 -- our own bytes
def test_errors_travel_with_their_fields(again):
    """Between processes and copies the sentence and its fields are the same."""
    error = InvalidQuery(subject="n", rule="must be known", got="x", hint="y", place=Place(1, 2))
    back = again(error)

    assert (type(back), str(back), back.fields) == (InvalidQuery, str(error), error.fields)


def readings_of_messages(tree):
    """Where code takes the sentence of an error of ours apart: text methods on str(error)."""
    caught = {node.name: ast.unparse(node.type) for node in walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    ours = {kind.__name__ for kind in [CuradorError, *subclasses(CuradorError)]}
    for node in walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]))):
                if any(word.strip("() ") in ours for word in caught.get(name, "").split(",")):
                    yield node.lineno


def subclasses(kind):
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def test_nobody_takes_a_message_apart():
    """Whoever needs a part asks for the field."""
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if (lines := list(readings_of_messages(tree_of(path.read_text(encoding="utf-8")))))
    }
    assert found == {}


def test_a_reader_of_messages_is_caught():
    """The check itself can fail."""
    bad = "try:\n    f()\nexcept InvalidParameter as error:\n    name = str(error).partition(' must be ')\n"
    assert list(readings_of_messages(ast.parse(bad))) == [4]
    good = "try:\n    f()\nexcept ValueError as error:\n    name = str(error).partition(' must be ')\n"
    assert list(readings_of_messages(ast.parse(good))) == []


def test_no_hint_is_written_into_a_sentence():
    """A hint is a field: no text of the sources has one inside, but where a client has the standard library alone."""
    texts = [
        path.name
        for path in SOURCE.rglob("*.py")
        if "local/client" not in path.as_posix() and path.name != "errors.py"
        for node in nodes_of(path.read_text(encoding="utf-8"))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\nHint: " in node.value
    ]
    assert texts == []

"""Strings and casts. What grows is cut: a string that doubles at every step would fail for one row's sake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.engines.lower import terms
from curador.engines.lower.terms import Lowered, Term
from curador.query.tree import Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.engines.lower.dialect import Dialect
    from curador.query.tree import Call, Node

MOST_CHARACTERS = 4_096
"""What concat and replace give at most."""

_FAR = (1 << 31) - 1
_INTEGER = "[+-]?[0-9]+"
_FLOAT = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,4})?"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = f"{_DATE}([ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,6}})?)?)?"
_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


def _text(argument: Term, dialect: Dialect) -> str:
    return terms.of_type(argument, Type.STRING, dialect).sql


def _like(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    pattern = _written(call.arguments[1])
    return Term(dialect.like(_text(arguments[0], dialect), pattern, fold=call.function == "ilike"), Type.BOOLEAN)


def _starts_with(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    return Term(dialect.starts_with(_text(arguments[0], dialect), _written(call.arguments[1])), Type.BOOLEAN)


def _plain(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    return Term(dialect.text(call.function, _text(arguments[0], dialect)), call.type)


def _concat(_: Call, arguments: list[Term], dialect: Dialect) -> Term:
    joined, *parts = (_text(one, dialect) for one in arguments)
    for part in parts:  # cut at each step, so that no row's memory grows with the number of parts
        joined = dialect.substring(f"({joined} || {part})", 1, MOST_CHARACTERS)
    return Term(joined, Type.STRING)


def _substring(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    start = min(max(_whole(call.arguments[1]), 1), _FAR)
    length = min(max(_whole(call.arguments[2]), 0), _FAR) if len(call.arguments) > 2 else _FAR
    return Term(dialect.substring(_text(arguments[0], dialect), start, length), Type.STRING)


def _replace(call: Call, arguments: list[Term], dialect: Dialect) -> Term:
    text, old, new = _text(arguments[0], dialect), _written(call.arguments[1]), _written(call.arguments[2])
    if not old:
        return Term(text, Type.STRING)
    if len(new) > len(old):
        text = dialect.substring(text, 1, max(1, MOST_CHARACTERS * len(old) // len(new)))
    return Term(dialect.substring(dialect.replaced(text, old, new), 1, MOST_CHARACTERS), Type.STRING)


# ---- casts ---------------------------------------------------------------------------------------------------------


def cast(term: Term, type_: Type, dialect: Dialect) -> Term:
    """Return a value in another type, as the catalogue says; NULL where it does not fit."""
    given = term.type
    if given is None:
        return Term(terms.null(type_, dialect), type_)
    if given is Type.STRING and type_ is not Type.STRING:
        return _from_string(terms.value(term, dialect).sql, type_, dialect)
    if given is type_ or (given.numeric and type_ in {Type.FLOAT, Type.DECIMAL}):
        return Term(term.sql, type_, raw=True) if term.raw else terms.of_type(term, type_, dialect)
    if given.numeric and type_ is Type.INTEGER:
        return Term(dialect.nearest(terms.number(term, dialect)), type_, raw=True)
    if given.numeric and type_ is Type.BOOLEAN:
        return Term(f"({terms.of_type(term, Type.FLOAT, dialect).sql} <> {dialect.double(0.0)})", type_)
    known = terms.value(term, dialect).sql
    if type_ is Type.STRING:
        return _to_string(known, given, dialect)
    if given is Type.BOOLEAN and type_.numeric:
        one, zero = (dialect.integer(1), dialect.integer(0)) if type_ is Type.INTEGER else map(dialect.double, (1.0, 0.0))
        return Term(f"(CASE {known} WHEN TRUE THEN {one} WHEN FALSE THEN {zero} END)", type_)
    if given.temporal and type_.temporal:
        return Term(dialect.try_cast(known, type_), type_)
    return Term(terms.null(type_, dialect), type_)


def _to_string(text: str, given: Type, dialect: Dialect) -> Term:
    if given is Type.BOOLEAN:
        return Term(f"(CASE {text} WHEN TRUE THEN 'true' WHEN FALSE THEN 'false' END)", Type.STRING)
    return Term(dialect.try_cast(text, Type.STRING), Type.STRING)


def _from_string(text: str, type_: Type, dialect: Dialect) -> Term:
    trimmed = dialect.text("trim", text)
    if type_ is Type.BOOLEAN:
        word = dialect.text("lower", trimmed)
        true, false = (", ".join(map(dialect.string, words)) for words in (_TRUE, _FALSE))
        return Term(f"(CASE WHEN {word} IN ({true}) THEN TRUE WHEN {word} IN ({false}) THEN FALSE END)", type_)
    if type_ in {Type.INTEGER, Type.FLOAT, Type.DECIMAL}:
        pattern = _INTEGER if type_ is Type.INTEGER else _FLOAT
        read = f"(CASE WHEN {dialect.matches(trimmed, pattern)} THEN {dialect.try_cast(trimmed, type_)} END)"
        return Term(read, type_, raw=type_ is not Type.INTEGER)
    pattern = _DATE if type_ is Type.DATE else _TIMESTAMP
    spelled = f"{dialect.matches(trimmed, pattern)} AND {trimmed} >= '0001'"  # there is no year 0
    return Term(f"(CASE WHEN {spelled} THEN {dialect.try_cast(trimmed, type_)} END)", type_)


def _written(node: Node) -> str:
    found = node.value if isinstance(node, Literal) else None
    if not isinstance(found, str):
        message = "a string must be written here"
        raise TypeError(message)
    return found


def _whole(node: Node) -> int:
    found = node.value if isinstance(node, Literal) else None
    if found is None or isinstance(found, (bool, str)) or not hasattr(found, "numerator"):
        message = "a whole number must be written here"
        raise TypeError(message)
    return int(found)  # type: ignore[arg-type]  # int or Fraction


LOWERED: dict[str, Lowered] = {
    **dict.fromkeys(("like", "ilike"), _like),
    "starts_with": _starts_with,
    **dict.fromkeys(("lower", "upper", "trim", "length"), _plain),
    "concat": _concat,
    "substring": _substring,
    "replace": _replace,
}
"""Functions of strings."""

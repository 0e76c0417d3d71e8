"""A question as the curator is given it: parameters are typed literals in its tree, put there after it was parsed.

No text is put into a text. Tools name tables with the schema that all of them are in; that name goes from the tree, too. The
curator is then given the text of the bound tree, and only if that text reads back as the very same tree.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from curador.door.problems import SqlProblem, problem_of
from curador.door.statements import DIALECT, parse_one
from curador.errors import CuradorError
from curador.query.text import tokens_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.door.values import Parameter

MOST_PARAMETERS = 65_535


def numbers_in(tree: exp.Expr) -> list[int]:
    """Return the numbers n of all parameters $n; what stands in quotes or comments is none."""
    return sorted({_number_of(node) for node in _parameters_in(tree)})


def bind_text(text: str, values: Sequence[Parameter], database: str = "") -> str:
    """Return the text of the question with its parameters bound and its tables by their plain names, as the curator has them.

    That is the text itself where there is nothing to change.
    """
    tree = parse_one(text)
    if tree is None:
        if values:
            raise SqlProblem("42601", "the text cannot be read as SQL.")
        return text  # the curator says where
    nodes = _parameters_in(tree)
    for node in nodes:
        number = _number_of(node)
        if not 1 <= number <= len(values):
            raise SqlProblem("42P02", f"the parameter ${number} must have a value; there are {len(values)}.")
        node.replace(literal(values[number - 1]))
    named = [one for one in tree.find_all(exp.Table, exp.Column) if _is_public(one, database)]
    for node in named:
        node.set("db", None)
        node.set("catalog", None)
    if not nodes and not named:
        return text
    try:
        tokens_of(text, Dialect.get_or_raise(DIALECT))  # what the parser would pass over in silence is refused as it stands
    except CuradorError as problem:
        raise problem_of(problem, text) from problem
    made = tree.sql(DIALECT)
    if parse_one(made) != tree:
        hint = "write the values into the text, and tables without a schema."
        raise SqlProblem("0A000", "a question must be one that can be written down again.", hint)
    return made


def _is_public(node: exp.Expr, database: str) -> bool:
    """Whether a table or a column is named with the schema in which all tables are."""
    schema, catalog = node.args.get("db"), node.args.get("catalog")
    if not isinstance(schema, exp.Identifier) or _folded(schema) != "public":
        return False
    return catalog is None or (isinstance(catalog, exp.Identifier) and _folded(catalog) == database)


def _folded(name: exp.Identifier) -> str:
    return str(name.this) if name.args.get("quoted") else str(name.this).lower()


def literal(value: Parameter) -> exp.Expr:
    """Return a value as a literal of its type."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() | Decimal():
            made = exp.Literal.number(format(abs(value), "f" if isinstance(value, Decimal) else "d"))
            return exp.Paren(this=exp.Neg(this=made)) if value < 0 else made
        case str():
            return exp.Literal.string(value)
        case dt.datetime():
            return _cast(value.isoformat(sep=" "), "TIMESTAMP")
        case dt.date():
            return _cast(value.isoformat(), "DATE")


def _cast(text: str, kind: str) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(kind, dialect=DIALECT))


def _parameters_in(tree: exp.Expr) -> list[exp.Expr]:
    return list(tree.find_all(exp.Parameter, exp.Placeholder))


def _number_of(node: exp.Expr) -> int:
    this = node.this
    text = this.name if isinstance(this, exp.Expr) else str(this or "")
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        raise SqlProblem("42601", "a parameter must be written as $1, $2 and so on.")
    return int(text)

"""Trees as short words, so that a test can say what a question becomes.

#3 a column    K0 a key    count(#1 | #2) an aggregate with its filter    >(#1, 18) a call
"""

import functools

import corpus_schemas

from curador.query.sql import parse
from curador.query.tree import (
    Aggregate,
    Call,
    Distinct,
    Filter,
    Join,
    Key,
    Literal,
    Project,
    Ref,
    Scan,
    UnionAll,
    UnitGroup,
    Window,
)

schema = functools.cache(corpus_schemas.schema)


def read(sql, name="people", dialect="duckdb"):
    """Return the question that a text becomes."""
    return parse(sql, schema(name), dialect=dialect)


def words(node):
    """Return an expression in short."""
    match node:
        case Literal():
            return "NULL" if node.value is None else repr(node.value) if isinstance(node.value, str) else str(node.value)
        case Ref():
            return f"#{node.index}"
        case Key():
            return f"K{node.index}"
        case Call():
            return f"{node.function}({', '.join(words(one) for one in node.arguments)})"
        case Aggregate():
            inside = [] if node.argument is None else [words(node.argument)]
            inside += [] if node.q is None else [str(node.q)]
            inside += [] if node.filter is None else [f"| {words(node.filter)}"]
            return f"{node.function}({' '.join(inside)})"


def shape(node):
    """Return a relation in short, from the top down."""
    match node:
        case Scan():
            return node.table
        case Filter():
            return f"{shape(node.input)} where {words(node.predicate)}"
        case Project():
            return f"[{', '.join(map(words, node.expressions))}] of ({shape(node.input)})"
        case Join():
            on = "" if node.on is None else f" on {words(node.on)}"
            return f"({shape(node.left)}) {node.kind} ({shape(node.right)}){on}"
        case UnionAll():
            return " + ".join(f"({shape(one)})" for one in node.inputs)
        case UnitGroup():
            keys, made = (", ".join(map(words, part)) for part in (node.keys, node.aggregates))
            return f"({shape(node.input)}) by unit {keys}: {made}"
        case Window():
            calls = ", ".join(one.function for one in node.calls)
            return f"({shape(node.input)}) over {calls}"
        case Distinct():
            return f"distinct ({shape(node.input)})"


def condition(text, name="people"):
    """Return what a condition of WHERE becomes."""
    table = {"people": "people", "shop": "lines", "trips": "trips"}[name]
    relation = read(f"SELECT COUNT(*) FROM {table} WHERE {text}", name).blocks[0].relation
    return words(relation.predicate)


def item(text, table="people"):
    """Return what an item of an aggregated SELECT becomes."""
    return words(read(f"SELECT {text} AS x FROM {table}").blocks[0].items[0].expression)


def source(text, name="people"):
    """Return what a FROM with its WHERE becomes."""
    return shape(read(f"SELECT COUNT(*) FROM {text}", name).blocks[0].relation)


def names(sql, dialect="duckdb"):
    """Return the names of the output columns."""
    return [one.name for one in read(sql, dialect=dialect).blocks[0].items]

"""The names under which trees of questions are stored: in canonical texts, and so in the keys of paid answers.

A contract: the texts here are for ever. Classes and attributes may be renamed; a new attribute is written only where it is
not what every question before it meant, so that questions keep their keys.
"""

from __future__ import annotations

from curador.query import tree

StoredForm = tuple[str, dict[str, object]]
"""The name of a kind, and its fields by theirs. Values are plain ones, or nodes that are written in turn."""


def written_node(value: object) -> StoredForm | None:
    """Return how a node of a question is stored; None for what is none. Places in the text and aliases are not stored."""
    match value:
        case tree.Literal():
            return "Literal", {"value": value.value, "type": value.type}
        case tree.Ref():
            return "Ref", {"index": value.index, "type": value.type}
        case tree.Call():
            return "Call", {"function": value.function, "arguments": value.arguments, "type": value.type}
        case tree.Aggregate():
            return "Aggregate", {
                "function": value.function,
                "argument": value.argument,
                "type": value.type,
                "filter": value.filter,
                "q": value.q,
            }
        case tree.WindowCall():
            return "WindowCall", {
                "function": value.function,
                "argument": value.argument,
                "partition": value.partition,
                "order": value.order,
                "type": value.type,
                "whole": value.whole,
                "offset": value.offset,
            }
        case tree.Out():  # by place and source, not by its alias
            return "Out", {
                "type": value.type,
                "nullable": value.nullable,
                "source": value.source,
                "unit": value.unit,
                "unit_or_null": value.unit_or_null,
            }
        case _:
            return written_relation(value)


def written_relation(value: object) -> StoredForm | None:
    """Return how a relation is stored; None for what is none."""
    match value:
        case tree.Scan():
            return "Scan", {"table": value.table, "columns": value.columns}
        case tree.Filter():
            return "Filter", {"input": value.input, "predicate": value.predicate}
        case tree.Project():
            return "Project", {"input": value.input, "expressions": value.expressions, "columns": value.columns}
        case tree.Join():
            return "Join", {
                "left": value.left,
                "right": value.right,
                "kind": value.kind,
                "on": value.on,
                "columns": value.columns,
            }
        case tree.UnionAll():
            return "UnionAll", {"inputs": value.inputs, "columns": value.columns}
        case tree.UnitGroup():
            return "UnitGroup", {
                "input": value.input,
                "keys": value.keys,
                "aggregates": value.aggregates,
                "columns": value.columns,
            }
        case tree.Window():
            return "Window", {"input": value.input, "calls": value.calls, "columns": value.columns}
        case tree.Distinct():
            return "Distinct", {"input": value.input}
        case _:
            return None

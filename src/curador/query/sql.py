"""From the text of a question to its tree.

The text is tokenised and measured and BigQuery's privacy clause is taken out (`text`), sqlglot parses the rest, and an
allow-list of node classes and of their parts translates it. Nothing of the text reaches an engine: it is generated anew from
the tree. No row is read; a refusal says nothing that is not in the text or in the study.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError

from curador.errors import CuradorError, require
from curador.query.calls import cast_term
from curador.query.context import (
    AggregatedSelect,
    Context,
    Environment,
    RelationRows,
    check_size,
    identities_of,
    take_arguments,
)
from curador.query.messages import Text, invalid, name_node, not_private, quote_name
from curador.query.release import name_blocks, order_select, unite_selects
from curador.query.select import project_rows, read_select
from curador.query.sources import read_alias
from curador.query.text import options_of, take_out_clause, tokens_of
from curador.query.tree import Item, Out, Question, UnionAll
from curador.query.typed_terms import TypedTerm, column_term, unify_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

    from curador.query.tree import Place
    from curador.study.model import Schema


UNEXPECTED = "the text is SQL of a shape that was not expected"
DIALECTS = ("duckdb", "postgres", "bigquery", "spark")


def parse(text: str, schema: Schema, *, dialect: str = "duckdb") -> Question:
    """Return the question that a text asks; refuse what cannot be read, is no part of the language, or breaks privacy."""
    require(dialect in DIALECTS, "dialect", f"one of {', '.join(DIALECTS)}", dialect)
    place = Text(text)
    try:
        language = Dialect.get_or_raise(dialect)
        tokens, marks = take_out_clause(tokens_of(text, place, language), place)
        statement = _parse_tokens(tokens, text, place, language)
        context = Context(schema, place, dialect, marks, _read_subquery, identities_of(schema))
        return _read_question(statement, context)
    except RecursionError as problem:
        raise invalid(None, "the text must not be nested so deeply", "split it over subqueries in WITH.") from problem
    except CuradorError:
        raise
    except Exception as problem:  # a hole in the allow-list must refuse too; the tests see it by this sentence
        raise invalid(None, UNEXPECTED) from problem


def _parse_tokens(tokens: list[Token], text: str, place: Text, language: Dialect) -> exp.Expr:
    try:
        statements = language.parser().parse(tokens, text)
    except ParseError as problem:
        raise _unreadable_refusal(problem, text, place) from problem
    except RecursionError:
        raise
    except Exception as problem:  # whatever a hostile text makes the parser do, it is no failure of ours
        raise invalid(None, "the text cannot be read as SQL") from problem
    if len(statements) != 1 or statements[0] is None:
        raise invalid(None, "a question must be one statement")
    return statements[0]


def _unreadable_refusal(problem: ParseError, text: str, place: Text) -> Exception:
    where = problem.errors[0] if problem.errors else {}
    line, end, word = where.get("line"), where.get("col"), str(where.get("highlight") or "")
    if not isinstance(line, int) or not isinstance(end, int):
        return invalid(None, "the text cannot be read as SQL")
    lines = text.split("\n")
    before = sum(len(one) + 1 for one in lines[: line - 1])
    offset = max(before, min(before + end - len(word), len(text)))
    near = f" near {quote_name(word)}" if word else ""
    return invalid(place.place(offset), f"the text cannot be read as SQL{near}", "a word is missing or too many around here.")


# ---- statements --------------------------------------------------------------------------------------------------------


def _read_question(statement: exp.Expr, context: Context) -> Question:
    released = _read_query(statement, {}, context, top=True)
    if isinstance(released, RelationRows):
        raise not_private(None, "a question must ask for aggregates or keys")
    blocks = name_blocks(released.blocks)
    tables = tuple(sorted(set(released.tables)))
    options = options_of(context.marks, blocks, tables, context.schema)
    return Question(blocks, released.order, released.limit, released.offset, options, tables)


def _read_subquery(node: exp.Expr, environment: Environment, context: Context) -> RelationRows | AggregatedSelect:
    return _read_query(node, environment, context, top=False)


def _read_query(node: exp.Expr, environment: Environment, context: Context, *, top: bool) -> RelationRows | AggregatedSelect:
    if isinstance(node, exp.Subquery):
        this, order, limit, offset = take_arguments(node, context, "this", "order", "limit", "offset", ignored=("with_",))
        if isinstance(this, exp.Table):
            raise not_private(context.place(node), "a question must ask for aggregates or keys; this asks for a whole table")
        inner = _read_query(this, _read_with(node, environment, context), context, top=top)
        if isinstance(inner, AggregatedSelect):
            return order_select(inner, order, limit, offset, context)
        if limit is not None or offset is not None:
            raise not_private(context.place(limit or offset), "LIMIT must not stand in a subquery over rows")
        return inner
    if isinstance(node, exp.Select):
        return read_select(node, _read_with(node, environment, context), context, top=top)
    if isinstance(node, exp.Union):
        return _read_union(node, _read_with(node, environment, context), context, top=top)
    if isinstance(node, exp.SetOperation):
        raise not_private(
            context.place(node),
            f"{name_node(node, context.text)} would compare rows of different people",
            "WHERE, EXISTS (…) or a join on the unit.",
        )
    raise invalid(
        context.place(node), f"a question must be a SELECT; got {name_node(node, context.text)}", "only reading is possible."
    )


def _read_with(node: exp.Expr, environment: Environment, context: Context) -> Environment:
    """Return the environment with the common table expressions of WITH, each read once, in order."""
    clause = node.args.get("with_")
    if clause is None:
        return environment
    if clause.args.get("recursive"):
        raise invalid(context.place(clause), "WITH must not be RECURSIVE: how often it runs would depend on the data")
    known = dict(environment)
    own: set[str] = set()
    for table in take_arguments(clause, context, "expressions")[0]:
        this, alias = take_arguments(table, context, "this", "alias", ignored=("materialized",))
        place = context.place(table)
        name, columns = read_alias(alias, place)
        if name is None or name.lower() in own:
            raise invalid(place, f"the name {quote_name(name or '')} must stand once in WITH")
        own.add(name.lower())
        known[name.lower()] = _rename_columns(_read_query(this, known, context, top=False), columns, place)
    return known


def _rename_columns(
    content: RelationRows | AggregatedSelect, names: Sequence[str], place: Place | None
) -> RelationRows | AggregatedSelect:
    if not names:
        return content
    width = len(content.columns) if isinstance(content, RelationRows) else len(content.items)
    if len(names) > width:
        raise invalid(place, f"WITH must name at most the {width} columns there are; got {len(names)}")
    if isinstance(content, AggregatedSelect):
        blocks = tuple(
            replace(block, items=tuple(_item(item, names, index) for index, item in enumerate(block.items)))
            for block in content.blocks
        )
        return replace(content, blocks=blocks)
    listed = [
        (names[index] if index < len(names) else out.name, column_term(index, out))
        for index, out in enumerate(content.columns)
    ]
    return project_rows(content, listed, place)


def _item(item: Item, names: Sequence[str], index: int) -> Item:
    return Item(names[index], item.expression, item.place) if index < len(names) else item


# ---- UNION ALL ---------------------------------------------------------------------------------------------------------


def _read_union(node: exp.Union, environment: Environment, context: Context, *, top: bool) -> RelationRows | AggregatedSelect:
    place = context.place(node)
    branches: list[exp.Expr] = []
    current: exp.Expr = node
    order = limit = offset = None
    while isinstance(current, exp.Union):  # long chains lean to the left
        this, expression, distinct, *modifiers = take_arguments(
            current, context, "this", "expression", "distinct", "order", "limit", "offset", ignored=("with_",)
        )
        if distinct:
            raise not_private(place, "UNION must be UNION ALL: without ALL it merges what different people have", "UNION ALL")
        if current is node:
            order, limit, offset = modifiers
        elif any(modifier is not None for modifier in modifiers) or current.args.get("with_") is not None:
            branches.append(current)
            break
        branches.append(expression)
        current = this
    else:
        branches.append(current)
    found = [_read_query(branch, environment, context, top=top) for branch in reversed(branches)]
    aggregated = [one for one in found if isinstance(one, AggregatedSelect)]
    if len(aggregated) == len(found):
        return order_select(unite_selects(aggregated, place), order, limit, offset, context)
    if aggregated:
        raise not_private(place, "UNION ALL must be of aggregated SELECTs only, or of rows only")
    if limit is not None or offset is not None:
        raise not_private(context.place(limit or offset), "LIMIT must not stand in a subquery over rows")
    return _union_rows([one for one in found if isinstance(one, RelationRows)], place)


def _union_rows(parts: list[RelationRows], place: Place | None) -> RelationRows:
    first = parts[0]
    if not all(part.private for part in parts):
        raise not_private(place, "UNION ALL must be of private tables: rows of a public one belong to nobody")
    for part in parts:
        if len(part.columns) != len(first.columns):
            raise invalid(place, f"each part of UNION ALL must have {len(first.columns)} columns; got {len(part.columns)}")
    terms = [[column_term(index, out, place) for index, out in enumerate(part.columns)] for part in parts]
    outs: list[Out] = []
    for index, named_ in enumerate(first.columns):
        outs.append(_unite_column(named_.name, [row[index] for row in terms], place))
        for row in terms:
            if row[index].type is not outs[-1].type:
                row[index] = cast_term(row[index], outs[-1].type, place)
    inputs = [
        project_rows(part, [(out.name, term) for out, term in zip(part.columns, row, strict=True)], place)
        for part, row in zip(parts, terms, strict=True)
    ]
    whole = UnionAll(tuple(one.relation for one in inputs), tuple(outs), place)
    tables = tuple(name for one in inputs for name in one.tables)
    return check_size(RelationRows(whole, private=True, tables=tables, steps=max(one.steps for one in inputs) + 1), place)


def _unite_column(name: str, terms: list[TypedTerm], place: Place | None) -> Out:
    """Return one column of UNION ALL: the unit only if it is the unit in every part."""
    columns = [term.column for term in terms if term.column is not None]
    told = [column.unit or column.unit_or_null for column in columns]
    if any(told) and not all(told):
        raise not_private(place, f"the column {quote_name(name)} of UNION ALL must be the unit in every part, or in none")
    type_, _ = unify_types(terms, "a column of UNION ALL", place)
    if any(told) and any(column.type is not type_ for column in columns):
        raise not_private(place, "the unit must have one type in all parts of UNION ALL")
    source = columns[0].source if all(column.source == columns[0].source for column in columns) else None
    unit = all(column.unit for column in columns)
    nullable = any(column.nullable for column in columns)
    return Out(name, type_, nullable, source, unit, unit_or_null=any(told) and not unit)

"""From the text of a question to its tree: the statement, its WITH and UNION ALL, and each SELECT.

The text is tokenised and measured and BigQuery's privacy clause is taken out (`text`), sqlglot parses the rest, and an
allow-list of node classes and of their parts translates it. Nothing of the text reaches an engine: it is generated anew from
the tree. No row is read; a refusal says nothing that is not in the text or in the study.

A SELECT gives rows of a subquery, rows of a per-unit subquery, or what is released; at the top only what is released.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError

from curador.errors import CuradorError, require
from curador.query.above import (
    aggregates_under_windows,
    beside_scalars,
    folds,
    lifts,
    question_above,
    read_above,
    read_without_from,
)
from curador.query.calls import cast_term
from curador.query.context import (
    MOST_COLUMNS,
    WIDEST,
    Context,
    Environment,
    Reading,
    Scope,
    Windows,
    check_size,
    identities_of,
    is_released,
    scope_of,
    scope_of_release,
    take_arguments,
)
from curador.query.expressions import holds_aggregate, read_expression
from curador.query.functions import AGGREGATES
from curador.query.lifting import cut_released, lift_scope, unite_released
from curador.query.messages import invalid, not_private, quote_name
from curador.query.parser import TooManyReadings, parser_of
from curador.query.privacy_clause import aggregate_per_unit
from curador.query.quantile_lists import spread_lists
from curador.query.release import (
    add_key,
    aliases_of,
    check_released_keys,
    index_keys,
    item_name,
    key_finder,
    keys_of,
    name_blocks,
    order_select,
    read_items,
    read_limits,
    read_ordering,
    released_keys,
    replace_keys,
    require_columns,
    reshape_select,
    star_of,
    strip_alias,
    unite_selects,
)
from curador.query.sources import read_alias, read_filtered, read_from, read_from_item
from curador.query.text import ends_before_stars, name_node, options_of, place_at, take_out_clause, tokens_of
from curador.query.tree import (
    Aggregate,
    Block,
    Distinct,
    Expression,
    Filter,
    Item,
    Key,
    Node,
    Out,
    Project,
    Question,
    Ref,
    UnionAll,
    UnitGroup,
    Window,
    WindowCall,
    tables_in,
)
from curador.query.typed_terms import TypedTerm, column_term, require_boolean, unify_types
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

    from curador.query.tree import Place, Relation
    from curador.study.model import Schema


UNEXPECTED = "the text is SQL of a shape that was not expected"
DIALECTS = ("duckdb", "postgres", "bigquery", "spark", "snowflake")


def parse(text: str, schema: Schema, *, dialect: str = "duckdb") -> Question:
    """Return the question that a text asks; refuse what cannot be read, is no part of the language, or breaks privacy."""
    require(dialect in DIALECTS, "dialect", f"one of {', '.join(DIALECTS)}", dialect)
    try:
        language = Dialect.get_or_raise(dialect)
        tokens = tokens_of(text, language)
        stars = ends_before_stars(tokens)
        tokens, marks = take_out_clause(tokens, text)
        statement = _parse_tokens(tokens, text, language)
        identities = identities_of(schema)
        context = Context(schema, text, dialect, marks, stars, identities, _read_subquery, read_expression)
        return _read_question(statement, context)
    except RecursionError as problem:
        raise invalid(None, "the text must not be nested so deeply", "split it over subqueries in WITH.") from problem
    except CuradorError:
        raise
    except Exception as problem:  # a hole in the allow-list must refuse too; the tests see it by this sentence
        raise invalid(None, UNEXPECTED) from problem


def _parse_tokens(tokens: list[Token], text: str, language: Dialect) -> exp.Expr:
    try:
        statements = parser_of(language.parser_class)(dialect=language).parse(tokens, text)
    except ParseError as problem:
        raise _unreadable_refusal(problem, text) from problem
    except RecursionError:
        raise
    except TooManyReadings as problem:
        hint = "nest fewer calls such as ARRAY[…] or DATE(…); or name the inner ones in WITH."
        raise invalid(None, "the text must be one that can be read in few ways", hint) from problem
    except Exception as problem:  # whatever a hostile text makes the parser do, it is no failure of ours
        raise invalid(None, "the text cannot be read as SQL") from problem
    if len(statements) != 1 or statements[0] is None:
        raise invalid(None, "a question must be one statement")
    return statements[0]


def _unreadable_refusal(problem: ParseError, text: str) -> Exception:
    where = problem.errors[0] if problem.errors else {}
    line, end, word = where.get("line"), where.get("col"), str(where.get("highlight") or "")
    if not isinstance(line, int) or not isinstance(end, int):
        return invalid(None, "the text cannot be read as SQL")
    lines = text.split("\n")
    before = sum(len(one) + 1 for one in lines[: line - 1])
    offset = max(before, min(before + end - len(word), len(text)))
    near = f" near {quote_name(word)}" if word else ""
    top = re.search(r"\bSELECT\s+(DISTINCT\s+)?TOP\s+\(?\d", text, re.IGNORECASE)
    hint = "a word is missing or too many around here." if top is None else "LIMIT 3 at the end stands for TOP 3."
    return invalid(place_at(text, offset), f"the text cannot be read as SQL{near}", hint)


# ---- statements --------------------------------------------------------------------------------------------------------


def _read_question(statement: exp.Expr, context: Context) -> Question:
    released = _read_query(statement, {}, context, top=True).content
    if not isinstance(released, Question) and is_released(released):
        released = question_above(released)
    if not isinstance(released, Question):
        raise not_private(None, "a question must ask for aggregates or keys")
    if released.above is None:
        released = replace(released, blocks=name_blocks(released.blocks))
    if context.marks.stands:
        released = aggregate_per_unit(released, context.marks, context.schema)
    blocks = released.blocks
    tables = tuple(sorted({name for block in blocks for name in tables_in(block.relation)}))
    return replace(released, options=options_of(context.marks, blocks, tables, context.schema), tables=tables)


def _read_subquery(node: exp.Expr, environment: Environment, context: Context) -> Scope:
    return _read_query(node, environment, context, top=False)


def _read_query(node: exp.Expr, environment: Environment, context: Context, *, top: bool) -> Scope:
    if isinstance(node, exp.Subquery):
        this, order, limit, offset = take_arguments(node, context, "this", "order", "limit", "offset", ignored=("with_",))
        if isinstance(this, exp.Table):
            raise not_private(context.place(node), "a question must ask for aggregates or keys; this asks for a whole table")
        inner = _read_query(this, _read_with(node, environment, context), context, top=top)
        if isinstance(inner.content, Question):
            return order_select(inner, order, limit, offset, context)
        if is_released(inner.rows):
            return cut_released(inner, order, limit, offset, context)
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


def _rename_columns(found: Scope, names: Sequence[str], place: Place | None) -> Scope:
    if not names:
        return found
    if len(names) > len(found.shown):
        raise invalid(place, f"WITH must name at most the {len(found.shown)} columns there are; got {len(names)}")
    named = [*names, *(name for name, _ in found.shown[len(names) :])]
    if not isinstance(found.content, Question):
        listed = [(name, term) for name, (_, term) in zip(named, found.shown, strict=True)]
        return scope_of(project_rows(found.content, listed, place))
    blocks = tuple(
        replace(block, items=tuple(replace(item, name=name) for name, item in zip(named, block.items, strict=True)))
        for block in found.content.blocks
    )
    return scope_of_release(replace(found.content, blocks=blocks), found.terms)


# ---- UNION ALL ---------------------------------------------------------------------------------------------------------


def _read_union(node: exp.Union, environment: Environment, context: Context, *, top: bool) -> Scope:
    place = context.place(node)
    branches: list[exp.Expr] = []
    current: exp.Expr = node
    order = limit = offset = None
    while isinstance(current, exp.Union):  # long chains lean to the left
        this, expression, distinct, *modifiers = take_arguments(
            current, context, "this", "expression", "distinct", "order", "limit", "offset", ignored=("with_",)
        )
        if distinct:
            unit = context.unit
            raise not_private(
                place,
                "UNION must be UNION ALL: without ALL it merges what different people have",
                f"UNION ALL keeps all rows; SELECT COUNT(DISTINCT {unit}) over it counts each once.",
            )
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
    aggregated = [one for one in found if isinstance(one.content, Question)]
    if len(aggregated) == len(found):
        return order_select(unite_selects(aggregated, place), order, limit, offset, context)
    released = [lift_scope(one) for one in found]
    if all(is_released(one.rows) for one in released):
        united = unite_released(released, place)
        return (
            united
            if order is None and limit is None and offset is None
            else cut_released(united, order, limit, offset, context)
        )
    if aggregated or any(is_released(one.rows) for one in released):
        raise not_private(place, "UNION ALL must be of aggregated SELECTs only, or of rows only")
    if limit is not None or offset is not None:
        raise not_private(context.place(limit or offset), "LIMIT must not stand in a subquery over rows")
    return scope_of(_union_rows([one.rows for one in found], place, context))


def _union_rows(parts: list[Relation], place: Place | None, context: Context) -> Relation:
    first = parts[0]
    if not all(context.is_private(part) for part in parts):
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
    return check_size(UnionAll(tuple(inputs), tuple(outs), place))


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


# ---- SELECT ------------------------------------------------------------------------------------------------------------


def read_select(node: exp.Select, environment: Environment, context: Context, *, top: bool) -> Scope:
    """Return what a SELECT gives: at the top only what is released."""
    later = ("group", "having", "qualify", "order", "limit", "offset")
    items, from_, joins, where, distinct = take_arguments(
        node, context, "expressions", "from_", "joins", "where", "distinct", ignored=("with_", *later)
    )
    if distinct is not None:
        take_arguments(distinct, context)
    if any(item.find(exp.Array, exp.ApproxQuantiles) is not None for item in items or ()):
        items = spread_lists(items, context)
        node.set("expressions", items)
    if not items:
        raise invalid(context.place(node), "a SELECT must list what it asks for", "SELECT COUNT(*) FROM a_table")
    if from_ is None:
        found = read_without_from(node, environment, context)
        if found is None:
            raise invalid(context.place(node), "a SELECT must have FROM", "SELECT COUNT(*) FROM a_table")
        return found
    first = read_from_item(take_arguments(from_, context, "this")[0], environment, context)
    if isinstance(first.content, Question) and not joins and folds(node, first.content):
        return reshape_select(node, first.content, first, context)
    if isinstance(first.content, Question):
        first = lift_scope(first)
    whole, sides = read_from(first, joins or [], environment, context)
    if is_released(first.rows):
        whole = beside_scalars(node, whole, sides, environment, context)
    scope = read_filtered(whole, sides, where, aliases_of(items), environment, context)
    grouped = any(node.args.get(one) is not None for one in ("group", "having")) or any(map(holds_aggregate, items))
    more = _does_more(node)
    grouped = grouped or (more and any(map(aggregates_under_windows, items)))
    if is_released(scope.rows):
        return _read_over_released(node, scope, environment, context, grouped=grouped)
    if grouped and more and lifts(node):
        return _read_lifted(node, scope, environment, context, top=top)
    if grouped or (distinct is not None and _gives_keys(node, scope, context, top=top)):
        take_arguments(node, context, ignored=tuple(one for one in node.args if one != "qualify"))
        return _read_grouped(node, scope, context, grouped=grouped, top=top)
    if top:
        _list_columns(node, scope, context, Windows(len(scope.rows.columns)))  # what is wrong in the list is said first
        raise _row_level_refusal(node, scope, context)
    return scope_of(_read_rows(node, scope, context))


def _does_more(node: exp.Select) -> bool:
    """Whether a SELECT has windows, subqueries or QUALIFY outside of FROM and WHERE."""
    parts = [*node.expressions, *(node.args.get(one) for one in ("having", "qualify", "order"))]
    return any(part is not None and part.find(exp.Window, exp.Subquery, exp.Qualify) is not None for part in parts)


def _read_over_released(
    node: exp.Select, scope: Scope, environment: Environment, context: Context, *, grouped: bool
) -> Scope:
    """Return a SELECT over results."""
    if not grouped:
        return read_above(node, scope, environment, context)
    reading = Reading(context, scope, "GROUP BY", aliases=aliases_of(node.expressions))
    keys, sets = keys_of(node.args.get("group"), node.expressions, reading)
    return read_above(node, scope, environment, context, keys, sets)


def _read_lifted(node: exp.Select, scope: Scope, environment: Environment, context: Context, *, top: bool) -> Scope:
    """Return a SELECT with aggregates over rows, and with windows or scalar subqueries over those."""
    _check_private(node, scope, context)
    reading = Reading(context, scope, "GROUP BY", aliases=aliases_of(node.expressions))
    keys, sets = keys_of(node.args.get("group"), node.expressions, reading)
    check_released_keys(keys, context, top=top)
    return read_above(node, scope, environment, context, keys, sets)


def _row_level_refusal(node: exp.Select, scope: Scope, context: Context) -> Exception:
    if not context.is_private(scope.rows):
        return invalid(
            context.place(node),
            "a question must be about a private table; this reads public ones only",
            "read public tables directly.",
        )
    return not_private(
        context.place(node),
        "a question must ask for aggregates or keys; this asks for rows of single people",
        "SELECT COUNT(*), AVG(x), … or GROUP BY.",
    )


# ---- rows --------------------------------------------------------------------------------------------------------------


def _read_rows(node: exp.Select, scope: Scope, context: Context) -> Relation:
    """Return a SELECT without aggregates as a relation, its unit still with it."""
    rows, place = scope.rows, context.place(node)
    windows = Windows(len(rows.columns))
    listed = _list_columns(node, scope, context, windows)
    qualify = _read_qualify(node, scope, context, windows)
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is not None or offset is not None:
        raise not_private(
            context.place(limit or offset),
            "LIMIT must not stand in a subquery over rows: whose rows it keeps would depend on others'",
            "caps on rows per unit do this; row_number() OVER (PARTITION BY unit …) keeps some of each unit's.",
        )
    if windows.calls:
        if not context.is_private(rows):
            raise invalid(place, "a window function must be over a private table")
        outs = tuple(Out(call.function, call.type, nullable=True) for call in windows.calls)
        calls = tuple(call for call in windows.calls if isinstance(call, WindowCall))
        rows = check_size(Window(rows, calls, (*rows.columns, *outs), place))
    rows = rows if qualify is None else check_size(Filter(rows, qualify, place))
    _check_order(node, scope, context)
    return _read_distinct(node, project_rows(rows, listed, place), context)


def _read_qualify(node: exp.Select, scope: Scope, context: Context, windows: Windows) -> Expression | None:
    """Return the condition of QUALIFY on the rows of a subquery: it may hold windows, and names of the SELECT list."""
    qualify = node.args.get("qualify")
    if qualify is None:
        return None
    reading = Reading(context, scope, "QUALIFY", windows=windows, aliases=aliases_of(node.expressions))
    condition = reading.of(take_arguments(qualify, context, "this")[0])
    return require_boolean(condition, "what follows QUALIFY").row


def _check_order(node: exp.Select, scope: Scope, context: Context) -> None:
    """Read ORDER BY of a subquery over rows, which has no meaning there, for its names only."""
    order = node.args.get("order")
    if order is not None:
        aliases = aliases_of(node.expressions)
        reading = Reading(context, scope, "ORDER BY", windows=Windows(0), aliases=aliases, first="always")
        for sort in take_arguments(order, context, "expressions")[0]:
            reading.of(take_arguments(sort, context, "this", ignored=("desc", "nulls_first"))[0])


def _read_distinct(node: exp.Select, rows: Relation, context: Context) -> Relation:
    if node.args.get("distinct") is None:
        return rows
    place = context.place(node)
    if not context.is_private(rows):
        raise invalid(place, "SELECT DISTINCT must not be of a public table here", "IN (SELECT …) needs no DISTINCT.")
    if not any(column.unit for column in rows.columns):
        raise not_private(place, "SELECT DISTINCT over rows must select the unit: people must not merge")
    return check_size(Distinct(rows, place))


def _list_columns(node: exp.Select, scope: Scope, context: Context, windows: Windows) -> list[tuple[str, TypedTerm]]:
    """Return the SELECT list as names and terms, with stars written out."""
    reading = Reading(context, scope, "SELECT", windows=windows)
    found: list[tuple[str, TypedTerm]] = []
    for item in node.expressions:
        inner = strip_alias(item)
        star = star_of(inner)
        if star is not None:
            if isinstance(item, exp.Alias):
                raise invalid(context.place(item), "* must have no alias")
            table = inner.table if isinstance(inner, exp.Column) else ""
            found += _without(star, table or None, scope, context)
            if len(found) > WIDEST:
                raise invalid(context.place(star), f"a relation must have at most {WIDEST:,} columns")
            continue
        term = reading.of(inner)
        name = item_name(item, term, context.text)
        if term.type is None:
            raise invalid(term.place, f"the column {quote_name(name)} must have a type", "CAST(NULL AS DOUBLE)")
        if term.unit and term.column is None:
            raise not_private(
                term.place,
                "an expression over the unit must not be selected: it is not the unit any more and still tells it",
                "select the bare column; conditions on it stand in WHERE.",
            )
        found.append((name, term))
        if isinstance(item, exp.Alias):
            reading.known[item.alias.lower()] = term
    return found


def _without(star: exp.Star, table: str | None, scope: Scope, context: Context) -> list[tuple[str, TypedTerm]]:
    place = context.place(star)
    left_out = {one.name.lower() for one in take_arguments(star, context, "except_")[0] or []}
    found = scope.star(table, place)
    unknown = left_out - {name.lower() for name, _ in found}
    if unknown:
        raise scope.unknown(min(unknown), place)
    return [(name, term) for name, term in found if name.lower() not in left_out]


def project_rows(rows: Relation, listed: Sequence[tuple[str, TypedTerm]], place: Place | None) -> Relation:
    """Return the rows with these columns; as they are, where these are all of them in order."""
    columns = rows.columns
    same = len(listed) == len(columns) and all(
        isinstance(term.node, Ref) and term.node.index == index and columns[index].name == name
        for index, (name, term) in enumerate(listed)
    )
    if same:
        return rows
    expressions: list[Expression] = []
    outs: list[Out] = []
    for name, term in listed:
        expressions.append(term.row)
        if term.column is not None:
            outs.append(replace(term.column, name=name))
        elif term.type is not None:
            outs.append(Out(name, term.type, term.nullable))
    return check_size(Project(rows, tuple(expressions), tuple(outs), place))


def _gives_keys(node: exp.Select, scope: Scope, context: Context, *, top: bool) -> bool:
    """Whether SELECT DISTINCT k is GROUP BY k; in a subquery that selects the unit it is about rows instead."""
    private = context.is_private(scope.rows)
    if top or not private:
        return private
    listed = _list_columns(node, scope, context, Windows(len(scope.rows.columns)))
    return not any(term.column is not None and term.column.unit for _, term in listed)


# ---- groups ------------------------------------------------------------------------------------------------------------


def _read_grouped(node: exp.Select, scope: Scope, context: Context, *, grouped: bool, top: bool) -> Scope:
    _check_private(node, scope, context)
    reading = Reading(context, scope, "GROUP BY", aliases=aliases_of(node.expressions))
    if grouped:
        keys, sets = keys_of(node.args.get("group"), node.expressions, reading)
    else:
        items = [strip_alias(item) for item in node.expressions]
        if any(star_of(item) is not None for item in items):
            raise _row_level_refusal(node, scope, context)
        keys = []
        sets = [tuple(dict.fromkeys(add_key(require_columns(reading.of(item)), keys) for item in items))]
    if not top and any(term.column is not None and term.column.unit for term in keys):
        if len(sets) > 1:
            raise invalid(context.place(node), "a subquery that groups by the unit must have one grouping set")
        return scope_of(_unit_group(node, scope, keys, context))
    check_released_keys(keys, context, top=top)
    return _read_released(node, scope, keys, sets, context, grouped=grouped)


def _check_private(node: exp.Select, scope: Scope, context: Context) -> None:
    if not context.is_private(scope.rows):
        raise invalid(
            context.place(node),
            "an aggregate must be over a private table; this is over public ones",
            "read public tables directly, without us.",
        )


def _read_released(
    node: exp.Select,
    scope: Scope,
    keys: list[TypedTerm],
    sets: list[tuple[int, ...]],
    context: Context,
    *,
    grouped: bool,
) -> Scope:
    several, place = len(sets) > 1, context.place(node)
    if len(sets) * len(node.expressions) > MOST_COLUMNS:
        raise invalid(place, f"an answer must have at most {MOST_COLUMNS:,} columns over all its grouping sets")
    reading = Reading(context, scope, "SELECT", aggregates="released", keys=index_keys(keys))
    items, having = read_items(node, reading)
    sorting = replace(reading, clause="ORDER BY", first="always")
    release = released_keys(keys, sets[0])
    order = read_ordering(node.args.get("order"), sorting, items, lambda term: release(term.node), several=several)
    listed = zip(node.expressions, items, strict=True)
    names = [(item_name(item, term, context.text), context.place(item)) for item, term in listed]
    tells = any(one.find(exp.Grouping) is not None for one in (*node.expressions, node.args.get("having")) if one is not None)
    blocks: list[Block] = []
    terms: list[tuple[TypedTerm, ...]] = []
    for chosen in sets:
        if tells:  # GROUPING(key) is another number in each set
            left_out = [index for index in range(len(keys)) if index not in chosen]
            items, having = read_items(node, replace(reading, absent=left_out, known={}))
        release = released_keys(keys, chosen)
        made = tuple(_released_term(term, release(term.node)) for term in items)
        if not several and not any(item.aggregated for item in items):
            _check_keys_only(made)
        released = tuple(Item(name, term.node, where) for (name, where), term in zip(names, made, strict=True))
        rows_keys = tuple(keys[one].row for one in chosen)
        kept = None if having is None else release(having.node)
        blocks.append(Block(scope.rows, rows_keys, released, kept, place))
        terms.append(made)
    if node.args.get("distinct") is not None and grouped:
        _check_distinct(blocks, place)
    most, skipped = read_limits(node.args.get("limit"), node.args.get("offset"), context)
    return scope_of_release(Question(tuple(blocks), order, most, skipped), terms)


def _released_term(term: TypedTerm, node: Node) -> TypedTerm:
    """Return an item as a released value."""
    return replace(term, node=node, column=None, unit=False, aggregated=True)


def _check_keys_only(items: Sequence[TypedTerm]) -> None:
    for item in items:
        if not isinstance(item.node, Key):
            raise invalid(
                item.place, "without aggregates every item must be a GROUP BY key", "put the whole expression into GROUP BY."
            )


def _check_distinct(blocks: list[Block], place: Place | None) -> None:
    for block in blocks:
        shown = {item.expression.index for item in block.items if isinstance(item.expression, Key)}
        if len(shown) < len(block.keys):
            raise invalid(place, "SELECT DISTINCT with aggregates must select every key", "leave DISTINCT out.")


# ---- groups inside a unit ----------------------------------------------------------------------------------------------


def _unit_group(node: exp.Select, scope: Scope, keys: list[TypedTerm], context: Context) -> Relation:
    """Return a subquery that groups by the unit: exact aggregates of each unit's own rows."""
    place = context.place(node)
    for term in keys:
        if term.unit and not (term.column is not None and term.column.unit):
            raise not_private(term.place, "an expression over the unit must not be a key", "GROUP BY the bare column.")
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is not None or offset is not None:
        raise not_private(context.place(limit or offset), "LIMIT must not choose among units")
    reading = Reading(context, scope, "SELECT", aggregates="unit", keys=index_keys(keys))
    mixed, having = read_items(node, reading)
    measured: dict[Aggregate, int] = {}
    find = key_finder(keys)

    def key(index: int, where: Place | None) -> Node:
        return Ref(index, keys[index].type or Type.STRING, where)

    def aggregate(found: Aggregate) -> Node:
        return Ref(len(keys) + measured.setdefault(found, len(measured)), found.type, found.place)

    listed: list[tuple[str, TypedTerm]] = []
    for item, term in zip(node.expressions, mixed, strict=True):
        done = replace_keys(term.node, find, key, aggregate)
        own = keys[done.index].column if isinstance(done, Ref) and done.index < len(keys) else None
        if term.unit and own is None:
            raise not_private(term.place, "an expression over the unit must not be selected", "select the bare column.")
        if term.type is None:
            raise invalid(term.place, "a column must have a type", "CAST(NULL AS DOUBLE)")
        listed.append((item_name(item, term, context.text), replace(term, node=done, column=own, aggregated=False)))
    kept = None if having is None else replace_keys(having.node, find, key, aggregate)
    order = node.args.get("order")
    if order is not None:
        sorting = replace(reading, clause="ORDER BY", first="always")
        read_ordering(
            order, sorting, mixed, lambda one: replace_keys(one.node, find, key, lambda found: found), several=False
        )
    outs = [term.column or Out(f"key_{index}", term.type or Type.STRING, term.nullable) for index, term in enumerate(keys, 1)]
    outs += [
        Out(f"aggregate_{index}", aggregate.type, nullable=not AGGREGATES[aggregate.function].counts)
        for index, aggregate in enumerate(measured, 1)
    ]
    rows = check_size(UnitGroup(scope.rows, tuple(one.row for one in keys), tuple(measured), tuple(outs), place))
    if kept is not None:
        rows = check_size(Filter(rows, TypedTerm(kept, Type.BOOLEAN).row, place))
    return _read_distinct(node, project_rows(rows, listed, place), context)

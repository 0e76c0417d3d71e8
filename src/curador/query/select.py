"""SELECT: rows of a subquery, rows of a per-unit subquery, or what is released."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import typed_terms
from curador.query.aggregates import holds_aggregate
from curador.query.context import (
    MOST_COLUMNS,
    WIDEST,
    AggregatedSelect,
    Aliases,
    Context,
    Environment,
    Reading,
    RelationRows,
    Windows,
    take_arguments,
)
from curador.query.expressions import read_expression
from curador.query.functions import AGGREGATES
from curador.query.messages import invalid, not_private, quote_name
from curador.query.release import (
    GroupKeys,
    check_released_keys,
    item_name,
    keys_of,
    read_limits,
    read_ordering,
    require_columns,
    reshape_select,
    strip_alias,
)
from curador.query.sources import read_filtered, read_from, read_from_item
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
    Ref,
    UnitGroup,
    Window,
)
from curador.query.typed_terms import TypedTerm
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.query.context import Scope
    from curador.query.tree import Place


@dataclass(frozen=True, slots=True)
class SelectParts:
    """The clauses of one SELECT."""

    items: list[exp.Expr]
    place: Place | None
    where: exp.Where | None = None
    group: exp.Group | None = None
    having: exp.Having | None = None
    order: exp.Order | None = None
    limit: Any = None
    offset: exp.Offset | None = None
    distinct: exp.Distinct | None = None

    @property
    def aliases(self) -> Aliases:
        """The names of the SELECT list, fresh for one clause."""
        return Aliases({item.alias.lower(): strip_alias(item) for item in self.items if isinstance(item, exp.Alias)})


def read_select(
    node: exp.Select, environment: Environment, context: Context, *, top: bool
) -> RelationRows | AggregatedSelect:
    """Return what a SELECT gives: at the top only what is released."""
    clauses = ("where", "group", "having", "order", "limit", "offset", "distinct")
    items, from_, joins, *rest = take_arguments(node, context, "expressions", "from_", "joins", *clauses, ignored=("with_",))
    parts = SelectParts(items or [], context.place(node), *rest)
    if parts.distinct is not None:
        take_arguments(parts.distinct, context)
    if not parts.items:
        raise invalid(parts.place, "a SELECT must list what it asks for", "SELECT COUNT(*) FROM a_table")
    if from_ is None:
        raise invalid(parts.place, "a SELECT must have FROM", "SELECT COUNT(*) FROM a_table")
    first = read_from_item(take_arguments(from_, context, "this")[0], environment, context)
    if isinstance(first.content, AggregatedSelect) and not joins:
        return reshape_select(node, first.content, first.sources[0], context)
    clause = read_from(first, joins or [], environment, context)
    rows, scope = read_filtered(clause, parts.where, environment, context, parts.aliases)
    grouped = parts.group is not None or parts.having is not None or any(holds_aggregate(item) for item in parts.items)
    if grouped or (parts.distinct is not None and _gives_keys(parts, rows, scope, context, top=top)):
        return _read_grouped(parts, rows, scope, context, grouped=grouped, top=top)
    if top:
        _list_columns(parts, scope, context, Windows(len(rows.columns)))  # a name or function that is wrong is said first
        raise _row_level_refusal(parts, rows)
    return _read_rows(parts, rows, scope, context)


def _row_level_refusal(parts: SelectParts, rows: RelationRows) -> Exception:
    if not rows.private:
        return invalid(
            parts.place,
            "a question must be about a private table; this reads public ones only",
            "read public tables directly.",
        )
    return not_private(
        parts.place,
        "a question must ask for aggregates or keys; this asks for rows of single people",
        "SELECT COUNT(*), AVG(x), … or GROUP BY.",
    )


def _public_aggregate_refusal(parts: SelectParts) -> Exception:
    return invalid(
        parts.place,
        "an aggregate must be over a private table; this is over public ones",
        "read public tables directly, without us.",
    )


# ---- rows --------------------------------------------------------------------------------------------------------------


def _read_rows(parts: SelectParts, rows: RelationRows, scope: Scope, context: Context) -> RelationRows:
    """Return a SELECT without aggregates as a relation, its unit still with it."""
    windows = Windows(len(rows.columns))
    listed = _list_columns(parts, scope, context, windows)
    if parts.limit is not None or parts.offset is not None:
        raise not_private(
            context.place(parts.limit or parts.offset),
            "LIMIT must not stand in a subquery over rows: whose rows it keeps would depend on others'",
            "caps on rows per unit do this; row_number() OVER (PARTITION BY unit …) keeps some of each unit's.",
        )
    if windows.calls:
        if not rows.private:
            raise invalid(parts.place, "a window function must be over a private table")
        outs = tuple(Out(call.function, call.type, nullable=True) for call in windows.calls)
        rows = rows.under(Window(rows.relation, tuple(windows.calls), (*rows.columns, *outs), parts.place))
    _check_order(parts, scope, context)
    rows = project_rows(rows, listed, parts.place)
    return _read_distinct(parts, rows)


def _check_order(parts: SelectParts, scope: Scope, context: Context) -> None:
    """Read ORDER BY of a subquery over rows, which has no meaning there, for its names only."""
    if parts.order is not None:
        reading = Reading(
            context, scope, "ORDER BY", windows=Windows(0), aliases=parts.aliases, first="always", read=read_expression
        )
        for sort in take_arguments(parts.order, context, "expressions")[0]:
            reading.of(take_arguments(sort, context, "this", ignored=("desc", "nulls_first"))[0])


def _read_distinct(parts: SelectParts, rows: RelationRows) -> RelationRows:
    if parts.distinct is None:
        return rows
    if not rows.private:
        raise invalid(parts.place, "SELECT DISTINCT must not be of a public table here", "IN (SELECT …) needs no DISTINCT.")
    if not any(column.unit for column in rows.columns):
        raise not_private(parts.place, "SELECT DISTINCT over rows must select the unit: people must not merge")
    return rows.under(Distinct(rows.relation, parts.place))


def _list_columns(parts: SelectParts, scope: Scope, context: Context, windows: Windows) -> list[tuple[str, TypedTerm]]:
    """Return the SELECT list as names and terms, with stars written out."""
    aliases = Aliases({})
    reading = Reading(context, scope, "SELECT", windows=windows, aliases=aliases, read=read_expression)
    found: list[tuple[str, TypedTerm]] = []
    for item in parts.items:
        inner = strip_alias(item)
        star = _star(inner)
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
            aliases.terms[item.alias.lower()] = term
    return found


def _star(node: exp.Expr) -> exp.Star | None:
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return node.this
    return node if isinstance(node, exp.Star) else None


def _without(star: exp.Star, table: str | None, scope: Scope, context: Context) -> list[tuple[str, TypedTerm]]:
    place = context.place(star)
    left_out = {one.name.lower() for one in take_arguments(star, context, "except_")[0] or []}
    found = [(one.name, one.term) for one in scope.star(table, place)]
    unknown = left_out - {name.lower() for name, _ in found}
    if unknown:
        raise scope.unknown(min(unknown), place)
    return [(name, term) for name, term in found if name.lower() not in left_out]


def project_rows(rows: RelationRows, listed: list[tuple[str, TypedTerm]], place: Place | None) -> RelationRows:
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
    return rows.under(Project(rows.relation, tuple(expressions), tuple(outs), place))


def _gives_keys(parts: SelectParts, rows: RelationRows, scope: Scope, context: Context, *, top: bool) -> bool:
    """Whether SELECT DISTINCT k is GROUP BY k; in a subquery that selects the unit it is about rows instead."""
    if top or not rows.private:
        return rows.private
    listed = _list_columns(parts, scope, context, Windows(len(rows.columns)))
    return not any(term.column is not None and term.column.unit for _, term in listed)


# ---- groups ------------------------------------------------------------------------------------------------------------


def _read_grouped(
    parts: SelectParts, rows: RelationRows, scope: Scope, context: Context, *, grouped: bool, top: bool
) -> RelationRows | AggregatedSelect:
    if not rows.private:
        raise _public_aggregate_refusal(parts)
    keyed = Reading(context, scope, "GROUP BY", aliases=parts.aliases, read=read_expression)
    if grouped:
        keys = keys_of(parts.group, parts.items, keyed)
    else:
        keys = GroupKeys()
        if any(_star(strip_alias(item)) is not None for item in parts.items):
            raise _row_level_refusal(parts, rows)
        keys.sets = [tuple(dict.fromkeys(keys.add(require_columns(keyed.of(strip_alias(item)))) for item in parts.items))]
    per_unit = not top and any(term.column is not None and term.column.unit for term in keys.terms)
    if not per_unit:
        check_released_keys(keys, context, top=top)
        return _read_released(parts, rows, scope, keys, context, grouped=grouped)
    return _unit_group(parts, rows, scope, keys, context)


def _items(parts: SelectParts, reading: Reading) -> tuple[list[TypedTerm], Aliases]:
    aliases = Aliases({})
    reading = replace(reading, aliases=aliases)
    terms: list[TypedTerm] = []
    for item in parts.items:
        inner = strip_alias(item)
        if _star(inner) is not None:
            raise not_private(
                reading.place(item),
                "* must not stand beside aggregates or keys: it means every column of single rows",
                "name the keys.",
            )
        term = reading.of(inner)
        terms.append(term)
        if isinstance(item, exp.Alias):
            aliases.terms[item.alias.lower()] = term
    return terms, aliases


def _having(parts: SelectParts, reading: Reading, aliases: Aliases, keys: GroupKeys) -> TypedTerm | None:
    if parts.having is None:
        return None
    condition = take_arguments(parts.having, reading.context, "this")[0]
    about = replace(reading, clause="HAVING", aliases=aliases, first="unless key", keys=keys.index)
    return typed_terms.require_boolean(about.of(condition), "what follows HAVING")


def _list_and_having(
    parts: SelectParts, reading: Reading, keys: GroupKeys
) -> tuple[list[TypedTerm], TypedTerm | None, Aliases]:
    terms, aliases = _items(parts, reading)
    return terms, _having(parts, reading, aliases, keys), aliases


def _read_released(
    parts: SelectParts, rows: RelationRows, scope: Scope, keys: GroupKeys, context: Context, *, grouped: bool
) -> AggregatedSelect:
    several = len(keys.sets) > 1
    if len(keys.sets) * len(parts.items) > MOST_COLUMNS:
        raise invalid(parts.place, f"an answer must have at most {MOST_COLUMNS:,} columns over all its grouping sets")
    reading = Reading(context, scope, "SELECT", aggregates="released", keys=keys.index, read=read_expression)
    items, having, aliases = _list_and_having(parts, reading, keys)
    sorting = replace(reading, clause="ORDER BY", aliases=aliases, first="always")
    order = read_ordering(parts.order, sorting, items, lambda term: keys.released(term, keys.sets[0]), several=several)
    listed = zip(parts.items, items, strict=True)
    names = [(item_name(item, term, context.text), context.place(item)) for item, term in listed]
    tells = any(item.find(exp.Grouping) is not None for item in (*parts.items, *filter(None, (parts.having,))))
    blocks: list[Block] = []
    terms: list[tuple[TypedTerm, ...]] = []
    for chosen in keys.sets:
        if tells:  # GROUPING(key) is another number in each set
            left_out = [place for place in range(len(keys.terms)) if place not in chosen]
            items, having, _ = _list_and_having(parts, replace(reading, absent=left_out), keys)
        made = tuple(_released_term(term, keys.released(term, chosen)) for term in items)
        if not several and not any(item.aggregated for item in items):
            _check_keys_only(made)
        released = tuple(Item(name, term.node, place) for (name, place), term in zip(names, made, strict=True))
        rows_keys = tuple(keys.terms[one].row for one in chosen)
        kept = None if having is None else keys.released(having, chosen)
        blocks.append(Block(rows.relation, rows_keys, released, kept, parts.place))
        terms.append(made)
    if parts.distinct is not None and grouped:
        _check_distinct(parts, blocks)
    most, skipped = read_limits(parts.limit, parts.offset, context)
    return AggregatedSelect(tuple(blocks), tuple(terms), rows.tables * len(blocks), order, most, skipped)


def _released_term(term: TypedTerm, node: Node) -> TypedTerm:
    """Return an item as a released value."""
    return replace(term, node=node, column=None, unit=False, aggregated=True)


def _check_keys_only(items: Sequence[TypedTerm]) -> None:
    for item in items:
        if not isinstance(item.node, Key):
            raise invalid(
                item.place, "without aggregates every item must be a GROUP BY key", "put the whole expression into GROUP BY."
            )


def _check_distinct(parts: SelectParts, blocks: list[Block]) -> None:
    for block in blocks:
        shown = {item.expression.index for item in block.items if isinstance(item.expression, Key)}
        if len(shown) < len(block.keys):
            raise invalid(parts.place, "SELECT DISTINCT with aggregates must select every key", "leave DISTINCT out.")


# ---- groups inside a unit ----------------------------------------------------------------------------------------------


def _unit_group(parts: SelectParts, rows: RelationRows, scope: Scope, keys: GroupKeys, context: Context) -> RelationRows:
    """Return a subquery that groups by the unit: exact aggregates of each unit's own rows."""
    if len(keys.sets) > 1:
        raise invalid(parts.place, "a subquery that groups by the unit must have one grouping set")
    for term in keys.terms:
        if term.unit and not (term.column is not None and term.column.unit):
            raise not_private(term.place, "an expression over the unit must not be a key", "GROUP BY the bare column.")
    if parts.limit is not None or parts.offset is not None:
        raise not_private(context.place(parts.limit or parts.offset), "LIMIT must not choose among units")
    reading = Reading(context, scope, "SELECT", aggregates="unit", keys=keys.index, read=read_expression)
    mixed, having, aliases = _list_and_having(parts, reading, keys)
    measured: dict[Aggregate, int] = {}

    def key(place: int, where: Place | None) -> Node:
        return Ref(place, keys.terms[place].type or Type.STRING, where)

    def aggregate(node: Aggregate) -> Node:
        return Ref(len(keys.terms) + measured.setdefault(node, len(measured)), node.type, node.place)

    listed: list[tuple[str, TypedTerm]] = []
    for item, term in zip(parts.items, mixed, strict=True):
        node = keys.replaced(term, key, aggregate)
        own = keys.terms[node.index].column if isinstance(node, Ref) and node.index < len(keys.terms) else None
        if term.unit and own is None:
            raise not_private(term.place, "an expression over the unit must not be selected", "select the bare column.")
        if term.type is None:
            raise invalid(term.place, "a column must have a type", "CAST(NULL AS DOUBLE)")
        listed.append((item_name(item, term, context.text), replace(term, node=node, column=own, aggregated=False)))
    kept = None if having is None else keys.replaced(having, key, aggregate)
    if parts.order is not None:
        sorting = replace(reading, clause="ORDER BY", aliases=aliases, first="always")
        read_ordering(parts.order, sorting, mixed, lambda one: keys.replaced(one, key, lambda node: node), several=False)
    outs = [
        term.column or Out(f"key_{index}", term.type or Type.STRING, term.nullable)
        for index, term in enumerate(keys.terms, 1)
    ]
    outs += [
        Out(f"aggregate_{index}", aggregate.type, nullable=not AGGREGATES[aggregate.function].counts)
        for index, aggregate in enumerate(measured, 1)
    ]
    group = UnitGroup(rows.relation, tuple(one.row for one in keys.terms), tuple(measured), tuple(outs), parts.place)
    done = rows.under(group)
    if kept is not None:
        done = done.under(Filter(done.relation, TypedTerm(kept, Type.BOOLEAN).row, parts.place))
    return _read_distinct(parts, project_rows(done, listed, parts.place))

"""A SELECT over what is released: its FROM holds results, never people's rows, and all it does is done after the release.

    FROM, WHERE ─► groups: of rows a leaf for each grouping set, of results an aggregation ─► HAVING ─► windows ─► QUALIFY
                ─► ORDER BY, LIMIT ─► SELECT list

A scalar subquery of results is a row beside every row. Over people's rows it would need exact values, and is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from curador.query import typed_terms
from curador.query.context import Reading, Scope, Windows, check_size, is_released, name_columns, scope_of, take_arguments
from curador.query.expressions import aggregate_name, holds_aggregate
from curador.query.lifting import (
    columns_of,
    cut_rows,
    is_count,
    leaf_of,
    lift_scope,
    noisy_columns,
    parts_of,
    project_released,
    row_node,
    scalar_refusal,
    unite_outs,
)
from curador.query.messages import invalid, not_private
from curador.query.release import (
    check_endings,
    item_name,
    key_finder,
    number_repeated,
    read_items,
    read_limits,
    read_ordering,
    star_of,
    strip_alias,
    ungrouped_refusal,
)
from curador.query.sources import JoinSide, join_pair
from curador.query.tree import (
    Aggregate,
    Block,
    Cut,
    Distinct,
    Filter,
    Join,
    Key,
    Literal,
    Node,
    Out,
    Project,
    Question,
    Ref,
    ReleasedCall,
    ReleasedGroup,
    ReleasedLeaf,
    ReleasedWindow,
    UnionAll,
    inputs_of,
    releases_of,
)
from curador.query.typed_terms import TypedTerm, columns_in, replace_nodes
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from curador.query.context import Context, Environment
    from curador.query.tree import AnyRelation, Expression, Item, Place, Relation

_SCALARS, _WINDOWS = 1 << 17, 1 << 18
"""Where columns are counted from that have no place yet: scalar subqueries, windows."""

MOST_SCALARS = 16


# ---- scalar subqueries -----------------------------------------------------------------------------------------------


def find_scalars(nodes: Iterable[exp.Expr | None], *, aggregated: bool) -> list[exp.Subquery]:
    """Return the scalar subqueries in expressions; aggregated: those inside aggregates, else those outside of them."""
    found: list[exp.Subquery] = []
    stack = [(node, False, False) for node in nodes if node is not None]
    while stack:
        node, inside, called = stack.pop()
        if isinstance(node, exp.Subquery):
            if inside == aggregated:
                found.append(node)
            continue
        if isinstance(node, exp.Query | exp.Exists):
            continue
        own = isinstance(node, exp.AggFunc | exp.Filter) or (
            isinstance(node, exp.Anonymous) and aggregate_name(node) is not None
        )
        inner = inside or (own and not called)
        below = [one for one in node.iter_expressions() if not (isinstance(node, exp.In) and one is node.args.get("query"))]
        stack += [(one, inner, isinstance(node, exp.Window)) for one in below]
    return found[::-1]


def take_scalars(nodes: Sequence[exp.Subquery], environment: Environment, context: Context, before: int = 0) -> list[Scope]:
    """Return scalar subqueries of results as scopes of one row, and put the name of its column where each stood."""
    if before + len(nodes) > MOST_SCALARS:
        raise invalid(context.place(nodes[0]), f"a SELECT must have at most {MOST_SCALARS} scalar subqueries")
    found: list[Scope] = []
    for number, node in enumerate(nodes, before):
        place = context.place(node)
        scope = lift_scope(context.query(node.this, environment, context))
        rows = scope.rows
        if not is_released(rows):
            raise scalar_refusal(place)
        if len(rows.columns) != 1:
            raise invalid(place, f"a scalar subquery must have one column; got {len(rows.columns)}")
        if not gives_one_row(rows):
            raise invalid(
                place,
                "a scalar subquery must give one row",
                "an aggregate without GROUP BY, or ORDER BY … LIMIT 1.",
            )
        if any(
            _is_extreme(item.expression) for leaf in releases_of(rows) for item in leaf.block.items if not leaf.block.keys
        ):
            raise not_private(
                place,
                "MIN and MAX of people's rows must not stand in a scalar subquery: one person may decide them",
                "ask for it, then write the number.",
            )
        alias = f"scalar subquery {number + 1}"
        columns = name_columns([replace(rows.columns[0], name="value")])
        found.append(Scope(rows, columns, ((alias, columns),), place=place))
        node.replace(exp.Column(this=exp.to_identifier("value", quoted=True), table=exp.to_identifier(alias, quoted=True)))
    return found


def _is_extreme(node: Node) -> bool:
    return isinstance(node, Aggregate) and node.q in {0, 1}  # only quantiles have one


def gives_one_row(relation: AnyRelation) -> bool:
    """Whether a relation of released rows has one row at most."""
    match relation:
        case ReleasedLeaf():
            return not relation.block.keys
        case ReleasedGroup():
            return not relation.keys
        case Cut() if relation.limit is not None and relation.limit <= 1:
            return True
        case UnionAll():
            return False
        case _:
            return all(gives_one_row(one) for one in inputs_of(relation))


def beside_scalars(
    node: exp.Select, scope: Scope, sides: list[JoinSide], environment: Environment, context: Context
) -> Scope:
    """Return FROM of results with the rows of scalar subqueries beside its own; `*` does not mean them.

    Of a SELECT that aggregates only those of WHERE, and inside of aggregates: all others stand beside the groups.
    """
    clauses = [*node.expressions, *(node.args.get(one) for one in ("having", "qualify", "order"))]
    where = node.args.get("where")
    grouped = any(node.args.get(one) is not None for one in ("group", "having")) or any(
        map(holds_aggregate, node.expressions)
    )
    asked = find_scalars([where], aggregated=False) + find_scalars(clauses, aggregated=True)
    asked += [] if grouped else find_scalars(clauses, aggregated=False)
    scalars = take_scalars(asked, environment, context)
    width = len(scope.rows.columns) + sum(
        len(side.rows.columns) + len(side.merged) for side in sides if side.kind not in _HALF
    )
    for scalar in scalars:
        sides.append(JoinSide(scalar.rows, scalar.place, "left", width))
        scope = replace(scope, sources=(*scope.sources, *scalar.shifted(width).sources))
        width += 1
    return scope


_HALF = {"semi", "anti"}


def read_without_from(node: exp.Select, environment: Environment, context: Context) -> Scope | None:
    """Return a SELECT of nothing but scalar subqueries and what is computed from them; None where there is none in it."""
    take_arguments(node, context, "expressions", ignored=("with_",))
    asked = find_scalars(node.expressions, aggregated=False)
    if not asked:
        return None
    first, *others = take_scalars(asked, environment, context)
    rows, scope = first.rows, first
    for other in others:
        scope = replace(scope, sources=(*scope.sources, *other.shifted(len(rows.columns)).sources))
        rows = join_pair(rows, other.rows, "left", None, other.place)
    return read_above(node, replace(scope, content=rows, shown=()), environment, context)


# ---- which SELECT this is ---------------------------------------------------------------------------------------------


def folds(node: exp.Select, inner: Question) -> bool:
    """Whether an outer SELECT changes no more than the columns, the rows and the order of the result below it."""
    if any(node.args.get(one) is not None for one in ("distinct", "group", "having", "qualify")):
        return False
    if any(holds_aggregate(item) for item in node.expressions) or _does_more(node):
        return False
    where = node.args.get("where")
    if where is not None and where.find(exp.Query) is not None:
        return False
    cut = inner.limit is not None or inner.offset > 0
    return not (cut and any(node.args.get(one) is not None for one in ("where", "order", "limit", "offset")))


def lifts(node: exp.Select) -> bool:
    """Whether a SELECT with aggregates over rows does more to them than arithmetic: windows, scalar subqueries, QUALIFY."""
    return node.args.get("qualify") is not None or _does_more(node)


def _does_more(node: exp.Select) -> bool:
    nodes = [*node.expressions, *(node.args.get(one) for one in ("where", "having", "order"))]
    parts = [one for one in nodes if one is not None]
    return any(_holds_window(one) for one in parts) or bool(find_scalars(parts, aggregated=False))


def _holds_window(node: exp.Expr) -> bool:
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, exp.Window):
            return True
        if not isinstance(current, exp.Query | exp.Subquery):
            stack += current.iter_expressions()
    return False


def aggregates_under_windows(node: exp.Expr) -> bool:
    """Whether a window function is of aggregates, as SUM(COUNT(*)) OVER () is."""
    for window in node.find_all(exp.Window):
        own = window.this
        inside = [*own.iter_expressions(), *(window.args.get("partition_by") or []), window.args.get("order")]
        if any(one is not None and holds_aggregate(one) for one in inside):
            return True
    return False


# ---- SELECT ----------------------------------------------------------------------------------------------------------


def read_above(
    node: exp.Select,
    scope: Scope,
    environment: Environment,
    context: Context,
    keys: list[TypedTerm] | None = None,
    sets: Sequence[tuple[int, ...]] = ((),),
) -> Scope:
    """Return a SELECT that is computed after the release. `keys` and `sets`: it aggregates, over rows or over results."""
    grouped, place = keys is not None, context.place(node)
    clauses = [*node.expressions, *(node.args.get(one) for one in ("having", "qualify", "order"))]
    scalars: list[Scope] = []
    if grouped:
        scalars = take_scalars(find_scalars(clauses, aggregated=False), environment, context, len(scope.sources))
        for number, scalar in enumerate(scalars):
            sources = scalar.shifted(_SCALARS + number).sources
            scope = replace(scope, sources=(*scope.sources, *sources))
    windows = Windows(_WINDOWS, released=True)
    how = ("above" if is_released(scope.rows) else "released") if grouped else None
    index = {term.node: number for number, term in enumerate(keys or [])}
    reading = Reading(context, scope, "SELECT", aggregates=how, windows=windows, keys=index)
    listed, having = _read_list(node, reading) if not grouped else _read_grouped_list(node, reading)
    terms = [term for _, term in listed]
    qualify = _read_qualify(node, reading)
    sorting = replace(reading, clause="ORDER BY", first="always")
    distinct = node.args.get("distinct") is not None
    order = read_ordering(node.args.get("order"), sorting, terms, lambda term: term.node, several=distinct)
    limits = read_limits(node.args.get("limit"), node.args.get("offset"), context)
    calls: list[ReleasedCall] = list(windows.calls)  # type: ignore[arg-type]
    nodes = [*(term.node for term in terms), *([having] if having else []), *([qualify] if qualify else [])]
    nodes += [one.expression for one in order]
    nodes += [part for call in calls for part in parts_of(call)]
    if grouped and keys is not None:
        names = {term.node: name for name, term in reversed(listed)}
        rows, placed = _grouped_rows(scope.rows, keys, sets, nodes, names, place, tells=_tells(node))
    else:
        rows, placed = scope.rows, _as_it_is
    width = len(rows.columns)
    for scalar in scalars:
        rows = join_pair(rows, scalar.rows, "left", None, scalar.place)
    many = len(rows.columns)

    def over(one: Node) -> Node:
        return replace_nodes(one, lambda part: _placed(part, placed, width, many))

    if having is not None and any(index >= _WINDOWS for index in columns_in(having)):
        raise invalid(place, "HAVING must not hold a window function", "QUALIFY is about windows, after aggregates.")
    if having is not None:
        rows = check_size(Filter(rows, row_node(over(having)), place))
    if calls:
        moved = tuple(_moved(call, over) for call in calls)
        outs = tuple(Out(call.function, call.type, nullable=True) for call in calls)
        rows = check_size(ReleasedWindow(rows, moved, (*rows.columns, *outs), place))
    if qualify is not None:
        rows = check_size(Filter(rows, row_node(over(qualify)), place))
    columns = [(name, over(term.node)) for name, term in listed]
    if distinct:
        rows = check_size(Distinct(project_released(rows, columns, place), place))
        return scope_of(cut_rows(rows, order, *limits))
    ordered = tuple(replace(one, expression=over(one.expression)) for one in order)
    return scope_of(project_released(cut_rows(rows, ordered, *limits), columns, place))


def _placed(node: Node, placed: Callable[[Node], Node | None], width: int, many: int) -> Node | None:
    """Where a column without a place stands: windows after scalar subqueries, those after the rows."""
    if isinstance(node, Ref) and node.index >= _WINDOWS:
        return replace(node, index=many + node.index - _WINDOWS)
    if isinstance(node, Ref) and node.index >= _SCALARS:
        return replace(node, index=width + node.index - _SCALARS)
    return placed(node)


def _as_it_is(node: Node) -> Node | None:
    return node if isinstance(node, Ref) else None


def _moved(call: ReleasedCall, over: Callable[[Node], Node]) -> ReleasedCall:
    return replace(
        call,
        argument=None if call.argument is None else row_node(over(call.argument)),
        partition=tuple(row_node(over(one)) for one in call.partition),
        order=tuple(replace(one, expression=over(one.expression)) for one in call.order),
    )


def _read_list(node: exp.Select, reading: Reading) -> tuple[list[tuple[str, TypedTerm]], None]:
    """The SELECT list over released rows, with stars written out."""
    found: list[tuple[str, TypedTerm]] = []
    context, scope = reading.context, reading.scope
    for item in node.expressions:
        inner = strip_alias(item)
        star = star_of(inner)
        if star is not None:
            if isinstance(item, exp.Alias):
                raise invalid(context.place(item), "* must have no alias")
            take_arguments(star, context)
            table = inner.table if isinstance(inner, exp.Column) else ""
            found += scope.star(table or None, context.place(star))
            continue
        term = reading.of(inner)
        found.append((item_name(item, term, context.text), term))
        if isinstance(item, exp.Alias):
            reading.known[item.alias.lower()] = term
    return found, None


def _read_grouped_list(node: exp.Select, reading: Reading) -> tuple[list[tuple[str, TypedTerm]], Node | None]:
    terms, having = read_items(node, reading)
    names = [item_name(item, term, reading.context.text) for item, term in zip(node.expressions, terms, strict=True)]
    return list(zip(names, terms, strict=True)), None if having is None else having.node


def _read_qualify(node: exp.Select, reading: Reading) -> Node | None:
    qualify = node.args.get("qualify")
    if qualify is None:
        return None
    condition = take_arguments(qualify, reading.context, "this")[0]
    about = replace(reading, clause="QUALIFY", first="unless key")
    return typed_terms.require_boolean(about.of(condition), "what follows QUALIFY").node


def _tells(node: exp.Select) -> exp.Expr | None:
    return next((found for found in (one.find(exp.Grouping) for one in node.expressions) if found is not None), None)


def _grouped_rows(
    below: Relation,
    keys: Sequence[TypedTerm],
    sets: Sequence[tuple[int, ...]],
    nodes: Sequence[Node],
    names: Mapping[Node, str],
    place: Place | None,
    *,
    tells: exp.Expr | None,
) -> tuple[Relation, Callable[[Node], Node | None]]:
    """The keys and aggregates of a SELECT as released rows, and where in them a node stands."""
    find = key_finder(keys)
    measured: dict[Aggregate, int] = {}

    def placed(node: Node) -> Node | None:
        found = find(node)
        if found is not None:
            return Ref(found, keys[found].type or Type.STRING, TypedTerm(node, None).place)
        if isinstance(node, Aggregate):
            return Ref(len(keys) + measured.setdefault(node, len(measured)), node.type, node.place)
        if isinstance(node, Ref) and node.index < _SCALARS:
            raise ungrouped_refusal(node.place)
        return node if isinstance(node, Ref) else None

    for node in nodes:
        replace_nodes(node, placed)
    if any(index >= _SCALARS for one in measured for index in columns_of(one)):
        raise scalar_refusal(place)
    if tells is not None and len(sets) > 1:
        raise invalid(place, "GROUPING must not stand beside a window, a scalar subquery or QUALIFY")
    parts = [_one_set(below, keys, chosen, list(measured), names, place, whole=len(sets) == 1) for chosen in sets]
    rows = parts[0] if len(parts) == 1 else check_size(UnionAll(tuple(parts), unite_outs(parts), place))
    return rows, placed


def _one_set(
    below: Relation,
    keys: Sequence[TypedTerm],
    chosen: tuple[int, ...],
    measured: list[Aggregate],
    names: Mapping[Node, str],
    place: Place | None,
    *,
    whole: bool,
) -> Relation:
    """One grouping set: of rows a block, of results an aggregation. A key that it leaves out is NULL."""
    own = [keys[index].row for index in chosen]
    own_names = [f"key_{index + 1}" if (out := keys[index].column) is None else out.name for index in chosen]
    named = [names.get(keys[index].node, name) for index, name in zip(chosen, own_names, strict=True)]
    if is_released(below):
        outs = [Out(name, key.type or Type.STRING, nullable=True) for name, key in zip(named, own, strict=True)]
        outs += [Out(one.function, one.type, nullable=not is_count(one)) for one in measured]
        rows: Relation = check_size(ReleasedGroup(below, tuple(own), tuple(measured), tuple(outs), place))
    else:
        rows = leaf_of(below, own, measured, [*named, *(names.get(one, "") for one in measured)], place)
    if whole and chosen == tuple(range(len(keys))):
        return rows
    listed: list[tuple[str, Node]] = []
    for index, key in enumerate(keys):
        kind = key.type or Type.STRING
        there = Ref(chosen.index(index), kind) if index in chosen else Literal(None, kind)
        listed.append((f"key_{index + 1}", there))
    listed += [(one.function, Ref(len(chosen) + number, one.type)) for number, one in enumerate(measured)]
    return project_released(rows, listed, place)


# ---- the whole question -----------------------------------------------------------------------------------------------


def question_above(rows: Relation) -> Question:
    """Return a question whose blocks are the results that its tree reads: one block for equal rows and equal keys."""
    blocks: dict[tuple[Relation, tuple[Expression, ...]], list[Item]] = {}
    for leaf in releases_of(rows):
        held = blocks.setdefault((leaf.block.relation, leaf.block.keys), [])
        known = {item.expression for item in held}
        held += [item for item in leaf.block.items if item.expression not in known]
    made: dict[tuple[Relation, tuple[Expression, ...]], Block] = {}
    for (relation, keys), items in blocks.items():
        own = [item for item in items if isinstance(item.expression, Key)]
        rest = [item for item in items if not isinstance(item.expression, Key)]
        names = number_repeated([item.name for item in (*own, *rest)])
        named = tuple(replace(item, name=name) for item, name in zip((*own, *rest), names, strict=True))
        made[relation, keys] = Block(relation, keys, named, None, own[0].place if own else rest[0].place)
    names = number_repeated([out.name for out in rows.columns])
    listed: list[tuple[str, Node]] = [
        (name, Ref(place, out.type)) for place, (name, out) in enumerate(zip(names, rows.columns, strict=True))
    ]
    tree = project_released(_with_blocks(rows, made), listed, rows.place)
    _check_ends(tree)
    return Question(tuple(made.values()), above=tree)


def _check_ends(tree: AnyRelation) -> None:
    """Refuse a name that an interval of another column will have."""
    outs = list(zip(tree.columns, noisy_columns(tree), strict=True))
    check_endings(
        [(out.name, tree.place) for out, _ in outs], {out.name for out, noisy in outs if noisy and out.type.numeric}
    )


def _with_blocks(rows: AnyRelation, made: dict[tuple[Relation, tuple[Expression, ...]], Block]) -> Relation:
    """The tree with every leaf over the block that has all of its items."""
    match rows:
        case ReleasedLeaf():
            block = made[rows.block.relation, rows.block.keys]
            places = {item.expression: place for place, item in enumerate(block.items)}
            outs = tuple(Out(item.name, item.expression.type or Type.STRING, nullable=True) for item in block.items)
            leaf = check_size(ReleasedLeaf(block, outs, rows.place))
            if [places[item.expression] for item in rows.block.items] == list(range(len(outs))):
                return leaf  # what its columns are called does not matter below the top
            listed = [
                (out.name, Ref(places[item.expression], out.type))
                for item, out in zip(rows.block.items, rows.columns, strict=True)
            ]
            return project_released(leaf, listed, rows.place)
        case Join():
            return replace(rows, left=_with_blocks(rows.left, made), right=_with_blocks(rows.right, made))
        case UnionAll():
            return replace(rows, inputs=tuple(_with_blocks(one, made) for one in rows.inputs))
        case Filter() | Project() | Distinct() | ReleasedGroup() | ReleasedWindow() | Cut():
            return check_size(replace(rows, input=_with_blocks(rows.input, made)))
        case _:
            raise TypeError(f"not of released rows: {type(rows).__name__}")

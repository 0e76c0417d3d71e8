"""What a SELECT releases: names of its columns, GROUP BY with its grouping sets, and what is done after the release.

Names of output columns: the alias; else the column; else the function and its column (`count`, `sum_spent`).

GROUP BY: its keys, and the grouping sets that ROLLUP, CUBE and GROUPING SETS make of them.

After the release: ORDER BY and LIMIT, an outer SELECT over an aggregated one, UNION ALL of aggregated ones.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import typed_terms
from curador.query.calls import cast_term
from curador.query.context import MOST_COLUMNS, Context, Reading, Scope, scope_of_release, take_arguments
from curador.query.expressions import holds_aggregate, operands_of
from curador.query.messages import invalid, not_private, quote_name
from curador.query.text import function_name, place_of
from curador.query.tree import Aggregate, Block, Call, Item, Key, Literal, Node, Order, Question, Ref
from curador.query.typed_terms import TypedTerm, columns_in, conjoin, replace_nodes
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from curador.query.tree import Place


# ---- names -----------------------------------------------------------------------------------------------------------------


MOST_LETTERS = 200


def strip_alias(node: exp.Expr) -> exp.Expr:
    """Return an item of a SELECT list without its alias and brackets."""
    while isinstance(node, exp.Alias | exp.Paren):
        node = node.this
    return node


def aliases_of(items: Sequence[exp.Expr]) -> dict[str, exp.Expr]:
    """Return the names that a SELECT list gives, in lower case, with what they stand for."""
    return {item.alias.lower(): strip_alias(item) for item in items if isinstance(item, exp.Alias)}


def item_name(node: exp.Expr, term: TypedTerm, text: str) -> str:
    """Return the name of an item of a SELECT list. A bare column has its own, in the letter case of its table."""
    if not isinstance(node, exp.Alias) and isinstance(strip_alias(node), exp.Column) and term.column is not None:
        return term.column.name
    if isinstance(node, exp.Alias):
        name = node.alias
        if not name or len(name) > MOST_LETTERS or not name.isprintable():
            raise invalid(place_of(node, text), f"a name must be of 1 to {MOST_LETTERS} printable letters")
        return name
    return _plain_name(node, text)


def _plain_name(node: exp.Expr, text: str) -> str:
    while isinstance(node, exp.Paren | exp.Cast | exp.Filter):
        node = node.this
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.WithinGroup):
        order = node.expression
        column = _column_of(order.expressions[0].this) if isinstance(order, exp.Order) and order.expressions else None
        return _with_column(function_name(node.this, text), column)
    if isinstance(node, exp.Extract):
        return _with_column(node.name.lower(), _column_of(node.expression))
    if isinstance(node, exp.Case | exp.If):
        return "case"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return _with_column(function_name(node, text), _column_of(node))
    return "value"


def _column_of(node: exp.Expr) -> str | None:
    """Return the name of the column that a function is of, if it is of one."""
    arguments = list(node.iter_expressions()) if isinstance(node, exp.Func) else [node]
    for argument in arguments:
        inner: exp.Expr = argument
        if isinstance(inner, exp.Distinct):
            inner = inner.expressions[0] if inner.expressions else inner
        while isinstance(inner, exp.Paren | exp.Cast):
            inner = inner.this
        if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Identifier):
            return inner.name
        if not isinstance(inner, exp.Literal | exp.Var):
            return None
    return None


def _with_column(function: str, column: str | None) -> str:
    return function if column is None else f"{function}_{column}"


def number_repeated(names: Sequence[str]) -> list[str]:
    """Return the names with `_2`, `_3`, … after those that came before, whatever their letter case."""
    taken: set[str] = set()
    counts: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        label, count = name, counts.get(name.lower(), 1)
        while label.lower() in taken:
            count += 1
            label = f"{name}_{count}"
        counts[name.lower()] = count
        taken.add(label.lower())
        found.append(label)
    return found


def check_clashes(items: Sequence[Item]) -> None:
    """Refuse a name that an interval of another column will have: x is followed by x_low and x_high."""
    released = {item.name for item in items if is_released_number(item.expression)}
    check_endings([(item.name, item.place) for item in items], released)


def check_endings(columns: Sequence[tuple[str, Place | None]], released: Collection[str]) -> None:
    """Refuse a column, given with its place, whose name is that of an end of a released column's interval."""
    names = {name.lower(): (name, place) for name, place in columns}
    for name in (one for one, _ in columns if one in released):
        for ending in ("_low", "_high"):
            other = names.get(f"{name.lower()}{ending}")
            if other is not None:
                raise invalid(
                    other[1],
                    f"the columns {quote_name(name)} and {quote_name(other[0])} clash: the interval of "
                    f"{quote_name(name)} is in {quote_name(name + '_low')} and {quote_name(name + '_high')}",
                    "give one of them another name with AS.",
                )


def is_released_number(node: Node) -> bool:
    """Whether an output column carries an interval: a number or date that an aggregate is in."""
    type_ = node.type
    return type_ is not None and (type_.numeric or type_.temporal) and _holds_aggregate(node)


def _holds_aggregate(node: Node) -> bool:
    return isinstance(node, Aggregate) or (
        isinstance(node, Call) and any(_holds_aggregate(argument) for argument in node.arguments)
    )


def name_blocks(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks of the whole question with their final names, which are the first one's."""
    names = number_repeated([item.name for item in blocks[0].items])
    done: list[Block] = []
    for block in blocks:
        items = tuple(Item(name, item.expression, item.place) for name, item in zip(names, block.items, strict=True))
        check_clashes(items)
        done.append(Block(block.relation, block.keys, items, block.having, block.place))
    return tuple(done)


# ---- the SELECT list -------------------------------------------------------------------------------------------------------


def star_of(node: exp.Expr) -> exp.Star | None:
    """Return the star of * or table.*, None where a node is none."""
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return node.this
    return node if isinstance(node, exp.Star) else None


def read_items(node: exp.Select, reading: Reading) -> tuple[list[TypedTerm], TypedTerm | None]:
    """Return the SELECT list and HAVING; the aliases of the list are known to the reading from then on."""
    terms: list[TypedTerm] = []
    for item in node.expressions:
        inner = strip_alias(item)
        if star_of(inner) is not None:
            raise not_private(
                reading.place(item),
                "* must not stand beside aggregates or keys: it means every column of single rows",
                "name the keys.",
            )
        term = reading.of(inner)
        terms.append(term)
        if isinstance(item, exp.Alias):
            reading.known[item.alias.lower()] = term
    having = node.args.get("having")
    if having is None:
        return terms, None
    condition = take_arguments(having, reading.context, "this")[0]
    about = replace(reading, clause="HAVING", windows=None, first="unless key")
    return terms, typed_terms.require_boolean(about.of(condition), "what follows HAVING")


# ---- grouping --------------------------------------------------------------------------------------------------------------


MOST_SETS = 64
MOST_KEYS = 64


def add_key(term: TypedTerm, keys: list[TypedTerm]) -> int:
    """Return the place of a key among the keys, to which it is added unless it is there."""
    place = next((place for place, one in enumerate(keys) if one.node == term.node), len(keys))
    if place >= MOST_KEYS:
        raise invalid(term.place, f"a question must have at most {MOST_KEYS} keys")
    if place == len(keys):
        keys.append(term)
    return place


def index_keys(keys: Sequence[TypedTerm]) -> dict[Node, int]:
    """Return the place of each key by its node."""
    return {term.node: place for place, term in enumerate(keys)}


def key_finder(keys: Sequence[TypedTerm]) -> Callable[[Node], int | None]:
    """Return what says where among the keys a node stands. A key is known by its structure."""
    index = index_keys(keys)
    heads = {_head(term.node) for term in keys}
    return lambda node: index.get(node) if _head(node) in heads else None  # hashing a node walks all of it


def replace_keys(
    node: Node,
    find: Callable[[Node], int | None],
    key: Callable[[int, Place | None], Node],
    aggregate: Callable[[Aggregate], Node],
) -> Node:
    """Return a node with the keys that `find` finds, and its aggregates, replaced; refuse a column that is neither.

    What stands on top of a key is compared first.
    """

    def leaf(node: Node) -> Node | None:
        place = find(node)
        if place is not None:
            return key(place, TypedTerm(node, None).place)
        if isinstance(node, Ref):
            raise ungrouped_refusal(node.place)
        return aggregate(node) if isinstance(node, Aggregate) else None

    return replace_nodes(node, leaf)


def released_keys(keys: Sequence[TypedTerm], chosen: tuple[int, ...]) -> Callable[[Node], Node]:
    """Return what puts a node over the keys and aggregates that a grouping set releases. A key that it leaves out is NULL."""
    find = key_finder(keys)

    def key(place: int, where: Place | None) -> Node:
        type_ = keys[place].type
        if place not in chosen or type_ is None:
            return Literal(None, type_, where)
        return Key(chosen.index(place), type_, where)

    return lambda node: replace_keys(node, find, key, _itself)


def keys_of(
    group: exp.Group | None, items: Sequence[exp.Expr], reading: Reading
) -> tuple[list[TypedTerm], list[tuple[int, ...]]]:
    """Return the keys of GROUP BY, each once, and where in them every grouping set points; without it there is one group."""
    keys: list[TypedTerm] = []
    context = reading.context
    if group is None:
        return keys, [()]
    expressions, everything, rollup, cube = take_arguments(group, context, "expressions", "all", "rollup", "cube")

    def key(node: exp.Expr) -> int:
        return add_key(_key(node, items, reading), keys)

    if everything:
        if expressions:
            raise invalid(context.place(group), "GROUP BY ALL must stand without further keys")
        plain = [strip_alias(item) for item in items if not (holds_aggregate(item) or item.find(exp.Window))]
        if any(isinstance(one, exp.Star) for one in plain):
            raise not_private(context.place(plain[0]), "* must not be a key", "name the keys.")
        return keys, [tuple(dict.fromkeys(key(one) for one in plain))]
    if not expressions:
        raise invalid(context.place(group), "GROUP BY must be followed by keys")
    alternatives = [_alternatives(one, key, context) for one in expressions or []]
    for written, kind in ((rollup, exp.Rollup), (cube, exp.Cube)):  # GROUP BY a, b WITH ROLLUP
        if written:
            if len(written) != 1 or written[0].expressions:
                raise invalid(context.place(group), "ROLLUP and CUBE must be written as ROLLUP (a, b)")
            alternatives = [_alternatives(kind(expressions=expressions or []), key, context)]
    count = 1
    for alternative in alternatives:
        count *= len(alternative)
        if count > MOST_SETS:
            raise invalid(context.place(group), f"a GROUP BY must have at most {MOST_SETS} grouping sets")
    sets = [tuple(sorted({place for part in one for place in part})) for one in itertools.product(*alternatives)]
    return keys, sets


def _alternatives(node: Any, key: Callable[[exp.Expr], int], context: Context) -> list[tuple[int, ...]]:
    """Return the sets of keys that one part of GROUP BY stands for."""
    if isinstance(node, exp.Rollup | exp.Cube):
        parts = [_one_set(one, key, context) for one in take_arguments(node, context, "expressions")[0] or []]
        if isinstance(node, exp.Rollup):
            chosen = [parts[:length] for length in range(len(parts), -1, -1)]
        else:
            if len(parts) > 6:
                raise invalid(context.place(node), f"CUBE must make at most {MOST_SETS} grouping sets")
            chosen = [
                list(subset) for length in range(len(parts), -1, -1) for subset in itertools.combinations(parts, length)
            ]
        return [tuple(place for part in subset for place in part) for subset in chosen]
    if isinstance(node, exp.GroupingSets):
        found: list[tuple[int, ...]] = []
        for alternative in take_arguments(node, context, "expressions")[0]:
            found += _alternatives(alternative, key, context)
        return found
    return [_one_set(node, key, context)]


def _one_set(node: exp.Expr, key: Callable[[exp.Expr], int], context: Context) -> tuple[int, ...]:
    if isinstance(node, exp.Tuple):
        return tuple(key(one) for one in take_arguments(node, context, "expressions")[0] or [])
    return (key(node),)


def _key(node: exp.Expr, items: Sequence[exp.Expr], reading: Reading) -> TypedTerm:
    place = reading.place(node)
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        if not node.name.isdecimal() or not 1 <= int(node.name[:9]) <= len(items):
            raise invalid(place, f"a position in GROUP BY must be from 1 to {len(items)}")
        node = strip_alias(items[int(node.name) - 1])
    if holds_aggregate(node):
        raise invalid(place, "a key must not hold an aggregate")
    return require_columns(reading.of(node))


def require_columns(term: TypedTerm) -> TypedTerm:
    """Return a key unless it is a constant."""
    if not columns_in(term.node):
        raise invalid(term.place, "a key must be an expression over columns")
    return term


def check_released_keys(keys: Sequence[TypedTerm], context: Context, *, top: bool) -> None:
    """Refuse keys that single out units: the unit, what is computed from it, a declared key of one unit's rows."""
    for term in keys:
        if term.unit:
            raise not_private(
                term.place,
                "the unit, or an expression over it, must not be a key of what is released: each group would be one unit",
                f"COUNT(DISTINCT {context.unit}) counts them; GROUP BY {context.unit} may stand in a subquery in FROM.",
            )
        if context.identity(term.column) is not None:
            raise not_private(
                term.place,
                "a key must not identify: this column belongs to one unit's rows by declaration",
                "group by what many units share; the column may stand in WHERE and in joins."
                if top
                else "group the subquery by the unit as well: join the table that has it, GROUP BY unit, key.",
            )


def _itself(node: Aggregate) -> Node:
    return node


def _head(node: Node) -> tuple[object, object]:
    if isinstance(node, Call):
        return (Call, node.function)
    return (type(node), node.index if isinstance(node, Ref | Key) else None)


def ungrouped_refusal(place: Place | None) -> Exception:
    """Return the refusal of a column beside aggregates."""
    return invalid(
        place,
        "a column must stand in GROUP BY or inside an aggregate",
        "add it to GROUP BY, or ask for AVG, MEDIAN, … of it.",
    )


# ---- released --------------------------------------------------------------------------------------------------------------


MOST_BLOCKS = 64
_CLAUSE = "the result of an aggregated subquery"


# ---- ORDER BY, LIMIT ---------------------------------------------------------------------------------------------------


def read_ordering(
    order: exp.Order | None,
    reading: Reading,
    items: Sequence[TypedTerm],
    released: Callable[[TypedTerm], Node],
    *,
    several: bool,
) -> tuple[Order, ...]:
    """Return ORDER BY over released values. With several blocks it must be an output column."""
    if order is None:
        return ()
    found: list[Order] = []
    for sort in take_arguments(order, reading.context, "expressions")[0]:
        this, descending, first = take_arguments(sort, reading.context, "this", "desc", "nulls_first")
        for term in _read_ordered_by(this, reading, items):
            node = released(term)
            if several:
                node = _output_column(term, items, reading.place(sort))
            found.append(Order(node, bool(descending), bool(first)))
    return tuple(found)


def _read_ordered_by(node: exp.Expr, reading: Reading, items: Sequence[TypedTerm]) -> list[TypedTerm]:
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        return list(items)
    if isinstance(node, exp.Literal) and not node.is_string:
        if not node.name.isdecimal() or not 1 <= int(node.name[:9]) <= len(items):
            raise invalid(reading.place(node), f"a position in ORDER BY must be from 1 to {len(items)}")
        return [items[int(node.name) - 1]]
    return [reading.of(node)]


def _output_column(term: TypedTerm, items: Sequence[TypedTerm], place: Place | None) -> Node:
    for index, item in enumerate(items):
        if item.node == term.node and item.type is not None:
            return Ref(index, item.type, place)
    raise invalid(place, "ORDER BY of several results must be by an output column", "select it, and name it or its position.")


def read_limits(limit: Any, offset: exp.Offset | None, context: Context) -> tuple[int | None, int]:
    """Return LIMIT and OFFSET."""
    most: int | None = None
    if isinstance(limit, exp.Fetch):
        count, options = take_arguments(limit, context, "count", "limit_options", ignored=("direction",))
        if options is not None:
            take_arguments(options, context, ignored=("rows",))
        most = 1 if count is None else _read_whole(count, "LIMIT", context)
    elif limit is not None:
        most = _read_whole(take_arguments(limit, context, "expression")[0], "LIMIT", context)
    skipped = 0 if offset is None else _read_whole(take_arguments(offset, context, "expression")[0], "OFFSET", context) or 0
    return most, skipped


def _read_whole(node: exp.Expr, what: str, context: Context) -> int | None:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Null) or (isinstance(node, exp.Var | exp.Column) and node.name.upper() == "ALL"):
        return None
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal() and len(node.name) <= 12:
        return int(node.name)
    raise invalid(context.place(node), f"{what} must be a whole number written here")


# ---- an outer SELECT over an aggregated one ----------------------------------------------------------------------------


def reshape_select(node: exp.Select, inner: Question, first: Scope, context: Context) -> Scope:
    """Return an outer SELECT as part of the aggregated one below it: columns, rows and order of released values.

    What does more to them, or more than once, stands above the result instead (`above.py`).
    """
    items, where, order, limit, offset = take_arguments(
        node, context, "expressions", "where", "order", "limit", "offset", ignored=("from_", "with_")
    )
    cut = inner.limit is not None or inner.offset > 0
    blocks: list[Block] = []
    terms: list[tuple[TypedTerm, ...]] = []
    readings: list[Reading] = []
    names, alias = [name for name, _ in first.shown], first.sources[0][0]
    for block, inner_terms in zip(inner.blocks, first.terms, strict=True):
        columns = tuple(zip(names, inner_terms, strict=True))
        scope = Scope(inner, columns, ((alias, columns),))
        done, block_terms, reading = _reshape_block(block, scope, items, where, context)
        blocks.append(done)
        terms.append(block_terms)
        readings.append(reading)
    most, skipped = read_limits(limit, offset, context)
    outer_order = read_ordering(order, readings[0], terms[0], lambda term: term.node, several=len(blocks) > 1)
    kept = _keep_order(inner, first.terms[0], terms[0]) if order is None else outer_order
    if cut:
        most, skipped = inner.limit, inner.offset
    return scope_of_release(Question(tuple(blocks), kept, most, skipped), terms)


def _keep_order(inner: Question, before: Sequence[TypedTerm], after: Sequence[TypedTerm]) -> tuple[Order, ...]:
    """Return the order of the subquery where the outer SELECT has none; `Ref`s must still find their columns."""
    if len(inner.blocks) == 1:
        return inner.order
    kept: list[Order] = []
    for sort in inner.order:
        index = sort.expression.index if isinstance(sort.expression, Ref) else -1
        old = before[index]
        new = next((place for place, term in enumerate(after) if term.node == old.node), None)
        if new is None:
            break
        kept.append(replace(sort, expression=Ref(new, sort.expression.type or old.type)))  # type: ignore[arg-type]
    return tuple(kept)


def _reshape_block(
    block: Block, scope: Scope, items: list[exp.Expr], where: exp.Where | None, context: Context
) -> tuple[Block, tuple[TypedTerm, ...], Reading]:
    reading = Reading(context, scope, _CLAUSE, aggregates="done", aliases=aliases_of(items))
    having = block.having
    if where is not None:
        condition = take_arguments(where, context, "this")[0]
        terms = [
            typed_terms.require_boolean(reading.of(operand), "what follows WHERE")
            for operand in operands_of(condition, exp.And, reading)
        ]
        before = [] if having is None else [TypedTerm(having, Type.BOOLEAN, aggregated=True)]
        having = conjoin([*before, *terms]).node
    found: list[TypedTerm] = []
    made: list[Item] = []
    for item in items:
        inner = strip_alias(item)
        place = context.place(item)
        if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
            star = inner if isinstance(inner, exp.Star) else inner.this
            take_arguments(star, context)
            if isinstance(item, exp.Alias):
                raise invalid(place, "* must have no alias")
            for name, term in scope.star(inner.table or None if isinstance(inner, exp.Column) else None, place):
                found.append(term)
                made.append(Item(name, term.node, place))
            continue
        term = reading.of(inner)
        found.append(term)
        made.append(Item(item_name(item, term, context.text), term.node, place))
    order_reading = replace(reading, first="always")
    return Block(block.relation, block.keys, tuple(made), having, block.place), tuple(found), order_reading


# ---- UNION ALL ---------------------------------------------------------------------------------------------------------


def unite_selects(parts: Sequence[Scope], place: Place | None) -> Scope:
    """Return several aggregated SELECTs one after the other."""
    questions = [part.content for part in parts if isinstance(part.content, Question)]
    names = [name for name, _ in parts[0].shown]
    for question, part in zip(questions, parts, strict=True):
        if question.limit is not None or question.offset:
            raise invalid(place, "LIMIT must stand once, after the whole UNION ALL")
        if len(part.shown) != len(names):
            raise invalid(place, f"each part of UNION ALL must have {len(names)} columns; got {len(part.shown)}")
    blocks = [block for question in questions for block in question.blocks]
    terms = [list(row) for part in parts for row in part.terms]
    if len(blocks) > MOST_BLOCKS:
        raise invalid(place, f"a question must have at most {MOST_BLOCKS} parts, each a release of its own")
    if len(blocks) * len(names) > MOST_COLUMNS:
        raise invalid(place, f"an answer must have at most {MOST_COLUMNS:,} columns over all its parts")
    for index in range(len(names)):
        column = [row[index] for row in terms]
        type_, agreed = typed_terms.unify_types(column, "a column of UNION ALL", place)
        for row, term in zip(terms, agreed, strict=True):
            row[index] = term if term.type is type_ else cast_term(term, type_, term.place)
    done = [
        replace(
            block,
            items=tuple(Item(name, term.node, old.place) for name, term, old in zip(names, row, block.items, strict=True)),
        )
        for block, row in zip(blocks, terms, strict=True)
    ]
    return scope_of_release(Question(tuple(done)), terms)


def order_select(scope: Scope, order: exp.Order | None, limit: Any, offset: exp.Offset | None, context: Context) -> Scope:
    """Return a UNION ALL, or a bracketed SELECT, of aggregated ones with the ORDER BY and LIMIT that follow it."""
    whole = scope.content
    if not isinstance(whole, Question) or (order is None and limit is None and offset is None):
        return scope
    if whole.limit is not None or whole.offset:
        raise invalid(context.place(order or limit or offset), "a SELECT with LIMIT must not be sorted or cut again")
    reading = Reading(context, scope, _CLAUSE, aggregates="done")
    several = len(whole.blocks) > 1
    most, skipped = read_limits(limit, offset, context)
    new = read_ordering(order, reading, scope.terms[0], lambda term: term.node, several=several)
    return replace(scope, content=replace(whole, order=new or whole.order, limit=most, offset=skipped))

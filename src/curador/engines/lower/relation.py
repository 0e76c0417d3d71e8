"""Relations, each unit-local: a unit's rows depend on that unit's rows and public tables alone; and which of them count.

Claim   For every relation here and every unit u, the rows of other units are the same, bit for bit, with u and without.
Needs   Tables as preparation leaves them: `__u` never NULL, `__h` a function of the original unit, `__r` a function of the
        unit's own rows and total inside the unit. Public tables are the same in both worlds.
Source  Case by case: a filter or projection sees one row; a join of private relations always equates `__u`, whatever the
        question equates; groups, windows and DISTINCT hold `__u` in what they group or partition by, their aggregates are
        exact and free of order (`aggregates.py`), and every order is completed to a total one. Composition does the rest.

Work    One unit's rows cause no more work than the plan says (`plan/work.py`): a join builds on the side that is written on
        the right, and this is the public one, or the one with fewer rows of a unit; the side that is built never is empty,
        since a row of nobody stands in it, so an engine has no reason to leave the other side unread; conditions on one side,
        of the join or above it, are tested before nobody is added. Engines must not reorder joins (`duckdb/connection.py`).

order of a unit's rows      table `__r`, public `__p`; filter, projection, window as below; join left's then right's;
                            UNION ALL branch number, then the branch's; GROUP BY the unit the other keys; DISTINCT all

Caps say which of the rows of the relation that is aggregated count. They are executed in their fixed order:

    joins and filters → grid → row cap → group cap → cap inside a group

Claim   A unit keeps at most `cap.rows` rows, in at most `cap.groups` groups, `cap.in_group` in one; which ones depends on the
        unit's own rows and `__h` alone; the rows kept under a cap of m are among those kept under m + 1.
Needs   A relation as above; by = "rank": exactly one private table; by = "none": the plan's proof of `rows`.
Source  ROW_NUMBER and DENSE_RANK over a total order inside the unit. Where the order has several columns it is led by a hash
        with `__h`, or the first rows of one side of a join would always be kept; one column is `__r`, which is random. Groups
        are chosen by a hash with `__h`, or, groups_by = "first", by numbers that preparation stored (`duckdb/numbering.py`).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

from curador.engines.lower.aggregates import unit_group, window
from curador.engines.lower.expression import LoweredTerm, align, as_type, lower_term, lower_text, null_of
from curador.engines.lower.sql import commas, every, require_short, rows_of, select
from curador.errors import NotPrivate
from curador.plan.model import column_grid
from curador.plan.ownership import NUMBERED_GROUPS, Owners, conjuncts, numbered_key, refs_of, scans_of
from curador.plan.work import is_table
from curador.query.tree import Call, Distinct, Filter, Join, Literal, Project, Ref, Scan, UnionAll, UnitGroup, Window
from curador.study.model import UnitRow
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.engines.lower.sql import Dialect
    from curador.plan.model import BlockPlan, Cap, Grid
    from curador.query.tree import Expression, Node, Out, Relation
    from curador.study.model import Schema

NOBODY = -1
"""The number of a unit that nobody is: units are numbered from 0."""

_JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "full": "FULL JOIN"}


@dataclass(frozen=True, slots=True)
class LoweredRelation:
    """A lowered relation: a SELECT with the columns named in `sql.py`.

    orders  the types of `__o0` …
    grids   the columns that come with their stored grid integers
    first   whether `__f` comes with it: that a row is the first of its unit with its value of a column
    ranks   whether `__r` comes with it, beside the row's place in its table
    """

    sql: str
    columns: tuple[Out, ...]
    private: bool
    orders: tuple[Type, ...]
    grids: frozenset[int] = frozenset()
    first: bool = False
    ranks: bool = False

    @property
    def order_names(self) -> list[str]:
        return [f"__o{place}" for place in range(len(self.orders))]

    @property
    def owner_names(self) -> list[str]:
        more = [*(["__f"] if self.first else []), *(["__r"] if self.ranks else [])]
        return ["__u", "__h", *more] if self.private else []

    @property
    def column_names(self) -> list[str]:
        return [f"c{place}" for place in range(len(self.columns))]

    @property
    def grid_names(self) -> list[str]:
        return [f"g{place}" for place in sorted(self.grids)]


# ---- relations -----------------------------------------------------------------------------------------------------


Lying: TypeAlias = "tuple[str, str | None]"
"""What a row's place in its table is called, and which units are read, by a condition; None: all are."""

StoredNumber: TypeAlias = "tuple[int, int | None]"
"""A column of a base table, and up to which number of its values in a unit rows count; None: all do."""


def lower_shape(
    relation: Relation,
    owners: Owners,
    dialect: Dialect,
    grids: frozenset[int] = frozenset(),
    *,
    lying: Lying | None = None,
    number: StoredNumber | None = None,
) -> LoweredRelation:
    """Return the relation, with the stored grid integers of these columns beside it; see `find_stored_grid`.

    owners  every private table gives a unit's first rows only, up to their height
    lying   of one prepared table (`is_table`): rows come in the order in which they lie there, with their places and ranks
    number  of one prepared table, not filtered: of a column's values, those of which rows count (`duckdb/numbering.py`)
    """
    shape = _lower(relation, grids, owners, dialect, lying, number)
    require_short(shape.sql)
    return shape


def _lower(
    relation: Relation,
    grids: frozenset[int],
    owners: Owners,
    dialect: Dialect,
    lying: Lying | None,
    number: StoredNumber | None,
) -> LoweredRelation:
    match relation:
        case Scan():
            return _scan(relation, grids, owners, dialect, lying, number)
        case Filter(input=Join() as join) if join.kind not in {"semi", "anti"}:
            return _join(join, grids, tuple(conjuncts(relation.predicate)), owners, dialect)
        case Filter():
            below = lower_shape(relation.input, owners, dialect, grids, lying=lying)
            test = lower_text if lying is not None else _test_row_by_row  # behind the wall of `_scan` none is looked up
            condition = test(relation.predicate, below.column_names, dialect, Type.BOOLEAN)
            return _over(below, select(["*"], rows_of(below.sql), when=[condition]), relation.columns)
        case Project():
            return _project(relation, grids, owners, dialect, lying, number)
        case Join():
            return _join(relation, grids, (), owners, dialect)
        case UnionAll():
            return _union(relation, grids, owners, dialect)
        case UnitGroup():
            below = lower_shape(relation.input, owners, dialect)
            sql, orders = unit_group(relation, below, owners.schema, dialect)
            return LoweredRelation(sql, relation.columns, below.private, orders)
        case Window():
            below = lower_shape(relation.input, owners, dialect, grids)
            return _over(below, window(relation, below, owners.schema, dialect), relation.columns)
        case Distinct():
            return _distinct(relation, owners, dialect)
        case _:
            assert_never(relation)


def _over(below: LoweredRelation, sql: str, columns: tuple[Out, ...]) -> LoweredRelation:
    return LoweredRelation(sql, columns, below.private, below.orders, below.grids, ranks=below.ranks)


# ---- tables and what keeps their rows ----------------------------------------------------------------------------


def _scan(
    scan: Scan,
    grids: frozenset[int],
    owners: Owners,
    dialect: Dialect,
    lying: Lying | None,
    numbered: StoredNumber | None,
) -> LoweredRelation:
    number, found = next((place, table) for place, table in enumerate(owners.schema.tables) if table.table.name == scan.table)
    columns = [f"c{place}" for place in range(len(scan.columns))]
    if found.table.public:
        sql = select([*columns, "__p AS __o0"], f"t{number}")
        return LoweredRelation(sql, scan.columns, private=False, orders=(Type.INTEGER,))
    stored = [f"g{place}" for place in sorted(grids)]
    rank = 1 if found.table.unique else owners.height
    # a row that is its own unit has one; asking for it would have rows numbered that nobody numbers otherwise; where places
    # are asked for, preparation has looked that each row has an owner
    owned = [] if lying is not None or isinstance(found.table.unit, UnitRow) else ["__u IS NOT NULL"]
    conditions = [*owned, *([f"__r <= {rank:d}"] if rank is not None else [])]
    further: list[str] = []
    if numbered is not None:
        column, most = numbered
        further = [f"__f{column:d} AS __f"]
        conditions += [] if most is None else [f"__d{column:d} <= {most:d}"]
    # a rank is stored in as few bytes as it needs, and hashes of it must not depend on that
    place, units = (f"CAST(__r AS {dialect.type(Type.INTEGER)})", None) if lying is None else lying
    conditions += [] if units is None else [units]
    further += [] if lying is None else ["__r"]
    sql = select([*columns, *stored, "__u", "__h", *further, f"{place} AS __o0"], f"t{number}", when=conditions)
    sql += "" if lying is None else dialect.wall()
    kind = {"first": numbered is not None, "ranks": lying is not None}
    return LoweredRelation(sql, scan.columns, private=True, orders=(Type.INTEGER,), grids=grids, **kind)


def _project(
    project: Project,
    grids: frozenset[int],
    owners: Owners,
    dialect: Dialect,
    lying: Lying | None,
    number: StoredNumber | None,
) -> LoweredRelation:
    sources = {place: _ref(project, place) for place in grids}
    below = lower_shape(project.input, owners, dialect, frozenset(sources.values()), lying=lying, number=number)
    names = below.column_names
    computed = [
        f"{lower_text(expression, names, dialect, out.type)} AS c{place}"
        for place, (expression, out) in enumerate(zip(project.expressions, project.columns, strict=True))
    ]
    stored = [f"g{source} AS g{place}" for place, source in sorted(sources.items())]
    sql = select([*computed, *stored, *below.owner_names, *below.order_names], rows_of(below.sql))
    return LoweredRelation(sql, project.columns, below.private, below.orders, grids, below.first, below.ranks)


def _distinct(distinct: Distinct, owners: Owners, dialect: Dialect) -> LoweredRelation:
    below = lower_shape(distinct.input, owners, dialect)
    names = [*below.column_names, *below.owner_names]
    orders = [f"c{place} AS __o{place}" for place in range(len(below.columns))]
    sql = select([*names, *orders], rows_of(select(names, rows_of(below.sql), distinct=True)))
    return LoweredRelation(sql, distinct.columns, below.private, tuple(column.type for column in below.columns))


# ---- two relations and more --------------------------------------------------------------------------------------


def _join(join: Join, grids: frozenset[int], above: tuple[Node, ...], owners: Owners, dialect: Dialect) -> LoweredRelation:
    """Lower a join. `above`: conditions on what comes out, tested before it where they are about one side."""
    width = len(join.left.columns)
    split = _Split(join, width, above)
    left = _tested(join.left, split.conditions("l"), frozenset(place for place in grids if place < width), owners, dialect)
    early = [_move_columns(condition, -width) for condition in split.conditions("r")]
    right = _tested(join.right, early, frozenset(place - width for place in grids if place >= width), owners, dialect)
    _refuse_ownerless(join, left, right)
    names = [f"l.{name}" for name in left.column_names] + [f"r.{name}" for name in right.column_names]
    joined = _Sides(left, right, split)
    built = joined.built(owners)
    first = _below(joined, "r" if built == "l" else "l", owners, dialect)
    second = _below(joined, built, owners, dialect)
    on = _on(joined, names, owners, dialect)
    if join.kind in {"semi", "anti"}:
        source = dialect.semi_join(first, second, on, anti=join.kind == "anti")
        kept = [*left.column_names, *left.grid_names, *left.owner_names, *left.order_names]
        return _over(left, select([f"l.{one}" for one in kept], source), join.columns)
    columns = [f"{name} AS c{place}" for place, name in enumerate(names)]
    stored = [
        f"{'l.g' if grid < width else 'r.g'}{grid if grid < width else grid - width} AS g{grid}" for grid in sorted(grids)
    ]
    orders = [f"l.{name}" for name in left.order_names] + [f"r.{name}" for name in right.order_names]
    ordered = [f"{name} AS __o{place}" for place, name in enumerate(orders)]
    units = _units(join.kind, left, right)
    kind = "LEFT JOIN" if join.kind == "right" else _JOINS[join.kind]
    source = f"({first}) AS {'r' if built == 'l' else 'l'} {kind} ({second}) AS {built} ON {on}"
    nobody = [f"r.__u IS DISTINCT FROM {NOBODY}"] if join.kind == "full" and _guarded(joined, owners.schema) else []
    rest = [_test_row_by_row(one, names, dialect) for one in split.left_above]
    sql = select([*columns, *stored, *units, *ordered], source, when=[*nobody, *rest])
    sql += dialect.wall() if _guarded(joined, owners.schema) else ""
    return LoweredRelation(sql, join.columns, left.private or right.private, left.orders + right.orders, grids)


def _guarded(joined: _Sides, schema: Schema) -> bool:
    """Whether a row of nobody stands in the side that is built: where units are numbered, which preparation does."""
    return joined.both and schema.study.engine.prepare != "never"


def _on(joined: _Sides, names: list[str], owners: Owners, dialect: Dialect) -> str:
    """The conditions that need both sides: equalities by columns that were computed on each side, then the others."""
    conditions, others = (["l.__u = r.__u"] if joined.both else []), joined.split.conditions(None)
    if _guarded(joined, owners.schema):
        equal = joined.split.equalities
        conditions += [f"l.__k{place} = r.__k{place}" for place in range(len(equal))]
        others = [other for other in others if other not in equal]
    conditions += [lower_text(other, names, dialect, Type.BOOLEAN) for other in others]
    return every(conditions) or dialect.boolean(True)


def _tested(
    relation: Relation, conditions: list[Expression], grids: frozenset[int], owners: Owners, dialect: Dialect
) -> LoweredRelation:
    """A side of a join with the conditions on it alone, which go further down where it is a join itself."""
    if not conditions:
        return lower_shape(relation, owners, dialect, grids)
    one = conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions), Type.BOOLEAN)
    return lower_shape(Filter(relation, one), owners, dialect, grids)


def _below(joined: _Sides, side: str, owners: Owners, dialect: Dialect) -> str:
    """One side of a join, and where it is built the row of nobody.

    Nobody has every value that is compared: a key that is NULL is no row to an engine. What stands above a join is not
    looked at below it, or it would take nobody away: a limit that nothing reaches, around the join, says so.
    """
    shape = joined.left if side == "l" else joined.right
    if not _guarded(joined, owners.schema):
        return shape.sql
    names = [*joined.left.column_names, *joined.right.column_names]
    own = [*shape.column_names, *shape.grid_names, *shape.owner_names, *shape.order_names]
    keys = [_key(equality, names, joined.split.width, side, dialect) for equality in joined.split.equalities]
    sql = select([*own, *(f"{term.sql} AS __k{place}" for place, term in enumerate(keys))], rows_of(shape.sql))
    if side != joined.built(owners):
        return sql
    nobody = [f"{NOBODY} AS __u" if name == "__u" else f"NULL AS {name}" for name in own]
    nobody += [f"{_some(term.type, dialect)} AS __k{place}" for place, term in enumerate(keys)]
    return f"{sql} UNION ALL SELECT {', '.join(nobody)}"


def _key(equality: Expression, names: list[str], width: int, side: str, dialect: Dialect) -> LoweredTerm:
    """One side of an equality, in the form in which both are compared."""
    if not isinstance(equality, Call):
        raise TypeError(equality)
    ends = align([lower_term(argument, names, dialect) for argument in equality.arguments], dialect)
    sides = ["l" if min(refs_of(argument)) < width else "r" for argument in equality.arguments]
    return ends[sides.index(side)]


def _union(union: UnionAll, grids: frozenset[int], owners: Owners, dialect: Dialect) -> LoweredRelation:
    branches = [lower_shape(one, owners, dialect, grids) for one in union.inputs]
    if len({branch.private for branch in branches}) > 1:
        raise NotPrivate("UNION ALL must not mix public rows with rows of people.")
    slots = _slots(branches)
    types = (Type.INTEGER, *(type_ for type_, _ in slots))
    selects: list[str] = []
    for number, branch in enumerate(branches):
        columns = [
            f"{as_type(LoweredTerm(f'c{place}', have.type), out.type, dialect).sql} AS c{place}"
            for place, (have, out) in enumerate(zip(branch.columns, union.columns, strict=True))
        ]
        orders = [f"{dialect.integer(number)} AS __o0"]
        for place, (type_, users) in enumerate(slots, start=1):
            own = users.get(number)
            orders.append(f"{null_of(type_, dialect) if own is None else f'__o{own}'} AS __o{place}")
        selects.append(select([*columns, *branch.grid_names, *branch.owner_names, *orders], rows_of(branch.sql)))
    return LoweredRelation(" UNION ALL ".join(selects), union.columns, branches[0].private, types, grids)


@dataclass(frozen=True, slots=True)
class _Split:
    """What of a join's condition, and of the conditions above it, belongs to which side."""

    join: Join
    width: int
    above: tuple[Node, ...]

    def conditions(self, side: str | None) -> list[Expression]:
        """The conditions that can be tested on one side before the join; None: those of the join that need both.

        A condition of the join on a side whose rows are kept without a match decides about matches, not about rows: it stays.
        A condition above is about rows: it can be tested before on a side whose rows are never made up.
        """
        kept = {"left": {"l"}, "right": {"r"}, "full": {"l", "r"}, "anti": {"l"}}.get(self.join.kind, set[str]())
        found: list[Expression] = []
        for conjunct in conjuncts(self.join.on):
            own = self._side(conjunct)
            if (None if own in kept else own) == side and isinstance(conjunct, (Call, Literal, Ref)):
                found.append(conjunct)
        if side is not None:
            found += [one for one in self.above if self._early(one) == side and isinstance(one, (Call, Literal, Ref))]
        return found

    @property
    def left_above(self) -> list[Expression]:
        """The conditions above that must stay there."""
        return [one for one in self.above if self._early(one) is None and isinstance(one, (Call, Literal, Ref))]

    @property
    def equalities(self) -> list[Expression]:
        """The conditions of the join by which matches are found: one side equals the other."""
        found = (
            condition for condition in self.conditions(None) if isinstance(condition, Call) and condition.function == "="
        )
        return [one for one in found if {self._side(part) for part in one.arguments} == {"l", "r"}]

    def _side(self, node: Node) -> str | None:
        sides = {"l" if index < self.width else "r" for index in refs_of(node)}
        return next(iter(sides)) if len(sides) == 1 else None

    def _early(self, node: Node) -> str | None:
        made_up = {"left": {"r"}, "right": {"l"}, "full": {"l", "r"}}.get(self.join.kind, set[str]())
        own = self._side(node)
        return None if own in made_up else own


@dataclass(frozen=True, slots=True)
class _Sides:
    """The two sides of a join, lowered."""

    left: LoweredRelation
    right: LoweredRelation
    split: _Split

    @property
    def both(self) -> bool:
        """Whether both sides are rows of people."""
        return self.left.private and self.right.private

    def built(self, owners: Owners) -> str:
        """The side that is built: the public one, or the one with fewer rows of a unit; never one whose rows are kept."""
        join = self.split.join
        if join.kind in {"left", "full", "semi", "anti"}:
            return "r"
        if join.kind == "right" or self.left.private != self.right.private:
            return "l" if join.kind == "right" or not self.left.private else "r"
        rows = owners.rows(join.left), owners.rows(join.right)
        return "l" if rows[0] is not None and (rows[1] is None or rows[0] < rows[1]) else "r"


def _move_columns(node: Expression, by: int) -> Expression:
    """An expression over columns that stand so many places further."""
    match node:
        case Ref():
            return replace(node, index=node.index + by)
        case Call():
            moved = (_move_columns(argument, by) for argument in node.arguments if isinstance(argument, (Call, Literal, Ref)))
            return replace(node, arguments=tuple(moved))
        case _:
            return node


def _test_row_by_row(condition: Expression, names: Sequence[str], dialect: Dialect, type_: Type = Type.BOOLEAN) -> str:
    """A condition that is tested row by row, whatever an engine knows of a column's smallest and largest values.

    A bare comparison it would look up in its statistics, and leave out a part of a table in which it is true of no row: one
    person's value would decide whether others' rows are read.
    """
    return f"COALESCE({lower_text(condition, names, dialect, type_)}, {dialect.boolean(False)})"


def _some(type_: Type | None, dialect: Dialect) -> str:
    """Some value of a type, of which it does not matter which."""
    match type_:
        case None | Type.BOOLEAN:
            return dialect.boolean(False)
        case Type.INTEGER:
            return dialect.integer(0)
        case Type.DECIMAL | Type.FLOAT:
            return dialect.double(0.0)
        case Type.STRING:
            return dialect.string("")
        case Type.DATE:
            return dialect.date(dt.date(2000, 1, 1))
        case Type.TIMESTAMP:
            return dialect.timestamp(dt.datetime(2000, 1, 1))  # noqa: DTZ001 -- moments have no zone here


def _units(kind: str, left: LoweredRelation, right: LoweredRelation) -> list[str]:
    """The unit of a joined row: the kept side's. Where both sides may be missing, the one that is there."""
    if left.private and right.private and kind == "full":
        return ["COALESCE(l.__u, r.__u) AS __u", "COALESCE(l.__h, r.__h) AS __h"]
    side = "r" if (kind == "right" and right.private) or not left.private else "l"
    return [f"{side}.__u", f"{side}.__h"] if left.private or right.private else []


def _refuse_ownerless(join: Join, left: LoweredRelation, right: LoweredRelation) -> None:
    """Refuse what a plan never holds: rows that belong to nobody, or public rows that depend on people's."""
    if left.private == right.private:
        return
    kept = "left" if left.private else "right"
    semi = join.kind in {"semi", "anti"} and not left.private
    if semi or join.kind == "full" or (join.kind in {"left", "right"} and join.kind != kept):
        raise NotPrivate("a join must keep every row's owner: rows of a public table without a match belong to nobody.")


def _slots(branches: list[LoweredRelation]) -> list[tuple[Type, dict[int, int]]]:
    """Which order column of which branch stands where in the union: a slot has one type, and at most one of a branch."""
    slots: list[tuple[Type, dict[int, int]]] = []
    for number, branch in enumerate(branches):
        for own, type_ in enumerate(branch.orders):
            free = next((users for kind, users in slots if kind is type_ and number not in users), None)
            if free is None:
                free = dict[int, int]()
                slots.append((type_, free))
            free[number] = own
    return slots


# ---- stored grids --------------------------------------------------------------------------------------------------


def _ref(project: Project, place: int) -> int:
    expression = project.expressions[place]
    if not isinstance(expression, Ref):
        message = "a stored grid belongs to an untouched column"
        raise TypeError(message)
    return expression.index


def find_stored_grid(relation: Relation, place: int, grid: Grid, schema: Schema) -> Grid | None:
    """Return the grid on which preparation put a column that a relation brings along untouched, if it holds this one."""
    source = relation.columns[place].source
    table = None if source is None else schema.table(source[0])
    if source is None or table is None or table.table.public:
        return None
    declared = table.table.column(source[1])
    stored = None if declared is None else column_grid(declared)
    if stored is None or stored.exponent != grid.exponent or not _brings_grid(relation, place, source):
        return None
    return stored if stored.start <= grid.start and grid.start + grid.steps <= stored.start + stored.steps else None


def _brings_grid(relation: Relation, place: int, source: tuple[str, str]) -> bool:
    match relation:
        case Scan():
            return (relation.table, relation.columns[place].name) == source
        case Filter():
            return _brings_grid(relation.input, place, source)
        case Project():
            expression = relation.expressions[place]
            return isinstance(expression, Ref) and _brings_grid(relation.input, expression.index, source)
        case Join():
            width = len(relation.left.columns)
            if place < width:
                return _brings_grid(relation.left, place, source)
            return _brings_grid(relation.right, place - width, source)
        case UnionAll():
            return all(_brings_grid(branch, place, source) for branch in relation.inputs)
        case Window():
            return place < len(relation.input.columns) and _brings_grid(relation.input, place, source)
        case _:
            return False


# ---- the rows that count ---------------------------------------------------------------------------------------------


def stored_number(block: BlockPlan, schema: Schema) -> StoredNumber | None:
    """Return the numbers by which a block's groups are capped, and its units counted, where they are stored."""
    key = block.keys[0].expression if len(block.keys) == 1 else None
    column = None if block.cap.by != "rank" else numbered_key(key, block.relation, schema)
    if block.cap.groups_by == "hash":
        return None if column is None else (column, None)
    if column is None or block.cap.groups is None or block.cap.groups > NUMBERED_GROUPS:
        raise NotPrivate("groups must be of one stored column to be chosen by the order in which they appear.")
    return column, block.cap.groups


def can_stream(cap: Cap, relation: Relation, schema: Schema, dialect: Dialect) -> bool:
    """Whether a row cap can be executed while the rows of one prepared table pass, in the order in which they lie there.

    Let S be the rows of the table that pass the filter, as the engine meets them. A row of S counts if the row that stands m
    places before it in S belongs to somebody else, or there is none: if its place in the table is at most place − `__r` of
    the row that is looked at, which is the place before the first row of the unit.

    Claim   If no row of S has a place at or before that of the row met just before it, exactly the rows count that ROW_NUMBER
            over the order of `__r` inside the unit gives a number up to m. Else there is no result.
    Needs   The rows of each unit lie in consecutive places, in the order of `__r`: verified when a version is prepared, in
            the file that is then only read (`duckdb/ranking.py:verify_order`).
    Source  Then S is increasing in places, so a unit's rows stand together in S, in the order of `__r`: the row m places
            before the j-th of them is one of theirs iff j > m. It has a lower place then, so it is one of theirs iff its
            place is not below that of the unit's first row. `__b` is part of `__h`, so S may be cut by it: units stay whole.
            Whether rows were met in order is a matter of the engine and never of a unit's rows: where they were not, the
            statement stops, nobody sees what it had found, and the one with ROW_NUMBER is run, for the same integers.
    """
    return (
        cap.by == "window" and is_table(relation) and schema.study.engine.prepare != "never" and dialect.place() is not None
    )


CROWDED_FROM = 8
"""Row caps from here on look for the units that exceed them first: few do after a filter, and others need no sorting."""


def rank_of(cap: Cap, relation: Relation, schema: Schema) -> int | None:
    """Return the rank that base tables are cut at: the cap where it is a rank, else the height; None where nothing is cut."""
    if cap.by != "rank":
        return cap.height
    private = [scan for scan in scans_of(relation) if not _public(scan, schema)]
    if len(private) != 1:
        raise NotPrivate("a prepared rank must be of one table; this question reads several, so its cap must be a window.")
    return cap.rows if cap.height is None else min(cap.rows, cap.height)


def apply_caps(
    rows: Sequence[str],
    cap: Cap,
    relation: Relation,
    shape: LoweredRelation,
    keys: Sequence[str],
    dialect: Dialect,
    *,
    numbered: bool = True,
    streamed: bool = False,
) -> tuple[tuple[str, str], ...]:
    """Return the rows that count, of SELECTs whose columns include `__u`, `__h`, the orders and these keys.

    They are the last of the parts of a WITH clause, named `kept`.

    rows      one SELECT, or several of different units
    numbered  units are numbers from 0, as preparation makes them, so that nobody can be named
    streamed  of one prepared table whose rows are ordered by their places: the row cap is executed while rows pass, of each
              SELECT by itself; else by sorting, of one
    """
    parts = [(f"passing{place}", one) for place, one in enumerate(rows)]
    passing = dialect.first_rows([name for name, _ in parts], cap.rows) if streamed and cap.by == "window" else None
    parts = [("owned", rows[0])] if passing is None else [*parts, ("capped", passing)]
    order = _order(shape, dialect)
    if cap.by == "window" and passing is None:
        sparse = cap.rows >= CROWDED_FROM and is_table(relation)
        parts += _fewer(cap.rows, order, dialect, numbered=numbered) if sparse else _first(cap.rows, order)
    if cap.groups is not None and cap.groups_by == "hash" and keys and cap.groups < cap.rows:
        chosen = [dialect.hash(["__h", *keys]), *keys]
        number = f"DENSE_RANK() OVER (PARTITION BY __u ORDER BY {commas(chosen)})"
        parts.append(("grouped", _keep_first(parts[-1][0], number, cap.groups)))
    if cap.in_group is not None and cap.in_group < cap.rows:
        partition = commas(dict.fromkeys(["__u", *keys]))
        number = f"ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {commas(order)})"
        parts.append(("thinned", _keep_first(parts[-1][0], number, cap.in_group)))
    return (*parts[:-1], ("kept", parts[-1][1]))


def _order(shape: LoweredRelation, dialect: Dialect) -> list[str]:
    """A total order inside the unit, of two columns at least: an engine may turn one into an aggregate that cannot spill."""
    names = shape.order_names
    if len(names) > 1:
        return [dialect.hash(["__h", *names]), *names]
    return [*names, "__u"]


def _keep_first(source: str, number: str, most: int) -> str:
    numbered = select(["*", f"{number} AS __n_{source}"], source)
    return select(["*"], rows_of(numbered), when=[f"__n_{source} BETWEEN 1 AND {most:d}"])


def _first(most: int, order: list[str]) -> list[tuple[str, str]]:
    return [("capped", _keep_first("owned", f"ROW_NUMBER() OVER (PARTITION BY __u ORDER BY {commas(order)})", most))]


def _fewer(most: int, order: list[str], dialect: Dialect, *, numbered: bool) -> list[tuple[str, str]]:
    """The same rows as `_first`: only units that have too many rows are sorted.

    Nobody is among the crowded, or one crowded unit would decide whether the rows are read again.
    """
    crowded = select(["__u"], "owned", by=["__u"]) + f" HAVING COUNT(*) > {most:d}"
    crowded += f" UNION ALL SELECT {NOBODY} AS __u" if numbered else ""
    every, same = select(["*"], "owned"), "l.__u = r.__u"
    few = dialect.semi_join(every, select(["__u"], "crowded"), same, anti=True)
    many = dialect.semi_join(every, select(["__u"], "crowded"), same, anti=False)
    number = f"ROW_NUMBER() OVER (PARTITION BY __u ORDER BY {commas(order)}) AS __n_owned"
    sorted_ = select(["*", number], rows_of(select(["l.*"], many)))
    first = select(["*"], rows_of(sorted_), when=[f"__n_owned BETWEEN 1 AND {most:d}"])
    return [("crowded", crowded), ("capped", f"{select(['l.*', '0 AS __n_owned'], few)} UNION ALL {first}")]


def _public(scan: Scan, schema: Schema) -> bool:
    found = schema.table(scan.table)
    return found is None or found.table.public

"""Who owns the rows of a relation, how many one unit can have, and how they are capped: the calculus of R.

Lemma (unit-locality). The rows that a relation assigns to a unit depend on that unit's rows and on public tables only. It
holds for every node by construction, and composes; so removing a unit removes its rows and changes no other row.

relation                                          R, the most rows of one unit (None: no bound)
table: unit = row, unique / else                  1 / the height at which base tables are cut; none without one
filter, projection, window in the unit            R
distinct                                          min(R, v): v combinations of values that its columns can be, the unit apart
private ⋈ private, units always equated           J = min(R₁a₂, R₂a₁); left min(R₁ max(a₂, 1), J + R₁); semi, anti R₁;
  a: the most rows of one unit that agree in      full J + R₁ + R₂
  what is equated; 1 for a verified key, else R
private ⋈ public, f public rows match one row     R f; kept side private: R max(f, 1)
UNION ALL                                         R₁ + R₂
GROUP BY unit / unit, e                           1 / min(R, v), v the values that e can be
cap to m rows                                     min(R, m)

Caps say how one unit's rows are bounded, and so what it contributes at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never
from typing import Literal as OneOf

from curador.errors import InvalidParameter, InvalidStudy, NotPrivate
from curador.plan.model import Cap, Contribution
from curador.query.tree import (
    Call,
    Distinct,
    Filter,
    Join,
    Literal,
    Project,
    Ref,
    Scan,
    UnionAll,
    UnitGroup,
    Window,
)
from curador.study.model import Caps, UnitPath, UnitRow
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curador.query.tree import Expression, Node, Relation
    from curador.study.model import Schema, Table, TableSchema


# ---- who owns rows, and how many -----------------------------------------------------------------------------------


PUBLIC = (False, None)
"""Nobody's rows."""


@dataclass(frozen=True, slots=True)
class Owners:
    """Who owns relations, and their R. height: rows of a unit that every private base table gives at most; None: no bound.

    What was found of a relation is kept, by identity, beside the relation itself, so that no other can take its place.
    """

    schema: Schema
    height: int | None = None
    nullable: bool = True
    """Whether every column is taken to hold NULL, too, which proves; else those that are declared to: what is promised."""
    known: dict[int, tuple[Relation, tuple[bool, int | None]]] = field(
        default_factory=dict[int, "tuple[Relation, tuple[bool, int | None]]"], compare=False, repr=False
    )
    agreed: dict[tuple[int, frozenset[int], bool], int | None] = field(
        default_factory=dict[tuple[int, frozenset[int], bool], int | None], compare=False, repr=False
    )

    def private(self, relation: Relation) -> bool:
        """Return whether units own the rows."""
        return self.of(relation)[0]

    def rows(self, relation: Relation) -> int | None:
        """Return R; None where no bound is known."""
        return self.of(relation)[1]

    def of(self, relation: Relation) -> tuple[bool, int | None]:
        """Return whether units own a relation's rows, and its R.

        Claim   The engine's relation is unit-local and has at most R rows a unit.
        Needs   The engine equates the units of private joins, drops rows without a unit, and executes `unique` and `height`.
        Source  Composition of the cases above; each case is a count of rows.
        """
        found = self.known.get(id(relation))
        if found is None:
            found = self.known[id(relation)] = relation, self._of(relation)
        return found[1]

    def fans(self, join: Join) -> tuple[int | None, int | None]:
        """Return how many rows of one unit of the left side match one row of the right at most, and the other way round.

        Claim   An equality with a column that is unique, or unique inside the unit, matches one row at most.
        Needs   Both sides are private. Keys that units are found through are verified when a version is taken. The types that
                are compared are equal: nothing is rounded.
        """
        width = len(join.left.columns)
        ends = equated_columns(join, 0, width), equated_columns(join, width, width + len(join.right.columns))
        return self._agreeing(join.left, ends[0]), self._agreeing(join.right, ends[1])

    def _of(self, relation: Relation) -> tuple[bool, int | None]:
        match relation:
            case Scan():
                return _scan(relation, self.schema, self.height)
            case Filter() | Project() | Window():
                return self.of(relation.input)
            case Distinct():
                private, rows = self.of(relation.input)
                return private, _least(rows, self._different(relation, frozenset())) if private else rows
            case UnitGroup():
                return True, _least(self.rows(relation.input), self._different(relation, frozenset()))
            case UnionAll():
                return self._union(relation)
            case Join():
                return self._join(relation)
            case _:
                assert_never(relation)

    def _union(self, union: UnionAll) -> tuple[bool, int | None]:
        branches = [self.of(branch) for branch in union.inputs]
        if len({private for private, _ in branches}) > 1:
            raise NotPrivate("UNION ALL must not mix public rows with rows of people.", place=union.place)
        rows = [row for _, row in branches]
        return branches[0][0], None if None in rows else sum(row for row in rows if row is not None)

    def _join(self, join: Join) -> tuple[bool, int | None]:
        (left, left_rows), (right, right_rows) = self.of(join.left), self.of(join.right)
        if not left and not right:
            return PUBLIC
        if join.kind in {"semi", "anti"}:
            if not left:
                raise NotPrivate("a public table must not be filtered by rows of people.", place=join.place)
            return left, left_rows
        if left and right:
            return True, _both(join.kind, left_rows, right_rows, *self.fans(join))
        kept = "left" if left else "right"
        if join.kind == "full" or (join.kind in {"left", "right"} and join.kind != kept):
            rule = "a join must keep every row's owner: rows of a public table without a match belong to nobody."
            hint = "use an inner join, or put the private table on the kept side."
            raise NotPrivate(rule, hint=hint, place=join.place)
        rows, public = (left_rows, join.right) if left else (right_rows, join.left)
        matches = public_matches(join, public, self.schema)
        if rows is None or matches is None:
            return True, None
        return True, rows * (max(matches, 1) if join.kind == kept else matches)

    def _different(self, relation: UnitGroup | Distinct, fixed: frozenset[int]) -> int | None:
        """The most rows of one unit that agree in the fixed columns, where no two rows agree in all that is told apart.

        Claim   At most as many as the other columns have combinations of values; the unit is one.
        """
        count = len(relation.keys) if isinstance(relation, UnitGroup) else len(relation.columns)
        most = 1
        for place in set(range(count)) - fixed:
            key = relation.keys[place] if isinstance(relation, UnitGroup) else Ref(place, relation.columns[place].type)
            many = most_values(key, relation.input, self.schema, nullable=self.nullable)
            if many is None:
                return None
            most *= many
        return most

    def agreeing(self, relation: Relation, fixed: frozenset[int]) -> int | None:
        """Return the most rows of one unit that a group by the fixed columns holds; None: no bound.

        NULLs are one group: a verified key says nothing of rows without one.
        """
        return self._agreeing(relation, fixed, nulls=True)

    def _agreeing(self, relation: Relation, fixed: frozenset[int], *, nulls: bool = False) -> int | None:
        key = id(relation), fixed, nulls
        if key not in self.agreed:
            self.agreed[key] = self._agree(relation, fixed, nulls=nulls)
        return self.agreed[key]

    def _agree(self, relation: Relation, fixed: frozenset[int], *, nulls: bool) -> int | None:
        """The most rows of one unit, of a private relation, that agree in the fixed columns. nulls: NULL agrees with NULL."""
        rows = self.rows(relation)
        match relation:
            case Scan():
                unique = any(is_key(self.schema, relation.table, relation.columns[index].name) for index in fixed)
                return 1 if unique and not nulls else rows
            case Filter():
                return self._agreeing(relation.input, fixed, nulls=nulls)
            case Window():
                below = frozenset(one for one in fixed if one < len(relation.input.columns))
                return self._agreeing(relation.input, below, nulls=nulls)
            case Project():
                columns = (relation.expressions[index] for index in fixed)
                below = frozenset(one.index for one in columns if isinstance(one, Ref))
                return self._agreeing(relation.input, below, nulls=nulls)
            case UnitGroup() | Distinct():
                return _least(rows, self._different(relation, fixed))
            case Join(kind="inner") if self.private(relation.left) and self.private(relation.right):
                return _least(rows, *self._through(relation, fixed, nulls=nulls))
            case _:
                return rows

    def _through(self, join: Join, fixed: frozenset[int], *, nulls: bool) -> tuple[int | None, int | None]:
        """Rows that agree on one side, times how many of the other side match each."""
        width = len(join.left.columns)
        left_fan, right_fan = self.fans(join)
        left = self._agreeing(join.left, frozenset(index for index in fixed if index < width), nulls=nulls)
        beyond = frozenset(index - width for index in fixed if index >= width)
        right = self._agreeing(join.right, beyond, nulls=nulls)
        return (
            None if left is None or right_fan is None else left * right_fan,
            None if right is None or left_fan is None else right * left_fan,
        )


def _least(*rows: int | None) -> int | None:
    return min((row for row in rows if row is not None), default=None)


def _scan(scan: Scan, schema: Schema, height: int | None) -> tuple[bool, int | None]:
    found = schema.table(scan.table)
    if found is None or found.table.public:
        return PUBLIC
    table = found.table
    return True, 1 if table.single else height


def _both(kind: str, left: int | None, right: int | None, left_fan: int | None, right_fan: int | None) -> int | None:
    """Rows of a join of private relations: `right_fan` rows of the right side match one of the left at most, and so on."""
    if left is None or right is None or left_fan is None or right_fan is None:
        return None
    pairs = min(left * right_fan, right * left_fan)
    match kind:
        case "left":
            return min(left * max(right_fan, 1), pairs + left)
        case "right":
            return min(right * max(left_fan, 1), pairs + right)
        case "full":
            return pairs + left + right
        case _:
            return pairs


def is_key(schema: Schema, table: str, column: str) -> bool:
    """Whether units are found through this column: it is then verified that no two rows share a value of it."""
    paths = (one.table.unit for one in schema.tables)
    return any(isinstance(path, UnitPath) and (path.table, path.key) == (table, column) for path in paths)


# ---- public tables: how many rows can match one row ----------------------------------------------------------------


def public_matches(join: Join, public: Relation, schema: Schema) -> int | None:
    """Return the most rows of the public side that one row of the other can match, by the columns that are equated."""
    start = 0 if public is join.left else len(join.left.columns)
    return most_rows(public, equated_columns(join, start, start + len(public.columns)), schema)


def equated_columns(join: Join, start: int, end: int) -> frozenset[int]:
    """Return the columns of one side, counted from `start`, that must equal something of the other side, type for type."""
    own, fixed = range(start, end), set[int]()
    for conjunct in conjuncts(join.on):
        if not (isinstance(conjunct, Call) and conjunct.function == "="):
            continue
        for ours, other in (conjunct.arguments, conjunct.arguments[::-1]):
            outside = all(index not in own for index in refs_of(other))
            same_type = getattr(ours, "type", None) == getattr(other, "type", None)
            if isinstance(ours, Ref) and ours.index in own and outside and same_type:
                fixed.add(ours.index - start)
    return frozenset(fixed)


def most_rows(relation: Relation, fixed: frozenset[int], schema: Schema) -> int | None:
    """Return the most rows of a public relation that agree in the fixed columns; None where nothing is known."""
    match relation:
        case Scan():
            names = tuple(sorted(relation.columns[index].name for index in fixed))
            return schema.public.multiplicity(relation.table, names)
        case Filter() | Distinct():
            return most_rows(relation.input, fixed, schema)
        case Window():
            return most_rows(
                relation.input, frozenset(index for index in fixed if index < len(relation.input.columns)), schema
            )
        case Project():
            below = (relation.expressions[index] for index in fixed)
            return most_rows(relation.input, frozenset(one.index for one in below if isinstance(one, Ref)), schema)
        case UnionAll():
            parts = [most_rows(branch, fixed, schema) for branch in relation.inputs]
            return None if None in parts else sum(part for part in parts if part is not None)
        case Join():
            width = len(relation.left.columns)
            left = most_rows(relation.left, frozenset(index for index in fixed if index < width), schema)
            if relation.kind in {"semi", "anti"}:
                return left
            right = most_rows(relation.right, frozenset(index - width for index in fixed if index >= width), schema)
            if left is None or right is None:
                return None
            return (left + 1) * (right + 1) if relation.kind != "inner" else left * right
        case UnitGroup():
            return None
        case _:
            assert_never(relation)


# ---- how many values an expression can be -----------------------------------------------------------------------------


def most_values(expression: Node, relation: Relation, schema: Schema, *, nullable: bool) -> int | None:
    """Return how many values an expression can be at most in one unit's rows, NULL among them; None: nothing is known.

    nullable  NULL counts for every column of people's rows, whatever is declared of it

    Claim   Prepared columns hold declared values and NULL only; a unit is one value; a function of several columns has no
            more values than these have combinations. With `nullable` nothing else is used.
    """
    match expression:
        case Literal():
            return 1
        case Ref():
            return _most_in_column(relation, expression.index, schema, nullable=nullable)
        case Call():
            held = [
                most_values(Ref(index, relation.columns[index].type), relation, schema, nullable=nullable)
                for index in sorted(refs_of(expression))
            ]
            few = 3 if expression.type is Type.BOOLEAN else None
            return few if None in held else _least(few, math.prod(one for one in held if one is not None))
        case _:
            return None


def _most_in_column(relation: Relation, index: int, schema: Schema, *, nullable: bool) -> int | None:
    if relation.columns[index].unit:
        return 1
    match relation:
        case Scan():
            return _most_declared(relation, index, schema, nullable=nullable)
        case Filter():
            below = _most_in_column(relation.input, index, schema, nullable=nullable)
            return _least(below, *(_most_left(part, index) for part in conjuncts(relation.predicate)))
        case Project():
            return most_values(relation.expressions[index], relation.input, schema, nullable=nullable)
        case Join():
            width = len(relation.left.columns)
            left = index < width
            side, place = (relation.left, index) if left else (relation.right, index - width)
            below = _most_in_column(side, place, schema, nullable=nullable)
            absent = relation.kind in ({"right", "full"} if left else {"left", "full"})
            return None if below is None else below + absent
        case UnionAll():
            parts = [_most_in_column(branch, index, schema, nullable=nullable) for branch in relation.inputs]
            return None if None in parts else sum(part for part in parts if part is not None)
        case UnitGroup() if index < len(relation.keys):
            return most_values(relation.keys[index], relation.input, schema, nullable=nullable)
        case Window() if index < len(relation.input.columns):
            return _most_in_column(relation.input, index, schema, nullable=nullable)
        case Distinct():
            return _most_in_column(relation.input, index, schema, nullable=nullable)
        case _:
            return None


_MOST_DIFFERENT = 1_000
"""Values of a public column above which they are not counted: no cap is as high."""


def _most_declared(scan: Scan, index: int, schema: Schema, *, nullable: bool) -> int | None:
    table = schema.table(scan.table)
    if table is None:
        return None
    own = table.fields[index]
    if table.table.public:
        found = schema.public.distinct(table.table.name, own.name, _MOST_DIFFERENT)
        return None if found is None else len(found)
    null = nullable or own.nullable
    if own.declared is not None and own.declared.values is not None:
        return len(own.declared.values) + null
    return 2 + null if own.type is Type.BOOLEAN else None


def _most_left(part: Node, index: int) -> int | None:
    """How many values of a column a condition leaves."""
    if not (isinstance(part, Call) and part.function in {"=", "in"}):
        return None
    first, *others = part.arguments
    return (
        len(others)
        if first == Ref(index, getattr(first, "type", Type.STRING)) and all(isinstance(one, Literal) for one in others)
        else None
    )


# ---- caps -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestedCaps:
    """What an analyst wants of the caps: other numbers, or the prepared rank under a filter (`prepared`)."""

    rows: int | None = None
    groups: int | None = None
    rows_per_group: int | None = None
    prepared: bool = False


AS_DECLARED = RequestedCaps()
"""The owner's own caps."""


def private_tables(relation: Relation, schema: Schema) -> list[Table]:
    """Return the private tables that a relation reads, as often as it reads them."""
    tables = [found.table for scan in scans_of(relation) if (found := schema.table(scan.table)) is not None]
    return [table for table in tables if not table.public]


def require_caps(relation: Relation, schema: Schema) -> None:
    """Refuse a question about a table for which nobody declared caps and no survey found any.

    Whether a survey was bought is public: the ledger says so to everybody.
    """
    for table in private_tables(relation, schema):
        if table.surveyed:
            unit = schema.study.unit_name
            rule = f"how many rows of one {unit} count in {table.name} must be declared, or found by the survey"
            hint = "the owner runs `curador survey study.toml`, or asks the first question: about 1 % of the budget buys it"
            raise InvalidStudy(f"{rule}; neither was done yet.", hint=f"{hint}.", place=relation.place)


def caps_of(relation: Relation, schema: Schema, asked: RequestedCaps) -> Caps:
    """Return the caps of a question: the largest of its private tables', changed as the analyst may.

    An analyst may lower a cap, or raise it up to the owner's caps_max; where the owner declared none, up to what is stored.
    """
    require_caps(relation, schema)
    private = private_tables(relation, schema)
    held = [table.caps or Caps(rows=1) for table in private]
    if len(private) == 1 and asked == AS_DECLARED:
        return held[0]
    own = Caps(
        rows=max(caps.rows for caps in held),
        groups=max(caps.most_groups for caps in held),
        rows_per_group=max(caps.most_in_group for caps in held),
    )
    found = any(table.name in schema.found for table in private)
    ceilings = [table.caps_max or caps for table, caps in zip(private, held, strict=True)]
    ceilings += [Caps(rows=schema.study.engine.unit_rows)] if found else []
    wanted = {
        "rows": (asked.rows, max(ceiling.rows for ceiling in ceilings)),
        "groups": (
            asked.groups,
            max(max(ceiling.most_groups, ceiling.rows) if ceiling.groups is None else ceiling.groups for ceiling in ceilings),
        ),
        "rows_per_group": (asked.rows_per_group, max(ceiling.most_in_group for ceiling in ceilings)),
    }
    for name, (value, most) in wanted.items():
        if value is not None:
            if not 1 <= value <= most:
                raise InvalidParameter.must_be(f"caps.{name}", f"from 1 to {most}, what the owner allows", value)
            own = replace(own, **{name: value})
    if asked.rows is not None and asked.groups is None and found:
        own = replace(own, groups=asked.rows)
    if asked.rows is not None and asked.rows_per_group is None:
        own = replace(own, rows_per_group=asked.rows if found else min(own.most_in_group, asked.rows))
    return own


def bound_contribution(
    relation: Relation,
    owners: Owners,
    caps: Caps,
    asked: RequestedCaps,
    *,
    keyed: bool,
    private_keys: bool,
    known_groups: int | None,
    counts_units: bool,
    height: int | None = None,
    key: Expression | None = None,
    fixed: frozenset[int] = frozenset(),
    bare: bool = True,
) -> tuple[Cap, Contribution]:
    """Return which caps are executed, and what they prove.

    known_groups  how many combinations of keys there can be; None: nobody knows
    counts_units  whether units, or different values, are counted by group: then a cap on groups is worth its time
    height        at which the cap cuts base tables; None: not executed
    key           the only key; None: there are none, or several
    fixed         columns that are keys as they stand, or that keys are made of by moving numbers to the ends of a range
    bare          whether they are keys as they stand

    Claim   After the cap a unit has at most contribution.rows rows, in at most contribution.groups groups, at most
            contribution.in_group of them in one group.
    Needs   As `Owners`; the caps are executed in the order rows, groups, rows in a group, on the filtered relation. A cap
            inside a group is not executed where rows that agree in the keys are so few by themselves: an inner GROUP BY the
            unit and the key has one. Keys that are moved to the ends of a range may agree where columns do not: executed.
    """
    private, reach = owners.of(relation)
    if not private:
        raise NotPrivate(
            "a question must be about a private table; this one reads public tables only.",
            hint="public tables are no secret: read them directly.",
        )
    promised = replace(owners, nullable=False, known={}, agreed={}).rows(relation)
    rows, by = _row_cap(relation, owners.schema, _least(caps.rows, promised) or 1, asked, reach)
    if not keyed:
        return Cap(rows, by, height=height), Contribution(rows, 1, rows, keyed=False)
    agreeing = owners.agreeing(relation, fixed)
    in_group = _least(caps.most_in_group, rows, agreeing) or 1
    possible = rows if known_groups is None else min(rows, max(known_groups, 1))
    groups = min(caps.most_groups, possible)
    worth = private_keys or counts_units or in_group < rows
    capped = worth and groups < possible
    stored = capped and by == "rank" and groups <= NUMBERED_GROUPS and numbered_key(key, relation, owners.schema) is not None
    groups_by: OneOf["hash", "first"] = "first" if stored else "hash"
    executed = in_group < rows and not (bare and agreeing is not None and agreeing <= in_group)
    cap = Cap(rows, by, groups if capped else None, in_group if executed else None, height, groups_by)
    return cap, Contribution(rows, groups if capped else possible, in_group, keyed=True)


def _row_cap(
    relation: Relation, schema: Schema, rows: int, asked: RequestedCaps, reach: int | None
) -> tuple[int, OneOf["rank", "window", "none"]]:
    """At most how many rows of a unit count, and what sees to it."""
    if reach is not None and reach <= rows:
        return max(reach, 1), "none"
    if _is_unfiltered(relation):
        return rows, "rank"
    if asked.prepared and sum(1 for _ in scans_of(relation)) == 1:
        ranked = Owners(schema, rows).rows(relation)
        if ranked is not None and ranked <= rows:
            return rows, "rank"
    return rows, "window"


def _is_unfiltered(relation: Relation) -> bool:
    """Whether every row of the one base table counts, so that the prepared rank is the cap."""
    match relation:
        case Scan():
            return True
        case Project():
            return _is_unfiltered(relation.input)
        case _:
            return False


NUMBERED_GROUPS = 254
"""Groups of a unit that stored numbers of values tell apart: numbers are bytes, and 255 is for all further values."""


def numbered_columns(table: TableSchema) -> list[int]:
    """Return the columns of a table of which a prepared version stores the numbers of their values inside a unit.

    Those that one groups by: of declared values, texts, booleans, dates. Whose a row is, is one value of a unit.
    """
    unit = table.table.unit
    if table.table.public or table.table.unique or isinstance(unit, UnitRow):
        return []
    owner = getattr(unit, "column", None)
    return [
        place
        for place, field in enumerate(table.fields)
        if field.name != owner
        and (field.type in {Type.STRING, Type.BOOLEAN, Type.DATE} or (field.declared and field.declared.values) is not None)
    ]


def numbered_key(key: Node | None, relation: Relation, schema: Schema) -> int | None:
    """Return the column of the one base table that a key is, where every row counts and numbers of its values are stored."""
    if not (schema.numbered and isinstance(key, Ref) and _is_unfiltered(relation)):
        return None
    source = relation.columns[key.index].source
    table = None if source is None else schema.table(source[0])
    place = None if source is None or table is None else table.index(source[1])
    return place if table is not None and place in numbered_columns(table) else None


# ---- small walks ---------------------------------------------------------------------------------------------------


def conjuncts(predicate: Node | None) -> Iterator[Node]:
    """Yield the parts of a predicate that must all be true."""
    if isinstance(predicate, Call) and predicate.function == "and":
        for argument in predicate.arguments:
            yield from conjuncts(argument)
    elif predicate is not None:
        yield predicate


def refs_of(expression: Node) -> set[int]:
    """Return the columns an expression reads."""
    match expression:
        case Ref():
            return {expression.index}
        case Call():
            return {index for argument in expression.arguments for index in refs_of(argument)}
        case _:
            return set()


def is_unit(expression: Node, relation: Relation) -> bool:
    """Whether an expression is the bare unit of the relation's rows, never NULL."""
    return isinstance(expression, Ref) and relation.columns[expression.index].unit


def scans_of(relation: Relation) -> Iterator[Scan]:
    """Yield every table that a relation reads, as often as it reads it."""
    match relation:
        case Scan():
            yield relation
        case Join():
            yield from scans_of(relation.left)
            yield from scans_of(relation.right)
        case UnionAll():
            for branch in relation.inputs:
                yield from scans_of(branch)
        case _:
            yield from scans_of(relation.input)

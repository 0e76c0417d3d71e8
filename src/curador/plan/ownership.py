"""Who owns the rows of a relation, how many one unit can have, and how they are capped: the calculus of R.

Lemma (unit-locality). The rows that a relation assigns to a unit depend on that unit's rows and on public tables only. It
holds for every node by construction, and composes; so removing a unit removes its rows and changes no other row.

relation                                          R, the most rows of one unit (None: no bound)
table: unit = row, unique / else                  1 / the height at which base tables are cut; none without one
filter, projection, window in the unit, distinct  R
private ⋈ private, units always equated           J = min(R₁a₂, R₂a₁); left min(R₁ max(a₂, 1), J + R₁); semi, anti R₁;
  a: the most rows of one unit that agree in      full J + R₁ + R₂
  what is equated; 1 for a verified key, else R
private ⋈ public, f public rows match one row     R f; kept side private: R max(f, 1)
UNION ALL                                         R₁ + R₂
GROUP BY unit / unit, e                           1 / R
cap to m rows                                     min(R, m)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from curador.errors import NotPrivate
from curador.query.tree import (
    Call,
    Distinct,
    Filter,
    Join,
    Project,
    Ref,
    Scan,
    UnionAll,
    UnitGroup,
    Window,
)
from curador.study.model import UnitPath, UnitRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curador.query.tree import Node, Relation
    from curador.study.schema import Schema


@dataclass(frozen=True, slots=True)
class Owned:
    """private: whether units own the rows; rows: R, None where no bound is known."""

    private: bool
    rows: int | None


PUBLIC = Owned(private=False, rows=None)


def ownership_of(relation: Relation, schema: Schema, *, cap: int | None = None) -> Owned:
    """Return who owns a relation and its R; `cap`: the height, rows of a unit that every private base table gives at most.

    Claim   The engine's relation is unit-local and has at most R rows a unit.
    Needs   The engine equates the units of private joins, drops rows without a unit, and executes `unique` and `cap`.
    Source  Composition of the cases above; each case is a count of rows.
    """
    return _Owners(schema, cap).of(relation)


@dataclass(frozen=True, slots=True)
class _Owners:
    """One walk: what was found of a relation is kept, by identity, while the tree stands."""

    schema: Schema
    cap: int | None
    known: dict[int, Owned] = field(default_factory=dict[int, Owned])
    agreed: dict[tuple[int, frozenset[int]], int | None] = field(default_factory=dict[tuple[int, frozenset[int]], int | None])

    def of(self, relation: Relation) -> Owned:
        if id(relation) not in self.known:
            self.known[id(relation)] = self._of(relation)
        return self.known[id(relation)]

    def _of(self, relation: Relation) -> Owned:
        match relation:
            case Scan():
                return _scan(relation, self.schema, self.cap)
            case Filter() | Project() | Distinct() | Window():
                return self.of(relation.input)
            case UnitGroup():
                below = self.of(relation.input)
                others = [key for key in relation.keys if not is_unit(key, relation.input)]
                return Owned(private=True, rows=1 if not others else below.rows)
            case UnionAll():
                return self._union(relation)
            case Join():
                return self._join(relation)
            case _:
                assert_never(relation)

    def _union(self, union: UnionAll) -> Owned:
        branches = [self.of(branch) for branch in union.inputs]
        if len({branch.private for branch in branches}) > 1:
            raise NotPrivate("UNION ALL must not mix public rows with rows of people.", place=union.place)
        rows = [branch.rows for branch in branches]
        return Owned(branches[0].private, None if None in rows else sum(row for row in rows if row is not None))

    def _join(self, join: Join) -> Owned:
        left, right = self.of(join.left), self.of(join.right)
        if not left.private and not right.private:
            return PUBLIC
        if join.kind in {"semi", "anti"}:
            if not left.private:
                raise NotPrivate("a public table must not be filtered by rows of people.", place=join.place)
            return left
        if left.private and right.private:
            return Owned(private=True, rows=_both(join.kind, left.rows, right.rows, *self.fans(join)))
        kept = "left" if left.private else "right"
        if join.kind == "full" or (join.kind in {"left", "right"} and join.kind != kept):
            rule = "a join must keep every row's owner: rows of a public table without a match belong to nobody."
            hint = "use an inner join, or put the private table on the kept side."
            raise NotPrivate(rule, hint=hint, place=join.place)
        private, public = (left, join.right) if left.private else (right, join.left)
        matches = public_matches(join, public, self.schema)
        if private.rows is None or matches is None:
            return Owned(private=True, rows=None)
        return Owned(private=True, rows=private.rows * (max(matches, 1) if join.kind == kept else matches))

    def fans(self, join: Join) -> tuple[int | None, int | None]:
        """Return how many rows of one unit of the left side match one row of the right at most, and the other way round."""
        width = len(join.left.columns)
        ends = equated_columns(join, 0, width), equated_columns(join, width, width + len(join.right.columns))
        return self._agreeing(join.left, ends[0]), self._agreeing(join.right, ends[1])

    def _agreeing(self, relation: Relation, fixed: frozenset[int]) -> int | None:
        key = id(relation), fixed
        if key not in self.agreed:
            self.agreed[key] = self._agree(relation, fixed)
        return self.agreed[key]

    def _agree(self, relation: Relation, fixed: frozenset[int]) -> int | None:
        """The most rows of one unit, of a private relation, that agree in the fixed columns."""
        rows = self.of(relation).rows
        match relation:
            case Scan():
                unique = any(is_key(self.schema, relation.table, relation.columns[index].name) for index in fixed)
                return 1 if unique else rows
            case Filter():
                return self._agreeing(relation.input, fixed)
            case Window():
                return self._agreeing(relation.input, frozenset(one for one in fixed if one < len(relation.input.columns)))
            case Project():
                below = (relation.expressions[index] for index in fixed)
                return self._agreeing(relation.input, frozenset(one.index for one in below if isinstance(one, Ref)))
            case UnitGroup():
                others = {place for place, key in enumerate(relation.keys) if not is_unit(key, relation.input)}
                return 1 if others <= fixed else rows
            case Join(kind="inner") if self.of(relation.left).private and self.of(relation.right).private:
                return _least(rows, *self._through(relation, fixed))
            case _:
                return rows

    def _through(self, join: Join, fixed: frozenset[int]) -> tuple[int | None, int | None]:
        """Rows that agree on one side, times how many of the other side match each."""
        width = len(join.left.columns)
        left_fan, right_fan = self.fans(join)
        left = self._agreeing(join.left, frozenset(index for index in fixed if index < width))
        right = self._agreeing(join.right, frozenset(index - width for index in fixed if index >= width))
        return (
            None if left is None or right_fan is None else left * right_fan,
            None if right is None or left_fan is None else right * left_fan,
        )


def _least(*rows: int | None) -> int | None:
    return min((row for row in rows if row is not None), default=None)


def _scan(scan: Scan, schema: Schema, cap: int | None) -> Owned:
    found = schema.table(scan.table)
    if found is None or found.table.public:
        return PUBLIC
    table = found.table
    rows = 1 if table.unique or isinstance(table.unit, UnitRow) else cap
    return Owned(private=True, rows=rows)


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


def fans_of(join: Join, schema: Schema, cap: int | None) -> tuple[int | None, int | None]:
    """Return how many rows of one unit of the left side match one row of the right at most, and the other way round.

    Claim   An equality with a column that is unique, or unique inside the unit, matches one row at most.
    Needs   Both sides are private. Keys that units are found through are verified when a version is taken. The types that
            are compared are equal: nothing is rounded.
    """
    return _Owners(schema, cap).fans(join)


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

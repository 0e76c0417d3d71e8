"""BigQuery's WITH DIFFERENTIAL_PRIVACY OPTIONS(…), which is taken out of the tokens before they are parsed.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, max_groups_contributed = 2, privacy_unit_column = user_id)
        city, AVG(spent, contribution_bounds_per_group => (0, 100)) AS mean FROM visits GROUP BY city

It may also stand in front of SELECT. Options narrow what the study allows; whatever is not known is refused by its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from curador.query import literals
from curador.query.messages import Text, invalid, near, not_private, quoted
from curador.query.tree import Aggregate, Call, Options, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlglot.tokenizer_core import Token

    from curador.query.tree import Block, Node
    from curador.study.schema import Schema

_KNOWN = ("epsilon", "privacy_unit_column", "max_groups_contributed", "max_rows_contributed", "contribution_bounds_per_group")
_BOUNDS = "contribution_bounds_per_group"
_WITHOUT_BOUNDS = {"count", "count_units", "count_distinct", "bool_and", "bool_or"}

Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Marks:
    """What the clause said, still without knowing the question.

    unit    (table or alias, column) given as privacy_unit_column
    bounds  narrower bounds of the aggregate that begins at a place
    every   narrower bounds of all aggregates that have bounds
    """

    options: Options = field(default_factory=Options)
    unit: tuple[str, Place] | None = None
    bounds: Mapping[Place, Bounds] = field(default_factory=dict[Place, Bounds])
    every: Bounds | None = None


def taken_out(tokens: list[Token], text: Text) -> tuple[list[Token], Marks]:
    """Return the tokens without the clause and without named bounds in aggregates, and what these said."""
    rest, bounds = _without_named_bounds(tokens, text)
    starts = [index for index in range(len(rest) - 1) if _begins(rest, index)]
    if not starts:
        if bounds:
            place = next(iter(bounds))
            raise invalid(place, f"{_BOUNDS} must come with WITH DIFFERENTIAL_PRIVACY OPTIONS(…)")
        return rest, Marks()
    start = starts[0]
    if len(starts) > 1:
        raise invalid(text.place(rest[starts[1]].start), "WITH DIFFERENTIAL_PRIVACY must stand once")
    clause = _Clause(rest, start + 2, text)
    options = clause.read()
    return rest[:start] + rest[clause.index :], _marks(options, bounds)


def _begins(tokens: Sequence[Token], index: int) -> bool:
    return tokens[index].token_type == TokenType.WITH and tokens[index + 1].text.upper() == "DIFFERENTIAL_PRIVACY"


def _without_named_bounds(tokens: list[Token], text: Text) -> tuple[list[Token], dict[Place, Bounds]]:
    """Take `, contribution_bounds_per_group => (low, high)` out of calls."""
    bounds: dict[Place, Bounds] = {}
    rest: list[Token] = []
    opened: list[int] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        named = (
            token.token_type == TokenType.COMMA
            and index + 2 < len(tokens)
            and tokens[index + 1].text.lower() == _BOUNDS
            and tokens[index + 2].text == "=>"
        )
        if named:
            place = text.place(tokens[index + 1].start)
            if not opened or opened[-1] == 0:
                raise invalid(place, f"{_BOUNDS} must stand inside an aggregate")
            clause = _Clause(tokens, index + 3, text)
            bounds[text.place(rest[opened[-1] - 1].start)] = clause.bounds(place)
            index = clause.index
            continue
        if token.token_type == TokenType.L_PAREN:
            opened.append(len(rest))
        elif token.token_type == TokenType.R_PAREN and opened:
            opened.pop()
        rest.append(token)
        index += 1
    return rest, bounds


class _Clause:
    """A hand that moves over the tokens of the clause."""

    def __init__(self, tokens: Sequence[Token], index: int, text: Text) -> None:
        self.tokens, self.index, self.text = tokens, index, text

    def place(self) -> Place:
        return self.text.place(self.tokens[self.index].start if self.index < len(self.tokens) else len(self.text.raw))

    def next(self, *expected: str) -> str:
        if self.index >= len(self.tokens) or (expected and self.tokens[self.index].text.upper() not in expected):
            raise invalid(
                self.place(), f"WITH DIFFERENTIAL_PRIVACY must go on with {' or '.join(expected) or 'a value'} here"
            )
        self.index += 1
        return self.tokens[self.index - 1].text

    def read(self) -> dict[str, tuple[object, Place]]:
        """Read OPTIONS(name = value, …)."""
        self.next("OPTIONS")
        self.next("(")
        found: dict[str, tuple[object, Place]] = {}
        while True:
            place = self.place()
            name = self.next().lower()
            if name not in _KNOWN:
                raise invalid(place, f"the option {quoted(name)} is not known", near(name, _KNOWN, "the options are"))
            if name in found:
                raise invalid(place, f"the option {quoted(name)} must stand once")
            self.next("=")
            found[name] = (self.value(name, place), place)
            if self.next(",", ")") == ")":
                return found

    def value(self, name: str, place: Place) -> object:
        if name == _BOUNDS:
            return self.bounds(place)
        if name == "privacy_unit_column":
            parts = [self.next()]
            while self.index < len(self.tokens) and self.tokens[self.index].text == ".":
                self.next(".")
                parts.append(self.next())
            return parts[-1]
        number = self.number(place)
        if name == "epsilon":
            if number <= 0:
                raise invalid(place, "epsilon must be above 0")
            return number
        if number.denominator != 1 or not 1 <= number <= 1_000_000:
            raise invalid(place, f"{name} must be a whole number from 1 to 1,000,000")
        return int(number)

    def number(self, place: Place) -> Fraction:
        sign = 1
        if self.index < len(self.tokens) and self.tokens[self.index].token_type == TokenType.DASH:
            self.next("-")
            sign = -1
        number = literals.fraction_of(literals.number(self.next(), place))
        return sign * (number or Fraction(0))

    def bounds(self, place: Place) -> Bounds:
        self.next("(")
        low = self.number(place)
        self.next(",")
        high = self.number(place)
        self.next(")")
        if low >= high:
            raise invalid(place, f"{_BOUNDS} must be (lower, upper) with lower below upper")
        return low, high


def _marks(options: dict[str, tuple[object, Place]], bounds: dict[Place, Bounds]) -> Marks:
    values = {name: value for name, (value, _) in options.items()}
    unit = options.get("privacy_unit_column")
    return Marks(
        Options(
            epsilon=values.get("epsilon"),  # type: ignore[arg-type]
            rows=values.get("max_rows_contributed"),  # type: ignore[arg-type]
            groups=values.get("max_groups_contributed"),  # type: ignore[arg-type]
        ),
        None if unit is None else (str(unit[0]), unit[1]),
        bounds,
        values.get(_BOUNDS),  # type: ignore[arg-type]
    )


def applied(marks: Marks, blocks: Sequence[Block], tables: Sequence[str], schema: Schema) -> Options:
    """Return the options as they are about this question, its unit and its output columns."""
    if marks.unit is not None:
        name, place = marks.unit
        units = {
            one.fields[one.unit_index].name
            for one in schema.tables
            if one.table.name in tables and one.unit_index is not None
        }
        if name.lower() not in {one.lower() for one in units}:
            raise not_private(
                place,
                f"privacy_unit_column must be the study's unit; got {quoted(name)}",
                near(name, sorted(units), "the unit is in")
                if units
                else "the unit has no column here: leave the option out.",
            )
    found: dict[str, Bounds] = {}
    unused = set(marks.bounds)
    for block in blocks:
        for item in block.items:
            for aggregate in _aggregates(item.expression):
                bounds = marks.every
                if aggregate.place is not None and aggregate.place in marks.bounds:
                    bounds = marks.bounds[aggregate.place]
                    unused.discard(aggregate.place)
                    if aggregate.function in _WITHOUT_BOUNDS:
                        raise invalid(aggregate.place, f"{_BOUNDS} must stand in a SUM, AVG, variance or quantile")
                if bounds is None or aggregate.function in _WITHOUT_BOUNDS:
                    continue
                if found.setdefault(item.name, bounds) != bounds:
                    raise invalid(aggregate.place, f"{_BOUNDS} must be the same for all aggregates of one column")
    if unused:
        raise invalid(
            min(unused, key=lambda one: (one.line, one.column)), f"{_BOUNDS} must stand in an aggregate of the SELECT list"
        )
    said = marks.options
    narrowed = tuple((name, low, high) for name, (low, high) in found.items())
    return Options(said.epsilon, said.rows, said.groups, narrowed)


def _aggregates(node: Node) -> Iterator[Aggregate]:
    if isinstance(node, Aggregate):
        yield node
    elif isinstance(node, Call):
        for one in node.arguments:
            yield from _aggregates(one)

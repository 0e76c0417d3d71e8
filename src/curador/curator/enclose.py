"""Where an expression's number before noise lies: exact laws for what has one, interval arithmetic for the rest.

Parts that are sums of measurements, ratios of two such sums, or single estimates have a law of their own. If there are k
different ones, each gets an interval that misses with (1 − confidence)/k, so that all hold at once with the confidence asked
for; the functions above them map these intervals to all that can come out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.curator import enclosure as on
from curador.curator.affine import Form, Quotient, affine, quotient
from curador.curator.computed import Frame, evaluate, settled
from curador.curator.enclosure import Enclosure, Truth
from curador.curator.intervals import estimate_interval, form_interval, quotient_interval
from curador.engines.lower.expression import whole_literal
from curador.plan.parts import estimates_of
from curador.query.tree import Call, Estimated
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from curador.curator.release import Released
    from curador.plan.model import BlockPlan
    from curador.plan.price import Noise
    from curador.query.tree import Node

Part: TypeAlias = Form | Quotient | Estimated
"""What has a law of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """All that intervals are computed from: the plan, its noises, what was released, and the values."""

    block: BlockPlan
    noises: Sequence[Noise]
    released: Released
    frame: Frame


def enclose(node: Node, sight: Sight, confidence: Fraction) -> Enclosure:
    """Return where the number before noise lies, in every row.

    Claim   In each row, with at least this probability, the expression of the numbers before noise is in the enclosure, or is
            NULL and the enclosure says so. Needs: an expression of a number. Rounds: outward.
    """
    node = settled(node, sight.frame)
    parts = parts_of(node, sight.block)
    level = 1 - (1 - confidence) / max(len(parts), 1)
    walk = _Walk(sight, {part: _law(part, sight, level) for part in parts})
    with np.errstate(all="ignore"):
        return walk.number(node)


def parts_of(node: Node, block: BlockPlan) -> tuple[Part, ...]:
    """Return the different parts of an expression that have a law of their own."""
    found: dict[Part, None] = {}
    _collect(node, block, found)
    return tuple(found)


def _collect(node: Node, block: BlockPlan, found: dict[Part, None]) -> None:
    if not estimates_of(node):
        return
    part = part_of(node, block)
    if part is not None:
        found[part] = None
    elif isinstance(node, Call):
        for argument in node.arguments:
            _collect(argument, block, found)


def part_of(node: Node, block: BlockPlan) -> Part | None:
    """Return the expression itself as such a part, if it is one."""
    form = affine(node, block)
    if form is not None:
        return form
    ratio = quotient(node, block)
    if ratio is not None and _apart(ratio):
        return ratio
    return Estimated(node.index, Type.FLOAT) if isinstance(node, Estimated) else None


def _apart(ratio: Quotient) -> bool:
    """Whether the noises of both sides differ by more than a factor."""
    above, below = dict(ratio.above.terms), dict(ratio.below.terms)
    factors = {above.get(index, Fraction(0)) / c for index, c in below.items()}
    return bool(above) and (len(factors) > 1 or set(above) != set(below))


def _law(part: Part, sight: Sight, level: Fraction) -> Enclosure:
    match part:
        case Form():
            return form_interval(part, sight.noises, sight.released, level)
        case Quotient():
            with np.errstate(all="ignore"):
                return quotient_interval(part, sight.noises, sight.released, level) or on.unknown(sight.frame.rows)
        case Estimated():
            return estimate_interval(sight.block.estimates[part.index], sight.noises, sight.released, level)


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """From the parts upward."""

    sight: Sight
    laws: dict[Part, Enclosure]
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", self.sight.frame.rows)

    def number(self, node: Node) -> Enclosure:
        """Where a number can lie; a whole one that is computed has 64 bits or is NULL."""
        if not estimates_of(node):
            return on.exactly(evaluate(node, self.sight.frame)) if self._numeric(node) else on.unknown(self.rows)
        found = self._number(node)
        return on.fitting(found) if isinstance(node, Call) and node.type is Type.INTEGER else found

    def _number(self, node: Node) -> Enclosure:
        part = part_of(node, self.sight.block)
        if part is not None:
            return self.laws[part]
        if not isinstance(node, Call) or not node.type.numeric:
            return on.unknown(self.rows)
        match node.function:
            case "case":
                return self._case(node)
            case "coalesce":
                return self._coalesce(node)
            case "nullif":
                held = self.number(node.arguments[0])
                same = on.compare("=", held, self.number(node.arguments[1]))
                return Enclosure(held.low, held.high, held.null | same.true)
            case "least" | "greatest":
                held = [self.number(one) for one in node.arguments]
                return on.least(held) if node.function == "least" else on.greatest(held)
            case "cast":
                return self._cast(node)
            case _:
                return self._computed(node)

    def truth(self, node: Node) -> Truth:
        """What a condition can come to."""
        if not estimates_of(node):
            return on.certain(evaluate(node, self.sight.frame, Type.BOOLEAN))
        if not isinstance(node, Call):
            return on.doubtful(self.rows)
        first = node.arguments[0]
        match node.function:
            case "and" | "or":
                held = [self.truth(one) for one in node.arguments]
                return on.every(held) if node.function == "and" else on.some(held)
            case "not":
                return on.reverse(self.truth(first))
            case "is_null" if self._numeric(first):
                held = self.number(first)
                return Truth(held.null | held.empty, ~held.empty, np.zeros(self.rows, np.bool_))
            case "=" | "<>" | "<" | "<=" | ">" | ">=" if self._numeric(*node.arguments):
                return on.compare(node.function, self.number(first), self.number(node.arguments[1]))
            case "in" if self._numeric(*node.arguments):
                held = self.number(first)
                return on.some([on.compare("=", held, self.number(one)) for one in node.arguments[1:]])
            case _:
                return on.doubtful(self.rows)

    def _numeric(self, *nodes: Node) -> bool:
        return all(node.type is None or node.type.numeric for node in nodes)

    def _computed(self, node: Call) -> Enclosure:
        held = [self.number(one) for one in node.arguments] if self._numeric(*node.arguments) else []
        function = _FUNCTIONS.get(node.function)
        if function is not None and held:
            found = function(*held)
            return (
                on.above_zero(found, held[1]) if node.function in {"/", "//"} and estimates_of(node.arguments[1]) else found
            )
        if node.function == "round" and held:
            digits = whole_literal(node.arguments[1]) if len(held) > 1 else 0
            return held[0] if digits >= 0 and node.arguments[0].type is Type.INTEGER else on.rounding(held[0], digits)
        if node.function == "power" and held and not estimates_of(node.arguments[1]) and self.rows:
            exponents = np.unique(held[1].low)
            return on.power(held[0], float(exponents[0])) if len(exponents) == 1 else on.unknown(self.rows)
        return on.unknown(self.rows)

    def _case(self, node: Call) -> Enclosure:
        arguments = node.arguments
        found, reached = on.nothing(self.rows), np.ones(self.rows, np.bool_)
        for condition, arm in zip(arguments[0:-1:2], arguments[1::2], strict=False):
            truth = self.truth(condition)
            found = on.hull(found, self.number(arm), reached & truth.true)
            reached = reached & (truth.false | truth.null)
        if len(arguments) % 2:
            return on.hull(found, self.number(arguments[-1]), reached)
        return Enclosure(found.low, found.high, found.null | reached)

    def _coalesce(self, node: Call) -> Enclosure:
        found, reached = on.nothing(self.rows), np.ones(self.rows, np.bool_)
        for argument in node.arguments:
            held = self.number(argument)
            sure = Enclosure(held.low, held.high, np.zeros(self.rows, np.bool_))
            found = on.hull(found, sure, reached & ~held.empty)
            reached = reached & (held.null | held.empty)
        return Enclosure(found.low, found.high, found.null | reached)

    def _cast(self, node: Call) -> Enclosure:
        inner = node.arguments[0]
        if inner.type is Type.BOOLEAN:
            truth = self.truth(inner)
            return Enclosure(
                np.where(truth.false, 0.0, np.where(truth.true, 1.0, np.inf)),
                np.where(truth.true, 1.0, np.where(truth.false, 0.0, -np.inf)),
                truth.null,
            )
        if not self._numeric(inner):
            return on.unknown(self.rows)
        held = self.number(inner)
        return on.monotone(on.nearest)(held) if node.type is Type.INTEGER else held


_FUNCTIONS: dict[str, Callable[..., Enclosure]] = {
    "+": on.add,
    "-": on.subtract,
    "*": on.multiply,
    "/": on.divide,
    "//": on.quotient,
    "%": on.remainder,
    "neg": on.negative,
    "abs": on.absolute,
    "sign": on.monotone(np.sign),
    "floor": on.monotone(np.floor),
    "ceil": on.monotone(np.ceil),
    "sqrt": on.root,
    "ln": on.logarithm(np.log),
    "log10": on.logarithm(np.log10),
    "exp": on.exponential,
}

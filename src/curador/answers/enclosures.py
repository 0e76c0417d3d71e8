"""Where an expression's number before noise lies: exact laws for what has one, interval arithmetic for the rest.

Parts that are sums of measurements, ratios of two such sums, or single estimates have a law of their own. If there are k
different ones, each gets an interval that misses with (1 − confidence)/k, so that all hold at once with the confidence asked
for; the functions above them map these intervals to all that can come out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.answers.computed import ReleasedFrame, evaluate, settle_types
from curador.answers.estimates import (
    Quotient,
    affine_form,
    quotient_interval,
    quotient_of_forms,
)
from curador.plan import enclosure as on
from curador.plan.aggregates import Linear
from curador.plan.functions import ENCLOSURES, TRUTHS
from curador.plan.model import estimates_of
from curador.query.tree import Call, Estimated
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.answers.release import ReleasedBlock
    from curador.plan.enclosure import ColumnEnclosure, Truth
    from curador.plan.model import BlockPlan
    from curador.plan.price import Noise
    from curador.query.tree import Node


PartWithLaw: TypeAlias = Linear | Quotient | Estimated
"""What has a law of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """All that intervals are computed from: the plan, its noises, what was released, and the values.

    laws   where the parts of one expression lie that have a law of their own: from them it goes upward
    """

    block: BlockPlan
    noises: Sequence[Noise]
    released: ReleasedBlock
    frame: ReleasedFrame
    laws: Mapping[PartWithLaw, ColumnEnclosure] = field(default_factory=dict["PartWithLaw", "ColumnEnclosure"])

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.frame.rows

    def number(self, node: Node) -> ColumnEnclosure:
        """Where a number can lie; a whole one that is computed has 64 bits or is NULL."""
        if not (node.type is None or node.type.numeric):
            return on.unknown(self.rows)
        if not estimates_of(node):
            known = evaluate(node, self.frame)
            return on.exactly(known.values, known.null)
        part = part_of(node, self.block)
        if not isinstance(node, Call):
            return on.unknown(self.rows) if part is None else self.laws[part]
        found = ENCLOSURES[node.function](node, self) if part is None else self.laws[part]
        return on.fit_integers(found) if node.type is Type.INTEGER else found

    def truth(self, node: Node) -> Truth:
        """What a condition can come to."""
        if not estimates_of(node):
            known = evaluate(node, self.frame, Type.BOOLEAN)
            return on.certain(known.values, known.null)
        return TRUTHS[node.function](node, self) if isinstance(node, Call) else on.doubtful(self.rows)


def enclose(node: Node, sight: Sight, confidence: Fraction) -> ColumnEnclosure:
    """Return where the number before noise lies, in every row.

    Claim   In each row, with at least this probability, the expression of the numbers before noise is in the enclosure, or is
            NULL and the enclosure says so. Needs: an expression of a number. Rounds: outward.
    """
    node = settle_types(node, sight.frame)
    parts = parts_of(node, sight.block)
    level = 1 - (1 - confidence) / max(len(parts), 1)
    own = replace(sight, laws={part: _law(part, sight, level) for part in parts})
    with np.errstate(all="ignore"):
        return own.number(node)


def parts_of(node: Node, block: BlockPlan) -> tuple[PartWithLaw, ...]:
    """Return the different parts of an expression that have a law of their own."""
    found: dict[PartWithLaw, None] = {}
    _collect(node, block, found)
    return tuple(found)


def _collect(node: Node, block: BlockPlan, found: dict[PartWithLaw, None]) -> None:
    if not estimates_of(node):
        return
    part = part_of(node, block)
    if part is not None:
        found[part] = None
    elif isinstance(node, Call):
        for argument in node.arguments:
            _collect(argument, block, found)


def part_of(node: Node, block: BlockPlan) -> PartWithLaw | None:
    """Return the expression itself as such a part, if it is one."""
    form = affine_form(node, block)
    if form is not None:
        return form
    ratio = quotient_of_forms(node, block)
    if ratio is not None and _apart(ratio):
        return ratio
    return Estimated(node.index, Type.FLOAT) if isinstance(node, Estimated) else None


def _apart(ratio: Quotient) -> bool:
    """Whether the noises of both sides differ by more than a factor."""
    above, below = dict(ratio.above.terms), dict(ratio.below.terms)
    factors = {above.get(index, Fraction(0)) / c for index, c in below.items()}
    return bool(above) and (len(factors) > 1 or set(above) != set(below))


def _law(part: PartWithLaw, sight: Sight, level: Fraction) -> ColumnEnclosure:
    match part:
        case Linear():
            return part.interval(sight.noises, sight.released, level)
        case Quotient():
            with np.errstate(all="ignore"):
                return quotient_interval(part, sight.noises, sight.released, level) or on.unknown(sight.frame.rows)
        case Estimated():
            return sight.block.estimates[part.index].interval(sight.noises, sight.released, level)

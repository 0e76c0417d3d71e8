"""Which parts of an expression have a law of their own: sums of measurements, ratios of two such sums, single estimates.

If there are k different ones, each gets an interval that misses with 1/k of what the expression's may miss, so the number of
parts is known before data: ends of quantiles are priced for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from curador.plan import smooth as jets
from curador.plan.aggregates import Linear, Mean
from curador.plan.model import estimates_of, measurements_of
from curador.query.tree import Call, Estimated, Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.plan.error import Combination
    from curador.plan.model import BlockPlan
    from curador.plan.smooth import Box, Jet
    from curador.query.tree import Node


# ---- sums of measurements, and ratios of them -----------------------------------------------------------------------


_LARGEST = 1 << 500
"""Beyond this, an expression's value and interval are computed in doubles, step by step, and may overflow to NULL."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """One form over another that has noise; within: between which numbers it lies in any data, if that is known."""

    above: Linear
    below: Linear
    within: tuple[Fraction, Fraction] | None = None


def _form(terms: dict[int, Fraction], constant: Fraction) -> Linear:
    """A form: no coefficient is 0, by place."""
    return Linear(tuple(sorted((index, c) for index, c in terms.items() if c)), constant)


def _times(form: Linear, factor: Fraction) -> Linear:
    return _form({index: factor * c for index, c in form.terms}, factor * form.constant)


def _plus(one: Linear, other: Linear) -> Linear:
    """The sum of two forms; the same measurement is the same noise."""
    found = dict(one.terms)
    for index, coefficient in other.terms:
        found[index] = found.get(index, Fraction(0)) + coefficient
    return _form(found, one.constant + other.constant)


def affine_form(node: Node, block: BlockPlan) -> Linear | None:
    """Return the expression as a form; None where it is none, or one of numbers that doubles cannot hold."""
    found = _affine(node, block)
    return found if found is not None and _moderate(found) else None


def _moderate(form: Linear) -> bool:
    numbers = [form.constant, *(c for _, c in form.terms)]
    return all(abs(number) < _LARGEST and number.denominator < _LARGEST for number in numbers)


def _affine(node: Node, block: BlockPlan) -> Linear | None:
    match node:
        case Literal(value=bool()):
            return None
        case Literal(value=int() | Fraction() as value):
            return Linear((), Fraction(value))
        case Estimated():
            estimate = block.estimates[node.index]
            return _form(_add_terms(estimate.terms), estimate.constant) if isinstance(estimate, Linear) else None
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL):
            inner = node.arguments[0]
            return affine_form(inner, block) if inner.type is not None and inner.type.numeric else None
        case Call(function="+" | "-" | "*" | "/" | "neg"):
            return _compute_form(node.function, [affine_form(argument, block) for argument in node.arguments])
        case _:
            return None


def _add_terms(terms: Combination) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for index, coefficient in terms:
        found[index] = found.get(index, Fraction(0)) + coefficient
    return found


def _compute_form(function: str, held: list[Linear | None]) -> Linear | None:
    match function, held:
        case "neg", [Linear() as one]:
            return _times(one, Fraction(-1))
        case "+", [Linear() as one, Linear() as other]:
            return _plus(one, other)
        case "-", [Linear() as one, Linear() as other]:
            return _plus(one, _times(other, Fraction(-1)))
        case "*", [Linear() as one, Linear(terms=()) as other]:
            return _times(one, other.constant)
        case "*", [Linear(terms=()) as one, Linear() as other]:
            return _times(other, one.constant)
        case "/", [Linear() as one, Linear(terms=()) as other] if other.constant:
            return _times(one, 1 / other.constant)
        case _:
            return None


def quotient_of_forms(node: Node, block: BlockPlan) -> Quotient | None:
    """Return the expression as a ratio of two forms, also one that is multiplied by a number or has one added."""
    found = _quotient(node, block)
    return found if found is not None and _moderate(found.above) and _moderate(found.below) else None


def _quotient(node: Node, block: BlockPlan) -> Quotient | None:
    match node:
        case Call(function="/"):
            above, below = affine_form(node.arguments[0], block), affine_form(bare_divisor(node.arguments[1]), block)
            if above is not None and below is not None and below.terms:
                return Quotient(above, below)
            inner = quotient_of_forms(node.arguments[0], block)
            if inner is not None and below is not None and not below.terms and below.constant:
                return Quotient(_times(inner.above, 1 / below.constant), inner.below)
            return None
        case Call(function="neg"):
            inner = quotient_of_forms(node.arguments[0], block)
            return None if inner is None else Quotient(_times(inner.above, Fraction(-1)), inner.below)
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL):
            return quotient_of_forms(node.arguments[0], block)
        case Call(function="+" | "-" | "*"):
            return _shift_of(node, block)
        case _:
            return None


def _shift_of(node: Call, block: BlockPlan) -> Quotient | None:
    for place in (0, 1):
        inner, other = quotient_of_forms(node.arguments[place], block), affine_form(node.arguments[1 - place], block)
        if inner is None or other is None or other.terms:
            continue
        if node.function == "*":
            return Quotient(_times(inner.above, other.constant), inner.below)
        turned = _times(inner.above, Fraction(-1)) if node.function == "-" and place == 1 else inner.above
        added = -other.constant if node.function == "-" and place == 0 else other.constant
        return Quotient(_plus(turned, _times(inner.below, added)), inner.below)
    return None


def bare_divisor(divisor: Node) -> Node:
    """Return the divisor that counts: NULLIF(x, 0) divides as x does, whose quotient is NULL there anyway."""
    match divisor:
        case Call(function="nullif", arguments=(inner, Literal(value=0 | Fraction()) as zero)) if not zero.value:
            return inner
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL, arguments=(inner,)):
            return bare_divisor(inner)
        case _:
            return divisor


# ---- parts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Smooth:
    """An expression of several estimates that has slopes: sums, products, quotients and roots of them."""

    node: Node


@dataclass(frozen=True, slots=True)
class RatioSum:
    """An expression that is a sum of ratios with different divisors, and of a form."""

    node: Node
    ratios: tuple[Quotient, ...]
    rest: Linear


PartWithLaw: TypeAlias = Linear | Quotient | Estimated | RatioSum | Smooth
"""What has a law of its own."""


def parts_of(node: Node, block: BlockPlan, *, smooth: bool = True) -> tuple[PartWithLaw, ...]:
    """Return the different parts of an expression that have a law of their own; smooth=False: smooth ones in their parts."""
    found: dict[PartWithLaw, None] = {}
    _collect(node, block, found, smooth=smooth)
    return tuple(found)


def _collect(node: Node, block: BlockPlan, found: dict[PartWithLaw, None], *, smooth: bool) -> None:
    if not estimates_of(node):
        return
    part = part_of(node, block, smooth=smooth)
    if part is not None:
        found[part] = None
    elif isinstance(node, Call):
        for argument in node.arguments:
            _collect(argument, block, found, smooth=smooth)


def part_of(node: Node, block: BlockPlan, *, smooth: bool = True) -> PartWithLaw | None:
    """Return the expression itself as such a part, if it is one."""
    form = affine_form(node, block)
    if form is not None:
        return form
    ratio = quotient_of_forms(node, block)
    if ratio is not None and _apart(ratio):
        return ratio
    if isinstance(node, Estimated):
        return Estimated(node.index, Type.FLOAT)
    if not (smooth and is_smooth(node, block) and len(parts_of(node, block, smooth=False)) > 1):
        return None
    found = _ratio_sum(node, block)
    if found is None or not all(_moderate(form) for form in _forms_of(found)):
        return Smooth(node)
    return RatioSum(node, tuple(found[0].values()), found[1])


def _apart(ratio: Quotient) -> bool:
    """Whether the noises of both sides differ by more than a factor."""
    above, below = dict(ratio.above.terms), dict(ratio.below.terms)
    factors = {above.get(index, Fraction(0)) / c for index, c in below.items()}
    return bool(above) and (len(factors) > 1 or set(above) != set(below))


# ---- sums of ratios ------------------------------------------------------------------------------------------------


_Ratios: TypeAlias = "tuple[dict[Linear, Quotient], Linear]"
"""Ratios by divisor, and what is no ratio."""


def _ratio_sum(node: Node, block: BlockPlan) -> _Ratios | None:
    """The expression as a sum of ratios and of a form; None where it is none."""
    form = affine_form(node, block)
    if form is not None:
        return {}, form
    ratio = _mean_ratio(node, block) or quotient_of_forms(node, block)
    if ratio is not None:
        return {ratio.below: ratio}, Linear(())
    match node:
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL, arguments=(inner,)):
            return _ratio_sum(inner, block)
        case Call(function="neg", arguments=(inner,)):
            return _scale_ratios(_ratio_sum(inner, block), Fraction(-1))
        case Call(function="+" | "-", arguments=(one, other)):
            sign = Fraction(1 if node.function == "+" else -1)
            return _add_ratios(_ratio_sum(one, block), _scale_ratios(_ratio_sum(other, block), sign))
        case Call(function="*" | "/", arguments=(one, other)):
            factor = affine_form(other, block)
            if factor is None or factor.terms or not factor.constant:
                one, factor = other, affine_form(one, block) if node.function == "*" else None
            if factor is None or factor.terms or not factor.constant:
                return None
            return _scale_ratios(_ratio_sum(one, block), factor.constant if node.function == "*" else 1 / factor.constant)
        case _:
            return None


def _mean_ratio(node: Node, block: BlockPlan) -> Quotient | None:
    """A mean, without its clamps, as a ratio."""
    estimate = block.estimates[node.index] if isinstance(node, Estimated) else None
    if not isinstance(estimate, Mean):
        return None
    above = _form({estimate.total: estimate.step, estimate.count: estimate.centre}, Fraction(0))
    return Quotient(above, Linear(((estimate.count, Fraction(1)),)), (estimate.lower, estimate.upper))


def _scale_ratios(held: _Ratios | None, factor: Fraction) -> _Ratios | None:
    if held is None:
        return None
    ratios, rest = held
    return {below: _scale_ratio(one, factor) for below, one in ratios.items()}, _times(rest, factor)


def _scale_ratio(one: Quotient, factor: Fraction) -> Quotient:
    ends = None if one.within is None else sorted(factor * end for end in one.within)
    return Quotient(_times(one.above, factor), one.below, None if ends is None else (ends[0], ends[1]))


def _add_ratios(one: _Ratios | None, other: _Ratios | None) -> _Ratios | None:
    if one is None or other is None:
        return None
    ratios = dict(one[0])
    for below, ratio in other[0].items():
        ratios[below] = _add_ratio(ratios[below], ratio) if below in ratios else ratio
    return ratios, _plus(one[1], other[1])


def _add_ratio(one: Quotient, other: Quotient) -> Quotient:
    """The sum of two ratios of one divisor."""
    known = None if one.within is None or other.within is None else (one.within, other.within)
    within = None if known is None else (known[0][0] + known[1][0], known[0][1] + known[1][1])
    return Quotient(_plus(one.above, other.above), one.below, within)


def _forms_of(held: _Ratios) -> list[Linear]:
    return [held[1], *(form for one in held[0].values() for form in (one.above, one.below))]


# ---- smooth expressions --------------------------------------------------------------------------------------------


def is_smooth(node: Node, block: BlockPlan) -> bool:
    """Whether an expression is made of numbers and smooth estimates by arithmetic and roots alone."""
    match node:
        case Literal(value=bool()):
            return False
        case Literal(value=int() | Fraction()):
            return True
        case Estimated():
            return block.estimates[node.index].smooth
        case Call(function="/", arguments=(above, below)):
            divisor = affine_form(below, block)
            if divisor is not None and not divisor.terms:
                return bool(divisor.constant) and is_smooth(above, block)
            return is_smooth(above, block) and is_smooth(bare_divisor(below), block)
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL, arguments=(inner,)):
            return inner.type is not None and inner.type.numeric and is_smooth(inner, block)
        case Call(function="+" | "-" | "*" | "neg" | "sqrt"):
            return all(is_smooth(argument, block) for argument in node.arguments)
        case _:
            return False


def jet_of(node: Node, block: BlockPlan, box: Box, rows: int) -> Jet:
    """Return a smooth expression as a function of the measurements. Needs: is_smooth."""
    match node:
        case Literal(value=int() | Fraction() as value):
            return jets.constant(Fraction(value), rows)
        case Estimated():
            return block.estimates[node.index].jet(box, rows)
        case Call(function="cast", arguments=(inner,)):
            return jet_of(inner, block, box, rows)
        case Call(function="/", arguments=(above, below)):
            divisor = affine_form(below, block)
            if divisor is not None and not divisor.terms:
                return jets.times(jet_of(above, block, box, rows), jets.constant(1 / divisor.constant, rows))
            return jets.over(jet_of(above, block, box, rows), jet_of(bare_divisor(below), block, box, rows))
        case Call():
            return _COMPUTED[node.function](*(jet_of(argument, block, box, rows) for argument in node.arguments))
        case _:
            raise TypeError("an expression that is not smooth")


_COMPUTED: dict[str, Callable[..., Jet]] = {
    "+": jets.plus,
    "-": jets.minus,
    "*": jets.times,
    "neg": jets.negative,
    "sqrt": jets.root,
}


# ---- before data ---------------------------------------------------------------------------------------------------


def most_parts(block: BlockPlan, measurement: int) -> int:
    """Return how many parts an expression with this measurement has at most, among the columns with error bars."""
    items = (item.expression for item in block.items if item.released)
    return max((len(parts_of(node, block)) for node in items if measurement in measurements_of(block, node)), default=1)

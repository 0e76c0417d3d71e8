"""Which expressions are sums of measurements, or ratios of two such sums: those have an exact law of their own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from curador.plan.model import Linear
from curador.query.tree import Call, Estimated, Literal
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.plan.model import BlockPlan
    from curador.plan.ratio import Terms
    from curador.query.tree import Node


_LARGEST = 1 << 500
"""Beyond this, an expression's value and interval are computed in doubles, step by step, and may overflow to NULL."""


@dataclass(frozen=True, slots=True)
class Form:
    """constant + Σ coefficient · measurement, no coefficient 0, by place."""

    terms: Terms
    constant: Fraction

    def times(self, factor: Fraction) -> Form:
        """Return the form multiplied by a number."""
        return _form({index: factor * c for index, c in self.terms}, factor * self.constant)

    def plus(self, other: Form) -> Form:
        """Return the sum of two forms; the same measurement is the same noise."""
        found = dict(self.terms)
        for index, coefficient in other.terms:
            found[index] = found.get(index, Fraction(0)) + coefficient
        return _form(found, self.constant + other.constant)


@dataclass(frozen=True, slots=True)
class Quotient:
    """One form over another that has noise."""

    above: Form
    below: Form


def _form(terms: dict[int, Fraction], constant: Fraction) -> Form:
    return Form(tuple(sorted((index, c) for index, c in terms.items() if c)), constant)


def affine(node: Node, block: BlockPlan) -> Form | None:
    """Return the expression as a form; None where it is none, or one of numbers that doubles cannot hold."""
    found = _affine(node, block)
    return found if found is not None and _moderate(found) else None


def _moderate(form: Form) -> bool:
    numbers = [form.constant, *(c for _, c in form.terms)]
    return all(abs(one) < _LARGEST and one.denominator < _LARGEST for one in numbers)


def _affine(node: Node, block: BlockPlan) -> Form | None:
    match node:
        case Literal(value=bool()):
            return None
        case Literal(value=int() | Fraction() as value):
            return Form((), Fraction(value))
        case Estimated():
            estimate = block.estimates[node.index]
            return _form(_added(estimate.terms), estimate.constant) if isinstance(estimate, Linear) else None
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL):
            inner = node.arguments[0]
            return affine(inner, block) if inner.type is not None and inner.type.numeric else None
        case Call(function="+" | "-" | "*" | "/" | "neg"):
            return _computed(node.function, [affine(one, block) for one in node.arguments])
        case _:
            return None


def _added(terms: Terms) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for index, coefficient in terms:
        found[index] = found.get(index, Fraction(0)) + coefficient
    return found


def _computed(function: str, held: list[Form | None]) -> Form | None:
    match function, held:
        case "neg", [Form() as one]:
            return one.times(Fraction(-1))
        case "+", [Form() as one, Form() as other]:
            return one.plus(other)
        case "-", [Form() as one, Form() as other]:
            return one.plus(other.times(Fraction(-1)))
        case "*", [Form() as one, Form(terms=()) as other]:
            return one.times(other.constant)
        case "*", [Form(terms=()) as one, Form() as other]:
            return other.times(one.constant)
        case "/", [Form() as one, Form(terms=()) as other] if other.constant:
            return one.times(1 / other.constant)
        case _:
            return None


def quotient(node: Node, block: BlockPlan) -> Quotient | None:
    """Return the expression as a ratio of two forms, also one that is multiplied by a number or has one added."""
    found = _quotient(node, block)
    return found if found is not None and _moderate(found.above) and _moderate(found.below) else None


def _quotient(node: Node, block: BlockPlan) -> Quotient | None:
    match node:
        case Call(function="/"):
            above, below = affine(node.arguments[0], block), affine(_bare(node.arguments[1]), block)
            if above is not None and below is not None and below.terms:
                return Quotient(above, below)
            inner = quotient(node.arguments[0], block)
            if inner is not None and below is not None and not below.terms and below.constant:
                return Quotient(inner.above.times(1 / below.constant), inner.below)
            return None
        case Call(function="neg"):
            inner = quotient(node.arguments[0], block)
            return None if inner is None else Quotient(inner.above.times(Fraction(-1)), inner.below)
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL):
            return quotient(node.arguments[0], block)
        case Call(function="+" | "-" | "*"):
            return _shifted(node, block)
        case _:
            return None


def _shifted(node: Call, block: BlockPlan) -> Quotient | None:
    for place in (0, 1):
        inner, other = quotient(node.arguments[place], block), affine(node.arguments[1 - place], block)
        if inner is None or other is None or other.terms:
            continue
        if node.function == "*":
            return Quotient(inner.above.times(other.constant), inner.below)
        turned = inner.above.times(Fraction(-1)) if node.function == "-" and place == 1 else inner.above
        added = -other.constant if node.function == "-" and place == 0 else other.constant
        return Quotient(turned.plus(inner.below.times(added)), inner.below)
    return None


def _bare(divisor: Node) -> Node:
    """NULLIF(x, 0) divides as x does, whose quotient is NULL there anyway."""
    match divisor:
        case Call(function="nullif", arguments=(inner, Literal(value=0 | Fraction()) as zero)) if not zero.value:
            return inner
        case Call(function="cast", type=Type.FLOAT | Type.DECIMAL, arguments=(inner,)):
            return _bare(inner)
        case _:
            return divisor

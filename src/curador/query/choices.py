"""Choices: CASE, IF, COALESCE and NULLIF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from curador.query import typed_terms
from curador.query.context import Reading, take_arguments
from curador.query.typed_terms import TypedTerm, call_term, literal_term
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.query.tree import Place


def _case(node: exp.Case, reading: Reading) -> TypedTerm:
    this, ifs, default = take_arguments(node, reading.context, "this", "ifs", "default")
    subject = None if this is None else reading.of(this)
    conditions: list[TypedTerm] = []
    values: list[TypedTerm] = []
    for branch in ifs:
        condition, value = take_arguments(branch, reading.context, "this", "true")
        term = reading.of(condition)
        if subject is None:
            conditions.append(typed_terms.require_boolean(term, "what follows WHEN"))
        else:
            conditions.append(call_term("=", Type.BOOLEAN, typed_terms.align_types(subject, term, "CASE x WHEN y")))
        values.append(reading.of(value))
    values.append(literal_term(None, None) if default is None else reading.of(default))
    return _choose(conditions, values, reading.place(node))


def _if(node: exp.If, reading: Reading) -> TypedTerm:
    this, true, false = take_arguments(node, reading.context, "this", "true", "false")
    condition = typed_terms.require_boolean(reading.of(this), "the condition of IF")
    values = [reading.of(true), literal_term(None, None) if false is None else reading.of(false)]
    return _choose([condition], values, reading.place(node))


def _choose(conditions: list[TypedTerm], values: list[TypedTerm], place: Place | None) -> TypedTerm:
    type_, values = typed_terms.unify_types(values, "the values of CASE", place)
    arguments = [one for pair in zip(conditions, values, strict=False) for one in pair]
    return call_term("case", type_, [*arguments, values[-1]], nullable=any(value.nullable for value in values), place=place)


def _coalesce(node: exp.Coalesce, reading: Reading) -> TypedTerm:
    this, expressions = take_arguments(node, reading.context, "this", "expressions", ignored=("is_nvl", "is_null"))
    terms = [reading.of(one) for one in (this, *(expressions or ()))]
    type_, terms = typed_terms.unify_types(terms, "the values of COALESCE", reading.place(node))
    if len(terms) == 1:
        return terms[0]
    return call_term("coalesce", type_, terms, nullable=all(term.nullable for term in terms), place=reading.place(node))


def _nullif(node: exp.Nullif, reading: Reading) -> TypedTerm:
    this, expression = take_arguments(node, reading.context, "this", "expression")
    left, right = typed_terms.align_types(reading.of(this), reading.of(expression), "NULLIF")
    return call_term("nullif", left.type or Type.STRING, (left, right), nullable=True, place=reading.place(node))


CHOICE_HANDLERS: dict[type[exp.Expr], Callable[[Any, Reading], TypedTerm]] = {
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
}

"""The preview of a priced question: its expected errors, its keys' thresholds, how often it fits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.curator.preview import SIZES, ExpectedError, KeyThreshold, Preview, Previews
from curador.ledger.amounts import Amounts
from curador.plan.above import trace_column
from curador.plan.aggregates import Point
from curador.plan.ahead import is_sized, reach_ahead
from curador.plan.model import estimates_of
from curador.plan.notes import bounding_notes
from curador.study.values import Type
from curador.text import percent_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.curator.asking import PricedQuestion
    from curador.curator.finding import FindingQuestion
    from curador.curator.options import QuestionOptions
    from curador.curator.session import Session
    from curador.plan.above import AbovePlan
    from curador.plan.model import BlockPlan, ItemPlan
    from curador.plan.price import KeyNoise, Noise, Priced
    from curador.study.model import Schema

OFTEN = 0.95


def preview_of(
    question: PricedQuestion | FindingQuestion,
    *,
    explanation: str,
    schema: Schema,
    limit: Amounts,
    left: Amounts,
    stored: bool,
) -> Preview:
    """Return the preview of a question that is question."""
    return Preview(
        question=question.text,
        cost=question.cost,
        limit=limit,
        left=left,
        pure=question.priced[0].kind == "pure",
        errors=tuple(expected_errors(question.priced[0], question.confidence)),
        keys=tuple(_threshold(selection) for selection in question.priced[0].selections if selection is not None),
        notes=(*question.notes, *question.ahead, *bounding_notes(question.plan, schema), *question.left),
        explanation=explanation,
        fits=count_fits(question.cost, left),
        stored=stored,
        confidence=question.confidence,
        key=question.key,
        unit=schema.study.unit_name,
    )


CAPS_SHOWN = (1, 16, 256, 4_096)
"""Caps on rows for which errors are told before the survey is bought."""


def preview_by_cap(session: Session, text: str, options: QuestionOptions) -> Preview:
    """Return what a question would cost, and its errors for some caps, where the survey is still to be bought."""
    from curador.curator.asking import try_question_out
    from curador.curator.price import price_question
    from curador.curator.survey import SURVEY_SHARE, trial_session
    from curador.plan.words import explain

    unit, found = session.study.unit_name, list[Any]()
    for cap in CAPS_SHOWN:
        trial = trial_session(session, cap)
        found.append(price_question(trial, text, options))
        try_question_out(found[-1])
    first, schema = found[0], trial.schema
    shown = preview_of(
        first,
        explanation="\n".join(explain(one, schema) for one in first.priced),
        schema=schema,
        limit=session.limits.share(session.share),
        left=session.ledger.left(session.name, session.share),
        stored=False,
    )
    part = percent_text(SURVEY_SHARE, Fraction(1), up=True)
    whose = "the owner's own first question, or `curador survey`, buys it"
    notes = (
        f"how many rows per {unit} count is not known yet: the survey finds it privately, for {part} of the budget",
        f"{whose}; an error of a mean is that of 1,000 rows",
    )
    by_cap = tuple(
        (cap, tuple(expected_errors(question.priced[0], question.confidence)))
        for cap, question in zip(CAPS_SHOWN, found, strict=True)
    )
    return replace(shown, by_cap=by_cap, errors=(), notes=notes, explanation="")


def previews_of(questions: Sequence[Preview]) -> Previews:
    """Return several previews as one; a question that was answered before is free, and one that stands there twice once."""
    cost = Amounts()
    for question in {question.key: question for question in questions if not question.stored}.values():
        cost += question.cost
    return Previews(tuple(questions), cost, cost.within(questions[0].left))


def count_fits(cost: Amounts, left: Amounts) -> int:
    """Return how many times a cost fits into what is left."""
    names = [name for name in ("epsilon", "rho", "delta") if getattr(cost, name)]
    return min((int(getattr(left, name) // getattr(cost, name)) for name in names), default=0)


def expected_errors(priced: Priced, confidence: Fraction) -> list[ExpectedError]:
    """Return the ± of every released column of the first block, whose names the answer has."""
    if priced.plan.above is not None:
        return _errors_above(priced, priced.plan.above, confidence)
    block, noises = priced.plan.blocks[0], priced.noises[0]
    found = [_error(block, item, noises, confidence) for item in block.items if item.released]
    for other, own in zip(priced.plan.blocks[1:], priced.noises[1:], strict=True):
        items = [item for item in other.items if item.released]
        found = [_worse(one, _error(other, item, own, confidence)) for one, item in zip(found, items, strict=False)]
    return found


def _errors_above(priced: Priced, above: AbovePlan, confidence: Fraction) -> list[ExpectedError]:
    """The ± of every column that is made of released numbers: of a sum of measurements, and of a column as it was measured.

    A sum over groups has as many noises as there are groups, so all must be known.
    """
    from curador.answers.above import compute_above
    from curador.answers.bars import enclose_bar
    from curador.answers.forms import Form
    from curador.answers.table import sight_of
    from curador.curator.rehearsal import rehearse, tally_without_rows

    plan = priced.plan
    known = not any(block.private_keys for block in plan.blocks)
    released = rehearse(priced, [tally_without_rows(block) for block in plan.blocks])
    rows = compute_above(above, [sight_of(*one) for one in zip(plan.blocks, priced.noises, released, strict=True)])
    found: list[ExpectedError] = []
    for place, (out, kind, bar, noisy) in enumerate(zip(above.tree.columns, rows.kinds, rows.bars, rows.noisy, strict=True)):
        if not (noisy and kind.numeric):
            continue
        traced = trace_column(above.tree, place)
        if traced is not None:
            block = above.blocks.index(traced[0])
            item = replace(plan.blocks[block].items[traced[1]], name=out.name)
            found.append(_error(plan.blocks[block], item, priced.noises[block], confidence))
        elif known and isinstance(bar, Form) and not bar.chosen and (bar.pick >= 0).any():
            where = enclose_bar(bar, 1 - confidence)
            half = np.where(where.empty, 0.0, (where.high - where.low) / 2)
            found.append(ExpectedError(out.name, float(np.floor(half.max()) if kind is Type.INTEGER else half.max())))
        else:
            found.append(ExpectedError(out.name, None))
    return found


def _error(block: BlockPlan, item: ItemPlan, noises: Sequence[Noise], confidence: Fraction) -> ExpectedError:
    node = item.expression
    if any(isinstance(block.estimates[place], Point) for place in estimates_of(node)):
        return ExpectedError(item.name, None)
    if not is_sized(node, block):
        return ExpectedError(item.name, reach_ahead(block, node, noises, 0, confidence))
    sizes = [(rows, reach_ahead(block, node, noises, rows, confidence)) for rows in SIZES]
    known = tuple((rows, reach) for rows, reach in sizes if reach is not None)
    return ExpectedError(item.name, None, known if len(known) == len(SIZES) else ())


def _worse(one: ExpectedError, other: ExpectedError) -> ExpectedError:
    """The larger of two blocks' errors of the same column; unknown where one is."""
    if one.reach is not None and other.reach is not None:
        return one if one.reach >= other.reach else ExpectedError(one.column, other.reach)
    if one.at and other.at:
        return ExpectedError(one.column, None, tuple(max(pair) for pair in zip(one.at, other.at, strict=True)))
    return ExpectedError(one.column, None)


def _threshold(selection: KeyNoise) -> KeyThreshold:
    """The sizes are for display: the probabilities that decide them are rounded up."""
    start = max(int(selection.threshold), 1)
    return KeyThreshold(
        threshold=float(selection.threshold),
        half=_units(selection, 0.5, start),
        often=_units(selection, OFTEN, start),
        delta=selection.delta,
    )


def _units(selection: KeyNoise, probability: float, start: int) -> int:
    """The smallest number of units that is shown with the probability; it grows with the number."""
    low, high = 0, start
    while selection.pass_probability(high) < probability:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if selection.pass_probability(middle) >= probability else (middle, high)
    return high

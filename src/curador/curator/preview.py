"""What a question would cost and how good its answer would be: nothing is spent, nothing is read.

A count or a sum has one ± for every group. The error of a mean or a variance depends on how many rows its group has, so it is
told for three sizes. A quantile's is only known when it is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.ledger.amounts import Amounts, amounts_text
from curador.plan.above import trace_column
from curador.plan.aggregates import Point
from curador.plan.ahead import is_sized, reach_ahead
from curador.plan.model import estimates_of
from curador.plan.words import bounding_notes
from curador.study.values import Type, number_text
from curador.text import level_text, make_table, percent_text, plain_text, reach_text, rounded_text, verbatim

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

SIZES = (100, 1_000, 10_000)
"""Rows of a group for which the error of a mean is told."""

OFTEN = 0.95


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """A released column's ±: of every group (`reach`), or by the size of the group; neither where only data can tell."""

    column: str
    reach: float | None
    at: tuple[tuple[int, float], ...] = ()

    def sentence(self) -> str:
        """Return the error in words."""
        if self.reach is not None:
            return f"{self.column} {reach_text(self.reach)}"
        if self.at:
            rows, reach = self.at[1]
            return f"{self.column} {reach_text(reach)} in a group of {rows:,} rows"
        return f"{self.column} with an error that is known when it is drawn"


@dataclass(frozen=True, slots=True)
class KeyThreshold:
    """How many units a private key needs: the threshold, and to be shown half the time and 95 % of the time."""

    threshold: float
    half: int
    often: int
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Preview:
    """The price of a question and the errors to expect.

    cost    exact, as it would be charged
    limit   the asker's whole limit
    fits    how many times the question still fits into what is left
    stored  whether the identical question was answered before: it is free
    key     what makes two questions identical
    by_cap  where the survey that finds the caps was not bought yet: the errors for some caps on rows
    """

    question: str
    cost: Amounts
    limit: Amounts
    left: Amounts
    pure: bool
    errors: tuple[ExpectedError, ...]
    keys: tuple[KeyThreshold, ...]
    notes: tuple[str, ...]
    explanation: str
    fits: int
    stored: bool
    confidence: Fraction
    key: str
    unit: str = "person"
    by_cap: tuple[tuple[int, tuple[ExpectedError, ...]], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; exact amounts as strings."""
        return {
            "question": self.question,
            "cost": self.cost.record(),
            "limit": self.limit.record(),
            "left": self.left.record(),
            "confidence": number_text(self.confidence),
            "errors": [_plain_error(error) for error in self.errors],
            "keys": [
                {"threshold": key.threshold, "units_half": key.half, "units_95": key.often, "delta": str(key.delta)}
                for key in self.keys
            ],
            "notes": list(self.notes),
            "fits": self.fits,
            "stored": self.stored,
            "explain": self.explanation,
            **(
                {"by_cap": {str(cap): [_plain_error(one) for one in errors] for cap, errors in self.by_cap}}
                if self.by_cap
                else {}
            ),
        }

    def __rich__(self) -> Any:
        from rich.console import Group

        if self.by_cap:
            return Group(
                self._table_by_cap(), "", *(verbatim(line) for line in (*self._lines(), "", *self.explanation.splitlines()))
            )
        made = make_table("column", f"± {level_text(self.confidence)}", *(f"± at {rows:,} rows" for rows in SIZES))
        for error in self.errors:
            sizes = [reach_text(reach) for _, reach in error.at] or [""] * len(SIZES)
            every = reach_text(error.reach) if error.reach is not None else "" if error.at else "when drawn"
            made.add_row(verbatim(error.column), every, *sizes)
        lines = [*self._lines(), "", *self.explanation.splitlines()]
        return Group(*([made, ""] if self.errors else []), *(verbatim(line) for line in lines))

    def _table_by_cap(self) -> Any:
        """The errors for some caps: one of them, or one between, is what the survey will find."""
        made = make_table(
            "column", *(f"± if {cap:,} row{'' if cap == 1 else 's'} per {self.unit} count" for cap, _ in self.by_cap)
        )
        for place, error in enumerate(self.by_cap[0][1]):
            each = [errors[place] for _, errors in self.by_cap]
            made.add_row(verbatim(error.column), *(_short(one) for one in each))
        return made

    def _lines(self) -> list[str]:
        part = percent_text(_main(self.cost, self.pure), _main(self.limit, self.pure), up=True)
        times = "time" if self.fits == 1 else "times"
        free = "; it was answered before: the stored answer is free" if self.stored else ""
        return [
            f"cost {amounts_text(self.cost, pure=self.pure, up=True)}: {part} of the limit{free}",
            f"this question fits {self.fits:,} more {times}",
            *(line for key in self.keys for line in self._key_lines(key)),
            *self.notes,
        ]

    def _key_lines(self, one: KeyThreshold) -> tuple[str, str]:
        unit, delta = self.unit, rounded_text(one.delta, up=True)
        return (
            f"groups appear if their noisy number of {unit}s reaches {one.threshold:,.1f} (δ = {delta}):",
            f"a group of {one.half:,} {unit}s appears half the time, one of {one.often:,} in 95 % of all cases",
        )

    def __str__(self) -> str:
        return plain_text(self)


@dataclass(frozen=True, slots=True)
class Previews:
    """Several questions, and what they cost together."""

    questions: tuple[Preview, ...]
    cost: Amounts
    fits: bool

    def __iter__(self) -> Any:
        return iter(self.questions)

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, place: int) -> Preview:
        return self.questions[place]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "questions": [question.to_dict() for question in self.questions],
            "cost": self.cost.record(),
            "fits": self.fits,
        }

    def __rich__(self) -> Any:
        from rich.console import Group

        pure = self.questions[0].pure
        together = (
            f"together {amounts_text(self.cost, pure=pure, up=True)}, {'which fits' if self.fits else 'which does not fit'}"
        )
        parts = [part for question in self.questions for part in (verbatim(question.question), question, "")]
        return Group(*parts, together)

    def __str__(self) -> str:
        return plain_text(self)


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
        notes=(*question.notes, *bounding_notes(question.plan, schema), *question.left),
        explanation=explanation,
        fits=count_fits(question.cost, left),
        stored=stored,
        confidence=question.confidence,
        key=question.key,
        unit=schema.study.unit_name,
    )


def _plain_error(error: ExpectedError) -> dict[str, Any]:
    return {"column": error.column, "plus_minus": error.reach, "at_rows": {str(rows): reach for rows, reach in error.at}}


def _short(error: ExpectedError) -> str:
    if error.reach is not None:
        return reach_text(error.reach)
    return reach_text(error.at[1][1]) if error.at else "when drawn"


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


def _main(amounts: Amounts, pure: bool) -> Fraction:  # noqa: FBT001 -- one of two amounts
    return amounts.epsilon if pure else amounts.rho

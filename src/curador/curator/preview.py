"""What a question would cost and how good its answer would be, as it is shown: nothing is spent, nothing is read.

A count or a sum has one ± for every group. The error of a mean or a variance depends on how many rows its group has, so it is
told for three sizes. A quantile's is only known when it is drawn.

Light: `previewing.py` makes one of a priced question, and a client one of what a service wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from curador.ledger.amounts import Amounts, amounts_text
from curador.study.values import number_text
from curador.text import level_text, make_table, percent_text, plain_text, reach_text, rounded_text, verbatim

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZES = (100, 1_000, 10_000)
"""Rows of a group for which the error of a mean is told."""


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
            "kind": "pure" if self.pure else "concentrated",
            "unit": self.unit,
            "key": self.key,
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

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the preview that `to_dict` wrote."""
        by_cap: Mapping[str, Any] = plain.get("by_cap", {})
        return cls(
            question=plain["question"],
            cost=Amounts.from_record(plain["cost"]),
            limit=Amounts.from_record(plain["limit"]),
            left=Amounts.from_record(plain["left"]),
            pure=plain["kind"] == "pure",
            errors=tuple(_error_of_plain(error) for error in plain["errors"]),
            keys=tuple(
                KeyThreshold(key["threshold"], key["units_half"], key["units_95"], Fraction(key["delta"]))
                for key in plain["keys"]
            ),
            notes=tuple(plain["notes"]),
            explanation=plain["explain"],
            fits=plain["fits"],
            stored=plain["stored"],
            confidence=Fraction(plain["confidence"]),
            key=plain["key"],
            unit=plain["unit"],
            by_cap=tuple((int(cap), tuple(_error_of_plain(one) for one in errors)) for cap, errors in by_cap.items()),
        )

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

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the previews that `to_dict` wrote."""
        questions = tuple(Preview.from_dict(one) for one in plain["questions"])
        return cls(questions, Amounts.from_record(plain["cost"]), plain["fits"])

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


def _plain_error(error: ExpectedError) -> dict[str, Any]:
    return {"column": error.column, "plus_minus": error.reach, "at_rows": {str(rows): reach for rows, reach in error.at}}


def _error_of_plain(plain: Mapping[str, Any]) -> ExpectedError:
    at = tuple((int(rows), reach) for rows, reach in plain["at_rows"].items())
    return ExpectedError(plain["column"], plain["plus_minus"], at)


def _short(error: ExpectedError) -> str:
    if error.reach is not None:
        return reach_text(error.reach)
    return reach_text(error.at[1][1]) if error.at else "when drawn"


def _main(amounts: Amounts, pure: bool) -> Fraction:  # noqa: FBT001 -- one of two amounts
    return amounts.epsilon if pure else amounts.rho

"""The survey of columns: how small and how large their values are, and how many are missing, by doubling steps.

One row of each unit counts, the first of its random rank, so that one unit moves one number by 1 whatever its rows hold. What
is released are noisy numbers of units whose row has a value in each step. From them follow lines for the study file, with
what each would cost and gain: they are proposals to the owner, and nothing is taken over.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from curador.curator.spending import spend
from curador.curator.survey import (
    SURVEY_SHARE,
    SurveyPurchase,
    counted_question,
    grant_of,
    reference_spread,
)
from curador.errors import InvalidStudy, NotAllowed
from curador.ledger.amounts import amounts_text, down_to_tick
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.plan.build import build_plan
from curador.plan.counting import SELDOM, with_caps
from curador.plan.price import price
from curador.query.context import whole_table
from curador.query.tree import Aggregate, Block, Call, Item, Key, Literal, Question, Ref
from curador.study.model import Caps
from curador.study.values import Type, key_text, value_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from curador.curator.receipt import Receipt
    from curador.curator.session import Session
    from curador.curator.survey import StepCounts
    from curador.ledger.amounts import Amounts
    from curador.plan.counting import StepNoise
    from curador.query.tree import Expression
    from curador.study.model import Schema, TableSchema
    from curador.study.values import Value

COLUMNS = "SURVEY COLUMNS"
_POWERS = {Type.INTEGER: range(41), Type.DECIMAL: range(-7, 41), Type.FLOAT: range(-7, 41)}
_NEARLY = 1.25
_MISS = 0.025
_TRIALS = 1_000
_YEARS = (*range(1900, 1970, 10), *range(1970, 2041), *range(2050, 2101, 10))


class MeasuredColumn(NamedTuple):
    """A column that is measured, and the ends of its steps: up to the first, between two, beyond the last."""

    table: str
    column: str
    type: Type
    ends: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class ColumnProposal:
    """What follows from the numbers of a column.

    Shares are of the rows that were counted, one of each unit.

    bounds   between which nearly all values lie; None where no step is surely occupied
    outside  about which share of the values lies outside
    nulls    about which share of the rows has none
    gives    the ± of a sum at the reference spend, with these bounds; None for dates
    beyond   between which shares lie outside
    missing  between which shares have none; with the confidence both intervals hold, whatever was proposed
    """

    table: str
    column: str
    type: Type
    bounds: tuple[Value, Value] | None
    outside: float
    nulls: float
    gives: float | None
    beyond: tuple[float, float] = (0.0, 1.0)
    missing: tuple[float, float] = (0.0, 1.0)

    def line(self) -> str:
        """Return the line for the study file, with what it costs and gains."""
        nulls = f"NULL in {share_sentence(self.nulls, self.missing)}"
        if self.bounds is None:
            return f"# {self.column}: too few {self.type} values for a proposal; {nulls}"
        written = value_text({"type": str(self.type), "bounds": [_written(one) for one in self.bounds]})
        gains = "" if self.gives is None else f"; a SUM at 2 % of the budget would be ± {self.gives:,.3g}"
        lost = f"{share_sentence(self.outside, self.beyond)} of values outside, which would count as the nearer end"
        return f"{key_text(self.column)} = {written}  # {lost}; {nulls}{gains}{self._other_side()}"

    def _other_side(self) -> str:
        """Say what the other sign would cost, where no value of it was surely seen: few are hidden by noise."""
        low, high = (0, 0) if self.bounds is None or self.gives is None else self.bounds
        if (low == 0) == (high == 0):
            return ""
        side, end = ("below", _written(high)) if low == 0 else ("above", _written(-low))  # type: ignore[operator]  # numbers
        both = value_text([-end, end])  # type: ignore[operator]  # numbers
        return f"; should there be values {side} 0, bounds = {both} give a SUM the same noise"


@dataclass(frozen=True, slots=True)
class ColumnsReport:
    """What the survey of columns found: proposals for the study file."""

    cost: Amounts
    proposals: tuple[ColumnProposal, ...]
    pure: bool
    receipt: Receipt
    unit: str = "person"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the proposals as lines of a study file."""
        out = [
            f"survey of columns: cost {amounts_text(self.cost, pure=self.pure, up=True)}",
            "these lines are proposals: put those that fit what you know of the world into the study file",
            f"shares are of one row per {self.unit}, in brackets between what they lie, 95 % of the time",
        ]
        for table in dict.fromkeys(one.table for one in self.proposals):
            out.append(f"[tables.{key_text(table)}.columns]")
            out += [one.line() for one in self.proposals if one.table == table]
        return out


def buy_columns(session: Session) -> ColumnsReport:
    """Buy the survey of columns, and return what it proposes. Nothing is declared by it."""
    if session.analyst is not None:
        raise NotAllowed(
            "a survey is the owner's to buy.", hint="ask the owner to run `curador survey study.toml --columns`."
        )
    schema = session.engine.schema
    measured = measured_columns(schema)
    if not measured:
        raise InvalidStudy("a survey of columns must have a column of numbers or dates without bounds; there is none.")
    kind, amount = grant_of(session.limits, SURVEY_SHARE)
    one_row = with_caps(schema, {one.table.name: Caps(rows=1) for one in schema.tables})
    each = down_to_tick(amount / len(measured))
    priced = [price(build_plan(_question(one, schema), one_row), kind, each) for one in measured]
    bought = session.ledger.surveyed(session.study.name)
    text = f"{COLUMNS} {', '.join(f'{one.table}.{one.column}' for one in measured)}"
    question = counted_question(session, text, priced, after=None if bought is None else bought.id)
    found = spend(session, SurveyPurchase(question))
    proposals = tuple(
        propose(column, counts, *_rows_of(session, column.table))
        for column, counts in zip(measured, found.counts, strict=True)
    )
    return ColumnsReport(found.cost, proposals, session.limits.kind == "pure", found.receipt, session.study.unit_name)


def measured_columns(schema: Schema) -> list[MeasuredColumn]:
    """Return the columns of private tables that have no bounds, and could have some."""
    out: list[MeasuredColumn] = []
    for table in schema.tables:
        if table.table.public:
            continue
        for field in table.fields:
            declared = field.declared is not None and (field.declared.bounds is not None or field.declared.values is not None)
            unit = getattr(table.table.unit, "column", None) == field.name
            if not declared and not unit and (field.type in _POWERS or field.type in {Type.DATE, Type.TIMESTAMP}):
                out.append(MeasuredColumn(table.table.name, field.name, field.type, _ends(field.type)))
    return out


def _ends(kind: Type) -> tuple[Value, ...]:
    if kind is Type.DATE:
        return tuple(dt.date(year, 1, 1) for year in _YEARS)
    if kind is Type.TIMESTAMP:
        return tuple(dt.datetime(year, 1, 1) for year in _YEARS)  # noqa: DTZ001 -- columns have no zone
    powers = [Fraction(2) ** power for power in _POWERS[kind]]
    ends = [*(-one for one in reversed(powers)), Fraction(0), *powers]
    return tuple(int(one) for one in ends) if kind is Type.INTEGER else tuple(ends)


def _question(one: MeasuredColumn, schema: Schema) -> Question:
    """Count rows, one of each unit, by the step of a value: 0 for none, then one for each end, then one beyond the last."""
    table = schema.table(one.table)
    if table is None:
        raise AssertionError(one.table)
    scan, place = whole_table(table), _place(table, one.column)
    value = Ref(place, one.type)
    literal = Type.DECIMAL if one.type is Type.FLOAT else one.type
    arms: list[Expression] = [Call("is_null", (value,), Type.BOOLEAN), Literal(0, Type.INTEGER)]
    for step, end in enumerate(one.ends, 1):
        arms += [Call("<=", (value, Literal(end, literal)), Type.BOOLEAN), Literal(step, Type.INTEGER)]
    key = Call("case", (*arms, Literal(len(one.ends) + 1, Type.INTEGER)), Type.INTEGER)
    items = (Item("step", Key(0, Type.INTEGER)), Item("units", Aggregate("count", None, Type.INTEGER)))
    return Question(blocks=(Block(scan, (key,), items),), tables=(one.table,))


def _place(table: TableSchema, column: str) -> int:
    place = table.index(column)
    if place is None:
        raise AssertionError(column)
    return place


def _rows_of(session: Session, table: str) -> tuple[float, float, int]:
    """Return the deviation of a count at the reference spend, about how many rows a unit has, and the cap on rows."""
    schema, survey = session.schema, session.survey
    found = schema.table(table)
    cap = 1 if found is None or found.table.caps is None else found.table.caps.rows
    known = None if survey is None else survey.tables.get(table)
    if known is None:
        return reference_spread(session.limits), 1.0, cap
    units = [
        (count, min((low + high) / 2, cap))
        for count, low, high, there in zip(
            known.rows.counts, known.rows.lows, known.rows.highs, known.rows.occupied, strict=True
        )
        if there
    ]
    total = sum(count for count, _ in units)
    return reference_spread(session.limits), sum(count * rows for count, rows in units) / total if total else 1.0, cap


def propose(one: MeasuredColumn, counts: StepCounts, spread: float, rows: float, cap: int) -> ColumnProposal:
    """Return the bounds that follow from noisy numbers of units: a choice that any owner may make otherwise."""
    reach = counts.noise.half_width(1 - 2 * SELDOM)
    there = [number if number > reach else 0 for number in counts.numbers]
    nulls, values = there[0], _with_tails(there[1:], [number - reach / 4 for number in counts.numbers[1:]])
    total = sum(values)
    share = nulls / max(nulls + total, 1)
    missing = share_between(counts, [place == 0 for place in range(len(counts.numbers))], [True] * len(counts.numbers))
    if not total:
        return ColumnProposal(one.table, one.column, one.type, None, 0.0, share, None, missing=missing)
    occupied = [place for place, number in enumerate(values) if number]
    low, high = max(occupied[0] - 1, 0), min(occupied[-1], len(one.ends) - 1)
    if one.type in {Type.DATE, Type.TIMESTAMP}:
        gives = None
    else:
        ends = [float(end) for end in one.ends]  # type: ignore[arg-type]
        low, high = _best_bounds(ends, values, (low, high), (rows, cap * spread))
        if low == one.ends.index(0) and _surely_any(counts, range(len(ends) - 1 - high, low)):
            low = len(ends) - 1 - high  # noise is that of the farther end: the other one costs nothing
        gives = 1.96 * cap * max(abs(ends[low]), abs(ends[high])) * spread
    outside = [not low < place <= high for place in range(len(values))]
    lost = sum(number for place, number in enumerate(values) if outside[place]) / total
    beyond = share_between(counts, [False, *outside], [False] + [True] * len(values), choices=len(one.ends) ** 2)
    bounds = one.ends[low], one.ends[high]
    return ColumnProposal(one.table, one.column, one.type, bounds, lost, share, gives, beyond, missing)


def _best_bounds(
    ends: Sequence[float], values: Sequence[int], within: tuple[int, int], weights: tuple[float, float]
) -> tuple[int, int]:
    """Return the ends with which noise and loss of a sum are smallest together; 0 is between them, as it costs nothing.

    within    the places of the first and the last end that come into question
    weights   how many rows a unit stands for; the deviation of a sum for each unit of width
    """
    low, high = within
    rows, deviation = weights
    typical = [_typical(ends, place) for place in range(len(values))]

    def error(down: int, up: int) -> float:
        width = max(abs(ends[down]), abs(ends[up]))
        lost = sum(
            number * (max(typical[place] - ends[up], 0.0) + max(ends[down] - typical[place], 0.0))
            for place, number in enumerate(values)
        )
        return math.hypot(deviation * width, rows * lost)

    zero = ends.index(0)
    choices = [(error(down, up), down, up) for down in range(low, high) for up in range(down + 1, high + 1)]
    least, *best = min(choices, default=(0.0, low, max(high, low)))
    wider = best[0], min(best[1] + 1, high)
    if error(*wider) <= _NEARLY * least:  # means, and larger spends, have less noise than this sum
        best = [*wider]
    return min(best[0], zero), max(best[1], zero)  # noise is that of the farther end: 0 costs nothing


def _surely_any(counts: StepCounts, steps: Sequence[int]) -> bool:
    """Whether several steps together have more units than noise would give them once in ten thousand.

    steps   places of ends: what lies above the first of them and up to the last
    """
    chosen = [place in set(steps[1:]) for place in range(len(counts.numbers) - 1)]
    many = sum(number for number, one in zip(counts.numbers[1:], chosen, strict=True) if one)
    return any(chosen) and bool(many > _reach(counts.noise, np.array(chosen, np.float64), float(SELDOM)))


def share_between(
    counts: StepCounts, part: Sequence[bool], whole: Sequence[bool], *, choices: int = 1
) -> tuple[float, float]:
    """Return between what the share of units in some steps lies, among those in others that hold them.

    choices   of how many parts this is one that was chosen by the same numbers

    Claim   With a confidence of 97.5 % the share is in the interval, for all the choices at once; the column's two shares are
            so together 95 % of the time.
    Needs   Independent noise of the stated law was added to the number of each step.
    Rounds  Outwards, to 1/K.
    Source  For the share s the sum of n(1[part] − s) over the whole is 0, and falls in s. Let s be in [k/K, (k + 1)/K]: at
            k/K it is 0 or more, at (k + 1)/K 0 or less; a k that fails one of the two tests is not the share's. Each is a sum
            known before noise, as k is.
    """
    inside, all_of = np.array(part, np.float64), np.array(whole, np.float64)
    trials = np.linspace(0, 1, _TRIALS + 1)[:, None]
    weights = inside * all_of - trials * all_of
    sums = weights @ np.array(counts.numbers, np.float64)
    slack = 1e-9 * (1 + float(np.abs(np.array(counts.numbers, np.float64)).sum()))
    reach = _reach(counts.noise, weights, _MISS / (2 * choices)) + slack
    lows, highs = np.flatnonzero(sums[1:] - reach[1:] <= 0), np.flatnonzero(sums[:-1] + reach[:-1] >= 0)
    return (lows[0] / _TRIALS if len(lows) else 0.0), ((highs[-1] + 1) / _TRIALS if len(highs) else 1.0)


def _reach(noise: StepNoise, weights: NDArray[np.float64], chance: float) -> NDArray[np.float64]:
    """Return what sums of noises, each with a row of weights, exceed with a chance of at most `chance` each.

    Source  A discrete Gaussian is sub-Gaussian with its σ [CKS20]: σ‖w‖√(2 ln(1/p)). Of k terms of Laplace noise all lie
            within what each exceeds with chance p/k.
    """
    if isinstance(noise, DiscreteGaussian):
        return float(noise.sigma) * math.sqrt(2 * math.log(1 / chance)) * np.linalg.norm(weights, axis=-1)
    widest = math.ceil(noise.half_width(1 - Fraction(chance), together=weights.shape[-1]))
    return widest * np.abs(weights).sum(axis=-1)


def share_sentence(share: float, between: tuple[float, float]) -> str:
    """Return a share with the interval in which it lies: the interval, rounded outwards, holds what is told."""
    if between == (0.0, 1.0):
        return "a share that is not known"
    low, high = 100 * between[0], 100 * between[1]
    about = min(max(100 * share, low), high)
    return f"about {about:.2g} % ({math.floor(10 * low) / 10:g} – {math.ceil(10 * high) / 10:g} %)"


def _with_tails(values: list[int], numbers: Sequence[float]) -> list[int]:
    """Return numbers of units with what lies beyond the first and the last step that is surely occupied.

    numbers   noisy ones, less about a deviation of their noise

    There a quarter of the step before is believed, if the step's own number says so much: as a tail with a finite variance
    has it, which noise hides as long as units are few, and which sums consist of.
    """
    out = list(values)
    for order in (range(1, len(out)), range(len(out) - 2, -1, -1)):
        sure = [place for place in order if values[place - order.step]]
        for place in order[order.index(sure[-1]) :] if sure else ():
            out[place] = out[place] or min(out[place - order.step] // 4, max(int(numbers[place]), 0))
    return out


def _typical(ends: Sequence[float], place: int) -> float:
    """A value in the middle of a step."""
    if place == 0:
        return ends[0]
    if place == len(ends):
        return ends[-1]
    return (ends[place - 1] + ends[place]) / 2


def _written(value: Value) -> object:
    return value.isoformat() if isinstance(value, dt.date) else value


def proposed_bounds(report: ColumnsReport) -> Mapping[str, Mapping[str, tuple[Value, Value]]]:
    """Return the proposed bounds by table and column."""
    out: dict[str, dict[str, tuple[Value, Value]]] = {}
    for proposal in report.proposals:
        if proposal.bounds is not None:
            out.setdefault(proposal.table, {})[proposal.column] = proposal.bounds
    return out

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
from curador.plan.build import build_plan
from curador.plan.counting import SELDOM, with_caps
from curador.plan.price import price
from curador.query.context import whole_table
from curador.query.tree import Aggregate, Block, Call, Item, Key, Literal, Question, Ref
from curador.study.model import Caps
from curador.study.values import Type, key_text, value_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.curator.receipt import Receipt
    from curador.curator.session import Session
    from curador.curator.survey import StepCounts
    from curador.ledger.amounts import Amounts
    from curador.query.tree import Expression
    from curador.study.model import Schema, TableSchema
    from curador.study.values import Value

COLUMNS = "SURVEY COLUMNS"
_POWERS = {Type.INTEGER: range(41), Type.DECIMAL: range(-7, 41), Type.FLOAT: range(-7, 41)}
_NEARLY = 1.25
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

    bounds   between which nearly all values lie; None where no step is surely occupied
    outside  about which share of the values lies outside
    nulls    about which share of the rows has none
    gives    the ± of a sum at the reference spend, with these bounds; None for dates
    """

    table: str
    column: str
    type: Type
    bounds: tuple[Value, Value] | None
    outside: float
    nulls: float
    gives: float | None

    def line(self) -> str:
        """Return the line for the study file, with what it costs and gains."""
        if self.bounds is None:
            return f"# {self.column}: too few {self.type} values for a proposal; NULL in about {100 * self.nulls:.0f} %"
        written = value_text({"type": str(self.type), "bounds": [_written(one) for one in self.bounds]})
        gains = "" if self.gives is None else f"; a SUM at 2 % of the budget would be ± {self.gives:,.3g}"
        lost = f"about {100 * self.outside:.2g} % of values outside, which would count as the nearer end"
        return f"{key_text(self.column)} = {written}  # {lost}; NULL in about {100 * self.nulls:.0f} %{gains}"


@dataclass(frozen=True, slots=True)
class ColumnsReport:
    """What the survey of columns found: proposals for the study file."""

    cost: Amounts
    proposals: tuple[ColumnProposal, ...]
    pure: bool
    receipt: Receipt

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the proposals as lines of a study file."""
        out = [
            f"survey of columns: cost {amounts_text(self.cost, pure=self.pure, up=True)}",
            "these lines are proposals: put those that fit what you know of the world into the study file",
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
    return ColumnsReport(found.cost, proposals, session.limits.kind == "pure", found.receipt)


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
    if not total:
        return ColumnProposal(one.table, one.column, one.type, None, 0.0, share, None)
    occupied = [place for place, number in enumerate(values) if number]
    low, high = max(occupied[0] - 1, 0), min(occupied[-1], len(one.ends) - 1)
    if one.type in {Type.DATE, Type.TIMESTAMP}:
        outside = sum(number for place, number in enumerate(values) if not low < place <= high) / total
        return ColumnProposal(one.table, one.column, one.type, (one.ends[low], one.ends[high]), outside, share, None)
    ends = [float(end) for end in one.ends]  # type: ignore[arg-type]
    typical = [_typical(ends, place) for place in range(len(values))]

    def error(down: int, up: int) -> float:
        width = max(abs(ends[down]), abs(ends[up]))
        lost = sum(
            number * (max(typical[place] - ends[up], 0.0) + max(ends[down] - typical[place], 0.0))
            for place, number in enumerate(values)
        )
        return math.hypot(cap * width * spread, rows * lost)

    zero = one.ends.index(0)
    choices = [(error(down, up), down, up) for down in range(low, high) for up in range(down + 1, high + 1)]
    least, *best = min(choices, default=(0.0, low, max(high, low)))
    wider = best[0], min(best[1] + 1, high)
    if error(*wider) <= _NEARLY * least:  # means, and larger spends, have less noise than this sum
        best = [*wider]
    down, up = min(best[0], zero), max(best[1], zero)  # noise is that of the farther end: 0 costs nothing
    outside = sum(number for place, number in enumerate(values) if not down < place <= up) / total
    gives = 1.96 * cap * max(abs(ends[down]), abs(ends[up])) * spread
    return ColumnProposal(one.table, one.column, one.type, (one.ends[down], one.ends[up]), outside, share, gives)


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

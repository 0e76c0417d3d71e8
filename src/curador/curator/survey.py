"""The survey: caps that nobody declared, found privately, once for all questions.

One release over all private tables without declared caps counts units by how many rows they have, in doubling steps; and,
where keys may have to be selected privately, by how many different values of a column they have, and how many rows with the
same value. It costs about 1 % of the budget and is the owner's to buy: an analyst never does. From it follows one row cap
per table, the one that makes noise and loss together smallest for a reference spend, so that every question, spend and
accuracy speaks of the same rows.

What was found is a surveyed entry of the ledger, in force over data versions until the owner surveys again. Plans, prices and
refusals are functions of the question, the study and what was released before; never of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from curador.answers.identity import identity, question_key
from curador.answers.left_out import left_out, table_sentence
from curador.canonical import canonical_digest
from curador.curator.asking import PricedQuestion, try_question_out
from curador.curator.found import ColumnSurvey, TableSurvey, survey_record
from curador.curator.price import cost_of, parse_text, price_question
from curador.curator.receipt import answer_receipt
from curador.curator.spending import spend
from curador.curator.ticket import PLAIN
from curador.errors import BudgetExceeded, InvalidStudy, NotAllowed
from curador.ledger.amounts import amounts_text, down_to_tick
from curador.mechanisms.bracket import QuantileNoise
from curador.plan.aggregates import Ends
from curador.plan.counting import Counting, Steps, can_be_counted, choose_rows, counting_plan, with_caps
from curador.plan.price import price
from curador.query.context import whole_table
from curador.query.tree import Ref
from curador.study.model import Caps
from curador.study.values import Plain, Type
from curador.text import percent_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from curador.answers.release import ReleasedBlock
    from curador.curator.found import Survey
    from curador.curator.options import QuestionOptions
    from curador.curator.receipt import Receipt
    from curador.curator.session import Session
    from curador.curator.ticket import Ticket
    from curador.ledger.amounts import Amounts
    from curador.ledger.entry import Request, Spent
    from curador.ledger.limits import Limits
    from curador.plan.counting import StepNoise
    from curador.plan.price import GrantKind, Priced
    from curador.study.model import Schema, TableSchema

SURVEY_SHARE = Fraction(1, 100)
"""What a survey costs, of the whole budget."""

REFERENCE = Fraction(1, 50)
"""The spend for which caps are chosen, of the whole budget."""

ROWS_SHARE = Fraction(1, 2)
"""What the numbers of rows get of a table's part, where columns are measured as keys, too."""

MOST_COLUMNS = 8
"""Columns of one table that are measured as keys."""

SURVEY = "SURVEY"


# ---- what is counted -------------------------------------------------------------------------------------------------------


class Wanted(NamedTuple):
    """One vector of a survey: whose, of which column (None: of rows), and its part of what the survey costs."""

    table: str
    column: str | None
    counting: Counting
    part: Fraction


def wanted_counts(schema: Schema, *, pure: bool) -> list[Wanted]:
    """Return what a survey counts: rows of every table without declared caps, and its columns that may be private keys."""
    tables = [one for one in schema.tables if one.table.surveyed]
    out: list[Wanted] = []
    for table in tables:
        share, scan = Fraction(1, len(tables)), whole_table(table)
        columns = [] if pure else _key_columns(table, schema)
        own = share * ROWS_SHARE if columns else share
        out.append(Wanted(table.table.name, None, Counting("rows", scan), own))
        for place, name in columns:
            key, part = (Ref(place, table.fields[place].type),), (share - own) / (2 * len(columns))
            out += [Wanted(table.table.name, name, Counting(kind, scan, key), part) for kind in ("groups", "in_group")]
    return out


def _key_columns(one: TableSchema, schema: Schema) -> list[tuple[int, str]]:
    """Columns by which people group, whose values nobody listed; not those of which counting would take too long."""
    found: list[tuple[int, str]] = []
    for place, field in enumerate(one.fields):
        listed = field.declared is not None and (field.declared.values is not None or field.declared.bounds is not None)
        unit = getattr(one.table.unit, "column", None) == field.name
        if field.type in {Type.STRING, Type.INTEGER} and not listed and not unit:
            found.append((place, field.name))

    def countable(place: int) -> bool:
        key, tables = (Ref(place, one.fields[place].type),), (one.table.name,)
        kinds = [Counting("groups", whole_table(one), key), Counting("in_group", whole_table(one), key)]
        return all(can_be_counted(counting, schema, tables) for counting in kinds)

    return [(place, name) for place, name in found[:MOST_COLUMNS] if countable(place)]


def priced_counts(
    countings: Sequence[tuple[Counting, Fraction]], kind: GrantKind, tables: tuple[str, ...], schema: Schema
) -> list[tuple[Priced, tuple[int, ...]]]:
    """Return the plans that count, each with noise for its amount, and the tops of their steps."""
    out: list[tuple[Priced, tuple[int, ...]]] = []
    for counting, amount in countings:
        plan, tops = counting_plan(counting, schema, tables)
        out.append((price(plan, kind, down_to_tick(amount)), tops))
    return out


class StepCounts(NamedTuple):
    """Noisy numbers of units by step, in their order, and the noise of each."""

    numbers: tuple[int, ...]
    noise: StepNoise


def released_counts(priced: Priced, released: Sequence[ReleasedBlock]) -> StepCounts:
    """Return the numbers of one counted plan."""
    block, noise = released[0], priced.noises[0][0]
    values = block.values[0]
    if isinstance(noise, QuantileNoise) or isinstance(values, Ends):
        raise TypeError("units are counted with additive noise")
    numbers = dict(zip(block.keys[0], values.tolist(), strict=True))
    return StepCounts(tuple(int(numbers[place]) for place in range(len(numbers))), noise)


# ---- buying ----------------------------------------------------------------------------------------------------------------


class BoughtSurvey(NamedTuple):
    """What was measured, with its receipt."""

    counts: tuple[StepCounts, ...]
    receipt: Receipt
    cost: Amounts


@dataclass(frozen=True)
class SurveyPurchase:
    """A survey with its price, as something to spend on. It is bought once, whoever asks for it at the same time."""

    question: PricedQuestion
    what: str = "survey"
    once: bool = True

    @property
    def request(self) -> Request:
        """What the ledger is asked to charge."""
        return self.question.request

    @property
    def shape(self) -> Hashable | None:
        """It has no like."""
        return None

    @property
    def ticks(self) -> int:
        """By what is counted."""
        return self.question.ticks

    def try_engine(self) -> None:
        """Count tables without rows."""
        self.question.try_engine()

    def compute(self, *, rehearsal: bool) -> bytes:
        """Count, and draw the noise."""
        return self.question.compute(rehearsal=rehearsal)

    def restore(self, content: bytes) -> tuple[StepCounts, ...]:
        """Return the numbers."""
        released, _ = self.question.restore(content)
        return tuple(released_counts(*part) for part in zip(self.question.priced, released, strict=True))

    def digest(self, restored: tuple[StepCounts, ...]) -> str:
        """Return the digest of the numbers."""
        return canonical_digest({"version": 1, "counts": [one.numbers for one in restored]})

    def show(self, restored: tuple[StepCounts, ...], digest: str, spent: Spent) -> BoughtSurvey:
        """Return the numbers with the receipt."""
        session = self.question.session
        receipt = answer_receipt(session.study, session.limits, spent, self.question.terms, answer_digest=digest)
        return BoughtSurvey(restored, receipt, spent.cost)


@dataclass(frozen=True, slots=True)
class SurveyReport:
    """A survey that was bought: what it cost, the caps that follow, and what they leave out."""

    cost: Amounts
    tables: Mapping[str, TableSurvey]
    before: Mapping[str, int]
    unit: str
    pure: bool
    receipt: Receipt

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the survey in words."""
        unit = self.unit
        out = [f"survey: cost {amounts_text(self.cost, pure=self.pure, up=True)}"]
        for name, found in self.tables.items():
            had = self.before.get(name)
            changed = "" if had is None else f" (was {had:,})"
            out.append(f"table {name}: at most {found.cap:,} rows per {unit} are counted{changed}")
            out.append(f"  {table_sentence(left_out(found.rows, found.cap), unit, f'in {name}')}")
        return out


def price_survey(session: Session, before: Survey | None) -> tuple[SurveyPurchase, list[tuple[int, ...]]]:
    """Return the survey of a study with its price, and the tops of the steps of all that it counts; or refuse.

    before   the survey that it follows: whoever follows the same one buys the same, once
    """
    if session.analyst is not None:
        raise NotAllowed("a survey is the owner's to buy.", hint="ask the owner to run `curador survey study.toml`.")
    limits, schema = session.limits, session.engine.schema
    wanted = wanted_counts(schema, pure=limits.kind == "pure")
    if not wanted:
        unit = session.study.unit_name
        raise InvalidStudy(
            f"a survey must have something to find; every table has caps, or one row per {unit}.",
            hint="leave `caps` out of a table's declaration to have them found.",
        )
    kind, amount = grant_of(limits, SURVEY_SHARE)
    tables = tuple(dict.fromkeys(one.table for one in wanted))
    made = priced_counts([(one.counting, amount * one.part) for one in wanted], kind, tables, schema)
    text = f"{SURVEY} {bought_text(wanted)}"
    question = counted_question(session, text, [one for one, _ in made], after=None if before is None else before.id)
    return SurveyPurchase(question), [tops for _, tops in made]


def counted_question(session: Session, text: str, priced: Sequence[Priced], *, after: str | None) -> PricedQuestion:
    """Return counted plans as one question. after: the id of the survey before it, so that the next one is another."""
    identities = tuple(identity(one) for one in priced)
    key = question_key(identities, study_digest=session.study.digest, data_version=session.version, survey=after)
    compiled = session.engine.compile([block for one in priced for block in one.plan.blocks])
    cost = cost_of(tuple(priced)).most(session.least)
    confidence = Fraction(95, 100)
    return PricedQuestion(
        session, text, tuple(priced), identities, key, cost, confidence, session.version, compiled, by_engine=True
    )


def bought_text(wanted: Sequence[Wanted]) -> str:
    """Return what is counted, as the ledger's log shows it."""
    words = {"rows": "rows of {0}", "groups": "values of {0}.{1}", "in_group": "rows of one value of {0}.{1}"}
    return "; ".join(words[one.counting.kind].format(one.table, one.column) for one in wanted)


def grant_of(limits: Limits, share: Fraction) -> tuple[GrantKind, Fraction]:
    """Return a share of the whole budget as a grant."""
    amounts = limits.share(share)
    return ("pure", amounts.epsilon) if limits.kind == "pure" else ("concentrated", amounts.rho)


def buy_survey(session: Session, before: Survey | None, *, ticket: Ticket = PLAIN) -> SurveyReport:
    """Buy the survey of a study, let its caps hold from here on, and return what was found.

    before   the survey that was in force when it was decided to buy the next: who decided at the same time buys with others

    Claim   What holds afterwards is a function of what was released and of the study.
    """
    purchase, tops = price_survey(session, before)
    bought = spend(session, purchase, ticket=ticket)
    tables = found_tables(session, [Steps(top, *one) for top, one in zip(tops, bought.counts, strict=True)])
    commit = session.ledger.committed(purchase.request.question_key, session.version)
    had = {} if before is None else {name: one.cap for name, one in before.tables.items()}
    changed = {name: had[name] for name, one in tables.items() if name in had and had[name] != one.cap}
    session.ledger.survey(commit, survey_record(tables, study=session.study.name, before=changed))
    pure = session.limits.kind == "pure"
    return SurveyReport(bought.cost, tables, changed, session.study.unit_name, pure, bought.receipt)


def lacks_survey(session: Session, text: str, options: QuestionOptions) -> bool:
    """Whether a question is about a table for which nobody declared caps, and no survey found any yet."""
    if not any(one.table.surveyed for one in session.schema.tables):
        return False
    question = parse_text(session, text, options.dialect)
    tables = {one.table.name for one in session.schema.tables if one.table.surveyed}
    return any(name in tables for name in question.tables)


def needs_survey(session: Session, text: str, options: QuestionOptions) -> bool:
    """Whether the owner's own question must buy the survey first; what else is wrong with it is found before it is bought.

    An analyst's question is refused instead (`plan/ownership.py`), and never buys one.
    """
    if session.analyst is not None or not lacks_survey(session, text, options):
        return False
    tried = price_question(trial_session(session, 1), text, options)
    try_question_out(tried)
    _require_room(session, tried.cost)
    return True


def _require_room(session: Session, cost: Amounts) -> None:
    """Refuse a question for which nothing would be left after the survey, before the survey is bought.

    cost   at one row per unit: an accuracy costs no less with the cap that is found
    """
    purchase, _ = price_survey(session, session.survey)
    both, left = purchase.request.amounts + cost, session.ledger.left(None)
    if not both.within(left):
        pure = session.limits.kind == "pure"
        asked, room = amounts_text(both, pure=pure, up=True), amounts_text(left, pure=pure, up=False)
        part = percent_text(SURVEY_SHARE, Fraction(1), up=True)
        hint = f"the question needs caps that nobody declared, and the survey that finds them costs {part} of the budget."
        raise BudgetExceeded.must_be("question and survey", f"within what is left ({room})", Plain(asked), hint)


def trial_session(session: Session, rows: int) -> Session:
    """Return the session as it would be if the survey had found this cap for every table that needs one."""
    names = [one.table.name for one in session.engine.schema.tables if one.table.surveyed]
    return replace(session, trial=with_caps(session.engine.schema, dict.fromkeys(names, Caps(rows=rows))))


def found_tables(session: Session, steps: Sequence[Steps]) -> dict[str, TableSurvey]:
    """Return what follows from the steps of a survey: one cap on rows for each table."""
    wanted = wanted_counts(session.engine.schema, pure=session.limits.kind == "pure")
    rows: dict[str, Steps] = {}
    columns: dict[str, dict[tuple[str, str], Steps]] = {}
    for want, found in zip(wanted, steps, strict=True):
        if want.column is None:
            rows[want.table] = found
        else:
            columns.setdefault(want.table, {})[want.column, want.counting.kind] = found
    spread = reference_spread(session.limits)
    out: dict[str, TableSurvey] = {}
    for name, found in rows.items():
        own = columns.get(name, {})
        names = dict.fromkeys(column for column, _ in own)
        parts = {column: ColumnSurvey(own[column, "groups"], own[column, "in_group"]) for column in names}
        out[name] = TableSurvey(found, choose_rows(found, spread), parts)
    return out


def reference_spread(limits: Limits) -> float:
    """Return the deviation that a count has at the reference spend, if one unit adds 1."""
    kind, amount = grant_of(limits, REFERENCE)
    return math.sqrt(2) / float(amount) if kind == "pure" else 1 / math.sqrt(2 * float(amount))

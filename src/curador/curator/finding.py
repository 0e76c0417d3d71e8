"""Caps of a question's own: its rows are not those of the whole table, so a tenth of its spend counts their units first.

With WHERE or a join a table's cap can be a hundred times off. So the units of the question's own relation are counted by
steps (`plan/counting.py`) inside the same reservation, the caps follow from what is released, and the rest of the spend
measures with them. What was counted is remembered under the relation's identity: the next question about the same rows gets
it for nothing.

Claim   Everything after the first release is a function of it, of the question and of the study; each part is private for
        what it was granted, so both together are for the whole grant, whatever caps are chosen (adaptive composition).
Source  [RRUV16] pure, [WRRW23] concentrated: the amounts are fixed before anything is released.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from curador.answers.identity import plain, question_key
from curador.answers.left_out import filtered_sentence, left_out, table_sentence
from curador.canonical import canonical_digest
from curador.curator.receipt import answer_receipt, answer_terms
from curador.curator.survey import counted_question, priced_counts, reference_spread, released_steps
from curador.errors import Failed, Refused
from curador.ledger.entry import Request
from curador.plan.counting import (
    Counting,
    Steps,
    choose_groups,
    choose_in_group,
    choose_rows,
    reads_one_table,
)
from curador.plan.ownership import RequestedCaps, private_tables
from curador.plan.words import explain
from curador.privacy.losses import Concentrated, Pure
from curador.query.tree import Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from curador.curator.answer import Answer
    from curador.curator.asking import PricedQuestion, RestoredQuestion
    from curador.curator.found import ColumnSurvey, Survey
    from curador.curator.session import Session
    from curador.ledger.amounts import Amounts
    from curador.ledger.entry import Spent
    from curador.plan.model import BlockPlan, Plan
    from curador.plan.price import GrantKind
    from curador.query.tree import Expression, Question
    from curador.study.model import Schema

FIND_SHARE = Fraction(1, 10)
"""What counting the units of a question's own rows gets of its spend."""

FIND = "find"
"""The word for `caps` of an asker who wants them found before an accuracy is priced."""

_WHOLE = ("units", "distinct")


# ---- what must be known ----------------------------------------------------------------------------------------------------


class Need(NamedTuple):
    """What must be counted for a block, and what is known of it already."""

    counting: Counting
    steps: Steps | None


BlockNeeds = dict[str, Need]


def needs_of(session: Session, question: Question, plan: Plan) -> list[BlockNeeds]:
    """Return what caps of each block must be found from, by kind; nothing where they are declared or the table's own."""
    schema, survey = session.schema, session.survey
    if survey is None or not schema.found:
        return [{} for _ in plan.blocks]
    return [
        {one.kind: Need(one, _known_steps(session, one, planned, survey)) for one in _counted(planned, schema)}
        for planned in plan.blocks
    ]


def _counted(planned: BlockPlan, schema: Schema) -> list[Counting]:
    relation, own = planned.relation, planned.contribution
    if not any(table.name in schema.found for table in private_tables(relation, schema)):
        return []
    out: list[Counting] = []
    if planned.cap.by == "window":
        out.append(Counting("rows", relation))
    keys = tuple(key.expression for key in planned.keys)
    private = tuple(planned.keys[place].expression for place in planned.private_keys)
    many = own.keyed and own.groups > 1
    if many and private:
        out.append(Counting("groups", relation, private))
    if many and (private or planned.cap.by == "window") and any(tally.kind not in _WHOLE for tally in planned.tallies):
        out.append(Counting("in_group", relation, keys))
    distinct = _distinct_arguments(planned)
    if not own.keyed and own.rows > 1 and len(distinct) == 1:
        out.append(Counting("groups", relation, distinct))
    return out


def _distinct_arguments(planned: BlockPlan) -> tuple[Expression, ...]:
    found = [tally.argument for tally in planned.tallies if tally.kind == "distinct" and tally.filter is None]
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _known_steps(session: Session, counting: Counting, planned: BlockPlan, survey: Survey) -> Steps | None:
    """Return what was released of it: by the survey for a bare table, or by a question about the same rows."""
    if planned.cap.by == "rank" and counting.kind != "rows":
        column = _surveyed_column(counting, survey)
        if column is not None:
            return column.groups if counting.kind == "groups" else column.in_group
    held = session.ledger.counted(counting_key(session, counting))
    return None if held is None else Steps.from_record(held, session.study.adjacency)


def _surveyed_column(counting: Counting, survey: Survey) -> ColumnSurvey | None:
    """The survey's own numbers of a column, where it is the only key."""
    if len(counting.keys) != 1 or not isinstance(counting.keys[0], Ref):
        return None
    source = counting.relation.columns[counting.keys[0].index].source
    table = None if source is None else survey.tables.get(source[0])
    return None if source is None or table is None else table.columns.get(source[1])


def counting_key(session: Session, counting: Counting) -> str:
    """Return under what name the numbers of a relation are remembered."""
    return canonical_digest(
        {
            "version": 1,
            "counted": counting.kind,
            "relation": plain(counting.relation),
            "keys": [plain(key) for key in counting.keys],
            "study": session.study.digest,
            "data_version": session.version,
        }
    )


# ---- what follows ----------------------------------------------------------------------------------------------------------


def caps_found(session: Session, planned: BlockPlan, found: Mapping[str, Steps]) -> RequestedCaps:
    """Return the caps that follow from what was released: a function of it, the plan and the study."""
    spread = reference_spread(session.limits)
    rows = choose_rows(found["rows"], spread) if "rows" in found else None
    most = planned.contribution.rows if rows is None else rows
    groups: int | None = None
    if "groups" in found:
        groups = choose_groups(found["groups"]) if planned.contribution.keyed else choose_rows(found["groups"], spread)
        groups = min(groups, most)
    in_group: int | None = None
    if "in_group" in found:
        known = planned.contribution.groups
        touched = known if groups is None else groups
        in_group = choose_in_group(found["in_group"], most, touched, spread, parts=touched)
    return RequestedCaps(rows, groups, in_group)


def plain_caps(session: Session, plan: Plan, needs: Sequence[BlockNeeds]) -> tuple[RequestedCaps, ...] | None:
    """Return the caps of every block where all that they follow from is known; None where nothing must be found."""
    if not any(needs):
        return None
    return tuple(
        caps_found(session, planned, {kind: need.steps for kind, need in own.items() if need.steps is not None})
        for planned, own in zip(plan.blocks, needs, strict=True)
    )


def missing_counts(needs: Sequence[BlockNeeds]) -> list[Counting]:
    """Return what was not counted yet, each once."""
    return list(dict.fromkeys(need.counting for own in needs for need in own.values() if need.steps is None))


# ---- the question ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FindingQuestion:
    """A question that counts its own units first, as something to spend on.

    counts     what is counted first, as a question
    wanted     what each of its plans counts, with the tops of the steps
    main       the question at the caps of its tables: what a preview shows
    make       the question at other caps
    needs      what the caps of each block follow from
    promised   the most that the main part may cost
    """

    counts: PricedQuestion
    wanted: tuple[tuple[Counting, tuple[int, ...]], ...]
    main: PricedQuestion
    make: Callable[[tuple[RequestedCaps, ...]], PricedQuestion]
    needs: tuple[BlockNeeds, ...]
    kind: GrantKind
    promised: tuple[Fraction, Fraction]
    key: str
    cost: Amounts
    notes: tuple[str, ...] = ()
    enough: bool = True
    by_engine: bool = True
    what: str = "question"
    once: bool = False
    shape: Hashable | None = None

    # what a preview asks of a question

    @property
    def session(self) -> Session:
        """Who asks."""
        return self.main.session

    @property
    def text(self) -> str:
        """The statement."""
        return self.main.text

    @property
    def priced(self) -> Any:
        """The plans at the caps of the tables."""
        return self.main.priced

    @property
    def plan(self) -> Plan:
        """The question's plan at the caps of the tables."""
        return self.main.plan

    @property
    def confidence(self) -> Fraction:
        """Of the intervals."""
        return self.main.confidence

    @property
    def version(self) -> int:
        """The data version that it is about."""
        return self.main.version

    # what the door asks of a purchase

    @cached_property
    def request(self) -> Request:
        """What the ledger is asked to charge: of the main part a promise, as its noise follows from what is counted first."""
        amount, delta = self.promised
        study = self.session.study
        if self.kind == "pure":
            promise = Pure(epsilon=amount, adjacency=study.adjacency)
        else:
            promise = Concentrated(rho=amount, delta=delta, adjacency=study.adjacency)
        own = self.main.request
        return replace(
            own, amounts=self.cost, losses=(*self.counts.losses, promise.to_record()), question_key=self.key
        )

    def try_engine(self) -> None:
        """Count tables without rows, and try the main part at the caps of the tables."""
        self.counts.try_engine()
        self.main.try_engine()

    def compute(self, *, rehearsal: bool) -> bytes:
        """Count, choose caps from what was released, and measure with them.

        Claim   The second part costs at most what was promised for it; else nothing is released.
        """
        counts = replace(self.counts, by_engine=self.by_engine)
        first = counts.compute(rehearsal=rehearsal)
        second = replace(self._resolve(first), by_engine=self.by_engine)
        if not _within(second, self.promised):
            raise Failed("what a question measures must cost what was reserved for it")
        return join_parts(first, second.compute(rehearsal=rehearsal))

    def restore(self, content: bytes) -> tuple[bytes, PricedQuestion, RestoredQuestion]:
        """Return what was counted, the question at the caps that followed, and what it gave."""
        first, second = split_parts(content)
        question = self._resolve(first)
        return first, question, question.restore(second)

    def digest(self, restored: tuple[bytes, PricedQuestion, RestoredQuestion]) -> str:
        """Return the digest of the table that is shown."""
        _, question, held = restored
        return question.digest(held)

    def show(self, restored: tuple[bytes, PricedQuestion, RestoredQuestion], digest: str, spent: Spent) -> Answer:
        """Return the answer at the caps that were found, with the receipt of both parts."""
        _, question, held = restored
        both = replace(question, priced=question.priced, notes=(*self.notes, *question.notes))
        answer = both.show(held, digest, spent)
        session = self.session
        priced = (*question.priced, *self.counts.priced)
        text = "\n".join(explain(one, session.schema) for one in priced)
        terms = answer_terms(session.study, priced, question=self.text, plan_digest=question.plan_digest, plan_text=text)
        receipt = answer_receipt(session.study, session.limits, spent, {**terms, **question.surveyed}, answer_digest=digest)
        return replace(answer, receipt=receipt)

    def found(self, content: bytes) -> dict[str, Any]:
        """Return what was counted, under the names by which the next question finds it."""
        steps = self._steps(split_parts(content)[0])
        return {counting_key(self.session, counting): one.record() for (counting, _), one in zip(self.wanted, steps, strict=True)}

    def _steps(self, first: bytes) -> list[Steps]:
        released, _ = self.counts.restore(first)
        return [
            released_steps(priced, tops, own)
            for priced, (_, tops), own in zip(self.counts.priced, self.wanted, released, strict=True)
        ]

    def _resolve(self, first: bytes) -> PricedQuestion:
        counted = {counting: steps for (counting, _), steps in zip(self.wanted, self._steps(first), strict=True)}
        known = [
            {kind: need.steps or counted[need.counting] for kind, need in own.items()} for own in self.needs
        ]
        caps = tuple(
            caps_found(self.session, planned, own) for planned, own in zip(self.main.plan.blocks, known, strict=True)
        )
        return self.make(caps)


def _within(question: PricedQuestion, promised: tuple[Fraction, Fraction]) -> bool:
    costs = [one.cost for one in question.priced]
    return all(sum((cost[place] for cost in costs), Fraction(0)) <= promised[place] for place in (0, 1))


_MARK = b"curador found 1\n"


def join_parts(first: bytes, second: bytes) -> bytes:
    """Return two stored parts as one: a mark, the length of the first, both."""
    return _MARK + len(first).to_bytes(8, "big") + first + second


def split_parts(content: bytes) -> tuple[bytes, bytes]:
    """Return the parts that `join_parts` put together."""
    start = len(_MARK) + 8
    if not content.startswith(_MARK):
        raise Failed("a stored answer is of an unknown version")
    length = int.from_bytes(content[len(_MARK) : start], "big")
    return content[start : start + length], content[start + length :]


# ---- in words --------------------------------------------------------------------------------------------------------------


def left_out_lines(session: Session, plan: Plan, found: Sequence[Mapping[str, Steps]]) -> tuple[str, ...]:
    """Return what is known of the rows that caps left out, where they were found privately.

    found   for each block, what was counted of its own relation, by kind

    What was measured of a whole table is said of that table only; of a join nothing is known but by its own numbers.
    """
    schema, survey = session.schema, session.survey
    if survey is None or not schema.found:
        return ()
    unit, lines = session.study.unit_name, list[str]()
    for block, own in zip(plan.blocks, found, strict=True):
        names = list(dict.fromkeys(table.name for table in private_tables(block.relation, schema)))
        if block.cap.by == "none" or not any(name in schema.found for name in names):
            continue
        if "rows" in own:
            lines.append(table_sentence(left_out(own["rows"], block.cap.rows), unit, "among these rows"))
        elif not reads_one_table(block.relation) or names[0] not in survey.tables:
            lines.append("how many rows are missing is not known for this join; caps=\"find\" counts them first")
        else:
            known = left_out(survey.tables[names[0]].rows, block.cap.rows)
            whole = block.cap.by == "rank"
            lines.append(
                table_sentence(known, unit, f"in {names[0]}") if whole else filtered_sentence(known, unit, names[0])
            )
        for name in names:
            if name in survey.before and name in schema.found:
                now = survey.tables[name].cap
                changed = f"the survey of {survey.time[:10]} changed the cap on {name} from {survey.before[name]:,} to {now:,}"
                lines.append(f"{changed} rows per {unit}: answers before it are of other rows")
    return tuple(dict.fromkeys(lines))

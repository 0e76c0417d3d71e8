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
import zlib
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from curador.answers.identity import identity, plain, question_key
from curador.answers.left_out import capped_sentence, filtered_sentence, left_out, table_sentence
from curador.canonical import canonical_digest, canonical_text
from curador.curator.price import cost_of, is_enough, plan_question, price_question, priced_plan, put_together
from curador.curator.receipt import answer_receipt
from curador.curator.spending import spend
from curador.curator.survey import SurveyPurchase, counted_question, priced_counts, reference_spread, released_counts
from curador.curator.ticket import PLAIN
from curador.errors import Failed
from curador.ledger.amounts import NOTHING, Amounts, amounts_text, down_to_tick
from curador.numerics.exact import rational
from curador.plan.cost_class import cost_class
from curador.plan.counting import (
    Counting,
    Steps,
    can_be_counted,
    choose_groups,
    choose_in_group,
    choose_rows,
    reads_one_table,
)
from curador.plan.ownership import RequestedCaps, private_tables
from curador.plan.price import price
from curador.privacy.losses import Concentrated, Pure
from curador.query.tree import Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from curador.curator.answer import Answer
    from curador.curator.asking import PricedQuestion, RestoredQuestion
    from curador.curator.found import ColumnSurvey, Survey
    from curador.curator.options import QuestionOptions
    from curador.curator.session import Session
    from curador.curator.ticket import Ticket
    from curador.ledger.entry import Request, Spent
    from curador.plan.model import BlockPlan, Plan
    from curador.plan.price import GrantKind, Priced
    from curador.privacy.adjacency import Adjacency
    from curador.privacy.loss import Loss
    from curador.study.model import Schema

FIND_SHARE = Fraction(1, 10)
"""What counting the units of a question's own rows gets of its spend."""

TENTH = (
    "a tenth of the spend counts units of these very rows first: the cap follows from that, the ± shown is for the table's"
)

COUNT_FIRST = 'caps="find" (in a shell: --caps find)'
"""How an asker says that units of a question's own rows are to be counted before it is priced."""

COUNT = "COUNT UNITS OF"
"""Before the text of a question whose rows were counted first, in the ledger's log."""

_PRESENCE = ("units", "distinct")


# ---- what must be known ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Need:
    """What a cap follows from: what is counted, under which name it is remembered, and what is known of it.

    name   None: the survey has counted it
    """

    counting: Counting
    name: str | None
    steps: Steps | None


BlockNeeds: TypeAlias = "dict[str, Need]"
"""What the caps of a block follow from, by kind."""


def needs_of(session: Session, plan: Plan) -> list[BlockNeeds]:
    """Return what the caps of each block follow from; nothing where they are declared, or those of a whole table.

    What could not be counted within the work that one unit may cause is not needed either: the tables' caps hold.
    """
    schema, survey = session.schema, session.survey
    if survey is None or not schema.found:
        return [{} for _ in plan.blocks]
    return [
        {
            counting.kind: need
            for counting in _counted(block, schema)
            if (need := _need(session, counting, block, survey)).steps is not None
            or can_be_counted(counting, schema, plan.tables)
        }
        for block in plan.blocks
    ]


def _counted(planned: BlockPlan, schema: Schema) -> list[Counting]:
    relation, own = planned.relation, planned.contribution
    if not any(table.name in schema.found for table in private_tables(relation, schema)):
        return []
    filtered = planned.cap.by == "window"
    out = [Counting("rows", relation)] if filtered else []
    private = tuple(planned.keys[place].expression for place in planned.private_keys)
    if own.keyed and own.groups > 1:
        out += [Counting("groups", relation, private)] if private else []
        if (private or filtered) and any(tally.kind not in _PRESENCE for tally in planned.tallies):
            out.append(Counting("in_group", relation, tuple(key.expression for key in planned.keys)))
    distinct = dict.fromkeys(tally.argument for tally in planned.tallies if tally.kind == "distinct")
    if not own.keyed and own.rows > 1 and len(distinct) == 1:
        out.append(Counting("groups", relation, tuple(one for one in distinct if one is not None)))
    return out


def _need(session: Session, counting: Counting, planned: BlockPlan, survey: Survey) -> Need:
    column = _surveyed_column(counting, survey) if planned.cap.by == "rank" and counting.kind != "rows" else None
    if column is not None:
        return Need(counting, None, column.groups if counting.kind == "groups" else column.in_group)
    name = counting_name(session, counting)
    held = session.ledger.counted(name)
    return Need(counting, name, None if held is None else Steps.from_record(held, session.study.adjacency))


def _surveyed_column(counting: Counting, survey: Survey) -> ColumnSurvey | None:
    """The survey's own numbers of a column, where it is the only key."""
    if len(counting.keys) != 1 or not isinstance(counting.keys[0], Ref):
        return None
    source = counting.relation.columns[counting.keys[0].index].source
    table = None if source is None else survey.tables.get(source[0])
    return None if source is None or table is None else table.columns.get(source[1])


def counting_name(session: Session, counting: Counting) -> str:
    """Return under what name the numbers of a relation are remembered."""
    return canonical_digest(
        {
            "version": 1,
            "counted": counting.kind,
            "relation": plain(counting.relation),
            "keys": sorted(canonical_text(plain(key)) for key in counting.keys),
            "study": session.study.digest,
            "data_version": session.version,
        }
    )


# ---- what follows ----------------------------------------------------------------------------------------------------------


def caps_found(session: Session, planned: BlockPlan, found: Mapping[str, Steps]) -> RequestedCaps:
    """Return the caps that follow from what was released: a function of it, the plan and the study."""
    spread = reference_spread(session.limits)
    rows = choose_rows(found["rows"], spread, whole=planned.contribution.rows) if "rows" in found else None
    most = planned.contribution.rows if rows is None else rows
    groups = touched = None
    if "groups" in found:
        groups = choose_groups(found["groups"]) if planned.contribution.keyed else choose_rows(found["groups"], spread)
        groups = min(groups, most)
    in_group = None
    if "in_group" in found:
        touched = min(planned.contribution.groups if groups is None else groups, most)
        if touched > 1:  # in one group the cap on rows says it, from better numbers
            in_group = choose_in_group(found["in_group"], most, touched, spread, parts=touched)
    return RequestedCaps(rows, groups, in_group)


def caps_known(session: Session, plan: Plan, needs: Sequence[BlockNeeds]) -> tuple[RequestedCaps, ...] | None:
    """Return the caps of every block, from what is known; None where all are those of the tables."""
    known = [{kind: need.steps for kind, need in own.items() if need.steps is not None} for own in needs]
    if not any(known):
        return None
    return tuple(caps_found(session, planned, own) for planned, own in zip(plan.blocks, known, strict=True))


# ---- the question ----------------------------------------------------------------------------------------------------------


RestoredFinding: TypeAlias = "tuple[PricedQuestion, RestoredQuestion, tuple[Priced, ...]]"
"""The question at the caps that were found, what was released for it, and the plans that were counted for it."""


@dataclass(frozen=True)
class FindingQuestion:
    """A question that counts units of its own rows first, as something to spend on.

    counts     what is counted first, as a question; None where all of it is known, and the answer stored
    missing    what each of its plans counts, under which name, with the tops of the steps
    main       the question at the caps of its tables: what a preview shows
    make       the question at other caps, with noise for what is left of the spend
    count      the plans that count what has these names, for a tenth of the spend, with the tops of their steps
    needs      what the caps of each block follow from
    promised   the most that the main part may cost: ε, or ρ, and δ
    """

    counts: PricedQuestion | None
    missing: tuple[tuple[str, tuple[int, ...]], ...]
    main: PricedQuestion
    make: Callable[[tuple[RequestedCaps, ...], Sequence[BlockNeeds]], PricedQuestion]
    count: Callable[[Sequence[str]], list[tuple[Priced, tuple[int, ...]]]]
    needs: tuple[BlockNeeds, ...]
    promise: Loss
    promised: tuple[Fraction, Fraction]
    key: str
    cost: Amounts
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
    def priced(self) -> tuple[Priced, ...]:
        """The plans at the caps of the tables."""
        return self.main.priced

    @property
    def plan(self) -> Plan:
        """The question's plan at the caps of the tables."""
        return self.main.plan

    @property
    def notes(self) -> tuple[str, ...]:
        """What the asker must know about the price."""
        return (*self.main.notes, TENTH)

    @property
    def ahead(self) -> tuple[str, ...]:
        """What else could be chosen: nothing, as the caps follow from its own rows."""
        return ()

    @property
    def left(self) -> tuple[str, ...]:
        """What is known of rows that caps leave out, before they are found."""
        return ()

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
        counted = () if self.counts is None else self.counts.losses
        losses = (*counted, self.promise.to_record())
        return replace(self.main.request, amounts=self.cost, losses=losses, question_key=self.key)

    @property
    def ticks(self) -> int:
        """By what is counted first and what is measured then, at the caps of the tables."""
        counted = () if self.counts is None else self.counts.priced
        blocks = [block for one in (*counted, *self.main.priced) for block in one.plan.blocks]
        return cost_class(blocks, self.session.schema, self.session.study.engine)

    def try_engine(self) -> None:
        """Count tables without rows, and try the main part at the caps of the tables."""
        if self.counts is not None:
            self.counts.try_engine()
        self.main.try_engine()

    def compute(self, *, rehearsal: bool) -> bytes:
        """Count, choose caps from what was released, and measure with them.

        Claim   The second part costs at most what was promised for it; else nothing is released.
        """
        known = {need.name: need.steps for own in self.needs for need in own.values() if need.name and need.steps}
        if self.counts is not None:
            counts = replace(self.counts, by_engine=self.by_engine)
            released, _ = counts.restore(counts.compute(rehearsal=rehearsal))
            parts = zip(counts.priced, self.missing, released, strict=True)
            known |= {name: Steps(tops, *released_counts(priced, own)) for priced, (name, tops), own in parts}
        bought = [name for name, _ in self.missing]
        caps = caps_known(self.session, self.main.plan, self._known_needs(known))
        written = None if caps is None else [[one.rows, one.groups, one.rows_per_group] for one in caps]
        steps = {name: one.record() for name, one in known.items()}
        # the caps themselves are kept: how they are chosen may change, what was measured with them does not
        held = {"bought": bought, "steps": steps, "caps": written}
        first = zlib.compress(canonical_text(held).encode("ascii"), 6)
        question = replace(self._resolve(known, caps), by_engine=self.by_engine)
        if not _within(question, self.promised):
            raise Failed("what a question measures must cost what was reserved for it")
        return join_parts(first, question.compute(rehearsal=rehearsal))

    def restore(self, content: bytes) -> RestoredFinding:
        """Return the question at the caps that followed from what was counted, and what it gave."""
        bought, steps, caps = self._read(content)
        question = self._resolve(steps, caps)
        counted = tuple(priced for priced, _ in self.count(bought))
        return question, question.restore(split_parts(content)[1]), counted

    def digest(self, restored: RestoredFinding) -> str:
        """Return the digest of the table that is shown."""
        question, held, _ = restored
        return question.digest(held)

    def show(self, restored: RestoredFinding, digest: str, spent: Spent) -> Answer:
        """Return the answer at the caps that were found, with a receipt of both parts."""
        question, held, counted = restored
        both = replace(question, priced=(*question.priced, *counted))
        answer = question.show(held, digest, spent)
        terms = {**both.terms, "plan": {**both.terms["plan"], "digest": question.plan_digest}}
        session = self.session
        return replace(answer, held_receipt=answer_receipt(session.study, session.limits, spent, terms, answer_digest=digest))

    def found(self, content: bytes) -> dict[str, Any]:
        """Return what was counted, under the names by which the next question finds it."""
        return {name: steps.record() for name, steps in self._read(content)[1].items()}

    def _read(self, content: bytes) -> tuple[list[str], dict[str, Steps], tuple[RequestedCaps, ...] | None]:
        held = json.loads(zlib.decompress(split_parts(content)[0]))
        adjacency = self.session.study.adjacency
        steps = {name: Steps.from_record(one, adjacency) for name, one in held["steps"].items()}
        caps = None if held["caps"] is None else tuple(RequestedCaps(*one) for one in held["caps"])
        return held["bought"], steps, caps

    def _known_needs(self, known: Mapping[str, Steps]) -> list[BlockNeeds]:
        return [
            {kind: replace(need, steps=known[need.name] if need.name else need.steps) for kind, need in own.items()}
            for own in self.needs
        ]

    def _resolve(self, known: Mapping[str, Steps], caps: tuple[RequestedCaps, ...] | None) -> PricedQuestion:
        return self.main if caps is None else self.make(caps, self._known_needs(known))


def price_finding(
    session: Session,
    plan: Plan,
    options: QuestionOptions,
    needs: Sequence[BlockNeeds],
    text: str,
    confidence: Fraction,
) -> FindingQuestion:
    """Return the question with a tenth of its spend for what must be counted first, or refuse.

    Its key does not depend on what is known already, so that the identical question finds its answer later as well.
    """
    limits, share = session.limits, session.share
    whole = priced_plan(plan, options, limits, share)
    own = {need.name: need for one in needs for need in one.values() if need.name is not None}
    missing = [name for name, need in own.items() if need.steps is None]
    amount = down_to_tick(whole.amount * (1 - FIND_SHARE))  # also where its answer is stored, and all is known since
    weights = {name: rational(value, "weights") for name, value in (options.weights or {}).items()}

    def make(caps: tuple[RequestedCaps, ...] | None, held: Sequence[BlockNeeds]) -> PricedQuestion:
        tree, planned, compiled = plan_question(session, text, options, caps=caps)
        main = price(planned, whole.kind, amount, whole.delta, weights)
        return put_together(session, tree, main, compiled, options, held, text, confidence)

    def count(names: Sequence[str]) -> list[tuple[Priced, tuple[int, ...]]]:
        each = whole.amount * FIND_SHARE / max(len(names), 1)
        return priced_counts([(own[name].counting, each) for name in names], whole.kind, plan.tables, session.schema)

    main = make(None, [{} for _ in needs])
    counts, tops = None, list[tuple[int, ...]]()
    if missing:
        made = count(missing)
        tops = [top for _, top in made]
        counts = counted_question(session, text, [one for one, _ in made], after=None)
        _require_plannable(make, plan, needs, dict(zip(missing, tops, strict=True)))
    promise, promised = _promise(whole.kind, amount, whole.delta, session.study.adjacency)
    cost = (cost_of(counts.priced) if counts is not None else NOTHING) + _amounts_of(whole.kind, promised)
    identities = (identity(whole), *main.identities[1:])
    finds = sorted(own)
    key = canonical_digest(
        {
            "version": 1,
            "finds": finds,
            "key": question_key(
                identities,
                study_digest=session.study.digest,
                data_version=session.version,
                survey=survey_of(session, plan),
            ),
            "bias": options.bias,
        }
    )
    return FindingQuestion(
        counts=counts,
        missing=tuple(zip(missing, tops, strict=True)),
        main=main,
        make=make,
        count=count,
        needs=tuple(needs),
        promise=promise,
        promised=promised,
        key=key,
        cost=cost.most(session.least),
        enough=is_enough(whole, session.least),
    )


def buy_counts(session: Session, text: str, options: QuestionOptions, *, ticket: Ticket = PLAIN) -> None:
    """Buy what the caps of a question follow from, where it is not known, for the least spend: a purchase of its own.

    An accuracy is priced by caps, so they must be known first. If the question is refused afterwards, what was counted is
    kept, and is free for every other question about the same rows.
    """
    session, options = session.at_one_survey(), replace(options, caps=None)
    question, plan, _ = plan_question(session, text, options)
    if question.options.rows is not None or question.options.groups is not None:
        return  # the statement says its own
    needs = needs_of(session, plan)
    missing = {need.name: need.counting for own in needs for need in own.values() if need.name and need.steps is None}
    if not missing:
        return
    price_question(session, text, options)  # what is wrong with it is found before anything is bought
    kind, amount = ("pure", session.least.epsilon) if session.limits.kind == "pure" else ("concentrated", session.least.rho)
    made = priced_counts([(one, amount / len(missing)) for one in missing.values()], kind, plan.tables, session.schema)
    question = counted_question(session, f"{COUNT} {text}", [one for one, _ in made], after=None)
    purchase = SurveyPurchase(question, what="question", once=False)
    bought = spend(session, purchase, ticket=ticket)
    commit = session.ledger.committed(purchase.request.question_key, session.version)
    steps = [Steps(tops, *counts) for (_, tops), counts in zip(made, bought.counts, strict=True)]
    session.ledger.remember(commit, {name: one.record() for name, one in zip(missing, steps, strict=True)})


def _require_plannable(
    make: Callable[[tuple[RequestedCaps, ...], Sequence[BlockNeeds]], PricedQuestion],
    plan: Plan,
    needs: Sequence[BlockNeeds],
    tops: Mapping[str, tuple[int, ...]],
) -> None:
    """Refuse a question that could not be answered with the largest caps that may be found: before anything is charged."""

    def largest(need: Need | None) -> int | None:
        if need is None:
            return None
        return tops[need.name][-1] if need.name in tops else need.steps.tops[-1] if need.steps is not None else None

    caps = []
    for block, own in zip(plan.blocks, needs, strict=True):
        rows = largest(own.get("rows")) or block.contribution.rows
        groups, in_group = (largest(own.get(kind)) for kind in ("groups", "in_group"))
        others = [None if one is None else min(one, rows) for one in (groups, in_group)]
        caps.append(RequestedCaps(largest(own.get("rows")), others[0], others[1]))
    make(tuple(caps), [{} for _ in needs])


def _promise(
    kind: GrantKind, amount: Fraction, delta: Fraction, adjacency: Adjacency
) -> tuple[Loss, tuple[Fraction, Fraction]]:
    """Return a record that bounds whatever is measured for a grant, and the amounts that it costs.

    Claim   ε-differential privacy is ε²/2-zCDP [BS16, Prop. 1.4]; the δ of private keys is added.
    """
    if kind == "pure":
        return Pure(epsilon=amount, adjacency=adjacency), (amount, Fraction(0))
    rho = amount if kind == "concentrated" else amount * amount / 2
    return Concentrated(rho=rho, delta=delta, adjacency=adjacency), (rho, delta)


def _amounts_of(kind: GrantKind, promised: tuple[Fraction, Fraction]) -> Amounts:
    if kind == "pure":
        return Amounts.cost(epsilon=promised[0])
    return Amounts.cost(rho=promised[0], delta=promised[1])


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


def survey_of(session: Session, plan: Plan) -> str | None:
    """Return the id of the survey whose caps a plan is answered with; None where all were declared."""
    schema, survey = session.schema, session.survey
    if survey is None or not any(name in schema.found for name in plan.tables):
        return None
    return survey.id


# ---- in words --------------------------------------------------------------------------------------------------------------


def first_lines(session: Session, needs: Sequence[BlockNeeds], options: QuestionOptions) -> tuple[str, ...]:
    """Return what a preview says of an accuracy whose own rows nobody counted yet: the price of counting them first."""
    if options.accuracy is None or not any(need.name and need.steps is None for own in needs for need in own.values()):
        return ()
    least = amounts_text(session.least, pure=session.limits.kind == "pure", up=True)
    now = "this is the price at the table's cap, as nobody counted units of these very rows yet"
    return (f"{now}: {COUNT_FIRST} does it first, for {least}, and the accuracy is then priced at the cap that follows",)


def left_out_lines(session: Session, plan: Plan, needs: Sequence[BlockNeeds]) -> tuple[str, ...]:
    """Return what is known of the rows that caps left out, where they were found privately.

    needs   for each block, what its caps follow from; empty: those of its tables, or asked for

    What was measured of a whole table is said of that table only; of a join nothing is known but by its own numbers. Each cap
    is told by itself, on rows, on groups, on rows in one group: the lines are about one cap each, and not their sum.
    """
    schema, survey = session.schema, session.survey
    if survey is None or not schema.found:
        return ()
    unit, lines = session.study.unit_name, list[str]()
    for block, own in zip(plan.blocks, needs or [{}] * len(plan.blocks), strict=True):
        rows = own["rows"].steps if "rows" in own else None
        names = list(dict.fromkeys(table.name for table in private_tables(block.relation, schema)))
        if block.cap.by == "none" or not any(name in schema.found for name in names):
            continue
        alone = ", by the cap on rows alone" if block.cap.groups is not None or block.cap.in_group is not None else ""
        if rows is not None:
            lines.append(table_sentence(left_out(rows, block.cap.rows), unit, f"among these rows{alone}"))
        elif not reads_one_table(block.relation) or names[0] not in survey.tables:
            lines.append(f"how many rows are missing is not known for this join; {COUNT_FIRST} counts them first")
        else:
            known = left_out(survey.tables[names[0]].rows, block.cap.rows)
            whole = block.cap.by == "rank"
            where = f"in {names[0]}{alone}"
            lines.append(table_sentence(known, unit, where) if whole else filtered_sentence(known, unit, names[0]))
        lines += _group_lines(block, own, unit)
        for name in names:
            if name in survey.before and name in schema.found:
                now = survey.tables[name].cap
                changed = (
                    f"the survey of {survey.time[:10]} changed the cap on {name} from {survey.before[name]:,} to {now:,}"
                )
                lines.append(f"{changed} rows per {unit}: answers before it are of other rows")
    return tuple(dict.fromkeys(lines))


def _group_lines(block: BlockPlan, own: BlockNeeds, unit: str) -> Iterator[str]:
    """Yield what is known of what the caps on groups left out, and on rows in one group: of each, by its own numbers."""
    keys = {canonical_text(plain(key.expression)) for key in block.keys}
    things = {"groups": f"groups per {unit}", "in_group": f"rows in the largest group of a {unit}"}
    for kind, cap in (("groups", block.cap.groups), ("in_group", block.cap.in_group)):
        need = own.get(kind)
        if cap is None:
            continue
        if need is None or need.steps is None or {canonical_text(plain(key)) for key in need.counting.keys} != keys:
            yield f"beyond {cap:,} {things[kind]} more is missing, and how much is not known"
        else:
            yield capped_sentence(left_out(need.steps, cap), unit, things[kind])

"""A question with its price, at the door of `spending.py`: how it is computed and shown."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from curador.answers.bias import as_shares
from curador.answers.identity import decode_releases, encode_releases, identity_digest, question_key
from curador.answers.release import release
from curador.answers.table import answer_columns
from curador.curator.answer import Answer, table_digest
from curador.curator.receipt import answer_receipt, answer_terms
from curador.curator.rehearsal import rehearse, shape_of, tally_without_rows
from curador.curator.spending import spend, try_out
from curador.curator.ticket import PLAIN
from curador.ledger.entry import Request
from curador.plan.cost_class import cost_class
from curador.plan.notes import bounding_notes
from curador.plan.price import loss_record
from curador.plan.words import explain, selection_note
from curador.study.frames import ARROW, common_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from fractions import Fraction

    from curador.answers.column import AnswerColumn
    from curador.answers.identity import Identity
    from curador.answers.release import ReleasedBlock
    from curador.curator.finding import FindingQuestion
    from curador.curator.session import Session
    from curador.curator.ticket import Ticket
    from curador.engines.base import Compiled, Tallied
    from curador.ledger.amounts import Amounts
    from curador.ledger.entry import Spent
    from curador.plan.model import Plan
    from curador.plan.price import Priced


RestoredQuestion: TypeAlias = "tuple[list[list[ReleasedBlock]], tuple[AnswerColumn, ...]]"
"""What was released for every plan of a question, and the columns that are shown of the first."""


_OF_THE_QUESTION = frozenset({"plan_digest", "shape", "terms"})
"""What is made of a question once, whoever asks it: not its request, which says when."""


@dataclass(frozen=True)
class PricedQuestion:
    """A question with its price, as something to spend on.

    priced     the question's plan, then those of the bias estimates, if any
    compiled   the statements of all plans, in order
    version    the data version that it is about
    enough     whether what was asked for is not below the owner's least spend; only a stored answer is given for less
    notes      what the asker must know about the price
    ahead      what else could be chosen, for a preview to say
    by_engine  whether it is the engine that says what tables without rows give, or the plan
    survey     the id of the survey whose caps it is answered with; None: none
    left       what is known of the rows that found caps left out
    """

    session: Session
    text: str
    priced: tuple[Priced, ...]
    identities: tuple[Identity, ...]
    key: str
    cost: Amounts
    confidence: Fraction
    version: int
    compiled: Compiled
    enough: bool = True
    notes: tuple[str, ...] = ()
    ahead: tuple[str, ...] = ()
    by_engine: bool = True
    survey: str | None = None
    left: tuple[str, ...] = ()
    what: str = "question"
    once: bool = False

    def at(self, session: Session) -> PricedQuestion:
        """Return the same question of a session with the same price; what was made of it is kept, but for its charge."""
        made = replace(self, session=session)
        kept = {name: value for name, value in vars(self).items() if name in _OF_THE_QUESTION}
        vars(made).update(kept)
        return made

    @property
    def plan(self) -> Plan:
        """The question's own plan."""
        return self.priced[0].plan

    @property
    def surveyed(self) -> Mapping[str, Any]:
        """What a receipt says of caps that were found privately; nothing where all were declared or asked for."""
        if self.survey is None:
            return {}
        schema = self.session.schema
        caps = {
            known.table.name: known.table.caps.rows
            for known in schema.tables
            if known.table.name in schema.found and known.table.caps
        }
        return {"survey": {"id": self.survey, "caps": caps}}

    @cached_property
    def plan_digest(self) -> str:
        """One digest of everything that is measured."""
        if len(self.identities) == 1:
            return identity_digest(self.identities[0])
        return question_key(self.identities, study_digest="", data_version=0)

    @property
    def losses(self) -> tuple[dict[str, object], ...]:
        """The records of every loss."""
        return tuple(loss_record(noise) for one in self.priced for noise in one.drawn)

    @property
    def request(self) -> Request:
        """What the ledger is asked to charge."""
        return self._request

    @cached_property
    def _request(self) -> Request:
        return request_of(self)

    @cached_property
    def shape(self) -> Hashable:
        """What the way from tallies to the receipt depends on."""
        return tuple(shape_of(one) for one in self.priced), self.confidence, self.notes

    @property
    def ticks(self) -> int:
        """By what all its plans are made of."""
        blocks = [block for one in self.priced for block in one.plan.blocks]
        return cost_class(blocks, self.session.schema, self.session.study.engine)

    def compute(self, *, rehearsal: bool) -> bytes:
        """Tally, and draw the noise of every plan; in a rehearsal the noise is thrown away and 0 is in its place."""
        released = _draw_all(self.priced, self._tallied(rehearsal=rehearsal), rehearse if rehearsal else release)
        return encode_releases(self.identities, released)

    def try_engine(self) -> None:
        """Tally tables without rows, and say what the receipt will say of the plan."""
        self._tallied(rehearsal=True)
        json.dumps(self.terms, allow_nan=False)
        bounding_notes(self.plan, self.session.schema)

    def restore(self, content: bytes) -> RestoredQuestion:
        """Return the released numbers in the order of this question, and the columns that are made of them."""
        released = decode_releases(content, self.identities, self.priced)
        return released, tuple(answer_columns(self.priced[0], released[0], self.confidence))

    def digest(self, restored: RestoredQuestion) -> str:
        """Return the digest of the table that is shown."""
        return table_digest(restored[1])

    def show(self, restored: RestoredQuestion, digest: str, spent: Spent) -> Answer:
        """Return the answer: columns, notes, estimates of what was lost, receipt."""
        schema, (released, columns) = self.session.schema, restored
        receipt = answer_receipt(self.session.study, self.session.limits, spent, self.terms, answer_digest=digest)

        main, shown = self.priced[0], released[0]

        def again(confidence: Fraction) -> tuple[AnswerColumn, ...]:  # an answer holds no session, which leads to rows
            return tuple(answer_columns(main, shown, confidence))

        estimates = [
            column
            for priced, own in zip(self.priced[1:], released[1:], strict=True)
            for column in answer_columns(priced, own, self.confidence)
        ]
        selected = [
            selection_note(selection, self.session.study.unit_name, empty=block.rows == 0)
            for selection, block in zip(main.selections, shown, strict=True)
            if selection is not None
        ]
        bare = ", ".join(column.name for column in columns if column.unproved)
        unproved = (f"no error bar is proved for {bare}",) if bare else ()
        notes = (*self.notes, *dict.fromkeys(selected), *bounding_notes(self.plan, schema), *unproved, *self.left)
        bias = as_shares(estimates) if estimates else ()
        given = self.session.study.frames
        came_as = common_kind(given[table] for table in self.plan.tables if table in given) if given else ARROW
        return Answer(columns, spent.cost, receipt, spent.served, self.confidence, notes, bias, again=again, came_as=came_as)

    @cached_property
    def terms(self) -> Mapping[str, Any]:
        """What every receipt of this question says; made once, where it is tried out."""
        text = "\n".join(explain(priced, self.session.schema) for priced in self.priced)
        terms = answer_terms(
            self.session.study, self.priced, question=self.text, plan_digest=self.plan_digest, plan_text=text
        )
        return {**terms, **self.surveyed}

    def _tallied(self, *, rehearsal: bool) -> Sequence[Tallied]:
        engine, compiled = self.session.engine, self.compiled
        if not rehearsal:
            return engine.tally(compiled)
        return engine.rehearse(compiled) if self.by_engine else [tally_without_rows(block) for block, _ in compiled]


def ask(question: PricedQuestion | FindingQuestion, *, fresh: bool = False, ticket: Ticket = PLAIN) -> Answer:
    """Return the stored answer of an identical question, or draw a new one and pay for it."""
    if isinstance(question, PricedQuestion):
        return spend(question.session, question, fresh=fresh, ticket=ticket)
    answer = spend(question.session, question, fresh=fresh, ticket=ticket)
    remember_counts(question)
    return answer


def remember_counts(question: FindingQuestion) -> None:
    """Keep what a question counted before it measured, for the next question about the same rows.

    The numbers are in its own answer, too: if this is lost in a crash, they are kept when it is asked again.
    """
    ledger = question.session.ledger
    stored = ledger.stored(question.key, question.version)
    if stored is not None:
        ledger.remember(stored.entry, question.found(stored.answer))


def try_question_out(question: PricedQuestion | FindingQuestion) -> None:
    """Refuse a question whose answer could not be made without rows; no engine is asked, so a preview stays quick."""
    if isinstance(question, PricedQuestion):
        try_out(question.session, replace(question, by_engine=False))
    else:
        try_out(question.session, replace(question, by_engine=False))


def columns_ahead(question: PricedQuestion | FindingQuestion) -> tuple[AnswerColumn, ...]:
    """Return the columns that the answer will have, by what tables without rows would give. No engine is asked."""
    if isinstance(question, PricedQuestion):
        made = replace(question, by_engine=False)
        return made.restore(made.compute(rehearsal=True))[1]
    finding = replace(question, by_engine=False)
    return finding.restore(finding.compute(rehearsal=True))[1][1]


def request_of(question: PricedQuestion) -> Request:
    """Return what the ledger is asked to charge for a question."""
    session = question.session
    return Request(
        amounts=question.cost,
        losses=question.losses,
        study_digest=session.study.digest,
        data_version=question.version,
        question_key=question.key,
        question=question.text,
        plan_digest=question.plan_digest,
        adjacency=session.study.adjacency,
        tables=question.plan.tables,
        analyst=session.name,
        share=session.share,
    )


def _draw_all(
    plans: Sequence[Priced], tallied: Sequence[Tallied], draw: Callable[[Priced, Sequence[Tallied]], list[ReleasedBlock]]
) -> list[list[ReleasedBlock]]:
    """Draw the noise of every plan; the tallies of all of them came from one snapshot."""
    out: list[list[ReleasedBlock]] = []
    start = 0
    for priced in plans:
        end = start + len(priced.plan.blocks)
        out.append(draw(priced, tallied[start:end]))
        start = end
    return out

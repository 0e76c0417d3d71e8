"""The way of one question, up to the point where it costs something: text, tree, plan, grant, price, identity.

Everything here is a function of the question, the study and the asker's share: no row is read, nothing is spent, and the
same question gets the same refusal or the same price on every table.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from curador.curator.grant import Wanted, is_enough, least_of, priced_plan, refuse_too_little
from curador.curator.identity import Identity, identity, question_key
from curador.errors import InvalidParameter, InvalidQuery, require, sentence
from curador.ledger.amounts import Amounts, down_to_tick
from curador.numerics.exact import Number, confidence_level, rational, whole
from curador.plan.caps import Asked
from curador.plan.price import Grant, Priced, price
from curador.query.tree import UnitGroup
from curador.study.amounts import share_text
from curador.study.model import Caps
from curador.study.typed import LARGEST, RANGES
from curador.study.values import Type

if TYPE_CHECKING:
    from curador.ledger.limits import Limits
    from curador.plan.model import BlockPlan, Plan
    from curador.query.tree import Question
    from curador.study.model import Analyst
    from curador.study.schema import Schema

BIAS_SHARE = Fraction(1, 20)
"""What the estimates of lost rows and values get of a question's spend, where they are asked for."""

PREPARED = "prepared"
_CAPS = ("rows", "groups", "rows_per_group")
_MOST_PLANS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What an asker said besides the question."""

    wanted: Wanted = field(default_factory=Wanted)
    caps: Caps | Mapping[str, int] | str | None = None
    bounds: Mapping[str, tuple[Number, Number]] | None = None
    dialect: str = "duckdb"
    confidence: Number = "0.95"
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """A question with its price. `priced` holds the question's plan, then those of the bias estimates, if any.

    enough   whether what was asked for is not below the owner's least spend; only a stored answer is given for less
    notes    what the asker must know about the price
    """

    text: str
    priced: tuple[Priced, ...]
    identities: tuple[Identity, ...]
    key: str
    cost: Amounts
    confidence: Fraction
    tables: tuple[str, ...]
    enough: bool = True
    notes: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """The question's own plan."""
        return self.priced[0].plan

    @property
    def blocks(self) -> list[BlockPlan]:
        """The blocks of all plans, in order."""
        return [block for one in self.priced for block in one.plan.blocks]

    @property
    def plan_digest(self) -> str:
        """One digest of everything that is measured."""
        if len(self.identities) == 1:
            return self.identities[0].digest
        return question_key(self.identities, study_digest="", data_version=0)

    @property
    def losses(self) -> tuple[dict[str, object], ...]:
        """The records of every loss."""
        return tuple(loss.to_record() for one in self.priced for loss in one.losses)


class Plans:
    """The latest questions that were read and planned, for one schema at a time."""

    def __init__(self) -> None:
        self._now: tuple[Schema | None, dict[Hashable, tuple[Question, Plan]]] = (None, {})

    def get(self, schema: Schema, key: Hashable) -> tuple[Question, Plan] | None:
        """Return what was kept under this very schema."""
        own, held = self._now
        return held.get(key) if own is schema else None

    def keep(self, schema: Schema, key: Hashable, planned: tuple[Question, Plan]) -> None:
        """Keep a plan; the oldest goes."""
        own, before = self._now
        held = dict(before) if own is schema else {}
        held[key] = planned
        while len(held) > _MOST_PLANS:
            held.pop(next(iter(held)))
        self._now = schema, held  # in one step: other threads see the one or the other


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks about what: the study's schema, the ledger's limits, and the asker (None: the owner)."""

    schema: Schema
    limits: Limits
    analyst: Analyst | None
    data_version: int
    plans: Plans | None = None

    @property
    def share(self) -> Fraction:
        """The asker's share of the limits."""
        return Fraction(1) if self.analyst is None else self.analyst.share

    @property
    def visible_schema(self) -> Schema:
        """The schema of what the asker may ask about."""
        visible = self._visible()
        if visible is None:
            return self.schema
        return replace(self.schema, tables=tuple(one for one in self.schema.tables if one.table.name in visible))

    def plan(self, text: str, how: How) -> tuple[Question, Plan]:
        """Return the question's tree and its plan, or refuse; the latest ones are kept, as dashboards ask again."""
        from curador.plan.build import build_plan

        plain = how.caps is None and how.bounds is None and type(text) is str and type(how.dialect) is str
        key = (text, how.dialect, self._visible())
        found = self.plans.get(self.schema, key) if self.plans is not None and plain else None
        if found is not None:
            return found
        question = self._parsed(text, how.dialect)
        plan = build_plan(question, self.schema, asked=_asked(how.caps), bounds=_bounds(how.bounds))
        if self.plans is not None and plain:
            self.plans.keep(self.schema, key, (question, plan))
        return question, plan

    @property
    def least(self) -> Amounts:
        """What a question of this asker costs at least."""
        return least_of(self.limits, self.share, self.schema.study.least_spend)

    def ready(self, text: str, how: How, *, raised: bool = False) -> Ready:
        """Return the question with its price, or refuse.

        raised   refuse a cost below the least spend, and raise an accuracy to it; otherwise the price says that it is too low

        Claim   What is charged is never below the least, however little of a grant the noise needs.
        """
        confidence = confidence_level(how.confidence)
        question, plan = self.plan(text, how)
        wanted = _with_options(how.wanted, question)
        if not wanted.given:
            raise InvalidParameter(self._what_it_would_cost(plan, wanted, confidence))
        main = priced_plan(plan, wanted, self.limits, self.share)
        notes: tuple[str, ...] = ()
        enough = is_enough(main.grant, self.least)
        if raised and not enough:
            main, notes = self._raised(plan, wanted, confidence)
        priced = (main,) if not how.bias else self._with_bias(question, main, replace(how, wanted=wanted))
        identities = tuple(identity(one) for one in priced)
        key = question_key(identities, study_digest=self.schema.study.digest, data_version=self.data_version)
        cost = cost_of(priced).most(self.least)
        return Ready(text, priced, identities, key, cost, confidence, plan.tables, enough or raised, notes)

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _parsed(self, text: str, dialect: str) -> Question:
        from curador.query.sql import parse

        if type(text) is not str:
            raise InvalidQuery(sentence("the question", "SQL as text", type(text).__name__))
        return parse(text, self.visible_schema, dialect=dialect)  # another table is one that does not exist

    def _visible(self) -> frozenset[str] | None:
        """The tables that the asker may read, None for all; public tables are everybody's."""
        if self.analyst is None or self.analyst.tables is None:
            return None
        public = {one.table.name for one in self.schema.tables if one.table.public}
        return frozenset(self.analyst.tables) | public

    # ---- prices -----------------------------------------------------------------------------------------------------

    def _with_bias(self, question: Question, main: Priced, how: How) -> tuple[Priced, ...]:
        """Return the question with 95 % of its grant and the bias estimates with 5 %; an accuracy keeps all of its own."""
        from curador.curator.bias import bias_questions, with_wider_caps
        from curador.plan.build import build_plan

        wider = with_wider_caps(self.schema, main.plan)
        capped = Asked(rows=main.plan.blocks[0].cap.rows)
        plans = [
            build_plan(one, wider, asked=None if isinstance(one.blocks[0].relation, UnitGroup) else capped)
            for one in bias_questions(question, main.plan, self.schema)
        ]
        kind, amount, wanted = main.grant.kind, main.grant.amount, how.wanted
        if wanted.accuracy is None:
            extra = amount * BIAS_SHARE
            weights = {name: rational(value, "weights") for name, value in (wanted.weights or {}).items()}
            main = price(main.plan, Grant(kind, down_to_tick(amount - extra), main.grant.delta), weights)
        else:
            extra = amount * BIAS_SHARE / (1 - BIAS_SHARE)
        counts = [sum(len(block.measurements) for block in plan.blocks) for plan in plans]
        grants = [Grant(kind, down_to_tick(extra * count / sum(counts))) for count in counts]
        return main, *(price(plan, grant) for plan, grant in zip(plans, grants, strict=True))

    def _raised(self, plan: Plan, wanted: Wanted, confidence: Fraction) -> tuple[Priced, tuple[str, ...]]:
        """Return the plan with the least spend, where an accuracy costs less; any other cost below it is refused."""
        from curador.curator.preview import expected_errors

        least = self.schema.study.least_spend
        at_least = replace(wanted, spend=share_text(least), rho=None, epsilon=None, accuracy=None, at=None)
        priced = priced_plan(plan, at_least, self.limits, self.share)
        gives = "; ".join(one.sentence() for one in expected_errors(priced, confidence))
        if wanted.accuracy is None:
            (name,) = wanted.given
            refuse_too_little(name, getattr(wanted, name), self.least, least, gives)
        note = (
            f"the accuracy costs less than the least spend ({share_text(least)} of your limit) and was raised to it: {gives}"
        )
        return priced, (note,)

    def _what_it_would_cost(self, plan: Plan, wanted: Wanted, confidence: Fraction) -> str:
        """The sentence for a question without a cost: what 5 % would give."""
        from curador.curator.preview import expected_errors

        text = 'the cost must be given: spend="5%", rho=, epsilon= or accuracy={…}; got none of them.'
        priced = priced_plan(plan, replace(wanted, spend="5%"), self.limits, self.share)
        told = "; ".join(one.sentence() for one in expected_errors(priced, confidence))
        return f'{text}\nHint: spend="5%" would give {told}.' if told else text


def cost_of(priced: tuple[Priced, ...]) -> Amounts:
    """Return what must be charged. Rounds: up to the tick."""
    first = sum((one.cost[0] for one in priced), Fraction(0))
    delta = sum((one.cost[1] for one in priced), Fraction(0))
    if priced[0].grant.kind == "pure":
        return Amounts.cost(epsilon=first)
    return Amounts.cost(rho=first, delta=delta)


def _with_options(wanted: Wanted, question: Question) -> Wanted:
    """Return the wanted cost with what the statement's own options say."""
    epsilon = question.options.epsilon
    if epsilon is None:
        return wanted
    if wanted.given:
        got = f"epsilon in the statement and {' and '.join(wanted.given)}"
        raise InvalidParameter(f"the cost must be given once; got {got}.")
    return replace(wanted, epsilon=epsilon)


def _asked(caps: Caps | Mapping[str, int] | str | None) -> Asked | None:
    if caps is None:
        return None
    if isinstance(caps, str):
        if caps == PREPARED:
            return Asked(prepared=True)
        raise InvalidParameter(sentence("caps", f'{{"rows": 5}}, or "{PREPARED}"', caps))
    if isinstance(caps, Caps):
        return Asked(caps.rows, caps.groups, caps.rows_per_group)
    if not isinstance(cast("object", caps), Mapping):
        raise InvalidParameter(sentence("caps", f'{{"rows": 5}}, or "{PREPARED}"', caps))
    named = dict(caps)
    prepared = named.pop(PREPARED, False)
    for name in named:
        if name not in _CAPS:
            raise InvalidParameter(sentence("caps", f"made of {', '.join(_CAPS)}", name))
    numbers = {name: whole(value, f"caps.{name}") for name, value in named.items()}
    return Asked(**numbers, prepared=bool(prepared))


def _bounds(bounds: Mapping[str, tuple[Number, Number]] | None) -> dict[str, tuple[Fraction, Fraction]] | None:
    if bounds is None:
        return None
    if not isinstance(cast("object", bounds), Mapping):
        raise InvalidParameter(sentence("bounds", 'of columns, such as {"mean": (0, 100)}', bounds))
    out: dict[str, tuple[Fraction, Fraction]] = {}
    for name, pair in bounds.items():
        ends = list(cast("Any", pair)) if isinstance(cast("object", pair), (tuple, list)) else []
        if len(ends) != 2:
            raise InvalidParameter(sentence(f"bounds[{name!r}]", "a lower and an upper one", pair))
        lower, upper = (rational(end, f"bounds[{name!r}]") for end in ends)
        inside = max(abs(lower), abs(upper)) <= LARGEST[Type.FLOAT]
        require(inside, f"bounds[{name!r}]", f"between {RANGES[Type.FLOAT]}", pair)
        out[name] = lower, upper
    return out

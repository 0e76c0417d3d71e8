"""The way of one question, up to the point where it costs something: text, tree, plan, grant, price, identity.

Everything here is a function of the question, the study and the asker's share: no row is read, nothing is spent, and the
same question gets the same refusal or the same price on every table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from curador.curator.grant import is_enough, priced_plan, refuse_too_little
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
    from curador.curator.grant import QuestionOptions
    from curador.curator.session import Session
    from curador.engines.base import Compiled
    from curador.plan.model import Plan
    from curador.query.tree import Question

BIAS_SHARE = Fraction(1, 20)
"""What the estimates of lost rows and values get of a question's spend, where they are asked for."""

PREPARED = "prepared"
_CAPS = ("rows", "groups", "rows_per_group")


@dataclass(frozen=True, slots=True)
class PricedQuestion:
    """A question with its price. `priced` holds the question's plan, then those of the bias estimates, if any.

    compiled the statements of all plans, in order
    version  the data version that it is about
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
    version: int
    compiled: Compiled
    enough: bool = True
    notes: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """The question's own plan."""
        return self.priced[0].plan

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


def price_question(session: Session, text: str, options: QuestionOptions, *, fresh: bool = False) -> PricedQuestion:
    """Return the question with its price, or refuse.

    A cost below the least spend buys nothing new; an answer that was given for it before is given again.
    """
    question = price_at(session, text, options)
    if not question.enough and (fresh or session.stored(question.key, question.version) is None):
        question = price_at(session, text, options, raised=True)
    return question


def price_at(session: Session, text: str, options: QuestionOptions, *, raised: bool = False) -> PricedQuestion:
    """Return the question with its price, or refuse.

    raised   refuse a cost below the least spend, and raise an accuracy to it; otherwise the price says that it is too low

    Claim   What is charged is never below the least, however little of a grant the noise needs.
    """
    confidence, version = confidence_level(options.confidence), session.version
    question, plan, compiled = plan_question(session, text, options)
    options = _with_statement(options, question)
    if not options.given:
        raise InvalidParameter(_what_it_would_cost(session, plan, options, confidence))
    main = priced_plan(plan, options, session.limits, session.share)
    notes: tuple[str, ...] = ()
    enough = is_enough(main.grant, session.least)
    if raised and not enough:
        main, notes = _raised(session, plan, options, confidence)
    priced = (main,) if not options.bias else _with_bias(session, question, main, options)
    if len(priced) > 1:
        compiled = session.engine.compile([block for one in priced for block in one.plan.blocks])
    identities = tuple(identity(one) for one in priced)
    key = question_key(identities, study_digest=session.study.digest, data_version=version)
    cost = cost_of(priced).most(session.least)
    return PricedQuestion(
        text, priced, identities, key, cost, confidence, plan.tables, version, compiled, enough or raised, notes
    )


def plan_question(session: Session, text: str, options: QuestionOptions) -> tuple[Question, Plan, Compiled]:
    """Return the question's tree, its plan and what the engine runs for it, or refuse; the latest ones are kept.

    Dashboards ask again. What the engine could not run is refused here, before it has a price.
    """
    from curador.plan.build import build_plan

    schema = session.schema
    plain = options.caps is None and options.bounds is None and type(text) is str and type(options.dialect) is str
    key = (text, options.dialect, session.visible_tables)
    found = session.plans.get(schema, key) if plain else None
    if found is not None:
        return found
    question = _parsed(session, text, options.dialect)
    plan = build_plan(question, schema, asked=_asked(options.caps), bounds=_bounds(options.bounds))
    compiled = session.engine.compile(plan.blocks)
    if plain:
        session.plans.keep(schema, key, (question, plan, compiled))
    return question, plan, compiled


def _parsed(session: Session, text: str, dialect: str) -> Question:
    from curador.query.sql import parse

    if type(text) is not str:
        raise InvalidQuery(sentence("the question", "SQL as text", type(text).__name__))
    return parse(text, session.visible_schema, dialect=dialect)  # another table is one that does not exist


def _with_bias(session: Session, question: Question, main: Priced, options: QuestionOptions) -> tuple[Priced, ...]:
    """Return the question with 95 % of its grant and the bias estimates with 5 %; an accuracy keeps all of its own."""
    from curador.curator.bias import bias_questions, with_wider_caps
    from curador.plan.build import build_plan

    wider = with_wider_caps(session.schema, main.plan)
    capped = Asked(rows=main.plan.blocks[0].cap.rows)
    plans = [
        build_plan(one, wider, asked=None if isinstance(one.blocks[0].relation, UnitGroup) else capped)
        for one in bias_questions(question, main.plan, session.schema)
    ]
    kind, amount = main.grant.kind, main.grant.amount
    if options.accuracy is None:
        extra = amount * BIAS_SHARE
        weights = {name: rational(value, "weights") for name, value in (options.weights or {}).items()}
        main = price(main.plan, Grant(kind, down_to_tick(amount - extra), main.grant.delta), weights)
    else:
        extra = amount * BIAS_SHARE / (1 - BIAS_SHARE)
    counts = [sum(len(block.measurements) for block in plan.blocks) for plan in plans]
    grants = [Grant(kind, down_to_tick(extra * count / sum(counts))) for count in counts]
    return main, *(price(plan, grant) for plan, grant in zip(plans, grants, strict=True))


def _raised(session: Session, plan: Plan, options: QuestionOptions, confidence: Fraction) -> tuple[Priced, tuple[str, ...]]:
    """Return the plan with the least spend, where an accuracy costs less; any other cost below it is refused."""
    from curador.curator.preview import expected_errors

    least = session.study.least_spend
    at_least = replace(options, spend=share_text(least), rho=None, epsilon=None, accuracy=None, at=None)
    priced = priced_plan(plan, at_least, session.limits, session.share)
    gives = "; ".join(one.sentence() for one in expected_errors(priced, confidence))
    if options.accuracy is None:
        (name,) = options.given
        refuse_too_little(name, getattr(options, name), session.least, least, gives)
    note = f"the accuracy costs less than the least spend ({share_text(least)} of your limit) and was raised to it: {gives}"
    return priced, (note,)


def _what_it_would_cost(session: Session, plan: Plan, options: QuestionOptions, confidence: Fraction) -> str:
    """The sentence for a question without a cost: what 5 % would give."""
    from curador.curator.preview import expected_errors

    text = 'the cost must be given: spend="5%", rho=, epsilon= or accuracy={…}; got none of them.'
    priced = priced_plan(plan, replace(options, spend="5%"), session.limits, session.share)
    told = "; ".join(one.sentence() for one in expected_errors(priced, confidence))
    return f'{text}\nHint: spend="5%" would give {told}.' if told else text


def cost_of(priced: tuple[Priced, ...]) -> Amounts:
    """Return what must be charged. Rounds: up to the tick."""
    costs = [one.cost for one in priced]
    first, delta = (sum((cost[place] for cost in costs), Fraction(0)) for place in (0, 1))
    if priced[0].grant.kind == "pure":
        return Amounts.cost(epsilon=first)
    return Amounts.cost(rho=first, delta=delta)


def _with_statement(options: QuestionOptions, question: Question) -> QuestionOptions:
    """Return the options with what the statement's own clause says about cost."""
    epsilon = question.options.epsilon
    if epsilon is None:
        return options
    if options.given:
        got = f"epsilon in the statement and {' and '.join(options.given)}"
        raise InvalidParameter(f"the cost must be given once; got {got}.")
    return replace(options, epsilon=epsilon)


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

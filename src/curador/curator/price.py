"""The price of a question: its way from text to tree, plan, grant, noise and identity, before it costs anything.

Everything here is a function of the question, the study and the asker's share: no row is read, nothing is spent, and the
same question gets the same refusal or the same price on every table.

How much it may cost is exactly one of spend, rho, epsilon and accuracy, as a grant of exact amounts.

spend="5%"          of the asker's whole limit (the study's, or the share's), never of what is left: the same question always
                    costs the same, and twenty times 5 % fit
rho=x               refused under a pure budget
epsilon=x           a question that is x-DP by itself: Laplace noise
accuracy={"n": 50}  the smallest amount with which every 95 % interval of column n is at most ± 50; where that depends on
                    the rows of a group (means, ratios, variances, quantiles), in groups of `at` rows: `plan/ahead.py`

Amounts are rounded down to the ledger's tick. None may be below the owner's least spend, a part of the asker's whole limit;
an accuracy that costs less is raised to it. Everything is a function of the question, the study and the share; nothing
of data, nothing of what others asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, cast

from curador.answers.identity import identity, question_key
from curador.curator.asking import PricedQuestion
from curador.errors import BudgetExceeded, InvalidParameter, InvalidQuery, NotPrivate, Refused, require
from curador.ledger.amounts import DELTA_TICK, TICK, Amounts, down_to_tick, up_to_tick
from curador.numerics.exact import Number, confidence_level, positive, rational, whole
from curador.plan.aggregates import Point
from curador.plan.ahead import is_sized, reach_ahead
from curador.plan.model import estimates_of
from curador.plan.ownership import RequestedCaps
from curador.plan.price import GrantKind, Priced, check_weights, price
from curador.privacy.losses import LaplaceLoss
from curador.query.tree import Call, Distinct, Filter, UnitGroup, inputs_of
from curador.study.model import Caps
from curador.study.values import LARGEST, RANGES, Plain, Type, read_share, share_text
from curador.text import rounded_text

if TYPE_CHECKING:
    from curador.curator.finding import BlockNeeds, FindingQuestion
    from curador.curator.options import QuestionOptions
    from curador.curator.session import Session
    from curador.engines.base import Compiled
    from curador.ledger.limits import Limits
    from curador.plan.model import BlockPlan, ItemPlan, Plan
    from curador.query.tree import AnyRelation, Node, Question


# ---- grant -----------------------------------------------------------------------------------------------------------------


MOST_KEYS = Fraction(1, 10)
"""The largest part of an asker's delta_keys that one question may cost."""

ACCURACY_CONFIDENCE = Fraction(95, 100)
FINENESS = Fraction(1, 1 << 20)
"""How far above the smallest amount that keeps an accuracy the grant may be, relatively."""

_MOST_ROWS = 1 << 62
_LARGE = 1 << 40  # rows of a group in which noise is nothing
_WHOLES = 1 << 20  # what needs more than so many times the whole limit is out of reach


def priced_plan(plan: Plan, options: QuestionOptions, limits: Limits, share: Fraction) -> Priced:
    """Return the plan with noise that costs at most what was granted.

    Claim   cost ≤ grant, and a grant of s % is at most s % of the asker's limit, each rounded down to the tick.
    Rounds  The grant down.
    """
    if len(options.given) != 1:
        got = " and ".join(options.given) or "none of them"
        raise InvalidParameter.must_be("the cost", "given as one of spend, rho, epsilon and accuracy", Plain(got))
    require(options.at is None or options.accuracy is not None, "at", "given together with accuracy", options.at)
    weights = _weights(plan, options.weights)
    if options.accuracy is not None:
        return _accurate(plan, options.accuracy, options.at, weights, limits, share)
    kind, amount, part = amount_of(options, limits, share)
    require(amount > 0, "the cost", f"at least the ledger's smallest step ({TICK})", "less")
    return price(plan, kind, amount, _delta(plan, kind, part, limits, share), weights)


def amount_of(options: QuestionOptions, limits: Limits, share: Fraction) -> tuple[GrantKind, Fraction, Fraction]:
    """Return what a spend, a rho or an epsilon buys: the kind, the amount, and its part of the study's whole limit.

    Rounds  The amount down to the tick.
    """
    pure = limits.kind == "pure"
    if options.spend is not None:
        part = read_share(options.spend)
        if part is None:
            rule, hint = "a percentage above 0 % and at most 100 %", 'write spend="5%"'
            raise InvalidParameter.must_be("spend", rule, options.spend, hint)
        amounts = limits.share(part * share)
        return ("pure", amounts.epsilon, part * share) if pure else ("concentrated", amounts.rho, part * share)
    if options.rho is not None:
        asked = positive(options.rho, "rho")
        if pure:
            hint = "give epsilon=, or spend= as a percentage"
            raise NotPrivate.must_be("rho", "absent under a pure budget, which has no rho", options.rho, hint)
        _within_reach(asked, limits.rho_limit, "rho", options.rho)
        return "concentrated", down_to_tick(asked), asked / limits.rho_limit
    asked = positive(options.epsilon, "epsilon")
    _within_reach(asked, limits.epsilon, "epsilon", options.epsilon)
    if pure:
        return "pure", down_to_tick(asked), asked / limits.epsilon
    rho = LaplaceLoss(epsilon=asked).rho
    return "laplace", down_to_tick(asked), Fraction(1) if isinstance(rho, float) else rho / limits.rho_limit


def is_enough(priced: Priced, least: Amounts) -> bool:
    """Whether what was granted is not below the least, both in what the ledger counts."""
    if priced.kind == "laplace":
        return LaplaceLoss(epsilon=priced.amount).rho >= least.rho
    return priced.amount >= (least.epsilon if priced.kind == "pure" else least.rho)


def refuse_too_little(name: str, got: object, least: Amounts, least_spend: Fraction, gives: str = "") -> NoReturn:
    """Refuse a cost below the least: one sentence that says the least and, where it is known, what it would give."""
    unit, amount = ("epsilon", least.epsilon) if least.epsilon else ("rho", least.rho)
    part = share_text(least_spend)
    rule = f"at least the study's least spend, {part} of your whole limit ({unit} {rounded_text(amount, up=True)})"
    raise InvalidParameter.must_be(name, rule, got, f'spend="{part}" would give {gives}.' if gives else None)


def _within_reach(asked: Fraction, whole: Fraction, name: str, got: object) -> None:
    """Refuse what no budget could pay, before its noise is made: there is none so small."""
    if asked > whole * _WHOLES:
        raise BudgetExceeded.must_be(name, f"at most the study's whole limit ({rounded_text(whole, up=False)})", got)


def _delta(plan: Plan, kind: GrantKind, part: Fraction, limits: Limits, share: Fraction) -> Fraction:
    """Return what is granted for private keys: the amount's part of delta_keys, at most a tenth of the asker's.

    A delta that the statement itself gives is a further maximum.

    part: of the study's whole limit, so that the same amount is the same question whoever asks.
    """
    if kind == "pure" or not any(block.private_keys for block in plan.blocks):
        return Fraction(0)
    keys = down_to_tick(min(part, MOST_KEYS * share) * limits.delta_keys, DELTA_TICK)
    if plan.most_delta is not None:
        keys = min(keys, down_to_tick(plan.most_delta, DELTA_TICK))
    if keys <= 0:
        hint = "declare `values` for the columns of GROUP BY: keys that are known cost no delta"
        raise NotPrivate("keys that are selected privately need delta, and this study keeps none for them.", hint=f"{hint}.")
    return keys


def _require_named(given: object, name: str, rule: str) -> None:
    """Refuse what is no mapping from names, or an empty one."""
    held: Mapping[object, object] = cast("Mapping[object, object]", given) if isinstance(given, Mapping) else {}
    require(len(held) > 0 and all(isinstance(one, str) for one in held), name, rule, given)


def _weights(plan: Plan, weights: Mapping[str, Number] | None) -> dict[str, Fraction]:
    if weights is not None:
        _require_named(weights, "weights", 'weights of columns, such as {"n": 2}')
    exact = {name: positive(value, f"weights[{name!r}]") for name, value in (weights or {}).items()}
    check_weights(plan, exact)
    return exact


# ---- accuracy ------------------------------------------------------------------------------------------------------


def _accurate(
    plan: Plan,
    accuracy: Mapping[str, Number],
    at: Number | None,
    weights: Mapping[str, Fraction],
    limits: Limits,
    share: Fraction,
) -> Priced:
    """Return the plan with the smallest amount that keeps every accuracy.

    Claim   Every 95 % interval of each named column is at most ± what was asked, for every group; a smaller amount by more
            than a millionth part does not keep it.
    Needs   Half-widths do not grow with the amount.
    """
    goals = _goals(plan, accuracy, at)
    kind: GrantKind = "pure" if limits.kind == "pure" else "concentrated"
    total = limits.total.epsilon if kind == "pure" else limits.total.rho

    def at_amount(amount: Fraction) -> Priced:
        return price(plan, kind, amount, _delta(plan, kind, amount / total, limits, share), weights)

    def kept(amount: Fraction) -> bool:
        priced = at_amount(amount)
        return all(goal.reached(priced) for goal in goals)

    return at_amount(smallest(kept, start=total / 20, most=total * _WHOLES))


@dataclass(frozen=True, slots=True)
class _Goal:
    """One column's error; where it depends on that, in a group of so many rows."""

    block: int
    node: Node
    error: Fraction
    rows: int

    def reached(self, priced: Priced) -> bool:
        block, noises = priced.plan.blocks[self.block], priced.noises[self.block]
        reach = reach_ahead(block, self.node, noises, self.rows, ACCURACY_CONFIDENCE)
        return reach is not None and reach <= self.error


def _goals(plan: Plan, accuracy: Mapping[str, Number], at: Number | None) -> list[_Goal]:
    _require_named(accuracy, "accuracy", 'errors of columns, such as {"n": 50}')
    rows = None if at is None else whole(at, "at")
    require(rows is None or rows <= _MOST_ROWS, "at", "a number of rows of at most 2^62", at)
    names = dict.fromkeys(item.name for block in plan.blocks for item in block.items if item.released)
    goals: list[_Goal] = []
    for name, value in accuracy.items():
        error = positive(value, f"accuracy[{name!r}]")
        if name not in names:
            raise InvalidParameter.must_be("accuracy", f"of released columns ({', '.join(names)})", name)
        for place, block in enumerate(plan.blocks):
            own = [item for item in block.items if item.name == name and item.released]
            goals += [_goal(plan, place, item, error, rows) for item in own]
    return goals


def _goal(plan: Plan, place: int, item: ItemPlan, error: Fraction, rows: int | None) -> _Goal:
    """Refuse an error that no amount would tell before data: tried with one that is as good as any."""
    block, node, name = plan.blocks[place], item.expression, item.name
    tried = price(replace(plan, blocks=(block,)), "concentrated", Fraction(1), Fraction(1, 2))
    if reach_ahead(block, node, tried.noises[0], _LARGE, ACCURACY_CONFIDENCE) is None:
        hint = (
            "counts, sums, means, ratios by counts, variances, quantiles, and sums and products of them have an error "
            "that is known without data; give spend= instead"
        )
        raise InvalidParameter.must_be("accuracy", "of a column whose error is known without data", name, hint)
    if rows is None and is_sized(node, block):
        hint = f"the error of {name} depends on how many rows a group has: at=1000 says for which size it is meant"
        raise InvalidParameter.must_be("at", "given with this accuracy", Plain("nothing"), hint)
    return _Goal(place, node, error, rows or 0)


def _accuracy_notes(plan: Plan, options: QuestionOptions) -> tuple[str, ...]:
    """Return what an accuracy refers to where data decide: of quantiles, how rows lie."""
    wanted = [item for block in plan.blocks for item in block.items if item.name in (options.accuracy or {})]
    points = {
        item.name
        for block in plan.blocks
        for item in wanted
        if item in block.items and any(isinstance(block.estimates[one], Point) for one in estimates_of(item.expression))
    }
    return tuple(
        f"{name}: the accuracy is that of {options.at} rows spread evenly between its bounds" for name in sorted(points)
    )


def smallest(kept: Callable[[Fraction], bool], *, start: Fraction, most: Fraction) -> Fraction:
    """Return an amount that is kept, at most a millionth part above one that is not; a multiple of the tick."""
    high = up_to_tick(start)
    low = Fraction(0)
    while not kept(high):
        low, high = high, high * 4
        if high > most:
            raise InvalidParameter(
                subject="accuracy", rule="must be within reach of the budget", got="far less error than all of it could buy"
            )
    while high - low > max(high * FINENESS, TICK):
        middle = down_to_tick((low + high) / 2 if low else high / 4)
        if not low < middle < high:
            break
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high


# ---- pricing ---------------------------------------------------------------------------------------------------------------


BIAS_SHARE = Fraction(1, 20)
"""What the estimates of lost rows and values get of a question's spend, where they are asked for."""

PREPARED = "prepared"
FIND = "find"
"""The word for `caps` that are to be counted before an accuracy is priced."""
_CAPS = ("rows", "groups", "rows_per_group")


def price_question(
    session: Session, text: str, options: QuestionOptions, *, fresh: bool = False
) -> PricedQuestion | FindingQuestion:
    """Return the question with its price, or refuse.

    A cost below the least spend buys nothing new; an answer that was given for it before is given again.
    """
    session = session.at_one_survey()
    question = price_at(session, text, options)
    formed = _has_older_form(question, options)
    planned = any(_reads_conditions(block) for block in question.priced[0].plan.blocks)
    known = fresh or not (formed or planned) or session.stored(question.key, question.version) is not None
    if not known and (formed or _has_older_plan(session, text, options)):
        older = price_at(session, text, options, older=True)
        if session.stored(older.key, older.version) is not None:
            return older
    if not question.enough and (fresh or session.stored(question.key, question.version) is None):
        question = price_at(session, text, options, raised=True)
    return question


def _has_older_form(question: PricedQuestion | FindingQuestion, options: QuestionOptions) -> bool:
    """Whether the question was priced otherwise once: its quantiles, or what its caps lost."""
    blocks = question.priced[0].plan.blocks
    quantiles = any(one.kind == "quantile" for block in blocks for one in block.measurements)
    return quantiles or options.bias


def _has_older_plan(session: Session, text: str, options: QuestionOptions) -> bool:
    """Whether the question was planned otherwise once."""
    try:
        _, plan, _ = plan_question(session, text, options)
        _, older, _ = plan_question(session, text, options, older=True)
    except Refused:
        return False
    return older.blocks != plan.blocks


def _reads_conditions(block: BlockPlan) -> bool:
    """Whether rows are told apart, or conditions and arms stand in it: nothing else was ever planned otherwise."""
    computed = any(isinstance(tally.argument, Call) or tally.filter is not None for tally in block.tallies)
    return computed or _tells_apart(block.relation)


def _tells_apart(relation: AnyRelation) -> bool:
    return isinstance(relation, (Filter, Distinct, UnitGroup)) or any(_tells_apart(one) for one in inputs_of(relation))


def price_at(
    session: Session, text: str, options: QuestionOptions, *, raised: bool = False, older: bool = False
) -> PricedQuestion | FindingQuestion:
    """Return the question with its price, or refuse.

    raised   refuse a cost below the least spend, and raise an accuracy to it; otherwise the price says that it is too low
    older    as it was planned before caps were proved and expressions narrowed, and priced before quantiles' ends were
             tested: an answer that was paid for then is given again for nothing

    Where its caps follow from its own rows, which nobody counted yet, a tenth of the spend counts them first. An accuracy
    speaks of the caps of its tables then, as a price must be known before anything is counted.

    Claim   What is charged is never below the least, however little of a grant the noise needs.
    """
    key = _price_key(session, text, options, raised=raised, older=older)
    known = None if key is None else session.prices.get(session.schema, key)
    if known is not None:
        return known.at(session)
    confidence = confidence_level(options.confidence)
    options = replace(options, caps=None) if options.caps == FIND else options
    question, plan, compiled = plan_question(session, text, options, older=older)
    options = _with_statement(options, question)
    if not options.given:
        raise _cost_not_given(session, plan, options, confidence)
    chosen = options.caps is not None or question.options.rows is not None or question.options.groups is not None
    needs: list[BlockNeeds] = []
    ahead: tuple[str, ...] = ()
    if session.schema.found and not chosen:
        from curador.curator.finding import caps_known, first_lines, needs_of, price_finding

        needs = needs_of(session, plan)
        ahead = first_lines(session, needs, options)
        if any(needs) and options.accuracy is None:
            finding = price_finding(session, plan, options, needs, text, confidence)
            given = session.stored(finding.key, finding.version) is not None
            if (given and not raised) or (finding.enough and finding.missing):
                return finding
        caps = caps_known(session, plan, needs)
        if caps is not None:
            question, plan, compiled = plan_question(session, text, options, caps=caps, older=older)
    main = priced_plan(plan, options, session.limits, session.share)
    if older:
        main = price(plan, main.kind, main.amount, main.delta, _weights(plan, options.weights), tested=False)
    notes = _accuracy_notes(plan, options)
    enough = is_enough(main, session.least)
    if raised and not enough:
        main, told = _raise_to_least(session, plan, options, confidence)
        notes = (*notes, *told)
    made = put_together(session, question, main, compiled, options, needs, text, confidence, older=older)
    made = replace(made, enough=enough or raised, notes=notes, ahead=ahead)
    if key is not None and not any(needs):  # what was counted of other questions' rows changes nothing of it
        session.prices.keep(session.schema, key, made)
    return made


def _price_key(
    session: Session, text: str, options: QuestionOptions, *, raised: bool, older: bool
) -> tuple[object, ...] | None:
    """Return what the price of a question is a function of, for one schema; None where it is not looked up."""
    plain = options.plain
    if type(text) is not str or plain is None:
        return None
    return text, raised, older, session.share, session.version, session.visible_tables, session.study.digest, plain


def put_together(
    session: Session,
    question: Question,
    main: Priced,
    compiled: Compiled,
    options: QuestionOptions,
    needs: Sequence[BlockNeeds],
    text: str,
    confidence: Fraction,
    *,
    older: bool = False,
) -> PricedQuestion:
    """Return a priced plan as a question to spend on: with bias estimates, identity, cost and what is known of its caps."""
    version = session.version
    priced = (main,) if not options.bias else _with_bias(session, question, main, options, older=older)
    if len(priced) > 1:
        compiled = session.engine.compile([block for one in priced for block in one.plan.blocks])
    identities = tuple(identity(one) for one in priced)
    survey, left = None, ()
    if session.schema.found:
        from curador.curator.finding import left_out_lines, survey_of

        survey, left = survey_of(session, main.plan), left_out_lines(session, main.plan, needs)
    key = question_key(identities, study_digest=session.study.digest, data_version=version, survey=survey)
    cost = cost_of(priced).most(session.least)
    return PricedQuestion(
        session, text, priced, identities, key, cost, confidence, version, compiled, survey=survey, left=left
    )


def plan_question(
    session: Session,
    text: str,
    options: QuestionOptions,
    *,
    caps: tuple[RequestedCaps, ...] | None = None,
    older: bool = False,
) -> tuple[Question, Plan, Compiled]:
    """Return the question's tree, its plan and what the engine runs for it, or refuse; the latest ones are kept.

    caps   of each block, where they were found from its own rows
    older  planned as once, for the key of what was paid for then

    Dashboards ask again. What the engine could not run is refused here, before it has a price.
    """
    from curador.plan.build import build_plan

    schema = session.schema
    plain = options.caps is None and options.bounds is None and type(text) is str and type(options.dialect) is str
    key = (text, options.dialect, session.visible_tables, caps, older)
    found = session.plans.get(schema, key) if plain else None
    if found is not None:
        return found
    question = parse_text(session, text, options.dialect)
    asked = _requested_caps(options.caps) if caps is None else caps
    plan = build_plan(question, replace(schema, older=older), asked=asked, bounds=_bounds(options.bounds))
    compiled = session.engine.compile(plan.blocks)
    if plain:
        session.plans.keep(schema, key, (question, plan, compiled))
    return question, plan, compiled


def parse_text(session: Session, text: str, dialect: str) -> Question:
    """Return the question's tree, or refuse."""
    from curador.query.sql import parse

    if type(text) is not str:
        raise InvalidQuery.must_be("the question", "SQL as text", type(text).__name__)
    return parse(text, session.visible_schema, dialect=dialect)  # another table is one that does not exist


def _with_bias(
    session: Session, question: Question, main: Priced, options: QuestionOptions, *, older: bool
) -> tuple[Priced, ...]:
    """Return the question with 95 % of its grant and the bias estimates with 5 %; an accuracy keeps all of its own."""
    from curador.answers.bias import bias_questions, with_wider_caps
    from curador.plan.build import build_plan

    wider = replace(with_wider_caps(session.schema, main.plan), older=older)
    capped = RequestedCaps(rows=main.plan.blocks[0].cap.rows)
    plans = [
        build_plan(bias_question, wider, asked=None if isinstance(bias_question.blocks[0].relation, UnitGroup) else capped)
        for bias_question in bias_questions(question, main.plan, session.schema, values=not older)
    ]
    kind, amount = main.kind, main.amount
    if options.accuracy is None:
        extra = amount * BIAS_SHARE
        weights = {name: rational(value, "weights") for name, value in (options.weights or {}).items()}
        main = price(main.plan, kind, down_to_tick(amount - extra), main.delta, weights, tested=not older)
    else:
        extra = amount * BIAS_SHARE / (1 - BIAS_SHARE)
    counts = [sum(len(block.measurements) for block in plan.blocks) for plan in plans]
    amounts = [down_to_tick(extra * count / sum(counts)) for count in counts]
    return main, *(price(plan, kind, own) for plan, own in zip(plans, amounts, strict=True))


def _raise_to_least(
    session: Session, plan: Plan, options: QuestionOptions, confidence: Fraction
) -> tuple[Priced, tuple[str, ...]]:
    """Return the plan with the least spend, where an accuracy costs less; any other cost below it is refused."""
    from curador.curator.previewing import expected_errors

    least = session.study.least_spend
    at_least = replace(options, spend=share_text(least), rho=None, epsilon=None, accuracy=None, at=None)
    priced = priced_plan(plan, at_least, session.limits, session.share)
    gives = "; ".join(expected_error.sentence() for expected_error in expected_errors(priced, confidence))
    if options.accuracy is None:
        (name,) = options.given
        refuse_too_little(name, getattr(options, name), session.least, least, gives)
    note = f"the accuracy costs less than the least spend ({share_text(least)} of your limit) and was raised to it: {gives}"
    return priced, (note,)


def _cost_not_given(session: Session, plan: Plan, options: QuestionOptions, confidence: Fraction) -> InvalidParameter:
    """Return the refusal of a question without a cost, with what 5 % would give."""
    from curador.curator.previewing import expected_errors

    priced = priced_plan(plan, replace(options, spend="5%"), session.limits, session.share)
    told = "; ".join(expected_error.sentence() for expected_error in expected_errors(priced, confidence))
    rule = 'must be given: spend="5%", rho=, epsilon= or accuracy={…}'
    hint = f'spend="5%" would give {told}.' if told else None
    return InvalidParameter(subject="the cost", rule=rule, got="none of them", hint=hint)


def cost_of(priced: tuple[Priced, ...]) -> Amounts:
    """Return what must be charged. Rounds: up to the tick."""
    costs = [one.cost for one in priced]
    first, delta = (sum((cost[place] for cost in costs), Fraction(0)) for place in (0, 1))
    if priced[0].kind == "pure":
        return Amounts.cost(epsilon=first)
    return Amounts.cost(rho=first, delta=delta)


def _with_statement(options: QuestionOptions, question: Question) -> QuestionOptions:
    """Return the options with what the statement's own clause says about cost."""
    epsilon = question.options.epsilon
    if epsilon is None:
        return options
    if options.given:
        got = f"epsilon in the statement and {' and '.join(options.given)}"
        raise InvalidParameter(subject="the cost", rule="must be given once", got=got)
    return replace(options, epsilon=epsilon)


def _requested_caps(caps: Caps | Mapping[str, int] | str | None) -> RequestedCaps | None:
    if caps is None:
        return None
    if isinstance(caps, str):
        if caps == PREPARED:
            return RequestedCaps(prepared=True)
        raise InvalidParameter.must_be("caps", f'{{"rows": 5}}, "{PREPARED}" or "{FIND}"', caps)
    if isinstance(caps, Caps):
        return RequestedCaps(caps.rows, caps.groups, caps.rows_per_group)
    if not isinstance(cast("object", caps), Mapping):
        raise InvalidParameter.must_be("caps", f'{{"rows": 5}}, or "{PREPARED}"', caps)
    named = dict(caps)
    prepared = named.pop(PREPARED, False)
    for name in named:
        if name not in _CAPS:
            raise InvalidParameter.must_be("caps", f"made of {', '.join(_CAPS)}", name)
    numbers = {name: whole(value, f"caps.{name}") for name, value in named.items()}
    return RequestedCaps(**numbers, prepared=bool(prepared))


def _bounds(bounds: Mapping[str, tuple[Number, Number]] | None) -> dict[str, tuple[Fraction, Fraction]] | None:
    if bounds is None:
        return None
    if not isinstance(cast("object", bounds), Mapping):
        raise InvalidParameter.must_be("bounds", 'of columns, such as {"mean": (0, 100)}', bounds)
    out: dict[str, tuple[Fraction, Fraction]] = {}
    for name, pair in bounds.items():
        ends = list(cast("Any", pair)) if isinstance(cast("object", pair), (tuple, list)) else []
        if len(ends) != 2:
            raise InvalidParameter.must_be(f"bounds[{name!r}]", "a lower and an upper one", pair)
        lower, upper = (rational(end, f"bounds[{name!r}]") for end in ends)
        inside = max(abs(lower), abs(upper)) <= LARGEST[Type.FLOAT]
        require(inside, f"bounds[{name!r}]", f"between {RANGES[Type.FLOAT]}", pair)
        out[name] = lower, upper
    return out

"""How much a question may cost: exactly one of spend, rho, epsilon and accuracy, as a grant of exact amounts.

spend="5%"          of the asker's whole limit (the study's, or the share's), never of what is left: the same question always
                    costs the same, and twenty times 5 % fit
rho=x               refused under a pure budget
epsilon=x           a question that is x-DP by itself: Laplace noise
accuracy={"n": 50}  the smallest amount with which every 95 % interval of column n is at most ± 50

Amounts are rounded down to the ledger's tick. None may be below the owner's least spend, a part of the asker's whole limit;
an accuracy that costs less is raised to it. Everything is a function of the question, the study and the share; nothing
of data, nothing of what others asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn, cast

from curador.curator.show import rounded
from curador.errors import BudgetExceeded, InvalidParameter, NotPrivate, require, sentence
from curador.ledger.amounts import DELTA_TICK, TICK, Amounts, down_to_tick, up_to_tick
from curador.numerics.exact import Number, positive, whole
from curador.plan.error import linear_reach, mean_reach_at
from curador.plan.model import Linear, Mean
from curador.plan.price import Grant, GrantKind, Priced, checked_weights, price
from curador.privacy.losses import LaplaceLoss
from curador.query.tree import Estimated
from curador.study.amounts import read_share, share_text
from curador.study.spelling import Plain

if TYPE_CHECKING:
    from curador.ledger.limits import Limits
    from curador.plan.model import BlockPlan, Estimate, ItemPlan, Plan
    from curador.study.model import Caps

MOST_KEYS = Fraction(1, 10)
"""The largest part of an asker's delta_keys that one question may cost."""

ACCURACY_CONFIDENCE = Fraction(95, 100)
FINENESS = Fraction(1, 1 << 20)
"""How far above the smallest amount that keeps an accuracy the grant may be, relatively."""

_MOST_ROWS = 1 << 62
_WHOLES = 1 << 20  # what needs more than so many times the whole limit is out of reach


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """What an asker says besides the question; exactly one of the first four is given. `Asker.ask` says what each means."""

    spend: str | None = None
    rho: Number | None = None
    epsilon: Number | None = None
    accuracy: Mapping[str, Number] | None = None
    at: Number | None = None
    weights: Mapping[str, Number] | None = None
    caps: Caps | Mapping[str, int] | str | None = None
    bounds: Mapping[str, tuple[Number, Number]] | None = None
    dialect: str = "duckdb"
    confidence: Number = "0.95"
    bias: bool = False

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the costs that were given."""
        return tuple(name for name in ("spend", "rho", "epsilon", "accuracy") if getattr(self, name) is not None)


def priced_plan(plan: Plan, options: QuestionOptions, limits: Limits, share: Fraction) -> Priced:
    """Return the plan with noise that costs at most what was granted.

    Claim   cost ≤ grant, and a grant of s % is at most s % of the asker's limit, each rounded down to the tick.
    Rounds  The grant down.
    """
    if len(options.given) != 1:
        got = " and ".join(options.given) or "none of them"
        raise InvalidParameter(sentence("the cost", "given as one of spend, rho, epsilon and accuracy", Plain(got)))
    require(options.at is None or options.accuracy is not None, "at", "given together with accuracy", options.at)
    weights = _weights(plan, options.weights)
    if options.accuracy is not None:
        return _accurate(plan, options.accuracy, options.at, weights, limits, share)
    return price(plan, grant_of(plan, options, limits, share), weights)


def grant_of(plan: Plan, options: QuestionOptions, limits: Limits, share: Fraction) -> Grant:
    """Return the grant of a spend, a rho or an epsilon."""
    kind, amount, part = amount_of(options, limits, share)
    return _grant(plan, kind, amount, part, limits, share)


def amount_of(options: QuestionOptions, limits: Limits, share: Fraction) -> tuple[GrantKind, Fraction, Fraction]:
    """Return what a spend, a rho or an epsilon buys: the kind, the amount, and its part of the study's whole limit.

    Rounds  The amount down to the tick.
    """
    pure = limits.kind == "pure"
    if options.spend is not None:
        part = read_share(options.spend)
        if part is None:
            rule, hint = "a percentage above 0 % and at most 100 %", 'write spend="5%"'
            raise InvalidParameter(sentence("spend", rule, options.spend, hint))
        amounts = limits.share(part * share)
        return ("pure", amounts.epsilon, part * share) if pure else ("concentrated", amounts.rho, part * share)
    if options.rho is not None:
        asked = positive(options.rho, "rho")
        if pure:
            hint = "give epsilon=, or spend= as a percentage"
            raise NotPrivate(sentence("rho", "absent under a pure budget, which has no rho", options.rho, hint))
        _within_reach(asked, limits.rho_limit, "rho", options.rho)
        return "concentrated", down_to_tick(asked), asked / limits.rho_limit
    asked = positive(options.epsilon, "epsilon")
    _within_reach(asked, limits.epsilon, "epsilon", options.epsilon)
    if pure:
        return "pure", down_to_tick(asked), asked / limits.epsilon
    rho = LaplaceLoss(epsilon=asked).rho
    return "laplace", down_to_tick(asked), Fraction(1) if isinstance(rho, float) else rho / limits.rho_limit


def is_enough(grant: Grant, least: Amounts) -> bool:
    """Whether a grant is not below the least, both in what the ledger counts."""
    if grant.kind == "laplace":
        return LaplaceLoss(epsilon=grant.amount).rho >= least.rho
    return grant.amount >= (least.epsilon if grant.kind == "pure" else least.rho)


def refuse_too_little(name: str, got: object, least: Amounts, least_spend: Fraction, gives: str = "") -> NoReturn:
    """Refuse a cost below the least: one sentence that says the least and, where it is known, what it would give."""
    unit, amount = ("epsilon", least.epsilon) if least.epsilon else ("rho", least.rho)
    part = share_text(least_spend)
    rule = f"at least the study's least spend, {part} of your whole limit ({unit} {rounded(amount, up=True)})"
    raise InvalidParameter(sentence(name, rule, got, f'spend="{part}" would give {gives}.' if gives else None))


def _within_reach(asked: Fraction, whole: Fraction, name: str, got: object) -> None:
    """Refuse what no budget could pay, before its noise is made: there is none so small."""
    if asked > whole * _WHOLES:
        raise BudgetExceeded(sentence(name, f"at most the study's whole limit ({rounded(whole, up=False)})", got))


def _grant(plan: Plan, kind: GrantKind, amount: Fraction, part: Fraction, limits: Limits, share: Fraction) -> Grant:
    """Return the amount, with the same part of delta_keys where keys are private, at most a tenth of the asker's.

    part: of the study's whole limit, so that the same amount is the same question whoever asks.
    """
    require(amount > 0, "the cost", f"at least the ledger's smallest step ({TICK})", "less")
    if kind == "pure" or not any(block.private_keys for block in plan.blocks):
        return Grant(kind, amount)
    keys = down_to_tick(min(part, MOST_KEYS * share) * limits.delta_keys, DELTA_TICK)
    if keys <= 0:
        hint = "declare `values` for the columns of GROUP BY: keys that are known cost no delta"
        raise NotPrivate(f"keys that are selected privately need delta, and this study keeps none for them.\nHint: {hint}.")
    return Grant(kind, amount, keys)


def _named(given: object, name: str, rule: str) -> None:
    """Refuse what is no mapping from names, or an empty one."""
    held: Mapping[object, object] = cast("Mapping[object, object]", given) if isinstance(given, Mapping) else {}
    require(len(held) > 0 and all(isinstance(one, str) for one in held), name, rule, given)


def _weights(plan: Plan, weights: Mapping[str, Number] | None) -> dict[str, Fraction]:
    if weights is not None:
        _named(weights, "weights", 'weights of columns, such as {"n": 2}')
    exact = {name: positive(value, f"weights[{name!r}]") for name, value in (weights or {}).items()}
    checked_weights(plan, exact)
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
        return price(plan, _grant(plan, kind, amount, amount / total, limits, share), weights)

    def kept(amount: Fraction) -> bool:
        priced = at_amount(amount)
        return all(goal.reached(priced) for goal in goals)

    return at_amount(smallest(kept, start=total / 20, most=total * _WHOLES))


@dataclass(frozen=True, slots=True)
class _Goal:
    """One column's error; of a mean, in a group of so many rows."""

    block: int
    estimate: Linear | Mean
    error: Fraction
    rows: int

    def reached(self, priced: Priced) -> bool:
        noises = priced.noises[self.block]
        if isinstance(self.estimate, Linear):
            return linear_reach(self.estimate, noises, ACCURACY_CONFIDENCE) <= self.error
        return mean_reach_at(self.estimate, noises, self.rows, ACCURACY_CONFIDENCE) <= self.error


def _goals(plan: Plan, accuracy: Mapping[str, Number], at: Number | None) -> list[_Goal]:
    _named(accuracy, "accuracy", 'errors of columns, such as {"n": 50}')
    rows = None if at is None else whole(at, "at")
    require(rows is None or rows <= _MOST_ROWS, "at", "a number of rows of at most 2^62", at)
    names = dict.fromkeys(item.name for block in plan.blocks for item in block.items if item.released)
    goals: list[_Goal] = []
    for name, value in accuracy.items():
        error = positive(value, f"accuracy[{name!r}]")
        if name not in names:
            raise InvalidParameter(sentence("accuracy", f"of released columns ({', '.join(names)})", name))
        for place, block in enumerate(plan.blocks):
            own = [item for item in block.items if item.name == name and item.released]
            goals += [_goal(place, _estimate(block, item), name, error, rows) for item in own]
    return goals


def _estimate(block: BlockPlan, item: ItemPlan) -> Estimate | None:
    return block.estimates[item.expression.index] if isinstance(item.expression, Estimated) else None


def _goal(place: int, estimate: Estimate | None, name: str, error: Fraction, rows: int | None) -> _Goal:
    if isinstance(estimate, Linear):
        return _Goal(place, estimate, error, 0)
    if not isinstance(estimate, Mean):
        hint = "only counts, sums and means have an error that is known without data; give spend= instead"
        raise InvalidParameter(sentence("accuracy", "of a count, a sum or a mean", name, hint))
    if rows is None:
        hint = f"the error of {name} depends on how many rows a group has: at=1000 says for which size it is meant"
        raise InvalidParameter(sentence("at", "given with the accuracy of a mean", Plain("nothing"), hint))
    return _Goal(place, estimate, error, rows)


def smallest(kept: Callable[[Fraction], bool], *, start: Fraction, most: Fraction) -> Fraction:
    """Return an amount that is kept, at most a millionth part above one that is not; a multiple of the tick."""
    high = up_to_tick(start)
    low = Fraction(0)
    while not kept(high):
        low, high = high, high * 4
        if high > most:
            raise InvalidParameter(
                "accuracy must be within reach of the budget; got far less error than all of it could buy."
            )
    while high - low > max(high * FINENESS, TICK):
        middle = down_to_tick((low + high) / 2 if low else high / 4)
        if not low < middle < high:
            break
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high

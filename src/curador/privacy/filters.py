"""May this loss still be spent? The only place that decides.

The next question is chosen after seeing the last answer, and so is its loss. Ordinary composition is about
losses fixed beforehand; a filter's theorem is about any choice, if what decides was fixed at creation:

PureFilter           Σ ε ≤ limit
ConcentratedFilter   Σ ρ ≤ rho_limit and Σ δ ≤ delta_keys
RenyiFilter          Σ ζ(α) ≤ limit at one order α

Two natural relaxations are false, and the tests keep an adversary against each: moving δ between keys and
conversion as one goes reaches 1.204 δ; admitting what fits at some order of a grid reaches 1.964 δ. No other
reading of a loss decides.

A filter is a value: charging returns a new one, a refusal changes nothing. Amounts are exact rationals.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from curador.errors import BudgetExceeded, InvalidParameter, NotPrivate, require
from curador.numerics.exact import Number, at_least_zero, open_probability, positive, rational
from curador.numerics.roots import bisect
from curador.numerics.rounding import float_up, log_up, up
from curador.privacy.adjacency import Adjacency, maybe_adjacency
from curador.text import rounded_text

if TYPE_CHECKING:
    from collections.abc import Iterable

ZERO = Fraction(0)


class Chargeable(Protocol):
    """What a filter asks of a loss: upper bounds, None or +∞ where there is none."""

    @property
    def adjacency(self) -> Adjacency | None:
        """The neighbours that the bounds are about; None: whichever the sensitivity was computed for."""

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The ε of pure differential privacy."""

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """(ρ, δ): δ-approximately ρ-zCDP."""

    def renyi(self, alpha: Number) -> float:
        """Return the Rényi divergence of order α, of either direction."""
        ...


class ConcentratedAmounts(NamedTuple):
    """An amount of δ-approximate ρ-zCDP."""

    rho: Fraction
    delta: Fraction


NOTHING = ConcentratedAmounts(ZERO, ZERO)


@dataclass(frozen=True, slots=True, init=False)
class PureFilter:
    """Admits losses while their ε add up to at most the limit.

    Claim   Whatever is charged, however it is chosen, is limit-differentially private together.
    Needs   Every loss is charged before its mechanism sees data, and stays charged if that fails.
    Rounds  Exact.
    Source  [RRUV16]
    """

    limit: Fraction
    spent: Fraction
    adjacency: Adjacency | None

    def __init__(self, limit: Number, *, spent: Number = ZERO, adjacency: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "limit", positive(limit, "limit"))
        object.__setattr__(self, "spent", _require_within(spent, self.limit, "spent"))
        object.__setattr__(self, "adjacency", maybe_adjacency(adjacency))

    @property
    def left(self) -> Fraction:
        """What may still be spent. Rounds: exact."""
        return self.limit - self.spent

    def fits(self, loss: Chargeable) -> bool:
        """Whether the loss may be charged; what has no bound, or other neighbours, is refused instead."""
        return self._asked(loss) <= self.left

    def charge(self, loss: Chargeable) -> PureFilter:
        """Return the filter after the loss, or refuse and change nothing."""
        asked = self._asked(loss)
        if asked > self.left:
            raise _no_room("epsilon", asked, self.left, self.limit)
        return replace(self, spent=self.spent + asked, adjacency=_join_adjacency(self.adjacency, loss))

    def epsilon(self) -> float:
        """The ε spent so far, for display. Rounds: up."""
        return float_up(self.spent)

    def _asked(self, loss: Chargeable) -> Fraction:
        _join_adjacency(self.adjacency, loss)
        return _amount(loss.pure_epsilon, "epsilon of pure privacy")


@dataclass(frozen=True, slots=True, init=False)
class ConcentratedFilter:
    """Admits losses while their ρ add up to at most rho_limit and their δ to at most delta_keys.

    Claim   Whatever is charged, however it is chosen, is delta_keys-approximately rho_limit-zCDP together, so
            (epsilon_limit, delta_limit)-differentially private: delta_keys + delta_conv = delta_limit.
    Needs   As PureFilter. The limits never change; moving δ from one to the other as one goes is not private.
    Rounds  Exact; rho_limit was rounded down.
    Source  [WRRW23] for the filter, [CKS20, Prop. 12] and [BS16] for its conversion
    """

    epsilon_limit: Fraction
    delta_limit: Fraction
    delta_keys: Fraction
    rho_limit: Fraction
    spent: ConcentratedAmounts
    adjacency: Adjacency | None

    def __init__(
        self,
        *,
        epsilon_limit: Number,
        delta_limit: Number,
        delta_keys: Number,
        rho_limit: Number,
        spent: tuple[Number, Number] = NOTHING,
        adjacency: Adjacency | str | None = None,
    ) -> None:
        """Restore a filter from its parts; `create` makes a new one."""
        object.__setattr__(self, "epsilon_limit", positive(epsilon_limit, "epsilon_limit"))
        object.__setattr__(self, "delta_limit", open_probability(delta_limit, "delta_limit"))
        object.__setattr__(self, "delta_keys", _share(delta_keys, self.delta_limit))
        object.__setattr__(self, "rho_limit", positive(rho_limit, "rho_limit"))
        proved = _converts(self.rho_limit, self.epsilon_limit, self.delta_conv)
        require(proved, "rho_limit", "one that converts into at most epsilon_limit", rho_limit)
        rho, delta = spent
        amounts = ConcentratedAmounts(
            _require_within(rho, self.rho_limit, "rho"), _require_within(delta, self.delta_keys, "delta")
        )
        object.__setattr__(self, "spent", amounts)
        object.__setattr__(self, "adjacency", maybe_adjacency(adjacency))

    @classmethod
    def create(
        cls,
        *,
        epsilon: Number,
        delta: Number,
        delta_keys: Number | None = None,
        adjacency: Adjacency | str | None = None,
    ) -> ConcentratedFilter:
        """Return a new filter for an (ε, δ) budget; `delta_keys` of it, half by default, is for what costs δ.

        Claim   rho_limit converts into at most ε at δ − delta_keys.
        Rounds  rho_limit down.
        Source  [CKS20, Prop. 12]
        """
        budget, failure = positive(epsilon, "epsilon"), open_probability(delta, "delta")
        keys = _share(failure / 2 if delta_keys is None else delta_keys, failure)
        from curador.privacy.convert import rho_for

        return cls(
            epsilon_limit=budget,
            delta_limit=failure,
            delta_keys=keys,
            rho_limit=rho_for(epsilon=budget, delta=failure - keys),
            adjacency=adjacency,
        )

    @property
    def delta_conv(self) -> Fraction:
        """The part of δ that turns ρ into ε. Rounds: exact."""
        return self.delta_limit - self.delta_keys

    @property
    def left(self) -> ConcentratedAmounts:
        """What may still be spent. Rounds: exact."""
        return ConcentratedAmounts(self.rho_limit - self.spent.rho, self.delta_keys - self.spent.delta)

    def fits(self, loss: Chargeable) -> bool:
        """Whether the loss may be charged; what has no bound, or other neighbours, is refused instead."""
        asked = self._asked(loss)
        return asked.rho <= self.left.rho and asked.delta <= self.left.delta

    def charge(self, loss: Chargeable) -> ConcentratedFilter:
        """Return the filter after the loss, or refuse and change nothing."""
        asked, left = self._asked(loss), self.left
        if asked.rho > left.rho:
            raise _no_room("rho", asked.rho, left.rho, self.rho_limit)
        if asked.delta > left.delta:
            raise _no_room("delta", asked.delta, left.delta, self.delta_keys)
        total = ConcentratedAmounts(self.spent.rho + asked.rho, self.spent.delta + asked.delta)
        return replace(self, spent=total, adjacency=_join_adjacency(self.adjacency, loss))

    def epsilon(self) -> float:
        """The ε that the ρ spent so far converts into at delta_conv. Rounds: up.

        For display: the guarantee is epsilon_limit. Stopping because of this number is a choice of its own.
        """
        from curador.privacy.convert import rho_to_epsilon

        return rho_to_epsilon(self.spent.rho, delta=self.delta_conv) if self.spent.rho else 0.0

    def _asked(self, loss: Chargeable) -> ConcentratedAmounts:
        _join_adjacency(self.adjacency, loss)
        bound = loss.concentrated
        if bound is None:
            raise NotPrivate("the loss has no known bound of zero-concentrated differential privacy")
        rho, delta = bound
        return ConcentratedAmounts(_amount(rho, "rho"), _amount(delta, "delta"))


@dataclass(frozen=True, slots=True, init=False)
class RenyiFilter:
    """Admits losses while their Rényi divergences of one order α add up to at most the limit.

    Claim   Whatever is charged, however it is chosen, has together a divergence of order α within the limit.
    Needs   As PureFilter. The order is fixed here; asking each time whether some order fits is not private.
    Rounds  Divergences are floats rounded up; their sum is exact.
    Source  [FZ21]
    """

    alpha: Fraction
    limit: Fraction
    spent: Fraction
    adjacency: Adjacency | None

    def __init__(
        self, *, alpha: Number, limit: Number, spent: Number = ZERO, adjacency: Adjacency | str | None = None
    ) -> None:
        object.__setattr__(self, "alpha", _order(alpha))
        object.__setattr__(self, "limit", positive(limit, "limit"))
        object.__setattr__(self, "spent", _require_within(spent, self.limit, "spent"))
        object.__setattr__(self, "adjacency", maybe_adjacency(adjacency))

    @classmethod
    def create(
        cls, *, epsilon: Number, delta: Number, alpha: Number, adjacency: Adjacency | str | None = None
    ) -> RenyiFilter:
        """Return a new filter for an (ε, δ) budget at the order α.

        Claim   (α, limit) converts into at most ε at δ.
        Rounds  The limit down.
        Source  [ALCKS20]
        """
        budget, failure = positive(epsilon, "epsilon"), open_probability(delta, "delta")
        return cls(alpha=alpha, limit=_renyi_limit(_order(alpha), budget, failure), adjacency=adjacency)

    @property
    def left(self) -> Fraction:
        """What may still be spent. Rounds: exact."""
        return self.limit - self.spent

    def fits(self, loss: Chargeable) -> bool:
        """Whether the loss may be charged; what has no bound, or other neighbours, is refused instead."""
        return self._asked(loss) <= self.left

    def charge(self, loss: Chargeable) -> RenyiFilter:
        """Return the filter after the loss, or refuse and change nothing."""
        asked = self._asked(loss)
        if asked > self.left:
            raise _no_room(f"zeta of order {self.alpha}", asked, self.left, self.limit)
        return replace(self, spent=self.spent + asked, adjacency=_join_adjacency(self.adjacency, loss))

    def epsilon(self, *, delta: Number) -> float:
        """The ε that the divergence spent so far converts into at δ, for display. Rounds: up."""
        from curador.privacy.convert import renyi_to_epsilon

        failure = open_probability(delta, "delta")
        return renyi_to_epsilon(self.alpha, self.spent, delta=failure) if self.spent else 0.0

    def _asked(self, loss: Chargeable) -> Fraction:
        _join_adjacency(self.adjacency, loss)
        return _divergence(loss.renyi(self.alpha), self.alpha)


Filter: TypeAlias = PureFilter | ConcentratedFilter | RenyiFilter


def adaptive_pure_epsilon(epsilons: Iterable[Number], *, delta: Number) -> float:
    """Return the ε of pure mechanisms chosen one after the other, each in view of the answers before.

    Claim   With V = Σ ε², stopping before √(2V log 1/δ) + V/2 passes a limit fixed in advance keeps
            (limit, δ)-differential privacy; the value is that bound at the V given.
    Rounds  Up.
    Source  [WRRW23]
    """
    variance = sum((at_least_zero(epsilon, "epsilon") ** 2 for epsilon in epsilons), ZERO)
    failure = open_probability(delta, "delta")
    root = _root_up(float_up(2 * variance), log_up(1 / failure))
    return up(root + float_up(variance / 2)) if variance else 0.0


def odometer_epsilon(variance: Number, *, nu: Number, delta: Number) -> float:
    """Return how large the privacy loss may be after pure mechanisms with Σ ε² = V, at all times at once.

    Claim   With probability 1 − δ the loss stays below V/2 + √((V + ν) log((V + ν)/(ν δ²))) for ever, so it
            may be read at any time, and stopping may depend on it.
    Needs   ν > 0 is fixed in advance; the bound is best near V = ν.
    Rounds  Up.
    Source  [WRRW23]
    """
    spent, weight = at_least_zero(variance, "variance"), positive(nu, "nu")
    failure = open_probability(delta, "delta")
    root = _root_up(float_up(spent + weight), log_up((spent + weight) / (weight * failure**2)))
    return up(float_up(spent / 2) + root)


def _root_up(first: float, second: float) -> float:
    return up(math.sqrt(up(first * second)))


def _renyi_limit(order: Fraction, budget: Fraction, failure: Fraction) -> Fraction:
    """Return the largest ζ found such that (α, ζ) converts into at most ε at δ."""
    from curador.privacy.convert import renyi_to_epsilon

    def converts(zeta: float) -> bool:
        reached = renyi_to_epsilon(order, Fraction(zeta), delta=failure)
        return math.isfinite(reached) and Fraction(reached) <= budget

    beyond = 1.0 + float_up(budget)
    while converts(beyond):
        beyond *= 2.0
    limit = bisect(converts, fails_at=beyond, holds_at=0.0)[1]
    rule = f"an order at which some divergence converts into epsilon {budget}"
    require(limit > 0, "alpha", rule, order, "a higher order, or a larger delta")
    return Fraction(limit)


@functools.lru_cache(maxsize=256)
def _converts(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether ρ-zCDP gives (ε, δ); remembered, as every charge asks it again."""
    from curador.privacy.convert import rho_to_epsilon

    reached = rho_to_epsilon(rho, delta=delta)
    return math.isfinite(reached) and Fraction(reached) <= epsilon


def _amount(bound: object, name: str) -> Fraction:
    """Return an exact amount; a float, a negative or an absent one would spend less than it should."""
    if isinstance(bound, bool) or not isinstance(bound, (int, Fraction)) or bound < 0:
        raise NotPrivate(f"the loss has no known {name} (an exact rational of at least 0); got {bound}")
    return Fraction(bound)


def _divergence(bound: object, order: Fraction) -> Fraction:
    """Return the float as the exact rational that it is; NaN and infinities are no bound."""
    if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not 0 <= bound < math.inf:
        raise NotPrivate(f"the loss has no known finite Rényi divergence of order {order}; got {bound}")
    return Fraction(bound)


def _join_adjacency(adjacency: Adjacency | None, loss: Chargeable) -> Adjacency | None:
    """Return the one adjacency of the filter and the loss."""
    other = maybe_adjacency(loss.adjacency)
    if adjacency is not None and other is not None and adjacency is not other:
        raise InvalidParameter(
            subject="the loss",
            rule=f"must be about the filter's neighbours ({adjacency})",
            got=str(other),
            hint="an add_or_remove_one loss becomes one for replace_one by .group(2).",
        )
    return adjacency or other


def _order(alpha: Number) -> Fraction:
    order = rational(alpha, "alpha")
    require(order > 1, "alpha", "above 1", alpha)
    return order


def _require_within(spent: Number, limit: Fraction, name: str) -> Fraction:
    amount = at_least_zero(spent, name)
    require(amount <= limit, name, f"at most the limit ({limit})", spent)
    return amount


def _share(delta_keys: Number, delta: Fraction) -> Fraction:
    share = at_least_zero(delta_keys, "delta_keys")
    hint = "what is left of delta turns rho into epsilon"
    require(share < delta, "delta_keys", f"below delta ({delta})", delta_keys, hint)
    return share


def _no_room(name: str, asked: Fraction, left: Fraction, limit: Fraction) -> BudgetExceeded:
    """The refusal in one sentence. Rounds: what there is down, what is asked up, so that the sentence is true.

    Ratios that are short enough are written as they are.
    """
    shown = [_short(left, up=False), _short(limit, up=False), _short(asked, up=True)]
    return BudgetExceeded(subject=name, rule=f"must be at most {shown[0]}, what is left of {shown[1]}", got=shown[2])


def _short(amount: Fraction, *, up: bool) -> str:
    return str(amount) if len(str(amount)) <= 16 else rounded_text(amount, up=up, digits=6)

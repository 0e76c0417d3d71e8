"""The Rényi reading: D_α of a loss for every order α in [1, ∞], from above, both directions.

log E_P[e^((α−1)L)] = (α − 1) D_α, so the curve is the laws' moment function on the real line. At α = 1 closed forms of the
mean loss; at α = ∞ the pure ε. An infinite loss of any probability makes every order infinite; conversions to (ε, δ)
therefore use `curve`, which sets that probability apart.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, overload

import numpy as np

from curador.errors import InvalidParameter, require
from curador.numerics.exact import Number, rational
from curador.numerics.rounding import UNIT, float_up, up
from curador.numerics.tilted.moments import Total
from curador.privacy.laws.finite import SurvivalLaw
from curador.privacy.laws.resolve import directions_of, sides
from curador.privacy.loss import RENYI, Composed, Loss, parts_of
from curador.privacy.rules import AddsToCurve, Curve, cut_bound, mean_loss, own_curve, renyi_stand_in

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray

_NEAR_ONE = 1e-7


def curve(loss: Loss) -> Curve:
    """Return the Rényi curve of the finite part of a loss.

    Claim   For α > 1: D_α(P given a finite loss ‖ Q) is at most divergence(α), in both directions; so δ(ε) is at most
            P[L = ∞] plus what the divergence converts into.
    Rounds  Up. Source: [Mir17, Prop. 1] for adaptive composition.
    """
    loss = _stood_in(loss)
    lawful: list[tuple[Loss, int]] = []
    others: dict[str, tuple[AddsToCurve, list[tuple[Loss, int]]]] = {}
    for record, count in parts_of(loss):
        add = own_curve(record)
        own = lawful if add is None else others.setdefault(type(record).__name__, (add, []))[1]
        own.append((record, count))
    found = _curve_of_laws(Composed(lawful) if others else loss)
    for name in sorted(others):  # an order of kinds that is not that of the records
        add, records = others[name]
        found = add(found, records)
    return found


def _curve_of_laws(loss: Loss) -> Curve:
    directions = directions_of(loss)
    gathered = [sides(loss, direction)[0] for direction in directions]
    totals = [side.total() for side in gathered]
    finite_parts = [_without_survival(total) for total, _ in totals]
    infinite = max(chance.upper for _, chance in totals)
    # given a finite loss, P's density is 1/(1 − P[∞]) times larger: the divergence is that of the law given so
    lift = -math.log1p(-infinite) * (1 + 8 * UNIT) if infinite < 1.0 else math.inf

    def divergence(alpha: FloatArray) -> FloatArray:
        theta = np.asarray(alpha, dtype=np.float64) - 1.0
        finite = np.isfinite(theta) & (theta > 0.0)
        safe = np.where(finite, theta, 1.0)
        worst = np.zeros_like(safe)
        for side, total in zip(gathered, finite_parts, strict=True):
            moment = total.log_moment(safe) if total.families else np.zeros_like(safe)
            moment = moment + side.rho * safe * (safe + 1.0) * (1.0 + 8 * UNIT)
            worst = np.maximum(worst, moment / safe * (1.0 + 4 * UNIT))
        known = all(side.rho == 0.0 for side in gathered)
        top = max(total.top if total.families else 0.0 for total in finite_parts) if known else math.inf
        return np.where(finite, np.minimum(worst, top), top) + lift

    return Curve(divergence, Fraction(infinite))


def _stood_in(loss: Loss) -> Loss:
    """The loss whose curve is taken: the loss itself unless the curve of another record is the better one."""
    parts = parts_of(loss)
    others = [renyi_stand_in(record) for record, _ in parts]
    if all(other is None for other in others):
        return loss
    return Composed([(other or record, count) for (record, count), other in zip(parts, others, strict=True)])


def _without_survival(total: Total) -> Total:
    return Total(tuple(family for family in total.families if not isinstance(family, SurvivalLaw)))


@overload
def renyi(loss: Loss, alpha: Number) -> float: ...
@overload
def renyi(loss: Loss, alpha: FloatArray) -> FloatArray: ...
@RENYI.answered_by
def renyi(loss: Loss, alpha: Number | FloatArray) -> float | FloatArray:
    """Return an upper bound of D_α, one value an order. Rounds: up."""
    if isinstance(alpha, np.ndarray):
        orders = np.asarray(alpha, dtype=np.float64)
        require(bool(np.all(orders >= 1.0)), "alpha", "orders of at least 1", alpha)
        return np.array([_single(loss, float(order)) for order in orders.ravel()]).reshape(orders.shape)
    return _single(loss, order_of(alpha))


def order_of(alpha: object) -> float:
    """Return the order as a float; infinity may be given as math.inf or "inf"."""
    if alpha in (math.inf, "inf"):
        return math.inf
    exact = rational(alpha, "alpha")
    if exact < 1:
        raise InvalidParameter.must_be("alpha", "at least 1", alpha)
    return float(exact)


def _single(loss: Loss, alpha: float) -> float:
    pure = loss.pure_epsilon
    if math.isinf(alpha):
        return math.inf if pure is None else float_up(pure)
    bounds = [(record, count, cut_bound(record)) for record, count in parts_of(loss)]
    if any(bound is not None for _, _, bound in bounds):  # a curve would count the tails that were cut off as infinite
        rest = Composed([(record, count) for record, count, bound in bounds if bound is None])
        return up(_single(rest, alpha) + math.fsum(n * bound(alpha) for _, n, bound in bounds if bound is not None), 4)
    reading = curve(loss)
    if reading.infinite > 0:
        return math.inf
    if alpha == 1.0:
        return _mean(loss, reading)
    value = float(reading.divergence(np.array([alpha]))[0])
    return value if pure is None else min(value, float_up(pure))


def _mean(loss: Loss, reading: Curve) -> float:
    total = 0.0
    for record, count in parts_of(loss):
        single = mean_loss(record)
        if single is None:  # D_1 ≤ D_α for every α > 1
            return float(reading.divergence(np.array([1.0 + _NEAR_ONE]))[0])
        total = up(total + up(count * single, 2))
    return total

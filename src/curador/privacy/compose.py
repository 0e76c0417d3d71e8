"""Composition, parallel composition, groups and subsamples of plain epsilons and deltas.

Exact results are Fractions; rounded ones are floats, up for what is lost and down for what may be spent.

    basic           sums: any mechanisms, also chosen adaptively
    advanced        DRV and KOV closed forms; `optimal_delta`, `optimal_epsilon` are never worse
    optimal_*       the exact composition of `count` equal pure (or approximate) mechanisms, as certified bounds
    parallel        disjoint cells; groups: k people instead of one; subsample: a secret share of the records

The textbook forms carry their conditions: outside of them they are refused, because there they are false.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from curador.errors import InvalidParameter, NotPrivate, require, sentence
from curador.numerics.exact import Number, at_least_zero, open_probability, positive, probability, rational, whole
from curador.numerics.rounding import UNIT, down, float_down, float_up, up
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, Adjacency, as_adjacency
from curador.privacy.binomial import least_epsilon, log_delta
from curador.privacy.gaussian import log_of

if TYPE_CHECKING:
    from collections.abc import Iterable


# ---- sums ----------------------------------------------------------------------------------------------------------


def basic(epsilons: Iterable[Number], deltas: Iterable[Number] | None = None) -> tuple[Fraction, Fraction]:
    """Return the sums (epsilon, delta) of several mechanisms.

    Claim   Mechanisms that are (epsilon_i, delta_i)-private are (Σ epsilon_i, Σ delta_i)-private together, also when
            each is chosen after seeing the answers before it.
    Needs   One delta an epsilon; none at all means 0. A total delta of 1 or more is refused.
    Rounds  Exact.
    Source  [DR14]
    """
    losses = [at_least_zero(value, "epsilons") for value in epsilons]
    slacks = [probability(value, "deltas") for value in deltas] if deltas is not None else []
    require(deltas is None or len(slacks) == len(losses), "deltas", "as many as epsilons", len(slacks))
    return sum(losses, Fraction(0)), _meaningful(sum(slacks, Fraction(0)))


def advanced(epsilon: Number, *, count: Number, delta: Number, delta_prime: Number) -> tuple[float, Fraction]:
    """Return (epsilon', delta') of `count` (epsilon, delta)-private mechanisms by the theorem of Dwork et al.

    Claim   (min(k ε, ε √(2k ln(1/δ')) + k ε (e^ε − 1)), k δ + δ'), also adaptively.
    Needs   0 < delta_prime < 1; the total delta stays below 1.
    Rounds  Up.
    Source  [DRV10]
    """
    times, slack = whole(count, "count"), probability(delta, "delta")
    bound = drv_epsilon(epsilon, count=times, delta_prime=delta_prime)
    total = _meaningful(times * slack + open_probability(delta_prime, "delta_prime"))
    return min(bound, float_up(times * at_least_zero(epsilon, "epsilon"))), total


def drv_epsilon(epsilon: Number, *, count: Number, delta_prime: Number) -> float:
    """Return ε √(2k ln(1/δ')) + k ε (e^ε − 1), the closed form alone. It exceeds k ε from moderate ε on.

    Claim   `count` epsilon-DP mechanisms are (result, delta_prime)-private together, also adaptively.
    Rounds  Up.
    Source  [DRV10]
    """
    loss, times, log_inverse = _parts(epsilon, count, delta_prime, "delta_prime")
    if loss > 700.0:
        return math.inf
    return up(_spread(loss, times, log_inverse) + times * loss * math.expm1(loss), up(16 + 2 * loss))


def advanced_kov(epsilon: Number, *, count: Number, delta: Number, delta_prime: Number) -> tuple[float, float]:
    """Return (epsilon', delta') of `count` (epsilon, delta)-private mechanisms by the closed forms of Kairouz et al.

    Claim   (least of k ε and the two forms of `kov_epsilon`, 1 − (1 − δ)^k (1 − δ')), also adaptively.
    Needs   0 < delta_prime < 1.
    Rounds  Up.
    Source  [KOV15, Thm. 3.4]
    """
    times, slack = whole(count, "count"), probability(delta, "delta")
    plain = kov_epsilon(epsilon, count=times, delta_prime=delta_prime, form="plain")
    sharp = kov_epsilon(epsilon, count=times, delta_prime=delta_prime, form="sharp")
    tail = float_up(open_probability(delta_prime, "delta_prime"))
    total = min(1.0, up(_any_of(tail, _failure(slack, times)[1]), 4))
    return min(float_up(times * at_least_zero(epsilon, "epsilon")), plain, sharp), total


def kov_epsilon(epsilon: Number, *, count: Number, delta_prime: Number, form: Literal["plain", "sharp"] = "plain") -> float:
    """Return k ε tanh(ε/2) + ε √(2k L): L = ln(1/δ') for "plain", ln(e + ε √k/δ') for "sharp" (small δ', few).

    Claim   `count` epsilon-DP mechanisms are (result, delta_prime)-private together, also adaptively.
    Rounds  Up.
    Source  [KOV15, Thm. 3.4]
    """
    loss, times, log_inverse = _parts(epsilon, count, delta_prime, "delta_prime")
    if form == "sharp":
        share = loss * math.sqrt(times) / max(float_down(open_probability(delta_prime, "delta_prime")), 1e-300)
        log_inverse = up(math.log(up(math.e + share, 8)), 6)
    elif form != "plain":
        raise InvalidParameter(sentence("form", '"plain" or "sharp"', form))
    return up(_spread(loss, times, log_inverse) + times * loss * math.tanh(0.5 * loss), 20)


def per_step(epsilon: Number, *, count: Number, delta_prime: Number) -> float:
    """Return ε/(2 √(2k ln(1/δ'))), the textbook epsilon of each of k steps that together may cost epsilon.

    Claim   `count` mechanisms of the result are (epsilon, delta_prime + count · their delta)-private together.
    Needs   What the textbook asks by "epsilon < 1" is checked by the theorem itself: the closed form of the steps must
            not exceed epsilon. Read backwards without it, 1000 steps of 1 would cost 303; they cost 577.
    Rounds  Down.
    Source  [DR14, Cor. 3.21] from [DRV10]
    """
    total, times, log_inverse = _parts(positive(epsilon, "epsilon"), count, delta_prime, "delta_prime")
    step = down(total * (1 - 4 * UNIT) / (2.0 * math.sqrt(2.0 * times * log_inverse)), 12)
    if drv_epsilon(Fraction(step), count=times, delta_prime=delta_prime) > float_down(positive(epsilon, "epsilon")):
        hint = "search with optimal_epsilon, which has no such limit"
        raise NotPrivate(sentence("epsilon", "small enough for the textbook's step", epsilon, hint))
    return step


def mironov_corollary(epsilon: Number, *, count: Number, delta: Number) -> float:
    """Return 4 ε √(2k ln(1/δ)), a loose closed form by way of Rényi.

    Claim   `count` epsilon-DP mechanisms are (result, delta)-private together, also adaptively.
    Needs   ln(1/δ) ≥ k ε²; elsewhere it is false and refused.
    Rounds  Up.
    Source  [Mir17, Cor. 1]
    """
    loss, times, log_inverse = _parts(epsilon, count, delta, "delta")
    if not times * loss * loss * (1 + 8 * UNIT) <= log_inverse * (1 - 32 * UNIT):
        hint = "optimal_epsilon holds everywhere"
        raise NotPrivate(sentence("count · epsilon²", "at most log(1/delta)", f"{times * loss * loss:g}", hint))
    return up(4.0 * _spread(loss, times, log_inverse), 4)


def mironov_factor(
    epsilon: Number, *, count: Number, probability: Number, form: Literal["printed", "improved"] = "improved"
) -> float:
    """Return a factor by which one person can raise the probability of an event under `count` epsilon-DP mechanisms.

    Claim   P'(S) ≤ result · P(S) for P(S) = probability. printed: exp(2 ε √(k L)), L = ln(1/P(S)).
            improved: exp(ε √(2k L) − k ε²/2) for L ≥ k ε²/2, from D_α ≤ α k ε²/2 at α = √(2L/(k ε²)); else 1/P(S).
    Needs   0 < probability < 1.
    Rounds  Up.
    Source  [Mir17, Prop. 4]
    """
    loss, times, log_inverse = _parts(epsilon, count, probability, "probability")
    if form not in ("printed", "improved"):
        raise InvalidParameter(sentence("form", '"printed" or "improved"', form))
    if form == "printed":
        exponent = 2.0 * loss * math.sqrt(times * log_inverse)
    elif times * loss * loss > 2.0 * log_inverse:
        exponent = log_inverse
    else:
        exponent = _spread(loss, times, log_inverse) - 0.5 * times * loss * loss
    exponent = up(exponent, 16, of=exponent + times * loss * loss)
    return up(math.exp(exponent), 8) if exponent < 700.0 else math.inf


# ---- the exact optimum ---------------------------------------------------------------------------------------------


_EXACT_COUNT = 64  # up to here 1 − (1 − δ0)^k is compared as a rational where floats cannot tell


def optimal_delta(epsilon0: Number, *, count: Number, epsilon: Number, delta0: Number = 0) -> tuple[float, float]:
    """Return bounds of the least delta at epsilon of `count` (epsilon0, delta0)-private mechanisms.

    Claim   lower ≤ 1 − (1 − δ0)^k (1 − δ(ε)) ≤ upper, δ(ε) = Σ over losses l = (2i−k) ε0 > ε of
            C(k, i) e^(i ε0)/(1 + e^ε0)^k (1 − e^(ε−l)); no smaller delta holds for all such mechanisms.
    Needs   epsilon0 ≥ 0, 0 ≤ delta0 < 1, epsilon ≥ 0; equal parameters fixed in advance.
    Rounds  Outward.
    Source  [KOV15, Thm. 3.3]
    """
    loss, times = _step(epsilon0), whole(count, "count")
    threshold, slack = at_least_zero(epsilon, "epsilon"), probability(delta0, "delta0")
    low, high = 0.0, 0.0
    if threshold < times * loss:
        bounds = log_delta(loss, times, threshold)
        low, high = max(0.0, down(math.exp(bounds.lower), 5)), min(1.0, up(math.exp(bounds.upper), 5))
    fail_low, fail_high = _failure(slack, times)
    if slack == 0:
        return low, high
    return max(0.0, down(_any_of(low, fail_low), 6)), min(1.0, up(_any_of(high, fail_high), 6))


def optimal_epsilon(epsilon0: Number, *, count: Number, delta: Number, delta0: Number = 0) -> tuple[float, float]:
    """Return bounds of the least epsilon at delta of `count` (epsilon0, delta0)-private mechanisms.

    Claim   lower ≤ min {ε ≥ 0 : optimal delta at ε ≤ delta} ≤ upper; ∞ where 1 − (1 − δ0)^k exceeds delta.
    Needs   As `optimal_delta`; 0 ≤ delta < 1.
    Rounds  Outward: both ends are decided by certified deltas. Between two losses any epsilon is possible.
    Source  [KOV15, Thm. 3.3]
    """
    loss, times = _step(epsilon0), whole(count, "count")
    target, slack = probability(delta, "delta"), probability(delta0, "delta0")
    most = times * loss
    fail_low, fail_high = _failure(slack, times)
    # (δ − f)/(1 − f), f the chance that some mechanism fails: what is left for the pure part.
    least, largest = _left(target, fail_high), _left(target, fail_low)
    if largest < 0.0:
        return math.inf, math.inf
    if most == 0 or largest == 0.0:
        certain = least >= 0.0 or (times <= _EXACT_COUNT and 1 - (1 - slack) ** times <= target)
        return float_down(most), float_up(most) if certain else math.inf
    high_goal = min(0.0, math.log(largest) * (1 - 16 * UNIT) + 4 * UNIT)
    if least <= 0.0:  # the doubt about f is as large as what is left
        certain = least == 0.0 or (times <= _EXACT_COUNT and 1 - (1 - slack) ** times <= target)
        return 0.0, float_up(most) if certain else math.inf
    return least_epsilon(loss, times, math.log(least) * (1 + 16 * UNIT) - 4 * UNIT, high_goal)


# ---- one mechanism ---------------------------------------------------------------------------------------------------


def laplace_delta(epsilon0: Number, *, epsilon: Number) -> float:
    """Return the delta of one Laplace release with sensitivity/scale = epsilon0.

    Claim   δ(ε) = (1 − e^((ε − ε0)/2))₊, exactly.
    Needs   epsilon0 ≥ 0, epsilon ≥ 0.
    Rounds  Up; 0 from epsilon = epsilon0 on.
    Source  [BBG18]
    """
    gap = at_least_zero(epsilon0, "epsilon0") - at_least_zero(epsilon, "epsilon")
    return min(1.0, up(-math.expm1(-0.5 * min(float_up(gap), 1e300)), 6)) if gap > 0 else 0.0


def parallel(epsilons: Iterable[Number], *, adjacency: Adjacency | str, within: Iterable[Number] | None = None) -> Fraction:
    """Return the epsilon of mechanisms on disjoint cells of a partition.

    Claim   add or remove one: the largest epsilon. Replace one: the record may leave cell i and enter cell j, costing
            epsilon_i + epsilon_j, or change inside cell i, costing within_i; without `within`, 2 epsilon_i.
    Needs   Each epsilon holds for adding or removing one record of the cell; `within` for replacing one in it. The cell
            of a record depends on that record only, and the partition is fixed in advance. Guarantees for replacing
            alone are not enough: cell sizes change.
    Rounds  Exact.
    Source  [McS09]; docs/explanation/textbook-corrected.md
    """
    losses = sorted((at_least_zero(value, "epsilons") for value in epsilons), reverse=True)
    require(len(losses) > 0, "epsilons", "at least one", losses)
    if as_adjacency(adjacency) is ADD_OR_REMOVE_ONE:
        return losses[0]
    if within is None:
        return 2 * losses[0]
    inside = [at_least_zero(value, "within") for value in within]
    require(len(inside) == len(losses), "within", "as many as epsilons", len(inside))
    return max(*inside, sum(losses[:2], Fraction(0)))


def group_epsilon_delta(epsilon: Number, delta: Number, *, size: Number) -> tuple[Fraction, float]:
    """Return (epsilon, delta) towards a group of `size`.

    Claim   (k ε, δ (e^(kε) − 1)/(e^ε − 1)), tight. The printed k e^k δ is false: ε = 3, k = 2 reaches 21 δ > 15 δ.
    Needs   (epsilon, delta) holds for every pair of neighbours.
    Rounds  epsilon exact; delta up. A delta of 1 or more is refused.
    Source  [Vad17] with the geometric sum kept
    """
    loss, slack, people = at_least_zero(epsilon, "epsilon"), probability(delta, "delta"), whole(size, "size")
    if slack == 0 or people == 1:
        return people * loss, float_up(slack)
    near = float_up(loss)
    if people * near > 700.0:
        factor = math.inf
    elif near == 0.0:
        factor = float(people)
    else:
        factor = math.expm1(people * near) / math.expm1(near)
    total = up(float_up(slack) * factor, up(24 + 4 * people * near)) if factor < math.inf else math.inf
    if total >= 1.0:
        raise NotPrivate(f"a group of {people} has no guarantee left: its delta would be {total:g}")
    return people * loss, total


def group_renyi(alpha: Number, zeta: Number, *, doublings: Number) -> tuple[Fraction, Fraction]:
    """Return the Rényi guarantee towards databases at distance 2^c, c = doublings.

    Claim   (α, ζ) for neighbours gives (α/2^c, 3^c ζ) for databases joined by a path of 2^c neighbours; so does running
            the mechanism on g(D), if neighbours D, D' always give g(D), g(D') at distance at most 2^c. (It is neighbours
            that must stay close; images being neighbours says nothing: repeating each record 100 times has none.)
    Needs   α ≥ (3/2) 2^c. Each doubling uses D_β(P‖R) ≤ (β−1/2)/(β−1) D_2β(P‖Q) + D_(2β−1)(Q‖R) ≤ (2 + 1) ζ, where
            (β−1/2)/(β−1) ≤ 2 asks β ≥ 3/2 of the order that results.
    Rounds  Exact.
    Source  [Mir17, Prop. 2 and 11]
    """
    order, budget = rational(alpha, "alpha"), at_least_zero(zeta, "zeta")
    times = whole(doublings, "doublings", least=0)
    require(times <= 1000 and order > 1, "alpha", "above 1, with at most 1000 doublings", alpha)
    if times > 0 and order / 2**times < Fraction(3, 2):
        raise NotPrivate(sentence("alpha", f"at least 3/2 · 2^{times}", alpha, "start from a higher order"))
    return order / 2**times, 3**times * budget


def group_rho(rho: Number, *, size: Number) -> Fraction:
    """Return the rho of zCDP towards a group of `size`: size² rho. Rounds: exact. Source: [BS16]."""
    return whole(size, "size") ** 2 * at_least_zero(rho, "rho")


def group_mu(mu: Number, *, size: Number) -> Fraction:
    """Return the mu of Gaussian privacy towards a group of `size`: size · mu. Rounds: exact. Source: [DRS19]."""
    return whole(size, "size") * at_least_zero(mu, "mu")


def subsample_epsilon_delta(epsilon: Number, delta: Number, *, rate: Number) -> tuple[float, Fraction]:
    """Return (epsilon', delta') of a mechanism that sees a secret random share of the records.

    Claim   (log(1 + q (e^ε − 1)), q δ).
    Needs   Poisson sampling with rate q and neighbours by adding or removing one, or a share q drawn without
            replacement from a public number of records and neighbours by replacing one; the mechanism is
            (epsilon, delta)-private for the same neighbours.
    Rounds  epsilon up; delta exact.
    Source  [BBG18, Thm. 8 and 9]
    """
    loss, slack, share = at_least_zero(epsilon, "epsilon"), probability(delta, "delta"), positive(rate, "rate")
    require(share <= 1, "rate", "at most 1", rate)
    near, q = float_up(loss), min(1.0, float_up(share))
    if near > 30.0:
        value = up(near + math.log(q + (1.0 - q) * math.exp(-near)), 16, of=near - math.log(q))
    else:
        value = up(math.log1p(q * math.expm1(near)), up(16 + 4 * near))
    return min(value, near), share * slack


# ---- parts ---------------------------------------------------------------------------------------------------------


def _step(epsilon0: Number) -> Fraction:
    loss = at_least_zero(epsilon0, "epsilon0")
    require(loss == 0 or Fraction(1, 10**100) <= loss <= 10**6, "epsilon0", "0, or from 1e-100 to 1e6", epsilon0)
    return loss


def _parts(epsilon: Number, count: Number, delta: Number, name: str) -> tuple[float, int, float]:
    """Return (epsilon rounded up, count, log(1/delta) rounded up)."""
    logarithm, doubt = log_of(open_probability(delta, name))
    return min(float_up(at_least_zero(epsilon, "epsilon")), 1e100), whole(count, "count"), up(doubt - logarithm)


def _spread(loss: float, times: int, log_inverse: float) -> float:
    return up(loss * math.sqrt(2.0 * times * log_inverse), 4)


def _meaningful(delta: Fraction) -> Fraction:
    if delta >= 1:
        raise NotPrivate(f"no guarantee is left: the total delta would be {float(delta):g}")
    return delta


def _failure(delta: Fraction, times: int) -> tuple[float, float]:
    """Return bounds of 1 − (1 − δ)^k."""
    if delta == 0:
        return 0.0, 0.0
    near = -math.expm1(times * math.log1p(-float(delta)))
    return max(0.0, down(near, 16)), min(1.0, up(near, 16))


def _any_of(first: float, second: float) -> float:
    return first + second - first * second if first < 0.5 else 1.0 - (1.0 - first) * (1.0 - second)


def _left(target: Fraction, failure: float) -> float:
    """(δ − f)/(1 − f); its sign is exact."""
    return float((target - Fraction(failure)) / (1 - Fraction(failure))) if failure < 1.0 else -1.0

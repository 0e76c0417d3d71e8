"""Composition, parallel composition, groups and subsamples of plain epsilons and deltas.

Exact results are Fractions; rounded ones are floats, up for what is lost and down for what may be spent.

    basic           sums: any mechanisms, also chosen adaptively
    advanced        DRV and KOV closed forms; `optimal_delta`, `optimal_epsilon` are never worse
    optimal_*       the exact composition of `count` equal pure (or approximate) mechanisms, as certified bounds
    parallel        disjoint cells; groups: k people instead of one; subsample: a secret share of the records

The textbook forms carry their conditions: outside of them they are refused, because there they are false.

`optimal_*` are the exact privacy curve of k pure mechanisms together: k randomised responses, a binomial sum.
Under the worst pair the total loss is (2i − k) ε0 with i ~ Binomial(k, p), p = e^ε0/(1 + e^ε0), so that

    δ(ε) = Σ_{i : (2i−k) ε0 > ε} C(k, i) p^i (1−p)^(k−i) (1 − e^(ε − (2i−k) ε0)).

All terms are positive. Only a window around the largest is summed; the rest decays at least geometrically and is
bounded by the last ratio. Log probabilities are Stirling's with the deviance of each count taken by itself, so that
their error grows with the distance from the mean, not with log k!. The first loss above ε is found in exact rationals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from curador.errors import InvalidParameter, NotPrivate, NumericalFailure, require
from curador.numerics.exact import Number, at_least_zero, open_probability, positive, probability, rational, whole
from curador.numerics.rounding import UNIT, FloatArray, down, float_down, float_up, log_of, up
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, Adjacency, as_adjacency

if TYPE_CHECKING:
    from collections.abc import Iterable


# ---- the binomial sum ------------------------------------------------------------------------------------------------------


_SMALL = 16
_TABLE = np.array([0.0, *(math.log(math.factorial(j)) - j * math.log(j) + j for j in range(1, _SMALL))])
_WIDEST = 20_000_000


@dataclass(frozen=True, slots=True)
class _LogBounds:
    """lower ≤ log δ ≤ upper, and the slope −∂ log δ/∂ε (approximate)."""

    lower: float
    upper: float
    slope: float


_NOTHING = _LogBounds(-math.inf, -math.inf, math.inf)


def _log_delta(epsilon0: Fraction, count: int, epsilon: Fraction) -> _LogBounds:
    """Return bounds of log delta(epsilon) of `count` epsilon0-DP mechanisms, the exact optimum.

    Claim   lower ≤ log of the sum above ≤ upper; both −∞ from epsilon = count · epsilon0 on.
    Needs   epsilon0 > 0, count ≥ 1, epsilon ≥ 0.
    Rounds  Outward.
    Source  [KOV15, Thm. 3.3]
    """
    first = math.floor((epsilon / epsilon0 + count) / 2) + 1
    if first > count:
        return _NOTHING
    step = 2.0 * float(epsilon0)
    nearest = float((2 * first - count) * epsilon0 - epsilon)  # > 0, exact before this rounding
    start, stop = _window(float(epsilon0), count, first)
    index = np.arange(start, stop + 1, dtype=np.float64)
    log_mass, error = _log_masses(index, float(count), float(epsilon0))
    above = nearest + step * (index - first)
    top = float(log_mass.max())
    mass = np.exp(log_mass - top)
    terms = mass * -np.expm1(-above)
    total = float(terms.sum())
    if not total > 0.0:
        raise NumericalFailure(f"the composition of {count} mechanisms is out of reach at this epsilon")
    relative = float((terms * (error + 4 * UNIT * (top - log_mass))).sum()) / total + 64 * UNIT
    tail = _beyond(float(mass[-1]), stop, count, step) + _before(float(mass[0]), start, first, count, step)
    value = top + math.log(total)
    rounding = 4 * UNIT * (abs(top) + abs(value) + 2.0)
    slope = max(float((mass * np.exp(-above)).sum()) / total, 1e-300)
    return _LogBounds(value - relative - rounding, value + math.log1p(tail / total) + relative + rounding, slope)


def _least_epsilon(epsilon0: Fraction, count: int, low_goal: float, high_goal: float) -> tuple[float, float]:
    """Return bounds of the least epsilon ≥ 0 at which log delta is at most a goal known to be in [low_goal, high_goal].

    Claim   log delta at the upper end is at most low_goal, or that end is count · epsilon0; at the lower end it is at
            least high_goal, or that end is 0.
    Needs   epsilon0 > 0, count ≥ 1, goals below 0.
    Rounds  Outward.
    """
    most = count * epsilon0
    if _log_delta(epsilon0, count, Fraction(0)).upper <= low_goal:
        return 0.0, 0.0
    epsilon, width = _root(epsilon0, count, 0.5 * (low_goal + high_goal), float(most))
    lower, upper = math.nan, math.nan
    for power in range(100):
        step = math.ldexp(width, power)
        if math.isnan(upper):
            at = epsilon + step
            if at >= most:
                upper = float_up(most)
            elif _log_delta(epsilon0, count, Fraction(at)).upper <= low_goal:
                upper = at
        if math.isnan(lower):
            at = max(0.0, min(epsilon - step, float_down(most)))
            if at == 0.0 or _log_delta(epsilon0, count, Fraction(at)).lower >= high_goal:
                lower = at
        if lower <= upper:
            return lower, upper
    raise NumericalFailure(f"no bound near epsilon = {epsilon:g} could be certified")


def _root(epsilon0: Fraction, count: int, goal: float, most: float) -> tuple[float, float]:
    """Return roughly where log delta is the goal, and the width of the doubt about it: Newton inside a bracket."""
    low, high = 0.0, most
    step = float(epsilon0)  # the start is the closed form k ε0 tanh(ε0/2) + ε0 √(2k log(1/δ)), above the root
    epsilon = min(most * (1.0 - 1e-9), step * (count * math.tanh(0.5 * step) + math.sqrt(-2.0 * count * goal)))
    doubt = 0.0
    for _ in range(60):
        bounds = _log_delta(epsilon0, count, Fraction(epsilon))
        if bounds is _NOTHING:
            high, epsilon = epsilon, 0.5 * (low + epsilon)
            continue
        value = 0.5 * (bounds.lower + bounds.upper)
        doubt = (bounds.upper - bounds.lower) / bounds.slope
        following = epsilon + (value - goal) / bounds.slope
        if abs(following - epsilon) <= 0.1 * doubt + math.ulp(epsilon):
            break
        low, high = (epsilon, high) if value > goal else (low, epsilon)
        epsilon = following if low < following < high else 0.5 * (low + high)
    return epsilon, doubt + 4 * math.ulp(epsilon)


def _window(epsilon0: float, count: int, first: int) -> tuple[int, int]:
    """Ten standard deviations around the mode, from the first term on."""
    share = 1.0 / (1.0 + math.exp(-epsilon0))
    mode = round(count * share)
    width = int(10.0 * math.sqrt(count * share * math.exp(-epsilon0) * share)) + 60
    if width > _WIDEST:
        raise NumericalFailure(f"count is too large to sum: {count}")
    start = max(first, mode - width)
    return start, min(count, max(start, mode) + width)


def _beyond(mass: float, stop: int, count: int, step: float) -> float:
    """The probability above the window, by a geometric series: the ratios of neighbours decrease."""
    if stop == count:
        return 0.0
    ratio = (count - stop) / (stop + 1) * math.exp(0.5 * step)
    return 1.01 * mass * ratio / (1.0 - ratio) if ratio < 0.99 else math.inf


def _before(mass: float, start: int, first: int, count: int, step: float) -> float:
    """The probability between the first loss above epsilon and the window."""
    if start == first:
        return 0.0
    ratio = start / (count - start + 1) * math.exp(-0.5 * step)
    return 1.01 * mass * ratio / (1.0 - ratio) if ratio < 0.99 else math.inf


def _log_masses(index: FloatArray, count: float, epsilon0: float) -> tuple[FloatArray, FloatArray]:
    """Return log C(k, i) p^i (1−p)^(k−i) and bounds of the absolute errors."""
    softplus = math.log1p(math.exp(-epsilon0))
    success, first_error = _deviance(index, math.log(count) - softplus, count / (1.0 + math.exp(-epsilon0)))
    failure, second_error = _deviance(
        count - index, math.log(count) - softplus - epsilon0, count * math.exp(-epsilon0 - softplus)
    )
    whole = _stirling_rest(np.array([count]))[0]
    value = whole - _stirling_rest(index) - _stirling_rest(count - index) - success - failure
    # Half an ulp of ε0 moves p, and the logarithm by ε0 |i − kp| halves.
    doubt = 2.0 * epsilon0 * np.abs(index - count / (1.0 + math.exp(-epsilon0)))
    return value, UNIT * (128.0 + 8.0 * (first_error + second_error) + doubt)


def _deviance(x: FloatArray, log_mean: float, mean: float) -> tuple[FloatArray, FloatArray]:
    """Return x log(x/m) − x + m, and the size that its rounding errors are proportional to."""
    gap = x - mean
    near = np.abs(gap) < 0.5 * mean
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithm = np.where(near, np.log1p(np.where(near, gap, 0.0) / max(mean, 1e-300)), np.log(x) - log_mean)
        scaled = np.where(x > 0.0, x * logarithm, 0.0)
        far = np.where(x > 0.0, x * (np.abs(np.log(x)) + abs(log_mean)), 0.0)
    return scaled - gap, np.where(near, np.abs(scaled) + np.abs(gap), far + np.abs(gap))


def _stirling_rest(n: FloatArray) -> FloatArray:
    """Return log n! − n log n + n: a table below 16, six terms of Stirling's series above."""
    large = np.maximum(n, float(_SMALL))
    inverse = 1.0 / (large * large)
    series = 1 / 1260 + inverse * (-1 / 1680 + inverse * (1 / 1188 - inverse * (691 / 360360)))
    rest = (1 / 12 + inverse * (-1 / 360 + inverse * series)) / large
    stirling = 0.5 * np.log(2.0 * math.pi * large) + rest
    return np.where(n < _SMALL, _TABLE[np.minimum(n, _SMALL - 1).astype(np.intp)], stirling)


# ---- composition -----------------------------------------------------------------------------------------------------------


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
        raise InvalidParameter.must_be("form", '"plain" or "sharp"', form)
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
        raise NotPrivate.must_be("epsilon", "small enough for the textbook's step", epsilon, hint)
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
        raise NotPrivate.must_be("count · epsilon²", "at most log(1/delta)", f"{times * loss * loss:g}", hint)
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
        raise InvalidParameter.must_be("form", '"printed" or "improved"', form)
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
        bounds = _log_delta(loss, times, threshold)
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
    least, largest = _delta_left(target, fail_high), _delta_left(target, fail_low)
    if largest < 0.0:
        return math.inf, math.inf
    if most == 0 or largest == 0.0:
        certain = least >= 0.0 or (times <= _EXACT_COUNT and 1 - (1 - slack) ** times <= target)
        return float_down(most), float_up(most) if certain else math.inf
    high_goal = min(0.0, math.log(largest) * (1 - 16 * UNIT) + 4 * UNIT)
    if least <= 0.0:  # the doubt about f is as large as what is left
        certain = least == 0.0 or (times <= _EXACT_COUNT and 1 - (1 - slack) ** times <= target)
        return 0.0, float_up(most) if certain else math.inf
    return _least_epsilon(loss, times, math.log(least) * (1 + 16 * UNIT) - 4 * UNIT, high_goal)


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
        raise NotPrivate.must_be("alpha", f"at least 3/2 · 2^{times}", alpha, "start from a higher order")
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


def _delta_left(target: Fraction, failure: float) -> float:
    """(δ − f)/(1 − f); its sign is exact."""
    return float((target - Fraction(failure)) / (1 - Fraction(failure))) if failure < 1.0 else -1.0

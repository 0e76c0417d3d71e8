"""Checks of what notions of privacy promise: both sides computed, one of them from exact divergences of small laws.

Each returns whether the property was found to hold, and what was computed. `properties` says which is whose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from curador.numerics.rounding import FloatArray
from curador.privacy import compose, convert, odds
from curador.privacy.divergence import Bernoulli, Finite, Laplace, Normal, hockey_stick, max_divergence, renyi
from curador.privacy.losses import Approx, GaussianLoss, LaplaceLoss, Pure, RandomizedResponseLoss

Outcome: TypeAlias = tuple[bool, str]
"""Whether the property was found to hold, and what was computed."""

_ORDERS = (1.5, 2.0, 8.0)
_MANY_ORDERS = (1.01, 1.1, 1.5, 2.0, 4.0, 16.0, 64.0)
_RATES = np.linspace(0.005, 0.995, 199)
_CLOSE = 1e-9

# ---- small laws whose divergences are exact --------------------------------------------------------------------------------

_P, _Q = Finite(["1/2", "3/10", "1/5"]), Finite(["1/5", "3/10", "1/2"])
_BLUR = ((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 8), Fraction(7, 8)))
"""A random map of three outputs to two."""
_TRUE, _FALSE = Bernoulli("3/4"), Bernoulli("1/4")
_NEAR, _FAR = Normal(0, 1), Normal(1, 1)
_LOG3, _LOG2 = math.log(3.0), math.log(2.0)


def _blurred(law: Finite) -> Finite:
    pieces = [sum((p * row[place] for p, row in zip(law.probabilities, _BLUR, strict=True)), Fraction(0)) for place in (0, 1)]
    return Finite(pieces)


def _adaptive(truth: Fraction) -> Finite:
    """Two answers: the first true with probability `truth`, the second's coin chosen after seeing the first."""
    lie = 1 - truth
    after_yes, after_no = (p if truth > lie else 1 - p for p in (Fraction(2, 3), Fraction(3, 5)))
    return Finite([truth * after_yes, truth * (1 - after_yes), lie * after_no, lie * (1 - after_no)])


_BOTH, _BOTH_FALSE = _adaptive(Fraction(3, 4)), _adaptive(Fraction(1, 4))
_SECOND, _SECOND_FALSE = Bernoulli("2/3"), Bernoulli("1/3")


def _leaky(ratio: int, delta: Fraction) -> tuple[list[Fraction], list[Fraction]]:
    """The worst (log ratio, δ)-private pair: the truth told with probability δ, else randomized response."""
    keep = 1 - delta
    high, low = keep * Fraction(ratio, ratio + 1), keep * Fraction(1, ratio + 1)
    return [delta, high, low, Fraction(0)], [Fraction(0), low, high, delta]


def _product(one: list[Fraction], other: list[Fraction]) -> Finite:
    return Finite([a * b for a in one for b in other])


def _below(pairs: list[tuple[float, float]], words: str) -> Outcome:
    """Every first number is at most the second, but for rounding; shown: the pair that comes closest."""
    held = all(small <= large * (1 + _CLOSE) + _CLOSE for small, large in pairs)
    small, large = max(pairs, key=lambda pair: pair[0] - pair[1])
    return held, f"{words}: {small:.6g} ≤ {large:.6g}"


def _equal(pairs: list[tuple[float, float]], words: str) -> Outcome:
    held = all(abs(one - other) <= 1e-6 * max(1e-3, abs(other)) for one, other in pairs)
    return held, f"{words}: {pairs[0][0]:.6g} = {pairs[0][1]:.6g}"


def _slope(first: Finite | Bernoulli | Normal | Laplace, second: Finite | Bernoulli | Normal | Laplace) -> float:
    """The largest D_α/α over many orders, both directions: at most ρ."""
    return max(max(renyi(first, second, alpha=a), renyi(second, first, alpha=a)) / a for a in _MANY_ORDERS)


# ---- post-processing -------------------------------------------------------------------------------------------------------


def post_pure() -> Outcome:
    """Check post-processing under ε-DP."""
    return _below([(max_divergence(_blurred(_P), _blurred(_Q)), max_divergence(_P, _Q))], "D∞ after and before a random map")


def post_approximate() -> Outcome:
    """Check post-processing under (ε, δ)-DP."""
    at = ("0", "0.25", "0.5")
    after = [hockey_stick(_blurred(_P), _blurred(_Q), epsilon=e) for e in at]
    return _below([*zip(after, [hockey_stick(_P, _Q, epsilon=e) for e in at], strict=True)], "δ(ε) after and before")


def post_renyi() -> Outcome:
    """Check post-processing under Rényi privacy."""
    pairs = [(renyi(_blurred(_P), _blurred(_Q), alpha=a), renyi(_P, _Q, alpha=a)) for a in _ORDERS]
    return _below(pairs, "D_α after and before")


def post_concentrated() -> Outcome:
    """Check post-processing under zCDP."""
    return _below([(_slope(_blurred(_P), _blurred(_Q)), _slope(_P, _Q))], "largest D_α/α after and before")


def post_gaussian() -> Outcome:
    """Check post-processing under Gaussian privacy: an answer cut to a bit, flipped with probability 1/4."""
    from scipy.special import ndtr

    cut = np.linspace(-2.0, 3.0, 11)
    fpr, tpr = 0.25 + 0.5 * ndtr(-cut), 0.25 + 0.5 * ndtr(1.0 - cut)
    bound = odds.gaussian_true_positive(fpr, mu=1)
    return _below(
        [*zip(tpr.tolist(), bound.tolist(), strict=True)], "true positives of a flipped bit, and the curve of μ = 1"
    )


# ---- composition, the second mechanism chosen by the first answer ----------------------------------------------------------


def together_pure() -> Outcome:
    """Check adaptive composition under ε-DP."""
    return _below([(max_divergence(_BOTH, _BOTH_FALSE), _LOG3 + _LOG2)], "D∞ of two adaptive answers, log 3 + log 2")


def together_approximate() -> Outcome:
    """Check adaptive composition under (ε, δ)-DP."""
    (p1, q1), (p2, q2) = _leaky(3, Fraction(1, 100)), _leaky(2, Fraction(1, 50))
    found = hockey_stick(_product(p1, p2), _product(q1, q2), epsilon=Fraction(_LOG3 + _LOG2) + Fraction(1, 10**12))
    return _below([(found, 0.03)], "δ at Σε of two worst cases, Σδ")


def together_renyi() -> Outcome:
    """Check adaptive composition under Rényi privacy."""
    first = [renyi(_TRUE, _FALSE, alpha=a) + renyi(_SECOND, _SECOND_FALSE, alpha=a) for a in _ORDERS]
    return _below([*zip([renyi(_BOTH, _BOTH_FALSE, alpha=a) for a in _ORDERS], first, strict=True)], "D_α of both, Σ D_α")


def together_concentrated() -> Outcome:
    """Check adaptive composition under zCDP."""
    whole = convert.pure_to_rho(Fraction(_LOG3)) + convert.pure_to_rho(Fraction(_LOG2))
    return _below([(_slope(_BOTH, _BOTH_FALSE), float(whole))], "largest D_α/α of two adaptive answers, Σρ")


def together_gaussian() -> Outcome:
    """Check adaptive composition under Gaussian privacy."""
    both = GaussianLoss(mu="3/5") + GaussianLoss(mu="4/5")
    return _equal(
        [(both.delta(e), hockey_stick(_NEAR, _FAR, epsilon=e)) for e in ("0.5", "1", "2")], "δ of μ = 0.6 and 0.8, and of 1"
    )


# ---- groups ----------------------------------------------------------------------------------------------------------------


def group_pure() -> Outcome:
    """Check groups under ε-DP."""
    three, one = max_divergence(Laplace(0, 1), Laplace(3, 1)), max_divergence(Laplace(0, 1), Laplace(1, 1))
    return _equal([(three, 3 * one)], "D∞ of Laplace noise 3 apart, 3 times that of 1")


def group_approximate() -> Outcome:
    """Check groups under (ε, δ)-DP: three inputs whose neighbours are (3, 0.001)-private, and whose ends reach the bound."""
    bound = compose.group_epsilon_delta(3, "0.001", size=2)[1]
    event = Bernoulli(Fraction(bound) * (1 - Fraction(1, 10**12)))
    pair = hockey_stick(event, Bernoulli("0.001"), epsilon=3)
    return _equal(
        [(hockey_stick(event, Bernoulli(0), epsilon=6), bound), (pair, 0.001)], "δ of two people, of a law that reaches it"
    )


def group_renyi() -> Outcome:
    """Check groups under Rényi privacy."""
    order, bound = compose.group_renyi(4, Fraction(renyi(_NEAR, _FAR, alpha=4)), doublings=1)
    return _below([(renyi(_NEAR, Normal(2, 1), alpha=order), float(bound))], "D₂ of two people, 3 D₄ of one")


def group_concentrated() -> Outcome:
    """Check groups under zCDP."""
    return _equal([(_slope(_NEAR, Normal(3, 1)), float(compose.group_rho("1/2", size=3)))], "ρ of three people, 9 times ρ")


def group_gaussian() -> Outcome:
    """Check groups under Gaussian privacy."""
    pairs = [(GaussianLoss(mu="1/2").group(2).delta(e), hockey_stick(_NEAR, _FAR, epsilon=e)) for e in ("0.5", "1", "2")]
    return _equal(pairs, "δ of two people at μ = 1/2, of one at μ = 1")


# ---- a secret subsample ----------------------------------------------------------------------------------------------------

_MIXED = Bernoulli(Fraction(1, 10) * Fraction(3, 4) + Fraction(9, 10) * Fraction(1, 4))
"""Randomized response on a tenth of the data."""


def sampled_pure() -> Outcome:
    """Check what a secret sample gains under ε-DP."""
    found = max(max_divergence(_MIXED, _FALSE), max_divergence(_FALSE, _MIXED))
    return _equal(
        [(found, compose.subsample_epsilon_delta(Fraction(_LOG3), 0, rate="1/10")[0])], "D∞ of a tenth, log(1 + 0.1·2)"
    )


def sampled_approximate() -> Outcome:
    """Check what a secret sample gains under (ε, δ)-DP."""
    smaller = compose.subsample_epsilon_delta("1/2", 0, rate="1/10")[0]
    found = hockey_stick(_MIXED, _FALSE, epsilon=Fraction(smaller))
    return _below([(found, hockey_stick(_TRUE, _FALSE, epsilon="1/2") / 10)], "δ of a tenth, a tenth of δ")


def sampled_renyi() -> Outcome:
    """Check what a secret sample gains under Rényi privacy."""
    found = GaussianLoss(mu=1).subsample(rate="1/10").renyi(2)
    return _equal([(found, math.log1p(0.01 * math.expm1(1.0)))], "D₂ of a tenth under σ = 1, log(1 + 0.01 (e − 1))")


def sampled_concentrated() -> Outcome:
    """Check what a secret sample gains under zCDP."""
    slope = GaussianLoss(mu=1).subsample(rate="1/10").renyi(1000) / 1000
    return slope < 0.99 * 0.5, f"D_α/α at α = 1000 of a tenth under σ = 1 is {slope:.4g}, of the whole 0.5: ρ does not shrink"


def sampled_gaussian() -> Outcome:
    """Check what a secret sample gains under Gaussian privacy."""
    held, words = sampled_concentrated()
    return held, words.replace("ρ does not", "μ, at least √(2 D_α/α), does not")


# ---- to (ε, δ) -------------------------------------------------------------------------------------------------------------


def convert_pure() -> Outcome:
    """Check the conversion to (ε, δ) under ε-DP."""
    found = hockey_stick(_TRUE, _FALSE, epsilon=Fraction(Pure(epsilon=Fraction(_LOG3)).epsilon("0.05")))
    return _equal([(found, 0.05)], "δ of randomized response at log(e^ε − δ(1 + e^ε)), and 0.05")


def convert_approximate() -> Outcome:
    """Check the conversion to (ε, δ) under (ε, δ)-DP."""
    return _equal([(Approx(epsilon=1, delta="1e-6").epsilon("1e-6"), 1.0)], "ε at its own δ")


def convert_renyi() -> Outcome:
    """Check the conversion to (ε, δ) under Rényi privacy."""
    orders = [a for a in convert.ORDERS_MIRONOV if math.isfinite(a)]
    bound = min(
        convert.renyi_to_epsilon(a, Fraction(renyi(_NEAR, _FAR, alpha=a)), delta="1e-5", method="mironov") for a in orders
    )
    return _below([(GaussianLoss(mu=1).epsilon_interval("1e-5").upper, bound)], "exact ε of σ = 1 at 10⁻⁵, best of 12 orders")


def convert_concentrated() -> Outcome:
    """Check the conversion to (ε, δ) under zCDP."""
    bound = convert.rho_to_epsilon("1/2", delta="1e-5", method="bs16")
    return _below(
        [(GaussianLoss(mu=1).epsilon_interval("1e-5").upper, bound)], "exact ε of ρ = 1/2 at 10⁻⁵, ρ + 2√(ρ log 1/δ)"
    )


def convert_gaussian() -> Outcome:
    """Check the conversion to (ε, δ) under Gaussian privacy."""
    pairs = [(GaussianLoss(mu=1).delta(e), hockey_stick(_NEAR, _FAR, epsilon=e)) for e in ("0.5", "1", "4")]
    return _equal(pairs, "δ(ε) of μ = 1, and of two normal laws")


# ---- the budgets of three mechanisms ---------------------------------------------------------------------------------------

_RESPONSE, _LAPLACE, _GAUSSIAN = RandomizedResponseLoss(epsilon=Fraction(_LOG3)), LaplaceLoss(epsilon=1), GaussianLoss(mu=1)
_AWAY, _HOME = Laplace(0, 1), Laplace(1, 1)


def _dominates(mu: float, curve: Callable[[FloatArray], FloatArray], words: str) -> Outcome:
    """The trade-off function lies on or above that of μ-GDP, and a μ 2 % smaller is too small."""
    own = curve(_RATES)
    under, over = odds.tradeoff_gaussian(_RATES, mu=mu), odds.tradeoff_gaussian(_RATES, mu=0.98 * mu)
    held = bool((own >= under - _CLOSE).all()) and bool((own < over).any())
    return held, f"{words}: above the curve of μ = {mu:.5g} at {len(_RATES)} rates, not above that of {0.98 * mu:.5g}"


def _mu_of(epsilon: float) -> float:
    """−2Φ⁻¹(1/(1 + e^ε)): G_μ is convex and passes the corner of the trade-off of ε-DP, whose sides are chords of it."""
    from scipy.special import ndtri

    return -2.0 * float(ndtri(1.0 / (1.0 + math.exp(epsilon))))


def response_pure() -> Outcome:
    """Check the budget of randomized response under ε-DP."""
    return _equal([(max_divergence(_TRUE, _FALSE), _LOG3)], "D∞ at p = 3/4, log p/(1 − p)")


def response_approximate() -> Outcome:
    """Check the budget of randomized response under (ε, δ)-DP."""
    return _equal([(_RESPONSE.delta(e), hockey_stick(_TRUE, _FALSE, epsilon=e)) for e in ("0.5", "1")], "δ(1/2), by the law")


def response_renyi() -> Outcome:
    """Check the budget of randomized response under Rényi privacy."""
    return _equal([(_RESPONSE.renyi(a), renyi(_TRUE, _FALSE, alpha=a)) for a in _ORDERS], "ζ(1.5), by the law")


def response_concentrated() -> Outcome:
    """Check the budget of randomized response under zCDP."""
    return _below([(_slope(_TRUE, _FALSE), float(_RESPONSE.rho))], "largest D_α/α, ε tanh ε/2")


def response_gaussian() -> Outcome:
    """Check the budget of randomized response under Gaussian privacy."""
    return _dominates(
        _mu_of(_LOG3), lambda x: odds.tradeoff_approximate(x, epsilon=Fraction(_LOG3)), "trade-off at ε = log 3"
    )


def laplace_pure() -> Outcome:
    """Check the budget of Laplace noise under ε-DP."""
    return _equal([(max_divergence(_AWAY, _HOME), 1.0)], "D∞ at b = 1, 1/b")


def laplace_approximate() -> Outcome:
    """Check the budget of Laplace noise under (ε, δ)-DP."""
    pairs = [(compose.laplace_delta(1, epsilon=e), hockey_stick(_AWAY, _HOME, epsilon=e)) for e in ("0.25", "0.5")]
    return _equal(pairs, "1 − e^((ε − 1/b)/2) at 1/4, by the law")


def laplace_renyi() -> Outcome:
    """Check the budget of Laplace noise under Rényi privacy."""
    return _equal([(_LAPLACE.renyi(a), renyi(_AWAY, _HOME, alpha=a)) for a in _ORDERS], "ζ(1.5), by the law")


def laplace_concentrated() -> Outcome:
    """Check the budget of Laplace noise under zCDP."""
    return _below([(_slope(_AWAY, _HOME), float(_LAPLACE.rho))], "largest D_α/α, 1/b − 1 + e^(−1/b)")


def laplace_gaussian() -> Outcome:
    """Check the budget of Laplace noise under Gaussian privacy."""
    mu, words = _mu_of(1.0), "trade-off of b = 1"
    own, under = odds.tradeoff_laplace(_RATES, epsilon=1), odds.tradeoff_gaussian(_RATES, mu=mu)
    return bool((own >= under - _CLOSE).all()), f"{words}: above the curve of μ = {mu:.5g} at {len(_RATES)} rates"


def gaussian_pure() -> Outcome:
    """Check the budget of Gaussian noise under ε-DP."""
    found = max_divergence(_NEAR, _FAR)
    return math.isfinite(found), "D∞ of two normal laws is ∞"


def gaussian_approximate() -> Outcome:
    """Check the budget of Gaussian noise under (ε, δ)-DP."""
    return _equal(
        [(_GAUSSIAN.delta(e), hockey_stick(_NEAR, _FAR, epsilon=e)) for e in ("0.5", "1", "4")], "δ(1/2) at σ = 1, by the law"
    )


def gaussian_renyi() -> Outcome:
    """Check the budget of Gaussian noise under Rényi privacy."""
    return _equal([(renyi(_NEAR, _FAR, alpha=a), a / 2) for a in _ORDERS], "D_1.5 at σ = 1, α/2σ²")


def gaussian_concentrated() -> Outcome:
    """Check the budget of Gaussian noise under zCDP."""
    return _equal([(_slope(_NEAR, _FAR), 0.5), (float(_GAUSSIAN.rho), 0.5)], "largest D_α/α at σ = 1, 1/2σ²")


def gaussian_gaussian() -> Outcome:
    """Check the budget of Gaussian noise under Gaussian privacy."""
    from scipy.special import ndtr, ndtri

    exact = ndtr(ndtri(1.0 - _RATES) - 1.0)
    return _equal(
        [*zip(_GAUSSIAN.tradeoff(_RATES).tolist(), exact.tolist(), strict=True)], "trade-off at σ = 1, Φ(Φ⁻¹(1 − x) − μ)"
    )

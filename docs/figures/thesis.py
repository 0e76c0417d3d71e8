"""Figures of learning over the nuclear ball [FM22]: what drawing directions finds, what noise costs, and what runs reached.

The thesis minimises a convex loss over matrices of bounded nuclear norm by Frank–Wolfe steps, each of which needs the top
direction of a gradient estimate D_t, privately. `oracle_noise` says how much noise that direction has, by the constants as
printed and by better ones; `shares` what a direction drawn on a sphere finds. Both read no data.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from curador.errors import InvalidParameter, require
from curador.learn.nuclear.noise import ladder_for
from curador.learn.oracles.directions import alignment
from curador.learn.oracles.oja import thesis_sigma
from curador.plots.style import (
    BLUE,
    CYCLE,
    DARK,
    GREEN,
    GREY,
    MARKS,
    PATTERNS,
    RED,
    figure,
    key_above,
    key_beside,
    stroke,
    style,
)
from curador.privacy.gaussian import gaussian_mu

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.numerics.rounding import FloatArray

Noise: TypeAlias = Literal["as printed", "composed at once", "correlated"]

NOISES: tuple[Noise, ...] = get_args(Noise)

_CEILING = 0.25
_PHASE = 0.5
_MOST_TERMS = 40.0
_LEAST_RECORDS, _MOST_RECORDS = 8.0, 1e40


# ---- directions drawn on a sphere -----------------------------------------------------------------------------------------


def shares(dimension: int, fractions: Sequence[float]) -> FloatArray:
    """Return E (v·x)² of a direction drawn with density exp(βλ (v·x)²), for βλ = fraction · (d − 2).

    A blind direction has 1/d. The log-Sobolev argument of [FM22, Thm. 3.1.2] needs fractions of at most 1/4.
    """
    require(dimension >= 3, "dimension", "at least 3", dimension)
    return np.array([alignment(dimension, float(one) * (dimension - 2)) for one in fractions])


def phases(dimensions: Sequence[int] = (10, 100, 1000)) -> Figure:
    """Return what a direction drawn on a sphere finds of a spike, against how sharply it is drawn; and the limit.

    Below a half the law is about uniform; the argument that is meant to pay for it stops at a quarter.
    """
    fractions = np.concatenate([np.linspace(0.01, 1.0, 67), np.linspace(1.04, 2.0, 25)])
    with style():
        drawn, (axes,) = figure(height=3.6)
        for place, dimension in enumerate(dimensions):
            axes.plot(fractions, shares(dimension, fractions.tolist()), label=f"d = {dimension}", **stroke(place))
        limit = np.maximum(0.0, 1.0 - 0.5 / fractions)
        axes.plot(fractions, limit, color=DARK, linestyle="-", linewidth=0.9, label="d → ∞")
        axes.axvspan(0.0, _CEILING, color=RED, alpha=0.12, linewidth=0)
        axes.annotate("below the\nceiling of\nthe thesis", (0.015, 0.98), ha="left", va="top", fontsize=8, color=DARK)
        axes.axvline(_PHASE, color=GREY, linestyle="--", linewidth=1.2)
        axes.annotate(
            "below: about uniform", (_PHASE - 0.02, 0.62), rotation=90, ha="right", va="center", fontsize=8, color=DARK
        )
        axes.set_xlim(0.0, 2.0)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel("βλ/(d − 2): how sharply directions are drawn")
        axes.set_ylabel("share of the spike found, E (v·x)²")
        axes.set_title("A direction drawn on the sphere finds a spike only from a half on", fontsize=9)
        key_above(axes)
    return drawn


def ceiling(dimensions: Sequence[int] = (3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)) -> Figure:
    """Return the share of the spike that a direction finds at the ceiling βλ = (d − 2)/4, beside 2/d and chance."""
    places = np.asarray(dimensions, np.float64)
    found = np.array([float(shares(one, [_CEILING])[0]) for one in dimensions])
    with style():
        drawn, (axes,) = figure(height=3.2)
        axes.plot(places, 2.0 / places, color=RED, linestyle="--", linewidth=1.4, label="2/d")
        axes.plot(places, found, color=BLUE, marker="o", linestyle="none", markersize=5, label="drawn at the ceiling")
        axes.plot(places, 1.0 / places, color=GREY, linestyle=":", linewidth=1.4, label="drawn blindly: 1/d")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("dimension d")
        axes.set_ylabel("share of the spike found, E (v·x)²")
        axes.set_title("At the ceiling of the log-Sobolev argument: twice chance, at most", fontsize=9)
        key_above(axes)
    return drawn


# ---- the noise of a Frank–Wolfe step ----------------------------------------------------------------------------------


def oracle_noise(
    how: Noise, records: float, *, shape: tuple[int, int] = (20, 20), epsilon: float = 1.0, delta: float = 1e-6
) -> float:
    """Return the noise of one linear minimisation of [FM22, Alg. 2], L₀ = L₁ = radius = 1: n/2 steps with η = log n/n.

    A replaced record moves D_t by S = 2η (2L₁ + L₀) = 6η at its own step, and by (1−η)^k of that k steps later.

    "as printed"        Oja's σ √(d/T) [FM22, Thm. 3.2.1, its constant taken as 1], d = d₁ + d₂, T = √(n/d) steps: σ of Alg. 3
                        for ε' = ε/2√(n log(1/δ')), with δ' = δ/(n (T+1)) [FM22, Lemma 2.3.2]
    "composed at once"  every D_t with normal noise of its own: Σ S² (1−η)^2k ≤ S²/(2η−η²), so its deviation is S/(μ √(2η−η²))
    "correlated"        all D_t at once through the root of the matrix of decaying sums: S k²/μ, k² = `root_square`

    Of the last two: the deviation times √d₁ + √d₂, about the operator norm of such noise. μ: the Gaussian curve at (ε, δ).
    """
    require(records >= _LEAST_RECORDS, "records", f"at least {_LEAST_RECORDS:g}", records)
    eta = math.log(records) / records
    sensitivity, size = 6.0 * eta, sum(shape)
    if how == "as printed":
        steps = math.sqrt(records / size)
        each = delta / (records * (steps + 1.0))
        goal = epsilon / (2.0 * math.sqrt(records * math.log(1.0 / each)))
        return thesis_sigma(goal, each, 1, sensitivity) * math.sqrt(size)  # σ grows with √T
    if how not in NOISES:
        raise InvalidParameter.must_be("how", ", ".join(map(repr, NOISES)), how)
    factor = 1.0 / math.sqrt(2.0 * eta - eta**2) if how == "composed at once" else root_square(records / 2.0, eta)
    mu = float(gaussian_mu(epsilon=epsilon, delta=delta))
    return sensitivity * factor / mu * sum(map(math.sqrt, shape))


def records_needed(
    how: Noise, error: float = 0.02, *, shape: tuple[int, int] = (20, 20), epsilon: float = 1.0, delta: float = 1e-6
) -> float:
    """Return with how many records `oracle_noise` falls to an error; infinite where 10⁴⁰ are too few."""
    require(0.0 < error < math.inf, "error", "above 0", error)

    def enough(records: float) -> bool:
        return oracle_noise(how, records, shape=shape, epsilon=epsilon, delta=delta) <= error

    low, high = math.log(_LEAST_RECORDS), math.log(_MOST_RECORDS)
    if not enough(_MOST_RECORDS):
        return math.inf
    while high - low > 1e-4:
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(math.exp(middle)) else (middle, high)
    return math.exp(high)


def root_square(steps: float, eta: float) -> float:
    """Return k² = Σ c_j² (1−η)^2j over j < steps, c_0 = 1, c_j = c_(j−1) (2j−1)/2j: what correlated noise costs.

    C with entries c_(t−s) (1−η)^(t−s) is the root of the matrix of decaying sums: one record moves C g by k, and C makes k of
    noise of deviation 1. c_j² is 1/πj but for a part in 4j: far terms are an integral.
    """
    terms = min(steps, _MOST_TERMS / eta)
    first = np.arange(1.0, max(1.0, min(math.floor(terms), 100_000.0)))
    coefficients = np.concatenate([[1.0], np.cumprod((2.0 * first - 1.0) / (2.0 * first))])
    total = float(np.square(coefficients * (1.0 - eta) ** np.arange(len(coefficients))).sum())
    if terms <= len(coefficients):
        return total
    from scipy.special import exp1

    rate = -2.0 * math.log1p(-eta)
    start = len(coefficients) - 0.5
    return total + float(exp1(rate * start) - exp1(rate * terms)) / math.pi


def needs(error: float = 0.02, *, shape: tuple[int, int] = (20, 20), epsilon: float = 1.0, delta: float = 1e-6) -> Figure:
    """Return the noise of a step against the number of records, for each way to pay, and where it falls to an error."""
    with style():
        drawn, (axes,) = figure(height=3.6)
        counts = np.logspace(3, 21, 91)
        for how, colour, pattern in zip(NOISES, (RED, BLUE, GREEN), PATTERNS, strict=False):
            values = [oracle_noise(how, float(one), shape=shape, epsilon=epsilon, delta=delta) for one in counts]
            axes.plot(counts, values, color=colour, linestyle=pattern, label=how)
            there = records_needed(how, error, shape=shape, epsilon=epsilon, delta=delta)
            if math.isfinite(there):
                axes.plot([there], [error], color=colour, marker="o", linestyle="none")
                said = f"10^{{{math.log10(there):.1f}}}"
                axes.annotate(f"${said}$", (there, error), (5, 6), textcoords="offset points", fontsize=9, color=DARK)
        axes.axhline(error, color=GREY, linestyle="--", linewidth=1.0)
        axes.axhspan(1.0, 1e12, color=GREY, alpha=0.12, linewidth=0)
        axes.annotate("more noise than gradient", (0.99, 1.3), xycoords=("axes fraction", "data"), ha="right", fontsize=8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(1e-4, 1e8)
        axes.set_xlim(1e3, 1e21)
        axes.set_xlabel("records n")
        axes.set_ylabel("noise of a direction")
        axes.set_title(
            f"What one Frank–Wolfe step can see: d = {shape[0]} + {shape[1]}, ε = {epsilon:g}, δ = {_short(delta)}",
            fontsize=9,
        )
        key_above(axes)
    return drawn


def _short(number: float) -> str:
    return f"{number:g}".replace("e-0", "e-")


def factors(most: int = 1_000_000) -> Figure:
    """Return by how much noise grows with the number of steps: alone in every step, and correlated, ideally and as drawn."""
    require(most >= 100, "most", "at least 100", most)
    counts = np.logspace(1, math.log10(most), 31)
    with style():
        drawn, (axes,) = figure(height=3.4)
        rates = [decay_of(one) for one in counts]
        axes.plot(
            counts,
            [1.0 / math.sqrt(2.0 * eta - eta**2) for eta in rates],
            color=RED,
            linestyle=PATTERNS[1],
            label="noise of its own in every step",
        )
        axes.plot(
            counts,
            [root_square(one, eta) for one, eta in zip(counts, rates, strict=True)],
            color=BLUE,
            label="correlated: k²",
        )
        places = [10**power for power in range(1, 7) if 10**power <= most]
        axes.plot(
            places,
            [ladder_factor(one) for one in places],
            color=DARK,
            marker="D",
            markersize=4,
            linestyle="none",
            label="as drawn",
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("steps m")
        axes.set_ylabel("noise, for one step's = 1")
        axes.set_title("Noise that knows of its past grows like a logarithm", fontsize=9)
        key_above(axes)
    return drawn


def decay_of(steps: float) -> float:
    """Return η = log n/n of n = 2 · steps records, at most a half."""
    return min(0.5, math.log(2.0 * steps) / (2.0 * steps))


def ladder_factor(steps: int) -> float:
    """Return k² of the shifts by which noise is correlated here (curador.learn.nuclear.noise)."""
    ladder = ladder_for(decay_of(steps))
    return ladder.column_norm(steps) * ladder.noise_norm(steps)


# ---- what runs reached ----------------------------------------------------------------------------------------------------


def excess(results: Mapping[str, Mapping[int, Sequence[float]]], *, trivial: float | None = None) -> Figure:
    """Return the excess risk of runs against the number of records, a line for each name through the means of its runs.

    results  by name and by number of records: the excess of each run
    trivial  that of a model that learned nothing
    """
    if not results:
        raise InvalidParameter.must_be("results", "excesses by name", results)
    runs = {name: _runs(name, found) for name, found in results.items()}
    with style():
        drawn, (axes,) = figure(height=3.8)
        for place, (name, (counts, low, mean, high)) in enumerate(runs.items()):
            _line(axes, counts, (low, mean, high), name, place)
        if trivial is not None:
            axes.axhline(trivial, color=GREY, linestyle="--", linewidth=1.2, label="nothing learned")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("records n")
        axes.set_ylabel("excess risk")
        axes.set_title("What runs reached: mean, least and most", fontsize=9)
        _count_ticks(axes, sorted({float(one) for counts, *_ in runs.values() for one in counts}))
        key_beside(axes)
    return drawn


def _count_ticks(axes: Axes, counts: Sequence[float]) -> None:
    """The numbers themselves where powers of ten are too far apart to be ticks."""
    if counts[-1] < 100 * counts[0]:
        axes.set_xticks(counts, [f"{one:,.0f}" for one in counts])
        axes.set_xticks([], minor=True)


def _line(axes: Axes, counts: FloatArray, values: tuple[FloatArray, FloatArray, FloatArray], name: str, place: int) -> None:
    low, mean, high = values
    colour, mark = CYCLE[place % len(CYCLE)], MARKS[place % len(MARKS)]
    bars = np.stack([mean - low, high - mean])
    pattern = PATTERNS[place % len(PATTERNS)]
    axes.errorbar(counts, mean, yerr=bars, color=colour, marker=mark, linestyle=pattern, markersize=5, capsize=3, label=name)


def _runs(name: str, found: Mapping[int, Sequence[float]]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The counts, and the least, the mean and the greatest of each, as a logarithmic axis can show them."""
    counts = sorted(found)
    values = [np.atleast_1d(np.asarray(found[count], np.float64)) for count in counts]
    if not counts or not all(len(one) and np.isfinite(one).all() for one in values):
        raise InvalidParameter.must_be(f"results[{name!r}]", "finite numbers for each number of records", found)
    least = 1e-7
    low, mean, high = (np.array([max(float(pick(one)), least) for one in values]) for pick in (np.min, np.mean, np.max))
    return np.asarray(counts, np.float64), low, mean, high

"""The page *The textbook, corrected*, read, and the computations behind it.

Everything here is independent of curador: finite sums, enumeration, quadrature with 30 digits, or simulation
with a fixed seed. A formula of a textbook is never trusted to check itself.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import MPContext

Database = tuple[Any, ...]
Query = Callable[[Database], Sequence[float]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

MIDDLES: Floats = (np.arange(1000) + 0.5) / 1000

mp: Any = MPContext()  # a context of our own: the digits of others stay as they are
mp.dps = 30


def integral(function: Callable[[Any], Any], points: Sequence[Any]) -> Any:
    """Quadrature with 30 digits, split at the points."""
    return mp.quad(function, points)


# Finite laws ---------------------------------------------------------------------------------------------


def hockey_stick(p: Sequence[float], q: Sequence[float], epsilon: float) -> float:
    """The smallest delta for which p is within (epsilon, delta) of q, in this direction."""
    return float(sum(max(mp.mpf(a) - mp.exp(epsilon) * mp.mpf(b), 0) for a, b in zip(p, q, strict=True)))


def renyi(p: Sequence[float], q: Sequence[float], alpha: float) -> float:
    """Rényi divergence of two finite laws, +inf where p has mass that q lacks."""
    if any(a > 0 and b == 0 for a, b in zip(p, q, strict=True)):
        return math.inf
    pairs = [(mp.mpf(a), mp.mpf(b)) for a, b in zip(p, q, strict=True) if a > 0]
    if alpha == math.inf:
        return float(max(mp.log(a / b) for a, b in pairs))
    if alpha == 1:
        return float(sum(a * mp.log(a / b) for a, b in pairs))
    return float(mp.log(sum(a**alpha * b ** (1 - alpha) for a, b in pairs)) / (alpha - 1))


def randomised_response(epsilon: float) -> tuple[list[float], list[float]]:
    """The two output laws of the randomised response that is exactly epsilon-DP."""
    truth = 1 / (1 + math.exp(-epsilon))
    return [truth, 1 - truth], [1 - truth, truth]


def response_losses(count: int, epsilon: float) -> list[tuple[Any, Any]]:
    """Loss and probability of each outcome of `count` randomised responses."""
    norm = (1 + mp.exp(epsilon)) ** count
    return [((2 * i - count) * mp.mpf(epsilon), mp.binomial(count, i) * mp.exp(i * epsilon) / norm) for i in range(count + 1)]


def delta_of_losses(losses: Iterable[tuple[Any, Any]], epsilon: float) -> float:
    """The exact delta of a discrete privacy loss."""
    return float(sum(mass * (1 - mp.exp(epsilon - loss)) for loss, mass in losses if loss > epsilon))


def epsilon_of_losses(losses: Sequence[tuple[Any, Any]], delta: float) -> float:
    """The exact epsilon of a discrete privacy loss, by bisection."""
    return bisect(lambda e: delta - delta_of_losses(losses, e), 0, float(max(loss for loss, _ in losses)))


def bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """The place between low and high where an increasing function crosses zero."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return high


def oracle_steps_epsilon(n: int, epsilon: float, delta: float) -> float:
    """Advanced composition of n/2 + 1 steps at epsilon / (2 sqrt(n ln(1/delta))) each."""
    log_inverse = math.log(1 / delta)
    step, count = epsilon / (2 * math.sqrt(n * log_inverse)), n / 2 + 1
    return step * math.sqrt(2 * count * log_inverse) + count * step * math.expm1(step)


# Gaussian and Laplace laws -------------------------------------------------------------------------------


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The exact delta of Gaussian noise with sensitivity / sigma = mu, from the privacy-loss tail.

    The loss is normal with mean mu^2/2 and variance mu^2, and so is its law under the neighbour, mirrored.
    """
    tail = mp.ncdf((mp.mpf(mu) ** 2 / 2 - epsilon) / mu)
    other = mp.ncdf((-(mp.mpf(mu) ** 2) / 2 - epsilon) / mu)
    return float(tail - mp.exp(epsilon) * other)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The smallest sigma that is (epsilon, delta)-DP at sensitivity 1, by bisection on its logarithm."""
    log_sigma = bisect(lambda s: delta - gaussian_delta(epsilon, math.exp(-s)), -8, 14)
    return math.exp(log_sigma)


def classical_sigma(epsilon: float, delta: float) -> float:
    """The textbook's sqrt(2 ln(1.25 / delta)) / epsilon."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def first_failure(delta: float) -> float:
    """The smallest epsilon at which the classical sigma is too small: a scan by 0.05, then bisection."""

    def excess(epsilon: float) -> float:
        return gaussian_delta(epsilon, 1 / classical_sigma(epsilon, delta)) - delta

    start = next(e for e in np.arange(0.05, 12, 0.05) if excess(float(e)) > 0)
    return bisect(excess, float(start) - 0.05, float(start))


def gaussian_renyi(alpha: int, distance: float) -> float:
    """Rényi divergence of N(0, 1) from N(distance, 1), by quadrature around the peak of the integrand."""
    peak = (1 - alpha) * distance
    total = integral(lambda x: mp.npdf(x) ** alpha * mp.npdf(x, distance) ** (1 - alpha), [peak - 12, peak, peak + 12])
    return float(mp.log(total) / (alpha - 1))


def laplace_density(x: float, scale: float = 1) -> Any:
    """Density of centred Laplace noise."""
    return mp.exp(-abs(mp.mpf(x)) / scale) / (2 * scale)


def laplace_tail(x: Any, scale: float = 1) -> Any:
    """P[noise > x]."""
    return mp.exp(-x / scale) / 2 if x > 0 else 1 - mp.exp(x / scale) / 2


def first_wins(gap: float, scale: float) -> Any:
    """P[the first of two noisy scores is the larger], when the first is behind by gap; by quadrature."""
    return integral(lambda y: laplace_density(y, scale) * laplace_tail(gap + y, scale), [-mp.inf, -gap, 0, gap, mp.inf])


def noisy_maximum_delta(count: int, epsilon: float) -> float:
    """The delta at epsilon of publishing max(counts + Lap(1)), counts all 0 against all 1; larger direction.

    The laws are summed over cells of width 1e-4, so that no shape of the likelihood ratio is presumed.
    """
    grid = np.linspace(-12, 28, 400_001)
    below = np.where(grid < 0, np.exp(np.minimum(grid, 0)) / 2, 1 - np.exp(-np.maximum(grid, 0)) / 2) ** count
    zero, one = np.diff(below[10_000:]), np.diff(below[:-10_000])
    growth = math.exp(epsilon)
    return float(max(np.maximum(zero - growth * one, 0).sum(), np.maximum(one - growth * zero, 0).sum()))


def expected_laplace_maximum(count: int) -> float:
    """E[max of `count` Laplace(1) draws] = int_0^inf P[max > x] dx - int_-inf^0 P[max <= x] dx."""
    above = integral(lambda x: 1 - (1 - mp.exp(-x) / 2) ** count, [0, 1, 5, 20, mp.inf])
    below = integral(lambda x: (mp.exp(x) / 2) ** count, [-mp.inf, 0])
    return float(above - below)


def cells_log_ratio(first: tuple[int, ...], second: tuple[int, ...], *, at: tuple[int, ...], scale: float) -> float:
    """The log density ratio of two noisy vectors at a point, Laplace noise of the scale in each cell."""
    return float(
        sum(
            mp.log(laplace_density(x - a, scale) / laplace_density(x - b, scale))
            for a, b, x in zip(first, second, at, strict=True)
        )
    )


def truncated_laplace_delta(bound: float) -> float:
    """The delta at epsilon = 1 of Lap(1) cut to [-bound, bound], sensitivity 1, by quadrature."""

    def density(x: Any) -> Any:
        return laplace_density(x) / (1 - mp.exp(-bound)) if abs(x) <= bound else mp.mpf(0)

    excess = integral(lambda x: max(density(x) - mp.e * density(x - 1), mp.mpf(0)), [-bound, 1 - bound, 0, 1, bound])
    return float(excess)


# Databases -----------------------------------------------------------------------------------------------


def neighbours(database: Database, universe: Sequence[Any], adjacency: str) -> Iterable[Database]:
    """Every neighbour of a small database under the named adjacency."""
    for place in range(len(database)):
        rest = database[:place] + database[place + 1 :]
        if adjacency == "add_or_remove_one":
            yield rest
        else:
            yield from ((*database[:place], value, *database[place + 1 :]) for value in universe)
    if adjacency == "add_or_remove_one":
        yield from ((*database, value) for value in universe)


def sensitivity(query: Query, universe: Sequence[Any], *, size: int, adjacency: str, order: int = 1) -> float:
    """The largest change of the query between neighbours, by enumerating every database of the size."""
    return max(
        float(np.linalg.norm(np.subtract(query(database), query(other)), ord=order))
        for database in itertools.product(universe, repeat=size)
        for other in neighbours(database, universe, adjacency)
    )


def histogram(database: tuple[Any, ...]) -> list[int]:
    """The counts of the cells a, b and c."""
    return [database.count(cell) for cell in "abc"]


# The nuclear ball ----------------------------------------------------------------------------------------


def estimator_peak(n: int) -> float:
    """The largest D_t on [-1, 1] with L0 = L1 = 1, V_t = +1 throughout and convex losses chosen against it.

    The t-th loss has the slope min(1, 1 + x - x_t), never below -1: increasing, so the loss is convex.
    """
    eta = math.log(n) / n
    before, estimate, peak = -1.0, 1.0, 1.0
    for _ in range(n // 2):
        now = (1 - eta) * before + eta
        old_slope, new_slope = max(-1.0, min(1.0, 1 + before - now)), 1.0
        estimate = (1 - eta) * (estimate + new_slope - old_slope) + eta * new_slope
        before, peak = now, max(peak, estimate)
    return peak


def estimator_distances(n: int, place: int) -> Floats:
    """How far apart D_t is after each step of two runs along the same path whose step `place` differs by 1."""
    eta = math.log(n) / n
    difference, found = 0.0, np.zeros(n // 2 + 1)
    for step in range(n // 2 + 1):
        difference = (1 - eta) * difference + (step == place)
        found[step] = difference
    return found


def nested_oja_noise(n: int, dimension: int, epsilon: float, delta: float) -> tuple[float, float]:
    """The deviation of a step of Oja inside a step of Frank-Wolfe, L0 = L1 = 1: composed twice as printed, and at once."""
    eta, steps = math.log(n) / n, math.ceil(math.sqrt(n / dimension))
    moved, each = 6 * eta, delta / (n * (steps + 1))
    inner = epsilon / (2 * math.sqrt(n * math.log(1 / each)))
    printed = oja_noise(inner, each, eta=1, literal=False, steps=steps) * moved
    at_once = math.sqrt(steps / (2 * eta - eta**2)) * moved * gaussian_sigma(epsilon, delta)
    return printed, at_once


def power_steps(top: float, second: float, *, shift: float, gain: float) -> int:
    """How many power steps make the first of two directions gain so much on the second."""
    x, steps = np.ones(2), 0
    while x[0] < gain * x[1]:
        x = np.array([top + shift, second + shift]) * x
        x, steps = x / x.max(), steps + 1
    return steps


def oja_error(steps: int, *, literal: bool, runs: int, seed: int = 20260) -> float:
    """Mean of 1 - <x, e1>^2 after private Oja on A = e1 e1', d = 10, sigma = 0.01 sqrt(T/d)."""
    dimension = 10
    draw = np.random.default_rng(seed)
    sigma = 0.01 * math.sqrt(steps / dimension)
    eta = 1 / (sigma * math.sqrt(dimension)) / (steps if literal else math.sqrt(steps))
    x = draw.standard_normal((runs, dimension))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for _ in range(steps):
        gradient = sigma * draw.standard_normal((runs, dimension))
        gradient[:, 0] += x[:, 0]
        x += eta * gradient
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return float(1 - np.mean(x[:, 0] ** 2))


def oja_noise(epsilon: float, delta: float, *, eta: float, literal: bool, steps: int = 100) -> float:
    """The deviation of the noise on eta * gradient, in units of eta times the sensitivity."""
    common = 32 * math.log(1.25 / delta) ** 2 * steps * math.log(1 / delta)
    variance = common * eta / epsilon if literal else common * eta**2 / epsilon**2
    return math.sqrt(variance) / eta


def noiseless_oja_error(growth: float, dimension: int = 10) -> float:
    """The error of the same steps without noise: the odds of e1 against the rest grow by exp(2 growth)."""
    gain = mp.exp(2 * growth)
    top = sphere_mean(lambda u: (1 - u) / (1 - u + gain * u), dimension)
    return float(top / sphere_mean(lambda _: mp.mpf(1), dimension))


def sphere_mean(function: Callable[[Any], Any], dimension: int) -> Any:
    """The integral of function(x_1^2) over the sphere, up to a constant; x_1 = cos of the polar angle."""
    return integral(
        lambda angle: function(mp.cos(angle) ** 2) * mp.sin(angle) ** (dimension - 2),
        [0, mp.pi / 4, mp.pi / 2 - mp.mpf(10) ** -3, mp.pi / 2],
    )


def bingham_utility(dimension: int) -> float:
    """E[x_1^2] under the density exp((d-2)/4 x_1^2) on the sphere: the best the ceiling on beta allows."""
    weight = mp.mpf(dimension - 2) / 4
    top = sphere_mean(lambda u: u * mp.exp(weight * u), dimension)
    return float(top / sphere_mean(lambda u: mp.exp(weight * u), dimension))


def exponential_grid(data: Sequence[float], factor: float) -> Floats:
    """The log probabilities of exp(-factor * sum |theta - z|) on the middles of 1000 cells of [0, 1]."""
    score = -factor * np.sum(np.abs(MIDDLES[:, None] - np.asarray(data)[None, :]), axis=1)
    return np.asarray(score - score.max() - np.log(np.sum(np.exp(score - score.max()))), dtype=np.float64)


def geodesic_curvature(matrix: Floats, point: Floats, direction: Floats) -> float:
    """The second derivative of x'Ax along a great circle, by central differences."""

    def height(angle: float) -> float:
        x = math.cos(angle) * point + math.sin(angle) * direction
        return float(x @ matrix @ x)

    step = 1e-3
    return (height(step) - 2 * height(0) + height(-step)) / step**2


def envelope_ratio(eigenvalues: Floats, x: Floats) -> float:
    """The largest exp(-x'Ax) over its angular central Gaussian envelope; rows of x are unit vectors."""
    dimension = len(eigenvalues)
    b = bisect(lambda b: 1 - float(np.sum(1 / (b + 2 * eigenvalues))), 1e-9, dimension + 1.0)
    log_bound = -(dimension - b) / 2 + dimension / 2 * math.log(dimension / b)
    form = (x**2) @ (1 + 2 * eigenvalues / b)
    return float(np.max(np.exp(-(x**2) @ eigenvalues - log_bound + dimension / 2 * np.log(form))))


# Doubles -------------------------------------------------------------------------------------------------


def off_the_grid(values: Floats) -> float:
    """The fraction of doubles that are no multiple of 2^-53."""
    scaled = values * 2.0**53
    return float(np.mean(scaled != np.round(scaled)))


def off_the_grid_expected() -> float:
    """The same fraction for ideal Laplace(1) doubles: in [2^-(j+1), 2^-j) a share 2^-j is on the grid."""
    half = mp.mpf(1) / 2
    return float(sum((mp.exp(-(half ** (j + 1))) - mp.exp(-(half**j))) * (1 - half**j) for j in range(1, 120)))


# The page ----------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "textbook-corrected.md").read_text("utf-8")
HEADINGS = dict(re.findall(r"^### (E\d+b?)\. (.+)$", PAGE, re.MULTILINE))
SECTIONS = {name: re.split(r"\n##+ ", PAGE.split(f"\n### {name}. ", 1)[1], maxsplit=1)[0] for name in HEADINGS} | {
    "Illustrations": PAGE.split("\n## Illustrations\n", 1)[1]
}
SUMMARY = PAGE.split("\n## The ten that matter\n", 1)[1].split("\n## ", 1)[0]

# A place in a text (Def. 2.1.6, eq. (2.11), section 3.1) looks like a number and is none.
PLACE = re.compile(r"\b(?:A|\d+)\.\d+\.\d+|(?:eq\.|section|Fig\.) \(?\d+\.\d+\)?")
NUMERAL = re.compile(r"(?<![\w.,])\d+(?:\.\d+)?(?:e-?\d+)?(?![\d])")


def numerals(text: str) -> set[str]:
    """Every number of a section, without its sign."""
    return set(NUMERAL.findall(PLACE.sub("", text)))


def written(value: Any, like: str) -> str:
    """The value with as many digits as the printed number."""
    number = Decimal(mp.nstr(mp.mpf(value), 25))
    digits = len(re.sub(r"e.*", "", like).partition(".")[2])
    return f"{number:.{digits}{'e' if 'e' in like else 'f'}}"


def check(
    name: str,
    computed: Mapping[str, Any],
    *,
    given: Iterable[str] = (),
    about: Mapping[str, tuple[float, float]] | None = None,
    sections: Mapping[str, str] = SECTIONS,
) -> None:
    """The section prints the computed values, prints no other decimal, and the simulated ones lie nearby."""
    section, found = sections[name], numerals(sections[name])
    about = about or {}
    for text, value in computed.items():
        assert written(value, text) == text, f"{name}: the page prints {text}, the computation gives {value}"
    for text, (value, tolerance) in about.items():
        assert abs(value - float(text)) <= tolerance, f"{name}: {value} is not within {tolerance} of {text}"
    for text in [*computed, *about]:
        assert text in section, f"{name}: {text} is not on the page"
        assert text.lstrip("-") in found, f"{name}: {text} is only part of a number on the page"
    known = {text.lstrip("-") for text in [*computed, *given, *about]}
    assert {number for number in found if "." in number} <= known

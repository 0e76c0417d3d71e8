"""How PrivatePCA finds directions: which method is chosen, and one function for each, from whole rows to what may be said.

Which oracle finds the directions is said by name, or chosen from public numbers.

Everything that a method says is in sums over records, in the units of the rows; the estimator divides by their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np

from curador.errors import InvalidParameter, require
from curador.learn.oracles.analyze_gauss import debias_values, noise_edge, noisy_gram, spectrum, symmetric_deviation
from curador.learn.oracles.directions import concentration, directions, range_of
from curador.learn.oracles.oja import oja
from curador.learn.oracles.power import gram_product, lanczos, power_iteration
from curador.learn.plan import PlannedRelease
from curador.learn.sums import Floats, Integers, Whole, gram, sensitivity_steps, total

if TYPE_CHECKING:
    from curador.learn.plan import FitPlan
    from curador.learn.release import Releaser


# ---- choose ----------------------------------------------------------------------------------------------------------------


Method: TypeAlias = Literal["analyze_gauss", "power", "lanczos", "bingham", "oja"]

METHODS: tuple[Method, ...] = ("analyze_gauss", "power", "lanczos", "bingham", "oja")

LARGEST_MATRIX = 5000
"""Up to this many features a whole second moment is released and decomposed: 200 MB."""


def choose(method: object, *, pure: bool, size: int, low_rank: bool = True, exact: bool = False) -> Method:
    """Return the method that "auto" stands for, or the one that was named.

    pure      whether no δ may be spent
    size      the number of features
    low_rank  whether one record's matrix has about the same Frobenius as operator norm, as Σ v v' of rows has
    exact     whether only integer noise will do, as through a curator

    no δ                     bingham, which needs none; exactly: the second moment with Laplace noise
    low rank, size ≤ 5000    analyze_gauss: no iteration, and its error falls with the square of the gap
    else                     lanczos: no matrix, noise by the operator norm
    oja                      only by name: it reproduces the thesis, and needs a δ (`oja_plan` refuses none)

    A function of public numbers, never of data.
    """
    require(size >= 1, "the number of features", "at least 1", size)
    if not isinstance(method, str) or method not in {"auto", *METHODS}:
        raise InvalidParameter.must_be("method", "'auto', " + ", ".join(map(repr, METHODS)), method)
    if method != "auto":
        return cast("Method", method)
    if pure and not exact:
        return "bingham"
    return "analyze_gauss" if low_rank and size <= LARGEST_MATRIX else "lanczos"


# ---- components ------------------------------------------------------------------------------------------------------------


_DENSE = 1500
"""Up to this size all eigenvalues of a released matrix are kept, for the picture."""

_VARIANCES = 0.1
_POWER_STEPS = 6
_OJA_STEPS = 20
_ONE = 1 << 18
_QUANTILE = 2.33
"""Of the normal law: noise exceeds it in one draw of a hundred."""


@dataclass(frozen=True, slots=True)
class FoundDirections:
    """Directions and what is known of them.

    vectors    orthonormal, as rows
    values     the variances along them as they came out
    corrected  the same with what noise adds taken out; 0 where nothing can be told
    seen       all variances that came out, falling: a whole spectrum where a matrix was released
    edge       what noise alone exceeds in one draw of a hundred, or what a direction needs to be more signal than noise
    """

    vectors: Floats
    values: Floats
    corrected: Floats
    seen: Floats
    edge: float


def parts_of(method: str, *, share: float, size: int, count: int) -> list[PlannedRelease]:
    """Return what a method releases with its share of the budget."""
    if method == "analyze_gauss":
        return [PlannedRelease("second moment", share)]
    if method in {"power", "lanczos"}:
        return [PlannedRelease("product", share, steps_of(method, size, count))]
    own = PlannedRelease("variances", share * _VARIANCES)
    if method == "bingham":
        return [PlannedRelease("direction", share - own.share, count, drawn=True), own]
    return [PlannedRelease("product", share - own.share, _OJA_STEPS), own]


def steps_of(method: str, size: int, count: int) -> int:
    """Return how many products an iteration releases."""
    return _POWER_STEPS if method == "power" else min(max(_POWER_STEPS, 2 * count), size)


def find(method: str, releaser: Releaser, rows: Whole, *, count: int, one_row: bool) -> FoundDirections:
    """Return the top directions of Σ v v' of rows, by one of the methods.

    one_row  whether every record is one row
    Claim    Costs the parts of `parts_of`, each as its own function claims.
    """
    if method == "analyze_gauss":
        return _by_moment(releaser, rows, count)
    if method == "bingham":
        return _by_draw(releaser, rows, count)
    return _by_products(method, releaser, rows, count, one_row=one_row)


def forecast(method: str, plan: FitPlan, *, size: int, count: int, norm: float) -> tuple[float, float]:
    """Return what a direction's sum of squares must exceed to be told from noise, and the deviation σ with loss ≈ d σ²/l².

    For drawn directions, whose loss is (d − 1)/(2 β l), the second is 0.
    """
    replaced = sensitivity_steps(_ONE, plan.goal.adjacency, positive=True) / _ONE
    if method == "analyze_gauss":
        deviation = symmetric_deviation(plan, "second moment", size, limit=_ONE, step=norm**2 / _ONE)
        least = debias_values(np.array([noise_edge(size, deviation)[1]]), size, deviation)[0]
        return float(least[0]), deviation
    if method == "bingham":
        beta = float(1 / plan.multiplier("direction")) / (norm**2 * (2.0 if replaced > 1 else 1.0))
        return (size - 1.0) / (2.0 * beta), 0.0
    numbers = 1 if plan.gaussian else size * (count if method == "power" else 1)
    deviation = plan.deviation(
        "product", norm**2 * math.sqrt(numbers) * (replaced if count > 1 and method == "power" else 1.0)
    )
    return _product_edge(size, deviation), deviation


# ---- the methods --------------------------------------------------------------------------------------------------------


def _by_moment(releaser: Releaser, rows: Whole, count: int) -> FoundDirections:
    noisy = noisy_gram(releaser, "second moment", rows)
    top = spectrum(noisy, count)
    seen = top.values
    if len(noisy.values) <= _DENSE:
        seen = np.asarray(np.linalg.eigvalsh(noisy.values)[::-1], np.float64)
    return FoundDirections(top.vectors, top.values, top.debiased, seen, top.threshold)


def _by_products(method: str, releaser: Releaser, rows: Whole, count: int, *, one_row: bool) -> FoundDirections:
    size = rows.values.shape[1]
    product = gram_product(rows, releaser.plan.goal.adjacency, one_row=one_row)
    if method == "oja":
        end = oja(releaser, "product", product, size=size, steps=_OJA_STEPS, accountant="tight")
        return _with_variances(releaser, rows, end.direction[None, :], _last_deviation(releaser))
    iteration = power_iteration if method == "power" else lanczos
    found = iteration(releaser, "product", product, size=size, count=count, steps=steps_of(method, size, count))
    edge = _product_edge(size, _last_deviation(releaser))
    return FoundDirections(found.vectors, found.values, np.maximum(found.values, 0.0), found.values, edge)


def _by_draw(releaser: Releaser, rows: Whole, count: int) -> FoundDirections:
    extent = range_of(rows, releaser.plan.goal.adjacency)
    matrix = gram(rows).astype(np.float64) * rows.step**2
    vectors = directions(releaser, "direction", matrix, extent=extent, count=count)
    size = rows.values.shape[1]
    half = (size - 1.0) / (2.0 * concentration(releaser.plan, "direction", extent))
    return _with_variances(releaser, rows, vectors, None, floor=half)


def _with_variances(
    releaser: Releaser, rows: Whole, vectors: Floats, deviation: float | None, *, floor: float = 0.0
) -> FoundDirections:
    """Buy the sums of squares along released directions, and put directions in their order."""
    integers, length = squares_along(rows, vectors)
    plan = releaser.plan
    length = sensitivity_steps(length, plan.goal.adjacency, positive=plan.gaussian)
    values = releaser.noisy("variances", integers, length=length, step=rows.step**2)
    own = releaser.deviation("variances", length=length, step=rows.step**2)
    edge = max(floor, 0.0 if deviation is None else _product_edge(rows.values.shape[1], deviation)) + _QUANTILE * own
    order = np.argsort(values)[::-1]
    return FoundDirections(vectors[order], values[order], np.maximum(values[order], 0.0), values[order], edge)


def squares_along(rows: Whole, vectors: Floats) -> tuple[Integers, int]:
    """Return Σ (v·x)² over whole rows, for public directions x, exactly, and how far a record that comes or goes moves it.

    Claim   A record adds numbers that are not negative, and at most `length` in sum: the directions on their grid have a
            squared operator norm g of at most the largest absolute row sum of their exact products with each other, so that
            Σ (v·x)² ≤ g |v|². That bounds the l1 and the l2 distance of records that come or go; of two that are replaced,
            √2 times it is the l2 distance, because nothing is negative, and twice it the l1 distance.
    Needs   Weights of a record's rows, if any, with squares that add up to at most 1.
    Rounds  Up. Coefficients are cut towards 0.
    """
    grid = np.trunc(np.clip(vectors, -1.0, 1.0).T * _ONE)
    norm = int(np.abs(grid.T @ grid).sum(axis=1).max())  # whole numbers below 2⁵³
    length = -(-(rows.limit**2) * norm // _ONE**2)
    along = np.trunc(rows.values @ grid / _ONE)
    return total(Whole(along * along, rows.step**2, length)), length


def _last_deviation(releaser: Releaser) -> float:
    return next(release.deviation for release in releaser.releases if release.name == "product")


def _product_edge(size: int, deviation: float) -> float:
    """Where A x is longer than the noise on it, and x'Ax is above its own noise in 99 of 100 draws."""
    return deviation * (math.sqrt(size) + _QUANTILE)

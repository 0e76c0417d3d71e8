"""Clusters in few noisy releases: where the data are, a histogram of their two widest directions, then Lloyd's steps.

    count, Σ x, Σ x x' + noise ──► mean, directions ──► histogram + noise ──► weighted k-means on its cells ──► first centres
    [counts and Σ (x − centre), shortened to a radius, + noise ──► centres] × STEPS

Rows are in the frame of their declared bounds: every feature from -1 to 1, whatever its unit. Distances are in that frame, so
a wide feature decides no more than a narrow one, and noise of one size is as large for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import Failed
from curador.learn.dry_run import TYPICAL
from curador.learn.plan import PlannedRelease
from curador.learn.regression.frame import INWARD, TOP, design_of, frame_rows
from curador.learn.regression.moments import TargetGrid, products, release_marginals, release_moments
from curador.learn.sums import sensitivity_steps
from curador.numerics.exact import whole_root_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.learn.plan import FitGoal, FitPlan
    from curador.learn.regression.frame import FeatureFrame
    from curador.learn.release import Releaser
    from curador.learn.sums import Floats, Integers

MOMENTS, CELLS, SUMS = "second moments", "histogram", "sums of clusters"
STEPS = 3

_SHARES = (0.15, 0.25, 0.6)
_MOST_CELLS = 4096
_MOST_MEMBERS = 1 << 24
_RADIUS = 2.5
_SPREADS = 3.0
_TRIES = 20
_CORRELATED = 4
"""Of more features, under Laplace noise, only the spread of each is released: the widest are then the directions."""

_STANDS = 10.0
"""How many times above its noise a count should be for a forecast to be good."""

_CROWDED = 5
_ABOVE = 3.0
_ROUNDS = 30


@dataclass(frozen=True, slots=True)
class Clusters:
    """Centres in the frame, and noisy counts of those nearest to the centres of the step before."""

    centres: Floats
    counts: Floats


def parts() -> list[PlannedRelease]:
    """Return what a fit releases."""
    return [PlannedRelease(MOMENTS, _SHARES[0]), PlannedRelease(CELLS, _SHARES[1]), PlannedRelease(SUMS, _SHARES[2], STEPS)]


def nearest(rows: Floats, centres: Floats) -> Integers:
    """Return the place of the nearest centre of each row; the first of several. Exact where all are whole and below 2¹⁶."""
    apart = np.square(centres).sum(axis=1)[None, :] - 2.0 * (rows @ centres.T)
    return apart.argmin(axis=1).astype(np.int64)


def clusters_of(
    releaser: Releaser,
    rows: Floats,
    frame: FeatureFrame,
    count: int,
    *,
    weights: Floats | None,
    roots: Floats | None,
    records: int | None,
) -> Clusters:
    """Return `count` clusters of rows. Rows are clamped to the frame; missing is its centre.

    Claim   Where a row goes depends on that row only, to the last bit: it is clamped and scaled number by number; rows,
            directions and centres are whole numbers, whose products and distances floats hold exactly, whatever the order in
            which they are added. What a unit moves is bounded in the frame: see `design_of` and `release_moments` (or
            `release_marginals`), `cell_length` and `sum_length`. None of these knows what a feature's unit was.
    Needs   A frame of declared bounds without a row norm; weights that add up to at most 1 in a unit, roots that are theirs.
    Rounds  Lengths up, as said there.
    Source  [SCLBJ16] noisy Lloyd's steps and histograms; [DTTZ14] symmetric noise.
    """
    if frame.features >= 1 << 20:
        raise Failed("more features than distances are exact for")
    design = design_of(rows, frame, intercept=True, roots=roots)
    marginal = releaser.plan.goal.pure and frame.features > _CORRELATED
    if marginal:
        found = release_marginals(releaser, design, records=records, name=MOMENTS)
    else:
        empty = np.zeros((len(rows), 0))
        found = release_moments(releaser, design, empty, None, TargetGrid(1), intercept=True, records=records, name=MOMENTS)
    # a count within its noise says nothing: the mean is then the middle of the box
    total = max(float(found.gram[-1, -1]), 1.0)
    certain = total * total / (total * total + (2 * found.noise[0]) ** 2)
    mean = certain * np.clip(found.gram[:-1, -1] / total, -1.0, 1.0)
    apart = found.gram[:-1, :-1] / total
    spread = apart - (np.diag(mean * mean) if marginal else np.outer(mean, mean))
    values, vectors = np.linalg.eigh((spread + spread.T) / 2)
    most = frame.features / 3
    values = certain * np.clip(values, 0.0, most)
    plain = design.values[:, :-1] if roots is None else np.rint(frame_rows(rows, frame) * TOP)
    noise = found.noise[0] / total
    wide = vectors[:, ::-1][:, : min(2, len(values))]
    sides = np.sqrt(np.clip(values[::-1][: wide.shape[1]] + certain * noise, 1e-6, 1.0))
    flat = (plain - np.rint(mean * TOP)) @ np.rint(wide * TOP) / TOP**2
    centres, shares = _first(releaser, flat, sides, count, total, weights)
    lifted = np.clip(mean + centres @ wide.T, -1.0, 1.0)
    between = float((shares[:, None] * np.square(centres)).sum())
    within = max(min(float(values.sum()), most) - between, 0.05 * min(float(values.sum()), most), 1e-4)
    return _lloyd(releaser, plain, lifted, _RADIUS * math.sqrt(within), sides[0] * wide[:, 0], weights)


# ---- the first centres ----------------------------------------------------------------------------------------------------


def cell_length(goal: FitGoal) -> int:
    """Return by how many grid steps one unit moves the histogram: its weights, in cells, add up to at most 1."""
    return sensitivity_steps(TOP, goal.adjacency, positive=not goal.pure)


def _first(
    releaser: Releaser, flat: Floats, sides: Floats, count: int, total: float, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return first centres in the widest directions, and what share of the histogram is nearest to each."""
    plan = releaser.plan
    deviation = plan.deviation(CELLS, cell_length(plan.goal) / TOP)
    directions = flat.shape[1]
    wanted = min(max(total / (_CROWDED * deviation), 4.0 * count, 16.0), float(_MOST_CELLS))
    bins = max(4, int(wanted ** (1 / directions)))
    reach = _SPREADS * sides
    places = np.clip(np.floor((flat / reach + 1.0) * (bins / 2)), 0, bins - 1).astype(np.int64)
    index = places[:, 0] if directions == 1 else places[:, 0] * bins + places[:, 1]
    added = np.full(len(flat), TOP) if weights is None else np.floor(weights * TOP).astype(np.int64)
    sums = np.zeros(bins**directions, np.int64)
    np.add.at(sums, index, added)
    noisy = releaser.noisy(CELLS, sums, length=cell_length(plan.goal), step=1.0 / TOP)
    mass = np.where(noisy > _ABOVE * deviation, noisy, 0.0)
    middles = (np.arange(bins) + 0.5) * (2.0 / bins) - 1.0
    if directions == 1:
        cells = middles[:, None] * reach
    else:
        cells = np.stack([np.repeat(middles, bins), np.tile(middles, bins)], axis=1) * reach
    if not mass.any():
        mass = np.exp(-2.0 * np.square(cells / sides).sum(axis=1))
    kept = mass > 0
    return weighted_means(cells[kept], mass[kept], count)


def weighted_means(points: Floats, mass: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the best of some k-means of weighted points, and the share of each: post-processing, with public randomness."""
    public = np.random.default_rng(count)
    best, least = (np.resize(points, (count, points.shape[1])), np.full(count, 1.0 / count)), math.inf
    for _ in range(_TRIES):
        centres = points[public.choice(len(points), p=mass / mass.sum())][None, :]
        while len(centres) < count:
            away = np.square(points[:, None, :] - centres[None]).sum(axis=2).min(axis=1) * mass
            chosen = public.choice(len(points), p=away / away.sum()) if away.sum() > 0 else len(centres) % len(points)
            centres = np.vstack([centres, points[chosen]])
        sizes = np.zeros(count)
        for _ in range(_ROUNDS):
            labels = nearest(points, centres)
            sizes = np.bincount(labels, mass, count)
            sums = np.stack([np.bincount(labels, mass * points[:, j], count) for j in range(points.shape[1])], axis=1)
            moved_to = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1e-300)[:, None], centres)
            if np.array_equal(moved_to, centres):
                break
            centres = moved_to
        cost = float((np.square(points - centres[nearest(points, centres)]).sum(axis=1) * mass).sum())
        if cost < least:
            best, least = (centres, sizes / mass.sum()), cost
    return best


# ---- Lloyd's steps --------------------------------------------------------------------------------------------------------


def sum_length(goal: FitGoal) -> int:
    """Return by how many grid steps one unit moves counts and sums.

    Claim   A row adds w·(count unit) to one count and w·(a residual of at most TOP, in l2 under Gaussian noise, in l1 under
            Laplace noise) to one sum; the weights of a unit add up to at most 1. Replacing: twice that, for sums have signs.
    Rounds  Up.
    """
    unit = count_unit(goal)
    added = TOP + unit if goal.pure else whole_root_up(TOP * TOP + unit * unit)
    return sensitivity_steps(added, goal.adjacency)


def count_unit(goal: FitGoal) -> int:
    """Return what 1 is in counts: coarser than sums, for an error in a count moves a centre by a part of a step only."""
    return TOP // 4 if goal.pure else TOP // 2


@dataclass(frozen=True, slots=True)
class Expected:
    """What noise does to clusters of one size, in the frame. Public.

    count   the deviation of a count
    centre  the deviation of a centre in each feature, in half ranges
    needed  how many records it takes: counts stand ten times above their noise, and centres are known to a quarter of what
            features are taken to spread over
    """

    count: float
    centre: float
    needed: int


def expected_noise(plan: FitPlan, records: int, clusters: int, features: int) -> Expected:
    """Return what can be expected of a step, where features spread over a fifth of their half range (`TYPICAL`)."""
    length = sum_length(plan.goal)
    count = plan.deviation(SUMS, length / count_unit(plan.goal))
    reach = _RADIUS * TYPICAL * math.sqrt(features) * (math.sqrt(features) if plan.goal.pure else 1.0)
    moved_by = plan.deviation(SUMS, length / TOP) * min(reach, 2.0 * features) * clusters
    needed = math.ceil(max(_STANDS * count * clusters, 4.0 * moved_by / TYPICAL))
    return Expected(count, moved_by / records, needed)


def _lloyd(
    releaser: Releaser,
    rows: Floats,
    centres: Floats,
    radius: float,
    widest: Floats,
    weights: Floats | None,
) -> Clusters:
    goal, count = releaser.plan.goal, len(centres)
    unit, length = count_unit(goal), sum_length(goal)
    reach = radius * (math.sqrt(centres.shape[1]) if goal.pure else 1.0)
    deviation = releaser.deviation(SUMS, length=length, step=1.0 / unit)
    counts = np.zeros(count)
    for _ in range(STEPS):
        places = np.rint(centres * TOP)
        labels = nearest(rows, places)
        sums = cluster_sums(rows - places[labels], labels, count, goal, reach * TOP, weights)
        noisy = releaser.noisy(SUMS, sums, length=length, step=1.0 / TOP)
        counts = noisy[:, -1] * (TOP / unit)
        filled = counts > 3 * deviation
        gain = np.maximum(counts, 0.0) / (np.square(counts) + 4 * deviation * deviation)
        steps = noisy[:, :-1] * reach * gain[:, None]
        centres = np.clip(places / TOP + np.where(filled[:, None], steps, 0.0), -1.0, 1.0)
        centres = _refill_centres(centres, counts, filled, widest)
    return Clusters(centres, np.maximum(counts, 0.0))


def cluster_sums(
    residuals: Floats, labels: Integers, count: int, goal: FitGoal, reach: float, weights: Floats | None
) -> Integers:
    """Return, one row a cluster, exact sums of residuals shortened to `reach` (in the norm of the noise), and counts, last.

    Claim  See `sum_length`. Residuals are shortened by 2⁻³⁰ more than said and rounded towards zero.
    """
    sizes = np.ones(len(residuals)) if weights is None else weights
    norms = np.abs(residuals).sum(axis=1) if goal.pure else np.sqrt(np.square(residuals).sum(axis=1))
    factors = (TOP * INWARD) * sizes / np.maximum(norms, reach)
    whole = np.concatenate([np.trunc(residuals * factors[:, None]), np.floor(sizes * count_unit(goal))[:, None]], axis=1)
    found = np.zeros((count, whole.shape[1]), np.int64)
    size = max(1, _MOST_MEMBERS // count)
    for start in range(0, len(whole), size):
        part = whole[start : start + size]
        member = np.zeros((len(part), count))
        member[np.arange(len(part)), labels[start : start + size]] = 1.0
        found += products(member, part, TOP)
    return found


def _refill_centres(centres: Floats, counts: Floats, filled: NDArray[np.bool_], widest: Floats) -> Floats:
    """A centre that nobody is near goes beside the one with most records, along the widest direction."""
    found = centres.copy()
    left = np.where(filled, counts, 0.0)
    if not filled.any():
        return found
    for place in np.flatnonzero(~filled):
        full = int(left.argmax())
        found[place] = np.clip(found[full] + 0.5 * widest, -1.0, 1.0)
        left[full] /= 2
    return found

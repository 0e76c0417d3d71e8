"""Output laws of choices on small integer scores, by sums over all noises: slow, plain, and independent of the library."""

import itertools
import math

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-9


def chi_squared_excess(counts, law):
    """The χ² statistic over its critical value at a false-alarm rate of 1e-9; cells expected below 25 times are merged."""
    counts, expected = np.asarray(counts, float), np.asarray(law, float) * np.sum(counts)
    small = expected < 25
    if small.any():
        counts = np.append(counts[~small], counts[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
        if expected[-1] < 25:
            counts, expected = counts[:-1], expected[:-1]
    return ((counts - expected) ** 2 / expected).sum() / stats.chi2.isf(FALSE_ALARM, len(counts) - 1)


def laplace_mass(n, scale):
    """P[N = n] of discrete Laplace noise."""
    r = math.exp(-1 / scale)
    return (1 - r) / (1 + r) * r ** np.abs(n)


def laplace_tail(n, scale):
    """P[N ≥ n] of discrete Laplace noise."""
    n, r = np.asarray(n, float), math.exp(-1 / scale)
    return np.where(n > 0, r ** np.maximum(n, 0) / (1 + r), 1 - r ** np.maximum(1 - n, 1) / (1 + r))


def exponential_law(scores, rate):
    weight = np.exp(rate * (np.asarray(scores, float) - max(scores)))
    return weight / weight.sum()


def permute_and_flip_law(scores, rate):
    """By all orders, and in each the chance that the first heads is at each place."""
    heads = [math.exp(rate * (score - max(scores))) for score in scores]
    law = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        still = 1.0
        for place in order:
            law[place] += still * heads[place] / len(orders)
            still *= 1 - heads[place]
    return law


def noisy_max_law(scores, scale, *, reach=200):
    """P[each is the first] with ties to the smaller index, by a sum over its own noise."""
    n = np.arange(-reach, reach + 1)
    law = []
    for i, own in enumerate(scores):
        chance = laplace_mass(n, scale)
        for j, other in enumerate(scores):
            if j != i:
                chance = chance * (1 - laplace_tail(n + own - other - (j < i) + 1, scale))
        law.append(chance.sum())
    return np.array(law)


def noisy_order_law(scores, scale, *, top, gap, reach=18):
    """P[each list of winners (and gaps)] by a sum over all noises of three candidates: {(winners, gaps): probability}."""
    n = np.arange(-reach, reach + 1)
    grid = np.stack(np.meshgrid(*[n] * len(scores), indexing="ij")).reshape(len(scores), -1)
    mass = np.prod(laplace_mass(grid, scale), axis=0)
    noisy = grid + np.array(scores)[:, None]
    order = np.argsort(-noisy, axis=0, kind="stable")[: top + gap]
    rows = [order[:top]]
    if gap:
        height = np.take_along_axis(noisy, order, axis=0)
        rows.append(height[:-1] - height[1:] - (order[1:] < order[:-1]))
    parts = np.concatenate(rows)
    codes, places = np.unique(256 ** np.arange(len(parts)) @ parts, return_inverse=True)
    total = np.bincount(places, mass)
    return {
        tuple(code // 256**k % 256 for k in range(len(parts))): p
        for code, p in zip(codes.tolist(), total.tolist(), strict=True)
    }


def sparse_law(values, threshold, *, threshold_scale, query_scale, hits, reach=400):
    """P[each sequence of answers], −1 after the stop; a scale of None means no noise there: {answers: probability}."""
    rho = np.array([0]) if threshold_scale is None else np.arange(-reach, reach + 1)
    level = np.ones(1) if threshold_scale is None else laplace_mass(rho, threshold_scale)
    law = {}
    for answers in itertools.product((0, 1), repeat=len(values)):
        chance, used, shown = level.copy(), 0, []
        for value, answer in zip(values, answers, strict=True):
            if used == hits:
                shown.append(-1)
                continue
            needed = threshold + rho - value
            above = (needed <= 0).astype(float) if query_scale is None else laplace_tail(needed, query_scale)
            chance = chance * (above if answer else 1 - above)
            used += answer
            shown.append(answer)
        law[tuple(shown)] = float(chance.sum())
    return law


def neighbours(scores, monotone):
    """All score vectors within 1 of the given one; the same way, if monotone."""
    steps = [(0, 1), (0, -1)] if monotone else [(-1, 0, 1)]
    for step in steps:
        for moves in itertools.product(step, repeat=len(scores)):
            yield tuple(score + move for score, move in zip(scores, moves, strict=True))


def largest_log_ratio(law, other, *, least=0.0):
    """Over the outputs that have at least this probability under one of both."""
    keys = [key for key in law if max(law[key], other.get(key, 0.0)) > least]
    return max(abs(math.log(law[key]) - math.log(other[key])) for key in keys)

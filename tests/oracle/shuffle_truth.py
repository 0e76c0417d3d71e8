"""Shuffled reports by brute force: the pair with 40 digits or, of many people, in floats; real randomizers with fractions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
from scipy.special import gammaln

mp = mpmath.mp.clone()
mp.dps = 40


def label_laws(epsilon0, variation, *, clone=1, swap=False, hidden=False):
    """(others', person's in the two worlds) laws of the labels +, −, 0 and none; the rest are seeded bugs.

    clone    the chance of a label times so much
    swap     e and 1 exchanged among the marks: others leave one as often as a silent person
    hidden   a person without a sign hides among all who have none
    """
    e = mp.exp(mp.mpf(epsilon0.numerator) / epsilon0.denominator)
    beta = mp.mpf(variation.numerator) / variation.denominator if variation is not None else (e - 1) / (e + 1)
    u = beta / (e - 1)
    silent = 1 - (e + 1) * u if variation is not None else mp.mpf(0)
    others = [clone * u, clone * u, clone * silent / (1 if swap else e)]
    others.append(1 - sum(others))
    first, second = [e * u, u, silent, mp.mpf(0)], [u, e * u, silent, mp.mpf(0)]
    if hidden:
        others = [u, u, mp.mpf(0), 1 - 2 * u]
        first, second = [e * u, u, mp.mpf(0), silent], [u, e * u, mp.mpf(0), silent]
    return others, first, second


def pair(epsilon0, reports, variation=None, **bug):
    """[(P, Q)] of every (a, b, c)."""
    others, first, second = label_laws(epsilon0, variation, **bug)
    n = reports - 1
    factorial = [mp.factorial(k) for k in range(n + 1)]

    def mass(a, b, c):
        rest = n - a - b - c
        if min(a, b, c, rest) < 0:
            return mp.mpf(0)
        ways = factorial[n] / (factorial[a] * factorial[b] * factorial[c] * factorial[rest])
        return ways * others[0] ** a * others[1] ** b * others[2] ** c * others[3] ** rest

    marks = range(reports + 1) if others[2] or first[2] else range(1)
    rows = []
    for a in range(reports + 1):
        for b in range(reports + 1 - a):
            for c in marks:
                if a + b + c <= reports:
                    near = mass(a - 1, b, c), mass(a, b - 1, c), mass(a, b, c - 1), mass(a, b, c)
                    rows.append(tuple(mp.fsum(x * y for x, y in zip(near, law, strict=True)) for law in (first, second)))
    return rows


def hockey_stick(rows, epsilon):
    """The δ at ε of a list of (P, Q)."""
    tau = mp.exp(mp.mpf(epsilon.numerator) / epsilon.denominator)
    return mp.fsum(p - tau * q for p, q in rows if p > tau * q)


# ---- many people, in floats -------------------------------------------------------------------------------------------


def central(trials, share, reach=9.5):
    """Counts within so many deviations of their mean, and their binomial masses: all but 1e-20 of it, a billionth exact."""
    mean, width = trials * share, reach * math.sqrt(trials * share * (1 - share)) + 15
    count = np.arange(max(0, math.floor(mean - width)), min(trials, math.ceil(mean + width)) + 1, dtype=np.float64)
    ways = gammaln(trials + 1) - gammaln(count + 1) - gammaln(trials - count + 1)
    return count, np.exp(ways + count * math.log(share) + (trials - count) * math.log1p(-share))


def log_moments(epsilon0, reports, orders):
    """log E_P[e^((α−1)L)] of the pair without a variation, from below: outcomes far out are left out."""
    e = math.exp(epsilon0)
    excess = np.zeros(len(orders))
    for hiding, weight in zip(*central(reports - 1, 2 / (e + 1)), strict=True):
        plus, fair = central(int(hiding) + 1, 0.5)
        minus = hiding + 1 - plus
        mass = weight * fair * 2 * (e * plus + minus) / ((hiding + 1) * (e + 1))
        loss = np.log((e * plus + minus) / (plus + e * minus))
        excess += [float((mass * np.expm1((alpha - 1) * loss)).sum()) for alpha in orders]
    return np.log1p(excess)


def marked_delta(epsilon0, reports, variation, epsilon):
    """δ at ε of the pair with a variation: if all drew as the others do, (a, b, c) would weigh (ea + b + ec)/n in P.

    P − e^ε Q is positive where gain · a > cost, and the sum over a is two tails of fair signs, added up from the far end.
    """
    e, x = math.exp(epsilon0), math.exp(epsilon)
    u = variation / (e - 1)
    marked = (1 - (e + 1) * u) / e / (1 - 2 * u)
    gain = e - x - 1 + x * e
    total = 0.0
    for signs, weight in zip(*central(reports, 2 * u), strict=True):
        marks, chance = central(reports - int(signs), marked)
        cost = (x * e - 1) * signs + e * (x - 1) * marks
        plus, fair = central(int(signs), 0.5)
        least = np.clip(np.floor(cost / gain) + 1 - plus[0], 0, len(plus)).astype(int)
        mass, mean = (np.append(np.cumsum(part[::-1])[::-1], 0.0)[least] for part in (fair, fair * plus))
        total += weight * float((chance * (gain * mean - cost * mass)).sum())
    return total / reports


# ---- real randomizers -------------------------------------------------------------------------------------------------


def response(categories, power):
    """k-ary randomized response with e^ε₀ = power, exact."""
    total = power + categories - 1
    return [[Fraction(power if i == j else 1) / total for j in range(categories)] for i in range(categories)]


def shuffled_laws(rows, person, others):
    """The exact law of the multiset of outputs: {counts: probability}."""
    law = {(0,) * len(rows[0]): Fraction(1)}
    for value in (person, *others):
        after: Counter = Counter()
        for counts, mass in law.items():
            for output, chance in enumerate(rows[value]):
                if chance:
                    moved = (*counts[:output], counts[output] + 1, *counts[output + 1 :])
                    after[moved] += mass * chance
        law = dict(after)
    return law


def true_delta(rows, reports, tau):
    """The largest δ at e^ε = tau of the shuffled randomizer over all neighbouring inputs, exact."""
    values = range(len(rows))
    worst = Fraction(0)
    for others in itertools.combinations_with_replacement(values, reports - 1):
        laws = [shuffled_laws(rows, person, others) for person in values]
        for p, q in itertools.permutations(laws, 2):
            worst = max(worst, sum((max(mass - tau * q.get(key, 0), 0) for key, mass in p.items()), Fraction(0)))
    return worst


def variation_of(rows):
    """The largest total variation between two rows, exact."""
    pairs = itertools.combinations(rows, 2)
    return max(sum((max(x - y, 0) for x, y in zip(a, b, strict=True)), Fraction(0)) for a, b in pairs)

"""Bars of expressions of moments against redraws and against the terms of the proof.

Redraws alarm where more are missed than a binomial law allows but for 1e-9; all tests together below 1e-7.
"""

import dataclasses
from fractions import Fraction

import hand_made as hand
import numpy as np
import pytest
from hand_made import call, number
from scipy.stats import binom

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.laplace import DiscreteLaplace
from curador.plan import enclosure as on
from curador.plan import moment_forms
from curador.plan.aggregates import Linear, Mean
from curador.plan.moment_forms import moments_interval, of_moments
from curador.query.tree import Estimated
from curador.study.values import Type

MISS = Fraction(1, 5)
REDRAWS = 20_000
MOST = int(binom.isf(1e-9, REDRAWS, float(MISS)))
BOUNDS = Fraction(-100), Fraction(100)
BLOCK = dataclasses.replace(
    hand.block(),
    estimates=(
        Linear(((0, Fraction(1)),), whole=True),
        *(Mean(place, 0, Fraction(1), Fraction(0), *BOUNDS) for place in range(1, 6)),
        Mean(7, 6, Fraction(1), Fraction(0), *BOUNDS),
    ),
)
N, X, Y, XX, YY, XY, OTHER = (Estimated(place, Type.INTEGER if not place else Type.FLOAT) for place in range(7))


def bent(one, other, product):
    """The mean of a product without the product of the means."""
    return call("-", product, call("*", one, other))


COVARIANCE = bent(X, Y, XY)
SPREADS = call("*", bent(X, X, XX), bent(Y, Y, YY))
EXPRESSIONS = {
    "covariance": COVARIANCE,
    "slope": call("/", COVARIANCE, bent(X, X, XX)),
    "correlation": call("/", COVARIANCE, call("sqrt", SPREADS)),
    "sum of products": call("*", COVARIANCE, N),
    "sample": call("/", call("*", COVARIANCE, N), call("-", N, number(1))),
    "two counts": call("*", N, call("+", call("*", X, X), call("*", X, OTHER))),
}
DATA = {
    "independent": (900, 3.0, 4.0, 20.0, 30.0, 0.0, 300, 2.0),
    "one line": (900, 3.0, 6.0, 20.0, 80.0, 40.0, 300, 2.0),
    "falling line": (400, 3.0, -3.0, 20.0, 20.0, -20.0, 110, 2.0),
    "hardly any spread": (900, 3.0, 4.0, 0.1, 30.0, 0.0, 300, 2.0),
}


def sums(rows, mean, other, spread, beside, together, more, last):
    """The measurements of so many rows with these means, variances and covariance."""
    held = rows, rows * mean, rows * other, rows * (spread + mean**2), rows * (beside + other**2)
    return np.rint([*held, rows * (together + mean * other), more, more * last])


def value(name, x):
    """The expression of some measurements, by hand."""
    n, y = x[0], x[1:6] / x[0]
    together, spread, beside = y[4] - y[0] * y[1], y[2] - y[0] ** 2, y[3] - y[1] ** 2
    with np.errstate(all="ignore"):
        return {
            "covariance": together,
            "slope": together / spread,
            "correlation": together / np.sqrt(np.maximum(spread * beside, 0)),
            "sum of products": n * together,
            "sample": n * together / (n - 1),
            "two counts": n * (y[0] ** 2 + y[0] * x[7] / x[6]),
        }[name]


def intervals(name, data, law, redraws=REDRAWS):
    """The ends in every redraw, and the truth."""
    truth, dice = sums(*DATA[data]), np.random.default_rng(1)
    scales = [4, 20, 20, 100, 100, 100, 4, 20]
    noises = [law(scale) for scale in scales]
    smooth = dice.normal(size=(8, redraws)) if law is gaussian else dice.laplace(size=(8, redraws))
    released = truth[:, None] + np.rint(np.array(scales)[:, None] * smooth)
    made = of_moments(EXPRESSIONS[name], BLOCK)
    assert made is not None
    with np.errstate(all="ignore"):
        where = moments_interval(made, BLOCK, dict(enumerate(released)), noises, MISS, on.unknown(redraws))
    return where, float(value(name, truth))


def gaussian(scale):
    return DiscreteGaussian(sigma=scale, sensitivity=1)


def laplace(scale):
    return DiscreteLaplace(scale=scale, sensitivity=1)


def missed(where, truth):
    return int((~((where.low <= truth) & (truth <= where.high))).sum())


@pytest.mark.slow
@pytest.mark.parametrize("law", [gaussian, laplace])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_of_moments_are_covered(name, data, law):
    """Lines, no spread to speak of, one count or two."""
    redraws = REDRAWS if law is gaussian else 2000
    where, truth = intervals(name, data, law, redraws)
    assert missed(where, truth) <= int(binom.isf(1e-9, redraws, float(MISS)))
    if data == "independent" and law is gaussian:
        assert np.isfinite(where.low).mean() > 0.9


@pytest.mark.slow
def test_a_form_without_the_noise_of_the_count_is_caught(monkeypatch):
    """Where a count is taken for exact, n · covariance with large means is missed too often."""
    plain = moment_forms.combined_reaches

    def without(held, coefficients, noises, miss):
        return plain(held, coefficients * np.array([index != 0 for index in held]) / 2, noises, miss)

    monkeypatch.setattr(moment_forms, "combined_reaches", without)
    assert missed(*intervals("sum of products", "independent", gaussian)) > MOST


def test_the_drift_of_several_counts_has_all_parts(monkeypatch):
    """Under Laplace noise, n h(y): the count's own noise times h(y) drifts with its count, too."""
    seen = []
    kind = vars(moment_forms)["_Form"]
    plain = vars(kind)["_linear"]

    def watched(self, held, coefficients, slips):
        seen.append((self, coefficients, slips))
        return plain(self, held, coefficients, slips)

    monkeypatch.setattr(kind, "_linear", watched)
    intervals("two counts", "independent", laplace, 5)
    form, coefficients, slips = seen[0]
    truth = sums(*DATA["independent"])
    y = truth[1] / truth[0], truth[7] / truth[6]
    height = y[0] ** 2 + y[0] * y[1]
    slopes = {1: 2 * y[0] + y[1], 7: y[0]}
    least = sum(slopes[index] * form.errors[index] for index in slopes) + height * form.reaches[0] / form.released[0]
    assert np.all(slips >= 0.999 * least)
    assert coefficients.shape == (5, 4)

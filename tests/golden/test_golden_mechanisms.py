"""Golden values of the mechanisms, recomputed by the library."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import curador as cu
from curador.mechanisms.gaussian import gaussian_total
from curador.mechanisms.laplace import laplace_tail
from curador.mechanisms.tails import any_of
from curador.randomness.noise import exp_bounds

VALUES = json.loads((Path(__file__).parent / "mechanisms.json").read_text(encoding="utf-8"))
FINE = 2**40


def union(p):
    return cu.Laplace(scale=1, sensitivity=1).interval(1 - Fraction(str(p["gamma"])) / p["k"]).upper


def failure(p):
    reach = math.floor(Fraction(math.log(p["k"] / p["gamma"])) * FINE)
    return float(any_of(Fraction(laplace_tail(Fraction(FINE), reach)), p["k"]))


def flip_error(p):
    scores = np.array(p["scores"])
    return float((scores.max() - scores) @ cu.PermuteAndFlip(epsilon=p["eps"], sensitivity=1).probabilities(scores))


def first_place(gap, scale):
    return float(cu.NoisyMax(epsilon=Fraction(2) / Fraction(str(scale)), sensitivity=1).probabilities([gap, 0])[0])


def median(p):
    data = sorted(p["data"])
    edges = [p["lo"], *data, p["hi"]]
    scores = [-abs(i - p["q"] * len(data)) for i in range(len(edges) - 1)]
    return list(cu.Exponential(epsilon=p["eps"], sensitivity=p["sens"]).probabilities_between(edges, scores))


def coin(p):
    low, high = exp_bounds(Fraction(str(p["gamma"])), 100)
    assert high - low <= 4
    return low / 2**100


def keys_threshold(p):
    return float(cu.LaplaceKeys(epsilon=p["eps"], delta=str(p["delta"]), keys=p["k"]).threshold)


def gaussian_threshold(p):
    from curador.mechanisms.keys import _gaussian_threshold

    return float(_gaussian_threshold(Fraction(str(p["sigma"])), p["k"], Fraction(str(p["delta_thr"]))))


def truncated_delta(p):
    delta = cu.TruncatedLaplace(scale=Fraction(1) / p["eps"], reach=p["A"], sensitivity=1).delta
    return math.log(delta.numerator) - math.log(delta.denominator)


RECIPES = {
    "laplace_tail union bound (units of b)": union,
    "laplace_tail exact quantile of max|Y_i| (units of b)": lambda p: (
        cu.Laplace(scale=1, sensitivity=1).interval(1 - Fraction(str(p["gamma"])), together=p["k"]).upper
    ),
    "laplace_tail exact failure prob at union threshold": failure,
    "2*log(k/gamma) RNM regret with Lap(1/eps), two-sided union": lambda p: 2 * union(p),
    "truncated Laplace delta (support [-A,A], Delta=1, scale 1/eps)": truncated_delta,
    "truncated Laplace half-width A (Delta=1)": lambda p: float(
        cu.TruncatedLaplace.calibrate(epsilon=str(p["eps"]), delta=str(p["delta"]), sensitivity=1).reach
    ),
    "discrete laplace pmf(0)=tanh(1/(2t))": lambda p: cu.DiscreteLaplace(scale=p["t"], sensitivity=1).probability(0),
    "discrete laplace variance 2e^{1/t}/(e^{1/t}-1)^2": lambda p: cu.DiscreteLaplace(scale=p["t"], sensitivity=1).variance,
    "discrete gaussian normaliser sum exp(-x^2/2s^2)": lambda p: gaussian_total(Fraction(str(p["sigma2"]))),
    "exponential mechanism pmf exp(eps q/2)": lambda p: list(
        cu.Exponential(epsilon=p["eps"], sensitivity=p["Delta"]).probabilities(p["scores"])
    ),
    "expected error PF (<= EM)": flip_error,
    "report-noisy-max Laplace: P[argmax=1], gap g=f1-f2=2, scale b=2": lambda p: first_place(p["gap"], p["b"]),
    "DP median via EM: interval probabilities": median,
    "optimal partition selection keep-probability pi(n)": lambda p: cu.OptimalKeys(
        epsilon=str(p["eps"]), delta=str(p["delta"]), keys=1
    ).pass_probability(p["n"]),
    "Laplace thresholding tau (L0<=k partitions, Linf<=1): 1-(k/eps)ln(2(1-(1-delta)^{1/k}))": keys_threshold,
    "Gaussian thresholding tau: 1+sigma*Phi^{-1}((1-delta_thr)^{1/k})": gaussian_threshold,
    "RNM index only Lap(1/eps), f1-f2 from -10 to -8: log ratio": lambda p: math.log(
        first_place(-8, 1) / first_place(-p["gap"], 1)
    ),
    "discrete laplace pmf": lambda p: cu.DiscreteLaplace(scale=p["t"], sensitivity=1).probability(p["x"]),
    "discrete gaussian pmf": lambda p: cu.DiscreteGaussian(sigma=math.isqrt(int(p["sigma2"])), sensitivity=1).probability(
        p["x"]
    ),
    "Bernoulli(exp(-gamma)) success prob": coin,
}


@pytest.mark.parametrize("row", VALUES, ids=lambda row: f"{row['name']} {row['parameters']}")
def test_golden_value(row):
    """The library reproduces the value within its tolerance; one below every float is compared by its logarithm."""
    got, want = RECIPES[row["name"]](row["parameters"]), row["value"]
    if isinstance(want, list):
        assert got == pytest.approx(want, rel=row["tolerance"], abs=1e-15)
        return
    if float(want) == 0.0:
        digits, _, exponent = want.partition("e")
        want = math.log(float(digits)) + int(exponent) * math.log(10)
    assert got == pytest.approx(float(want), rel=row["tolerance"])


def test_every_value_has_a_recipe():
    """No golden value is left untested and no recipe is dead."""
    assert {row["name"] for row in VALUES} == set(RECIPES)

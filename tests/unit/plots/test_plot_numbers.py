"""What figures show is what formulas say: heights read off the lines, against numbers computed another way."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, special

import curador as cu
from curador.plots.game import game
from curador.plots.local import local_errors, published_epsilons, shuffle, shuffled_epsilons, standard_errors
from curador.plots.losses import (
    COUNTS,
    composed_deltas,
    compositions,
    costs,
    curves,
    epsilon_delta,
    example_releases,
    tradeoffs,
)
from curador.plots.mechanisms import key_curves, noise_widths, selections
from curador.privacy.losses import BoundedRange, GaussianLoss, LaplaceLoss, Pure


def lines(axes):
    """The explained lines by their names."""
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def at(line, place):
    """The height of a line there; the place must be one of its points."""
    nearest = int(np.argmin(np.abs(np.asarray(line.get_xdata()) - place)))
    assert line.get_xdata()[nearest] == pytest.approx(place, rel=1e-9, abs=1e-12)
    return float(line.get_ydata()[nearest])


def gaussian_delta(mu, epsilon):
    return special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(-mu / 2 - epsilon / mu)


def gaussian_epsilon(mu, delta):
    return optimize.brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0, 300, xtol=1e-12)


# ---- accountings -----------------------------------------------------------------------------------------------------------


def test_accountings_of_randomized_response_are_the_theorems():
    """100 answers at δ = 1e-6: sums, the theorem of 2010, the binomial optimum, ρ + 2√(ρ log 1/δ) from above."""
    truth = math.log(0.52 / 0.48)
    found = costs(example_releases()["randomized response, p = 0.52"], 100, "1e-6")
    lower, upper = cu.composition.optimal_epsilon(truth, count=100, delta="1e-6")
    log = math.log(1e6)

    assert found["sum"] == pytest.approx(100 * truth)
    assert found["advanced"] == pytest.approx(truth * math.sqrt(200 * log) + 100 * truth * math.expm1(truth))
    assert lower * (1 - 1e-9) <= found["certified"] <= upper * (1 + 1e-6)
    rho = 100 * truth * math.tanh(truth / 2)
    assert found["certified"] < found["Rényi"] <= found["zCDP"] * (1 + 1e-9) < rho + 2 * math.sqrt(rho * log)


def test_accountings_of_gaussian_noise_are_the_theorems():
    """One Gaussian of μ√n is n of them; the grid of 13 orders gives the best of α n μ²/2 + log(1/δ)/(α − 1)."""
    found = costs(GaussianLoss(mu="0.05"), 1000, "1e-6")
    mu, log = 0.05 * math.sqrt(1000), math.log(1e6)
    grid = (1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 16, 32, 64)

    assert found["certified"] == pytest.approx(gaussian_epsilon(mu, 1e-6), rel=1e-8)
    assert found["Rényi, 13 orders"] == pytest.approx(min(a * mu**2 / 2 + log / (a - 1) for a in grid), rel=1e-9)
    assert found["sum"] == pytest.approx(1000 * gaussian_epsilon(0.05, 1e-9), rel=1e-6)
    assert found["Rényi"] == pytest.approx(found["zCDP"], rel=1e-6)


@pytest.mark.slow
def test_compositions_draw_those_numbers():
    """Above ε, below its ratio to the certified one; in the other figure δ runs."""
    above, below = compositions(LaplaceLoss(epsilon="0.05"), counts=[1, 100, 1000]).axes
    found = costs(LaplaceLoss(epsilon="0.05"), 100, "1e-6")
    for name, value in found.items():
        assert at(lines(above)[name], 100) == pytest.approx(value)
        assert at(lines(below)[name], 100) == pytest.approx(value / found["certified"])
    (other, _) = composed_deltas(GaussianLoss(mu=1), count=4, exponents=[-6, -3]).axes

    assert at(lines(other)["certified"], 1e-3) == pytest.approx(gaussian_epsilon(2, 1e-3), rel=1e-8)
    assert len(COUNTS) > 10


def test_what_costs_nothing_is_not_drawn_on_a_logarithmic_axis():
    """One sentence."""
    with pytest.raises(cu.InvalidParameter, match="finite ε above 0"):
        compositions(Pure(epsilon=0), counts=[1, 2])


def test_epsilon_against_delta_is_the_gaussian_curve():
    """Within a line's width both ends are one line; it is the curve of Balle and Wang."""
    drawn = epsilon_delta(GaussianLoss(mu=1), exponents=[-8, -5, -2])
    (axes,) = drawn.axes
    for delta in (1e-8, 1e-5, 1e-2):
        assert at(lines(axes)["proved and attained"], delta) == pytest.approx(gaussian_epsilon(1, delta), rel=1e-8)
    assert len(axes.collections) == 0


@pytest.mark.slow
def test_a_band_is_drawn_where_the_truth_is_not_known():
    """Exponential mechanisms: what is attained lies visibly below what is proved, and both below the sum."""
    loss = 50 * BoundedRange(epsilon="0.5")
    (axes,) = epsilon_delta(loss, exponents=[-9, -6, -3]).axes
    found = curves(loss, ["1e-6"])

    assert len(axes.collections) == 1
    assert at(lines(axes)["proved"], 1e-6) == pytest.approx(found.upper[0])
    assert at(lines(axes)["attained"], 1e-6) == pytest.approx(found.lower[0])
    assert found.lower[0] < 0.95 * found.upper[0]
    assert found.upper[0] <= found.readings["renyi"][0] < found.readings["basic"][0]
    assert at(lines(axes)["sum of ε"], 1e-6) == pytest.approx(25)


def test_trade_offs_are_the_known_curves():
    """Of pure, Laplace and Gaussian privacy."""
    shown = {"pure": Pure(epsilon=1), "laplace": LaplaceLoss(epsilon=1), "gaussian": GaussianLoss(mu=1)}
    (axes,) = tradeoffs(shown, points=21).axes
    x = np.asarray(lines(axes)["pure"].get_xdata())
    inner = (x > 0.001) & (x < 0.999)
    half = np.exp(-1) / (4 * x[inner])
    curve = np.where(
        x[inner] < np.exp(-1) / 2, 1 - math.e * x[inner], np.where(x[inner] < 0.5, half, np.exp(-1) * (1 - x[inner]))
    )

    expected = np.maximum(np.maximum(1 - math.e * x, np.exp(-1) * (1 - x)), 0)
    np.testing.assert_allclose(lines(axes)["pure"].get_ydata(), expected, atol=1e-12)
    np.testing.assert_allclose(np.asarray(lines(axes)["laplace"].get_ydata())[inner], curve, atol=1e-12)
    gaussian = special.ndtr(special.ndtri(1 - x[inner]) - 1)
    np.testing.assert_allclose(np.asarray(lines(axes)["gaussian"].get_ydata())[inner], gaussian, atol=1e-9)


@pytest.mark.parametrize("draw", [tradeoffs, epsilon_delta, compositions])
@pytest.mark.parametrize("wrong", [{}, {"a": 1}, 3, "gaussian(sigma=1)", [Pure(epsilon=1)]])
def test_what_is_no_loss_is_refused(draw, wrong):
    """One sentence."""
    with pytest.raises(cu.InvalidParameter, match="losses must be a loss, or losses by name"):
        draw(wrong)


# ---- noise, keys ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_error_bars_are_quantiles():
    """log 20/ε of Laplace noise, 1.96 σ of Gaussian noise whose σ reaches (ε, δ); whole numbers of discrete noise."""
    above, below = noise_widths(["0.5", "1"], delta="1e-5").axes
    named = lines(above)
    sigma = 1 / optimize.brentq(lambda mu: gaussian_delta(mu, 1) - 1e-5, 0.05, 5)

    assert at(named["Laplace"], 0.5) == pytest.approx(math.log(20) / 0.5, rel=1e-6)
    assert at(named["Gaussian, δ = 1e-5"], 1) == pytest.approx(1.959964 * sigma, rel=1e-5)
    ratio = math.exp(-1.0)  # P[|k| > w] = 2 r^(w+1)/(1 + r)
    whole = next(w for w in range(99) if 2 * ratio ** (w + 1) / (1 + ratio) <= 0.05)
    assert at(named["discrete Laplace"], 1) == whole
    assert below.get_lines()[1].get_ydata()[1] == pytest.approx(1.959964 * sigma / math.log(20), rel=1e-5)


@pytest.mark.slow
def test_keys_are_shown_as_the_recurrence_says():
    """π(n + 1) = min(e^ε π + δ, 1 − e^−ε(1 − π − δ), 1); thresholds are where noisy counts are even."""
    (axes,) = key_curves(epsilon=1, delta="1e-4", most=25).axes
    chance, expected = 0.0, [0.0]
    for _ in range(25):
        chance = min(math.e * chance + 1e-4, 1 - (1 - chance - 1e-4) / math.e, 1.0)
        expected.append(chance)
    tail = 0.5 * math.exp(-abs(1 - math.log(2e-4)) + 1)  # P[N ≥ τ − 1] = δ for Laplace noise of scale 1

    np.testing.assert_allclose(lines(axes)["optimal"].get_ydata(), expected, rtol=1e-9, atol=1e-15)
    laplace = lines(axes)["Laplace and threshold"]
    assert at(laplace, 1) == pytest.approx(1e-4, rel=1e-3)
    assert tail == pytest.approx(1e-4)
    threshold = 1 - math.log(2e-4)
    assert at(laplace, 15) == pytest.approx(1 - 0.5 * math.exp(-(15 - threshold)), rel=1e-6)
    uprights = [float(line.get_xdata()[0]) for line in axes.get_lines() if len(set(line.get_xdata())) == 1]
    assert uprights[0] == pytest.approx(threshold, rel=1e-6)
    assert uprights[1] == pytest.approx(float(selections(delta="1e-4")["Gaussian and threshold"].threshold))


# ---- local privacy ---------------------------------------------------------------------------------------------------------


def test_errors_of_protocols_are_the_published_ones():
    """(q(1−q) + f(p(1−p) − q(1−q)))/(n (p−q)²), p and q those of direct answers and of optimal unary encoding [WBLJ17]."""
    growth = math.e
    for size in (4, 64):
        share = 1 / size
        for method, p, q in (
            ("direct", growth / (growth + size - 1), 1 / (growth + size - 1)),
            ("optimal_unary", 0.5, 1 / (growth + 1)),
        ):
            expected = math.sqrt((q * (1 - q) + share * (p * (1 - p) - q * (1 - q))) / 1000) / (p - q)

            assert standard_errors(method, [size], epsilon=1, reports=1000)[0] == pytest.approx(expected, rel=1e-6)
    drawn = local_errors([4, 64], epsilons=["1"], reports=1000)
    found = standard_errors("direct", [4, 64], epsilon=1, reports=1000)
    np.testing.assert_allclose(lines(drawn.axes[0])["direct (k answers)"].get_ydata(), found)


@pytest.mark.slow
def test_shuffling_gains_what_is_known():
    """Never more than the local ε; below [FMT21]'s numbers at 1,000 reports of ε = 0.5, whose closed form is drawn thin."""
    (axes,) = shuffle(["0.5"], reports=[10, 1000, 100_000], delta="1e-5").axes
    thick = lines(axes)["ε = 0.5 each"]
    rise = math.exp(0.5)

    assert at(thick, 10) <= 0.5
    assert 0.03 < at(thick, 1000) <= 0.058267
    form = math.log1p((rise - 1) / (rise + 1) * (8 * math.sqrt(rise * math.log(4e5) / 1e5) + 8 * rise / 1e5))
    assert published_epsilons("0.5", [100_000], "1e-5")[0] == pytest.approx(form)
    assert at(axes.get_lines()[1], 100_000) == pytest.approx(form)
    assert shuffled_epsilons("0.5", [100_000], "1e-5")[0] < form / 3
    assert math.isnan(published_epsilons("4", [100], "1e-5")[0])


# ---- the game --------------------------------------------------------------------------------------------------------------


def played(**changed):
    """A game whose every number is known."""
    fpr, tpr = np.array([0.0, 0.2, 0.6, 1.0]), np.array([0.0, 0.5, 0.9, 1.0])
    roc = SimpleNamespace(fpr=fpr, tpr=tpr, fpr_low=fpr - 0.02, fpr_high=fpr + 0.02, tpr_low=tpr - 0.03, tpr_high=tpr + 0.03)
    beliefs = SimpleNamespace(
        prior=0.5, beliefs0=np.array([0.1, 0.1, 0.4, 0.9]), beliefs1=np.array([0.9, 0.9]), low=0.05, high=0.95, mean=0.8
    )
    given = {
        "name": "thing", "attack": "likelihood", "samples": 1000, "confidence": 0.95, "roc": roc, "posterior": beliefs,
        "proved": np.sqrt, "advantage": 0.3, "proved_advantage": 0.4, "crossing": None, "refuted": False, **changed,
    }  # fmt: skip
    return SimpleNamespace(**given)


@pytest.mark.slow
def test_a_game_is_drawn_as_it_was_played():
    """The curve, the bound, the band, shares of releases by belief, and the proved ends of beliefs."""
    left, right = game(played()).axes
    named = lines(left)

    assert np.asarray(named["the adversary"].get_ydata()).tolist() == [0.0, 0.5, 0.9, 1.0]
    proved = named["proved: nobody gets above"]
    np.testing.assert_allclose(np.square(proved.get_ydata()), proved.get_xdata(), atol=1e-12)
    (band,) = left.collections
    heights = {round(x, 3): [] for x, _ in band.get_paths()[0].vertices}
    for x, y in band.get_paths()[0].vertices:
        heights[round(x, 3)].append(y)
    assert min(heights[0.62]) == pytest.approx(0.87, abs=1e-6)
    assert max(heights[0.58]) == pytest.approx(0.93, abs=1e-6)
    assert sum(bar.get_height() for bar in right.patches) == pytest.approx(2)
    assert max(bar.get_height() for bar in right.patches) == pytest.approx(1)
    assert sorted(line.get_xdata()[0] for line in right.get_lines()) == [0.05, 0.95]


@pytest.mark.slow
def test_a_refuted_game_says_so():
    """The place above the bound is marked."""
    drawn = game(played(refuted=True, crossing=(0.2, 0.5)))

    assert "REFUTED" in drawn.get_suptitle()
    mark = lines(drawn.axes[0])["above the bound"]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (0.2, 0.5)
    assert "not refuted" in game(played()).get_suptitle()


def test_what_is_no_game_is_refused():
    with pytest.raises(cu.InvalidParameter, match="played must be a game"):
        game(3)

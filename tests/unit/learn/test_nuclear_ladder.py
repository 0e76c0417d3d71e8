"""The ladder: what it makes in integers, how far a record moves it, and how near it comes to the best factor."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from curador.learn.nuclear.noise import Ladder, Sums, Undone, ladder_for


def root_noise(decay, steps):
    """The noise of the last decaying sum with the root of A as factor, its column being of length 1."""
    powers = np.arange(steps)
    ratios = np.ones(steps)
    ratios[1:] = np.cumprod((2 * powers[1:] - 1) / (2 * powers[1:]))
    return np.square(ratios * (1 - decay) ** powers).sum()


@pytest.mark.parametrize("steps", [50, 500, 5000])
def test_the_ladder_is_nearly_the_root(steps):
    """Column times noise is within 1 % of the root's, and a fraction of what noise on every sum costs."""
    decay = math.log(2 * steps) / (2 * steps)
    ladder, plain = ladder_for(decay), ladder_for(decay, root=False)
    found = ladder.column_norm(steps) * ladder.noise_norm(steps)

    assert found <= 1.01 * root_noise(ladder.decay, steps)
    assert found >= root_noise(ladder.decay, steps) * 0.999
    assert plain.column_norm(steps) * plain.noise_norm(steps) == pytest.approx(
        math.sqrt((1 - (1 - plain.decay) ** (2 * steps)) / (2 * plain.decay - plain.decay**2)), rel=1e-6
    )
    assert abs(ladder.decay - decay) <= decay / 30


@pytest.mark.parametrize("rungs", [0, 1, 4])
def test_the_column_norm_is_not_below_the_exact_one(rungs):
    """Against the same sum in fractions."""
    ladder, steps = Ladder(rungs, 37, 11), 60
    total = Fraction(0)
    rates = [Fraction(1, 4**j) + Fraction(37, 2**11) for j in range(1, rungs + 1)] + [Fraction(37, 2**11)]
    weights = [Fraction(1, 2**j) for j in range(1, rungs + 1)] + [Fraction(1, 2**rungs)]
    for k in range(steps):
        entry = sum((w * (1 - r) ** k for w, r in zip(weights, rates, strict=True)), Fraction(1 if rungs and k == 0 else 0))
        total += entry**2

    assert Fraction(ladder.column_norm(steps)) ** 2 >= total
    assert ladder.column_norm(steps) == pytest.approx(math.sqrt(total), rel=1e-8)


@pytest.mark.slow
@settings(max_examples=50)
@given(some.integers(0, 2**32), some.integers(0, 5), some.integers(0, 30))
def test_one_change_moves_the_sums_by_no_more_than_said(seed, rungs, place):
    """Integers of any sign and size, one of forty changed: step by step, and over all steps."""
    draw = np.random.default_rng(seed)
    ladder, steps, shape = Ladder(rungs, 37, 11), 40, (2, 3)
    stream = draw.integers(-(2 ** int(draw.integers(1, 40))), 2**40, size=(steps, *shape))
    other = stream.copy()
    other[place] += draw.integers(-(2**30), 2**30, size=shape)
    runs = []
    for one in (stream, other):
        sums = Sums(ladder, shape)
        runs.append(np.array([sums.add(matrix) for matrix in one], dtype=object))
    change = runs[1] - runs[0]
    longest = math.isqrt(int((np.asarray(other[place] - stream[place], dtype=object) ** 2).sum())) + 1

    assert not change[:place].any()
    assert math.sqrt(int((change**2).sum())) <= ladder.length(longest, steps, 6)


def test_a_wrong_column_norm_is_noticed():
    """With the length of one entry in place of the column's the same change is too long: the test above can fail."""
    ladder, steps, shape = Ladder(4, 37, 11), 200, (2, 3)
    sums = [Sums(ladder, shape), Sums(ladder, shape)]
    change = []
    for step in range(steps):
        matrices = [np.full(shape, 2**40 if step == 0 and one else 0) for one in (0, 1)]
        change.append(sums[1].add(matrices[1]) - sums[0].add(matrices[0]))
    moved = math.sqrt(float(np.square(np.array(change, float)).sum()))

    assert moved <= ladder.length(math.ceil(2**40 * math.sqrt(6)), steps, 6)
    assert moved > 2**40 * math.sqrt(6) * ladder.column(1)[0] + ladder.rounding(steps, 6)


@pytest.mark.parametrize("rungs", [0, 3, 6])
def test_undoing_gives_the_decaying_sums(rungs):
    """Without noise: D_t itself, but for what shifts round."""
    draw = np.random.default_rng(5)
    ladder, shape = Ladder(rungs, 33, 12), (3, 2)
    sums, undone = Sums(ladder, shape), Undone(ladder, shape)
    exact = np.zeros(shape)
    for _ in range(300):
        matrix = draw.integers(-(2**40), 2**40, size=shape)
        exact = (1 - ladder.decay) * exact + matrix
        found = undone.add(sums.add(matrix).astype(np.float64))
        np.testing.assert_allclose(found, exact, atol=2**20)


def test_noise_is_what_is_said():
    """The noise of D̃ is A C⁻¹ Z: its norm, by the same recursion on unit impulses."""
    ladder, steps = ladder_for(0.02), 120
    undone = Undone(ladder, (1, 1))
    row = [undone.add(np.array([[1.0 if step == 0 else 0.0]]))[0, 0] for step in range(steps)]

    assert math.sqrt(np.square(row).sum()) == pytest.approx(ladder.noise_norm(steps), rel=1e-9)

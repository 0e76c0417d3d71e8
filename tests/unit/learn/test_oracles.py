"""Oracles on matrices and products: what is released is exact, what follows from it finds the directions."""

import math

import numpy as np
import pytest

from curador.errors import Failed, InvalidParameter
from curador.learn.estimators.components import LARGEST_MATRIX, choose
from curador.learn.oracles import analyze_gauss as gauss
from curador.learn.oracles import power
from curador.learn.plan import PlannedRelease, goal_of, make_plan
from curador.learn.release import Releaser
from curador.learn.sums import cross, gram, whole_numbers, whole_rows
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE

random = np.random.default_rng(20)


def spiked(count, size, strength, *, spikes=1):
    """Rows of norm at most 1 whose second moment has its top directions on the first axes."""
    rows = random.standard_normal((count, size)) * math.sqrt((1 - strength) / size)
    rows[np.arange(count), np.arange(count) % spikes] += math.sqrt(strength) * random.choice([-1.0, 1.0], count)
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))


def releaser(name="moment", *, epsilon=1.0, delta=1e-6, adjacency="add_or_remove_one", count=1):
    return Releaser(make_plan(goal_of(epsilon, delta, adjacency), [PlannedRelease(name, count=count)]))


# ---- a whole matrix -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("delta", [1e-6, 0])
def test_a_noisy_gram_is_the_gram_and_noise_of_the_deviation_it_states(adjacency, delta):
    rows = whole_rows(spiked(50, 40, 0.3), norm=1.0)
    found = gauss.noisy_gram(releaser(delta=delta, adjacency=adjacency), "moment", rows)
    noise = found.values - gram(rows) * rows.step**2
    off = noise[np.triu_indices(40, 1)]

    assert np.array_equal(found.values, found.values.T)
    assert off.std() == pytest.approx(found.deviation, rel=0.25)  # 780 numbers: 7 deviations and more
    plan = releaser(delta=delta, adjacency=adjacency).plan
    assert gauss.symmetric_deviation(plan, "moment", 40, limit=rows.limit**2, step=rows.step**2) == found.deviation


def test_symmetrising_halves_the_variance():
    plan = make_plan(goal_of(1, 1e-6, "add_or_remove_one"), [PlannedRelease("moment")])
    one = plan.deviation("moment", 1.0)

    assert gauss.symmetric_deviation(plan, "moment", 10, limit=1 << 20, step=2.0**-20) == pytest.approx(one / math.sqrt(2))


def test_lengths_are_by_the_norm_of_the_noise():
    """l2: √2 where a record is replaced. l1 of the triangle: √(d(d+3))/2 times that, rounded up."""
    gaussian = make_plan(goal_of(1, 1e-6, "replace_one"), [PlannedRelease("moment")])
    laplace = make_plan(goal_of(1, 0, "add_or_remove_one"), [PlannedRelease("moment")])

    assert gauss.symmetric_length(gaussian, 5, 1 << 20) == math.isqrt(2 * (1 << 40) - 1) + 1
    assert gauss.symmetric_length(laplace, 1, 1 << 20) == 1 << 20
    assert gauss.symmetric_length(laplace, 5, 1 << 20) == math.isqrt(10 * (1 << 40) - 1) + 1


@pytest.mark.slow
def test_noise_alone_stays_below_the_edge():
    """Twenty matrices of noise: their largest eigenvalue is at the edge within its fluctuation."""
    size, deviation = 200, 3.0
    edge, threshold = gauss.noise_edge(size, deviation)
    for _ in range(20):
        full = random.standard_normal((size, size)) * deviation * math.sqrt(2)
        top = np.linalg.eigvalsh((full + full.T) / 2)[-1]
        assert abs(top - edge) < 8 * deviation * size ** (-1 / 6)
    assert edge == 2 * math.sqrt(size) * deviation < threshold < 1.05 * edge


@pytest.mark.slow
def test_a_spike_is_corrected():
    """Value and angle of a spike under noise are undone, within a few deviations, over twenty draws."""
    size, deviation, spike = 300, 1.0, 45.0
    values, cosines, corrected, predicted, significant = [], [], [], [], []
    for _ in range(20):
        full = random.standard_normal((size, size)) * math.sqrt(2) * deviation
        matrix = (full + full.T) / 2
        matrix[0, 0] += spike
        found = gauss.spectrum(gauss.NoisyMatrix(matrix, deviation), 3)
        significant.append(found.significant)
        assert found.debiased[1] == found.cosines[1] == 0 or found.values[1] > found.edge
        values.append(found.values[0])
        cosines.append(found.vectors[0, 0] ** 2)
        corrected.append(found.debiased[0])
        predicted.append(found.cosines[0])

    assert min(significant) == 1
    assert sum(significant) <= 25  # noise exceeds the threshold in one draw of a hundred: six of twenty, once in 10⁸
    assert np.mean(values) > spike + 4  # e = l + dσ²/l
    assert np.mean(corrected) == pytest.approx(spike, abs=1.5)
    assert np.mean(predicted) == pytest.approx(np.mean(cosines), abs=0.02)


@pytest.mark.slow
def test_a_rectangular_spike_is_corrected():
    shape, deviation, spike = (300, 120), 1.0, 60.0
    corrected, left, right, seen = [], [], [], []
    for _ in range(10):
        matrix = random.standard_normal(shape) * deviation
        matrix[0, 0] += spike
        pair = gauss.top_pairs(matrix)
        value, one, other = gauss.debias_pairs(pair.values, shape, deviation)
        corrected.append(value[0])
        left.append(one[0])
        right.append(other[0])
        seen.append((pair.left[0, 0] ** 2, pair.right[0, 0] ** 2))

    assert np.mean(corrected) == pytest.approx(spike, abs=1.5)
    assert np.mean(left) == pytest.approx(np.mean([one for one, _ in seen]), abs=0.02)
    assert np.mean(right) == pytest.approx(np.mean([one for _, one in seen]), abs=0.02)
    assert gauss.debias_pairs(np.array([1.0, 25.0]), shape, deviation)[0].tolist() == [0.0, 0.0]


def test_the_spectrum_does_not_depend_on_how_it_is_computed(monkeypatch):
    matrix = random.standard_normal((60, 60))
    matrix = matrix + matrix.T
    dense = gauss.top_symmetric(matrix, 3)
    monkeypatch.setattr(gauss, "_DENSE", 10)
    iterated = gauss.top_symmetric(matrix, 3)

    assert np.allclose(dense[0], iterated[0])
    assert np.allclose(dense[1], iterated[1], atol=1e-6)
    assert (np.take_along_axis(dense[1], np.abs(dense[1]).argmax(axis=1)[:, None], axis=1) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(300, 280), (270, 400), (5, 3)])
def test_top_pairs_are_singular_pairs(shape):
    matrix = random.standard_normal(shape)
    found = gauss.top_pairs(matrix, 2)
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)

    assert np.allclose(found.values, values[:2])
    assert np.allclose(np.abs(np.sum(found.left * left.T[:2], axis=1)), 1.0)
    assert np.allclose(np.einsum("ij,jk,ik->i", found.left, matrix, found.right), values[:2])


def test_what_is_not_square_is_no_symmetric_matrix():
    with pytest.raises(Failed, match="square"):
        gauss.noisy_symmetric(releaser(), "moment", np.zeros((2, 3), np.int64), limit=1 << 20, step=1.0)


def test_a_public_start_is_orthonormal_and_the_same_for_all():
    block = gauss.generic_block(50, 4)

    assert np.allclose(block.T @ block, np.eye(4))
    assert np.array_equal(block, gauss.generic_block(50, 4))


# ---- exact products -----------------------------------------------------------------------------------------------------


def test_products_are_exact_and_close_to_the_product():
    rows = whole_rows(spiked(300, 20, 0.5), norm=1.0)
    block = gauss.generic_block(20, 3)
    exact = power.gram_product(rows, ADD_OR_REMOVE_ONE, one_row=True)(block)
    grid = [[math.trunc(one * 2**18) for one in row] for row in block]
    by_hand = np.zeros((20, 3), dtype=object)
    for row in rows.values.astype(int).tolist():
        for column in range(3):
            full = sum(a * grid[i][column] for i, a in enumerate(row))
            coefficient = abs(full) // 2**18 * (1 if full >= 0 else -1)
            by_hand[:, column] += np.array([a * coefficient for a in row], dtype=object)

    assert exact.integers.dtype == np.int64
    assert exact.integers.tolist() == by_hand.tolist()
    assert np.allclose(exact.integers * exact.step, gram(rows) * rows.step**2 @ block, atol=0.01)
    assert exact.length == pytest.approx(rows.limit**2, rel=1e-3)


def test_cross_products_are_those_of_the_matrix_and_its_transpose():
    left = whole_rows(random.standard_normal((200, 6)), norm=2.0)
    right = whole_rows(random.standard_normal((200, 9)), norm=3.0)
    numbers = whole_numbers(random.standard_normal(200), bound=1.5)
    matrix = (left.values * numbers.values).T @ right.values * left.step * right.step * numbers.step
    forward, back = power.cross_products(left, right, ADD_OR_REMOVE_ONE, numbers)
    both = power.symmetrised_product(left, right, ADD_OR_REMOVE_ONE, numbers)
    up, down = gauss.generic_block(9, 1), gauss.generic_block(6, 1)
    joint = np.concatenate([down, up]) / math.sqrt(2)

    assert np.allclose(forward(up).integers * forward(up).step, matrix @ up, atol=0.01)
    assert np.allclose(back(down).integers * back(down).step, matrix.T @ down, atol=0.01)
    expected = np.concatenate([matrix @ up, matrix.T @ down]) / math.sqrt(2)
    assert np.allclose(both(joint).integers * both(joint).step, expected, atol=0.02)


def test_replacing_a_row_costs_one_column_no_more_than_adding_it():
    rows = whole_rows(spiked(10, 5, 0.5), norm=1.0)
    one, several = gauss.generic_block(5, 1), gauss.generic_block(5, 2)
    length = {
        (adjacency, one_row, columns.shape[1]): power.gram_product(rows, adjacency, one_row=one_row)(columns).length
        for adjacency in (ADD_OR_REMOVE_ONE, REPLACE_ONE)
        for one_row in (True, False)
        for columns in (one, several)
    }
    full = rows.limit**2

    assert length[ADD_OR_REMOVE_ONE, True, 1] == length[ADD_OR_REMOVE_ONE, False, 1] <= full
    assert length[REPLACE_ONE, True, 1] == pytest.approx(full, rel=1e-4)
    assert length[REPLACE_ONE, True, 2] == pytest.approx(full * math.sqrt(2), rel=1e-4)
    assert length[REPLACE_ONE, False, 1] == 2 * length[ADD_OR_REMOVE_ONE, False, 1]


def test_a_block_that_is_too_wide_is_refused():
    rows = whole_rows(spiked(10, 5, 0.5), norm=1.0)
    for bad in (np.ones((5, 1)) * 3.0, np.full((5, 1), np.nan), np.ones((5, 5))):
        with pytest.raises(Failed, match="orthonormal"):
            power.gram_product(rows, ADD_OR_REMOVE_ONE, one_row=True)(bad)


# ---- iterations ---------------------------------------------------------------------------------------------------------


def lost(rows, vector):
    """The share of the largest variance that a direction misses."""
    matrix = rows.T @ rows
    top = np.linalg.eigvalsh(matrix)[-1]
    return (top - vector @ matrix @ vector) / top


@pytest.mark.slow
@pytest.mark.parametrize("iteration", [power.power_iteration, power.lanczos])
@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_an_iteration_finds_a_spike(iteration, adjacency):
    data = spiked(5_000, 30, 0.5)
    rows = whole_rows(data, norm=1.0)
    source = releaser("product", epsilon=4, adjacency=adjacency, count=6)
    product = power.gram_product(rows, source.plan.goal.adjacency, one_row=True)
    found = iteration(source, "product", product, size=30, steps=6)

    assert source.releases[0].count == 6
    assert np.linalg.norm(found.vectors[0]) == pytest.approx(1.0)
    assert lost(data, found.vectors[0]) < 0.001
    assert found.values[0] == pytest.approx(np.linalg.eigvalsh(data.T @ data)[-1], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("iteration", [power.power_iteration, power.lanczos])
def test_an_iteration_finds_several_directions(iteration):
    data = spiked(6_000, 20, 0.7, spikes=2)
    data[::2] *= 0.7
    source = releaser("product", epsilon=16, count=8)
    product = power.gram_product(whole_rows(data, norm=1.0), ADD_OR_REMOVE_ONE, one_row=True)
    found = iteration(source, "product", product, size=20, count=2, steps=8)

    assert np.allclose(found.vectors @ found.vectors.T, np.eye(2))
    assert found.values[0] >= found.values[1]
    assert np.linalg.norm(found.vectors[:, :2]) ** 2 > 1.99  # of 2: both in the plane of the first two axes


@pytest.mark.parametrize("iteration", [power.alternating_power, power.alternating_lanczos])
@pytest.mark.parametrize("steps", [2, 5])
def test_a_top_pair_is_found(iteration, steps):
    data = spiked(5_000, 12, 0.8)
    left, right = whole_rows(data, norm=1.0), whole_rows(data[:, :8] * 0.9, norm=1.0)
    matrix = cross(left, right) * left.step * right.step
    source = releaser("product", epsilon=4, count=steps)
    forward, back = power.cross_products(left, right, ADD_OR_REMOVE_ONE)
    found = iteration(source, "product", forward, back, shape=(12, 8), steps=steps)
    top = np.linalg.svd(matrix)[1][0]

    assert source.releases[0].count == steps
    assert found.left @ matrix @ found.right > 0.99 * top
    assert found.value == pytest.approx(top, rel=0.02)


def test_an_iteration_releases_no_more_than_was_planned():
    rows = whole_rows(spiked(10, 5, 0.5), norm=1.0)
    product = power.gram_product(rows, ADD_OR_REMOVE_ONE, one_row=True)
    with pytest.raises(Failed, match="planned"):
        power.power_iteration(releaser("product", count=2), "product", product, size=5, steps=3)


def test_products_can_be_released_without_delta():
    """Laplace noise, by the l1 length."""
    rows = whole_rows(spiked(10, 5, 0.5), norm=1.0)
    source = releaser("product", delta=0, count=2)
    product = power.gram_product(rows, ADD_OR_REMOVE_ONE, one_row=True)
    power.power_iteration(source, "product", product, size=5, steps=2)

    assert source.releases[0].sensitivity == pytest.approx(math.sqrt(5), rel=1e-3)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: power.power_iteration(releaser(), "moment", len, size=3, steps=0), "steps must be at least 1"),
        (lambda: power.lanczos(releaser(), "moment", len, size=3, count=3, steps=2), "n_components must be at most"),
        (lambda: power.alternating_power(releaser(), "moment", len, len, shape=(2, 2), steps=1), "steps must be at least 2"),
    ],
)
def test_what_cannot_be_iterated_is_refused(call, rule):
    with pytest.raises(InvalidParameter, match=rule):
        call()


# ---- which one ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pure", "size", "low_rank", "exact", "chosen"),
    [
        (True, 10, True, False, "bingham"),
        (True, 10, True, True, "analyze_gauss"),
        (False, 10, True, False, "analyze_gauss"),
        (False, LARGEST_MATRIX, True, True, "analyze_gauss"),
        (False, LARGEST_MATRIX + 1, True, False, "lanczos"),
        (False, 10, False, False, "lanczos"),
        (True, LARGEST_MATRIX + 1, True, True, "lanczos"),
    ],
)
def test_auto_is_a_function_of_public_numbers(pure, size, low_rank, exact, chosen):
    assert choose("auto", pure=pure, size=size, low_rank=low_rank, exact=exact) == chosen


def test_a_named_method_is_kept_or_refused():
    assert choose("oja", pure=False, size=3) == "oja"
    assert choose("bingham", pure=False, size=3, exact=True) == "bingham"
    for method in ("Oja", None, 3):
        with pytest.raises(InvalidParameter, match="method must be"):
            choose(method, pure=False, size=3)

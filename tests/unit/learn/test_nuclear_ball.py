"""The nuclear ball: projection, linear minimisation, dual norms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from curador.learn.nuclear import task


def matrices(seed, rows=4, columns=3):
    return np.random.default_rng(seed).normal(size=(rows, columns))


@pytest.mark.slow
@settings(max_examples=30)
@given(some.lists(some.floats(0, 5), min_size=1, max_size=6), some.floats(0.1, 4))
def test_the_cut_is_the_nearest_point_by_brute_force(values, radius):
    falling = np.sort(np.asarray(values))[::-1]
    found = task.simplex_cut(falling, radius)
    best = minimize(
        lambda point: np.square(point - falling).sum(),
        np.minimum(falling, radius / len(falling)),
        jac=lambda point: 2 * (point - falling),
        bounds=[(0, None)] * len(falling),
        constraints={"type": "ineq", "fun": lambda point: radius - point.sum(), "jac": lambda point: -np.ones_like(point)},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )

    assert found.sum() <= radius + 1e-9
    assert (found >= 0).all()
    assert np.square(found - falling).sum() <= best.fun + 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_no_matrix_of_the_ball_is_nearer_than_the_projection(seed):
    """⟨M − P, Y − P⟩ ≤ 0 for every extreme point Y: what makes P the nearest."""
    matrix, radius = 2 * matrices(seed), 1.5
    found = task.project(matrix, radius)
    rest = matrix - found

    assert task.nuclear_norm(found) <= radius * (1 + 1e-12)
    assert radius * task.operator_norm(rest) - (rest * found).sum() <= 1e-9


def test_what_lies_inside_stays():
    matrix = matrices(1) / 100

    assert task.project(matrix, 1.0) is matrix


@pytest.mark.parametrize("seed", range(4))
def test_norms_are_dual(seed):
    """max ⟨D, X⟩ over the ball is the operator norm times the radius, attained by the minimiser of −D."""
    matrix, other = matrices(seed), matrices(seed + 100)
    left, right = task.linear_minimiser(matrix, 2.0)

    assert (matrix * np.outer(left, right)).sum() == pytest.approx(-2 * task.operator_norm(matrix))
    assert task.nuclear_norm(np.outer(left, right)) == pytest.approx(2)
    assert abs((matrix * other).sum()) <= task.operator_norm(matrix) * task.nuclear_norm(other) + 1e-12


def test_the_zero_matrix_has_a_minimiser_too():
    """Where 0 is optimal the minimiser is still of the ball: the positive definite case of the thesis, without its shift."""
    left, right = task.linear_minimiser(np.eye(3), 1.0)

    assert left @ right == pytest.approx(-1)
    assert np.isfinite(np.concatenate(task.linear_minimiser_near(np.zeros((3, 2)), 1.0, np.ones(2), 2))).all()


def test_sparse_and_dense_and_warm_agree():
    dense = matrices(9, 12, 9) * (np.random.default_rng(1).random((12, 9)) < 0.5)
    exact = np.outer(*task.linear_minimiser(dense, 1.0))

    np.testing.assert_allclose(np.outer(*task.linear_minimiser(csr_matrix(dense), 1.0)), exact, atol=1e-8)
    np.testing.assert_allclose(np.outer(*task.linear_minimiser_near(dense, 1.0, np.ones(9) / 3, 400)), exact, atol=1e-6)

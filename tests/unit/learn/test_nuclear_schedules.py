"""Schedules and constants of the optimisers: functions of public numbers, and the thesis's own to the last digit."""

import math

import numpy as np
import pytest

from curador.errors import InvalidParameter
from curador.learn.nuclear.gradient import frank_wolfe, frank_wolfe_schedule, gradient_schedule, run_gradient, shown_curvature
from curador.learn.nuclear.losses import BilinearHuber, bilinear_problem
from curador.learn.nuclear.noise import ladder_for
from curador.learn.nuclear.records import coefficient_bits, dense_records, factor_bits, in_slots
from curador.learn.nuclear.stochastic import Stochastic, _choose_grid, run_thesis, stochastic_schedule, thesis_schedule
from curador.learn.nuclear.task import Task, strength
from curador.learn.nuclear.tree import tree_schedule
from curador.learn.oracles.oja import thesis_sigma
from curador.learn.plan import goal_of, make_plan
from curador.learn.release import Releaser

REPLACED = goal_of(1, "1e-6", "replace_one")
LIMIT = 1 << 26


def task(count=10_000, shape=(20, 20), radius=1.0, goal=REPLACED):
    return Task(BilinearHuber(), radius, count, shape, goal.adjacency)


def printed_sigma(count, shape, epsilon, delta):
    """Algorithm 3's σ inside Algorithm 2, from the text, by hand."""
    products = math.ceil(math.sqrt(count / sum(shape)))
    sensitivity = max(4 / count, 2 * (math.log(count) / count) * (2 * 1 + 1))
    small = delta / (count * (products + 1))
    share = epsilon / (2 * math.sqrt(count * math.log(1 / small)))
    return math.sqrt(32 * products * math.log(1 / small)) * math.log(1.25 / small) * sensitivity / share


@pytest.mark.parametrize("count", [1000, 10_000, 123_456])
def test_the_thesis_sigma_to_twelve_digits(count):
    schedule = thesis_schedule(task(count), REPLACED)

    assert schedule.sigma == pytest.approx(printed_sigma(count, (20, 20), 1, 1e-6), rel=1e-12)


def test_the_noise_that_is_drawn_has_the_printed_sigma():
    """Not only the number: the law that the releaser draws from, in the units of the gradient."""
    schedule = thesis_schedule(task(2000), REPLACED)
    releaser = Releaser(make_plan(REPLACED, schedule.parts))
    grid = Stochastic(schedule.task, 1000, 1, 1000, ladder_for(schedule.decay, root=False), LIMIT)
    cut = _choose_grid(schedule, grid, releaser, 2.0**-50)

    assert releaser.deviation("minimisation", length=cut.length, step=cut.step) == pytest.approx(schedule.sigma, rel=1e-12)
    assert cut.length > 100 * cut.needed  # it is far more than the guarantee needs


def test_the_sensitivity_is_the_corrected_one():
    """The golden number at n = 1000, and 4 L₀/n, not 2 L₀/n, where the gradient's own term rules."""
    assert thesis_schedule(task(1000), REPLACED).sensitivity == pytest.approx(0.0414465317, abs=1e-10)
    assert thesis_schedule(task(8, radius=1e-9), REPLACED).sensitivity == pytest.approx(max(0.5, 2 * math.log(8) / 8))


def homogeneous(sigma):
    """Twice the privacy loss per unit of sensitivity must cost half the noise: σ is a function of Δ/ε."""
    return all(
        math.isclose(sigma(epsilon, 1e-6, 100, 1.0), sigma(epsilon * 4, 1e-6, 100, 4.0), rel_tol=1e-12)
        for epsilon in (0.1, 1.0, 3.0)
    )


def test_the_lemma_beside_the_algorithm_is_not_homogeneous():
    """Seeded bug: the variance with ε (and η) where ε² (and η²) must stand, as the lemma prints it."""

    def lemma(epsilon, delta, steps, sensitivity):
        return math.sqrt(32 * math.log(1.25 / delta) ** 2 * sensitivity**2 * steps * math.log(1 / delta) / epsilon)

    assert homogeneous(thesis_sigma)
    assert not homogeneous(lemma)
    assert lemma(0.1, 1e-6, 100, 1.0) < thesis_sigma(0.1, 1e-6, 100, 1.0) / 3


def test_the_thesis_needs_its_own_neighbours():
    add = goal_of(1, "1e-6", "add_or_remove_one")
    with pytest.raises(InvalidParameter, match="thesis"):
        thesis_schedule(task(goal=add), add)


@pytest.mark.slow
def test_the_thesis_run_is_of_no_use():
    """Its model is as good as X = 0: within a tenth of it."""
    problem = bilinear_problem(400, (5, 4), 2, seed=1, test=20_000)
    one = task(400, (5, 4))
    schedule = thesis_schedule(one, REPLACED)
    data = dense_records(problem.train.left, problem.train.right, problem.train.targets, BilinearHuber())
    found = run_thesis(schedule, data, Releaser(make_plan(REPLACED, schedule.parts)))
    nothing = problem.excess(np.zeros((5, 4)))

    assert problem.excess(found.model) > 0.5 * nothing
    assert np.linalg.svd(found.model, compute_uv=False).sum() <= 1 + 1e-9


def test_step_counts_follow_the_strength():
    assert strength(task(), REPLACED, 0.2367) == pytest.approx(10_000 * 0.2367 / (2 * math.sqrt(40)))
    assert gradient_schedule(task(), 187.0).steps == 8
    assert gradient_schedule(task(), 1.0).steps == 3
    assert frank_wolfe_schedule(187.0).steps == 10
    assert tree_schedule(task(), LIMIT, 187.0).phases == 3
    assert stochastic_schedule(task(), LIMIT).steps == 5000
    assert stochastic_schedule(task(), LIMIT).decay == pytest.approx(math.log(10_000) / 10_000, rel=0.04)


def test_curvature_is_bought_only_where_it_is_not_declared():
    names = [one.name for one in gradient_schedule(task(), 10.0).parts]

    assert names == ["gradient", "second_moments"]
    assert [one.name for one in gradient_schedule(task(), 10.0, curvature=0.2).parts] == ["gradient"]
    assert not gradient_schedule(task(shape=(3000, 3000)), 10.0).bought


@pytest.mark.parametrize("phases", [1, 2, 4, 6])
def test_a_tree_uses_no_record_twice(phases):
    schedule = tree_schedule(task(), LIMIT, 100.0, phases=phases)

    assert sum(schedule.sizes) <= 10_000
    assert sum(schedule.sizes) > 9_000 or phases == 1
    assert len(schedule.sizes) == 2**phases - 1
    assert min(schedule.sizes) == schedule.root >> (phases - 1)


def test_slots_are_filled_alike():
    """Permuted where records are replaced; drawn for each unit, all of whose rows stay together, where they come and go."""
    draw = np.random.default_rng(0)
    data = dense_records(draw.normal(size=(50, 2)), draw.normal(size=(50, 2)), np.zeros(50), BilinearHuber())
    order, ends = in_slots(data, [20, 10, 20], REPLACED.adjacency)
    assert sorted(order.tolist()) == list(range(50))
    assert ends.tolist() == [20, 30, 50]

    units = draw.integers(0, 9, 50)
    several = dense_records(draw.normal(size=(50, 2)), draw.normal(size=(50, 2)), np.zeros(50), BilinearHuber(), units=units)
    order, ends = in_slots(several, [1] * 40, goal_of(1, 0, "add_or_remove_one").adjacency)
    slots = np.searchsorted(ends, np.arange(50), side="right")
    for unit in range(9):
        assert len(set(slots[units[order] == unit].tolist())) <= 1
    assert ends[-1] == 50


def test_grids_get_coarser_with_more_records_and_then_refuse():
    assert (coefficient_bits(1000, LIMIT), factor_bits(1000)) == (14, 13)
    for count in (10**4, 10**6, 10**8, 10**9):
        limit = 1 << (2 * factor_bits(count))
        assert count * 4 * (limit << coefficient_bits(count, limit)) < 2**62
    with pytest.raises(InvalidParameter, match="number of records"):
        factor_bits(10**12)
    with pytest.raises(InvalidParameter, match="number of records"):
        coefficient_bits(10**9, LIMIT)


def test_a_surprising_curvature_is_seen_and_noise_is_not():
    move = np.array([[0.5, 0.0], [0.0, 0.5]])
    zero = np.zeros((2, 2))

    assert shown_curvature((zero, zero), (move, 2 * move), 1e-3) == pytest.approx(2, abs=0.02)
    assert shown_curvature((zero, zero), (move, 0.1 * move), 1.0) < 0
    assert shown_curvature((zero, zero), (zero, move), 1.0) == 0


@pytest.mark.slow
def test_dependent_sides_do_not_break_the_steps():
    """a = b: the product of second moments is far below the curvature; steps shorten once gradients show it."""
    count, size = 4000, 10
    where = np.arange(count) % size
    rows = np.eye(size)[where]
    targets = np.full(count, 0.1)
    goal = goal_of(50, "1e-6", "replace_one")
    one = Task(BilinearHuber(), 1.0, count, (size, size), goal.adjacency)
    schedule = gradient_schedule(one, 1.0, steps=40)
    data = dense_records(rows, rows, targets, BilinearHuber())
    found = run_gradient(one, schedule, data, Releaser(make_plan(goal, schedule.parts)))

    np.testing.assert_allclose(np.diag(found.model), 0.1, atol=0.03)


def test_frank_wolfe_without_noise_finds_the_best():
    problem = bilinear_problem(2000, (6, 5), 2, seed=0, test=20_000)

    assert problem.excess(frank_wolfe(BilinearHuber(), 1.0, problem.train, steps=60)) < 5e-4
    assert problem.excess(problem.best) == 0
    assert problem.excess(np.zeros((6, 5))) > 0.03

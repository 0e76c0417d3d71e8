"""Oja's iteration as printed and as it should be, and what a drawn direction costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import dblquad

from curador.errors import Failed, InvalidParameter
from curador.learn.oracles import bingham, oja
from curador.learn.oracles import directions as cost
from curador.learn.oracles.directions import directions
from curador.learn.oracles.power import gram_product
from curador.learn.plan import PlannedRelease, goal_of, make_plan
from curador.learn.release import Releaser
from curador.learn.sums import whole_rows
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE
from curador.randomness.entropy import Entropy

random = np.random.default_rng(3)
GOAL = goal_of(1, 1e-6, "replace_one")


# ---- Oja ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "epsilon"), [(1, 0.1), (20, 1), (100, 20)])
def test_the_printed_noise_is_charged_for_what_it_costs(steps, epsilon):
    """Never less noise than the goal needs; ρ is that of the noise, not of the printed argument."""
    goal = goal_of(epsilon, 1e-6, "add_or_remove_one")
    plan = oja.oja_plan(goal, steps, accountant="thesis")
    tight = oja.oja_plan(goal, steps, accountant="tight")
    printed = oja.thesis_sigma(epsilon, 1e-6 / (steps + 1), steps)

    assert plan.multiplier("product") == max(Fraction(printed), tight.multiplier("product"))
    assert plan.rho == steps / (2 * plan.multiplier("product") ** 2) <= tight.rho
    assert plan.loss.epsilon(delta=1e-6) <= epsilon


def test_a_plan_within_a_rho_is_kept_within_it():
    for accountant in ("thesis", "tight"):
        assert oja.oja_plan(GOAL, 10, accountant=accountant, rho=Fraction(1, 1000)).rho <= Fraction(1, 1000)


def test_steps_are_as_printed_or_as_they_should_be():
    assert oja.step_of(2.0, 9, 16, accountant="thesis") == 1 / (16 * 2 * 3)
    assert oja.step_of(2.0, 9, 16, accountant="tight") == 1 / (4 * 2 * 3)


@pytest.mark.slow
def test_the_tight_step_arrives_and_the_printed_one_does_not():
    """A spike of 5000 records: the tight iteration finds it, the printed one stays where it began."""
    data = random.standard_normal((5_000, 20)) * 0.1
    data[:, 3] += 0.8
    rows = whole_rows(data, norm=1.0)
    found = {}
    for accountant in ("thesis", "tight"):
        releaser = Releaser(oja.oja_plan(GOAL, 30, accountant=accountant))
        product = gram_product(rows, REPLACE_ONE, one_row=True)
        end = oja.oja(releaser, "product", product, size=20, steps=30, accountant=accountant)
        assert releaser.releases[0].count == 30
        assert np.linalg.norm(end.direction) == pytest.approx(1.0)
        found[accountant] = end.direction[3] ** 2

    assert found["tight"] > 0.99
    assert found["thesis"] < 0.9


def test_a_shift_is_public_and_slows_it_down():
    data = np.zeros((5000, 4))
    data[:, 0] = 1.0
    product = gram_product(whole_rows(data, norm=1.0), REPLACE_ONE, one_row=True)
    start = np.array([1.0, 1.0, 0.0, 0.0])
    ends = [
        oja.oja(
            Releaser(oja.oja_plan(GOAL, 3, accountant="tight")),
            "product",
            product,
            size=4,
            steps=3,
            accountant="tight",
            shift=shift,
            start=start,
        ).direction[0]
        for shift in (0.0, 1e6)
    ]

    assert ends[0] > 0.95
    assert ends[1] == pytest.approx(math.sqrt(0.5), abs=0.1)


def test_the_iteration_needs_a_delta_and_a_known_accountant():
    with pytest.raises(InvalidParameter, match="delta must be above 0"):
        oja.oja_plan(goal_of(1, 0, "add_or_remove_one"), 3, accountant="thesis")
    with pytest.raises(InvalidParameter, match="accountant must be"):
        oja.oja_plan(GOAL, 3, accountant="none")


# ---- directions ---------------------------------------------------------------------------------------------------------


def two_valued(extent, shift, alpha):
    """D_α/α of the pair whose log-ratio takes two values, `shift` and `shift − extent`."""
    high, low = math.exp(shift), math.exp(shift - extent)
    share = (1 - low) / (high - low)
    return math.log(share * high**alpha + (1 - share) * low**alpha) / (alpha - 1) / alpha


@pytest.mark.parametrize("extent", [0.05, 0.5, 1.0, 3.0, 8.0])
def test_the_rho_of_a_range_is_the_worst_of_all_pairs(extent):
    """A scan over pairs and orders never exceeds it, and comes within a part in a thousand."""
    scanned = max(
        two_valued(extent, extent * part, alpha)
        for part in np.linspace(0.005, 0.995, 199)
        for alpha in (1.0001, 1.01, 1.1, 1.5, 2, 3, 5, 10, 30)
    )

    assert scanned <= cost.bounded_range_rho(extent) * (1 + 1e-6)
    assert scanned >= cost.bounded_range_rho(extent) * 0.999
    assert cost.bounded_range_rho(extent) <= extent**2 / 8


def test_the_rho_of_a_small_range_is_its_series():
    assert cost.bounded_range_rho(0) == 0
    assert cost.bounded_range_rho(0.9999e-3) == pytest.approx(cost.bounded_range_rho(1.0001e-3), rel=1e-3)
    assert cost.bounded_range_rho(1e-3) == pytest.approx(1e-6 / 8, rel=1e-6)


def sphere_rho(concentration, first, second, alpha):
    """D_α/α between two laws on the sphere of three dimensions, by quadrature."""

    def log_total(matrix):
        def density(angle, height):
            ring = math.sqrt(1 - height**2)
            point = np.array([ring * math.cos(angle), ring * math.sin(angle), height])
            return math.exp(concentration * point @ matrix @ point)

        return math.log(dblquad(density, -1, 1, 0, 2 * math.pi, epsabs=1e-9)[0] / (4 * math.pi))

    mixed = alpha * first + (1 - alpha) * second
    moment = log_total(mixed) - alpha * log_total(first) - (1 - alpha) * log_total(second)
    return moment / (alpha - 1) / alpha


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.5, 4.0])
def test_both_arguments_bound_the_divergence_on_a_sphere(alpha):
    """Three dimensions, by quadrature: the range, and curvature where it is left."""
    axis = np.array([1.0, 0.0, 0.0])
    first, second = np.outer(axis, axis) * 0.4, np.zeros((3, 3))
    true = sphere_rho(1.0, first, second, alpha)

    assert 0 < true <= cost.log_sobolev_rho(1.0, 0.4, size=3, spread=0.4)
    assert true <= cost.bounded_range_rho(0.4)


def test_curvature_has_a_domain():
    """β s < (d − 2)/2, and no further."""
    assert cost.log_sobolev_rho(2.0, 1.0, size=10, spread=1.0) == pytest.approx(4 / (2 * 4))
    for concentration in (4.0, 5.0):
        with pytest.raises(InvalidParameter, match="concentration must be below 4"):
            cost.log_sobolev_rho(concentration, 1.0, size=10, spread=1.0)
    with pytest.raises(InvalidParameter):
        cost.log_sobolev_rho(0.1, 1.0, size=2, spread=1.0)


@pytest.mark.parametrize(
    ("count", "adjacency"), [(1, "add_or_remove_one"), (5, "replace_one"), (10, "add_or_remove_one"), (100, "replace_one")]
)
def test_a_plan_of_directions_keeps_its_goal(count, adjacency):
    """Certified, no weaker than sharing ε, and than zCDP; without δ exactly ε."""
    goal = goal_of(1, 1e-6, adjacency)
    plan = cost.direction_plan(goal, "direction", count=count)
    pure = cost.direction_plan(goal_of(1, 0, adjacency), "direction", count=count)
    extent = 1 / plan.multiplier("direction")

    assert plan.loss.epsilon(delta=1e-6) <= 1
    assert plan.loss.adjacency is goal.adjacency
    assert extent >= Fraction(1, count)
    assert float(extent) >= math.sqrt(8 * 0.024355 / count) * 0.999
    assert plan.argument == ("concentrated" if count == 100 else "bounded_range")
    assert pure.multiplier("direction") == count
    assert pure.loss.pure_epsilon == 1
    assert cost.concentration(pure, "direction", 2.0) == pytest.approx(1 / (2 * count))
    assert not plan.gaussian


def test_a_plan_of_directions_may_be_bounded_by_a_rho():
    plan = cost.direction_plan(GOAL, "direction", count=3, rho=Fraction(1, 50))

    assert plan.rho <= Fraction(1, 50)
    assert float(1 / plan.multiplier("direction")) == pytest.approx(math.sqrt(8 / 150))


def test_curvature_is_used_where_it_gives_more():
    plan = cost.direction_plan(GOAL, "direction", size=1000, spread=0.5)

    assert plan.argument == "log_sobolev"
    assert plan.loss.epsilon(delta=1e-6) <= 1
    assert float(1 / plan.multiplier("direction")) > 6
    assert cost.direction_plan(GOAL, "direction", size=1000, spread=500.0).argument == "bounded_range"


def test_a_direction_is_not_drawn_under_gaussian_noise():
    with pytest.raises(InvalidParameter, match="plan of directions"):
        cost.concentration(make_plan(GOAL, [PlannedRelease("direction")]), "direction", 1.0)


def test_the_range_of_a_record_doubles_where_it_is_replaced():
    rows = whole_rows(np.ones((2, 3)), norm=2.0)

    assert cost.range_of(rows, ADD_OR_REMOVE_ONE) == pytest.approx(4.0)
    assert cost.range_of(rows, ADD_OR_REMOVE_ONE) >= 4.0
    assert cost.range_of(rows, REPLACE_ONE) == pytest.approx(8.0)


@pytest.mark.parametrize("adjacency", [ADD_OR_REMOVE_ONE, REPLACE_ONE])
def test_no_record_has_a_larger_range(adjacency):
    """Eigenvalues of the change that a record makes, over random neighbours."""
    for _ in range(50):
        rows = whole_rows(random.standard_normal((2, 4)) * 10 ** random.uniform(-2, 2), norm=1.0)
        change = np.outer(rows.values[0], rows.values[0])
        if adjacency is REPLACE_ONE:
            change = change - np.outer(rows.values[1], rows.values[1])
        values = np.linalg.eigvalsh(change * rows.step**2)
        assert values[-1] - values[0] <= cost.range_of(rows, adjacency)


def test_acceptance_falls_with_the_root_of_the_dimension():
    """The closed form against an integral at d = 3, its limit at great d, and the rounds that follow from it."""
    assert bingham.least_acceptance(3) == pytest.approx(
        math.sqrt(math.pi) / 2 * math.sqrt(2) ** 2 * math.e / (math.sqrt(math.pi) * 27**0.5)
    )
    for size in (1000, 10**6):
        assert bingham.least_acceptance(size) == pytest.approx(math.sqrt(2 / (math.e * size)), rel=1e-2)
    assert [bingham.proposals(size) for size in (10, 100, 1000)] == [65, 231, 754]


@pytest.mark.parametrize("size", [2, 3, 10, 200])
def test_the_ratio_is_at_most_one_and_reaches_it(size):
    values = np.sort(random.standard_normal(size))[::-1]
    for concentration in (0.0, 1.0, 1e3, 1e9):
        excess, tuning = bingham.spread_of(values, concentration)
        uses = np.linspace(0.0, max(excess.max(), 1.0), 2001)
        best = max(0.0, (size - tuning) / 2)
        assert 1 <= tuning <= size
        assert (1 / (tuning + 2 * excess)).sum() == pytest.approx(1.0)
        assert (bingham.log_acceptance(uses, tuning, size) <= 1e-9 * (1 + uses)).all()
        assert bingham.log_acceptance(np.array([best]), tuning, size)[0] == pytest.approx(0.0, abs=1e-9 * size)


def test_directions_are_orthonormal_and_counted():
    data = random.standard_normal((5000, 6)) * 0.05
    data[:, 2] += 0.7
    data[::2, 4] += 0.6
    matrix = data.T @ data
    releaser = Releaser(cost.direction_plan(goal_of(4, 0, "add_or_remove_one"), "direction", count=3))
    found = directions(releaser, "direction", matrix, extent=1.0, count=3)

    assert np.allclose(found @ found.T, np.eye(3))
    assert found[0] @ matrix @ found[0] > 0.97 * np.linalg.eigvalsh(matrix)[-1]
    assert (releaser.releases[0].count, releaser.releases[0].sensitivity) == (3, 1.0)
    with pytest.raises(Failed, match="planned"):
        directions(releaser, "direction", matrix, extent=1.0, count=1)


def test_the_last_direction_leaves_no_choice():
    releaser = Releaser(cost.direction_plan(goal_of(1, 0, "add_or_remove_one"), "direction", count=2))
    found = directions(releaser, "direction", np.diag([3.0, 1.0]), extent=1.0, count=5)

    assert np.allclose(found @ found.T, np.eye(2))
    assert releaser.releases[0].count == 1


def test_alignment_is_one_third_of_nothing_and_all_of_much():
    assert cost.alignment(3, 0.0) == pytest.approx(1 / 3, rel=1e-6)
    assert cost.alignment(1000, 1e7) == pytest.approx(1 - 999 / 2e7, rel=1e-6)
    assert cost.alignment(1, 5.0) == 1.0
    assert cost.alignment(2, 0.0) == pytest.approx(0.5, rel=1e-3)


def test_normals_come_from_the_stream():
    """Bytes of all ones and of all zeros give numbers strictly between 0 and 1, and finite normals."""

    class Fixed(Entropy):
        def __init__(self, byte):
            self.byte = byte

        def fill(self, count):
            return np.full(count, self.byte, np.uint8)

    for byte in (0, 255):
        assert (np.abs(bingham.uniforms(3, Fixed(byte)) - 0.5) < 0.5).all()
        assert np.isfinite(bingham.normals(3, Fixed(byte))).all()


def test_a_draw_reads_as_many_bytes_whatever_the_data_are():
    """Flat, spread out, or concentrated on one direction: one round of proposals, all of them made."""

    class Counted(Entropy):
        def __init__(self):
            self.read, self.source = 0, np.random.default_rng(5)

        def fill(self, count):
            self.read += count
            return self.source.integers(0, 256, count, np.uint8)

    sizes = set()
    for values in (np.zeros(20), np.linspace(0, 30, 20), np.eye(20)[0] * 1e6):
        stream = Counted()
        bingham.draw(bingham.law_of(np.diag(values), 1.0), stream)
        sizes.add(stream.read)

    assert sizes == {bingham.proposals(20) * (20 + 1) * 8}

"""Losses: gradients, and the constants that clipping enforces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from curador.errors import InvalidParameter
from curador.learn.nuclear.losses import Batch, BilinearHuber, BilinearLogistic, EntrySquared, loss_of, loss_text
from curador.learn.nuclear.records import dense_records, entry_records, whole_coefficients

LOSSES = [BilinearHuber(0.5), BilinearLogistic(), EntrySquared(2.0), BilinearHuber(1.0, 2.0, 3.0)]
numbers = some.floats(-20, 20)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@given(margin=numbers, target=numbers)
def test_slopes_are_derivatives(loss, margin, target):
    step = 1e-6
    ends = loss.values(np.array([margin + step, margin - step]), np.full(2, target))
    slope = loss.slopes(np.array([margin]), np.array([target]))[0]

    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@given(first=numbers, second=numbers, target=numbers)
def test_constants_hold(loss, first, second, target):
    """No coefficient is above the slope, and none moves faster than the bend."""
    found = loss.slopes(np.array([first, second]), np.full(2, target))

    assert np.abs(found).max() <= loss.slope
    assert abs(found[0] - found[1]) <= loss.bend * abs(first - second) + 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradient_is_the_sum_of_rank_one_matrices(loss):
    draw = np.random.default_rng(0)
    batch = Batch(draw.normal(size=(5, 3)) / 4, draw.normal(size=(5, 2)) / 4, draw.normal(size=5))
    model, step = draw.normal(size=(3, 2)), 1e-6
    found = (batch.left * loss.coefficients(model, batch)[:, None]).T @ batch.right / 5
    for place in np.ndindex(3, 2):
        unit = np.zeros((3, 2))
        unit[place] = step
        slope = (loss.risk(model + unit, batch) - loss.risk(model - unit, batch)) / (2 * step)
        assert found[place] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_wild_record_is_clipped_to_the_constants(loss):
    draw = np.random.default_rng(1)
    wild = np.array([[1e300, -1e300, 1.0], [np.nan, 0, 0], [np.inf, 1, 1], [1e-320, 0, 0]])
    records = dense_records(wild, 1e9 * draw.normal(size=(4, 2)), np.array([np.inf, 1, -np.inf, np.nan]), loss)
    slopes = loss.slopes(records.margins(np.ones((3, 2)), 5.0), records.targets)
    whole = whole_coefficients(records, slopes, bound=loss.slope, bits=14)

    for row in range(4):
        one = records.take(slice(row, row + 1))
        added = one.sums(whole_coefficients(one, slopes[row : row + 1], bound=loss.slope, bits=14))
        assert np.sqrt(np.square(added.astype(float)).sum()) <= records.limit << 14
    assert whole.values[3, 0] == 0  # no target: nothing


def test_margins_do_not_depend_on_other_rows():
    """Bit for bit: of all rows at once, of some, in another order."""
    draw = np.random.default_rng(2)
    loss = BilinearHuber()
    left, right, model = draw.normal(size=(301, 37)), draw.normal(size=(301, 29)), draw.normal(size=(37, 29)) / 40
    records = dense_records(left, right, np.zeros(301), loss)
    together = records.margins(model, 1.0)
    order = draw.permutation(301)

    assert np.array_equal(records.take(order).margins(model, 1.0), together[order])
    assert np.array_equal(np.concatenate([records.take(slice(i, i + 1)).margins(model, 1.0) for i in range(301)]), together)
    np.testing.assert_allclose(
        together,
        ((left / np.linalg.norm(left, axis=1)[:, None]) @ model * (right / np.linalg.norm(right, axis=1)[:, None])).sum(1),
        atol=1e-3,
    )


def test_margins_of_factors_are_those_of_their_product():
    draw = np.random.default_rng(3)
    u, v = (np.linalg.qr(draw.normal(size=(size, 3)))[0] for size in (6, 5))
    shares = np.array([0.5, 0.25, 0.125])
    records = dense_records(draw.normal(size=(50, 6)), draw.normal(size=(50, 5)), np.zeros(50), BilinearHuber())
    entries = entry_records(draw.integers(0, 6, 50), draw.integers(0, 5, 50), np.zeros(50), (6, 5))
    for some_records in (records, entries):
        model = 2.0 * (u * shares) @ v.T
        np.testing.assert_allclose(
            some_records.margins_of_factors(u, v, shares, 2.0), some_records.margins(model, 2.0), atol=1e-4
        )


def test_entries_are_dense_records_of_unit_vectors():
    draw = np.random.default_rng(4)
    rows, columns, targets = draw.integers(0, 4, 30), draw.integers(0, 3, 30), draw.normal(size=30)
    loss, model = EntrySquared(), draw.normal(size=(4, 3)) / 4
    entries = entry_records(rows, columns, targets, (4, 3))
    dense = dense_records(np.eye(4)[rows], np.eye(3)[columns], targets, loss)
    sums = [
        one.sums(whole_coefficients(one, loss.slopes(one.margins(model, 1.0), targets), bound=1.0, bits=14)) * one.step
        for one in (entries, dense)
    ]

    np.testing.assert_allclose(sums[0], sums[1], atol=150)


def test_an_entry_outside_the_shape_adds_nothing():
    loss = EntrySquared()
    records = entry_records(np.array([0, 9, -1, 0]), np.array([0, 0, 0, 7]), np.ones(4), (2, 2))
    slopes = loss.slopes(records.margins(np.zeros((2, 2)), 1.0), records.targets)
    sums = records.sums(whole_coefficients(records, slopes, bound=1.0, bits=14))

    assert sums[0, 0] < 0
    assert np.count_nonzero(sums) == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_its_text(loss):
    assert loss_of(loss_text(loss)) == loss


def test_names_of_losses():
    assert loss_of("huber") == BilinearHuber()
    assert loss_of("squared(2)") == EntrySquared(2.0)
    for wrong in ("hubert", "huber(x)", "huber(0)", "logistic(1,2,3)", 3, "huber(nan)"):
        with pytest.raises(InvalidParameter, match="loss"):
            loss_of(wrong)

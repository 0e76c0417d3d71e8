"""Neighbour replay: right code has no violation, and each kind of seeded violation is pointed at."""

import contextlib

import numpy as np
import pytest

from curador.audit import replay
from curador.audit.replay import same
from curador.audit.roster import ROSTER
from curador.mechanisms.exponential import Exponential
from curador.mechanisms.gaussian import Gaussian
from curador.mechanisms.laplace import DiscreteLaplace, Laplace
from curador.mechanisms.seam import recording

COUNT = DiscreteLaplace(scale=2, sensitivity=1)
TOTAL = Laplace(scale=10, sensitivity=5)
DATA, NEIGHBOUR = [3, 1, 4, 1, 5], [3, 1, 4, 1]


def mean(data):
    return TOTAL.release(sum(data)) / max(COUNT.release(len(data)), 1)


def test_a_right_function_has_no_violation():
    """A noisy sum over a noisy count makes two releases, both within their sensitivities."""
    found = replay(mean, DATA, NEIGHBOUR)

    assert found.holds
    assert found.releases == 2
    assert str(found) == "2 releases, no violation"


@pytest.mark.parametrize("entry", ROSTER, ids=lambda entry: entry.name)
@pytest.mark.parametrize("epsilon", ["0.1", "4"])
def test_worlds_of_the_audit_are_neighbours(entry, epsilon):
    """Every pair of worlds that a mechanism is audited on lies within its declared sensitivity, in both directions."""
    mechanism = entry.make(epsilon)
    name = entry.many.replace("_many", "")

    def release(world):
        return getattr(mechanism, name)(*(world if isinstance(world, tuple) else (world,)))

    one, other = entry.worlds(mechanism)
    assert replay(release, one, other).violations == ()
    assert replay(release, other, one).violations == ()


def test_an_exceeded_sensitivity_is_pointed_at():
    """Clipping that was forgotten moves the sum further than declared: release 2, by name, without the data."""
    found = replay(lambda data: (COUNT.release(len(data)), TOTAL.release(sum(data))), [1, 2, 987], [1, 2])

    assert found.violations == (
        "release 2 (Laplace(scale=10, sensitivity=5)) has inputs further apart than its declared sensitivity",
    )
    assert "987" not in str(found)


def test_halves_rounded_to_even_exceed_the_sensitivity():
    """0.5 and 1.5 become 0 and 2 by Python's round."""
    found = replay(lambda value: COUNT.release(round(value)), 0.5, 1.5)

    assert "further apart" in str(found)


def test_a_release_more_is_control_flow():
    """One release for each record: the neighbour asks for one fewer, or one more."""

    def each(data):
        return [COUNT.release(value) for value in data]

    assert "release 5 (DiscreteLaplace(scale=2, sensitivity=1)) is missing for the neighbour" in str(
        replay(each, DATA, NEIGHBOUR)
    )
    assert "release 5 was asked for; the recorded run had 4: control flow depends on the data" in str(
        replay(each, NEIGHBOUR, DATA)
    )


def test_another_order_is_control_flow():
    """Releases in an order that the data decides are found by their mechanisms."""

    def sorted_by_data(data):
        first, second = (COUNT, TOTAL) if data[-1] > 4 else (TOTAL, COUNT)
        return first.release(len(data)), second.release(len(data))

    assert "control flow depends on the data" in str(replay(sorted_by_data, DATA, NEIGHBOUR))


def test_noise_scaled_by_the_data_is_found():
    """A sensitivity taken from the data is another mechanism for the neighbour."""
    found = replay(lambda data: Laplace(scale=max(data), sensitivity=1).release(len(data)), DATA, NEIGHBOUR)

    assert "Laplace(scale=4, sensitivity=1)" in str(found)
    assert not found.holds


def test_another_number_of_releases_is_found():
    """release_many with a size that depends on the data is another call."""
    assert not replay(lambda data: COUNT.release_many(0, len(data)), DATA, NEIGHBOUR).holds


def test_an_input_of_another_shape_is_found():
    """A histogram with as many cells as the data has values cannot be compared."""
    cells = DiscreteLaplace(scale=2, sensitivity=2)
    found = replay(lambda data: cells.release(np.bincount(data)).sum(), DATA, NEIGHBOUR)

    assert "has an input of another shape for the neighbour" in str(found)


def test_data_beside_the_noise_is_found():
    """A result that differs although all noise is the same has the data in it."""
    found = replay(lambda data: (COUNT.release(len(data)), min(data) + len(data)), DATA, NEIGHBOUR)

    assert "the result differs although every release gave the same output" in str(found)


def test_noise_that_bypasses_the_seam_is_found():
    """Fresh noise in the replay shows in the result."""
    generator = np.random.default_rng()

    assert not replay(lambda data: len(data) + generator.laplace(), DATA, NEIGHBOUR).holds


def test_an_error_in_one_world_only_is_found():
    """Errors are outputs; their words are not repeated, since they may hold the data."""

    def fragile(data):
        return COUNT.release(len(data)) if 5 in data else [][max(data)]

    found = str(replay(fragile, DATA, NEIGHBOUR))
    assert "only the neighbour ends in an error (IndexError)" in found or "is missing" in found


def test_errors_with_different_words_are_found():
    """The same class of error with the data in its text tells the worlds apart."""

    def refuse(data):
        raise ValueError(f"{sum(data)} is too much")

    assert replay(refuse, DATA, NEIGHBOUR).violations == (
        "the two worlds end in different errors: errors depend on the data",
    )


def test_the_same_error_in_both_worlds_is_no_violation():
    """A refusal that does not depend on the data is an answer like any other."""

    def refuse(data):
        raise ValueError("no")

    assert replay(refuse, DATA, NEIGHBOUR).holds


def test_swallowing_the_divergence_does_not_hide_it():
    """A function that catches everything still ends with other releases or another result."""

    def greedy(data):
        out = []
        for value in data:
            with contextlib.suppress(Exception):
                out.append(COUNT.release(value))
        return out

    assert not replay(greedy, NEIGHBOUR, [9, *DATA]).holds


def test_vectors_are_compared_as_a_whole():
    """An l2 sensitivity bounds all numbers together, not each."""
    pair = Gaussian(sigma=1, sensitivity=1, dimension=2)

    assert replay(pair.release, [0.0, 0.0], [0.5, 0.5]).holds
    assert not replay(pair.release, [0.0, 0.0], [1.0, 1.0]).holds


def test_scores_of_a_choice_are_compared_by_their_largest_change():
    """Scores may all move by the sensitivity, none by more."""
    choice = Exponential(epsilon=1, sensitivity=1)

    assert replay(choice.release, [0, 0, 0], [1, -1, 1]).holds
    assert not replay(choice.release, [0, 0, 0], [0, 0, 1.01]).holds


def test_replay_leaves_no_recorder_behind():
    """After a replay, releases draw fresh noise again."""
    replay(mean, DATA, NEIGHBOUR)
    with recording() as calls:
        COUNT.release(1)

    assert len(calls) == 1
    assert len({COUNT.release_many(0, 64).tobytes() for _ in range(2)}) == 2


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        (1, 1.0, False),
        (np.array([1, 2]), np.array([1, 2]), True),
        (np.array([1, 2], np.int32), np.array([1, 2], np.int64), False),
        (np.array([1, 2], object), np.array([1, 3], object), False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        ([1, (2, 3.0)], [1, (2, 3.0)], True),
        ([1], [1, 2], False),
        ("a", "a", True),
    ],
)
def test_results_are_equal_only_if_no_bit_tells_them_apart(one, other, equal):
    """Types, signs of zero, order of keys and lengths are visible to whoever gets the result."""
    assert same(one, other) is equal

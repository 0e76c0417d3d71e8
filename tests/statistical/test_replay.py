"""Neighbour replay: right code has no violation, and each kind of seeded violation is pointed at."""

import asyncio
import contextlib
import contextvars
import dataclasses
import datetime as dt
import threading
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from curador.audit import replay
from curador.audit.replay import same
from curador.audit.roster import ROSTER
from curador.mechanisms.exponential import Exponential
from curador.mechanisms.gaussian import Gaussian
from curador.mechanisms.laplace import DiscreteLaplace, Laplace
from curador.mechanisms.seam import Diverged, Unseen, recording, replaying

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


@pytest.mark.parametrize("swallowed", [Exception, BaseException])
def test_swallowing_the_divergence_does_not_hide_it(swallowed):
    """Releases that only the neighbour asks for are found, although the function catches everything and returns nothing."""

    def greedy(data):
        with contextlib.suppress(swallowed):
            if sum(data) > 13:
                COUNT.release(len(data))
        return 0

    assert replay(greedy, NEIGHBOUR, DATA).violations == (
        "release 1 was asked for; the recorded run had 0: control flow depends on the data",
    )


def test_a_replay_that_diverged_does_not_go_on():
    """The finding passes handlers of errors, so that nothing after them runs with noise that was never drawn."""
    after = []

    def greedy(data):
        with contextlib.suppress(Exception):
            COUNT.release(len(data)) if len(data) > 4 else None
        after.append(len(data))

    replay(greedy, NEIGHBOUR, DATA)

    assert after == [4]


def test_a_swallowed_finding_comes_back_where_the_block_ends():
    """Who replays by hand cannot miss it either."""

    def by_hand():
        with replaying([]), contextlib.suppress(BaseException):
            COUNT.release(1)

    with pytest.raises(Diverged, match="release 1 was asked for"):
        by_hand()


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def quietly(work):
    with contextlib.suppress(Diverged):
        work()


def test_a_release_in_another_thread_is_refused_and_reported():
    """A new thread has no recorder: its release draws nothing, and the replay does not pass."""
    found = replay(lambda data: in_a_thread(lambda: quietly(lambda: COUNT.release(sum(data)))), DATA, [1000])

    assert found.violations == (
        "a release by DiscreteLaplace(scale=2, sensitivity=1) in a thread or context without the recorder cannot be compared",
    )


def test_a_release_in_an_empty_context_is_refused():
    """The same thread without the context is as blind."""
    found = replay(lambda data: quietly(lambda: contextvars.Context().run(COUNT.release, sum(data))), DATA, [1000])

    assert "without the recorder" in str(found)


def test_threads_release_again_when_nobody_records():
    """The refusal lasts as long as the recorder stands."""
    released = []

    def work():
        released.append(COUNT.release(1))

    def watched():
        with recording():
            in_a_thread(lambda: quietly(work))

    with pytest.raises(Unseen):
        watched()
    assert released == []
    in_a_thread(work)
    assert len(released) == 1


def test_recorders_of_two_threads_do_not_disturb_each_other():
    """Each thread with a recorder of its own sees its own releases."""
    seen = []

    def watched():
        with recording() as calls:
            COUNT.release(1)
        seen.append(len(calls))

    with recording() as calls:
        in_a_thread(watched)
        COUNT.release(2)

    assert seen == [1]
    assert len(calls) == 1


def test_a_thread_that_inherits_the_context_is_seen():
    """asyncio.to_thread copies the context, and with it the recorder."""

    def work(data):
        return asyncio.run(asyncio.to_thread(COUNT.release, len(data)))

    assert replay(work, DATA, NEIGHBOUR).violations == ()
    assert replay(work, DATA, NEIGHBOUR).releases == 1
    assert "further apart" in str(replay(work, DATA, [1]))


def test_a_recorder_inside_a_recorder_is_refused():
    """The inner one would hide releases from the outer."""
    with recording() as calls:
        with pytest.raises(RuntimeError, match="already stands"), recording():
            pass
        COUNT.release(1)

    assert len(calls) == 1


def test_warnings_are_compared():
    """A warning with the data in it is an output; its words are not repeated."""
    found = replay(lambda data: warnings.warn(f"{data[-1]} it is", stacklevel=1), [1, 987], [1, 2])

    assert not found.holds
    assert "987" not in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert replay(lambda data: warnings.warn(str(len(data)), stacklevel=1), DATA, NEIGHBOUR).violations == (
            "the two worlds show different warnings: warnings depend on the data",
        )
        assert replay(lambda _: warnings.warn("careful", stacklevel=1), DATA, NEIGHBOUR).holds


def noted(data):
    error = ValueError("no")
    error.add_note(str(data))
    raise error


def caused(data):
    raise ValueError("no") from KeyError(len(data))


def attributed(data):
    error = ValueError("no")
    error.count = len(data)
    raise error


def left(data):
    raise SystemExit(len(data))


@pytest.mark.parametrize("refuse", [noted, caused, attributed, left])
def test_notes_causes_and_attributes_of_errors_are_compared(refuse):
    """All that a traceback prints, or an attribute holds, tells the worlds apart."""
    assert replay(refuse, DATA, NEIGHBOUR).violations == (
        "the two worlds end in different errors: errors depend on the data",
    )
    assert replay(refuse, DATA, DATA).holds


class Lax:
    """Equal to everything."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return True

    __hash__ = None


def test_results_of_unknown_types_are_refused():
    """Equality of their own may hide what they hold, so not even twins pass."""
    assert replay(Lax, 1, 2).violations == (
        "the result holds a Lax, which cannot be compared bit by bit: return plain values or arrays",
    )
    assert not replay(lambda data: [Lax(data)], 1, 1).holds
    with pytest.raises(TypeError):
        same(Lax(1), Lax(1))


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


class Pair(NamedTuple):
    """A tuple with names."""

    first: int
    second: float


@dataclasses.dataclass
class Held:
    """A number in a class that compares it loosely."""

    value: float


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
        (Decimal("1.0"), Decimal("1.00"), False),
        (Decimal("1.0"), Decimal("1.0"), True),
        (Fraction(1, 2), Fraction(1, 2), True),
        ({1}, {True}, False),
        ({1.0}, {1}, False),
        ({"a", "b"}, {"b", "a"}, True),
        (frozenset({1}), {1}, False),
        (complex(0.0, 0.0), complex(0.0, -0.0), False),
        (complex(0.0, 0.0), complex(-0.0, 0.0), False),
        (1, True, False),
        ({1: "a"}, {True: "a"}, False),
        (int, int, True),
        (int, str, False),
        (np.float64(0.0), np.float64(-0.0), False),
        (np.int64(1), np.int32(1), False),
        (np.array([0.0]), np.array([-0.0]), False),
        (np.array([1], object), np.array([True], object), False),
        (Pair(1, 2.0), Pair(1, 2.0), True),
        (Pair(1, 2.0), (1, 2.0), False),
        (Held(0.0), Held(-0.0), False),
        (Held(0.0), Held(0.0), True),
        (dt.datetime(2020, 1, 1, fold=0, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, fold=1, tzinfo=dt.UTC), False),
        (None, None, True),
    ],
)
def test_results_are_equal_only_if_no_bit_tells_them_apart(one, other, equal):
    """Types, signs of zero, order of keys and lengths are visible to whoever gets the result."""
    assert same(one, other) is equal

"""From tallies to released integers: which rows, which inputs at the seam, in which order."""

import itertools
from fractions import Fraction

import hand_made as hand
import numpy as np
import pytest

from curador.answers.release import Ends, group_rows, measured_integers, private_units, release
from curador.answers.table import answer_columns
from curador.audit.replay import replay
from curador.engines.base import Tallied
from curador.errors import Failed
from curador.mechanisms.keys import GaussianKeys
from curador.mechanisms.seam import recording
from curador.randomness.entropy import entropy
from curador.study.values import Type

COLOURS = hand.key("colour", ["red", "green", "blue", None])
SIZES = hand.key("size", [1, 2], Type.INTEGER)
CITY = hand.key("city", None)


def seen(question, exact):
    """What stood at the seam, and what came out."""
    with recording() as calls:
        out = release(question, exact)
    return calls, out


def test_known_keys_give_all_combinations_and_empty_groups_get_noise():
    """Every combination is released in the declared order; a group without rows is an exact 0 before noise."""
    one = hand.block([COLOURS, SIZES], [hand.count_item()])
    exact = hand.tallied(one, {("blue", 2): [1, 2, 3], ("red", 1): [9], ("pink", 1): [5, 5]})
    calls, (out,) = seen(hand.priced(hand.plan(one)), [exact])

    assert list(zip(*out.keys, strict=True)) == list(itertools.product(["red", "green", "blue", None], [1, 2]))
    assert calls[0].value.tolist() == [1, 0, 0, 0, 0, 3, 0, 0]
    assert [len(call.value) for call in calls] == [8, 8, 8]


def test_groups_that_are_not_in_the_domain_are_dropped():
    """A value outside the declared ones matches no row."""
    one = hand.block([COLOURS], [hand.count_item()])
    calls, _ = seen(hand.priced(hand.plan(one)), [hand.tallied(one, {("pink",): [1], (None,): [2, 3]})])

    assert calls[0].value.tolist() == [0, 0, 0, 2]


def test_measurements_combine_tallies_exactly():
    """Σ(v − 50) and Σ((v − 50)² − 1250) reach the seam as exact integers."""
    one = hand.block((), [hand.count_item()])
    calls, _ = seen(hand.priced(hand.plan(one)), [hand.tallied(one, {(): [0, 10, 100]})])

    assert [call.value.tolist() for call in calls] == [[3], [-40], [2500 + 1600 + 2500 - 3 * 1250]]


def test_integers_of_any_size_stay_exact():
    """A sum beyond 64 bits, and one that floats cannot hold, reach the seam and come out to the last digit."""
    one = hand.block([hand.key("k", ["a", "b"])], [hand.count_item()])
    large, odd = (1 << 100) + 1, (1 << 53) + 1
    exact = Tallied(
        (["a", "b"],),
        {0: np.array([0, 0]), 1: np.array([large, odd], object), 2: np.array([0, 0]), 3: np.array([0, 0])},
    )
    calls, (out,) = seen(hand.priced(hand.plan(one)), [exact])

    assert calls[1].value.tolist() == [large, odd]
    assert out.values[1].dtype == object
    assert all(abs(noisy - value) < 10_000 for noisy, value in zip(out.values[1].tolist(), [large, odd], strict=True))


def test_what_fits_is_released_in_64_bits():
    """Whether integers are Python's or NumPy's is decided by what was released."""
    one = hand.block((), [hand.count_item()])
    (out,) = release(hand.priced(hand.plan(one)), [hand.tallied(one, {(): [1]})])

    assert all(values.dtype == np.int64 for values in out.values)


@pytest.mark.parametrize("bad", [np.array([1.0]), np.array([1.5], object), np.array([True]), np.array([[1]])])
def test_floats_are_refused(bad):
    """A tally that went through a float is an engine's failure, not an answer."""
    one = hand.block((), [hand.count_item()])
    exact = Tallied((), {0: bad, 1: np.array([0]), 2: np.array([0]), 3: np.array([0])})

    with pytest.raises(Failed, match="not integers"):
        release(hand.priced(hand.plan(one)), [exact])


def test_the_order_of_the_engine_is_not_seen():
    """The same groups in another order put the same inputs at the seam."""
    keys = [hand.key("city", None), COLOURS]
    one = hand.block(keys, [hand.count_item()], quantile="1/2")
    names = [(city, colour) for city in "zxy" for colour in ("red", None)]
    groups = {name: [3] * (4000 + place) for place, name in enumerate(names)}  # of another size each: an order would be seen
    question = hand.priced(hand.plan(one))
    first, _ = seen(question, [hand.tallied(one, groups)])
    second, _ = seen(question, [hand.tallied(one, dict(reversed(groups.items())))])

    assert [c.mechanism for c in first] == [c.mechanism for c in second]
    for one_call, other in zip(first[1:4], second[1:4], strict=True):
        assert one_call.value.tolist() == other.value.tolist()
    assert first[0].value.keys == second[0].value.keys


@pytest.mark.parametrize("keys", [(), (COLOURS,), (COLOURS, SIZES)])
@pytest.mark.parametrize("quantile", [None, "1/2"])
def test_the_number_of_draws_does_not_depend_on_rows(keys, quantile):
    """A full table and an empty one take the same releases, from inputs of the same shape."""
    one = hand.block(keys, [hand.count_item()], quantile=quantile)
    question = hand.priced(hand.plan(one))
    name = tuple(key.values[0] for key in keys)
    full, _ = seen(question, [hand.tallied(one, {name: [1, 50, 99] * 100})])
    empty, _ = seen(question, [hand.tallied(one, {} if keys else {(): []})])

    assert [(c.mechanism, np.shape(getattr(c.value, "scores", c.value))) for c in full] == [
        (c.mechanism, np.shape(getattr(c.value, "scores", c.value))) for c in empty
    ]


def test_private_keys_are_selected_by_units_and_crossed_with_known_ones():
    """Only combinations whose private part passes are measured; known keys are complete inside them."""
    one = hand.block([COLOURS, CITY], [hand.count_item()])
    groups = {("red", "Ulm"): [7] * 5000, ("blue", "Ulm"): [1], ("red", "Aix"): [3] * 4000, ("green", "Bex"): [2]}
    calls, (out,) = seen(hand.priced(hand.plan(one)), [hand.tallied(one, groups)])

    assert isinstance(calls[0].mechanism, GaussianKeys)
    assert list(zip(*out.keys, strict=True)) == [
        (colour, city) for city in ("Aix", "Ulm") for colour in ("red", "green", "blue", None)
    ]
    assert calls[1].value.tolist() == [4000, 0, 0, 0, 5000, 0, 1, 0]
    assert out.units is not None
    assert np.allclose(out.units, [4000] * 4 + [5001] * 4, atol=200)


def test_a_key_of_one_person_does_not_pass():
    """Nothing at all may be left: no keys, no draws of measurements."""
    one = hand.block([CITY], [hand.count_item()], quantile="1/2")
    calls, (out,) = seen(hand.priced(hand.plan(one)), [hand.tallied(one, {("Ulm",): [7]})])

    assert len(calls) == 1
    assert out.rows == 0
    assert [column.values for column in answer_columns(hand.priced(hand.plan(one)), [out])] == [[], []]


def test_declared_values_that_are_one_float_are_one_row():
    """Two rows of the same people would be counted twice."""
    from fractions import Fraction

    near = Fraction(1, 10), Fraction(0.1), Fraction(-0.0), Fraction(0)
    one = hand.block([hand.key("x", near, Type.DECIMAL)], [hand.count_item()])
    calls, (out,) = seen(hand.priced(hand.plan(one)), [hand.tallied(one, {(0.1,): [1, 2], (-0.0,): [3]})])

    assert out.keys == ([0.1, 0.0],)
    assert calls[0].value.tolist() == [2, 1]


def test_groups_that_become_one_key_are_an_engine_failure():
    """Caps were executed on each, so nothing is known of both together: no number is made of them."""
    one = hand.block([hand.key("x", [None, Fraction(0)], Type.FLOAT)], [hand.count_item()])
    with pytest.raises(Failed, match="an engine must return every group once"):
        release(hand.priced(hand.plan(one)), [hand.tallied(one, {(float("nan"),): [1, 2], (None,): [3]})])


def test_selected_groups_that_become_one_key_are_an_engine_failure():
    """Their numbers of units, too."""
    one = hand.block([hand.key("x", None, Type.FLOAT)], [hand.count_item()])
    tallied = Tallied(([None],), {0: np.array([3])}, {}, (([None, float("nan")],), np.array([3, 4])))
    with pytest.raises(Failed, match="an engine must return every group once"):
        private_units(one, tallied)


def test_one_more_row_under_an_equal_key_cannot_move_a_centred_sum_beyond_what_was_declared():
    """A sum from the middle of 1,000 rows is far below 0; put together with another it became 2: nothing is released."""
    one = hand.block([hand.key("x", [None], Type.FLOAT)], [hand.count_item()])
    apart = Tallied(([None],), {0: np.array([-2000])})
    rows = group_rows(one, apart, [(None,)])
    assert measured_integers(one.measurements[0], apart, rows, 1).tolist() == [-2000]
    with pytest.raises(Failed, match="every group once"):
        group_rows(one, Tallied(([None, float("nan")],), {0: np.array([-2000, 2])}), [(None,)])


def test_keys_of_another_type_are_an_engine_failure():
    """A whole number that comes back as a float might merge groups."""
    one = hand.block([SIZES], [hand.count_item()])

    with pytest.raises(Failed, match="type"):
        release(hand.priced(hand.plan(one)), [hand.tallied(one, {(1.0,): [1]})])


def test_quantiles_are_drawn_three_times_a_group_and_tested_six_times():
    """The point and both ends, from one histogram; a test is one draw for all groups."""
    one = hand.block([SIZES], [hand.count_item()], quantile="1/2")
    calls, (out,) = seen(hand.priced(hand.plan(one), amount=20), [hand.tallied(one, {(2,): [30] * 600})])
    ends = out.values[3]

    assert [type(call.mechanism).__name__ for call in calls[3:]] == ["Quantile"] * 6 + ["DiscreteGaussian"] * 6
    assert all(np.shape(call.value) == (2,) for call in calls[9:])
    assert isinstance(ends, Ends)
    assert (ends.low[1], ends.point[1], ends.high[1]) == (30.0, 30.0, 30.0)


def test_entropy_is_fresh_for_every_release(monkeypatch):
    """The operating system's bytes are mixed in once."""
    stream, fresh = entropy(), []

    def refresh(self):
        fresh.append(self)

    monkeypatch.setattr(type(stream), "refresh", refresh)
    one = hand.block((), [hand.count_item()])
    release(hand.priced(hand.plan(one, one)), [hand.tallied(one, {(): [1]})] * 2)

    assert fresh == [stream]


# ---- neighbours ----------------------------------------------------------------------------------------------------


def worlds():
    """A table, and the same without one person, who is alone in her city."""
    groups = {("red", "Ulm"): [7] * 3000, ("blue", "Aix"): [9] * 2500, ("red", "Bex"): [5]}
    without = {name: values for name, values in groups.items() if name != ("red", "Bex")}
    return groups, without


def published(one, question, groups, released=release):
    return answer_columns(question, released(question, [hand.tallied(one, groups)]))


def test_neighbours_put_near_inputs_at_the_seam():
    """With the first world's noise the second publishes the same, from inputs within the declared sensitivities."""
    one = hand.block([COLOURS, CITY], [hand.count_item(), hand.item("m", hand.estimate(hand.MEAN))], quantile="1/2")
    question = hand.priced(hand.plan(one))

    assert replay(lambda groups: published(one, question, groups), *worlds()).violations == ()
    assert replay(lambda groups: published(one, question, groups), *reversed(worlds())).violations == ()


def test_a_release_that_follows_the_data_is_caught():
    """Seeded bug: empty groups of known keys are left out."""
    one = hand.block([COLOURS], [hand.count_item()])
    question = hand.priced(hand.plan(one))

    def wrong(groups):
        present = hand.block([hand.key("colour", [name for (name,) in groups])], [hand.count_item()])
        return published(present, hand.priced(hand.plan(present)), groups)

    assert replay(lambda groups: published(one, question, groups), {("red",): [1], ("blue",): [2]}, {("red",): [1]}).holds
    assert not replay(wrong, {("red",): [1], ("blue",): [2]}, {("red",): [1]}).holds

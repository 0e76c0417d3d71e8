"""Outputs of every kind in the adversary's game: what tells the worlds apart is seen, what is no output is told."""

import math

import numpy as np
import pytest

from curador import losses
from curador.audit import game
from curador.errors import InvalidParameter

ONE = losses.Pure(epsilon=1)

TELLING = {
    "a mask": lambda world: np.ma.masked_array([1.0], mask=[bool(world)]),
    "the last bit of a large integer": lambda world: 2**70 + world,
    "an integer beyond the floats": lambda world: 10**400 + world,
    "an infinity": lambda world: math.inf if world else 0.0,
    "the sign of an infinity": lambda world: math.inf if world else -math.inf,
    "a NaN": lambda world: math.nan if world else 0.0,
    "the ends of the floats": lambda world: 1.7e308 if world else -1.7e308,
    "nothing": lambda world: None if world else 1.0,
}


@pytest.mark.slow
@pytest.mark.parametrize("how", TELLING)
def test_what_tells_the_worlds_apart_refutes(how):
    """Without a warning, whatever the outputs are."""
    found = game(TELLING[how], 0, 1, samples=400, loss=ONE)
    assert found.refuted
    assert found.advantage == 1.0


@pytest.mark.parametrize(
    ("mechanism", "options", "told"),
    [
        (lambda _: [[1], [1, 2]], {}, "outputs are rectangular"),
        (lambda world: "ab"[world], {}, "outputs must be numbers"),
        (lambda world: {"a": world}, {}, "outputs must be numbers"),
        (float, {"attack": lambda outputs: ["x"] * len(outputs)}, "attack must be a score that gives numbers"),
        (float, {"prior": "1e-400"}, "prior must be above"),
    ],
)
def test_what_cannot_be_played_is_told_in_a_sentence(mechanism, options, told):
    """No trace of NumPy's."""
    with pytest.raises(InvalidParameter, match=told):
        game(mechanism, 0, 1, samples=400, loss=ONE, **options)


def test_the_upper_edge_of_the_band_holds_at_no_false_alarms():
    """Disjoint worlds: a threshold without a false alarm finds everybody, and the band says so."""
    found = game(float, 0, 1, samples=400, loss=ONE, attack=lambda outputs: outputs)
    assert found.roc.upper(np.array([0.0]))[0] == 1.0


def test_a_claim_of_nothing_has_no_ratio():
    """ε = 0 proves no area beyond the diagonal: round-off is not divided by."""
    found = game(lambda _: 0.0, 0, 1, samples=400, loss=losses.Pure(epsilon=0))
    assert (found.ratio, found.area_ratio) == (0.0, 0.0)

# ruff: noqa: D101, ARG002 -- a seeded bug is named by its class, and uses less than it is given
"""Every mechanism of ours keeps the rules that ship for others, and each rule is broken by a mechanism that it catches."""

import dataclasses
import secrets
from dataclasses import dataclass

import numpy as np
import pytest

import curador as cu
from curador.audit.roster import ROSTER
from curador.mechanisms.seam import perform
from curador.testing import NonconformingError, check_mechanism

NOISE = cu.DiscreteLaplace(scale=1, sensitivity=1)
FAST = {"DiscreteLaplace", "RandomizedResponse", "Exponential"}


@pytest.mark.parametrize(
    "entry",
    [pytest.param(entry, id=entry.name, marks=[] if entry.name in FAST else [pytest.mark.slow]) for entry in ROSTER],
)
def test_our_mechanisms_keep_the_rules(entry):
    """On the worlds that the audit looks at, made for ε = 1."""
    mechanism = entry.make("1")
    check_mechanism(
        mechanism, *entry.worlds(mechanism), score=entry.score, samples=2_000, name=entry.many.removesuffix("_many")
    )


@dataclass(frozen=True, slots=True)
class Count:
    """A count with noise that is right; each seeded bug changes one method."""

    mechanism: cu.DiscreteLaplace = NOISE

    @property
    def loss(self):
        return self.mechanism.loss

    def release(self, value):
        return perform(self, self.read(value))

    def release_many(self, value, size):
        return perform(self, self.read(value), size)

    def read(self, value):
        if type(value) is not int:
            raise cu.InvalidParameter(f"value must be an int; got a {type(value).__name__}.")
        return value

    def draw(self, value, source, size=None):
        return self.mechanism.draw(value, source, size)

    def within(self, one, other):
        return self.mechanism.within(one, other)


class HalfTheNoise(Count):
    def draw(self, value, source, size=None):
        return 2 * value + self.mechanism.draw(0, source, size)


class OtherRandomness(Count):
    def draw(self, value, source, size=None):
        return value + np.array([secrets.randbelow(9) for _ in range(size or 1)])


class NoNoise(Count):
    def draw(self, value, source, size=None):
        return value if size is None else np.full(size, value)


class PastTheSeam(Count):
    def release(self, value):
        return self.read(value) + secrets.randbelow(9)


class TooSensitive(Count):
    def read(self, value):
        return 3 * super().read(value)


class TellsTheValue(Count):
    def read(self, value):
        if type(value) is not int:
            raise cu.InvalidParameter(f"value must be an int; got {value!r}.")
        return value


class FailsForWords(Count):
    def read(self, value):
        return value + 0 if isinstance(value, int) else int(value)


class DrawsBeforeItLooks(Count):
    def release(self, value):
        perform(self, 0)
        return super().release(value)


class PromisesNothing(Count):
    @property
    def loss(self):
        return 1.0


class NoValue(Count):
    __hash__ = Count.__hash__

    def __eq__(self, other):
        return self is other


BUGS = {
    HalfTheNoise: "δ ≥ .* claimed",
    OtherRandomness: "the same bytes gave other outputs",
    NoNoise: "draw must use the entropy",
    PastTheSeam: "must go through the seam",
    TooSensitive: "further apart than its declared sensitivity",
    TellsTheValue: "must not repeat the value",
    FailsForWords: "must be Refused",
    DrawsBeforeItLooks: "nothing may be drawn",
    PromisesNothing: "loss must be a curador.Loss",
    NoValue: "must equal it",
}


def test_a_mechanism_of_somebody_else_keeps_the_rules():
    """The one that the bugs below are seeded into."""
    check_mechanism(Count(), 3, 4, samples=2_000)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_caught(bug):
    """Each by the rule that it breaks."""
    with pytest.raises(NonconformingError, match=BUGS[bug]) as raised:
        check_mechanism(bug(), 3, 4, samples=2_000)

    assert raised.value.broken


def test_all_broken_rules_are_told_at_once():
    """A finding does not hide the next one."""

    class Two(PromisesNothing):
        def draw(self, value, source, size=None):
            return value if size is None else np.full(size, value)

    with pytest.raises(NonconformingError) as raised:
        check_mechanism(dataclasses.replace(Two()), 3, 4, samples=2_000)

    assert len(raised.value.broken) >= 2

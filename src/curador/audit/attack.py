"""How an adversary plays: where outputs come from, and the score by which the second world is believed.

Anything can be attacked that releases: a mechanism or a protocol by `release_many(value, size)`, a protocol by
`privatise(values)`, anything else as a function world → output. Where the law of the outputs is known the score is the
logarithm of the likelihood ratio, which no test beats [NP33].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np

from curador.errors import InvalidParameter, require
from curador.mechanisms.exponential import Exponential, PermuteAndFlip
from curador.mechanisms.gaussian import DiscreteGaussian, Gaussian
from curador.mechanisms.grid import steps_of
from curador.mechanisms.laplace import DiscreteLaplace, Laplace, TruncatedLaplace
from curador.mechanisms.noisy_max import NoisyMax
from curador.mechanisms.quantile import Quantile
from curador.mechanisms.randomized_response import RandomizedResponse
from curador.mechanisms.staircase import Staircase

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray

LOW = (1 << 52) - 1
LARGEST = 1 << 1000
"""Of a large integer: the digits that its last number keeps, and the most that its first can be."""

Score: TypeAlias = Callable[[Any], Any]
"""All outputs, the releases along the first axis → one number a release; the larger, the likelier the second world."""


@runtime_checkable
class Releasing(Protocol):
    """A mechanism, or a protocol of local privacy."""

    def release_many(self, value: Any, size: int) -> Any:
        """Return `size` independent releases along a first axis."""
        ...


@runtime_checkable
class Privatising(Protocol):
    """A protocol that reports on the values of many people."""

    def privatise(self, values: Any) -> Any:
        """Return one report a person along a first axis."""
        ...


@runtime_checkable
class Odds(Protocol):
    """What knows its own likelihood ratios."""

    def log_odds(self, outputs: Any, world0: Any, world1: Any) -> FloatArray:
        """Return log P[output | world1] − log P[output | world0], one number a release."""
        ...


@dataclass(frozen=True, slots=True)
class Attack:
    """A score and its name; `exact` says that it is the logarithm of the likelihood ratio under the claimed law."""

    name: str
    score: Score
    exact: bool = False

    def scores(self, outputs: Any, size: int) -> FloatArray:
        """Return the scores of `size` outputs, checked."""
        try:
            found = np.asarray(self.score(outputs), np.float64)
        except (TypeError, ValueError):
            raise InvalidParameter.must_be("attack", "a score that gives numbers", "something else") from None
        require(found.shape == (size,), "attack", f"a score that gives {size} numbers for {size} releases", found.shape)
        require(not bool(np.isnan(found).any()), "attack", "a score without NaN", "a NaN")
        return found


def name_of(mechanism: Any) -> str:
    """Return what a report calls it: the repr of a mechanism, the name of a function."""
    return str(getattr(mechanism, "__name__", mechanism))


def draw_outputs(mechanism: Any, world: Any, size: int) -> Any:
    """Return `size` independent outputs of a world along a first axis."""
    if isinstance(mechanism, Releasing):
        return mechanism.release_many(world, size=size)
    if isinstance(mechanism, Privatising):
        return mechanism.privatise(np.repeat(np.asarray(world)[None], size, axis=0))
    require(
        callable(mechanism),
        "mechanism",
        "something that releases",
        mechanism,
        "a mechanism, a protocol, or a function of a world that returns numbers",
    )
    outputs = [_array(mechanism(world)) for _ in range(size)]
    shapes = {output.shape for output in outputs}
    require(len(shapes) == 1, "mechanism", "a function whose outputs have one shape", f"{len(shapes)} shapes")
    return np.stack(outputs)


def _array(output: Any) -> NDArray[Any]:
    """One output as an array. Masked entries are NaN: that they are masked is told; large integers are two numbers."""
    if isinstance(output, np.ma.MaskedArray):
        return np.ma.filled(output.astype(np.float64), np.nan)
    try:
        array = np.asarray(output)
    except ValueError:
        raise InvalidParameter.must_be("mechanism", "a function whose outputs are rectangular", "ragged ones") from None
    if array.dtype.kind == "O" and all(isinstance(one, int) for one in array.ravel().tolist()):  # beyond 64 bits
        parts = [(float(min(max(one >> 52, -LARGEST), LARGEST)), float(one & LOW)) for one in array.ravel().tolist()]
        return np.array(parts).reshape(*array.shape, 2)
    return array


def first_releases(outputs: Any, count: int) -> Any:
    """Return the first `count` releases."""
    return _take_part(outputs, slice(None, count))


def later_releases(outputs: Any, count: int) -> Any:
    """Return the releases after the first `count`."""
    return _take_part(outputs, slice(count, None))


def _take_part(outputs: Any, part: slice) -> Any:
    """A part of releases, also of those that come as several arrays."""
    if isinstance(outputs, np.ndarray):
        return cast("NDArray[Any]", outputs)[part]
    return tuple(None if array is None else array[part] for array in arrays_of(outputs))


def arrays_of(outputs: Any) -> tuple[NDArray[Any] | None, ...]:
    """Return the arrays that an output of several parts holds, in their order."""
    if isinstance(outputs, tuple):
        return tuple(None if one is None else np.asarray(one) for one in cast("tuple[Any, ...]", outputs))
    slots = getattr(type(outputs), "__dataclass_fields__", None)
    if slots is None:
        raise InvalidParameter.must_be("outputs", "arrays", type(outputs).__name__, "give a function that returns arrays")
    return tuple(None if (one := getattr(outputs, name)) is None else np.asarray(one) for name in slots)


# ---- likelihood ratios ----------------------------------------------------------------------------------------------


def likelihood(mechanism: Any, world0: Any, world1: Any) -> Attack | None:
    """Return the logarithm of the likelihood ratio as a score, or None where the law is not known in closed form.

    Claim   log P[output | world1] − log P[output | world0] of the law that the mechanism claims, to a few ulps; +∞ where only
            the second world can give the output, −∞ where only the first can.
    """
    score = _ratio(mechanism, world0, world1)
    return None if score is None else Attack("likelihood", score, exact=True)


def _ratio(mechanism: Any, world0: Any, world1: Any) -> Score | None:
    if isinstance(mechanism, Odds):
        return lambda outputs: mechanism.log_odds(outputs, world0, world1)
    if isinstance(mechanism, (Laplace, DiscreteLaplace)):
        return _laplace(float(mechanism.scale), *_on_grid(mechanism, world0, world1))
    if isinstance(mechanism, (Gaussian, DiscreteGaussian)):
        return _gaussian(float(mechanism.sigma) ** 2, *_on_grid(mechanism, world0, world1))
    if isinstance(mechanism, TruncatedLaplace):
        return _truncated_ratio(mechanism, *_on_grid(mechanism, world0, world1))
    if isinstance(mechanism, Staircase):
        return _stairs(mechanism, *_on_grid(mechanism, world0, world1))
    if isinstance(mechanism, RandomizedResponse):
        return _answers(mechanism, world0, world1)
    if isinstance(mechanism, Quantile):
        return _choices(mechanism, world0, world1, np.asarray(mechanism.points))
    if isinstance(mechanism, (Exponential, PermuteAndFlip)) or (isinstance(mechanism, NoisyMax) and _index_only(mechanism)):
        return _choices(mechanism, world0, world1, None)
    return None


def _index_only(mechanism: NoisyMax) -> bool:
    return mechanism.top == 1 and not mechanism.gap and mechanism.value_epsilon is None


def _on_grid(mechanism: Any, world0: Any, world1: Any) -> tuple[FloatArray, FloatArray]:
    """The two values as the mechanism rounds them."""
    step = float(getattr(mechanism, "grid", 1))
    one, other = (np.floor(np.asarray(world, np.float64) / step + 0.5) * step for world in (world0, world1))
    return one, other


def _add_ratios(ratios: FloatArray) -> FloatArray:
    """Independent numbers of one release: their ratios add up."""
    return ratios if ratios.ndim == 1 else ratios.reshape(len(ratios), -1).sum(axis=1)


def _laplace(scale: float, one: FloatArray, other: FloatArray) -> Score:
    """|x − a| − |x − b| as a clamp, so that outputs beyond both values have the very same score."""
    low, high = np.minimum(one, other), np.maximum(one, other)
    sign = np.where(other >= one, 1.0, -1.0)

    def score(outputs: Any) -> FloatArray:
        inside = np.clip(np.asarray(outputs, np.float64), low, high)
        return _add_ratios(sign * ((inside - low) - (high - inside)) / scale)

    return score


def _gaussian(variance: float, one: FloatArray, other: FloatArray) -> Score:
    def score(outputs: Any) -> FloatArray:
        return _add_ratios((other - one) * (np.asarray(outputs, np.float64) - (one + other) / 2) / variance)

    return score


def _truncated_ratio(mechanism: TruncatedLaplace, one: FloatArray, other: FloatArray) -> Score:
    """The Laplace ratio where both worlds reach; ±∞ where one of them does not."""
    inner, reach = _laplace(float(mechanism.scale), one, other), float(mechanism.reach)

    def score(outputs: Any) -> FloatArray:
        given = np.asarray(outputs, np.float64)
        ratio = np.where(np.abs(given - one) > reach, np.inf, inner(given))
        return np.where(np.abs(given - other) > reach, -np.inf, ratio)

    return score


def _stairs(mechanism: Staircase, one: FloatArray, other: FloatArray) -> Score:
    width = steps_of(mechanism.sensitivity_squared, mechanism.exponent)
    tread, epsilon = int(mechanism.gamma * width), float(mechanism.epsilon)

    def stair(distance: FloatArray) -> FloatArray:
        block, offset = np.divmod(np.abs(distance) / float(mechanism.grid), float(width))
        return block + (offset >= tread)

    def score(outputs: Any) -> FloatArray:
        given = np.asarray(outputs, np.float64)
        return epsilon * (stair(given - one) - stair(given - other))

    return score


def _answers(mechanism: RandomizedResponse, world0: Any, world1: Any) -> Score:
    truth = mechanism.gamma
    gain = math.log(truth) - math.log((1 - truth) / (mechanism.categories - 1)) if truth < 1 else math.inf

    def score(outputs: Any) -> FloatArray:
        given = np.asarray(outputs, np.int64)
        return _add_ratios(gain * ((given == np.asarray(world1, np.int64)) * 1.0 - (given == np.asarray(world0, np.int64))))

    return score


def _choices(mechanism: Any, world0: Any, world1: Any, points: FloatArray | None) -> Score:
    """Outputs are places, or points, of a list whose probabilities the mechanism knows."""
    one, other = (np.asarray(mechanism.probabilities(world), np.float64) for world in (world0, world1))
    with np.errstate(divide="ignore"):
        ratios = np.log(other) - np.log(one)

    def score(outputs: Any) -> FloatArray:
        given = np.asarray(outputs)
        places = given.reshape(len(given)).astype(np.int64) if points is None else np.searchsorted(points, given)
        return ratios[places]

    return score


def as_attack(given: Score) -> Attack:
    """Return a score that somebody gives, under its own name."""
    return Attack(getattr(given, "__name__", "a given score").replace("<lambda>", "a given score"), given)

"""Seeded bugs: mechanisms that are wrong in ways real ones have been wrong. An audit that lets one pass proves nothing.

Among them are sparse vectors that are not private: six of the mistakes that were published or shipped, after [LSL17].

These all ask queries of sensitivity 1 whether they pass a threshold, in many runs at once, and give one score a run.

None of them can be reached from a mechanism of ours; they exist so that every audit shows in the same run that it can fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from curador.audit.bits import ReleaseGrid, leaks
from curador.audit.bounds import lower_bound
from curador.audit.fit import LawCells, goodness, laplace_cells
from curador.audit.roster import ROSTER, LastBitLeftOut, TooTrue, leaking
from curador.audit.trial import EPSILONS, run_trial
from curador.mechanisms.exponential import Exponential
from curador.mechanisms.laplace import DiscreteLaplace
from curador.mechanisms.quantile import Quantile
from curador.privacy.losses import BoundedRange
from curador.randomness.choice import below, bernoulli, bernoulli_exp
from curador.randomness.entropy import entropy
from curador.randomness.injected import Seeded
from curador.randomness.noise import laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from curador.numerics.rounding import FloatArray


# ---- sparse ----------------------------------------------------------------------------------------------------------------


UNIT = 1 << 10
"""Grid steps a unit."""

_MISSED = 1 << 40  # the score of a run in which nothing passed


class Run(Protocol):
    """World (0 or 1) and how many → scores."""

    def __call__(self, world: int, size: int, *, right: bool) -> NDArray[Any]:
        """Return the scores of so many runs."""
        ...


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong sparse vector, the ε it claims, and outputs of two worlds as scores: its own, and those of its right twin."""

    name: str
    epsilon: float
    run: Run

    def sample(self, world: int, size: int) -> NDArray[Any]:
        """Return scores of the wrong one."""
        return self.run(world, size, right=False)

    def twin(self, world: int, size: int) -> NDArray[Any]:
        """Return scores of the same noise used rightly, which has the ε claimed."""
        return self.run(world, size, right=True)


def _noise(scale: Fraction, *shape: int) -> NDArray[np.int64]:
    return laplace(scale * UNIT).draw(int(np.prod(shape)), entropy()).reshape(shape)


def _ask_queries(
    values: tuple[int, ...], threshold: float, size: int, *, threshold_scale: Fraction | None, query_scale: Fraction | None
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which queries pass, were all of them asked, and their noisy values; a scale of None draws no noise."""
    shape = (size, len(values))
    noisy = np.broadcast_to(np.array(values, np.int64) * UNIT, shape)
    if query_scale is not None:
        noisy = noisy + _noise(query_scale, *shape)
    bar = np.full((size, 1), round(threshold * UNIT), np.int64)
    if threshold_scale is not None:
        bar = bar + _noise(threshold_scale, size, 1)
    return noisy >= bar, noisy


def _first_passed(passed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The place of the first query that passed; the number of queries where none did."""
    return np.where(passed.any(axis=1), passed.argmax(axis=1), passed.shape[1]).astype(np.int64)


def _until(passed: NDArray[np.bool_], hits: int) -> NDArray[np.bool_]:
    """The same, with nothing passing after so many that did."""
    return passed & (passed.cumsum(axis=1) <= hits)


def _lead(passed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many more of the second half of the queries pass than of the first."""
    half = passed.shape[1] // 2
    return passed[:, half:].sum(axis=1) - passed[:, :half].sum(axis=1)


def _threshold_without_noise(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """Every query below the threshold costs again. Right: 1 for the threshold's noise, 2/2 for the queries'."""
    bar = Fraction(1) if right else None
    passed, _ = _ask_queries((world,) * 7, 0.5, size, threshold_scale=bar, query_scale=Fraction(2))
    return _first_passed(passed)


def _queries_without_noise(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """The order of two queries shows through one noisy threshold. Right: 1/2 for the threshold's noise, 2/4 for theirs."""
    own = Fraction(4) if right else None
    passed, _ = _ask_queries((1 - world, world), 0.5, size, threshold_scale=Fraction(2), query_scale=own)
    return _until(passed, 1 if right else 2).astype(np.int64) @ np.array([1, 2])


def _no_end(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """Noise for one query that passes, 2 + 2/1, but the run goes on to its last query. Right: it ends."""
    values = (world,) * 10 + (1 - world,) * 10
    passed, _ = _ask_queries(values, 0.5, size, threshold_scale=Fraction(1, 2), query_scale=Fraction(1))
    return _lead(_until(passed, 1 if right else len(values)))


def _noise_for_one(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """Noise for one query that passes, 1/2 + 2/(2/3), but the run ends after three. Right: after one."""
    values = (world,) * 3 + (1 - world,) * 3
    passed, _ = _ask_queries(values, 0.5, size, threshold_scale=Fraction(2), query_scale=Fraction(2, 3))
    return _lead(_until(passed, 1 if right else 3))


def _value_that_passed(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """The noisy value that passed is released: the threshold lies below it, and so do all queries before.

    Right: its place only, for queries that all move the same way, at 3/8 + 1/(8/9).
    """
    passed, noisy = _ask_queries((world,) * 3, 0.0, size, threshold_scale=Fraction(8, 3), query_scale=Fraction(8, 9))
    return _first_passed(passed) if right else np.where(_first_passed(passed) == 2, noisy[:, -1], _MISSED)


def _half_the_query_noise(world: int, size: int, *, right: bool) -> NDArray[np.int64]:
    """Noise for queries that all move the same way, 1 + 1/1, on queries that do not. Right: the last one stays."""
    values = (world,) * 5 + (1 if right else 1 - world,)
    passed, _ = _ask_queries(values, 0.5, size, threshold_scale=Fraction(1), query_scale=Fraction(1))
    return _first_passed(passed)


SPARSE = (
    Wrong("no noise on the threshold", 2.0, _threshold_without_noise),
    Wrong("no noise on the queries", 1.0, _queries_without_noise),
    Wrong("no end after a query that passes", 4.0, _no_end),
    Wrong("noise for one query that passes, three allowed", 3.5, _noise_for_one),
    Wrong("the noisy value that passed is released", 1.5, _value_that_passed),
    Wrong("query noise for monotone queries", 2.0, _half_the_query_noise),
)
"""What each claims is true of its right twin: the same noise used rightly, at sensitivity 1."""

# ---- mutants ---------------------------------------------------------------------------------------------------------------


Sampler: TypeAlias = "Callable[[int, int], NDArray[Any]]"
"""World (0 or 1) and how many → outputs as scores."""

STEP = 1 << 10
"""Grid steps a unit, where a mutant needs noise that is nearly continuous."""


class Mutant(Protocol):
    """A bug, and what would notice it."""

    @property
    def name(self) -> str:
        """A few words."""
        ...

    def caught(self, size: int, alpha: float) -> str | None:
        """Return what refutes the claim, in words, or None if `size` outputs of each world do not."""
        ...


@dataclass(frozen=True, slots=True)
class Overclaim:
    """A mechanism whose ε is above its claim."""

    name: str
    sample: Sampler
    epsilon: float
    delta: float = 0.0

    def caught(self, size: int, alpha: float) -> str | None:
        """By a lower bound of ε."""
        bound = lower_bound(self.sample(0, size), self.sample(1, size), delta=self.delta, alpha=alpha)
        return f"ε ≥ {bound.epsilon:.4g} > {self.epsilon:.4g}" if bound.epsilon > self.epsilon else None


@dataclass(frozen=True, slots=True)
class Porous:
    """A mechanism whose floats tell the worlds apart."""

    name: str
    sample: Sampler
    epsilon: float
    delta: float = 0.0

    def caught(self, size: int, alpha: float) -> str | None:
        """By events of bits that are private as long as the claim is; leaving the grid alone is not enough."""
        found = leaks(
            self.sample(0, size),
            self.sample(1, size),
            values=(0.0, 1.0),
            grid=ReleaseGrid(-40, 1.0),
            claim=self.epsilon,
            alpha=alpha,
            delta=self.delta,
        )
        worst = max(found, key=lambda leak: leak.epsilon, default=None)
        return f"{worst.event}: ε ≥ {worst.epsilon:.4g}" if worst and worst.epsilon > self.epsilon else None


@dataclass(frozen=True, slots=True)
class Misfit:
    """A sampler of another law than it claims."""

    name: str
    sample: Callable[[int], NDArray[Any]]
    cells: LawCells

    def caught(self, size: int, alpha: float) -> str | None:
        """By χ²."""
        p = goodness(self.cells.counts(self.sample(size)), self.cells.probabilities).p
        return f"χ²: p = {p:.1e}" if p < alpha else None


@dataclass(frozen=True, slots=True)
class Changed:
    """An entry of the roster with another mechanism in it: it goes the way that every mechanism goes."""

    name: str
    entry: str
    make: Callable[[str], Any]

    def caught(self, size: int, alpha: float) -> str | None:
        """By any row of the entry, at any ε."""
        entry = replace(next(item for item in ROSTER if item.name == self.entry), make=self.make)
        for asked in reversed(EPSILONS):
            rows, fits = run_trial(entry, asked, size=size, alpha=alpha, alpha_fit=alpha)
            for row in rows:
                if not row.kept:
                    return f"asked for ε = {asked}, its loss says {row.promised:.4g}"
                if not row.holds:
                    return f"ε ≥ {row.bound:.4g} > {row.claim:.4g}"
            for fit in fits:
                if not fit.holds:
                    return f"χ²: p = {fit.p:.1e}"
        return None


class _Halved:
    """Discrete Laplace noise of half the scale that its loss is for."""

    def __init__(self, epsilon: str) -> None:
        right = DiscreteLaplace.calibrate(epsilon=epsilon, sensitivity=1)
        self.loss, self.scale = right.loss, right.scale / 2

    def release_many(self, value: int, size: int) -> NDArray[np.int64]:
        return value + noise(self.scale, size)


class _SharpQuantile(Quantile):
    """Twice the rate: the 2 of the exponent forgotten, as if the scores of a median were monotone."""

    __slots__ = ()

    @property
    def rate(self) -> Fraction:
        return 2 * (self.epsilon / (2 * self.sensitivity))


class _OfOneUnit(Quantile):
    """A unit that is replaced is taken away and put back: twice what one that comes moves; charged once."""

    __slots__ = ()

    @property
    def sensitivity(self) -> int:
        return max(self.q.numerator, self.q.denominator - self.q.numerator)


def noise(scale: Fraction | int, size: int) -> NDArray[np.int64]:
    """Return exact discrete Laplace noise."""
    return laplace(Fraction(scale)).draw(size, entropy())


def _floats() -> np.random.Generator:
    """NumPy's generator, which only a mutant may use."""
    return np.random.default_rng(entropy().bits(128))


def _numpy_laplace(world: int, size: int) -> FloatArray:
    return world + _floats().laplace(0.0, 1.0, size)


def _four_uniforms(world: int, size: int) -> FloatArray:
    one, two, three, four = _floats().random((4, size))
    return world + np.log(1 - one) * np.cos(np.pi * two) + np.log(1 - three) * np.cos(np.pi * four)


def _four_normals(world: int, size: int) -> FloatArray:
    return world + _floats().normal(size=(4, size)).sum(axis=0) / 2


def _half_scale(world: int, size: int) -> NDArray[np.int64]:
    return world * STEP + noise(STEP // 2, size)


def _rounded_noise(world: int, size: int) -> FloatArray:
    """Real values 0 and 1/2, only the noise rounded to whole numbers: what is behind the point stays."""
    return world / 2 + noise(1, size)


def _halves_to_even(world: int, size: int) -> NDArray[np.int64]:
    """0.5 and 1.5 are 1 apart; rounding halves to even makes them 0 and 2."""
    return np.int64(np.round(0.5 + world)) + noise(1, size)


def _one_for_two_cells(world: int, size: int) -> NDArray[np.int64]:
    """Replacing a person moves two cells of a histogram; noise for one. Score: the difference of the cells."""
    return (5 - world) * STEP + noise(STEP, size) - (5 + world) * STEP - noise(STEP, size)


def _max_and_value(world: int, size: int) -> NDArray[np.int64]:
    """The noisy maximum itself instead of its place: every count moved, so every noise counts."""
    return np.max(world * STEP + noise(STEP, 3 * size).reshape(3, size), axis=0)


def _max_with_half_the_noise(world: int, size: int) -> NDArray[np.int64]:
    """Scores that move in opposite directions, noise for scores that move together."""
    gap = noise(STEP, size) + (4 - 2 * world) * STEP - noise(STEP, size)
    return (gap > 0).astype(np.int64)


def _binary_gamma_for_four(world: int, size: int) -> NDArray[np.int64]:
    """The truth with probability e^ε/(e^ε + 1), although three others share the rest."""
    answer = below(3, size, entropy())
    answer += answer >= world
    truth = bernoulli(Fraction(math.e / (1 + math.e)), size, entropy())
    return np.where(truth, world, answer)


def _last_bit_left_out(world: int, size: int) -> NDArray[np.int64]:
    """Three bits, of which a loop flips the first two."""
    flip = bernoulli(Fraction(1 / (1 + math.e)), 2 * size, entropy()).reshape(2, size)
    return flip[0] + 2 * flip[1] + np.int64(4 * world)


def _permute_and_flip(world: int, size: int) -> NDArray[np.int64]:
    """Two candidates at ε = 1, equal or two sensitivities apart; right as it is, but not of bounded range."""
    heads = bernoulli_exp(np.full(size, 2 * world, np.int64), Fraction(1, 2), entropy())
    return (heads & bernoulli(Fraction(1, 2), size, entropy())).astype(np.int64)


_THRESHOLD = 5
_TAIL = math.exp(-_THRESHOLD) / (1 + math.exp(-1))
"""P[1 + noise > threshold] at scale 1: what a key held by one unit is charged."""


def _threshold_on_rows(world: int, size: int) -> NDArray[np.int64]:
    """A key held by one unit with fifty rows, which are counted instead of units; absent in the other world."""
    return (50 + noise(1, size) > _THRESHOLD).astype(np.int64) * world


def _at_least_for_above(world: int, size: int) -> NDArray[np.int64]:
    """A key held by one unit is shown at the threshold too, which nobody was charged for."""
    return (1 + noise(1, size) >= _THRESHOLD).astype(np.int64) * world


def _shared_stream(world: int, size: int) -> NDArray[np.int64]:
    """Two processes that forked without a new key answer two questions with the same noise. Score: the difference."""
    seed = entropy().bits(200)
    one, other = (laplace(Fraction(1)).draw(size, Seeded(seed)) for _ in range(2))
    return one - (world + other)


def _wide_by_a_twentieth(size: int) -> NDArray[np.int64]:
    return noise(Fraction(21, 2), size)


def mutants() -> tuple[Mutant, ...]:
    """Return every seeded bug."""
    bounded = BoundedRange(epsilon=1).epsilon("0.1")
    return (
        Porous("NumPy's Laplace noise, in floats", _numpy_laplace, 1.0),
        Porous("Laplace noise from four uniforms, in floats", _four_uniforms, 1.0),
        Porous("Gaussian noise from four normals, in floats", _four_normals, 4.4, 1e-5),
        Overclaim("half the scale", _half_scale, 1.0),
        Overclaim("only the noise rounded", _rounded_noise, 1.0),
        Overclaim("halves rounded to even", _halves_to_even, 1.0),
        Overclaim("replace-one charged as add-or-remove-one", _one_for_two_cells, 1.0),
        Overclaim("noisy max releasing its value", _max_and_value, 1.0),
        Overclaim("noisy max of any scores with the noise of monotone ones", _max_with_half_the_noise, 1.0),
        *(Overclaim(f"sparse vector: {item.name}", item.sample, item.epsilon) for item in SPARSE),
        Overclaim("randomized response of four answers with γ of two", _binary_gamma_for_four, 1.0),
        Overclaim("last bit of a vector left out", _last_bit_left_out, 2.0),
        Overclaim("permute-and-flip accounted as bounded range", _permute_and_flip, bounded, 0.1),
        Overclaim("threshold on rows instead of units", _threshold_on_rows, 1.0, _TAIL),
        Overclaim("at least the threshold where above was meant", _at_least_for_above, 1.0, _TAIL),
        Overclaim("fork without a new key", _shared_stream, 2.0),
        Changed("entry: half the scale", "DiscreteLaplace", _Halved),
        Changed("entry: the ε asked for ignored", "DiscreteLaplace", lambda _: DiscreteLaplace(scale="0.02", sensitivity=1)),
        Changed(
            "entry: exponential mechanism of any scores at the rate of monotone ones",
            "Exponential",
            lambda e: Exponential.calibrate(epsilon=e, sensitivity=1, monotone=True),
        ),
        Changed(
            "entry: Quantile at twice the rate",
            "Quantile",
            lambda e: _SharpQuantile(q="0.5", lower=0, upper=1, epsilon=e, adjacency="add_or_remove_one", cells=65),
        ),
        Changed(
            "entry: Quantile of replaced units with the sensitivity of one that comes",
            "Quantile, replace-one",
            lambda e: _OfOneUnit(q="0.5", lower=0, upper=1, epsilon=e, adjacency="replace_one", cells=65),
        ),
        Changed("entry: a report whose last bit is left out", "Local, optimal unary", leaking(LastBitLeftOut)),
        Changed("entry: a response of twenty values with the γ of two", "Local, direct", leaking(TooTrue)),
        Misfit("scale wide by 5 %", _wide_by_a_twentieth, laplace_cells(Fraction(10))),
    )

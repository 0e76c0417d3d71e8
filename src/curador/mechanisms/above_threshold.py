"""The sparse vector technique: which of many answers pass a threshold, paying for those that do."""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np

from curador.errors import BudgetExceeded, require
from curador.mechanisms.grid import decimal_text, power_of_two, steps_of, to_steps
from curador.mechanisms.noisy_max import in_units
from curador.mechanisms.scores import (
    WIDEST,
    Steps,
    are_near,
    calibrate_epsilon,
    failure_of,
    monotone_text,
    noise_exponent,
    offsets_of,
    score_steps,
    split_size,
    stack_parts,
)
from curador.mechanisms.seam import perform
from curador.mechanisms.tails import first_whole
from curador.numerics.exact import Number, open_probability, positive, rational, read_flag, whole
from curador.numerics.rounding import FloatArray, Interval, float_down, float_up
from curador.privacy.loss import Loss
from curador.privacy.losses import DiscreteLaplaceLoss, Pure
from curador.randomness.entropy import BoolArray, Entropy, IntArray
from curador.randomness.noise import laplace

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_SHARES = 1 << 20
_HUGE = 700.0
_NARROW = 1e-300  # noise of such a scale is 0: none of the bounds can tell


@dataclass(frozen=True, slots=True, eq=False)
class Crossings:
    """Answers with what was asked for besides: gaps and values are NaN where the answer is not above.

    From `release`, above is boolean and ends at the stop; from `release_many` it is 1, 0, or −1 after the stop, by rows.
    """

    above: BoolArray | NDArray[np.int8]
    gaps: FloatArray | None
    values: FloatArray | None


@dataclass(frozen=True, slots=True)
class Crossing:
    """One answer of a session; true where it is above."""

    above: bool
    gap: float | None
    value: float | None

    def __bool__(self) -> bool:
        return self.above


class Answers(NamedTuple):
    """Answers in grid steps, as they leave the seam: 1 above, 0 below, −1 not asked since the hits were used up.

    Gaps and values are 0 where the answer is not above: how far a no was below the noisy threshold is not private.
    """

    above: NDArray[np.int8]
    gaps: IntArray | None
    values: Steps | None


@dataclass(frozen=True, slots=True, init=False)
class AboveThreshold:
    """For each answer, whether it passes a public threshold, both noisy; stops after `hits` that do.

    ε = ε₁ + ε₂. One draw ρ of discrete Laplace noise of scale sensitivity/ε₁ for the threshold, kept for the whole sequence;
    fresh noise ν of scale 2 · hits · sensitivity/ε₂ for each answer (hits · sensitivity/ε₂ if monotone); yes iff
    answer + ν ≥ threshold + ρ. Noes are free. `split` is ε₁/ε, by default 1/(1 + (2 hits)^(2/3)), or 1/(1 + hits^(2/3)).

    Claim   ε-private for the whole sequence, answers chosen adaptively. Let q, q' be the answers of neighbours, on the grid,
            Δ the sensitivity in steps. Keep the noise of every no. Raise ρ by Δ: a no stays a no, as
            q' + ν ≤ q + Δ + ν < T + ρ + Δ. Raise ν of each yes by q − q' + Δ, in [0, 2Δ]: it stays a yes, by the same gap.
            One shift by Δ and at most `hits` by 2Δ: e^(ε₁ + ε₂), since P[N = n] ≤ e^(c/scale) P[N = n + c] on the integers.
            Monotone: answers that rise, the same with q − q' + Δ in [0, Δ]; answers that fall, ρ kept and ν raised by
            q − q', in [0, Δ].
            gap=True: how far each yes was above the noisy threshold is free, since the shifts above keep it.
            A noisy answer itself is NOT free: value_epsilon pays for fresh noise of scale hits · sensitivity/value_epsilon.
    Needs   No answer moves by more than `sensitivity` between neighbours; monotone=True: and all answers of a
            sequence move the same way.
    Rounds  Answers and threshold to a power-of-two grid, the sensitivity in grid steps up; the scales follow it, ε is exact.
    Source  [DR14, Alg. 2]; [LSL17] for the proof, the split, and variants that are not private; [DWZK19] for the gap.
    """

    epsilon: Fraction
    sensitivity: Fraction
    threshold: Fraction
    hits: int
    monotone: bool
    gap: bool
    value_epsilon: Fraction | None
    split: Fraction

    def __init__(
        self,
        *,
        epsilon: Number,
        sensitivity: Number,
        threshold: Number,
        hits: Number = 1,
        monotone: bool = False,
        gap: bool = False,
        value_epsilon: Number | None = None,
        split: Number | None = None,
    ) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, "sensitivity"))
        object.__setattr__(self, "threshold", rational(threshold, "threshold"))
        object.__setattr__(self, "hits", whole(hits, "hits"))
        object.__setattr__(self, "monotone", read_flag(monotone, "monotone"))
        object.__setattr__(self, "gap", read_flag(gap, "gap"))
        priced = None if value_epsilon is None else positive(value_epsilon, "value_epsilon")
        object.__setattr__(self, "value_epsilon", priced)
        share = _best_split(self._shift * self.hits) if split is None else open_probability(split, "split")
        object.__setattr__(self, "split", share)
        widest = max(self.threshold_scale, self.query_scale)
        require(widest <= WIDEST, "epsilon", "larger for so many hits", epsilon, "no answer can be heard above such noise")
        require(self.value_scale <= WIDEST, "value_epsilon", "larger for so many hits", value_epsilon)

    def __repr__(self) -> str:
        more = f", hits={self.hits}" if self.hits > 1 else ""
        more += monotone_text(self.monotone) + (", gap=True" if self.gap else "")
        more += "" if self.value_epsilon is None else f", value_epsilon={decimal_text(self.value_epsilon)}"
        numbers = f"epsilon={decimal_text(self.epsilon)}, sensitivity={decimal_text(self.sensitivity)}"
        return f"AboveThreshold({numbers}, threshold={decimal_text(self.threshold)}{more})"

    @property
    def _shift(self) -> int:
        """By how many sensitivities the noise of a yes may have to move."""
        return 1 if self.monotone else 2

    @property
    def _exponent(self) -> int:
        for_threshold = self.sensitivity / (self.epsilon * self.split)
        for_queries = self._shift * self.hits * self.sensitivity / (self.epsilon * (1 - self.split))
        return noise_exponent(max(for_threshold, for_queries), self.sensitivity)

    @property
    def grid(self) -> Fraction:
        """The step of the grid that answers, threshold and noise live on."""
        return power_of_two(self._exponent)

    @property
    def steps(self) -> int:
        """The sensitivity in grid steps, rounded up."""
        return steps_of(self.sensitivity**2, self._exponent)

    @property
    def threshold_scale(self) -> Fraction:
        """The scale of the threshold's noise in grid steps."""
        return self.steps / (self.epsilon * self.split)

    @property
    def query_scale(self) -> Fraction:
        """The scale of an answer's noise in grid steps; with the threshold's it costs exactly ε."""
        return self._shift * self.hits * self.steps / (self.epsilon - self.epsilon * self.split)

    @property
    def value_scale(self) -> Fraction:
        """The scale of the fresh noise on the value of a yes, in grid steps; 0 where no value is released."""
        return Fraction(0) if self.value_epsilon is None else self.hits * self.steps / self.value_epsilon

    @property
    def loss(self) -> Loss:
        """What a whole sequence costs, values included, whether or not it uses up its hits."""
        sequence = Pure(epsilon=self.epsilon)
        if self.value_epsilon is None:
            return sequence
        return sequence + self.hits * DiscreteLaplaceLoss(scale=self.value_scale, sensitivity=self.steps)

    @property
    def plain(self) -> bool:
        """Whether answers are yes or no and nothing else."""
        return not self.gap and self.value_epsilon is None

    # ---- releases ---------------------------------------------------------------------------------------------------

    def start(self) -> ThresholdSession:
        """Begin a sequence whose questions may depend on the answers so far. It costs `loss`, once."""
        return ThresholdSession(self)

    def release(self, values: ArrayLike) -> BoolArray | Crossings:
        """Return whether each value passes, up to and including the last hit; with gap or values, as Crossings."""
        answers: Answers = perform(self, self._on_grid(values))
        asked = answers.above >= 0
        shown = Crossings(
            answers.above[asked] == 1,
            *(None if one is None else one[asked] for one in self.real(answers)),
        )
        return shown.above == 1 if self.plain else shown

    def release_many(self, values: ArrayLike, size: int) -> NDArray[np.int8] | Crossings:
        """Return `size` independent sequences by rows: 1 passes, 0 does not, −1 after the stop. Each costs `loss`."""
        answers: Answers = perform(self, self._on_grid(values), whole(size, "size"))
        return answers.above if self.plain else Crossings(answers.above, *self.real(answers))

    def real(self, answers: Answers) -> tuple[FloatArray | None, FloatArray | None]:
        """Return gaps and values in the units of the answers, NaN where there is no hit."""
        gaps, values = (in_units(one, self._exponent) for one in (answers.gaps, answers.values))
        for shown in (gaps, values):
            if shown is not None:
                shown[answers.above != 1] = np.nan
        return gaps, values

    def on_grid(self, value: object) -> int:
        """Return one answer in grid steps."""
        return to_steps(value, self._exponent)

    def _on_grid(self, values: ArrayLike) -> Steps:
        return score_steps(values, self._exponent, "values")

    # ---- the seam ---------------------------------------------------------------------------------------------------

    def draw(self, value: Steps, source: Entropy, size: int | None = None) -> Answers:
        """Return the answers in grid steps for integer values; `size` independent rows if given."""
        parts = [self._some(value, rows, source) for rows in split_size(len(value), 1 if size is None else size)]
        if size is None:
            above, gaps, values = parts[0]
            return Answers(above[0], None if gaps is None else gaps[0], None if values is None else values[0])
        return Answers(
            np.concatenate([part.above for part in parts]),
            stack_parts([part.gaps for part in parts]),
            stack_parts([part.values for part in parts]),
        )

    def _some(self, value: Steps, rows: int, source: Entropy) -> Answers:
        level = laplace(self.threshold_scale).several(rows, source)
        return self.judged(value, level[:, None], source)

    def judged(self, value: Steps, level: IntArray, source: Entropy) -> Answers:
        """Return the answers by rows, given the threshold's noise of each row."""
        shape = (len(level), len(value))
        noise = laplace(self.query_scale).several(shape[0] * shape[1], source).reshape(shape)
        ahead = offsets_of(value, to_steps(self.threshold, self._exponent)) + noise - level
        passes = ahead >= 0
        before = np.cumsum(passes, axis=1) - passes
        above = np.where(before >= self.hits, -1, passes).astype(np.int8)
        hit = above == 1
        gaps = np.where(hit, ahead, 0) if self.gap else None
        if self.value_epsilon is None:
            return Answers(above, gaps, None)
        values = np.zeros(shape, value.dtype)
        values[hit] = np.broadcast_to(value, shape)[hit] + laplace(self.value_scale).several(int(hit.sum()), source)
        return Answers(above, gaps, values)

    def within(self, one: Steps, other: Steps) -> bool:
        """Whether no answer moves by more than the sensitivity (all the same way, if monotone)."""
        return are_near(one, other, self.steps, monotone=self.monotone)

    # ---- error and calibration --------------------------------------------------------------------------------------

    def interval(self, confidence: Number = "0.95", *, queries: Number) -> Interval:
        """Return [0, t]: with at least this probability no answer is wrong by more than t, over so many queries.

        Wrong by more than t: a yes more than t below the threshold, or a no more than t above it.

        Claim   Each query has one wrong direction, in which ν − ρ or ρ − ν is T steps or more. Given |ρ| = x ≤ a ≤ T that has
                probability at most n P[ν ≥ T − x], and P[ν ≥ y] ≤ e^(−(y − 1/2)/s₂)/2 for y ≥ 0; |ρ| > a has at most
                e^(−(a + 1/2)/s₁). So P[wrong] ≤ e^(−(a + 1/2)/s₁) + (n/2) e^(−(T − 1/2)/s₂) E[e^(|ρ|/s₂); |ρ| ≤ a], for any
                a, with s₁, s₂ the scales and P[|ρ| = x] ≤ e^(−x/s₁)/s₁ (half of that at 0). Rounding an answer and the
                threshold adds a step.
        Needs   At most `hits` yeses, after which nothing is answered.
        Rounds  Up.
        """
        beta, n = float_down(failure_of(confidence)), whole(queries, "queries")
        first, second = (max(float(scale), _NARROW) for scale in (self.threshold_scale, self.query_scale))
        steps = first_whole(lambda reach: _wrong(reach, first, second, n) <= beta, round(first + second), least=1)
        return Interval(0.0, float_up(steps * self.grid))

    @classmethod
    def calibrate(
        cls,
        *,
        sensitivity: Number,
        threshold: Number,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        count: Number = 1,
        hits: Number = 1,
        monotone: bool = False,
        gap: bool = False,
    ) -> Self:
        """Return the sharpest mechanism that releases no value within the privacy goal after `count` sequences."""
        one = calibrate_epsilon(lambda e: Pure(epsilon=e), epsilon=epsilon, delta=delta, rho=rho, count=count)
        return cls(epsilon=one, sensitivity=sensitivity, threshold=threshold, hits=hits, monotone=monotone, gap=gap)


@dataclass(frozen=True, slots=True, eq=False)
class AskedValue:
    """A value of a session in grid steps, as it enters the seam, and those asked before it where they matter.

    Whether monotone answers all move the same way can only be seen by comparing all questions of two sessions.
    """

    value: int
    asked: list[int]
    place: int

    @property
    def earlier(self) -> list[int]:
        """The values before this one; none unless monotone."""
        return self.asked[: self.place]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # the list only grows, and only the part before this place is read


@dataclass(frozen=True, slots=True)
class _Question:
    """One answer of a session, at the seam. The threshold's noise is drawn with the first and kept."""

    mechanism: AboveThreshold
    secret: list[int] = field(default_factory=list, compare=False, repr=False)

    def draw(self, value: AskedValue, source: Entropy, size: int | None = None) -> Answers:
        require(size is None, "size", "None in a session", size)
        if not self.secret:
            self.secret.append(int(laplace(self.mechanism.threshold_scale).several(1, source)[0]))
        level = np.array([self.secret], np.int64)
        steps = np.array([value.value], np.int64 if abs(value.value) <= 1 << 61 else object)
        above, gaps, values = self.mechanism.judged(steps, level, source)
        return Answers(above[0], None if gaps is None else gaps[0], None if values is None else values[0])

    def within(self, one: AskedValue, other: AskedValue) -> bool:
        """Whether the answer moves by no more than the sensitivity (and not against an earlier one, if monotone)."""
        move = one.value - other.value
        against = (a != b and (a > b) != (move > 0) for a, b in zip(one.earlier, other.earlier, strict=False))
        return abs(move) <= self.mechanism.steps and not (move and any(against))


class ThresholdSession:
    """A sequence of questions to one AboveThreshold, adaptive; made by `start`. Ends after its hits.

    A copy would have the same noisy threshold and hits of its own, which no proof covers: it is refused, and so is another
    process.
    """

    __slots__ = ("_asked", "_left", "_lock", "_process", "_question")

    def __init__(self, mechanism: AboveThreshold) -> None:
        self._question = _Question(mechanism)
        self._asked: list[int] = []
        self._left = mechanism.hits
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def hits_left(self) -> int:
        """How many more answers may be yes."""
        return self._left

    def ask(self, value: object) -> bool | Crossing:
        """Return whether the value passes the noisy threshold; a Crossing, true if it does, with gap or values."""
        mechanism = self._question.mechanism
        with self._lock:  # two threads must not both take the last hit
            if os.getpid() != self._process:
                raise BudgetExceeded("A session answers in the process that started it; start another one here.")
            if self._left == 0:
                hits = mechanism.hits
                raise BudgetExceeded(
                    f"The session has given its {hits} yes{'es' * (hits > 1)}; start another one, at its cost."
                )
            steps = mechanism.on_grid(value)
            answers: Answers = perform(self._question, AskedValue(steps, self._asked, len(self._asked)))
            above = int(answers.above[0]) == 1
            self._left -= above
            if mechanism.monotone:
                self._asked.append(steps)
        if mechanism.plain:
            return above
        gaps, values = mechanism.real(answers)
        return Crossing(above, _show_where_above(gaps, above=above), _show_where_above(values, above=above))

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a session cannot be copied: its copy would answer more often than was paid for")


def _show_where_above(real: FloatArray | None, *, above: bool) -> float | None:
    return float(real[0]) if real is not None and above else None


def _best_split(moved: int) -> Fraction:
    """1/(1 + moved^(2/3)) to a 2⁻²⁰-th, kept inside (0, 1): any split is private, this one has the least noise."""
    share = round(_SHARES / (1 + moved ** (2 / 3)))
    return Fraction(max(share, 1), _SHARES)


def _wrong(reach: int, first: float, second: float, queries: int) -> float:
    """The bound of `interval` on P[an answer is wrong by `reach` steps or more], the best of 65 places of a. Rounds: up.

    Σ over 1 ≤ x ≤ a of e^(−κx), κ = 1/s₁ − 1/s₂, is at most (1 − e^(−κa))/κ for κ > 0, and a e^(−κa) for κ ≤ 0.
    """
    weight, kappa = math.log(queries) - math.log(2 * first), 1 / first - 1 / second
    fixed = _exp_up(weight, -(2 * reach - 1) / (2 * second))
    least = math.inf
    for place in range(65):
        a = reach * place // 64
        if kappa > 0:
            inside = fixed * (0.5 - math.expm1(-kappa * a) / kappa)
        else:
            # one exponent: e^(−κa) alone overflows where the product with e^(−(T − 1/2)/s₂) is small
            inside = 0.5 * fixed + (a and a * _exp_up(weight, -a / first, (2 * (a - reach) + 1) / (2 * second)))
        least = min(least, _exp_up(-(a + 0.5) / first) + inside)
    return least * (1 + 1e-12)


def _exp_up(*exponents: float) -> float:
    """e to the sum. Rounds: up, by what the exponents and their sum may have lost; to infinity where it is huge."""
    total = math.fsum(exponents) + 1e-15 * sum(map(abs, exponents))
    return math.exp(total) if total < _HUGE else math.inf

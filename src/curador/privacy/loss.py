"""What a mechanism did to privacy, as a value that adds, multiplies and answers questions.

A loss is data: frozen, serialisable, its meaning never changes. Everything it answers is computed by the readings
(`account`, `renyi`, `tradeoff`), which ask the rules (`rules`) that each kind of record states beside its class
(`kinds`); a record without a rule is refused by name. All of these import this module, so it knows none of them: it has
questions, and whoever can answer one says so. `losses`, where everybody gets records from, loads them all.

Where arithmetic leaves the floats a reading falls silent, and a question that no reading answers is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np

from curador.errors import CuradorError, Failed, InvalidParameter, NumericalFailure
from curador.numerics.exact import Number, whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from curador.numerics.rounding import FloatArray, Interval
    from curador.privacy.adjacency import Adjacency

Scheme = Literal["poisson", "without_replacement"]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Answer = TypeVar("Answer", bound="Callable[..., Any]")
Kinds: TypeAlias = "dict[type[Loss], list[tuple[Loss, int]]]"

OUT_OF_RANGE = "parameters must be moderate for a certified answer; got some that leave the range of floats."


def certified(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run a question about a loss with every overflow quiet and every arithmetic error told in one sentence.

    Claim   What overflows inside is +∞ or NaN, and every enclosure turns both into the trivial bound (0, 1 or +∞).
    """

    @functools.wraps(function)
    def guarded(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            with np.errstate(all="ignore"):
                return function(*arguments, **named)
        except CuradorError:
            raise
        except (ArithmeticError, ValueError):
            raise NumericalFailure(OUT_OF_RANGE) from None

    return guarded


def attempt(reading: Callable[[], Result]) -> Result | None:
    """Return what one of several readings says; None where it fails, so that the others are heard.

    Claim   Only failures of arithmetic are silenced. A refusal (no rule, a bad parameter) is an answer and is passed on.
    """
    try:
        return reading()
    except NumericalFailure:
        return None
    except CuradorError:
        raise
    except (ArithmeticError, ValueError):
        return None


class LossQuestion(Generic[Result]):
    """Something that a loss may be asked, and the function that answers, once it is known."""

    __slots__ = ("answer", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.answer: Callable[..., Result] | None = None
        QUESTIONS.append(self)

    def answered_by(self, answer: Answer) -> Answer:
        """Let the function below answer from now on."""
        self.answer = answer
        return answer

    def __call__(self, loss: Loss, *arguments: object, **named: object) -> Result:
        """Return the answer about a loss."""
        if self.answer is None:
            raise Failed(f"nobody answers {self.name}: curador.privacy.losses was not loaded")
        return self.answer(loss, *arguments, **named)


QUESTIONS: list[LossQuestion[Any]] = []
"""All of the questions below."""

GROUP: LossQuestion[Loss] = LossQuestion("group")
SUBSAMPLE: LossQuestion[Loss] = LossQuestion("subsample")
EPSILON: LossQuestion[float] = LossQuestion("epsilon")
DELTA: LossQuestion[float] = LossQuestion("delta")
EPSILON_INTERVAL: LossQuestion[Interval] = LossQuestion("epsilon_interval")
DELTA_INTERVAL: LossQuestion[Interval] = LossQuestion("delta_interval")
READINGS: LossQuestion[dict[str, float]] = LossQuestion("readings")
RENYI: LossQuestion[Any] = LossQuestion("renyi")
RHO: LossQuestion[Fraction | float] = LossQuestion("rho")
CONCENTRATED: LossQuestion[tuple[Fraction, Fraction] | None] = LossQuestion("concentrated")
PURE_EPSILON: LossQuestion[Fraction | None] = LossQuestion("pure_epsilon")
TRADEOFF: LossQuestion[Any] = LossQuestion("tradeoff")
TO_RECORD: LossQuestion[dict[str, object]] = LossQuestion("to_record")


class Loss:
    """Base of every loss record: the operators, and the questions one may ask."""

    __slots__ = ()

    @property
    def adjacency(self) -> Adjacency | None:
        """The neighbours this loss is about; None: those that the declared sensitivity was computed for."""
        return None

    # ---- arithmetic -------------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> Loss:
        """Both happened, the second possibly chosen after seeing the first."""
        if type(other) is int and other == 0:  # so that sum() works
            return self
        if not isinstance(other, Loss):
            return NotImplemented
        return Composed(((self, 1), (other, 1)))

    __radd__ = __add__

    def __mul__(self, count: object) -> Loss:
        """The same, `count` times."""
        if isinstance(count, Loss):
            return NotImplemented
        times = whole(count, "count", least=0)
        return self if times == 1 else Composed(((self, times),))

    __rmul__ = __mul__

    @certified
    def group(self, size: Number) -> Loss:
        """The loss towards a group of `size` people instead of one."""
        return GROUP(self, whole(size, "size"))

    @certified
    def subsample(self, *, rate: Number, scheme: Scheme = "poisson", adjacency: Adjacency | str | None = None) -> Loss:
        """The loss when the mechanism saw a random subsample that nobody else saw.

        "poisson" keeps each record with probability `rate` (add-or-remove-one unless told otherwise);
        "without_replacement" keeps a share `rate` of a public number of records (replace-one).
        """
        return SUBSAMPLE(self, rate=rate, scheme=scheme, adjacency=adjacency)

    # ---- questions --------------------------------------------------------------------------------------------------

    @certified
    def epsilon(self, delta: Number) -> float:
        """The smallest proved ε with (ε, δ)-differential privacy. Rounds: up."""
        return EPSILON(self, delta)

    @certified
    def delta(self, epsilon: Number) -> float:
        """The smallest proved δ with (ε, δ)-differential privacy. Rounds: up."""
        return DELTA(self, epsilon)

    @certified
    def epsilon_interval(self, delta: Number, *, verify: bool = False) -> Interval:
        """Certified bounds of the least ε that these records allow one to claim at δ."""
        return EPSILON_INTERVAL(self, delta, verify=verify)

    @certified
    def delta_interval(self, epsilon: Number, *, verify: bool = False) -> Interval:
        """Certified bounds of the least δ that these records allow one to claim at ε."""
        return DELTA_INTERVAL(self, epsilon, verify=verify)

    @certified
    def readings(self, delta: Number) -> dict[str, float]:
        """Every proved ε at δ, by the reading that proves it."""
        return READINGS(self, delta)

    @overload
    def renyi(self, alpha: Number) -> float: ...
    @overload
    def renyi(self, alpha: FloatArray) -> FloatArray: ...
    @certified
    def renyi(self, alpha: Number | FloatArray) -> float | FloatArray:
        """An upper bound of the Rényi divergence of order α in [1, ∞], both directions."""
        return RENYI(self, alpha)

    @property
    @certified
    def rho(self) -> Fraction | float:
        """The least ρ such that this is ρ-zCDP, as an exact rational rounded up; +∞ if there is none."""
        return RHO(self)

    @property
    @certified
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """(ρ, δ) such that this is δ-approximately ρ-zCDP; None if no such bound is known."""
        return CONCENTRATED(self)

    @property
    @certified
    def pure_epsilon(self) -> Fraction | None:
        """The exact ε of pure differential privacy; None if there is none."""
        return PURE_EPSILON(self)

    @overload
    def tradeoff(self, fpr: Number) -> float: ...
    @overload
    def tradeoff(self, fpr: FloatArray) -> FloatArray: ...
    @certified
    def tradeoff(self, fpr: Number | FloatArray) -> float | FloatArray:
        """A lower bound of any adversary's false negative rate at the given false positive rate."""
        return TRADEOFF(self, fpr)

    def to_record(self) -> dict[str, object]:
        """A versioned record of plain values; `loss_from_record` reads it back."""
        return TO_RECORD(self)


class Composed(Loss):
    """Several losses together. Addition is O(1); the parts are merged when somebody asks."""

    __slots__ = ("_kinds", "_parts", "tree")

    def __init__(self, tree: Iterable[tuple[Loss, int]]) -> None:
        self.tree = tuple(tree)
        self._parts: tuple[tuple[Loss, int], ...] | None = None
        self._kinds: Kinds | None = None

    @property
    def parts(self) -> tuple[tuple[Loss, int], ...]:
        """Distinct records with their counts. The only place where counts are multiplied."""
        if self._parts is None:
            self._parts = _merge_parts(self)
        return self._parts

    @property
    def kinds(self) -> Kinds:
        """The parts by the type of their records."""
        if self._kinds is None:
            self._kinds = _sorted_out(self.parts)
        return self._kinds

    @property
    def adjacency(self) -> Adjacency | None:
        """The one adjacency of all typed parts."""
        return common_adjacency(record for record, _ in self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composed) and dict(self.parts) == dict(other.parts)

    def __hash__(self) -> int:
        return hash(frozenset(self.parts))

    def __repr__(self) -> str:
        return " + ".join(f"{count} × {record!r}" if count != 1 else repr(record) for record, count in self.parts) or "0"


def _merge_parts(loss: Composed) -> tuple[tuple[Loss, int], ...]:
    places: dict[Loss, int] = {}  # hashing a record is dear: once each
    counts: list[int] = []
    stack = [(iter(loss.tree), 1)]
    while stack:
        branch, factor = stack[-1]
        for record, times in branch:
            count = times * factor
            if isinstance(record, Composed):
                stack.append((iter(record.tree), count))
                break
            if count:
                place = places.setdefault(record, len(counts))
                if place == len(counts):
                    counts.append(count)
                else:
                    counts[place] += count
        else:
            stack.pop()
    common_adjacency(places)
    return tuple(zip(places, counts, strict=True))


def parts_of(loss: Loss) -> tuple[tuple[Loss, int], ...]:
    """The distinct records of any loss with their counts."""
    return loss.parts if isinstance(loss, Composed) else ((loss, 1),)


def _sorted_out(parts: tuple[tuple[Loss, int], ...]) -> Kinds:
    kinds: Kinds = {}
    for part in parts:
        kind = type(part[0])
        if kind in kinds:
            kinds[kind].append(part)
        else:
            kinds[kind] = [part]
    return kinds


def kinds_of(loss: Loss) -> Kinds:
    """The same by the type of their records: what is so for all of a kind is asked once."""
    return loss.kinds if isinstance(loss, Composed) else {type(loss): [(loss, 1)]}


def compose(losses: Iterable[object]) -> Loss:
    """All of the losses together, in one step. Source: adaptive composition of dominating pairs, [ZDW22]."""
    tree: list[tuple[Loss, int]] = []
    for loss in losses:
        if not isinstance(loss, Loss):
            raise InvalidParameter.must_be("losses", "losses", loss)
        tree.append((loss, 1))
    return Composed(tree)


def common_adjacency(records: Iterable[Loss]) -> Adjacency | None:
    """The adjacency of all typed records; two different ones are refused."""
    found: Adjacency | None = None
    for record in records:
        own = record.adjacency
        if own is None or own is found:
            continue
        if found is not None:
            raise InvalidParameter(
                subject="losses that are added",
                rule="must be of one adjacency",
                got=f"{found} and {own}",
                hint="an add_or_remove_one loss becomes one for replace_one by .group(2).",
            )
        found = own
    return found

"""ε and δ of any loss: every reading that has a proof, and the least of them.

| reading   | speaks of                                       | how                                                          |
|-----------|-------------------------------------------------|--------------------------------------------------------------|
| numerical | every record with a law (all but Concentrated,  | certified: closed form for Gaussians, else the tilted sum    |
|           | and vectors on very coarse grids)               |                                                              |
| renyi     | every record                                    | Chernoff on the Rényi curve, orders minimised continuously   |
| basic     | pure and approximate losses                     | Σ ε, Σ δ                                                     |

Lower ends come from mechanisms that the records describe, so they bound every reading from below.
A reading whose arithmetic fails is silent: +∞ above, 0 below; the others answer. Only if none can is the question refused.
These readings hold for losses fixed in advance or composed adaptively with fixed parameters; they never decide whether a
further question fits a budget (that is `filters`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from curador.errors import NumericalFailure
from curador.numerics.exact import Number, at_least_zero, exact_sum, probability
from curador.numerics.guard import OUT_OF_RANGE, attempt, certified
from curador.numerics.interval import Interval
from curador.numerics.rounding import float_down, float_up, up
from curador.numerics.tilted.enclosure import ALL_PATHS, Enclosure, Options, Path
from curador.privacy.laws.gaussian import GaussianLaw
from curador.privacy.laws.resolve import Direction, one_sided, sides
from curador.privacy.laws.side import Side
from curador.privacy.loss import Loss, parts_of
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    GaussianLoss,
    KeySelection,
    Shuffled,
)
from curador.privacy.shuffle import delta_bounds, epsilon_bounds, stronger
from curador.privacy.zcdp import Amounts, concentrated

_NEVER_BASIC = (GaussianLoss, DiscreteGaussianLoss, DiscreteGaussianVectorLoss, Concentrated, KeySelection)

MOST_DIRECT = 10**7
"""Reports up to which one shuffle is summed directly; from there on its cells are as narrow, and sooner done."""

MANY = 100
"""Reports from which on one shuffle's own sum is asked alone."""

WIDE, TOO_WIDE = 1e-4, 1e-2
"""Relative width of a numerical interval from which the other readings are asked too, and from which a search asks them."""


@dataclass(frozen=True, slots=True)
class NumericalReading:
    """Certified intervals in both directions, taken at their maxima.

    Claim   epsilon(δ).upper is proved for everything the records describe; epsilon(δ).lower is attained by some mechanism
            that they describe. Where a record has no law above, upper is +∞ (or 1).
    """

    above: tuple[Enclosure | None, ...]
    below: tuple[Enclosure | None, ...]

    def epsilon(self, delta: float) -> Interval:
        """Return the interval of ε at δ, over both directions."""
        delta = float(delta)
        found = Interval(0.0, 0.0)
        for above, below in zip(self.above, self.below, strict=True):
            if found.lower > 0.0 and above is not None and below is above and above.chernoff(delta) <= found.lower:
                continue  # this direction is proved to lie below the other
            one = _joined(above, below, lambda side: _epsilon(side, delta), math.inf)
            found = Interval(max(found.lower, one.lower), max(found.upper, one.upper))
        return found

    def delta(self, epsilon: float, last: float | None = None) -> Interval:
        """Return the interval of δ at ε, or of all δ between ε and `last`, over both directions."""
        ends = (float(epsilon), float(epsilon if last is None else last))
        pairs = [_joined(a, b, lambda e: _delta(e, *ends), 1.0) for a, b in zip(self.above, self.below, strict=True)]
        return Interval(max(pair.lower for pair in pairs), max(pair.upper for pair in pairs))


def _joined(
    above: Enclosure | None, below: Enclosure | None, ask: Callable[[Enclosure], Interval], nothing: float
) -> Interval:
    silent = Interval(0.0, nothing)
    upper = attempt(lambda: ask(above)) if above is not None else silent
    lower = upper if below is above else attempt(lambda: ask(below)) if below is not None else silent
    if upper is None and lower is None:
        raise NumericalFailure(OUT_OF_RANGE)
    upper, lower = upper or silent, lower or silent
    return Interval(min(lower.lower, upper.upper), upper.upper)


def _gaussian_only(enclosure: Enclosure) -> GaussianLaw | None:
    families = enclosure.total.families
    plain = len(families) == 1 and enclosure.infinite.upper == 0.0 and "direct" in enclosure.options.paths
    return families[0] if plain and isinstance(families[0], GaussianLaw) and families[0].spread <= 1e-12 else None


def _epsilon(enclosure: Enclosure, delta: float) -> Interval:
    law = _gaussian_only(enclosure)
    if law is None:
        return enclosure.epsilon(delta)
    from curador.privacy.gaussian import gaussian_epsilon

    low, high = min(delta * (1 + 4e-16), math.nextafter(1.0, 0.0)), delta * (1 - 4e-16)  # δ may be off by an ulp
    return Interval(gaussian_epsilon(_mu(law, -1), delta=low)[0], gaussian_epsilon(_mu(law, +1), delta=high)[1])


def _delta(enclosure: Enclosure, epsilon: float, last: float) -> Interval:
    law = _gaussian_only(enclosure)
    if law is None:
        return enclosure.delta(epsilon, last)
    from curador.privacy.gaussian import gaussian_delta

    return Interval(gaussian_delta(_mu(law, -1), epsilon=last)[0], gaussian_delta(_mu(law, +1), epsilon=epsilon)[1])


def _mu(law: GaussianLaw, side: int) -> float:
    """μ moved outward by the law's doubt and a few ulps."""
    return math.sqrt(law.mu2) * (1.0 + side * (law.spread + 2e-15))


def enclosure(loss: Loss, *, paths: tuple[Path, ...] = ALL_PATHS, nodes: int | None = None) -> NumericalReading:
    """Return the numerical reading of a loss, both directions where they differ."""
    return _in_directions(loss, tuple(Direction) if one_sided(loss) else (Direction.LEAVES,), Options(paths, nodes))


def _in_directions(loss: Loss, directions: tuple[Direction, ...], options: Options) -> NumericalReading:
    above: list[Enclosure | None] = []
    below: list[Enclosure | None] = []
    for direction in directions:
        upper, lower = sides(loss, direction)
        above.append(_built(upper, options))
        below.append(above[-1] if _same(upper, lower) else _built(lower, options))
    return NumericalReading(tuple(above), tuple(below))


@dataclass(frozen=True, slots=True)
class ShuffledReading:
    """One shuffle by itself: its sum over the number of people who hide the person, with no cells."""

    record: Shuffled

    def epsilon(self, delta: float) -> Interval:
        """Return the interval of ε at δ."""
        return epsilon_bounds(stronger, self.record.epsilon0, self.record.reports, Fraction(delta))

    def delta(self, epsilon: float, last: float | None = None) -> Interval:
        """Return the interval of δ at ε, or of all δ between ε and `last`."""
        ends = [self._delta(point) for point in ({epsilon} if last is None else {epsilon, last})]
        return Interval(min(end.lower for end in ends), max(end.upper for end in ends))

    def _delta(self, epsilon: float) -> Interval:
        return delta_bounds(stronger, self.record.epsilon0, self.record.reports, Fraction(epsilon))


def _alone(loss: Loss) -> Shuffled | None:
    """The one shuffle that a loss is, beside what costs nothing, if the sum over it is short."""
    parts = [part for part in parts_of(loss) if part[0].pure_epsilon != 0] if _holds_shuffles(loss) else []
    record = parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else None
    short = isinstance(record, Shuffled) and record.variation is None and record.reports <= MOST_DIRECT
    return record if short and isinstance(record, Shuffled) else None


def _holds_shuffles(loss: Loss) -> bool:
    return any(isinstance(record, Shuffled) for record, _ in parts_of(loss))


def _plainly_least(loss: Loss) -> bool:
    """Whether the other readings need not be asked: among many people the way by Rényi's orders is longer by far."""
    alone = _alone(loss)
    return alone is not None and alone.reports >= MANY


def _numerical(loss: Loss) -> NumericalReading | ShuffledReading:
    alone = _alone(loss)
    return enclosure(loss) if alone is None else ShuffledReading(alone)


def _same(upper: Side, lower: Side) -> bool:
    return upper is lower or upper == lower


def _built(side: Side, options: Options) -> Enclosure | None:
    if side.missing is not None:
        return None
    total, infinite = side.total()
    return Enclosure(total, infinite, options)


# ---- the questions ----------------------------------------------------------------------------------------------------


def epsilon_interval(loss: Loss, delta: Number, *, verify: bool = False) -> Interval:
    """Return certified bounds of ε at δ. Rounds: outward."""
    exact = probability(delta, "delta")
    if exact == 0:
        pure = loss.pure_epsilon
        ceiling = math.inf if pure is None else float_up(pure)
        return Interval(_largest_loss(loss, pure), ceiling)
    if verify:
        from curador.privacy.verify import verify_epsilon

        verify_epsilon(enclosure(loss), float_down(exact))
    numerical = attempt(lambda: _numerical(loss).epsilon(float(exact)))
    lower, upper = numerical or (0.0, math.inf)
    upper = _least(upper, *(attempt(lambda: _basic(loss, exact)) or []))
    if math.isinf(upper) or upper - lower > WIDE * upper:
        renyi = attempt(lambda: _renyi_epsilon(loss, exact))
        _require_one(numerical, renyi, answered=upper < math.inf)
        upper = _least(upper, renyi)
    return Interval(min(lower, upper), upper)


@certified
def leaving_epsilon(loss: Loss, delta: Fraction) -> float | None:
    """Return what `epsilon_interval` would say above if nobody joined; None where that would be no sharp answer.

    Claim   None: a person who joins may need more. For searches that ask the whole question at their end.
    """
    if delta == 0:
        return None
    lower, upper = attempt(lambda: _in_directions(loss, (Direction.LEAVES,), Options()).epsilon(float(delta))) or (
        0.0,
        math.inf,
    )
    upper = _least(upper, *(attempt(lambda: _basic(loss, delta)) or []))
    return upper if upper - lower <= TOO_WIDE * upper < math.inf else None


def _require_one(*readings: object, answered: bool) -> None:
    """Refuse where every reading failed and nothing else answers."""
    if not answered and all(reading is None for reading in readings):
        raise NumericalFailure(OUT_OF_RANGE)


def _least(*values: float | None) -> float:
    """The least of the bounds that were found; a NaN or a silent reading is +∞."""
    return min((value for value in values if value is not None and not math.isnan(value)), default=math.inf)


def _largest_loss(loss: Loss, pure: Fraction | None) -> float:
    """ε at δ = 0 from below: attained where the largest loss is."""
    from curador.privacy.losses import Finite, Group, KeySelection, Subsampled

    if pure is None:
        return 0.0 if any(isinstance(record, (Group, KeySelection)) for record, _ in parts_of(loss)) else math.inf
    loose = any(isinstance(record, (BoundedRange, Finite, Subsampled, Group)) for record, _ in parts_of(loss))
    return 0.0 if loose else float_down(pure)


def delta_interval(loss: Loss, epsilon: Number, *, verify: bool = False) -> Interval:
    """Return certified bounds of δ at ε. Rounds: outward."""
    exact = at_least_zero(epsilon, "epsilon")
    if verify:
        from curador.privacy.verify import verify_delta

        verify_delta(enclosure(loss), float_down(exact))
    numerical = attempt(lambda: _numerical(loss).delta(float_down(exact), float_up(exact)))
    lower, upper = numerical or (0.0, 1.0)
    pure = attempt(lambda: loss.pure_epsilon)
    if pure is not None and pure <= exact:
        upper = 0.0
    if upper - lower > WIDE * upper:
        renyi = attempt(lambda: _renyi_delta(loss, exact))
        _require_one(numerical, renyi, answered=False)
        upper = _least(upper, renyi)
    return Interval(min(lower, upper), min(upper, 1.0))


def readings(loss: Loss, delta: Number) -> dict[str, float]:
    """Return every proved ε at δ by the name of its reading; +∞ where a reading is silent."""
    exact = probability(delta, "delta")
    if exact == 0:
        pure = loss.pure_epsilon
        return {
            "numerical": math.inf,
            "renyi": math.inf,
            "basic": math.inf if pure is None else float_up(pure),
        }
    numerical = attempt(lambda: _numerical(loss).epsilon(float(exact)).upper)
    renyi = attempt(lambda: _renyi_epsilon(loss, exact))
    basic = attempt(lambda: _basic(loss, exact)) or []
    _require_one(numerical, renyi, answered=bool(basic))
    return {"numerical": _least(numerical), "renyi": _least(renyi), "basic": _least(*basic)}


def epsilon(loss: Loss, delta: Number) -> float:
    """Return the least proved ε at δ. Rounds: up."""
    if _plainly_least(loss):
        return epsilon_interval(loss, delta).upper
    return min(readings(loss, delta).values())


def delta(loss: Loss, epsilon: Number) -> float:
    """Return the least proved δ at ε. Rounds: up."""
    exact = at_least_zero(epsilon, "epsilon")
    upper = delta_interval(loss, exact).upper
    return upper if _plainly_least(loss) else _least(upper, attempt(lambda: _renyi_delta(loss, exact)))


# ---- the readings that are not numerical ------------------------------------------------------------------------------


def _basic(loss: Loss, delta: Fraction) -> list[float]:
    """[Σ ε] if Σ δ ≤ δ and every record is pure or approximate, else []. Source: [DR14]."""
    if any(isinstance(record, _NEVER_BASIC) for record, _ in parts_of(loss)):
        return []
    deltas: list[Fraction] = []
    terms: list[float] = []
    for record, count in parts_of(loss):
        if isinstance(record, Approx):
            terms.append(float_up(count * record.epsilon0))
            deltas.append(count * record.delta0)
        elif (pure := record.pure_epsilon) is not None:
            terms.append(float_up(count * pure))
        else:
            return []
    # the exact sum of many rationals grows with their number; floats rounded up do not
    total = math.fsum(terms)
    return [total if len(terms) == 1 else up(total)] if exact_sum(deltas) <= delta else []


def _renyi_epsilon(loss: Loss, delta: Fraction) -> float:
    from curador.privacy.convert import curve_to_epsilon, rho_to_epsilon
    from curador.privacy.renyi import curve

    reading = curve(loss)
    room = delta - reading.infinite
    if room <= 0:
        return math.inf
    found, _ = curve_to_epsilon(reading.divergence, delta=float_down(room))
    amounts = _ranged(loss)
    if amounts is not None and amounts[1] < delta:
        found = min(found, rho_to_epsilon(amounts[0], delta=delta - amounts[1]))
    return max(found, 0.0)


def _ranged(loss: Loss) -> Amounts | None:
    """(ρ, δ) of a loss with bounded ranges: theirs is a line in α, whose best order may lie beyond all that are tried."""
    kinds = {type(record) for record, _ in parts_of(loss)}
    return concentrated(loss) if BoundedRange in kinds and Shuffled not in kinds else None


def _renyi_delta(loss: Loss, epsilon: Fraction) -> float:
    from curador.privacy.convert import curve_to_delta, rho_to_delta
    from curador.privacy.renyi import curve

    reading = curve(loss)
    found, _ = curve_to_delta(reading.divergence, epsilon=float_down(epsilon))
    least = up(found + float_up(reading.infinite), 2)
    amounts = _ranged(loss)
    if amounts is not None:
        least = min(least, up(rho_to_delta(amounts[0], epsilon=epsilon) + float_up(amounts[1]), 2))
    return min(1.0, least)

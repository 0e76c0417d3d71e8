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
from fractions import Fraction

from curador.errors import NumericalFailure
from curador.numerics.exact import Number, at_least_zero, exact_sum, probability
from curador.numerics.rounding import Interval, float_down, float_up, up
from curador.numerics.tilted.enclosure import SumOptions
from curador.privacy.convert import curve_to_delta, curve_to_epsilon, rho_to_delta, rho_to_epsilon
from curador.privacy.laws.side import Direction
from curador.privacy.loss import (
    DELTA,
    DELTA_INTERVAL,
    EPSILON,
    EPSILON_INTERVAL,
    OUT_OF_RANGE,
    READINGS,
    Loss,
    attempt,
    certified,
    kinds_of,
    parts_of,
)
from curador.privacy.numerical import NumericalReading, enclosure, in_directions
from curador.privacy.renyi import curve
from curador.privacy.rules import (
    AmountPair,
    OwnReading,
    basic_amounts,
    concentrated,
    own_reading,
    traits_of,
)

# ---- readings --------------------------------------------------------------------------------------------------------------


WIDE, CUT_WIDE, TOO_WIDE = 1e-6, 1e-4, 1e-2
"""Relative width of a numerical interval from which the other readings are asked too; where far outputs are set apart, whose
Rényi orders take longest and give away more than that; and where a search goes on without them."""


def _alone(loss: Loss) -> OwnReading | None:
    """The reading of its own that the one record has which a loss is, beside what costs nothing."""
    if not any(traits_of(parts[0][0]).reads_itself for parts in kinds_of(loss).values()):
        return None
    parts = [part for part in parts_of(loss) if part[0].pure_epsilon != 0]
    return own_reading(parts[0][0]) if len(parts) == 1 and parts[0][1] == 1 else None


def _plainly_least(loss: Loss) -> bool:
    """Whether the other readings need not be asked."""
    alone = _alone(loss)
    return alone is not None and alone.suffices


def _numerical(loss: Loss) -> NumericalReading | OwnReading:
    return _alone(loss) or enclosure(loss)


def _narrow(reading: NumericalReading | OwnReading | None) -> float:
    """The relative width up to which a numerical interval is left as it is."""
    return CUT_WIDE if isinstance(reading, NumericalReading) and reading.sets_apart else WIDE


# ---- the questions ----------------------------------------------------------------------------------------------------


@EPSILON_INTERVAL.answered_by
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
    reading = attempt(lambda: _numerical(loss))
    numerical = None if reading is None else attempt(lambda: reading.epsilon(float(exact)))
    lower, upper = numerical or (0.0, math.inf)
    upper = _least(upper, *(attempt(lambda: _basic(loss, exact)) or []))
    if math.isinf(upper) or upper - lower > _narrow(reading) * upper:
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
    lower, upper = attempt(lambda: in_directions(loss, (Direction.LEAVES,), SumOptions()).epsilon(float(delta))) or (
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
    kinds = [traits_of(record) for record, _ in parts_of(loss)]
    if pure is None:
        return math.inf if all(kind.attains_infinity for kind in kinds) else 0.0
    return float_down(pure) if all(kind.attains_pure for kind in kinds) else 0.0


@DELTA_INTERVAL.answered_by
def delta_interval(loss: Loss, epsilon: Number, *, verify: bool = False) -> Interval:
    """Return certified bounds of δ at ε. Rounds: outward."""
    exact = at_least_zero(epsilon, "epsilon")
    if verify:
        from curador.privacy.verify import verify_delta

        verify_delta(enclosure(loss), float_down(exact))
    reading = attempt(lambda: _numerical(loss))
    numerical = None if reading is None else attempt(lambda: reading.delta(float_down(exact), float_up(exact)))
    lower, upper = numerical or (0.0, 1.0)
    pure = attempt(lambda: loss.pure_epsilon)
    if pure is not None and pure <= exact:
        upper = 0.0
    if upper - lower > _narrow(reading) * upper:
        renyi = attempt(lambda: _renyi_delta(loss, exact))
        _require_one(numerical, renyi, answered=False)
        upper = _least(upper, renyi)
    return Interval(min(lower, upper), min(upper, 1.0))


@READINGS.answered_by
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


@EPSILON.answered_by
def epsilon(loss: Loss, delta: Number) -> float:
    """Return the least proved ε at δ. Rounds: up."""
    if _plainly_least(loss):
        return epsilon_interval(loss, delta).upper
    return min(readings(loss, delta).values())


@DELTA.answered_by
def delta(loss: Loss, epsilon: Number) -> float:
    """Return the least proved δ at ε. Rounds: up."""
    exact = at_least_zero(epsilon, "epsilon")
    upper = delta_interval(loss, exact).upper
    return upper if _plainly_least(loss) else _least(upper, attempt(lambda: _renyi_delta(loss, exact)))


# ---- the readings that are not numerical ------------------------------------------------------------------------------


def _basic(loss: Loss, delta: Fraction) -> list[float]:
    """[Σ ε] if Σ δ ≤ δ and every record is pure or approximate, else []. Source: [DR14]."""
    if any(basic_amounts(parts[0][0]) is None for parts in kinds_of(loss).values()):  # of a kind mostly all or none
        return []
    found: list[tuple[int, AmountPair]] = []
    for record, count in parts_of(loss):  # nothing is multiplied before it is known that all of them have something to say
        amounts = basic_amounts(record)
        if amounts is None:
            return []
        found.append((count, amounts))
    terms = [float_up(count * amounts[0]) for count, amounts in found]
    deltas = [count * amounts[1] for count, amounts in found if amounts[1]]
    # the exact sum of many rationals grows with their number; floats rounded up do not
    total = math.fsum(terms)
    return [total if len(terms) == 1 else up(total)] if exact_sum(deltas) <= delta else []


def _renyi_epsilon(loss: Loss, delta: Fraction) -> float:
    reading = curve(loss)
    room = delta - reading.infinite
    if room <= 0:
        return math.inf
    found, _ = curve_to_epsilon(reading.divergence, delta=float_down(room))
    amounts = _concentrate_ranges(loss)
    if amounts is not None and amounts[1] < delta:
        found = min(found, rho_to_epsilon(amounts[0], delta=delta - amounts[1]))
    return max(found, 0.0)


def _concentrate_ranges(loss: Loss) -> AmountPair | None:
    """(ρ, δ) of a loss with bounded ranges: theirs is a line in α, whose best order may lie beyond all that are tried."""
    kinds = [traits_of(record) for record, _ in parts_of(loss)]
    lined, long = any(kind.follows_a_line for kind in kinds), any(kind.long_rho for kind in kinds)
    return concentrated(loss) if lined and not long else None


def _renyi_delta(loss: Loss, epsilon: Fraction) -> float:
    reading = curve(loss)
    found, _ = curve_to_delta(reading.divergence, epsilon=float_down(epsilon))
    least = up(found + float_up(reading.infinite), 2)
    amounts = _concentrate_ranges(loss)
    if amounts is not None:
        least = min(least, up(rho_to_delta(amounts[0], epsilon=epsilon) + float_up(amounts[1]), 2))
    return min(1.0, least)

"""Totals with far-reaching losses, summed without their far outputs (theorem 10).

How much is set apart is a choice: little where the sum is short anyway, more where the far losses would make it long. The
chance of what was set apart is part of the interval either way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.interval import Interval
from curador.numerics.tilted.enclosure import Enclosure, Sum, invert
from curador.numerics.tilted.fourier import fourier_sum
from curador.numerics.tilted.plan import (
    FEWER,
    FEWEST,
    TOLERANCE,
    Aim,
    Plan,
    Tilts,
    aim_at_delta,
    aim_at_epsilon,
    plan,
    tilts,
    tilts_at_delta,
)

LITTLE, MORE, MOST = 1e-10, 2e-6, 1e-4
"""Shares of δ that are set apart."""

SHORT = 400
"""Frequencies up to which a sum is short."""

LEAST = 1e-300
"""The least chance that is set apart."""

LONG, LONGEST = 12_000, 20_000
"""Frequencies of a sum that must be long."""

ROUND_OFF = 3e-12
"""About what a sum of ten thousand steps is off by, relative to Chernoff's bound at its tilt."""

LAST = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
"""Shares of δ that may be set apart where far losses keep the longest sum too coarse. They cost their share for certain."""

FEW_RECORDS, MANY_RECORDS = 4, 100
"""Records up to which a long sum is affordable, and up to which a long table of tilts is."""

_WIDE, _VERY_WIDE = 3e-5, 3e-4
"""Width of an interval of ε, relative to it or to _SMALL, from which the sum is aimed again, at its middle; and made long and
cut anew."""

_SMALL = 1e-2


class Ready(NamedTuple):
    """A cut total and the parameters of its sum."""

    enclosure: Enclosure
    table: Tilts
    aim: Aim
    plan: Plan

    @property
    def short(self) -> bool:
        """Whether nothing is to be won by cutting more."""
        return self.plan.smoothing == 0.0 and self.plan.size <= SHORT

    @property
    def cost(self) -> float:
        """How much was smoothed, and where nothing was, how long the sum is: both grow with the far losses."""
        return self.plan.smoothing + 1e-12 * self.plan.size

    def summed(self) -> Sum:
        """Evaluate the sum."""
        return fourier_sum(self.enclosure.total, self.table, self.plan)


def cut_epsilon(whole: Enclosure, delta: float) -> Interval:
    """Return the certified interval of ε at δ.

    Claim   D'(ε) ≤ D(ε) ≤ D'(ε) + P(E): the lower end is a point with D' ≥ δ − P[L = ∞], the upper one a point with D' ≤ that
            less P(E).
    Source  docs/explanation/accounting.md, theorem 10.
    """
    if not delta > whole.infinite.upper:
        return Interval(0.0, math.inf)
    ready = ready_at_delta(whole, delta)
    if ready is None:
        return Interval(0.0, whole.total.top)
    found, source = _solved(ready, delta)
    log_delta = math.log(delta - whole.infinite.upper)
    if math.isinf(found.upper) or source is None or _width(found) <= _WIDE:
        return found
    again = _aimed_again(ready, _middle(found), log_delta)
    if again is not None:
        ready, (one, source) = again, _solved(again, delta)
        found = _both(found, one)
    if source is not None and math.isfinite(found.upper) and _width(found) > _VERY_WIDE:
        last = _last(whole, ready, found, delta, falls=_falls(source, _middle(found)))
        found = found if last is None else _both(found, _solved(last, delta)[0])
    return found


def _last(whole: Enclosure, before: Ready, found: Interval, delta: float, *, falls: float) -> Ready | None:
    """The cut whose share of δ and whose smoothing together widen the interval least, as far as one can tell beforehand."""
    middle, room = _middle(found), delta - whole.infinite.upper
    width = (found.upper - found.lower) * (1.0 if found.lower > 0.0 else 20.0)  # how far it reaches below 0 is not seen
    aimed: list[tuple[float, Enclosure, Aim, Tilts]] = []
    for share in LAST:
        cut = whole.cut(share * room)
        try:
            aimed.append((share, cut, *aim_at_epsilon(cut.total, tilts(cut.total), middle, 0.1 * share, math.log(room))))
        except NumericalFailure:
            continue
    best, least = None, math.inf
    few = whole.total.records <= FEW_RECORDS
    for nodes in (LONG, LONGEST) if few and whole.options.nodes is None else (whole.options.nodes,):
        for share, cut, aim, table in aimed:
            try:
                ready = _ready(cut, table, aim, nodes)
            except NumericalFailure:
                continue
            coarse = ready.plan.smoothing / before.plan.smoothing if before.plan.smoothing > 0.0 else 0.0
            doubt = math.exp(min(_log_size(table, aim, middle) - math.log(delta), 300.0))  # round-off grows with it
            wide = (share + ROUND_OFF * doubt) / falls + width * coarse**2
            if wide < least:
                best, least = ready, wide
        if least < 0.3 * _VERY_WIDE * max(middle, _SMALL):
            break
    return best


def _log_size(table: Tilts, aim: Aim, epsilon: float) -> float:
    return float(np.interp(aim.theta, table.theta, table.log_chernoff)) - aim.theta * epsilon


def _middle(found: Interval) -> float:
    return 0.5 * (found.lower + found.upper)


def _falls(source: Sum, epsilon: float) -> float:
    """About how fast log D falls at ε."""
    step = 0.1 * epsilon + 1e-300
    first, second = source.middle(epsilon), source.middle(epsilon + step)
    return max(math.log(first / second) / step, 1e-300) if first > second > 0.0 else 1.0 / step


def _width(found: Interval) -> float:
    """Width of an interval of ε relative to ε, or to _SMALL where that is larger."""
    return (found.upper - found.lower) / max(found.upper, _SMALL)


def _both(one: Interval, other: Interval) -> Interval:
    return Interval(max(one.lower, other.lower), min(one.upper, other.upper))


def ready_at_delta(whole: Enclosure, delta: float) -> Ready | None:
    """Return the handiest cut for the question at which ε is D = δ, or nothing if no tilt has a finite moment."""

    def aimed(cut: Enclosure, table: Tilts, tolerance: float) -> tuple[Aim, Tilts]:
        return aim_at_delta(cut.total, table, math.log(delta - cut.infinite.upper), tolerance)

    return _handiest(whole, delta - whole.infinite.upper, aimed)


def ready_at_epsilon(whole: Enclosure, epsilon: float, size: float) -> Ready | None:
    """Return the handiest cut for the question what D(ε) is, where it is about `size`."""

    def aimed(cut: Enclosure, table: Tilts, tolerance: float) -> tuple[Aim, Tilts]:
        return aim_at_epsilon(cut.total, table, epsilon, tolerance, math.log(size))

    return _handiest(whole, size, aimed, epsilon)


def _handiest(
    whole: Enclosure, size: float, aimed: Callable[[Enclosure, Tilts, float], tuple[Aim, Tilts]], epsilon: float = 0.0
) -> Ready | None:
    best: Ready | None = None
    few = whole.total.records <= MANY_RECORDS
    for share in (LITTLE, MORE, MOST):
        cut = whole.cut(max(share * size, LEAST), epsilon)
        try:
            tolerance = max(TOLERANCE, 0.1 * share)
            table = tilts_at_delta(cut.total, size) if few else tilts(cut.total, FEWER)
            aim, table = aimed(cut, table, tolerance)
            found = _ready(cut, table, aim)
        except (NumericalFailure, ValueError):  # ValueError: nothing is left of δ, or no period is finite
            continue
        if best is None or found.cost < 0.8 * best.cost:
            best = found
        if best.short:
            break
    return best


def _ready(cut: Enclosure, table: Tilts, aim: Aim, nodes: int | None = None) -> Ready:
    smooth = None if "direct" in cut.options.paths else True
    return Ready(cut, table, aim, plan(cut.total, table, aim, nodes=nodes or cut.options.nodes, smooth=smooth))


def _aimed_again(ready: Ready, epsilon: float, log_delta: float) -> Ready | None:
    try:
        aim, table = aim_at_epsilon(ready.enclosure.total, ready.table, epsilon, ready.aim.tolerance, log_delta)
        return _ready(ready.enclosure, table, aim)
    except NumericalFailure:
        return None


def _solved(ready: Ready, delta: float) -> tuple[Interval, Sum | None]:
    """The interval of ε at δ, and the sum it is from."""
    cut, aim = ready.enclosure, ready.aim
    try:
        source = ready.summed()
    except NumericalFailure:
        return Interval(0.0, cut.total.top), None
    target = delta - cut.infinite.upper
    found = invert(
        source,
        target,
        more=delta - cut.infinite.lower,
        start=max(aim.epsilon, 0.0),
        slope=-aim.theta,
        top=cut.total.top,
    )
    return found, source


def cut_delta(whole: Enclosure, epsilon: float) -> Interval:
    """Return the certified interval of δ(ε).

    Claim   Every cut gives a valid interval; they are intersected.
    """
    found = Interval(0.0, 1.0)
    for _ in range(3):
        known = found.lower - whole.infinite.upper
        size = _about(whole, epsilon) if found.upper == 1.0 else known if known > 0.0 else 1e-3 * found.upper
        ready = ready_at_epsilon(whole, epsilon, size)
        if ready is None:
            break
        cut = ready.enclosure
        try:
            low, high = ready.summed().enclose(epsilon)
        except NumericalFailure:
            break
        low, high = low * (1 - 1e-15) + cut.infinite.lower, high + cut.infinite.upper
        found = Interval(max(found.lower, low, 0.0), min(found.upper, high))
        known = found.lower - whole.infinite.upper
        if found.upper - found.lower <= _WIDE * found.upper or (size < 4.0 * known and found.lower > 0.0):
            break
    return found


def proved_below(whole: Enclosure, delta: float, epsilon: float) -> bool:
    """Whether δ(ε) ≤ δ is proved by one sum.

    Claim   The sum alone is an upper bound of D' (theorem 1), and D ≤ D' + P(E) (theorem 10); False says nothing.
    """
    room = delta - whole.infinite.upper
    if not room > 0.0:
        return False
    cut = whole.cut(max(MORE * room, LEAST), epsilon)
    try:
        aim, table = aim_at_epsilon(cut.total, tilts(cut.total, FEWEST), epsilon, MORE, math.log(room))
        found = _ready(cut, table, aim).summed().enclose(epsilon)[1]
    except (NumericalFailure, ValueError):  # ValueError: no period is finite
        return False
    return found + cut.infinite.upper <= delta * (1 - 4e-16)


def _about(whole: Enclosure, epsilon: float) -> float:
    """Chernoff's bound of D(ε), less what it usually exceeds D by."""
    size = 1e-9
    for _ in range(3):  # far losses that are set apart for a rough answer make room for a finer one
        cut = whole.cut(max(1e-4 * size, LEAST), epsilon)
        try:
            table = tilts(cut.total)
        except NumericalFailure:
            return size
        bound = float((table.log_chernoff - table.theta * epsilon).min()) - 2.5
        last, size = size, math.exp(min(max(bound, -690.0), 0.0))
        if 1e-2 < size / last < 1e2:
            break
    return size

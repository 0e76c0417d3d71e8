"""Bracketing root finders that say which side they return."""

from __future__ import annotations

from collections.abc import Callable


def bisect(
    holds: Callable[[float], bool],
    *,
    fails_at: float,
    holds_at: float,
    relative: float = 1e-15,
    steps: int = 200,
) -> tuple[float, float]:
    """Narrow a bracket of a monotone predicate and return (last point that fails, last point that holds).

    Claim   The predicate was evaluated at both returned points: false at the first, true at the second.
    Needs   It is false at `fails_at` and true at `holds_at` (the caller has checked).
    """
    for _ in range(steps):
        middle = 0.5 * (fails_at + holds_at)
        if middle in (fails_at, holds_at) or abs(holds_at - fails_at) <= relative * abs(middle):
            break
        if holds(middle):
            holds_at = middle
        else:
            fails_at = middle
    return fails_at, holds_at


def secant(
    value: Callable[[float], float],
    *,
    start: float,
    slope: float,
    lower: float,
    upper: float,
    steps: int = 60,
) -> float:
    """Return an approximate root of a decreasing function; no side is promised, so the caller certifies.

    Secant steps, pulled back into a bracket that shrinks with every evaluation.
    """
    point, best = start, value(start)
    for _ in range(steps):
        if best == 0.0:
            return point
        lower, upper = (point, upper) if best > 0 else (lower, point)
        candidate = point - best / slope
        if not lower < candidate < upper:
            candidate = 0.5 * (lower + upper)
        if abs(candidate - point) <= 1e-13 * abs(candidate):
            return candidate
        new = value(candidate)
        slope = (new - best) / (candidate - point) if candidate != point else 0.0
        if slope >= 0.0:  # flat or noisy: let the bracket decide
            slope = -abs(best) / max(upper - lower, 1e-300)
        point, best = candidate, new
    return point

"""What the neighbouring periods add to a tilted sum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.plan import Tilts


def aliasing(
    table: Tilts, *, theta: float, length: float, epsilon: float, top: float, extra: FloatArray | float = 0.0
) -> float:
    """Return an upper bound of Σ_{m ≠ 0} e^(θmT) D(ε + mT).

    Claim   With any tilt θ' of the table, D(x) ≤ c(θ') M(θ') e^(−θ'x); above θ it bounds the periods to the right, below θ
            those to the left, where D ≤ 1 bounds them too. Nothing lies right of the largest loss `top`. `extra` is what
            smoothing adds to log M on the table.
    Rounds  Up. Source: docs/explanation/accounting.md, theorem 1.
    """
    gap = np.abs(table.theta - theta) * length
    tail = table.log_chernoff + extra - table.theta * epsilon
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        size = np.where(gap > 0.0, np.exp(np.minimum(tail - gap, 700.0)) / -np.expm1(-gap), np.inf)
    right = float(np.min(size[table.theta > theta], initial=math.inf))
    if epsilon + length >= top * (1 + 1e-12):
        right = 0.0
    left = float(np.min(size[table.theta < theta], initial=math.inf))
    left = min(left, math.exp(-theta * length) / -math.expm1(-theta * length))
    return (left + right) * (1.0 + 1e-12)

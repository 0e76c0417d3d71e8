"""Evaluate many records on many frequencies without holding all pairs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import ComplexArray

SMALLEST = 5e-324


def safe_log(phi: ComplexArray) -> ComplexArray:
    """Return log φ with zeros taken as the smallest float: an exact −∞ would turn into NaN when multiplied by a count."""
    return np.log(np.where(phi == 0.0, SMALLEST, phi))


_PAIRS = 1 << 18  # 4 MiB of complex numbers a temporary


def in_chunks(
    block: Callable[[FloatArray], tuple[ComplexArray, FloatArray]], step: float, size: int, records: int
) -> tuple[ComplexArray, FloatArray]:
    """Return (value, bound) over the frequencies 0, step, …, a block of them at a time."""
    width = max(64, _PAIRS // max(1, records))
    if size <= width:
        return block(step * np.arange(size))
    parts = [block(step * np.arange(start, min(start + width, size))) for start in range(0, size, width)]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

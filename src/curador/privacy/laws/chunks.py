"""Evaluate many records on many frequencies without holding all pairs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.rounding import UNIT

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


def product(phi: ComplexArray, error: FloatArray, angle: FloatArray, count: FloatArray) -> tuple[ComplexArray, FloatArray]:
    """Return Σ n log(φ e^(i angle)) and Σ n log(|φ| + error) over the records (rows), with the sums' own round-off.

    Records that happen once are multiplied before the logarithm is taken, which is most of the cost of a long sum.
    """
    once = count == 1.0
    if once.all():
        turn = angle.sum(axis=0)
        value = safe_log(phi.prod(axis=0)) + 1j * turn
        size = np.abs(phi)
        size += error
        return value, np.log(size.prod(axis=0) + SMALLEST) + 4 * UNIT * (2.0 * len(count) + 2.0 * turn)
    if 2 * once.sum() > len(count):  # the few that happen more often must not cost all the others a logarithm each
        error = np.broadcast_to(error, phi.shape)
        single, several = (product(phi[rows], error[rows], angle[rows], count[rows]) for rows in (once, ~once))
        return single[0] + several[0], single[1] + several[1]
    weight = count[:, None]
    logs = safe_log(phi)
    turn = (weight * angle).sum(axis=0)
    wobble = (weight * np.minimum(np.abs(logs), 1e3)).sum(axis=0) + 2.0 * turn
    return (weight * logs).sum(axis=0) + 1j * turn, (weight * np.log(np.abs(phi) + error)).sum(axis=0) + 4 * UNIT * wobble

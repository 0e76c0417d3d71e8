"""What the sum needs to know of a family of independent losses, and the total of several families.

Families of many records evaluate them on many frequencies without holding all pairs at once: `in_chunks`, `log_product`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from curador.numerics.rounding import UNIT, FloatArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# ---- families and their total ----------------------------------------------------------------------------------------------


ComplexArray: TypeAlias = NDArray[np.complexfloating[Any, Any]]


@dataclass(frozen=True, slots=True)
class Transform:
    """The moment function on the line θ + i·step·k, k = 0 … size − 1, relative to its value at θ.

    value   Σ n_j log φ_j, complex, φ_j = M_j(s_k) / M_j(θ)
    bound   Σ n_j log(|φ_j| + w_j), real, where |computed φ_j − φ_j| ≤ w_j
    log_scale, log_error   log M(θ) and a bound of its error
    """

    value: ComplexArray
    bound: FloatArray
    log_scale: float
    log_error: float


@dataclass(frozen=True, slots=True)
class Atoms:
    """A law with finitely many losses: values and P-probabilities, with bounds of the former's and the latter's errors.

    error    relative, of the masses
    wobble   absolute, of the losses
    """

    losses: FloatArray
    masses: FloatArray
    error: float
    wobble: float


@dataclass(frozen=True, slots=True)
class Lattice:
    """All losses lie on offset + step·ℤ, exactly."""

    offset: Fraction
    step: Fraction


FINEST = 2**17
"""Steps of a joint lattice within the largest step of its parts, from which on it has too many points to be of use."""


def common_step(steps: Iterable[Fraction]) -> Fraction | None:
    """Return the largest rational of which all are whole multiples; None if it is too fine beside one of them.

    No lattice is always a valid answer. The search ends where the step gets too fine, so its integers stay short: the joint
    step of thousands of different records has as many digits as they have together.
    """
    joint = largest = Fraction(0)
    for step in steps:
        joint, largest = rational_gcd(joint, step), max(largest, step)
        if joint * FINEST < largest:
            return None
    return joint or None


def rational_gcd(a: Fraction, b: Fraction) -> Fraction:
    """Return the largest rational of which both are whole multiples."""
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


class Moments(Protocol):
    """A family of independent losses, counts included.

    log_moment   upper bounds of log E[e^(θL); L < ∞], one per tilt θ > 0
    transform    the moment function on a vertical line
    log_decay    upper bounds of sup over u in [t, horizon] of log |M(θ + iu)| / M(θ), one per t
    horizon      frequency up to which log_decay speaks; beyond it only |M(θ + iu)| ≤ M(θ) is used
    top          the largest finite total loss, +∞ if there is none
    records      how many distinct records, for the node budget
    """

    @property
    def horizon(self) -> float: ...
    @property
    def top(self) -> float: ...
    @property
    def records(self) -> int: ...
    def log_moment(self, theta: FloatArray) -> FloatArray: ...
    def transform(self, theta: float, step: float, size: int) -> Transform: ...
    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray: ...
    def atoms(self, limit: int) -> Sequence[Atoms] | None: ...
    def lattice(self) -> Lattice | None: ...


class CutFamily(Moments, Protocol):
    """A family without some far outputs; `outside` bounds their chance, all its releases together. Rounds: up."""

    @property
    def outside(self) -> float: ...


@runtime_checkable
class UncutFamily(Protocol):
    """A family that the sum takes only without far outputs: `mass` chance at most, beside losses below `least`."""

    def cut(self, mass: float, least: float) -> CutFamily: ...


@dataclass(frozen=True, slots=True)
class Total:
    """Several independent families together."""

    families: tuple[Moments, ...]

    @property
    def uncut(self) -> bool:
        """Whether a family asks to be cut."""
        return any(hasattr(family, "cut") for family in self.families)  # what Uncut says; asking a protocol is dear

    def cut(self, mass: float, epsilon: float) -> tuple[Total, float]:
        """Return the total without outputs of about that chance, and an upper bound of the chance of those that matter.

        Claim   Let E be the event that an output was set apart, D' the curve of the rest: D'(ε) ≤ D(ε) ≤ D'(ε) + P(E),
                because 0 ≤ (1 − e^(ε−L))₊ ≤ 1 on E. An output whose loss is below ε less the largest total matters to no
                larger ε: on it the sum of all losses is below ε. Source: docs/explanation/accounting.md, theorem 10.
        """
        least = min(epsilon, 0.0) - self.top * (1 + 1e-9) if self.top >= 0.0 else -math.inf
        asked = sum(isinstance(family, UncutFamily) for family in self.families)
        families: list[Moments] = []
        outside = 0.0
        for family in self.families:
            if isinstance(family, UncutFamily):
                part = family.cut(mass / asked, least)
                outside += part.outside
                families.append(part)
            else:
                families.append(family)
        return Total(tuple(families)), outside * (1 + 8 * UNIT)

    @property
    def horizon(self) -> float:
        """The nearest horizon."""
        return min(family.horizon for family in self.families)

    @property
    def top(self) -> float:
        """The largest finite total loss. Rounds: up."""
        tops = [family.top for family in self.families]
        return math.fsum(tops) + 4 * UNIT * math.fsum(abs(top) for top in tops)

    @property
    def records(self) -> int:
        """Distinct records in all."""
        return sum(family.records for family in self.families)

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """Upper bounds of log M(θ). Rounds: up (each addition by a few ulps)."""
        parts = [family.log_moment(theta) for family in self.families]
        total = np.sum(parts, axis=0)
        return total + 4 * UNIT * len(parts) * np.sum(np.abs(parts), axis=0)

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """The product of the families' moment functions, in the log domain."""
        parts = [family.transform(theta, step, size) for family in self.families]
        value = np.sum([part.value for part in parts], axis=0)
        return Transform(
            value=value,
            bound=np.sum([part.bound for part in parts], axis=0),
            log_scale=math.fsum(part.log_scale for part in parts),
            log_error=math.fsum(part.log_error for part in parts)
            + 2 * UNIT * math.fsum(abs(part.log_scale) for part in parts),
        )

    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray:
        """Upper bounds of the decay of the product."""
        return np.sum([family.log_decay(theta, frequency) for family in self.families], axis=0)

    def lattice(self) -> Lattice | None:
        """The common lattice, if every family has one."""
        parts: list[Lattice] = []
        for family in self.families:
            own = family.lattice()
            if own is None:
                return None
            parts.append(own)
        step = common_step(part.step for part in parts)
        return None if step is None else Lattice(sum((part.offset for part in parts), Fraction(0)), step)

    def atoms(self, limit: int) -> Atoms | None:
        """The whole law, if it has at most `limit` atoms."""
        everything: list[Atoms] = []
        for family in self.families:
            own = family.atoms(limit)
            if own is None:
                return None
            everything.extend(own)
        if math.prod(len(one.losses) for one in everything) > limit:
            return None
        return _list_sums(everything)


def too_many(count: FloatArray, limit: int) -> bool:
    """Whether so many records, of two atoms at least each, have more than `limit` atoms together: none need be listed."""
    return len(count) > limit.bit_length()


def _list_sums(laws: Sequence[Atoms]) -> Atoms:
    losses = np.zeros(1)
    masses = np.ones(1)
    error = wobble = 0.0
    for law in laws:
        losses = np.add.outer(losses, law.losses).ravel()
        masses = np.multiply.outer(masses, law.masses).ravel()
        error += law.error + 2 * UNIT
        wobble += law.wobble + 2 * UNIT * float(np.abs(losses).max())
    order = np.argsort(losses)
    return Atoms(losses[order], masses[order], error, wobble)


# ---- many records on many frequencies --------------------------------------------------------------------------------------


SMALLEST_FLOAT = 5e-324


def safe_log(phi: ComplexArray) -> ComplexArray:
    """Return log φ with zeros taken as the smallest float: an exact −∞ would turn into NaN when multiplied by a count."""
    return np.log(np.where(phi == 0.0, SMALLEST_FLOAT, phi))


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


def log_product(
    phi: ComplexArray, error: FloatArray, angle: FloatArray, count: FloatArray
) -> tuple[ComplexArray, FloatArray]:
    """Return Σ n log(φ e^(i angle)) and Σ n log(|φ| + error) over the records (rows), with the sums' own round-off.

    Records that happen once are multiplied before the logarithm is taken, which is most of the cost of a long sum.
    """
    once = count == 1.0
    if once.all():
        turn = angle.sum(axis=0)
        value = safe_log(phi.prod(axis=0)) + 1j * turn
        size = np.abs(phi)
        size += error
        return value, np.log(size.prod(axis=0) + SMALLEST_FLOAT) + 4 * UNIT * (2.0 * len(count) + 2.0 * turn)
    if 2 * once.sum() > len(count):  # the few that happen more often must not cost all the others a logarithm each
        error = np.broadcast_to(error, phi.shape)
        single, several = (log_product(phi[rows], error[rows], angle[rows], count[rows]) for rows in (once, ~once))
        return single[0] + several[0], single[1] + several[1]
    weight = count[:, None]
    logs = safe_log(phi)
    turn = (weight * angle).sum(axis=0)
    wobble = (weight * np.minimum(np.abs(logs), 1e3)).sum(axis=0) + 2.0 * turn
    return (weight * logs).sum(axis=0) + 1j * turn, (weight * np.log(np.abs(phi) + error)).sum(axis=0) + 4 * UNIT * wobble

"""Losses of Laplace noise, discrete or continuous, and of bounded-range mechanisms: one formula, many records at once.

With ε₀ = sensitivity/scale, T the scale in grid units (∞ for continuous noise) and w = e^(−(2s+1)/T),

    M(s) = e^(s ε₀) { atom (1 + e^(−(2s+1) ε₀)) + body · B(s) },
    B(s) = w (1 − w^(Δ−1)) (1 − e^(−1/T)) / ((1 + e^(−1/T)) (1 − w))      → (1 − e^(−(2s+1) ε₀)) / (2 (2s+1)) as T → ∞,

atom = 1/(1 + e^(−1/T)) → 1/2, body = 1: noise on each side of both centres gives the two atoms ±ε₀, noise between the
centres the body. Together they are, exactly,

    M(s) = e^(s ε₀) {1 + (e^(−(2s+1) ε₀) − 1) κ(s)},   κ(s) = sinh(s/T) / (sinh((s+1)/T) + sinh(s/T)),

where κ is s/(2s+1) for continuous noise and differs from that by a factor within 1 ± |2s+1|²/(4T²) on a grid: sinh z = z
up to a factor within 1 ± |z|²/5 for |z| < 1/2, and the denominator is 2 sinh((s + 1/2)/T) cosh(1/(2T)). The closed-form
pair that dominates every ε₀-bounded-range mechanism is the body alone, normalised: atom = 0, body = 2/(1 − e^(−ε₀)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from curador.numerics.logspace import expm1_minus, sinh_minus
from curador.numerics.rounding import UNIT
from curador.numerics.tilted.moments import Atoms, Lattice, Transform, common_step, in_chunks, log_product, too_many

if TYPE_CHECKING:
    from curador.numerics.rounding import FloatArray
    from curador.numerics.tilted.moments import ComplexArray

_MOST_ATOMS = 4_000

_FINE = 1e-9
"""|2s+1|/T up to which a grid is no different from none: by its square, a hundredth of a unit."""


@dataclass(frozen=True, slots=True)
class LaplaceLaw:
    """Independent Laplace-like losses; arrays have one entry a record.

    Claim   M is the moment function above; log_moment bounds it from above on the real line; |φ| ≤ atoms + the smaller of
            the body's mass and its explicit decay, up to frequency πT/2.
    Source  [Mir17, Prop. 6] for the Rényi divergence; docs/explanation/accounting.md for body and decay.
    """

    epsilon: FloatArray  # ε₀
    inverse_scale: FloatArray  # 1/T, 0 for continuous noise
    bounded_range: FloatArray  # 1 where the record is the bounded-range pair, else 0
    count: FloatArray
    exact: tuple[tuple[Fraction, int], ...] = ()  # (scale, sensitivity) of discrete records, for atoms and lattices

    @property
    def horizon(self) -> float:
        """πT/2, half a turn of w."""
        largest = float(self.inverse_scale.max())
        return math.inf if largest == 0.0 else 0.5 * math.pi / largest * (1 - 1e-12)

    @property
    def top(self) -> float:
        """Σ n ε₀. Rounds: up."""
        return float((self.count * self.epsilon).sum()) * (1.0 + 4 * UNIT * (4 + len(self.count)))

    @property
    def records(self) -> int:
        """Distinct records."""
        return len(self.count)

    def log_moment(self, theta: FloatArray) -> FloatArray:
        """Σ n log M(θ), from M − 1 as a sum of positive terms. Rounds: up."""
        excess = self._excess(np.asarray(theta, dtype=np.float64)[None, :])
        with np.errstate(over="ignore", invalid="ignore"):
            large = theta[None, :] * self.epsilon[:, None]  # M ≤ e^(θ ε₀) always, and where the other is no number
            single = np.fmin(np.log1p(excess), large)
        error = 1.0 + UNIT * (96.0 + 4.0 * large)
        return (self.count[:, None] * single * error).sum(axis=0)

    def _excess(self, theta: FloatArray) -> FloatArray:
        """M(θ) − 1 for θ of shape (1, tilts); shape (records, tilts)."""
        epsilon, inverse = self.epsilon[:, None], self.inverse_scale[:, None]
        alpha = theta + 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            both = np.empty((2, len(epsilon), theta.size))
            np.multiply(theta, epsilon, out=both[0])
            np.multiply(-alpha, epsilon, out=both[1])
            rise, fall = expm1_minus(both)
            # where the grid is finer than the round-off allowed for
            if (float(alpha.max()) * float(inverse.max())) ** 2 < 1e-18 and float((inverse**2 / epsilon).max()) < 1e-17:
                noise = (alpha * rise + theta * fall) / (alpha + theta)
                return self._with_ranges(noise, theta, epsilon, rise, fall)
            # sinh(αx)/x and sinh(θx)/x with x = 1/T, equal to α and θ for continuous noise
            safe = np.where(inverse > 0, inverse, 1.0)
            extra_alpha = np.where(inverse > 0, sinh_minus(alpha * safe) / safe, 0.0)
            extra_theta = np.where(inverse > 0, sinh_minus(theta * safe) / safe, 0.0)
            bend = np.maximum(theta * extra_alpha - alpha * extra_theta, 0.0) * epsilon
            up, down = alpha + extra_alpha, theta + extra_theta
            noise = (up * rise + down * fall + bend) / (up + down)
        return self._with_ranges(noise, theta, epsilon, rise, fall)

    def _with_ranges(
        self, noise: FloatArray, theta: FloatArray, epsilon: FloatArray, rise: FloatArray, fall: FloatArray
    ) -> FloatArray:
        if not self.bounded_range.any():
            return noise
        return np.where(self.bounded_range[:, None] > 0, self._range_excess(theta, epsilon, rise, fall), noise)

    @staticmethod
    def _range_excess(theta: FloatArray, epsilon: FloatArray, rise: FloatArray, fall: FloatArray) -> FloatArray:
        # e^(θε) − e^(−αε) = (2θ+1)ε + g(θε) − g(−αε);  1 − e^(−ε) = ε − g(−ε)
        base = -np.expm1(-epsilon)
        return np.maximum((rise - fall) / (2.0 * theta + 1.0) + expm1_minus(-epsilon), 0.0) / base + 4 * UNIT

    def _shape(self, s: ComplexArray | FloatArray) -> tuple[ComplexArray, ComplexArray]:
        """Atoms' and body's part of M(s) e^(−s ε₀), for s of shape (1, k)."""
        epsilon, inverse = self.epsilon[:, None], self.inverse_scale[:, None]
        width = 2.0 * s + 1.0
        across = np.expm1(-width * epsilon)  # e^(−(2s+1)ε₀) − 1
        if self.inverse_scale.any():
            step = _expm1(-width * inverse)  # w − 1
            slope, between = _ratio(np.expm1(-inverse), step, width), step - across
        else:
            slope, between = 1.0 / width, -across
        ranged = self.bounded_range[:, None] > 0
        weight = np.where(ranged, 1.0 / -np.expm1(-epsilon), 1.0 / (1.0 + np.exp(-inverse)))
        atoms = np.where(ranged, 0.0, weight) * (2.0 + across)
        return np.asarray(atoms, dtype=np.complex128), np.asarray(weight * slope * between, dtype=np.complex128)

    def _grain(self, width: float) -> float | None:
        """|2s+1|/T at its largest for |2s+1| ≤ width, where that is so small that the continuous forms serve; else None."""
        grain = width * float(self.inverse_scale.max())
        return None if grain > _FINE or self.bounded_range.any() else grain

    def _atoms_and_all(self, theta: float) -> tuple[FloatArray, FloatArray]:
        """Atoms' part of M(θ) e^(−θ ε₀), and all of it, in shape (records, 1)."""
        width = 2.0 * theta + 1.0
        if self._grain(width) is None:
            atoms, body = self._shape(np.array([[theta]]))
            return atoms.real, (atoms + body).real
        fall = np.exp(-width * self.epsilon[:, None])
        return (1.0 + fall) / (1.0 + np.exp(-self.inverse_scale[:, None])), (theta + 1.0 + theta * fall) / width

    def transform(self, theta: float, step: float, size: int) -> Transform:
        """Closed form at every frequency.

        Claim   The continuous form's φ is within 32 units, and 2 an angle tε₀: half of it turns, cosine and sine within
                4 ulps and a unit an angle 2tε₀; the rest is two exponentials within 4 ulps, and products.
        """
        scale = self._atoms_and_all(theta)[1]
        log_scale = self._log_at(theta, scale)
        fine = self._grain(2.0 * (theta + step * size) + 1.0) is not None
        inverse = 1.0 / scale
        fall = np.exp(-(2.0 * theta + 1.0) * self.epsilon[:, None]) * inverse

        def phi(frequency: FloatArray) -> ComplexArray:
            s = theta + 1j * frequency[None, :]
            if not fine:
                first, second = self._shape(s)
                return (first + second) / scale
            turn = 2.0 * frequency[None, :] * self.epsilon[:, None]
            found = np.empty(turn.shape, dtype=np.complex128)  # e^z of complex numbers would take four times as long
            np.multiply(np.cos(turn), fall, out=found.real)
            np.multiply(np.sin(turn, out=turn), -fall, out=found.imag)
            found *= s / (s + 1.0)  # κ/(1 − κ)
            found.real += inverse
            found *= (s + 1.0) / (2.0 * s + 1.0)  # 1 − κ
            return found

        def block(frequency: FloatArray) -> tuple[ComplexArray, FloatArray]:
            angle = frequency[None, :] * self.epsilon[:, None]
            return log_product(phi(frequency), UNIT * (40.0 + 8.0 * angle), angle, self.count)

        value, bound = in_chunks(block, step, size, len(self.count))
        relative = 96.0 + 4.0 * theta * self.epsilon
        absolute = np.where(self.bounded_range > 0, 64.0, 8.0 * UNIT)  # the range's M − 1 cancels for small ε₀
        log_error = UNIT * float((self.count * (relative * np.abs(log_scale) + absolute)).sum())
        return Transform(value, bound, float((self.count * log_scale).sum()), log_error)

    def _log_at(self, theta: float, scale: FloatArray) -> FloatArray:
        excess = self._excess(np.array([[theta]]))
        with np.errstate(over="ignore"):
            direct = np.log1p(excess)
        return np.where(excess[:, 0] < 1.0, direct[:, 0], theta * self.epsilon + np.log(scale[:, 0]))

    def log_decay(self, theta: float, frequency: FloatArray) -> FloatArray:
        """atoms + explicit decay of the body, or nothing where that is no decay."""
        found = np.zeros_like(frequency)
        inside = frequency < self.horizon
        if not inside.any():
            return found
        atoms, total = self._atoms_and_all(theta)
        inverse, width = self.inverse_scale[:, None], 2.0 * theta + 1.0
        ranged = self.bounded_range[:, None] > 0
        weight = np.where(ranged, 1.0 / -np.expm1(-self.epsilon[:, None]), 1.0 / (1.0 + np.exp(-inverse)))
        reach = np.exp(-width * inverse) + np.exp(-width * self.epsilon[:, None])
        explicit = weight * reach / total * (1 + 32 * UNIT) * self._rate(width, frequency[inside][None, :])
        bound = np.minimum(explicit + (atoms / total + 16 * UNIT), 1.0)
        found[inside] = (self.count[:, None] * np.log(bound)).sum(axis=0)
        return found

    def _rate(self, width: float, line: FloatArray) -> FloatArray:
        """(1 − e^(−1/T)) / |1 − w| at 2s + 1 = width + 2i·line, up to half a turn of w; 1/|2s+1| for continuous noise.

        Rounds  Up: 1 − e^(−y) ≥ y (1 − y/2) and 2 e^(−y/2) sin a ≥ 2a (1 − y/2)(1 − a²/6) with y = width/T, a = line/T.
        """
        grain = self._grain(width + 2.0 * float(line.max()))
        plain = np.hypot(width, 2.0 * line)
        if grain is not None:
            return (1.0 + grain) / plain
        inverse = self.inverse_scale[:, None]
        safe = np.where(inverse > 0, inverse, 1.0)
        angle = np.minimum(line * safe, 0.5 * math.pi)
        gap = np.hypot(np.expm1(-width * safe), 2.0 * np.exp(-0.5 * width * safe) * np.sin(angle))
        return np.where(inverse > 0, -np.expm1(-safe) / gap, 1.0 / plain)

    @property
    def happens_once(self) -> bool:
        """Whether `one_step` speaks of the whole family."""
        return len(self.count) == 1 and self.count[0] == 1.0

    def one_step(self, epsilon: float) -> tuple[float, float]:
        """Return (lower, upper) bounds of D(ε) of a single release, ε ≥ 0.

        Claim   Laplace noise: 1 − e^((ε−ε₀)/2). On a grid, with X the last integer whose loss (Δ − 2X)/T exceeds ε:
                (1 − r^(X+1) + r (1 − e^(ε−(Δ−X−1)/T)))/(1 + r), r = e^(−1/T): both terms are positive.
                Bounded range: (1 − e^((ε−ε₀)/2))²/(1 − e^(−ε₀)).
        """
        top, inverse = float(self.epsilon[0]), float(self.inverse_scale[0])
        if epsilon >= top * (1 + 4 * UNIT):
            return 0.0, 0.0
        gap = -math.expm1(min(epsilon - top, 0.0) / 2.0)
        doubt = 4 * UNIT * (top + epsilon)  # of the exponents
        if self.bounded_range[0] > 0:
            value = gap * gap / -math.expm1(-top)
            slack = (2.0 * gap + doubt) * doubt / -math.expm1(-top)
        elif inverse == 0.0:
            value, slack = gap, doubt
        else:
            value, slack = _grid_step(self.exact[0], epsilon)
        return max(value * (1 - 16 * UNIT) - slack, 0.0), value * (1 + 16 * UNIT) + slack

    def atoms(self, limit: int) -> list[Atoms] | None:
        """Atoms of discrete records of small sensitivity."""
        if len(self.exact) != len(self.count) or too_many(self.count, limit):
            return None
        out: list[Atoms] = []
        for (scale, sensitivity), count in zip(self.exact, self.count, strict=True):
            if sensitivity > _MOST_ATOMS or count > 64 or (sensitivity + 1.0) ** count > limit:
                return None
            out.extend([_discrete_atoms(scale, sensitivity)] * int(count))
        return out

    def lattice(self) -> Lattice | None:
        """Discrete Laplace losses are (Δ − 2x)/T."""
        if len(self.exact) != len(self.count) or not self.exact:
            return None
        step = common_step(2 / t for t, _ in self.exact)
        if step is None:
            return None
        offset = sum((int(n) * Fraction(d) / t for (t, d), n in zip(self.exact, self.count, strict=True)), Fraction(0))
        return Lattice(offset, step)


def _grid_step(exact: tuple[Fraction, int], epsilon: float) -> tuple[float, float]:
    """D(ε) of one discrete Laplace release and a bound of its absolute round-off; places on the grid are exact."""
    scale, shift = exact
    last = math.ceil((shift - Fraction(epsilon) * scale) / 2) - 1
    if last < 0:
        return 0.0, 0.0
    rate = math.exp(-float(1 / scale))
    outer = -math.expm1(-float((last + 1) / scale))
    inner = -rate * math.expm1(min(float(Fraction(epsilon) - (shift - last - 1) / scale), 0.0))
    return (outer + inner) / (1.0 + rate), 4 * UNIT * (outer + inner)


def _expm1(z: ComplexArray | FloatArray) -> ComplexArray | FloatArray:
    """eᶻ − 1; a short series where all of z is tiny, as on fine grids."""
    if float(np.abs(z).max()) < 1e-5:
        return z * (1.0 + z * (0.5 + z / 6.0))
    return np.expm1(z)


def _ratio(top: FloatArray, bottom: ComplexArray | FloatArray, width: ComplexArray | FloatArray) -> ComplexArray:
    """(e^(−1/T) − 1)/(w − 1), which is 1/(2s+1) for continuous noise (both 0)."""
    flat = top == 0.0
    return np.where(flat, 1.0 / width, top / np.where(flat, 1.0, bottom))


def _discrete_atoms(scale: Fraction, sensitivity: int) -> Atoms:
    inverse = float(1 / scale)
    places = np.arange(sensitivity + 1)
    ratio = math.exp(-inverse)
    masses = np.exp(-places * inverse) * -math.expm1(-inverse) / (1.0 + ratio)
    masses[0] = 1.0 / (1.0 + ratio)
    masses[-1] = math.exp(-sensitivity * inverse) / (1.0 + ratio)
    losses = np.array([float((sensitivity - 2 * int(x)) / scale) for x in places])
    return Atoms(losses, masses, UNIT * (32.0 + 4.0 * sensitivity * inverse), 2 * UNIT * sensitivity * inverse)

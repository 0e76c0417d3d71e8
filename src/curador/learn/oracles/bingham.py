"""A private direction with no δ: x on the unit sphere with density ∝ exp(β x'Ax), drawn without a Markov chain.

A proposal is angular central Gaussian, x = y/|y| with y normal in A's own basis; it is kept with the ratio of the two
densities over its largest value. In A's basis, with λ = β (max a − a), b the root of Σ 1/(b + 2λ) = 1 and u = Σ λ x²:

    target ∝ e^(−u)      proposal ∝ (1 + 2u/b)^(−d/2)      log of their ratio over its maximum
                                                           = −u + (d/2) log(1 + 2u/b) + (d − b)/2 − (d/2) log(d/b) ≤ 0

The proposal's density is divided by: its logarithm comes back with a plus. With a minus one draws another law, whose privacy
is worse than β says; tests/statistical draws that law as well, and must refuse it.

Not exact: normals, eigenvectors and the kept direction are floats, and which floats can come out depends on the data. What is
claimed here is claimed of real numbers, so estimators say `exact = False` and a curator refuses it unless its owner allows
it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from curador.learn.oracles.analyze_gauss import top_symmetric
from curador.learn.sums import Floats
from curador.mechanisms.seam import perform
from curador.numerics.rounding import down
from curador.privacy.losses import BoundedRange
from curador.randomness.entropy import U64

if TYPE_CHECKING:
    from fractions import Fraction

    from curador.privacy.adjacency import Adjacency
    from curador.privacy.loss import Loss
    from curador.randomness.entropy import Entropy

_MISS = 1e-9
"""How often no proposal of a round is kept, at most, if acceptance is never below its value at infinite concentration."""

_AT_ONCE = 1 << 21

_SLACK = 1e-9
"""What floating point may add to the range of a difference of matrices."""


@dataclass(frozen=True, slots=True)
class BinghamDirection:
    """One direction of a symmetric matrix A, of density ∝ exp(β x'Ax), as a mechanism.

    span    β R: over all x the log-ratio between neighbours spans so much at most; what is paid for
    extent  R: how far apart the eigenvalues of one record's change of A are at most
    Claim   One release costs a bounded range of `span` (directions.py). In real arithmetic.
    """

    span: Fraction
    extent: float
    adjacency: Adjacency | None = None

    @property
    def concentration(self) -> float:
        """β. Rounds: down."""
        return down(float(self.span) / self.extent, 4)

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        return BoundedRange(epsilon=self.span, adjacency=self.adjacency)

    def release(self, matrix: Floats) -> Floats:
        """Return one direction, a unit vector."""
        return perform(self, np.asarray(matrix, np.float64))

    def release_many(self, matrix: Floats, size: int) -> Floats:
        """Return `size` independent directions along a first axis. Costs `size` times the loss."""
        return perform(self, np.asarray(matrix, np.float64), size)

    def draw(self, value: Floats, source: Entropy, size: int | None = None) -> Floats:
        """Draw a direction of the matrix; with size, so many."""
        law = law_of(value, self.concentration)
        return draw(law, source) if size is None else np.array([draw(law, source) for _ in range(size)])

    def within(self, one: Floats, other: Floats) -> bool:
        """Whether the log-ratio of two matrices' laws spans no more than what is paid for, but for round-off."""
        if np.shape(one) != np.shape(other):
            return False
        values = np.linalg.eigvalsh(np.asarray(one) - np.asarray(other))
        return bool(self.concentration * (values[-1] - values[0]) <= float(self.span) * (1 + _SLACK))


@dataclass(frozen=True, slots=True)
class BinghamLaw:
    """exp(β x'Ax) on the sphere, in the basis of A.

    basis   eigenvectors of A as rows, values falling
    excess  λ = β (max a − a): 0 first, rising
    tuning  b, with which the proposal is closest
    """

    basis: Floats
    excess: Floats
    tuning: float

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return len(self.excess)


def law_of(matrix: Floats, concentration: float) -> BinghamLaw:
    """Return the law exp(concentration · x'Ax) of a symmetric matrix."""
    values, basis = top_symmetric(matrix, len(matrix))
    return BinghamLaw(basis, *spread_of(values, concentration))


def spread_of(values: Floats, concentration: float) -> tuple[Floats, float]:
    """Return λ and b of eigenvalues."""
    from scipy.optimize import brentq

    excess = concentration * (float(values.max()) - values)
    size = len(values)

    def surplus(tuning: float) -> float:
        return float((1.0 / (tuning + 2.0 * excess)).sum()) - 1.0

    if surplus(float(size)) >= 0.0:  # all alike
        return excess, float(size)
    return excess, cast("float", brentq(surplus, 1.0, float(size), xtol=1e-15))


def log_acceptance(uses: Floats, tuning: float, size: int) -> Floats:
    """Return log(target/proposal) less its maximum, at u = Σ λ x². At most 0, but for rounding.

    Source  [KGM18]
    """
    inside = (size - tuning) / 2.0 - (size / 2.0) * math.log(size / tuning)
    return -uses + (size / 2.0) * np.log1p(2.0 * uses / tuning) + inside


def least_acceptance(size: int) -> float:
    """Return the probability that a proposal is kept, at infinite concentration on one direction.

    Γ(d/2) 2^((d−1)/2) e^((d−1)/2) / (√π d^(d/2)), about √(2/(e d)). In every case that was computed it is the smallest over
    all matrices; that is not proved, and nothing but running time rests on it.
    """
    half = size / 2.0
    log = math.lgamma(half) + (half - 0.5) * (math.log(2.0) + 1.0) - 0.5 * math.log(math.pi) - half * math.log(size)
    return math.exp(log)


def proposals(size: int) -> int:
    """Return how many proposals are made in a round, always all of them: a function of the dimension alone."""
    return math.ceil(math.log(_MISS) / math.log1p(-min(least_acceptance(size), 0.999)))


def draw(law: BinghamLaw, source: Entropy) -> Floats:
    """Return one direction.

    Claim   Its law is exactly `law`, in real arithmetic. Every round makes the same number of proposals whatever the data
            are, and keeps the first accepted one; a second round, which time would show, is needed about once in 10⁹ draws.
    """
    total = proposals(law.size)
    found: Floats | None = None
    while found is None:
        left = total
        while left:  # all of them, also after one was kept
            count = min(left, max(1, _AT_ONCE // law.size))
            kept = draw_accepted(law, count, source)
            found = kept[0] if found is None and len(kept) else found
            left -= count
    return found @ law.basis


def draw_accepted(law: BinghamLaw, count: int, stream: Entropy) -> Floats:
    """Make `count` proposals and return those that are kept, as rows, in the basis of the law."""
    numbers = normals(count * law.size, stream).reshape(count, law.size)
    numbers /= np.sqrt(1.0 + 2.0 * law.excess / law.tuning)
    numbers /= np.linalg.norm(numbers, axis=1, keepdims=True)
    uses = np.square(numbers) @ law.excess
    taken = np.log(uniforms(count, stream)) < log_acceptance(uses, law.tuning, law.size)
    return numbers[taken]


def uniforms(count: int, stream: Entropy) -> Floats:
    """Return uniform numbers in the open interval: the middles of 2⁵² cells, the finest of which floats hold all."""
    words = stream.words(count, U64) >> np.uint64(12)
    return (words.astype(np.float64) + 0.5) * 2.0**-52


def normals(count: int, stream: Entropy) -> Floats:
    """Return standard normal numbers."""
    from scipy.special import ndtri

    return np.asarray(ndtri(uniforms(count, stream)), np.float64)

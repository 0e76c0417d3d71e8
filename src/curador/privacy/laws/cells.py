"""Pairs known by their masses between grid points, and their two finite twins: one above, one below.

A pair is cut into cells of the loss; a cell keeps only its masses p = P(cell) and q = Q(cell). *Above*, connect the dots:
each cell's mass goes to its two ends so that both p and q are kept. *Below*, half of each cell meets half of its neighbour
at the grid point between them and is merged there (post-processing) as far as the merged ratio stays at least the grid
point's; the rest is rounded down. Both are O(step²) from the truth and survive composition.

Subsampling starts from the cells of Laplace noise, of a bounded range and of Gaussian noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from curador.errors import NumericalFailure
from curador.numerics.rounding import UNIT
from curador.privacy.laws.finite import FiniteLaw

if TYPE_CHECKING:
    from fractions import Fraction

    from curador.numerics.rounding import FloatArray


# ---- pairs and their twins -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CellPair:
    """Edges of the cells, their masses under P and Q, exact atoms (loss, p, q), and what lies outside of all cells.

    beyond   P-mass above the highest edge: an infinite loss, above
    under    Q-mass below the lowest edge, where P has less; it is `beyond` of the reversed pair
    """

    edges: FloatArray
    p: FloatArray
    q: FloatArray
    atoms: tuple[tuple[float, float, float], ...] = ()
    beyond: float = 0.0
    under: float = 0.0
    doubt: float = 1e-13  # relative to the masses from here up: round-off of tails
    whole: bool = False  # relative to all masses instead: the tails were taken from the other end

    def reversed(self) -> CellPair:
        """The pair (Q, P)."""
        return replace(
            self,
            edges=-self.edges[::-1],
            p=self.q[::-1],
            q=self.p[::-1],
            atoms=tuple((-loss, q, p) for loss, p, q in self.atoms),
            beyond=self.under,
            under=self.beyond,
            whole=True,
        )

    def doubts(self) -> FloatArray:
        """Absolute doubt of each cell's P-mass: tails were subtracted."""
        from_here = np.cumsum(self.p[::-1])[::-1] + self.beyond  # atoms are exact and no part of the tails
        if self.whole:
            from_here = np.maximum.accumulate(self.p) + np.cumsum(self.p)
        return self.doubt * np.minimum(from_here, 1.0)


def dominating_law(pair: CellPair, count: int) -> tuple[FiniteLaw, float]:
    """Return the dominating finite law and the mass it puts at +∞.

    Claim   For every ε and after any composition, its δ is at least the pair's.
    Source  [DGK+22]; mass moved up for round-off only raises δ.
    """
    doubt = pair.doubts()
    with np.errstate(divide="ignore"):
        image = np.exp(np.minimum(pair.edges[:-1] + np.log(pair.q), 700.0))  # x q: the least P-mass of a cell of Q-mass q
    width = -np.expm1(-np.diff(pair.edges))
    share = (pair.p - image + 2.0 * doubt) / np.where(width > 0.0, width, 1.0) * (1 + 1e-12)
    trusted = (width > 0.0) & (image <= pair.p + 2.0 * doubt)  # where round-off broke a cell, all of it goes up
    right = np.where(trusted, np.clip(share, 0.0, pair.p + doubt), pair.p + doubt)
    masses = np.zeros(len(pair.edges))
    masses[1:] += right
    masses[:-1] += np.maximum(pair.p + doubt - right, 0.0)
    masses[0] += pair.under  # P has less than Q there, and the loss is lower
    losses = np.concatenate([pair.edges, [loss + 4 * UNIT * (1 + abs(loss)) for loss, _, _ in pair.atoms]])
    return _law(losses, np.concatenate([masses, [p for _, p, _ in pair.atoms]]), count), pair.beyond


def dominated_law(pair: CellPair, count: int) -> FiniteLaw:
    """Return a finite law that the pair dominates.

    Claim   For every ε and after any composition, its δ is at most the pair's.
    Source  docs/explanation/accounting.md, theorem 7.
    """
    x = np.exp(pair.edges)
    doubt = pair.doubts()
    p = np.maximum(pair.p - doubt, 0.0)
    deficit = 0.5 * (x[1:] * pair.q - pair.p) + 2.0 * doubt  # of the half that a cell sends up, at its right end
    excess = 0.5 * (pair.p - x[:-1] * pair.q) - 2.0 * doubt  # of the half that it sends down, at its left end
    share = np.zeros(len(p))
    with np.errstate(divide="ignore", invalid="ignore"):
        share[:-1] = np.clip(np.nan_to_num(excess[1:] / deficit[:-1], nan=0.0), 0.0, 1.0) * (1 - 1e-9)
    masses = np.zeros(len(x))
    masses[:-1] += 0.5 * p + (1.0 - share) * 0.5 * p
    masses[1:] += share * 0.5 * p
    losses = np.concatenate([pair.edges, [loss - 4 * UNIT * (1 + abs(loss)) for loss, _, _ in pair.atoms]])
    return _law(losses, np.concatenate([masses, [mass for _, mass, _ in pair.atoms]]), count)


def _law(losses: FloatArray, masses: FloatArray, count: int) -> FiniteLaw:
    if not (np.all(np.isfinite(losses)) and np.all(np.isfinite(masses))):
        raise NumericalFailure("the cells of this loss leave the range of floats")
    keep = masses > 0.0
    return FiniteLaw(losses[keep], masses[keep], count, 1e-15, balanced=False)


def sample_poisson(base: CellPair, rate: Fraction, *, leaves: bool) -> CellPair:
    """The pair of a Poisson subsample: ((1−q)Q + qP, Q) when a record leaves, its mirror when one comes."""
    if rate == 1:
        return base if leaves else base.reversed()
    share, stay = float(rate), float(1 - rate)
    mixed = CellPair(
        edges=_mixed_loss(base.edges, share, stay),
        p=stay * base.q + share * base.p,
        q=base.q,
        atoms=tuple(
            (float(_mixed_loss(np.array([loss]), share, stay)[0]), stay * q + share * p, q) for loss, p, q in base.atoms
        ),
        beyond=base.beyond,  # Q has no more there than P
        under=base.under,
        doubt=base.doubt,
    )
    return mixed if leaves else mixed.reversed()


def _mixed_loss(loss: FloatArray, share: float, stay: float) -> FloatArray:
    """log(1 − q + q e^l), from whichever form keeps its digits."""
    far = np.logaddexp(math.log(stay), math.log(share) + loss)
    near = np.log1p(share * np.expm1(np.clip(loss, -1.0, 1.0)))
    return np.where(np.abs(loss) > 1.0, far, near)


def sample_without_replacement(base: CellPair, rate: Fraction) -> CellPair:
    """The symmetric pair with profile q δ(log(1 + (e^ε − 1)/q)) for ε ≥ 0: the mixed pair above 0, its mirror below."""
    mixed = sample_poisson(base, rate, leaves=True)
    start = int(np.searchsorted(mixed.edges, 0.0))
    edges, p, q = mixed.edges[start:], mixed.p[start:], mixed.q[start:]
    atoms = tuple(atom for atom in mixed.atoms if atom[0] > 0.0)
    up = float(p.sum()) + sum(a[1] for a in atoms) + mixed.beyond
    down = float(q.sum()) + sum(a[2] for a in atoms)
    middle = (0.0, max(1.0 - up - down, 0.0), max(1.0 - up - down, 0.0))
    edges = np.concatenate([[0.0], edges[1:]])
    return CellPair(
        edges=np.concatenate([-edges[:0:-1], edges]),
        p=np.concatenate([q[::-1], p]),
        q=np.concatenate([p[::-1], q]),
        atoms=(*atoms, middle, *((-loss, below_mass, above_mass) for loss, above_mass, below_mass in atoms)),
        beyond=mixed.beyond,
        doubt=base.doubt,
    )


# ---- pairs that subsampling starts from ------------------------------------------------------------------------------------


_CELLS = 2_400


def _edges(reach: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    edges = np.linspace(-reach, reach, _CELLS + 1)
    edges[_CELLS // 2] = 0.0  # subsampling without replacement folds there
    return edges


def laplace_cells(epsilon: float, *, scale: float = math.inf, sensitivity: float = math.inf) -> CellPair:
    """Laplace noise with ε₀ = epsilon; discrete if `scale` (in grid units) and the integer `sensitivity` are given."""
    edges = _edges(epsilon)
    if math.isinf(scale):
        p_tail = -0.5 * np.expm1((edges - epsilon) / 2.0)
        q_tail = 0.5 * math.exp(-epsilon) * np.expm1((epsilon - edges) / 2.0)
        heavy, light = 0.5, 0.5 * math.exp(-epsilon)
    else:
        inside = np.clip(np.ceil((sensitivity - edges * scale) / 2.0) - 1.0, 0.0, sensitivity - 1.0)
        total = 1.0 + math.exp(-1.0 / scale)
        p_tail = math.exp(-1.0 / scale) * -np.expm1(-inside / scale) / total
        q_tail = math.exp(-epsilon) * np.expm1(inside / scale) / total
        heavy, light = 1.0 / total, math.exp(-epsilon) / total
    p_tail[-1] = q_tail[-1] = 0.0
    return CellPair(
        edges=edges,
        p=-np.diff(p_tail),
        q=-np.diff(q_tail),
        atoms=((epsilon, heavy, light), (-epsilon, light, heavy)),
        doubt=1e-12,
    )


def bounded_range_cells(epsilon: float) -> CellPair:
    """The pair that dominates every ε-bounded-range mechanism."""
    edges = _edges(epsilon)
    scale = 1.0 / -math.expm1(-epsilon)
    p_tail = scale * -np.expm1((edges - epsilon) / 2.0)
    q_tail = scale * math.exp(-epsilon) * np.expm1((epsilon - edges) / 2.0)
    return CellPair(edges=edges, p=-np.diff(p_tail), q=-np.diff(q_tail))


def gaussian_cells(mu: float) -> CellPair:
    """Gaussian noise, cut 14 standard deviations beyond both means.

    Rounds  A tail Φ(z) has |z| ≤ μ + 14 where it is small. z is the difference of two rounded numbers of at most μ + 14, the
            slope of log Φ is at most |z| + 1, and e^(−z²/2) adds z² units: less than 4 (μ + 15)² + 256 units of each tail.
    """
    from scipy.special import ndtr

    edges = _edges(mu * mu / 2.0 + 14.0 * mu)
    p_tail, q_tail = ndtr(mu / 2.0 - edges / mu), ndtr(-mu / 2.0 - edges / mu)
    outside, doubt = float(p_tail[-1]), UNIT * (4.0 * (mu + 15.0) ** 2 + 256.0)  # as much of Q lies below as of P above
    outside *= 1.0 + 2.0 * doubt
    return CellPair(edges=edges, p=-np.diff(p_tail), q=-np.diff(q_tail), beyond=outside, under=outside, doubt=doubt)

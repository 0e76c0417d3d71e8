"""A bilinear regression whose best model is known: to compare optimisers, and to show what a budget buys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.learn.nuclear.losses import Batch, BilinearHuber, Loss

if TYPE_CHECKING:
    from curador.learn.sums import Floats


@dataclass(frozen=True, slots=True)
class Problem:
    """Records y = a'X*b + noise, as many more to judge by, and the model X* that made them (its nuclear norm is `radius`)."""

    train: Batch
    test: Batch
    best: Floats
    radius: float = 1.0

    def excess(self, model: Floats, loss: Loss | None = None) -> float:
        """Return the mean loss of a model on the other records, minus that of X*."""
        loss = BilinearHuber() if loss is None else loss
        return loss.risk(model, self.test) - loss.risk(self.best, self.test)


def bilinear_problem(
    n: int,
    shape: tuple[int, int] = (20, 20),
    rank: int = 2,
    *,
    energy: float = 0.8,
    noise: float = 0.1,
    test: int = 200_000,
    seed: int | None = None,
) -> Problem:
    """Return n records with unit rows, `energy` of whose squared length lies in the `rank` directions of X*, whose singular
    values fall evenly and add up to 1.
    """  # noqa: D205 -- one sentence
    chance = np.random.default_rng(seed)
    frames = [np.linalg.qr(chance.standard_normal((size, size)))[0] for size in shape]
    weights = np.arange(rank, 0, -1) * 2.0 / (rank * (rank + 1))
    best = (frames[0][:, :rank] * weights) @ frames[1][:, :rank].T

    def rows(count: int, frame: Floats) -> Floats:
        inside, outside = _units(chance, count, rank), _units(chance, count, len(frame) - rank)
        return np.hstack([np.sqrt(energy) * inside, np.sqrt(1.0 - energy) * outside]) @ frame.T

    def batch(count: int) -> Batch:
        left, right = rows(count, frames[0]), rows(count, frames[1])
        targets: Any = ((left @ best) * right).sum(axis=1) + noise * chance.standard_normal(count)
        return Batch(left, right, targets)

    return Problem(batch(n), batch(test), best)


def _units(chance: np.random.Generator, count: int, size: int) -> Floats:
    drawn = chance.standard_normal((count, size))
    return drawn / np.maximum(np.linalg.norm(drawn, axis=1, keepdims=True), 1e-300)

"""diffprivlib: one value a call; it has no vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from diffprivlib import mechanisms

from sampling import tasks, turns
from sampling.turns import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DELTA = 1e-5
SELECT = "mechanism(epsilon=1, sensitivity=1, utility=scores).randomise()"  # the scores belong to the constructor
_SELECTION = {
    tasks.EXPONENTIAL: (mechanisms.Exponential, tasks.CANDIDATES),
    tasks.PERMUTE_AND_FLIP: (mechanisms.PermuteAndFlip, tasks.FEWER),  # a loop over the candidates: half a minute a million
}


def _gaussian(scale: float) -> mechanisms.Gaussian:
    sensitivity = scale / math.sqrt(2 * math.log(1.25 / DELTA))  # at epsilon 1 its sigma is then the scale
    return mechanisms.Gaussian(epsilon=1, delta=DELTA, sensitivity=sensitivity)


def _discrete_gaussian(scale: float) -> mechanisms.GaussianDiscrete:
    mechanism = mechanisms.GaussianDiscrete(epsilon=1, delta=DELTA, sensitivity=1)
    mechanism._scale = scale  # noqa: SLF001 - it takes no sigma, and its own search would give another
    return mechanism


_NOISE: dict[tuple[str, str], Callable[[float], Any]] = {
    (tasks.LAPLACE, tasks.INTEGERS): lambda scale: mechanisms.Geometric(epsilon=1 / scale, sensitivity=1),
    (tasks.LAPLACE, tasks.REALS): lambda scale: mechanisms.Laplace(epsilon=1 / scale, sensitivity=1),
    (tasks.GAUSSIAN, tasks.INTEGERS): _discrete_gaussian,
    (tasks.GAUSSIAN, tasks.REALS): _gaussian,
}


def _scalar(law: str, kind: str, scale: float) -> Case:
    value = "1" if kind == tasks.INTEGERS else "1.0"

    def prepare() -> dict[str, Any]:
        return {"mechanism": _NOISE[law, kind](scale)}

    statement = f"mechanism.randomise({value})"
    return Case(tasks.SCALARS, tasks.DIFFPRIVLIB, law, kind, scale, 1, statement, prepare)


def _choice(law: str) -> Case:
    mechanism, size = _SELECTION[law]

    def prepare() -> dict[str, Any]:
        return {"mechanism": mechanism, "scores": tasks.scores(size)}

    return Case(tasks.CHOICES, tasks.DIFFPRIVLIB, law, "", 0, size, SELECT, prepare)


def groups() -> Iterator[list[Case]]:
    for scale in tasks.SCALAR_SCALES:
        yield [_scalar(law, kind, scale) for law, kind in _NOISE]
    yield from ([_choice(law)] for law in tasks.SELECTIONS)


if __name__ == "__main__":
    turns.main(groups(), ["diffprivlib"])

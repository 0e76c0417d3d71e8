"""tmlt.core: its exact samplers bare, and inside the measurements that check and add."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tmlt.core.domains.numpy_domains import NumpyFloatDomain
from tmlt.core.measurements import noise_mechanisms
from tmlt.core.random.continuous_gaussian import gaussian
from tmlt.core.random.discrete_gaussian import sample_dgauss
from tmlt.core.random.laplace import laplace

from sampling import tasks, turns
from sampling.turns import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MEASUREMENT: dict[tuple[str, str], Callable[[int], Any]] = {
    (tasks.LAPLACE, tasks.INTEGERS): noise_mechanisms.AddGeometricNoise,
    (tasks.LAPLACE, tasks.REALS): lambda scale: noise_mechanisms.AddLaplaceNoise(NumpyFloatDomain(), scale),
    (tasks.GAUSSIAN, tasks.INTEGERS): lambda scale: noise_mechanisms.AddDiscreteGaussianNoise(scale**2),
    (tasks.GAUSSIAN, tasks.REALS): lambda scale: noise_mechanisms.AddGaussianNoise(NumpyFloatDomain(), scale**2),
}
_BARE: dict[tuple[str, str], tuple[str, Callable[..., Any]]] = {
    (tasks.LAPLACE, tasks.REALS): ("laplace(0.0, scale)", laplace),
    (tasks.GAUSSIAN, tasks.INTEGERS): ("sample_dgauss(scale**2)", sample_dgauss),
    (tasks.GAUSSIAN, tasks.REALS): ("gaussian(scale**2)", gaussian),
}


def _measurement(law: str, kind: str, scale: float) -> Case:
    def prepare() -> dict[str, Any]:
        value = np.int64(1) if kind == tasks.INTEGERS else np.float64(1)
        return {"measurement": _MEASUREMENT[law, kind](round(scale)), "value": value}

    return Case(tasks.SCALARS, tasks.TMLT, law, kind, scale, 1, "measurement(value)", prepare)


def _bare(law: str, kind: str, scale: float) -> Case:
    statement, sampler = _BARE[law, kind]

    def prepare() -> dict[str, Any]:
        return {statement.split("(")[0]: sampler, "scale": scale}

    return Case(tasks.SCALARS, tasks.TMLT, law, kind, scale, 1, statement, prepare)


def groups() -> Iterator[list[Case]]:
    for scale in tasks.SCALAR_SCALES:
        bare = [_bare(law, kind, scale) for law, kind in _BARE]
        yield bare + [_measurement(law, kind, scale) for law, kind in _MEASUREMENT]


if __name__ == "__main__":
    turns.main(groups(), ["tmlt.core"])

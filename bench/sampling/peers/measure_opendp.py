"""opendp: exact integers and reals, in vectors and one by one; noisy max with its two kinds of noise."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import opendp.prelude as dp

from sampling import tasks, turns
from sampling.turns import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

dp.enable_features("contrib")

_MAKE = {
    tasks.LAPLACE: (dp.m.make_laplace, dp.l1_distance),
    tasks.GAUSSIAN: (dp.m.make_gaussian, dp.l2_distance),
}
_SELECTION = {
    tasks.EXPONENTIAL: dp.zero_concentrated_divergence,  # Gumbel noise: the law of the exponential mechanism
    tasks.PERMUTE_AND_FLIP: dp.max_divergence,  # exponential noise: the law of permute-and-flip
}


def _atom(kind: str) -> tuple[Any, str]:
    if kind == tasks.INTEGERS:
        return dp.atom_domain(T="i64"), "i64"
    return dp.atom_domain(T="f64", nan=False), "f64"


def _noise(law: str, kind: str, scale: float, size: int) -> Callable[[], dict[str, Any]]:
    def prepare() -> dict[str, Any]:
        make, distance = _MAKE[law]
        domain, letters = _atom(kind)
        zero = 0 if kind == tasks.INTEGERS else 0.0
        if size == 1:
            return {"measurement": make(domain, dp.absolute_distance(T=letters), scale=scale), "value": zero}
        return {"measurement": make(dp.vector_domain(domain), distance(T=letters), scale=scale), "value": [zero] * size}

    return prepare


def _selection(law: str) -> Callable[[], dict[str, Any]]:
    def prepare() -> dict[str, Any]:
        space = dp.vector_domain(_atom(tasks.REALS)[0]), dp.linf_distance(T="f64")
        measurement = dp.m.make_noisy_max(*space, _SELECTION[law](), scale=2.0)  # epsilon 1, sensitivity 1
        return {"measurement": measurement, "value": tasks.scores(tasks.CANDIDATES)}

    return prepare


def groups() -> Iterator[list[Case]]:
    def case(part: str, law: str, kind: str, scale: float, size: int) -> Case:
        prepare = _noise(law, kind, scale, size)
        return Case(part, tasks.OPENDP, law, kind, scale, size, "measurement(value)", prepare)

    for law, scale in itertools.product(tasks.LAWS, tasks.SCALES):
        yield [case(tasks.VECTORS, law, tasks.INTEGERS, scale, tasks.FEWER)]
    for law in tasks.LAWS:  # one scale: its time hardly depends on it
        yield [case(tasks.VECTORS, law, tasks.REALS, tasks.SIZE_SCALE, tasks.FEWER)]
    for law, scale in itertools.product(tasks.LAWS, tasks.SCALAR_SCALES):
        yield [case(tasks.SCALARS, law, kind, scale, 1) for kind in (tasks.INTEGERS, tasks.REALS)]
    for law in tasks.SELECTIONS:
        yield [Case(tasks.CHOICES, tasks.OPENDP, law, "", 0, tasks.CANDIDATES, "measurement(value)", _selection(law))]


if __name__ == "__main__":
    turns.main(groups(), ["opendp"])

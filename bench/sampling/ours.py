"""curador and NumPy by turns in one process: curador's draws are exact and secret, NumPy's neither.

What is missing from curador is a line with the reason: everything of it is imported where it is used.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sampling import tasks, turns
from sampling.turns import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DRAW = "stream = entropy(); noise.draw(size, stream); stream.erase()"  # a release replaces the key when it is done
DRAW_LEVEL = "stream = entropy(); noise.draw(size, stream, level=True); stream.erase()"
DRAW_AHEAD = "stream = entropy(); noise.several(size, stream); stream.erase()"
DRAW_FIRST = "stream = entropy(); stream.pools, stream.stocks = {}, {}; noise.several(size, stream); stream.erase()"
GUMBEL = "int((scores / 2 + generator.gumbel(size=scores.size)).argmax())"


def _numpy(law: str, scale: float, size: int | None = None) -> tuple[str, Callable[[], dict[str, Any]]]:
    name = "laplace" if law == tasks.LAPLACE else "normal"
    arguments = "0.0, scale" if size is None else "0.0, scale, size"
    return f"generator.{name}({arguments})", lambda: {"generator": np.random.default_rng(), "scale": scale, "size": size}


def _noise(law: str, scale: float | Fraction) -> Any:
    from curador.randomness import noise

    exact = scale if isinstance(scale, Fraction) else Fraction(str(scale))
    return noise.laplace(exact) if law == tasks.LAPLACE else noise.gaussian(exact * exact)


def _sampler(law: str, scale: float, size: int = 1) -> Callable[[], dict[str, Any]]:
    def prepare() -> dict[str, Any]:
        from curador.randomness.entropy import entropy

        return {"noise": _noise(law, scale), "entropy": entropy, "size": size}

    return prepare


def _mechanism(law: str, kind: str, scale: float, size: int = 1) -> Callable[[], dict[str, Any]]:
    def prepare() -> dict[str, Any]:
        import curador as cu

        name = law if kind == tasks.REALS else f"Discrete{law}"
        parameter = {"scale" if law == tasks.LAPLACE else "sigma": scale}
        return {"mechanism": getattr(cu, name)(**parameter, sensitivity=1), "size": size}

    return prepare


def _many(part: str, law: str, scale: float, size: int) -> list[Case]:
    """Return the four ways to many draws at once."""

    def case(tool: str, kind: str, statement: str, prepare: Callable[[], dict[str, Any]]) -> Case:
        return Case(part, tool, law, kind, scale, size, statement, prepare)

    return [
        case(tasks.NUMPY, tasks.REALS, *_numpy(law, scale, size)),
        case(tasks.QUICK, tasks.INTEGERS, DRAW, _sampler(law, scale, size)),
        case(tasks.LEVEL, tasks.INTEGERS, DRAW_LEVEL, _sampler(law, scale, size)),
        case(tasks.RELEASE, tasks.REALS, "mechanism.release_many(0.0, size)", _mechanism(law, tasks.REALS, scale, size)),
    ]


def _short(law: str, scale: float, size: int) -> list[Case]:
    """Return what a release of a few numbers does: the draw, warm and cold, and the whole release."""

    def case(tool: str, kind: str, statement: str, prepare: Callable[[], dict[str, Any]]) -> Case:
        return Case(tasks.SHORT, tool, law, kind, scale, size, statement, prepare)

    return [
        case(tasks.NUMPY, tasks.REALS, *_numpy(law, scale, size)),
        case(tasks.AHEAD, tasks.INTEGERS, DRAW_AHEAD, _sampler(law, scale, size)),
        case(tasks.RELEASE, tasks.INTEGERS, "mechanism.release_many(0, size)", _mechanism(law, tasks.INTEGERS, scale, size)),
        case(tasks.RELEASE, tasks.REALS, "mechanism.release_many(0.0, size)", _mechanism(law, tasks.REALS, scale, size)),
        case(tasks.FIRST, tasks.INTEGERS, DRAW_FIRST, _sampler(law, scale, size)),
    ]


def _scalars(law: str, scale: float) -> list[Case]:
    def case(tool: str, kind: str, statement: str, prepare: Callable[[], dict[str, Any]]) -> Case:
        return Case(tasks.SCALARS, tool, law, kind, scale, 1, statement, prepare)

    found = [
        case(tasks.NUMPY, tasks.REALS, *_numpy(law, scale)),
        case(tasks.POOL, tasks.INTEGERS, "noise.one(entropy())", _sampler(law, scale)),
    ]
    if scale in tasks.SCALAR_SCALES:
        found += [
            case(tasks.RELEASE, kind, f"mechanism.release({value})", _mechanism(law, kind, scale))
            for kind, value in ((tasks.INTEGERS, "1"), (tasks.REALS, "1.0"))
        ]
    return found


def _choices() -> list[Case]:
    size = tasks.CANDIDATES
    values = np.array(tasks.scores(size))

    def mechanism(name: str) -> Callable[[], dict[str, Any]]:
        def prepare() -> dict[str, Any]:
            import curador as cu

            return {"mechanism": getattr(cu, name)(epsilon=1, sensitivity=1), "scores": values}

        return prepare

    def case(tool: str, law: str, statement: str, prepare: Callable[[], dict[str, Any]]) -> Case:
        return Case(tasks.CHOICES, tool, law, "", 0, size, statement, prepare)

    release = "mechanism.release(scores)"
    return [
        case(tasks.NUMPY, tasks.EXPONENTIAL, GUMBEL, lambda: {"generator": np.random.default_rng(), "scores": values}),
        case(tasks.RELEASE, tasks.EXPONENTIAL, release, mechanism("Exponential")),
        case(tasks.RELEASE, tasks.PERMUTE_AND_FLIP, release, mechanism("PermuteAndFlip")),
    ]


def _fresh(law: str, scale: float) -> Callable[[], dict[str, Any]]:
    """Return names for drawing at a scale that nobody asked for before: whatever is kept between calls is of no use."""
    steps = (Fraction(str(scale)) * (1 + Fraction(step, 2**30)) for step in itertools.count(1))

    def prepare() -> dict[str, Any]:
        from curador.randomness.entropy import entropy

        return {"noise": lambda: _noise(law, next(steps)), "entropy": entropy}

    return prepare


def _setup(law: str, scale: float) -> list[Case]:
    first = "stream = entropy(); noise().draw(1, stream); stream.erase()"

    def case(tool: str, statement: str, prepare: Callable[[], dict[str, Any]]) -> Case:
        return Case(tasks.SETUP, tool, law, tasks.INTEGERS, scale, 1, statement, prepare)

    return [case("fresh", first, _fresh(law, scale)), case("again", DRAW, _sampler(law, scale))]


def groups() -> Iterator[list[Case]]:
    """Yield what is timed by turns: one law at one scale and one size, all tools of this process."""
    pairs = list(itertools.product(tasks.LAWS, tasks.SCALES))
    yield from (_many(tasks.VECTORS, law, scale, tasks.VECTOR) for law, scale in pairs)
    for law, size in itertools.product(tasks.LAWS, tasks.SIZE_LIST):
        yield _many(tasks.SIZES, law, tasks.SIZE_SCALE, size)
    yield from (_short(law, scale, size) for (law, scale), size in itertools.product(pairs, tasks.SHORT_LIST))
    yield from (_scalars(law, scale) for law, scale in pairs)
    yield _choices()
    yield from (_setup(law, scale) for law, scale in pairs)


if __name__ == "__main__":
    turns.main(groups(), ["curador", "cryptography"])

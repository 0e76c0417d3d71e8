"""Makes the pictures of the documents: laws of mechanisms, floats of noise, the nuclear ball, figures of the gallery.

python docs/figures/pictures.py            writes all of them (make pictures)
python docs/figures/pictures.py laplace    writes that one
"""

import functools
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nuclear_runs
import numpy as np
import thesis
from examples import played_game
from gallery import GALLERY
from laplace_bits import in_floats, reachable_floats

import curador as cu
from curador.plots.law import laws
from curador.plots.style import style

DOCS = Path(__file__).parents[1]
FOLDER = DOCS / "how-to" / "pictures"
TUTORIAL = DOCS / "tutorial" / "pictures"
EXPLANATION = DOCS / "explanation" / "pictures"
SCORES = [0, 1, 3, 3.5]
AGES = [19, 22, 23, 27, 31, 34, 38, 40, 41, 47, 52, 58, 63, 70, 81]


@dataclass(frozen=True)
class Picture:
    """What is drawn: a mechanism and the inputs of two neighbours."""

    mechanism: object
    one: object
    other: object
    labels: tuple[str, ...] | None = None
    drawn: bool = False
    """Whether the law comes from random draws, so that no two pictures are alike."""

    def __str__(self):
        return f"{self.mechanism!r} at {self.one} and {self.other}" + ("" if self.labels is None else f" {self.labels}")

    def figure(self):
        return cu.plots.law(self.mechanism, self.one, self.other, labels=self.labels)

    def numbers(self):
        """Where each world's law lies on the axis, from 0 to 1, and how high it is: what a stale picture gets wrong."""
        found = laws(self.mechanism, self.one, self.other, labels=self.labels)
        share = np.arange(len(found.places)) / len(found.places)
        return [[float(share @ masses / masses.sum()), float(masses.max())] for masses in found.masses]


PICTURES: dict[str, Any] = {
    "laplace": Picture(cu.Laplace(scale=1, sensitivity=1), 42, 43),
    "gaussian": Picture(cu.Gaussian.calibrate(epsilon=1, delta="1e-6", sensitivity=1), 42, 43),
    "discrete-laplace": Picture(cu.DiscreteLaplace(scale=1, sensitivity=1), 42, 43),
    "discrete-gaussian": Picture(cu.DiscreteGaussian(sigma=2, sensitivity=1), 42, 43),
    "staircase": Picture(cu.Staircase(epsilon=3, sensitivity=1), 42, 43),
    "truncated-laplace": Picture(cu.TruncatedLaplace.calibrate(epsilon=1, delta="0.01", sensitivity=1), 42, 43),
    "randomized-response": Picture(cu.RandomizedResponse(gamma="0.75"), 0, 1, ("no", "yes")),
    "exponential": Picture(cu.Exponential(epsilon=1, sensitivity=1), SCORES, [1, 0, 2, 4.5]),
    "permute-and-flip": Picture(cu.PermuteAndFlip(epsilon=1, sensitivity=1), SCORES, [1, 0, 2, 4.5]),
    "noisy-max": Picture(cu.NoisyMax(epsilon=1, sensitivity=1), SCORES, [1, 0, 2, 4.5]),
    "above-threshold": Picture(
        cu.AboveThreshold(epsilon=1, sensitivity=1, threshold=20), [5, 12, 18, 25, 30], [6, 13, 19, 24, 29], drawn=True
    ),
    "quantile": Picture(
        cu.Quantile(q="0.5", epsilon=1, lower=0, upper=120, adjacency="add_or_remove_one", cells=1201), AGES, [*AGES, 90]
    ),
    "keys": Picture(cu.OptimalKeys(epsilon=1, delta="0.001"), 6, 7),
}


@dataclass(frozen=True)
class Floats:
    """Which floats a noisy 0 and a noisy 1 can be."""

    drawn: bool = False

    def __str__(self):
        return "reachable floats"

    def figure(self):
        return reachable_floats()

    def numbers(self):
        """The lowest and the highest mark of either answer."""
        rows = [in_floats(value, 0.1, 120 * math.ulp(0.1)) for value in (0, 1)]
        return [[float(row[0]), float(row[-1])] for row in rows]


PICTURES["reachable-floats"] = Floats()


@dataclass(frozen=True)
class Ball:
    """A figure of the tutorial on the nuclear ball: which function draws it, and numbers that it shows."""

    draws: str
    shown: Callable[[], list[list[float]]]
    drawn: bool = False

    def __str__(self):
        return f"{self.draws} of thesis.py"

    def figure(self):
        if self.draws != "excess":
            return getattr(thesis, self.draws)()
        nothing, runs = nuclear_runs.read()
        return thesis.excess({NAMES[solver]: found for solver, found in runs.items()}, trivial=nothing)

    def numbers(self):
        return self.shown()


def phase_shares():
    """What directions find at a quarter, a half and the whole of d − 2."""
    return [thesis.shares(dimension, [0.25, 0.5, 1.0]).tolist() for dimension in (10, 100, 1000)]


def needed():
    """Powers of ten of the records that each way to pay needs."""
    return [[math.log10(thesis.records_needed(how))] for how in thesis.NOISES]


def grown():
    """How noise grows, correlated and as it is drawn; to what an eye can see."""
    found = [
        (thesis.root_square(steps, thesis.decay_of(steps)), thesis.ladder_factor(steps)) for steps in (100, 10_000, 100_000)
    ]
    return [[round(one, 3) for one in pair] for pair in found]


def runs_reached():
    """The mean excess of every solver at every number of records."""
    _, runs = nuclear_runs.read()
    return [[float(np.mean(values)) for values in found.values()] for found in runs.values()]


NAMES = {
    "thesis": "the thesis, as printed",
    "stochastic": "composed at once",
    "toeplitz": "correlated noise",
    "tree": "tree",
    "frank_wolfe": "Frank–Wolfe, all records",
    "pgd": "projected gradient, all records",
}
"""What the figure calls the solvers."""

BALL = {
    "phases": Ball("phases", phase_shares),
    "ceiling": Ball("ceiling", lambda: [thesis.shares(dimension, [0.25]).tolist() for dimension in (3, 10, 100, 1000)]),
    "needs": Ball("needs", needed),
    "factors": Ball("factors", grown),
    "runs": Ball("excess", runs_reached),
}
PICTURES |= BALL


@dataclass(frozen=True)
class Listed:
    """A figure of the gallery; its numbers are those of the lines that it has."""

    entry: str
    drawn: bool = False

    def __str__(self):
        return f"{self.entry} of the gallery"

    def figure(self):
        return _listed(self.entry)

    def numbers(self):
        """The first, middle and last height of every line that a key explains, where they are numbers."""
        return [heights for axes in self.figure().axes for line in axes.get_lines() if (heights := _heights(line))]


@dataclass(frozen=True)
class Played(Listed):
    """The game, whose lines are no two times the same: true alarms at a few rates, had and proved."""

    drawn: bool = True

    def numbers(self):
        lines = {line.get_label(): line for line in self.figure().axes[0].get_lines()}
        shown = [lines["the adversary"], lines["proved: nobody gets above"]]
        curves = [np.asarray(line.get_xydata(), np.float64).T for line in shown]
        return [np.interp([0.1, 0.3, 0.5, 0.8], rates, heights).tolist() for rates, heights in curves]


@dataclass(frozen=True)
class Table(Listed):
    """The table of properties: how many claims it has, and how many say no."""

    def numbers(self):
        marks = [text.get_text()[0] for text in self.figure().axes[0].texts]
        return [[marks.count("✓"), marks.count("✗")]]


@functools.cache
def _listed(entry):
    """Drawn once: some of them take seconds."""
    return cu.plots.game(played_game(200_000)) if entry == "game" else GALLERY[entry]()


def _heights(line):
    values = np.asarray(line.get_ydata(), np.float64)
    values = values[np.isfinite(values)]
    if line.get_label().startswith("_") or not len(values):
        return []
    return [float(values[place]) for place in (0, len(values) // 2, -1)]


SHOWN = {
    "laplace-laws": Listed("laplace-laws"),
    "renyi-budgets": Listed("renyi-budgets"),
    "properties": Table("properties"),
    "compositions": Listed("compositions"),
    "composed-deltas": Listed("composed-deltas"),
    "tradeoffs": Listed("tradeoffs"),
    "epsilon-delta": Listed("epsilon-delta"),
    "posteriors": Listed("posteriors"),
    "game": Played("game"),
    "noise": Listed("noise"),
    "key-curves": Listed("keys"),
    "local-errors": Listed("local-errors"),
    "shuffle": Listed("shuffle"),
    "budget": Listed("budget"),
}
PICTURES |= SHOWN


def folder_of(name):
    """Where the picture lies."""
    return TUTORIAL if name in BALL else EXPLANATION if name in SHOWN else FOLDER


def description(name):
    """What the picture shows, for its metadata."""
    picture = PICTURES[name]
    return json.dumps({"shows": str(picture), "numbers": picture.numbers()}, ensure_ascii=False)


def write(name, folder=None):
    """Save the picture with what it shows in its metadata."""
    with style():
        path = (folder_of(name) if folder is None else folder) / f"{name}.svg"
        PICTURES[name].figure().savefig(path, metadata={"Date": None, "Description": description(name)})
    return path


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PICTURES:
        folder_of(wanted).mkdir(parents=True, exist_ok=True)
        print(write(wanted).relative_to(DOCS.parent))

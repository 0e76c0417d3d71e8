"""Makes the pictures of docs/how-to: the law of each page's mechanism in two neighbouring worlds, and the floats of noise.

python tests/docs/pictures.py            writes all of them (make pictures)
python tests/docs/pictures.py laplace    writes that one
"""

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import curador as cu
from curador.plots.laplace_bits import in_floats
from curador.plots.law import laws
from curador.plots.style import style

FOLDER = Path(__file__).parents[2] / "docs" / "how-to" / "pictures"
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


PICTURES = {
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
        return cu.plots.reachable_floats()

    def numbers(self):
        """The lowest and the highest mark of either answer."""
        rows = [in_floats(value, 0.1, 120 * math.ulp(0.1)) for value in (0, 1)]
        return [[float(row[0]), float(row[-1])] for row in rows]


PICTURES["reachable-floats"] = Floats()


def description(name):
    """What the picture shows, for its metadata."""
    picture = PICTURES[name]
    return json.dumps({"shows": str(picture), "numbers": picture.numbers()}, ensure_ascii=False)


def write(name, folder=FOLDER):
    """Save the picture with what it shows in its metadata."""
    with style():
        path = folder / f"{name}.svg"
        PICTURES[name].figure().savefig(path, metadata={"Date": None, "Description": description(name)})
    return path


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for wanted in sys.argv[1:] or PICTURES:
        print(write(wanted).relative_to(FOLDER.parents[2]))

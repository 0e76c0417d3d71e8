"""What is drawn, as numbers every tool reads: plain Python, for every environment.

vectors   a million draws in one call, at five scales; a peer without vectors of that speed draws fewer, scaled
sizes     1 to 100,000 draws in one call, at one scale
short     10 to 1,000 draws in one call, at five scales, as releases draw them: ahead, in level mode
scalars   one draw a call
choices   one candidate of a million, by the exponential mechanism and by permute-and-flip
set-up    the first draw at a scale never seen before
"""

from __future__ import annotations

import random

VECTORS, SIZES, SHORT, SCALARS, CHOICES, SETUP = PARTS = ("vectors", "sizes", "short", "scalars", "choices", "set-up")

LAPLACE, GAUSSIAN = LAWS = ("Laplace", "Gaussian")
INTEGERS, REALS = "integers", "reals"

NUMPY = "NumPy"
QUICK, LEVEL, RELEASE, POOL = "curador, quick", "curador, level", "curador, release", "curador, pool"
AHEAD, FIRST = "curador, drawn ahead", "curador, nothing drawn ahead"
OPENDP, DIFFPRIVLIB, TMLT = "opendp", "diffprivlib", "tmlt.core"

SCALES = (1e-3, 1.0, 1e3, 1e6, 1e12)  # of Laplace; of the Gaussian, sigma
VECTOR = 10**6
FEWER = 20_000  # draws in one call where a million would take a minute

SIZE_LIST = (1, 10, 100, 1_000, 10_000, 100_000)
SIZE_SCALE = 1e3

SHORT_LIST = (10, 30, 100, 300, 1_000)

SCALAR_SCALES = (1.0, 1e3)

EXPONENTIAL, PERMUTE_AND_FLIP = SELECTIONS = ("exponential mechanism", "permute-and-flip")
CANDIDATES = 10**6


def scores(count: int) -> list[float]:
    """Return scores to choose among, the same for every tool: normal, ten sensitivities wide."""
    source = random.Random(1)  # noqa: S311 - data, not noise
    return [source.gauss(0, 10) for _ in range(count)]

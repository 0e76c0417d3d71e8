"""The law of a mechanism in two neighbouring worlds, and the evidence that an output gives: the picture of privacy itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter
from curador.mechanisms.above_threshold import AboveThreshold
from curador.mechanisms.additive import IntegerNoise, RealNoise
from curador.mechanisms.exponential import Exponential, PermuteAndFlip
from curador.mechanisms.gaussian import DiscreteGaussian, Gaussian
from curador.mechanisms.keys import GaussianKeys, LaplaceKeys
from curador.mechanisms.noisy_max import NoisyMax
from curador.mechanisms.optimal_keys import OptimalKeys
from curador.mechanisms.quantile import Quantile
from curador.mechanisms.randomized_response import RandomizedResponse
from curador.plots.style import BLUE, DARK, GREY, RED, figure, key_above, style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.numerics.rounding import FloatArray

_POINTS = 601
_PIECES = 400


@dataclass(frozen=True, slots=True)
class Laws:
    """Where the outputs lie, how likely each is in either world, and how to say so."""

    places: FloatArray
    masses: tuple[FloatArray, FloatArray]
    axis: str
    smooth: bool = False
    worlds: tuple[str, str] = ("one world", "a neighbour")
    labels: tuple[str, ...] | None = None
    bar: tuple[float, float] | None = None


def law(mechanism: object, one: Any, other: Any, *, labels: Sequence[str] | None = None) -> Figure:
    """Return two panels: the probabilities of the outputs for two neighbouring inputs, and the logarithm of their ratio.

    The second panel shows the ε that the mechanism claims, where it claims a pure one: no output's evidence goes beyond.
    Outputs that only one of the worlds can give are shaded there in its colour: they are what a δ pays for.
    """
    found = laws(mechanism, one, other, labels=labels)
    with style():
        drawn, (top, bottom) = figure(2, height=4.4, ratios=(2.2, 1.0))
        _masses(top, found)
        top.set_title(repr(mechanism), fontsize=9)
        key_above(top)
        _evidence(bottom, found, mechanism)
        bottom.set_xlabel(found.axis)
        if found.labels is not None:
            bottom.set_xticks(found.places, found.labels)
    return drawn


def _masses(axes: Axes, found: Laws) -> None:
    for masses, colour, name, shift in zip(found.masses, (BLUE, RED), found.worlds, (-0.2, 0.2), strict=True):
        if found.smooth:
            axes.plot(found.places, masses, color=colour, label=name, linestyle="-" if shift < 0 else "--")
            outline = np.pad(found.places, 1, mode="edge")  # one closed line: half the points of fill_between
            axes.fill(outline, np.pad(masses, 1), color=colour, alpha=0.12, linewidth=0)
        else:
            hatch = None if shift < 0 else "///"
            axes.bar(
                found.places + shift, masses, width=0.38, color=colour, alpha=0.85, label=name, hatch=hatch, edgecolor="white"
            )
    if found.bar is not None:
        axes.axvspan(*found.bar, color=GREY, alpha=0.10, label="95 % of the first")
    axes.set_ylabel("density" if found.smooth else "probability")
    axes.set_ylim(bottom=0.0)


def _evidence(axes: Axes, found: Laws, mechanism: object) -> None:
    first, second = found.masses
    both = (first > 0) & (second > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(both, np.log(first) - np.log(second), np.nan)
    if found.smooth:
        axes.plot(found.places, ratio, color=GREY)
    else:
        axes.bar(found.places, ratio, width=0.5, color=GREY)
    claimed = getattr(getattr(mechanism, "loss", None), "pure_epsilon", None)
    if claimed is not None and claimed > 0:
        for sign in (-1.0, 1.0):
            axes.axhline(sign * float(claimed), color=RED, linewidth=1.0, linestyle=":")
        axes.set_ylim(-1.35 * float(claimed), 1.35 * float(claimed))
        _remark(axes, f"ε = {float(claimed):.4g}")
    if isinstance(mechanism, (Gaussian, DiscreteGaussian)):
        _remark(axes, "grows without bound: δ pays for the ends")
    _one_sided(axes, found)
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.set_ylabel("log ratio")


def _one_sided(axes: Axes, found: Laws) -> None:
    """Shade the outputs that one world can give and the other cannot."""
    first, second = found.masses
    half = float(np.min(np.diff(found.places))) / 2
    seen = False
    for only, colour in (((first > 0) & (second == 0), BLUE), ((second > 0) & (first == 0), RED)):
        edges = np.flatnonzero(np.diff(np.pad(only.astype(np.int8), 1)))
        for start, end in zip(edges[::2], edges[1::2] - 1, strict=True):
            axes.axvspan(
                float(found.places[start]) - half, float(found.places[end]) + half, color=colour, alpha=0.25, linewidth=0
            )
            seen = True
    if seen:
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.3 * (high - low))  # room for the words
        _remark(axes, "shaded: only one world gives these, δ pays")


def _remark(axes: Axes, text: str) -> None:
    axes.annotate(text, (0.995, 0.98), xycoords="axes fraction", ha="right", va="top", fontsize=8, color=DARK)


def laws(mechanism: object, one: Any, other: Any, *, labels: Sequence[str] | None = None) -> Laws:
    """Return the exact law of the mechanism's output for two inputs, or that of many draws where there is no closed form."""
    match mechanism:
        case RealNoise():
            return _real(mechanism, float(one), float(other))
        case IntegerNoise():
            return _whole(mechanism, int(one), int(other))
        case RandomizedResponse():
            return _answers(mechanism, int(one), int(other), labels)
        case Exponential() | PermuteAndFlip() | NoisyMax():
            masses = (mechanism.probabilities(one), mechanism.probabilities(other))
            return _laws_of_labels(masses, labels, "candidate")
        case AboveThreshold():
            return _first_hits(mechanism, one, other, labels)
        case Quantile():
            return _quantiles(mechanism, one, other)
        case GaussianKeys() | LaplaceKeys() | OptimalKeys():
            return _keys(mechanism, int(one), int(other))
        case _:
            raise InvalidParameter.must_be("mechanism", "one of curador's", type(mechanism).__name__)


def _real(mechanism: RealNoise, one: float, other: float) -> Laws:
    grid = float(getattr(mechanism, "grid"))  # noqa: B009 -- every real-valued mechanism has one
    wide = 1.25 * mechanism.interval("0.99").upper + abs(one - other)
    places = np.linspace(min(one, other) - wide, max(one, other) + wide, _POINTS)

    def density(value: float) -> FloatArray:
        steps = [round((place - value) / grid) for place in places.tolist()]
        return np.array([mechanism.probability(step) for step in steps]) / grid

    half = mechanism.interval("0.95").upper
    return Laws(
        places,
        (density(one), density(other)),
        "released value",
        smooth=True,
        worlds=_say_inputs(one, other),
        bar=(one - half, one + half),
    )


def _say_inputs(one: float, other: float) -> tuple[str, str]:
    return f"one world: {one:g}", f"a neighbour: {other:g}"


def _whole(mechanism: IntegerNoise, one: int, other: int) -> Laws:
    wide = math.ceil(1.2 * mechanism.interval("0.99").upper) + 1
    places = np.arange(min(one, other) - wide, max(one, other) + wide + 1, dtype=np.float64)
    first, second = (np.array([mechanism.probability(int(place) - value) for place in places]) for value in (one, other))
    return Laws(places, (first, second), "released integer", worlds=_say_inputs(one, other))


def _answers(mechanism: RandomizedResponse, one: int, other: int, labels: Sequence[str] | None) -> Laws:
    lie = (1.0 - mechanism.gamma) / (mechanism.categories - 1)
    rows = np.full((2, mechanism.categories), lie)
    rows[0, one] = rows[1, other] = mechanism.gamma
    return _laws_of_labels((rows[0], rows[1]), labels, "answer given")


def _laws_of_labels(masses: tuple[FloatArray, FloatArray], labels: Sequence[str] | None, axis: str) -> Laws:
    names = tuple(labels) if labels is not None else tuple(str(place) for place in range(len(masses[0])))
    return Laws(np.arange(len(masses[0]), dtype=np.float64), masses, axis, labels=names)


def _first_hits(mechanism: AboveThreshold, one: Any, other: Any, labels: Sequence[str] | None, draws: int = 200_000) -> Laws:
    """The share of draws whose first hit is at each question, and whose none is."""

    def shares(values: Any) -> FloatArray:
        hits = np.asarray(mechanism.release_many(values, draws)) == 1
        first = np.where(hits.any(axis=1), hits.argmax(axis=1), hits.shape[1])
        return np.bincount(first, minlength=hits.shape[1] + 1) / draws

    names = [*(labels if labels is not None else (str(place) for place in range(len(one)))), "none"]
    return _laws_of_labels((shares(one), shares(other)), names, f"first question above ({draws:,} draws)")


def _quantiles(mechanism: Quantile, one: Any, other: Any) -> Laws:
    """The density between the bounds, the points of the grid gathered into a few hundred pieces."""
    points = mechanism.points
    edges = np.linspace(0, len(points), min(len(points), _PIECES) + 1).astype(np.int64)[:-1]
    sizes = np.diff(np.append(edges, len(points)))
    places = np.add.reduceat(points, edges) / sizes
    step = (points[-1] - points[0]) / max(len(points) - 1, 1)

    def density(values: Any) -> FloatArray:
        return np.add.reduceat(mechanism.probabilities(values), edges) / (sizes * step)

    return Laws(places, (density(one), density(other)), "released quantile", smooth=True)


def _keys(mechanism: GaussianKeys | LaplaceKeys | OptimalKeys, one: int, other: int) -> Laws:
    """Shown or not, for a key with that many units."""
    chance = mechanism.pass_probability
    first, second = (np.array([1.0 - chance(units), chance(units)]) for units in (one, other))
    return _laws_of_labels((first, second), ("hidden", "shown"), f"a key with {one} or {other} units")

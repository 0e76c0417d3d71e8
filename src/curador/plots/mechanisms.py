"""Figures of mechanisms side by side: their error bars by ε, and how many people a key needs to be shown.

noise_widths   how far off an answer may be, against what it costs: the 95 % error bar of each kind of noise, by ε.

key_curves   how many people must hold a key before it is shown: the probability of being shown, by mechanism.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from curador.errors import require
from curador.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Staircase, TruncatedLaplace
from curador.mechanisms.keys import GaussianKeys, LaplaceKeys
from curador.mechanisms.optimal_keys import OptimalKeys
from curador.numerics.exact import open_probability, whole
from curador.plots.style import GREY, MARKS, figure, key_beside, stroke, style

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from curador.numerics.exact import Number
    from curador.numerics.rounding import FloatArray


# ---- noise widths ----------------------------------------------------------------------------------------------------------


EPSILONS = ("0.1", "0.15", "0.25", "0.4", "0.6", "1", "1.5", "2.5", "4", "6")

_EPSILON_TICKS = (0.1, 0.2, 0.5, 1, 2, 5)
_HEIGHTS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


def kinds(delta: Number) -> dict[str, Callable[[str], Any]]:
    """Return, by name, what makes the mechanism of an ε, for an answer that one person moves by at most 1."""
    said = f"δ = {float(open_probability(delta, 'delta')):g}".replace("e-0", "e-")
    return {
        "Laplace": lambda epsilon: Laplace.calibrate(epsilon=epsilon, sensitivity=1),
        f"Gaussian, {said}": lambda epsilon: Gaussian.calibrate(epsilon=epsilon, delta=delta, sensitivity=1),
        "staircase": lambda epsilon: Staircase(epsilon=epsilon, sensitivity=1),
        f"truncated Laplace, {said}": lambda epsilon: TruncatedLaplace.calibrate(epsilon=epsilon, delta=delta, sensitivity=1),
        "discrete Laplace": lambda epsilon: DiscreteLaplace.calibrate(epsilon=epsilon, sensitivity=1),
        f"discrete Gaussian, {said}": lambda epsilon: DiscreteGaussian.calibrate(epsilon=epsilon, delta=delta, sensitivity=1),
    }


def widths(make: Callable[[str], Any], epsilons: Sequence[str], confidence: Number = "0.95") -> FloatArray:
    """Return the half width of the error bar at each ε."""
    return np.array([float(make(epsilon).interval(confidence).upper) for epsilon in epsilons])


def noise_widths(epsilons: Sequence[str] = EPSILONS, *, delta: Number = "1e-6", confidence: Number = "0.95") -> Figure:
    """Return the half width of the error bar of one release against ε by kind of noise, above; relative to Laplace's, below.

    Whole numbers stand where noise is whole; 0 of them is off the logarithmic axis and not drawn.
    """
    require(len(epsilons) > 1, "epsilons", "two or more", epsilons)
    share = f"{100 * float(open_probability(confidence, 'confidence')):.6g} %"
    places = np.array([float(epsilon) for epsilon in epsilons])
    with style():
        drawn, (above, below) = figure(2, height=5.2, ratios=(1.6, 1.0))
        rows = {name: widths(make, epsilons, confidence) for name, make in kinds(delta).items()}
        first = next(iter(rows.values()))
        for place, (name, reach) in enumerate(rows.items()):
            shown = np.where(reach > 0, reach, np.nan)
            look: dict[str, Any] = {"marker": MARKS[place], "markersize": 3.5, "linewidth": 1.4, **stroke(place)}
            above.plot(places, shown, label=name, **look)
            below.plot(places, shown / first, **look)
        above.set_yscale("log")
        _ticks(above.yaxis, _HEIGHTS)
        above.set_ylabel(f"± of {share} of releases")
        above.set_title("The error bar of one answer that a person moves by 1", fontsize=10)
        below.set_ylim(bottom=0.0)
        below.set_ylabel("times Laplace’s")
        below.set_xscale("log")
        _ticks(below.xaxis, [one for one in _EPSILON_TICKS if places.min() <= one <= places.max()])
        below.set_xlabel("privacy loss ε of the release")
        key_beside(above)
    return drawn


def _ticks(axis: Axis, places: Sequence[float]) -> None:
    axis.set_ticks(list(places), [f"{place:g}" for place in places])
    axis.set_ticks([], minor=True)


# ---- key curves ------------------------------------------------------------------------------------------------------------


Selection: TypeAlias = OptimalKeys | LaplaceKeys | GaussianKeys


def selections(*, epsilon: Number = 1, delta: Number = "1e-6", keys: Number = 1) -> dict[str, Selection]:
    """Return the three ways to choose keys at one (ε, δ)."""
    return {
        "optimal": OptimalKeys(epsilon=epsilon, delta=delta, keys=keys),
        "Laplace and threshold": LaplaceKeys(epsilon=epsilon, delta=delta, keys=keys),
        "Gaussian and threshold": GaussianKeys.calibrate(epsilon=epsilon, delta=delta, keys=keys),
    }


def chances(selection: Selection, most: int) -> FloatArray:
    """Return the probability that a key is shown, for 0, 1, …, `most` units that hold it."""
    return np.array([selection.pass_probability(units) for units in range(most + 1)])


def key_curves(
    selections_by_name: Mapping[str, Selection] | None = None,
    *,
    epsilon: Number = 1,
    delta: Number = "1e-6",
    keys: Number = 1,
    most: int = 40,
) -> Figure:
    """Return the probability that a key is shown against the number of units that hold it; thresholds are thin lines.

    selections_by_name  what is drawn; without, the three ways at (epsilon, delta) for units that hold at most `keys` keys
    """
    last = whole(most, "most")
    shown = selections(epsilon=epsilon, delta=delta, keys=keys) if selections_by_name is None else selections_by_name
    values: list[object] = list(shown.values())
    good = bool(values) and all(isinstance(value, (OptimalKeys, LaplaceKeys, GaussianKeys)) for value in values)
    require(good, "selections_by_name", "selections of keys by name", selections_by_name)
    units = np.arange(last + 1)
    with style():
        drawn, (axes,) = figure(height=3.6)
        for place, (name, selection) in enumerate(shown.items()):
            look = stroke(place)
            every = max(1, last // 20)
            axes.plot(
                units,
                chances(selection, last),
                label=name,
                marker=MARKS[place],
                markersize=3.5,
                markevery=every,
                linewidth=1.5,
                **look,
            )
            threshold = getattr(selection, "threshold", None)
            if threshold is not None and threshold <= last:
                axes.axvline(float(threshold), linewidth=0.9, **look)
        axes.axhline(0.5, color=GREY, linewidth=0.7)
        axes.set_xlim(0, last)
        axes.set_ylim(0.0, 1.02)
        axes.set_xlabel("people who hold the key")
        axes.set_ylabel("probability that it is shown")
        if selections_by_name is None:
            said = f"{float(str(delta)):g}".replace("e-0", "e-")
            axes.set_title(f"Private keys at ε = {epsilon}, δ = {said}; one person holds at most {keys}", fontsize=10)
        key_beside(axes)
    return drawn

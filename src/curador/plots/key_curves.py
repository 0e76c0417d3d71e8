"""How many people must hold a key before it is shown: the probability of being shown, by mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from curador.errors import require
from curador.mechanisms.keys import GaussianKeys, LaplaceKeys, OptimalKeys
from curador.numerics.exact import whole
from curador.plots.style import GREY, MARKS, figure, key_beside, stroke, style

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from curador.numerics.exact import Number
    from curador.numerics.rounding import FloatArray

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
    good = bool(values) and all(isinstance(one, (OptimalKeys, LaplaceKeys, GaussianKeys)) for one in values)
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

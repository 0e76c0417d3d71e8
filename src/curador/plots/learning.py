"""Figures of learners: how a fit went, which components stand above the noise, and what ε buys.

All that is drawn was released: a figure of a fitted estimator costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter
from curador.plots.style import BLUE, CYCLE, DARK, GREY, MARKS, PATTERNS, RED, figure, key_above, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.numerics.rounding import FloatArray

_MOST_PANELS = 6
_FLAT = 1e-12
_WIDE = 30


def convergence(estimator: object) -> Figure:
    """Return a panel for each quantity that a fitted learner kept of its steps (`history_`): private ones only.

    What noise alone would show (`noise_floor`) is drawn into the panel of what it is noise on (`gradient_norm`). A quantity
    that is above 0 and spans more than a factor of 30 has a logarithmic axis.
    """
    found = history(estimator)
    steps = found.pop("step", None) if len(found) > 1 else None
    floor = found.pop("noise_floor") if {"noise_floor", "gradient_norm"} <= set(found) else None
    shown = list(found.items())[:_MOST_PANELS]
    with style():
        drawn, panels = figure(len(shown), height=1.1 + 1.25 * len(shown))
        for place, (axes, (name, values)) in enumerate(zip(panels, shown, strict=True)):
            colour = CYCLE[place % len(CYCLE)]
            _series(axes, steps, values, color=colour, marker=MARKS[place % len(MARKS)], markersize=4)
            if name == "gradient_norm" and floor is not None:
                _series(axes, steps, floor, color=RED, linestyle="--", linewidth=1.4, label="noise alone")
                _scale_axis(axes, np.concatenate([values, floor]))
            else:
                _scale_axis(axes, values)
            axes.set_ylabel(name.replace("_", " "), fontsize=9)
        panels[-1].set_xlabel("step")
        _whole_steps(panels[-1])
        panels[0].set_title(f"{type(estimator).__name__}: released quantities, step by step", fontsize=9)
        for axes in panels:
            if axes.get_legend_handles_labels()[1]:
                key_above(axes)
    return drawn


def _series(axes: Axes, steps: FloatArray | None, values: FloatArray, **look: Any) -> None:
    own = steps if steps is not None and len(steps) == len(values) else np.arange(len(values), dtype=np.float64)
    axes.plot(own, values, **look)


def _scale_axis(axes: Axes, values: FloatArray) -> None:
    if values.min() > 0 and values.max() > _WIDE * values.min():
        axes.set_yscale("log")
    elif np.ptp(values) <= _FLAT * max(1.0, float(np.abs(values).max())):
        axes.set_ylim(*_around(float(values[0])))


def history(estimator: object) -> dict[str, FloatArray]:
    """Return the quantities of `history_` by name: it holds a mapping for each step, or a sequence for each name."""
    kept: Any = getattr(estimator, "history_", None)
    rule = "fitted, with a history of numbers"
    if isinstance(kept, Mapping):
        series = {str(name): values for name, values in kept.items()}
    elif isinstance(kept, Sequence) and kept and all(isinstance(one, Mapping) for one in kept):
        series = {str(name): [one[name] for one in kept if name in one] for name in kept[0]}
    else:
        raise InvalidParameter.must_be("estimator", rule, type(estimator).__name__)
    found: dict[str, FloatArray] = {}
    for name, values in series.items():
        try:
            numbers = np.asarray(values, np.float64)
        except (TypeError, ValueError):
            continue
        if numbers.ndim == 1 and numbers.size and np.isfinite(numbers).all():
            found[name] = numbers
    if not found:
        raise InvalidParameter.must_be("estimator", rule, type(estimator).__name__)
    return found


def spectrum(pca: object) -> Figure:
    """Return the variances along the components of a fitted PrivatePCA, against the edge of what noise alone would show.

    Bars above the edge are signal; the mark on a bar is its variance with the noise taken out.
    """
    values: Any = getattr(pca, "spectrum_", None)
    edge: Any = getattr(pca, "noise_edge_", None)
    if values is None or edge is None or getattr(pca, "explained_variance_", None) is None:
        raise InvalidParameter.must_be("pca", "a fitted PrivatePCA", type(pca).__name__)
    fitted: Any = pca
    released = np.asarray(values, np.float64)
    explained = np.asarray(fitted.explained_variance_, np.float64)
    signal = released > float(edge)
    places = np.arange(1, len(released) + 1)
    with style():
        drawn, (axes,) = figure(height=3.2)
        if signal.any():
            axes.bar(places[signal], released[signal], color=BLUE, width=0.8, label="above the noise")
        if not signal.all():
            axes.bar(places[~signal], released[~signal], color=GREY, alpha=0.55, width=0.8, label="not told from noise")
        axes.axhline(float(edge), color=RED, linestyle="--", linewidth=1.4, label=f"noise edge {float(edge):.3g}")
        axes.plot(
            places[: len(explained)],
            explained,
            linestyle="none",
            marker="D",
            color=DARK,
            markersize=4,
            label="explained variance",
        )
        axes.axhline(0.0, color=GREY, linewidth=0.8)
        axes.set_xlabel("component")
        axes.set_xlim(0.4, len(released) + 0.6)
        axes.set_ylabel("variance")
        _whole_steps(axes)
        axes.set_title(_spectrum_title(fitted, int(np.count_nonzero(signal))), fontsize=9)
        key_above(axes, columns=2)
    return drawn


def _spectrum_title(pca: Any, many: int) -> str:
    said = f"{many} component{'' if many == 1 else 's'} above the noise"
    card = getattr(pca, "privacy_", None)
    if card is None:
        return said
    cost = f"ε = {card.epsilon:.4g}" + (f", δ = {card.delta:.3g}" if card.delta else "")
    return f"{card.method}, {cost}: {said}"


def lost_variance(epsilons: Sequence[float], losses: Mapping[str, Any], *, target: float | None = None) -> Figure:
    """Return the share of variance that private components lose, against ε, one line for each name.

    losses  by name: one number for each ε, or rows of them, one row a run; runs are drawn as their mean and its 95 % interval
    target  a level to draw
    """
    places = np.asarray(epsilons, np.float64)
    if places.ndim != 1 or not places.size or not (np.isfinite(places).all() and (places > 0).all()):
        raise InvalidParameter.must_be("epsilons", "positive numbers", epsilons)
    if not losses:
        raise InvalidParameter.must_be("losses", "losses by name", losses)
    runs = {name: _runs(name, values, len(places)) for name, values in losses.items()}
    with style():
        drawn, (axes,) = figure(height=3.4)
        for place, (name, values) in enumerate(runs.items()):
            _line(axes, places, values, name, place)
        if target is not None:
            axes.axhline(target, color=DARK, linestyle=":", linewidth=1.2)
            axes.annotate(
                f"target {target:g}", (0.005, target), xycoords=("axes fraction", "data"), ha="left", va="bottom", fontsize=8
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("privacy loss ε")
        axes.set_ylabel("share of variance lost")
        axes.set_xticks(places, [f"{one:g}" for one in places])
        axes.minorticks_off()
        axes.set_title("What private components lose, by what they cost", fontsize=9)
        key_above(axes)
    return drawn


def _line(axes: Axes, places: FloatArray, values: FloatArray, name: str, place: int) -> None:
    colour, mark, pattern = CYCLE[place % len(CYCLE)], MARKS[place % len(MARKS)], PATTERNS[place % len(PATTERNS)]
    mean = values.mean(axis=0)
    if len(values) == 1:
        axes.plot(places, mean, color=colour, marker=mark, linestyle=pattern, label=name)
        return
    half = 1.96 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
    low = np.minimum(half, mean * 0.9)  # a logarithmic axis has no room for 0
    axes.errorbar(
        places, mean, yerr=np.stack([low, half]), color=colour, marker=mark, linestyle=pattern, capsize=3, label=name
    )


def _runs(name: str, values: Any, many: int) -> FloatArray:
    try:
        found = np.atleast_2d(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        found = np.zeros((0, 0))
    if found.ndim != 2 or not len(found) or found.shape[1] != many or not (np.isfinite(found).all() and (found >= 0).all()):
        raise InvalidParameter.must_be(f"losses[{name!r}]", f"runs of {many} losses of at least 0", np.shape(values))
    return np.maximum(found, _FLAT)


def _around(value: float) -> tuple[float, float]:
    return (0.0, 2.0 * value) if value > 0 else (value - 1.0, value + 1.0)


def _whole_steps(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))

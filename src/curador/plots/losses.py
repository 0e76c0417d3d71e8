"""Figures of losses: ε against δ, trade-off functions, and what many releases cost together.

Each is of one loss, several by name, or an example.

epsilon_delta   ε against δ: what is proved from above, what is attained from below, and what each reading proves.

tradeoffs   trade-off functions: of the wrong alarms that an adversary allows himself, how many true ones he gets at most.

compositions, composed_deltas   what many releases cost together, by every way to account for them.

After the case studies of [Mir17, Sec. VI]: randomized response, Laplace and Gaussian noise, each released n times. Parameters
are ours: answers true with probability 0.52, scale 20, deviation 20, sensitivity 1, δ = 10⁻⁶.

    sum               Σ ε; for Gaussian noise each release gets δ/n
    advanced          the least of the sum and of the theorem of [DRV10]; for Gaussian noise each release gets δ/2n
    Rényi, 13 orders  the grid of orders and the conversion of [Mir17]
    zCDP              ρ adds up, converted once [BS16], [CKS20]
    Rényi             all orders, the better conversion [CKS20]
    certified         `Loss.epsilon`, the least of all that is proved: here the numerical reading, exact to many digits
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from curador.errors import InvalidParameter, require
from curador.mechanisms.randomized_response import RandomizedResponse
from curador.numerics.exact import Number, open_probability, whole
from curador.plots.style import (
    BLUE,
    DARK,
    GREEN,
    GREY,
    ORANGE,
    PATTERNS,
    RED,
    figure,
    key_below,
    key_beside,
    powers,
    side_by_side,
    stroke,
    style,
)
from curador.privacy import compose, convert
from curador.privacy.loss import Loss
from curador.privacy.losses import Approx, BoundedRange, GaussianLoss, LaplaceLoss, Pure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.numerics.rounding import FloatArray


# ---- subjects --------------------------------------------------------------------------------------------------------------


Losses: TypeAlias = Mapping[str, Loss] | Loss | None

_LONGEST = 60


def losses_by_name(losses: object, example: Callable[[], Mapping[str, Loss]]) -> Mapping[str, Loss]:
    """Return losses by name: those given, one under its own words, or the example for None; all else is refused."""
    if losses is None:
        return example()
    if isinstance(losses, Loss):
        words = repr(losses)
        return {words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…": losses}
    if isinstance(losses, Mapping):
        found = cast("Mapping[Any, Any]", losses)
        if found and all(isinstance(one, Loss) for one in found.values()):
            return {str(name): one for name, one in found.items()}
    raise InvalidParameter.must_be("losses", "a loss, or losses by name", losses)


# ---- epsilon delta ---------------------------------------------------------------------------------------------------------


_VISIBLE = 0.005
"""Share of ε from which the two ends of the band are two lines."""

EXPONENTS = tuple(range(-12, 0))
"""The δ of the horizontal axis are these powers of ten."""

_READINGS = (("renyi", "Rényi", RED, PATTERNS[1]), ("basic", "sum of ε", ORANGE, PATTERNS[3]))


@dataclass(frozen=True, slots=True)
class Curves:
    """ε at each δ: certified ends, and every reading that speaks."""

    deltas: FloatArray
    lower: FloatArray
    upper: FloatArray
    readings: Mapping[str, FloatArray]


def example_bands() -> dict[str, Loss]:
    """Return two losses: one whose ε is known to nine digits, and one known between two bounds only."""
    return {
        "100 Laplace releases, ε = 0.1 each": 100 * LaplaceLoss(epsilon="0.1"),
        "50 exponential mechanisms, ε = 0.5 each": 50 * BoundedRange(epsilon="0.5"),
    }


def deltas(exponents: Sequence[int] = EXPONENTS) -> list[str]:
    """Return δ from small to large, as decimals that mean what they show."""
    return [f"1e{power}" for power in exponents]


def curves(loss: Loss, at: Sequence[str]) -> Curves:
    """Return certified bounds and readings of ε at each δ. Ends where nothing is proved are infinite."""
    found = [loss.epsilon_interval(one) for one in at]
    read = [loss.readings(one) for one in at]
    names = tuple(read[0])
    return Curves(
        np.array([float(one) for one in at]),
        np.array([one.lower for one in found]),
        np.array([one.upper for one in found]),
        {name: np.array([one[name] for one in read]) for name in names},
    )


def epsilon_delta(losses: Losses = None, *, exponents: Sequence[int] = EXPONENTS) -> Figure:
    """Return a panel for each loss: the certified band of ε against δ, and the readings that lie above it.

    losses  one, or several by the title of their panel; those of `examples` without. Where the two ends agree to more digits
            than a line has width the band is that line.
    """
    shown = losses_by_name(losses, example_bands)
    require(len(exponents) >= 2 and max(exponents) < 0, "exponents", "two or more, below 0", exponents)
    at = deltas(sorted(exponents))
    with style():
        drawn, panels = side_by_side(len(shown), height=3.9, width=7.0 if len(shown) == 1 else 9.6)
        for axes, (title, loss) in zip(panels, shown.items(), strict=True):
            _panel(axes, curves(loss, at))
            axes.set_title(title, fontsize=9)
            axes.set_xscale("log")
            powers(axes, "x", sorted(exponents)[::2])
            axes.set_xlabel("probability δ")
            axes.set_ylabel("privacy loss ε")
        for axes in panels:
            key_below(axes)
    return drawn


def _panel(axes: Axes, found: Curves) -> None:
    known = np.isfinite(found.upper)
    places, low, high = found.deltas[known], found.lower[known], found.upper[known]
    if bool((high - low > _VISIBLE * high).any()):
        axes.fill_between(places, low, high, color=BLUE, alpha=0.22, linewidth=0, label="the truth is in here")
        axes.plot(places, high, color=BLUE, label="proved")
        axes.plot(places, low, color=GREEN, linestyle=PATTERNS[2], linewidth=1.4, label="attained")
    elif known.any():
        axes.plot(places, high, color=BLUE, label="proved and attained")
    top = float(found.upper[known].max()) if known.any() else 0.0
    for name, words, colour, pattern in _READINGS:
        values = found.readings.get(name)
        if values is None or not np.isfinite(values).any():
            continue
        finite = np.isfinite(values)
        if top and float(values[finite].min()) > 2.2 * top:  # it would flatten all the others
            axes.plot(
                [], [], color=colour, linestyle=pattern, linewidth=1.4, label=f"{words}: {values[finite].min():.3g} and more"
            )
            continue
        axes.plot(found.deltas[finite], values[finite], color=colour, linestyle=pattern, linewidth=1.4, label=words)
    if not known.all():
        gap = float(found.deltas[~known].max())
        axes.axvspan(float(found.deltas[0]), gap, color="#D9D9D9", linewidth=0, alpha=0.6)
        axes.annotate(
            "no ε",
            (math.sqrt(float(found.deltas[0]) * gap), 0.02),
            xycoords=("data", "axes fraction"),
            color=DARK,
            fontsize=8,
        )
    axes.set_ylim(bottom=0.0)


# ---- tradeoffs -------------------------------------------------------------------------------------------------------------


def example_tradeoffs() -> dict[str, Loss]:
    """Return losses that all have ε = 1, at δ = 0 or at δ = 0.1: equal numbers, unequal curves."""
    from curador.privacy.gaussian import gaussian_mu

    return {
        "any ε = 1": Pure(epsilon=1),
        "Laplace, ε = 1": LaplaceLoss(epsilon=1),
        "any ε = 1, δ = 0.1": Approx(epsilon=1, delta="0.1"),
        "Gaussian, ε = 1, δ = 0.1": GaussianLoss(mu=gaussian_mu(epsilon=1, delta="0.1")),
        "10 Laplace, ε = 0.1 each": 10 * LaplaceLoss(epsilon="0.1"),
    }


def rates(points: int) -> FloatArray:
    """Return false positive rates over [0, 1], denser at both ends."""
    made = np.sin(np.linspace(0.0, 0.5 * np.pi, points)) ** 2
    made[-1] = 1.0
    return made


def tradeoffs(losses: Losses = None, *, points: int = 41) -> Figure:
    """Return the least false negative rate of any test against its false positive rate, a curve for each loss.

    losses  by the name that the figure gives them, or one loss; those of `examples` without
    points  rates at which each is computed: an exact composition is asked once for each
    """
    many = whole(points, "points", least=2)
    shown = losses_by_name(losses, example_tradeoffs)
    rate = rates(many)
    with style():
        drawn, (axes,) = figure(height=4.2)
        for place, (name, loss) in enumerate(shown.items()):
            axes.plot(rate, loss.tradeoff(rate), label=name, linewidth=1.8, **stroke(place))
        axes.plot([0.0, 1.0], [1.0, 0.0], color=GREY, linewidth=1.0)
        axes.annotate(
            "guessing blindly", (0.55, 0.45), (6, 4), textcoords="offset points", rotation=-45, fontsize=8, color=DARK
        )
        axes.set_aspect("equal")
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel("false positive rate: says “present” wrongly")
        axes.set_ylabel("least false negative rate: misses")
        axes.set_title("No adversary gets below his curve", fontsize=10)
        key_beside(axes)
    return drawn


# ---- compositions ----------------------------------------------------------------------------------------------------------


COUNTS = (1, 2, 4, 8, 13, 22, 36, 60, 100, 200, 500, 1000, 3000, 10000)
COMPOSED_EXPONENTS = tuple(range(-12, -1))
ACCOUNTINGS = ("sum", "advanced", "Rényi, 13 orders", "zCDP", "Rényi", "certified")

_LARGEST_RATIO = 3.0
"""Where the lower panels end: beyond, an accounting is of no use."""


def example_releases() -> dict[str, Loss]:
    """Return one release of each of the three mechanisms."""
    return {
        "randomized response, p = 0.52": RandomizedResponse(gamma="0.52").loss,
        "Laplace noise, b = 20": LaplaceLoss(epsilon="0.05"),
        "Gaussian noise, σ = 20": GaussianLoss(mu="0.05"),
    }


def costs(loss: Loss, count: Number, delta: Number) -> dict[str, float]:
    """Return ε at δ of `count` such releases by every accounting; infinite where it says nothing. Rounds: up."""
    times, target = whole(count, "count"), open_probability(delta, "delta")
    readings = (times * loss).readings(target)
    rho = loss.rho
    found = {
        **_plain(loss, times, target),
        "Rényi, 13 orders": _mironov(loss, times, target),
        "zCDP": convert.rho_to_epsilon(times * rho, delta=target) if isinstance(rho, Fraction) else math.inf,
        "Rényi": readings["renyi"],
        "certified": min(readings.values()),
    }
    return {name: found[name] for name in ACCOUNTINGS}


def _plain(loss: Loss, times: int, delta: Fraction) -> dict[str, float]:
    """Sums, and the theorem of Dwork, Rothblum and Vadhan."""
    pure = loss.pure_epsilon
    if pure is not None:
        total = float(times * pure)
        return {"sum": total, "advanced": min(total, compose.drv_epsilon(pure, count=times, delta_prime=delta))}
    summed = times * loss.epsilon(delta / times)
    each = loss.epsilon(delta / (2 * times))
    if not math.isfinite(each):
        return {"sum": summed, "advanced": summed}
    return {"sum": summed, "advanced": min(summed, compose.drv_epsilon(each, count=times, delta_prime=delta / 2))}


def _mironov(loss: Loss, times: int, delta: Fraction) -> float:
    orders = np.array([order for order in convert.ORDERS_MIRONOV if math.isfinite(order)])
    at = [*zip(orders.tolist(), np.asarray(loss.renyi(orders)).tolist(), strict=True)]
    found = [
        convert.renyi_to_epsilon(order, times * zeta, delta=delta, method="mironov")
        for order, zeta in at
        if math.isfinite(zeta)
    ]
    best = min(found, default=math.inf)
    pure = loss.pure_epsilon
    return best if pure is None else min(best, float(times * pure))


def compositions(losses: Losses = None, *, counts: Sequence[int] = COUNTS, delta: Number = "1e-6") -> Figure:
    """Return ε of n releases against n, a line for each accounting, above; how many times the certified ε it is, below.

    losses  of one release: by the title of their panel, or one; those of `releases` without
    """
    require(len(counts) > 1 and min(counts) >= 1, "counts", "two or more, each at least 1", counts)
    places = sorted(counts)
    rows = {
        title: [costs(loss, place, delta) for place in places]
        for title, loss in losses_by_name(losses, example_releases).items()
    }
    said = f"{float(open_probability(delta, 'delta')):g}".replace("e-0", "e-")
    ticks = range(math.ceil(math.log10(places[0])), math.floor(math.log10(places[-1])) + 1)
    return _draw_costs(np.array(places, np.float64), rows, ("releases n", f"ε at δ = {said}"), ticks)


def composed_deltas(losses: Losses = None, *, count: int = 1000, exponents: Sequence[int] = COMPOSED_EXPONENTS) -> Figure:
    """Return ε of a fixed number of releases against δ, as `compositions` against the number."""
    times = whole(count, "count")
    require(len(exponents) > 1 and max(exponents) < 0, "exponents", "two or more, below 0", exponents)
    powers_of_ten = sorted(exponents)
    rows = {
        title: [costs(loss, times, f"1e{one}") for one in powers_of_ten]
        for title, loss in losses_by_name(losses, example_releases).items()
    }
    places = np.array([10.0**one for one in powers_of_ten])
    return _draw_costs(places, rows, ("probability δ", f"ε of {times} releases"), powers_of_ten[::2])


def _draw_costs(
    places: FloatArray, rows: Mapping[str, Sequence[Mapping[str, float]]], words: tuple[str, str], ticks: Sequence[int]
) -> Figure:
    from matplotlib.figure import Figure

    for title, found in rows.items():
        costly = any(0 < one["certified"] < math.inf for one in found)
        require(costly, f"losses[{title!r}]", "such that some number of releases has a finite ε above 0", "none")
    with style():
        drawn = Figure(figsize=(max(7.0, 9.8 / 3 * len(rows)), 5.4), layout="constrained")
        panels = drawn.subplots(2, len(rows), sharex=True, sharey="row", height_ratios=(1.5, 1.0), squeeze=False)
        for column, (title, found) in enumerate(rows.items()):
            above, below = panels[0][column], panels[1][column]
            certified = np.array([one["certified"] for one in found])
            _lines(above, places, found, np.ones_like(certified))
            _lines(below, places, found, certified)
            above.set_title(title, fontsize=10)
            above.set_yscale("log")
            below.set_xscale("log")
            below.set_ylim(0.9, _LARGEST_RATIO)
            below.set_xlabel(words[0])
            powers(below, "x", ticks)
        panels[0][0].set_ylabel(f"privacy loss {words[1]}")
        panels[1][0].set_ylabel("times the certified ε")
        lines, names = panels[0][0].get_legend_handles_labels()
        drawn.legend(
            lines,
            names,
            loc="outside lower center",
            ncols=len(names) if len(rows) > 1 else 3,
            fontsize=9,
            labelcolor=DARK,
            handlelength=2.8,
        )
    return drawn


def _lines(axes: Axes, places: FloatArray, found: Sequence[Mapping[str, float]], unit: FloatArray) -> None:
    for place, name in enumerate(ACCOUNTINGS):
        with np.errstate(invalid="ignore"):  # ∞/∞ is no number, and not drawn
            values = np.array([one[name] for one in found]) / unit
        last = name == "certified"
        look: dict[str, Any] = (
            {"color": BLUE, "linestyle": "-", "linewidth": 2.2} if last else {**stroke(place + 1), "linewidth": 1.5}
        )
        axes.plot(places, np.where(np.isfinite(values) & (values > 0), values, np.nan), label=name, **look)

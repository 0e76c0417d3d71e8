"""What many releases cost together, by every way to account for them.

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
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import require
from curador.mechanisms.randomized_response import RandomizedResponse
from curador.numerics.exact import Number, open_probability, whole
from curador.plots.style import BLUE, DARK, powers, stroke, style
from curador.plots.subjects import Losses, named
from curador.privacy import compose, convert
from curador.privacy.losses import GaussianLoss, LaplaceLoss

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from curador.numerics.rounding import FloatArray
    from curador.privacy.loss import Loss

COUNTS = (1, 2, 4, 8, 13, 22, 36, 60, 100, 200, 500, 1000, 3000, 10000)
EXPONENTS = tuple(range(-12, -1))
ACCOUNTINGS = ("sum", "advanced", "Rényi, 13 orders", "zCDP", "Rényi", "certified")

_LARGEST_RATIO = 3.0
"""Where the lower panels end: beyond, an accounting is of no use."""


def releases() -> dict[str, Loss]:
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
    rows = {title: [costs(loss, one, delta) for one in places] for title, loss in named(losses, releases).items()}
    said = f"{float(open_probability(delta, 'delta')):g}".replace("e-0", "e-")
    ticks = range(math.ceil(math.log10(places[0])), math.floor(math.log10(places[-1])) + 1)
    return _drawn(np.array(places, np.float64), rows, ("releases n", f"ε at δ = {said}"), ticks)


def composed_deltas(losses: Losses = None, *, count: int = 1000, exponents: Sequence[int] = EXPONENTS) -> Figure:
    """Return ε of a fixed number of releases against δ, as `compositions` against the number."""
    times = whole(count, "count")
    require(len(exponents) > 1 and max(exponents) < 0, "exponents", "two or more, below 0", exponents)
    powers_of_ten = sorted(exponents)
    rows = {
        title: [costs(loss, times, f"1e{one}") for one in powers_of_ten] for title, loss in named(losses, releases).items()
    }
    places = np.array([10.0**one for one in powers_of_ten])
    return _drawn(places, rows, ("probability δ", f"ε of {times} releases"), powers_of_ten[::2])


def _drawn(
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

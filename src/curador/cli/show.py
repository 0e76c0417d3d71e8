"""Tables and sentences for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.table import Table

from curador.privacy.adjacency import ADD_OR_REMOVE_ONE

if TYPE_CHECKING:
    from curador.numerics.rounding import Interval
    from curador.privacy.loss import Loss

_NAMES = {
    "numerical": "numerical (certified)",
    "renyi": "Rényi curve",
    "zcdp": "zCDP",
    "basic": "basic composition (sum of ε)",
}


def number(value: float) -> str:
    """Twelve significant digits; a dash for what is no number."""
    return "—" if math.isinf(value) else f"{value:.12g}"


def finite(numbers: Mapping[str, object]) -> dict[str, object]:
    """The same with null for what is infinite, which JSON has no word for."""
    out: dict[str, object] = {}
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            out[name] = finite(cast("Mapping[str, object]", value))
        else:
            out[name] = None if isinstance(value, float) and not math.isfinite(value) else value
    return out


def account_table(expression: str, loss: Loss, delta: str, interval: Interval, readings: dict[str, float]) -> None:
    """Print ε by each reading and mark the least."""
    from curador.privacy.convert import rho_to_epsilon

    rows = dict(readings)
    if math.isfinite(loss.rho) and Fraction(delta) > 0:
        rows["zcdp"] = rho_to_epsilon(loss.rho, delta=delta)
    least = min(rows.values())
    table = Table(title=f"{expression}\nε at δ = {delta}", title_justify="left", caption_justify="left")
    table.add_column("reading")
    table.add_column("lower", justify="right")
    table.add_column("upper", justify="right")
    table.add_column("")
    for name in ("numerical", "renyi", "zcdp", "basic"):
        if name in rows:
            low = number(interval.lower) if name == "numerical" else ""
            mark = "least" if rows[name] == least and math.isfinite(least) else _excess(rows[name], least)
            table.add_row(_NAMES[name], low, number(rows[name]), mark)
    width = interval.upper - interval.lower
    if math.isfinite(width) and interval.upper > 0:
        table.caption = f"relative width of the certified interval: {width / interval.upper:.1e}"
    Console(width=100).print(table)


def _excess(value: float, least: float) -> str:
    return "silent" if math.isinf(value) else f"+{100 * (value / least - 1):.2g} %" if least > 0 else ""


def adversary_lines(loss: Loss, epsilon: float, delta: str) -> None:
    """Say what somebody who knows everything else can learn about one person."""
    from curador.privacy.odds import accuracy

    if not math.isfinite(epsilon):
        print("No (ε, δ) guarantee at this δ.")
        return
    total = loss.delta(0.0)
    right = 100 * accuracy(0.0, total) if total < 1.0 else 100.0
    who = (
        "whether a person is in the data"
        if loss.adjacency in (None, ADD_OR_REMOVE_ONE)
        else "which of two values a person has"
    )
    # the loosest statement is the one people remember: round against ourselves
    false_negative = loss.tradeoff("0.01")
    print(f"An adversary who knows everybody else and must guess {who}")
    print(f"  is right at most {right:.2f} % of the time (50 % would be a coin), and")
    print(f"  at 1 % false alarms finds at most {100 * (1 - false_negative):.2f} % of those who are.")
    factor = math.exp(min(epsilon, 700))
    print(f"Every event is at most e^ε = {factor:.4g} times as likely in one world as in the other, plus δ = {delta}.")


def mechanism_lines(mechanism: Any, *, count: str, delta: str | None, rate: str | None, scheme: str) -> None:
    """Print a calibrated mechanism, its error and its cost."""
    for name in ("sigma", "scale", "epsilon", "gamma"):
        if hasattr(mechanism, name):
            print(f"{name:<10} {float(getattr(mechanism, name)):.12g}")
    if hasattr(mechanism, "variance"):
        print(f"{'sd':<10} {math.sqrt(mechanism.variance):.8g}")
    loss = mechanism.loss if rate is None else mechanism.loss.subsample(rate=rate, scheme=scheme)
    total = loss * count
    if delta is not None:
        low, high = total.epsilon_interval(delta)
        print(f"{'cost':<10} ε between {number(low)} and {number(high)} at δ = {delta}, after {count} release(s)")
    elif total.pure_epsilon is not None:
        print(f"{'cost':<10} ε = {number(float(total.pure_epsilon))}, pure, after {count} release(s)")
    if math.isfinite(total.rho):
        print(f"{'rho':<10} {float(total.rho):.10g}")

"""The mathematics under the answers: mechanisms, accounting and filters, on examples a person can check."""

from __future__ import annotations

from typing import TextIO

import numpy as np
from rich.console import Console
from rich.table import Table

import curador as cu
from curador.cli.expression import loss_of
from curador.cli.show import account_table, adversary_lines, mechanism_lines
from curador.numerics.rounding import FloatArray

_MIXED = "1000*gaussian(sigma=20) + 50*rr(epsilon=0.5)"
_TRAINING = "10000*gaussian(sigma=1.1).subsample(rate=0.01)"


def mathematics(out: TextIO) -> None:
    """Print the demonstration of the mathematics."""
    _heading(out, "1. Counts with exact noise and error bars (the truth is shown in this demonstration only)")
    _counts(out)
    _heading(out, "2. A choice, and a quantile")
    _choices(out)
    _heading(out, "3. Why not numpy's noise?")
    _bits(out)
    _heading(out, "4. What do a thousand noisy answers and fifty coin flips cost together?")
    _account(_MIXED, "1e-6")
    _heading(out, "5. Ten thousand steps of private training on 1 % samples")
    _account(_TRAINING, "1e-5")
    _heading(out, "6. How much noise for ε = 1 at δ = 1e-6 over a hundred answers?")
    mechanism_lines(
        cu.Gaussian.calibrate(epsilon=1, delta="1e-6", sensitivity=1, count=100),
        count="100",
        delta="1e-6",
        rate=None,
        scheme="poisson",
    )
    _heading(out, "7. A budget that cannot be talked into more")
    _budget(out)
    _heading(out, "Where to go next")
    print("  docs/how-to                             each mechanism with an example and a picture", file=out)
    print("  .venv/bin/curador audit                 try to break all of them (half a minute)", file=out)
    print("  .venv/bin/curador account --help        your own losses", file=out)
    print("  docs/explanation/textbook-corrected.md  errors in the textbooks that would break privacy", file=out)
    print("  docs/explanation/accounting.md          why the intervals above are certified", file=out)


def _heading(out: TextIO, text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", file=out, flush=True)


def _counts(out: TextIO) -> None:
    """A histogram of people in disjoint cells, under replace-one: one person moves two counts."""
    truth = {"north": 1204, "east": 87, "south": 560, "west": 3}
    moved = cu.sensitivity.histogram("replace_one", "l1")
    mechanism = cu.DiscreteLaplace.calibrate(epsilon=1, sensitivity=moved)
    bar = mechanism.interval("0.95", together=len(truth))
    released = mechanism.release(list(truth.values()))
    table = Table()
    table.add_column("region")
    for name in ("released", "95 %, all four together", "truth"):
        table.add_column(name, justify="right")
    for (region, exact), noisy in zip(truth.items(), released.tolist(), strict=True):
        table.add_row(region, str(noisy), f"{noisy + int(bar.lower)} … {noisy + int(bar.upper)}", str(exact))
    Console(file=out).print(table)
    print(f"{mechanism}: costs ε = {mechanism.loss.pure_epsilon} to whoever is counted", file=out)


def _choices(out: TextIO) -> None:
    flavours, votes = ["vanilla", "lemon", "mint"], [412, 409, 300]
    choice = cu.PermuteAndFlip(epsilon="0.5", sensitivity=1, monotone=True)
    print(f"most popular of {dict(zip(flavours, votes, strict=True))}: {choice.release(votes, flavours)}", file=out)
    ages = np.random.default_rng(5).normal(44, 12, 5000)  # made-up data; the noise has no seed
    median = cu.Quantile(q="1/2", epsilon=1, lower=0, upper=120, adjacency="add_or_remove_one")
    print(f"median age of 5,000 people: {median.release(ages):.2f} (truth {float(np.median(ages)):.2f})", file=out)


def _bits(out: TextIO) -> None:
    """The share of outputs that are no multiple of 2⁻⁵³: impossible where the true value is 1 or more."""

    def share(values: FloatArray) -> float:
        return float((np.abs(np.ldexp(values, 53) % 1.0) > 0).mean())

    rng, size = np.random.default_rng(), 200_000
    ours = cu.Laplace(scale=1, sensitivity=1)
    rows = {
        "numpy": [share(value + rng.laplace(0, 1, size)) for value in (0.0, 1.0)],
        "curador": [share(ours.release_many(value, size)) for value in (0.0, 1.0)],
    }
    print("outputs that are no multiple of 2^-53, for neighbours with the values 0 and 1:", file=out)
    for name, (zero, one) in rows.items():
        verdict = "one look tells the two apart" if zero != one else "no difference"
        print(f"  {name:8s} {zero:6.1%}  {one:6.1%}   {verdict}", file=out)


def _account(expression: str, delta: str) -> None:
    loss = loss_of(expression)
    readings = loss.readings(delta)
    account_table(expression, loss, delta, loss.epsilon_interval(delta), readings)
    adversary_lines(loss, min(readings.values()), delta)


def _budget(out: TextIO) -> None:
    budget = cu.ConcentratedFilter.create(epsilon=1, delta="1e-6")
    answer = cu.DiscreteGaussian(sigma=50, sensitivity=1).loss
    asked = 0
    try:
        while True:
            budget = budget.charge(answer)
            asked += 1
    except cu.BudgetExceeded as refusal:
        print(f"(1, 1e-6) allows {asked} counts with noise of standard deviation 50; then:\n{refusal}", file=out)

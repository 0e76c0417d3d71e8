"""What curador does today, on examples a person can check."""

from __future__ import annotations

from typing import TextIO

import curador as cu
from curador.cli.expression import loss_of
from curador.cli.show import account_table, adversary_lines, mechanism_lines

_MIXED = "1000*gaussian(sigma=20) + 50*rr(epsilon=0.5)"
_TRAINING = "10000*gaussian(sigma=1.1).subsample(rate=0.01)"


def run(out: TextIO) -> None:
    """Print the demonstration."""
    _heading(out, "1. What do a thousand noisy answers and fifty coin flips cost together?")
    _account(_MIXED, "1e-6")
    _heading(out, "2. Ten thousand steps of private training on 1 % samples")
    _account(_TRAINING, "1e-5")
    _heading(out, "3. How much noise for ε = 1 at δ = 1e-6 over a hundred answers?")
    mechanism_lines(
        cu.Gaussian.calibrate(epsilon=1, delta="1e-6", sensitivity=1, count=100),
        count="100",
        delta="1e-6",
        rate=None,
        scheme="poisson",
    )
    _heading(out, "4. A budget that cannot be talked into more")
    _budget(out)
    _heading(out, "Where to go next")
    print("  .venv/bin/curador account --help        your own losses", file=out)
    print("  docs/explanation/textbook-corrected.md  errors in the textbooks that would break privacy", file=out)
    print("  docs/explanation/accounting.md          why the intervals above are certified", file=out)


def _heading(out: TextIO, text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", file=out, flush=True)


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

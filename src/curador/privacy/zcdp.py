"""The exact scalars of a loss: ε of pure privacy, (ρ, δ) of approximate zero-concentrated privacy.

These are what the interactive ledger adds up, so they are rationals, rounded up where the truth is irrational. Those of a
single record stand beside its kind, in `kinds`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from curador.numerics.exact import exact_sum
from curador.privacy.loss import CONCENTRATED, PURE_EPSILON, RHO, Loss, parts_of
from curador.privacy.rules import Amounts, single_concentrated, single_pure


@PURE_EPSILON.answered_by
def pure_epsilon(loss: Loss) -> Fraction | None:
    """Return Σ ε, None if a part is not pure. Rounds: up where irrational."""
    singles = [(single_pure(record), count) for record, count in parts_of(loss)]
    if any(single is None for single, _ in singles):
        return None
    return exact_sum(count * single for single, count in singles if single is not None)


@CONCENTRATED.answered_by
def concentrated(loss: Loss) -> Amounts | None:
    """Return (Σ ρ, Σ δ): the whole is Σδ-approximately Σρ-zCDP. Source: [BS16]. Rounds: up."""
    amounts: list[Amounts] = []
    for record, count in parts_of(loss):
        single = single_concentrated(record)
        if single is None:
            return None
        amounts.append((count * single[0], count * single[1]))
    return exact_sum(rho for rho, _ in amounts), exact_sum(delta for _, delta in amounts)


@RHO.answered_by
def rho(loss: Loss) -> Fraction | float:
    """Return ρ where the loss is ρ-zCDP with δ = 0, else +∞."""
    amounts = concentrated(loss)
    return math.inf if amounts is None or amounts[1] > 0 else amounts[0]

"""A study that three people have asked: a ledger in a folder that is gone afterwards, to draw where there is none to show."""

from __future__ import annotations

import hashlib
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curador.curator.accounts import log_lines
from curador.ledger.amounts import Amounts
from curador.ledger.entry import Request
from curador.ledger.ledger import Ledger
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.privacy.losses import Concentrated
from curador.study.model import Budget

if TYPE_CHECKING:
    from curador.ledger.limits import Limits

_SHARES = {None: Fraction(1), "ana": Fraction(2, 5), "ben": Fraction(3, 10)}
_ASKED: tuple[tuple[str | None, str, bool], ...] = (
    (None, "10", True),
    ("ana", "5", True),
    ("ana", "5", False),
    ("ben", "2", False),
    ("ana", "8", False),
    (None, "5", True),
    ("ben", "6", True),
    ("ben", "2", False),
    ("ana", "4", False),
    (None, "3", False),
    ("ben", "10", True),
    ("ana", "6", False),
    ("ana", "2", False),
)
"""Who asked, what share of the budget in per cent it cost, and whether the keys were private."""
_VOIDED = 7


def example_log() -> tuple[list[dict[str, Any]], Amounts]:
    """Return the log of the example's owner, and the limit: thirteen charges, one of which was given back.

    The ledger is a real one of a budget of ε = 3, δ = 10⁻⁶; it holds charges only, since there are no data.
    """
    study = hashlib.sha256(b"example").hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(
            Path(folder) / "example.ledger",
            study_name="example",
            study_digest=study,
            unit="person",
            adjacency=ADD_OR_REMOVE_ONE,
            budget=Budget(epsilon=3, delta="1e-6"),
            max_units=10**6,
        )
        with ledger:
            for place, (analyst, percent, private) in enumerate(_ASKED):
                amounts = _cost(ledger.limits, Fraction(percent) / 100, private=private)
                made = ledger.reserve(_request(analyst, amounts, study, f"question {place + 1}"))
                if place == _VOIDED:
                    ledger.void(made)
                else:
                    digest = hashlib.sha256(b"").hexdigest()
                    ledger.commit(made, answer=b"", answer_digest=digest)
            return log_lines(ledger, None), ledger.limits.total


def _cost(limits: Limits, share: Fraction, *, private: bool) -> Amounts:
    whole = limits.share(share)
    return whole if private else Amounts(rho=whole.rho)


def _request(analyst: str | None, amounts: Amounts, study: str, question: str) -> Request:
    return Request(
        amounts=amounts,
        losses=(Concentrated(rho=amounts.rho, delta=amounts.delta).to_record(),),
        study_digest=study,
        data_version=1,
        question_key=hashlib.sha256(question.encode()).hexdigest(),
        question=question,
        plan_digest=hashlib.sha256(b"plan of " + question.encode()).hexdigest(),
        adjacency=ADD_OR_REMOVE_ONE,
        tables=("visits",),
        analyst=analyst,
        share=_SHARES[analyst],
    )

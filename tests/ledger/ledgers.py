"""Small ledgers and requests for the tests of the ledger."""

from __future__ import annotations

import hashlib
import itertools
from fractions import Fraction

from curador.ledger.amounts import Amounts
from curador.ledger.entry import Request
from curador.ledger.ledger import Ledger
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.privacy.losses import Concentrated, Pure
from curador.study.model import Budget

STUDY = hashlib.sha256(b"study").hexdigest()
PLAN = hashlib.sha256(b"plan").hexdigest()
PURE = Budget(epsilon=1)
BOTH = Budget(epsilon=1, delta="1e-6")
_number = itertools.count()


def key_of(question):
    return hashlib.sha256(str(question).encode()).hexdigest()


def create(path, budget=PURE, **changes):
    settings = {"study_name": "visits", "study_digest": STUDY, "unit": "person", "adjacency": ADD_OR_REMOVE_ONE}
    return Ledger.create(path, budget=budget, max_units=10**6, **{**settings, **changes})


def reopen(path, budget=PURE, **changes):
    settings = {"unit": "person", "adjacency": ADD_OR_REMOVE_ONE}
    return Ledger.open(path, budget=budget, **{**settings, **changes})


def request(*, epsilon=None, rho=None, delta=0, **changes):
    """Return a request that costs exactly this; its one loss record says the same."""
    asked = changes.get("question", f"SELECT {next(_number)}")
    if epsilon is not None:
        cost = Amounts.cost(epsilon=Fraction(epsilon))
        own = Pure(epsilon=Fraction(epsilon))
    else:
        cost = Amounts.cost(rho=Fraction(rho), delta=Fraction(delta))
        own = Concentrated(rho=Fraction(rho), delta=Fraction(delta))
    fields = {
        "amounts": cost,
        "losses": (own.to_record(),),
        "study_digest": STUDY,
        "data_version": 1,
        "question_key": key_of(asked),
        "question": asked,
        "plan_digest": PLAN,
        "adjacency": ADD_OR_REMOVE_ONE,
        "tables": ("visits",),
    }
    return Request(**{**fields, **changes})


def ask(ledger, asked, answer=b"answer"):
    """Return the entry of a whole question: reserved, then committed."""
    return ledger.commit(ledger.reserve(asked), answer=answer, answer_digest=hashlib.sha256(answer).hexdigest())


def everything(ledger):
    """Return all that a ledger says."""
    entries = list(ledger.entries())
    answers = [ledger.stored(one.question_key, one.data_version) for one in entries if one.kind == "committed"]
    return entries, answers, ledger.spent(), ledger.failures, ledger.data_version, ledger.limits

"""What the owner and the auditor read: the promise, the odds of an adversary, the chain verified, an answer as a notebook."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from curador.curator.pace import pace_text
from curador.curator.promise import FALSE_ALARMS, odds_of, odds_words
from curador.errors import CuradorError
from curador.ledger.limits import epsilon_of
from curador.server import limits, rendering, tokens
from curador.study.values import number_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from curador.server.service import Service


def odds_body(service: Service) -> dict[str, Any]:
    """Return what an adversary gains at most from everything that the study will ever release.

    Claim   The numbers are those of the promise, not of what was spent: they hold for ever.
    Rounds  Against ourselves.
    """
    study = service.study
    odds = odds_of(study)
    return {
        "promise": _promise(service),
        "unit": study.unit_name,
        "adjacency": str(study.adjacency),
        "right_at_most": odds.right,
        "false_alarms": float(FALSE_ALARMS),
        "found_at_most": odds.found,
        "factor": odds.factor,
        "words": odds_words(study, odds),
    }


def _promise(service: Service) -> dict[str, Any]:
    budget = service.study.budget
    return {"epsilon": str(budget.epsilon), "delta": None if budget.delta is None else str(budget.delta)}


def report_body(service: Service) -> dict[str, Any]:
    """Return the study's promise, its tables, and what was spent, for whoever answers for it."""
    study, ledger = service.study, service.curator.ledger
    spent, last = ledger.spent(), ledger.last
    so_far = epsilon_of(ledger.limits, spent)
    delta = study.budget.delta
    promised = f"ε = {float(study.budget.epsilon):g}" + (f", δ = {float(delta):g}" if delta is not None else "")
    words = [
        f"All that this study releases, to everybody and for ever, stays within {promised} for one {study.unit_name}.",
        f"What was spent so far amounts to ε = {so_far:.4g}.",
        "Every question is charged on disk before any row is read; each entry holds the digest of the one before.",
    ]
    return {
        "study": study.name,
        "unit": study.unit_name,
        "adjacency": str(study.adjacency),
        "max_units": study.max_units,
        "digest": study.digest,
        "promise": _promise(service),
        "spent": {
            "epsilon": so_far,
            "share": rendering.part_number(limits.part_of(spent, ledger.limits.total)),
        },
        "least_spend": tokens.percent(study.least_spend),
        "answers_leave": pace_text(study.engine),
        "tables": rendering.tables_body(service.schema),
        "analysts": [
            {
                "name": analyst.name,
                "share": number_text(analyst.share) or str(analyst.share),
                "tables": None if analyst.tables is None else list(analyst.tables),
                "train": analyst.train,
            }
            for analyst in study.analysts
        ],
        "ledger": {
            "id": ledger.id,
            "entries": last.sequence + 1,
            "head": last.hash,
            "data_version": last.after.data_version,
            "closed": ledger.closed,
        },
        "words": words,
    }


def verification_body(service: Service) -> dict[str, Any]:
    """Read every entry, sum and answer of the ledger again, ask its witness, and say what was found."""
    ledger = service.curator.ledger
    chain, witness = "agrees", "agrees"
    try:
        ledger.verify(witness=False)
    except CuradorError as problem:
        chain = problem.sentence
    try:
        ledger.ask_witness()
    except CuradorError as problem:
        witness = problem.sentence
    last = ledger.last
    return {
        "chain": chain,
        "entries": last.sequence + 1,
        "head": last.hash,
        "witness": witness,
        "checked_at": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
    }


def notebook_text(body: Mapping[str, Any], url: str) -> str:
    """Return a notebook that asks the same question of the service; its texts are values in code, never code."""
    code = [
        "import os\n\n",
        "import curador as cu\n\n",
        f'curator = cu.connect({url!r}, token=os.environ["CURADOR_TOKEN"])\n',
        f"question = {body['question']!a}\n",
        f"options = {dict(body['options'])!a}\n",
        "answer = curator.ask(question, **options)  # it was answered before: free\n",
        "answer",
    ]
    cell = {"cell_type": "code", "execution_count": None, "id": "ask", "metadata": {}, "outputs": [], "source": code}
    language = {"name": "python"}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {
        "cells": [cell],
        "metadata": {"kernelspec": kernel, "language_info": language},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1) + "\n"

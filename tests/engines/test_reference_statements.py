"""The reference statements, end to end on real DuckDB; a refusal asks no engine and costs nothing."""

import os
from pathlib import Path

import pytest
from shared_studies import cases, written

import curador as cu
from curador.engines.duckdb.engine import DuckDBEngine

SHARED = Path(os.environ.get("CURADOR_SHARED", Path(__file__).resolve().parents[3] / "shared"))
pytestmark = [
    pytest.mark.shared,
    pytest.mark.slow,
    pytest.mark.skipif(not (SHARED / "sql" / "cases.jsonl").exists(), reason="the reference material is absent"),
]
CASES = list(cases(SHARED)) if (SHARED / "sql" / "cases.jsonl").exists() else []


@pytest.fixture(scope="module", params=["pums", "visits", "tpch", "hostile"])
def opened(request, tmp_path_factory):
    """Open one schema for all its statements."""
    folder = tmp_path_factory.mktemp(request.param)
    with cu.open(written(request.param, folder, SHARED)) as curator:
        yield request.param, curator


def test_every_statement_comes_out_as_expected(opened, monkeypatch):
    """An answer is noisy and charged; a refusal is free, and the engine was not asked."""
    name, curator = opened
    asked = []
    plain = DuckDBEngine.tally
    monkeypatch.setattr(DuckDBEngine, "tally", lambda self, blocks: asked.append(blocks) or plain(self, blocks))
    wrong = []
    for schema, sql, expect, also_ok, why in CASES:
        if schema != name:
            continue
        before, calls = curator.budget.spent, len(asked)
        try:
            answer = curator.ask(sql, spend="0.1%")
            outcome = "answer"
            problem = None if curator.budget.spent != before or answer.stored else "an answer that cost nothing"
        except cu.Refused as refusal:
            outcome = "refuse"
            problem = None if curator.budget.spent == before else f"a refusal that cost something: {refusal}"
            problem = problem or (None if len(asked) == calls else "a refusal after the engine was asked")
        if outcome not in (expect, also_ok):
            problem = f"{outcome}, expected {expect}"
        if problem:
            wrong.append(f"{sql}\n  {problem} ({why})")

    assert not wrong, "\n".join(wrong)

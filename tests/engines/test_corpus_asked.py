"""Our own corpus of questions, end to end on real DuckDB; a refusal asks no engine and costs nothing."""

import pytest
from corpus_schemas import questions, schema
from corpus_studies import written

import curador as cu
from curador.engines.duckdb.engine import DuckDBEngine

pytestmark = pytest.mark.slow

QUESTIONS = questions()


@pytest.mark.parametrize("name", sorted({one["schema"] for one in QUESTIONS}))
def test_every_question_comes_out_as_expected(name, tmp_path, monkeypatch):
    """An answer is charged, or stored from an identical one; a refusal is free, and the engine was not asked."""
    asked, wrong = [], []
    plain = DuckDBEngine.tally
    monkeypatch.setattr(DuckDBEngine, "tally", lambda self, blocks: asked.append(blocks) or plain(self, blocks))
    with cu.open(written(schema(name), tmp_path)) as curator:
        for one in QUESTIONS:
            if one["schema"] != name:
                continue
            before, calls = curator.budget.spent, len(asked)
            options = {} if "OPTIONS" in one["sql"] and "epsilon" in one["sql"] else {"spend": "0.05%"}
            try:
                answer = curator.ask(one["sql"], dialect=one["dialect"], **options)
                outcome, free = "answer", curator.budget.spent == before and not answer.stored
            except cu.Refused as refusal:
                outcome, free = "refuse", curator.budget.spent != before or len(asked) != calls
                one = {**one, "said": str(refusal)}  # noqa: PLW2901
            if outcome != one["expect"] or free:
                wrong.append(f"{one['id']}: {outcome}, expected {one['expect']}: {one['sql']} {one.get('said', '')}")

    assert not wrong, "\n".join(wrong)

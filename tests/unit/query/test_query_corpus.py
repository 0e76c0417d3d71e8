"""The corpus of questions comes out as it says."""

import collections
import functools

import corpus_schemas
import pytest
from query_words import read, schema
from tree_rules import check

import curador.errors
from curador.errors import Refused

QUESTIONS = corpus_schemas.questions()


@functools.cache
def outcome(number):
    """Return what becomes of a question of the corpus: the word, the refusal, the tree."""
    case = QUESTIONS[number]
    try:
        return "answer", None, read(case["sql"], case["schema"], case["dialect"])
    except Refused as refusal:
        return "refuse", refusal, None


def test_the_corpus_is_large_and_has_every_kind():
    """At least 150 questions of every kind of schema, each with its reason, none twice."""
    kinds = collections.Counter((one["schema"], one["expect"]) for one in QUESTIONS)

    assert len(QUESTIONS) >= 150
    assert min(kinds.values()) >= 5
    assert len(kinds) == 6
    assert all(one["why"] for one in QUESTIONS)
    assert len({(one["schema"], one["sql"], one["dialect"]) for one in QUESTIONS}) == len(QUESTIONS)
    assert len({one["id"] for one in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("name", corpus_schemas.TABLES)
def test_questions_are_read_or_refused_as_expected(name):
    """A question for an answer becomes a tree that keeps all rules; another is refused by its class of error."""
    wrong = []
    for number, case in enumerate(QUESTIONS):
        if case["schema"] != name:
            continue
        found, refusal, tree = outcome(number)
        expected = case["expect"] if case["by"] == "parse" else "answer"  # the plan refuses the others
        if found != expected or (refusal is not None and type(refusal) is not getattr(curador.errors, case["error"])):
            wrong.append(f"{case['sql']}: {found} {refusal}")
        if tree is not None:
            check(tree, schema(name))

    assert wrong == []


@pytest.mark.slow
def test_refusals_say_where_and_name_no_module():
    """A refusal is one sentence with its place, and says nothing of what the reader is made of."""
    without_place = 0
    for number in range(len(QUESTIONS)):
        _, refusal, _ = outcome(number)
        if refusal is None:
            continue
        text = str(refusal)
        without_place += not text.startswith("line ")
        assert "sqlglot" not in text.lower()
        assert "object at 0x" not in text
        assert "<class" not in text
        assert text.partition("\nHint: ")[0].endswith(".")

    assert without_place <= 8  # texts that are empty, not closed, or miss an argument

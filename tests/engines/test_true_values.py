"""Statements with what is wanted of each: the true value at a high budget within a distance, or a refusal in given words.

`tests/corpus/true_values.py` says how a number is judged, and how rarely one fails by luck. All of them at once, with every
failure printed: `python tests/corpus/print_corpus.py`.
"""

import collections
import dataclasses

import market
import pytest
import review
from true_values import Asking, entries, judge_rows

MARKET = entries()
REVIEW = review.entries_by_schema() if (review.SHARED / "data").exists() else {}


def test_the_statements_are_many_and_of_every_dialect():
    """At least 200 with a true value, four dialects and some Snowflake; each once, with its reason."""
    answered = [one for one in MARKET if one["refuse"] is None]
    dialects = collections.Counter(one["dialect"] for one in answered)

    assert len(answered) >= 200
    assert min(dialects[one] for one in ("duckdb", "postgres", "bigquery", "spark")) >= 30
    assert dialects["snowflake"] >= 5
    assert len({one["id"] for one in MARKET}) == len({(one["sql"], one["dialect"]) for one in MARKET}) == len(MARKET)
    assert all(one["why"] for one in MARKET)


@pytest.fixture(scope="module")
def asking():
    """Open the market for all its statements."""
    made = Asking(market.opened)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("entry", MARKET, ids=lambda one: one["id"])
def test_a_statement_comes_out_as_wanted(asking, entry):
    """Its groups, every number, its order; or a refusal that says what to write."""
    found = asking.judge(entry)

    assert found.problem is None, str(found)


@pytest.fixture(scope="module", params=["pums", "visits", "tpch"])
def reference(request):
    """Open one reference schema for all its statements."""
    if request.param not in REVIEW:
        pytest.skip("the reference material is absent")
    opening, held = REVIEW[request.param]
    made = Asking(opening)
    yield made, held
    made.close()


@pytest.mark.slow
@pytest.mark.shared
def test_reference_questions_come_out_as_wanted(reference):
    """All of them are asked, and all that failed are told."""
    asking, held = reference
    failed = [found for one in held if (found := asking.judge(one)).problem]

    assert not failed, "\n\n".join(map(str, failed))


# ---- seeded bugs -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Part:
    """A column of an answer."""

    name: str
    values: list
    low: list | None = None
    high: list | None = None


class Answered:
    """An answer of these columns."""

    def __init__(self, *parts):
        self.parts = parts

    def __len__(self):
        return len(self.parts[0].values)


def entry(**changes):
    usual = {
        "id": "seeded",
        "sql": "",
        "truth": "SELECT … ORDER BY 1",
        "dialect": "duckdb",
        "by": 1,
        "within": None,
        "days": 0,
    }
    return {**usual, "loose": False, "rows": None, "whole": False, "needs": None, **changes}


TRUE = [("a", 100), ("b", 50)]
GOOD = (Part("k", ["a", "b"]), Part("n", [100, 50], [99.9, 49.9], [100.1, 50.1]))


def test_a_right_answer_is_right():
    """Neither the groups nor the numbers are complained about."""
    assert judge_rows(entry(), Answered(*GOOD), TRUE).problem is None


@pytest.mark.parametrize(
    "parts",
    [
        (Part("k", ["a", "b", "c"]), Part("n", [100, 50, 0], [99.9, 49.9, -0.1], [100.1, 50.1, 0.1])),
        (Part("k", ["b", "a"]), Part("n", [50, 100], [49.9, 99.9], [50.1, 100.1])),
        (GOOD[0], Part("n", [101, 50], [100.9, 49.9], [101.1, 50.1])),
        (GOOD[0], Part("n", [100.4, 50], [100.3, 49.9], [100.5, 50.1])),
        (GOOD[0], Part("n", [100, 50], [90, 40], [110, 60])),
        (GOOD[0], Part("n", [100, None], [99.9, None], [100.1, None])),
    ],
    ids=["a group too many", "another order", "a number that is off", "an interval that misses", "a wide interval", "a NULL"],
)
def test_a_wrong_answer_is_caught(parts):
    """Each is what a wrong meaning, or a bad interval, looks like."""
    assert judge_rows(entry(), Answered(*parts), TRUE).problem

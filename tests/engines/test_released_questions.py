"""What is computed from released rows is what DuckDB computes from the released tables."""

import pytest
import released_questions as made

from curador.answers import computed

SEEDS = 2_000
TENTH = SEEDS // 10


def differences(seeds):
    """Return the questions that do not come out as DuckDB has them."""
    connection, wrong = made.reference(), []
    for seed in seeds:
        ours, theirs = made.Maker(seed).question()
        wanted = made.sorted_rows(connection.execute(theirs).fetchall())
        columns = made.answered(made.with_results(ours))
        found = made.sorted_rows(list(zip(*(column.values for column in columns), strict=True)))
        same = len(found) == len(wanted) and all(
            made.is_same(*pair) for row in zip(found, wanted, strict=True) for pair in zip(*row, strict=True)
        )
        if not same:
            wrong.append((seed, ours, found[:4], wanted[:4]))
    return wrong


def test_random_questions_over_results_are_duckdbs():
    """Joins, groups, windows, scalar subqueries, QUALIFY, DISTINCT and UNION ALL: a tenth of them."""
    assert differences(range(TENTH)) == []


@pytest.mark.long
@pytest.mark.slow
def test_all_random_questions_over_results_are_duckdbs():
    """The whole number."""
    assert differences(range(SEEDS)) == []


def test_a_wrong_rule_is_seen(monkeypatch):
    """Without the rule of released divisors questions come out otherwise."""
    monkeypatch.setattr(computed, "_above_zero", lambda divisor: divisor)
    assert differences(range(TENTH)) != []

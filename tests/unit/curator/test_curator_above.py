"""Questions over released results, asked: what they cost, when they are free, what is said beside them."""

import pytest
from curator_studies import BY_SHOP, open_curator

from curador.errors import NotPrivate

COUNTS = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
SHARES = "SELECT city, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY city"


@pytest.fixture
def curator(tmp_path):
    with open_curator(tmp_path) as made:
        yield made


def test_a_share_of_the_total_costs_what_its_counts_cost(curator):
    """The window is computed from what was measured: it is the same question, and its numbers fit together."""
    counts = curator.ask(COUNTS, spend="5%")
    shares = curator.ask(SHARES, spend="5%")
    assert shares.stored
    assert not any(shares.cost.record().values()) or shares.cost == type(shares.cost)()
    assert [row["n"] for row in shares.rows] == [row["n"] for row in counts.rows]
    total = sum(row["n"] for row in counts.rows)
    assert [row["share"] for row in shares.rows] == pytest.approx([100 * row["n"] / total for row in counts.rows])
    assert all(row["share_low"] < row["share"] < row["share_high"] for row in shares.rows)


def test_a_stored_answer_is_given_again_to_the_last_digit(curator):
    """Values, bars, notes and the digest of the table."""
    text = f"SELECT SUM(n) AS s, MAX(n) AS most, AVG(n) AS mean FROM ({COUNTS}) WHERE n > 1"
    first, again = (curator.ask(text, spend="5%") for _ in range(2))
    assert (first.stored, again.stored) == (False, True)
    assert first.rows == again.rows
    assert first.notes == again.notes
    assert first.receipt["answer_digest"] == again.receipt["answer_digest"]
    assert first.with_confidence("0.5").rows[0]["s_high"] < first.rows[0]["s_high"]


def test_a_preview_says_the_error_where_it_is_known(curator):
    """Of counts, their sums and differences; a share's comes with the answer, and then it is the same for all of them."""
    text = f"SELECT n, n - LAG(n) OVER (ORDER BY city) AS d, SUM(n) OVER () AS s, n / SUM(n) OVER () AS share FROM ({COUNTS})"
    preview = curator.preview(text, spend="5%")
    answer = curator.ask(text, spend="5%")
    errors = {one.column: one.reach for one in preview.errors}
    row = answer.rows[1]
    assert errors["share"] is None
    for name in ("n", "d", "s"):
        assert (row[f"{name}_high"] - row[f"{name}_low"]) / 2 == pytest.approx(errors[name])
    assert errors["n"] < errors["d"] < errors["s"]
    assert preview.cost == curator.preview(COUNTS, spend="5%").cost


def test_notes_say_what_numbers_over_groups_are_of(curator):
    """Of the groups that a threshold let through, or that noise chose; nothing where all are there."""
    over = "SELECT SUM(n) AS s FROM ({})"
    assert not any("shown" in note for note in curator.ask(over.format(COUNTS), spend="5%").notes)
    private = curator.ask(over.format(BY_SHOP), spend="5%")
    assert any("of the shown groups" in note for note in private.notes)
    chosen = curator.ask(f"{over.format(COUNTS)} WHERE n > 3", spend="5%")
    assert any("noise decided" in note for note in chosen.notes)


def test_a_column_without_a_bar_says_so(curator):
    """Nothing is claimed of it."""
    answer = curator.ask(f"SELECT COUNT(DISTINCT n) AS different FROM ({COUNTS})", spend="5%")
    assert answer.columns == ("different",)
    assert "no error bar is proved for different" in answer.notes


def test_an_explanation_names_the_steps(curator):
    """In the order in which they are done."""
    lines = curator.explain(f"SELECT SUM(n) AS s FROM ({COUNTS}) WHERE n > 3").splitlines()
    assert "then       over released rows: rows chosen, aggregated, columns computed" in lines


def test_released_rows_are_bounded_before_the_charge(curator):
    """Results of private keys are joined by their keys; all pairs of them have no bound."""
    left = curator.budget.left
    pairs = f"SELECT a.n FROM ({BY_SHOP}) a CROSS JOIN ({BY_SHOP}) b"
    with pytest.raises(NotPrivate, match="at most 1,000,000"):
        curator.ask(pairs, spend="5%")
    assert curator.budget.left == left
    joined = curator.ask(f"SELECT a.shop, a.n - b.n AS d FROM ({BY_SHOP}) a JOIN ({BY_SHOP}) b USING (shop)", spend="5%")
    assert all(row["d"] == row["d_low"] == row["d_high"] == 0 for row in joined.rows)

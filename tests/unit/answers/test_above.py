"""What numbers over released rows are made of, and which of them noise chose."""

from fractions import Fraction

import numpy as np
import pytest
import released_questions as made

from curador.answers.above import compute_above
from curador.answers.bars import enclose_bar, is_proved
from curador.answers.forms import Form, Share, row_patterns
from curador.answers.table import sight_of
from curador.plan.build import build_plan
from curador.plan.price import price
from curador.query.sql import parse

MISS = Fraction(1, 20)
COUNTS = "SELECT sex, active, COUNT(*) AS n FROM people GROUP BY sex, active"
FEW = f"SELECT * FROM ({COUNTS}) WHERE n > 3 ORDER BY n LIMIT 2"


def rows_of(text):
    """Return the rows of a question over made-up releases."""
    plan = build_plan(parse(text, made.PEOPLE), made.PEOPLE)
    priced = price(plan, "concentrated", Fraction(1, 10), Fraction(1, 10**6))
    held = [made.released(block, noises) for block, noises in zip(plan.blocks, priced.noises, strict=True)]
    return compute_above(plan.above, [sight_of(*one) for one in zip(plan.blocks, priced.noises, held, strict=True)])


def bar_of(column, source=COUNTS, more=""):
    """Return what one column is made of."""
    return rows_of(f"SELECT {column} AS d, ROW_NUMBER() OVER (ORDER BY n) AS r FROM ({source}) {more}").bars[0]


def reach(bar):
    """Return the largest half-width of a column's bars."""
    where = enclose_bar(bar, MISS)
    return float(np.max(np.where(where.empty, 0.0, (where.high - where.low) / 2)))


def test_one_noise_that_is_used_twice_is_one():
    """n − n is 0, n + n twice n, and a difference of two totals nothing."""
    single = reach(bar_of("n"))
    assert reach(bar_of("n - n")) < 1e-9
    assert reach(bar_of("n + n")) == pytest.approx(2 * single)
    assert reach(bar_of("SUM(n) OVER () - SUM(n) OVER ()")) < 1e-9
    assert reach(bar_of("SUM(n) OVER ()")) == pytest.approx(2 * single, rel=0.3)  # of four: twice one, but for whole steps
    assert reach(bar_of("n - LAG(n) OVER (ORDER BY sex, active)")) < 1.6 * single


def test_shares_of_one_total_are_subtracted_as_shares():
    """Their difference is one ratio, and not two."""
    share = f"SELECT sex, active, n, n / SUM(n) OVER () AS p FROM ({COUNTS})"
    assert isinstance(bar_of("p - LAG(p) OVER (ORDER BY sex, active)", share), Share)
    assert isinstance(bar_of("n / NULLIF(SUM(n) OVER (), 0)"), Share)
    assert isinstance(bar_of("n / 7 + 1"), Form)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        (f"SELECT n - LAG(n) OVER (ORDER BY sex, active) AS d FROM ({COUNTS})", False),
        (f"SELECT n - LAG(n) OVER (ORDER BY n) AS d FROM ({COUNTS})", True),
        (f"SELECT n - LAG(n) OVER (ORDER BY sex, active) AS d FROM ({COUNTS}) WHERE n > 3", True),
        (f"SELECT SUM(n) OVER (PARTITION BY sex) AS d FROM ({COUNTS}) WHERE active", False),
        (f"SELECT SUM(n) OVER (PARTITION BY n > 3) AS d FROM ({COUNTS})", True),
        (f"SELECT SUM(n) OVER (ORDER BY n) AS d FROM ({COUNTS})", True),
        (f"SELECT SUM(n) AS d FROM ({COUNTS})", False),
        (f"SELECT SUM(n) FILTER (WHERE n > 3) AS d FROM ({COUNTS})", True),
        (f"SELECT SUM(n) AS d FROM ({FEW})", True),
        (f"SELECT n - (SELECT n FROM ({COUNTS}) ORDER BY n DESC LIMIT 1) AS d FROM ({COUNTS})", True),
        (f"SELECT n - 2 * (SELECT SUM(n) FROM ({COUNTS})) AS d FROM ({COUNTS})", False),
        (f"SELECT a.n - 2 * b.n AS d FROM ({COUNTS}) a JOIN ({FEW}) b ON a.sex = b.sex", True),
        (f"SELECT a.n - 2 * b.n AS d FROM ({COUNTS}) a JOIN ({FEW}) b ON a.sex = b.sex AND a.active = b.active", False),
        (f"SELECT a.n - 2 * b.n AS d FROM ({COUNTS}) a JOIN ({COUNTS}) b ON a.n < b.n", True),
    ],
)
def test_what_noise_chose_is_known(text, chosen):
    """By a condition, an order that is cut, a partition or a join of noisy values; a row that is named by its keys is not."""
    bar = rows_of(text).bars[0]
    assert isinstance(bar, Form)
    assert bar.chosen is chosen


def test_what_was_chosen_is_judged_among_all():
    """Its bar is wider than that of a sum that was fixed before noise."""
    fixed = rows_of(f"SELECT SUM(n) AS d FROM ({COUNTS}) WHERE active").bars[0]
    assert reach(fixed.mark()) > 1.5 * reach(fixed)


def test_a_part_that_noise_may_have_made_null_leaves_no_bound():
    """A sum of quotients is over those whose divisor came out above 0: of the others nothing is known."""
    rows = rows_of(f"SELECT SUM(1.0 / (n - 10000)) AS d FROM ({COUNTS})")
    where = enclose_bar(rows.bars[0], MISS)
    assert rows.columns[0].null.all()
    assert where.null.all()


def test_ranks_and_extremes_are_proved_and_counts_of_different_values_are_not():
    """Where nothing is proved nothing is said."""
    assert is_proved(bar_of("RANK() OVER (ORDER BY n)"))
    assert is_proved(bar_of("MAX(n) OVER ()"))
    assert not is_proved(rows_of(f"SELECT COUNT(DISTINCT n) AS d FROM ({COUNTS})").bars[0])


def test_the_rank_of_numbers_far_apart_is_certain_and_of_equal_ones_open():
    """By intervals that do not meet, and by ones that do."""
    ranked = "RANK() OVER (ORDER BY n + 100000 * CASE WHEN active THEN 1 ELSE 0 END)"
    rows = rows_of(f"SELECT {ranked} AS d, active FROM ({COUNTS})")
    far, active = enclose_bar(rows.bars[0], MISS), rows.columns[1].values
    near = enclose_bar(bar_of("ROW_NUMBER() OVER (ORDER BY n * 0.0)"), MISS)
    assert (far.low[active] >= 3).all()
    assert (far.high[~active] <= 2).all()
    assert (set(near.low.tolist()), set(near.high.tolist())) == ({1.0}, {4.0})


def test_rows_with_the_same_entries_are_found():
    """Whatever their order, and rows of no entry too."""
    entries = np.array([[0.0, 1.0], [1.0, 2.0], [1.0, 2.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    found = row_patterns(np.array([0, 2, 4, 6, 6]), entries)
    assert {(classes, tuple(rows.tolist())) for classes, rows in found} == {
        ((((0.0, 1.0), 1), ((1.0, 2.0), 1)), (0, 1)),
        ((((0.0, 1.0), 2),), (2,)),
        ((), (3,)),
    }

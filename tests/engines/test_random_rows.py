"""Random questions over rows mean to the curator what they mean to a plain DuckDB: answers at a high budget against the truth.

A number is right if its interval at LEVEL holds the true one. A group that only the curator shows must be empty: declared keys
are shown without data. One that only DuckDB shows must be small, and its keys chosen by the data. Both are seen in COUNT(*),
which every question has. The 2,000 questions have some 30,000 numbers: one of them fails by luck with probability 3e-7 in all.
Intervals are narrow: most of the numbers that are not 0 are known to one percent, which is asserted, and seeded bugs are caught.
"""

import random

import market
import pytest
from random_rows import random_question
from true_values import LEVEL, Asking, plain_value

import curador as cu
from curador.engines.lower import expression
from curador.engines.lower.dialect_duckdb import DuckDB

pytestmark = pytest.mark.slow

RHO = 20_000
MANY, PARTS = 2000, 20
FEW = 60
"""A group of fewer rows may be missing where data choose the keys: the threshold is at some rows of as many people."""


def compare(sql, by, answer, true):
    """Yield what differs between an answer and the truth."""
    columns = answer.parts
    got = {keys_of(row, by): place for place, row in enumerate(zip(*(part.values for part in columns), strict=True))}
    wanted = {keys_of(row, by): row for row in true}
    for keys, row in wanted.items():
        if keys not in got:
            if row[by] > FEW:
                yield f"{keys}: no such group, of {row[by]} rows"
            continue
        for column, part in enumerate(columns[by:], by):
            place = got[keys]
            if not holds(part, place, row[column]):
                yield f"{keys}: {part.name} is {part.values[place]} ({part.low[place]} … {part.high[place]}) for {row[column]}"
    for keys, place in got.items():
        if keys not in wanted and not holds(columns[by], place, 0):
            yield f"{keys}: a group that is not there, of {columns[by].values[place]} rows"


def keys_of(row, by):
    return tuple(repr(plain_value(value)) for value in row[:by])


def holds(part, place, true):
    """Whether an interval holds the true value; a sum of nothing is 0, any other NULL is of nothing and may be anything."""
    low, high = part.low[place], part.high[place]
    if low is None or high is None:
        return part.values[place] is None or true is None
    if true is None:
        return True
    slack = 1e-9 * max(1.0, abs(float(true)))
    return low - slack <= float(true) <= high + slack


def narrow(answer, by):
    """Count the numbers that are not 0, and those of them that are known to one percent."""
    cells = [
        (value, part.high[place] - part.low[place])
        for part in answer.parts[by:]
        for place, value in enumerate(part.values)
        if value and part.low[place] is not None and part.high[place] is not None
    ]
    return len(cells), sum(width <= 0.02 * abs(value) for value, width in cells)


def run(seed, many):
    """Ask `many` random questions; return what differs, how many were refused, and how narrow the intervals are."""
    dice, asking = random.Random(seed), Asking(market.opened)
    wrong, refused, answered, cells, known = [], [], 0, 0, 0
    while answered < many:
        curator, plain = asking.pair()
        sql, by = random_question(dice)
        try:
            answer = curator.ask(sql, rho=RHO, confidence=LEVEL)
        except cu.Refused as refusal:
            refused.append(f"{sql}\n  {refusal}")
            continue
        answered += 1
        found = list(compare(sql, by, answer, plain.execute(sql).fetchall()))
        if found:
            wrong.append("\n  ".join([sql, *found[:4]]))
        counted = narrow(answer, by)
        cells, known = cells + counted[0], known + counted[1]
    asking.close()
    return wrong, refused, cells, known


@pytest.mark.parametrize(
    "part", [*range(PARTS // 10), *(pytest.param(one, marks=pytest.mark.long) for one in range(PARTS // 10, PARTS))]
)
def test_random_questions_mean_what_they_mean_to_duckdb(part):
    """A hundred questions a part, of which at most one in six more is refused."""
    wrong, refused, cells, known = run(part, MANY // PARTS)

    assert not wrong, "\n".join(wrong)
    assert len(refused) <= MANY // PARTS // 6, "\n".join(refused)
    assert known >= 0.6 * cells

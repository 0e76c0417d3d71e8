"""Random questions over rows mean to the curator what they mean to a plain DuckDB: answers at a high budget against it.

A number is right if its interval at LEVEL holds the true one. A group that only the curator shows must be empty: declared
keys are shown without data. One that only DuckDB shows must be small, and its keys chosen by the data. Both are seen in
COUNT(*), which every question has. The 2,000 questions have some 30,000 numbers: one of them fails by luck with probability
3e-7. Intervals are narrow: most numbers that are not 0 are known to one percent, which is asserted; seeded bugs are caught.
"""

import contextlib
import dataclasses
import math
import random

import market
import pytest
from random_rows import random_question
from true_values import LEVEL, Asking, plain_value

import curador as cu
from curador.engines.lower import expression, relation
from curador.engines.lower.dialect_duckdb import DuckDB

pytestmark = pytest.mark.slow

RHO = 20_000
MANY, PARTS = 2000, 20
FEW = 60
"""A group of fewer rows may be missing where data choose the keys: the threshold is at some rows of as many people."""


def compare(by, answer, true):
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
                ends = f"{part.low[place]} … {part.high[place]}"
                yield f"{keys}: {part.name} is {part.values[place]} ({ends}) for {row[column]}"
    for keys, place in got.items():
        if keys not in wanted and not holds(columns[by], place, 0):
            yield f"{keys}: a group that is not there, of {columns[by].values[place]} rows"


def keys_of(row, by):
    return tuple(repr(plain_value(value)) for value in row[:by])


def holds(part, place, true):
    """Whether an interval holds the true value, where one is stated; a NULL or NaN is of nothing, and noise is left of it."""
    low, high = part.low[place], part.high[place]
    if low is None or high is None or true is None or math.isnan(true):
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


def asked(seed, many, words=""):
    """Ask random questions with some words until `many` were answered; yield each, its refusal, what differs, how narrow."""
    dice, asking = random.Random(seed), Asking(market.opened)
    with contextlib.closing(asking):
        while many:
            sql, by = random_question(dice)
            if words not in sql:
                continue
            curator, plain = asking.pair()
            try:
                answer = curator.ask(sql, rho=RHO, confidence=LEVEL)
            except cu.Refused as refusal:
                yield sql, str(refusal), [], (0, 0)
                continue
            many -= 1
            yield sql, None, list(compare(by, answer, plain.execute(sql).fetchall())), narrow(answer, by)


@pytest.mark.parametrize(
    "part", [*range(PARTS // 10), *(pytest.param(one, marks=pytest.mark.long) for one in range(PARTS // 10, PARTS))]
)
def test_random_questions_mean_what_they_mean_to_duckdb(part):
    """A hundred answers a part; few questions are refused, and most numbers are known to one percent."""
    found = list(asked(part, MANY // PARTS))
    wrong = ["\n  ".join([sql, *differs[:4]]) for sql, _, differs, _ in found if differs]
    refused = [f"{sql}\n  {refusal}" for sql, refusal, _, _ in found if refusal]
    cells, known = (sum(counted[place] for *_, counted in found) for place in (0, 1))

    assert not wrong, "\n".join(wrong)
    assert len(refused) <= MANY // PARTS // 6, "\n".join(refused)
    assert known >= 0.6 * cells


# ---- seeded bugs -----------------------------------------------------------------------------------------------------------


def changed(text):
    """Return a bug: a function whose SQL is put into another."""

    def seed(name, monkeypatch):
        true = expression.LOWERED[name]

        def wrong(call, arguments, dialect):
            term = true(call, arguments, dialect)
            return dataclasses.replace(term, sql=text.format(term.sql))

        monkeypatch.setitem(expression.LOWERED, name, wrong)

    return seed


def months_from_zero(_, monkeypatch):
    true = DuckDB.part
    monkeypatch.setattr(DuckDB, "part", lambda self, part, x: true(self, part, x) + (" - 1" if part == "month" else ""))


def lost_rows(_, monkeypatch):
    monkeypatch.setitem(relation._JOINS, "left", "JOIN")  # noqa: SLF001


@pytest.mark.parametrize(
    ("name", "seed", "words"),
    [
        ("not", changed("COALESCE({}, TRUE)"), "NOT ("),
        ("in", changed("COALESCE({}, TRUE)"), " IN ("),
        ("=", changed("COALESCE({}, TRUE)"), " = "),
        ("coalesce", changed("NULLIF({}, 7)"), "COALESCE("),
        ("round", changed("trunc({} - 0.25)"), "ROUND("),
        ("month", months_from_zero, "month"),
        ("left", lost_rows, "LEFT JOIN"),
    ],
    ids=lambda one: one if isinstance(one, str) and one.isalpha() else "",
)
def test_a_wrong_meaning_is_caught(name, seed, words, monkeypatch):
    """Each makes something mean something else, most of them only in rows where it is NULL; of 60 questions one tells."""
    seed(name, monkeypatch)

    assert any(differs for *_, differs, _ in asked(0, 60, words))

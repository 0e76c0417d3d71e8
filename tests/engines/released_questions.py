"""Random questions over released results, each as two texts: one for us, one for DuckDB on the released tables.

They differ in one thing: a quotient whose divisor is released is NULL where that is not above 0, which DuckDB is told in so
many words.
"""

import itertools
import random
import zlib
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
from corpus_schemas import schema

from curador.answers.identity import plain
from curador.answers.release import Ends, ReleasedBlock, cross_keys, key_columns
from curador.answers.table import answer_columns
from curador.plan.build import build_plan
from curador.plan.price import QuantileNoise, price
from curador.query.sql import parse

RESULTS = {
    "a": "SELECT sex, active, COUNT(*) AS n, SUM(income) AS s FROM people GROUP BY sex, active",
    "b": "SELECT sex, active, COUNT(*) AS m, AVG(age) AS g FROM people WHERE age > 40 GROUP BY sex, active",
    "c": "SELECT city, COUNT(*) AS n, MEDIAN(income) AS g FROM people GROUP BY city",
    "d": "SELECT place, returned, COUNT(*) AS n, SUM(spent) AS s FROM visits GROUP BY place, returned",
    "t": "SELECT COUNT(*) AS n, SUM(income) AS s FROM people",
}
KEYS = {"a": ["sex", "active"], "b": ["sex", "active"], "c": ["city"], "d": ["place", "returned"], "t": []}
NUMBERS = {"a": ["n", "s"], "b": ["m", "g"], "c": ["n", "g"], "d": ["n", "s"], "t": ["n", "s"]}
VALUES = {
    "city": ["Lyon", "Nice", "Oslo", "Paris", None],
    "sex": ["f", "m"],
    "active": [False, True],
    "place": ["shop", "web", "phone", None],
    "returned": [False, True],
}
PEOPLE = schema("people")


def with_results(text):
    """Return a text with the results that it may name in front of it."""
    return f"WITH {', '.join(f'{name} AS ({inner})' for name, inner in RESULTS.items())} {text}"


def released(block, noises):
    """Return made-up numbers of a block: the same for the same measurement of the same rows, whatever else is asked."""
    names = [block.relation.columns[block.keys[place].expression.index].name for place in block.private_keys]
    rows = cross_keys(block, list(itertools.product(*(VALUES[name] for name in names))))
    values = []
    for measurement, noise in zip(block.measurements, noises, strict=True):
        said = f"{plain(block.relation)} {measurement.text} {measurement.grid}"
        dice = np.random.default_rng(zlib.crc32(said.encode()))
        if isinstance(noise, QuantileNoise):
            point = dice.uniform(1, 900, len(rows))
            values.append(Ends(point, point - 5, point + 5))
        else:
            spread = 40 if measurement.grid is None else 1 << 30
            values.append(dice.integers(-spread // 4, spread, len(rows)))
    units = np.full(len(rows), 500.0) if block.private_keys else None
    return ReleasedBlock(key_columns(rows, len(block.keys)), tuple(values), units)


def answered(text):
    """Return the answer's columns of a question over made-up releases."""
    plan = build_plan(parse(text, PEOPLE), PEOPLE)
    delta = Fraction(1, 10**6) if any(block.private_keys for block in plan.blocks) else Fraction(0)
    priced = price(plan, "concentrated", Fraction(1, 10), delta)
    held = [released(block, noises) for block, noises in zip(plan.blocks, priced.noises, strict=True)]
    return answer_columns(priced, held)


def reference():
    """Return a DuckDB that has the released tables and nothing else."""
    connection = duckdb.connect()
    for name, text in RESULTS.items():
        columns = answered(text)
        connection.register(f"{name}_", pa.table({column.name: pa.array(column.values) for column in columns}))
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_")
    return connection


class Maker:
    """Makes questions: a text is a pair, ours and the reference's."""

    def __init__(self, seed):
        self.dice = random.Random(seed)

    def number(self, names, depth=2):
        """Return an arithmetic expression over number columns."""
        dice = self.dice
        if depth == 0 or dice.random() < 0.3:
            one = dice.choice(names) if dice.random() < 0.8 else str(dice.randint(-3, 9))
            return one, one
        kind = dice.choice(["+", "-", "*", "/", "round", "abs", "case", "coalesce", "least", "nullif"])
        left, right = self.number(names, depth - 1), self.number(names, depth - 1)
        if kind == "/":
            if any(name in right[0] for name in names):
                return f"({left[0]} / ({right[0]}))", f"({left[1]} / CASE WHEN ({right[1]}) > 0 THEN ({right[1]}) END)"
            return left
        forms = {
            "round": "ROUND({0} * 1.0, 1)",
            "abs": "ABS({0})",
            "case": "CASE WHEN {0} > {1} THEN {0} ELSE {1} END",
            "coalesce": "COALESCE({0}, {1})",
            "least": "LEAST({0}, {1})",
            "nullif": "NULLIF({0}, {1})",
        }
        form = forms.get(kind, f"({{0}} {kind} {{1}})")
        return tuple(form.format(left[side], right[side]) for side in (0, 1))

    def condition(self, names):
        """Return a condition over number columns."""
        sign = self.dice.choice(["<", ">", "<=", ">="])
        left, right = self.number(names, 1), self.number(names, 1)
        return tuple(f"{left[side]} {sign} {right[side]}" for side in (0, 1))

    def window(self, keys, names):
        """Return a window function; its order is total."""
        dice = self.dice
        inner = self.number(names, 1)
        partition = f"PARTITION BY {dice.choice(keys)} " if keys and dice.random() < 0.4 else ""
        way = dice.choice(["", " DESC", " NULLS FIRST"])
        total = ", ".join([f"{dice.choice(names)}{way}", *keys]) if dice.random() < 0.6 else ", ".join(keys) or names[0]
        kind = dice.choice(["row_number", "rank", "dense_rank", "lag", "lead", "sum", "avg", "count", "min", "max", "first"])
        frame = dice.choice(
            ["", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"]
        )
        order = f"ORDER BY {total} "
        if kind in {"row_number", "rank", "dense_rank"}:
            return tuple(f"{kind}() OVER ({partition}{order})" for _ in (0, 1))
        if kind in {"lag", "lead"}:
            step = dice.randint(1, 2)
            return tuple(f"{kind}({inner[side]}, {step}) OVER ({partition}{order})" for side in (0, 1))
        if kind == "first":
            return tuple(f"first_value({inner[side]}) OVER ({partition}{order}{frame})" for side in (0, 1))
        over = f"{partition}{order}{frame}" if dice.random() < 0.6 else partition
        return tuple(f"{kind}({inner[side]}) OVER ({over})" for side in (0, 1))

    def aggregate(self, names):
        """Return an aggregate over released rows."""
        inner = self.number(names, 1)
        kind = self.dice.choice(["SUM", "AVG", "MIN", "MAX", "COUNT", "COUNT DISTINCT", "FILTER"])
        if kind == "COUNT DISTINCT":
            inner = (names[0], names[0]) if not any(name in inner[0] for name in names) else inner
            return tuple(f"COUNT(DISTINCT {inner[side]})" for side in (0, 1))
        if kind == "FILTER":
            where = self.condition(names)
            return tuple(f"SUM({inner[side]}) FILTER (WHERE {where[side]})" for side in (0, 1))
        return tuple(f"{kind}({inner[side]})" for side in (0, 1))

    def source(self):
        """Return FROM with its keys and numbers: a result, or two joined."""
        dice = self.dice
        one = dice.choice("aabcd")
        if dice.random() < 0.55:
            return one, KEYS[one], NUMBERS[one]
        kind = dice.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS", "SELF"])
        if kind == "CROSS":
            return f"{one} x CROSS JOIN t y", [f"x.{key}" for key in KEYS[one]], [f"x.{NUMBERS[one][0]}", "y.n", "y.s"]
        if kind == "SELF":
            on = " AND ".join(f"x.{key} = y.{key}" for key in KEYS[one])
            names = [f"x.{NUMBERS[one][0]}", f"y.{NUMBERS[one][1]}"]
            return f"{one} x JOIN {one} y ON {on}", [f"x.{key}" for key in KEYS[one]], names
        on = "x.sex = y.sex AND x.active = y.active"
        return f"a x {kind} b y ON {on}", ["x.sex", "x.active"], ["x.n", "x.s", "y.m", "y.g"]

    def scalar(self):
        """Return a scalar subquery."""
        one = self.dice.choice("abcd")
        inner = self.aggregate(NUMBERS[one])
        return tuple(f"(SELECT {inner[side]} FROM {one})" for side in (0, 1))

    def question(self):
        """Return a question in both spellings."""
        dice = self.dice
        source, keys, names = self.source()
        kind = dice.choice(
            ["rows", "rows", "groups", "groups", "windows", "windows", "scalars", "distinct", "union", "nested"]
        )
        where = self.condition(names) if dice.random() < 0.4 else None
        tail = ["", ""] if where is None else [f" WHERE {where[side]}" for side in (0, 1)]
        listed = [(key, key) for key in keys]
        if kind == "rows":
            listed += [self.number(names) for _ in range(2)]
            if keys and dice.random() < 0.5 and "JOIN" not in source:
                tail = [f"{one} ORDER BY {', '.join(keys)} LIMIT {2 + len(keys)}" for one in tail]
        elif kind == "groups":
            by = dice.sample(keys, dice.randint(0, len(keys)))
            listed = [(key, key) for key in by] + [self.aggregate(names) for _ in range(2)]
            if by:
                tail = [f"{one} GROUP BY {', '.join(by)}" for one in tail]
                if dice.random() < 0.4:
                    having = self.aggregate(names)
                    tail = [f"{one} HAVING {having[side]} > 3" for side, one in enumerate(tail)]
        elif kind == "windows":
            listed += [self.window(keys, names) for _ in range(2)]
            if dice.random() < 0.3:
                chosen = self.window(keys, names)
                tail = [f"{one} QUALIFY {chosen[side]} > 1" for side, one in enumerate(tail)]
        elif kind == "scalars":
            inner = self.scalar()
            shown = dice.choice(names)
            listed.append((f"{shown} / {inner[0]}", f"{shown} / CASE WHEN {inner[1]} > 0 THEN {inner[1]} END"))
            other = self.scalar()
            word = "AND" if tail[0] else "WHERE"
            tail = [f"{one} {word} {shown} > {other[side]}" for side, one in enumerate(tail)]
        elif kind == "distinct":
            where = self.condition(names)
            return tuple(f"SELECT DISTINCT {where[side]} AS c FROM {source}{tail[side]}" for side in (0, 1))
        elif kind == "union":
            own = self.number(["n", "s"], 1)
            return tuple(
                f"SELECT sex, n, {own[side]} AS v FROM a UNION ALL SELECT place, n, {own[side]} FROM d" for side in (0, 1)
            )
        else:
            inner, outer = self.number(names, 1), self.aggregate(["v"])
            key = f"{keys[0]} AS k, " if keys else "1 AS k, "
            texts = [f"SELECT {key}{inner[side]} AS v FROM {source}{tail[side]}" for side in (0, 1)]
            return tuple(f"SELECT k, {outer[side]} AS w FROM ({texts[side]}) GROUP BY k" for side in (0, 1))
        return tuple(
            f"SELECT {', '.join(f'{one[side]} AS c{place}' for place, one in enumerate(listed))} FROM {source}{tail[side]}"
            for side in (0, 1)
        )


def sorted_rows(rows):
    """Return rows in an order of their own, for a comparison as sets."""

    def part(value):
        if value is None:
            return (0, 0.0, "")
        if isinstance(value, str):
            return (2, 0.0, value)
        return (1, round(float(value), 4), "")

    return sorted(rows, key=lambda row: [part(value) for value in row])


def is_same(one, other):
    """Whether two values are equal, doubles but for their last digits."""
    if one is None or other is None or isinstance(one, str):
        return one == other
    return abs(float(one) - float(other)) <= 1e-9 * max(1.0, abs(float(one)), abs(float(other)))

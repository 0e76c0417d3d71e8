"""The engine's own count of rows, operator by operator, beside what the plan says that one unit can cause."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import duckdb

from curador.engines.duckdb.connection import connect, run_in_order
from curador.engines.duckdb.spelling import DISORDER
from curador.engines.duckdb.versions import specification
from curador.engines.lower.block import collect, lower_ways
from curador.plan.work import NAME_BYTES, TEXT_BYTES, UNIT_TEXT_BYTES
from curador.privacy.adjacency import Adjacency
from curador.study.values import Type


@dataclass
class Eye:
    """A connection to an engine's data version, as questions have it, that counts what every operator gives."""

    engine: Any
    connection: Any = None
    counts: list = field(default_factory=list)
    scanned: int = 0
    empty: bool = False

    @cached_property
    def long_texts(self):
        """What of the data version has longer texts than plans count on: looked up once, as no question changes it."""
        return list(text_violations(self))

    def __post_init__(self):
        spec = specification(self.engine.schema, self.engine._folder, self.engine.version)  # noqa: SLF001
        database = spec["database"]
        self.connection = connect(database, spec["config"], read_only=database != ":memory:")
        for statement in spec["setup"]:
            self.connection.execute(statement).fetchall()
        run_in_order(self.connection)
        rows = [self.connection.execute(f"SELECT count(*) FROM t{place}").fetchall()[0][0] for place in range(tables(self))]
        self.empty = 0 in rows
        self.connection.execute("PRAGMA enable_profiling = 'no_output'")

    def tally(self, blocks):
        """Return the exact integers of the blocks, and remember the counts of each."""
        self.counts, self.scanned, out = [], 0, []
        for block in blocks:
            result = self.result(lower_ways(block, self.engine.schema))
            found = []
            for root in json.loads(self.connection.get_profiling_information("json"))["operator"]:
                gather(root, found)
                self.scanned += looked_at(root)
            self.counts.append(found)
            out.append(collect(block, result))
        return out

    def result(self, ways):
        """Return the result of the first statement that does not stop for the order of rows, as the worker does."""
        for way in ways[:-1]:
            try:
                return self.connection.sql(str(way)).to_arrow_table()
            except duckdb.InvalidInputException as problem:
                if DISORDER not in str(problem):
                    raise
        return self.connection.sql(str(ways[-1])).to_arrow_table()

    def close(self):
        """Close the connection."""
        self.connection.close()


def looked_at(node):
    """Return how many rows of tables were looked at, all of them together."""
    return int(node.get("rows_scanned", 0)) + sum(looked_at(child) for child in node.get("children", []))


def tables(eye):
    """Return how many tables there are."""
    return len(eye.engine.schema.tables)


def gather(node, found):
    """Collect (name, rows given, rows looked at) of every operator, in the order of the tree.

    A table that was to be read, though all its parts were skipped, counts as looked at.
    """
    looked = None if node["type"] != "TABLE_SCAN" else int(node.get("total_row_groups_to_scan", 0))
    found.append((node["type"], int(node["intermediate_rows"]), looked))
    for child in node.get("children", []):
        gather(child, found)


def work_violations(plan, one, other):
    """Return where one unit makes an operator give more rows than the plan says, or look at more."""
    twice = 2 if plan.adjacency is Adjacency.REPLACE_ONE else 1
    for number, (block, ours, theirs) in enumerate(zip(plan.blocks, one.counts, other.counts, strict=True)):
        if [name for name, *_ in ours] != [name for name, *_ in theirs]:
            yield f"block {number}: the engine runs other operators: {ours} and {theirs}"
            continue
        moved = [(name, abs(a - b)) for (name, a, _), (_, b, _) in zip(ours, theirs, strict=True)]
        name, most = max(moved, key=lambda pair: pair[1])
        planned = max(step.rows for step in block.work)
        if most > twice * planned:
            yield f"block {number}: {name} gives {most} rows more; the plan says {planned}"
        if not (one.empty or other.empty) and any(
            (a == 0) != (b == 0) for (*_, a), (*_, b) in zip(ours, theirs, strict=True)
        ):
            yield f"block {number}: a table is read for one unit's sake: {ours} and {theirs}"


def text_violations(eye):
    """Return where a prepared version holds longer texts than the plan counts on."""
    for place, table in enumerate(eye.engine.schema.tables):
        owner = getattr(table.table.unit, "column", None)
        for index, column in enumerate(table.fields):
            if column.type is not Type.STRING or table.table.public:
                continue
            naming = column.name == owner
            longest = f"SELECT max(strlen(c{index})) FROM t{place}"
            together = f"SELECT max(n) FROM (SELECT sum(strlen(c{index})) AS n FROM t{place} GROUP BY __u)"
            one, whole = (eye.connection.execute(text).fetchall()[0][0] or 0 for text in (longest, together))
            if one > (NAME_BYTES if naming else TEXT_BYTES) or (not naming and whole > UNIT_TEXT_BYTES):
                yield f"{table.table.name}.{column.name}: a text of {one} bytes, {whole} of one unit"

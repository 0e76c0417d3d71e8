"""Prints W, the most work of one unit's rows, and the height of every question of the corpus that is answered.

python tests/corpus/print_work.py
"""

from __future__ import annotations

import statistics

from corpus_schemas import questions, schema

from curador.errors import Refused
from curador.plan.build import build_plan
from curador.plan.work import most_stored, nanoseconds_of
from curador.query.sql import parse


def main() -> None:
    """Print a line a question, the largest W last, then what most questions have."""
    found: list[tuple[float, int, str, str]] = []
    refused = 0
    for case in questions():
        if case["expect"] != "answer":
            continue
        known = schema(case["schema"])
        try:
            plan = build_plan(parse(case["sql"], known, dialect=case["dialect"]), known)
        except Refused as error:
            refused += "ms of work" in str(error)
            continue
        work = sum(nanoseconds_of(block.work) for block in plan.blocks) / 1e6
        heights = [block.cap.height or most_stored(block.relation, known) for block in plan.blocks]
        found.append((work, min(heights), case["id"], case["sql"]))
    for work, height, name, sql in sorted(found):
        print(f"{work:8.4f} ms  height {height:6,}  {name}  {sql[:90]}")
    milliseconds, heights = [one[0] for one in found], [one[1] for one in found if one[1] > 1]
    print(f"{len(found)} questions, {refused} refused for work: median {statistics.median(milliseconds):.3f} ms, ", end="")
    print(f"most {max(milliseconds):.2f} ms; heights above 1: median {statistics.median(heights):,}, least {min(heights):,}")


if __name__ == "__main__":
    main()

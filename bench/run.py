"""Benchmarks: `python bench/run.py --task A|A1..A5|AG|B|C|D|F|G|L|S|U --peers some|all`.

Ends with 1 if a target that could be measured was missed, otherwise with 0.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import footprint
from accounting import grid
from accounting import room as accounting
from accounting.tasks import TASKS
from growth import room as growth
from learn import room as learn
from local import room as local
from query import room as query
from sampling import room as sampling
from states import room as states
from usable import room as usable

RESULTS = Path(__file__).resolve().parent / "results"


def main() -> int:
    """Read the command line and run one room."""
    parser = argparse.ArgumentParser(description="Ratios against the peers, side by side in one run.")
    parser.add_argument("--task", default="A", choices=["A", *TASKS, "AG", "B", "C", "D", "F", "G", "L", "S", "U"])
    parser.add_argument("--peers", default="some", choices=["some", "all"])
    parser.add_argument("--long", action="store_true", help="task L: the largest sizes too")
    parser.add_argument("--before", default="HEAD~1", help="task B: the revision that the sources are compared with")
    chosen = parser.parse_args()
    if chosen.task == "B":
        return states.run(RESULTS, chosen.before)
    if chosen.task == "AG":
        return grid.run(RESULTS)
    if chosen.task == "D":
        return local.run(folder=RESULTS)
    if chosen.task == "F":
        return footprint.run(RESULTS)
    if chosen.task == "G":
        return growth.run(RESULTS)
    if chosen.task == "L":
        return learn.run(folder=RESULTS, long=chosen.long)
    everyone = chosen.peers == "all"
    if chosen.task == "U":
        return usable.run(everyone=everyone, folder=RESULTS)
    if chosen.task == "C":
        return query.run(everyone=everyone, folder=RESULTS)
    if chosen.task == "S":
        return sampling.run(everyone=everyone, folder=RESULTS)
    if chosen.task == "A":
        return accounting.run(TASKS, everyone=everyone, folder=RESULTS)
    return accounting.run([chosen.task], everyone=everyone, folder=None)  # a part is shown, not kept


if __name__ == "__main__":
    sys.exit(main())

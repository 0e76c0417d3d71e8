"""Asks every statement that has a true value or a wanted refusal, and prints what did not come out so.

python tests/corpus/print_corpus.py            all of the market
python tests/corpus/print_corpus.py image      those whose name begins so
python tests/corpus/print_corpus.py --review   the statements about the reference data, where they are present

At the end: how many passed, failures by what they need, and how much of a processor refusals took.
"""

from __future__ import annotations

import collections
import os
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import market  # noqa: E402
import numpy as np  # noqa: E402
import review  # noqa: E402
from true_values import Asked, Asking, entries  # noqa: E402


def main(words: list[str]) -> int:
    """Print a block a failure, then figures; the number of failures is returned."""
    names = [word for word in words if not word.startswith("--")]
    chosen = review.entries_by_schema() if "--review" in words else {"market": (market.opened, entries())}
    found: list[Asked] = []
    begun = time.process_time()
    for opening, held in chosen.values():
        asking = Asking(opening)
        found += [asking.judge(one) for one in held if not names or one["id"].startswith(tuple(names))]
        asking.close()
    failed = [one for one in found if one.problem]
    for one in failed:
        print(f"{one}\n")
    print(f"{len(found) - len(failed)} of {len(found)} as wanted, in {time.process_time() - begun:.0f} s of a processor")
    for need, many in sorted(collections.Counter(str(one.entry["needs"]) for one in failed).items()):
        print(f"  {many:3d} that need {need}")
    refused = sorted((one for one in found if one.seconds is not None), key=lambda one: one.seconds or 0)
    if refused:
        taken = [1000 * (one.seconds or 0) for one in refused]
        middle, most = np.percentile(taken, [50, 99])
        print(
            f"{len(taken)} refusals: median {middle:.0f} ms, p99 {most:.0f} ms of a processor, wanted below 50 ms; ", end=""
        )
        print(f"most: {refused[-1].entry['id']}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(os.EX_OK if main(sys.argv[1:]) == 0 else 1)

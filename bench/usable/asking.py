"""How every peer is asked: again and again, bounds and all, with the share of the budget that hindsight gets too."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from usable import tasks
from usable.relations_model import Relation
from usable.scores import squared

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EPSILON = float(tasks.EPSILON) * tasks.SHARED / 100
DELTA = float(tasks.DELTA) * tasks.SHARED / 100

Groups = dict[str, float]


class NotFoundError(Exception):
    """The tool found no bounds: there is no figure, and 0 is all that is known."""


def questions() -> list[Relation]:
    """Return the questions of the list that the command line names."""
    return [Relation(**one) for one in json.loads(Path(sys.argv[1]).read_text())]


def answered(answer: Callable[[], Groups]) -> list[Groups]:
    """Return several answers; an empty one where no bounds were found."""
    found: list[Groups] = []
    start = time.monotonic()
    while len(found) < tasks.PEER_RUNS and (len(found) < 3 or time.monotonic() - start < tasks.PEER_SECONDS):
        try:
            found.append(answer())
        except NotFoundError:
            found.append({})
    return found


def tell(question: Relation, found: Sequence[Groups] | str) -> None:
    """Print the line of a question: the error of its answers, or why there are none."""
    line: dict[str, object] = {"question": question.name}
    if isinstance(found, str):
        line["reason"] = found
    else:
        errors = [squared(question.truth, one) for one in found]
        line["error"] = math.sqrt(sum(errors) / len(errors))
        line |= {"runs": len(errors), "missing": sum(not one for one in found)}
    print(json.dumps(line), flush=True)

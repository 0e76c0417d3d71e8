"""What one warm question enters: the files of curador, the first function of each, and the types that are made.

    python tests/docs/questions_way.py

Run as a program of its own, so that nothing another test asked before is remembered.
"""

import enum
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import curador as cu

ROOT = Path(cu.__file__).parent
WARM = "SELECT city, COUNT(*) AS n, AVG(spent) AS mean FROM visits WHERE spent > {} GROUP BY city"
ASKED = "SELECT city, COUNT(*) AS k, AVG(spent) AS m FROM visits WHERE spent > 17 GROUP BY city"


def opened(folder):
    """Return a curator of a small table, its statements run in this very process."""
    draw, rows = np.random.default_rng(1), 2_000
    columns = {"user_id": draw.integers(0, 500, rows), "city": draw.choice(["a", "b", "c", "d"], rows)}
    pq.write_table(pa.table({**columns, "spent": draw.uniform(0, 500, rows)}), folder / "visits.parquet")
    return cu.open(
        folder / "visits.parquet",
        unit="user_id",
        budget=cu.Budget(epsilon=300, delta=1e-6),
        bounds={"spent": (0, 500)},
        caps={"rows": 10, "groups": 4},
        ledger=folder / "visits.ledger",
        engine={"worker": "inline"},
    )


def made_by(frame):
    """Return the class that a call makes one of, if it does: by an __init__, a __new__, or as a named tuple."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    if code.co_name == "__init__":
        return type(first)
    named_tuple = code.co_name == "<lambda>" and code.co_varnames[0] == "_cls" if code.co_argcount else False
    return first if isinstance(first, type) and (named_tuple or code.co_name == "__new__") else None


def walked(ask):
    """Return the files that a call enters, each with its functions in order, and the names of the types that are made."""
    files, types = {}, set()

    def seen(frame, event, _):
        if event != "call":
            return
        name = frame.f_code.co_filename
        if name.startswith(str(ROOT) + os.sep):
            files.setdefault(Path(name).relative_to(ROOT).as_posix(), {}).setdefault(frame.f_code.co_name)
        found = made_by(frame)
        if found is not None and found.__module__.startswith("curador") and not issubclass(found, enum.Enum):
            types.add(f"{found.__module__}.{found.__qualname__}")

    sys.setprofile(seen)
    try:
        ask()
    finally:
        sys.setprofile(None)
    return {name: list(held) for name, held in files.items()}, sorted(types)


def main():
    """Print what one question enters after three others."""
    with tempfile.TemporaryDirectory() as place, opened(Path(place)) as curator:
        for least in range(3):
            curator.ask(WARM.format(least), spend="1%")
        files, types = walked(lambda: curator.ask(ASKED, spend="1%"))
    print(json.dumps({"files": files, "types": types}))


if __name__ == "__main__":
    main()

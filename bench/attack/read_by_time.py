"""Tries to read one chosen person's attribute by the clock, as an analyst could, and prints how well it goes.

    python bench/attack/read_by_time.py [--asks 300]

Each plan has a condition that picks one person and tests an attribute; asked with the value that the person has and with
another one, by turns. AUC is the chance that of two asks, one of each kind, the slower one is that with the person's rows:
0.5 is guessing, 1 is certain. `limit on` takes the heaviest question of each family that the limit on work allows;
`limit off` is the control, the same families in a study without a limit: if the clock cannot read there, this machine is too
busy to say anything, and the script ends with 1. `ticks` is the limit with answers on a public time grid (answer_every), and
fewer asks. An analyst who may spend a whole share asks again and again and takes the mean: the last column, by the normal law
from what was measured. The table is small, so that what one person causes is a large part of what is seen.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import curador as cu

PEOPLE, HEAVY = 20_000, 16_384
"""People, with three visits each; the chosen one has as many as are stored."""

CHOSEN = 777
CERTAIN, AMPLIFYING = 0.95, 2
"""AUC that the control must reach in the first two families, which multiply rows; in the others storing cuts."""

TICK = "250ms"
MOST_SECONDS = 60.0
"""Time for one family in one mode: slow questions are asked less often."""

SHARE_ASKS = 10_000
"""Asks that one whole share buys at the least spend of 0.01 %."""

STUDY = """
version = 1
name = "attack"
budget = {{ epsilon = "1000", delta = "1e-3" }}
allow_large_delta = true
max_units = 1_000_000
ledger = "attack.ledger"
{limits}
[engine]
deadline = "300s"
{engine}
[tables.people]
source = "people.parquet"
unit = "user_id"
unique = true
[tables.people.columns]
plan = {{ type = "string", values = ["a", "b"] }}
income = {{ type = "float", bounds = [0, 1000000] }}
[tables.visits]
source = "visits.parquet"
unit = "user_id"
[tables.visits.columns]
spent = {{ type = "float", bounds = [0, 500] }}
[tables.cities]
source = "cities.parquet"
public = true
"""


MODES = {"on": "", "off": 'unit_work = "3600s"', "ticks": f'answer_every = "{TICK}"'}
"""What stands in the study about the engine."""


def written(folder: Path, mode: str) -> Path:
    dice = np.random.default_rng(5)
    ids = np.arange(PEOPLE)
    plans = np.where(dice.random(PEOPLE) < 0.5, "a", "b")
    plans[CHOSEN] = "a"
    income = dice.random(PEOPLE) * 1e5
    income[CHOSEN] = 999_999.0
    pq.write_table(pa.table({"user_id": ids, "plan": plans, "income": income}), folder / "people.parquet")
    users = np.concatenate([np.repeat(ids, 3), np.full(HEAVY, CHOSEN)])
    rows = len(users)
    notes = np.where(users == CHOSEN, "a" * 4_000, "short")
    visits = {
        "user_id": users,
        "spent": dice.random(rows) * 500,
        "rating": dice.integers(1, 6, rows),
        "note": pa.array(notes.tolist()),
        "kind": plans[users],
    }
    pq.write_table(pa.table(visits), folder / "visits.parquet")
    pq.write_table(pa.table({"city": ["w", "x", "y", "z"]}), folder / "cities.parquet")
    (folder / "study.toml").write_text(STUDY.format(engine=MODES[mode], limits='least_spend = "0%"'), encoding="utf-8")
    return folder / "study.toml"


def crossed(size: int) -> str:
    joins = " ".join(f"CROSS JOIN cities c{place}" for place in range(size))
    return f"SELECT COUNT(*) AS n FROM people p {joins} WHERE p.user_id = {CHOSEN} AND p.plan = '{{value}}'"


def joined(size: int) -> str:
    joins = " ".join(f"JOIN visits v{place} ON v{place}.user_id = p.user_id" for place in range(size))
    return f"SELECT COUNT(*) AS n FROM people p {joins} WHERE p.user_id = {CHOSEN} AND p.plan = '{{value}}'"


def joined_freely(size: int) -> str:
    """Return a join of all rows of one person with a share of them, as no limit would let through."""
    return (
        f"SELECT COUNT(*) AS n FROM visits v0 JOIN visits v1 ON v1.user_id = v0.user_id AND v1.rating = v0.rating "
        f"AND v1.spent < {size} WHERE v0.user_id = {CHOSEN} AND v0.kind = '{{value}}'"
    )


def computed(size: int) -> str:
    parts = " AND ".join(f"LN(spent + {place + 1}) < 99" for place in range(size))
    return f"SELECT COUNT(*) AS n FROM visits WHERE user_id = {CHOSEN} AND kind = '{{value}}' AND {parts}"


def searched(size: int) -> str:
    pattern = "%" + "a" * size + "_b%"
    return f"SELECT COUNT(*) AS n FROM visits WHERE user_id = {CHOSEN} AND kind = '{{value}}' AND note LIKE '{pattern}'"


def windowed(size: int) -> str:
    calls = ", ".join(
        f"LAG(spent, {place + 1}) OVER (PARTITION BY user_id ORDER BY spent) AS w{place}" for place in range(size)
    )
    inner = f"SELECT user_id, {calls} FROM visits WHERE user_id = {CHOSEN} AND kind = '{{value}}'"
    return f"SELECT COUNT(*) AS n FROM ({inner}) t WHERE w0 > 0"


def grouped(size: int) -> str:
    return f"SELECT COUNT(*) AS n FROM visits WHERE user_id = {CHOSEN} AND kind = '{{value}}' AND rating + {size} > 0"


def picked(size: int) -> str:
    """Return one person on one side of a join: is the other side read."""
    return (
        f"SELECT COUNT(*) AS n FROM visits v JOIN people p ON p.user_id = v.user_id "
        f"WHERE p.user_id = {CHOSEN} AND p.plan = '{{value}}' AND v.rating + {size} > 0"
    )


FAMILIES = {
    "rows of a public table, again and again": (crossed, range(10, 0, -1), (crossed, 9)),
    "rows joined with themselves": (joined, range(4, 0, -1), (joined_freely, 10)),
    "logarithms": (computed, (300, 100, 30, 10, 3, 1), (computed, 300)),
    "a pattern looked for everywhere": (searched, (1000, 300, 100, 30, 10, 3), (searched, 300)),
    "windows": (windowed, (8, 4, 2, 1), (windowed, 8)),
    "a filter, rows chosen": (grouped, (1,), None),
    "one person on one side of a join": (picked, (1,), None),
}
"""By family: the questions, sizes to try where the limit is on, the question where it is off; None: it would be the same."""


def heaviest(asker: cu.Curator, family: str, mode: str) -> tuple[str, int] | None:
    make, sizes, free = FAMILIES[family]
    if mode == "off":
        make, sizes = (make, ()) if free is None else (free[0], (free[1],))
    for size in sizes:
        try:
            asker.preview(make(size).format(value="a"), rho="1e-9")
        except cu.errors.Refused:
            continue
        return make(size), size
    return None


def timed(curator: cu.Curator, question: str, asks: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of asks with the person's own value and with the other one, by turns."""
    found: dict[str, list[float]] = {"a": [], "b": []}
    began = time.perf_counter()
    for turn in range(asks + 5):
        if turn > 25 and time.perf_counter() - began > MOST_SECONDS:
            break
        for value in ("a", "b") if turn % 2 else ("b", "a"):
            start = time.perf_counter()
            curator.ask(question.format(value=value), rho="1e-9", fresh=True)
            if turn >= 5:
                found[value].append(time.perf_counter() - start)
    return np.array(found["a"]), np.array(found["b"])


def auc(with_rows: np.ndarray, without: np.ndarray) -> tuple[float, float]:
    """The chance that an ask with the rows takes longer, and its standard error."""
    greater = (with_rows[:, None] > without[None, :]).mean() + 0.5 * (with_rows[:, None] == without[None, :]).mean()
    first, second = greater / (2 - greater), 2 * greater**2 / (1 + greater)
    n, m = len(with_rows), len(without)
    variance = greater * (1 - greater) + (n - 1) * (first - greater**2) + (m - 1) * (second - greater**2)
    return float(greater), math.sqrt(max(variance, 0.0) / (n * m))


def again(with_rows: np.ndarray, without: np.ndarray, asks: int) -> tuple[float, float, float]:
    """AUC of the mean of so many asks, by the normal law, and its ends at two standard errors; slow outliers cut off."""
    cut = float(np.quantile(np.concatenate([with_rows, without]), 0.95))
    one, other = with_rows[with_rows <= cut], without[without <= cut]
    spread = math.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 2)
    shift = (one.mean() - other.mean()) / spread
    error = math.sqrt(1 / len(one) + 1 / len(other))
    return tuple(  # type: ignore[return-value]
        statistics.NormalDist().cdf(value * math.sqrt(asks / 2)) for value in (shift, shift - 2 * error, shift + 2 * error)
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--asks", type=int, default=300)
    asks = arguments.parse_args().asks
    print(f"load {os.getloadavg()[0]:.2f}, {asks} asks of each kind, {PEOPLE:,} people, {HEAVY:,} rows of the chosen one")
    print(
        f"{'family':<42} {'limit':<5} {'size':>5} {'W':>8} {'asks':>5} {'more':>9} {'AUC of one ask':>16} "
        f"{f'of {SHARE_ASKS:,} asks':>22}"
    )
    controls: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for mode, times in (("on", asks), ("off", max(asks // 10, 10)), ("ticks", max(asks // 10, 10))):
            place = Path(folder) / mode
            place.mkdir()
            os.environ["CURADOR_REGISTER"] = str(place / "register")  # the same made-up rows, three times
            with cu.open(written(place, mode)) as curator:
                found = [report(curator, family, times, mode) for family in FAMILIES]
            controls += [area for area in found[:AMPLIFYING] if area is not None] if mode == "off" else []
    print(f"load {os.getloadavg()[0]:.2f} at the end")
    seen = min(controls) >= CERTAIN
    print(f"the control reads with AUC {min(controls):.3f} or more: {'as it must' if seen else 'this run says nothing'}")
    return int(not seen)


def report(curator: cu.Curator, family: str, asks: int, mode: str) -> float | None:
    found = heaviest(curator, family, mode)
    if found is None:
        print(f"{family:<42} {mode:<5} {'the same question' if mode == 'off' else 'every size is refused'}")
        return None
    question, size = found
    text = curator.preview(question.format(value="a"), rho="1e-9").explanation
    work = next((line for line in text.splitlines() if line.startswith("work")), "").partition("about ")[2].partition(",")[0]
    one, other = timed(curator, question, asks)
    area, error = auc(one, other)
    middle, low, high = again(one, other, SHARE_ASKS)
    more = (np.median(one) - np.median(other)) * 1000
    row = f"{family:<42} {mode:<5} {size:>5} {work:>8} {len(one):>5} {more:>6.2f} ms {area:>8.3f} ± {2 * error:.3f}"
    print(f"{row} {middle:>8.3f} [{low:.2f}, {high:.2f}]", flush=True)
    return area


if __name__ == "__main__":
    sys.exit(main())

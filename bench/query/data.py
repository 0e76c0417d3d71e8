"""The table of task C, the same on every machine: written once to `.bench/data/`.

`user_id` is skewed (log-normal activity, ten rows a user in the mean), `grp` has fifty values of falling size, `value`
lies in [0, 1000] with three decimals and is NULL in one row of fifty. Rows come in no order. The table is made and
written a million rows at a time, so that a hundred million need no more memory than one.
"""

from __future__ import annotations

import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent.parent / ".bench" / "data"
GROUPS = 50
PIECE = 1_000_000
SEED = 20_260_101


def table(rows: int) -> Path:
    """Return the Parquet file with that many rows, written now if it is not there."""
    place = HOME / f"visits_{rows}.parquet"
    if not place.exists():
        HOME.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(".unfinished")
        _write(rows, unfinished)
        unfinished.replace(place)
    return place


def _write(rows: int, place: Path) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    source = np.random.default_rng(SEED)  # data, not noise
    activity = np.cumsum(source.lognormal(0.0, 1.2, max(rows // 10, 1)))
    popularity = np.cumsum(1.0 / np.arange(1, GROUPS + 1) ** 0.7)
    schema = pa.schema([("user_id", pa.int64()), ("grp", pa.int64()), ("value", pa.float64())])
    with parquet.ParquetWriter(place, schema) as writer:
        for start in range(0, rows, PIECE):
            size = min(PIECE, rows - start)
            user = np.searchsorted(activity, source.random(size) * activity[-1])
            group = np.searchsorted(popularity, source.random(size) * popularity[-1])
            value = np.clip(source.gamma(2.0, 60.0, size) + 4.0 * group, 0, 1000).round(3)
            columns = [user.astype(np.int64), group.astype(np.int64), pa.array(value, mask=source.random(size) < 0.02)]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=122_880)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(table(int(argument)))

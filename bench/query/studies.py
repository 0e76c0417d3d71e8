"""The studies of task C: the same table, declared in several ways, each in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import curador as cu
from query import tasks

USER, USER_NEVER, ROW, ROW_NEVER = STUDIES = ("user", "user, never prepared", "row", "row, never prepared")
FEW = "user, few groups"  # caps on rows and on groups, and delta for keys that are selected privately

ENOUGH = {"rows": tasks.CAP, "groups": tasks.CAP}  # a cap on rows and none on groups: as the peers bound


def opened(folder: Path, file: Path, kind: str, budget: str = tasks.CONCENTRATED, deadline: str = "600s") -> cu.Curator:
    """Return the curator of that study; made and prepared now if the folder does not hold it."""
    home = folder / kind.replace(", ", "_").replace(" ", "_") / budget
    source = home / "visits.parquet"
    if not source.exists():
        home.mkdir(parents=True)
        source.symlink_to(file)
    delta = {} if budget == tasks.PURE else {"delta": str(tasks.DELTA), "delta_keys": 0}  # all keys are declared
    if kind == FEW:
        delta = {"delta": str(tasks.DELTA)}
    return cu.open(
        source,
        unit="row" if kind in {ROW, ROW_NEVER} else "user_id",
        budget=cu.Budget(epsilon=1, **delta),
        bounds={"value": (tasks.LOWER, tasks.UPPER)},
        values={"grp": list(range(tasks.GROUPS))},
        caps=None if kind in {ROW, ROW_NEVER} else tasks.DEFAULTS if kind == FEW else ENOUGH,
        ledger=home / "visits.ledger",
        new_ledger=None if (home / "visits.ledger").exists() else "made-up rows, measured in several ways",
        engine={"prepare": "never" if kind in {USER_NEVER, ROW_NEVER} else "auto", "deadline": deadline},
    )


def prepared(curator: cu.Curator) -> Path:
    """Return the prepared database of a curator."""
    return (
        curator.study.ledger_path.with_name(f"{curator.study.ledger_path.name}.prepared") / f"v{curator.data_version}.duckdb"
    )

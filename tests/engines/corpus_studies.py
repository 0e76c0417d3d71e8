"""The schemas of the corpus as studies with real files."""

import dataclasses
import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curador.study.model import Budget, EngineSettings, UnitPath
from curador.study.values import Type

MANY = 300
ARROW = {
    Type.BOOLEAN: pa.bool_(),
    Type.INTEGER: pa.int64(),
    Type.DECIMAL: pa.float64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us"),
}


def column(field, key, dice, rows):
    """Return values of a column: NULLs and values out of bounds among them, unless it is a key."""
    declared = field.declared.values if field.declared is not None else None
    match field.type:
        case Type.BOOLEAN:
            held = dice.random(rows) < 0.5
        case Type.INTEGER:
            held = np.arange(rows) if key else dice.integers(-5, 150, rows)
        case Type.DECIMAL | Type.FLOAT:
            held = dice.normal(50, 100, rows)
        case Type.STRING:
            held = [
                str(one) for one in (np.arange(rows) if key else dice.choice(declared or ["Lyon", "Paris", "Nice"], rows))
            ]
        case Type.DATE:
            held = [dt.date(2014, 1, 1) + dt.timedelta(days=int(one)) for one in dice.integers(0, 5000, rows)]
        case Type.TIMESTAMP:
            held = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=int(one)) for one in dice.integers(0, 8000, rows)]  # noqa: DTZ001
    mask = np.zeros(rows, bool) if key else dice.random(rows) < 0.03
    return pa.array(held, ARROW[field.type], mask=mask)


def written(known, folder):
    """Write a study of one schema with its data; return its file."""
    dice, study = np.random.default_rng(3), known.study
    keys = {(one.unit.table, one.unit.key) for one in study.tables if isinstance(one.unit, UnitPath)}
    keys |= {(one.name, name) for one in study.tables for name in one.key}
    tables = []
    for one in known.tables:
        table = one.table
        tables.append(dataclasses.replace(table, source=f"{table.name}.parquet"))
        held = {
            field.name: column(
                field, (table.name, field.name) in keys or (table.unique and place == one.unit_index), dice, MANY
            )
            for place, field in enumerate(one.fields)
        }
        pq.write_table(pa.table(held), folder / f"{table.name}.parquet")
    asked = dataclasses.replace(
        study,
        tables=tuple(tables),
        budget=Budget(epsilon=1000, delta="1e-3"),
        engine=EngineSettings(worker="inline"),
        allow_large_delta=True,
        folder=folder,
    )
    (folder / "study.toml").write_text(asked.to_toml(), encoding="utf-8")
    return folder / "study.toml"

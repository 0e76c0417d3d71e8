"""What the peers are given: the rows of each question, added up within one unit and group, and the truth.

Filters, joins and sums within a unit are done here, once, for every peer: each of them lets its user do the same before
anything is bounded (Tumult: filter, join, flat_map_by_id), and none has a way from a line to the customer of its order.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

import duckdb

from usable.relations_model import MEAN, ROWS, SUM, UNITS, VALUES, Relation

if TYPE_CHECKING:
    from pathlib import Path

    from usable.tasks import Asked, DataSet

_SHAPE = re.compile(r"SELECT (?:(?P<key>[\w.]+), )?(?P<what>COUNT|SUM|AVG)\((?P<of>.+?)\) AS n FROM (?P<source>.+)")


def write_relations(data: DataSet, files: Path, folder: Path) -> Path:
    """Write every question of a data set to a folder; return the file that lists them."""
    with duckdb.connect() as plain:
        for name, file in data.files.items():
            plain.execute(f"CREATE VIEW plain_{name} AS SELECT * FROM '{files / file}'")
        for name in data.files:
            plain.execute(f"CREATE VIEW {name} AS {_with_unit(data, name)}")
        found = [_written(plain, data, asked, folder / f"{place}.parquet") for place, asked in enumerate(_asked(data))]
    place = folder / "questions.json"
    place.write_text(json.dumps([asdict(one) for one in found]))
    return place


def _asked(data: DataSet) -> tuple[Asked, ...]:
    return (*data.questions, *data.held)


def _with_unit(data: DataSet, name: str) -> str:
    """Return a table with its unit in a column of its own: what the study declares, followed through other tables."""
    declared = data.tables[name]
    if declared.get("public"):
        return f"SELECT * FROM plain_{name}"
    unit = declared["unit"]
    where = f" WHERE {data.real[name]}" if name in data.real else ""
    if unit == "row":
        return f"SELECT *, row_number() OVER () AS {name}_unit FROM plain_{name}{where}"
    if isinstance(unit, str):
        return f"SELECT *, {unit} AS {name}_unit FROM plain_{name}{where}"
    other, _, column = unit["references"].partition(".")
    if not column:  # the column holds the other table's unit itself
        return f"SELECT *, {unit['column']} AS {name}_unit FROM plain_{name}"
    above = data.tables[other]["unit"]["column"]
    return (
        f"SELECT own.*, other.{above} AS {name}_unit FROM plain_{name} own"
        f" JOIN plain_{other} other ON own.{unit['column']} = other.{column}"
    )


def _written(plain: duckdb.DuckDBPyConnection, data: DataSet, asked: Asked, file: Path) -> Relation:
    shape = _SHAPE.fullmatch(asked.text)
    if shape is None:
        raise ValueError(f"a question of task U must be one aggregate of rows; got {asked.text}")
    source, _, _ = shape["source"].partition(" GROUP BY ")
    table = source.split()[0]
    unit, of = f"{table}_unit", shape["of"].removeprefix("DISTINCT ")
    distinct = of != shape["of"]
    owns = distinct and of.split(".")[-1] == data.tables[table]["unit"]
    what = {"SUM": SUM, "AVG": MEAN}.get(shape["what"], ROWS if not distinct else UNITS if owns else VALUES)
    key = of if what == VALUES else shape["key"] or "''"
    value = of if what in {SUM, MEAN} else "NULL"
    plain.execute(
        f"COPY (SELECT CAST({unit} AS BIGINT) AS unit, CAST({key} AS VARCHAR) AS key, COUNT(*) AS n,"
        f" COUNT({value}) AS counted, CAST(COALESCE(SUM({value}), 0) AS DOUBLE) AS total"
        f" FROM {source} GROUP BY 1, 2 ORDER BY 1, 2) TO '{file}'"
    )
    truth = {str(row[0]) if len(row) > 1 else "": float(row[-1]) for row in plain.execute(asked.text).fetchall()}
    return Relation(
        name=asked.name,
        file=str(file),
        what=what,
        keyed=shape["key"] is not None,
        public=_public(plain, data, shape["key"], source),
        single=" JOIN " not in source and (data.tables[table]["unit"] == "row" or "unique" in data.tables[table]),
        truth=truth,
    )


def _public(plain: duckdb.DuckDBPyConnection, data: DataSet, key: str | None, source: str) -> list[str] | None:
    """Return all values of a key that is a column of a public table."""
    if key is None or "." not in key:
        return None
    alias, _, column = key.partition(".")
    table = next(name for name in data.files if re.search(rf"\b{name} {alias}\b", source))
    if not data.tables[table].get("public"):
        return None
    return [row[0] for row in plain.execute(f"SELECT DISTINCT CAST({column} AS VARCHAR) FROM {table} ORDER BY 1").fetchall()]

"""The reference statements: read or refused as they say, over schemas made of what they declare."""

import json
import os
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_schemas import Facts
from tree_rules import check

from curador.errors import Refused
from curador.query.sql import parse
from curador.study.model import Budget, Column, Field, Schema, Study, Table, TableSchema, UnitColumn, UnitPath
from curador.study.values import Type

SHARED = Path(os.environ.get("CURADOR_SHARED", Path(__file__).resolve().parents[4] / "shared"))
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not (SHARED / "sql" / "cases.jsonl").exists(), reason="the reference material is absent"),
]
TYPES = {"int": Type.INTEGER, "float": Type.FLOAT, "timestamp": Type.TIMESTAMP}


def physical(kind):
    """Return the type of a column of a file."""
    tests = {
        pa.types.is_boolean: Type.BOOLEAN,
        pa.types.is_integer: Type.INTEGER,
        pa.types.is_decimal: Type.DECIMAL,
        pa.types.is_floating: Type.FLOAT,
        pa.types.is_date: Type.DATE,
        pa.types.is_timestamp: Type.TIMESTAMP,
    }
    return next((type_ for test, type_ in tests.items() if test(kind)), Type.STRING)


def unit_of(said):
    """Return the unit that `column` or `column -> table.key -> …` says."""
    column, *path = [one.strip() for one in said.split("->")]
    if not path:
        return UnitColumn(column)
    table, key = path[0].split(".")
    return UnitPath(column, table, key if len(path) > 1 else None)


def schema(name):
    """Return a reference schema."""
    spec = json.loads((SHARED / "sql" / "schemas.json").read_text(encoding="utf-8"))[name]
    tables = []
    for table, said in spec["tables"].items():
        columns = said.get("columns") or spec.get("columns")
        if columns is None:
            file = pq.read_schema(SHARED / "sql" / said["file"])
            kinds = {one.name: (physical(one.type), True) for one in file}
        else:
            kinds = {
                column: (TYPES.get(one["type"]) or Type(one["type"]), one.get("nullable", True))
                for column, one in columns.items()
            }
        declared = tuple(Column(column, kind, nullable=nullable) for column, (kind, nullable) in kinds.items())
        made = Table(table, "x.parquet", None if said.get("public") else unit_of(said["unit"]), declared)
        tables.append(TableSchema(made, tuple(Field(one.name, one.type, one.nullable, one) for one in declared)))
    study = Study(name, tuple(one.table for one in tables), Budget(epsilon=1000, delta=Fraction(1, 1000)), Path("x.ledger"))
    return Schema(study, tuple(tables), Facts({}, 1000))


def cases(name):
    """Return the statements that are asked of a schema."""
    path = SHARED / ("security/hostile.jsonl" if name == "hostile" else "sql/cases.jsonl")
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [one for one in found if one.get("schema", "hostile") == name]


@pytest.mark.parametrize("name", ["pums", "visits", "tpch", "hostile"])
def test_reference_statements_come_out_as_expected(name):
    """Each is read into a sound tree or refused, as expected or as also allowed."""
    about = schema(name)
    wrong = []
    for case in cases(name):
        try:
            check(parse(case["sql"], about), about)
            found = "answer"
        except Refused:
            found = "refuse"
        if found not in (case["expect"], case["also_ok"]):
            wrong.append(f"{found}: {case['sql']} ({case['why']})")

    assert wrong == []

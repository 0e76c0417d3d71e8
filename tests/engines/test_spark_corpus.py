"""Every question of the corpus: one prepared relation on DuckDB and on a Spark server, identical integers before noise."""

import contextlib
import time

import pytest
from corpus_schemas import questions, schema
from corpus_studies import written
from spark_layout import PortableDuckDB, brought_over, integers

import curador as cu
from curador.engines.duckdb.engine import DuckDBEngine
from curador.engines.duckdb.versions import Folder, prepared_folder, specification
from curador.engines.duckdb.worker import open_connection
from curador.engines.lower.block import collect, lower_block
from curador.engines.spark.server import fetch
from curador.errors import InvalidQuery
from curador.plan.build import build_plan
from curador.query.sql import parse
from curador.study.file import read_study

pytestmark = pytest.mark.slow

QUESTIONS = questions()
LEAST = {"people": 150, "shop": 15, "trips": 10}
"""Blocks that are compared at least: so that nothing passes by refusing everything."""


def blocks_of(name, known):
    for one in QUESTIONS:
        if one["schema"] == name and one["expect"] == "answer":
            try:
                plan = build_plan(parse(one["sql"], known, dialect=one["dialect"]), known)
            except cu.Refused:  # what a survey finds first, or options decide
                continue
            yield from ((f"{one['id']}: {one['sql']}", block) for block in plan.blocks)


@pytest.mark.parametrize("name", sorted({one["schema"] for one in QUESTIONS}))
def test_integers_before_noise_are_the_same(name, tmp_path):
    study = read_study(written(schema(name), tmp_path))
    wrong, refused, same = [], [], 0
    with contextlib.closing(DuckDBEngine(study, 1)) as engine:
        engine.prepare(1)
        known, folder = engine.schema, Folder(prepared_folder(study))
        with (
            contextlib.closing(open_connection(specification(known, folder, 1))) as duck,
            brought_over(duck, tmp_path) as (session, dialect),
        ):
            for said, block in blocks_of(name, known):
                wanted = integers(
                    collect(block, duck.sql(lower_block(block, known, dialect=PortableDuckDB())).to_arrow_table())
                )
                try:
                    text = lower_block(block, known, dialect=dialect)
                except InvalidQuery as problem:
                    refused.append(f"{said}: {problem}")
                    continue
                found = integers(collect(block, fetch(session, text, time.monotonic() + 60)))
                if found != wanted:
                    wrong.append(said)
                same += found == wanted
    print(name, "same", same, "refused", len(refused))
    assert not wrong, "\n".join(wrong)
    assert all(dialect.engine in one for one in refused)
    assert same >= LEAST.get(name, 1)

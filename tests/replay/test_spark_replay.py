"""Neighbour replay on a Spark server: random questions on the data and on a neighbour, before any noise, and seeded bugs."""

import os
import random
from dataclasses import dataclass
from typing import Any

import pytest
import replay_bugs
from replay_judge import compare, planned, tallied
from replay_questions import random_question
from replay_worlds import neighbour, random_world
from spark_layout import on_spark
from test_neighbour_replay import about

from curador.engines.duckdb.versions import prepared_folder
from curador.engines.spark import prepare
from curador.engines.spark.engine import SparkEngine
from curador.errors import InvalidQuery

pytestmark = pytest.mark.slow

MORE = [pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 20)]
QUESTIONS = 25


@dataclass
class Eye:
    """An engine, as the judge asks one."""

    engine: Any

    def tally(self, blocks):
        return self.engine.tally(self.engine.compile(blocks))


def opened(world, folder, key=bytes(range(32))):
    study = on_spark(world.written(folder), prepare="auto")
    prepared = prepared_folder(study)
    prepared.mkdir(mode=0o700)
    with open(os.open(prepared / "key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:  # noqa: PTH123
        file.write(key)
    engine = SparkEngine(study, 1)
    engine.prepare(1)
    return Eye(engine)


def judged(question, one, other):
    """Return None for a refused question, else the violations of sensitivities."""
    plan, again = planned(question, one.engine.schema), planned(question, other.engine.schema)
    if plan is None or again is None:
        return None if plan is again else ["one world refuses what the other plans"]
    if plan != again:
        return ["the plan depends on the data"]
    try:
        one.engine.compile(plan.blocks)
    except InvalidQuery:  # what the server lacks
        return None
    return compare(plan, tallied(one, plan), tallied(other, plan))


def pair(dice, folder):
    """A world and its neighbour, neither of rows that are units: numbers of such rows are the server's own."""
    world = random_world(dice)
    while "events" in world.tables:
        world = random_world(dice)
    beside = neighbour(dice, world)
    return world, beside, opened(world, folder / "one"), opened(beside, folder / "other")


def found(seed, folder, questions=QUESTIONS):
    dice = random.Random(seed)
    world, beside, one, other = pair(dice, folder)
    try:
        for _ in range(questions):
            question = about(random_question(dice, world.tables), world, beside)
            yield question, judged(question, one, other)
    finally:
        one.engine.close()
        other.engine.close()


@pytest.mark.parametrize("seed", [0, *MORE])
def test_no_unit_moves_a_measurement_further_than_declared(seed, tmp_path):
    cases = list(found(seed, tmp_path))
    wrong = [(question, violations) for question, violations in cases if violations]
    assert not wrong, "\n".join(f"{question}\n  {violations}" for question, violations in wrong)
    assert sum(violations is None for _, violations in cases) < 4 * len(cases) / 5


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    dice = random.Random(11)
    world, beside, one, other = pair(dice, tmp_path_factory.mktemp("world"))
    yield world, beside, one, other
    one.engine.close()
    other.engine.close()


@pytest.mark.parametrize("bug", ["no_row_cap", "one_row_too_many", "no_clamp"])
def test_a_seeded_bug_is_found(bug, world, monkeypatch):
    """The replay's own power on this engine."""
    getattr(replay_bugs, bug)(monkeypatch)
    dice, (rows, beside, one, other) = random.Random(7), world
    for _ in range(400):
        if judged(about(random_question(dice, rows.tables), rows, beside), one, other):
            return
    pytest.fail(f"{bug} was not found")


def test_a_rank_that_sees_other_units_is_found(tmp_path, monkeypatch):
    """Preparation that ranks rows by their place among everybody's: who leaves moves the others."""
    plain = prepare.SparkPreparation.write

    def write(self, name, text, **by):
        return plain(self, name, text.replace("xxhash64(h, ", "xxhash64(u, "), **by)

    monkeypatch.setattr(prepare.SparkPreparation, "write", write)
    assert any(violations for seed in range(40, 46) for _, violations in found(seed, tmp_path / str(seed), 25))

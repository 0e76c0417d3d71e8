"""Neighbour replay: 1,000 random questions on random worlds, each on the data and on a neighbour, before any noise.

`make test-long` has 5,000. No statistics, so no false alarms: one violation is a bug. The power is shown by seeded bugs, each
of which is found.
"""

import random

import pytest
from replay_bugs import BUGS, PREPARED_BUGS
from replay_judge import judged, opened
from replay_questions import random_question
from replay_worlds import neighbour, random_world

pytestmark = pytest.mark.slow

CHUNKS, WORLDS, QUESTIONS = 10, 4, 25
MORE = [pytest.param(seed, marks=pytest.mark.long) for seed in range(CHUNKS, 50)]

ONE_KEY = [
    *(f"SELECT {key}, COUNT(DISTINCT id) AS n FROM visits GROUP BY {key}" for key in ("kind", "city", "good")),
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
]
"""Groups chosen by the stored numbers of values, and units counted by first rows: random questions are seldom so plain."""


def cases(seed, folder, worlds=WORLDS, questions=QUESTIONS):
    """Yield (question, engine, engine of the neighbour)."""
    dice = random.Random(seed)
    for place in range(worlds):
        world = random_world(dice)
        beside = neighbour(dice, world)
        one, other = opened(world, folder / f"{place}" / "one"), opened(beside, folder / f"{place}" / "other")
        try:
            for _ in range(questions):
                yield about(random_question(dice, world.tables), world, beside), one, other
            for question in ONE_KEY:
                yield question, one, other
        finally:
            one.close()
            other.close()


def about(question, world, beside):
    """Return the question with the person who left in the place of the person that it picks."""
    gone = set(world.units()) - set(beside.units())
    return question.replace("id = 7", f"id = {min(gone)}") if gone else question


@pytest.mark.parametrize("seed", [*range(CHUNKS), *MORE])
def test_no_unit_moves_a_measurement_further_than_declared(seed, tmp_path):
    """The same plan, the same shape, every difference within sensitivity and work; some are refused, not most."""
    found = [(question, judged(question, one, other)) for question, one, other in cases(seed, tmp_path)]
    wrong = [(question, violations) for question, violations in found if violations]

    assert not wrong, "\n".join(f"{question}\n  {violations}" for question, violations in wrong)
    assert (
        sum(violations is None for _, violations in found) < 4 * len(found) / 5
    )  # a quarter of the worlds allow little work


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """Worlds with their neighbours, prepared once for all bugs; in some every row is a unit, in some one with much leaves."""
    dice, folder = random.Random(20), tmp_path_factory.mktemp("worlds")
    chosen = [random_world(dice) for _ in range(10)]
    while sum("events" in world.tables for world in chosen) < 2:
        world = random_world(dice)
        if len(world.tables.get("events", ())) >= 10:
            chosen.append(world)
    besides = [neighbour(dice, world) for world in chosen]
    while len(chosen) < MANY:
        world = random_world(dice)
        beside = neighbour(dice, world)
        if has_much_to_lose(world, beside):
            chosen, besides = [*chosen, world], [*besides, beside]
    pairs = [
        (world, beside, opened(world, folder / f"{place}a"), opened(beside, folder / f"{place}b"))
        for place, (world, beside) in enumerate(zip(chosen, besides, strict=True))
    ]
    yield pairs
    for *_, one, other in pairs:
        one.close()
        other.close()


MANY = 15


def has_much_to_lose(world, beside):
    """Whether a unit with many rows in many groups leaves, under caps that let several of them count."""
    gone = [row for row in world.tables.get("visits", ()) if row not in beside.tables["visits"]]
    free = "rows = 5, groups = 3" in world.toml and 'unit_work = "2ms"' in world.toml and "unit_rows = 16384" in world.toml
    return free and len({(row["rating"], row["day"]) for row in gone}) > 8


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_found(bug, worlds, monkeypatch):
    """The replay's own power: of 4,500 questions one at least shows the bug."""
    bug(monkeypatch)
    dice = random.Random(7)
    for _ in range(300):
        for world, beside, one, other in worlds:
            if judged(about(random_question(dice, world.tables), world, beside), one, other):
                return
    pytest.fail(f"{bug.__name__} was not found")


@pytest.mark.parametrize("bug", PREPARED_BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_of_preparation_is_found(bug, tmp_path, monkeypatch):
    """The same for what preparation does."""
    bug(monkeypatch)
    assert any(judged(question, one, other) for question, one, other in cases(3, tmp_path, worlds=12, questions=10))

"""Neighbour replay of surveyed studies: random histories, each on the data and on a neighbour, with equal releases forced.

No statistics, so no false alarms: one violation is a bug. The power is shown by seeded bugs, each of which is found.
"""

import random

import pytest
from replay_bugs import SURVEY_BUGS
from replay_questions import random_question
from replay_surveys import judged_histories, played, random_acts, without_caps
from replay_worlds import neighbour, random_world
from test_neighbour_replay import about

pytestmark = pytest.mark.slow

CHUNKS, QUESTIONS = 6, 12
MORE = [pytest.param(seed, marks=pytest.mark.long) for seed in range(CHUNKS, 40)]


def histories(seed, folder, monkeypatch, questions=QUESTIONS):
    """Play random acts on a world without declared caps and on a neighbour; return what is wrong and what was seen."""
    dice = random.Random(seed)
    while "events" in (world := random_world(dice)).tables:
        continue
    world = without_caps(world, dice)
    beside = neighbour(dice, world)
    acts = random_acts(dice, lambda: about(random_question(dice, world.tables), world, beside), questions)
    seen = []
    for name, one in (("one", world), ("other", beside)):
        with monkeypatch.context() as patch:
            seen.append(played(one, folder / name, acts, patch))
    return judged_histories(*seen, acts), seen[0]


@pytest.mark.parametrize("seed", [*range(CHUNKS), *MORE])
def test_plans_prices_and_refusals_follow_from_what_was_released(seed, tmp_path, monkeypatch):
    """Everything that is shown, charged and remembered is equal; everything that is measured moves as declared."""
    wrong, seen = histories(seed, tmp_path, monkeypatch)
    assert not wrong, "\n".join(f"{act}\n  {text}" for act, text in wrong)
    assert seen[0].shown[0] == "refused"  # the analyst's, before there was a survey
    assert any(entry["survey"] for one in seen for entry in one.entries)


def test_the_histories_count_own_rows_and_ask_again(tmp_path, monkeypatch):
    """The replay's own reach: questions are counted first, answered again, refused, and few of them."""
    kinds, shown = [], []
    for seed in range(3):
        _, seen = histories(seed, tmp_path / str(seed), monkeypatch)
        kinds += [entry["kind"] for one in seen for entry in one.entries]
        shown += [one.shown[0] for one in seen]
    assert kinds.count("surveyed") >= 6
    assert "served" in kinds
    assert shown.count("refused") < 2 * len(shown) / 3


@pytest.mark.parametrize("bug", SURVEY_BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_found(bug, tmp_path, monkeypatch):
    """The replay's own power: one of eight histories at least shows the bug."""
    bug(monkeypatch)
    assert any(histories(seed, tmp_path / str(seed), monkeypatch)[0] for seed in range(8))

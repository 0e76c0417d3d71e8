"""Histories of askers, crashes and rollbacks, made by seeds out of the ledger's own code: nothing that was promised breaks.

`make simulate SEEDS=100000` plays more of them, `make simulate SEED=7` prints one event by event. A violation is a bug of the
product, whatever its seed: no statistics are involved, so there are no false alarms.
"""

import pytest
import simulated_bugs
from simulated_product import is_found, play, simulated

PLAYED = 2_000
"""Histories in `make test`, in four parts."""
MOST = 20_000
"""Seeds within which a seeded bug must be found."""
KEPT = {
    "told_before_the_commit": 1,
    "told_before_the_witness": 2,
    "witness_before_commit": 0,
    "no_witness": 0,
    "found_again_without_witness": 1,
    "judged_by_what_was_before_the_batch": 5,
    "no_judge_and_no_check": 5,
    "no_savepoint": 1,
    "settlements_last": 1,
    "one_at_a_time_as_they_come": 1,
    "forgets_what_it_saw": 15,
    "forgets_what_others_saw": 59,
    "unknown_is_nothing": 6,
    "retry_that_gave_up_is_nothing": 19,
    "broken_batch_is_nothing": 28,
    "withdrawn_though_taken": 48,
    "put_back_as_new": 2,
    "retry_without_its_id": 1,
    "retry_is_charged_again": 1,
    "settled_again": 2,
    "failure_gives_back": 1,
    "served_is_charged": 1,
    "dead_is_given_back": 11,
    "given_back_after_a_restart": 14,
    "given_back_twice": 1,
    "holder_not_counted": 0,
    "shares_ignored": 5,
    "any_version": 35,
    "closed_study_admits": 39,
    "commit_forgets_failures": 3,
    "once_ignored": 1,
    "dead_though_committed": 34,
    "deadline_since_the_question_came": 30,
    "newer_slot_is_written": 110,
    "witness_not_synced": 0,
    "slots_of_the_killed": 365,
    "witness_not_written_when_busy": 1,
    "renewed_by_everybody": 2130,
    "no_checksum": 27,
    "hash_not_compared": 32,
    "torn_and_equal_is_opened": 2,
    "both_torn_is_opened": 27,
    "slots_of_two_ledgers": 486,
    "witness_not_asked": 2,
    "witness_may_be_gone": 4,
    "synchronous_normal": 0,
    "two_writers_without_a_lock": 1,
    "uncommitted_is_seen": 89,
    "found_and_not_synced": 1618,
    "rows_before_the_charge": 0,
    "released_though_not_stored": 0,
}
"""The first seed that finds each bug. Where the product or the simulator changed, another one may: it is looked for."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_histories_hold(part):
    """Whatever breaks and whoever asks: nothing is released that is not recorded, no charge is lost, no limit is passed."""
    size, events = PLAYED // 4, []
    with simulated() as rules:
        for seed in range(part * size, (part + 1) * size):
            world = play(seed, rules)
            assert world.violation is None, f"make simulate SEED={seed}"
            events.append(world.scheduler.events)

    assert min(events) >= 30


def test_some_histories_hold():
    """The first histories, for who has no time."""
    with simulated() as rules:
        assert [play(seed, rules).violation for seed in range(10)] == [None] * 10


def test_a_seed_is_a_history():
    """Played again, it is the same event by event."""
    traces = [[], []]
    with simulated() as rules:
        for trace in traces:
            play(3, rules, trace)

    assert traces[0] == traces[1]
    assert len(traces[0]) >= 30


def test_kept_seeds_are_of_bugs_that_are_there():
    """At least 25 bugs, each with its seed, and none twice."""
    names = [bug.__name__ for bug in simulated_bugs.BUGS]

    assert len(names) == len(set(names)) >= 25
    assert sorted(KEPT) == sorted(names)
    assert max(KEPT.values()) < MOST


@pytest.mark.slow
@pytest.mark.parametrize("bug", simulated_bugs.BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_found(bug):
    """The kept seed finds it, or another one within 20,000 does."""
    with simulated(bug) as rules:
        found = next((seed for seed in (KEPT[bug.__name__], *range(MOST)) if is_found(play(seed, rules))), None)

    assert found is not None
    print(f"{bug.__name__}: seed {found}")

"""What `make attack` tries: the rows of its table, and the seeded bugs with the test that kills each. Nothing but data.

A test that is marked `long` stands under `full`: those are the sizes that the table is about.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LEDGER = "tests/ledger/test_"
FAULTS = "tests/ledger/test_real_faults.py::"
REPLAY = "tests/replay/test_neighbour_replay.py::test_a_seeded_bug_is_found"
NOISE = "tests/statistical/test_audit.py::test_a_seeded_bug_of_noise_is_caught"
ASKING = "tests/unit/curator/test_bugs_of_asking.py::test_"
FUZZ = "tests/engines/test_fuzzed_questions.py::test_"
DUCKDB = "tests/engines/test_curator_duckdb.py::test_"
FLOW = "tests/unit/curator/test_curator_flow.py::test_"


@dataclass(frozen=True)
class Row:
    """One attack.

    tests    names of tests, or whole files; `full` those of them that are marked long
    long     whether the row is only in `make attack-long`
    most     what a measured number must stay below
    reason   why it is not run here
    """

    number: str
    what: str
    size: str
    tests: tuple[str, ...] = ()
    full: tuple[str, ...] = ()
    long: bool = False
    most: dict[str, float] = field(default_factory=dict)
    reason: str = ""


ROWS = (
    Row(
        "1",
        "ε of every mechanism, bounded from below",
        "200,000 releases a world; 1,000,000 in `make audit`",
        ("tests/statistical/test_audit.py::test_every_claim_stands_and_every_seeded_bug_is_caught",),
    ),
    Row(
        "2",
        "the same script here and through a service",
        "one noise, one ledger: what is asked over HTTP is what is asked here",
        ("tests/server/test_client_at_service.py",),
    ),
    Row(
        "3",
        "bits of released floats",
        "Laplace noise, 100,000 releases a world at each offset",
        ("tests/statistical/test_audit.py::test_released_bits_tell_nothing",),
    ),
    Row(
        "4",
        "draws against their exact laws",
        "and against laws that are wrong",
        ("tests/statistical/test_samplers.py", "tests/statistical/test_fit.py"),
    ),
    Row(
        "5",
        "random questions on neighbours, before noise",
        "1,000; 5,000 long",
        ("tests/replay/test_neighbour_replay.py::test_no_unit_moves_a_measurement_further_than_declared",),
    ),
    Row(
        "6",
        "the engine against a plain reference",
        "random questions on random rows",
        ("tests/engines/test_random_rows.py",),
    ),
    Row(
        "7",
        "NaN, infinities, 64 bits, extreme dates",
        "the table of the tests",
        ("tests/engines/test_hostile_numbers.py",),
    ),
    Row(
        "8",
        "hostile and ordinary SQL, read or refused as said",
        "340 of ours; 194 of the reference material, where present",
        (
            "tests/unit/query/test_query_corpus.py",
            "tests/unit/query/test_query_shared.py",
            "tests/engines/test_corpus_asked.py",
        ),
    ),
    Row(
        "9",
        "mangled SQL: priced or refused, ledger unchanged",
        "10,000",
        (f"{FUZZ}what_overflows_is_priced_or_refused",),
        (
            *(f"{FUZZ}a_mangled_question_is_priced_or_refused[{name}-3000]" for name in ("people", "shop", "trips")),
            f"{FUZZ}a_mangled_hostile_question_is_refused_or_priced[1000]",
        ),
        most={"p99_ms": 50},
    ),
    Row(
        "10",
        "nonsense at the writer's socket, over HTTP and at PostgreSQL's door",
        "9 frames; 240 mangled requests; hostile requests, requests from the OpenAPI document; broken messages",
        (
            f"{LEDGER}ledger_sharing.py::test_nonsense_harms_nobody",
            "tests/ledger/test_mangled_requests.py::test_a_mangled_request_harms_no_ledger",
            "tests/server/test_hostile_http.py",
            "tests/server/test_openapi.py",
            "tests/door/test_door_bytes.py",
            "tests/door/test_door_spellings.py",
        ),
    ),
    Row(
        "11",
        "malformed amounts and files",
        "49 to 66 values × 14 places; 400 mangled study files",
        (
            "tests/unit/test_hostile_amounts.py",
            "tests/unit/study/test_study_files.py::test_a_bad_file_gives_its_sentence",
            f"{FUZZ}a_lost_key_is_told_in_one_sentence",
        ),
        (f"{FUZZ}a_mangled_study_file_is_read_or_refused[400]",),
    ),
    Row(
        "12a",
        "64 analysts × 200 requests, 4 processes, room for 500: SQLite",
        "12,800 requests",
        (f"{LEDGER}ledger_concurrency.py::test_without_the_lock_the_second_nets_hold",),
        (f"{LEDGER}ledger_concurrency.py::test_exactly_the_budget_is_admitted[500-200]",),
    ),
    Row(
        "12b",
        "the same: PostgreSQL",
        "12,800 requests",
        (f"{LEDGER}postgres_faults.py::test_without_a_turn_the_servers_own_lock_holds",),
        (f"{LEDGER}postgres_faults.py::test_exactly_the_budget_is_admitted[64-200-500]",),
    ),
    Row(
        "13",
        "kill -9 at random",
        "200 of the asker, 40 of the writer's process",
        (f"{LEDGER}ledger_checkpoints.py::test_openings_that_are_killed",),
        (
            f"{LEDGER}ledger_crashes.py::test_every_release_is_recorded[200]",
            f"{LEDGER}ledger_sharing.py::test_it_is_killed_and_nobody_pays_twice[40]",
        ),
        most={"restart_s": 2},
    ),
    Row(
        "14a",
        "17 named points × raise, kill, hang",
        "51 real processes",
        (
            f"{FAULTS}test_a_fault_at_a_step",
            f"{FAULTS}test_a_fault_at_the_socket",
            f"{FAULTS}test_a_fault_of_the_service",
        ),
        most={"reopened": 2},
    ),
    Row(
        "14b",
        "full disk, quota, read-only, fork, two curators, stopped holder",
        "one each",
        (
            *(
                f"{FAULTS}test_a_{name}"
                for name in ("full_disk", "file_that_may_grow_no_further", "disk_that_cannot_be_written")
            ),
            *(f"{FAULTS}test_a_{name}" for name in ("file_that_cannot_be_written", "holder_that_stands_still_for_ever")),
            f"{FAULTS}test_two_curators_on_one_folder",
            f"{LEDGER}ledger_crashes.py::test_a_forked_child_has_connections_of_its_own",
            f"{LEDGER}ledger_locks.py",
            "tests/unit/ledger/test_ledger_writer.py::test_an_interrupt_anywhere_leaves_nobody_waiting",
            "tests/unit/ledger/test_ledger_writer.py::test_what_takes_back_the_whole_change_is_its_own_too",
        ),
    ),
    Row(
        "14c",
        "PostgreSQL restarted, stopped, cut off, promoted, pooled",
        "every test of its faults",
        (f"{LEDGER}postgres_faults.py",),
    ),
    Row(
        "15",
        "power cut: only what was synced is left",
        "20 releases",
        (f"{LEDGER}ledger_crashes.py::test_a_power_cut_forgets_nothing",),
    ),
    Row(
        "16",
        "byte flips, restores, also of a ledger that is open, torn witness",
        "1,000 flips, 10 restores, 121 cuts",
        (
            f"{LEDGER}ledger_locks.py::test_a_ledger_set_back_while_it_is_open_takes_no_charge",
            f"{LEDGER}postgres_faults.py::test_a_server_whose_disk_is_set_back_takes_no_charge",
            f"{LEDGER}ledger_tampering.py::test_restored_backups_are_refused",
            f"{LEDGER}ledger_tampering.py::test_a_torn_slot_is_harmless_only_where_the_ledger_is_ahead",
            f"{LEDGER}ledger_tampering.py::test_a_cut_ledger_is_refused",
            f"{LEDGER}postgres_faults.py::test_promoting_a_lagging_standby_is_caught",
        ),
        tuple(
            f"{LEDGER}ledger_tampering.py::test_no_byte_changes_what_the_ledger_says[{name}]"
            for name in ("a.ledger-600-100", "a.ledger-wal-200-50", "a.ledger.head-200-0")
        ),
    ),
    Row(
        "17",
        "sums of the budget against fractions",
        "40,000 spends",
        (
            f"{LEDGER}ledger_tampering.py::test_many_random_spends_against_the_truth",
            f"{LEDGER}ledger_tampering.py::test_the_ledger_admits_exactly_what_fits",
        ),
    ),
    Row(
        "18",
        "accountants against 50 digits",
        "closed forms; random mixtures long",
        ("tests/oracle/test_closed_forms_oracle.py",),
    ),
    Row(
        "19",
        "what an error says after the charge",
        "5 kinds of failure, 3 sizes of data",
        (
            f"{FLOW}a_failure_keeps_the_charge_and_tells_an_id_only",
            f"{FLOW}messages_do_not_depend_on_data",
            f"{DUCKDB}every_failure_after_a_charge_stands_in_the_owners_log_under_its_id",
        ),
    ),
    Row(
        "20",
        "reading an attribute by the clock",
        "300 asks a world, 7 families",
        long=True,
        reason="`make attack-clock`, alone and by two who collude, on a quiet machine: on a busy one it says nothing",
    ),
    Row(
        "21",
        "a key that one person alone holds",
        "10⁵ runs at δ = 10⁻³",
        (
            "tests/unit/test_keys.py::test_a_lone_person_shows_a_key_with_probability_delta",
            "tests/unit/test_keys.py::test_rows_in_place_of_units_would_show_a_lone_person",
        ),
    ),
    Row(
        "22",
        "forked workers share no noise",
        "8 × 1,000 draws",
        ("tests/unit/test_entropy.py::test_forked_workers_share_no_block",),
    ),
    Row("24", "hours of asking, memory flat", "-", reason="takes hours, and is not written"),
    Row(
        "H1",
        "a bomb that one person's row sets off",
        "joins and self-joins",
        (
            "tests/unit/plan/test_work.py::test_rows_multiplied_by_public_tables_are_refused_where_they_stand",
            "tests/unit/plan/test_work.py::test_rows_joined_with_themselves_are_refused",
            "tests/unit/curator/test_curator_least.py::test_a_cost_below_it_is_refused",
        ),
    ),
    Row(
        "H2",
        "durations in the log",
        "0 and 17 seconds",
        ("tests/unit/curator/test_curator_times.py::test_what_an_analyst_sees_is_the_same_however_long_data_were_read",),
    ),
    Row(
        "H3",
        "a literal that is no value of its key",
        "fractions, beyond 64 bits",
        (f"{DUCKDB}a_literal_that_is_no_value_of_its_key_matches_nothing_and_fails_nothing",),
    ),
    Row(
        "H4",
        "errors that are no refusals",
        "overflows, long numbers, a lost key",
        (
            f"{FUZZ}what_overflows_is_priced_or_refused",
            f"{FUZZ}a_lost_key_is_told_in_one_sentence",
            "tests/unit/test_hostile_amounts.py::test_a_number_too_long_to_be_written_out_is_refused_at_the_door",
        ),
    ),
    Row(
        "H5",
        "a renamed study over the same rows",
        "every way to rename",
        ("tests/unit/curator/test_one_budget.py::test_the_same_rows_have_the_same_budget",),
    ),
    Row(
        "H6",
        "opening a long ledger",
        "entries read, counted",
        ("tests/unit/ledger/test_ledger_checkpoint.py::test_the_cost_of_opening_does_not_grow",),
    ),
    Row(
        "H7",
        "probing for hidden tables",
        "every verb",
        (f"{FLOW}a_hidden_table_is_refused_like_one_that_does_not_exist",),
    ),
    Row(
        "H8",
        "two groups with one key",
        "at release, and from the engine",
        (
            "tests/unit/answers/test_releasing.py::test_groups_that_become_one_key_are_an_engine_failure",
            "tests/engines/test_hostile_numbers.py::test_no_two_groups_have_one_key",
        ),
    ),
)

BUGS = {
    "NumPy's Laplace noise": f"{NOISE}[NumPy's Laplace noise, in floats]",
    "Laplace noise from four uniforms": f"{NOISE}[Laplace noise from four uniforms, in floats]",
    "half the scale": f"{NOISE}[half the scale]",
    "threshold on rows": f"{NOISE}[threshold on rows instead of units]",
    "replace-one charged as add-or-remove (noise)": f"{NOISE}[replace-one charged as add-or-remove-one]",
    "replace-one charged as add-or-remove (plan)": f"{REPLAY}[replaced_as_removed]",
    "sensitivity of the upper bound only": f"{REPLAY}[upper_bound_only]",
    "clamp before the expression": f"{REPLAY}[clamp_before_the_sum]",
    "no clamp": f"{REPLAY}[no_clamp]",
    "NaN passes": f"{REPLAY}[not_a_number_passes]",
    "groups of a unit unbounded": f"{REPLAY}[no_group_cap]",
    "caps after the selection of keys": f"{REPLAY}[caps_before_the_selection_only]",
    "join on something else than the unit": f"{REPLAY}[join_off_the_unit]",
    "joins that are thought not to multiply rows": f"{REPLAY}[joins_do_not_multiply]",
    "float sum inside a unit": "tests/engines/test_lower_locality.py::test_every_bug_is_found",
    "float sum at the seam": f"{ASKING}float_tallies_pass",
    "accumulator of 32 bits": f"{ASKING}sums_in_32_bits",
    "threshold on the exact count": f"{ASKING}threshold_on_the_exact_count",
    "exact HAVING": f"{ASKING}exact_having",
    "order of the engine kept": f"{ASKING}order_of_the_engine_kept",
    "error text returned": f"{ASKING}error_text_returned",
    "error refunds the budget": f"{ASKING}error_refunds_the_budget",
    "rows read before the charge": f"{ASKING}charge_after_the_rows",
    "NaN, negative or infinite ε accepted": f"{ASKING}any_epsilon_accepted",
    "cache ignores the data version": f"{ASKING}cache_ignores_the_data_version",
    "names of WITH read the table": f"{ASKING}shadowed_names_read_the_table",
    "settlements tell their time": f"{ASKING}settlements_tell_their_time",
    "accountant of the central limit": f"{ASKING}central_limit_accountant",
    "ledger that looks first and writes then: SQLite": f"{LEDGER}ledger_concurrency.py"
    "::test_looking_first_and_writing_then_is_caught",
    "ledger that looks first and writes then: PostgreSQL": f"{LEDGER}postgres_faults.py"
    "::test_looking_first_and_writing_then_is_caught",
    "release before the commit": f"{LEDGER}ledger_crashes.py::test_releasing_before_the_commit_is_caught",
    "synchronous=NORMAL": f"{LEDGER}ledger_crashes.py::test_a_power_cut_shows_a_fast_setting",
    "rollback under an idle process": f"{LEDGER}ledger_locks.py::test_a_change_that_asks_no_witness_spends_twice",
    "rollback without a witness": f"{LEDGER}ledger_tampering.py::test_without_its_witness_a_backup_looks_right",
    "a database that believes its bytes": f"{LEDGER}ledger_tampering.py::test_a_plain_database_would_not_have_noticed",
    "ends that are not looked at": "tests/ledger/test_mangled_requests.py::test_ends_that_are_not_looked_at_harm_it",
    "retry without its id pays twice": f"{LEDGER}ledger_sharing.py::test_retrying_without_the_id_is_caught",
    "a look at the ledger's file that drops its locks": f"{LEDGER}ledger_locks.py::test_a_look_at_the_file_would_drop_them",
    "bought twice by two who ask at once": "tests/unit/ledger/test_ledger_version_2.py::test_buying_twice_is_caught",
    "budget in floats": "tests/unit/ledger/test_ledger_amounts.py::test_floats_would_lose_what_ticks_keep",
    "shares rounded up": "tests/unit/ledger/test_ledger_amounts.py::test_thirds_rounded_up_do_not_fit",
    "limits that move: δ between keys and conversion": f"{LEDGER}ledger_adversaries.py::test_a_running_split_is_caught",
    "limits that move: some order fits": f"{LEDGER}ledger_adversaries.py::test_some_order_fits_is_caught",
    "fork without a new key": "tests/unit/test_entropy.py::test_without_fork_detection_they_share_all",
    "a hidden second budget": "tests/unit/curator/test_one_budget.py::test_a_hidden_second_budget_is_caught",
    "a second door for spending": "tests/unit/curator/test_one_door.py::test_a_second_door_is_found",
    "least spend not looked at again": "tests/unit/curator/test_curator_least.py"
    "::test_without_the_second_look_a_charge_would_be",
    "an error of the reader let through": f"{FUZZ}an_error_that_is_no_refusal_is_seen",
    "a false sentence, a release without its entry": f"{FAULTS}test_a_release_before_its_commit_is_caught",
}
"""Each with the test that puts it in place and shows that a check catches it."""

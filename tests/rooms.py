"""Which room of src/curador a test file is about: the table behind `make test ROOM=…` and the markers of pytest.

A folder that is about one room gives it to its files; a file that is about another room than its folder is named here. `docs`
is the one room without a folder in src/curador: the documents, and the rules that hold for all sources alike.
"""

from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "curador"

FOLDERS = {
    "compat": "ledger",
    "browser": "server",
    "docs": "docs",
    "door": "door",
    "engines": "engines",
    "ledger": "ledger",
    "replay": "plan",
    "server": "server",
    "simulator": "ledger",
    "unit/answers": "answers",
    "unit/audit": "audit",
    "unit/client": "client",
    "unit/door": "door",
    "unit/curator": "curator",
    "unit/learn": "learn",
    "unit/ledger": "ledger",
    "unit/local": "local",
    "unit/plan": "plan",
    "unit/plots": "plots",
    "unit/query": "query",
    "unit/study": "study",
    "unit/testing": "testing",
}

FILES = {
    "numerics": [
        "unit/test_balls.py",
        "unit/test_errors.py",
        "unit/test_exact.py",
        "unit/test_rounding.py",
        "unit/test_hostile_amounts.py",
        "unit/test_text.py",
    ],
    "randomness": [
        "oracle/test_randomness_oracle.py",
        "statistical/test_samplers.py",
        "unit/test_entropy.py",
        "unit/test_randomness.py",
    ],
    "privacy": [
        "golden/test_golden.py",
        "laws/test_divergence_laws.py",
        "laws/test_loss_laws.py",
        "laws/test_shuffle_laws.py",
        "oracle/test_accountant_stress.py",
        "oracle/test_closed_forms_oracle.py",
        "oracle/test_coarse_gaussian.py",
        "oracle/test_divergence_oracle.py",
        "oracle/test_many_records.py",
        "oracle/test_odds_oracle.py",
        "oracle/test_readings_oracle.py",
        "oracle/test_regressions.py",
        "oracle/test_shuffle.py",
        "oracle/test_subsampled_grid.py",
        "oracle/test_truth.py",
        "oracle/test_vectors_oracle.py",
        "unit/test_amplify_and_group.py",
        "unit/test_bad_input.py",
        "unit/test_compose.py",
        "unit/test_convert.py",
        "unit/test_divergence.py",
        "unit/test_filters.py",
        "unit/test_losses.py",
        "unit/test_odds.py",
        "unit/test_rules.py",
        "unit/test_sensitivity.py",
        "unit/test_shuffle_losses.py",
        "unit/test_tradeoff.py",
        "unit/test_vector_losses.py",
        "unit/test_verify.py",
    ],
    "mechanisms": [
        "golden/test_golden_mechanisms.py",
        "oracle/test_keys_oracle.py",
        "oracle/test_selection_oracle.py",
        "unit/test_above_threshold.py",
        "unit/test_clipping.py",
        "unit/test_keys.py",
        "unit/test_mechanisms.py",
        "unit/test_release.py",
        "unit/test_bracket.py",
        "unit/test_selection.py",
        "unit/test_staircase_truncated.py",
    ],
    "study": ["laws/test_study_laws.py"],
    "query": [
        "engines/test_corpus_asked.py",
        "engines/test_random_rows.py",
        "engines/test_reference_statements.py",
        "engines/test_true_values.py",
        "laws/test_query_laws.py",
        "oracle/test_query_oracle.py",
    ],
    "plan": ["engines/test_hostile_numbers.py", "laws/test_range_laws.py", "oracle/test_many_noises.py"],
    "answers": ["engines/test_released_questions.py", "statistical/test_coverage_above.py"],
    "engines": ["replay/test_reading.py"],
    "curator": [
        "browser/test_report_page.py",
        "engines/test_report_canaries.py",
        "engines/test_coverage_on_data.py",
        "engines/test_curator_duckdb.py",
        "engines/test_sandbox.py",
        "engines/test_several_machines.py",
        "statistical/test_coverage_of_intervals.py",
        "statistical/test_left_out.py",
    ],
    "learn": [
        "engines/test_training.py",
        "golden/test_golden_oracles.py",
        "laws/test_learn_regression.py",
        "laws/test_nuclear_neighbours.py",
        "laws/test_oracle_sensitivity.py",
        "laws/test_pca_replay.py",
        "laws/test_recommend_laws.py",
        "statistical/test_bingham.py",
        "statistical/test_nuclear_statistics.py",
        "statistical/test_recommend_statistics.py",
    ],
    "local": [
        "laws/test_local_laws.py",
        "laws/test_local_mean_laws.py",
        "oracle/test_local_oracle.py",
        "statistical/test_local_frequencies.py",
        "statistical/test_local_hitters.py",
        "statistical/test_local_likely.py",
        "statistical/test_local_means.py",
        "statistical/test_local_means_coverage.py",
        "statistical/test_local_search.py",
    ],
    "audit": [
        "statistical/test_audit.py",
        "statistical/test_fit.py",
        "statistical/test_game_bounds.py",
        "statistical/test_game_canaries.py",
        "statistical/test_replay.py",
        "statistical/test_testers_statistics.py",
    ],
    "plots": ["unit/test_plots.py", "unit/test_plots_learning.py"],
    "client": ["server/test_client_at_service.py"],
    "cli": ["unit/test_cli.py", "unit/test_cli_demo.py", "unit/test_cli_study.py"],
}

CORE = [
    "unit/test_rounding.py",
    "unit/test_entropy.py",
    "unit/test_filters.py",
    "unit/test_convert.py",
    "unit/test_compose.py",
    "unit/test_sensitivity.py",
    "unit/test_mechanisms.py",
    "unit/test_release.py",  # the seam
    "unit/plan/test_moves.py",  # sensitivities of plans
    "unit/ledger/test_ledger_entries.py",
]
"""What promises rest on: `make check` has most of each."""

BY_FILE = {file: room for room, files in FILES.items() for file in files}
ROOMS = [*sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()), "docs"]


@cache
def room_of(path):
    """Return the room that a test file is about, None where the table has none."""
    place = Path(path).relative_to(TESTS)
    return BY_FILE.get(place.as_posix(), FOLDERS.get(place.parent.as_posix()))

"""The protocols of frequencies at the collector: what is counted, what is rejected, what is estimated."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.linalg import hadamard as matrix

from curador import local
from curador.errors import InvalidParameter
from curador.local import hashing
from curador.local.choose import METHODS
from curador.local.client.hashing import OPEN_SIZE
from curador.local.estimate import score_interval
from curador.local.hadamard import transform_rows
from curador.local.protocol import Frequencies, Supporting
from curador.local.subset import fill_sets
from curador.randomness.injected import Seeded

PEOPLE = np.repeat(np.arange(12), np.arange(12) * 30 + 10)
COUNTS = np.bincount(PEOPLE)


def protocol_of(method: str, size: int = 12, epsilon: Any = 2) -> Frequencies:
    """The protocol by its name."""
    return local.frequencies(size, epsilon=epsilon, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_reports_of_clients_and_of_arrays_are_counted_alike(method: str) -> None:
    """A list of what clients sent gives the statistic of the array of the same reports."""
    protocol = protocol_of(method)
    client: Any = protocol.client()
    sent = [client.report(int(value)) for value in PEOPLE[::20]]
    rows, bad = protocol.accept(sent)
    again, still = protocol.accept(rows)
    assert bad == still == 0
    assert len(rows) == len(sent)
    assert np.array_equal(protocol.tally(rows), protocol.tally(again))
    one, two = protocol.collector().add(sent).estimate(), protocol.collector().add(rows).estimate()
    assert np.array_equal(one.counts, two.counts)


@pytest.mark.parametrize("method", METHODS)
def test_batches_and_merged_collectors_give_one_estimate(method: str) -> None:
    """What is added up does not depend on how the reports came."""
    protocol = protocol_of(method)
    reports = protocol.privatise(PEOPLE)
    whole = protocol.estimate(reports)
    first, second = protocol.collector().add(reports[:100]), protocol.collector().add(reports[100:900]).add(reports[900:])
    merged = first.merge(second).estimate()
    assert np.array_equal(whole.counts, merged.counts)
    assert whole.reports == merged.reports == len(PEOPLE)


@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_near_the_truth(method: str) -> None:
    """Within 7 of their standard errors and of the published ones, and in their intervals' reach. False alarm 1e-10."""
    protocol = protocol_of(method)
    reports = protocol.draw(PEOPLE, Seeded(5))
    estimate = protocol.estimate(reports, confidence="0.9999999999")
    assert (np.abs(estimate.counts - COUNTS) < 7 * estimate.standard_errors).all()
    for value, count in enumerate(COUNTS):
        published = protocol.standard_error(len(PEOPLE), share=Fraction(int(count), len(PEOPLE)))
        assert abs(estimate.counts[value] - count) < 8 * published
        assert estimate.standard_errors[value] == pytest.approx(published, rel=0.5)
    assert (estimate.low <= COUNTS).all()
    assert (estimate.high >= COUNTS).all()


@pytest.mark.parametrize("method", METHODS)
def test_intervals_are_as_wide_as_their_confidence_says(method: str) -> None:
    """They reach z standard errors to both sides of about the estimate, where it is positive."""
    protocol = protocol_of(method)
    estimate = protocol.estimate(protocol.draw(np.repeat(PEOPLE, 50), Seeded(6)), confidence="0.95")
    inside = estimate.low > 0
    assert inside.sum() > 6
    width = 2 * 1.959963985 * estimate.standard_errors
    assert (estimate.high - estimate.low)[inside] == pytest.approx(width[inside], rel=0.03)
    assert ((estimate.high + estimate.low) / 2)[inside] == pytest.approx(estimate.counts[inside], abs=width.max() * 0.05)


@pytest.mark.parametrize("method", [method for method in METHODS if "unary" not in method])
def test_without_noise_the_truth_comes_out(method: str) -> None:
    """At ε = 30 a lie has a probability below 1e-10: the estimates are the counts. Hadamard's places stay random."""
    protocol = protocol_of(method, epsilon=30)
    counts = protocol.estimate(protocol.privatise(PEOPLE)).counts
    if method in {"hadamard", "hashing"}:
        assert np.abs(counts - COUNTS).max() < 8 * protocol.standard_error(len(PEOPLE))
    else:
        assert counts == pytest.approx(COUNTS, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_several_reports_a_value_come_along_a_first_axis(method: str) -> None:
    """`draw` with a size, as the seam wants it; `release_many` is one person's."""
    protocol = protocol_of(method)
    single, several = protocol.draw(PEOPLE[:5], Seeded(1)), protocol.draw(PEOPLE[:5], Seeded(1), 3)
    assert several.shape == (3, *single.shape)
    assert protocol.release_many(4, 6).shape == (6, *single.shape[1:])
    assert protocol.accept(protocol.release_many(4, 6))[1] == 0


@pytest.mark.parametrize("method", METHODS)
def test_labels_are_codes_to_the_protocol(method: str) -> None:
    """Values by name; another name is refused."""
    protocol = local.frequencies(["red", "green", "blue"], epsilon=1, method=method)
    estimate = protocol.estimate(protocol.privatise(["red", "blue"] * 50))
    assert estimate.values == ("red", "green", "blue")
    assert {row["value"] for row in estimate.rows} == {"red", "green", "blue"}
    with pytest.raises(InvalidParameter, match="values must be of the domain"):
        protocol.privatise(["red", "mauve"])


def test_malformed_reports_are_counted_and_left_out() -> None:
    """Each protocol: too short, too long, of another kind, out of range, bits beyond the last value, sets of another size."""
    size = 12
    bits = [b"\x00", b"\x00\x00\x00", b"\x00\x10", b"\x00\x80", 7, None, "ab"]
    wrong: dict[str, list[Any]] = {
        "direct": [-1, size, 1.0, "1", None, True, (1,)],
        "optimal_unary": bits,
        "symmetric_unary": bits,
        "subset": [*bits, b"\x00\x00", b"\xff\x0f"],
        "hadamard": [-1, 1 << 20, 0.5, b"", None, True],
        "hashing": [
            (0, 0, 0),
            (13, 0, 0),
            (1, 13, 0),
            (1, 0, 99),
            (1, 0),
            (1, 0, 0, 0),
            (1, 0, -1),
            (1.0, 0, 0),
            5,
            None,
            True,
        ],
    }
    for method, reports in wrong.items():
        protocol = protocol_of(method)
        client: Any = protocol.client()
        collector = protocol.collector().add([client.report(3), *reports, client.report(11)])
        assert (collector.reports, collector.rejected) == (2, len(reports)), method


def test_malformed_rows_of_arrays_are_counted_and_left_out() -> None:
    """The same for arrays, where a whole array of another shape is the caller's mistake."""
    unary, subset, hashed = protocol_of("optimal_unary"), protocol_of("subset"), protocol_of("hashing")
    rows = unary.privatise([0, 1, 2])
    rows[1, 1] |= 0x20
    assert unary.accept(rows)[1] == 1
    rows = subset.privatise([0, 1, 2])
    rows[2] = 0
    assert subset.accept(rows)[1] == 1
    rows = hashed.privatise([0, 1, 2])
    rows[0, 0] = 0
    good, bad = hashed.accept(rows)
    assert bad == 1
    assert np.array_equal(good, rows[1:])
    for protocol in (unary, subset, hashed):
        with pytest.raises(InvalidParameter, match="reports must be an array"):
            protocol.accept(np.zeros((3, 7), np.uint8))


@pytest.mark.parametrize("kind", ["best", "", None])
def test_other_kinds_of_unary_encoding_are_refused(kind: Any) -> None:
    """There are two."""
    with pytest.raises(InvalidParameter, match="kind must be optimal or symmetric"):
        local.Unary(3, epsilon=1, kind=kind)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [0, -1, "1e-10", 65, float("nan")])
def test_an_epsilon_without_sense_is_refused(method: str, epsilon: Any) -> None:
    """Zero, less, so little that nothing could be learnt, so much that nothing is protected."""
    with pytest.raises(InvalidParameter, match="epsilon"):
        protocol_of(method, epsilon=epsilon)


@pytest.mark.parametrize("method", METHODS)
def test_the_smallest_epsilon_still_has_a_finite_error(method: str) -> None:
    """At ε = 1e-9 the true value is still the likelier one."""
    protocol = protocol_of(method, 1000, "1e-9")
    assert 1e9 < protocol.variance() ** 0.5 < 1e13
    if isinstance(protocol, Supporting):
        assert protocol.p > protocol.q


def test_one_person_at_a_time_is_what_the_loss_is_about() -> None:
    """Two lists of values are neighbours where they differ in one place."""
    protocol = protocol_of("hashing")
    assert protocol.within(np.array([1, 2, 3]), np.array([1, 0, 3]))
    assert not protocol.within(np.array([1, 2, 3]), np.array([0, 0, 3]))
    assert not protocol.within(np.array([1, 2, 3]), np.array([1, 2]))


# ---- hashing ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "epsilon"), [(2, 1), (3, 3), (12, 1), (97, 2), (100, 4), (1000, 1)])
def test_circles_and_single_hashes_count_alike(size: int, epsilon: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the circles come in several blocks; and both as the client hashes."""
    protocol = local.Hashing(size, epsilon=epsilon)
    client = protocol.client()
    reports = protocol.draw(np.arange(400) % size, Seeded(3))
    single = protocol.supports_of(reports, np.arange(size))
    monkeypatch.setattr(hashing, "_CIRCLES", 5000)
    circles = hashing.supports_on_circles(reports, size, client.prime, client.cells)
    assert np.array_equal(single, circles)
    a, b, z = reports[7].tolist()
    plain = [client.cell(a, b, code) == z for code in range(size)]
    assert protocol.supports_of(reports[7:8], np.arange(size)).tolist() == plain


def test_many_reports_are_counted_on_circles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they cost less; few are not."""
    calls: list[int] = []
    real = hashing.supports_on_circles

    def watched(reports: Any, size: int, prime: int, cells: int) -> Any:
        calls.append(len(reports))
        return real(reports, size, prime, cells)

    monkeypatch.setattr(hashing, "supports_on_circles", watched)
    protocol = local.Hashing(50, epsilon=1)
    many = protocol.privatise(np.arange(5000) % 50)
    protocol.tally(many[:100])
    assert calls == []
    protocol.tally(many)
    assert calls == [5000]


def test_an_open_domain_is_counted_for_candidates() -> None:
    """Codes below 2³¹ − 1: half of the reports at ε = 20 support their sender's code and hardly one another's."""
    protocol = local.Hashing(OPEN_SIZE, epsilon=20)
    client = protocol.client()
    codes = np.array([0, 1, 123456789, OPEN_SIZE - 1])
    reports = protocol.draw(np.repeat(codes, 50), Seeded(2))
    assert (np.abs(protocol.supports_of(reports, codes) - 25) < 24).all()  # false alarm 1e-12
    for a, b, z in reports[:200:20].tolist():
        expected = [client.cell(a, b, code) == z for code in codes.tolist()]
        assert protocol.supports_of(np.array([[a, b, z]]), codes).tolist() == expected


def test_cells_share_the_circle_evenly() -> None:
    """Their borders follow the client's cells, for every number of cells."""
    for prime in (2, 7, 13):
        for cells in range(2, prime + 1):
            borders = hashing.borders(np.arange(cells + 1), prime, cells).tolist()
            assert [u * cells // prime for u in range(prime)] == [
                cell for cell, (low, high) in enumerate(pairwise(borders)) for _ in range(low, high)
            ]


# ---- hadamard, subset, intervals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [1, 2, 8, 64])
def test_the_transform_is_the_matrix(side: int) -> None:
    """Against the matrix of signs, for several blocks."""
    table = np.random.default_rng(side).integers(-50, 50, (3, side))
    assert np.array_equal(transform_rows(table), table @ matrix(side))


def test_the_error_of_hadamard_knows_its_block() -> None:
    """A value in a crowded block has a larger standard error than one in an empty block, by the published formula."""
    protocol = local.Hadamard(64, epsilon=4)
    blocks = protocol.client().blocks
    assert blocks > 1
    estimate = protocol.estimate(protocol.draw(np.zeros(40_000, np.int64), Seeded(4)))
    crowded, empty = estimate.standard_errors[blocks], estimate.standard_errors[1]
    assert crowded == pytest.approx((40_000 * protocol.variance(block_share=1)) ** 0.5, rel=0.05)
    assert empty == pytest.approx((40_000 * protocol.variance(block_share=0)) ** 0.5, rel=0.05)
    assert crowded > 1.5 * empty
    evenly = {"share": Fraction(1, 64), "block_share": Fraction(1, blocks)}
    assert protocol.variance(share=Fraction(1, 64)) == protocol.variance(**evenly)
    assert protocol.variance(share=1) == protocol.variance(share=1, block_share=1)


def test_a_block_without_reports_is_not_sure_of_nobody() -> None:
    """With 30 reports in 64 blocks most are empty: their intervals reach beyond a holder whose report fell elsewhere."""
    protocol = local.Hadamard(1000, epsilon=5)
    assert protocol.client().blocks >= 64
    estimate = protocol.estimate(protocol.draw(np.arange(30), Seeded(8)))
    empty = estimate.counts == 0
    assert empty.sum() > 300
    assert (estimate.standard_errors > 0).all()
    assert (estimate.high[empty] > 1).all()


@pytest.mark.parametrize(("size", "weight"), [(2, 1), (2, 0), (5, 2), (9, 8), (300, 3), (300, 150)])
def test_sets_have_their_size_and_leave_out_what_they_must(size: int, weight: int) -> None:
    """Every row: as many ones as asked for, never the value that is left out."""
    left_out = np.arange(200) % size
    packed = np.full((200, -(-size // 8)), 255, np.uint8)
    fill_sets(packed, left_out, np.full(200, weight), size, Seeded(1))
    loose = np.unpackbits(packed, axis=1, bitorder="little")
    assert (loose.sum(axis=1) == weight).all()
    assert not loose[np.arange(200), left_out].any()
    assert not loose[:, size:].any()


def test_score_intervals_hold_the_numbers_within_z() -> None:
    """At its ends the statistic is z standard deviations away, below 0 as well."""
    away, slope, base, rise, z = np.array([-500.0, 40.0, 300.0, 9000.0]), 0.5, 900.0, 0.2, 1.96
    low, high = score_interval(away, slope, base, rise, z)
    for place in range(4):
        assert low[place] < away[place] / slope < high[place]
        for end in (low[place], high[place]):
            assert abs(away[place] - end * slope) == pytest.approx(z * (base + end * rise) ** 0.5)


@pytest.mark.parametrize("epsilon", ["0.5", "3"])
@pytest.mark.parametrize("method", METHODS)
def test_the_evidence_of_a_report_is_the_ratio_of_its_law(method: str, epsilon: str) -> None:
    """For every report that a small client can send, against the client's own law."""
    protocol = protocol_of(method, size=5, epsilon=epsilon)
    client: Any = protocol.client()
    one, other = client.law(1), client.law(4)
    reports, bad = protocol.accept(list(one))
    assert (len(reports), bad) == (len(one), 0)
    wanted = [float(np.log(float(other[report] / one[report]))) for report in one]
    assert protocol.log_odds(reports, 1, 4) == pytest.approx(wanted, abs=1e-12)
    assert protocol.log_odds(reports, 4, 4) == pytest.approx(0.0)


@pytest.mark.parametrize("whole", [0, 1 << 22])
def test_circles_held_at_once_or_in_blocks_count_alike(monkeypatch: pytest.MonkeyPatch, whole: int) -> None:
    """Against hashing every value for every report."""
    monkeypatch.setattr(hashing, "_WHOLE", whole)
    monkeypatch.setattr(hashing, "_CIRCLES", 700)
    protocol = local.Hashing(100, epsilon=3)
    reports = protocol.draw(np.arange(500) % 100, Seeded(8))
    client = protocol.client()
    found = hashing.supports_on_circles(reports, 100, client.prime, client.cells)
    assert np.array_equal(found, protocol.supports_of(reports, np.arange(100)))

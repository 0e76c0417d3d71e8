"""Searching a huge domain for frequent values: how many are found, how few of nobody, and a wrong hash that finds nothing."""

import numpy as np

from curador import local
from curador.local import hitters, search
from curador.local.search import functions
from curador.randomness.injected import Seeded


def people(seed, number=200_000, bits=48):
    """Zipf's law over a million random codes."""
    draw = np.random.default_rng(seed)
    ranks = np.minimum(draw.zipf(1.3, number), 999_999)
    return draw.integers(0, 1 << bits, 1_000_000)[ranks]


class TestSearch:
    """200,000 people, values of 48 bits, ε = 3."""

    def test_recall_and_false_values(self):
        """Every value with 1.8 times the detectable number of holders is found, and none that nobody holds.

        One misses such a value if its support at some of five levels is 0.8 of its signal below the mean: more than four
        standard deviations for the least of them. A false value is expected 0.05 times; two of them have odds of 1 in 800, so
        that at most two are allowed (2e-5), in a run whose noise is fixed.
        """
        values = people(1)
        protocol = local.HeavyHitters(epsilon=3, bits=48)
        reports = protocol.draw(protocol.codes(values), Seeded(11))
        found = protocol.estimate(reports)
        codes, counts = np.unique(values, return_counts=True)
        true = dict(zip(codes.tolist(), counts.tolist(), strict=True))
        enough = 1.8 * protocol.detectable(len(values))
        large = {code for code, count in true.items() if count > enough}
        assert len(large) >= 6
        assert large <= set(found.values)
        assert sum(value not in true for value in found.values) <= 2
        away = [(row["count"] - true.get(row["value"], 0)) / row["standard_error"] for row in found.rows]
        assert max(map(abs, away)) < 5
        assert sum(row["low"] <= true.get(row["value"], 0) <= row["high"] for row in found.rows) >= len(away) - 3
        assert [one.bits for one in found.levels] == [16, 24, 32, 40, 48]
        assert sum(one.reports for one in found.levels) == found.reports == 200_000
        assert all(one.kept <= one.candidates for one in found.levels)

    def test_a_wrong_hash_finds_nothing(self, monkeypatch):
        """Reports by other functions than the collector's support no prefix."""
        protocol = local.HeavyHitters(epsilon=3, bits=48)
        monkeypatch.setattr(hitters, "functions", lambda salt, level, hashes: functions("other" + salt, level, hashes))
        reports = protocol.draw(protocol.codes(people(1)), Seeded(12))
        monkeypatch.undo()
        found = protocol.estimate(reports)
        assert found.values == ()
        assert "none does" in str(found)

    def test_as_many_false_values_as_allowed(self, monkeypatch):
        """Ten collections that allow four false values each have at most 80: 40 are expected, 80 have odds below 1e-7.

        The noise is fixed. With a threshold that lets five times as many through there are more.
        """

        def false_values():
            found = 0
            for place in range(10):
                values = people(place, 15_000, 24)
                protocol = local.HeavyHitters(
                    epsilon=3, bits=24, start=12, step=12, hashes=256, false_values=4, salt=str(place)
                )
                result = protocol.estimate(protocol.draw(protocol.codes(values), Seeded(place)))
                found += len(set(result.values) - set(values.tolist()))
            return found

        assert 5 <= false_values() <= 80
        right = search.threshold
        monkeypatch.setattr(search, "threshold", lambda n, q, candidates, false: right(n, q, candidates, 5 * false))
        assert false_values() > 80

    def test_nobody_stands_out(self):
        """Where all hold different values the table is empty, and says from where on it would not be."""
        protocol = local.HeavyHitters(epsilon=3, bits=64)
        values = np.random.default_rng(4).integers(0, 1 << 63, 60_000).astype(np.uint64) << np.uint64(1)
        found = protocol.estimate(protocol.draw(protocol.codes(values), Seeded(13)))
        assert len(found.values) == 0
        assert found.rows == []
        assert found.levels[0].threshold > 0

"""Frequent values of a huge domain: what is found, what is not, and a wrong hash function that finds nothing."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from local_enumeration import exact_law
from scipy.special import chdtrc

from curador import local
from curador.errors import InvalidParameter
from curador.local import client
from curador.local.client import PrefixClient, prefix
from curador.local.client.chance import exp_below
from curador.local.client.hashing import OPEN_SIZE
from curador.local.search import cells_of, functions, threshold
from curador.randomness.injected import Seeded


class TestTexts:
    """Values of variable length."""

    @pytest.mark.slow
    def test_found(self):
        """Words of one to eight bytes, one of them the beginning of another; clients and arrays."""
        protocol = local.HeavyHitters(epsilon=6, length=8, hashes=64, false_values="1e-9")
        words = ["no", "not", "añil", "", "ziehharm"]
        values = [words[place % 5] for place in range(8_000)] + [f"w{place}" for place in range(2_000)]
        reports = protocol.draw(protocol.codes(values), Seeded(21))
        device = client.load(protocol.client().to_json())
        sent = [device.report("not") for _ in range(400)]
        found = protocol.collector().add(reports).add(sent).estimate()
        assert set(found.values) == set(words)
        counts = {row["value"]: row for row in found.rows}
        assert all(
            abs(counts[word]["count"] - 1600 - 400 * (word == "not")) < 6 * counts[word]["standard_error"] for word in words
        )
        assert found.to_arrow().column("value").to_pylist() == list(found.values)
        assert "a value needs about" in str(found)

    @pytest.mark.parametrize("value", ["123456789", "a\0b", b"abc", 5, None])
    def test_refused(self, value):
        """Too long, with a zero byte, or no text: without repeating it."""
        protocol = local.HeavyHitters(epsilon=1, length=8)
        for use in (protocol.client().report, lambda one: protocol.privatise(["a", one])):
            with pytest.raises(InvalidParameter, match="value must be a text") as refused:
                use(value)
            assert "123456789" not in str(refused.value)

    def test_codes_and_back(self):
        """Every text has one code; bytes that are no text, or no text in normal form, have no value."""
        device = local.HeavyHitters(epsilon=1, length=8).client()
        for word in ("", "a", "añil", "12345678", "e\u0301"):
            assert device.value(device.code(word)) == ("é" if word == "e\u0301" else word)
        assert device.value(0xFF << 56) is None
        assert device.value(int.from_bytes(b"a\0b".ljust(8, b"\0"), "big")) is None
        assert device.value(int.from_bytes("e\u0301".encode().ljust(8, b"\0"), "big")) is None


class TestLaw:
    """Small enough to enumerate."""

    def test_private(self, monkeypatch):
        """Every report of every pair of values, exactly: at most e^ε; and the client's cell has the odds that are said."""
        monkeypatch.setattr(prefix, "best_cells", lambda *_: 3)
        one = PrefixClient(epsilon="1.5", bits=3, start=1, step=1, hashes=2)
        laws = [exact_law(lambda _, value=value: one.report(value))[0] for value in range(8)]
        outputs = set().union(*laws)
        assert len(outputs) == 3 * 2 * 3
        ratio = max(a[output] / b[output] for a in laws for b in laws for output in outputs)
        assert exp_below(Fraction(3, 2)) * (1 - Fraction(1, 10**12)) < ratio <= exp_below(Fraction(3, 2))

    @pytest.mark.slow
    def test_arrays_have_the_clients_law(self):
        """60,000 reports of an array against the enumerated law; p ≥ 1e-9, and the law of another value fails."""
        protocol = local.HeavyHitters(epsilon="0.9", bits=3, start=1, step=1, hashes=2)
        device = protocol.client()
        assert device.cells > 2
        reports = protocol.draw(protocol.codes([5]), Seeded(8), 60_000)[:, 0]
        fits = []
        for value in (5, 2):
            law, lost = exact_law(lambda _, value=value: device.report(value))
            assert lost == 0
            keys, counts = np.unique(reports, axis=0, return_counts=True)
            seen = dict(zip(map(tuple, keys.tolist()), counts.tolist(), strict=True))
            assert set(seen) == set(law)
            means = {key: 60_000 * float(chance) for key, chance in law.items()}
            fits.append(chdtrc(len(law) - 1, sum((seen[key] - mean) ** 2 / mean for key, mean in means.items())))
        assert fits[0] >= 1e-9 > fits[1]

    @pytest.mark.parametrize("bits", [10, 64, 100])
    def test_arrays_use_the_clients_cells(self, bits):
        """Where nothing is changed the array's cell is the client's."""
        protocol = local.HeavyHitters(epsilon=64, bits=bits, start=4, hashes=8)
        values = [(1 << bits) - 1, 0, 12345 % (1 << bits), (1 << bits - 1) + 1] * 30
        device = protocol.client()
        rows = protocol.draw(protocol.codes(values), Seeded(2)).tolist()
        assert all(device.cell(level, place, value) == cell for (level, place, cell), value in zip(rows, values, strict=True))
        assert {level for level, _, _ in rows} == set(range(len(device.lengths)))

    def test_cells(self):
        """⌊g ((a x + b) mod P)/P⌋ in arrays, at the largest numbers too."""
        top = OPEN_SIZE - 1
        numbers = np.array([0, 1, 2**20 + 7, top], np.uint64)
        for a in (1, 12345, top):
            for b in (0, top):
                exact = [(a * x + b) % OPEN_SIZE * 21 // OPEN_SIZE for x in numbers.tolist()]
                assert cells_of(numbers, np.uint64(a), np.uint64(b), 21).tolist() == exact

    def test_functions_spread(self):
        """Two prefixes share a cell under about one in g functions: within seven standard deviations."""
        protocol = local.HeavyHitters(epsilon=3, bits=32)
        device = protocol.client()
        a, b = functions("", 1, 4096)
        marks = np.array(device.marks(1, [5, 6]), np.uint64)
        same = np.mean(cells_of(marks[:1], a, b, device.cells) == cells_of(marks[1:], a, b, device.cells))
        share = 1 / device.cells
        assert abs(same - share) < 7 * math.sqrt(share / 4096)

    def test_values_that_no_function_tells_apart(self, monkeypatch):
        """Two of one fingerprint share their holders; the collector does not fail."""
        right = PrefixClient.marks
        monkeypatch.setattr(PrefixClient, "marks", lambda *a: right(*a[:2], [9 if one == 10 else one for one in a[2]]))
        protocol = local.HeavyHitters(epsilon=3, bits=6, start=6, hashes=64)
        found = protocol.estimate(protocol.draw(protocol.codes([9] * 5000), Seeded(5)))
        assert sorted(found.values) == [9, 10]
        assert sum(found.counts) == pytest.approx(5000, rel=0.1)

    def test_threshold(self):
        """The binomial tail, by summing it."""
        n, q, goal = 400, 0.05, 0.01
        limit = threshold(n, q, 5, 0.05)
        tail = [
            math.fsum(math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(least, n + 1))
            for least in (limit, limit - 1)
        ]
        assert tail[0] <= goal < tail[1]
        assert threshold(10, 0.5, 10**9, 0.05) == 11  # nothing that ten reports say is that rare


class TestSurface:
    """Losses, reports, refusals."""

    def test_loss(self):
        """Randomized response on the cells, of ε."""
        protocol = local.HeavyHitters(epsilon=3, bits=48)
        assert protocol.loss.epsilon(0) == 3
        assert protocol.loss.categories == protocol.client().cells == 21

    def test_malformed_reports_are_counted(self):
        """Levels, functions and cells that do not exist."""
        protocol = local.HeavyHitters(epsilon=3, bits=24, hashes=16)
        collector = protocol.collector().add([(0, 0, 0), (2, 0, 0), (0, 16, 0), (0, 0, 21), (0, 0), "x", None, (-1, 0, 0)])
        assert (collector.reports, collector.rejected) == (1, 7)
        collector.add(np.array([[1, 15, 20], [9, 0, 0]]))
        assert (collector.reports, collector.rejected) == (2, 8)

    def test_merged(self):
        """Two collectors know what one would."""
        protocol = local.HeavyHitters(epsilon=5, bits=16, start=8, hashes=32)
        reports = protocol.draw(protocol.codes([77] * 3000 + list(range(1000))), Seeded(6))
        whole = protocol.estimate(reports)
        parts = protocol.collector().add(reports[:1500]).merge(protocol.collector().add(reports[1500:])).estimate()
        assert whole.rows == parts.rows
        assert whole.values[0] == 77

    @pytest.mark.parametrize(
        ("parameters", "words"),
        [
            ({}, "exactly one of bits and length; got neither"),
            ({"bits": 8, "length": 1}, "exactly one of bits and length; got both"),
            ({"bits": 1}, "bits must be"),
            ({"bits": 5000}, "bits must be a whole number from 2 to 2048"),
            ({"bits": 8, "start": 21}, "start must be a whole number from 1 to 20"),
            ({"bits": 8, "step": 0}, "step must be"),
            ({"bits": 8, "hashes": 0}, "hashes must be"),
            ({"bits": 2048, "step": 1, "hashes": 1 << 16}, "levels × hashes × cells must be at most"),
            ({"bits": 8, "most": 1000, "step": 16}, r"most × 2\^step must be at most 2"),
            ({"bits": 8, "most": 5000}, "most × hashes must be at most 2"),
            ({"bits": 8, "salt": 3}, "salt must be a text"),
            ({"bits": 8, "false_values": 0}, "false_values must be positive"),
        ],
    )
    def test_refusals(self, parameters, words):
        """One sentence each."""
        with pytest.raises(InvalidParameter, match=words):
            local.HeavyHitters(epsilon=1, **parameters)

    @pytest.mark.parametrize(
        "values", [[-1], [256], [1.5], ["7"], [True], [], np.array([256]), np.array([[1]]), np.array([0.5])]
    )
    def test_values(self, values):
        """Numbers of more bits, or none."""
        with pytest.raises(InvalidParameter, match="value"):
            local.HeavyHitters(epsilon=1, bits=8).privatise(values)

    def test_a_changed_text(self):
        """A client's text with other numbers is another client, within the rules."""
        body = json.loads(local.HeavyHitters(epsilon=1, bits=8).client().to_json())
        assert client.load(json.dumps(body)).parameters() == local.HeavyHitters(epsilon=1, bits=8).client().parameters()
        with pytest.raises(InvalidParameter, match="hashes must be"):
            client.load(json.dumps(body | {"hashes": 10**9}))

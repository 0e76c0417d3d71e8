"""Means: what is chosen, refused, estimated and promised before any report."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from curador import local
from curador.errors import InvalidParameter
from curador.local import client
from curador.local.means.base import exact_sums, places
from curador.randomness.injected import Scripted, Seeded

KINDS = (local.LaplaceMean, local.DuchiMean, local.PiecewiseMean, local.HybridMean)
every_kind = pytest.mark.parametrize("kind", KINDS)


class TestChoice:
    """The least worst-case variance."""

    @pytest.mark.parametrize(
        ("epsilon", "name"), [("0.1", "DuchiMean"), ("0.6", "DuchiMean"), ("0.63", "HybridMean"), (6, "HybridMean")]
    )
    def test_auto(self, epsilon, name):
        """One bit up to about 0.61, the mixture beyond."""
        protocol = local.mean(lower=0, upper=10, epsilon=epsilon)
        assert protocol.name == name
        others = [kind(lower=0, upper=10, epsilon=epsilon).worst_variance for kind in KINDS]
        assert protocol.worst_variance == min(others)

    @pytest.mark.parametrize("method", ["laplace", "duchi", "piecewise", "hybrid"])
    def test_by_name(self, method):
        """A name is that method."""
        assert local.mean(lower=0, upper=1, epsilon=1, method=method).name.lower() == f"{method}mean"

    def test_unknown(self):
        """Another word is refused."""
        with pytest.raises(InvalidParameter, match="method must be auto, laplace"):
            local.mean(lower=0, upper=1, epsilon=1, method="best")


class TestVariance:
    """What the papers say, on [−1, 1]."""

    @pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
    @pytest.mark.parametrize("at", [0.0, 0.5, -1.0])
    def test_published(self, epsilon, at):
        """Within a thousandth of the formulas for real numbers; the piecewise one by the paper's theorem."""
        bounds = {"lower": -1, "upper": 1, "epsilon": epsilon}
        root = math.exp(epsilon / 2)
        piecewise = at**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        duchi = ((root**2 + 1) / (root**2 - 1)) ** 2 - at**2
        share = 1 - 1 / root
        mixed = share * (piecewise + at**2) + (1 - share) * (duchi + at**2) - at**2
        assert local.LaplaceMean(**bounds).variance(at=at) == pytest.approx(8 / epsilon**2, rel=1e-3)
        assert local.DuchiMean(**bounds).variance(at=at) == pytest.approx(duchi, rel=1e-3)
        assert local.PiecewiseMean(**bounds).variance(at=at) == pytest.approx(piecewise, rel=1e-3)
        assert local.HybridMean(**bounds).variance(at=at) == pytest.approx(mixed, rel=1e-3)

    @every_kind
    def test_units(self, kind):
        """Bounds that are ten times as far apart give a hundred times the variance."""
        narrow, wide = kind(lower=0, upper=1, epsilon=1), kind(lower=20, upper=30, epsilon=1)
        assert wide.variance(at=22) == pytest.approx(100 * narrow.variance(at="0.2"), rel=1e-9)
        assert wide.standard_error(100) == pytest.approx(math.sqrt(wide.worst_variance) / 10)
        assert wide.standard_error(100, at=25) <= wide.standard_error(100) * (1 + 1e-9)


class TestEstimates:
    """From many people."""

    @every_kind
    @pytest.mark.parametrize("epsilon", [0.5, 2])
    def test_the_mean_comes_out(self, kind, epsilon):
        """Within seven standard errors (2.6e-12), which are those foretold up to the spread of the numbers themselves."""
        people = np.random.default_rng(1).beta(2, 5, 40_000) * 100 - 50
        protocol = kind(lower=-50, upper=50, epsilon=epsilon)
        found = protocol.estimate(protocol.privatise(people))
        assert abs(found.mean - people.mean()) < 7 * found.standard_error
        assert found.standard_error <= math.hypot(protocol.standard_error(40_000), people.std() / 200) * 1.05
        assert found.low < found.mean < found.high
        assert (found.reports, found.rejected, found.method) == (40_000, 0, protocol.name)
        assert str(found).startswith(f"{protocol.name}: ")

    @every_kind
    def test_clients_and_arrays_go_together(self, kind):
        """Reports of clients, made from the protocol's text, are counted with those of `privatise`."""
        protocol = kind(lower=0, upper=10, epsilon=4)
        device = client.load(protocol.client().to_json())
        collector = protocol.collector().add([device.report(7) for _ in range(500)]).add(protocol.privatise([7.0] * 500))
        other = protocol.collector().add(protocol.privatise([7] * 1000))
        found = collector.merge(other).estimate()
        assert found.reports == 2000
        assert abs(found.mean - 7) < 7 * protocol.standard_error(2000)

    @every_kind
    def test_outside_of_the_bounds(self, kind):
        """Numbers are clamped, on both ways, from any type."""
        protocol = kind(lower=0, upper=10, epsilon=5)
        device = protocol.client()
        values = [1e308, Fraction(10**400), Decimal("1e50"), 10**30, np.float32(1e30), np.int64(2**62)]
        one = protocol.estimate([device.report(value) for value in values * 40])
        assert abs(one.mean - 10) < 7 * protocol.standard_error(240)
        many = protocol.estimate(protocol.privatise([-(10**30), -1e300, Fraction(-7, 3)] * 80))
        assert abs(many.mean) < 7 * protocol.standard_error(240)

    @every_kind
    def test_one_report(self, kind):
        """Has the worst variance for its own; the interval stays within the bounds."""
        protocol = kind(lower=0, upper=10, epsilon=1)
        found = protocol.estimate(protocol.privatise([3.0]))
        assert found.standard_error == pytest.approx(protocol.standard_error(1))
        assert 0 <= found.low <= found.high <= 10

    @every_kind
    def test_malformed_reports_are_counted(self, kind):
        """And left out."""
        protocol = kind(lower=0, upper=10, epsilon=1)
        good = [protocol.client().report(1) for _ in range(5)]
        bad = [None, "1", 1.5, True, 10**30, (1, 2, 3), (0, 7), (2, 0)]
        collector = protocol.collector().add([*good, *bad])
        assert (collector.reports, collector.rejected) == (5, 8)

    def test_sums_are_exact(self):
        """Of the largest reports that a client can send, and many of them."""
        generator = np.random.default_rng(2)
        for largest in (1 << 19, 1 << 30, (1 << 46) - 1):
            reports = generator.integers(-largest, largest + 1, 20_001)
            reports[:9000] = largest
            first, second = exact_sums(reports)
            assert first == sum(reports.tolist())
            assert second == sum(one * one for one in reports.tolist())
        smallest = local.LaplaceMean(lower=0, upper=1, epsilon="1e-6").client()
        assert smallest.limit + smallest.steps < 1 << 46


class TestPlaces:
    """Numbers on the grid, by arrays: the floor of position plus a uniform number, whatever decides it."""

    def _reference(self, values, lower, upper, steps, words):
        out = []
        for value, word in zip(values, words, strict=True):
            exact = min(max(Fraction(value), lower), upper)
            out.append(math.floor((exact - lower) * steps / (upper - lower) + Fraction(int(word), 1 << 64)))
        return out

    @pytest.mark.parametrize(
        ("lower", "upper"),
        [
            ("0", "1"),
            ("-1/3", "7/11"),
            ("1e15", "1000000000000001"),
            ("-1e-300", "1e-300"),
            ("0", "1e300"),
            ("1e9", "1000000001"),
        ],
    )
    def test_against_rationals(self, lower, upper):
        """Every place is that of exact arithmetic with the same random words."""
        low, high = Fraction(lower), Fraction(upper)
        inside = np.random.default_rng(3).random(300)
        values = np.array([float(low + (high - low) * Fraction(one)) for one in inside.tolist()])
        values[:4] = float(low), float(high), -1e308, 1e308
        stream = Seeded(9).words(300, "<u8")
        got = places(values, low, high, 1 << 20, Scripted(stream.tobytes(), Seeded(1)))
        assert got.tolist() == self._reference(values.tolist(), low, high, 1 << 20, stream)

    def test_ties_are_decided_by_more_bits(self):
        """A word that equals the edge asks for the next one."""
        value, low, high = np.array([Fraction(1, 3)], object), Fraction(0), Fraction(1)
        edge = (2 << 64) // 3  # U < 2/3 rounds the position 1/3 down
        for following, place in ((0, 0), ((1 << 64) - 1, 1)):
            script = edge.to_bytes(8, "little") + following.to_bytes(8, "little")
            source = Scripted(script)
            assert places(value, low, high, 1, source).tolist() == [place]
            assert source.left == 0

    def test_whole_numbers_beyond_floats(self):
        """2^53 + 1 is not rounded to a float on its way."""
        low, high = Fraction(2**53), Fraction(2**53 + 2)
        got = places(np.full(50, 2**53 + 1), low, high, 2, Seeded(4))
        assert got.tolist() == [1] * 50


class TestRefusals:
    """Before anything is drawn; a person's number is never repeated."""

    @every_kind
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"lower": 1}, "lower must be below upper"),
            ({"lower": float("nan")}, "lower must be"),
            ({"upper": "x"}, "upper must be a number"),
            ({"epsilon": 0}, "epsilon must be at least 1e-9"),
            ({"epsilon": 65}, "epsilon must be at least 1e-9 and at most 64"),
            ({"epsilon": "1e-7"}, "epsilon must be at least 1e-6 for a mean"),
            ({"steps": 3}, "steps must be an even number"),
            ({"steps": 1 << 21}, "steps must be an even number"),
        ],
    )
    def test_parameters(self, kind, change, words):
        """One sentence each, of protocol and client alike."""
        parameters = {"lower": 0, "upper": 1, "epsilon": 1} | change
        with pytest.raises(InvalidParameter, match=words):
            kind(**parameters)

    @every_kind
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), "17.25", None, True, 1j, [17.25]])
    def test_values(self, kind, value):
        """Not a finite number: refused by client and array, without the number."""
        protocol = kind(lower=0, upper=100, epsilon=1)
        with pytest.raises(InvalidParameter) as by_client:
            protocol.client().report(value)
        with pytest.raises(InvalidParameter) as by_array:
            protocol.privatise([1.0, value])
        assert "17.25" not in str(by_client.value) + str(by_array.value)

    @every_kind
    def test_shapes(self, kind):
        """A table is refused, an empty list too, and an estimate of nothing."""
        protocol = kind(lower=0, upper=1, epsilon=1)
        for values in (np.zeros((2, 2)), []):
            with pytest.raises(InvalidParameter):
                protocol.privatise(values)
        with pytest.raises(InvalidParameter, match="at least one well-formed report"):
            protocol.collector().estimate()

    @every_kind
    def test_a_changed_text(self, kind):
        """A client's text with another word is refused."""
        body = json.loads(kind(lower=0, upper=1, epsilon=1).client().to_json())
        with pytest.raises(InvalidParameter, match="parameters"):
            client.load(json.dumps(body | {"share": 3}))
        assert client.load(json.dumps(body)).parameters() == kind(lower=0, upper=1, epsilon=1).client().parameters()


class TestLosses:
    """What a report costs."""

    @every_kind
    @pytest.mark.parametrize("epsilon", ["0.5", "3"])
    def test_epsilon(self, kind, epsilon):
        """ε at δ = 0, up to rounding; less where δ is allowed; a shuffled or central loss may be added."""
        loss = kind(lower=0, upper=1, epsilon=epsilon).loss
        assert float(epsilon) * (1 - 1e-9) <= loss.epsilon(0) <= float(epsilon) * (1 + 1e-12)
        assert loss.epsilon("0.01") < float(epsilon)
        assert str(loss.adjacency) == "replace_one"

    @every_kind
    def test_release_many(self, kind):
        """As many reports on one number."""
        protocol = kind(lower=0, upper=1, epsilon=3)
        found = protocol.estimate(protocol.release_many(0.25, 4000))
        assert abs(found.mean - 0.25) < 7 * protocol.standard_error(4000)

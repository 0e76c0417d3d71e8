"""Memoised reports: by their exact law, one and many; the state on the device; what is refused."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from local_enumeration import exact_law

from curador import local
from curador.errors import InvalidParameter
from curador.local.client import RapporClient, load, memo
from curador.local.client.chance import WHOLE, exp_below, share_of_truth

FOREVER, ONCE = Fraction(2), Fraction(1)


def device(size=3, forever=FOREVER, once=ONCE, values=1):
    return RapporClient(epsilon_forever=forever, epsilon_once=once, size=size, values=values)


def law_of(value, rounds, **parameters):
    """The exact law of so many reports of a new device, by every way through the client."""

    def run(_):
        one = device(**parameters)
        return tuple(one.report(value) for _ in range(rounds))

    law, lost = exact_law(run)
    assert lost == 0
    assert sum(law.values()) == 1
    return law


def largest_ratio(laws):
    return max(one[output] / other[output] for one, other in product(laws, repeat=2) for output in one)


class TestExactLaw:
    """Three values, every memo, every report."""

    @pytest.mark.slow
    def test_one_report(self):
        """At most e^ε_once, and within 1e-12 of it; each bit with p = 1/2 or the composite q, exactly."""
        laws = [law_of(value, 1) for value in range(3)]
        ratio = largest_ratio(laws)
        assert exp_below(ONCE) * (1 - Fraction(1, 10**12)) < ratio <= exp_below(ONCE)
        protocol = local.Rappor(3, epsilon_forever=FOREVER, epsilon_once=ONCE)
        for value, law in enumerate(laws):
            for place in range(3):
                chance = sum(mass for (report,), mass in law.items() if report[0] >> place & 1)
                assert chance == (protocol.p if place == value else protocol.q)

    def test_two_reports(self):
        """More than one report tells, and no more than e^ε_forever."""
        ratio = largest_ratio([law_of(value, 2, size=2) for value in range(2)])
        assert exp_below(ONCE) < ratio <= exp_below(FOREVER)

    def test_many_reports(self):
        """Whatever the number of reports the ratio stays below e^ε_forever: it is an average over the kept bits."""
        one = device(2)
        false, kept, _ = one.chances()
        for rounds in (1, 3, 10, 60):
            best = (kept / (1 - kept)) ** rounds  # all reports agree: the likeliest sign of a kept bit
            up = (best + 1) / 2 / (false * best + 1 - false)  # of the own bit, all ones
            down = (false + (1 - false) * best) / ((1 + best) / 2)  # of the other's bit, all zeros
            assert 1 < up * down <= exp_below(FOREVER)
        assert up * down > exp_below(FOREVER) * Fraction(99, 100)

    @pytest.mark.slow
    @pytest.mark.parametrize(("rounds", "forever"), [(1, 2), (2, 2), (3, 2), (2, 8)])
    def test_several_reports_exactly(self, rounds, forever):
        """`epsilon_after` is the logarithm of the largest ratio, and at most rounds times ε_once."""
        protocol = local.Rappor(2, epsilon_forever=forever, epsilon_once=ONCE)
        laws = [law_of(value, rounds, size=2, forever=Fraction(forever)) for value in range(2)]
        assert protocol.epsilon_after(rounds) == pytest.approx(math.log(largest_ratio(laws)), rel=1e-12)
        assert protocol.epsilon_after(rounds) <= min(rounds, forever) * (1 + 1e-12)
        assert protocol.epsilon_after(1000) <= protocol.epsilon_after(1001) == pytest.approx(forever, rel=1e-12)

    def test_the_same_epsilons(self):
        """With ε_once = ε_forever a report is the memo."""
        one = device(once=FOREVER)
        assert one.kept == WHOLE
        assert len({one.report(1) for _ in range(50)}) == 1

    @pytest.mark.parametrize("forever", ["0.5", "3", "64"])
    @pytest.mark.parametrize("part", ["1/1000", "1/3", "1"])
    def test_any_parameters(self, forever, part):
        """q* is at least 1/(e^ε + 1) and within 1e-12 of it."""
        once = Fraction(forever) * Fraction(part)
        q = device(2, Fraction(forever), once).chances()[2]
        least = 1 - Fraction(share_of_truth(once, truths=1, others=1), WHOLE)
        assert least <= q <= least * (1 + Fraction(1, 10**12)) + Fraction(2, WHOLE)


class TestSeededBugs:
    """Each is seen by the law."""

    def test_the_last_bit_left_out(self, monkeypatch):
        """Not flipped again: one report then shows a kept bit."""
        right = memo.RapporClient.report

        def wrong(self, value):
            kept = self._memo.get(value)
            report = right(self, value)[0]
            top = 1 << self.size - 1
            return bytes([report & ~top | (self._memo[value] if kept is None else kept) & top])

        monkeypatch.setattr(memo.RapporClient, "report", wrong)
        assert largest_ratio([law_of(value, 1) for value in range(3)]) > exp_below(ONCE)

    def test_a_memo_that_is_forgotten(self):
        """Drawn anew for each report, two reports tell 2 ε_once: more than ε_forever allows here."""
        parameters = {"size": 2, "forever": Fraction(1), "once": Fraction(1)}
        laws = [law_of(value, 1, **parameters) for value in range(2)]
        assert largest_ratio(laws) ** 2 > exp_below(Fraction(1))
        assert largest_ratio([law_of(value, 2, **parameters) for value in range(2)]) <= exp_below(Fraction(1))

    def test_flips_too_rarely(self, monkeypatch):
        """A kept share that is a little too large breaks ε_once."""
        right = memo.kept_share
        monkeypatch.setattr(memo, "kept_share", lambda *a: right(*a) + WHOLE // 1000)
        assert largest_ratio([law_of(value, 1) for value in range(3)]) > exp_below(ONCE)

    def test_one_share_too_many(self, monkeypatch):
        """Even by 2⁻⁶² of probability."""
        right = memo.kept_share
        monkeypatch.setattr(memo, "kept_share", lambda *a: right(*a) + 4)
        assert largest_ratio([law_of(value, 1) for value in range(3)]) > exp_below(ONCE)


class TestState:
    """What stays on the device."""

    def test_the_memo_survives(self):
        """A device that loads its state reports from the same bits: here a report is the memo itself."""
        first = device(40, once=FOREVER)
        report = first.report(17)
        second = load(first.to_json())
        assert isinstance(second, RapporClient)
        assert second.load(first.state()).report(17) == report
        assert second.state() == first.state()

    def test_the_text_of_a_client_holds_no_value(self):
        """`to_json` is the same before and after."""
        one = device(40)
        before = one.to_json()
        one.report(17)
        assert one.to_json() == before
        assert "memo" not in before

    def test_a_second_value(self):
        """Is refused unless it was allowed, and not repeated; the first can still be reported."""
        one = device(40)
        one.report(17)
        with pytest.raises(InvalidParameter, match="one of the 1 that were reported before") as refused:
            one.report(23)
        assert "23" not in str(refused.value)
        assert one.report(17)
        two = device(40, values=2)
        assert [len(two.report(value)) for value in (17, 23, 17)] == [5, 5, 5]
        with pytest.raises(InvalidParameter, match="one of the 2"):
            two.report(24)

    @pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"memo": 3}', '{"memo": {"1": "zz"}}'])
    def test_no_state(self, text):
        """Something else is refused."""
        with pytest.raises(InvalidParameter, match="text must be"):
            device().load(text)

    def test_a_state_of_others(self):
        """Other parameters, codes beyond the size, bits beyond the size, too many values."""
        one = device(10)
        one.report(3)
        body = json.loads(one.state())
        with pytest.raises(InvalidParameter, match="same parameters"):
            device(11).load(one.state())
        for memo_ in ({"10": "0000"}, {"3": "ff07"}, {"3": "0000", "4": "0000"}):
            with pytest.raises(InvalidParameter, match="no client wrote"):
                device(10).load(json.dumps(body | {"memo": memo_}))
        other = device(10)
        other.report(4)
        with pytest.raises(InvalidParameter, match="before the first report"):
            other.load(one.state())


class TestProtocol:
    """Rounds of many people."""

    @pytest.mark.slow
    def test_estimates(self):
        """Unbiased, with the standard error of fresh unary encoding at ε_once, by clients and by arrays."""
        protocol = local.Rappor(["a", "b", "c", "d"], epsilon_forever=3, epsilon_once=1)
        people = np.random.default_rng(0).choice(["a", "b", "c", "d"], 20_000, p=[0.6, 0.3, 0.1, 0.0])
        found = protocol.estimate(protocol.privatise(people))
        truth = np.array([np.count_nonzero(people == value) for value in "abcd"])
        assert (np.abs(found.counts - truth) < 7 * found.standard_errors).all()
        assert protocol.variance() == pytest.approx(local.Unary(4, epsilon=1).variance(), rel=1e-12)
        assert found.method == "Rappor"
        devices = [protocol.client() for _ in range(500)]
        again = protocol.estimate([one.report(2) for one in devices])
        assert abs(again.counts[2] - 500) < 7 * again.standard_errors[2]

    def test_no_other_bits_are_better(self):
        """A report's bits have some p and q within ε_once, whatever made them: no others have less variance at share 0."""
        protocol = local.Rappor(10, epsilon_forever=3, epsilon_once=1)
        p = np.linspace(0.001, 0.999, 997)
        q = p / (math.e * (1 - p) + p)
        assert np.min(q * (1 - q) / (p - q) ** 2) == pytest.approx(protocol.variance(), rel=1e-5)
        assert protocol.variance() <= np.min(q * (1 - q) / (p - q) ** 2) * (1 + 1e-9)

    def test_losses(self):
        """Once, for ever, and with one more value."""
        protocol = local.Rappor(100, epsilon_forever=3, epsilon_once=1, values=2)
        assert protocol.loss.epsilon(0) == pytest.approx(1, rel=1e-9)
        assert protocol.loss_forever.epsilon(0) == pytest.approx(3, rel=1e-9)
        assert (2 * protocol.loss_forever).epsilon(0) == pytest.approx(6, rel=1e-9)
        assert str(protocol.loss_forever.adjacency) == "replace_one"

    @pytest.mark.parametrize(
        ("parameters", "words"),
        [
            ({"epsilon_forever": 1, "epsilon_once": 2}, "epsilon_once must be at most epsilon_forever"),
            ({"epsilon_forever": 0, "epsilon_once": 1}, "epsilon must be at least 1e-9"),
            ({"epsilon_forever": 1, "epsilon_once": 1, "values": 0}, "values must be a whole number of at least 1"),
        ],
    )
    def test_refusals(self, parameters, words):
        """One sentence each."""
        with pytest.raises(InvalidParameter, match=words):
            local.Rappor(4, **parameters)

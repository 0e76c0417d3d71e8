"""Clients of means by their exact laws: private, unbiased, of the stated variance and loss; and wrong ones are caught."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from local_enumeration import Cut, exact_law
from scipy.special import chdtrc

from curador.local.client import duchi, laplace, number, piecewise
from curador.local.client.chance import exp_below, share_of_truth
from curador.local.means import DuchiMean, HybridMean, LaplaceMean, PiecewiseMean, base
from curador.local.means import piecewise as piecewise_protocol
from curador.randomness.injected import Seeded

FINITE = (DuchiMean, PiecewiseMean, HybridMean)
VALUES = (Fraction(-9), Fraction(-2), Fraction(1, 7), Fraction(3, 2), Fraction(100))
BOUNDS = {"lower": -2, "upper": 4}


def made(kind, epsilon, steps=8):
    return kind(**BOUNDS, epsilon=epsilon, steps=steps)


def laws(protocol):
    client = protocol.client()
    found = {value: exact_law(lambda _, value=value: client.report(value)) for value in VALUES}
    assert all(lost == 0 for _, lost in found.values())
    return {value: law for value, (law, _) in found.items()}


@lru_cache(maxsize=32)
def right_laws(kind, epsilon):
    return laws(made(kind, epsilon))


def estimate_of(protocol, report):
    """What one report estimates, exactly, in the people's own units."""
    shaped = np.array([report], np.int64)
    centre, _ = protocol.moments(protocol.tally(shaped), 1)
    return (protocol.upper + protocol.lower) / 2 + (protocol.upper - protocol.lower) / 2 * centre


def is_private(protocol, laws):
    """Whether no output is more than e^ε times as likely under one value as under another."""
    most = exp_below(protocol.epsilon)
    outputs = set().union(*laws.values())
    return all(
        one.get(output, 0) <= most * other.get(output, 0)
        for one in laws.values()
        for other in laws.values()
        for output in outputs
    )


def is_unbiased(protocol, laws):
    return all(
        sum(chance * estimate_of(protocol, output) for output, chance in law.items())
        == min(max(value, protocol.lower), protocol.upper)
        for value, law in laws.items()
    )


def is_dominated(protocol, laws):
    """Whether the loss is at least that of every pair of values, at every ratio of probabilities that occurs."""
    loss = protocol.loss
    ratios = [Fraction(k, 4) for k in range(1, 9)] + [exp_below(protocol.epsilon) * Fraction(k, 10) for k in range(1, 11)]

    def stick(one, other, ratio):
        return sum(max(a - ratio * b, Fraction(0)) for a, b in zip(one, other, strict=True))

    outputs = sorted(set().union(*laws.values()))
    rows = [[law.get(output, Fraction(0)) for output in outputs] for law in laws.values()]
    return all(stick(one, other, ratio) <= stick(loss.p, loss.q, ratio) for one in rows for other in rows for ratio in ratios)


@pytest.mark.parametrize("epsilon", ["0.3", "1", "4"])
@pytest.mark.parametrize("kind", FINITE)
class TestExactLaws:
    """Everything that can be drawn on a grid of eight steps."""

    def test_the_client_does_what_its_law_says(self, kind, epsilon):
        """Every way through `report` adds up to `law`."""
        protocol = made(kind, epsilon)
        for value, law in right_laws(kind, epsilon).items():
            said = {output: chance for output, chance in protocol.client().law(value).items() if chance}
            assert law == said
            assert sum(law.values()) == 1

    def test_private_and_hardly_more_than_needed(self, kind, epsilon):
        """The largest ratio is at most e^ε, and within 1e-12 of it."""
        protocol, found = made(kind, epsilon), right_laws(kind, epsilon)
        assert is_private(protocol, found)
        low, high = found[VALUES[0]], found[VALUES[-1]]
        assert max(high[output] / low[output] for output in high) > exp_below(protocol.epsilon) * (1 - Fraction(1, 10**12))

    def test_unbiased_exactly(self, kind, epsilon):
        """The mean of what a report estimates is the clamped number, as a rational."""
        protocol = made(kind, epsilon)
        assert is_unbiased(protocol, right_laws(kind, epsilon))

    def test_the_variance_is_exact(self, kind, epsilon):
        """`variance` is that of the enumerated law."""
        protocol = made(kind, epsilon)
        for value, law in right_laws(kind, epsilon).items():
            clamped = min(max(value, protocol.lower), protocol.upper)
            exact = sum(chance * estimate_of(protocol, output) ** 2 for output, chance in law.items()) - clamped**2
            assert protocol.variance(at=value) == pytest.approx(float(exact), rel=1e-12)
            assert float(exact) <= protocol.worst_variance * (1 + 1e-12) + float((protocol.upper - protocol.lower) ** 2) / 64

    @pytest.mark.filterwarnings("error")
    def test_the_loss_dominates_every_pair(self, kind, epsilon):
        """No pair of values is told apart better than the loss says, at any ratio."""
        protocol = made(kind, epsilon)
        if kind is DuchiMean:  # its record is that of ε itself, not of the rounded numbers
            assert is_private(protocol, right_laws(kind, epsilon))
            assert protocol.loss.epsilon0 == protocol.epsilon
        else:
            assert is_dominated(protocol, right_laws(kind, epsilon))

    def test_arrays_have_the_clients_law(self, kind, epsilon):
        """60,000 reports of an array against the exact law; p ≥ 1e-9, and those of another number fail."""
        protocol = made(kind, epsilon)
        other = protocol.client().law(3)
        reports = protocol.draw(np.array([1 / 7]), Seeded(3), 60_000)[:, 0]
        assert fits(reports, protocol.client().law(1 / 7))
        assert not fits(reports, other)


def fits(reports, law, least=1e-9):
    """Whether Pearson's statistic allows these reports of this law."""
    keys, counts = np.unique(reports, axis=0, return_counts=True)
    seen = {tuple(key) if np.ndim(key) else int(key): int(count) for key, count in zip(keys.tolist(), counts, strict=True)}
    if not set(seen) <= {key for key, chance in law.items() if chance}:
        return False
    expected = {key: float(chance) * len(reports) for key, chance in law.items() if chance}
    statistic = sum((seen.get(key, 0) - mean) ** 2 / mean for key, mean in expected.items())
    return chdtrc(len(expected) - 1, statistic) >= least


class TestDiscreteLaplace:
    """The client's own sampler, by every way through it that is likelier than 1e-12, in its two parts."""

    @pytest.mark.parametrize(("top", "bottom"), [(0, 2), (1, 1), (1, 3), (2, 3)])
    def test_theexponential_coin(self, top, bottom):
        """True with probability e^(−top/bottom): by uniform whole numbers alone."""
        law, lost = exact_law(lambda _: laplace.exponential_coin(top, bottom), Fraction(1, 10**9))
        assert lost < Fraction(1, 10**4)
        assert float(law[True]) - 1e-15 <= math.exp(-top / bottom) <= float(law[True] + lost) + 1e-15

    @pytest.mark.parametrize("scale", [Fraction(3, 5), Fraction(3), Fraction(3, 2), Fraction(7, 4)])
    def test_the_rest(self, scale, monkeypatch):
        """Given such coins, a first try that is not thrown away has the law; a wrong scale would be seen."""
        law = _first_tries(scale, monkeypatch)
        assert _is_laplace(law, scale)
        assert not _is_laplace(law, scale * Fraction(1001, 1000))

    def test_two_zeros_are_caught(self, monkeypatch):
        """Without throwing one of them away zero comes too often."""
        law = _first_tries(Fraction(3), monkeypatch)
        law[0] *= 2
        total = sum(law.values())
        assert not _is_laplace({k: chance / total for k, chance in law.items()}, Fraction(3))

    def test_the_report_is_private(self):
        """Places differ by the steps at most, and the noise falls by e^(−ε/steps) a step: the claim's two halves."""
        protocol = made(LaplaceMean, 1, 4)
        client = protocol.client()
        assert client.scale == Fraction(4)
        positions = [number.position_of(value, client.lower, client.upper, client.steps) for value in VALUES]
        assert (min(positions), max(positions)) == (0, 4)
        assert protocol.loss.pure_epsilon == 1

    def test_arrays_have_the_law(self):
        """100,000 reports of an array against the law, tails together; p ≥ 1e-9, and another scale fails."""
        protocol = made(LaplaceMean, 1, 4)
        reports = protocol.draw(np.array([0.25]), Seeded(5), 100_000)[:, 0]
        assert fits(np.clip(reports, -20, 24), _laplace_law(protocol.client(), Fraction(1, 4), Fraction(4)))
        assert not fits(np.clip(reports, -20, 24), _laplace_law(protocol.client(), Fraction(1, 4), Fraction(9, 2)))

    def test_the_variance(self):
        """That of the law, within the law's own cut."""
        protocol = made(LaplaceMean, 2, 8)
        law = _laplace_law(protocol.client(), Fraction(1, 4), Fraction(4), reach=400)
        exact = sum(chance * (estimate_of(protocol, output) - Fraction(1, 4)) ** 2 for output, chance in law.items())
        assert protocol.variance(at="0.25") == pytest.approx(float(exact), rel=1e-9)


def _first_tries(scale, monkeypatch):
    """The law of a try that is not thrown away. Tries are alike and independent, so it is the law of the whole."""

    def run(draws):
        tries = 0

        def below(limit):
            nonlocal tries
            tries += limit == scale.numerator  # a new try; the sign's coin has another limit
            if tries > 1:
                raise Cut
            return draws.below(limit)

        def coin(top, bottom):
            return draws.choose([1 - (heads := Fraction(math.exp(-top / bottom))), heads]) == 1

        with monkeypatch.context() as patch:
            patch.setattr(laplace, "below", below)
            patch.setattr(laplace, "exponential_coin", coin)
            return laplace.discrete_laplace(scale)

    law, _ = exact_law(run, Fraction(1, 10**12))
    total = sum(law.values())
    return {k: chance / total for k, chance in law.items()}


def _is_laplace(law, scale):
    rate = 1 / float(scale)
    return all(abs(float(chance) - math.tanh(rate / 2) * math.exp(-abs(k) * rate)) < 1e-9 for k, chance in law.items())


def _laplace_law(client, value, scale, reach=20):
    """The law of a report, cut where the test cuts."""
    rate, law = 1 / float(scale), {}
    for place, up in number.roundings(number.position_of(value, client.lower, client.upper, client.steps)).items():
        for k in range(-reach - client.steps, reach + client.steps + 1):
            output = min(max(place + k, -reach), client.steps + reach)
            inside = -reach < place + k < client.steps + reach
            if place + k in {-reach, client.steps + reach}:
                chance = math.exp(-abs(k) * rate) / (1 + math.exp(-rate))  # the whole tail
            elif inside:
                chance = math.tanh(rate / 2) * math.exp(-abs(k) * rate)
            else:
                continue
            law[output] = law.get(output, Fraction(0)) + up * Fraction(chance)
    return law


class TestSeededBugs:
    """Mutants of the product: each must break one of the checks above."""

    @pytest.fixture(autouse=True)
    def _new_clients(self):
        """Protocols keep the clients that they made."""
        base.make_client.cache_clear()
        yield
        base.make_client.cache_clear()

    @pytest.mark.parametrize("kind", FINITE)
    def test_a_larger_share(self, kind, monkeypatch):
        """Probabilities of 1.05 ε are not ε-private."""

        def generous(epsilon, *, truths, others):
            return share_of_truth(epsilon * Fraction(21, 20), truths=truths, others=others)

        monkeypatch.setattr(duchi, "share_of_truth", generous)
        monkeypatch.setattr(piecewise, "share_of_truth", generous)
        protocol = made(kind, 1)
        assert not is_private(protocol, laws(protocol))

    def test_one_share_too_many(self, monkeypatch):
        """A share rounded up instead of down breaks e^ε by 2⁻⁶⁴, and exact arithmetic sees it."""
        monkeypatch.setattr(piecewise, "share_of_truth", lambda *a, **k: share_of_truth(*a, **k) + 1)
        protocol = made(PiecewiseMean, 1)
        assert not is_private(protocol, laws(protocol))

    @pytest.mark.parametrize("kind", FINITE)
    def test_rounding_down_always(self, kind, monkeypatch):
        """Without chance in the rounding a number between two places is biased."""
        for module in (duchi, piecewise):
            monkeypatch.setattr(module, "round_by_chance", math.floor)
        protocol = made(kind, 1)
        assert not is_unbiased(protocol, laws(protocol))

    @pytest.mark.parametrize("kind", [DuchiMean, HybridMean])
    def test_no_clamping(self, kind, monkeypatch):
        """A number beyond the bounds would be told by impossible chances."""

        def loose(value, lower, upper, steps):
            return (number.exact_number(value) - lower) * steps / (upper - lower)

        monkeypatch.setattr(duchi, "position_of", loose)
        monkeypatch.setattr(piecewise, "position_of", loose)
        protocol = made(kind, 1)
        with pytest.raises((AssertionError, IndexError, ZeroDivisionError, StopIteration)):
            assert is_private(protocol, laws(protocol))

    def test_a_window_that_is_not_left_out_outside(self, monkeypatch):
        """Drawing the far output from all outputs changes the law of arrays."""
        protocol = made(PiecewiseMean, 1)
        law = protocol.client().law(1 / 7)
        right = piecewise_protocol.np.where

        def wrong(condition, one, other):
            return other + np.zeros_like(condition, np.int64) if isinstance(one, int) else right(condition, one, other)

        monkeypatch.setattr(piecewise_protocol.np, "where", wrong)
        reports = protocol.draw(np.array([1 / 7]), Seeded(3), 60_000)[:, 0]
        monkeypatch.undo()
        assert not fits(reports, law)

    def test_a_loss_of_overlapping_windows(self):
        """A pair of neighbouring windows does not dominate."""

        class Hopeful(PiecewiseMean):
            @property
            def worst_pair(self):
                (inside, other, rest), _ = super().worst_pair
                half = (inside - other) / 2
                return (inside, other, rest), (inside - half, other + half, rest)

        protocol = made(Hopeful, 1)
        assert not is_dominated(protocol, laws(protocol))

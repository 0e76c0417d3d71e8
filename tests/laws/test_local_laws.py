"""The clients of frequencies by enumeration: no report is more than e^ε times likelier under another value, nor much less."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from frequency_enumeration import Chances, exact_law, hockey_stick, outcomes, within, worst_ratio
from scipy.special import chdtrc

from curador import local
from curador.local.client import chance
from curador.local.client.base import Client
from curador.local.client.chance import WHOLE, exp_below, share_of_truth
from curador.local.client.direct import DirectClient
from curador.local.client.hadamard import HadamardClient
from curador.local.client.hashing import HashingClient
from curador.local.client.subset import SubsetClient
from curador.local.client.unary import UnaryClient
from curador.local.hadamard import Hadamard, transform_rows
from curador.local.protocol import Frequencies, Supporting
from curador.randomness.injected import Seeded

FALSE_ALARM = 1e-9
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(5, 2))
METHODS = ("direct", "optimal_unary", "symmetric_unary", "hashing", "hadamard", "subset")
SIZES = {"hashing": (2, 3, 4, 5), "hadamard": (2, 3, 5, 12)}


def sizes(method: str) -> tuple[int, ...]:
    """The domains that are enumerated."""
    return SIZES.get(method, (2, 3, 4, 6))


CASES = [
    pytest.param(method, size, epsilon, id=f"{method}-{size}-{float(epsilon)}")
    for method in METHODS
    for size in sizes(method)
    for epsilon in EPSILONS
]


def protocol_of(method: str, size: int, epsilon: Fraction) -> Frequencies:
    """The protocol by its name."""
    return local.frequencies(size, epsilon=epsilon, method=method)


@lru_cache(maxsize=128)
def laws_of(method: str, size: int, epsilon: Fraction) -> list[dict[Any, Fraction]]:
    """The enumerated law of the report on every value."""
    client = protocol_of(method, size, epsilon).client()
    return [exact_law(client, value) for value in range(size)]


@pytest.mark.parametrize(("method", "size", "epsilon"), CASES)
def test_no_report_is_more_than_e_to_the_epsilon_times_likelier(method: str, size: int, epsilon: Fraction) -> None:
    """Exactly, for every pair of values and every report; and the bound is met to 15 digits."""
    laws = laws_of(method, size, epsilon)
    assert all(sum(law.values()) == 1 for law in laws)
    ratio = worst_ratio(laws)
    assert within(ratio, epsilon)
    assert ratio is not None
    assert ratio >= exp_below(epsilon) * (1 - Fraction(1, 10**15))


@pytest.mark.parametrize(("method", "size", "epsilon"), CASES)
def test_a_client_knows_its_own_law(method: str, size: int, epsilon: Fraction) -> None:
    """What `law` says is what `report` does."""
    client: Any = protocol_of(method, size, epsilon).client()
    for value, law in enumerate(laws_of(method, size, epsilon)):
        assert client.law(value) == law


@pytest.mark.parametrize(("method", "size", "epsilon"), CASES)
def test_the_loss_is_that_of_the_worst_pair(method: str, size: int, epsilon: Fraction) -> None:
    """δ(ε') of the record is at least the hockey-stick divergence of every pair, and that of the worst one."""
    protocol = protocol_of(method, size, epsilon)
    laws = laws_of(method, size, epsilon)
    for level in (Fraction(0), epsilon / 2, epsilon):
        factor = exp_below(level)
        exact = max(hockey_stick(one, other, factor) for one in laws for other in laws)
        claimed = protocol.loss.delta(level)
        assert claimed >= float(exact) * (1 - 1e-15)
        assert claimed <= float(exact) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(("method", "size", "epsilon"), [case for case in CASES if case.values[0] != "hadamard"])
def test_p_and_q_are_how_likely_a_report_supports_a_value(method: str, size: int, epsilon: Fraction) -> None:
    """Exactly, for every pair of values: what the collector counts for a report, averaged over the client's law."""
    protocol = protocol_of(method, size, epsilon)
    assert isinstance(protocol, Supporting)
    for value, law in enumerate(laws_of(method, size, epsilon)):
        mean = [Fraction(0)] * size
        for report, mass in law.items():
            supported = protocol.supports(protocol.tally(protocol.accept([report])[0]))
            mean = [before + mass * int(one) for before, one in zip(mean, supported, strict=True)]
        assert mean == [protocol.p if other == value else protocol.q for other in range(size)]


@pytest.mark.parametrize(
    ("size", "epsilon"), [(size, epsilon) for size in (2, 5, 12) for epsilon in (*EPSILONS, Fraction(4))]
)
def test_hadamard_estimates_are_unbiased_and_of_the_stated_variance(size: int, epsilon: Fraction) -> None:
    """Exactly: the mean of one report's estimate is 1 for the own value and 0 for any other; its square as published."""
    protocol = Hadamard(size, epsilon=epsilon)
    client = protocol.client()
    signs = [
        transform_rows(np.eye(client.places, dtype=np.int64)[place].reshape(client.blocks, -1))
        for place in range(client.places)
    ]
    for value in range(size):
        law = client.law(value)
        for other in range(size):
            row, block = 1 + other // client.blocks, other % client.blocks
            guesses = [int(sign[block, row]) / protocol.gain for sign in signs]
            mean = sum(law[place] * guess for place, guess in enumerate(guesses))
            square = sum(law[place] * guess**2 for place, guess in enumerate(guesses))
            own, mine = other == value, other % client.blocks == value % client.blocks
            assert mean == own
            assert protocol.variance(share=int(own), block_share=int(mine)) == pytest.approx(
                float(square - mean**2), rel=1e-13
            )


@pytest.mark.parametrize(
    ("method", "size", "epsilon"), [case for case in CASES if case.values[1] in {2, 3, 4} or case.values[0] == "subset"]
)
def test_many_reports_at_once_have_the_law_of_the_client(method: str, size: int, epsilon: Fraction) -> None:
    """χ² of 40,000 reports a value against the exact law. False alarm 1e-9; 4 % more of a probability of 1/2 are seen."""
    protocol = protocol_of(method, size, epsilon)
    client: Any = protocol.client()
    number = 40_000
    for value in range(size):
        reports = protocol.draw(np.full(number, value), Seeded(1000 * size + value))
        assert fits(reports, client.law(value), number)


def fits(reports: Any, law: dict[Any, Fraction], number: int) -> bool:
    """Whether the reports may have come from the law."""
    keys = (
        [bytes(row) for row in reports]
        if reports.dtype == np.uint8
        else [one if type(one) is int else tuple(one) for one in reports.tolist()]
    )
    seen = dict.fromkeys(law, 0)
    for key in keys:
        seen[key] += 1  # a report outside of the law is a KeyError
    counts, due = np.array(list(seen.values())), number * np.array([float(mass) for mass in law.values()])
    rare = due < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        due = np.append(due[~rare], due[rare].sum())
    return bool(chdtrc(len(due) - 1, ((counts - due) ** 2 / due).sum()) > FALSE_ALARM)


# ---- seeded bugs: each must be seen by the checks above -----------------------------------------------------------------


class LastBitLeftOut(UnaryClient):
    """Sends the last value's bit as it is."""

    def report(self, value: int) -> bytes:
        sent = int.from_bytes(super().report(value), "little")
        last = 1 << (self.size - 1)
        return (sent & ~last | last * (value == self.size - 1)).to_bytes(self.width, "little")


class CellAsItIs(HashingClient):
    """Hashes, and forgets to randomize."""

    def report(self, value: int) -> tuple[int, int, int]:
        a, b, _ = super().report(value)
        return a, b, self.cell(a, b, value)


def changed(client: Any, **shares: int) -> Client:
    """The client with other probabilities."""
    for name, share in shares.items():
        setattr(client, name, share)
    return client


EPSILON = Fraction(1)
MORE = exp_below(EPSILON) * Fraction(11, 10)


def share_of(odds: Fraction, others: int) -> int:
    """The share of truth by the odds."""
    return int(WHOLE * odds / (odds + others))


LEAKS: dict[str, Any] = {
    "last bit": lambda: LastBitLeftOut(epsilon=EPSILON, size=3),
    "bare cell": lambda: CellAsItIs(epsilon=EPSILON, size=5),
    "odds a tenth too large": lambda: changed(DirectClient(epsilon=EPSILON, size=3), share=share_of(MORE, 2)),
    "one value too few": lambda: changed(DirectClient(epsilon=EPSILON, size=3), share=share_of(exp_below(EPSILON), 1)),
    "a unit rounded up": lambda: changed(
        DirectClient(epsilon=EPSILON, size=3), share=share_of_truth(EPSILON, truths=1, others=2) + 1
    ),
    "hashing on one cell less": lambda: changed(
        HashingClient(epsilon=EPSILON, size=5), share=share_of(exp_below(EPSILON), 2)
    ),
    "symmetric with all of epsilon": lambda: changed(
        UnaryClient(epsilon=EPSILON, size=3, form="symmetric"),
        true_share=share_of_truth(EPSILON, truths=1, others=1),
        false_share=WHOLE - share_of_truth(EPSILON, truths=1, others=1),
    ),
    "hadamard, own block only": lambda: changed(
        HadamardClient(epsilon=Fraction(5, 2), size=8), share=share_of_truth(Fraction(5, 2), truths=1, others=1)
    ),
    "subset, one too many": lambda: changed(SubsetClient(epsilon=EPSILON, size=6), share=share_of(exp_below(EPSILON) * 2, 3)),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leaking_client_is_caught(leak: str) -> None:
    """Every seeded bug breaks the bound of its ε."""
    client = LEAKS[leak]()
    laws = [exact_law(client, value) for value in range(client.size)]
    assert not within(worst_ratio(laws), client.epsilon)


@pytest.mark.parametrize("method", ["optimal_unary", "symmetric_unary"])
def test_swapped_probabilities_are_caught(method: str) -> None:
    """With p for q the bound of ε still holds; the support that the collector relies on does not."""
    protocol = protocol_of(method, 3, EPSILON)
    assert isinstance(protocol, Supporting)
    client: Any = protocol.client()
    wrong = changed(client, true_share=client.false_share, false_share=client.true_share)
    law = exact_law(wrong, 0)
    assert sum(mass for report, mass in law.items() if report[0] & 1) != protocol.p


def test_a_wrong_law_of_many_reports_is_caught() -> None:
    """A draw with odds a tenth too large fails the χ² that the right one passes."""
    protocol = protocol_of("direct", 3, EPSILON)
    reports = protocol.draw(np.zeros(40_000, np.int64), Seeded(7))
    wrong: Any = changed(DirectClient(epsilon=EPSILON, size=3), share=share_of(MORE, 2))
    right: Any = protocol.client()
    assert fits(reports, right.law(0), 40_000)
    assert not fits(reports, wrong.law(0), 40_000)


# ---- the chances that the enumeration takes for granted -----------------------------------------------------------------


class Secrets:
    """Stands for the operating system's randomness: its numbers are outcomes of the enumeration."""

    def __init__(self, chances: Chances) -> None:
        self.randbelow = chances.below

    def randbits(self, count: int) -> int:
        """A number of so many bits."""
        return self.randbelow(1 << count)


def law_of_chance(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> dict[Any, Fraction]:
    """The exact law of one of the client's chances."""

    def scripted(chances: Chances) -> Any:
        monkeypatch.setattr(chance, "secrets", Secrets(chances))
        return run()

    return outcomes(scripted)


@pytest.mark.parametrize("share", range(9))
def test_coins_are_independent_and_exact(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In eighths instead of 2⁻⁶⁴, so that all random bits of two coins can be tried."""
    monkeypatch.setattr(chance, "BITS", 3)
    law = law_of_chance(monkeypatch, lambda: chance.coins(share, 2))
    one = Fraction(share, 8)
    exact = {0: (1 - one) ** 2, 1: one * (1 - one), 2: one * (1 - one), 3: one * one}
    assert law == {bits: mass for bits, mass in exact.items() if mass}
    assert law_of_chance(monkeypatch, lambda: chance.coin(share)).get(True, 0) == one


@pytest.mark.parametrize(("weight", "limit"), [(1, 1), (1, 4), (2, 4), (3, 5), (5, 5)])
def test_subsets_are_uniform(weight: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every set of the size is as likely as every other, by all outcomes of the draws."""
    law = law_of_chance(monkeypatch, lambda: frozenset(chance.subset(weight, limit)))
    every = comb(limit, weight)
    assert law == {frozenset(one): Fraction(1, every) for one in combinations(range(limit), weight)}

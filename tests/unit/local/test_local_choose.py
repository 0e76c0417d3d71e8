"""Which protocol `frequencies` takes."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Any

import pytest

from curador import local
from curador.errors import InvalidParameter
from curador.local.choose import EQUAL, METHODS, average_error, methods_for


@pytest.mark.parametrize(
    ("size", "epsilon", "name"),
    [
        (2, 1, "Direct"),
        (2, 8, "Direct"),
        (4, 1, "Direct"),
        (10, 3, "Direct"),
        (100, 6, "Direct"),
        (16, "0.1", "Hashing"),
        (100, 1, "Hashing"),
        (1000, 1, "Hashing"),
        (1000, 4, "Hashing"),
        (1000, "0.1", "Hadamard"),
        (10_000, 1, "Hashing"),
        (10_000, "0.1", "Hadamard"),
        (1_000_000, 1, "Hadamard"),
        (1_000_000, 4, "Hadamard"),
    ],
)
def test_the_table(size: int, epsilon: Any, name: str) -> None:
    """Two values and few: the value itself; more: a hash; small ε or a large domain: a Hadamard place."""
    assert local.frequencies(size, epsilon=epsilon).name == name


@pytest.mark.parametrize("epsilon", ["0.05", "0.5", 1, 2, 4, 8])
@pytest.mark.parametrize("size", [2, 3, 5, 9, 40, 300, 1000])
def test_nothing_is_more_than_two_per_cent_better(size: int, epsilon: Any) -> None:
    """Also of what is not considered, as unary encoding; and of the equals none has a shorter report."""
    chosen = local.frequencies(size, epsilon=epsilon)
    every = [local.frequencies(size, epsilon=epsilon, method=method) for method in METHODS]
    least = min(average_error(one) for one in every)
    assert average_error(chosen) <= EQUAL * least * (1 + 1e-12)
    for one in every:
        if average_error(one) <= EQUAL * least / 1.0001:
            assert chosen.report_bits <= one.report_bits


@pytest.mark.parametrize("epsilon", ["0.1", 1, 3, 6])
@pytest.mark.parametrize("size", [2, 3, 10, 200])
def test_subset_selection_has_the_least_error_of_all(size: int, epsilon: Any) -> None:
    """No other is better, for any domain and ε."""
    subset = local.Subset(size, epsilon=epsilon)
    for method in METHODS:
        other = local.frequencies(size, epsilon=epsilon, method=method)
        assert average_error(subset) <= average_error(other) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", ["0.1", 1, 3])
def test_variances_are_the_published_ones(epsilon: Any) -> None:
    """[WBLJ17, table 1] for a rare value: direct, symmetric and optimal unary encoding, hashing; [ASZ19] for one block."""
    e, k = exp(float(epsilon)), 997
    published = {
        "direct": (e + k - 2) / (e - 1) ** 2,
        "symmetric_unary": e**0.5 / (e**0.5 - 1) ** 2,
        "optimal_unary": 4 * e / (e - 1) ** 2,
    }
    for method, variance in published.items():
        assert local.frequencies(k, epsilon=epsilon, method=method).variance() == pytest.approx(variance, rel=1e-12)
    for method in ("hashing", "subset"):
        ours = local.frequencies(k, epsilon=epsilon, method=method).variance()
        assert 0.98 < ours / (4 * e / (e - 1) ** 2) < 1.001
    if float(epsilon) <= 1:
        ours = local.frequencies(k, epsilon=epsilon, method="hadamard").variance()
        assert ours == pytest.approx((e + 1) ** 2 / (e - 1) ** 2, rel=1e-12)


def test_methods_by_name() -> None:
    """Each name gives its protocol; another is refused with the list."""
    names = {method: local.frequencies(5, epsilon=1, method=method).name for method in METHODS}
    assert names == {
        "direct": "Direct",
        "optimal_unary": "Unary (optimal)",
        "symmetric_unary": "Unary (symmetric)",
        "hashing": "Hashing",
        "hadamard": "Hadamard",
        "subset": "Subset",
    }
    with pytest.raises(InvalidParameter, match="method must be auto, direct, optimal_unary"):
        local.frequencies(5, epsilon=1, method="best")


def test_large_domains_never_need_a_bit_a_value_or_a_square() -> None:
    """What is considered shrinks with the domain."""
    assert methods_for(2) == ("direct",)
    assert "subset" in methods_for(1024)
    assert "subset" not in methods_for(1025)
    assert "hashing" in methods_for(1 << 14)
    assert methods_for((1 << 14) + 1) == ("direct", "hadamard")


def test_the_front_door_takes_lists_and_exact_numbers() -> None:
    """A list of values, a number of them; ε as text or fraction."""
    protocol = local.frequencies(["red", "green"], epsilon="0.1")
    assert protocol.epsilon == Fraction(1, 10)
    assert protocol == local.frequencies(("red", "green"), epsilon=Fraction(1, 10), method="direct")

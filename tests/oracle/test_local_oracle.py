"""Variances that protocols of local privacy state, against the papers' formulas written down anew."""

import local_laws as laws
import numpy as np
import pytest

from curador.local.choose import METHODS, frequencies
from curador.local.means import METHODS as MEANS
from curador.local.means import mean
from curador.local.rappor import Rappor

EPSILONS = (0.1, 0.5, 1, 2, 4)
SIZES = (3, 16, 100, 1000)


def zipf(size):
    """A hundred thousand people, the more the smaller the value is."""
    weights = 1 / np.arange(1, size + 1)
    return np.floor(100_000 * weights / weights.sum())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("method", [method for method in METHODS if method != "hadamard"] + ["rappor"])
def test_standard_errors_of_counts_are_the_published_ones(method, size):
    """To 1e-9 where the parameters are the paper's; subset's number of values is its nearest or a better one, within 2 %."""
    counts = zipf(size)
    people = int(counts.sum())
    for epsilon in EPSILONS:
        if method == "rappor":
            protocol = Rappor(size, epsilon_forever=2 * epsilon, epsilon_once=epsilon)
        else:
            protocol = frequencies(size, epsilon=epsilon, method=method)
        stated = np.array([protocol.standard_error(people, share=f"{int(one)}/{people}") ** 2 for one in counts[:20]])
        published = laws.variances(method, epsilon, counts)[:20]

        if method == "subset":
            average = laws.variances(method, epsilon, np.full(size, people / size)).mean() / people
            assert 0.98 * average <= protocol.variance(share=f"1/{size}") <= average * (1 + 1e-9)
        else:
            assert stated == pytest.approx(published, rel=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_standard_errors_of_hadamard_counts_are_the_published_ones(size):
    """To 1e-9, for blocks that hold other numbers of people."""
    counts = zipf(size)
    people = int(counts.sum())
    for epsilon in EPSILONS:
        protocol = frequencies(size, epsilon=epsilon, method="hadamard")
        block = np.arange(size) % protocol.client().blocks
        inside = np.bincount(block, counts)[block]
        published = laws.variances("hadamard", epsilon, counts)
        for place in range(min(size, 20)):
            shares = {"share": f"{int(counts[place])}/{people}", "block_share": f"{int(inside[place])}/{people}"}
            assert people * protocol.variance(**shares) == pytest.approx(published[place], rel=1e-9)


@pytest.mark.parametrize("method", list(MEANS))
def test_variances_of_means_are_the_published_ones(method):
    """To 1e-4: a grid of 2²⁰ steps rounds the window of the piecewise report, and every number; laplace's ends are cut."""
    for epsilon in EPSILONS:
        protocol = mean(lower=-3, upper=5, epsilon=epsilon, method=method)
        for x in (-1, -0.5, 0, 0.25, 1):
            published = 16 * laws.mean_variance(method, epsilon, x)
            assert protocol.variance(at=1 + 4 * x) == pytest.approx(published, rel=1e-4)


@pytest.mark.parametrize(("made", "promised"), [("symmetric_unary", "optimal_unary"), ("direct", "subset")])
def test_the_error_of_another_protocol_is_seen(made, promised):
    """What one protocol states is not within 3 % of what the paper says of another, at ε = 1 and 16 values."""
    stated = frequencies(16, epsilon=1, method=made).variance(share="1/16")
    published = laws.variances(promised, 1, np.full(16, 1.0)).mean() / 16

    assert stated > 1.03 * published

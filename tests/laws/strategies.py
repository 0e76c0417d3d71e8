"""Loss records of every kind as hypothesis strategies, small enough to be accounted in milliseconds.

`losses()` draws what is cheap; `every_kind()` also what takes a second to account (subsampled Gaussian noise, groups of
it), for laws that need no numbers.
"""

from __future__ import annotations

from fractions import Fraction

from hypothesis import assume
from hypothesis import strategies as st

from curador.privacy.loss import Composed, Loss
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    Concentrated,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    KeySelection,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
    Shuffled,
)

epsilons = st.sampled_from(("1e-3", "0.05", "1/3", "0.7", "2", "5"))
small_deltas = st.sampled_from(("0", "1e-12", "1e-7", "1e-3"))
targets = st.sampled_from(("1e-2", "1e-6", "1e-10"))
"""δ at which questions are asked."""

rates = st.sampled_from(("0.01", "0.1", "1/3", "1"))
counts = st.integers(1, 6)
shifts = st.integers(1, 4)


@st.composite
def distributions(draw, size: int, least: int = 0):
    """Probabilities on `size` points with small denominators."""
    weights = draw(st.lists(st.integers(least, 12), min_size=size, max_size=size).filter(any))
    return [Fraction(weight, sum(weights)) for weight in weights]


@st.composite
def finite_pairs(draw, least: int = 0):
    """Two distributions on the same two to four points."""
    size = draw(st.integers(2, 4))
    p, q = draw(distributions(size, least)), draw(distributions(size, least))
    assume(any(x and y for x, y in zip(p, q, strict=True)))  # what reveals everything has a law of its own
    return p, q


@st.composite
def channels(draw, inputs: int):
    """A random channel: one distribution over the outputs for each input."""
    outputs = draw(st.integers(1, 4))
    return [draw(distributions(outputs)) for _ in range(inputs)]


gaussians = st.builds(GaussianLoss, mu=st.sampled_from(("0.01", "0.3", "1", "3")))
fine_gaussians = st.builds(DiscreteGaussianLoss, sigma2=st.just(10**12), sensitivity=st.sampled_from((10**4, 10**6)))
coarse_gaussians = st.builds(DiscreteGaussianLoss, sigma2=st.sampled_from(("0.3", "2", "9", "100/3")), sensitivity=shifts)
fine_vectors = st.builds(
    DiscreteGaussianVectorLoss,
    sigma2=st.just(10**12),
    sensitivity_squared=st.sampled_from((7 * 10**8, 10**12)),
    dimension=st.sampled_from((4, 1000)),
)
coarse_vectors = st.builds(
    DiscreteGaussianVectorLoss,
    sigma2=st.sampled_from(("0.3", "2", "9", "100/3", "1e4")),
    sensitivity_squared=st.integers(1, 9),
    dimension=shifts,
)
laplaces = st.builds(LaplaceLoss, epsilon=epsilons)
discrete_laplaces = st.builds(DiscreteLaplaceLoss, scale=st.sampled_from(("0.7", "4", "25/3")), sensitivity=shifts)
responses = st.builds(RandomizedResponseLoss, epsilon=epsilons, categories=st.sampled_from((2, 3, 10)))
bounded_ranges = st.builds(BoundedRange, epsilon=epsilons)
pures = st.builds(Pure, epsilon=epsilons)
approximates = st.builds(Approx, epsilon=epsilons, delta=small_deltas)
concentrateds = st.builds(Concentrated, rho=st.sampled_from(("1e-4", "0.02", "1")), delta=small_deltas)
key_selections = st.builds(KeySelection, sigma2=st.sampled_from(("9", "50")), keys=shifts, delta=small_deltas)
finites = finite_pairs().map(lambda pair: Finite(p=pair[0], q=pair[1]))

shuffles = st.builds(
    Shuffled, epsilon=epsilons, reports=st.sampled_from((1, 7, 1000)), variation=st.sampled_from((None, None, "0.05"))
)

pure_bases = st.one_of(pures, responses, approximates)
poisson_finites = st.builds(lambda base, rate: base.subsample(rate=rate), st.one_of(pure_bases, finites), rates)
without_replacements = st.builds(
    lambda base, rate: base.subsample(rate=rate, scheme="without_replacement"), pure_bases, rates
)
poisson_gaussians = st.builds(lambda base, rate: base.subsample(rate=rate), gaussians, rates)
poisson_laplaces = st.builds(lambda base, rate: base.subsample(rate=rate), laplaces, rates)
groups = st.builds(lambda base, size: base.group(size), poisson_gaussians, st.integers(2, 4))

noises = st.one_of(gaussians, fine_gaussians, coarse_gaussians, fine_vectors, laplaces, discrete_laplaces, responses)
pure_losses = st.one_of(laplaces, discrete_laplaces, responses, pures)
"""Those whose pure ε is attained."""


def losses() -> st.SearchStrategy[Loss]:
    """One record of any cheap kind, subsampled ones among them; neighbours may be typed, so sums may be refused."""
    untyped = st.one_of(noises, coarse_vectors, bounded_ranges, pures, approximates, concentrateds, key_selections, finites)
    return st.one_of(untyped, untyped, untyped, poisson_finites, without_replacements, shuffles)


def untyped() -> st.SearchStrategy[Loss]:
    """Cheap records that may be added to one another."""
    return st.one_of(noises, coarse_vectors, bounded_ranges, pures, approximates, concentrateds, key_selections, finites)


def every_kind() -> st.SearchStrategy[Loss]:
    """One record of every kind there is."""
    return st.one_of(losses(), poisson_gaussians, poisson_laplaces, groups)


def sums() -> st.SearchStrategy[Composed]:
    """Two or three cheap records with small counts."""
    return st.lists(st.tuples(untyped(), st.integers(1, 3)), min_size=2, max_size=3).map(Composed)

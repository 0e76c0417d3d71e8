"""Random compositions, each judged by a 60-digit truth that shares no code with the accountant.

A case asks for epsilon at a delta drawn log-uniformly from 3e-2 to 1e-15 (three in ten: to 1e-30) and demands

    delta_true(upper) <= delta <= delta_true(lower),   and at another epsilon   lower <= delta_true <= upper.

CURADOR_STRESS=10 in the environment multiplies the number of cases. A failure prints the family and the seed
of its case: `case(FAMILIES[name], seed)` makes it again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pytest
import truth

from curador.privacy.account import enclosure
from curador.privacy.losses import (
    Approx,
    BoundedRange,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    Finite,
    GaussianLoss,
    LaplaceLoss,
    Loss,
    Pure,
    RandomizedResponseLoss,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from truth import Curve, Terms

MULTIPLE = int(os.environ.get("CURADOR_STRESS", "1"))
NOISE = truth.MP.mpf(10) ** -50  # and absolutely, where it is a difference of numbers near 1
ANY = float("inf")
SLACK = truth.MP.mpf(10) ** -25  # what the truth itself may be wrong by, relative
NOT_ENUMERATED = ("lattice", "direct", "smoothed")


class Judgement(NamedTuple):
    """The claims that are false, the relative width of the epsilon interval, and the interval's upper end."""

    claims: list[str]
    width: float
    upper: float


class Ends(NamedTuple):
    """A lower and an upper end."""

    lower: float
    upper: float


class Reading(Protocol):
    """What is under test: both questions, answered by anything with lower and upper."""

    def epsilon(self, delta: Any) -> Any:
        """The interval of epsilon at delta."""
        ...

    def delta(self, epsilon: Any) -> Any:
        """The interval of delta at epsilon."""
        ...


@dataclass(frozen=True, slots=True)
class Public:
    """The loss's own methods as a reading; they take exact numbers."""

    loss: Loss

    def epsilon(self, delta: float) -> Any:
        """The interval of epsilon at delta."""
        return self.loss.epsilon_interval(delta=Fraction(delta))

    def delta(self, epsilon: float) -> Any:
        """The interval of delta at epsilon."""
        return self.loss.delta_interval(epsilon=Fraction(epsilon))


@dataclass(frozen=True, slots=True)
class Case:
    """A loss, its true curve (the worse direction) and words to recognise it by."""

    loss: Loss
    curve: Curve
    words: str


@dataclass(frozen=True, slots=True)
class Family:
    """A way to make cases, how they are read, how many there are, and how tight most of them are.

    width bounds the relative width of the epsilon interval; it is infinite where the lower end speaks of
    mechanisms that exist rather than of the dominating pair. excess bounds the upper end over the true epsilon.
    """

    make: Callable[[Random], Case]
    cases: int
    width: float
    excess: float
    read: Callable[[Loss], Reading] = enclosure
    batch: int = 5
    lowest: tuple[int, int] = (-15, -30)  # powers of ten that delta reaches, commonly and in three cases of ten


# ------------------------------------------------------------------------------------------ the judgement


def violations(curve: Curve, reading: Reading, *, delta: float, share: float) -> Judgement:
    """What the reading claims against the truth, and how tight it is."""
    found: list[str] = []
    got = reading.epsilon(delta)
    exact = truth.number(delta)
    if not 0 <= got.lower <= got.upper:
        found.append(f"epsilon({delta}) is no interval: {got}")
    there = curve(got.upper) if got.upper < float("inf") else truth.MP.mpf(0)
    if there > exact * (1 + SLACK):
        found.append(f"epsilon({delta}) <= {got.upper!r}: the true delta there is {there}")
    lower = got.lower if got.lower < float("inf") else 1e6
    if lower > 0 and curve(lower) < exact * (1 - SLACK):
        found.append(f"epsilon({delta}) >= {got.lower!r}: the true delta there is {curve(lower)}")
    # multiples of 1/64 are the same number in binary and in decimal
    other = round(64 * share * 1.2 * min(got.upper, got.lower + 1, 100.0)) / 64
    ends, value = reading.delta(other), curve(other)
    if not ends.lower <= value * (1 + SLACK) + NOISE or not value * (1 - SLACK) - NOISE <= ends.upper:
        found.append(f"delta({other}) in {ends}: the true value is {value}")
    width = 0.0 if got.upper == got.lower else (got.upper - got.lower) / got.upper
    return Judgement(found, width, got.upper)


def draw_delta(rng: Random, lowest: tuple[int, int]) -> float:
    """Log-uniform from 3e-2 down to the first power of ten, in three cases of ten to the second; four digits."""
    low = lowest[rng.random() < 0.3]
    return float(f"{10 ** rng.uniform(low, -1.523):.3e}")


def case(family: Family, seed: str) -> tuple[Case, float, float]:
    """The case, the delta and the share of the other epsilon that belong to a seed."""
    rng = Random(seed)
    return family.make(rng), draw_delta(rng, family.lowest), rng.random()


def sharp(curve: Curve, upper: float, delta: float, excess: float) -> bool:
    """Whether the upper end is within the relative excess of the true epsilon."""
    if upper == 0 or excess == ANY:
        return True
    return curve(min(upper, 1e6) * (1 - excess)) >= truth.number(delta)


def judge(name: str, batch: int) -> list[tuple[float, bool]]:
    """Judge one batch of a family: widths and sharp upper ends; violations are raised with their seeds."""
    family, judged, found = FAMILIES[name], [], []
    for i in range(batch * family.batch, (batch + 1) * family.batch):
        seed = f"{name}-{i}"
        made, delta, share = case(family, seed)
        claims, width, upper = violations(made.curve, family.read(made.loss), delta=delta, share=share)
        judged.append((width, sharp(made.curve, upper, delta, family.excess)))
        found += [f"seed {seed!r}: {made.words}: {claim}" for claim in claims]
    assert not found, "\n".join(found)
    return judged


# --------------------------------------------------------------------------------------------- ingredients


def hundredths(rng: Random, low: int, high: int) -> Fraction:
    """A short decimal, so that every reading of it is the same number."""
    return Fraction(rng.randint(low, high), 100)


def response(rng: Random) -> tuple[Loss, Terms, int]:
    epsilon = hundredths(rng, 2, 150)
    return RandomizedResponseLoss(epsilon=epsilon), truth.randomized_response(epsilon), rng.randint(1, 6)


def categories(rng: Random) -> tuple[Loss, Terms, int]:
    epsilon, count = hundredths(rng, 2, 200), rng.randint(3, 12)
    law = truth.randomized_response(epsilon, count)
    return RandomizedResponseLoss(epsilon=epsilon, categories=count), law, rng.randint(1, 4)


def approx(rng: Random) -> tuple[Loss, Terms, int]:
    epsilon, delta = hundredths(rng, 2, 150), Fraction(1, 10 ** rng.randint(6, 34))
    return Approx(epsilon=epsilon, delta=delta), truth.approximate(epsilon, delta), rng.randint(1, 5)


def pure(rng: Random) -> tuple[Loss, Terms, int]:
    epsilon = hundredths(rng, 2, 150)
    return Pure(epsilon=epsilon), truth.randomized_response(epsilon), rng.randint(1, 5)


def integer_laplace(rng: Random) -> tuple[Loss, Terms, int]:
    scale, shift = hundredths(rng, 50, 2000), rng.randint(1, 4)
    law = truth.discrete_laplace(scale, shift)
    return DiscreteLaplaceLoss(scale=scale, sensitivity=shift), law, rng.randint(1, 4)


def integer_gaussian(rng: Random) -> tuple[Loss, Terms, int]:
    sigma2, shift = hundredths(rng, 50, 600), rng.randint(1, 2)
    return DiscreteGaussianLoss(sigma2=sigma2, sensitivity=shift), truth.discrete_gaussian(sigma2, shift), 1


def finite(rng: Random) -> tuple[Loss, Terms, int]:
    size = rng.randint(2, 4)
    sides: list[tuple[Fraction, ...]] = []
    for _ in range(2):
        cuts = sorted(rng.sample(range(1, 100), size - 1))
        sides.append(tuple(Fraction(b - a, 100) for a, b in zip([0, *cuts], [*cuts, 100], strict=True)))
    p, q = sides
    if rng.random() < 0.3:  # an output that only one side can give
        rare = Fraction(1, 10 ** rng.randint(8, 36))
        p, q = (*p[:-1], p[-1] - rare, rare), (*q, Fraction(0))
    return Finite(p=p, q=q), truth.finite(p, q), rng.randint(1, 3)


KINDS = (response, categories, approx, pure, integer_laplace, integer_gaussian, finite)


def backward(loss: Loss, law: Terms) -> Terms:
    """The law in the other direction; all but an arbitrary pair are their own."""
    return truth.finite(loss.q, loss.p) if isinstance(loss, Finite) else law


def mixture(rng: Random) -> Case:
    """One to four kinds of atoms, half the time with a Gaussian."""
    mu = hundredths(rng, 10, 200) if rng.random() < 0.5 else Fraction(0)
    cap = 120 if mu else 1200
    records: list[tuple[Loss, Terms, int]] = []
    forward = reverse = truth.NOTHING
    for _ in range(rng.randint(1, 4)):
        loss, law, count = rng.choice(KINDS)(rng)
        grown = truth.power(law, count)
        if records and len(forward.terms) * len(grown.terms) > cap:
            continue
        records.append((loss, law, count))
        forward = truth.compose(forward, grown)
        reverse = truth.compose(reverse, truth.power(backward(loss, law), count))
    parts = [count * loss for loss, _, count in records] + ([GaussianLoss(mu=mu)] if mu else [])
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    curve = truth.terms_curve(forward, mu)
    if any(isinstance(loss, Finite) for loss, _, _ in records):
        curve = truth.worst(curve, truth.terms_curve(reverse, mu))
    return Case(total, curve, " + ".join(f"{count} x {loss!r}" for loss, _, count in records) + f", mu={mu}")


def laplaces(rng: Random) -> Case:
    """Up to seven Laplace losses, half the time with randomized responses."""
    count, epsilon = rng.randint(1, 7), hundredths(rng, 5, 200)
    loss, law = count * LaplaceLoss(epsilon=epsilon), truth.power(truth.laplace(epsilon), count)
    words = f"{count} x Laplace({epsilon})"
    if rng.random() < 0.5:
        other, other_law, times = response(rng)
        loss, law = loss + times * other, truth.compose(law, truth.power(other_law, times))
        words += f" + {times} x {other!r}"
    return Case(loss, truth.terms_curve(law), words)


def pure_many(rng: Random) -> Case:
    """Up to 8,100 copies of a pure, approximate or randomized-response loss."""
    count = round(10 ** rng.uniform(1, 3.9085))
    epsilon = Fraction(f"{rng.uniform(0.3, 3) / count**0.5:.3g}")
    if rng.random() < 0.4:
        delta = Fraction(1, 10 ** rng.randint(9, 36))
        loss, law = Approx(epsilon=epsilon, delta=delta), truth.approximate(epsilon, delta)
    else:
        make = rng.choice((Pure, RandomizedResponseLoss))
        loss, law = make(epsilon=epsilon), truth.randomized_response(epsilon)
    return Case(count * loss, truth.terms_curve(truth.power(law, count)), f"{count} x {loss!r}")


def with_gaussian(rng: Random) -> Case:
    """A Gaussian with Laplace, bounded-range or k-ary losses, up to 10,000 copies of each."""
    mu = hundredths(rng, 40, 250)
    total: Loss = GaussianLoss(mu=mu)
    laws: list[tuple[Terms, int]] = []
    words = f"mu={mu}"
    for kind in rng.sample(("laplace", "range", "categories"), rng.randint(1, 2)):
        count = round(10 ** rng.uniform(0, 4))
        epsilon = Fraction(f"{rng.uniform(0.2, 2) / count**0.5:.3g}")
        made = {
            "laplace": (LaplaceLoss(epsilon=epsilon), truth.laplace(epsilon)),
            "range": (BoundedRange(epsilon=epsilon), truth.bounded_range(epsilon)),
            "categories": (
                RandomizedResponseLoss(epsilon=epsilon, categories=5),
                truth.randomized_response(epsilon, 5),
            ),
        }[kind]
        total = total + count * made[0]
        laws.append((made[1], count))
        words += f" + {count} x {made[0]!r}"
    curve = truth.fourier_curve(truth.Composition(truth.number(mu) ** 2, laws=tuple(laws)))
    return Case(total, curve, words)


def sampled_pairs(mu: Fraction, rate: Fraction) -> tuple[Loss, tuple[truth.Pair, truth.Pair]]:
    loss = GaussianLoss(mu=mu).subsample(rate=rate, scheme="poisson", adjacency="add_or_remove_one")
    return loss, (truth.poisson_pair(mu, rate, "remove"), truth.poisson_pair(mu, rate, "add"))


def sampled_with_gaussian(rng: Random) -> Case:
    """One subsampled Gaussian and one plain Gaussian, the worse direction."""
    mu, rate, other = hundredths(rng, 30, 200), hundredths(rng, 1, 60), hundredths(rng, 30, 150)
    loss, pairs = sampled_pairs(mu, rate)
    curve = truth.worst(*(truth.pair_with_gaussian(pair, other) for pair in pairs))
    return Case(loss + GaussianLoss(mu=other), curve, f"Poisson({rate}) of mu={mu} + mu={other}")


def sampled_with_atoms(rng: Random) -> Case:
    """One subsampled Gaussian and up to four randomized responses."""
    mu, rate = hundredths(rng, 30, 200), Fraction(f"{10 ** rng.uniform(-4, -0.2):.3g}")
    epsilon, count = hundredths(rng, 2, 150), rng.randint(0, 4)
    loss, pairs = sampled_pairs(mu, rate)
    law = truth.power(truth.randomized_response(epsilon), count)
    curve = truth.worst(*(truth.mixed_with_atoms(truth.pair_curve(pair), law) for pair in pairs))
    total = loss + count * RandomizedResponseLoss(epsilon=epsilon) if count else loss
    return Case(total, curve, f"Poisson({rate}) of mu={mu} + {count} x RR({epsilon})")


def replaced(rng: Random) -> Case:
    """One subsampled Gaussian under replacement, with up to three randomized responses."""
    mu, rate = hundredths(rng, 30, 200), hundredths(rng, 1, 90)
    epsilon, count = hundredths(rng, 2, 150), rng.randint(0, 3)
    loss = GaussianLoss(mu=mu).subsample(rate=rate, scheme="poisson", adjacency="replace_one")
    law = truth.power(truth.randomized_response(epsilon), count)
    curve = truth.mixed_with_atoms(truth.pair_curve(truth.replace_pair(mu, rate)), law)
    total = loss + count * RandomizedResponseLoss(epsilon=epsilon) if count else loss
    return Case(total, curve, f"replace-one Poisson({rate}) of mu={mu} + {count} x RR({epsilon})")


def sampled_other(rng: Random) -> Case:
    """One subsampled Laplace, randomized response or discrete Laplace, with up to two randomized responses."""
    rate, epsilon = hundredths(rng, 1, 90), hundredths(rng, 10, 200)
    base, law = rng.choice(
        (
            (LaplaceLoss(epsilon=epsilon), truth.laplace(epsilon)),
            (RandomizedResponseLoss(epsilon=epsilon), truth.randomized_response(epsilon)),
            (DiscreteLaplaceLoss(scale=1 / epsilon, sensitivity=2), truth.discrete_laplace(1 / epsilon, 2)),
        )
    )
    loss = base.subsample(rate=rate, scheme="poisson", adjacency="add_or_remove_one")
    other, count = hundredths(rng, 2, 150), rng.randint(0, 2)
    atoms = truth.power(truth.randomized_response(other), count)
    ways = truth.sampled_curves(truth.terms_curve(law), rate)
    curve = truth.worst(*(truth.mixed_with_atoms(way, atoms) for way in ways))
    total = loss + count * RandomizedResponseLoss(epsilon=other) if count else loss
    return Case(total, curve, f"Poisson({rate}) of {base!r} + {count} x RR({other})")


def grouped(rng: Random) -> Case:
    """One subsampled Gaussian step for two to four records that come and go together."""
    mu, rate, size = hundredths(rng, 30, 150), hundredths(rng, 1, 60), rng.randint(2, 4)
    loss = GaussianLoss(mu=mu).subsample(rate=rate, scheme="poisson", adjacency="add_or_remove_one").group(size)
    pairs = (truth.poisson_pair(mu, rate, way, size) for way in ("remove", "add"))
    return Case(loss, truth.worst(*map(truth.pair_curve, pairs)), f"group of {size}, Poisson({rate}) of mu={mu}")


def bounded(rng: Random) -> Case:
    """A finite pair or a subsampled response with a pure loss: at a tiny delta epsilon is the largest loss."""
    epsilon = hundredths(rng, 2, 150)
    law = truth.randomized_response(epsilon)
    if rng.random() < 0.5:
        loss, terms, count = finite(rng)
        ways = [truth.power(one, count) for one in (terms, backward(loss, terms))]
        curves = [truth.terms_curve(truth.compose(law, way)) for way in ways]
    else:
        rate, base = hundredths(rng, 1, 99), hundredths(rng, 10, 200)
        loss, count = RandomizedResponseLoss(epsilon=base).subsample(rate=rate, scheme="poisson"), 1
        ways = truth.sampled_curves(truth.terms_curve(truth.randomized_response(base)), rate)
        curves = [truth.mixed_with_atoms(way, law) for way in ways]
    return Case(count * loss + Pure(epsilon=epsilon), truth.worst(*curves), f"{count} x {loss!r} + Pure({epsilon})")


SETTINGS = (
    (100, "0.1", "1"),
    (1000, "0.01", "1"),
    (10_000, "0.01", "0.9"),
    (500, "0.02", "1.25"),
    (100_000, "0.005", "0.5"),
)


def sampled_many(rng: Random) -> Case:
    """A hundred to 100,000 subsampled Gaussian steps."""
    count, rate, mu = rng.choice(SETTINGS)
    loss, pairs = sampled_pairs(Fraction(mu), Fraction(rate))
    ways = [truth.Composition(truth.MP.mpf(0), pairs=((pair, count),)) for pair in pairs]
    return Case(count * loss, truth.fourier_worst(*ways), f"{count} x Poisson({rate}) of mu={mu}")


def integer_with_gaussian(rng: Random) -> Case:
    """One wide discrete Gaussian and one Gaussian."""
    sigma2, shift, mu = hundredths(rng, 400, 6000), rng.randint(1, 3), hundredths(rng, 10, 150)
    loss = DiscreteGaussianLoss(sigma2=sigma2, sensitivity=shift)
    curve = truth.terms_curve(truth.discrete_gaussian(sigma2, shift), mu)
    return Case(loss + GaussianLoss(mu=mu), curve, f"{loss!r}, mu={mu}")


def ranges(rng: Random) -> Case:
    """One to three bounded-range losses and up to four randomized responses."""
    epsilon, count = hundredths(rng, 10, 200), rng.randint(1, 3)
    other, other_law, times = response(rng)
    law = truth.compose(truth.power(truth.bounded_range(epsilon), count), truth.power(other_law, times))
    words = f"{count} x BoundedRange({epsilon}) + {times} x {other!r}"
    return Case(count * BoundedRange(epsilon=epsilon) + times * other, truth.terms_curve(law), words)


FAMILIES = {
    "mixture": Family(mixture, 60, 1e-4, 1e-4, Public),
    "mixture-not-enumerated": Family(mixture, 60, 1e-5, 1e-5, lambda loss: enclosure(loss, paths=NOT_ENUMERATED)),
    "mixture-smoothed": Family(mixture, 60, 1e-4, 1e-4, lambda loss: enclosure(loss, paths=("smoothed",), nodes=4096)),
    "laplace": Family(laplaces, 40, 1e-3, 1e-3, Public),
    "pure-many": Family(pure_many, 40, 1e-8, 1e-8, Public),
    "with-gaussian": Family(with_gaussian, 20, ANY, 1e-8, Public),
    "sampled-with-gaussian": Family(sampled_with_gaussian, 20, 1e-8, 1e-8),
    "sampled-with-atoms": Family(sampled_with_atoms, 20, ANY, 1e-1, batch=2),
    "replaced": Family(replaced, 20, 1e-2, 1e-2, batch=4),
    "sampled-other": Family(sampled_other, 20, ANY, 1e-1),
    "grouped": Family(grouped, 20, 1e-2, 1e-2),
    "bounded": Family(bounded, 60, ANY, 1e-6, lowest=(-30, -40)),
    "integer-with-gaussian": Family(integer_with_gaussian, 20, 1e-8, 1e-8, Public),
    "ranges": Family(ranges, 30, ANY, 1e-3),  # the pair above; other readings may lie below it
    "sampled-many": Family(sampled_many, 5, 1e-6, 1e-6, batch=1),
}
SLOW = {
    "with-gaussian",
    "sampled-with-gaussian",
    "sampled-with-atoms",
    "replaced",
    "sampled-other",
    "grouped",
    "sampled-many",
}


FIRST = {"sampled-with-atoms": 2, "replaced": 1, "sampled-many": 2}
"""Batches in `make test` of the families whose batches take 4 to 30 seconds; the others are in `make test-long`."""


def marks(name: str, batch: int) -> list[Any]:
    """Which of the targets of make have a batch."""
    if batch >= MULTIPLE * FIRST.get(name, batch + 1):
        return [pytest.mark.long]
    return [pytest.mark.slow] if name in SLOW else []


def batches() -> list[Any]:
    """Every batch of every family, the slow and the long ones marked."""
    return [
        pytest.param(name, batch, marks=marks(name, batch))
        for name, family in FAMILIES.items()
        for batch in range(MULTIPLE * family.cases // family.batch)
    ]


@pytest.mark.parametrize(("name", "batch"), batches())
def test_the_truth_lies_inside_a_narrow_interval(name: str, batch: int):
    """Both intervals contain the truth, and most of them are as tight as the family promises."""
    judged = judge(name, batch)
    assert median(width for width, _ in judged) <= FAMILIES[name].width
    assert median(close for _, close in judged)


@pytest.mark.parametrize("seed", ["mixture-131", "sampled-other-181", "sampled-other-524"])
def test_epsilon_at_the_largest_loss(seed: str):
    """Where delta asks for the largest loss itself, the upper end is not a few floats below it."""
    family = FAMILIES[seed.rsplit("-", 1)[0]]
    made, delta, share = case(family, seed)
    assert violations(made.curve, family.read(made.loss), delta=delta, share=share).claims == []


# ------------------------------------------------------------------------------------- the judge is judged


@dataclass(frozen=True, slots=True)
class Exact:
    """A reading made from the truth itself, its ends moved by relative amounts."""

    curve: Curve
    epsilon_by: tuple[float, float]
    delta_by: tuple[float, float]

    def epsilon(self, delta: float) -> Ends:
        """The true epsilon, each end moved."""
        value = float(truth.epsilon_of(self.curve, delta, digits=17))
        return Ends(value * (1 + self.epsilon_by[0]), value * (1 + self.epsilon_by[1]))

    def delta(self, epsilon: float) -> Ends:
        """The true delta, each end moved."""
        value = float(self.curve(epsilon))
        return Ends(value * (1 + self.delta_by[0]), value * (1 + self.delta_by[1]))


RIGHT = (-1e-9, 1e-9)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-15, 1e-30])
def test_a_right_reading_passes(delta: float):
    """An interval of width 2e-9 around the truth is accepted."""
    curve = truth.terms_curve(truth.power(truth.randomized_response(Fraction(2, 5)), 4), Fraction(1, 2))
    found, width, upper = violations(curve, Exact(curve, RIGHT, RIGHT), delta=delta, share=0.5)
    assert found == []
    assert 1e-9 < width < 3e-9
    assert sharp(curve, upper, delta, 2e-9)
    assert not sharp(curve, upper, delta, 5e-10)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-15])
@pytest.mark.parametrize(
    ("epsilon_by", "delta_by"),
    [
        pytest.param((-1e-6 - 1e-9, -1e-6 + 1e-9), RIGHT, id="epsilon scaled down"),
        pytest.param((1e-6 - 1e-9, 1e-6 + 1e-9), RIGHT, id="epsilon scaled up"),
        pytest.param(RIGHT, (1e-10, 2e-10), id="aliasing not subtracted from delta"),
        pytest.param(RIGHT, (-2e-10, -1e-10), id="truncation not added to delta"),
        pytest.param((-1e-9, -1e-14), RIGHT, id="upper epsilon short by 1e-14"),
        pytest.param((1e-14, 1e-9), RIGHT, id="lower epsilon above by 1e-14"),
    ],
)
def test_a_seeded_fault_is_caught(delta: float, epsilon_by: tuple[float, float], delta_by: tuple[float, float]):
    """A wrong interval is reported, however small its fault."""
    curve = truth.terms_curve(truth.power(truth.randomized_response(Fraction(2, 5)), 4), Fraction(1, 2))
    found, _, _ = violations(curve, Exact(curve, epsilon_by, delta_by), delta=delta, share=0.5)
    assert len(found) == 1


def test_an_accountant_that_forgets_a_direction_is_caught():
    """Reading only one direction of an asymmetric pair is reported as a violation."""
    p, q = (Fraction(9, 10), Fraction(1, 10)), (Fraction(99, 100), Fraction(1, 100))
    ways = [truth.terms_curve(truth.power(truth.finite(*pair), 5), 1) for pair in ((p, q), (q, p))]
    both = truth.worst(*ways)
    caught = [violations(both, Exact(way, RIGHT, RIGHT), delta=1e-4, share=0.5).claims for way in ways]
    assert sorted(map(bool, caught)) == [False, True]

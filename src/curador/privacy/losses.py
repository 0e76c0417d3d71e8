"""The closed set of loss records.

Each is frozen and exact: parameters are rationals, so a stored record means the same for ever. A record is about any two
inputs within the sensitivity that its maker declared; `relation` types it by the neighbours it is about.

ε and δ as parameters are stored as epsilon0 and delta0: `loss.epsilon(delta)` is a question, not a field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from curador.errors import require
from curador.numerics.exact import Number, at_least_zero, positive, probability, rational, whole
from curador.privacy.adjacency import REPLACE_ONE, Adjacency, as_adjacency
from curador.privacy.loss import Loss, Scheme


class _Typed(Loss):
    """A record with an optional adjacency."""

    __slots__ = ()

    @property
    def adjacency(self) -> Adjacency | None:
        return getattr(self, "relation", None)


def _relation(value: Adjacency | str | None) -> Adjacency | None:
    return None if value is None else as_adjacency(value)


@dataclass(frozen=True, slots=True, init=False)
class GaussianLoss(_Typed):
    """Gaussian noise of standard deviation sensitivity/μ on real numbers: μ-GDP, exactly. Source: [DRS19]."""

    mu: Fraction
    relation: Adjacency | None

    def __init__(self, *, mu: Number, relation: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "mu", at_least_zero(mu, "mu"))
        object.__setattr__(self, "relation", _relation(relation))


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussianLoss(_Typed):
    """Discrete Gaussian noise, P[k] ∝ exp(−k²/2σ²), on an integer that moves by at most `sensitivity`.

    Source: [CKS20] for zCDP; the exact law for δ(ε).
    """

    sigma2: Fraction
    sensitivity: int
    relation: Adjacency | None

    def __init__(self, *, sigma2: Number, sensitivity: Number, relation: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "sigma2", positive(sigma2, "sigma2"))
        object.__setattr__(self, "sensitivity", whole(sensitivity, "sensitivity", least=0))
        object.__setattr__(self, "relation", _relation(relation))

    def __hash__(self) -> int:
        # a rational's own hash inverts its denominator modulo a prime: slow for sums of many records
        return hash((self.sigma2.numerator, self.sigma2.denominator, self.sensitivity, self.relation))


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussianVectorLoss(_Typed):
    """Discrete Gaussian noise, P[k] ∝ exp(−k²/2σ²), on each entry of a vector of integers that moves by at most √S in l2.

    Claim   Two neighbours' vectors of `dimension` integers differ by a vector v of integers with |v|² ≤ S =
            `sensitivity_squared`; each entry gets noise of its own. zCDP: S/2σ²; δ(ε): theorem 8.
    Source  [CKS20]; docs/explanation/accounting.md, theorem 8.
    """

    sigma2: Fraction
    sensitivity_squared: int
    dimension: int
    relation: Adjacency | None

    def __init__(
        self,
        *,
        sigma2: Number,
        sensitivity_squared: Number,
        dimension: Number,
        relation: Adjacency | str | None = None,
    ) -> None:
        object.__setattr__(self, "sigma2", positive(sigma2, "sigma2"))
        object.__setattr__(self, "sensitivity_squared", whole(sensitivity_squared, "sensitivity_squared", least=0))
        object.__setattr__(self, "dimension", whole(dimension, "dimension"))
        object.__setattr__(self, "relation", _relation(relation))

    def __hash__(self) -> int:
        # a rational's own hash inverts its denominator modulo a prime: slow for sums of many records
        sigma2 = (self.sigma2.numerator, self.sigma2.denominator)
        return hash((sigma2, self.sensitivity_squared, self.dimension, self.relation))


@dataclass(frozen=True, slots=True, init=False)
class LaplaceLoss(_Typed):
    """Laplace noise of scale sensitivity/ε on real numbers whose vector moves by at most `sensitivity` in l1.

    Source: [DMNS06]; for vectors docs/explanation/accounting.md, theorem 9.
    """

    epsilon0: Fraction
    relation: Adjacency | None

    def __init__(self, *, epsilon: Number, relation: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "epsilon0", at_least_zero(epsilon, "epsilon"))
        object.__setattr__(self, "relation", _relation(relation))


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplaceLoss(_Typed):
    """Discrete Laplace noise, P[k] ∝ exp(−|k|/scale), on an integer or a vector of integers; `sensitivity` is in l1.

    Source: [GRS09]; for vectors docs/explanation/accounting.md, theorem 9.
    """

    scale: Fraction
    sensitivity: int
    relation: Adjacency | None

    def __init__(self, *, scale: Number, sensitivity: Number, relation: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity", whole(sensitivity, "sensitivity", least=0))
        object.__setattr__(self, "relation", _relation(relation))

    def __hash__(self) -> int:
        # a rational's own hash inverts its denominator modulo a prime: slow for sums of many records
        return hash((self.scale.numerator, self.scale.denominator, self.sensitivity, self.relation))


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponseLoss(_Typed):
    """One of k answers: the true one with probability e^ε/(e^ε + k − 1), else another, uniformly. Source: [War65]."""

    epsilon0: Fraction
    categories: int
    relation: Adjacency | None

    def __init__(self, *, epsilon: Number, categories: Number = 2, relation: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "epsilon0", at_least_zero(epsilon, "epsilon"))
        object.__setattr__(self, "categories", whole(categories, "categories", least=2))
        object.__setattr__(self, "relation", _relation(relation))


@dataclass(frozen=True, slots=True, init=False)
class BoundedRange(_Typed):
    """Log-probability ratios that lie in some interval of length ε: the exponential mechanism. Source: [DDR20]."""

    epsilon0: Fraction
    relation: Adjacency | None

    def __init__(self, *, epsilon: Number, relation: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "epsilon0", at_least_zero(epsilon, "epsilon"))
        object.__setattr__(self, "relation", _relation(relation))


@dataclass(frozen=True, slots=True, init=False)
class Pure(_Typed):
    """Any ε-differentially private mechanism."""

    epsilon0: Fraction
    relation: Adjacency | None

    def __init__(self, *, epsilon: Number, relation: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "epsilon0", at_least_zero(epsilon, "epsilon"))
        object.__setattr__(self, "relation", _relation(relation))


@dataclass(frozen=True, slots=True, init=False)
class Approx(_Typed):
    """Any (ε, δ)-differentially private mechanism. Source: [KOV15, Thm. 3.3] for its worst case."""

    epsilon0: Fraction
    delta0: Fraction
    relation: Adjacency | None

    def __init__(self, *, epsilon: Number, delta: Number, relation: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "epsilon0", at_least_zero(epsilon, "epsilon"))
        object.__setattr__(self, "delta0", probability(delta, "delta"))
        object.__setattr__(self, "relation", _relation(relation))


@dataclass(frozen=True, slots=True, init=False)
class Concentrated(_Typed):
    """Any mechanism that is δ-approximately ρ-zCDP. Source: [BS16]."""

    rho0: Fraction
    delta0: Fraction
    relation: Adjacency | None

    def __init__(self, *, rho: Number, delta: Number = 0, relation: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "rho0", at_least_zero(rho, "rho"))
        object.__setattr__(self, "delta0", probability(delta, "delta"))
        object.__setattr__(self, "relation", _relation(relation))


@dataclass(frozen=True, slots=True, init=False)
class KeySelection(_Typed):
    """Keys shown where a discrete-Gaussian noisy number of units passes a threshold; a unit touches at most `keys` keys.

    Claim   With probability at least 1 − δ no key held by one unit alone passes; given that, the output is a function of
            `keys` noisy counts, each moved by at most `sensitivity` grid steps: δ plus `keys` discrete Gaussian losses.
    Needs   δ ≥ 1 − (1 − P[N ≥ (τ − 1) sensitivity])^k by the exact tail, k the keys that one unit holds: `keys` where it
            comes or goes, half of them where it is replaced; counts of units, not of rows.
    """

    sigma2: Fraction
    sensitivity: int
    keys: int
    delta0: Fraction
    relation: Adjacency | None

    def __init__(
        self,
        *,
        sigma2: Number,
        sensitivity: Number = 1,
        keys: Number,
        delta: Number,
        relation: Adjacency | str | None = None,
    ) -> None:
        object.__setattr__(self, "sigma2", positive(sigma2, "sigma2"))
        object.__setattr__(self, "sensitivity", whole(sensitivity, "sensitivity", least=0))
        object.__setattr__(self, "keys", whole(keys, "keys"))
        object.__setattr__(self, "delta0", probability(delta, "delta"))
        object.__setattr__(self, "relation", _relation(relation))


@dataclass(frozen=True, slots=True, init=False)
class Finite(_Typed):
    """A finite output with probabilities p where the person is present and q where not (or on two neighbours)."""

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]
    relation: Adjacency | None

    def __init__(self, *, p: Sequence[Number], q: Sequence[Number], relation: Adjacency | str | None = None) -> None:
        object.__setattr__(self, "p", _distribution(p, "p"))
        object.__setattr__(self, "q", _distribution(q, "q"))
        require(len(self.p) == len(self.q), "q", f"as long as p ({len(self.p)})", len(self.q))
        object.__setattr__(self, "relation", _relation(relation))


def _distribution(values: Sequence[Number], name: str) -> tuple[Fraction, ...]:
    require(not isinstance(values, str) and hasattr(values, "__len__") and len(values) > 0, name, "a list", values)
    exact = tuple(rational(value, f"{name}[{place}]") for place, value in enumerate(values))
    require(min(exact) >= 0 and sum(exact) == 1, name, "probabilities that add up to exactly 1", values)
    return exact


MOST_REPORTS = 10**10
"""More reports than that are not accounted: pretending there were so few is safe."""


@dataclass(frozen=True, slots=True, init=False)
class Shuffled(_Typed):
    """The shuffled reports of n people who use one ε-private local randomizer, one report each.

    Claim   Towards one person, who is replaced, they lose at most what the pair of the source does; it stands for the
            record, so lower ends are those of the pair. `variation`, where it is known, bounds the total variation between
            the randomizer's outputs on any two inputs; it is never above tanh(ε/2), which None stands for.
    Needs   n is public and the same in both worlds; the order is uniformly random and tells nothing.
    Source  docs/explanation/shuffling.md, theorem 1, for every randomizer that all n share. Without a variation the pair is
            that of [FMT22], which by its erratum proves it for a class of randomizers only.
    """

    epsilon0: Fraction
    reports: int
    variation: Fraction | None
    relation: Adjacency

    def __init__(
        self,
        *,
        epsilon: Number,
        reports: Number,
        variation: Number | None = None,
        relation: Adjacency | str = REPLACE_ONE,
    ) -> None:
        object.__setattr__(self, "epsilon0", at_least_zero(epsilon, "epsilon"))
        count = whole(reports, "reports")
        require(count <= MOST_REPORTS, "reports", f"at most {MOST_REPORTS}", count)
        object.__setattr__(self, "reports", count)
        object.__setattr__(self, "variation", None if variation is None else _variation(variation))
        one = as_adjacency(relation, "relation")
        require(one is REPLACE_ONE, "relation", "replace_one: the number of reports is public", one)
        object.__setattr__(self, "relation", one)

    @property
    def tells_nothing(self) -> bool:
        """Whether no report depends on its sender's value."""
        return self.epsilon0 == 0 or self.variation == 0


def _variation(value: Number) -> Fraction:
    exact = rational(value, "variation")
    require(0 <= exact <= 1, "variation", "between 0 and 1", value)
    return exact


@dataclass(frozen=True, slots=True)
class Subsampled(Loss):
    """A loss under secret subsampling; made by `loss.subsample`, which knows which have a proof."""

    base: Loss
    rate: Fraction
    scheme: Scheme
    relation: Adjacency

    @property
    def adjacency(self) -> Adjacency:
        """Subsampling is about one adjacency."""
        return self.relation


@dataclass(frozen=True, slots=True)
class Group(Loss):
    """A loss towards `size` people where no simpler record says it; made by `loss.group`."""

    base: Loss
    size: int

    @property
    def adjacency(self) -> Adjacency | None:
        """That of the base."""
        return self.base.adjacency

"""One release that leaves piece by piece: sequences in which a number may depend on those that left before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curador.mechanisms.gaussian import DiscreteGaussian
    from curador.privacy.loss import Loss
    from curador.randomness.entropy import Entropy


@dataclass(frozen=True, slots=True)
class Stretch:
    """The next integers y_t of a sequence y_0, y_1, … that is accounted as one release of `noise`.

    Claim   y_t = f_t(data, y_0 … y_{t−1}) + noise costs one release of `noise`, all stretches together, if for every record
            there are fixed numbers l_t with Σ l_t² ≤ its sensitivity², such that a neighbour moves f_t by at most l_t in l2,
            whatever y_0 … y_{t−1} were.
    Proof   Up to factors that the loss accounts for, discrete noise is a post-processing of normal noise entry by entry
            (docs/explanation/accounting.md, theorem 8), so each y_t is at distance μ_t = l_t/σ or less given its past; such
            releases, composed one after the other, are at distance √Σ μ_t² ≤ sensitivity/σ.
    Needs   No more integers in all than the dimension of `noise`. Laplace noise does not add up by squares.

    name    which sequence of a run it is; what has the same name is one
    """

    noise: DiscreteGaussian
    name: str

    @property
    def loss(self) -> Loss:
        """What the whole sequence costs."""
        return self.noise.loss

    def draw(self, value: Any, source: Entropy, size: int | None = None) -> Any:
        """Add noise to the next integers."""
        return self.noise.draw(value, source, size)

    def within(self, one: Any, other: Any) -> bool:
        """Whether two sequences, or what is known of them, differ by no more than the declared sensitivity."""
        return self.noise.within(one, other)

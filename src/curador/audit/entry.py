"""What an audit tries: a mechanism, two worlds, and how its outputs are looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from curador.audit.fit import Cells
from curador.privacy.loss import Loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPSILONS = ("0.1", "1", "4")
SMALL = "1e-5"
"""The δ of Gaussian noise."""

LARGE = "1e-3"
"""The δ of mechanisms whose δ is an event of its own: large enough to be seen."""

ALONE = "0.05"
"""The δ of keys held by one unit alone, where δ is all there is to see."""

HALFWAY = "halfway"
"""Also audit where δ is half of the total variation: there Gaussian curves can be seen with few samples."""

Worlds: TypeAlias = Callable[[Any], tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A mechanism under audit: how to make it for an ε, its worlds, its outputs as scores, and the claims to test.

    `law` gives the cells of its law in the first world, where the law has a closed form; `real` marks releases of floats on
    a public grid, whose bits are looked at.
    """

    name: str
    make: Callable[[str], Any]
    worlds: Worlds
    score: Callable[[Any], NDArray[Any]]
    deltas: tuple[str, ...] = ("0",)
    law: Callable[[Any, Any], Cells] | None = None
    real: bool = False
    many: str = "release_many"

    @property
    def goal(self) -> Fraction:
        """The δ that the mechanism is made for: the first that `deltas` gives as a number, else 0."""
        return Fraction(next((word for word in self.deltas if word != HALFWAY), "0"))

    def draw(self, mechanism: Any, world: Any, size: int) -> NDArray[Any]:
        """Return scores of `size` releases in a world."""
        arguments = world if isinstance(world, tuple) else (world,)
        return self.score(getattr(mechanism, self.many)(*arguments, size=size))


def delta_of(word: str, loss: Loss) -> Fraction:
    """Return the δ that an entry names."""
    return Fraction(loss.delta(0)) / 2 if word == HALFWAY else Fraction(word)

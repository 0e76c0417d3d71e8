"""What a mechanism did to privacy, as a value that adds, multiplies and answers questions.

A loss is data: frozen, serialisable, its meaning never changes. Everything it answers is computed by the readings
(`account`, `renyi`, `tradeoff`, `zcdp`), which know one rule a record; a record without a rule is refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from curador.errors import InvalidParameter, sentence
from curador.numerics.exact import Number, whole
from curador.numerics.guard import certified

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from curador.numerics.interval import Interval
    from curador.numerics.rounding import FloatArray
    from curador.privacy.adjacency import Adjacency

Scheme = Literal["poisson", "without_replacement"]


class Loss:
    """Base of every loss record: the operators, and the questions one may ask."""

    __slots__ = ()

    @property
    def adjacency(self) -> Adjacency | None:
        """The neighbours this loss is about; None: those that the declared sensitivity was computed for."""
        return None

    # ---- arithmetic -------------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> Loss:
        """Both happened, the second possibly chosen after seeing the first."""
        if type(other) is int and other == 0:  # so that sum() works
            return self
        if not isinstance(other, Loss):
            return NotImplemented
        return Composed(((self, 1), (other, 1)))

    __radd__ = __add__

    def __mul__(self, count: object) -> Loss:
        """The same, `count` times."""
        if isinstance(count, Loss):
            return NotImplemented
        times = whole(count, "count", least=0)
        return self if times == 1 else Composed(((self, times),))

    __rmul__ = __mul__

    @certified
    def group(self, size: Number) -> Loss:
        """The loss towards a group of `size` people instead of one."""
        from curador.privacy.group import group

        return group(self, whole(size, "size"))

    @certified
    def subsample(self, *, rate: Number, scheme: Scheme = "poisson", adjacency: Adjacency | str | None = None) -> Loss:
        """The loss when the mechanism saw a random subsample that nobody else saw.

        "poisson" keeps each record with probability `rate` (add-or-remove-one unless told otherwise);
        "without_replacement" keeps a share `rate` of a public number of records (replace-one).
        """
        from curador.privacy.amplify import subsample

        return subsample(self, rate=rate, scheme=scheme, adjacency=adjacency)

    # ---- questions --------------------------------------------------------------------------------------------------

    @certified
    def epsilon(self, delta: Number) -> float:
        """The smallest proved ε with (ε, δ)-differential privacy. Rounds: up."""
        from curador.privacy.account import epsilon

        return epsilon(self, delta)

    @certified
    def delta(self, epsilon: Number) -> float:
        """The smallest proved δ with (ε, δ)-differential privacy. Rounds: up."""
        from curador.privacy.account import delta

        return delta(self, epsilon)

    @certified
    def epsilon_interval(self, delta: Number, *, verify: bool = False) -> Interval:
        """Certified bounds of the least ε that these records allow one to claim at δ."""
        from curador.privacy.account import epsilon_interval

        return epsilon_interval(self, delta, verify=verify)

    @certified
    def delta_interval(self, epsilon: Number, *, verify: bool = False) -> Interval:
        """Certified bounds of the least δ that these records allow one to claim at ε."""
        from curador.privacy.account import delta_interval

        return delta_interval(self, epsilon, verify=verify)

    @certified
    def readings(self, delta: Number) -> dict[str, float]:
        """Every proved ε at δ, by the reading that proves it."""
        from curador.privacy.account import readings

        return readings(self, delta)

    @overload
    def renyi(self, alpha: Number) -> float: ...
    @overload
    def renyi(self, alpha: FloatArray) -> FloatArray: ...
    @certified
    def renyi(self, alpha: Number | FloatArray) -> float | FloatArray:
        """An upper bound of the Rényi divergence of order α in [1, ∞], both directions."""
        from curador.privacy.renyi import renyi

        return renyi(self, alpha)

    @property
    @certified
    def rho(self) -> Fraction | float:
        """The least ρ such that this is ρ-zCDP, as an exact rational rounded up; +∞ if there is none."""
        from curador.privacy.zcdp import rho

        return rho(self)

    @property
    @certified
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """(ρ, δ) such that this is δ-approximately ρ-zCDP; None if no such bound is known."""
        from curador.privacy.zcdp import concentrated

        return concentrated(self)

    @property
    @certified
    def pure_epsilon(self) -> Fraction | None:
        """The exact ε of pure differential privacy; None if there is none."""
        from curador.privacy.zcdp import pure_epsilon

        return pure_epsilon(self)

    @overload
    def tradeoff(self, fpr: Number) -> float: ...
    @overload
    def tradeoff(self, fpr: FloatArray) -> FloatArray: ...
    @certified
    def tradeoff(self, fpr: Number | FloatArray) -> float | FloatArray:
        """A lower bound of any adversary's false negative rate at the given false positive rate."""
        from curador.privacy.tradeoff import tradeoff

        return tradeoff(self, fpr)

    def to_record(self) -> dict[str, object]:
        """A versioned record of plain values; `loss_from_record` reads it back."""
        from curador.privacy.records import to_record

        return to_record(self)


class Composed(Loss):
    """Several losses together. Addition is O(1); the parts are merged when somebody asks."""

    __slots__ = ("_parts", "tree")

    def __init__(self, tree: Iterable[tuple[Loss, int]]) -> None:
        self.tree = tuple(tree)
        self._parts: tuple[tuple[Loss, int], ...] | None = None

    @property
    def parts(self) -> tuple[tuple[Loss, int], ...]:
        """Distinct records with their counts. The only place where counts are multiplied."""
        if self._parts is None:
            self._parts = _merged(self)
        return self._parts

    @property
    def adjacency(self) -> Adjacency | None:
        """The one adjacency of all typed parts."""
        return common_adjacency(record for record, _ in self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composed) and dict(self.parts) == dict(other.parts)

    def __hash__(self) -> int:
        return hash(frozenset(self.parts))

    def __repr__(self) -> str:
        return " + ".join(f"{count} × {record!r}" if count != 1 else repr(record) for record, count in self.parts) or "0"


def _merged(loss: Composed) -> tuple[tuple[Loss, int], ...]:
    counts: dict[Loss, int] = {}
    stack: list[tuple[Loss, int]] = [(loss, 1)]
    while stack:
        record, count = stack.pop()
        if isinstance(record, Composed):
            stack.extend((part, times * count) for part, times in reversed(record.tree))
        elif count:
            counts[record] = counts.get(record, 0) + count
    common_adjacency(counts)
    return tuple(counts.items())


def parts_of(loss: Loss) -> tuple[tuple[Loss, int], ...]:
    """The distinct records of any loss with their counts."""
    return loss.parts if isinstance(loss, Composed) else ((loss, 1),)


def compose(losses: Iterable[object]) -> Loss:
    """All of the losses together, in one step. Source: adaptive composition of dominating pairs, [ZDW22]."""
    tree: list[tuple[Loss, int]] = []
    for loss in losses:
        if not isinstance(loss, Loss):
            raise InvalidParameter(sentence("losses", "losses", loss))
        tree.append((loss, 1))
    return Composed(tree)


def common_adjacency(records: Iterable[Loss]) -> Adjacency | None:
    """The adjacency of all typed records; two different ones are refused."""
    found: Adjacency | None = None
    for record in records:
        own = record.adjacency
        if own is not None and found is not None and own is not found:
            raise InvalidParameter(
                f"losses that are added must be of one adjacency; got {found} and {own}.\n"
                "Hint: an add_or_remove_one loss becomes one for replace_one by .group(2)."
            )
        found = own or found
    return found

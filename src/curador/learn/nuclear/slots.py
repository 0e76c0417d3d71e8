"""Which record of a pass is met when: drawn at the seam, and never released."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.mechanisms.seam import perform
from curador.privacy.adjacency import REPLACE_ONE
from curador.randomness.entropy import U64

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from curador.learn.nuclear.records import Records
    from curador.learn.sums import Integers
    from curador.privacy.adjacency import Adjacency
    from curador.randomness.entropy import Entropy


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The units of a table, in their order. Private; a draw looks at how many there are, a replay at who they are.

    count  of units, those without a row included
    """

    records: Records
    count: int

    def contents(self) -> list[bytes]:
        """Return all that is known of each unit: equal where two tables hold the same one."""
        held: list[list[bytes]] = [[] for _ in range(self.count)]
        units = range(self.count) if self.records.units is None else self.records.units.tolist()
        for unit, row in zip(units, self.records.contents(), strict=True):
            held[unit].append(row)
        return [b"\0".join(sorted(rows)) for rows in held]


@dataclass(frozen=True, slots=True)
class Slots:
    """How units come into slots.

    total     the size of all slots together
    permuted  whether the draw is an order of all rows; else each unit draws a number below `total` for itself
    Claim     Releases nothing: who adds up a slot's records releases the sum, and answers for it. A neighbour's units fall
              into the same slots, but for one (`coupled`).
    """

    total: int
    permuted: bool

    def draw(self, value: Members, source: Entropy, size: int | None = None) -> Integers:
        """Draw an order of the rows, or a number for each unit."""
        if size is not None:
            return np.array([self.draw(value, source) for _ in range(size)])
        words = source.words(value.count, U64)
        if self.permuted:
            return np.argsort(words, kind="stable").astype(np.int64)
        return (words % np.uint64(self.total)).astype(np.int64)  # the remainder's bias is not the data's

    def within(self, one: Members, other: Members) -> bool:
        """Whether the tables differ by one unit at most: one that is gone, or is another."""
        partners = _partners(one.contents(), other.contents())
        met = int((partners >= 0).sum())
        return max(one.count, other.count) - met <= 1 and (one.count == other.count or not self.permuted)

    def coupled(self, value: Members, output: Integers, other: Members) -> Integers:
        """Return the neighbour's draw: units that both tables hold have the same place in both, whatever their numbers.

        Claim   A coupling. Draws of units are alike and independent, and an order of rows at random is so whatever the
                rows are called. A unit that is one more draws 0, as it may.
        """
        partners = _partners(value.contents(), other.contents())
        spare = iter(np.setdiff1d(np.arange(value.count), partners).tolist())
        for unit in np.flatnonzero(partners < 0).tolist():  # whoever has nobody takes the place of one who is gone
            partners[unit] = next(spare, -1)
        if not self.permuted:
            return np.where(partners >= 0, output[partners], 0) if value.count else np.zeros(other.count, np.int64)
        if other.count != value.count:  # how many there are is public: `within` says that they differ
            return np.arange(other.count)
        return np.argsort(partners)[output]


def _partners(one: Sequence[bytes], other: Sequence[bytes]) -> Integers:
    """For each of the others, the number of an equal one, each of which is given once; −1 where there is none."""
    held: defaultdict[bytes, list[int]] = defaultdict(list)
    for place, content in enumerate(one):
        held[content].append(place)
    places: dict[bytes, Iterator[int]] = {content: iter(numbers) for content, numbers in held.items()}
    return np.array([next(places.get(content, iter(())), -1) for content in other], np.int64)


def in_slots(records: Records, sizes: Sequence[int], adjacency: Adjacency) -> tuple[Any, Any]:
    """Return an order of the rows and where each slot ends in it: every unit in one slot, or in none.

    sizes   of the slots, in records: public
    Claim   A neighbour's rows fall into the same slots, but for one unit's, which all lie in one slot.
    Proof   Where records are replaced and each is a row, rows are permuted at random, without a look at them; the record in a
            place is another, the places are the same. Elsewhere each unit draws its slot for itself, with chances
            proportional to the sizes; draw the same for the units that both tables share (a coupling; and losses are jointly
            convex, so that what holds for every draw holds for the mixture).
    """
    many = len(records.targets)
    ends = np.cumsum(np.asarray(sizes, np.int64))
    permuted = adjacency is REPLACE_ONE and records.units is None
    count = many if records.units is None else int(records.units.max(initial=-1)) + 1
    drawn: Integers = perform(Slots(int(ends[-1]), permuted), Members(records, count))
    if permuted:
        return drawn, np.minimum(ends, many)
    units = np.arange(many) if records.units is None else records.units
    slots = np.searchsorted(ends, drawn, side="right")[units]
    order = np.argsort(slots, kind="stable").astype(np.int64)
    return order, np.searchsorted(slots[order], np.arange(len(ends)), side="right").astype(np.int64)

"""Frequent values of a domain too large to list: longer and longer prefixes, each asked of its own part of the people."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from curador.errors import InvalidParameter, require
from curador.local.client.chance import WHOLE
from curador.local.client.hashing import OPEN_SIZE, support_elsewhere
from curador.local.client.prefix import PrefixClient
from curador.local.collector import Collector, rows_of_integers
from curador.local.protocol import Reporting, exact_epsilon
from curador.local.search import Found, cells_of, functions, search_prefixes
from curador.mechanisms.seam import perform
from curador.numerics.exact import Number, positive, whole
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.losses import RandomizedResponseLoss
from curador.randomness.choice import below, bernoulli

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.local.protocol import Reports
    from curador.privacy.loss import Loss
    from curador.randomness.entropy import Entropy, IntArray


_LARGEST_TABLE = 1 << 26
"""Counts that a collector keeps at most: half a gigabyte."""


_MOST_CANDIDATES = 1 << 22
"""Prefixes that are weighed at one level, and their cells."""


@dataclass(frozen=True, slots=True, init=False)
class HeavyHitters(Reporting):
    """Each person reports one prefix of the own value; the collector extends the prefixes that many people have.

    Give `bits` for whole numbers of so many bits, or `length` for texts of at most so many bytes. Prefixes have `start` bits,
    then `step` more a level; a person is in one level, by public chance, and spends the whole ε there. At most `most`
    prefixes go on from a level. The table holds values that stand out of the noise: on average `false_values` of them are
    held by nobody.

    Claim   ε-private: one report of a person, on one prefix.
    Source  [WLJ21]; [WBLJ17]
    """

    epsilon: Fraction
    bits: int
    text: bool
    start: int
    step: int
    hashes: int
    most: int
    false_values: Fraction
    salt: str
    columns: ClassVar = (("level", "int64"), ("hash", "int64"), ("cell", "int64"))

    def __init__(
        self,
        *,
        epsilon: Number,
        bits: int | None = None,
        length: int | None = None,
        start: int = 16,
        step: int = 8,
        hashes: int = 1024,
        most: Number = 128,
        false_values: Number = "0.05",
        salt: str = "",
    ) -> None:
        if (bits is None) == (length is None):
            raise InvalidParameter(
                subject="HeavyHitters",
                rule="must be given exactly one of bits and length",
                got="both" if bits is not None else "neither",
                hint="bits for whole numbers, length for texts.",
            )
        object.__setattr__(self, "epsilon", exact_epsilon(epsilon))
        object.__setattr__(self, "bits", whole(bits, "bits", least=2) if length is None else 8 * whole(length, "length"))
        object.__setattr__(self, "text", length is not None)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "hashes", hashes)
        object.__setattr__(self, "most", whole(most, "most"))
        object.__setattr__(self, "false_values", positive(false_values, "false_values"))
        object.__setattr__(self, "salt", salt)
        client = self.client()  # refuses what no client can be made for
        table = len(client.lengths) * client.hashes * client.cells
        require(table <= _LARGEST_TABLE, "levels × hashes × cells", "at most 2^26", table)
        require(self.most << step <= _MOST_CANDIDATES, "most × 2^step", "at most 2^22", self.most << step)
        require(self.most * hashes <= _MOST_CANDIDATES, "most × hashes", "at most 2^22", self.most * hashes)

    @property
    def name(self) -> str:
        """What the protocol is called in a table."""
        return type(self).__name__

    def client(self) -> PrefixClient:
        """Return the part for a person's device."""
        return PrefixClient(
            epsilon=self.epsilon,
            bits=self.bits,
            start=self.start,
            step=self.step,
            hashes=self.hashes,
            text=self.text,
            salt=self.salt,
        )

    @property
    def loss(self) -> Loss:
        """Randomized response on the cells. Claim: level and function tell nothing, and where cells agree nothing is lost."""
        return RandomizedResponseLoss(epsilon=self.epsilon, categories=self.client().cells, adjacency=REPLACE_ONE)

    @property
    def levels(self) -> tuple[int, ...]:
        """How many bits the prefixes of each level have."""
        return self.client().lengths

    @property
    def p(self) -> Fraction:
        """How likely a report has the cell of its sender's prefix, exactly."""
        return Fraction(self.client().share, WHOLE)

    @property
    def q(self) -> Fraction:
        """How likely it has that of another prefix, over the choice of the functions."""
        return support_elsewhere(self.p, OPEN_SIZE, self.client().cells)

    # ---- reports ----------------------------------------------------------------------------------------------------

    def codes(self, values: Any) -> NDArray[Any]:
        """Return the values as whole numbers of `bits` bits; one that is none is refused, and not repeated."""
        if not self.text and isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.ndim == 1:
            if len(values) and not (int(values.min()) >= 0 and int(values.max()) < 1 << self.bits):
                raise InvalidParameter(subject="values", rule=f"must be whole numbers of {self.bits} bits", got="another")
            codes = values.astype(np.uint64)
        else:
            client = self.client()
            items = [client.code(value) for value in (values.tolist() if hasattr(values, "tolist") else values)]
            codes = np.array(items, np.uint64 if self.bits <= 64 else object)
        if not len(codes):
            raise InvalidParameter(subject="values", rule="must be at least one", got="none")
        return codes if self.bits <= 64 else codes.astype(object)

    def privatise(self, values: Any) -> Reports:
        """Return one report for each person's value, drawn as the client would: rows of (level, hash, cell)."""
        return perform(self, self.codes(values))

    def release_many(self, value: Any, size: int) -> Reports:
        """Return `size` independent reports on one value. Costs `size` times the loss."""
        return perform(self, self.codes([value]), whole(size, "size"))[:, 0]

    def draw(self, value: NDArray[Any], source: Entropy, size: int | None = None) -> IntArray:
        """Draw level and function, look up the cell, keep or change it."""
        shape = value.shape if size is None else (size, *value.shape)
        codes = np.broadcast_to(value, shape).ravel()
        client = self.client()
        level = below(len(client.lengths), codes.size, source)
        place = below(client.hashes, codes.size, source)
        cell = np.empty(codes.size, np.int64)
        for depth, bits in enumerate(client.lengths):
            here = np.flatnonzero(level == depth)
            drop = self.bits - bits
            shifted = codes[here] >> (np.uint64(drop) if self.bits <= 64 else drop)
            prefixes, which = np.unique(shifted, return_inverse=True)
            marks = np.array(client.marks(depth, prefixes.tolist()), np.uint64)
            a, b = functions(client.salt, depth, client.hashes)
            cell[here] = cells_of(marks[which], a[place[here]], b[place[here]], client.cells)
        kept = bernoulli(self.p, codes.size, source)
        other = below(client.cells - 1, codes.size, source)
        other += other >= cell
        return np.stack([level, place, np.where(kept, cell, other)], axis=-1).reshape(*shape, 3)

    # ---- estimates --------------------------------------------------------------------------------------------------

    def collector(self) -> Collector:
        """Return an empty collector."""
        return Collector(self)

    def estimate(self, reports: Reports, *, confidence: Number = "0.95") -> Found:
        """Return the frequent values from these reports alone; a collector takes them batch by batch."""
        collector = self.collector()
        collector.add(reports)
        return collector.estimate(confidence=confidence)

    def accept(self, reports: Any) -> tuple[IntArray, int]:
        """Return the reports whose level, function and cell exist."""
        client = self.client()
        return rows_of_integers(reports, (0, 0, 0), (len(client.lengths), client.hashes, client.cells))

    def zero(self) -> IntArray:
        """No report of any level, function and cell."""
        client = self.client()
        return np.zeros((len(client.lengths), client.hashes, client.cells), np.int64)

    def tally(self, reports: IntArray) -> IntArray:
        """Count reports by level, function and cell: all that the search needs, however many there are."""
        client = self.client()
        shape = (len(client.lengths), client.hashes, client.cells)
        flat = (reports[:, 0] * client.hashes + reports[:, 1]) * client.cells + reports[:, 2]
        return np.bincount(flat, minlength=shape[0] * shape[1] * shape[2]).reshape(shape)

    def estimated(self, statistic: IntArray, reports: int, rejected: int, confidence: Number) -> Found:
        """Search the prefixes level by level, and estimate how many people hold the values found."""
        return search_prefixes(self, statistic, reports, rejected, confidence)

    def detectable(self, reports: Number) -> float:
        """Return about how many people must hold a value, of that many reports, for it to be found in half of all cases."""
        from curador.local.search import threshold

        levels = self.levels
        people = whole(reports, "reports") // len(levels)
        limit = threshold(people, float(self.q), self.most << self.step, float(self.false_values))
        return (limit - people * float(self.q)) / float(self.p - self.q) * len(levels)

"""What every protocol of frequencies is: a public agreement between clients and a collector, on a public domain.

The domain is what people may answer: the public list of values, and the place of each.

A protocol is frozen and knows its loss. `client()` is the part for a person's device; `privatise` draws the reports of many
people at once from the same law, for whoever already holds their values; `collector()` counts reports and estimates.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from curador.errors import InvalidParameter, require
from curador.local.client.base import LARGEST_SIZE
from curador.local.client.chance import epsilon_of
from curador.local.collector import Collector
from curador.local.estimate import Estimate, FloatArray, normal_quantile, support_interval
from curador.mechanisms.seam import perform
from curador.numerics.exact import Number, open_probability, rational, whole
from curador.privacy.losses import Finite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curador.local.client import Client
    from curador.privacy.loss import Loss
    from curador.randomness.entropy import BoolArray, Entropy, IntArray


# ---- domain ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Domain:
    """`size` values: their own labels, or the whole numbers from 0 where `labels` is None."""

    size: int
    labels: tuple[Any, ...] | None = None

    @property
    def values(self) -> tuple[Any, ...] | range:
        """Every value, in the order of the codes."""
        return range(self.size) if self.labels is None else self.labels

    def codes(self, values: Any) -> IntArray:
        """Return the place of each value; one that is not in the domain is refused, and not repeated."""
        if self.labels is not None:
            place = {label: code for code, label in enumerate(self.labels)}
            items = values.tolist() if hasattr(values, "tolist") else values
            try:
                return np.fromiter((place[item] for item in items), np.int64)
            except (KeyError, TypeError):
                raise InvalidParameter(
                    subject="values", rule="must be of the domain", got="another", hint="add a value for the rest."
                ) from None
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InvalidParameter.must_be("values", "a list of whole numbers", f"an array of {array.dtype}, {array.shape}")
        if len(array) and not (int(array.min()) >= 0 and int(array.max()) < self.size):
            raise InvalidParameter(subject="values", rule=f"must be whole numbers from 0 to {self.size - 1}", got="another")
        return array.astype(np.int64)


def domain_of(domain: object) -> Domain:
    """Return the domain: a whole number of values, or a list of distinct ones."""
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, (int, np.integer)) and not isinstance(domain, bool):
        size = int(domain)
        require(2 <= size <= LARGEST_SIZE, "domain", "2 to 2^31 values", domain)
        return Domain(size)
    if isinstance(domain, (str, bytes)) or not isinstance(domain, Sequence | np.ndarray | range):
        raise InvalidParameter.must_be("domain", "a number of values or a list of them", domain)
    listed = domain.tolist() if isinstance(domain, np.ndarray) else list(domain)
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in listed)
    try:
        distinct = len(set(labels)) == len(labels) and all(label == label for label in labels)  # noqa: PLR0124 -- no NaN
    except TypeError:
        raise InvalidParameter.must_be("domain", "a list of plain values", domain) from None
    nested = any(isinstance(label, (tuple, frozenset)) for label in labels)  # files and tables have no such values
    require(not nested, "domain", "a list of plain values", domain)
    require(len(labels) >= 2 and distinct, "domain", "at least two distinct values", domain)
    return Domain(len(labels), labels)


# ---- protocol --------------------------------------------------------------------------------------------------------------


Reports = Any
"""An array with one row a report; which, each protocol says in `columns`."""


SMALLEST = Fraction(1, 10**9)
"""The smallest ε: below it probabilities over 2⁶⁴ hardly differ, and no number of people would be enough."""


def exact_epsilon(value: Number) -> Fraction:
    """Return ε as the clients will compute it; refused near 0, where every answer is noise."""
    exact = epsilon_of(rational(value, "epsilon"))
    require(exact >= SMALLEST, "epsilon", "at least 1e-9", value)
    return exact


class Reporting(ABC):
    """What protocols of frequencies and of means share."""

    __slots__ = ()
    columns: ClassVar[tuple[tuple[str, str], ...]]
    """Name and type of the columns of a file of reports: int64, or bytes, of which every report has `width`.

    An array of reports has one dimension for one column of int64, else two: the columns side by side, or the bytes.
    """

    epsilon: Fraction

    @abstractmethod
    def client(self) -> Client:
        """Return the part that runs on a person's device: standard library only, written down by `to_json`."""

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What one report costs the person who sends it (replace-one: that somebody reports is no secret)."""

    @abstractmethod
    def draw(self, value: Any, source: Entropy, size: int | None = None) -> Reports:
        """Return one report a coded value, or `size` reports a value along a first axis."""

    @abstractmethod
    def accept(self, reports: Any) -> tuple[Reports, int]:
        """Return well-formed reports as an array, and how many were malformed. Takes arrays, and lists of client reports."""

    def within(self, one: IntArray, other: IntArray) -> bool:
        """Whether two lists of coded values differ in one person's at most."""
        return one.shape == other.shape and int(np.sum(one != other)) <= 1


@dataclass(frozen=True, slots=True, init=False)
class Frequencies(Reporting):
    """A protocol by which people report one value of a public domain each."""

    domain: Domain
    epsilon: Fraction

    def __init__(self, domain: int | Sequence[Any] | Domain, *, epsilon: Number) -> None:
        object.__setattr__(self, "domain", domain_of(domain))
        object.__setattr__(self, "epsilon", exact_epsilon(epsilon))

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.domain.size

    @property
    def name(self) -> str:
        """What the protocol is called in a table."""
        return type(self).__name__

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """How many bits a report needs."""

    def privatise(self, values: Any) -> Reports:
        """Return one report for each person's value, drawn as the client would."""
        codes = self.domain.codes(values)
        if not len(codes):
            raise InvalidParameter(subject="values", rule="must be at least one", got="none")
        return perform(self, codes)

    def release_many(self, value: Any, size: int) -> Reports:
        """Return `size` independent reports on one value. Costs `size` times the loss."""
        return perform(self, self.domain.codes([value]), whole(size, "size"))[:, 0]

    def collector(self) -> Collector:
        """Return an empty collector."""
        return Collector(self)

    def estimate(self, reports: Reports, *, confidence: Number = "0.95") -> Estimate:
        """Return the estimates from these reports alone; a collector takes them batch by batch."""
        collector = self.collector()
        collector.add(reports)
        return collector.estimate(confidence=confidence)

    @abstractmethod
    def zero(self) -> IntArray:
        """The statistic of no reports: what a collector adds up."""

    @abstractmethod
    def tally(self, reports: Reports) -> IntArray:
        """The statistic of well-formed reports, to be added to others'."""

    @abstractmethod
    def estimated(self, statistic: IntArray, reports: int, rejected: int, confidence: Number) -> Estimate:
        """The estimates from a statistic."""

    @abstractmethod
    def speaks_for(self, reports: Reports, code: int) -> BoolArray:
        """Whether each well-formed report is one that the holders of a code send more often than others."""

    def log_odds(self, reports: Reports, one: Any, other: Any) -> FloatArray:
        """Return the logarithm of how much likelier each report is from a holder of the other value than of the one.

        Claim   A report that speaks for its sender's value is so many times as likely as one that does not, e^ε or a little
                less, as `loss` has them.
        """
        first, second = self.domain.codes([one, other]).tolist()
        way = self.speaks_for(reports, second).astype(np.float64) - self.speaks_for(reports, first)
        return _log(self.odds) * way

    @property
    def odds(self) -> Fraction:
        """How many times as likely a report that speaks for its sender's value is as one that does not, exactly."""
        loss = self.loss
        if not isinstance(loss, Finite):
            raise TypeError("a protocol without a finite loss says its own odds")
        return loss.p[0] / loss.q[0]

    @abstractmethod
    def variance(self, *, share: Number = 0) -> float:
        """The variance of one report's unbiased estimate of whether its sender holds a value that a share of people hold.

        The standard error of the estimated share from n reports is √(variance/n).
        """

    def standard_error(self, reports: Number, *, share: Number = 0) -> float:
        """The standard error of an estimated number of people, from that many reports."""
        return float(np.sqrt(whole(reports, "reports") * self.variance(share=share)))


def _log(ratio: Fraction) -> float:
    return math.log(ratio.numerator) - math.log(ratio.denominator) if ratio > 2 else math.log1p(float(ratio - 1))


@dataclass(frozen=True, slots=True, init=False)
class Supporting(Frequencies):
    """A protocol in which a report supports some values: its sender's with probability p, any other with probability q."""

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """How likely a report supports its sender's value, exactly."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """How likely it supports any other value, exactly."""

    @abstractmethod
    def supports(self, statistic: IntArray) -> NDArray[np.int64]:
        """How many reports support each value."""

    def estimated(self, statistic: IntArray, reports: int, rejected: int, confidence: Number) -> Estimate:
        """Return (support − n q)/(p − q) for every value.

        Claim   Unbiased; of variance (m p(1 − p) + (n − m) q(1 − q))/(p − q)² for a value with m holders.
        Source  [WBLJ17]
        """
        level = open_probability(confidence, "confidence")
        support = self.supports(statistic).astype(np.float64)
        p, q = self.p, self.q
        counts: FloatArray = (support - reports * float(q)) / float(p - q)
        holders = np.clip(counts, 0.0, reports)
        inner = holders * float(p * (1 - p)) + (reports - holders) * float(q * (1 - q))
        low, high = support_interval(support, reports, p, q, normal_quantile(level))
        errors = np.sqrt(inner) / float(p - q)
        return Estimate(self.domain.values, counts, errors, low, high, reports, rejected, level, self.name)

    def variance(self, *, share: Number = 0) -> float:
        """Return (f p(1 − p) + (1 − f) q(1 − q))/(p − q)², f the share. Source: [WBLJ17]."""
        part = rational(share, "share")
        p, q = self.p, self.q
        return float((part * p * (1 - p) + (1 - part) * q * (1 - q)) / (p - q) ** 2)

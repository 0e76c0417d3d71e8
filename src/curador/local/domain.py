"""What people may answer: the public list of values, and the place of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.errors import InvalidParameter, require, sentence
from curador.local.client.base import LARGEST_SIZE

if TYPE_CHECKING:
    from curador.randomness.entropy import IntArray


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
                    "values must be of the domain; got another.\nHint: add a value for the rest."
                ) from None
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InvalidParameter(sentence("values", "a list of whole numbers", f"an array of {array.dtype}, {array.shape}"))
        if len(array) and not (int(array.min()) >= 0 and int(array.max()) < self.size):
            raise InvalidParameter(f"values must be whole numbers from 0 to {self.size - 1}; got another.")
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
        raise InvalidParameter(sentence("domain", "a number of values or a list of them", domain))
    listed = domain.tolist() if isinstance(domain, np.ndarray) else list(domain)
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in listed)
    try:
        distinct = len(set(labels)) == len(labels) and all(label == label for label in labels)  # noqa: PLR0124 -- no NaN
    except TypeError:
        raise InvalidParameter(sentence("domain", "a list of plain values", domain)) from None
    nested = any(isinstance(label, (tuple, frozenset)) for label in labels)  # files and tables have no such values
    require(not nested, "domain", "a list of plain values", domain)
    require(len(labels) >= 2 and distinct, "domain", "at least two distinct values", domain)
    return Domain(len(labels), labels)

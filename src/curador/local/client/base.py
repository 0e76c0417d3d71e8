"""What every client is: made from a few plain numbers, sends one report for one value, and can be written down."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from fractions import Fraction
from operator import index
from typing import Any, ClassVar

from .refusal import Refusal, require

VERSION = 1
LARGEST_SIZE = 1 << 31


class Client(ABC):
    """The part of a protocol that runs on a person's own device.

    It computes its own probabilities from ε and trusts no others. `report(value)` draws from the operating system; what it
    returns is plain (a whole number, a tuple of them, or bytes) and is all that leaves the device. A second report on the
    same value is a second loss.
    """

    kind: ClassVar[str]
    epsilon: Fraction
    __slots__ = ()

    @abstractmethod
    def report(self, value: Any) -> Any:
        """Return what to send."""

    @abstractmethod
    def parameters(self) -> dict[str, object]:
        """What the client is made from, as strings, whole numbers and lists."""

    def to_json(self) -> str:
        """Return the client as text; `load` reads it back. No person's value is in it."""
        return json.dumps({"curador": "local client", "version": VERSION, "kind": self.kind, **self.parameters()})

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({inside})"


def size_of(value: object) -> int:
    """Return the number of values, refused unless it is whole and in [2, 2³¹]."""
    require(type(value) is int and 2 <= value <= LARGEST_SIZE, "size", "a whole number from 2 to 2^31", value)
    return value  # type: ignore[return-value]


def code_of(value: object, size: int) -> int:
    """Return the value's place, refused unless it is a whole number in [0, size)."""
    try:
        code = -1 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:  # arrays of several numbers have an index, too, and refuse to tell it
        raise Refusal(f"value must be a whole number from 0 to {size - 1}; got a {type(value).__name__}.") from None
    if not 0 <= code < size:  # a value is somebody's secret: it is not repeated
        raise Refusal(f"value must be a whole number from 0 to {size - 1}; got another.")
    return code

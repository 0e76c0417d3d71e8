"""One prefix of a long value: its length and hash function by public chance, its cell randomized."""

from __future__ import annotations

import unicodedata
from hashlib import blake2b

from .base import Client
from .chance import below, coin, epsilon_of, share_of_truth
from .hashing import OPEN_SIZE, best_cells, fingerprint
from .refusal import Refusal, require

MOST_BITS = 2048
MOST_CELLS = 256
"""More cells would make the collector's table large and the estimates hardly better."""


class PrefixClient(Client):
    """A report (level, hash, cell): the cell of the value's prefix of that level under that hash function, randomized.

    A value is a whole number of `bits` bits; where `text` is true, a text of at most bits/8 bytes of UTF-8 (normal form C),
    filled up with zero bytes. The prefixes have `start`, `start` + `step`, … and at last `bits` bits. The functions are
    public, `hashes` of them a level, and follow from the `salt`.

    Claim   ε-private: level and function are drawn without a look at the value, and given them the cell is randomized
            response on g cells, whose odds γ (g − 1)/(1 − γ) are at most e^ε by `share_of_truth`.
    Source  [WLJ21] for the levels; [WBLJ17] for the hashing.
    """

    kind = "prefix"
    __slots__ = ("bits", "cells", "epsilon", "hashes", "lengths", "salt", "share", "start", "step", "text")

    def __init__(
        self,
        *,
        epsilon: object,
        bits: object,
        start: object,
        step: object,
        hashes: object,
        text: object = False,
        salt: object = "",
    ) -> None:
        self.epsilon = epsilon_of(epsilon)
        require(isinstance(text, bool), "text", "true or false", text)
        self.text = text is True
        self.bits = _between(bits, "bits", 2, MOST_BITS)
        require(not self.text or self.bits % 8 == 0, "bits", "a multiple of 8 for texts", bits)
        self.start, self.step = _between(start, "start", 1, 20), _between(step, "step", 1, 16)
        self.hashes = _between(hashes, "hashes", 1, 1 << 16)
        sound = isinstance(salt, str) and salt.encode(errors="ignore").decode() == salt  # no half of a pair of surrogates
        require(sound, "salt", "a text of UTF-8", salt)
        self.salt = str(salt)
        self.lengths = (*range(min(self.start, self.bits), self.bits, self.step), self.bits)
        self.cells = min(best_cells(self.epsilon, OPEN_SIZE), MOST_CELLS)
        self.share = share_of_truth(self.epsilon, truths=1, others=self.cells - 1)

    def report(self, value: int | str) -> tuple[int, int, int]:
        """Return what to send. The other cell is drawn whether it is needed or not."""
        code = self.code(value)
        level, place = below(len(self.lengths)), below(self.hashes)
        kept, other = coin(self.share), below(self.cells - 1)
        cell = self.cell(level, place, code)
        return level, place, cell if kept else other + (other >= cell)

    def cell(self, level: int, place: int, code: int) -> int:
        """Return the cell of a value's prefix."""
        a, b = function_of(self.salt, level, place)
        (mark,) = self.marks(level, [code >> self.bits - self.lengths[level]])
        return (a * mark + b) % OPEN_SIZE * self.cells // OPEN_SIZE

    def marks(self, level: int, prefixes: list[int]) -> list[int]:
        """Return the fingerprints of prefixes of a level."""
        head, width = b"%s|%d|" % (self.salt.encode(), level), (self.lengths[level] + 7) // 8
        return [fingerprint(head + prefix.to_bytes(width, "big")) for prefix in prefixes]

    def code(self, value: object) -> int:
        """Return the value as a whole number of `bits` bits. A refusal does not repeat it."""
        if self.text:
            return code_of_text(value, self.bits // 8)
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise Refusal(f"value must be a whole number of {self.bits} bits; got a {type(value).__name__}.")
        code = value.__index__()  # type: ignore[union-attr]
        if not 0 <= code < 1 << self.bits:
            raise Refusal(f"value must be a whole number of {self.bits} bits; got another.")
        return code

    def value(self, code: int) -> int | str | None:
        """Return the value that a code stands for; None if there is none, as for bytes that are no text."""
        if not self.text:
            return code
        raw = code.to_bytes(self.bits // 8, "big").rstrip(b"\0")
        try:
            found = raw.decode()
        except UnicodeDecodeError:
            return None
        return None if "\0" in found or unicodedata.normalize("NFC", found) != found else found

    def parameters(self) -> dict[str, object]:
        """What the client is made from."""
        return {
            "epsilon": str(self.epsilon),
            "bits": self.bits,
            "start": self.start,
            "step": self.step,
            "hashes": self.hashes,
            "text": self.text,
            "salt": self.salt,
        }


def code_of_text(value: object, length: int) -> int:
    """Return a text's bytes, filled up with zeros, as a whole number. A refusal does not repeat it."""
    if not isinstance(value, str):
        raise Refusal(f"value must be a text; got a {type(value).__name__}.")
    raw = unicodedata.normalize("NFC", value).encode("utf-8", "surrogatepass")
    if len(raw) > length or b"\0" in raw:
        raise Refusal(f"value must be a text of at most {length} bytes without a zero byte; got another.\nHint: cut it.")
    return int.from_bytes(raw.ljust(length, b"\0"), "big")


def function_of(salt: str, level: int, place: int) -> tuple[int, int]:
    """Return a and b of a hash function x ↦ ⌊g ((a x + b) mod P)/P⌋: a in 1 … P − 1, b in 0 … P − 1, as if by chance."""
    drawn = blake2b(b"%s|%d|%d" % (salt.encode(), level, place), digest_size=32, person=b"curador hash").digest()
    a, b = int.from_bytes(drawn[:16], "little"), int.from_bytes(drawn[16:], "little")
    return 1 + a % (OPEN_SIZE - 1), b % OPEN_SIZE


def _between(value: object, name: str, least: int, most: int) -> int:
    require(type(value) is int and least <= value <= most, name, f"a whole number from {least} to {most}", value)
    return value  # type: ignore[return-value]

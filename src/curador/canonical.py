"""One text for one value: what is digested, chained and compared is written by this function and by no other.

A contract: keys sorted, no white space, ASCII only, whole numbers whole, no NaN. Whatever it wrote once it writes for ever;
ledgers, question keys, stored answers and study digests are made of it.
"""

from __future__ import annotations

import hashlib
import json

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_text(body: object) -> str:
    """Return the one JSON text of plain values: dictionaries with texts for keys, lists, texts, numbers, None."""
    return _ENCODER.encode(body)


def canonical_digest(body: object) -> str:
    """Return SHA-256 of the one text, in hexadecimal."""
    return hashlib.sha256(canonical_text(body).encode("ascii")).hexdigest()

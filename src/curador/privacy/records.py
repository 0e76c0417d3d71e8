"""Losses as plain values, for ledgers and receipts: of every kind, since it loads them all."""

from __future__ import annotations

import curador.privacy.kinds  # noqa: F401 -- each says how it is stored
from curador.errors import require
from curador.privacy.loss import Loss
from curador.privacy.stored import KINDS, VERSION, mapping_of, read_body, to_record

__all__ = ["KINDS", "VERSION", "loss_from_record", "to_record"]


def loss_from_record(record: object) -> Loss:
    """Return the loss that a record describes; anything unknown is refused."""
    body = mapping_of(record)
    require(body.get("version") == VERSION, "version", str(VERSION), body.get("version"))
    return read_body({key: value for key, value in body.items() if key != "version"})

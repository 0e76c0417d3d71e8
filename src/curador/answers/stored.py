"""What the ledger keeps of an answer: the released numbers in canonical order, so that any view of them can be made again.

zlib of canonical JSON. Integers are whole whatever their size, floats are hexadecimal, so that nothing is rounded; keys are
read back by the types of the plan.
"""

from __future__ import annotations

import datetime as dt
import json
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.answers.release import Ends, ReleasedBlock, narrow_to_int64
from curador.canonical import canonical_text
from curador.errors import Failed
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.answers.identity import CanonicalPlaces, Identity
    from curador.answers.release import Noisy
    from curador.engines.base import KeyValue
    from curador.plan.model import BlockPlan
    from curador.plan.price import Priced


VERSION = 1


def encode_releases(identities: Sequence[Identity], released: Sequence[Sequence[ReleasedBlock]]) -> bytes:
    """Return the bytes of several plans' releases."""
    plans = [
        [_block(own[places.block], places) for places in identity.places]
        for identity, own in zip(identities, released, strict=True)
    ]
    return zlib.compress(canonical_text({"version": VERSION, "plans": plans}).encode("ascii"), 6)


def decode_releases(content: bytes, identities: Sequence[Identity], priced: Sequence[Priced]) -> list[list[ReleasedBlock]]:
    """Return the releases in the order of these plans, which are the same but for order and names."""
    body = json.loads(zlib.decompress(content))
    if body["version"] != VERSION:
        raise Failed("a stored answer is of an unknown version")
    out: list[list[ReleasedBlock]] = []
    for stored, identity, own in zip(body["plans"], identities, priced, strict=True):
        found = {
            places.block: _read_released(held, places, own.plan.blocks[places.block])
            for held, places in zip(stored, identity.places, strict=True)
        }
        out.append([found[place] for place in range(len(found))])
    return out


def _block(released: ReleasedBlock, places: CanonicalPlaces) -> dict[str, Any]:
    return {
        "keys": [[_key(value) for value in released.keys[place]] for place in places.keys],
        "values": [_values(released.values[place]) for place in places.measurements],
        "units": None if released.units is None else _floats(released.units),
    }


def _read_released(held: dict[str, Any], places: CanonicalPlaces, block: BlockPlan) -> ReleasedBlock:
    keys: dict[int, list[KeyValue]] = {}
    for place, column in zip(places.keys, held["keys"], strict=True):
        keys[place] = [_read_key(value, block.keys[place].type) for value in column]
    values = {place: _read_values(one) for place, one in zip(places.measurements, held["values"], strict=True)}
    return ReleasedBlock(
        tuple(keys[place] for place in range(len(keys))),
        tuple(values[place] for place in range(len(values))),
        None if held["units"] is None else _read_floats(held["units"]),
    )


def _key(value: KeyValue) -> Any:
    if isinstance(value, float):
        return float(value).hex()
    return value.isoformat() if isinstance(value, dt.date) else value


def _read_key(value: Any, kind: Type) -> KeyValue:
    if value is None:
        return None
    match kind:
        case Type.FLOAT | Type.DECIMAL:
            return float.fromhex(value)
        case Type.DATE:
            return dt.date.fromisoformat(value)
        case Type.TIMESTAMP:
            return dt.datetime.fromisoformat(value)
        case _:
            return value


def _values(values: Noisy) -> Any:
    if isinstance(values, Ends):
        return {name: _floats(getattr(values, name)) for name in ("point", "low", "high")}
    return values.tolist()


def _read_values(held: Any) -> Noisy:
    if isinstance(held, dict):
        return Ends(*(_read_floats(held[name]) for name in ("point", "low", "high")))
    array = np.empty(len(held), object)
    array[:] = held
    return narrow_to_int64(array) if len(held) else np.empty(0, np.int64)


def _floats(values: Any) -> list[str]:
    return [float(value).hex() for value in values]


def _read_floats(held: Sequence[str]) -> Any:
    return np.array([float.fromhex(one) for one in held], np.float64)

"""Which questions are the same, and what the ledger keeps of their answers: both by the canonical form of a priced plan.

Two questions are one if they measure the same integers with the same noise on the same data version. White space, comments,
aliases, the order of the SELECT list, of GROUP BY and of UNION ALL, HAVING, ORDER BY, LIMIT and arithmetic between
aggregates do not enter: all of that is computed from what was measured. Caps, bounds, grids and every noise parameter do.

What is stored is what was measured, in canonical order; another label is another view of the same numbers. That is a matter
of correctness, never of privacy: a stored answer is a release that was paid for. It is zlib of canonical JSON. Integers are
whole whatever their size, floats are hexadecimal, so that nothing is rounded; keys are read back by the types of the plan.
"""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import json
import zlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from curador.answers.release import Ends, ReleasedBlock, narrow_to_int64
from curador.canonical import canonical_digest, canonical_text
from curador.errors import Failed
from curador.plan.price import written_part
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from curador.answers.release import Noisy
    from curador.engines.base import KeyValue
    from curador.plan.model import BlockPlan, KeyPlan, KeyTuples, Measurement
    from curador.plan.price import KeyNoise, Noise, Priced


VERSION = 1


CanonicalPlaces: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...]]
"""A block, its keys and its measurements in canonical order: each by its place in the plan."""


Identity: TypeAlias = tuple[str, tuple[CanonicalPlaces, ...]]
"""The canonical text of a priced plan, and which of its parts stands where in it."""


def identity(priced: Priced) -> Identity:
    """Return the canonical form of a priced plan."""
    made = [
        _block(place, block, noises, selection)
        for place, (block, noises, selection) in enumerate(
            zip(priced.plan.blocks, priced.noises, priced.selections, strict=True)
        )
    ]
    ordered = sorted(made, key=lambda one: (canonical_text(one[0]), one[1][0])) if len(made) > 1 else made
    body = {"version": VERSION, "adjacency": str(priced.plan.adjacency), "blocks": [block for block, _ in ordered]}
    return canonical_text(body), tuple(places for _, places in ordered)


def canonical(priced: Priced) -> dict[str, object]:
    """Return the canonical form as plain values: dictionaries, lists, texts, integers."""
    return cast("dict[str, object]", json.loads(identity(priced)[0]))


def identity_digest(identity: Identity) -> str:
    """Return the digest of a priced plan: SHA-256 of its text."""
    text, _ = identity
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def question_key(
    identities: Iterable[Identity],
    *,
    study_digest: str,
    data_version: int,
    survey: str | None = None,
) -> str:
    """Return SHA-256 of what makes two questions identical.

    survey   the survey whose caps it is answered with, or which a new one follows; None: all caps are declared or asked for
    """
    plans = [identity_digest(one) for one in identities]
    body = {"version": VERSION, "plans": plans, "study": study_digest, "data_version": data_version}
    if survey is not None:
        body["survey"] = survey
    return canonical_digest(body)


def _block(
    place: int, block: BlockPlan, noises: Sequence[Noise], selection: KeyNoise | None
) -> tuple[dict[str, object], CanonicalPlaces]:
    keys = _sort_texts({**plain(key), "values": _values(key)} for key in block.keys)
    measured = _sort_texts(
        {**plain(measurement), "of": _combine_measurement(block, measurement), "by": plain(by)}
        for measurement, by in zip(block.measurements, noises, strict=True)
    )
    body: dict[str, object] = {
        "relation": plain(block.relation),
        "cap": plain(block.cap),
        "contribution": plain(block.contribution),
        "keys": [text for text, _ in keys],
        "measurements": [text for text, _ in measured],
        "units": None if block.units is None else plain(block.tallies[block.units]),
        "selection": plain(selection),
    }
    if block.joint:  # of blocks before it all keys were combined
        body["joint"] = sorted(canonical_text(_tuples(one, [place for _, place in keys])) for one in block.joint)
    return body, (place, tuple(one for _, one in keys), tuple(one for _, one in measured))


def _combine_measurement(block: BlockPlan, one: Measurement) -> list[str]:
    return sorted(canonical_text([coefficient, plain(block.tallies[tally])]) for tally, coefficient in one.combination)


def _sort_texts(bodies: Iterable[object]) -> list[tuple[str, int]]:
    return sorted((canonical_text(body), place) for place, body in enumerate(bodies))


def _values(key: KeyPlan) -> list[str] | None:
    return None if key.values is None else sorted(canonical_text(plain(value)) for value in key.values)


def _tuples(joint: KeyTuples, order: Sequence[int]) -> list[object]:
    """Which keys, by their places in the canonical order, and their tuples, sorted."""
    sorted_places = sorted((order.index(place), at) for at, place in enumerate(joint.places))
    rows = sorted(canonical_text([plain(row[at]) for _, at in sorted_places]) for row in joint.rows)
    return [[place for place, _ in sorted_places], rows]


def plain(value: object) -> Any:
    """Return plain JSON values: parts are written under the names of `plan/price.py`, exact numbers are texts."""
    if isinstance(value, enum.Enum):
        return str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Fraction):
        return {"is": "Fraction", "of": str(value)}
    if isinstance(value, (dt.date, dt.datetime)):
        return {"is": type(value).__name__, "of": value.isoformat()}
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in cast("Sequence[object]", value)]
    part = written_part(value)
    if part is None:
        raise TypeError(f"a plan must be made of plain values; got {type(value).__name__}")
    name, held = part
    return {"is": name, **{field: plain(one) for field, one in held.items()}}


# ---- what the ledger keeps


STORED_VERSION = 1


def encode_releases(identities: Sequence[Identity], released: Sequence[Sequence[ReleasedBlock]]) -> bytes:
    """Return the bytes of several plans' releases."""
    plans = [
        [_written_release(own[places[0]], places) for places in ordered]
        for (_, ordered), own in zip(identities, released, strict=True)
    ]
    return zlib.compress(canonical_text({"version": STORED_VERSION, "plans": plans}).encode("ascii"), 6)


def decode_releases(content: bytes, identities: Sequence[Identity], priced: Sequence[Priced]) -> list[list[ReleasedBlock]]:
    """Return the releases in the order of these plans, which are the same but for order and names."""
    body = json.loads(zlib.decompress(content))
    if body["version"] != STORED_VERSION:
        raise Failed("a stored answer is of an unknown version")
    out: list[list[ReleasedBlock]] = []
    for stored, (_, ordered), own in zip(body["plans"], identities, priced, strict=True):
        found = {
            places[0]: _read_released(held, places, own.plan.blocks[places[0]])
            for held, places in zip(stored, ordered, strict=True)
        }
        out.append([found[place] for place in range(len(found))])
    return out


def _written_release(released: ReleasedBlock, places: CanonicalPlaces) -> dict[str, Any]:
    _, keys, measurements = places
    return {
        "keys": [[_written_key(value) for value in released.keys[place]] for place in keys],
        "values": [_written_values(released.values[place]) for place in measurements],
        "units": None if released.units is None else _floats(released.units),
    }


def _read_released(held: dict[str, Any], places: CanonicalPlaces, block: BlockPlan) -> ReleasedBlock:
    _, key_places, measurements = places
    keys: dict[int, list[KeyValue]] = {}
    for place, column in zip(key_places, held["keys"], strict=True):
        keys[place] = [_read_key(value, block.keys[place].type) for value in column]
    values = {place: _read_values(one) for place, one in zip(measurements, held["values"], strict=True)}
    return ReleasedBlock(
        tuple(keys[place] for place in range(len(keys))),
        tuple(values[place] for place in range(len(values))),
        None if held["units"] is None else _read_floats(held["units"]),
    )


def _written_key(value: KeyValue) -> Any:
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


def _written_values(values: Noisy) -> Any:
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

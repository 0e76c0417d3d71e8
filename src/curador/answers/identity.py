"""Which questions are the same: the canonical form of a priced plan.

Two questions are one if they measure the same integers with the same noise on the same data version. White space, comments,
aliases, the order of the SELECT list, of GROUP BY and of UNION ALL, HAVING, ORDER BY, LIMIT and arithmetic between
aggregates do not enter: all of that is computed from what was measured. Caps, bounds, grids and every noise parameter do.

What is stored is what was measured, in canonical order; another label is another view of the same numbers. That is a matter
of correctness, never of privacy: a stored answer is a release that was paid for.
"""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from curador.canonical import canonical_digest, canonical_text
from curador.plan.price import written_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from curador.plan.model import BlockPlan, KeyPlan, Measurement
    from curador.plan.price import KeyNoise, Noise, Priced


VERSION = 1


@dataclass(frozen=True, slots=True)
class CanonicalPlaces:
    """Where a block, its keys and its measurements stand in canonical order: each a place in the plan."""

    block: int
    keys: tuple[int, ...]
    measurements: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """The canonical text of a priced plan, and which of its parts stands where in it."""

    text: str
    places: tuple[CanonicalPlaces, ...]

    @property
    def digest(self) -> str:
        """The plan's digest: SHA-256 of the text."""
        return hashlib.sha256(self.text.encode("ascii")).hexdigest()


def identity(priced: Priced) -> Identity:
    """Return the canonical form of a priced plan."""
    made = [
        _block(place, block, noises, selection)
        for place, (block, noises, selection) in enumerate(
            zip(priced.plan.blocks, priced.noises, priced.selections, strict=True)
        )
    ]
    ordered = sorted(made, key=lambda one: (one[0], one[1].block))
    body = {"version": VERSION, "adjacency": str(priced.plan.adjacency), "blocks": [json.loads(text) for text, _ in ordered]}
    return Identity(canonical_text(body), tuple(places for _, places in ordered))


def canonical(priced: Priced) -> dict[str, object]:
    """Return the canonical form as plain values: dictionaries, lists, texts, integers."""
    return cast("dict[str, object]", json.loads(identity(priced).text))


def question_key(identities: Iterable[Identity], *, study_digest: str, data_version: int) -> str:
    """Return SHA-256 of what makes two questions identical."""
    plans = [one.digest for one in identities]
    return canonical_digest({"version": VERSION, "plans": plans, "study": study_digest, "data_version": data_version})


def _block(place: int, block: BlockPlan, noises: Sequence[Noise], selection: KeyNoise | None) -> tuple[str, CanonicalPlaces]:
    keys = _sort_texts({**plain(key), "values": _values(key)} for key in block.keys)
    measured = _sort_texts(
        {**plain(measurement), "of": _combine_measurement(block, measurement), "by": plain(by)}
        for measurement, by in zip(block.measurements, noises, strict=True)
    )
    body = {
        "relation": plain(block.relation),
        "cap": plain(block.cap),
        "contribution": plain(block.contribution),
        "keys": [text for text, _ in keys],
        "measurements": [text for text, _ in measured],
        "units": None if block.units is None else plain(block.tallies[block.units]),
        "selection": plain(selection),
    }
    return canonical_text(body), CanonicalPlaces(place, tuple(one for _, one in keys), tuple(one for _, one in measured))


def _combine_measurement(block: BlockPlan, one: Measurement) -> list[str]:
    return sorted(canonical_text([coefficient, plain(block.tallies[tally])]) for tally, coefficient in one.combination)


def _sort_texts(bodies: Iterable[object]) -> list[tuple[str, int]]:
    return sorted((canonical_text(body), place) for place, body in enumerate(bodies))


def _values(key: KeyPlan) -> list[str] | None:
    return None if key.values is None else sorted(canonical_text(plain(value)) for value in key.values)


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

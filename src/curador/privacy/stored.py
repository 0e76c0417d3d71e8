"""How losses are stored: each kind says so beside its class, under names that are texts there (`store_as`).

A contract: the meaning of a kind never changes, fields are only ever added with defaults, an unknown kind is refused rather
than guessed. Numbers are exact, written as strings. Names of kinds and fields are for ever; classes, their attributes and
their arguments may be renamed. Who reads records takes `privacy.records`, which knows all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from curador.errors import InvalidParameter, require
from curador.numerics.exact import whole
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import TO_RECORD, Composed, Loss

VERSION = 1

Fields = dict[str, object]
Kept = TypeVar("Kept", bound=Loss)


class RecordKind(NamedTuple):
    """How one kind of loss is written and read.

    write   all its fields, in the order in which they are stored
    read    the loss of given fields, of which it takes out those that it knows; KeyError where one is missing that has no
            default
    """

    of: type[Loss]
    write: Callable[[Any], Fields]
    read: Callable[[dict[str, Any]], Loss]


KINDS: dict[str, RecordKind] = {}
"""By the name that is stored."""

_NAMES: dict[type[Loss], str] = {}


def store_as(name: str, of: type[Kept], *, write: Callable[[Kept], Fields], read: Callable[[dict[str, Any]], Loss]) -> None:
    """Say under which names a kind is stored: for ever."""
    require(name not in KINDS, "the name of a stored kind", "of one kind only", name)
    KINDS[name] = RecordKind(of, write, read)
    _NAMES[of] = name


def adjacency_word(adjacency: Adjacency | None) -> str | None:
    """Return how an adjacency is stored."""
    return None if adjacency is None else str(adjacency)


@TO_RECORD.answered_by
def to_record(loss: Loss) -> dict[str, object]:
    """Return the loss as a dictionary of strings, integers, lists and dictionaries."""
    return {"version": VERSION, **write_body(loss)}


def write_body(loss: Loss) -> Fields:
    """Return the loss as it is stored inside another record."""
    name = _NAMES.get(type(loss))
    if name is None:
        raise InvalidParameter.must_be("loss", "one of curador's loss records", type(loss).__name__)
    return {"kind": name, **KINDS[name].write(loss)}


def mapping_of(record: object) -> Mapping[str, Any]:
    """Return the record, refused unless it is a mapping."""
    if not isinstance(record, Mapping):
        raise InvalidParameter.must_be("record", "a mapping", record)
    return cast("Mapping[str, Any]", record)


def read_body(record: object) -> Loss:
    """Return the loss that is stored inside another record."""
    body = mapping_of(record)
    require(isinstance(body.get("kind"), str), "record", "a mapping with a kind", body)
    name = body["kind"]
    if name not in KINDS:
        raise InvalidParameter.must_be("kind", "a known loss record", name)
    given = {str(key): value for key, value in body.items() if key != "kind"}
    left = dict(given)
    try:
        made = KINDS[name].read(left)
    except (KeyError, TypeError):
        made = None
    if made is None or left:
        raise InvalidParameter.must_be(f"fields of {name}", "those of version 1", ", ".join(given))
    return made


# ---- sums -------------------------------------------------------------------------------------------------------------


def _parts(given: object) -> list[tuple[Loss, int]]:
    if not isinstance(given, (list, tuple)):
        raise InvalidParameter.must_be("parts", "a list", given)
    return [_part(row) for row in cast("list[object]", given)]


def _part(row: object) -> tuple[Loss, int]:
    body = mapping_of(row)
    require(set(body) == {"count", "loss"}, "part", "a count and a loss", sorted(map(str, body)))
    return read_body(body["loss"]), whole(body["count"], "count")


store_as(
    "Composed",
    Composed,
    write=lambda loss: {
        "parts": sorted(({"count": count, "loss": write_body(record)} for record, count in loss.parts), key=str)
    },
    read=lambda has: Composed(_parts(has.pop("parts"))),
)

"""Losses as plain values, for ledgers and receipts.

A contract: the meaning of a kind never changes, fields are only ever added with defaults, an unknown kind is refused rather
than guessed. Numbers are exact, written as strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, cast

from curador.errors import InvalidParameter, require, sentence
from curador.numerics.exact import rational, whole
from curador.privacy import kinds as losses
from curador.privacy.adjacency import Adjacency, as_adjacency
from curador.privacy.loss import TO_RECORD, Composed, Loss
from curador.privacy.rules import KINDS

VERSION = 1

_PLAIN: dict[str, type[Loss]] = {kind.__name__: kind for kind in KINDS if kind not in (losses.Group, losses.Subsampled)}


@TO_RECORD.answered_by
def to_record(loss: Loss) -> dict[str, object]:
    """Return the loss as a dictionary of strings, integers, lists and dictionaries."""
    return {"version": VERSION, **_body(loss)}


def _body(loss: Loss) -> dict[str, object]:
    match loss:
        case Composed():
            rows = [{"count": count, "loss": _body(record)} for record, count in loss.parts]
            return {"kind": "Composed", "parts": sorted(rows, key=str)}
        case losses.Subsampled():
            body = {"kind": "Subsampled", "rate": str(loss.rate), "scheme": loss.scheme}
            return {**body, "adjacency": str(loss.relation), "base": _body(loss.base)}
        case losses.Group():
            return {"kind": "Group", "size": loss.size, "base": _body(loss.base)}
        case _ if type(loss).__name__ in _PLAIN:
            return {"kind": type(loss).__name__} | {
                _outer(one.name): _plain(getattr(loss, one.name)) for one in fields(cast("Any", loss))
            }
        case _:
            raise InvalidParameter(sentence("loss", "one of curador's loss records", type(loss).__name__))


def _outer(name: str) -> str:
    return name.removesuffix("0")


def _plain(value: object) -> object:
    match value:
        case Adjacency() | Fraction():
            return str(value)
        case tuple():
            return [str(one) for one in cast("tuple[object, ...]", value)]
        case _:
            return value


def loss_from_record(record: object) -> Loss:
    """Return the loss that a record describes; anything unknown is refused."""
    body = _mapping(record)
    require(body.get("version") == VERSION, "version", str(VERSION), body.get("version"))
    return _loss({key: value for key, value in body.items() if key != "version"})


def _mapping(record: object) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        raise InvalidParameter(sentence("record", "a mapping", record))
    return cast("Mapping[str, Any]", record)


def _loss(record: object) -> Loss:
    body = _mapping(record)
    require(isinstance(body.get("kind"), str), "record", "a mapping with a kind", body)
    arguments = {str(key): value for key, value in body.items() if key != "kind"}
    match body["kind"], sorted(arguments):
        case "Composed", ["parts"]:
            return Composed([_part(row) for row in _rows(arguments["parts"])])
        case "Subsampled", ["adjacency", "base", "rate", "scheme"]:
            base, rate = _loss(arguments["base"]), rational(arguments["rate"], "rate")
            return base.subsample(rate=rate, scheme=arguments["scheme"], adjacency=as_adjacency(arguments["adjacency"]))
        case "Group", ["base", "size"]:
            return _loss(arguments["base"]).group(whole(arguments["size"], "size"))
        case kind, _ if kind in _PLAIN:
            try:
                return _PLAIN[kind](**arguments)
            except TypeError:
                raise InvalidParameter(sentence(f"fields of {kind}", "those of version 1", ", ".join(arguments))) from None
        case kind, _:
            raise InvalidParameter(sentence("kind", "a known loss record", kind))


def _rows(parts: object) -> list[object]:
    if not isinstance(parts, (list, tuple)):
        raise InvalidParameter(sentence("parts", "a list", parts))
    return list(cast("list[object]", parts))


def _part(row: object) -> tuple[Loss, int]:
    body = _mapping(row)
    require(set(body) == {"count", "loss"}, "part", "a count and a loss", sorted(map(str, body)))
    return _loss(body["loss"]), whole(body["count"], "count")

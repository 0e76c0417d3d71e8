"""Losses as plain values, for ledgers and receipts.

A contract: the meaning of a kind never changes, fields are only ever added with defaults, an unknown kind is refused rather
than guessed. Numbers are exact, written as strings. Names of kinds and fields stand here as texts and are for ever; classes,
their attributes and their arguments may be renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from curador.errors import InvalidParameter, require
from curador.numerics.exact import rational, whole
from curador.privacy import kinds as losses
from curador.privacy.adjacency import REPLACE_ONE, Adjacency, as_adjacency
from curador.privacy.loss import TO_RECORD, Composed, Loss

VERSION = 1

Fields = dict[str, object]
Given = Mapping[str, Any]
Kept = TypeVar("Kept", bound=Loss)


class RecordKind(NamedTuple):
    """How one kind of loss is written and read.

    write   all its fields, in the order in which they are stored
    read    the loss of given fields; KeyError where one is missing that has no default
    """

    of: type[Loss]
    write: Callable[[Any], Fields]
    read: Callable[[Given], Loss]


def _record_kind(of: type[Kept], write: Callable[[Kept], Fields], read: Callable[[Given], Kept]) -> RecordKind:
    return RecordKind(of, write, read)


def _name(relation: Adjacency | None) -> str | None:
    return None if relation is None else str(relation)


KINDS: dict[str, RecordKind] = {
    "GaussianLoss": _record_kind(
        losses.GaussianLoss,
        lambda loss: {"mu": str(loss.mu), "relation": _name(loss.relation)},
        lambda has: losses.GaussianLoss(mu=has["mu"], relation=has.get("relation")),
    ),
    "DiscreteGaussianLoss": _record_kind(
        losses.DiscreteGaussianLoss,
        lambda loss: {"sigma2": str(loss.sigma2), "sensitivity": loss.sensitivity, "relation": _name(loss.relation)},
        lambda has: losses.DiscreteGaussianLoss(
            sigma2=has["sigma2"], sensitivity=has["sensitivity"], relation=has.get("relation")
        ),
    ),
    "DiscreteGaussianVectorLoss": _record_kind(
        losses.DiscreteGaussianVectorLoss,
        lambda loss: {
            "sigma2": str(loss.sigma2),
            "sensitivity_squared": loss.sensitivity_squared,
            "dimension": loss.dimension,
            "relation": _name(loss.relation),
        },
        lambda has: losses.DiscreteGaussianVectorLoss(
            sigma2=has["sigma2"],
            sensitivity_squared=has["sensitivity_squared"],
            dimension=has["dimension"],
            relation=has.get("relation"),
        ),
    ),
    "LaplaceLoss": _record_kind(
        losses.LaplaceLoss,
        lambda loss: {"epsilon": str(loss.epsilon0), "relation": _name(loss.relation)},
        lambda has: losses.LaplaceLoss(epsilon=has["epsilon"], relation=has.get("relation")),
    ),
    "DiscreteLaplaceLoss": _record_kind(
        losses.DiscreteLaplaceLoss,
        lambda loss: {"scale": str(loss.scale), "sensitivity": loss.sensitivity, "relation": _name(loss.relation)},
        lambda has: losses.DiscreteLaplaceLoss(
            scale=has["scale"], sensitivity=has["sensitivity"], relation=has.get("relation")
        ),
    ),
    "RandomizedResponseLoss": _record_kind(
        losses.RandomizedResponseLoss,
        lambda loss: {"epsilon": str(loss.epsilon0), "categories": loss.categories, "relation": _name(loss.relation)},
        lambda has: losses.RandomizedResponseLoss(
            epsilon=has["epsilon"], categories=has.get("categories", 2), relation=has.get("relation")
        ),
    ),
    "BoundedRange": _record_kind(
        losses.BoundedRange,
        lambda loss: {"epsilon": str(loss.epsilon0), "relation": _name(loss.relation)},
        lambda has: losses.BoundedRange(epsilon=has["epsilon"], relation=has.get("relation")),
    ),
    "Pure": _record_kind(
        losses.Pure,
        lambda loss: {"epsilon": str(loss.epsilon0), "relation": _name(loss.relation)},
        lambda has: losses.Pure(epsilon=has["epsilon"], relation=has.get("relation")),
    ),
    "Approx": _record_kind(
        losses.Approx,
        lambda loss: {"epsilon": str(loss.epsilon0), "delta": str(loss.delta0), "relation": _name(loss.relation)},
        lambda has: losses.Approx(epsilon=has["epsilon"], delta=has["delta"], relation=has.get("relation")),
    ),
    "Concentrated": _record_kind(
        losses.Concentrated,
        lambda loss: {"rho": str(loss.rho0), "delta": str(loss.delta0), "relation": _name(loss.relation)},
        lambda has: losses.Concentrated(rho=has["rho"], delta=has.get("delta", 0), relation=has.get("relation")),
    ),
    "KeySelection": _record_kind(
        losses.KeySelection,
        lambda loss: {
            "sigma2": str(loss.sigma2),
            "sensitivity": loss.sensitivity,
            "keys": loss.keys,
            "delta": str(loss.delta0),
            "relation": _name(loss.relation),
        },
        lambda has: losses.KeySelection(
            sigma2=has["sigma2"],
            sensitivity=has.get("sensitivity", 1),
            keys=has["keys"],
            delta=has["delta"],
            relation=has.get("relation"),
        ),
    ),
    "Finite": _record_kind(
        losses.Finite,
        lambda loss: {
            "p": [str(one) for one in loss.p],
            "q": [str(one) for one in loss.q],
            "relation": _name(loss.relation),
        },
        lambda has: losses.Finite(p=has["p"], q=has["q"], relation=has.get("relation")),
    ),
    "Shuffled": _record_kind(
        losses.Shuffled,
        lambda loss: {
            "epsilon": str(loss.epsilon0),
            "reports": loss.reports,
            "variation": None if loss.variation is None else str(loss.variation),
            "relation": _name(loss.relation),
        },
        lambda has: losses.Shuffled(
            epsilon=has["epsilon"],
            reports=has["reports"],
            variation=has.get("variation"),
            relation=has.get("relation", REPLACE_ONE),
        ),
    ),
}
"""By the name that is stored."""

_NAMES: dict[type[Loss], str] = {kind.of: name for name, kind in KINDS.items()}


@TO_RECORD.answered_by
def to_record(loss: Loss) -> dict[str, object]:
    """Return the loss as a dictionary of strings, integers, lists and dictionaries."""
    return {"version": VERSION, **_body(loss)}


def _body(loss: Loss) -> Fields:
    match loss:
        case Composed():
            rows = [{"count": count, "loss": _body(record)} for record, count in loss.parts]
            return {"kind": "Composed", "parts": sorted(rows, key=str)}
        case losses.Subsampled():
            body: Fields = {"kind": "Subsampled", "rate": str(loss.rate), "scheme": loss.scheme}
            return {**body, "adjacency": str(loss.relation), "base": _body(loss.base)}
        case losses.Group():
            return {"kind": "Group", "size": loss.size, "base": _body(loss.base)}
        case _ if type(loss) in _NAMES:
            name = _NAMES[type(loss)]
            return {"kind": name, **KINDS[name].write(loss)}
        case _:
            raise InvalidParameter.must_be("loss", "one of curador's loss records", type(loss).__name__)


def loss_from_record(record: object) -> Loss:
    """Return the loss that a record describes; anything unknown is refused."""
    body = _mapping(record)
    require(body.get("version") == VERSION, "version", str(VERSION), body.get("version"))
    return _loss({key: value for key, value in body.items() if key != "version"})


def _mapping(record: object) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        raise InvalidParameter.must_be("record", "a mapping", record)
    return cast("Mapping[str, Any]", record)


def _loss(record: object) -> Loss:
    body = _mapping(record)
    require(isinstance(body.get("kind"), str), "record", "a mapping with a kind", body)
    given = {str(key): value for key, value in body.items() if key != "kind"}
    match body["kind"], sorted(given):
        case "Composed", ["parts"]:
            return Composed([_part(row) for row in _rows(given["parts"])])
        case "Subsampled", ["adjacency", "base", "rate", "scheme"]:
            base, rate = _loss(given["base"]), rational(given["rate"], "rate")
            return base.subsample(rate=rate, scheme=given["scheme"], adjacency=as_adjacency(given["adjacency"]))
        case "Group", ["base", "size"]:
            return _loss(given["base"]).group(whole(given["size"], "size"))
        case kind, _ if kind in KINDS:
            return _read(kind, given)
        case kind, _:
            raise InvalidParameter.must_be("kind", "a known loss record", kind)


def _read(name: str, given: Given) -> Loss:
    kind = KINDS[name]
    try:
        made = kind.read(given)
    except (KeyError, TypeError):
        made = None
    if made is None or not set(given) <= set(kind.write(made)):
        raise InvalidParameter.must_be(f"fields of {name}", "those of version 1", ", ".join(given))
    return made


def _rows(parts: object) -> list[object]:
    if not isinstance(parts, (list, tuple)):
        raise InvalidParameter.must_be("parts", "a list", parts)
    return list(cast("list[object]", parts))


def _part(row: object) -> tuple[Loss, int]:
    body = _mapping(row)
    require(set(body) == {"count", "loss"}, "part", "a count and a loss", sorted(map(str, body)))
    return _loss(body["loss"]), whole(body["count"], "count")

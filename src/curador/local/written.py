"""Protocols as text: what a collector's owner keeps beside the reports, and `curador collect` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from curador.errors import InvalidParameter
from curador.local.direct import Direct
from curador.local.hadamard import Hadamard
from curador.local.hashing import Hashing
from curador.local.hitters import HeavyHitters
from curador.local.means import DuchiMean, HybridMean, LaplaceMean, PiecewiseMean
from curador.local.means.base import STEPS, Means
from curador.local.protocol import Frequencies, Reporting
from curador.local.rappor import Rappor
from curador.local.subset import Subset
from curador.local.unary import Unary

VERSION = 1

Held = Mapping[str, Any]
Spoken = TypeVar("Spoken", bound=Reporting)


class Form(NamedTuple):
    """How one protocol is written and read. Names are for ever, and so is what an absent field means."""

    of: type[Reporting]
    names: tuple[str, ...]
    write: Callable[[Any], dict[str, object]]
    read: Callable[[Held], Reporting]


def _form(
    of: type[Spoken],
    names: tuple[str, ...],
    write: Callable[[Spoken], dict[str, object]],
    read: Callable[[Held], Spoken],
) -> Form:
    return Form(of, names, write, read)


def _frequencies(of: type[Frequencies]) -> Form:
    return _form(of, ("domain", "epsilon"), _frequency, lambda held: of(held["domain"], epsilon=held["epsilon"]))


def _frequency(protocol: Frequencies) -> dict[str, object]:
    return {"domain": _domain(protocol), "epsilon": str(protocol.epsilon)}


def _domain(protocol: Frequencies) -> object:
    return protocol.size if protocol.domain.labels is None else list(protocol.domain.labels)


def _means(of: type[Means]) -> Form:
    return _form(
        of,
        ("lower", "upper", "epsilon", "steps"),
        lambda one: {
            "lower": str(one.lower),
            "upper": str(one.upper),
            "epsilon": str(one.epsilon),
            "steps": one.steps,
        },
        lambda held: of(lower=held["lower"], upper=held["upper"], epsilon=held["epsilon"], steps=held.get("steps", STEPS)),
    )


def _hitters(one: HeavyHitters) -> dict[str, object]:
    return {
        "epsilon": str(one.epsilon),
        **({"length": one.bits // 8} if one.text else {"bits": one.bits}),
        "start": one.start,
        "step": one.step,
        "hashes": one.hashes,
        "most": one.most,
        "false_values": str(one.false_values),
        "salt": one.salt,
    }


FORMS: dict[str, Form] = {
    "Direct": _frequencies(Direct),
    "Hadamard": _frequencies(Hadamard),
    "Hashing": _frequencies(Hashing),
    "Subset": _frequencies(Subset),
    "Unary": _form(
        Unary,
        ("domain", "epsilon", "kind"),
        lambda one: {**_frequency(one), "kind": one.kind},
        lambda held: Unary(held["domain"], epsilon=held["epsilon"], kind=held.get("kind", "optimal")),
    ),
    "Rappor": _form(
        Rappor,
        ("domain", "epsilon_forever", "epsilon_once", "values"),
        lambda one: {
            "domain": _domain(one),
            "epsilon_forever": str(one.epsilon_forever),
            "epsilon_once": str(one.epsilon),
            "values": one.values,
        },
        lambda held: Rappor(
            held["domain"],
            epsilon_forever=held["epsilon_forever"],
            epsilon_once=held["epsilon_once"],
            values=held.get("values", 1),
        ),
    ),
    "LaplaceMean": _means(LaplaceMean),
    "DuchiMean": _means(DuchiMean),
    "PiecewiseMean": _means(PiecewiseMean),
    "HybridMean": _means(HybridMean),
    "HeavyHitters": _form(
        HeavyHitters,
        ("epsilon", "bits", "length", "start", "step", "hashes", "most", "false_values", "salt"),
        _hitters,
        lambda held: HeavyHitters(
            epsilon=held["epsilon"],
            bits=held.get("bits"),
            length=held.get("length"),
            start=held.get("start", 16),
            step=held.get("step", 8),
            hashes=held.get("hashes", 1024),
            most=held.get("most", 128),
            false_values=held.get("false_values", "0.05"),
            salt=held.get("salt", ""),
        ),
    ),
}
"""By the name that is stored."""

_NAMES = {form.of: name for name, form in FORMS.items()}


def to_json(protocol: Reporting) -> str:
    """Return the protocol as text. Public: no person's value is in it."""
    name = _NAMES.get(type(protocol))
    if name is None:
        raise InvalidParameter(f"protocol must be one of {', '.join(FORMS)}; got a {type(protocol).__name__}.")
    body = FORMS[name].write(protocol)
    try:
        return json.dumps({"curador": "local protocol", "version": VERSION, "protocol": name, **body})
    except TypeError:
        raise InvalidParameter("protocol must have a domain of texts, numbers and truth values; got another.") from None


def from_json(text: str) -> Any:
    """Return the protocol that a text describes. Anything unknown is refused."""
    try:
        body = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise InvalidParameter("text must be what to_json wrote of a protocol; got something else.") from None
    known = isinstance(body, dict) and body.pop("curador", None) == "local protocol" and body.pop("version", None) == VERSION
    kind = body.pop("protocol", None) if known else None
    if not isinstance(kind, str) or kind not in FORMS:
        raise InvalidParameter(f"text must be a protocol of version {VERSION} and a known name; got another.")
    form = FORMS[kind]
    if not set(body) <= set(form.names):
        raise InvalidParameter(f"text must hold the parameters of {kind}; got others.")
    try:
        return form.read(body)
    except (KeyError, TypeError):
        raise InvalidParameter(f"text must hold the parameters of {kind}; got others.") from None

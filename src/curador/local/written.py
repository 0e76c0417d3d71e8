"""Protocols as text: what a collector's owner keeps beside the reports, and `curador collect` reads."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.errors import InvalidParameter
from curador.local.direct import Direct
from curador.local.hadamard import Hadamard
from curador.local.hashing import Hashing
from curador.local.hitters import HeavyHitters
from curador.local.means import DuchiMean, HybridMean, LaplaceMean, PiecewiseMean
from curador.local.rappor import Rappor
from curador.local.subset import Subset
from curador.local.unary import Unary

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.local.protocol import Reporting

VERSION = 1

_FREQUENCIES = ("domain", "epsilon")
_MEANS = ("lower", "upper", "epsilon", "steps")
_PROTOCOLS: dict[str, tuple[Callable[..., Reporting], tuple[str, ...]]] = {
    "Direct": (Direct, _FREQUENCIES),
    "Hadamard": (Hadamard, _FREQUENCIES),
    "Hashing": (Hashing, _FREQUENCIES),
    "Subset": (Subset, _FREQUENCIES),
    "Unary": (Unary, (*_FREQUENCIES, "kind")),
    "Rappor": (Rappor, ("domain", "epsilon_forever", "epsilon_once", "values")),
    "LaplaceMean": (LaplaceMean, _MEANS),
    "DuchiMean": (DuchiMean, _MEANS),
    "PiecewiseMean": (PiecewiseMean, _MEANS),
    "HybridMean": (HybridMean, _MEANS),
    "HeavyHitters": (
        HeavyHitters,
        ("epsilon", "bits", "length", "start", "step", "hashes", "most", "false_values", "salt"),
    ),
}


def to_json(protocol: Reporting) -> str:
    """Return the protocol as text. Public: no person's value is in it."""
    kind = type(protocol).__name__
    if kind not in _PROTOCOLS or type(protocol) is not _PROTOCOLS[kind][0]:
        raise InvalidParameter(f"protocol must be one of {', '.join(_PROTOCOLS)}; got a {kind}.")
    body = {name: value for name in _PROTOCOLS[kind][1] if (value := _plain(protocol, name)) is not None}
    try:
        return json.dumps({"curador": "local protocol", "version": VERSION, "protocol": kind, **body})
    except TypeError:
        raise InvalidParameter("protocol must have a domain of texts, numbers and truth values; got another.") from None


def _plain(protocol: Any, name: str) -> Any:
    if name == "domain":
        return protocol.size if protocol.domain.labels is None else list(protocol.domain.labels)
    if name in {"bits", "length"}:
        return None if protocol.text is (name == "bits") else protocol.bits // (8 if protocol.text else 1)
    value = getattr(protocol, "epsilon" if name == "epsilon_once" else name)
    return str(value) if isinstance(value, Fraction) else value


def from_json(text: str) -> Any:
    """Return the protocol that a text describes. Anything unknown is refused."""
    try:
        body = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise InvalidParameter("text must be what to_json wrote of a protocol; got something else.") from None
    known = isinstance(body, dict) and body.pop("curador", None) == "local protocol" and body.pop("version", None) == VERSION
    kind = body.pop("protocol", None) if known else None
    if not isinstance(kind, str) or kind not in _PROTOCOLS:
        raise InvalidParameter(f"text must be a protocol of version {VERSION} and a known name; got another.")
    make, names = _PROTOCOLS[kind]
    if not set(body) <= set(names):
        raise InvalidParameter(f"text must hold the parameters of {kind}; got others.")
    try:
        domain = (body.pop("domain"),) if "domain" in names else ()
        return make(*domain, **body)
    except (KeyError, TypeError):
        raise InvalidParameter(f"text must hold the parameters of {kind}; got others.") from None

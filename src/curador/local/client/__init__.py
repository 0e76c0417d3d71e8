"""The part of local privacy that runs on a person's own device.

It needs nothing but Python's standard library: the folder can be copied into any program, under any name. `load` makes a
client from the text that a protocol's `client().to_json()` wrote.
"""

from .base import Client
from .direct import DirectClient
from .duchi import DuchiMeanClient
from .hadamard import HadamardClient
from .hashing import HashingClient
from .laplace import LaplaceMeanClient
from .memo import RapporClient
from .piecewise import HybridMeanClient, PiecewiseMeanClient
from .prefix import PrefixClient
from .refusal import Refusal
from .subset import SubsetClient
from .unary import UnaryClient

__all__ = [
    "Client",
    "DirectClient",
    "DuchiMeanClient",
    "HadamardClient",
    "HashingClient",
    "HybridMeanClient",
    "LaplaceMeanClient",
    "PiecewiseMeanClient",
    "PrefixClient",
    "RapporClient",
    "Refusal",
    "SubsetClient",
    "UnaryClient",
    "load",
]

CLIENTS: dict[str, type[Client]] = {
    client.kind: client
    for client in (
        DirectClient,
        DuchiMeanClient,
        HadamardClient,
        HashingClient,
        HybridMeanClient,
        LaplaceMeanClient,
        PiecewiseMeanClient,
        PrefixClient,
        RapporClient,
        SubsetClient,
        UnaryClient,
    )
}


def load(text: str) -> Client:
    """Return the client that a text describes. Anything unknown is refused, a larger ε than 64 too."""
    import json

    from .base import VERSION

    try:
        body = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise Refusal("text must be what a client's to_json wrote; got something else.") from None
    known = isinstance(body, dict) and body.pop("curador", None) == "local client" and body.pop("version", None) == VERSION
    kind = body.pop("kind", None) if known else None
    if not isinstance(kind, str) or kind not in CLIENTS:
        raise Refusal(f"text must be a client of version {VERSION} and a known kind; got another.")
    try:
        return CLIENTS[kind](**body)
    except TypeError:
        raise Refusal(f"text must hold the parameters of a {kind} client; got others.") from None

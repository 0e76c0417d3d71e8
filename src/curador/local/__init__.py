"""Local privacy: people randomize their own values; the collector is never trusted.

Names are loaded when they are first used, so that `curador.local.client` runs where there is no NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curador.local import client
    from curador.local.collector import Collector
    from curador.local.direct import Direct
    from curador.local.estimate import Estimate, MeanEstimate

_HOME = {
    "Collector": "curador.local.collector",
    "Direct": "curador.local.direct",
    "Estimate": "curador.local.estimate",
    "MeanEstimate": "curador.local.estimate",
}

__all__ = ["Collector", "Direct", "Estimate", "MeanEstimate", "client"]


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    if name == "client":
        value: object = import_module("curador.local.client")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'curador.local' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names before they are loaded."""
    return sorted(__all__)

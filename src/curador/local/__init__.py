"""Local privacy: people randomize their own values; the collector is never trusted.

Names are loaded when they are first used, so that `curador.local.client` runs where there is no NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curador.local import client
    from curador.local.choose import frequencies
    from curador.local.collector import Collector
    from curador.local.direct import Direct
    from curador.local.estimate import Estimate, MeanEstimate
    from curador.local.files import batches, from_json, to_json, write_reports
    from curador.local.hadamard import Hadamard
    from curador.local.hashing import Hashing
    from curador.local.hitters import HeavyHitters
    from curador.local.means import DuchiMean, HybridMean, LaplaceMean, PiecewiseMean, mean
    from curador.local.rappor import Rappor
    from curador.local.search import Found
    from curador.local.shuffle import shuffled
    from curador.local.subset import Subset
    from curador.local.unary import Unary

_HOME = {
    "Collector": "curador.local.collector",
    "Direct": "curador.local.direct",
    "DuchiMean": "curador.local.means",
    "Estimate": "curador.local.estimate",
    "Found": "curador.local.search",
    "Hadamard": "curador.local.hadamard",
    "Hashing": "curador.local.hashing",
    "HeavyHitters": "curador.local.hitters",
    "HybridMean": "curador.local.means",
    "LaplaceMean": "curador.local.means",
    "MeanEstimate": "curador.local.estimate",
    "PiecewiseMean": "curador.local.means",
    "Rappor": "curador.local.rappor",
    "Subset": "curador.local.subset",
    "Unary": "curador.local.unary",
    "batches": "curador.local.files",
    "frequencies": "curador.local.choose",
    "from_json": "curador.local.files",
    "mean": "curador.local.means",
    "shuffled": "curador.local.shuffle",
    "to_json": "curador.local.files",
    "write_reports": "curador.local.files",
}

__all__ = [
    "Collector",
    "Direct",
    "DuchiMean",
    "Estimate",
    "Found",
    "Hadamard",
    "Hashing",
    "HeavyHitters",
    "HybridMean",
    "LaplaceMean",
    "MeanEstimate",
    "PiecewiseMean",
    "Rappor",
    "Subset",
    "Unary",
    "batches",
    "client",
    "frequencies",
    "from_json",
    "mean",
    "shuffled",
    "to_json",
    "write_reports",
]


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

"""curador: a differential-privacy curator.

The public surface. Names are loaded when they are first used, so that `import curador` costs no more than numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curador import audit, learn, local, plots, testing
    from curador.client.remote import RemoteAsker, connect
    from curador.curator.answer import Answer
    from curador.curator.curator import Curator
    from curador.curator.curator import open_study as open  # noqa: A004 -- cu.open; this module opens no file
    from curador.curator.sandbox import Sandbox
    from curador.curator.sandbox import open_sandbox as sandbox
    from curador.errors import (
        BudgetExceeded,
        CuradorError,
        Failed,
        InvalidParameter,
        InvalidQuery,
        InvalidStudy,
        LedgerBusy,
        NotAllowed,
        NotPrivate,
        NumericalFailure,
        Refused,
        UnreadableData,
    )
    from curador.mechanisms import (
        AboveThreshold,
        DiscreteGaussian,
        DiscreteLaplace,
        Exponential,
        Gaussian,
        GaussianKeys,
        Laplace,
        LaplaceKeys,
        NoisyMax,
        OptimalKeys,
        PermuteAndFlip,
        Quantile,
        RandomizedResponse,
        Selection,
        Staircase,
        TruncatedLaplace,
        clipping,
    )
    from curador.numerics.rounding import Interval
    from curador.privacy import compose as composition
    from curador.privacy import convert, divergence, filters, losses, odds, sensitivity
    from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, Adjacency
    from curador.privacy.filters import ConcentratedFilter, PureFilter, RenyiFilter
    from curador.privacy.loss import Loss, compose
    from curador.privacy.losses import Approx, BoundedRange, Concentrated, Finite, KeySelection, Pure, loss_from_record
    from curador.privacy.sensitivity import Norm, Sensitivity
    from curador.study.model import Budget, Caps, Study

__version__ = "0.1.0"

_PLACES = {
    "curador.client.remote": ("RemoteAsker", "connect"),
    "curador.curator.answer": ("Answer",),
    "curador.curator.curator": ("Curator",),
    "curador.curator.sandbox": ("Sandbox",),
    "curador.errors": (
        "BudgetExceeded",
        "CuradorError",
        "Failed",
        "InvalidParameter",
        "InvalidQuery",
        "InvalidStudy",
        "LedgerBusy",
        "NotAllowed",
        "NotPrivate",
        "NumericalFailure",
        "Refused",
        "UnreadableData",
    ),
    "curador.mechanisms": (
        "AboveThreshold",
        "DiscreteGaussian",
        "DiscreteLaplace",
        "Exponential",
        "Gaussian",
        "GaussianKeys",
        "Laplace",
        "LaplaceKeys",
        "NoisyMax",
        "OptimalKeys",
        "PermuteAndFlip",
        "Quantile",
        "RandomizedResponse",
        "Selection",
        "Staircase",
        "TruncatedLaplace",
    ),
    "curador.numerics.rounding": ("Interval",),
    "curador.privacy.adjacency": ("ADD_OR_REMOVE_ONE", "REPLACE_ONE", "Adjacency"),
    "curador.privacy.filters": ("ConcentratedFilter", "PureFilter", "RenyiFilter"),
    "curador.privacy.losses": (
        "Approx",
        "BoundedRange",
        "Concentrated",
        "Finite",
        "KeySelection",
        "Loss",
        "Pure",
        "compose",
        "loss_from_record",
    ),
    "curador.privacy.sensitivity": ("Norm", "Sensitivity"),
    "curador.study.model": ("Budget", "Caps", "Study"),
}
_RENAMED = {"open": ("curador.curator.curator", "open_study"), "sandbox": ("curador.curator.sandbox", "open_sandbox")}
_MODULES = {
    "audit": "curador.audit",
    "clipping": "curador.mechanisms.clipping",
    "composition": "curador.privacy.compose",
    "convert": "curador.privacy.convert",
    "divergence": "curador.privacy.divergence",
    "filters": "curador.privacy.filters",
    "learn": "curador.learn",
    "local": "curador.local",
    "losses": "curador.privacy.losses",
    "odds": "curador.privacy.odds",
    "plots": "curador.plots",
    "sensitivity": "curador.privacy.sensitivity",
    "testing": "curador.testing",
}
_HOME = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "ADD_OR_REMOVE_ONE",
    "REPLACE_ONE",
    "AboveThreshold",
    "Adjacency",
    "Answer",
    "Approx",
    "BoundedRange",
    "Budget",
    "BudgetExceeded",
    "Caps",
    "Concentrated",
    "ConcentratedFilter",
    "CuradorError",
    "Curator",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Failed",
    "Finite",
    "Gaussian",
    "GaussianKeys",
    "Interval",
    "InvalidParameter",
    "InvalidQuery",
    "InvalidStudy",
    "KeySelection",
    "Laplace",
    "LaplaceKeys",
    "LedgerBusy",
    "Loss",
    "NoisyMax",
    "Norm",
    "NotAllowed",
    "NotPrivate",
    "NumericalFailure",
    "OptimalKeys",
    "PermuteAndFlip",
    "Pure",
    "PureFilter",
    "Quantile",
    "RandomizedResponse",
    "Refused",
    "RemoteAsker",
    "RenyiFilter",
    "Sandbox",
    "Selection",
    "Sensitivity",
    "Staircase",
    "Study",
    "TruncatedLaplace",
    "UnreadableData",
    "audit",
    "clipping",
    "compose",
    "composition",
    "connect",
    "convert",
    "divergence",
    "filters",
    "learn",
    "local",
    "loss_from_record",
    "losses",
    "odds",
    "open",
    "plots",
    "sandbox",
    "sensitivity",
    "testing",
]


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    if name in _MODULES:
        value: object = import_module(_MODULES[name])
    elif name in _RENAMED:
        place, own = _RENAMED[name]
        value = getattr(import_module(place), own)
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'curador' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names before they are loaded."""
    return sorted([*__all__, "__version__"])

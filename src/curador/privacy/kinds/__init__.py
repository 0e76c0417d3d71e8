"""The kinds of loss records, a family a file: the frozen class, what is always so for it (its traits), and its rules.

Everything a reading has to know of a record stands beside its class, and no reading imports a kind: the kinds load the
readings, so that whoever has a record can ask it. Others get the classes from `privacy.losses`.
"""

from __future__ import annotations

import curador.privacy.account  # pyright: ignore[reportUnusedImport]
import curador.privacy.renyi  # pyright: ignore[reportUnusedImport]
import curador.privacy.tradeoff  # noqa: F401  # pyright: ignore[reportUnusedImport] -- each answers some questions of a loss
from curador.privacy.kinds.derived import Group, Subsampled
from curador.privacy.kinds.discrete_gaussian import DiscreteGaussianLoss, DiscreteGaussianVectorLoss, KeySelection
from curador.privacy.kinds.finite import Finite
from curador.privacy.kinds.gaussian import GaussianLoss
from curador.privacy.kinds.laplace import DiscreteLaplaceLoss, LaplaceLoss
from curador.privacy.kinds.promises import Approx, BoundedRange, Concentrated, Pure
from curador.privacy.kinds.response import RandomizedResponseLoss
from curador.privacy.kinds.shuffled import MOST_REPORTS, Shuffled

__all__ = [
    "MOST_REPORTS",
    "Approx",
    "BoundedRange",
    "Concentrated",
    "DiscreteGaussianLoss",
    "DiscreteGaussianVectorLoss",
    "DiscreteLaplaceLoss",
    "Finite",
    "GaussianLoss",
    "Group",
    "KeySelection",
    "LaplaceLoss",
    "Pure",
    "RandomizedResponseLoss",
    "Shuffled",
    "Subsampled",
]

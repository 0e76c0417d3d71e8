"""Private learning: estimators in the shape of scikit-learn's, and what they are made of.

Names are loaded when they are asked for: `import curador.learn` alone loads nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curador.learn.estimators.kmeans import PrivateKMeans
    from curador.learn.estimators.linear import PrivateLinearRegression
    from curador.learn.estimators.logistic import PrivateLogisticRegression
    from curador.learn.estimators.nuclear import PrivateNuclearRegressor
    from curador.learn.estimators.pca import PrivatePCA
    from curador.learn.estimators.recommender import PrivateRecommender
    from curador.learn.model_file import load
    from curador.learn.ratings import read_movielens

WHERE = {
    "PrivateKMeans": "curador.learn.estimators.kmeans",
    "PrivateLinearRegression": "curador.learn.estimators.linear",
    "PrivateLogisticRegression": "curador.learn.estimators.logistic",
    "PrivateNuclearRegressor": "curador.learn.estimators.nuclear",
    "PrivatePCA": "curador.learn.estimators.pca",
    "PrivateRecommender": "curador.learn.estimators.recommender",
    "load": "curador.learn.model_file",
    "read_movielens": "curador.learn.ratings",
}

__all__ = [
    "PrivateKMeans",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateNuclearRegressor",
    "PrivatePCA",
    "PrivateRecommender",
    "load",
    "read_movielens",
]


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        return getattr(import_module(WHERE[name]), name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "sklearn":
            raise
        from curador.errors import InvalidParameter

        text = "scikit-learn must be installed for estimators; it is not."
        raise InvalidParameter(text, hint="install curador[learn].") from None

"""The names under which plans and their noise are stored: in canonical texts, in the keys of paid answers, in receipts.

A contract, as `query/wire.py`: the texts here are for ever, and a new attribute is written only where it is not what every
plan before it meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.mechanisms.gaussian import DiscreteGaussian
from curador.mechanisms.keys import GaussianKeys, LaplaceKeys
from curador.mechanisms.laplace import DiscreteLaplace
from curador.mechanisms.quantile import Quantile
from curador.plan.model import Cap, Contribution, Grid, KeyPlan, Measurement, Tally
from curador.plan.price import QuantileNoise
from curador.query.wire import written_node

if TYPE_CHECKING:
    from curador.query.wire import StoredForm


def written_part(value: object) -> StoredForm | None:
    """Return how a part of a priced plan is stored; None for what is none.

    Of a key its values are missing and of a measurement its tallies: both are sorted by who writes the whole.
    """
    match value:
        case Grid():
            return "Grid", {"exponent": value.exponent, "start": value.start, "steps": value.steps}
        case Tally():
            return "Tally", {
                "kind": value.kind,
                "argument": value.argument,
                "filter": value.filter,
                "grid": value.grid,
                "centre": value.centre,
                "shift": value.shift,
                "most": value.most,
            }
        case Cap():
            height = {} if value.height is None else {"height": value.height}  # questions that are not cut are older than it
            return "Cap", {"by": value.by, "rows": value.rows, "groups": value.groups, "in_group": value.in_group, **height}
        case Contribution():
            return "Contribution", {
                "rows": value.rows,
                "groups": value.groups,
                "in_group": value.in_group,
                "keyed": value.keyed,
            }
        case KeyPlan():
            return "KeyPlan", {"expression": value.expression, "type": value.type}
        case Measurement():
            return "Measurement", {
                "kind": value.kind,
                "l1": value.l1,
                "l2_squared": value.l2_squared,
                "q": value.q,
                "grid": value.grid,
                "unit_weight": value.unit_weight,
            }
        case _:
            return written_noise(value) or written_node(value)


def written_noise(value: object) -> StoredForm | None:
    """Return the name of a mechanism and its parameters, in the order of a receipt; None for what is none."""
    match value:
        case DiscreteLaplace():
            return "DiscreteLaplace", {"scale": value.scale, "sensitivity": value.sensitivity, "relation": value.adjacency}
        case DiscreteGaussian():
            return "DiscreteGaussian", {
                "sigma": value.sigma,
                "squared": value.squared,
                "relation": value.adjacency,
                "dimension": value.dimension,
            }
        case QuantileNoise():
            return "QuantileNoise", {"point": value.point, "low": value.low, "high": value.high}
        case Quantile():
            return "Quantile", {
                "q": value.q,
                "epsilon": value.epsilon,
                "lower": value.lower,
                "upper": value.upper,
                "adjacency": value.adjacency,
                "cells": value.cells,
                "shift": value.shift,
            }
        case GaussianKeys():
            return "GaussianKeys", {
                "sigma": value.sigma,
                "threshold": value.threshold,
                "keys": value.keys,
                "relation": value.adjacency,
            }
        case LaplaceKeys():
            return "LaplaceKeys", {
                "epsilon": value.epsilon,
                "threshold": value.threshold,
                "keys": value.keys,
                "relation": value.adjacency,
            }
        case _:
            return None

"""Golden values of the private oracles, recomputed by the library."""

import json
import math
from pathlib import Path

import pytest

from curador.learn.oracles import directions, oja

VALUES = json.loads((Path(__file__).parent / "oracles.json").read_text(encoding="utf-8"))


def by_concentration(p):
    """β Δ/√ρ of the ε and δ: from zCDP ρ' = 2 (β Δ)²/ρ, with ε = ρ' + 2 √(ρ' log(1/δ))."""
    log = -math.log(p["delta"])
    amount = (math.sqrt(log + p["eps"]) - math.sqrt(log)) ** 2
    found = math.sqrt(amount / 2)
    assert directions.thesis_rho(found, 1.0, 1.0) == pytest.approx(amount, rel=1e-14)
    return found


RECIPES = {
    "oja sigma Alg 3": lambda p: oja.thesis_sigma(p["eps"], p["delta"], p["T"]),
    "oja sigma with the sqrt restored": lambda p: oja.restored_sigma(p["eps"], p["delta"], p["T"]),
    "oja sigma exact Gaussian composition: sqrt(T)*sigma_analytic(eps,(T+1)delta)": lambda p: oja.composed_sigma(
        p["eps"], p["delta"], p["T"]
    ),
    "Bingham rank-one E[x^T A x]/lambda at beta lambda=(d-2)/4": lambda p: directions.alignment(p["d"], (p["d"] - 2) / 4),
    "zCDP of Bingham sampler 2 beta^2 Delta^2/rho": lambda p: directions.thesis_rho(p["beta"], p["Delta_op"], p["rho"]),
    "Bingham beta*Delta/sqrt(rho): Thm 3.1.2": lambda p: directions.thesis_concentration(
        p["eps"], p["delta"], change=1.0, curvature=1.0
    ),
    "Bingham beta*Delta/sqrt(rho): via zCDP (BS16 conversion)": by_concentration,
}


@pytest.mark.parametrize("row", VALUES, ids=lambda row: f"{row['name']} {row['parameters']}")
def test_golden_value(row):
    """The library reproduces the value within its tolerance."""
    assert RECIPES[row["name"]](row["parameters"]) == pytest.approx(float(row["value"]), rel=row["tolerance"])


def test_every_value_has_a_recipe():
    """No golden value is left untested and no recipe is dead."""
    assert {row["name"] for row in VALUES} == set(RECIPES)


def test_the_exact_composition_is_on_the_safe_side():
    """What is called enough noise is enough: not below the golden value."""
    for row in VALUES:
        if row["name"].startswith("oja sigma exact"):
            p = row["parameters"]
            assert oja.composed_sigma(p["eps"], p["delta"], p["T"]) >= float(row["value"]) * (1 - 2e-16)

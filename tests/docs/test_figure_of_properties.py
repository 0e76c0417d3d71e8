"""The table of properties: forty claims, each of which a wrong formula would overturn."""

import math
import sys

import property_checks as checks
import pytest
from properties import NOTIONS, TABLE, markdown, properties, property_table

from curador.errors import NumericalFailure


@pytest.mark.slow
def test_every_claim_is_checked():
    """Eight properties of five notions; three do not hold, and say why."""
    rows = property_table()
    cells = [row.cells[notion] for row in rows for notion in NOTIONS]

    assert len(cells) == 40
    assert sum(not cell.holds for cell in cells) == 3
    assert all(cell.claim and cell.checked for cell in cells)
    assert {row.name for row in rows} == set(TABLE)


@pytest.mark.slow
def test_the_contrary_of_a_claim_is_not_accepted(monkeypatch):
    """Each check decides: the table refuses to say the opposite of any of them."""
    for name, claims in TABLE.items():
        for place, (holds, claim, check) in enumerate(claims):
            wrong = (*claims[:place], (not holds, claim, check), *claims[place + 1 :])
            monkeypatch.setattr(sys.modules["properties"], "TABLE", {name: wrong})
            with pytest.raises(NumericalFailure, match="computed"):
                property_table()


def constant(value):
    """A formula that has forgotten its parameters."""
    return lambda *_, **__: value


WRONG = [
    ("compose.group_epsilon_delta", lambda _, delta, size: (0, size * math.e**size * float(delta)), checks.group_approximate),
    ("compose.group_rho", lambda _, size: size * 0.5, checks.group_concentrated),
    ("compose.group_renyi", lambda alpha, zeta, **_: (alpha / 2, 1.5 * zeta), checks.group_renyi),
    ("compose.subsample_epsilon_delta", constant((0.05, 0)), checks.sampled_pure),
    ("compose.laplace_delta", constant(0.2), checks.laplace_approximate),
    ("convert.pure_to_rho", lambda epsilon: float(epsilon) ** 2 / 8, checks.together_concentrated),
    ("convert.rho_to_epsilon", constant(3.0), checks.convert_concentrated),
    ("convert.renyi_to_epsilon", lambda _, zeta, **__: float(zeta) / 2, checks.convert_renyi),
    ("odds.gaussian_true_positive", lambda fpr, **_: fpr * 1.1, checks.post_gaussian),
    ("odds.tradeoff_gaussian", lambda fpr, **_: 1.2 * (1 - fpr), checks.response_gaussian),
]


@pytest.mark.parametrize(("formula", "bug", "check"), WRONG, ids=[name for name, _, _ in WRONG])
def test_a_wrong_formula_is_noticed(formula, bug, check, monkeypatch):
    """The printed k e^k δ of a textbook, ρ that grows with k instead of k², and others."""
    assert check()[0]
    monkeypatch.setattr(f"property_checks.{formula}", bug)

    assert not check()[0]


@pytest.mark.slow
def test_the_figure_and_the_markdown_say_the_same():
    """A mark and a claim in each cell; what was checked stands below the table."""
    rows = property_table()
    text = markdown(rows)
    shown = {one.get_text() for one in properties(rows).axes[0].texts}
    for row in rows:
        for notion in NOTIONS:
            cell = row.cells[notion]

            assert f"{'✓' if cell.holds else '✗'}  {cell.claim}" in shown
            assert f"{'✓' if cell.holds else '✗'} {cell.claim}" in text
            assert f"- {row.name}, {notion}: {cell.checked}" in text

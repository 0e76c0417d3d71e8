"""The figure of a budget adds up as the ledger does."""

from fractions import Fraction

import pytest

from curador.errors import InvalidParameter
from curador.ledger.amounts import Amounts
from curador.plots.budget import budget, spending


def line(kind, ident, who=None, refers=None, **cost):
    return {"kind": kind, "id": ident, "analyst": who, "refers": refers, "cost": cost}


LOG = [
    line("created", "0"),
    line("reserved", "1", rho="1/10"),
    line("committed", "2", refers="1"),
    line("reserved", "3", "ana", rho="1/5", delta="1/1000"),
    line("voided", "4", "ana", refers="3"),
    line("reserved", "5", "ana", rho="1/20"),
    line("failed", "6", "ana", refers="5"),
]


def test_sums_are_exact_and_what_was_given_back_is_gone():
    """A step for each charge and each return; failures keep their charge."""
    found = spending(LOG)

    assert found.askers == ("owner", "ana")
    assert found.sums["rho"][0] == (0, Fraction(1, 10), Fraction(1, 10), Fraction(1, 10), Fraction(1, 10))
    assert found.sums["rho"][1] == (0, 0, Fraction(1, 5), 0, Fraction(1, 20))
    assert found.sums["delta"][1] == (0, 0, Fraction(1, 1000), 0, 0)
    assert (found.charges, found.returned) == (3, 1)


def test_the_figure_shows_them_below_the_limit():
    """The top of the stack is what everybody had spent; the dashed line is the limit."""
    drawn = budget(LOG, limit=Amounts(rho=Fraction(1, 2), delta=Fraction(1, 100)))
    above, below = drawn.axes

    assert above.get_lines()[1].get_ydata().tolist() == pytest.approx([0, 0.1, 0.3, 0.1, 0.15])
    assert below.get_lines()[1].get_ydata().max() == pytest.approx(0.001)
    assert {one.get_ydata()[0] for one in above.get_lines() if one.get_label().startswith("limit")} == {0.5}
    assert above.get_title(loc="left") == "3 charges, 1 given back, 30 % of the limit spent"


def test_a_pure_budget_has_one_panel():
    """ε and nothing else; without a limit nothing is said of it."""
    drawn = budget([line("reserved", "1", "ben", epsilon="1/3")])

    assert [axes.get_ylabel() for axes in drawn.axes] == ["ε spent"]
    assert drawn.axes[0].get_title(loc="left") == "1 charge"


@pytest.mark.parametrize("wrong", [3, [1], [{"kind": "reserved"}], [line("reserved", "1", rho="x")], "ab"])
def test_what_is_no_log_is_refused(wrong):
    with pytest.raises(InvalidParameter, match="source must be a curator, or the lines"):
        budget(wrong)


def test_a_log_without_a_charge_is_refused():
    with pytest.raises(InvalidParameter, match="a charge in it"):
        budget([line("created", "0")])

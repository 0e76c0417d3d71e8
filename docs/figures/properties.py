"""What each notion of privacy promises, claim by claim, each checked by computing when the table is made.

The table with which [FL23, Cuadro 5.1] closes its comparison of ε-DP, (ε, δ)-DP and Rényi privacy, with zCDP and Gaussian
privacy beside them. Theorems are proved elsewhere (docs/explanation, Claim lines of `curador.privacy`); a check computes both
sides on mechanisms where the answer is known by other means, and would fail for a wrong formula. Where a notion lacks the
property the check is a counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import property_checks as checks
from property_checks import Outcome

from curador.errors import NumericalFailure
from curador.plots.style import DARK, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTIONS: Final = ("ε-DP", "(ε, δ)-DP", "Rényi (α, ζ)", "zCDP ρ", "GDP μ")
Claimed: TypeAlias = tuple[bool, str, Callable[[], Outcome]]
"""Whether a notion has the property, the claim in symbols, the check."""

TABLE: Final[Mapping[str, tuple[Claimed, Claimed, Claimed, Claimed, Claimed]]] = {
    "post-processing": (
        (True, "never more", checks.post_pure),
        (True, "never more", checks.post_approximate),
        (True, "never more", checks.post_renyi),
        (True, "never more", checks.post_concentrated),
        (True, "never more", checks.post_gaussian),
    ),
    "adaptive composition": (
        (True, "Σε", checks.together_pure),
        (True, "Σε, Σδ", checks.together_approximate),
        (True, "Σζ at each α", checks.together_renyi),
        (True, "Σρ", checks.together_concentrated),
        (True, "√Σμ²", checks.together_gaussian),
    ),
    "groups of k": (
        (True, "kε", checks.group_pure),
        (True, "kε, δ(e^kε − 1)/(e^ε − 1)", checks.group_approximate),
        (True, "(α/2, 3ζ) for k = 2", checks.group_renyi),
        (True, "k²ρ", checks.group_concentrated),
        (True, "kμ", checks.group_gaussian),
    ),
    "a secret sample q": (
        (True, "log(1 + q(e^ε − 1))", checks.sampled_pure),
        (True, "the same, and qδ", checks.sampled_approximate),
        (True, "smaller at each α", checks.sampled_renyi),
        (False, "ρ stays", checks.sampled_concentrated),
        (False, "μ stays", checks.sampled_gaussian),
    ),
    "gives (ε, δ)": (
        (True, "log(e^ε − δ(1 + e^ε))", checks.convert_pure),
        (True, "itself", checks.convert_approximate),
        (True, "ζ + log(1/δ)/(α − 1)", checks.convert_renyi),
        (True, "ρ + 2√(ρ log 1/δ)", checks.convert_concentrated),
        (True, "exactly, δ for every ε", checks.convert_gaussian),
    ),
    "randomized response p": (
        (True, "log p/(1 − p)", checks.response_pure),
        (True, "(p − e^ε(1 − p))₊", checks.response_approximate),
        (True, "closed form", checks.response_renyi),
        (True, "ε tanh ε/2", checks.response_concentrated),
        (True, "−2Φ⁻¹(1 − p)", checks.response_gaussian),
    ),
    "Laplace noise b": (
        (True, "1/b", checks.laplace_pure),
        (True, "1 − e^((ε − 1/b)/2)", checks.laplace_approximate),
        (True, "closed form", checks.laplace_renyi),
        (True, "1/b − 1 + e^(−1/b)", checks.laplace_concentrated),
        (True, "−2Φ⁻¹(1/(1 + e^(1/b)))", checks.laplace_gaussian),
    ),
    "Gaussian noise σ": (
        (False, "no ε at all", checks.gaussian_pure),
        (True, "exactly, δ for every ε", checks.gaussian_approximate),
        (True, "α/2σ²", checks.gaussian_renyi),
        (True, "1/2σ²", checks.gaussian_concentrated),
        (True, "1/σ", checks.gaussian_gaussian),
    ),
}
"""What is claimed, property by property, in the order of NOTIONS. Sensitivity is 1."""

_YES, _NO = "#DCEBF5", "#F6DFD0"
_WIDTHS = (1.75, 1.7, 1.95, 1.65, 1.6, 1.85)


@dataclass(frozen=True, slots=True)
class Cell:
    """One claim: whether the notion has the property, what it says, and what was computed to check it."""

    holds: bool
    claim: str
    checked: str


@dataclass(frozen=True, slots=True)
class Row:
    """A property, and what each notion says of it."""

    name: str
    cells: Mapping[str, Cell]


def property_table() -> tuple[Row, ...]:
    """Return the table; every cell was checked while it was made, and a check that disagrees raises NumericalFailure."""
    rows: list[Row] = []
    for name, claims in TABLE.items():
        cells = {notion: _checked(name, notion, claimed) for notion, claimed in zip(NOTIONS, claims, strict=True)}
        rows.append(Row(name, cells))
    return tuple(rows)


def _checked(name: str, notion: str, claimed: Claimed) -> Cell:
    holds, claim, check = claimed
    found, words = check()
    if found is not holds:
        raise NumericalFailure(f"{name} under {notion} must {'hold' if holds else 'fail'} as {claim!r}; computed: {words}.")
    return Cell(holds, claim, words)


def markdown(rows: Sequence[Row] | None = None) -> str:
    """Return the table as Markdown, what was checked in a list below it."""
    shown = property_table() if rows is None else rows
    lines = ["| | " + " | ".join(NOTIONS) + " |", "|---" * (len(NOTIONS) + 1) + "|"]
    for row in shown:
        marks = (f"{'✓' if row.cells[one].holds else '✗'} {row.cells[one].claim}" for one in NOTIONS)
        lines.append(f"| **{row.name}** | " + " | ".join(marks) + " |")
    notes = [f"- {row.name}, {one}: {row.cells[one].checked}" for row in shown for one in NOTIONS]
    return "\n".join([*lines, "", *notes, ""])


def properties(rows: Sequence[Row] | None = None) -> Figure:
    """Return the table as a figure: a mark and the claim in each cell; all were checked while it was drawn."""
    from matplotlib.figure import Figure

    shown = property_table() if rows is None else rows
    with style():
        drawn = Figure(figsize=(sum(_WIDTHS), 0.42 * (len(shown) + 2)), layout="constrained")
        axes = drawn.subplots()
        axes.set_axis_off()
        axes.set_xlim(0.0, sum(_WIDTHS))
        axes.set_ylim(len(shown) + 0.05, -1.0)
        for place, notion in enumerate(NOTIONS, start=1):
            axes.text(sum(_WIDTHS[:place]) + 0.08, -0.5, notion, va="center", fontsize=9.5, fontweight="bold", color=DARK)
        for height, row in enumerate(shown):
            axes.text(0.0, height + 0.5, row.name, va="center", fontsize=9, color=DARK)
            for place, notion in enumerate(NOTIONS, start=1):
                _cell(axes, place, height, row.cells[notion])
        many = len(shown) * len(NOTIONS)
        axes.set_title(f"What each notion promises: {many} claims, each checked while this was drawn", fontsize=10)
    return drawn


def _cell(axes: Axes, place: int, height: int, cell: Cell) -> None:
    from matplotlib.patches import Rectangle

    left, wide = sum(_WIDTHS[:place]), _WIDTHS[place]
    colour, hatch = (_YES, "") if cell.holds else (_NO, "////")
    axes.add_patch(Rectangle((left, height), wide, 1.0, facecolor=colour, edgecolor="white", hatch=hatch, linewidth=1.5))
    mark = "✓" if cell.holds else "✗"
    box = None if cell.holds else {"facecolor": _NO, "edgecolor": "none", "pad": 1.2}
    axes.text(left + 0.08, height + 0.5, f"{mark}  {cell.claim}", va="center", fontsize=8, color=DARK, bbox=box)

"""Every figure by name, and what it is drawn of: what `curador plot` shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from curador.errors import InvalidParameter
from curador.text import nearest_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Takes = Literal["nothing", "losses", "log", "values"]


@dataclass(frozen=True, slots=True)
class CatalogueFigure:
    """A figure of the catalogue.

    description  one line: what it shows
    function     which function of `curador.plots` draws it, "module:name"
    takes        what it is drawn of: of nothing but its settings, of losses (or else an example of them), of the log of a
                 study, or of values that only Python has
    """

    name: str
    description: str
    function: str
    takes: Takes = "nothing"

    @property
    def alone(self) -> bool:
        """Whether it can be drawn where nothing is given."""
        return self.takes in {"nothing", "losses"}

    @property
    def call(self) -> str:
        """How Python is asked for it: the function with what it must be given."""
        given = (
            parameter.name
            for parameter in signature(_load_function(self.function)).parameters.values()
            if parameter.default is Parameter.empty
        )
        return f"cu.plots.{self.function.partition(':')[2]}({', '.join(given)})"

    def draw(self, *given: Any, **options: Any) -> Figure:
        """Return the figure of what is given."""
        return _load_function(self.function)(*given, **options)


def _load_function(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    return getattr(import_module(f"curador.plots.{module}"), name)


_FIGURES: Final = (
    CatalogueFigure("law", "A mechanism's law in two neighbouring worlds, and the evidence", "law:law", "values"),
    CatalogueFigure(
        "compositions", "ε of many releases by every accounting, against their number", "losses:compositions", "losses"
    ),
    CatalogueFigure(
        "composed-deltas", "ε of many releases by every accounting, against δ", "losses:composed_deltas", "losses"
    ),
    CatalogueFigure("tradeoffs", "The best that an adversary can do, by loss", "losses:tradeoffs", "losses"),
    CatalogueFigure("epsilon-delta", "ε against δ: certified band and readings", "losses:epsilon_delta", "losses"),
    CatalogueFigure("game", "The adversary's game played: ROC against the proved bound", "game:game", "values"),
    CatalogueFigure("noise", "The 95 % error bar by ε, for every kind of noise", "mechanisms:noise_widths"),
    CatalogueFigure("keys", "How many people a key needs to be shown", "mechanisms:key_curves"),
    CatalogueFigure("local-errors", "Local privacy: standard errors by protocol and domain", "local:local_errors"),
    CatalogueFigure("shuffle", "What shuffling many local reports gains", "local:shuffle"),
    CatalogueFigure("budget", "What was spent, charge by charge and by whom", "budget:budget", "log"),
    CatalogueFigure("convergence", "A private fit, step by step", "learning:convergence", "values"),
    CatalogueFigure("spectrum", "Private components against the noise", "learning:spectrum", "values"),
    CatalogueFigure("lost-variance", "What ε buys of a subspace", "learning:lost_variance", "values"),
)

CATALOGUE: Final[Mapping[str, CatalogueFigure]] = MappingProxyType({entry.name: entry for entry in _FIGURES})
"""Every figure by name."""

NAMES: Final[tuple[str, ...]] = tuple(CATALOGUE)


def figure_named(name: str) -> CatalogueFigure:
    """Return the entry of this name; another name is refused with the nearest one."""
    found = CATALOGUE.get(name)
    if found is None:
        near = nearest_names(name, NAMES)
        hint = f"did you mean {near[0]}?" if near else "curador plot lists them"
        raise InvalidParameter.must_be("name", "that of a figure", name, hint)
    return found

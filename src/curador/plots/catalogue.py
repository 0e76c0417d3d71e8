"""Every figure by name, each with something to draw where nothing is given: what `curador plot` shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from curador.errors import InvalidParameter, sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Takes = Literal["nothing", "losses", "log"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A figure of the catalogue.

    description  one line: what it shows
    function     which function of `curador.plots` draws it, "module:name"
    takes        what it can be given: losses, the log of a study, or nothing; all can be drawn without
    example      "module:name" of what makes its arguments where it cannot be drawn without any
    """

    name: str
    description: str
    function: str
    takes: Takes = "nothing"
    example: str | None = None

    def draw(self, *given: Any, **options: Any) -> Figure:
        """Return the figure, of what is given or else of an example."""
        make: Callable[..., Figure] = _found(self.function)
        if not given and not options and self.example is not None:
            return _found(self.example)(make)
        return make(*given, **options)


def _found(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    return getattr(import_module(f"curador.plots.{module}"), name)


_ENTRIES: Final = (
    Entry("laplace-laws", "The Laplace density: alone, moved and widened", "laplace_laws:laplace_laws"),
    Entry(
        "law", "A mechanism's law in two neighbouring worlds, and the evidence", "law:law", example="catalogue:example_law"
    ),
    Entry("reachable-floats", "Which floats a noisy answer can be, in floats and on a grid", "laplace_bits:reachable_floats"),
    Entry("renyi-budgets", "Rényi budgets of randomized response, Laplace and Gaussian noise", "renyi_budgets:renyi_budgets"),
    Entry("properties", "What five notions of privacy promise, 40 claims checked", "properties:properties"),
    Entry(
        "compositions", "ε of many releases by every accounting, against their number", "compositions:compositions", "losses"
    ),
    Entry("composed-deltas", "ε of many releases by every accounting, against δ", "compositions:composed_deltas", "losses"),
    Entry("tradeoffs", "The best that an adversary can do, by loss", "tradeoffs:tradeoffs", "losses"),
    Entry("epsilon-delta", "ε against δ: certified band and readings", "epsilon_delta:epsilon_delta", "losses"),
    Entry("posteriors", "What an answer can make an adversary believe", "posteriors:posteriors"),
    Entry("game", "The adversary's game played: ROC against the proved bound", "game:game", example="catalogue:example_game"),
    Entry("noise", "The 95 % error bar by ε, for every kind of noise", "noise_widths:noise_widths"),
    Entry("keys", "How many people a key needs to be shown", "key_curves:key_curves"),
    Entry("local-errors", "Local privacy: standard errors by protocol and domain", "local_errors:local_errors"),
    Entry("shuffle", "What shuffling many local reports gains", "shuffle:shuffle"),
    Entry("budget", "What was spent, charge by charge and by whom", "budget:budget", "log", "catalogue:example_budget"),
    Entry("convergence", "A private fit, step by step", "learning:convergence", example="catalogue:example_convergence"),
    Entry("spectrum", "Private components against the noise", "learning:spectrum", example="catalogue:example_spectrum"),
    Entry("lost-variance", "What ε buys of a subspace", "learning:lost_variance", example="catalogue:example_lost_variance"),
    Entry("phases", "Directions drawn on a sphere find a spike, or not", "thesis:phases"),
    Entry("ceiling", "What directions find where the thesis' proof ends", "thesis:ceiling"),
    Entry("needs", "How many records a private Frank–Wolfe step needs", "thesis:needs"),
    Entry("factors", "How noise grows with the number of steps", "thesis:factors"),
    Entry("excess", "What private fits reach, by number of records", "thesis:excess", example="catalogue:example_excess"),
)

CATALOGUE: Final[Mapping[str, Entry]] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Every figure by name."""

NAMES: Final[tuple[str, ...]] = tuple(CATALOGUE)


def entry_of(name: str) -> Entry:
    """Return the entry of this name; another name is refused with the nearest one."""
    found = CATALOGUE.get(name)
    if found is None:
        import difflib

        near = difflib.get_close_matches(name, NAMES, 1)
        hint = f"did you mean {near[0]}?" if near else "curador plot lists them"
        raise InvalidParameter(sentence("name", "that of a figure", name, hint))
    return found


# ---- examples: each is handed the function that draws ---------------------------------------------------------------------


def example_law(make: Callable[..., Figure]) -> Figure:
    """Draw Laplace noise of scale 1 on 42 and on 43."""
    from curador.mechanisms.laplace import Laplace

    return make(Laplace(scale=1, sensitivity=1), 42, 43)


def example_game(make: Callable[..., Figure]) -> Figure:
    """Draw a game against Laplace noise."""
    from curador.plots.examples import played_game

    return make(played_game())


def example_budget(make: Callable[..., Figure]) -> Figure:
    """Draw the ledger of a study that three people have asked."""
    from curador.plots.example_ledger import example_log

    lines, limit = example_log()
    return make(lines, limit=limit)


def example_convergence(make: Callable[..., Figure]) -> Figure:
    """Draw a private fit to made-up records."""
    from curador.plots.examples import fitted_regressor

    return make(fitted_regressor())


def example_spectrum(make: Callable[..., Figure]) -> Figure:
    """Draw private components of made-up rows."""
    from curador.plots.examples import fitted_components

    return make(fitted_components())


def example_lost_variance(make: Callable[..., Figure]) -> Figure:
    """Draw what private components of made-up rows lose."""
    from curador.plots.examples import EPSILONS, lost_variances

    return make(EPSILONS, lost_variances())


def example_excess(make: Callable[..., Figure]) -> Figure:
    """Draw what a few private fits to made-up records reach."""
    from curador.plots.examples import excesses

    found, nothing = excesses()
    return make(found, trivial=nothing)

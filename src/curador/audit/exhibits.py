"""What a report shows beside the bounds: whole curves and games of a few mechanisms, and which tester catches which bug."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curador.audit.bounds import lower_bound
from curador.audit.game import Game, game
from curador.audit.hockey_stick import delta_bound
from curador.audit.mutants import Misfit, Mutant, Overclaim, Porous, mutants
from curador.audit.partition import part_scores
from curador.audit.renyi_tester import renyi_bound
from curador.audit.roster import ROSTER
from curador.audit.testers import Divergences, compare_divergences
from curador.numerics.exact import rational, whole
from curador.privacy.losses import Pure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.audit.run import Progress
    from curador.audit.trial import AuditedMechanism

SHOWN = ("Laplace", "Gaussian", "RandomizedResponse")
"""Mechanisms whose curves and games are shown, where they are under audit."""

ASKED = "1"
"""The ε that they are made for."""

FAMILY = 1e-4
"""Probability that exhibits of right mechanisms refute anything: half for the curves, half for the games."""

METHODS = ("bound of ε", "δ at ε", "Rényi", "bits", "law", "promise")
"""What may catch a seeded bug."""

_ORDERS = (2.0, 8.0)


@dataclass(frozen=True, slots=True, eq=False)
class Exhibit:
    """One mechanism: its claimed curves against samples, and the adversary's game where its releases can be attacked."""

    name: str
    mechanism: str
    profile: Divergences
    game: Game | None

    @property
    def violations(self) -> tuple[str, ...]:
        """A sentence for everything that is refuted."""
        played = self.game
        if played is None or not played.refuted:
            return self.profile.violations
        shown = f"{played.epsilon_lower:.4g} against {played.proved_epsilon:.4g} at δ = {played.delta:.3g}"
        return (*self.profile.violations, f"{self.name}: the adversary wins more than is proved, ε {shown}")


@dataclass(frozen=True, slots=True)
class Catch:
    """A seeded bug, and for each of METHODS whether it caught it; None: not tried on it."""

    name: str
    by: tuple[bool | None, ...]

    @property
    def caught(self) -> bool:
        """Whether anything did."""
        return any(self.by)


@dataclass(frozen=True, slots=True, eq=False)
class Exhibits:
    """Everything that a report shows beside the bounds."""

    shown: tuple[Exhibit, ...]
    catches: tuple[Catch, ...]
    family: float

    @property
    def violations(self) -> tuple[str, ...]:
        """A sentence for everything that is refuted."""
        return tuple(sentence for exhibit in self.shown for sentence in exhibit.violations)


def exhibits(
    samples: int = 200_000,
    entries: Sequence[AuditedMechanism] | None = None,
    *,
    bugs: Sequence[Mutant] | None = None,
    progress: Progress | None = None,
) -> Exhibits:
    """Return curves and games of the best known entries, or of the first one, and the catches of all seeded bugs.

    Claim   If every loss is true, anything is refuted with probability at most 1e-4 together. Seeded bugs are tried with the
            same share of it that a curve of a mechanism has.
    """
    size = whole(samples, "samples", least=1000)
    chosen = ROSTER if entries is None else tuple(entries)
    shown = [entry for entry in chosen if entry.name in SHOWN] or list(chosen[:1])
    seeded = mutants() if bugs is None else tuple(bugs)
    share = rational(FAMILY, "family") / (2 * max(1, len(shown)))
    total = len(shown) + len(seeded)
    found: list[Exhibit] = []
    catches: list[Catch] = []
    for done, item in enumerate([*shown, *seeded]):
        if progress is not None:
            progress(done, total, f"report: {item.name}")
        if done < len(shown):
            found.append(_exhibit(shown[done], size, 1 - share))
        else:
            catches.append(catch(seeded[done - len(shown)], size, float(share)))
    if progress is not None:
        progress(total, total, "report: done")
    return Exhibits(tuple(found), tuple(catches), FAMILY)


def _exhibit(entry: AuditedMechanism, size: int, confidence: Any) -> Exhibit:
    mechanism = entry.make(ASKED)
    worlds = entry.worlds(mechanism)
    one, other = (entry.draw(mechanism, world, size) for world in worlds)
    profile = compare_divergences(entry.name, mechanism.loss, one, other, confidence=confidence)
    attackable = entry.many == "release_many"
    played = game(mechanism, *worlds, samples=size, confidence=confidence) if attackable else None
    return Exhibit(entry.name, repr(mechanism), profile, played)


def catch(bug: Mutant, size: int, error: float) -> Catch:
    """Return which of METHODS catches a bug with `size` outputs of each world, each with the error probability given."""
    if isinstance(bug, (Overclaim, Porous)):
        one, other = bug.sample(0, size), bug.sample(1, size)
        bits = bug.caught(size, error) is not None if isinstance(bug, Porous) else None
        by = (
            lower_bound(one, other, delta=bug.delta, alpha=error).epsilon > bug.epsilon,
            *_curves(bug, one, other, error),
            bits,
        )
        return Catch(bug.name, (*by, None, None))
    words = bug.caught(size, error)
    if isinstance(bug, Misfit):
        return Catch(bug.name, (None, None, None, None, words is not None, None))
    found = words or ""  # an entry is tried until something speaks, so that the others may not have been asked
    law, promise = found.startswith("χ²"), found.startswith("asked")
    tried = None if found else False
    return Catch(
        bug.name, (True if found and not law and not promise else tried, None, None, None, law or tried, promise or tried)
    )


def _curves(bug: Overclaim | Porous, one: Any, other: Any, error: float) -> tuple[bool, bool | None]:
    """Whether δ at the claimed ε is above the claim; and a Rényi divergence, where the claim is pure."""
    scores = part_scores(one, other)
    above = delta_bound(scores, rational(bug.epsilon, "epsilon"), error).delta > bug.delta
    if bug.delta > 0:
        return above, None
    loss = Pure(epsilon=bug.epsilon)
    share = error / len(_ORDERS)
    return above, any(renyi_bound(scores, order, share).divergence > loss.renyi(order) for order in _ORDERS)

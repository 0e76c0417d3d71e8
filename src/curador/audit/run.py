"""The whole audit: every mechanism, its bits and its law, and every seeded bug, in one run with one error probability."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from curador.audit.bits import OFFSETS, ReleaseGrid, leaks
from curador.audit.mutants import Mutant, mutants
from curador.audit.roster import ROSTER
from curador.audit.trial import EPSILONS, AuditedMechanism, FitRow, TrialRow, delta_of, run_trial
from curador.errors import InvalidParameter, require
from curador.numerics.exact import whole

FAMILY = 1e-4
"""Probability that a run of right mechanisms raises any alarm at all: half for bounds, a quarter each for bits and laws."""

BITS_EPSILON = "1"
"""The ε at which bits are looked at."""

Progress = Callable[[int, int, str], None]
"""Called with what is done, what there is to do, and the name of what is next."""


@dataclass(frozen=True, slots=True)
class BitsRow:
    """Events of bits near a true value, and those that refute the claim."""

    mechanism: str
    value: int
    found: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether no event was found."""
        return not self.found


@dataclass(frozen=True, slots=True)
class MutantRow:
    """A seeded bug and what caught it; None: nothing did."""

    name: str
    by: str | None

    @property
    def caught(self) -> bool:
        """Whether anything did."""
        return self.by is not None


@dataclass(frozen=True, slots=True)
class Report:
    """What a run found."""

    samples: int
    family: float
    alpha: float
    rows: tuple[TrialRow, ...]
    bits: tuple[BitsRow, ...]
    fits: tuple[FitRow, ...]
    mutants: tuple[MutantRow, ...]

    @property
    def violations(self) -> tuple[str, ...]:
        """A sentence for every claim that was refuted."""
        return (
            *dict.fromkeys(r.violation for r in self.rows if r.violation is not None),
            *(f"{r.mechanism} near {r.value}: {'; '.join(r.found)}" for r in self.bits if not r.holds),
            *(f"{r.mechanism} at ε = {r.asked}: not the claimed law, p = {r.p:.1e}" for r in self.fits if not r.holds),
        )  # fmt: skip

    @property
    def survivors(self) -> tuple[str, ...]:
        """The seeded bugs that nothing caught."""
        return tuple(row.name for row in self.mutants if not row.caught)

    @property
    def powerless(self) -> tuple[str, ...]:
        """The mechanisms of which no row would flag even LIMIT times too much: nothing was learned about them."""
        able = {row.mechanism for row in self.rows if row.power}
        return tuple(dict.fromkeys(row.mechanism for row in self.rows if row.mechanism not in able))

    @property
    def tried(self) -> tuple[str, ...]:
        """The mechanisms that were looked at."""
        return tuple(dict.fromkeys(row.mechanism for row in self.rows))

    @property
    def untried(self) -> tuple[str, ...]:
        """The mechanisms of the roster that were not looked at: nothing is said of them."""
        return tuple(entry.name for entry in ROSTER if entry.name not in set(self.tried))

    @property
    def passed(self) -> bool:
        """Whether every claim tried stands, every seeded bug tried was caught, and all was looked at with power."""
        return bool(self.rows) and not self.violations and not self.survivors and not self.powerless

    def to_record(self) -> dict[str, Any]:
        """Plain values for a program."""
        return {
            **asdict(self),
            "violations": list(self.violations),
            "survivors": list(self.survivors),
            "powerless": list(self.powerless),
            "tried": list(self.tried),
            "untried": list(self.untried),
            "passed": self.passed,
        }


def audit(
    samples: int = 200_000,
    entries: Sequence[AuditedMechanism] | None = None,
    *,
    seeded: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Audit mechanisms with `samples` releases in each of two worlds; with seeded=True, the audit itself too.

    Claim   If every mechanism is as private as it claims and draws the law it claims, violations are reported with
            probability at most 1e-4 over the whole run (χ² for the laws is an approximation, to the tail in use; the rest is
            exact). That nothing is reported proves nothing beyond the detectable factors of the rows; a mechanism with none
            below 3 has not passed.
    """
    size = whole(samples, "samples", least=1000)
    chosen = ROSTER if entries is None else tuple(entries)
    names = [entry.name for entry in chosen]
    require(len(names) > 0, "entries", "at least one", "none", "an audit of nothing proves nothing")
    require(len(set(names)) == len(names), "entries", "of different names", ", ".join(names))
    bugs: tuple[Mutant, ...] = mutants() if seeded else ()
    real = [entry for entry in chosen if entry.real]
    alpha = FAMILY / 2 / max(1, sum(len(entry.deltas) for entry in chosen) * len(EPSILONS))
    alpha_bits = FAMILY / 4 / max(1, len(real) * len(OFFSETS))
    alpha_fit = FAMILY / 4 / max(1, sum(entry.law is not None for entry in chosen) * len(EPSILONS))
    steps = _Steps(len(chosen) * len(EPSILONS) + len(real) + len(bugs), progress)
    rows: list[TrialRow] = []
    fits: list[FitRow] = []
    for entry in chosen:
        for asked in EPSILONS:
            steps.next(f"{entry.name} at ε = {asked}")
            found, fit = run_trial(entry, asked, size=size, alpha=alpha, alpha_fit=alpha_fit)
            rows.extend(found)
            fits.extend(fit)
    bits: list[BitsRow] = []
    for entry in real:
        steps.next(f"{entry.name}: bits")
        bits.extend(_bits(entry, value, size, alpha_bits) for value in OFFSETS)
    caught: list[MutantRow] = []
    for bug in bugs:
        steps.next(f"seeded bug: {bug.name}")
        caught.append(MutantRow(bug.name, bug.caught(size, min(alpha, alpha_bits, alpha_fit))))
    steps.next("done")
    return Report(size, FAMILY, alpha, tuple(rows), tuple(bits), tuple(fits), tuple(caught))


def entries_named(name: str) -> tuple[AuditedMechanism, ...]:
    """Return the entries whose name begins so, in any case."""
    found = tuple(entry for entry in ROSTER if entry.name.lower().startswith(name.lower()))
    if not found:
        known = ", ".join(dict.fromkeys(entry.name.partition(",")[0] for entry in ROSTER))
        raise InvalidParameter(subject="only", rule=f"must be one of {known}", got=name)
    return found


def _bits(entry: AuditedMechanism, value: int, size: int, alpha: float) -> BitsRow:
    """Both worlds near a true value: it, and one sensitivity more."""
    mechanism = entry.make(BITS_EPSILON)
    exact = delta_of(entry.deltas[0], mechanism.loss)
    step = math.frexp(float(mechanism.grid))[1] - 1
    require(2.0**step == float(mechanism.grid), "grid", "a power of two", mechanism.grid)
    found = leaks(
        entry.draw(mechanism, value, size),
        entry.draw(mechanism, value + 1, size),
        values=(float(value), float(value + 1)),
        grid=ReleaseGrid(step, 1.0),
        claim=float(mechanism.loss.epsilon(exact)),
        alpha=alpha,
        delta=float(exact),
    )
    return BitsRow(entry.name, value, tuple(leak.event for leak in found))


class _Steps:
    """Counts what is done, for whoever watches."""

    def __init__(self, total: int, watcher: Progress | None) -> None:
        self._total, self._watcher, self._done = total, watcher, -1

    def next(self, name: str) -> None:
        self._done += 1
        if self._watcher is not None:
            self._watcher(self._done, self._total, name)

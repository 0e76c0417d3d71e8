"""Who asks, and what a question or a fit meets on its way: the study, its ledger, its engine, whose turn it is.

What an analyst may hold of a study: the tables that may be asked about, nothing of where they lie or of others.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from curador.curator.found import read_survey
from curador.curator.pace import Pace, Turn, Underway
from curador.ledger.limits import least_of
from curador.study.model import EngineSettings, UnitColumn, UnitPath

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from contextlib import AbstractContextManager

    from curador.curator.asking import PricedQuestion
    from curador.curator.found import Survey
    from curador.engines.base import Compiled, Engine
    from curador.ledger.amounts import Amounts
    from curador.ledger.entry import Entry, Stored
    from curador.ledger.ledger import Ledger
    from curador.ledger.limits import Limits
    from curador.plan.model import Plan
    from curador.query.tree import Question
    from curador.study.model import Analyst, Schema, Study, Table


# ---- shown -----------------------------------------------------------------------------------------------------------------


def schema_for_analyst(analyst: Analyst, visible: Schema) -> Schema:
    """Return the schema for the analyst's own eyes: to read, not to ask with.

    A table's source is its name, and a unit that is found through a hidden table is the column that leads there.
    """
    names = {table.table.name for table in visible.tables}
    tables = tuple(replace(table, table=_without_places(table.table, names)) for table in visible.tables)
    study = _part_of(
        visible.study,
        tables=tuple(table.table for table in tables),
        analysts=(analyst,),
        ledger=Path(visible.study.ledger.name),
        folder=Path(),
        engine=EngineSettings(),
        frames=MappingProxyType({}),
    )
    return replace(visible, study=study, tables=tables)


def _without_places(table: Table, names: Collection[str]) -> Table:
    unit = table.unit
    if isinstance(unit, UnitPath) and unit.table not in names:
        unit = UnitColumn(unit.column)
    return replace(table, source=table.name, unit=unit)


def _part_of(study: Study, **changes: Any) -> Study:
    """The study with some fields changed and not checked again: a part need not hold together as the whole does."""
    part = copy.copy(study)
    for name, value in changes.items():
        object.__setattr__(part, name, value)
    return part


# ---- session ---------------------------------------------------------------------------------------------------------------


MOST_PLANS = 64
"""Questions whose plans are kept."""

MOST_TRIED = 1_000
"""Questions and fits that are remembered as tried out."""


Kept = TypeVar("Kept")


class Plans(Generic[Kept]):
    """What was made of the latest questions, for one schema at a time."""

    def __init__(self) -> None:
        self._now: tuple[Schema | None, dict[Hashable, Kept]] = (None, {})

    def get(self, schema: Schema, key: Hashable) -> Kept | None:
        """Return what was kept under this very schema."""
        own, held = self._now
        return held.get(key) if own is schema else None

    def keep(self, schema: Schema, key: Hashable, planned: Kept) -> None:
        """Keep it; the oldest goes."""
        own, before = self._now
        held = dict(before) if own is schema else {}
        held[key] = planned
        while len(held) > MOST_PLANS:
            held.pop(next(iter(held)))
        self._now = schema, held  # in one step: other threads see the one or the other


class Tried:
    """The latest questions and fits that went well on tables without rows: trying them again would show the same."""

    def __init__(self) -> None:
        self._held: dict[Hashable, None] = {}
        self._lock = threading.Lock()

    def __contains__(self, one: Hashable) -> bool:
        return one in self._held

    def add(self, one: Hashable) -> None:
        """Remember the text and the key of one, or its shape; the oldest goes."""
        with self._lock:  # nobody adds while another looks for the oldest
            self._held[one] = None
            while len(self._held) > MOST_TRIED:
                self._held.pop(next(iter(self._held)))


class Sightings:
    """Since when this process has known of charges that others made. They were made by then; before, nobody knows.

    When a question came says nothing of when it was charged: its asker may have waited long for a turn, and clocks on walls
    jump. How long it waited would tell how long others' questions ran, so no entry says it.
    """

    def __init__(self, last: int = -1, since: float = 0.0) -> None:
        """Know all charges up to an entry since a moment of the monotonic clock."""
        self._last, self._since = last, since
        self._seen: dict[str, float] = {}

    def since(self, charge: Entry, now: float) -> float:
        """Return the moment at which a charge was first seen here: now, or before."""
        return self._since if charge.sequence <= self._last else self._seen.setdefault(charge.id, now)


@dataclass(slots=True)
class Session:
    """The owner (no analyst) or one analyst at an open study.

    The owner and all analysts share everything but the name: `of` makes the session of an analyst from the owner's.
    """

    study: Study
    ledger: Ledger
    engine: Engine
    analyst: Analyst | None = None
    pace: Pace = field(default_factory=Pace)
    turn: Turn = field(default_factory=Turn)
    underway: Underway = field(default_factory=Underway)
    plans: Plans[tuple[Question, Plan, Compiled]] = field(default_factory=Plans)
    prices: Plans[PricedQuestion] = field(default_factory=Plans)
    tried: Tried = field(default_factory=Tried)
    trial: Schema | None = None
    """Caps as a survey that was not bought yet might find them: for prices before it, never for a charge."""
    read: tuple[str, Survey] | None = None
    """The survey in force, by the id of its entry."""
    filled: tuple[int, str, Schema, Schema] | None = None
    """The engine's schema with the caps of a survey: for which schema and survey, what, and the schema itself, kept alive."""
    pinned: tuple[Schema, Survey | None] | None = None
    """The survey by which one question is priced, measured and shown, whatever others buy meanwhile."""
    abandoned: set[str] = field(default_factory=set[str])
    """Reservations that this process gave up: interrupted, failed or not stored. Their charge is kept; nobody waits."""
    sightings: Sightings = field(default_factory=Sightings)
    """Since when others' charges have been known."""
    agreed: set[Hashable] = field(default_factory=set[Hashable])
    """What this curator was found to agree with the ledger in; neither entries nor settled digests change."""

    def of(self, analyst: Analyst) -> Session:
        """Return the session of an analyst at the same study."""
        return replace(self, analyst=analyst)

    def at_one_survey(self) -> Session:
        """Return the session with the survey that is in force now, and no other: for one question."""
        if self.trial is not None or self.pinned is not None or not self.surveyed:
            return self
        survey = self.survey
        return replace(self, pinned=(self._schema_with(survey), survey))

    @property
    def name(self) -> str | None:
        """The asker's name; None for the owner."""
        return None if self.analyst is None else self.analyst.name

    @property
    def share(self) -> Fraction:
        """The asker's share of the limits."""
        return Fraction(1) if self.analyst is None else self.analyst.share

    @property
    def limits(self) -> Limits:
        """The ledger's limits."""
        return self.ledger.limits

    @property
    def version(self) -> int:
        """The data version that is asked about: the current one, also where this machine has not prepared it.

        What is stored of it is given; `machines.py` refuses everything else then.
        """
        return self.ledger.data_version

    @property
    def surveyed(self) -> bool:
        """Whether caps of a table are found by a survey, as nobody declared them."""
        return any(table.surveyed for table in self.study.tables)

    @property
    def survey(self) -> Survey | None:
        """The survey in force; None where none was bought, or nothing of the study needs one."""
        if self.trial is not None or not self.surveyed:
            return None
        if self.pinned is not None:
            return self.pinned[1]
        entry = self.ledger.surveyed(self.study.name)
        if entry is None:
            return None
        held = self.read
        if held is None or held[0] != entry.id:
            held = entry.id, read_survey(entry, self.study.adjacency)
            self.read = held
        return held[1]

    @property
    def schema(self) -> Schema:
        """Every table and column of the study, with the caps that a survey found where none are declared."""
        if self.trial is not None:
            return self.trial
        return self._schema_with(self.survey) if self.pinned is None else self.pinned[0]

    def _schema_with(self, survey: Survey | None) -> Schema:
        plain, held = self.engine.schema, self.filled
        if survey is None:
            return plain
        if held is None or held[:2] != (id(plain), survey.id):
            held = id(plain), survey.id, survey.fill(plain), plain
            self.filled = held  # in one step: other threads see the one or the other
        return held[2]

    @property
    def visible_tables(self) -> frozenset[str] | None:
        """The tables that the asker may read, None for all; public tables are everybody's."""
        if self.analyst is None or self.analyst.tables is None:
            return None
        public = {table.table.name for table in self.schema.tables if table.table.public}
        return frozenset(self.analyst.tables) | public

    @property
    def visible_schema(self) -> Schema:
        """The schema of what the asker may ask about."""
        visible = self.visible_tables
        if visible is None:
            return self.schema
        return replace(self.schema, tables=tuple(table for table in self.schema.tables if table.table.name in visible))

    @property
    def least(self) -> Amounts:
        """What a question or a fit of this asker costs at least."""
        return least_of(self.limits, self.share, self.study.least_spend)

    def stored(self, key: str, version: int) -> Stored | None:
        """Return the last answer to the identical question on a data version."""
        return self.ledger.stored(key, version)

    def told(self, charged: Callable[[], bool] = lambda: False) -> AbstractContextManager[None]:
        """Let what happens inside be told to an analyst at a public moment; what was charged has one of its own.

        The owner's own verbs do not wait.
        """
        return self.pace.told(lambda: self.analyst is not None and not charged())

    def require_admitted(self, version: int) -> None:
        """Refuse an analyst while the study is closed, and whoever holds a data version that is no longer the current one."""
        self.ledger.require_admitted(self.name, version)

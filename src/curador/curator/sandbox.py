"""The sandbox: the same questions, prices and refusals over rows that are made up from the study file alone.

A sandbox is no curator with a switch. It is made of declarations and can be made of nothing else: it draws its own rows
(`made_up.py`), opens the engine on them, and has a ledger of its own that goes with it. Questions pass through the same plan,
price, door and noise as real ones. What comes out is marked, and the receipt is taken off.

Claim   No row of a private table is read, whatever the study says and whether or not its sources exist; and no charge that a
        sandbox forgets was ever for real rows.
Needs   Every private table of the study that the engine is opened on is a frame that `make_private` made (`_require_made_up`
        looks at each before the engine is opened); `made_up.py` reads nothing. Nobody hands a sandbox an engine, a ledger or
        a frame: its constructor takes none.
Source  `tests/engines/test_sandbox.py`: sources deleted, canaries, and a seeded sandbox that keeps the real sources.

Rows of public tables are read where they are there, since prices of joins rest on them; where not, they are made up too.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from curador.curator.answer import as_made_up
from curador.curator.asking import ask
from curador.curator.curator import Asker, known_analyst
from curador.curator.machines import settle_copy
from curador.curator.made_up import guessed_types, make_private, make_public, with_assumed_caps
from curador.curator.opening import study_of
from curador.curator.previewing import previews_of
from curador.curator.price import plan_question, price_question
from curador.curator.session import Session
from curador.curator.temporary import TemporaryFolder, temporary_ledger
from curador.curator.ticket import PLAIN
from curador.engines.base import EMBEDDED, engine_kind
from curador.errors import Failed, InvalidParameter, InvalidQuery, InvalidStudy, NotAllowed, require
from curador.study.check import FRAME
from curador.study.frames import is_frame
from curador.study.model import Study, Table

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Iterable, Mapping
    from types import TracebackType

    from curador.curator.answer import Answer
    from curador.curator.options import QuestionOptions
    from curador.curator.preview import Preview, Previews
    from curador.curator.ticket import Ticket

UNITS = 10_000
MOST_UNITS = 1_000_000
SEED = 1
"""Public, like all of a sandbox: everybody who has the study file has the same rows."""

_ONLY_DECLARED = "A sandbox has only the columns that the study file declares."


@dataclass(frozen=True, slots=True)
class ImaginedStudy:
    """A study with made-up rows in the place of its private tables.

    made    the frames of its private tables, by name
    notes   by table, what its rows assume beyond what is declared
    types   by table and column, which type it is taken for
    """

    study: Study
    made: Mapping[str, Any]
    notes: Mapping[str, tuple[str, ...]]
    types: Mapping[str, Mapping[str, str]]

    def notes_of(self, question: str, tables: Iterable[str]) -> tuple[str, ...]:
        """Return what an asker must know of these tables; of a column's type only who writes its name."""
        found: list[str] = []
        for table in tables:
            found += self.notes.get(table, ())
            found += [said for name, said in self.types.get(table, {}).items() if name.lower() in question.lower()]
        return tuple(found)


class SandboxAsker(Asker):
    """Somebody who asks in a sandbox: the verbs of `Asker`, whose answers are marked and have no receipt."""

    def __init__(self, session: Session, imagined: ImaginedStudy) -> None:
        """Ask in a session over made-up rows; `Sandbox` makes it."""
        super().__init__(session)
        self._imagined = imagined

    def _preview(self, question: str | list[str] | tuple[str, ...], options: QuestionOptions) -> Preview | Previews:
        if not isinstance(question, str):
            if len(question) == 0:
                raise InvalidParameter.must_be("questions", "at least one", "none")
            return previews_of([self._preview_one(one, options) for one in question])
        return self._preview_one(question, options)

    def _preview_one(self, question: str, options: QuestionOptions) -> Preview:
        with _telling_what_is_known():
            found = super()._preview(question, options)
            _, plan, _ = plan_question(self._session, question, options)
        return replace(found, notes=(*self._imagined.notes_of(question, plan.tables), *found.notes))  # type: ignore[type-var]

    def _ask(self, question: str, options: QuestionOptions, *, fresh: bool, ticket: Ticket = PLAIN) -> Answer:
        with _telling_what_is_known():
            priced = price_question(self._session, question, options, fresh=fresh)
        return as_made_up(ask(priced, fresh=fresh, ticket=ticket), self._imagined.notes_of(question, priced.plan.tables))

    def rows(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a model is a file of its own, and could not be told from one of real rows."""
        hint = "ask questions here; learn through cu.open, or from arrays that you made up yourself"
        raise NotAllowed("a sandbox has no rows to learn from.", hint=f"{hint}.")


class Sandbox(SandboxAsker):
    """A study to try out: made-up rows, a budget that is whole whenever it is opened, nothing left on disk.

    A context manager: leaving it removes all that was made.
    """

    def __init__(
        self, study: Study, *, units: int = UNITS, seed: int = SEED, progress: Callable[[str], None] | None = None
    ) -> None:
        """Make up rows for what a study declares, and open it; `sandbox` reads the file."""
        self._folder = TemporaryFolder()
        with contextlib.ExitStack() as undo:
            undo.callback(self._folder.remove)
            imagined = imagine_study(self._folder.place(study), units=units, seed=seed)
            _require_made_up(imagined)
            ledger = undo.enter_context(temporary_ledger(imagined.study))
            engine = engine_kind(imagined.study.engine.kind).open(imagined.study, ledger.data_version)
            undo.callback(engine.close)
            engine.prepare(ledger.data_version, progress=progress)
            settle_copy(imagined.study, ledger, engine)
            super().__init__(Session(imagined.study, ledger, engine), imagined)
            self._undo = undo.pop_all()

    @property
    def study(self) -> Study:
        """What was declared, with made-up tables in the place of the sources."""
        return self._session.study

    def analyst(self, name: str) -> SandboxAsker:
        """Return an analyst's own voice, inside the analyst's share and tables."""
        return SandboxAsker(self._session.of(known_analyst(self.study, name)), self._imagined)

    def close(self) -> None:
        """Stop the engine, and remove the ledger and all that was made."""
        self._undo.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def open_sandbox(
    study: Study | str | os.PathLike[str],
    *,
    units: int = UNITS,
    seed: int = SEED,
    progress: Callable[[str], None] | None = None,
) -> Sandbox:
    """Open a sandbox of a study file: made-up rows, the prices and refusals of the real study, nothing spent.

    No private source is read; they need not exist. Answers are marked "made up" and have no receipt.

    units     people, or whatever a unit is, who are made up
    seed      of the made-up rows; noise has none
    progress  is told what preparation does
    """
    require(type(units) is int and 1 <= units <= MOST_UNITS, "units", f"a whole number from 1 to {MOST_UNITS:,}", units)
    require(type(seed) is int and 0 <= seed < 2**32, "seed", "a whole number from 0 to 2^32 − 1", seed)
    if is_frame(study) or (not isinstance(study, Study) and not str(study).lower().endswith(".toml")):
        hint = "write the declarations down: `curador init` drafts a study file"
        raise InvalidStudy.must_be("a sandbox", "made from a study file, or from a Study", type(study).__name__, hint)
    return Sandbox(study_of(study, {}), units=units, seed=seed, progress=progress)


def imagine_study(study: Study, *, units: int, seed: int) -> ImaginedStudy:
    """Return the study with made-up rows in the place of every private table, and of public ones that are not there.

    Of the engine's settings those stay that a price or a refusal rests on; nothing made up needs a process or a pace.
    """
    notes: dict[str, tuple[str, ...]] = {}
    types: dict[str, Mapping[str, str]] = {}
    frames: dict[str, Any] = {}
    tables: list[Table] = []
    for declared in study.tables:
        table, assumed = with_assumed_caps(declared, study.unit_name)
        absent = table.public and not _is_there(study, declared)
        said: list[str | None] = [assumed]
        if absent:
            said.append(f"made up: the public table {table.name} is not here, so its rows are made up and prices may differ")
            frames[table.name] = make_public(study, table, seed=seed)
        elif table.public and table.source == FRAME:
            frames[table.name] = study.frames[table.name]
        if absent or not table.public:
            types[table.name] = guessed_types(study, table)
            table = replace(table, source=FRAME)
        tables.append(table)
        notes[table.name] = tuple(note for note in said if note is not None)
    engine = replace(study.engine, kind=EMBEDDED, url="", store="", worker="inline", answer_every=Fraction(0))
    capped = replace(study, tables=tuple(tables), engine=engine, frames=MappingProxyType({}))
    made = make_private(capped, units=units, seed=seed)  # of a study without frames: it holds no row to copy
    return ImaginedStudy(replace(capped, frames=MappingProxyType(frames | made)), made, notes, types)


def _is_there(study: Study, table: Table) -> bool:
    """Whether the rows of a public table can be read; of a private one nobody asks."""
    if table.source == FRAME:
        return table.name in study.frames
    if study.engine.kind != EMBEDDED:  # on a server, which a sandbox does not ask
        return False
    try:
        engine_kind().physical_types(str(study.folder / table.source))
    except InvalidStudy:
        return False
    return True


def _require_made_up(imagined: ImaginedStudy) -> None:
    """Fail where a private table is anything but the frame that was made for it: its rows are never somebody's."""
    study, made = imagined.study, imagined.made
    for table in study.tables:
        if table.public:
            continue
        if table.source != FRAME or table.name not in made or study.frames.get(table.name) is not made[table.name]:
            raise Failed(f"a sandbox must hold made-up rows only; {table.name} is none of them.")


@contextlib.contextmanager
def _telling_what_is_known() -> Generator[None]:
    """Say, where a column is not found, which ones a sandbox has: the real table may have more."""
    try:
        yield
    except InvalidQuery as refusal:
        if refusal.subject == "column":
            refusal.hint = f"{refusal.hint} {_ONLY_DECLARED}" if refusal.hint else _ONLY_DECLARED
        raise

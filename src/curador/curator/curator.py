"""The curator: between a sensitive table and the people who ask about it.

`open` puts a study, its ledger and its engine together; `Curator.ask` lets a question flow through them.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from curador.curator.accounts import budget_view, log_lines
from curador.curator.asking import ask, columns_ahead, try_question_out
from curador.curator.finding import buy_counts
from curador.curator.machines import settle_copy, take_on
from curador.curator.opening import (
    engine_of,
    enter_contents,
    ledger_of,
    require_units_that_last,
    require_usable,
    study_of,
)
from curador.curator.options import Question, QuestionOptions, QuestionVerbs
from curador.curator.pace import Pace, Turn
from curador.curator.previewing import preview_by_cap, preview_of, previews_of
from curador.curator.price import FIND, plan_question, price_question
from curador.curator.report.audited import require_audit
from curador.curator.report.record import make_report
from curador.curator.session import Session, Sightings, schema_for_analyst
from curador.curator.survey import SurveyReport, buy_survey, lacks_survey, needs_survey, trial_session
from curador.curator.survey_columns import ColumnsReport, buy_columns
from curador.curator.temporary import TemporaryFolder, temporary_ledger
from curador.curator.ticket import PLAIN
from curador.curator.training import TrainingRows, rows_of
from curador.engines.base import engine_kind
from curador.errors import InvalidParameter, NotAllowed, require
from curador.plan.words import explain
from curador.study.check import opening_warnings
from curador.study.rules import did_you_mean

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from curador.answers.column import AnswerColumn
    from curador.curator.answer import Answer
    from curador.curator.asking import PricedQuestion
    from curador.curator.budget import BudgetView
    from curador.curator.finding import FindingQuestion
    from curador.curator.preview import Preview, Previews
    from curador.curator.report.record import StudyReport
    from curador.curator.ticket import Ticket
    from curador.engines.base import Engine
    from curador.ledger.ledger import Ledger
    from curador.numerics.exact import Number
    from curador.privacy.adjacency import Adjacency
    from curador.study.formats import FileFormat
    from curador.study.model import Analyst, Budget, Caps, EngineSettings, Schema, Study


FORGOTTEN = "the ledger is in memory: what is spent is forgotten when the study is closed, so the rows must be made up"


class Asker(QuestionVerbs):
    """Somebody who may ask: the owner, or one analyst inside the study's one budget."""

    def __init__(self, session: Session) -> None:
        """Ask in a session; `Curator.analyst` makes that of an analyst."""
        self._session = session

    @property
    def schema(self) -> Schema:
        """Every table and column that can be asked about."""
        visible, analyst = self._session.visible_schema, self._session.analyst
        return (
            visible if analyst is None else schema_for_analyst(analyst, visible)
        )  # no path, hidden table or other analyst is in it

    @property
    def budget(self) -> BudgetView:
        """What may be spent, what was, and what is left."""
        session = self._session
        with session.told():
            return budget_view(session.ledger, session.study, session.name)

    # ---- questions --------------------------------------------------------------------------------------------------

    def _preview(self, question: str | list[str] | tuple[str, ...], options: QuestionOptions) -> Preview | Previews:
        session = self._session
        with session.told():
            session.ledger.require_admitted(None, session.version)  # a closed study still says what things would cost
            if isinstance(question, str):
                return _preview(session, question, options)
            if len(question) == 0:
                raise InvalidParameter.must_be("questions", "at least one", "none")
            return previews_of([_preview(session, one, options) for one in question])

    def _look_ahead(
        self, questions: Sequence[str], options: QuestionOptions
    ) -> list[tuple[Preview, tuple[AnswerColumn, ...]]]:
        """Return the preview of each question with the columns of its answer, all of it told at one moment."""
        session = self._session
        with session.told():
            session.ledger.require_admitted(None, session.version)
            return [_look_ahead(session, one, options) for one in questions]

    def _ask(self, question: str, options: QuestionOptions, *, fresh: bool, ticket: Ticket = PLAIN) -> Answer:
        session, answering = self._session, False
        with session.told(lambda: answering):
            priced = self._price(question, options, fresh=fresh, ticket=ticket)
            answering = True  # what is told from here on waits by itself
        return ask(priced, fresh=fresh, ticket=ticket)

    def _price(
        self, question: str, options: QuestionOptions, *, fresh: bool, ticket: Ticket
    ) -> PricedQuestion | FindingQuestion:
        """Return the question with its price, or refuse; the owner's buys first what it needs."""
        session = self._session
        session.require_admitted(session.version)
        before = session.survey
        if session.surveyed and needs_survey(session, question, options):
            report = buy_survey(session, before, ticket=ticket.beside())
            for line in ("this question needs caps that nobody declared: the survey finds them", *report.lines()):
                print(f"curador: {line}", file=sys.stderr)  # noqa: T201 -- what the owner pays is never silent
        if options.caps == FIND and options.accuracy is not None:
            buy_counts(session, question, options, ticket=ticket.beside())
        return price_question(session, question, options, fresh=fresh)

    def columns(self, question: str, options: QuestionOptions) -> tuple[AnswerColumn, ...]:
        """Return the columns that the answer will have: names, types and which have intervals; by the plan, without values.

        Spends nothing, reads nothing.
        """
        session = self._session
        with session.told():
            session.ledger.require_admitted(None, session.version)
            return _columns(session, question, options)

    def explain(
        self,
        question: Question,
        *,
        caps: Caps | Mapping[str, int] | str | None = None,
        bounds: Mapping[str, tuple[Number, Number]] | None = None,
        dialect: str = "duckdb",
    ) -> str:
        """Return how a question would be answered: rows, caps, keys, measurements, intervals and where they came from."""
        with self._session.told():
            options = QuestionOptions(caps=caps, bounds=bounds, dialect=dialect)
            _, plan, _ = plan_question(self._session, self._text(question, dialect), options)
            return explain(plan, self._session.schema)

    def rows(
        self,
        table: str,
        *,
        columns: Sequence[str],
        spend: str | None = None,
        rho: Number | None = None,
        inexact: bool = False,
    ) -> TrainingRows:
        """Return a handle on columns of a table, for `fit` of the estimators in `curador.learn`. It reads nothing.

        spend    "20%" of the asker's whole limit, or rho=; else the estimator's epsilon and delta say what a fit costs
        inexact  the owner's permission for methods that draw noise in floating point
        """
        session = self._session
        with session.told():
            session.require_admitted(session.version)
            return rows_of(session, table, columns, spend=spend, rho=rho, inexact=inexact)

    def log(self) -> list[dict[str, Any]]:
        """Return the ledger's entries as plain values: all of them for the owner, an analyst's own for an analyst."""
        with self._session.told():
            return log_lines(self._session.ledger, self._session.name)


class Curator(Asker):
    """The owner's hold on a study: asks with the whole budget, lets analysts ask, declares data versions.

    A context manager: leaving it stops the engine and closes the ledger.
    """

    def __init__(self, study: Study, ledger: Ledger, engine: Engine, folder: TemporaryFolder | None = None) -> None:
        """Put a study, its ledger and its engine together; `open` does it. folder: what goes when it is closed."""
        settings = study.engine
        sightings = Sightings(ledger.head.sequence, time.monotonic())
        super().__init__(
            Session(study, ledger, engine, pace=Pace.of(settings), turn=Turn(settings.askers), sightings=sightings)
        )
        self._folder = folder

    @property
    def study(self) -> Study:
        """What was declared."""
        return self._session.study

    @property
    def ledger(self) -> Ledger:
        """The durable list of what was spent."""
        return self._session.ledger

    @property
    def data_version(self) -> int:
        """The number of the data version that is asked about."""
        return self._session.version

    def analyst(self, name: str) -> Asker:
        """Return an analyst's own voice: the same verbs, inside the analyst's share and tables."""
        return Asker(self._session.of(known_analyst(self.study, name)))

    def refresh(self, note: str, *, progress: Callable[[str], None] | None = None) -> int:
        """Take a snapshot of the data as they are now and declare it a new version, whether or not anything changed.

        Stored answers of older versions are not served any more; the budget is the same one for all versions.
        """
        require_units_that_last(self.study)
        with self._session.turn.alone():
            require_usable(self.study)  # a version whose sources lost a column could never be asked about
            version = self.ledger.refresh(note)
            take_on(self.study, self.ledger, engine_kind(self.study.engine.kind).machine(self.study))
            self._session.engine.prepare(version, progress=progress)
            enter_contents(self.study, self.ledger, progress=progress)
            settle_copy(self.study, self.ledger, self._session.engine)
        return version

    def survey(self, *, columns: bool = False) -> SurveyReport | ColumnsReport:
        """Find privately what nobody declared, for about 1 % of the budget, and return what was found.

        columns   measure columns instead, smallest and largest values by doubling steps and shares of NULL, and propose lines
                  for the study file: nothing is taken over by itself

        The caps hold from here on, over all data versions, until the next survey.
        """
        return buy_columns(self._session) if columns else buy_survey(self._session, self._session.survey)

    def report(self, *, audit: Mapping[str, Any] | None = None) -> StudyReport:
        """Return the report of the study: who is protected, how strongly, what was spent. Its chain is verified meanwhile.

        audit   what `curador audit study.toml --copy --json` printed, read as JSON: it is told as the last audit

        Spends nothing, reads no row. `write("study.html")` is the page to sign, `write("study.json")` the same for programs.
        """
        return make_report(self.study, ledger=self.ledger, audit=None if audit is None else require_audit(audit))

    def reopen(self, note: str) -> None:
        """Open the study to analysts again after engine failures."""
        with self._session.turn.alone():
            self.ledger.reopen(note)

    def close(self) -> None:
        """Stop the engine and close the ledger, once nothing is under way."""
        with self._session.turn.alone():
            try:
                self._session.engine.close()
            finally:
                self.ledger.close()
                if self._folder is not None:
                    self._folder.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _preview(session: Session, text: str, options: QuestionOptions) -> Preview:
    if lacks_survey(session, text, options):
        return preview_by_cap(session, text, options)
    return _preview_priced(session, price_question(session, text, options))


def _columns(session: Session, text: str, options: QuestionOptions) -> tuple[AnswerColumn, ...]:
    lacks = lacks_survey(session, text, options)
    return columns_ahead(price_question(trial_session(session, 1) if lacks else session, text, options))


def _look_ahead(session: Session, text: str, options: QuestionOptions) -> tuple[Preview, tuple[AnswerColumn, ...]]:
    if lacks_survey(session, text, options):
        return preview_by_cap(session, text, options), _columns(session, text, options)
    question = price_question(session, text, options)  # once for both
    return _preview_priced(session, question), columns_ahead(question)


def _preview_priced(session: Session, question: PricedQuestion | FindingQuestion) -> Preview:
    try_question_out(question)
    return preview_of(
        question,
        explanation="\n".join(explain(priced, session.schema) for priced in question.priced),
        schema=session.schema,
        limit=session.limits.share(session.share),
        left=session.ledger.left(session.name, session.share),
        stored=session.stored(question.key, question.version) is not None,
    )


def known_analyst(study: Study, name: str) -> Analyst:
    """Return the analyst of this name, or refuse."""
    found = study.analyst(name)
    if found is None:
        hint = did_you_mean(name, [analyst.name for analyst in study.analysts]) or "the owner declares analysts in the study"
        raise NotAllowed.must_be("the analyst", "one whom the study declares", name, hint)
    return found


def open_study(
    source: Study | str | os.PathLike[str] | Mapping[str, Any] | Any,
    *,
    unit: Any = None,
    budget: Budget | None = None,
    name: str | None = None,
    bounds: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
    types: Mapping[str, Any] | None = None,
    caps: Caps | Mapping[str, Any] | None = None,
    format: FileFormat | Mapping[str, Any] | None = None,  # noqa: A002 -- the word of the study file
    adjacency: Adjacency | str | None = None,
    unit_name: str | None = None,
    analysts: Mapping[str, Any] | Sequence[Analyst] | None = None,
    public: Iterable[str] | None = None,
    max_units: int | None = None,
    least_spend: str | int | None = None,
    ledger: str | os.PathLike[str] | None = None,
    engine: Mapping[str, Any] | EngineSettings | None = None,
    refresh: bool = False,
    new_ledger: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Curator:
    """Open a study file, or a table with its declarations, and return its curator.

    source      "study.toml"; or a path (Parquet, CSV, glob, "file.duckdb#table", "book.xlsx#sheet") or data frame;
                or { table: source }
    unit        who is protected: the column that names them, or "row"
    budget      everything that all answers together may cost, for ever
    bounds      { "spent": (0, 500) }: what a column may be; without bounds it is counted, never summed. Never from data
    values      { "city": ["Lima", "Quito"] }: all that may stand there; such keys cost no δ
    caps        { "rows": 10, "groups": 4 }: what one unit may contribute to one question
    format      { "decimal": ",", "dates": "%d/%m/%Y", "encoding": "latin-1" }: how a file's texts are to be read
    least_spend what one question or fit costs at least, of its asker's whole limit; "0.01%" by default
    ledger      where charges are kept; ":memory:" forgets them when it is closed, for made-up data frames only
    refresh     declare the data as they are now a new data version
    new_ledger  the reason for a ledger of its own where the data have one; it becomes an entry
    progress    is told what preparation does

    Beside a study file only ledger, engine, refresh, new_ledger and progress may be given.
    """
    options = {
        "unit": unit,
        "budget": budget,
        "name": name,
        "bounds": bounds,
        "values": values,
        "types": types,
        "caps": caps,
        "format": format,
        "adjacency": adjacency,
        "unit_name": unit_name,
        "analysts": analysts,
        "public": public,
        "max_units": max_units,
        "least_spend": least_spend,
        "ledger": ledger,
        "engine": engine,
    }
    study = study_of(source, options)
    if refresh:
        require_units_that_last(study)
        require_usable(study)
    for warning in opening_warnings(study):
        print(f"curador: warning: {warning}", file=sys.stderr)  # noqa: T201 -- what an owner lets in is never silent
    if study.in_memory:
        require(new_ledger is None, "new_ledger", "absent for a ledger in memory, which is always new", new_ledger)
        return _open_in_memory(study, progress)
    opened = ledger_of(study, new_ledger=new_ledger, verify=True, checkpoint=True, progress=progress)
    try:
        if refresh:
            opened.refresh("opened with refresh=True")
        made = engine_of(study, opened, refreshed=refresh, progress=progress)
    except BaseException:
        opened.close()
        raise
    return Curator(study, opened, made)


def _open_in_memory(study: Study, progress: Callable[[str], None] | None) -> Curator:
    """Open frames with a ledger that is forgotten; the study itself refuses one where a private table is a file."""
    require_usable(study)
    folder = TemporaryFolder()
    with contextlib.ExitStack() as undo:
        undo.callback(folder.remove)
        placed = folder.place(study)
        opened = undo.enter_context(temporary_ledger(placed))
        print(f"curador: {FORGOTTEN}", file=sys.stderr)  # noqa: T201 -- a budget never begins in silence
        made = Curator(placed, opened, engine_of(placed, opened, progress=progress), folder)
        undo.pop_all()
    return made

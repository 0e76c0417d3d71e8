# ruff: noqa: S608 -- these are questions, whose names are quoted, and which our own parser reads

"""The audit of a running study: neighbours replayed and canaries counted against its configuration as it is, on a copy.

    ledger ──► questions that were asked ─┐
    schema ──► counts, sums, means, keys ─┴─► replay on the copy and on each neighbour: exact integers before noise compared
    sources ─► a copy, 0700 ─► a neighbour a unit, canaries by coins ─► one question at the whole budget, guesses scored
    study ───► made-up tables ─► the same, for the regulator's page

Claim   The real ledger is read and nothing is written to it or charged; sources are read only; everything that is made
        lies in one folder that is its owner's alone (0700), which is gone when this returns, refuses, fails or is
        interrupted.
        `StudyAudit.public_record` holds verdicts, settings and what came of made-up tables; nothing else of real rows.
Needs   A process that is not killed outright: after `kill -9` the folder is left, and its owner removes it.
Source  `tests/engines/test_audit_copy.py`: bytes of ledger and sources before and after, the folder after success, failure
        and interrupt, canary values searched for in every byte of the page, and seeded bugs of the product.

What replay finds has no false alarms. What canaries find is wrong with probability at most 1 − CONFIDENCE.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.audit.one_run import OneRun, canaries, one_run
from curador.audit.replay import Replay, replay
from curador.curator.asking import ask
from curador.curator.found import Survey, read_survey
from curador.curator.options import QuestionOptions
from curador.curator.price import price_question
from curador.curator.sandbox import imagine_study
from curador.curator.session import Session
from curador.curator.temporary import TemporaryFolder, temporary_ledger
from curador.engines.base import EMBEDDED, EngineFailed, engine_kind
from curador.engines.duckdb.copying import CANARY, CanaryRows, CopiedRows, copy_rows
from curador.errors import Refused, require
from curador.ledger.entry import EntryKind
from curador.ledger.ledger import Ledger
from curador.privacy.adjacency import Adjacency
from curador.privacy.loss import compose
from curador.privacy.rules import loss_from_record
from curador.study.model import Caps, UnitColumn, UnitPath
from curador.study.rules import broken_rule
from curador.study.values import Type, share_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from curador.privacy.loss import Loss
    from curador.study.model import Schema, Study, TableSchema

NEIGHBOURS, CANARIES, MADE_UP_UNITS = 3, 1_000, 400
MOST_ASKED = 100
"""Questions of the ledger that are replayed: the last different ones."""

CONFIDENCE = Fraction(999_999_999, 1_000_000_000)
"""How sure the canaries' verdict is: a right study is refuted with probability at most 10^-9."""

_OVER = 4
"""How many times more rows a canary has than its cap lets count: so that a cap which is not executed is seen."""
_MOST_CELLS = 20_000
_DIALECTS = ("duckdb", "postgres", "bigquery", "spark", "snowflake")


# ---- what was found ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AuditedQuestion:
    """A question to be replayed. asked: its plan in the ledger; None where it was made from the schema."""

    text: str
    options: QuestionOptions
    asked: str | None = None


@dataclass(frozen=True, slots=True)
class NeighbourReplay:
    """All questions on the copy and on one neighbour of it.

    who       which unit leaves or comes, in words that name nobody
    compared  questions that were answered in both worlds; refused: those refused in both, word for word
    found     (question, what is wrong)
    """

    who: str
    compared: int
    refused: int
    releases: int
    found: tuple[tuple[str, str], ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong, and something was compared."""
        return not self.found and self.compared > 0


@dataclass(frozen=True, slots=True)
class RowsAudit:
    """What was found on one set of rows: the owner's, or made-up ones.

    canary  None where no table could be asked at all
    """

    replays: tuple[NeighbourReplay, ...]
    canary: OneRun | None
    spend: str
    questions: int
    same_plans: int

    @property
    def replayed(self) -> bool:
        """Whether no unit moved anything further than is declared."""
        return bool(self.replays) and all(one.holds for one in self.replays)

    @property
    def counted(self) -> bool:
        """Whether canaries refute nothing."""
        return self.canary is not None and not self.canary.refuted

    @property
    def holds(self) -> bool:
        """Whether both hold."""
        return self.replayed and self.counted


@dataclass(frozen=True, slots=True)
class StudyAudit:
    """The audit of a study: of its rows, for the owner's eyes; and of made-up rows, for everybody's.

    settings   (name, value): of the study file, the ledger and the machine; nothing of rows
    asked      different questions that the ledger holds; left: those that could not be replayed, being fits or surveys
    """

    real: RowsAudit
    made_up: RowsAudit
    settings: tuple[tuple[str, str], ...]
    asked: int
    left: int
    neighbours: int
    canaries: int
    when: dt.datetime

    @property
    def passed(self) -> bool:
        """Whether everything holds, on both."""
        return self.real.holds and self.made_up.holds

    def public_record(self) -> dict[str, Any]:
        """Return verdicts, settings and what came of made-up tables, as JSON has words for: of real rows nothing else."""
        return {
            "passed": self.passed,
            "when": self.when.isoformat(timespec="seconds"),
            "settings": dict(self.settings),
            "questions_asked": self.asked,
            "purchases_not_replayed": self.left,
            "neighbours": self.neighbours,
            "canaries": self.canaries,
            "false_alarm": float(1 - CONFIDENCE),
            "real_rows": {"replay_holds": self.real.replayed, "canaries_hold": self.real.counted},
            "made_up_rows": {
                "replay_holds": self.made_up.replayed,
                "canaries_hold": self.made_up.counted,
                "replays": [
                    {
                        "who": replayed.who,
                        "compared": replayed.compared,
                        "releases": replayed.releases,
                        "violations": len(replayed.found),
                    }
                    for replayed in self.made_up.replays
                ],
                "canaries": None if self.made_up.canary is None else str(self.made_up.canary),
            },
        }


# ---- the audit -----------------------------------------------------------------------------------------------------------


def audit_study(
    study: Study,
    *,
    neighbours: int = NEIGHBOURS,
    canaries: int = CANARIES,
    progress: Callable[[str], None] | None = None,
) -> StudyAudit:
    """Copy a study's rows, replay neighbours and count canaries on the copy, and remove it.

    neighbours   units chosen at random that leave; besides, the one with most rows, and one that exists in no row
    canaries     made-up units, each in or out by a coin of its own
    """
    require(type(neighbours) is int and 1 <= neighbours <= 100, "neighbours", "a whole number from 1 to 100", neighbours)
    require(type(canaries) is int and 100 <= canaries <= 10_000, "canaries", "a whole number from 100 to 10,000", canaries)
    if study.engine.kind != EMBEDDED:
        hint = "write the tables to files, and audit a study of those: what is declared may stay as it is"
        raise broken_rule(("engine", "kind"), f"{EMBEDDED} in an audit, whose worlds are files", study.engine.kind, hint)
    tell = progress or (lambda _: None)
    tell("reading the ledger")
    asked, left, survey, version = _ask_ledger(study)
    engine = replace(study.engine, answer_every=Fraction(0))  # when answers leave, not what they are
    running = replace(study, engine=engine)
    numbers = {"neighbours": neighbours, "canaries": canaries}
    folder = TemporaryFolder()
    try:
        real = _audit_rows(running, survey, asked, folder.path / "copy", tell=tell, **numbers)
        tell("made-up rows")
        imagined = imagine_study(folder.place(running), units=MADE_UP_UNITS, seed=1).study
        made_up = _audit_rows(imagined, None, (), folder.path / "made-up", tell=tell, **numbers)
    finally:
        folder.remove()
    settings = _settings(study, survey, version)
    return StudyAudit(real, made_up, settings, len(asked), left, neighbours, canaries, dt.datetime.now(dt.UTC))


def _ask_ledger(study: Study) -> tuple[tuple[AuditedQuestion, ...], int, Survey | None, int]:
    """Return the questions that were asked, how many entries were none, the survey in force and the data version.

    It is read, and nothing is written: a study that was never opened has none.
    """
    if not study.ledger_path.exists():
        return (), 0, None, 1
    with Ledger.reach(study.ledger_path) as ledger:
        ledger.limits.require_same(study.budget, adjacency=study.adjacency, unit=study.unit_name, owners=study.owners)
        surveyed = ledger.surveyed(study.name)
        survey = None if surveyed is None else read_survey(surveyed, study.adjacency)
        found: dict[tuple[str, str], AuditedQuestion] = {}
        left: set[str] = set()
        for entry in ledger.entries():
            if entry.kind is not EntryKind.RESERVED or entry.question is None or entry.plan_digest is None:
                continue
            if not entry.question.lstrip().upper().startswith(("SELECT", "WITH", "(")):
                left.add(entry.question)
                continue
            cost = entry.amounts
            options = QuestionOptions(rho=cost.rho) if cost.rho else QuestionOptions(epsilon=cost.epsilon)
            key = entry.question, str(options)
            found.pop(key, None)  # the last ones are kept
            found[key] = AuditedQuestion(entry.question, options, entry.plan_digest)
        return tuple(found.values())[-MOST_ASKED:], len(left), survey, ledger.data_version


def _audit_rows(
    study: Study,
    survey: Survey | None,
    asked: tuple[AuditedQuestion, ...],
    folder: Path,
    *,
    neighbours: int,
    canaries: int,
    tell: Callable[[str], None],
) -> RowsAudit:
    folder.mkdir(mode=0o700)
    tell("copying rows")
    copied = copy_rows(study, folder)
    questions = (*asked, *generated_questions(copied.schema, survey, study.least_spend))
    replays: list[NeighbourReplay] = []
    with _open_world(copied.world("whole"), survey) as whole:
        chosen, same = _with_options(whole, questions)
        for number, (who, made) in enumerate(_neighbours(copied, neighbours)):
            tell(f"replaying a neighbour: {who}")
            with _open_world(made(f"neighbour{number}"), survey) as beside:
                replays.append(_replay_all(who, chosen, whole, beside))
    tell("counting canaries")
    counted, spend = _count_canaries(copied, survey, canaries)
    return RowsAudit(tuple(replays), counted, spend, len(chosen), same)


def _neighbours(copied: CopiedRows, count: int) -> Iterator[tuple[str, Callable[[str], Study]]]:
    """Yield who leaves or comes, and how that world is written: by the study's own relation of neighbours.

    Where a neighbour is a unit replaced, a made-up one takes the place of the one that leaves.
    """
    replaced = copied.schema.study.adjacency is Adjacency.REPLACE_ONE
    heaviest = copied.heaviest()
    leaving = [*((f"a unit by chance, {place + 1}", unit) for place, unit in enumerate(copied.units(count)))]
    leaving += [] if heaviest is None else [("the unit with most rows", heaviest)]
    for who, unit in leaving:
        yield who, lambda name, unit=unit: copied.world(name, without=unit, stranger=replaced)
    if not replaced:
        yield "a made-up unit beyond all caps and bounds", lambda name: copied.world(name, stranger=True)


@contextlib.contextmanager
def _open_world(study: Study, survey: Survey | None) -> Generator[Session]:
    """Open a world with an engine and a ledger of its own, and with the caps that the real study's survey found."""
    with contextlib.ExitStack() as undo:
        ledger = undo.enter_context(temporary_ledger(study))
        engine = engine_kind(study.engine.kind).open(study, ledger.data_version)
        undo.callback(engine.close)
        engine.prepare(ledger.data_version)
        pinned = None if survey is None else (survey.fill(engine.schema), survey)
        yield Session(study, ledger, engine, pinned=pinned)


# ---- questions -----------------------------------------------------------------------------------------------------------


def generated_questions(schema: Schema, survey: Survey | None, least: Fraction) -> tuple[AuditedQuestion, ...]:
    """Return a few questions about every private table: counts, sums, means, medians, known and private keys, units."""
    options = QuestionOptions(spend=share_text(max(Fraction(1, 20), least)))
    pure = schema.study.budget.pure
    texts: list[str] = []
    for described in schema.tables:
        if not described.table.public and _caps_of(described, survey) is not None:
            texts += _about_table(described, pure=pure)
    return tuple(AuditedQuestion(text, options) for text in texts)


def _about_table(one: TableSchema, *, pure: bool) -> Iterator[str]:
    table = _quoted(one.table.name)
    yield f"SELECT COUNT(*) AS n FROM {table}"
    unit = one.table.unit
    named = isinstance(unit, UnitColumn) or (isinstance(unit, UnitPath) and unit.key is None)
    units = f"COUNT(DISTINCT {_quoted(unit.column)}) AS units" if named else None  # type: ignore[union-attr]
    if units is not None:
        yield f"SELECT {units} FROM {table}"
    measured = [
        field
        for field in one.fields
        if field.type.numeric and field.declared is not None and field.declared.bounds is not None
    ]
    listed = [field for field in one.fields if field.declared is not None and field.declared.values is not None]
    for field in measured[:4]:
        x = _quoted(field.name)
        yield f"SELECT SUM({x}) AS total, AVG({x}) AS mean, COUNT({x}) AS known FROM {table}"
    for field in measured[:1]:
        yield f"SELECT MEDIAN({_quoted(field.name)}) AS middle FROM {table}"
        yield f"SELECT SUM(2 * {_quoted(field.name)}) AS twice FROM {table}"
    for field in listed[:3]:
        key = _quoted(field.name)
        yield f"SELECT {key}, COUNT(*) AS n FROM {table} GROUP BY {key}"
        if units is not None:
            yield f"SELECT {key}, {units} FROM {table} GROUP BY {key}"
        for number in measured[:1]:
            yield f"SELECT {key}, SUM({_quoted(number.name)}) AS total FROM {table} GROUP BY {key}"
    others = [
        field for field in one.fields if field.type is Type.STRING and field.declared is None and field.name != _owner_of(one)
    ]
    for field in [] if pure else others[:2]:
        key = _quoted(field.name)
        yield f"SELECT {key}, COUNT(*) AS n FROM {table} GROUP BY {key}"


def _owner_of(one: TableSchema) -> str | None:
    return getattr(one.table.unit, "column", None)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _caps_of(one: TableSchema, survey: Survey | None) -> Caps | None:
    """Return the caps in force: declared, found by the survey, or one row; None where no question can be asked yet."""
    if one.table.caps is not None:
        return one.table.caps
    if one.table.single:
        return Caps(rows=1)
    found = None if survey is None else survey.tables.get(one.table.name)
    return None if found is None else Caps(rows=found.cap)


def _with_options(session: Session, questions: Sequence[AuditedQuestion]) -> tuple[list[AuditedQuestion], int]:
    """Return the questions, those of the ledger in the dialect that gives the very plan that was charged; and how many do."""
    chosen: list[AuditedQuestion] = []
    same = 0
    for question in questions:
        if question.asked is None:
            chosen.append(question)
            continue
        costs = (question.options, *_shares_of(session, question.options))
        ways = [replace(question, options=replace(cost, dialect=dialect)) for dialect in _DIALECTS for cost in costs]
        exact = next((way for way in ways if _plan_of(session, way) == question.asked), None)
        readable = next((way for way in ways if _plan_of(session, way) is not None), ways[0])
        chosen.append(exact or readable)
        same += exact is not None
    return chosen, same


def _shares_of(session: Session, charged: QuestionOptions) -> tuple[QuestionOptions, ...]:
    """Return the whole percentage that a charge was a part of: what is charged may be a little less than what was granted."""
    total, amount = session.limits.total, charged.rho or charged.epsilon
    part = Fraction(amount) / (total.rho if charged.rho else total.epsilon)  # type: ignore[arg-type]
    percent = math.ceil(part * 100)
    return (QuestionOptions(spend=f"{percent}%"),) if 1 <= percent <= 100 else ()


def _plan_of(session: Session, question: AuditedQuestion) -> str | None:
    try:
        return price_question(session, question.text, question.options, fresh=True).request.plan_digest
    except Refused:
        return None


# ---- replay --------------------------------------------------------------------------------------------------------------


def _replay_all(who: str, questions: Sequence[AuditedQuestion], whole: Session, beside: Session) -> NeighbourReplay:
    compared = refused = releases = 0
    found: list[tuple[str, str]] = []
    for question in questions:
        seen: list[str] = []
        one = _replay(question, whole, beside, seen)
        releases += one.releases
        found += [(question.text, violation) for violation in one.violations]
        answered = "answered" in seen
        compared += answered
        refused += not answered
    return NeighbourReplay(who, compared, refused, releases, tuple(found))


def _replay(question: AuditedQuestion, whole: Session, beside: Session, seen: list[str]) -> Replay:
    """Price and compute a question in both worlds, the second with the noise of the first.

    What is compared: price, losses and plan, every input of every draw, what the ledger would keep and what would be shown.
    """

    def answer(session: Session) -> object:
        priced = price_question(session, question.text, question.options, fresh=True)
        request = priced.request
        said = request.amounts.record(), request.plan_digest, str(request.losses), priced.notes
        try:
            content = priced.compute(rehearsal=False)
        except EngineFailed:  # its id is of chance
            return (*said, "failed")
        shown = priced.digest(priced.restore(content))  # type: ignore[arg-type]
        seen.append("answered")
        return (*said, content, shown)

    return replay(answer, whole, beside)


# ---- canaries ------------------------------------------------------------------------------------------------------------


def _count_canaries(copied: CopiedRows, survey: Survey | None, count: int) -> tuple[OneRun | None, str]:
    """Put made-up units in by coins, count them once, guess who is in, and compare with the receipt.

    The spend is one that claims an ε of about 1: where much is claimed, nearly all guesses are right and none tells anything.

    Claim   One-run theorem of `audit/one_run.py`: if what the ledger's entry says of its losses is true, it is refuted with
            probability at most 1 − CONFIDENCE.
    Needs   A canary stands in cells of its own; coins are fair and independent; in or out is one step between neighbours:
            there or not, or, where a unit is replaced, in cells of one kind or of the other.
    """
    place = _table_of_canaries(copied.schema, survey)
    spend = _spend_of_canaries(copied.schema.study)
    if place is None:
        return None, spend
    table = copied.schema.tables[place]
    caps = _caps_of(table, survey)
    if caps is None:
        raise AssertionError("the table was chosen for its caps")
    sides = 2 if copied.schema.study.adjacency is Adjacency.REPLACE_ONE else 1
    groups = max(1, min(caps.most_groups, _MOST_CELLS // (sides * count)))
    each = 1 if table.table.single and not table.table.unique else _OVER * caps.most_in_group
    claimed: list[Loss] = []

    def run(included: NDArray[np.bool_]) -> NDArray[np.float64]:
        rows: list[tuple[int, int]] = []
        for canary, inside in enumerate(included.tolist()):
            if not inside and sides == 1:
                continue
            side = 0 if inside else 1
            cells = _cells_of(canary, side, sides=sides, groups=groups)
            rows += [(canary, cell) for cell in cells for _ in range(each)]
        made = CanaryRows(table.table.name, sides * groups * count, tuple(rows))
        with _open_world(copied.world("canaries", canaries=made), survey) as session:
            text = f"SELECT {CANARY}, COUNT(*) AS n FROM {_quoted(table.table.name)} GROUP BY {CANARY}"
            answer = ask(price_question(session, text, QuestionOptions(spend=spend)))
            (entry,) = (one for one in session.ledger.entries() if one.kind is EntryKind.RESERVED)
            claimed.extend(loss_from_record(record) for record in entry.losses)
            numbers = {row[CANARY]: row["n"] for row in answer.rows}
        scores = np.zeros(count)
        for canary in range(count):
            for side in range(sides):
                own = sum(numbers[cell] for cell in _cells_of(canary, side, sides=sides, groups=groups))
                scores[canary] += own if side == 0 else -own
        return scores

    try:
        return _one_run(run, count, copied.schema.study, claimed), spend
    except Refused:  # a question that this study does not let anybody ask tells nothing of its noise
        return None, spend


def _spend_of_canaries(study: Study) -> str:
    """Return the share of the budget that claims an ε of about 1: ε grows with the share, or with its root."""
    epsilon = study.budget.epsilon
    part = 1 / epsilon if study.budget.pure else 1 / epsilon**2
    return f"{min(max(math.ceil(100 * part), 1), 100)}%"


def _one_run(
    run: Callable[[NDArray[np.bool_]], NDArray[np.float64]], count: int, study: Study, claimed: list[Loss]
) -> OneRun:
    """Throw the coins, run once, and audit against the losses that the run itself wrote to its ledger."""
    coins: list[NDArray[np.bool_]] = []
    marks: list[NDArray[np.float64]] = []

    def keeping(included: NDArray[np.bool_]) -> NDArray[np.float64]:
        coins.append(included.copy())
        marks.append(run(included))
        return marks[0]

    delta = Fraction(0) if study.budget.delta is None else study.budget.delta
    canaries(keeping, canaries=count, delta=delta, confidence=CONFIDENCE)
    return one_run(marks[0], coins[0], delta=delta, confidence=CONFIDENCE, loss=compose(claimed))


def _cells_of(canary: int, side: int, *, sides: int, groups: int) -> range:
    first = (canary * sides + side) * groups
    return range(first, first + groups)


def _table_of_canaries(schema: Schema, survey: Survey | None) -> int | None:
    """Return the place of a table whose rows name their unit themselves, and which can be asked: where most rows count."""
    found = [
        (-caps.rows, place)
        for place, described in enumerate(schema.tables)
        if not described.table.public
        and not isinstance(described.table.unit, UnitPath)
        and (caps := _caps_of(described, survey)) is not None
    ]
    return min(found)[1] if found else None


# ---- settings ------------------------------------------------------------------------------------------------------------


def _settings(study: Study, survey: Survey | None, version: int) -> tuple[tuple[str, str], ...]:
    """Return what was audited, in words of the study file: nothing here is of rows, but what a survey released."""
    import platform
    from importlib import metadata

    budget = study.budget
    found: list[tuple[str, str]] = [
        ("study", study.name),
        ("fingerprint of the study", study.digest),
        ("data version", str(version)),
        ("one unit", study.unit_name),
        ("neighbours", str(study.adjacency).replace("_", " ")),
        ("budget", f"ε = {budget.epsilon}" + ("" if budget.delta is None else f", δ = {float(budget.delta):.3g}")),
        ("most units", f"{study.max_units:,}"),
        ("least spend", share_text(study.least_spend)),
    ]
    for table in study.tables:
        if table.public:
            found.append((f"table {table.name}", "public"))
            continue
        caps = table.caps
        surveyed = None if survey is None else survey.tables.get(table.name)
        if caps is not None:
            words = f"at most {caps.rows} rows, {caps.most_groups} groups, {caps.most_in_group} rows in a group"
        elif surveyed is not None:
            words = f"at most {surveyed.cap} rows, as a survey found"
        else:
            words = "a row is a unit" if table.single else "no caps yet: no survey was bought"
        bounds = [f"{column.name} from {column.bounds[0]} to {column.bounds[1]}" for column in table.columns if column.bounds]
        found.append((f"table {table.name}", "; ".join([words, *bounds])))
    engine = study.engine
    found.append(("engine", f"{engine.kind}, {engine.worker}, {engine.threads} threads, prepare {engine.prepare}"))
    found.append(("work of one unit", f"{float(engine.unit_work):g} s, {engine.unit_rows:,} rows"))
    versions = ", ".join(f"{name} {_version(metadata, name)}" for name in ("curador", "duckdb", "numpy"))
    found.append(("versions", f"{versions}, Python {platform.python_version()}"))
    return tuple(found)


def _version(metadata: Any, name: str) -> str:
    try:
        return str(metadata.version(name))
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "unknown"

"""What stands before the first question: the study, its ledger, its engine."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from curador.curator.dataset import (
    DataSet,
    acknowledged_by,
    join_both,
    ledgers_of_data,
    refuse_copy,
    refuse_unacknowledged,
    shared_ledger,
    unknown_ledgers,
    warn,
)
from curador.curator.declarations import declare_changes, declared_details, digests_of_others
from curador.curator.machines import HERE, find_difference, is_another, is_settled, refuse_difference, settle_copy, take_on
from curador.engines.base import EMBEDDED, Sources, engine_kind
from curador.errors import InvalidParameter, InvalidStudy
from curador.ledger.entry import EntryKind
from curador.ledger.ledger import Ledger
from curador.ledger.opening import marker_of, refusal_of_taken_place
from curador.ledger.pointer import read_pointer
from curador.study.build import build_study, formats_by_table, override
from curador.study.check import FRAME
from curador.study.file import read_study
from curador.study.model import EngineSettings, Study, UnitRow
from curador.study.values import NOTHING, Plain
from curador.text import rounded_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.engines.base import Engine
    from curador.study.values import Type

FILE = ".toml"


def study_of(source: Any, options: Mapping[str, Any]) -> Study:
    """Return the study of a file, of a study, or of a source with its declarations."""
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(source, Study) or _is_file(source):
        own = {name: given.pop(name, None) for name in ("ledger", "engine")}
        if given:
            rule, hint = "said in the study itself", "only ledger= and engine= may be given beside a study"
            raise InvalidParameter.must_be(", ".join(sorted(given)), rule, Plain("keyword arguments"), hint)
        return override(source if isinstance(source, Study) else read_study(source), **own)
    for name, example in (("unit", 'unit="user_id", or unit="row"'), ("budget", "budget=cu.Budget(epsilon=3, delta=1e-6)")):
        if name not in given:
            hint = f"write {example}; or open a study file"
            raise InvalidStudy.must_be(name, "declared for a table", NOTHING, hint)
    physical = _physical(source, _kind_of(given.get("engine")), given.get("format"))
    return build_study(source, physical=physical, **given)


def ledger_of(
    study: Study,
    *,
    new_ledger: str | None,
    verify: bool,
    checkpoint: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Ledger:
    """Return the ledger of the study's data: its own, that of another study over the same rows, or a new one.

    Where it is not its own a line says so: the limits of a ledger hold for ever. What a study declares otherwise than before
    becomes an entry. `dataset.py` has the rules.

    new_ledger           the reason for a ledger where these data have one
    verify, checkpoint   how much of it is read; see `Ledger.open`
    progress             is told how far looking at the data has come
    """
    options = _options_of(study, verify=verify, checkpoint=checkpoint)
    require_kept_there(study)
    if not study.ledger_path.exists():
        require_usable(study)
        opened = _found_or_made(study, new_ledger, options, progress)
    else:
        opened = Ledger.open(study.ledger_path, **options)
        try:
            _still_its_own(study, opened, new_ledger, progress)
        except BaseException:
            opened.close()
            raise
    try:
        declare_changes(opened, study)
    except BaseException:
        opened.close()
        raise
    return opened


def require_kept_there(study: Study) -> None:
    """Refuse a study whose ledger's file says that it is kept elsewhere than the study says."""
    if not study.ledger_path.exists():
        return
    kept = read_pointer(study.ledger_path)
    if kept != study.server and (study.server is not None or kept is None):
        hint = "a ledger stays where it is: move its entries as docs/how-to/run-a-ledger.md says"
        where = kept or f"the file {study.ledger_path} itself"
        raise InvalidStudy.must_be("ledger", f"kept where it was begun ({where})", study.server or "a file", hint)


def attach_study(study: Study, reason: str) -> None:
    """Let this machine know the ledger of a study that is kept on a server: the first time that it is opened here.

    Needs   The owner's word: a machine that never saw a ledger cannot know what it forgot. The reason becomes an entry.
    """
    if study.server is None:
        hint = 'write ledger = "postgresql://role@host/database?schema=name" into the study'
        raise InvalidStudy.must_be("ledger", "on a server", str(study.ledger), hint)
    options = _options_of(study, verify=True, checkpoint=False)
    Ledger.attach(study.ledger_path, study.server, reason=reason, **options).close()


def _still_its_own(study: Study, ledger: Ledger, reason: str | None, progress: Callable[[str], None] | None) -> None:
    """Refuse a ledger beside which these data have another one, or a copy of it; enter sources that are new to it."""
    with DataSet.of(study, known_to=ledger.id, progress=progress) as data:
        with data.register.deciding():
            refuse_copy(data, ledger)
            others = data.others(ledger.id)
            unknown = [one for one in others if one.id not in acknowledged_by(ledger)] if others else []
            if reason is None:
                refuse_unacknowledged(unknown)
            elif not unknown:
                raise refusal_of_taken_place(ledger.path)
            data.enter(ledger)
        if reason is not None:
            join_both(ledger, study, unknown, reason)


def _found_or_made(
    study: Study, reason: str | None, options: dict[str, Any], progress: Callable[[str], None] | None
) -> Ledger:
    with DataSet.of(study, progress=progress) as data:
        data.require_memory()
        with data.register.deciding():
            others = [*data.others(), *unknown_ledgers(data)]
            share = bool(others) and reason is None
            found = shared_ledger(others, **options) if share else _make(study, reason, options["folder"])
            data.enter(found)
        try:
            if reason is not None:
                join_both(found, study, others, reason)
            elif others:
                _share(found, study)
        except BaseException:
            found.close()
            raise
    return found


def _share(ledger: Ledger, study: Study) -> None:
    """Write into a ledger that another study spends from it, and say so."""
    details = {"ledger": None, "study": study.name, "unit": study.unit_name}
    before = ledger.head
    ledger.join(details, note=f"study {study.name} is about the same rows and spends from this ledger")
    if ledger.head != before:
        print(  # noqa: T201 -- a budget is never shared in silence
            f"curador: these data have the ledger {ledger.path}: study {study.name} spends from it", file=sys.stderr
        )


def _whose(study: Study) -> dict[str, Any]:
    """Return what a ledger holds a study to."""
    return {"budget": study.budget, "adjacency": study.adjacency, "unit": study.unit_name, "owners": study.owners}


def _options_of(study: Study, *, verify: bool, checkpoint: bool) -> dict[str, Any]:
    """Return how a ledger is opened for a study."""
    marker = {"study_name": study.name, "folder": _beside(study)}
    return {**_whose(study), **marker, "verify": verify, "checkpoint": checkpoint}


def _make(study: Study, reason: str | None, folder: Path | None) -> Ledger:
    made = Ledger.create(
        study.ledger_path,
        **_whose(study),
        study_name=study.name,
        study_digest=study.digest,
        max_units=study.max_units,
        reason=reason,
        folder=folder,
        details=declared_details(study),
        server=study.server,
    )
    budget = study.budget
    delta = "" if budget.delta is None else f", δ = {rounded_text(budget.delta, up=True)}"
    limits = f"ε = {rounded_text(budget.epsilon, up=True)}{delta}, for ever, over all analysts and data versions"
    text = f"curador: new ledger {study.ledger_path}: {limits}"
    print(text, file=sys.stderr)  # noqa: T201 -- a budget never begins in silence
    return made


def require_usable(study: Study) -> None:
    """Refuse a study whose sources are not there or not as it declares them, or of whose rows nothing can be read so.

    It comes before a ledger is made and before a data version is declared: both are for ever. The last is for the owner only.
    """
    engine_kind(study.engine.kind).require_readable(study)


def known_ledger(study: Study) -> Ledger | None:
    """Return the ledger of a study for a report; None where it has none that is known. No contents of sources are read."""
    if study.ledger_path.exists():
        return existing_ledger(study)
    others = ledgers_of_data(study)
    return shared_ledger(others, **_options_of(study, verify=False, checkpoint=False)) if others else None


def existing_ledger(study: Study) -> Ledger:
    """Return the ledger of a study that was opened before: its own, or that of another study over the same rows.

    It is for looking at the ledger: neither the sources nor other ledgers are asked where the study has its own.
    """
    options = _options_of(study, verify=False, checkpoint=False)
    if study.ledger_path.exists():
        return Ledger.open(study.ledger_path, **options)
    with DataSet.of(study) as data:
        others = data.others()
        if others:
            return shared_ledger(others, **options)
    hint = "it is made when the study is first opened: run `curador prepare`, or ask"
    raise InvalidStudy.must_be("ledger", "a file that exists", str(study.ledger_path), hint)


def engine_of(
    study: Study, ledger: Ledger, *, refreshed: bool = False, progress: Callable[[str], None] | None = None
) -> Engine:
    """Return the engine on the ledger's current data version, prepared where it is not yet.

    A version is what the sources were when it was taken. Sources that changed since, or of which nobody knows any more what
    they were, are the owner's to declare a new version.
    """
    kind, version = engine_kind(study.engine.kind), ledger.data_version
    ours = take_on(study, ledger, kind.machine(study))
    engine = kind.open(study, version)
    try:
        if ours and _must_prepare(study, ledger, engine, refreshed=refreshed):
            engine.prepare(version, progress=progress)
            enter_contents(study, ledger, progress=progress)
        if ours:
            settle_copy(study, ledger, engine)
    except BaseException:
        engine.close()
        raise
    if find_difference(study, ledger, engine) is not None:
        warn(f"questions that are not stored are refused: {HERE}; `curador prepare` says why")
    return engine


def _must_prepare(study: Study, ledger: Ledger, engine: Engine, *, refreshed: bool) -> bool:
    """Whether the current version must be prepared here; refused where nobody could tell whether that gives the same rows.

    Where the ledger has the digest of a copy, any other copy is compared with it: it may be made of whatever lies here.
    """
    version = ledger.data_version
    if refreshed:
        return True
    kind = engine_kind(study.engine.kind)
    known, sources = is_settled(study, ledger), kind.sources(study, version)
    if sources is Sources.UNKNOWN and known and not kind.has_key(study):
        raise _not_the_same(version, "what it was made from is not known any more, and its rank key is not here", key=True)
    if sources is Sources.UNKNOWN and not known and _asked_about(ledger, study, version):
        raise _not_the_same(version, "what it was made from is not known any more")
    if sources is Sources.CHANGED and not is_another(study, ledger, engine):
        raise _not_the_same(version, "a source has changed since")
    if engine.altered:
        warn(f"the prepared copy of data version {version}, or its key, is not what it was: it is prepared again")
    return sources is not Sources.SAME or not engine.ready


def enter_contents(study: Study, ledger: Ledger, *, progress: Callable[[str], None] | None = None) -> None:
    """Write down what the sources of a version that was just taken hold, so that an equal copy of them is recognised."""
    with DataSet.of(study, progress=progress) as data, data.register.deciding():
        data.enter(ledger)


def refresh_study(study: Study, note: str, *, progress: Callable[[str], None] | None = None) -> int:
    """Declare the data as they are now a new data version, prepare it, and return its number."""
    require_units_that_last(study)
    require_usable(study)
    with ledger_of(study, new_ledger=None, verify=True) as ledger:
        version = ledger.refresh(note)  # first: a version whose preparation fails is prepared when it is next opened
        with contextlib.closing(engine_of(study, ledger, refreshed=True, progress=progress)) as engine:
            refuse_difference(study, ledger, engine)
    return version


def prepare_study(study: Study, *, progress: Callable[[str], None] | None = None) -> None:
    """Prepare the current data version where it is not; refuse, with the reason, a copy that other machines do not have."""
    with contextlib.ExitStack() as undo:
        ledger = undo.enter_context(ledger_of(study, new_ledger=None, verify=True))
        engine = undo.enter_context(contextlib.closing(engine_of(study, ledger, progress=progress)))
        refuse_difference(study, ledger, engine)


def drop_prepared(study: Study) -> str:
    """Remove the prepared copy of the data, and say so. What it was made from stays known, so that it can be made again."""
    return engine_kind(study.engine.kind).drop_prepared(study)


def _asked_about(ledger: Ledger, study: Study, version: int) -> bool:
    """Whether a question of this study was charged on this data version.

    Another study that shares the ledger has answers under its own fingerprint, and a prepared copy of its own.
    """
    foreign = digests_of_others(ledger, study)
    return any(
        entry.kind is EntryKind.RESERVED and entry.data_version == version and entry.study_digest not in foreign
        for entry in ledger.entries()
    )


def _not_the_same(version: int, why: str, *, key: bool = False) -> InvalidStudy:
    hint = "bring the key of a machine that has it (CURADOR_RANK_KEY); or " if key else ""
    hint += "run `curador refresh`, or open with refresh=True: that declares a new data version"
    return InvalidStudy(f"the data must be those of data version {version}; {why}.", hint=f"{hint}.")


def _beside(study: Study) -> Path | None:
    """Where a marker of the study's name is left or asked for: beside the ledger where the data lie in memory.

    Data in files have markers of their own. Where an older version left one in the study's folder it is still asked.
    """
    if all(table.source == FRAME for table in study.tables):
        return study.ledger_path.absolute().parent
    return study.folder if marker_of(study.folder, study.name).exists() else None


def _is_file(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike)) and Path(cast("str", source)).suffix.lower() == FILE


def _kind_of(settings: Any) -> str:
    """Return the kind of engine that settings name, before it is known whether they are right."""
    if isinstance(settings, Mapping):
        return str(cast("Mapping[str, Any]", settings).get("kind", EMBEDDED))
    return settings.kind if isinstance(settings, EngineSettings) else EMBEDDED


def _physical(source: Any, kind: str, given: Any) -> dict[str, Type | None]:
    """Return the types that the sources themselves show, by column, or by table.column where there are several."""
    physical = engine_kind(kind).physical_types
    if not isinstance(source, Mapping):
        how = formats_by_table(["table"], given, several=False)["table"]
        return {name: kind for name, _, kind in physical(source, how)}
    tables = cast("Mapping[str, Any]", source)
    formats = formats_by_table(list(tables), given, several=True)
    found: dict[str, Type | None] = {}
    for table, table_source in tables.items():
        found |= {f"{table}.{name}": kind for name, _, kind in physical(table_source, formats[table])}
    return found


def require_units_that_last(study: Study) -> None:
    """Refuse a second data version where units are rows.

    A guarantee speaks of one unit's rows in all versions; which row of one version is a row of another nobody has said.
    """
    if any(isinstance(table.unit, UnitRow) for table in study.tables):
        hint = "give rows a column that names them in every version, and make it the unit; or begin another study"
        raise InvalidStudy("a study whose units are rows must keep its first data version.", hint=f"{hint}.")

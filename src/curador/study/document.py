"""From a document in the shape of a study file to a Study. The one door: files, Python arguments and imports pass here."""

from __future__ import annotations

from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from curador.errors import InvalidParameter
from curador.privacy.adjacency import as_adjacency
from curador.study.amounts import (
    DURATION,
    LEAST,
    SHARE,
    SIZE,
    TICK,
    read_duration,
    read_least,
    read_share,
    read_size,
    read_tick,
)
from curador.study.consistency import UNIT, references
from curador.study.model import (
    DEFAULT_LEAST_SPEND,
    DEFAULT_MAX_UNITS,
    DEFAULT_ROWS,
    Analyst,
    Budget,
    Caps,
    Column,
    EngineSettings,
    Study,
    Table,
    Unit,
    UnitColumn,
    UnitPath,
    UnitRow,
)
from curador.study.raw import RawAnalyst, RawCaps, RawColumn, RawEngine, RawPath, RawStudy, RawTable, shaped
from curador.study.rules import BrokenRule, Where, broken, did_you_mean
from curador.study.spelling import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")
VERSION = 1


def study_from(
    document: Mapping[str, Any], *, ledger: Path, folder: Path, frames: Mapping[str, Any] = MappingProxyType({})
) -> Study:
    """Return the study that the document declares; refuse the first rule that it breaks, by the path of its key."""
    raw = shaped(document, RawStudy)
    if raw.version != VERSION:
        raise broken(("version",), "1", raw.version, "this curador reads version 1 of the study file")
    names = list(raw.tables)
    tables = tuple(_table(name, table, names) for name, table in raw.tables.items())
    word = "row" if any(isinstance(one.unit, UnitRow) for one in tables) else "person"
    return Study(
        name=raw.name,
        tables=tables,
        budget=_parameter(
            lambda: Budget(epsilon=raw.budget.epsilon, delta=raw.budget.delta, delta_keys=raw.budget.delta_keys)
        ),
        ledger=ledger,
        unit_name=word if raw.unit is None else raw.unit.name,
        adjacency=_parameter(lambda: as_adjacency(raw.adjacency)),
        max_units=DEFAULT_MAX_UNITS if raw.max_units is None else raw.max_units,
        least_spend=_least_spend(raw.least_spend),
        engine=_engine(raw.engine, EngineSettings()),
        analysts=tuple(_analyst(name, analyst) for name, analyst in raw.analysts.items()),
        folder=folder,
        frames=frames,
        allow_large_delta=raw.allow_large_delta,
    )


def _parameter(make: Callable[[], T], above: Where = (), instead: str | None = None) -> T:
    """Make a value that names its own broken rules, and tell them by the path of the key."""
    try:
        return make()
    except InvalidParameter as error:
        name, _, rest = str(error).partition(" must be ")
        first, *others = name.split(".")
        raise BrokenRule((*above, instead or first, *others), f"must be {rest}") from None


def _table(name: str, raw: RawTable, names: Sequence[str]) -> Table:
    where: Where = ("tables", name)
    unit = _unit(name, raw, names)
    if unit is None:
        for key in ("caps", "caps_max", "unique"):
            if getattr(raw, key) is not None:
                written = getattr(raw, key)
                shown = written.model_dump(exclude_none=True) if isinstance(written, RawCaps) else written
                raise broken((*where, key), "absent for a public table", shown, "a public table belongs to nobody")
    unique = bool(raw.unique)
    usual = _caps(raw.caps, where, "caps", Caps(rows=1 if unique else DEFAULT_ROWS))
    return Table(
        name=name,
        source=raw.source,
        unit=unit,
        columns=tuple(_column(name, column, declared) for column, declared in raw.columns.items()),
        unique=unique,
        caps=usual,
        caps_max=None if raw.caps_max is None else _caps(raw.caps_max, where, "caps_max", usual),
        key=tuple(raw.key or ()),
    )


def _caps(raw: RawCaps | None, where: Where, key: str, usual: Caps) -> Caps:
    """Return the caps; what is not said is as usual: of `caps` the default, of `caps_max` the cap itself."""
    if raw is None:
        return usual
    given = raw.model_dump(exclude_none=True)
    named = {name: given.get(name, getattr(usual, name)) for name in ("rows", "groups", "rows_per_group")}
    return _parameter(lambda: Caps(**named), where, key)


def _unit(name: str, raw: RawTable, names: Sequence[str]) -> Unit | None:
    where: Where = ("tables", name, "unit")
    if raw.public:
        if raw.unit is not None:
            raise broken(("tables", name, "public"), "absent for a table with a unit", value=True)
        return None
    if raw.unit is None:
        hint = 'say whose rows these are: unit = "user_id"; or public = true if they are of nobody'
        raise broken(where, UNIT, NOTHING, hint)
    if isinstance(raw.unit, RawPath):
        return _path((*where, "references"), raw.unit, names)
    if not raw.unit:
        raise broken(where, UNIT, raw.unit, 'say whose rows these are: unit = "user_id", or "row" where every row is its own')
    return UnitRow() if raw.unit == "row" else UnitColumn(raw.unit)


def _path(where: Where, raw: RawPath, names: Sequence[str]) -> Unit:
    if raw.references is None:
        return UnitColumn(raw.column)
    found = references(raw.references, names)
    rule = 'a table of this study, or a column of one: "orders" or "orders.o_orderkey"'
    if not found:
        written = raw.references
        table = written.rpartition(".")[0] or written if isinstance(written, str) else written
        raise broken(where, rule, written, did_you_mean(table, names))
    if len(found) > 1:
        raise broken(
            where, rule, raw.references, 'write ["<table>"] or ["<table>", "<column>"]: the text can be read in two ways'
        )
    table, key = found[0]
    return UnitPath(raw.column, table, key)


def _column(table: str, name: str, raw: RawColumn) -> Column:
    try:
        return Column(
            name,
            raw.type,  # type: ignore[arg-type]  # read by the column itself, as are bounds and values
            bounds=raw.bounds,  # type: ignore[arg-type]
            values=raw.values,  # type: ignore[arg-type]
            nullable=raw.values is None if raw.nullable is None else raw.nullable,
            length=raw.length,
        )
    except BrokenRule as rule:
        raise rule.under("tables", table, "columns") from None


def engine_from(document: object, usual: EngineSettings) -> EngineSettings:
    """Return the engine's settings that a table of keys declares; what is not said is as usual."""
    return _engine(shaped(document, RawEngine, ("engine",)), usual)


def _engine(raw: RawEngine, usual: EngineSettings) -> EngineSettings:
    return EngineSettings(
        threads=usual.threads if raw.threads is None else raw.threads,
        memory=_amount("memory", raw.memory, usual.memory, read_size, SIZE),
        spill=_amount("spill", raw.spill, usual.spill, read_size, SIZE),
        deadline=_amount("deadline", raw.deadline, usual.deadline, read_duration, DURATION),
        answer_every=_amount("answer_every", raw.answer_every, usual.answer_every, read_tick, TICK),
        prepare=usual.prepare if raw.prepare is None else raw.prepare,
        worker=usual.worker if raw.worker is None else raw.worker,
        unit_rows=usual.unit_rows if raw.unit_rows is None else raw.unit_rows,
        unit_work=_amount("unit_work", raw.unit_work, usual.unit_work, read_duration, DURATION),
    )


def _amount(name: str, written: object, usual: T, read: Callable[[object], T | None], rule: str) -> T:
    found = usual if written is None else read(written)
    if found is None:
        raise broken(("engine", name), rule, written)
    return found


def _least_spend(written: object) -> Fraction:
    if written is None:
        return DEFAULT_LEAST_SPEND
    found = written if isinstance(written, Fraction) else read_least(written)
    if found is None:
        raise broken(("least_spend",), LEAST, written)
    return found


def _analyst(name: str, raw: RawAnalyst) -> Analyst:
    share = raw.share if isinstance(raw.share, Fraction) else read_share(raw.share)
    if share is None:
        raise broken(("analysts", name, "share"), SHARE, raw.share)
    return Analyst(name, share, None if raw.tables is None else tuple(raw.tables), raw.train)

"""From a document in the shape of a study file to a Study. The one door: files, Python arguments and imports pass here.

First the shape: which keys there are and what kind of thing stands behind each. Meaning comes later. Strict: nothing is
converted, and a key that is not known is refused by name.
"""

from __future__ import annotations

from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Tag, ValidationError

from curador.errors import InvalidParameter, InvalidStudy
from curador.privacy.adjacency import as_adjacency
from curador.study.check import UNIT, read_references
from curador.study.formats import format_from
from curador.study.model import (
    DEFAULT_LEAST_SPEND,
    DEFAULT_MAX_UNITS,
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
from curador.study.rules import Where, broken_rule, did_you_mean, move_under
from curador.study.values import (
    DURATION,
    LEAST,
    NOTHING,
    SHARE,
    SIZE,
    TICK,
    read_duration,
    read_least,
    read_share,
    read_size,
    read_tick,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails


# ---- raw -------------------------------------------------------------------------------------------------------------------


_COLUMN, _PATH = "<column>", "<path>"  # tags of a union: parts of pydantic's paths that are no keys of the file


class _Raw(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


R = TypeVar("R", bound=_Raw)


class RawBudget(_Raw):
    """budget = { epsilon, delta, delta_keys }."""

    epsilon: Any
    delta: Any = None
    delta_keys: Any = None


class RawEngine(_Raw):
    """[engine]."""

    threads: int | None = None
    memory: Any = None
    spill: Any = None
    deadline: Any = None
    answer_every: Any = None
    prepare: str | None = None
    prepared: str | None = None
    worker: str | None = None
    unit_rows: int | None = None
    unit_work: Any = None
    kind: str | None = None
    workers: int | None = None
    url: str | None = None


class RawUnitName(_Raw):
    """[unit]."""

    name: str


class RawPath(_Raw):
    """unit = { column, references }."""

    column: str
    references: Any = None


class RawCaps(_Raw):
    """caps = { rows, groups, rows_per_group }."""

    rows: int | None = None
    groups: int | None = None
    rows_per_group: int | None = None


class RawColumn(_Raw):
    """[tables.<name>.columns] <column> = { … }."""

    type: str
    bounds: list[Any] | None = None
    values: list[Any] | None = None
    nullable: bool | None = None
    length: int | None = None


def _kind_of_unit(value: object) -> str:
    return _PATH if isinstance(value, dict) else _COLUMN


class RawTable(_Raw):
    """[tables.<name>]."""

    source: str
    unit: Annotated[Annotated[str, Tag(_COLUMN)] | Annotated[RawPath, Tag(_PATH)], Discriminator(_kind_of_unit)] | None = None
    public: bool | None = None
    unique: bool | None = None
    caps: RawCaps | None = None
    caps_max: RawCaps | None = None
    key: list[str] | None = None
    format: dict[str, Any] | None = None
    columns: dict[str, RawColumn] = {}


class RawAnalyst(_Raw):
    """[analysts] <name> = { … }."""

    share: Any = "100%"
    tables: list[str] | None = None
    train: bool = False


class RawStudy(_Raw):
    """The whole file."""

    version: int
    name: str
    adjacency: Any = "add_or_remove_one"
    budget: RawBudget
    ledger: str
    max_units: int | None = None
    least_spend: Any = None
    allow_large_delta: bool = False
    engine: RawEngine = RawEngine()
    unit: RawUnitName | None = None
    tables: dict[str, RawTable]
    analysts: dict[str, RawAnalyst] = {}


_HINTS = {
    "version": "write version = 1 in the first line",
    "name": 'write name = "visits"',
    "budget": 'write budget = { epsilon = "3", delta = "1e-6" }',
    "epsilon": 'write budget = { epsilon = "3" }',
    "ledger": 'write ledger = "visits.ledger"',
    "source": 'write source = "visits.parquet"',
    "type": 'write type = "integer", or boolean, decimal, float, string, date, timestamp',
    "tables": "write [tables.visits] and below it source and unit",
    "column": 'write unit = { column = "user_id", references = "users" }',
}
_CAPS = "a table such as { rows = 20, groups = 5 }"
_RULES: dict[Where, str] = {
    ("budget",): 'a table such as { epsilon = "3", delta = "1e-6" }',
    ("engine",): "a table such as { threads = 2 }",
    ("unit",): 'a table such as { name = "customer" }',
    ("tables",): "a table with a table below it for each table of the study",
    ("tables", "*"): 'a table such as { source = "visits.parquet", unit = "user_id" }',
    ("tables", "*", "unit"): 'a column, "row", or { column = …, references = … }',
    ("tables", "*", "caps"): _CAPS,
    ("tables", "*", "caps_max"): _CAPS,
    ("tables", "*", "key"): "a list of columns",
    ("tables", "*", "format"): 'a table such as { separator = ";", decimal = ",", dates = "%d/%m/%Y" }',
    ("tables", "*", "columns"): "a table with a table below it for each column",
    ("tables", "*", "columns", "*"): 'a table such as { type = "integer", bounds = [0, 100] }',
    ("tables", "*", "columns", "*", "bounds"): "a list of two values, lower below upper",
    ("tables", "*", "columns", "*", "values"): "a list of values",
    ("analysts",): "a table with a table below it for each analyst",
    ("analysts", "*"): 'a table such as { share = "20%" }',
    ("analysts", "*", "tables"): "a list of tables",
}
_KINDS = {
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "list_type": "a list in brackets",
    "dict_type": "a table of keys",
    "model_type": "a table of keys",
}


def read_shape(document: object, model: type[R], above: Where = ()) -> R:
    """Return the document in its shape; refuse the first thing that does not fit, unknown keys before all others."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        details = sorted(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        raise _broken_shape(details[0], above) from None


def _broken_shape(error: ErrorDetails, above: Where) -> InvalidStudy:
    where: Where = (*above, *(part for part in error["loc"] if part not in {_COLUMN, _PATH}))
    last = where[-1]
    if error["type"] == "extra_forbidden":
        known = _known_keys(where[:-1])
        return broken_rule(where, f"a known key ({', '.join(known)})", last, did_you_mean(last, known))
    if error["type"] == "missing":
        return broken_rule(where, "present", NOTHING, _HINTS.get(str(last)))
    if isinstance(last, int):  # an item of a list of names
        return broken_rule(where, "a list of texts in quotes", error["input"])
    return broken_rule(where, _RULES.get(_pattern(where)) or _KINDS.get(error["type"], "of another kind"), error["input"])


def _pattern(where: Where) -> Where:
    """Return the path with a star for every name that the owner chose."""
    chosen = {1, 3} if where[0] == "tables" else {1} if where[0] == "analysts" else set[int]()
    return tuple(
        "*" if place in chosen and (place == 1 or where[2] == "columns") else part for place, part in enumerate(where)
    )


def _known_keys(above: Where) -> list[str]:
    """Return the keys that may stand below a path."""
    match above:
        case ():
            model: type[_Raw] = RawStudy
        case ("budget",):
            model = RawBudget
        case ("engine",):
            model = RawEngine
        case ("unit",):
            model = RawUnitName
        case ("analysts", _):
            model = RawAnalyst
        case ("tables", _):
            model = RawTable
        case ("tables", _, "unit"):
            model = RawPath
        case ("tables", _, "columns", _):
            model = RawColumn
        case _:
            model = RawCaps
    return sorted(model.model_fields)


# ---- document --------------------------------------------------------------------------------------------------------------


T = TypeVar("T")
VERSION = 1


def study_from(
    document: Mapping[str, Any],
    *,
    ledger: Path,
    folder: Path,
    frames: Mapping[str, Any] = MappingProxyType({}),
    server: str | None = None,
) -> Study:
    """Return the study that the document declares; refuse the first rule that it breaks, by the path of its key."""
    raw = read_shape(document, RawStudy)
    if raw.version != VERSION:
        raise broken_rule(("version",), "1", raw.version, "this curador reads version 1 of the study file")
    names = list(raw.tables)
    tables = tuple(_table(name, table, names) for name, table in raw.tables.items())
    word = "row" if any(isinstance(table.unit, UnitRow) for table in tables) else "person"
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
        server=server,
    )


def _parameter(make: Callable[[], T], above: Where = (), instead: str | None = None) -> T:
    """Make a value that names its own broken rules, and tell them by the path of the key."""
    try:
        return make()
    except InvalidParameter as error:
        first, *others = error.subject.split(".")
        told = InvalidStudy(rule=error.rule, got=error.got, hint=error.hint, path=(instead or first, *others))
        raise move_under(told, *above) from None


def _table(name: str, raw: RawTable, names: Sequence[str]) -> Table:
    where: Where = ("tables", name)
    unit = _unit(name, raw, names)
    if unit is None:
        for key in ("caps", "caps_max", "unique"):
            if getattr(raw, key) is not None:
                written = getattr(raw, key)
                shown = written.model_dump(exclude_none=True) if isinstance(written, RawCaps) else written
                raise broken_rule((*where, key), "absent for a public table", shown, "a public table belongs to nobody")
    unique = bool(raw.unique)
    usual = _caps(raw.caps, where, "caps")
    return Table(
        name=name,
        source=raw.source,
        unit=unit,
        columns=tuple(_column(name, column, declared) for column, declared in raw.columns.items()),
        unique=unique,
        caps=usual,
        caps_max=None if raw.caps_max is None else _caps(raw.caps_max, where, "caps_max", usual),
        key=tuple(raw.key or ()),
        format=None if raw.format is None else format_from(raw.format, (*where, "format")),
    )


def _caps(raw: RawCaps | None, where: Where, key: str, usual: Caps | None = None) -> Caps | None:
    """Return the caps; None where nothing is said of rows. What `caps_max` leaves out is the cap itself."""
    if raw is None:
        return None
    given = raw.model_dump(exclude_none=True)
    named = {name: given.get(name, getattr(usual, name, None)) for name in ("rows", "groups", "rows_per_group")}
    if named["rows"] is None:
        hint = "say rows = …, too; or leave caps out: `curador survey` then finds them privately"
        raise broken_rule((*where, key), "with a number of rows", NOTHING, hint)
    return _parameter(lambda: Caps(**named), where, key)


def _unit(name: str, raw: RawTable, names: Sequence[str]) -> Unit | None:
    where: Where = ("tables", name, "unit")
    if raw.public:
        if raw.unit is not None:
            raise broken_rule(("tables", name, "public"), "absent for a table with a unit", value=True)
        return None
    if raw.unit is None:
        hint = 'say whose rows these are: unit = "user_id"; or public = true if they are of nobody'
        raise broken_rule(where, UNIT, NOTHING, hint)
    if isinstance(raw.unit, RawPath):
        return _path((*where, "references"), raw.unit, names)
    if not raw.unit:
        raise broken_rule(
            where, UNIT, raw.unit, 'say whose rows these are: unit = "user_id", or "row" where every row is its own'
        )
    return UnitRow() if raw.unit == "row" else UnitColumn(raw.unit)


def _path(where: Where, raw: RawPath, names: Sequence[str]) -> Unit:
    if raw.references is None:
        return UnitColumn(raw.column)
    found = read_references(raw.references, names)
    rule = 'a table of this study, or a column of one: "orders" or "orders.o_orderkey"'
    if not found:
        written = raw.references
        table = written.rpartition(".")[0] or written if isinstance(written, str) else written
        raise broken_rule(where, rule, written, did_you_mean(table, names))
    if len(found) > 1:
        raise broken_rule(
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
    except InvalidStudy as rule:
        raise move_under(rule, "tables", table, "columns") from None


def engine_from(document: object, usual: EngineSettings) -> EngineSettings:
    """Return the engine's settings that a table of keys declares; what is not said is as usual."""
    return _engine(read_shape(document, RawEngine, ("engine",)), usual)


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
        kind=usual.kind if raw.kind is None else raw.kind,
        prepared=usual.prepared if raw.prepared is None else raw.prepared,
        workers=usual.workers if raw.workers is None else raw.workers,
        url=usual.url if raw.url is None else raw.url,
    )


def _amount(name: str, written: object, usual: T, read: Callable[[object], T | None], rule: str) -> T:
    found = usual if written is None else read(written)
    if found is None:
        raise broken_rule(("engine", name), rule, written)
    return found


def _least_spend(written: object) -> Fraction:
    if written is None:
        return DEFAULT_LEAST_SPEND
    found = written if isinstance(written, Fraction) else read_least(written)
    if found is None:
        raise broken_rule(("least_spend",), LEAST, written)
    return found


def _analyst(name: str, raw: RawAnalyst) -> Analyst:
    share = raw.share if isinstance(raw.share, Fraction) else read_share(raw.share)
    if share is None:
        raise broken_rule(("analysts", name, "share"), SHARE, raw.share)
    return Analyst(name, share, None if raw.tables is None else tuple(raw.tables), raw.train)

"""A study from Python arguments. They become the document that a file would be, and pass through the same door.

Sources are where tables given from Python come from: files (made relative to one folder) or data frames.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, cast

from curador.privacy.adjacency import Adjacency
from curador.study.check import FRAME
from curador.study.document import VERSION, engine_from, study_from
from curador.study.formats import FileFormat, format_from
from curador.study.frames import is_frame
from curador.study.model import (
    DEFAULT_MAX_UNITS,
    MEMORY,
    Analyst,
    Budget,
    Caps,
    EngineSettings,
    Study,
    Unit,
    UnitColumn,
    UnitPath,
    UnitRow,
)
from curador.study.rules import Where, broken_rule, did_you_mean, dotted_path
from curador.study.values import NOTHING, Type, is_address

# ---- sources ---------------------------------------------------------------------------------------------------------------


_ENDINGS = {".parquet", ".pq", ".xlsx", ".csv", ".tsv", ".txt", ".gz", ".zst", ".duckdb", ".ddb", ".db"}
_PARTED = (".duckdb", ".ddb", ".db", ".xlsx")
"""Files of several tables: which one stands behind a #."""
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class GatheredSources:
    """The folder that relative sources are relative to, the text of each source, and the frames."""

    folder: Path
    texts: Mapping[str, str]
    frames: Mapping[str, Any]


def gather(sources: Mapping[str, Any]) -> GatheredSources:
    """Return the sources by table name. A path is relative to the working folder, as everywhere in Python."""
    frames = {name: value for name, value in sources.items() if is_frame(value)}
    files = {name: _path(("tables", name, "source"), value) for name, value in sources.items() if name not in frames}
    folders = {_still_part(file) for file in files.values()}
    folder = folders.pop() if len(folders) == 1 else Path.cwd()
    texts = {name: FRAME if name in frames else relative_path(files[name], folder).as_posix() for name in sources}
    return GatheredSources(folder, texts, frames)


def relative_path(path: Path, folder: Path) -> Path:
    """Return the path as seen from the folder if it lies below it, else whole."""
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def table_name(path: str | Path) -> str:
    """Return what a file's table is called unless something else is said: its name, that of a part, or a glob's folder."""
    text = os.fspath(path)
    before, mark, table = text.rpartition("#")
    if mark and before.lower().endswith(_PARTED):
        return table
    file = Path(text)
    return _still_part(file.absolute()).name if _WILD & set(file.name) else _stem(file)


def ledger_beside(path: str | Path) -> Path:
    """Return the default ledger of a file: beside it, under its name."""
    before, mark, _ = os.fspath(path).rpartition("#")
    file = Path(os.path.normpath(Path(before if mark and before.lower().endswith(_PARTED) else path).absolute()))
    folder = _still_part(file)
    return folder / f"{folder.name if _WILD & set(file.name) else _stem(file)}.ledger"


def _path(where: Where, value: object) -> Path:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        kind = value if isinstance(value, str) else f"{type(value).__module__}.{type(value).__qualname__}"
        raise broken_rule(where, "a path, or a pandas, Polars or Arrow table", kind, _hint(value))
    return Path(os.path.normpath(Path(value).absolute()))  # type: ignore[arg-type]


def _hint(value: object) -> str | None:
    if type(value).__name__ == "LazyFrame":
        return "collect() it first"
    if hasattr(type(value), "columns"):
        return "a frame of another library needs Narwhals: pip install 'curador[narwhals]'; a relation is fetched first"
    return "several tables are given as { name: source }" if isinstance(value, (list, tuple)) else None


def _stem(file: Path) -> str:
    while file.suffix.lower() in _ENDINGS:
        file = file.with_suffix("")
    return file.name


def _still_part(path: Path) -> Path:
    """Return the deepest folder above every wildcard."""
    folder = path.parent
    while _WILD & set(str(folder)):
        folder = folder.parent
    return folder


# ---- build -----------------------------------------------------------------------------------------------------------------


UnitLike: TypeAlias = str | Mapping[str, Any] | Unit
CapsLike: TypeAlias = Mapping[str, Any] | Caps
FormatLike: TypeAlias = Mapping[str, Any] | FileFormat

_CAPS = {"rows", "groups", "rows_per_group"}


def build_study(
    source: Any,
    *,
    unit: UnitLike,
    budget: Budget,
    name: str | None = None,
    bounds: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
    types: Mapping[str, Type | str | None] | None = None,
    physical: Mapping[str, Type | None] | None = None,
    caps: CapsLike | None = None,
    format: FormatLike | None = None,  # noqa: A002 -- the word of the study file
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    ledger: str | Path | None = None,
    unit_name: str | None = None,
    engine: Mapping[str, Any] | EngineSettings | None = None,
    analysts: Mapping[str, Any] | Sequence[Analyst] | None = None,
    public: Iterable[str] | None = None,
    max_units: int = DEFAULT_MAX_UNITS,
    least_spend: str | int | Fraction | None = None,
    allow_large_delta: bool = False,
) -> Study:
    """Return the study of one source, or of several given as { table name: source }.

    source    a path (Parquet, CSV, glob, "file.duckdb#table") or a pandas, Polars or Arrow table (then name= it)
    unit      a column, "row" or { "column": …, "references": … }; for several tables one for all, or { table: unit }
    bounds    { "column" or "table.column": (lower, upper) }, values likewise with lists
    types     types that the owner declares; every column named here is declared
    physical  types that the source itself shows: the type of a column that has bounds or values and no declared one
    caps      { "rows": 20 }; for several tables one for all, or { table: caps }
    format    { "decimal": ",", "dates": "%d/%m/%Y" }: how texts are read; for several tables { table: format }
    public    names of tables that are of public knowledge
    least_spend  what one question costs at least, of its asker's whole limit; "0.01%" by default
    ledger    default: beside the file, <name>.ledger; must be said for frames and for several sources
    """
    return _build(
        source,
        _Arguments(unit, name, bounds or {}, values or {}, types or {}, physical or {}, caps, ledger, public, format),
        budget=budget,
        adjacency=adjacency,
        unit_name=unit_name or _unit_word(unit),
        engine=engine,
        analysts=analysts,
        max_units=max_units,
        least_spend=least_spend,
        allow_large_delta=allow_large_delta,
    )


def override(
    study: Study, *, ledger: str | Path | None = None, engine: Mapping[str, Any] | EngineSettings | None = None
) -> Study:
    """Return the study with another ledger, or with engine settings laid over its own. Its meaning stays the same."""
    settings = study.engine if engine is None else engine
    settings = settings if isinstance(settings, EngineSettings) else engine_from(dict(settings), study.engine)
    if ledger is None:
        return replace(study, engine=settings)
    if is_address(ledger):
        return replace(study, engine=settings, ledger=Path(f"{study.name}.ledger"), server=str(ledger))
    return replace(study, engine=settings, ledger=relative_path(ledger_path(ledger, None), study.folder), server=None)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """What is said by table or by column."""

    unit: Any
    name: str | None
    bounds: Mapping[str, Any]
    values: Mapping[str, Any]
    types: Mapping[str, Any]
    physical: Mapping[str, Any]
    caps: Any
    ledger: str | Path | None
    public: Iterable[str] | None
    format: Any


def _build(source: Any, given: _Arguments, **others: Any) -> Study:
    several = isinstance(source, Mapping)
    tables: dict[str, Any] = (
        dict(cast("Mapping[str, Any]", source)) if several else {_single_name(source, given.name): source}
    )
    unnamed = [table for table in cast("dict[object, Any]", tables) if not isinstance(table, str)]
    if unnamed:
        raise broken_rule(("source",), "a mapping from table names to sources", unnamed[0])
    sources = gather(tables)
    open_to_all = {given.public} if isinstance(given.public, str) else set(given.public or ())
    for unknown in sorted(open_to_all - set(tables)):
        raise broken_rule(("public",), "a list of tables of this study", unknown, did_you_mean(unknown, list(tables)))
    columns = _columns(list(tables), given)
    formats = formats_by_table(list(tables), given.format, several=several)
    declared: dict[str, dict[str, Any]] = {}
    for table in tables:
        declared[table] = {"columns": columns[table], "format": formats[table] and formats[table].said()}
        if table in open_to_all:
            declared[table]["public"] = True
        else:
            by_table = several and isinstance(given.unit, Mapping)
            declared[table]["unit"] = _unit(given.unit.get(table) if by_table else given.unit)
            by_table = several and _caps_by_table(given.caps)
            declared[table]["caps"] = _caps(given.caps.get(table) if by_table else given.caps)
    name = given.name if given.name is not None else "study" if several else next(iter(tables))
    server = str(given.ledger) if is_address(given.ledger) else None
    if server is not None and (several or is_frame(source)):
        ledger = Path(f"{name}.ledger").absolute()
    else:
        ledger = ledger_path(None if server is not None else given.ledger, None if several else source)
    return replace(assemble(declared, sources, name=name, ledger=ledger, **others), server=server)


def assemble(
    tables: Mapping[str, Mapping[str, Any]],
    sources: GatheredSources,
    *,
    name: str,
    budget: object,
    ledger: Path,
    adjacency: object,
    unit_name: str,
    engine: object,
    analysts: object,
    max_units: int,
    least_spend: object = None,
    allow_large_delta: bool,
) -> Study:
    """Return the study of tables that are declared as in a file, but for their sources. None means absent."""
    document: dict[str, Any] = {
        "version": VERSION,
        "name": name,
        "adjacency": adjacency,
        "budget": _budget(budget),
        "ledger": str(ledger),
        "max_units": max_units,
        "least_spend": least_spend,
        "allow_large_delta": allow_large_delta,
        "engine": _engine(engine),
        "unit": {"name": unit_name},
        "analysts": _analysts(analysts),
        "tables": {table: {"source": sources.texts[table], **declared} for table, declared in tables.items()},
    }
    return study_from(document, ledger=relative_path(ledger, sources.folder), folder=sources.folder, frames=sources.frames)


def _single_name(source: object, name: str | None) -> str:
    if name is not None:
        return name
    if is_frame(source):
        raise broken_rule(("name",), "given for a data frame", NOTHING, 'write name="visits": questions call the table by it')
    return table_name(source) if isinstance(source, (str, os.PathLike)) and os.fspath(source) else "table"  # type: ignore[arg-type]


def ledger_path(ledger: str | Path | None, source: object) -> Path:
    """Return where the ledger lies: where the owner says, else beside the one file."""
    if ledger is not None and Path(ledger) == Path(MEMORY):
        return Path(MEMORY)
    if ledger is not None:
        return Path(os.path.normpath(Path(ledger).absolute()))
    if isinstance(source, (str, os.PathLike)):
        return ledger_beside(source)  # type: ignore[arg-type]
    raise broken_rule(("ledger",), "given for a data frame or several sources", NOTHING, 'write ledger="visits.ledger"')


def _budget(budget: object) -> dict[str, Any]:
    if isinstance(budget, Budget):
        return {"epsilon": budget.epsilon, "delta": budget.delta, "delta_keys": budget.delta_keys}
    if isinstance(budget, Mapping):
        return dict(cast("Mapping[str, Any]", budget))
    raise broken_rule(("budget",), "a Budget", budget, "write budget=cu.Budget(epsilon=3, delta=1e-6)")


def _unit_word(unit: object) -> str:
    """The word for one of those who are protected, where none was given."""
    return "row" if unit == "row" or isinstance(unit, UnitRow) else "person"


def _unit(unit: object) -> object:
    """Return the unit as a file would spell it."""
    if isinstance(unit, UnitRow):
        return "row"
    if isinstance(unit, UnitColumn):
        return {"column": unit.column}
    if isinstance(unit, UnitPath):
        return {"column": unit.column, "references": [unit.table] if unit.key is None else [unit.table, unit.key]}
    return dict(cast("Mapping[str, Any]", unit)) if isinstance(unit, Mapping) else unit


def formats_by_table(tables: Sequence[str], given: Any, *, several: bool) -> dict[str, Any]:
    """Return the format of each table, None where none was said; of several tables each has its own."""
    if given is None:
        return dict.fromkeys(tables)
    if not isinstance(given, (Mapping, FileFormat)):
        raise broken_rule(("format",), 'a mapping such as {"decimal": ","}', given)
    if not several:
        return {tables[0]: format_from(given, ("format",))}
    by_table = cast("Mapping[str, Any]", {} if isinstance(given, FileFormat) else given)
    unknown = next((name for name in by_table if name not in tables), None)
    if not by_table or unknown is not None:
        hint = did_you_mean(unknown, tables) or 'write format={"visits": {"decimal": ","}}'
        raise broken_rule(("format",), "a mapping from tables of this study", unknown or given, hint)
    found = {name: None if one is None else format_from(one, ("tables", name, "format")) for name, one in by_table.items()}
    return {name: found.get(name) for name in tables}


def _caps_by_table(caps: object) -> bool:
    if not isinstance(caps, Mapping):
        return False
    named = cast("Mapping[str, object]", caps)
    return not (set(named) <= _CAPS and all(isinstance(one, int) for one in named.values()))


def _caps(caps: object) -> object:
    if isinstance(caps, Caps):
        named = {"rows": caps.rows, "groups": caps.groups, "rows_per_group": caps.rows_per_group}
        return {key: value for key, value in named.items() if value is not None}
    return dict(cast("Mapping[str, Any]", caps)) if isinstance(caps, Mapping) else caps


def _engine(engine: object) -> object:
    if isinstance(engine, EngineSettings):
        return {
            "threads": engine.threads,
            "memory": engine.memory,
            "spill": engine.spill,
            "deadline": engine.deadline,
            "prepare": engine.prepare,
            "worker": engine.worker,
            "answer_every": engine.answer_every,
            "unit_rows": engine.unit_rows,
            "unit_work": engine.unit_work,
            "kind": engine.kind,
            "prepared": engine.prepared,
            **({} if engine.workers is None else {"workers": engine.workers}),
            **({"url": engine.url} if engine.url else {}),
            **({"store": engine.store} if engine.store else {}),
        }
    return {} if engine is None else dict(cast("Mapping[str, Any]", engine)) if isinstance(engine, Mapping) else engine


def _analysts(analysts: object) -> object:
    if analysts is None:
        return {}
    if not isinstance(analysts, Mapping):
        listed = list(cast("Sequence[object]", analysts)) if isinstance(analysts, Sequence) else []
        known = [one for one in listed if isinstance(one, Analyst)]
        if not listed or len(known) < len(listed):
            raise broken_rule(("analysts",), 'a mapping such as {"ana": "20%"}, or a list of Analyst', analysts)
        analysts = {one.name: {"share": one.share, "tables": one.tables, "train": one.train} for one in known}
    return {name: _analyst(value) for name, value in cast("Mapping[str, Any]", analysts).items()}


def _analyst(value: object) -> object:
    if not isinstance(value, Mapping):
        return {"share": value}
    named = dict(cast("Mapping[str, Any]", value))
    if named.get("tables") is not None and not isinstance(named["tables"], str):
        named["tables"] = list(named["tables"])
    return named


def _columns(tables: list[str], said: _Arguments) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the declared columns of each table, as a file would spell them."""
    for argument in ("bounds", "values", "types", "physical"):
        if not isinstance(getattr(said, argument), Mapping):
            raise broken_rule((argument,), "a mapping from columns", getattr(said, argument))
    found: dict[str, dict[str, Any]] = {table: {} for table in tables}
    for key, kind in said.physical.items():
        table, column = _place_column(key, tables, {}, "physical")
        found[table][column] = kind
    declared: dict[str, dict[str, dict[str, Any]]] = {table: {} for table in tables}
    for what, given in (("type", said.types), ("bounds", said.bounds), ("values", said.values)):
        for key, value in given.items():
            table, column = _place_column(key, tables, found, "types" if what == "type" else what)
            if value is not None:
                spelled = value if what == "type" else _as_list(value, ordered=what == "bounds")
                declared[table].setdefault(column, {})[what] = str(spelled) if isinstance(spelled, Type) else spelled
    for table, columns in declared.items():
        for column, named in columns.items():
            if "type" not in named:
                named["type"] = _physical_type(table, column, found[table])
                if named["type"] == Type.STRING and named.get("bounds") is not None:
                    hint = f'it holds text, as all columns of CSV files and sheets do: write types={{"{column}": "integer"}}'
                    where = ("tables", table, "columns", column, "bounds")
                    raise broken_rule(where, "of a column whose type has bounds", named["bounds"], hint)
    return declared


def _as_list(value: object, *, ordered: bool) -> object:
    """Return a list of what a list of a file would hold; a set has no order to lose."""
    if isinstance(value, (set, frozenset)) and not ordered:
        return sorted(cast("set[Any]", value), key=str)
    if isinstance(value, tuple) or (isinstance(value, Iterable) and not ordered and not isinstance(value, (str, Mapping))):
        return list(cast("Iterable[Any]", value))
    return value


def _place_column(key: object, tables: list[str], found: Mapping[str, Mapping[str, Any]], argument: str) -> tuple[str, str]:
    """Return table and column of a key "column" or "table.column"."""
    if isinstance(key, str) and key:
        fitting = [
            (table, key[len(table) + 1 :]) for table in tables if key.startswith(f"{table}.") and len(key) > len(table) + 1
        ]
        bare = [table for table in tables if key in found.get(table, {})]
        if len(tables) == 1 and (bare or not fitting):
            return tables[0], key
        if len(bare) == 1 and not fitting:
            return bare[0], key
        if len(fitting) == 1 and not bare:
            return fitting[0]
    raise broken_rule((argument,), '"column", or "table.column" where there are several tables', key)


def _physical_type(table: str, column: str, found: Mapping[str, Any]) -> str:
    if found.get(column) is not None:
        return str(found[column])
    where = ("tables", table, "columns", column)
    if column in found:
        raise broken_rule(where, "of a type that can be selected", column, "lists, structs, maps and blobs cannot be")
    if found:
        raise broken_rule(where, "a column of the source", column, did_you_mean(column, list(found)))
    raise broken_rule(
        (*where, "type"), "declared or known from the source", NOTHING, f'write types={{"{dotted_path((column,))}": "float"}}'
    )

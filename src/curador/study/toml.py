"""The study file: text to Study and back. A refusal names the file, the line, the key and what to write instead."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curador.errors import InvalidStudy, sentence
from curador.study.amounts import duration_text, share_text, size_text, tick_text
from curador.study.consistency import references
from curador.study.lines import nearest, places
from curador.study.model import DEFAULT_LEAST_SPEND, Caps, EngineSettings, UnitColumn, UnitPath
from curador.study.rules import BrokenRule, Where, broken
from curador.study.spelling import Plain, key_text, number_text, value_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from curador.study.model import Analyst, Column, Study, Table

LARGEST_FILE = 64_000_000
_GIANT = 2_000  # bits: no number of a study is longer, and Python refuses to print very long ones
_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def read_study(path: str | Path) -> Study:
    """Return the study that a file declares. Sources and ledger are relative to the file's folder."""
    file = Path(path)
    try:
        with file.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InvalidStudy(sentence(str(file), "a file that can be read", error.strerror or "an error")) from None
    if len(data) > LARGEST_FILE:
        raise InvalidStudy(sentence(file.name, f"at most {LARGEST_FILE:,} bytes long", "more"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidStudy(sentence(f"{file.name}, line {line}: the text", "UTF-8", "another encoding")) from None
    return parse_study(text, folder=file.absolute().parent, file=file.name)


def parse_study(text: str, *, folder: Path, file: str = "study.toml") -> Study:
    """Return the study that a text declares, as if it lay in the folder under this name."""
    from curador.study.document import study_from

    document = _document(text, file)
    try:
        _refuse_giants(document)
        ledger = document.get("ledger")
        return study_from(document, ledger=Path(ledger if isinstance(ledger, str) else ""), folder=folder)
    except BrokenRule as rule:
        raise InvalidStudy(_located(rule, text, file)) from None


def _document(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"), parse_float=Decimal)
    except RecursionError:
        raise InvalidStudy(sentence(f"{file}: the text", "nested less deeply", "brackets in brackets")) from None
    except ValueError as error:  # TOMLDecodeError, or an integer too long to read
        found = _POSITION.search(str(error))
        reason = _POSITION.sub("", str(error))
        lines = text.split("\n")
        line = int(found.group(1)) if found and found.group(1) else len(lines)
        written = lines[min(line, len(lines)) - 1].strip()
        raise InvalidStudy(sentence(f"{file}, line {line}: the text", "TOML", written, f"{reason}.")) from None


def _refuse_giants(document: dict[str, Any]) -> None:
    """Refuse integers so long that no later step need expect them; hexadecimal ones pass every other limit."""
    waiting: list[tuple[Where, Any]] = [((), document)]
    while waiting:
        where, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(((*where, key), item) for key, item in value.items())
        elif isinstance(value, list):
            waiting.extend(((*where, place), item) for place, item in enumerate(value))
        elif isinstance(value, int) and value.bit_length() > _GIANT:
            raise broken(where, "a number of at most 400 characters", Plain("a longer one"))


def _located(rule: BrokenRule, text: str, file: str) -> str:
    try:
        place = nearest(places(text), rule.where)
    except (ValueError, IndexError, RecursionError):  # the rule matters more than its line
        place = None
    return f"{file}: {rule}" if place is None else f"{file}, line {place.line}: {place.name(rule.where)} {rule.predicate}"


def to_toml(study: Study) -> str:
    """Return the text of a study file; reading it in the same folder gives the same study, frames aside."""
    return "\n".join(_lines(study)) + "\n"


def _lines(study: Study) -> Iterator[str]:
    yield "version = 1"
    yield f"name = {value_text(study.name)}"
    yield f"adjacency = {value_text(str(study.adjacency))}"
    yield f"budget = {value_text(_budget(study))}"
    yield f"ledger = {value_text(str(study.ledger))}"
    yield f"max_units = {study.max_units:_}"
    if study.least_spend != DEFAULT_LEAST_SPEND:
        yield f"least_spend = {value_text(share_text(study.least_spend))}"
    if study.allow_large_delta:
        yield "allow_large_delta = true"
    if study.engine != EngineSettings():
        yield from ("", "[engine]", *_pairs(_engine(study.engine)))
    yield from ("", "[unit]", f"name = {value_text(study.unit_name)}")
    for table in study.tables:
        yield from _table_lines(study, table)
    if study.analysts:
        yield from ("", "[analysts]", *_pairs({analyst.name: _analyst(analyst) for analyst in study.analysts}))


def _pairs(named: Mapping[str, object]) -> list[str]:
    return [f"{key_text(name)} = {value_text(value)}" for name, value in named.items()]


def _budget(study: Study) -> dict[str, str]:
    budget = study.budget
    named = {"epsilon": budget.epsilon, "delta": budget.delta}
    if budget.delta is not None and budget.delta_keys != budget.delta / 2:
        named["delta_keys"] = budget.delta_keys
    return {name: number_text(value) or "" for name, value in named.items() if value is not None}


def _engine(engine: EngineSettings) -> dict[str, object]:
    return {
        "threads": engine.threads,
        "memory": size_text(engine.memory),
        "spill": size_text(engine.spill),
        "deadline": duration_text(engine.deadline),
        "answer_every": tick_text(engine.answer_every),
        "prepare": engine.prepare,
        "worker": engine.worker,
        "unit_rows": engine.unit_rows,
        "unit_work": duration_text(engine.unit_work),
    }


def _table_lines(study: Study, table: Table) -> Iterator[str]:
    yield from ("", f"[tables.{key_text(table.name)}]", f"source = {value_text(table.source)}")
    if table.public:
        yield "public = true"
        if table.key:
            yield f"key = {value_text(table.key)}"
    else:
        yield f"unit = {value_text(_unit(study, table))}"
        if table.unique:
            yield "unique = true"
        yield f"caps = {value_text(_caps(table.caps))}"
        if table.caps_max is not None:
            yield f"caps_max = {value_text(_caps(table.caps_max))}"
    if table.columns:
        columns = {column.name: _column(column) for column in table.columns}
        yield from (f"[tables.{key_text(table.name)}.columns]", *_pairs(columns))


def _caps(caps: Caps) -> dict[str, int]:
    named = {"rows": caps.rows, "groups": caps.groups, "rows_per_group": caps.rows_per_group}
    return {name: value for name, value in named.items() if value is not None}


def _unit(study: Study, table: Table) -> object:
    unit = table.unit
    if isinstance(unit, UnitColumn):
        return {"column": "row"} if unit.column == "row" else unit.column
    if not isinstance(unit, UnitPath):
        return "row"
    names = [one.name for one in study.tables]
    written = unit.table if unit.key is None else f"{unit.table}.{unit.key}"
    plain = references(written, names) == [(unit.table, unit.key)]
    parts = [unit.table] if unit.key is None else [unit.table, unit.key]
    return {"column": unit.column, "references": written if plain else parts}


def _column(column: Column) -> dict[str, object]:
    named: dict[str, object] = {"type": str(column.type)}
    if column.bounds is not None:
        named["bounds"] = column.bounds
    if column.values is not None:
        named["values"] = column.values
    if column.nullable != (column.values is None):
        named["nullable"] = column.nullable
    if column.length is not None:
        named["length"] = column.length
    return named


def _analyst(analyst: Analyst) -> dict[str, object]:
    named: dict[str, object] = {"share": share_text(analyst.share)}
    if analyst.tables is not None:
        named["tables"] = analyst.tables
    if analyst.train:
        named["train"] = True
    return named

"""The study file: text to Study and back. Its first draft is in `draft.py`.

A refusal names the file, the line, the key and what to write instead.

Lines. On which line of a TOML text a key stands. The standard parser reads values and keeps no places. The text has been
parsed before: it is TOML, and the scanner here only has to find its way through it.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curador.errors import InvalidStudy
from curador.study.check import read_references
from curador.study.model import DEFAULT_LEAST_SPEND, Caps, EngineSettings, UnitColumn, UnitPath
from curador.study.rules import Where, broken_rule, dotted_path, locate
from curador.study.values import (
    Plain,
    duration_text,
    is_address,
    key_text,
    number_text,
    share_text,
    size_text,
    tick_text,
    value_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from curador.study.model import Analyst, Column, Study, Table


# ---- lines -----------------------------------------------------------------------------------------------------------------


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+')
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'  # up to two more quotes may end the text itself
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}#\r\n]*")


@dataclass(frozen=True, slots=True)
class LinePlace:
    """A line, and the header in brackets that it stands under."""

    line: int
    header: Where

    def name(self, where: Where) -> str:
        """Return the path as the file spells it: [header] rest."""
        if not self.header or where[: len(self.header)] != self.header:
            return dotted_path(where)
        return f"[{dotted_path(self.header)}] {dotted_path(where[len(self.header) :])}".rstrip()


def find_places(text: str) -> dict[Where, LinePlace]:
    """Return the place of every key, and of every item of a list."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.found


def nearest_place(found: dict[Where, LinePlace], where: Where) -> LinePlace | None:
    """Return the place of the longest part of the path that stands in the text."""
    return next((found[where[:length]] for length in range(len(where), 0, -1) if where[:length] in found), None)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.header: Where = ()
        self.found: dict[Where, LinePlace] = {}
        self.ends = [match.start() for match in re.finditer("\n", text)]

    def document(self) -> None:
        while self._skip(_BLANK) < len(self.text):
            if self.text[self.at] == "[":
                self._skip(re.compile(r"\[+"))
                start, self.header = self.at, self._key()
                for length in range(1, len(self.header) + 1):
                    self._note(self.header[:length], start)
                self._skip(re.compile(r"[ \t]*\]+"))
            else:
                self._pair(self.header)

    def _pair(self, above: Where) -> None:
        start = self.at
        path = above
        for part in self._key():
            path = (*path, part)
            self._note(path, start)
        self._skip(re.compile(r"[ \t]*=[ \t]*"))
        self._value(path)

    def _key(self) -> Where:
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            match = _KEY.match(self.text, self.at)
            if match is None:
                raise ValueError("no key here")
            written = match.group()
            parts.append(tomllib.loads(f"key = {written}")["key"] if written[0] in "\"'" else written)
            self.at = match.end()
            self._skip(_SPACE)
            if self.text[self.at : self.at + 1] != ".":
                return tuple(parts)
            self.at += 1

    def _value(self, path: Where) -> None:
        first = self.text[self.at : self.at + 1]
        if first == "[":
            self._items(path, "]")
        elif first == "{":
            self._items(path, "}")
        else:
            self._skip(_STRING if first in {'"', "'"} else _PLAIN)

    def _items(self, path: Where, end: str) -> None:
        self.at += 1
        count = 0
        while self.text[self._skip(_BLANK)] != end:
            if end == "]":
                self._note((*path, count))
                self._value((*path, count))
            else:
                self._pair(path)
            count += 1
            self._skip(_BLANK)
            if self.text[self.at] == ",":
                self.at += 1
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return self.at

    def _note(self, path: Where, start: int | None = None) -> None:
        line = bisect_right(self.ends, (self.at if start is None else start) - 1) + 1
        self.found.setdefault(path, LinePlace(line, self.header))


# ---- toml ------------------------------------------------------------------------------------------------------------------


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
        raise InvalidStudy.must_be(str(file), "a file that can be read", error.strerror or "an error") from None
    if len(data) > LARGEST_FILE:
        raise InvalidStudy.must_be(file.name, f"at most {LARGEST_FILE:,} bytes long", "more")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidStudy.must_be("the text", "UTF-8", "another encoding", place=f"{file.name}, line {line}") from None
    return parse_study(text, folder=file.absolute().parent, file=file.name)


def parse_study(text: str, *, folder: Path, file: str = "study.toml") -> Study:
    """Return the study that a text declares, as if it lay in the folder under this name."""
    from curador.study.document import study_from

    document = _document(text, file)
    try:
        _refuse_giants(document)
        ledger = document.get("ledger")
        server = ledger if is_address(ledger) else None
        place = str(ledger) if isinstance(ledger, str) else ""
        if server is not None:  # what is kept on a server has its file beside the study, and its witness
            place = f"{document.get('name')}.ledger"
        return study_from(document, ledger=Path(place), folder=folder, server=server)
    except InvalidStudy as rule:
        raise (_locate(rule, text, file) if rule.path else rule) from None


def _document(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"), parse_float=Decimal)
    except RecursionError:
        raise InvalidStudy.must_be("the text", "nested less deeply", "brackets in brackets", place=file) from None
    except ValueError as error:  # TOMLDecodeError, or an integer too long to read
        found = _POSITION.search(str(error))
        reason = _POSITION.sub("", str(error))
        lines = text.split("\n")
        line = int(found.group(1)) if found and found.group(1) else len(lines)
        written = lines[min(line, len(lines)) - 1].strip()
        raise InvalidStudy.must_be("the text", "TOML", written, f"{reason}.", place=f"{file}, line {line}") from None


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
            raise broken_rule(where, "a number of at most 400 characters", Plain("a longer one"))


def _locate(rule: InvalidStudy, text: str, file: str) -> InvalidStudy:
    """Return the same, with the file and, where it is known, the line and the name that stand there."""
    try:
        line = nearest_place(find_places(text), rule.path)
    except (ValueError, IndexError, RecursionError):  # the rule matters more than its line
        line = None
    if line is None:
        return locate(rule, file)
    return locate(rule, f"{file}, line {line.line}", line.name(rule.path))


def to_toml(study: Study) -> str:
    """Return the text of a study file; reading it in the same folder gives the same study, frames aside."""
    return "\n".join(_lines(study)) + "\n"


def _lines(study: Study) -> Iterator[str]:
    yield "version = 1"
    yield f"name = {value_text(study.name)}"
    yield f"adjacency = {value_text(str(study.adjacency))}"
    yield f"budget = {value_text(_budget(study))}"
    yield f"ledger = {value_text(study.server or str(study.ledger))}"
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
        **({} if engine.kind == EngineSettings().kind else {"kind": engine.kind}),  # as before there were others
        **({"prepared": engine.prepared} if engine.prepared else {}),
        **({} if engine.workers is None else {"workers": engine.workers}),
        **({"url": engine.url} if engine.url else {}),
    }


def _table_lines(study: Study, table: Table) -> Iterator[str]:
    yield from ("", f"[tables.{key_text(table.name)}]", f"source = {value_text(table.source)}")
    if table.format is not None:
        yield f"format = {value_text(table.format.said())}"
    if table.public:
        yield "public = true"
        if table.key:
            yield f"key = {value_text(table.key)}"
    else:
        yield f"unit = {value_text(_unit(study, table))}"
        if table.unique:
            yield "unique = true"
        if table.caps is not None:
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
    plain = read_references(written, names) == [(unit.table, unit.key)]
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

# ruff: noqa: S608 -- names and texts pass through `quoting`, the rest is ours

"""What nearly all values of a text column look like: for an owner who asks for a proposal, `curador init --look`.

Rows are read. What is told of them is a format and a type a column, out of lists that stand here: no value, no extreme, no
number of rows. Each needs nearly all (95 %) of at least a hundred values, a word for NULL or a sign between thousands at
least twenty: no single row brings one about. Near a limit one row may still decide, so this is for the owner alone, who
writes down what is true of the file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from curador.engines.base import LookedTable
from curador.engines.duckdb import sources
from curador.engines.duckdb.connection import look
from curador.engines.duckdb.spelling import TypeFamily, commas, family_of, identifier, text
from curador.engines.duckdb.streams import open_bytes
from curador.errors import InvalidStudy
from curador.study.formats import BLANKS, UTF_8, UTF_16, FileFormat
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from curador.engines.duckdb.sources import TableSource

LEAST_VALUES = 100
LEAST_SIGNS = 20
NEARLY_ALL = 0.95
_MOST_ROWS = 1_000_000
_MOST_BYTES = 1 << 26

_WORDS = ("N/A", "n/a", "NA", "#N/A", "NULL", "null", "None", "NaN", "nan", "-", "--", ".", "?", "k.A.", "n.d.", "s/d", "ND")
_DAYS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y"),
)
_ISO_DAY = "%Y-%m-%d"
_CLOCK = "[ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
_DIGITS = {"%d": "[0-9]{1,2}", "%m": "[0-9]{1,2}", "%Y": "[0-9]{4}", "%y": "[0-9]{2}", "%b": "[A-Za-z]{3}"}


def look_at(source: str, folder: Path, how: FileFormat | None = None) -> LookedTable:
    """Read rows of a file and return how it seems to be written. `how` is what is already known of it."""
    said: dict[str, object] = dict((how or FileFormat()).said())
    notes: dict[str, str] = {}
    if source.lower().partition("#")[0].endswith(sources.TEXT_ENDINGS):
        _look_at_bytes(sources.found_files(source, folder), said, notes)
    found = sources.from_path(source, folder, "looked", how=FileFormat(**said) if said else None)  # type: ignore[arg-type]
    if found.separator not in {None, ","}:
        said.setdefault("separator", found.separator)
    columns = _look_at_values(found)
    types, values = _decide(columns, notes)
    proposed = {**{name: one for name, one in values.items() if name not in said}, **said}
    return LookedTable(FileFormat(**proposed), types, notes)  # type: ignore[arg-type]


# ---- bytes ---------------------------------------------------------------------------------------------------------


def _look_at_bytes(files: tuple[Path, ...], said: dict[str, object], notes: dict[str, str]) -> None:
    """Propose an encoding, and whether newlines stand inside quotes."""
    with open_bytes(files[0]) as file:
        content = file.read(_MOST_BYTES)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        said.setdefault("encoding", UTF_16)
    if said.get("encoding") == UTF_16:
        return
    head, *lines = content.split(b"\n")
    foreign = [line for line in lines if not line.isascii()]
    broken = [line for line in foreign if not _is_utf_8(line)]
    few = len(broken) < LEAST_VALUES or len(broken) < NEARLY_ALL * len(foreign)
    if "encoding" not in said and (not _is_utf_8(head) or not few):
        controls = re.compile(rb"[\x80-\x9f]")
        said["encoding"] = "windows-1252" if sum(bool(controls.search(one)) for one in broken) >= LEAST_SIGNS else "latin-1"
    elif "encoding" not in said and broken:
        notes[""] = "some lines are no UTF-8 and are left out; if all are written otherwise, say encoding"
    if "newlines" not in said and sum(line.count(b'"') % 2 for line in lines) >= 2 * LEAST_SIGNS:
        _look_for_newlines(files, said)


def _look_for_newlines(files: tuple[Path, ...], said: dict[str, object]) -> None:
    """Propose quoted newlines if the whole file is well-formed with them."""
    how = FileFormat(**{**said, "newlines": True})  # type: ignore[arg-type]
    try:
        for file in files:
            stream = sources.from_path(file.name, file.parent, "looked", how=how).stream
            for _ in stream.open() if stream is not None else ():
                pass
    except InvalidStudy:
        return
    said["newlines"] = True


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode(UTF_8)
    except UnicodeDecodeError:
        return False
    return True


# ---- values --------------------------------------------------------------------------------------------------------


def _number(decimal: str, group: str = "") -> str:
    sign = re.escape(decimal)
    whole = f"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+)" if group else "[0-9]+"
    return f"[+-]?(?:{whole}(?:{sign}[0-9]+)?|{sign}[0-9]+)(?:[eE][+-]?[0-9]+)?"


_KINDS = {
    "whole": "[+-]?[0-9]+([.]0{1,2})?",
    "zeros": "0[0-9]+",
    "point": _number("."),
    "comma": _number(","),
    "point,": _number(".", ","),
    "comma.": _number(",", "[.]"),
    "truth": "true|false|TRUE|FALSE|True|False",
    "iso": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "iso time": f"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{_CLOCK}",
}


def _day_regex(pattern: str) -> str:
    return re.sub("%[dmYyb]", lambda one: _DIGITS[one.group()], re.sub("[./-]", lambda one: f"[{one.group()}]", pattern))


def _look_at_values(source: TableSource) -> dict[str, dict[str, int]]:
    """Count, of each text column, the values that look like something; {column: {what: how many}}."""
    connection = look()
    try:
        sources.bind(connection, source)
        names = [one.name for one in sources.columns(connection, source) if family_of(one.physical) is TypeFamily.TEXT]
        if not names:
            return {}
        cut = commas(
            f"trim(CAST({identifier(name)} AS VARCHAR), {text(BLANKS)}) AS v{place}" for place, name in enumerate(names)
        )
        counts = commas(count for place in range(len(names)) for count in _counts(f"v{place}").values())
        found = connection.execute(f"SELECT {counts} FROM (SELECT {cut} FROM {source.scan} LIMIT {_MOST_ROWS})").fetchone()
    finally:
        connection.close()
    keys = list(_counts("v"))
    return {
        name: dict(zip(keys, (int(one) for one in (found or ())[place * len(keys) :]), strict=False))
        for place, name in enumerate(names)
    }


def _counts(x: str) -> dict[str, str]:
    words = commas(text(word) for word in _WORDS)
    said = f"{x} <> '' AND {x} NOT IN ({words})"
    counts = {"values": said}
    counts |= {name: f"{said} AND regexp_full_match({x}, {text(regex)})" for name, regex in _KINDS.items()}
    for pattern in _DAYS:
        day = _day_regex(pattern)
        alone = f"regexp_full_match({x}, {text(day)})"
        timed = f"regexp_full_match({x}, {text(day + _CLOCK)})"
        first = f"regexp_extract({x}, {text('^(' + day + ')')}, 1)"
        read = f"try_strptime({first}, {text(pattern)}) IS NOT NULL"
        counts |= {pattern: f"{alone} AND {read}", f"{pattern} time": f"{timed} AND {read}"}
    counts |= {f"word {word}": f"{x} = {text(word)}" for word in _WORDS}
    return {name: f"count(*) FILTER ({condition})" for name, condition in counts.items()}


# ---- decisions -----------------------------------------------------------------------------------------------------


def _decide(columns: Mapping[str, Mapping[str, int]], notes: dict[str, str]) -> tuple[dict[str, Type], dict[str, object]]:
    """Return the types, and the parts of a format that speak of values."""
    enough = {name: found for name, found in columns.items() if found["values"] >= LEAST_VALUES}
    signs = {sign for sign in (_sign(found) for found in enough.values()) if sign}
    if len(signs) > 1:
        notes[""] = "some columns write numbers with a decimal point and some with a comma: one of them must be mended"
    decimal = signs.pop() if len(signs) == 1 else "."
    grouped = "comma." if decimal == "," else "point,"
    types: dict[str, Type] = {}
    days: dict[str, None] = {}
    for name, found in enough.items():
        kind = _plain_type(found, decimal, grouped)
        if kind is None:
            pattern, kind, note = _day(found)
            if note:
                notes[name] = note
            if pattern:
                days[pattern] = None
        if kind is not None:
            types[name] = kind
    numbers = [enough[name] for name, kind in types.items() if kind.numeric]
    values: dict[str, object] = {"decimal": decimal} if decimal != "." else {}
    plain = "comma" if decimal == "," else "point"
    if any(found[grouped] - found[plain] >= LEAST_SIGNS and _is_signed(found, decimal) for found in numbers):
        values["thousands"] = "." if decimal == "," else ","
    if set(days) - {_ISO_DAY}:
        values["dates"] = list(days)
    words = [word for word in _WORDS if sum(columns[name][f"word {word}"] for name in types) >= LEAST_SIGNS]
    if words:
        values["nulls"] = words
    return types, values


def _near(found: Mapping[str, int], what: str) -> bool:
    return found[what] >= NEARLY_ALL * found["values"]


def _sign(found: Mapping[str, int]) -> str | None:
    """The decimal sign, where nearly all values are numbers by one of them and not by the other; whole ones have none."""
    if _near(found, "whole"):
        return None
    point, comma = _near(found, "point,"), _near(found, "comma.")
    return None if point == comma else "." if point else ","


def _is_signed(found: Mapping[str, int], decimal: str) -> bool:
    """Whether the column itself shows that the sign between thousands is none before a fraction."""
    return _sign(found) == decimal


def _plain_type(found: Mapping[str, int], decimal: str, grouped: str) -> Type | None:
    if _near(found, "truth"):
        return Type.BOOLEAN
    if _near(found, "whole"):
        zeros = found["zeros"] > (1 - NEARLY_ALL) * found["values"]  # a code, such as that of a post office
        return None if zeros else Type.INTEGER
    plain = "comma" if decimal == "," else "point"
    return Type.DECIMAL if _near(found, plain) or (_near(found, grouped) and _is_signed(found, decimal)) else None


def _day(found: Mapping[str, int]) -> tuple[str | None, Type | None, str | None]:
    """The pattern of days, the type, and what to say where two patterns fit alike."""
    for name, kind in (("iso", Type.DATE), ("iso time", Type.TIMESTAMP)):
        if _near(found, name):
            return _ISO_DAY, kind, None
    for end, kind in (("", Type.DATE), (" time", Type.TIMESTAMP)):
        fitting = sorted(((found[day + end], day) for day in _DAYS if _near(found, day + end)), reverse=True)
        if len(fitting) > 1 and fitting[0][0] == fitting[1][0]:
            return None, None, f'days may be "{fitting[0][1]}" or "{fitting[1][1]}": say dates in format, and type = "{kind}"'
        if fitting:
            return fitting[0][1], kind, None
    return None, None, None

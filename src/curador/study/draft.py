"""The first draft of a study file: what can be said of tables without looking at a row. The owner fills in the rest.

References are proposed by names alone, as comments. Where the owner asked to look at rows, a format and types are proposed by
what nearly all values are; never a value, a bound or a cap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from curador.study.formats import FileFormat
from curador.study.rules import is_name
from curador.study.values import Type, key_text, string_text, value_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class DraftTable:
    """One table of a draft.

    physical  its columns: (name, physical type, type or None if it cannot be selected)
    types     types of text columns that nearly all values have, where rows were looked at
    notes     what could not be decided there, by column; "" for the whole table
    """

    name: str
    source: str
    physical: Sequence[tuple[str, str, Type | None]]
    format: FileFormat | None = None
    types: Mapping[str, Type] = field(default_factory=dict[str, Type])
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    looked: bool = False


_HEAD = """\
# A study: what may be asked about a table, and how much privacy all answers together may cost.
# Fill in unit, decide on the budget, and give bounds to the columns that may be summed.
# Bounds and values are what you know about the world, never what you see in the data: they are told to everybody.
version = 1
name = {name}
budget = {{ epsilon = "1", delta = "1e-8" }}   # for ever, over all questions; without delta no private group keys
max_units = 1_000_000                        # at least as many people as there can ever be; delta is at most 1/(100 · this)
ledger = {ledger}

[unit]
name = "person"                              # the word for one of those who are protected
"""
_TABLE = """\

[tables.{table}]
source = {source}
{format}{unit}
{references}# unique = true                              # if nobody has two rows
# caps = {{ rows = 10 }}                       # rows of one person that count; left out: `curador survey` finds it privately
"""
_UNIT = 'unit = ""' + 36 * " " + '# FILL IN: the column that says whose row it is; "row": each is its own person'
_LOOKED = (
    "# Rows were looked at: format and the types of texts are what nearly all values are. Are they what you know of the file?"
)
_FILL = {
    Type.INTEGER: "# bounds = [lower, upper]",
    Type.DECIMAL: "# bounds = [lower, upper]",
    Type.FLOAT: "# bounds = [lower, upper]",
    Type.DATE: '# bounds = ["yyyy-mm-dd", "yyyy-mm-dd"]',
    Type.TIMESTAMP: '# bounds = ["yyyy-mm-ddThh:mm:ss", "yyyy-mm-ddThh:mm:ss"]',
    Type.STRING: '# values = ["…", "…"]',
    Type.BOOLEAN: "# values = [false, true]",
}


def draft_toml(name: str, tables: Sequence[DraftTable]) -> str:
    """Return the draft of a study of this name.

    Nothing of the rows is in it: the labels of an enumerated type, which stand in the type's own text, are left out.
    """
    head = _HEAD.format(name=string_text(name), ledger=string_text(f"{_file_name(name)}.ledger"))
    lines = [head.rstrip("\n"), *([_LOOKED] if any(table.looked for table in tables) else [])]
    for table in tables:
        lines += _table_lines(table, tables)
    return "\n".join(lines) + "\n"


def _table_lines(table: DraftTable, tables: Sequence[DraftTable]) -> Iterator[str]:
    said = {} if table.format is None else table.format.said()
    written = f"format = {value_text(said)}\n" if said else ""
    written += f"# {table.notes['']}\n" if "" in table.notes else ""
    proposed = "".join(
        f"# unit = {value_text({'column': column, 'references': there})}\n" for column, there in references(table, tables)
    )
    whole = _TABLE.format(
        table=key_text(table.name), source=string_text(table.source), format=written, unit=_UNIT, references=proposed
    )
    yield whole.rstrip("\n")
    yield from _columns(table)


def _columns(table: DraftTable) -> Iterator[str]:
    seen: set[str] = set()
    left_out: list[str] = []
    for name, text, kind in table.physical:
        if kind is None or not is_name(name) or name.casefold() in seen:
            left_out.append(f"#   {key_text(name)}   {_plain(text)}")
            continue
        seen.add(name.casefold())
        found = table.types.get(name, kind)
        yield ""
        yield f"[tables.{key_text(table.name)}.columns.{key_text(name)}]   # {_plain(text)}"
        yield f'type = "{found}"' + ("" if found is kind else "   # nearly all values are of this type")
        if name in table.notes:
            yield f"# {table.notes[name]}"
        yield _FILL[found]
    if left_out:
        yield from (
            "",
            "# Columns that cannot be selected (lists, structs, maps, blobs, reserved or repeated names):",
            *left_out,
        )


# ---- references ----------------------------------------------------------------------------------------------------


_KEY = re.compile(r"^(?P<stem>.+?)_?(?:id|key|no|nr|num|number|code)$")
_PREFIX = re.compile(r"^[a-z]{1,2}_(?=.{3})")


def references(table: DraftTable, tables: Sequence[DraftTable]) -> list[tuple[str, str | list[str]]]:
    """Return (column, table or key of one) by which rows may be found to be somebody's, by names alone.

    A column such as order_id speaks of a table such as orders that has it, too, or that has a column id. Which of them leads
    to the people who are protected the owner says.
    """
    found: list[tuple[str, str | list[str]]] = []
    for name, _, kind in table.physical:
        stem = _stem(name) if kind in {Type.INTEGER, Type.STRING} and is_name(name) else None
        for other in tables if stem else ():
            if other is table or not _is_called(other.name, stem or ""):
                continue
            keys = [one for one, _, _ in other.physical if _stem(one) == stem or one.lower() in {"id", "key", "code"}]
            if keys:
                found.append((name, [other.name, keys[0]] if "." in other.name + keys[0] else f"{other.name}.{keys[0]}"))
    return found


def _stem(column: str) -> str | None:
    """What a key is of: order for order_id, orderId, o_orderkey."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).lower().replace(" ", "_")
    match = _KEY.match(_PREFIX.sub("", plain))
    return match["stem"].rstrip("_") if match else None


def _is_called(table: str, stem: str) -> bool:
    name = table.lower()
    return len(stem) > 2 and (name.startswith(stem) or stem in {name.removesuffix("s"), name.removesuffix("es")})


# ---- what they share -----------------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """Return a physical type as a comment can hold it: one line, and without the labels of an ENUM, which are data."""
    without = re.sub(r"(?is)\b(enum|dictionary|categorical)\b.*", lambda match: match.group(1), text)
    line = " ".join("".join(character if character.isprintable() else " " for character in without).split())
    return line if len(line) <= 80 else line[:77] + "..."


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "study"

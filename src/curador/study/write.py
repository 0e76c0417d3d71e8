"""The first draft of a study file: what can be said of a table without looking at a row. The owner fills in the rest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from curador.study.rules import is_name
from curador.study.spelling import key_text, string_text
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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

[tables.{table}]
source = {source}
unit = ""                                    # FILL IN: the column that says whose row it is; "row": each is its own person
# unique = true                              # if nobody has two rows
# caps = {{ rows = 10, groups = 4 }}           # what one person may contribute to one question
"""
_FILL = {
    Type.INTEGER: "# bounds = [lower, upper]",
    Type.DECIMAL: "# bounds = [lower, upper]",
    Type.FLOAT: "# bounds = [lower, upper]",
    Type.DATE: '# bounds = ["yyyy-mm-dd", "yyyy-mm-dd"]',
    Type.TIMESTAMP: '# bounds = ["yyyy-mm-ddThh:mm:ss", "yyyy-mm-ddThh:mm:ss"]',
    Type.STRING: '# values = ["…", "…"]',
    Type.BOOLEAN: "# values = [false, true]",
}


def draft_toml(name: str, source: str, physical: Sequence[tuple[str, str, Type | None]]) -> str:
    """Return the draft for a table with these columns: (name, physical type, type or None if it cannot be selected).

    Nothing of the rows is in it: the labels of an enumerated type, which stand in the type's own text, are left out.
    """
    head = _HEAD.format(
        name=string_text(name),
        table=key_text(name),
        source=string_text(source),
        ledger=string_text(f"{_file_name(name)}.ledger"),
    )
    return "\n".join([head.rstrip("\n"), *_columns(name, physical)]) + "\n"


def _columns(table: str, physical: Sequence[tuple[str, str, Type | None]]) -> Iterator[str]:
    seen: set[str] = set()
    left_out: list[str] = []
    for name, text, kind in physical:
        if kind is None or not is_name(name) or name.casefold() in seen:
            left_out.append(f"#   {key_text(name)}   {_plain(text)}")
            continue
        seen.add(name.casefold())
        yield ""
        yield f"[tables.{key_text(table)}.columns.{key_text(name)}]   # {_plain(text)}"
        yield f'type = "{kind}"'
        yield _FILL[kind]
    if left_out:
        yield from (
            "",
            "# Columns that cannot be selected (lists, structs, maps, blobs, reserved or repeated names):",
            *left_out,
        )


def _plain(text: str) -> str:
    """Return a physical type as a comment can hold it: one line, and without the labels of an ENUM, which are data."""
    without = re.sub(r"(?is)\b(enum|dictionary|categorical)\b.*", lambda match: match.group(1), text)
    line = " ".join("".join(character if character.isprintable() else " " for character in without).split())
    return line if len(line) <= 80 else line[:77] + "..."


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "study"

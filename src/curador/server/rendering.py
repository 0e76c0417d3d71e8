"""How answers, previews and tables look to programs: plain JSON values, and Arrow beside them.

An answer is written by `curator/wire.py`, where clients read it. What is written here is a function of what was released, of
the question and of public declarations.
"""

from __future__ import annotations

import datetime as dt
import io
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.curator.wire import answer_record
from curador.server.limits import part_of
from curador.study.model import owner_text
from curador.study.values import Type, number_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from curador.answers.column import AnswerColumn
    from curador.curator.answer import Answer
    from curador.curator.options import QuestionOptions
    from curador.curator.preview import Preview, Previews
    from curador.ledger.amounts import Amounts
    from curador.study.model import Caps, Schema, TableSchema


# ---- answers -------------------------------------------------------------------------------------------------------------


def answer_body(answer: Answer, *, question: str, options: Mapping[str, Any], limit: Amounts, version: int) -> dict[str, Any]:
    """Return the answer as plain values, without its id and links."""
    said = answer_record(answer)
    cost = {**said["cost"], "share": part_number(part_of(answer.cost, limit))}
    return {"question": question, "options": dict(options), **said, "cost": cost, "data_version": version}


def arrow_bytes(answer: Answer) -> bytes:
    """Return the answer as an Arrow stream."""
    import pyarrow as pa

    table, stream = answer.to_arrow(), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def plain(value: Any) -> Any:
    """Return a declared value as JSON has it; None where no number can be said."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Fraction():
            return number_text(value)
        case dt.date():  # a datetime is one, too
            return value.isoformat()
        case _:
            return str(value)


def part_number(part: Fraction) -> float:
    """Return a part of a limit as a number between 0 and 1, rounded up: a cost never looks smaller than it is."""
    found = float(part)
    return found if Fraction(found) >= part else math.nextafter(found, math.inf)


# ---- previews ------------------------------------------------------------------------------------------------------------


def preview_body(preview: Preview, columns: Iterable[AnswerColumn]) -> dict[str, Any]:
    """Return a preview as plain values."""
    body = preview.to_dict()
    return {
        **body,
        "sentences": [error.sentence() for error in preview.errors],
        "share": part_number(part_of(preview.cost, preview.limit)),
        "columns": [{"name": one.name, "type": one.type.value, "interval": one.low is not None} for one in columns],
    }


def previews_body(previews: Preview | Previews, columns: Sequence[Iterable[AnswerColumn]]) -> dict[str, Any]:
    """Return several previews as plain values."""
    if not hasattr(previews, "questions"):
        raise TypeError(previews)
    bodies = [preview_body(one, own) for one, own in zip(previews.questions, columns, strict=True)]
    return {"questions": bodies, "cost": previews.cost.record(), "fits": previews.fits}


# ---- options -------------------------------------------------------------------------------------------------------------


def options_record(options: QuestionOptions) -> dict[str, Any]:
    """Return options as plain JSON values, those that say something: numbers as texts, so that they are exact."""
    from dataclasses import fields

    found: dict[str, Any] = {}
    for option in fields(options):
        value = getattr(options, option.name)
        if value != option.default or type(value) is not type(option.default):
            found[option.name] = _option(value)
    return found


def _option(value: Any) -> Any:
    from curador.study.model import Caps

    match value:
        case None | bool() | str() | int():
            return value
        case float() | Fraction():
            return str(value)
        case Caps():
            named = {name: getattr(value, name) for name in ("rows", "groups", "rows_per_group")}
            return {name: own for name, own in named.items() if own is not None}
        case tuple() | list():
            return [_option(one) for one in value]
        case dict():
            return {str(name): _option(one) for name, one in value.items()}
        case _ if hasattr(value, "items"):
            return {str(name): _option(one) for name, one in value.items()}
        case _:
            return str(value)


# ---- tables --------------------------------------------------------------------------------------------------------------


def tables_body(schema: Schema) -> list[dict[str, Any]]:
    """Return every table with its columns, as they are declared or of public knowledge; no place of a source."""
    return [_table_body(one, schema.study.unit_name) for one in schema.tables]


def _table_body(known: TableSchema, unit_name: str) -> dict[str, Any]:
    table = known.table
    return {
        "name": table.name,
        "description": table.description,
        "public": table.public,
        "unit": None if table.public else owner_text(table.unit),
        "unit_name": None if table.public else unit_name,
        "caps": caps_body(table.caps),
        "columns": [
            {
                "name": field.name,
                "type": field.type.value,
                "description": None if field.declared is None else field.declared.description,
                "bounds": None if field.declared is None or field.declared.bounds is None else _values(field.declared.bounds),
                "values": None if field.declared is None or field.declared.values is None else _values(field.declared.values),
                "nullable": field.nullable,
                "declared": field.declared is not None,
            }
            for field in known.fields
        ],
    }


def caps_body(caps: Caps | None) -> dict[str, Any] | None:
    """Return caps as plain values."""
    if caps is None:
        return None
    return {"rows": caps.rows, "groups": caps.groups, "rows_per_group": caps.rows_per_group}


def _values(values: Sequence[Any]) -> list[Any]:
    return [plain(value) if isinstance(value, (str, bool)) else _text(value) for value in values]


def _text(value: Any) -> Any:
    return number_text(value) if isinstance(value, (int, Fraction)) else plain(value)


def type_is_text(kind: str) -> bool:
    """Whether a column of this type holds texts that somebody wrote."""
    return kind == Type.STRING.value

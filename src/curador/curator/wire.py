"""What goes between a service and its clients: answers and errors as plain JSON values, written and read in one place.

Claim   What is read shows what was written: `answer_of_record(answer_record(a))` has the columns, values, types, ends, notes,
        cost and confidence of a, exactly; an error comes back as its own class, with the same sentence and fields.
Rounds  Nothing. Whole numbers that a double does not hold, and floats that JSON has no number for, are texts.

Light: a client imports this and no engine. Previews and budgets write and read themselves (`to_dict`, `from_dict`).
"""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from curador.answers.column import AnswerColumn
from curador.answers.lost import advice, estimate_sentence
from curador.curator.answer import HIGH, LOW, Answer
from curador.errors import CuradorError, Failed
from curador.ledger.amounts import Amounts
from curador.study.values import Type
from curador.text import escaped_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from curador.curator.receipt import Receipt

EXACT_IN_A_DOUBLE: Final = 1 << 53
"""Whole numbers up to here are exact as doubles."""

# ---- answers ---------------------------------------------------------------------------------------------------------------


def answer_record(answer: Answer) -> dict[str, Any]:
    """Return what an answer says by itself, as plain values; where its receipt is, a service adds."""
    columns: list[dict[str, Any]] = []
    flat: dict[str, list[Any]] = {}
    for part in answer.parts:
        ends = {} if part.low is None or part.high is None else {LOW: part.low, HIGH: part.high}
        held = {part.name + ending: [_own(value) for value in values] for ending, values in {"": part.values, **ends}.items()}
        exact = part.type.numeric and any(_too_long(value) for values in held.values() for value in values)
        columns.append({**column_record(part), **({"exact": True} if exact else {})})
        flat |= {name: [_written(value, exact=exact) for value in values] for name, values in held.items()}
    bias = [estimate_sentence(part) for part in answer.bias]
    advised = advice(answer.bias)
    return {
        "columns": columns,
        "rows": [dict(zip(flat, row, strict=True)) for row in zip(*flat.values(), strict=True)],
        "confidence": _level(answer.confidence),
        "notes": list(answer.notes),
        "left_out": bias if advised is None else [*bias, advised],
        "bias": [_estimate(part) for part in answer.bias],
        "cost": answer.cost.record(),
        "stored": answer.stored,
        "made_up": answer.made_up,
    }


def column_record(part: AnswerColumn) -> dict[str, Any]:
    """Return what is said of a column before its values."""
    interval = part.low is not None
    kind = "value" if interval or part.unproved else "key"
    return {"name": part.name, "type": part.type.value, "kind": kind, "interval": interval}


def answer_of_record(
    record: Mapping[str, Any],
    *,
    receipt: Callable[[], Receipt] | None,
    again: Callable[[Fraction], tuple[AnswerColumn, ...]],
) -> Answer:
    """Return the answer that `answer_record` wrote.

    receipt   fetches it; None of an answer about made-up rows
    again     returns the columns with intervals of another confidence
    """
    return Answer(
        columns_of_record(record),
        Amounts.from_record({name: record["cost"][name] for name in ("epsilon", "rho", "delta")}),
        None if record["made_up"] else receipt,
        record["stored"],
        Fraction(str(record["confidence"])),
        tuple(record["notes"]),
        tuple(_column_of_estimate(one) for one in record["bias"]),
        again=again,
    )


def columns_of_record(record: Mapping[str, Any]) -> tuple[AnswerColumn, ...]:
    """Return the columns of an answer, with their intervals."""
    rows: Sequence[Mapping[str, Any]] = record["rows"]
    found: list[AnswerColumn] = []
    for column in record["columns"]:
        name, kind = column["name"], Type(column["type"])

        def values(ending: str, name: str = name, kind: Type = kind) -> list[Any]:
            return [_read(row[name + ending], kind) for row in rows]

        ends = (values(LOW), values(HIGH)) if column["interval"] else (None, None)
        found.append(
            AnswerColumn(name, kind, values(""), *ends, unproved=column["kind"] == "value" and not column["interval"])
        )
    return tuple(found)


def _level(confidence: Fraction) -> float | str:
    """A number where its decimal means the level exactly."""
    number = float(confidence)
    return number if Fraction(str(number)) == confidence else str(confidence)


def _estimate(part: AnswerColumn) -> dict[str, Any]:
    low, high = (None if ends is None else _own(ends[0]) for ends in (part.low, part.high))
    return {"name": part.name, "share": _own(part.values[0]), "low": low, "high": high}


def _column_of_estimate(record: Mapping[str, Any]) -> AnswerColumn:
    return AnswerColumn(record["name"], Type.FLOAT, [record["share"]], [record["low"]], [record["high"]])


def _own(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value  # a number of numpy's


def _too_long(value: Any) -> bool:
    return (type(value) is int and abs(value) > EXACT_IN_A_DOUBLE) or (isinstance(value, float) and not math.isfinite(value))


def _written(value: Any, *, exact: bool) -> Any:
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    if exact and isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value)
    return value


def _read(value: Any, kind: Type) -> Any:
    if not isinstance(value, str):
        return value
    match kind:
        case Type.INTEGER:
            return int(value)
        case Type.DECIMAL | Type.FLOAT:
            return int(value) if value.lstrip("-").isdigit() else float(value)
        case Type.DATE:
            return dt.date.fromisoformat(value)
        case Type.TIMESTAMP:
            return dt.datetime.fromisoformat(value)
        case _:
            return value


# ---- errors ----------------------------------------------------------------------------------------------------------------


def error_of_record(record: Mapping[str, Any]) -> CuradorError:
    """Return the error whose `fields` these are, as its own class; one of an unknown name is a failure.

    What a terminal would obey instead of showing is written as its code: the sentence came over a network.
    """
    said = {
        name: escaped_text(str(record[name]))
        for name in ("sentence", "subject", "rule", "got", "hint", "place")
        if name in record
    }
    kind = next((one for one in _kinds(CuradorError) if one.__name__ == record.get("error")), Failed)
    made = kind(
        subject=said.get("subject", ""),
        rule=said.get("rule", ""),
        got=said.get("got", ""),
        hint=said.get("hint"),
        place=said.get("place"),
    )
    sentence = said.get("sentence", "the service said nothing that can be read.")
    if made.sentence == sentence:
        return made
    return kind(
        sentence,
        subject=said.get("subject", ""),
        rule=said.get("rule", ""),
        got=said.get("got", ""),
        hint=said.get("hint"),
        place=said.get("place"),
    )


def _kinds(of: type[CuradorError]) -> Iterator[type[CuradorError]]:
    yield of
    for kind in of.__subclasses__():
        yield from _kinds(kind)

"""Tables and columns as a service describes them: what is public of a study, under the names that a local schema has."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from curador.study.values import Type
from curador.text import make_table, plain_text, verbatim

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class RemoteField:
    """A column: its type, and what is declared of it in public."""

    name: str
    type: Type
    nullable: bool
    description: str = ""
    bounds: tuple[Any, Any] | None = None
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """A table; `table` is what it is called and whose rows it holds."""

    table: SimpleNamespace
    fields: tuple[RemoteField, ...]


@dataclass(frozen=True, slots=True)
class RemoteSchema:
    """Every table that can be asked about; `record` is the description as it came."""

    tables: tuple[RemoteTable, ...]
    record: Mapping[str, Any] = field(repr=False)

    def table(self, name: str) -> RemoteTable | None:
        """Return the table of this name, whatever its case."""
        return next((one for one in self.tables if one.table.name.lower() == name.lower()), None)

    def __rich__(self) -> Any:
        made = make_table("table", "column", "type", "bounds or values", left=4)
        for table in self.tables:
            for column in table.fields:
                made.add_row(*map(verbatim, (table.table.name, column.name, str(column.type), _declared(column))))
        return made

    def __str__(self) -> str:
        return plain_text(self)


def schema_of_record(record: Mapping[str, Any]) -> RemoteSchema:
    """Return the schema that a service described."""
    return RemoteSchema(tuple(_table(one) for one in record["tables"]), record)


def _table(record: Mapping[str, Any]) -> RemoteTable:
    named = SimpleNamespace(**{name: record.get(name) for name in ("name", "description", "public", "unit", "caps")})
    return RemoteTable(named, tuple(_field(one) for one in record["columns"]))


def _field(record: Mapping[str, Any]) -> RemoteField:
    bounds, values = record.get("bounds"), record.get("values")
    return RemoteField(
        record["name"],
        Type(record["type"]),
        bool(record.get("nullable", True)),
        record.get("description") or "",
        None if bounds is None else (bounds[0], bounds[1]),
        None if values is None else tuple(values),
    )


def _declared(column: RemoteField) -> str:
    if column.bounds is not None:
        return f"{column.bounds[0]} … {column.bounds[1]}"
    return "" if column.values is None else ", ".join(map(str, column.values))

"""The shape of a study file: which keys there are and what kind of thing stands behind each. Meaning comes later.

Strict: nothing is converted, and a key that is not known is refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Tag, ValidationError

from curador.study.rules import BrokenRule, Where, broken, did_you_mean
from curador.study.spelling import NOTHING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

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
    worker: str | None = None
    unit_rows: int | None = None
    unit_work: Any = None


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


def shaped(document: object, model: type[R], above: Where = ()) -> R:
    """Return the document in its shape; refuse the first thing that does not fit, unknown keys before all others."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        details = sorted(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        raise _told(details[0], above) from None


def _told(error: ErrorDetails, above: Where) -> BrokenRule:
    where: Where = (*above, *(part for part in error["loc"] if part not in {_COLUMN, _PATH}))
    last = where[-1]
    if error["type"] == "extra_forbidden":
        known = _known_keys(where[:-1])
        return broken(where, f"a known key ({', '.join(known)})", last, did_you_mean(last, known))
    if error["type"] == "missing":
        return broken(where, "present", NOTHING, _HINTS.get(str(last)))
    if isinstance(last, int):  # an item of a list of names
        return broken(where, "a list of texts in quotes", error["input"])
    return broken(where, _RULES.get(_pattern(where)) or _KINDS.get(error["type"], "of another kind"), error["input"])


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

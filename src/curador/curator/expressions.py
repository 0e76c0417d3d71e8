"""Questions as Ibis expressions, for who prefers data frames: tables without rows, and the text that an expression is.

A table is made of what the asker's schema shows, and bound to no connection: an expression over it holds no row and reaches
none. What is asked is the SQL that Ibis makes of it in DuckDB's words, and from there on it is a text like any other: the
same limits, the same allow-list, the same identity. So nothing here has to be trusted, and what Ibis can write but the
language does not have is refused as in a text.

Ibis is looked at only where somebody gives something that is no text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from curador.errors import InvalidParameter, InvalidQuery
from curador.query.messages import invalid, quote_name, suggest_names
from curador.study.values import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MOST_NODES = 5_000
"""Parts of an expression, each counted as often as it would be written: a text has no more tokens (`query/text.py`)."""

_DIALECT = "duckdb"
_MISSING = "an expression needs Ibis."
_INSTALL = "pip install 'curador[ibis]' brings it; a question can be a text of SQL as well."
_TYPES = {
    Type.BOOLEAN: "boolean",
    Type.INTEGER: "int64",
    Type.DECIMAL: "decimal",
    Type.FLOAT: "float64",
    Type.STRING: "string",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}


class ShownField(Protocol):
    """A column that an asker sees: its name and type."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> Type: ...


class ShownTable(Protocol):
    """A table that an asker sees; what it is called stands in `table.name`."""

    @property
    def table(self) -> Any: ...
    @property
    def fields(self) -> Sequence[Any]: ...


class ShownSchema(Protocol):
    """What an asker sees of a study: on the same machine, or as a service describes it."""

    @property
    def tables(self) -> Sequence[Any]: ...
    def table(self, name: str) -> Any: ...


def unbound_table(schema: ShownSchema, name: str) -> Any:
    """Return an Ibis table of what the schema shows of one table. It has no rows and no connection."""
    ibis = _ibis()
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidParameter.must_be("a table", "the name of one", name)
    found: ShownTable | None = schema.table(name)
    if found is None:
        raise _unknown(name, schema)
    return ibis.table({field.name: _TYPES[field.type] for field in found.fields}, name=found.table.name)


def is_expression(question: object) -> bool:
    """Whether something is an Ibis expression; Ibis is not imported for it."""
    return any(kind.__module__.partition(".")[0] == "ibis" for kind in type(question).__mro__)


def text_of(question: object, schema: Callable[[], ShownSchema], made: Mapping[str, Any], dialect: str) -> str:
    """Return the SQL of an expression over tables of the schema; refuse anything else. Nothing here reads data.

    made: tables that were made of the schema before; the schema itself, which may be at a service, is asked only for others.
    """
    if not is_expression(question):
        rule = 'a text of SQL, or an Ibis expression over curator.table("…")'
        raise InvalidQuery.must_be("a question", rule, type(question).__name__)
    ibis = _ibis()
    if not isinstance(question, ibis.Expr):
        hint = 'begin with a table: curator.table("visits").filter(_.age > 30).count()'
        raise InvalidParameter.must_be("an expression", "of a table", type(question).__name__, hint)
    if dialect != _DIALECT:
        raise InvalidParameter.must_be("dialect", "left out for an expression, which has none", dialect)
    _require_ours(ibis, question.op(), schema, made)
    return _sql_of(ibis, question)


def _require_ours(ibis: Any, top: Any, schema_now: Callable[[], ShownSchema], made: Mapping[str, Any]) -> None:
    """Refuse an expression that is too large, or that reads anything but tables made of the schema."""
    operations = ibis.expr.operations
    for node in _counted(top, operations):
        if not isinstance(node, operations.PhysicalTable):
            continue
        name = getattr(node, "name", None)
        if not isinstance(node, operations.UnboundTable) or not isinstance(name, str):
            raise _not_ours(quote_name(name) if isinstance(name, str) else type(node).__name__)
        if name in made and node == made[name].op():
            continue
        schema = schema_now()
        if schema.table(name) is None:
            raise _unknown(name, schema)
        if node != unbound_table(schema, name).op():
            raise _not_ours(quote_name(name))


def _counted(top: Any, operations: Any) -> Iterable[Any]:
    """Return the different parts of an expression; refuse one that would be written too long.

    A part that is used twice is one object, and is written twice: doubling a column fifty times has fifty parts and no end. A
    column of a table counts once, whatever the table is made of, as the table is written in FROM. Nothing recurses.
    """
    sizes: dict[Any, int] = {}
    waiting: list[Any] = [top]
    while waiting:
        node = waiting[-1]
        if node in sizes:
            waiting.pop()
            continue
        children = [] if isinstance(node, operations.Field) else _parts_of(node, operations)
        missing = [one for one in children if one not in sizes]
        if missing:
            waiting += missing
            continue
        sizes[waiting.pop()] = size = 1 + sum(sizes[one] for one in children)
        if size > MOST_NODES or len(sizes) > MOST_NODES:
            raise InvalidQuery(f"An expression must have at most {MOST_NODES:,} parts, each as often as it would be written.")
    return sizes


def _parts_of(node: Any, operations: Any) -> list[Any]:
    """Return what a part is made of, as often as it stands there: operations, also those in its lists and mappings."""
    found: list[Any] = []
    waiting = list(node.__args__)
    while waiting:
        one = waiting.pop()
        if isinstance(one, operations.Node):
            found.append(one)
        elif isinstance(one, (tuple, list, frozenset)):
            waiting += one
        elif hasattr(one, "values") and hasattr(one, "keys"):
            waiting += one.values()
    return found


def _sql_of(ibis: Any, expression: Any) -> str:
    try:
        return str(ibis.to_sql(expression, dialect=_DIALECT))
    except RecursionError:
        raise InvalidQuery("An expression must be less deep than this one.") from None
    except Exception as problem:  # noqa: BLE001 -- Ibis has errors of many kinds; the expression is the asker's own
        said = " ".join(str(problem).split())[:200] or type(problem).__name__
        hint = "a question can be a text of SQL as well"
        raise InvalidQuery(f"An expression must have a form in SQL; Ibis says: {said}", hint=f"{hint}.") from None


def _ibis() -> Any:
    try:
        import ibis
        import ibis.expr.operations
    except ImportError:
        raise InvalidParameter(_MISSING, hint=_INSTALL) from None
    return ibis


def _unknown(name: str, schema: ShownSchema) -> InvalidQuery:
    """The sentence of a text about a table that is not there, which is that about one that an asker may not see."""
    known = [one.table.name for one in schema.tables]
    return invalid(None, f"there is no table {quote_name(name)}", suggest_names(name, known, "the tables are"))


def _not_ours(what: str) -> InvalidQuery:
    hint = 'begin with curator.table("visits"); what another connection or program holds is not in the study'
    return InvalidQuery(f"An expression must be over tables of the study; {what} is none of them.", hint=f"{hint}.")

"""SmartNoise metadata (YAML or nested mappings) as a study. What a study cannot keep is refused by name, with what to do.

root ─ schema ─ table ─ table options   row_privacy, max_ids; others below
                      └ column ─ type, private_id, lower, upper, nullable; others below
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from curador.errors import InvalidStudy
from curador.privacy.adjacency import Adjacency
from curador.study.build import assemble, gather, ledger_path
from curador.study.model import DEFAULT_MAX_UNITS, Analyst, Budget, EngineSettings, Study
from curador.study.rules import Where, broken_rule, did_you_mean, locate
from curador.study.values import NOTHING, Plain, Type, key_text, string_text

_TYPES = {
    "int": Type.INTEGER,
    "float": Type.FLOAT,
    "string": Type.STRING,
    "boolean": Type.BOOLEAN,
    "datetime": Type.TIMESTAMP,
}
_UNKNOWN = "unknown"  # a column that SmartNoise ignores
_SAFE = {
    "censor_dims": (True, "keys are public only where a column lists its values: leave it out, and declare values"),
    "clamp_columns": (True, "values are always clamped to their bounds: leave it out"),
    "clamp_counts": (False, "counts are released as they are, negative ones too: leave it out"),
}
_WITHOUT_EFFECT = {"rows", "rows_exact", "sample_max_ids", "use_dpsu"}  # sizes are not used; caps and keys always enforced
_TABLE_OPTIONS = {*_SAFE, *_WITHOUT_EFFECT, "row_privacy", "max_ids"}
_COLUMN_OPTIONS = {"name", "type", "private_id", "lower", "upper", "nullable", "missing_value", "sensitivity", "cardinality"}
_QUOTES = {'"': '"', "`": "`", "[": "]"}


def from_smartnoise(
    metadata: str | Path | Mapping[str, Any],
    *,
    budget: Budget,
    sources: Mapping[str, Any],
    name: str | None = None,
    ledger: str | Path | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    unit_name: str = "person",
    engine: Mapping[str, Any] | EngineSettings | None = None,
    analysts: Mapping[str, Any] | Sequence[Analyst] | None = None,
    max_units: int = DEFAULT_MAX_UNITS,
    allow_large_delta: bool = False,
) -> Study:
    """Return the study that SmartNoise metadata describe.

    metadata  a YAML file, or the same as nested mappings
    sources   { table or schema.table: path or data frame }: the metadata do not say where the rows are

    private_id becomes the unit, row_privacy unit = "row", max_ids caps.rows (1 where it is not said, as there), lower and
    upper the bounds. Every other option is either what a study always does, or refused.
    """
    file = None if isinstance(metadata, Mapping) else Path(metadata)
    try:
        document = cast("Mapping[str, Any]", metadata) if file is None else _read_yaml(file)
        found = {_bare(table): (schema, table, options) for schema, table, options in _tables(document)}
        placed = _sources_by_table(sources, found)
        return assemble(
            {bare: _table(_where(schema, table), options) for bare, (schema, table, options) in found.items()},
            gather(placed),
            name=name if name is not None else next(iter(found)) if len(found) == 1 else "study",
            budget=budget,
            ledger=ledger_path(ledger, next(iter(placed.values())) if len(placed) == 1 else None),
            adjacency=adjacency,
            unit_name=unit_name,
            engine=engine,
            analysts=analysts,
            max_units=max_units,
            allow_large_delta=allow_large_delta,
        )
    except InvalidStudy as rule:
        raise (locate(rule, file.name) if file is not None and rule.path else rule) from None


def _read_yaml(file: Path) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError:
        raise InvalidStudy("SmartNoise metadata need PyYAML.", hint="install curador[smartnoise].") from None

    class Strict(yaml.SafeLoader):
        """Refuses a key that is written twice, of which the format would silently take the last."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 -- PyYAML's signature
            keys = [key.value for key, _ in node.value]
            for place, key in enumerate(keys):
                if key in keys[:place]:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key} is written twice", node.value[place][0].start_mark
                    )
            return super().construct_mapping(node, deep)

    try:
        text = file.read_text(encoding="utf-8-sig")
        document = yaml.load(text, Strict)  # noqa: S506 -- a SafeLoader
    except OSError as error:
        raise InvalidStudy.must_be(str(file), "a file that can be read", error.strerror or "an error") from None
    except UnicodeDecodeError:
        raise InvalidStudy.must_be(file.name, "UTF-8 text", "another encoding") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file.name}, line {mark.line + 1}" if mark else file.name
        got = getattr(error, "problem", None) or "something else"
        raise InvalidStudy.must_be("the text", "YAML", got, place=place) from None
    return _mapping((), document)


def _mapping(where: Where, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise broken_rule(where or ("metadata",), "a mapping with something in it", NOTHING if value is None else value)
    named = cast("Mapping[Any, Any]", value)
    for key in named:
        if not isinstance(key, str):
            raise broken_rule((*where, str(key)), "a name in quotes", key)
    return cast("Mapping[str, Any]", named)


def _tables(document: Mapping[str, Any]) -> Iterator[tuple[str | None, str, Mapping[str, Any]]]:
    """Yield schema, table and its options; older metadata have no level of schemas."""
    roots = [key for key in _mapping((), document) if key != "engine"]  # engine: rules for names, which are exact here
    if len(roots) != 1:
        raise broken_rule(("metadata",), "one collection of tables", roots)
    seen: set[str] = set()
    for schema, below in _mapping((roots[0],), document[roots[0]]).items():
        tables = {schema: below} if _is_table(below) else _mapping((schema,), below)
        for table, options in tables.items():
            if _bare(table) in seen:
                hint = "questions name a table without its schema: import the schemas as two studies"
                raise broken_rule((schema, table), "a table name that stands in one schema only", table, hint)
            seen.add(_bare(table))
            yield None if tables is not below else schema, table, _mapping((schema, table), options)


def _is_table(node: object) -> bool:
    """Whether a node's children are options and columns, not tables."""
    if not isinstance(node, Mapping):
        return False
    children = cast("Mapping[Any, Any]", node).values()
    return any(
        not isinstance(child, Mapping) or isinstance(cast("Mapping[Any, Any]", child).get("type"), str) for child in children
    )


def _where(schema: str | None, table: str) -> Where:
    return (table,) if schema is None else (schema, table)


def _bare(name: str) -> str:
    """Return a name without the quotes that some engines want around it."""
    quoted = len(name) > 2 and _QUOTES.get(name[0]) == name[-1]
    return name[1:-1] if quoted else name


def _sources_by_table(sources: Mapping[str, Any], found: Mapping[str, tuple[str | None, str, Any]]) -> dict[str, Any]:
    """Return the sources by bare table name."""
    called = {name: bare for bare, (schema, _, _) in found.items() for name in (bare, f"{_bare(schema or '')}.{bare}")}
    for name in sources:
        if name not in called:
            raise broken_rule(("sources",), "a mapping from tables of the metadata", name, did_you_mean(name, list(called)))
    placed = {called[name]: source for name, source in sources.items()}
    for bare in found:
        if bare not in placed:
            raise broken_rule(
                ("sources",),
                f"a mapping that says where {key_text(bare)} is",
                list(sources),
                f'write sources={{{string_text(bare)}: "…"}}',
            )
    return placed


def _table(where: Where, options: Mapping[str, Any]) -> dict[str, Any]:
    columns = {
        name: _mapping((*where, name), value)
        for name, value in options.items()
        if name not in _TABLE_OPTIONS and _is_column(where, name, value)
    }
    for option in sorted(_WITHOUT_EFFECT & set(options)):
        if isinstance(options[option], Mapping):
            raise broken_rule(
                (*where, option), "an option of the table", options[option], "a column of this name cannot be imported"
            )
    for option, (safe, hint) in _SAFE.items():
        if _flag((*where, option), options.get(option, safe)) is not safe:
            raise broken_rule((*where, option), f"{'true' if safe else 'false'} or absent", not safe, hint)
    most = options.get("max_ids", 1)
    return {
        "unit": _unit(where, options, columns),
        "caps": {"rows": most},
        "columns": {
            _bare(name): _column((*where, name), column) for name, column in columns.items() if column.get("type") != _UNKNOWN
        },
    }


def _is_column(where: Where, name: str, value: object) -> bool:
    if not isinstance(value, Mapping):
        known = sorted(_TABLE_OPTIONS)
        raise broken_rule(
            (*where, name), f"a column, or a known option ({', '.join(known)})", value, did_you_mean(name, known)
        )
    return True


def _flag(where: Where, value: object) -> bool:
    if not isinstance(value, bool):
        raise broken_rule(where, "true or false", value)
    return value


def _unit(where: Where, options: Mapping[str, Any], columns: Mapping[str, Mapping[str, Any]]) -> object:
    ids = [name for name, column in columns.items() if _flag((*where, name, "private_id"), column.get("private_id", False))]
    by_row = _flag((*where, "row_privacy"), options.get("row_privacy", False))
    if by_row and ids:
        raise broken_rule(
            (*where, "row_privacy"), "false or absent where a column is private_id", by_row, "keep the one that is meant"
        )
    if by_row and options.get("max_ids", 1) != 1:
        raise broken_rule((*where, "max_ids"), "1 or absent where row_privacy is true", options["max_ids"])
    if by_row:
        return "row"
    if len(ids) != 1:
        hint = "join them to one column first" if ids else "set private_id: true on it, or row_privacy: true on the table"
        raise broken_rule(where, "a table with one column that is private_id", ids or Plain("none"), hint)
    return {"column": _bare(ids[0])}


def _column(where: Where, column: Mapping[str, Any]) -> dict[str, Any]:
    for option in column:
        if option not in _COLUMN_OPTIONS:
            known = sorted(_COLUMN_OPTIONS)
            raise broken_rule((*where, option), f"a known option ({', '.join(known)})", option, did_you_mean(option, known))
    for option, hint in (
        ("missing_value", "fill it in where the data are made: a study never replaces NULL"),
        ("sensitivity", "it follows from bounds and caps: leave it out"),
    ):
        if column.get(option) is not None:
            raise broken_rule((*where, option), "absent", column[option], hint)
    kind = column.get("type")
    if kind not in _TYPES:
        raise broken_rule(
            (*where, "type"),
            f"one of {', '.join(_TYPES)}, {_UNKNOWN}",
            NOTHING if kind is None else kind,
            did_you_mean(kind, list(_TYPES)),
        )
    if (column.get("lower") is None) != (column.get("upper") is None):
        raise broken_rule(where, "a column with both lower and upper, or neither", dict(column))
    bounded = column.get("lower") is not None
    return {
        "type": str(_TYPES[kind]),
        "bounds": [column["lower"], column["upper"]] if bounded else None,
        "nullable": _flag((*where, "nullable"), column.get("nullable", True)),
    }

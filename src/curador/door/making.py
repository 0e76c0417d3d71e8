"""Functions that make as many rows or letters as they are told to: only what is written down says how many.

Claim   A call of generate_series that passes gives at most MOST_GENERATED rows, one of repeat, lpad or rpad at most so many
        times its text. A column, a subquery or anything else that is computed may hold any number, so it is refused; what
        is left are literals, and the length of the list in a setting or in a catalogue, of which tools make series.
"""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from curador.door.problems import SqlProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

MOST_GENERATED = 10_000
"""Rows of a series, and the largest number that may be written in one."""

_MAKING = frozenset({"generate_series", "repeat", "lpad", "rpad"})
_SERIES = (exp.GenerateSeries, exp.ExplodingGenerateSeries)
_CALLS = (*_SERIES, exp.Repeat, exp.Pad)
_KEYS = {
    "conkey": "pg_constraint",
    "confkey": "pg_constraint",
    "indkey": "pg_index",
    "indoption": "pg_index",
    "partattrs": "pg_partitioned_table",
    "prattrs": "pg_publication_rel",
    "stxkeys": "pg_statistic_ext",
}
"""Lists of columns in catalogues, and whose they are."""
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800, "month": 2_419_200, "year": 31_536_000}
"""Of the shortest one of a kind."""
_MOMENTS = frozenset({exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ})
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?", re.ASCII)
_SPAN = re.compile(r"([0-9]{1,6}) *(second|minute|hour|day|week|month|year)s?", re.ASCII)


def require_calls_end(tree: exp.Expr | None, tokens: Sequence[Token]) -> None:
    """Refuse a function that makes as many rows or letters as it is told to, where that may be many."""
    if not any(token.text.lower() in _MAKING for token in tokens):
        return
    if tree is None:
        raise _endless()
    for call in tree.find_all(*_CALLS, exp.Anonymous):
        name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
        if isinstance(call, _SERIES) or name == "generate_series":
            ends = _series_ends(_arguments(call), tree)
        elif isinstance(call, exp.Repeat | exp.Pad) or name in _MAKING:
            ends = _text_ends(call, _arguments(call))
        else:
            continue
        if not ends:
            raise _endless()


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    if isinstance(call, exp.Anonymous):
        return list(call.expressions)
    names = ("start", "end", "step") if isinstance(call, _SERIES) else ("this", "times", "expression", "fill_pattern")
    return [part for name in names if isinstance(part := call.args.get(name), exp.Expr)]


def _series_ends(arguments: Sequence[exp.Expr], tree: exp.Expr) -> bool:
    """Whether a series has few rows, whatever the data."""
    if not 2 <= len(arguments) <= 3:
        return False
    if any(_is_of_list(one, tree) for one in arguments[:2]):
        return len(arguments) == 2 and all(_is_of_list(one, tree) or _is_small(_number(one)) for one in arguments)
    start, end, step = (*(_number(one) for one in arguments), Fraction(1))[:3]
    if start is None and len(arguments) == 3:
        start, end, step = _moment(arguments[0]), _moment(arguments[1]), _span(arguments[2])
        return None not in {start, end, step} and _are_few(start, end, step)
    return _is_small(start) and _is_small(end) and _are_few(start, end, step)


def _are_few(start: Fraction | None, end: Fraction | None, step: Fraction | None) -> bool:
    return start is not None and end is not None and bool(step) and abs(end - start) <= abs(step) * MOST_GENERATED  # type: ignore[arg-type]


def _text_ends(call: exp.Expr, arguments: Sequence[exp.Expr]) -> bool:
    """Whether a text grows by a number that is written down, and is not one that grew already."""
    if len(arguments) < 2 or not _is_small(_number(arguments[1])):
        return False
    return not any(isinstance(node, (*_CALLS, exp.Select)) for node in call.walk() if node is not call)


def _is_small(number: Fraction | None) -> bool:
    return number is not None and abs(number) <= MOST_GENERATED


def _number(node: exp.Expr) -> Fraction | None:
    """Return a number that is written down; None of anything else."""
    if isinstance(node, exp.Paren):
        return _number(node.this)
    if isinstance(node, exp.Neg):
        inside = _number(node.this)
        return None if inside is None else -inside
    if isinstance(node, exp.Literal) and not node.is_string and _NUMBER.fullmatch(str(node.this)):
        return Fraction(str(node.this))
    return None


def _moment(node: exp.Expr) -> Fraction | None:
    """Return a date or a timestamp that is written down, in seconds."""
    if isinstance(node, exp.Cast):
        if node.to.this not in _MOMENTS:
            return None
        node = node.this
    if not isinstance(node, exp.Literal) or not node.is_string or not _MOMENT.fullmatch(str(node.this)):
        return None
    try:
        return Fraction(int(dt.datetime.fromisoformat(str(node.this)).replace(tzinfo=dt.UTC).timestamp()))
    except ValueError:
        return None


def _span(node: exp.Expr) -> Fraction | None:
    """Return an interval that is written down, in seconds."""
    text = ""
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal):
        text = f"{node.this.this} {node.args['unit'].name}" if node.args.get("unit") else str(node.this.this)
    elif isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.to.this == exp.DType.INTERVAL:
        text = str(node.this.this)
    found = _SPAN.fullmatch(text.strip().lower())
    return None if found is None else Fraction(int(found[1]) * _SECONDS[found[2]])


def _is_of_list(node: exp.Expr, tree: exp.Expr) -> bool:
    """Whether it is the first or last place of a list that is short: of a setting, or of columns in a catalogue."""
    node = _unqualified(node)
    if (
        not isinstance(node, exp.Anonymous)
        or node.name.lower() not in {"array_lower", "array_upper"}
        or len(node.expressions) != 2
    ):
        return False
    listed, one = node.expressions
    return _number(one) == 1 and (_is_setting(listed) or _is_key(listed, tree))


def _unqualified(call: exp.Expr) -> exp.Expr:
    return call.expression if isinstance(call, exp.Dot) and call.this.name.lower() == "pg_catalog" else call


def _is_setting(listed: exp.Expr) -> bool:
    """Whether it is string_to_array(current_setting('…'), '…'), whose places begin at 1."""
    setting = listed.this if isinstance(listed, exp.StringToArray) else None
    if not isinstance(setting, exp.Anonymous) or setting.name.lower() != "current_setting":
        return False
    return all(isinstance(said, exp.Literal) for said in (*setting.expressions, listed.args["expression"]))


def _is_key(listed: exp.Expr, tree: exp.Expr) -> bool:
    """Whether it is a catalogue's own list of columns: any other array, or text, may have a place of any number."""
    if isinstance(listed, exp.Cast) and listed.to.this == exp.DType.ARRAY:
        listed = listed.this
    if not isinstance(listed, exp.Column) or listed.name.lower() not in _KEYS:
        return False
    given = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    if not listed.table:
        return _is_key_of_its_select(listed, given)
    source = listed.table.lower()
    named = [one for one in tree.find_all(exp.TableAlias) if one.name.lower() == source]
    tables = [one for one in tree.find_all(exp.Table) if one.alias_or_name.lower() == source]
    return (
        bool(tables)
        and all(isinstance(one.parent, exp.Table) and not one.columns for one in named)
        and all(isinstance(one.this, exp.Identifier) and one.name.lower().startswith("pg_") for one in tables)
        and not {one.name.lower() for one in tables} & given
    )


def _is_key_of_its_select(listed: exp.Column, given: set[str]) -> bool:
    """Whether a name without a table is of the catalogue that has it: one that its SELECT reads, beside catalogues alone."""
    select = listed.find_ancestor(exp.Select)
    read = None if select is None else select.args.get("from_")
    if select is None or read is None:
        return False
    sources = [read.this, *(join.this for join in select.args.get("joins") or ())]
    plain = all(_is_catalogue(source, given) for source in sources)
    return plain and _KEYS[listed.name.lower()] in {one.name.lower() for one in sources}


def _is_catalogue(source: exp.Expr, given: set[str]) -> bool:
    """Whether a FROM names a catalogue, whose columns have their own names."""
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return False
    name, alias = source.name.lower(), source.args.get("alias")
    renamed = alias is not None and bool(alias.columns)
    return name.startswith("pg_") and name not in given and source.db.lower() in {"", "pg_catalog"} and not renamed


def _endless() -> SqlProblem:
    most = f"{MOST_GENERATED:,}"
    return SqlProblem("0A000", f"generate_series, repeat and the like must be of written numbers, for at most {most}.")

"""The closed catalogue of row functions and aggregates: what an expression may be made of. No other name exists.

Every function is total: where SQL would raise or give NaN or an infinity, ours gives NULL. Numbers are computed in doubles,
which hold every integer below 2⁵³, so that no input can overflow. `Literal`s are required where the catalogue says so: a
length, a pattern or a unit of time that came from a column could fail or take long.

An entry holds what needs neither numbers nor an engine. By its name two tables further up hold the rest, and a test walks all
entries through all of them: ranges and enclosures in `plan/functions.py`, SQL in `engines/lower`. After the release the same
SQL runs, so that there is no further meaning to write.

Aggregates are at the end, with what reading needs of them. By their names `plan/aggregates.py` holds what is measured and
what is estimated from it, `engines/lower/aggregates.py` the SQL; a test walks all of them through both.

Units: year quarter month week day hour minute second. Parts: the units and dayofweek (0 = Sunday), isodow, dayofyear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from curador.study.values import Type

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
PARTS = (*UNITS, "dayofweek", "isodow", "dayofyear")


Wanted: TypeAlias = OneOf[
    "number", "text", "time", "condition", "a written number", "a written whole number", "a written text"
]
"""What an argument must be; what is written stands in the question itself, so that no row can choose it."""


@dataclass(frozen=True, slots=True)
class Takes:
    """One argument of a function.

    parsed   what the parser calls it in its class
    what     it in words, for who gave something else; empty: "what name() is of"
    missing  what it is where it is left out; None: it must be given
    ends     between which whole numbers it must lie
    hint     what to write instead
    """

    wanted: Wanted
    parsed: str = "this"
    what: str = ""
    missing: int | str | None = None
    ends: tuple[int, int] | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Reads:
    """How a function is read: the parser's class for it, its arguments, and what comes out.

    parsed    empty where the parser has no class for it and knows the name only
    type      None: as the first argument
    nullable  whether it may be NULL where its arguments are not
    ignored   parts of the parser's class that mean nothing here
    """

    parsed: str
    takes: tuple[Takes, ...]
    type: Type | None
    nullable: bool = False
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    arguments  what it takes, and `result` what it gives, in words
    row, byte  what it costs: nanoseconds for a row, and for a byte of the texts that it looks at, as `plan/work.py` says
    words      how `explain` writes it: {0}, {1} … arguments, {all} and {rest} lists of them, {chain} joined by its name
    reads      None where no list of arguments says it and a reader of its own stands in `query/`: what is read otherwise in
               one dialect than in another, an operator, or a function that becomes several
    number     its result is a number in the middle of arithmetic, which may have become none
    guarded    it asks of such an argument whether it is one
    follows    its result is whole only if its arguments are
    """

    name: str
    arguments: str
    result: str
    row: float
    byte: float = 4.0
    words: str = "{name}({all})"
    reads: Reads | None = None
    number: bool = False
    guarded: bool = True
    follows: bool = False


def _connector(name: str) -> Function:
    taking = "2 or more booleans"
    return Function(name, taking, "boolean, three-valued", row=1, words="({chain})", guarded=False)


def _comparison(name: str) -> Function:
    return Function(name, "two of one kind", "boolean", row=2, byte=0.2, words="({0} {name} {1})")


def _operator(name: str, result: str, row: float, *, guarded: bool = False, follows: bool = True) -> Function:
    words = "({0} {name} {1})"
    return Function(name, "numbers", result, row, words=words, number=True, guarded=guarded, follows=follows)


def _number(name: str, parsed: str, row: float, type_: Type | None, *, guarded: bool = False) -> Function:
    result = "as the argument" if type_ is None else "integer"
    reads = Reads(parsed, (Takes("number"),), type_)
    return Function(name, "number", result, row, reads=reads, number=True, guarded=guarded, follows=type_ is None)


def _real(name: str, parsed: str | None, row: float) -> Function:
    reads = None if parsed is None else Reads(parsed, (Takes("number"),), Type.FLOAT, nullable=True)
    return Function(name, "number", "float; NULL outside the domain", row, reads=reads, number=True)


def _text(name: str, parsed: str, row: float, byte: float, type_: Type = Type.STRING) -> Function:
    reads = Reads(parsed, (Takes("text"),), type_, ignored=("binary",))  # of LENGTH: no binary texts exist here
    return Function(name, "string", str(type_), row, byte, reads=reads)


_WHOLE_OR_FLOAT = "integer if both are, else float"
_PATTERN = "string, literal pattern (% and _, no escape)"
_SEVERAL = "two or more of one kind; NULLs are skipped"
_MOMENT = "date or timestamp"

_ROUND = Reads(
    "Round",
    (Takes("number"), Takes("a written whole number", "decimals", "the digits of ROUND", missing=0, ends=(-15, 15))),
    None,
    ignored=("casts_non_integer_decimals",),
)
_POWER = Reads(
    "Pow",
    (
        Takes("number", what="the base of POWER"),
        Takes("a written number", "expression", "the exponent of POWER", hint="EXP(x * LN(2)) for 2 to x."),
    ),
    Type.FLOAT,
    nullable=True,
)
_REPLACE = Reads(
    "Replace",
    (
        Takes("text"),
        Takes("a written text", "expression", "what REPLACE looks for"),
        Takes("a written text", "replacement", "what REPLACE puts in", missing=""),
    ),
    Type.STRING,
)

_CATALOGUE = (
    _connector("and"),
    _connector("or"),
    Function("not", "boolean", "boolean", row=1, words="NOT {0}", guarded=False),
    Function("is_null", "anything", "boolean, never NULL", row=1, words="{0} IS NULL"),
    *(_comparison(name) for name in ("=", "<>", "<", "<=", ">", ">=")),
    Function("in", "x, then literals of its kind", "boolean", row=1, byte=0.2, words="{0} IN ({rest})"),
    Function("like", _PATTERN, "boolean", row=30),
    Function("ilike", _PATTERN, "boolean", row=40),
    Function("matches", "string, literal regular expression of `patterns.py`, written anew", "boolean", row=200),
    Function("case", "condition, value, condition, value …, else", "type of the values", row=3, byte=0.1, follows=True),
    Function("coalesce", "two or more of one kind", "that type", row=2, byte=0.1, follows=True),
    Function("nullif", "two of one kind", "type of the first", row=3, byte=0.3, follows=True),
    Function("cast", "anything to the call's type", "NULL where it does not fit", row=5, words="{0}::{type}"),
    _operator("+", _WHOLE_OR_FLOAT, 1),
    _operator("-", _WHOLE_OR_FLOAT, 1),
    _operator("*", _WHOLE_OR_FLOAT, 1),
    _operator("/", "float; NULL where the divisor is 0", 3, guarded=True, follows=False),
    _operator("//", "quotient rounded towards 0; NULL at 0", 5, guarded=True),
    _operator("%", "remainder; NULL at 0", 25, guarded=True),
    Function("neg", "number", "as the argument", row=1, number=True, guarded=False, follows=True),
    _number("abs", "Abs", 1, None),
    _number("sign", "Sign", 3, None, guarded=True),
    Function(
        "round",
        "number, literal digits (−15 … 15)",
        "as the argument",
        row=5,
        reads=_ROUND,
        number=True,
        guarded=False,
        follows=True,
    ),
    _number("floor", "Floor", 2, Type.INTEGER),
    _number("ceil", "Ceil", 2, Type.INTEGER),
    _real("sqrt", "Sqrt", 10),
    _real("ln", "Ln", 20),
    _real("log10", None, 30),
    _real("exp", "Exp", 30),
    Function("power", "number, literal exponent", "float; NULL where it is not finite", row=50, reads=_POWER, number=True),
    Function("least", _SEVERAL, "that type", row=2, byte=0.3, follows=True),
    Function("greatest", _SEVERAL, "that type", row=2, byte=0.3, follows=True),
    _text("lower", "Lower", 15, 10),
    _text("upper", "Upper", 15, 10),
    _text("trim", "Trim", 30, 12),
    _text("length", "Length", 5, 0.5, Type.INTEGER),
    Function("concat", "strings; NULL if one is", "string", row=60, byte=0.8),
    Function("substring", "string, literal start ≥ 1, literal length", "string", row=20, byte=0.5),
    Function("replace", "string, literal, literal", "string", row=80, reads=_REPLACE),
    Function("starts_with", "string, literal", "boolean", row=30, byte=0.1),
    Function("date_trunc", f"literal unit, {_MOMENT}", "as the argument", row=30),
    Function("extract", f"literal part, {_MOMENT}", "integer", row=15),
    Function("date_diff", "literal unit, from, to", "integer", row=60),
    Function("from_days", "number", "the date so many whole days after 1970-01-01; clamped to years 1 … 9999", row=20),
    Function("date_add", f"{_MOMENT}, literal integer, literal unit", "as the argument; clamped to years 1 … 9999", row=40),
)

FUNCTIONS = {one.name: one for one in _CATALOGUE}
"""Allowed over rows, and over what was released: there by the same SQL, so with the same meaning."""


# ---- aggregates ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One aggregate.

    means      what it is, in words
    parsed     the parser's classes for it, and `called` names that the parser has no class for, where it is of one number;
               empty where a reader of its own stands in `query/expressions.py`
    private    it has a form over all rows, with noise
    exact      it has one inside a unit, without; `keeps`: there it is of its argument's type
    bounded    its private form needs both bounds of its argument
    counts     a whole number that is never NULL; `presence`: of things that a unit has or has not, whatever its rows
    sorts      inside a unit it sorts or remembers its values, which `plan/work.py` counts
    over_units     what it is of units' own ones in BigQuery's clause; empty: it is not there
    mean_of_units  that is another number than it is of rows
    """

    name: str
    means: str
    parsed: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    private: bool = True
    exact: bool = True
    keeps: bool = False
    bounded: bool = True
    counts: bool = False
    presence: bool = False
    sorts: bool = False
    over_units: str = ""
    mean_of_units: bool = False


def _counting(name: str, means: str, *, presence: bool = True) -> AggregateFunction:
    over = "" if presence else "sum"
    return AggregateFunction(name, means, bounded=False, counts=True, presence=presence, sorts=presence, over_units=over)


def _inside_only(name: str, means: str) -> AggregateFunction:
    return AggregateFunction(name, means, private=False, bounded=False, keeps=True)


_AGGREGATES = (
    _counting("count", "rows, or rows where the argument is not NULL", presence=False),
    _counting("count_units", "COUNT(DISTINCT unit)"),
    _counting("count_distinct", "COUNT(DISTINCT x)"),
    AggregateFunction("sum", "the sum", ("Sum",), keeps=True, over_units="sum"),
    AggregateFunction("avg", "the mean", ("Avg",), ("mean",), over_units="avg", mean_of_units=True),
    AggregateFunction("var_pop", "the variance", ("VariancePop",)),
    AggregateFunction("var_samp", "the variance of a sample; STDDEV is its root", ("Variance",)),
    AggregateFunction("quantile", "MEDIAN, QUANTILE, PERCENTILE_CONT, MIN (q = 0), MAX (q = 1)", sorts=True),
    _inside_only("min", "the least"),
    _inside_only("max", "the largest"),
    _inside_only("bool_and", "whether all are true"),
    _inside_only("bool_or", "whether one is true"),
)

AGGREGATES = {one.name: one for one in _AGGREGATES}
"""By the name in trees, which is stored: `query/tree.py`."""

CALLED_AGGREGATES = {
    "every": "bool_and",
    "percentile": "quantile",
    **{called: one.name for one in AGGREGATES.values() for called in one.called},
}
"""Which aggregate a function is that the parser has no class for."""

AGGREGATE_NAMES = (*CALLED_AGGREGATES, *(one.name for one in AGGREGATES.values() if one.parsed))
"""What analysts may call, for hints."""

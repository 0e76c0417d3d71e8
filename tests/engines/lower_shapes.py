"""All shapes of calls of the catalogue, and edge values of every type to try them on."""

import datetime as dt
import itertools
import math
from fractions import Fraction

from lower_layout import SQL, B, D, F, I, S, T, call, lit

from curador.query.functions import PARTS, UNITS
from curador.query.patterns import read_pattern
from curador.query.tree import Call, Ref
from curador.study.values import Type

INF = math.inf
INTEGERS = [0, 1, -1, 2, 7, -10, 1 << 31, 1 << 53, (1 << 53) + 1, -(1 << 62), (1 << 63) - 1, -(1 << 63), None]
FLOATS = [
    *(0.0, 1.0, -1.0, 0.5, -2.5, 2.5, 0.1, 123.456, 0.49999999999999994, 5e-324, 1e-300, 1e18, 9.3e18, 1e300),
    *(1.7976931348623157e308, -1.7976931348623157e308, INF, -INF, None),
]
STRINGS = [
    *("", "a", "A b ", " 12 ", "12", "-7", "+5", "1e3", "1.5", ".5", "5.", "nan", "Infinity", "true", " F", "1_000", "0x1f"),
    *("2020-02-30", "2020-02-29", "0000-01-01", "0001-01-01", "9999-12-31", "2020-1-1", "2020-01-01 10:20"),
    *("2020-01-01T10:20:30.123456", "2020-01-01 25:00", "%", "_", "\\", "o'hara", "é日本", "x" * 5000, "1" * 400),
    *("1e999", "9223372036854775807", "9223372036854775808", "a%b", "aXb", "a\nb", None),
]
DATES = [
    *(dt.date(1, 1, 1), dt.date(1, 1, 3), dt.date(1582, 10, 15), dt.date(1969, 12, 31), dt.date(1970, 1, 1)),
    *(dt.date(2000, 2, 29), dt.date(2021, 1, 3), dt.date(2021, 1, 4), dt.date(9999, 12, 31), None),
]
MOMENTS = [
    *(dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 700_000), dt.datetime(1970, 1, 1)),  # noqa: DTZ001
    *(dt.datetime(2021, 1, 3, 23, 30), dt.datetime(2021, 1, 4, 0, 10, 0, 500_000)),  # noqa: DTZ001
    *(dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), None),  # noqa: DTZ001
]
PATTERNS = (
    *(
        "",
        "a",
        "^a",
        "b$",
        "^$",
        ".",
        "^.{2,5}$",
        "[0-9]+",
        r"^\d{4}-\d{2}-\d{2}$",
        r"\bb\b",
        r"\W",
        r"[^\w\s]",
        "x{64}$",
        "日",
    ),
    *("(1|x)*$", "(?:a|A) ?b", "[é-本]", r"\.", r"[\]\-a]", "a.b", r"\s$", "(?:1{10}){4}", "a+?b", "o'h", r"\\", "%"),
    r"^[+\-]?\d+(\.\d*)?$",
)
EDGES = {B: [True, False, None], I: INTEGERS, F: FLOATS, S: STRINGS, D: DATES, T: MOMENTS}
NUMBERS = (I, F)


def expressions():
    """All shapes of calls: (name, expression over columns of these types, the types)."""
    for function in ("=", "<>", "<", "<=", ">", ">="):
        for types in [(one, one) for one in EDGES] + [(I, F), (F, I), (D, T), (T, D)]:
            yield function, types, Call(function, refs(types), B)
    for one in EDGES:
        yield "is_null", (one,), Call("is_null", refs((one,)), B)
        yield "coalesce", (one, one), Call("coalesce", refs((one, one)), one)
        yield "nullif", (one, one), Call("nullif", refs((one, one)), one)
        yield "case", (B, one, one), Call("case", refs((B, one, one)), one)
        for extreme in ("least", "greatest"):
            yield extreme, (one, one), Call(extreme, refs((one, one)), one)
        for target in (*EDGES, Type.DECIMAL):
            if (one.temporal and target in {B, I, F, Type.DECIMAL}) or (target.temporal and one in {B, I, F}):
                continue
            yield "cast", (one,), Call("cast", refs((one,)), target)
    yield "coalesce", (I, F), Call("coalesce", refs((I, F)), F)
    yield "and", (B, B, B), Call("and", refs((B, B, B)), B)
    yield "or", (B, B, B), Call("or", refs((B, B, B)), B)
    yield "not", (B,), Call("not", refs((B,)), B)
    yield "in", (I,), call("in", Ref(0, I), 1, -10, None)
    yield "in", (I,), call("in", Ref(0, I), 1, Fraction(1, 2))
    yield "in", (F,), call("in", Ref(0, F), 1, Fraction(1, 10), Fraction(5, 2))
    yield "in", (S,), call("in", Ref(0, S), "o'hara", "", "é日本")
    yield "in", (D,), call("in", Ref(0, D), dt.date(2000, 2, 29), dt.date(1, 1, 1))
    yield from numeric()
    yield from textual()
    yield from temporal()


def numeric():
    for types in ((I, I), (I, F), (F, I), (F, F)):
        kind = I if types == (I, I) else F
        for function in ("+", "-", "*", "//", "%"):
            yield function, types, Call(function, refs(types), kind)
        yield "/", types, Call("/", refs(types), F)
    for one in NUMBERS:
        for function in ("neg", "abs"):
            yield function, (one,), Call(function, refs((one,)), one)
        for function in ("sign", "floor", "ceil"):
            yield function, (one,), Call(function, refs((one,)), I)
        for digits in (-15, -3, -1, 0, 1, 2, 15):
            yield "round", (one,), call("round", Ref(0, one), digits, type_=one)
        yield "from_days", (one,), Call("from_days", refs((one,)), D)
        for function in ("sqrt", "ln", "log10", "exp"):
            yield function, (one,), Call(function, refs((one,)), F)
        for exponent in (0, 2, -1, Fraction(1, 2), Fraction(-5, 2), 300):
            yield "power", (one,), call("power", Ref(0, one), exponent, type_=F)


def textual():
    for pattern in ("", "%", "_", "a%", "%b", "a_b", "a\\%b", "%_%_%", "é%", "1%2"):
        yield "like", (S,), call("like", Ref(0, S), pattern)
        yield "ilike", (S,), call("ilike", Ref(0, S), pattern.upper())
    for pattern in PATTERNS:
        yield "matches", (S,), call("matches", Ref(0, S), read_pattern(pattern, None))
        yield "matches", (S,), call("matches", Ref(0, S), read_pattern(pattern, None, whole=True, lines=True))
    for pattern in ("A", "[x-z]+", "T|f", "o'H"):
        yield "matches", (S,), call("matches", Ref(0, S), read_pattern(pattern, None, fold=True))
    yield "starts_with", (S,), call("starts_with", Ref(0, S), "a")
    for function in ("lower", "upper", "trim"):
        yield function, (S,), Call(function, refs((S,)), S)
    yield "length", (S,), Call("length", refs((S,)), I)
    yield "concat", (S, S), Call("concat", refs((S, S)), S)
    yield "concat", (S,), Call("concat", (Ref(0, S), lit("'%"), Ref(0, S)), S)
    for start, length in ((1, 3), (2, 0), (4000, 2000), (10**12, 10**12), (1, 10**12)):
        yield "substring", (S,), call("substring", Ref(0, S), start, length, type_=S)
    for old, new in (("a", "bb"), ("x", "y" * 300), ("xx", ""), ("", "z"), ("1", "'")):
        yield "replace", (S,), call("replace", Ref(0, S), old, new, type_=S)


def temporal():
    for one in (D, T):
        for unit in UNITS:
            yield "date_trunc", (one,), call("date_trunc", unit, Ref(0, one), type_=one)
            for amount in (0, 1, -1, 13, 10**12, -(10**12)):
                yield "date_add", (one,), call("date_add", Ref(0, one), amount, unit, type_=one)
        for part in PARTS:
            yield "extract", (one,), call("extract", part, Ref(0, one), type_=I)
    for types in ((D, D), (T, T), (D, T), (T, D)):
        for unit in UNITS:
            yield "date_diff", types, call("date_diff", unit, *refs(types), type_=I)


def refs(types):
    return tuple(Ref(place, one) for place, one in enumerate(types))


SHAPES = list(expressions())


def in_batches(types, size=30):
    """The shapes over columns of these types, so many in one statement."""
    shapes = [(name, expression) for name, found, expression in SHAPES if found == types]
    return [shapes[start : start + size] for start in range(0, len(shapes), size)]


def inputs(types):
    return [list(row) for row in itertools.product(*(EDGES[one] for one in types))]


def loaded(con, types, rows):
    """Put the rows into a table with a number."""
    columns = ", ".join(f"c{place} {SQL[one]}" for place, one in enumerate(types))
    con.execute(f"CREATE OR REPLACE TABLE edges (i BIGINT, {columns})")
    values = ", ".join(f"unnest(${place + 1}::{SQL[one]}[])" for place, one in enumerate(types))
    lists = [list(one) for one in zip(*rows, strict=True)]
    con.execute(f"INSERT INTO edges SELECT row_number() OVER (), * FROM (SELECT {values})", lists)


def same(found, wanted, function):
    if found is None or wanted is None or isinstance(wanted, (bool, str)):
        return found is wanted or found == wanted
    if isinstance(wanted, float) and function in {"ln", "log10", "exp", "power"}:
        return math.isclose(found, wanted, rel_tol=4e-16, abs_tol=5e-324)
    return type(found) is type(wanted) and repr(found) == repr(wanted)


def stranger():
    """Texts that change their length with their case or look like a truth or a time, and numbers at the edge of doubles."""
    return {
        S: ["straße", "İstanbul", "ŉ", "yes", "off", "20240131", "2024-01-31 10:00:00+02:00"],
        I: [(1 << 53) - 1],
        F: [-0.5],
    }

"""What Spark and Sail say by themselves differs from the catalogue's meaning: each plain spelling is caught."""

import contextlib
import datetime as dt
from fractions import Fraction

import pytest
from catalogue_engines import opened, text_of
from lower_layout import B, D, F, I, S, T, call, lit
from lower_reference import evaluate
from lower_shapes import refs

from curador.engines.lower.dialect_spark import SAIL, SPARK
from curador.engines.spark.server import BrokenError
from curador.query.tree import Call, Ref
from curador.study.values import Type


@pytest.fixture(scope="module")
def spark():
    with opened("spark") as engine:
        yield engine


def value(engine, text):
    """The one value of a text; what the server raises is a value too: it is not what the catalogue says."""
    with contextlib.suppress(BrokenError):
        ((_, found),) = engine.rows([text])
        return repr(found)
    return "raises"


FAR = (1 << 63) - 1


@pytest.mark.parametrize(
    ("wrong", "expression", "row"),
    [
        ("bround(c0)", call("round", Ref(0, F), type_=F), [2.5]),
        ("CAST(CAST(c0 AS BIGINT) AS DOUBLE)", Call("floor", refs((F,)), I), [1e300]),
        ("floor(c0 * 1e10D)", Call("floor", (Call("*", (Ref(0, F), lit(Fraction(10**10))), F),), I), [1e300]),
        ("c0 / c1", Call("/", refs((I, I)), F), [1, 0]),
        ("CAST(c0 AS BIGINT)", Call("cast", refs((F,)), I), [2.5]),
        ("c0 + 1L", Call("+", (Ref(0, I), lit(1)), I), [FAR]),
        ("greatest(c0, c1) + 1D", call("least", Ref(0, F), Ref(1, F), type_=F), [None, 3.0]),
        ("c0 LIKE 'a\\\\%b'", call("like", Ref(0, S), "a\\%b"), ["a\\xb"]),
        ("trim(BOTH FROM c0)", Call("length", (Ref(0, S),), I), [" a "]),
        ("dayofweek(c0)", call("extract", "dayofweek", Ref(0, D), type_=I), [dt.date(2021, 1, 4)]),
        (
            "datediff(c1, c0) div 7",
            call("date_diff", "week", *refs((D, D)), type_=I),
            [dt.date(2021, 1, 3), dt.date(2021, 1, 4)],
        ),
        ("lower(c0) = 'a'", call("=", Ref(0, S), "a"), ["A"]),
        ("CAST(c0 AS STRING)", call("extract", "hour", Ref(0, T), type_=I), [dt.datetime(2021, 1, 3, 23, 30)]),  # noqa: DTZ001
    ],
)
def test_what_a_server_says_by_itself_is_caught(wrong, expression, row, spark):
    types = tuple({int: I, float: F, str: S, dt.date: D, dt.datetime: T}.get(type(one), F) for one in row)
    spark.load(types, [row])
    wanted = repr(evaluate(expression, row))
    assert value(spark, text_of(expression, types, spark.dialect)) == wanted
    assert value(spark, wrong) != wanted


def test_sums_of_any_width_are_exact(spark):
    """Beyond 64 bits and up to 126, in two parts; a plain SUM is another number, or none."""
    for held in ([FAR] * 5, [FAR, 1], [0], [1 << 62] * 3):
        spark.load((I,), [[one] for one in held])
        high, low = spark.dialect.limbs(spark.dialect.total("c0"))
        ((_, first, second),) = spark.rows_of_all([high, low])
        assert (first << 63) + second == sum(held)
    spark.load((I,), [[FAR]])
    for wide in ((1 << 126) - 1, 1 << 125, (1 << 104) + (1 << 63) + 5, (1 << 103) - 1):
        high, low = spark.dialect.limbs(f"CAST('{wide}' AS DECIMAL(38,0))")
        ((_, first, second),) = spark.rows([high, low])
        assert (first << 63) + second == wide
        bits = max(wide.bit_length() - 30, 1)
        ((_, shifted),) = spark.rows([spark.dialect.shifted(f"CAST('{wide}' AS DECIMAL(38,0))", bits)])
        assert shifted == wide >> bits
    spark.load((I,), [[FAR], [FAR]])
    try:
        ((_, plain),) = spark.rows_of_all(["SUM(c0)"])
    except BrokenError:
        plain = None
    assert plain != 2 * FAR


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(1, 3)])
def test_quantiles_are_values_that_are_there(q, spark):
    """Of whole numbers that no double holds; NULLs are not counted, and of nothing there is none."""
    for held in ([FAR, FAR - 1, FAR - 2, None], [3], [None], [5, 1, 4, 2, 3, 6, 7, 9, 8, 10]):
        spark.load((I,), [[one] for one in held])
        ((_, found),) = spark.rows_of_all([spark.dialect.quantile("c0", q)])
        known = sorted(one for one in held if one is not None)
        assert found == next((one for place, one in enumerate(known, 1) if Fraction(place, len(known)) >= q), None)


def test_what_each_lacks():
    assert "Spark" in (SPARK.missing("matches", [S], B) or "")
    assert SAIL.missing("matches", [S], B) is None
    for dialect in (SPARK, SAIL):
        assert dialect.engine in (dialect.missing("cast", [F], S) or "")
        assert dialect.missing("cast", [I], S) is None
        assert dialect.missing("%", [F, F], F) is None
        assert dialect.missing("date_trunc", [None, T], Type.TIMESTAMP) is None

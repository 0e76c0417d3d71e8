"""Every function of the catalogue on edge values: no row raises, rows do not see each other, and Python agrees."""

import datetime as dt
import itertools
import math
import random
from fractions import Fraction

import duckdb
import pytest
from catalogue_engines import ENGINES, agrees, lowered, opened
from lower_layout import SQL, B, D, F, I, S, T, call, connect, lit
from lower_reference import evaluate
from lower_shapes import FLOATS, INF, INTEGERS, SHAPES, in_batches, inputs, loaded, refs

from curador.engines.lower.dialect_duckdb import DUCKDB, DuckDB
from curador.engines.lower.expression import lower_text, nearest_double
from curador.errors import InvalidQuery
from curador.query.functions import FUNCTIONS
from curador.query.tree import Call, Literal, Ref

EXTREMES = {  # what preparation never leaves in a table: still no row may raise
    D: ["DATE 'infinity'", "DATE '-infinity'", "DATE '5881580-07-10'", "DATE '5877642-06-25 (BC)'"],
    T: [
        "TIMESTAMP 'infinity'",
        "TIMESTAMP '-infinity'",
        "TIMESTAMP '294247-01-10 04:00:54'",
        "TIMESTAMP '290309-12-22 (BC)'",
    ],
    F: ["'nan'::DOUBLE", "-0.0::DOUBLE"],
}


def text_of(expression, types):
    return lower_text(expression, [f"c{place}" for place in range(len(types))], DUCKDB)


def computed(con, text):
    return dict(con.execute(f"SELECT i, {text} FROM edges").fetchall())


def test_the_shapes_cover_the_catalogue():
    assert {function for function, _, _ in SHAPES} == set(FUNCTIONS)


TYPES = list(dict.fromkeys(types for _, types, _ in SHAPES))


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    with opened(request.param) as found:
        yield found


@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_no_row_raises_and_python_agrees(types, engine):
    """On every engine: a shape that it lacks is refused with its name, every other has the reference's values."""
    rows = inputs(types)
    engine.load(types, rows)
    for batch in in_batches(types):
        shapes = lowered(batch, types, engine)
        found = engine.rows([text for *_, text in shapes])
        assert len(found) == len(rows)
        for place, *values in found:
            row = rows[place - 1]
            for (name, expression, _), value in zip(shapes, values, strict=True):
                wanted = evaluate(expression, row)
                assert agrees(value, wanted, name, row, engine.dialect), (expression, row, value, wanted)


def test_what_an_engine_lacks_is_refused_with_its_name(monkeypatch):
    """The remainder of floats, say; also inside another call. What it has is lowered."""

    def missing(_, function, types, __):
        return "DuckDB has no remainder of floats" if function == "%" and F in types else None

    monkeypatch.setattr(DuckDB, "missing", missing)
    remainder = Call("%", refs((F, F)), F)
    for wrong in (remainder, Call("abs", (remainder,), F)):
        with pytest.raises(InvalidQuery, match="DuckDB has no remainder of floats"):
            text_of(wrong, (F, F))
    assert text_of(Call("%", refs((I, I)), I), (I, I))


@pytest.mark.parametrize("types", [one for one in dict.fromkeys(types for _, types, _ in SHAPES) if set(one) & set(EXTREMES)])
@pytest.mark.slow
def test_values_that_no_table_holds_do_not_raise_either(types):
    con = connect()
    plain = {B: "TRUE", I: "3", F: "1.5", S: "'a'", D: "DATE '2020-05-05'", T: "TIMESTAMP '2020-05-05'"}
    columns = []
    for one in types:
        known = [*EXTREMES.get(one, []), "NULL", plain[one]]
        columns.append(f"(SELECT unnest([{', '.join(f'CAST({x} AS {SQL[one]})' for x in known)}]) AS c{len(columns)})")
    for name, expression in itertools.chain(*in_batches(types)):
        if name in {"date_trunc", "date_add", "date_diff", "extract", "cast", "<", "coalesce", "+", "//", "floor", "exp"}:
            assert con.execute(f"SELECT {text_of(expression, types)} FROM {', '.join(columns)}").fetchall()


@pytest.mark.slow
def test_rows_do_not_see_each_other():
    """The value of a row is the same alone, among others, and in another order."""
    con, chance = connect(), random.Random(4)
    for name, types, expression in SHAPES:
        rows = inputs(types)
        chance.shuffle(rows)
        text = text_of(expression, types)
        loaded(con, types, rows)
        together = computed(con, text)
        loaded(con, types, rows[::-1])
        turned = computed(con, text)
        for place in chance.sample(range(1, len(rows) + 1), min(6, len(rows))):
            assert repr(together[place]) == repr(turned[len(rows) + 1 - place]), (name, rows[place - 1])
            loaded(con, types, [rows[place - 1]])
            assert repr(computed(con, text)[1]) == repr(together[place]), (name, rows[place - 1])


@pytest.mark.slow
def test_nested_arithmetic_agrees_with_python():
    """Random trees over all numbers: guards stand where something could lose a NaN or an infinity, and nowhere else."""
    con, chance = connect(), random.Random(5)
    unary = ["neg", "abs", "sqrt", "exp", "ln", "floor", "sign"]

    def tree(depth):
        if depth == 0 or chance.random() < 0.1:
            return chance.choice(
                [Ref(0, I), Ref(1, F), Ref(2, F), lit(Fraction(1, 4)), lit(-3), lit(0), lit(Fraction(10**300))]
            )
        if chance.random() < 0.3:
            function = chance.choice(unary)
            return Call(function, (tree(depth - 1),), I if function in {"floor", "sign"} else F)
        if chance.random() < 0.2:
            return Call("case", (Call("<", (tree(depth - 1), tree(depth - 1)), B), tree(depth - 1), tree(depth - 1)), F)
        function = chance.choice(["+", "-", "*", "/", "//", "%", "coalesce", "greatest", "nullif"])
        return Call(function, (tree(depth - 1), tree(depth - 1)), F)

    types = (I, F, F)
    rows = [[chance.choice(INTEGERS), chance.choice(FLOATS), chance.choice(FLOATS)] for _ in range(200)]
    loaded(con, types, rows)
    compared = 0
    for _ in range(300):
        expression = tree(3)
        found = computed(con, text_of(expression, types))
        for place, row in enumerate(rows, start=1):
            wanted = evaluate(expression, row)
            close = (
                found[place] == wanted
                if None in (found[place], wanted) or not isinstance(wanted, float)
                else math.isclose(found[place], wanted, rel_tol=1e-9) or not math.isfinite(wanted)
            )
            compared += 1
            assert close or exponential(expression), (expression, row, found[place], wanted)
    assert compared == 60_000


def exponential(node):
    """Whether e^x, ln or a remainder stands in it: a last digit there may become any difference above."""
    return isinstance(node, Call) and (node.function in {"exp", "ln", "%", "//"} or any(map(exponential, node.arguments)))


# ---- seeded bugs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "expression", "row"),
    [
        ("CAST(c0 AS DOUBLE) / CAST(c1 AS DOUBLE) > 5", call(">", Call("/", refs((I, I)), F), 5), [1, 0]),
        ("c0 / c0 > 5", call(">", Call("/", (Ref(0, F), Ref(0, F)), F), 5), [0.0]),
        ("1 / (c0 * c0)", Call("/", (lit(1), Call("*", (Ref(0, F), Ref(0, F)), F)), F), [1e300]),
        ("least(greatest(c0, 0), 5)", call("case", call("<", Ref(0, F), 0), 0, Ref(0, F), type_=F), [None]),
        ("CAST(c0 AS BIGINT)", Call("cast", refs((F,)), I), [2.5]),
        ("fmod(c0, c1)", Call("%", refs((F, F)), F), [-2.5, 2.0]),
        (
            "date_diff('week', c0, c1)",
            call("date_diff", "week", *refs((D, D)), type_=I),
            [dt.date(2021, 1, 3), dt.date(2021, 1, 4)],
        ),
        ("trim(c0)", Call("trim", refs((S,)), S), ["a\u00a0"]),
    ],
)
def test_what_the_engine_says_by_itself_is_caught(wrong, expression, row):
    """The plain spelling of each function differs from the meaning, so that agreement above is not by chance."""
    con = connect()
    types = tuple({int: I, float: F, str: S, dt.date: D}.get(type(one), F) for one in row)
    loaded(con, types, [row])
    wanted = evaluate(expression, row)
    assert repr(computed(con, text_of(expression, types))[1]) == repr(wanted)
    assert repr(computed(con, wrong)[1]) != repr(wanted)


@pytest.mark.parametrize("wrong", ["c0 + 1", "- c0", "abs(c0)", "CAST(1e300 AS BIGINT) + c0", "c0 // 0", "c0 % 0"])
def test_what_would_raise_raises(wrong):
    con = connect()
    loaded(con, (I,), [[(1 << 63) - 1], [-(1 << 63)]])
    with pytest.raises(duckdb.Error):
        con.execute(f"SELECT {wrong} FROM edges").fetchall()


# ---- literals, depth -----------------------------------------------------------------------------------------------------


def test_literals_come_back_exactly():
    con, chance = connect(), random.Random(3)
    numbers = [Fraction(chance.getrandbits(60) - (1 << 59), 10 ** chance.randint(0, 25)) for _ in range(300)]
    numbers += [Fraction(5e-324), Fraction(1.7976931348623157e308), Fraction(-1, 3), Fraction(1, 10**330)]
    texts = [text_of(lit(one), ()) for one in numbers]
    found = con.execute(f"SELECT {', '.join(texts)}").fetchone()
    assert [one.hex() for one in found] == [(one.numerator / one.denominator).hex() for one in numbers]
    others = ["'; DROP TABLE t; --", "\\'", "%s", "{}", "$1", "?", "𝄞\u2028", dt.date(1, 1, 1), True, -(1 << 63), 0]
    found = con.execute(f"SELECT {', '.join(text_of(lit(one), ()) for one in others)}").fetchone()
    assert list(found) == others
    moment = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001
    assert con.execute(f"SELECT {text_of(lit(moment), ())}").fetchone() == (moment,)
    assert nearest_double(Fraction(10) ** 400) == INF
    assert nearest_double(-(Fraction(10) ** 400)) == -INF


def test_strings_an_engine_cannot_hold_are_refused():
    for wrong in ("a\0b", "\ud800"):
        with pytest.raises(InvalidQuery, match="Unicode"):
            text_of(lit(wrong), ())


def test_growth_is_refused_and_long_chains_are_not():
    chain = Ref(0, F)
    for _ in range(70):
        chain = Call("+", (chain, Ref(0, F)), F)
    con = connect()
    loaded(con, (F,), [[0.5]])
    assert computed(con, text_of(chain, (F,)))[1] == 35.5
    deep = Ref(0, F)
    for _ in range(40):
        deep = Call("/", (lit(1), deep), F)
    with pytest.raises(InvalidQuery, match="nested"):
        text_of(deep, (F,))
    long = Ref(0, F)
    for _ in range(5000):
        long = Call("+", (long, Ref(0, F)), F)
    with pytest.raises(InvalidQuery, match="nested"):
        text_of(long, (F,))


def test_strings_stay_short_however_often_they_are_doubled():
    con = connect()
    loaded(con, (S,), [["ab" * 50], [None]])
    doubled = Ref(0, S)
    for _ in range(7):
        doubled = Call("concat", (doubled, doubled), S)
    assert computed(con, text_of(Call("length", (doubled,), I), (S,))) == {1: 4096, 2: None}


def test_what_is_not_of_the_catalogue_does_not_exist():
    with pytest.raises(TypeError, match="no such function"):
        text_of(call("pg_sleep", 1), ())
    with pytest.raises(TypeError, match="written"):
        text_of(call("substring", "abc", Ref(0, I), 1, type_=S), (I,))
    with pytest.raises(TypeError, match="written"):
        text_of(call("date_trunc", "era", Ref(0, D), type_=D), (D,))
    assert text_of(Literal(None, None), ()) == "CAST(NULL AS BOOLEAN)"

"""Expressions over released values, their enclosures, and the table that is shown."""

import math
from dataclasses import replace
from fractions import Fraction

import hand_made as hand
import numpy as np
import pytest
from hand_made import NULL, call, number, text, truth, whole

from curador.answers.computed import ReleasedFrame, evaluate, numbers, wholes
from curador.answers.enclosures import enclose
from curador.answers.release import Ends, ReleasedBlock, release
from curador.answers.table import answer_columns, sight_of
from curador.engines import calculator
from curador.errors import InvalidParameter
from curador.plan.aggregates import Point
from curador.plan.model import OrderPlan
from curador.plan.parts import affine_form, parts_of, quotient_of_forms
from curador.query.tree import Estimated, Key
from curador.study.values import Type

EXACT = 10**9
"""An amount that leaves no noise to see."""

# ---- what released values are ----------------------------------------------------------------------------------------

K, M = Key(0, Type.INTEGER), Key(1, Type.STRING)


def framed(keys=(), kinds=(), estimates=()):
    """A released table of these columns."""
    columns = [*keys, *estimates]
    held = tuple(
        wholes(np.array(one)) if isinstance(one[0], int) else numbers(np.array(one), np.isnan(one)) for one in estimates
    )
    return ReleasedFrame(len(columns[0]), tuple(keys), tuple(kinds), held)


def test_a_quotient_by_something_released_is_null_where_that_is_not_above_0():
    """Noise alone may have put it there; a key that is negative divides as it does over rows."""
    frame = framed([[-2, -2, -2, -2]], [Type.INTEGER], [[4.0, 0.0, -4.0, float("nan")]])
    released = Estimated(0, Type.FLOAT)

    assert evaluate(call("/", whole(8), released), frame).listed() == [2.0, None, None, None]
    assert evaluate(call("//", whole(9), call("abs", released)), frame).listed() == [2.0, None, 2.0, None]
    assert evaluate(call("/", released, K), frame).listed() == [-2.0, 0.0, 2.0, None]


def test_counts_are_whole_and_whatever_else_is_released_is_a_double():
    """Whatever type the question gave them: so is what is computed from them."""
    frame = framed([["a", "b"]], [Type.STRING], [[7, 1 << 60], [7.5, 2.0]])
    count, summed = Estimated(0, Type.INTEGER), Estimated(1, Type.INTEGER)

    def spelled(node):
        return evaluate(call("cast", node, kind=Type.STRING), frame).listed()

    assert spelled(count) == ["7", str(1 << 60)]
    assert spelled(summed) == ["7.5", "2.0"]
    assert spelled(call("+", count, whole(1), kind=Type.INTEGER)) == ["8", str(1 << 60)]
    assert spelled(call("+", summed, whole(1), kind=Type.INTEGER)) == ["8.5", "3.0"]
    assert spelled(call("case", truth(">", summed, whole(3)), count, whole(0), kind=Type.INTEGER)) == ["7", "0"]
    assert evaluate(call("*", count, whole(1 << 40), kind=Type.INTEGER), frame).listed() == [7 << 40, None]


def test_large_whole_numbers_are_compared_as_they_are():
    """Keys are never doubles, nor are counts."""
    large = (1 << 53) + 1
    frame = framed([[large, large - 1]], [Type.INTEGER], [[large, large]])

    assert evaluate(truth("=", K, whole(large)), frame).listed() == [True, False]
    assert evaluate(truth("=", Estimated(0, Type.INTEGER), K), frame).listed() == [True, False]
    assert evaluate(call("coalesce", NULL, K, kind=Type.INTEGER), frame).listed() == [large, large - 1]


def test_keys_that_no_engine_could_hold_are_null_where_they_are_computed_with():
    """A declared value may have more than 64 bits; as a key it is shown as it is."""
    frame = framed([[1 << 70, 3]], [Type.INTEGER])

    assert evaluate(call("+", K, whole(1), kind=Type.INTEGER), frame).listed() == [None, 4]


def test_columns_that_need_no_computing_need_no_engine(monkeypatch):
    """A question of plain keys and aggregates pays nothing for what it does not use."""
    monkeypatch.setattr(calculator, "calculate", None)
    found = shown(hand.count_item(), hand.item("m", MEAN), keys=[CITY], groups=CITIES, order=[order(N)])

    assert found["city"].values == ["Ulm", None, "Aix", "Bex"]
    with pytest.raises(TypeError):
        shown(hand.item("x", call("sqrt", N)))


def test_all_of_a_block_is_computed_at_once(monkeypatch):
    """Items, their intervals, HAVING and ORDER BY are one statement."""
    statements = []
    true = calculator.calculate
    monkeypatch.setattr(calculator, "calculate", lambda *one: (statements.append(one), true(*one))[1])
    items = [
        hand.item("x", call("sqrt", N)),
        hand.item("y", call("*", call("length", Key(0, Type.STRING), kind=Type.INTEGER), N)),
    ]
    found = shown(
        *items, keys=[CITY], groups=CITIES, having=truth(">", N, whole(6)), order=[order(call("neg", N, kind=Type.INTEGER))]
    )

    assert found["city"].values == ["Aix", "Bex", None]
    assert found["y"].values == [27.0, 27.0, None]
    assert len(statements) == 1


@pytest.mark.slow
def test_rows_stay_in_their_order():
    """Far beyond the pieces in which an engine works."""
    frame = framed([list(range(300_000))], [Type.INTEGER])

    assert evaluate(call("-", K, whole(1), kind=Type.INTEGER), frame).listed() == list(range(-1, 299_999))


def test_expressions_of_nothing_but_written_values_have_rows_too():
    """Also none, and one for each row."""
    assert (
        evaluate(call("concat", text("a"), text("b"), kind=Type.STRING), framed([[1, 2]], [Type.INTEGER])).listed()
        == ["ab"] * 2
    )
    assert (
        evaluate(call("length", M, kind=Type.INTEGER), ReleasedFrame(0, ((), ()), (Type.INTEGER, Type.STRING), ())).listed()
        == []
    )


# ---- enclosures ----------------------------------------------------------------------------------------------------

FREE = [Estimated(place, Type.FLOAT) for place in range(3)]


def free_sight(low, high, points):
    """A block of three quantiles, whose intervals are whatever was drawn."""
    base = hand.block(quantile="1/2")
    one = replace(base, estimates=tuple(Point(place, Fraction(-(10**6)), Fraction(10**6)) for place in range(3)))
    ends = tuple(Ends(points[place], low[place], high[place]) for place in range(3))
    return sight_of(one, [hand.priced(hand.plan(base)).noises[0][3]] * 3, ReleasedBlock((), ends))


def random_number(draw, depth):
    if depth == 0 or draw.random() < 0.15:
        return FREE[draw.integers(3)] if draw.random() < 0.8 else number(Fraction(int(draw.integers(-8, 9)), 4))
    one = random_number(draw, depth - 1)
    name = str(draw.choice(NUMERIC))
    if name in {"+", "-", "*", "/", "//", "%", "nullif"}:
        return call(name, one, random_number(draw, depth - 1))
    if name in {"least", "greatest", "coalesce"}:
        return call(name, one, random_number(draw, depth - 1), FREE[0])
    if name == "case":
        return call("case", random_truth(draw, depth - 1), one, random_truth(draw, depth - 1), FREE[1], NULL)
    if name == "round":
        return call("round", one, whole(int(draw.integers(-2, 3))))
    if name == "power":
        return call("power", one, number(draw.choice(["-2", "-1", "-1/2", "0", "1/2", "1", "2", "3"])))
    if name == "cast":
        return call("cast", call("cast", one, kind=Type.INTEGER), kind=Type.FLOAT)
    return call(name, one)


def random_truth(draw, depth):
    name = str(draw.choice(["=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is_null", "in"]))
    if depth <= 0 or name in {"=", "<>", "<", "<=", ">", ">="}:
        return truth(name if name in {"<", ">"} else "<=", random_number(draw, 0), random_number(draw, 0))
    if name in {"and", "or"}:
        return truth(name, random_truth(draw, depth - 1), random_truth(draw, depth - 1))
    if name == "not":
        return truth("not", random_truth(draw, depth - 1))
    if name == "is_null":
        return truth("is_null", random_number(draw, depth - 1))
    return truth("in", random_number(draw, depth - 1), number(1), FREE[2])


NUMERIC = ["+", "-", "*", "/", "//", "%", "neg", "abs", "sign", "floor", "ceil", "sqrt", "ln", "log10", "exp"]
NUMERIC += ["round", "power", "least", "greatest", "coalesce", "nullif", "case", "cast"]


def sticking_out(enclosing, trees=60, rows=120):
    """How many random expressions leave their enclosure for numbers inside the intervals they are made of."""
    draw, out = np.random.default_rng(), 0
    for _ in range(trees):
        node = random_number(draw, int(draw.integers(1, 4)))
        middle, half = draw.normal(0, 4, (3, rows)).round(1), draw.choice([0.0, 0.5, 3.0], (3, rows))
        low, high = middle - half, middle + half
        share = draw.choice([0.0, 0.5, 1.0, draw.random()], (3, rows))
        inside = np.clip(low + share * (high - low), low, high)
        where = enclosing(node, free_sight(low, high, middle))
        true = evaluate(node, free_sight(low, high, inside))
        held = (where.low <= true.values) & (true.values <= where.high)
        out += not np.all(np.where(true.null, where.null, held))
    return out


def test_enclosures_hold_what_they_enclose():
    """Whatever numbers lie in the parts' intervals, the expression's lies in its own, or is NULL where that may be."""
    assert sticking_out(lambda node, sight: enclose(node, sight, Fraction(1, 2))) == 0


@pytest.mark.slow
def test_enclosures_hold_what_they_enclose_for_many_expressions():
    """As above, for hundreds."""
    assert sticking_out(lambda node, sight: enclose(node, sight, Fraction(1, 2)), trees=800) == 0


@pytest.mark.slow
def test_an_enclosure_that_is_too_small_is_caught():
    """Seeded bug: the value's own image instead of the interval's."""

    def wrong(node, sight):
        found = evaluate(node, sight)
        true = enclose(node, sight, Fraction(1, 2))
        return type(true)(
            np.where(found.null, true.low, found.values), np.where(found.null, true.high, found.values), true.null
        )

    assert sticking_out(wrong) > 8


# ---- exact laws of expressions -------------------------------------------------------------------------------------

ONE = hand.block(quantile="1/2")
N, SUMMED, MEAN, MEDIAN = (hand.estimate(place) for place in (hand.COUNT, hand.SUM, hand.MEAN, hand.MEDIAN))


def test_sums_and_multiples_of_measurements_are_forms():
    """+, −, · and ÷ by numbers, casts; the same measurement twice is one term."""
    node = call("-", call("*", number(3), call("+", N, call("cast", SUMMED))), call("/", call("neg", N), whole(4)))
    form = affine_form(node, ONE)

    assert form.terms == ((0, Fraction(3) + 150 + Fraction(1, 4)), (1, Fraction(3)))
    assert affine_form(call("-", N, N), ONE).terms == ()
    assert affine_form(call("*", N, N), ONE) is None
    assert affine_form(call("+", MEAN, number(1)), ONE) is None
    assert affine_form(call("/", N, whole(0)), ONE) is None


@pytest.mark.parametrize(
    ("node", "above", "constant"),
    [
        (call("/", SUMMED, N), ((0, 50), (1, 1)), 0),
        (call("/", SUMMED, call("nullif", N, whole(0), kind=Type.INTEGER)), ((0, 50), (1, 1)), 0),
        (call("*", number(100), call("/", call("cast", SUMMED), call("cast", N))), ((0, 5000), (1, 100)), 0),
        (call("-", number(1), call("/", SUMMED, N)), ((0, -49), (1, -1)), 0),
        (call("/", call("-", call("/", SUMMED, N), number(1)), number(2)), ((0, Fraction(49, 2)), (1, Fraction(1, 2))), 0),
        (call("/", call("+", SUMMED, number(8)), N), ((0, 50), (1, 1)), 8),
    ],
)
def test_ratios_of_forms_are_found(node, above, constant):
    """Also multiplied by a number, with one added, and with NULLIF around the divisor."""
    found = quotient_of_forms(node, ONE)

    assert found.above.terms == tuple((index, Fraction(c)) for index, c in above)
    assert found.above.constant == constant
    assert found.below.terms == ((0, Fraction(1)),)


def test_the_miss_is_shared_by_the_parts():
    """One part has the whole confidence; two have half of the miss each; the same part twice is one."""
    assert len(parts_of(call("round", call("/", SUMMED, N), whole(1)), ONE)) == 1
    assert len(parts_of(call("+", MEAN, MEDIAN), ONE)) == 2
    assert len(parts_of(call("*", MEAN, call("sqrt", MEAN)), ONE)) == 1
    assert parts_of(number(3), ONE) == ()


def test_an_own_ratio_is_no_ratio_of_noises():
    """(COUNT + 5)/COUNT goes by interval arithmetic, as both have the same noise."""
    found = parts_of(call("/", call("+", N, whole(5)), N), ONE, smooth=False)

    assert len(found) == 2


def shown(*items, groups=None, keys=(), amount=EXACT, order=(), limit=None, offset=0, having=None, confidence="0.95", **more):
    """The answer to a hand-made question."""
    one = hand.block(keys, items, having=having, **more)
    question = hand.priced(hand.plan(one, order=order, limit=limit, offset=offset), amount=amount)
    out = release(question, [hand.tallied(one, groups if groups is not None else {(): [10, 20, 60]})])
    return {column.name: column for column in answer_columns(question, out, confidence)}


def test_an_affine_expression_has_the_interval_of_its_law():
    """100 · COUNT / 4 is 25 times a count, ends included."""
    twice = shown(hand.count_item(), hand.item("x", call("/", call("*", N, whole(100)), whole(4))), amount="1/10")
    reach = twice["n"].high[0] - twice["n"].values[0]

    assert twice["x"].values == [25.0 * twice["n"].values[0]]
    assert twice["x"].high[0] - twice["x"].values[0] == pytest.approx(25 * reach)


def test_a_ratio_is_the_mean_without_its_bounds():
    """SUM/COUNT and AVG have the same value and interval where the bounds do not cut."""
    one = shown(hand.item("m", MEAN), hand.item("r", call("/", SUMMED, N)), groups={(): [40, 60] * 2000}, amount="1/10")

    assert one["r"].values == pytest.approx(one["m"].values)
    assert one["r"].low == pytest.approx(one["m"].low)
    assert one["r"].high == pytest.approx(one["m"].high)


def test_a_ratio_over_nothing_is_null():
    """A released denominator that is not above 0: NULL, and no bound is known."""
    one = shown(hand.item("r", call("/", SUMMED, N)), hand.item("q", call("//", SUMMED, N)), groups={(): []})

    assert (one["r"].values, one["r"].low, one["r"].high) == ([None], [None], [None])
    assert one["q"].values == [None]


def test_monotone_functions_map_the_ends():
    """ROUND, FLOOR, SQRT, ABS, GREATEST with a number, COALESCE: the interval's image, with the whole confidence."""
    images = {
        "round": (call("round", MEAN, whole(1)), lambda x: round(x, 1)),
        "floor": (call("floor", MEAN), math.floor),
        "sqrt": (call("sqrt", MEAN), math.sqrt),
        "abs": (call("abs", call("neg", MEAN)), abs),
        "greatest": (call("greatest", MEAN, number(45)), lambda x: max(x, 45.0)),
        "coalesce": (call("coalesce", MEAN, number(0)), float),
        "plain": (MEAN, float),
    }
    one = hand.block((), [hand.item(name, node) for name, (node, _) in images.items()])
    noisy = ReleasedBlock((), (np.array([1000]), np.array([-4321]), np.array([0])))
    *found, mean = answer_columns(hand.priced(hand.plan(one)), [noisy])
    for column in found:
        function = images[column.name][1]

        assert column.low[0] == pytest.approx(function(mean.low[0]))
        assert column.high[0] == pytest.approx(function(mean.high[0]))


def test_constants_and_keys_have_no_interval():
    """Only released numbers have one; a released truth or text has none."""
    keys = [hand.key("k", ["a", "b"])]
    one = shown(
        hand.item("five", whole(5), Type.INTEGER, released=False),
        hand.item("many", truth(">", N, whole(1)), Type.BOOLEAN),
        hand.item("word", call("case", truth(">", N, whole(1)), text("many"), text("few"), kind=Type.STRING), Type.STRING),
        keys=keys,
        groups={("a",): [1, 2, 3]},
    )

    assert [column.low for column in one.values()] == [None] * 4
    assert one["five"].values == [5, 5]
    assert one["many"].values == [True, False]
    assert one["word"].values == ["many", "few"]


def test_counts_are_integers_with_integer_ends():
    """Types depend on the plan; everything else is a float."""
    one = shown(hand.count_item(), hand.item("s", SUMMED), amount="1/10")

    assert {type(value) for column in (one["n"].values, one["n"].low, one["n"].high) for value in column} == {int}
    assert type(one["s"].values[0]) is float
    assert one["n"].type is Type.INTEGER
    assert one["s"].type is Type.FLOAT


@pytest.mark.parametrize("confidence", ["0.5", "0.9", "0.99", "0.9999999999"])
def test_more_confidence_is_wider(confidence):
    """The same release with another confidence has other ends around the same values."""
    items = [hand.count_item(), *(hand.item(f"e{place}", hand.estimate(place)) for place in range(1, 5))]
    one = hand.block((), items)
    question = hand.priced(hand.plan(one))
    out = release(question, [hand.tallied(one, {(): list(range(100)) * 9})])
    usual, other = answer_columns(question, out), answer_columns(question, out, confidence)
    for before, after in zip(usual, other, strict=True):
        assert before.values == after.values
        narrower = Fraction(confidence) < Fraction(95, 100)

        assert (after.high[0] - after.low[0] <= before.high[0] - before.low[0]) == narrower or before.high[0] == after.high[0]


def test_confidence_is_strictly_between_0_and_1():
    """Nothing is certain."""
    with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
        shown(hand.count_item(), confidence=1)


# ---- which rows, in which order ------------------------------------------------------------------------------------

CITIES = {("Ulm",): [1] * 5, ("Aix",): [2] * 9, (None,): [3] * 7, ("Bex",): [4] * 9}
CITY = hand.key("city", ["Ulm", "Aix", None, "Bex"])


def order(expression=None, column=None, *, descending=False, nulls_first=False):
    return OrderPlan(expression, column, descending, nulls_first)


def test_rows_are_sorted_by_key_with_null_last():
    """Not in the declared order, nor in the engine's."""
    assert shown(hand.count_item(), keys=[CITY], groups=CITIES)["city"].values == ["Aix", "Bex", "Ulm", None]


def test_rows_are_ordered_by_released_values_then_by_key():
    """Ties are broken by the key."""
    found = shown(hand.count_item(), keys=[CITY], groups=CITIES, order=[order(N, descending=True)])

    assert found["city"].values == ["Aix", "Bex", None, "Ulm"]
    assert found["n"].values == [9, 9, 7, 5]


@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("descending", [True, False])
def test_nulls_come_where_the_question_puts_them(nulls_first, descending):
    """Whichever way the rest goes."""
    chosen = [order(Key(0, Type.STRING), descending=descending, nulls_first=nulls_first)]
    found = shown(hand.count_item(), keys=[CITY], groups=CITIES, order=chosen)["city"].values
    rest = sorted(["Ulm", "Aix", "Bex"], reverse=descending)

    assert found == ([None, *rest] if nulls_first else [*rest, None])


def test_limit_and_offset_cut_the_ordered_rows():
    """The second and third of them."""
    found = shown(hand.count_item(), keys=[CITY], groups=CITIES, order=[order(column=1)], limit=2, offset=1)

    assert found["city"].values == [None, "Aix"]
    assert shown(hand.count_item(), keys=[CITY], groups=CITIES, limit=0)["city"].values == []


def test_having_keeps_rows_where_it_is_true():
    """Not where it is NULL."""
    assert shown(hand.count_item(), keys=[CITY], groups=CITIES, having=truth(">", N, whole(6)))["city"].values == [
        "Aix",
        "Bex",
        None,
    ]
    unsure = truth(">", call("/", N, call("-", N, whole(7))), number(0))

    assert shown(hand.count_item(), keys=[CITY], groups=CITIES, having=unsure)["city"].values == ["Aix", "Bex"]


def test_having_does_not_change_the_numbers_or_their_intervals():
    """An interval is of the number before anything chose what is shown."""
    one = hand.block([CITY], [hand.count_item()])
    question = hand.priced(hand.plan(one))
    out = release(question, [hand.tallied(one, CITIES)])
    everything = answer_columns(question, out)
    chosen = replace(question, plan=hand.plan(replace(one, having=truth("=", Key(0, Type.STRING), text("Bex")))))
    bex = answer_columns(chosen, out)

    assert [column.values for column in bex] == [[column.values[1]] for column in everything]
    assert bex[1].low == [everything[1].low[1]]


def test_blocks_come_one_after_the_other():
    """Rows of a UNION ALL, or of GROUPING SETS, where a key that is not grouped by is a written NULL."""
    total = hand.block((), [hand.item("city", NULL, Type.STRING, released=False), hand.count_item()])
    by_city = hand.block([CITY], [hand.count_item()])
    question = hand.priced(hand.plan(total, by_city), amount=EXACT)
    out = release(question, [hand.tallied(total, {(): [0] * 30}), hand.tallied(by_city, CITIES)])
    city, count = answer_columns(question, out)

    assert city.type is Type.STRING
    assert city.values == [None, "Aix", "Bex", "Ulm", None]
    assert count.values == [30, 9, 9, 5, 7]

    ordered = replace(question, plan=hand.plan(total, by_city, order=[order(column=1)], limit=2))

    assert [column.values for column in answer_columns(ordered, out)] == [["Ulm", None], [5, 7]]


def test_blocks_of_integers_and_floats_are_floats():
    """And a block without error bars has none beside one that has."""
    first = hand.block((), [hand.item("x", whole(1), Type.INTEGER, released=False)])
    second = hand.block((), [hand.item("x", SUMMED)])
    question = hand.priced(hand.plan(first, second), amount=EXACT)
    out = release(question, [hand.tallied(first, {(): [1]}), hand.tallied(second, {(): [1, 2]})])
    (column,) = answer_columns(question, out)

    assert column.values == [1.0, 3.0]
    assert column.type is Type.FLOAT
    assert column.low[0] is None
    assert column.low[1] == pytest.approx(3.0, abs=1e-3)


def test_large_whole_keys_stay_exact():
    """A key is never a double."""
    large = [(1 << 53) + 1, (1 << 53) + 2]
    found = shown(hand.count_item(), keys=[hand.key("k", large, Type.INTEGER)], groups={(large[1],): [1]})

    assert found["k"].values == large


@pytest.mark.slow
def test_many_groups_take_little_time():
    """Everything is a column at a time: 20,000 groups in far less than a second of arithmetic."""
    keys = [hand.key("k", range(20_000), Type.INTEGER)]
    items = [hand.count_item(), hand.item("m", MEAN), hand.item("r", call("/", SUMMED, N))]
    found = shown(*items, keys=keys, groups={(place,): [3] for place in range(0, 20_000, 7)}, amount="1/10")

    assert len(found["n"].values) == 20_000


def test_keys_and_estimates_are_computed_row_by_row():
    """A key is a number like any other, without noise of its own."""
    keys = [hand.key("k", [1, 2, 3], Type.INTEGER)]
    node = call("*", Key(0, Type.INTEGER), N)
    found = shown(hand.item("x", node), keys=keys, groups={(place,): [5] * place for place in (1, 2, 3)})

    assert found["x"].values == [1.0, 4.0, 9.0]
    assert found["x"].low == pytest.approx([1.0, 4.0, 9.0], abs=1e-3)

"""The calculus of R: how many rows one unit can have, and how they are capped."""

from dataclasses import replace

import pytest
from plan_schemas import STRING, Public, event_tables, people_tables, schema
from plan_trees import (
    by_unit,
    call,
    column,
    distinct,
    equal,
    joined,
    joined_where,
    number,
    numbered,
    projected,
    right_column,
    scan,
    union,
    where,
)

from curador.errors import NotPrivate
from curador.plan.model import Cap, Contribution
from curador.plan.ownership import (
    PUBLIC,
    Owners,
    RequestedCaps,
    bound_contribution,
    caps_of,
    conjuncts,
    equated_columns,
    is_unit,
    most_rows,
    public_matches,
    refs_of,
    scans_of,
)
from curador.query.tree import Literal, Place, Project, Ref
from curador.study.model import Caps, Column, Table, UnitColumn
from curador.study.values import Type

S = schema()
PEOPLE, VISITS, REGIONS = (scan(S, name) for name in ("people", "visits", "regions"))
E = schema(event_tables())
EVENTS = scan(E, "events")


def rows(relation, cap=None, known=S):
    return Owners(known, cap).rows(relation)


def in_short(value):
    """What of a case stands in a test's name: no tree and no study, whose texts are long and hold addresses."""
    return str(value) if isinstance(value, (bool, int, float, str, dict, Caps)) else None


@pytest.mark.parametrize(
    ("relation", "plain", "capped"),
    [
        (PEOPLE, 1, 1),
        (VISITS, None, 5),
        (where(VISITS, equal(column(VISITS, "rating"), number(3))), None, 5),
        (projected(VISITS, "id", "spent"), None, 5),
        (joined(PEOPLE, VISITS), None, 5),
        (joined(VISITS, VISITS), None, 25),
        (joined(VISITS, PEOPLE, "left"), None, 5),
        (joined(PEOPLE, VISITS, "full"), None, 1 * 5 + 1 + 5),
        (joined(PEOPLE, VISITS, "semi"), 1, 1),
        (joined(VISITS, PEOPLE, "anti"), None, 5),
        (union(VISITS, VISITS), None, 10),
        (by_unit(VISITS), 1, 1),
        (by_unit(VISITS, "kind"), 4, 4),  # three declared values and NULL
        (by_unit(VISITS, "rating"), None, 5),
        (distinct(projected(VISITS, "id")), 1, 1),
        (distinct(projected(VISITS, "id", "kind")), 4, 4),
        (distinct(projected(VISITS, "id", "kind", "spent")), None, 5),
        (
            distinct(
                where(
                    projected(VISITS, "id", "rating"), equal(column(projected(VISITS, "id", "rating"), "rating"), number(3))
                )
            ),
            1,
            1,
        ),
        (union(by_unit(VISITS), by_unit(VISITS)), 2, 2),
        (joined(VISITS, REGIONS, on=("city", "city")), None, 5),
    ],
    ids=in_short,
)
def test_rows_of_one_unit(relation, plain, capped):
    """Each operator's rule, without and with a cap of five rows on base tables."""
    assert rows(relation) == plain
    assert rows(relation, 5) == capped
    assert Owners(S).private(relation) is Owners(S, 5).private(relation) is True


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_a_public_table_multiplies_by_its_most_frequent_key(kind):
    """A thousand public rows for one key give a unit a thousand rows; without an equality, all rows of the table."""
    crowded = schema(public=Public(many=1000))

    assert rows(joined(PEOPLE, REGIONS, kind, on=("city", "city")), known=crowded) == 1000
    assert rows(joined(PEOPLE, REGIONS, kind, on=None), known=crowded) == 100
    assert rows(joined(EVENTS, REGIONS, kind, on=None), known=E) == 100


def test_a_row_that_is_a_unit_can_be_multiplied():
    """Three copies of a table have three rows for each of its rows."""
    assert rows(EVENTS, known=E) == 1
    assert rows(union(EVENTS, EVENTS, EVENTS), known=E) == 3


@pytest.mark.parametrize(
    "relation",
    [
        joined(REGIONS, PEOPLE, "left", on=("city", "city")),
        joined(PEOPLE, REGIONS, "full", on=("city", "city")),
        joined(PEOPLE, REGIONS, "right", on=("city", "city")),
        joined(REGIONS, PEOPLE, "semi", on=("city", "city")),
        union(PEOPLE, REGIONS),
    ],
    ids=in_short,
)
def test_rows_without_an_owner_are_refused(relation):
    """Public rows that no person's row keeps would appear when somebody leaves."""
    with pytest.raises(NotPrivate):
        Owners(S).of(relation)


AT = Place(3, 8)


@pytest.mark.parametrize(
    ("relation", "sentence", "hint"),
    [
        (union(PEOPLE, REGIONS), "UNION ALL must not mix public rows with rows of people.", None),
        (
            joined(REGIONS, PEOPLE, "anti", on=("city", "city")),
            "a public table must not be filtered by rows of people.",
            None,
        ),
        (
            joined(PEOPLE, REGIONS, "full", on=("city", "city")),
            "a join must keep every row's owner: rows of a public table without a match belong to nobody.",
            "use an inner join, or put the private table on the kept side.",
        ),
    ],
    ids=["union", "anti", "full"],
)
def test_a_refusal_says_where_and_why(relation, sentence, hint):
    """The place is that of the node, the sentence names the rule, and where something helps, the hint says what."""
    with pytest.raises(NotPrivate) as refusal:
        Owners(S).of(replace(relation, place=AT))
    assert (refusal.value.sentence, refusal.value.hint, refusal.value.place) == (sentence, hint, AT)


def test_public_stays_public():
    """Whatever is done to public tables alone belongs to nobody, and has no R."""
    same_city = equal(column(REGIONS, "city"), column(REGIONS, "region"))
    for kind in ("inner", "left", "right", "full", "semi", "anti"):
        assert Owners(S, 5).of(joined(REGIONS, REGIONS, kind, on=("city", "city"))) == PUBLIC
    for relation in (REGIONS, where(REGIONS, same_city), union(REGIONS, REGIONS), distinct(REGIONS), union(REGIONS)):
        assert Owners(S, 5).of(relation) == PUBLIC
    assert Owners(S, 5).of(union(VISITS)) == Owners(S, 5).of(VISITS)


@pytest.mark.parametrize("many", [0, 1, 3])
def test_the_kept_side_keeps_its_rows(many):
    """A private row without a match is lost in an inner join and kept once where its side is kept, on either side."""
    known, on = schema(public=Public(many=many)), ("city", "city")

    for left, right, kept in ((VISITS, REGIONS, "left"), (REGIONS, VISITS, "right")):
        assert rows(joined(left, right, on=on), 5, known) == 5 * many
        assert rows(joined(left, right, kept, on=on), 5, known) == 5 * max(many, 1)
        assert Owners(known).rows(joined(left, right, kept, on=on)) is None
        assert Owners(known).private(joined(left, right, kept, on=on))
        assert Owners(known, 5).private(joined(left, right, kept, on=on))


def test_a_public_table_on_the_left():
    """Its columns come first: what is equated of it is counted from the first one."""
    assert rows(joined(REGIONS, PEOPLE, on=("city", "city")), known=schema(public=Public(many=7))) == 7
    assert rows(joined(REGIONS, PEOPLE, on=None), known=schema(public=Public(many=7))) == 100


# ---- private joins: rows that agree in what is equated ---------------------------------------------------------------

ORDERS, LINES = scan(S, "orders"), scan(S, "lines")
RENAMED = projected(ORDERS, "order", "id")
ON_ORDER = ("order", "order")


@pytest.mark.parametrize(
    ("kind", "left_many", "right_many"),
    [("inner", 5, 5), ("left", 5, 10), ("right", 10, 5), ("full", 15, 15), ("semi", 5, 5), ("anti", 5, 5)],
)
def test_an_order_has_many_lines_and_a_line_one_order(kind, left_many, right_many):
    """A verified key matches one row; what the kept side adds is counted, on the side where it is."""
    assert rows(joined(LINES, ORDERS, kind, on=ON_ORDER), 5) == left_many
    assert rows(joined(ORDERS, LINES, kind, on=ON_ORDER), 5) == right_many
    assert rows(joined(LINES, ORDERS, kind, on=ON_ORDER)) is None


def test_a_side_without_a_row():
    """Where a unit has no row of one side, the kept side still has its own, and no more."""
    empty = schema(public=Public(many=0))
    gone = joined(PEOPLE, REGIONS, on=("city", "city"))
    assert rows(gone, 5, empty) == 0
    for kind, expected in (("inner", 0), ("left", 5), ("right", 0), ("full", 5)):
        assert rows(joined(VISITS, gone, kind), 5, empty) == expected
        other = {"left": "right", "right": "left"}.get(kind, kind)
        assert rows(joined(gone, VISITS, other), 5, empty) == expected


def test_no_bound_on_one_side():
    """A side without a bound leaves the join without one, even where the other matches one row at most."""
    assert rows(joined(PEOPLE, ORDERS, on=("age", "order"))) is None
    assert rows(joined(ORDERS, PEOPLE, on=("order", "age"))) is None
    assert Owners(S).fans(joined(PEOPLE, ORDERS, on=("age", "order"))) == (1, 1)
    assert Owners(S).fans(joined(PEOPLE, VISITS)) == (1, None)
    assert Owners(S).fans(joined(VISITS, PEOPLE)) == (None, 1)


def computed(relation):
    """The key plain in the first column, and in an expression in the second."""
    plain = column(relation, "order")
    more = call("+", plain, number(1), kind=Type.INTEGER)
    name = relation.columns[plain.index]
    return Project(relation, (plain, more), (name, replace(name, name="more", source=None)))


def windows(name):
    """Lines joined by a column of numbered orders."""
    right = numbered(ORDERS)
    return joined(LINES, right, on=("order", name))


@pytest.mark.parametrize(
    ("join", "fans"),
    [
        (joined(LINES, ORDERS, on=ON_ORDER), (5, 1)),
        (joined(ORDERS, LINES, on=ON_ORDER), (1, 5)),
        (joined(ORDERS, ORDERS, on=ON_ORDER), (1, 1)),
        (joined(ORDERS, VISITS, on=("id", "id")), (5, 5)),
        (joined(ORDERS, VISITS, on=("order", "rating")), (1, 5)),
        (joined(LINES, where(ORDERS, equal(column(ORDERS, "id"), number(3))), on=ON_ORDER), (5, 1)),
        (joined(LINES, distinct(ORDERS), on=ON_ORDER), (5, 1)),
        (windows("order"), (5, 1)),
        (windows("number"), (5, 5)),
        (joined(LINES, RENAMED, on=ON_ORDER), (5, 1)),
        (joined(LINES, projected(RENAMED, "id", "order"), on=("order", "id")), (5, 5)),
        (joined(LINES, computed(ORDERS), on=ON_ORDER), (5, 1)),
        (joined(LINES, computed(ORDERS), on=("order", "more")), (5, 5)),
        (joined(VISITS, by_unit(VISITS, "kind"), on=("kind", "kind")), (5, 1)),
        (joined(VISITS, by_unit(VISITS, "kind")), (5, 4)),
        (joined(VISITS, by_unit(VISITS, "kind", "rating"), on=("kind", "kind")), (5, 5)),
        (joined(VISITS, by_unit(VISITS)), (5, 1)),
        (joined(VISITS, by_unit(VISITS), on=("rating", "id")), (5, 1)),
        (joined(LINES, union(ORDERS, ORDERS), on=ON_ORDER), (5, 10)),
    ],
    ids=in_short,
)
def test_rows_that_match_one_row(join, fans):
    """A verified key, or the keys of a GROUP BY, match one, through filters, windows and plain columns alone."""
    assert Owners(S, 5).fans(join) == fans


PAIRS = joined(VISITS, RENAMED)  # 25 rows of a unit: each visit with each order
PAIRS_BACK = joined(RENAMED, VISITS)
MATCHED = joined(ORDERS, REGIONS, on=("order", "city"))  # its types differ, so that 100 public rows match


@pytest.mark.parametrize(
    ("join", "fan"),
    [
        (joined(LINES, PAIRS, on=ON_ORDER), 5),
        (joined(LINES, PAIRS_BACK, on=ON_ORDER), 5),
        (joined(LINES, PAIRS, on=("order", "rating")), 25),
        (joined(LINES, PAIRS_BACK, on=("order", "rating")), 25),
        (joined(LINES, joined(VISITS, RENAMED, "left"), on=ON_ORDER), 25),
        (joined(LINES, joined(PEOPLE, RENAMED), on=ON_ORDER), 1),
        (joined(LINES, joined(RENAMED, PEOPLE), on=ON_ORDER), 1),
        (joined(LINES, MATCHED, on=ON_ORDER), 500),
        (joined(LINES, joined(REGIONS, ORDERS, on=("city", "order")), on=ON_ORDER), 500),
    ],
    ids=in_short,
)
def test_rows_that_match_through_an_inner_join(join, fan):
    """Rows that agree on one side of it, times how many of the other match each; an outer or a public join has them all."""
    assert Owners(S, 5).fans(join)[1] == fan


def test_rows_that_match_through_a_join_without_a_bound():
    """Without a cap a verified key still bounds what agrees, where the other side has one row."""
    for inner in (joined(PEOPLE, RENAMED), joined(RENAMED, PEOPLE)):
        assert Owners(S).fans(joined(LINES, inner, on=ON_ORDER)) == (None, 1)
        assert Owners(S).fans(joined(LINES, inner, on=("order", "age"))) == (None, None)
    for inner in (joined(LINES, RENAMED, on=ON_ORDER), joined(RENAMED, LINES, on=ON_ORDER)):
        assert Owners(S).fans(joined(VISITS, inner, on=("rating", "price"))) == (None, None)
        assert Owners(S).fans(joined(VISITS, inner, on=("rating", "id"))) == (None, None)


class Counting:
    """A schema that counts how often a table is looked up."""

    def __init__(self, known):
        self.known, self.looked_up = known, 0

    def table(self, name):
        self.looked_up += 1
        return self.known.table(name)

    def __getattr__(self, name):
        return getattr(self.known, name)


def test_a_deep_question_is_walked_once():
    """A relation that is read twice is judged once: else a question of twenty joins would be walked a million times."""
    relation = PEOPLE
    for _ in range(20):
        relation = joined(relation, relation)
    counting = Counting(S)

    assert Owners(counting).rows(relation) == 1
    assert counting.looked_up == 1


# ---- what is equated -------------------------------------------------------------------------------------------------


def on_condition(*parts):
    """People and regions, by a condition of several parts; the columns of regions that it fixes."""
    condition = parts[0]
    for part in parts[1:]:
        condition = call("and", condition, part, kind=Type.BOOLEAN)
    return equated_columns(joined_where(PEOPLE, REGIONS, "inner", condition), WIDE, WIDE + 2)


WIDE = len(PEOPLE.columns)
CITY, AGE = column(PEOPLE, "city"), column(PEOPLE, "age")
HERE, REGION = (right_column(PEOPLE, REGIONS, name) for name in ("city", "region"))
TRUE = Literal(True, Type.BOOLEAN)
LESS = call("<", CITY, HERE, kind=Type.BOOLEAN)


@pytest.mark.parametrize(
    ("parts", "fixed"),
    [
        ([equal(CITY, HERE)], {0}),
        ([equal(REGION, CITY)], {1}),
        ([equal(HERE, Literal("north", STRING))], {0}),
        ([equal(HERE, call("lower", CITY, kind=STRING))], {0}),
        ([equal(call("lower", HERE, kind=STRING), CITY)], set()),
        ([equal(HERE, REGION)], set()),
        ([equal(HERE, call("concat", CITY, REGION, kind=STRING))], set()),
        ([equal(HERE, AGE)], set()),
        ([LESS], set()),
        ([LESS, equal(CITY, HERE)], {0}),
        ([TRUE, equal(CITY, HERE)], {0}),
        ([equal(CITY, HERE), LESS, equal(CITY, REGION)], {0, 1}),
        ([call("or", equal(CITY, HERE), TRUE, kind=Type.BOOLEAN)], set()),
    ],
    ids=in_short,
)
def test_what_a_condition_fixes(parts, fixed):
    """Plain columns that must equal something of the other side, type for type, in every part that must be true."""
    assert on_condition(*parts) == fixed


def test_small_walks():
    """Parts, references, units and tables, each where it stands."""
    both = call("and", equal(CITY, HERE), call("and", LESS, TRUE, kind=Type.BOOLEAN), kind=Type.BOOLEAN)
    assert list(conjuncts(both)) == [equal(CITY, HERE), LESS, TRUE]
    assert list(conjuncts(None)) == []
    assert refs_of(both) == {CITY.index, HERE.index}
    assert refs_of(TRUE) == set()
    assert is_unit(column(VISITS, "id"), VISITS)
    assert not is_unit(column(VISITS, "kind"), VISITS)
    assert not is_unit(number(0), VISITS)
    nested = where(union(joined(PEOPLE, by_unit(VISITS)), EVENTS), TRUE)
    assert list(scans_of(nested)) == [PEOPLE, VISITS, EVENTS]


# ---- public tables ---------------------------------------------------------------------------------------------------

AREAS = Table("areas", "a.parquet", None)


class Facts:
    """How many rows of each public table agree in each set of its columns; None: nothing is known."""

    known = {  # noqa: RUF012
        ("regions", ()): 100,
        ("regions", ("city",)): 3,
        ("regions", ("region",)): 7,
        ("regions", ("city", "region")): 2,
        ("areas", ()): 50,
        ("areas", ("region",)): 5,
        ("areas", ("zone",)): 11,
        ("areas", ("region", "zone")): 4,
    }

    def multiplicity(self, table, columns):
        return self.known[table, columns]


PUBLICS = schema([*people_tables(Caps(10)), (AREAS, {"region": STRING, "zone": STRING})], public=Facts())
ZONES = scan(PUBLICS, "areas")


def most(relation, *fixed):
    return most_rows(relation, frozenset(fixed), PUBLICS)


BOTH = joined(REGIONS, ZONES, on=("region", "region"))  # city, region, region, zone


@pytest.mark.parametrize(
    ("relation", "fixed", "expected"),
    [
        (REGIONS, (), 100),
        (REGIONS, (0,), 3),
        (REGIONS, (1, 0), 2),
        (ZONES, (1,), 11),
        (where(REGIONS, TRUE), (1,), 7),
        (distinct(REGIONS), (1,), 7),
        (numbered(REGIONS), (1,), 7),
        (numbered(REGIONS), (2,), 100),
        (numbered(REGIONS), (0, 2), 3),
        (projected(REGIONS, "region", "city"), (0,), 7),
        (projected(REGIONS, "region", "city"), (1,), 3),
        (Project(REGIONS, (column(REGIONS, "city"), TRUE), REGIONS.columns), (1,), 100),
        (Project(REGIONS, (column(REGIONS, "city"), TRUE), REGIONS.columns), (0, 1), 3),
        (union(REGIONS, where(REGIONS, TRUE), ZONES), (0,), 3 + 3 + 5),
        (union(REGIONS, by_unit(VISITS)), (0,), None),
        (by_unit(VISITS), (0,), None),
        (BOTH, (), 100 * 50),
        (BOTH, (0,), 3 * 50),
        (BOTH, (1, 2), 7 * 5),
        (BOTH, (2,), 100 * 5),
        (BOTH, (0, 3), 3 * 11),
        (joined(REGIONS, by_unit(VISITS), on=None), (0,), None),
        (joined(by_unit(VISITS), REGIONS, on=None), (0,), None),
        *((joined(REGIONS, ZONES, kind, on=None), (0, 3), 4 * 12) for kind in ("left", "right", "full")),
        *((joined(REGIONS, ZONES, kind, on=None), (1,), 7) for kind in ("semi", "anti")),
    ],
    ids=in_short,
)
def test_public_rows_that_agree(relation, fixed, expected):
    """The table's own count, by the columns that are left of what is fixed; sums of branches, products of joined sides."""
    assert most(relation, *fixed) == expected


def test_public_rows_that_one_row_matches():
    """By what is equated, on the side where the public table is."""
    for left, right in ((PEOPLE, REGIONS), (REGIONS, PEOPLE)):
        assert public_matches(joined(left, right, on=("city", "city")), REGIONS, PUBLICS) == 3
        assert public_matches(joined(left, right, on=None), REGIONS, PUBLICS) == 100
    by_region = joined_where(REGIONS, PEOPLE, "inner", equal(Ref(1, STRING), Ref(2 + CITY.index, STRING)))
    assert public_matches(by_region, REGIONS, PUBLICS) == 7
    unknown = joined(VISITS, joined(REGIONS, by_unit(VISITS), on=None), on=None)
    assert public_matches(unknown, unknown.right, PUBLICS) is None


# ---- caps ------------------------------------------------------------------------------------------------------------


def cap_of(relation, asked=None, *, known=S, keyed=False, private=False, units=False, groups=None, height=None, **more):
    wanted = asked or RequestedCaps()
    needs = {"keyed": keyed, "private_keys": private, "counts_units": units, "known_groups": groups, "height": height, **more}
    return bound_contribution(relation, Owners(known), caps_of(relation, known, wanted), wanted, **needs)


def test_the_prepared_rank_serves_where_every_row_counts():
    """No filter and no join: the rank; a filter first: a window; one row a unit: nothing."""
    assert cap_of(VISITS)[0].by == "rank"
    assert cap_of(where(VISITS, equal(column(VISITS, "rating"), number(3))))[0].by == "window"
    assert cap_of(joined(PEOPLE, VISITS))[0].by == "window"
    assert cap_of(PEOPLE)[0].by == "none"
    assert cap_of(by_unit(VISITS))[0].by == "none"
    assert cap_of(union(*[EVENTS] * 11), known=E)[0].by == "window"
    assert cap_of(EVENTS, known=E)[0] == Cap(1, "none")
    assert cap_of(projected(VISITS, "id", "spent"))[0].by == "rank"
    assert cap_of(numbered(VISITS))[0].by == cap_of(distinct(VISITS))[0].by == "window"


def test_the_rank_may_be_asked_for_under_a_filter_only_if_it_bounds_the_result():
    """A public table that multiplies rows brings the window back."""
    filtered = where(VISITS, equal(column(VISITS, "rating"), number(3)))

    assert cap_of(filtered, RequestedCaps(prepared=True))[0].by == "rank"
    assert cap_of(joined(filtered, filtered), RequestedCaps(prepared=True))[0].by == "window"


def test_groups_are_capped_where_it_helps():
    """A cap on groups changes nothing for counts under a bare row cap, so it is not executed; for units and keys it is."""
    assert cap_of(VISITS, keyed=True, groups=50)[0].groups is None
    assert cap_of(VISITS, keyed=True, groups=50)[1].groups == 10
    known = schema(caps=Caps(10, groups=4))
    few = scan(known, "visits")
    assert cap_of(few, known=known, keyed=True, units=True, groups=50)[0].groups == 4
    assert cap_of(few, known=known, keyed=True, private=True)[0].groups == 4
    assert cap_of(few, known=known, keyed=True, private=True)[1].groups == 4
    assert cap_of(VISITS, keyed=True, private=True)[1].groups == 10
    assert cap_of(VISITS, keyed=True, units=True, groups=3)[0].groups is None
    known = schema(caps=Caps(10, groups=2, rows_per_group=3))
    assert cap_of(scan(known, "visits"), known=known, keyed=True, groups=50)[0] == Cap(10, "rank", 2, 3)


def test_an_inner_group_by_proves_one_row_in_a_group():
    """Proved where the key is a column as it stands; executed where keys are moved to ends, or a cap is narrower."""
    inner = by_unit(VISITS, "city")
    key = frozenset({1})
    assert cap_of(inner, keyed=True, groups=50, fixed=key) == (Cap(10, "window"), Contribution(10, 10, 1, keyed=True))
    assert cap_of(inner, keyed=True, groups=50, fixed=key, bare=False)[0] == Cap(10, "window", in_group=1)
    assert cap_of(inner, keyed=True, groups=50)[1].in_group == 10
    two = by_unit(VISITS, "city", "kind")
    assert cap_of(two, keyed=True, groups=50, fixed=key)[1].in_group == 4  # three declared values and NULL
    few = schema(caps=Caps(10, groups=4, rows_per_group=2))
    again = by_unit(scan(few, "visits"), "city", "kind")
    assert cap_of(again, known=few, keyed=True, groups=50, fixed=key)[0] == Cap(10, "window", 4, 2)


def test_rows_without_a_key_are_one_group():
    """No two rows share a value of a verified key, but several may have none."""
    orders = scan(S, "orders")
    assert Owners(S, 5).fans(joined(scan(S, "lines"), orders, on=("order", "order"))) == (5, 1)
    assert Owners(S, 5).agreeing(orders, frozenset({1})) == 5


def test_what_is_only_promised_is_executed():
    """A column that is declared to hold no NULL may hold some: its values are capped, not counted on."""
    table = Table(
        "t", "t.parquet", UnitColumn("id"), (Column("s", STRING, values=("f", "m"), nullable=False),), caps=Caps(10)
    )
    known = schema([(table, {"id": Type.INTEGER, "s": STRING, "b": Type.BOOLEAN})])
    rows_ = scan(known, "t")
    assert Owners(known).rows(distinct(projected(rows_, "id", "s"))) == 3
    assert cap_of(distinct(projected(rows_, "id", "s")), known=known) == (
        Cap(2, "window"),
        Contribution(2, 1, 2, keyed=False),
    )
    assert cap_of(distinct(projected(rows_, "id", "b")), known=known)[0] == Cap(3, "none")


def test_an_analyst_lowers_caps_and_raises_them_only_as_the_owner_allows():
    """The owner's caps_max is the ceiling; without one, the caps are."""
    assert cap_of(VISITS, RequestedCaps(rows=3))[0].rows == 3
    with pytest.raises(ValueError, match=r"caps\.rows must be from 1 to 10"):
        cap_of(VISITS, RequestedCaps(rows=11))


SOME = schema(caps=Caps(10, groups=4))
FEW = schema(caps=Caps(10, groups=2, rows_per_group=3))


@pytest.mark.parametrize(
    ("known", "needs", "cap", "contribution"),
    [
        (S, {}, Cap(10, "rank"), Contribution(10, 1, 10, keyed=False)),
        (S, {"height": 7}, Cap(10, "rank", height=7), Contribution(10, 1, 10, keyed=False)),
        (S, {"keyed": True, "groups": 50}, Cap(10, "rank"), Contribution(10, 10, 10, keyed=True)),
        (S, {"keyed": True, "groups": 3}, Cap(10, "rank"), Contribution(10, 3, 10, keyed=True)),
        (S, {"keyed": True, "groups": 1, "units": True}, Cap(10, "rank"), Contribution(10, 1, 10, keyed=True)),
        (S, {"keyed": True, "groups": 0, "units": True}, Cap(10, "rank"), Contribution(10, 1, 10, keyed=True)),
        (S, {"keyed": True, "groups": 50, "units": True}, Cap(10, "rank"), Contribution(10, 10, 10, keyed=True)),
        (S, {"keyed": True, "private": True, "height": 7}, Cap(10, "rank", height=7), Contribution(10, 10, 10, keyed=True)),
        (SOME, {"keyed": True, "groups": 50, "units": True}, Cap(10, "rank", 4), Contribution(10, 4, 10, keyed=True)),
        (SOME, {"keyed": True, "private": True}, Cap(10, "rank", 4), Contribution(10, 4, 10, keyed=True)),
        (FEW, {}, Cap(10, "rank"), Contribution(10, 1, 10, keyed=False)),
        (FEW, {"keyed": True, "groups": 50}, Cap(10, "rank", 2, 3), Contribution(10, 2, 3, keyed=True)),
        (FEW, {"keyed": True, "groups": 2}, Cap(10, "rank", None, 3), Contribution(10, 2, 3, keyed=True)),
    ],
    ids=in_short,
)
def test_what_caps_prove_is_what_they_execute(known, needs, cap, contribution):
    """Rows in all, in so many groups, so many in one; a height is handed on."""
    assert cap_of(scan(known, "visits"), known=known, **needs) == (cap, contribution)


def test_a_unit_with_one_row_is_in_one_group():
    """Nothing is left to cap."""
    assert cap_of(PEOPLE, keyed=True, private=True) == (Cap(1, "none"), Contribution(1, 1, 1, keyed=True))


def test_a_question_about_public_tables_alone_is_refused():
    """They are no secret."""
    with pytest.raises(NotPrivate) as refusal:
        bound_contribution(
            REGIONS,
            Owners(S),
            Caps(10),
            RequestedCaps(),
            keyed=False,
            private_keys=False,
            known_groups=None,
            counts_units=False,
        )
    assert refusal.value.sentence == "a question must be about a private table; this one reads public tables only."
    assert refusal.value.hint == "public tables are no secret: read them directly."


def allowed(caps, most):
    """The study with these caps of visits, and the owner's ceiling."""
    tables = [
        (replace(table, caps_max=most) if table.name == "visits" else table, columns)
        for table, columns in people_tables(caps)
    ]
    return schema(tables)


RAISED = allowed(Caps(10, groups=4, rows_per_group=5), Caps(20, groups=6, rows_per_group=8))
OPEN = allowed(Caps(10), Caps(20))
BOTH = joined(VISITS, scan(S, "orders"))


@pytest.mark.parametrize(
    ("known", "relation", "asked", "caps"),
    [
        (RAISED, VISITS, {}, Caps(10, 4, 5)),
        (RAISED, VISITS, {"rows": 20}, Caps(20, 4, 5)),
        (RAISED, VISITS, {"rows": 1}, Caps(1, 4, 1)),
        (RAISED, VISITS, {"rows": 3}, Caps(3, 4, 3)),
        (RAISED, VISITS, {"rows": 3, "rows_per_group": 8}, Caps(3, 4, 8)),
        (RAISED, VISITS, {"groups": 6}, Caps(10, 6, 5)),
        (RAISED, VISITS, {"rows_per_group": 8}, Caps(10, 4, 8)),
        (RAISED, VISITS, {"prepared": True}, Caps(10, 4, 5)),
        (OPEN, VISITS, {"groups": 20}, Caps(10, 20, 10)),
        (S, BOTH, {}, Caps(10, 10, 10)),
        (schema(caps=Caps(30)), BOTH, {}, Caps(30, 30, 30)),
        (S, BOTH, {"groups": 10, "rows_per_group": 10}, Caps(10, 10, 10)),
    ],
    ids=in_short,
)
def test_the_caps_of_a_question(known, relation, asked, caps):
    """The largest of its private tables', changed as the analyst may: up to the owner's caps_max."""
    assert caps_of(relation, known, RequestedCaps(**asked)) == caps


@pytest.mark.parametrize(
    ("known", "asked", "most"),
    [
        (RAISED, {"rows": 21}, 20),
        (RAISED, {"rows": 0}, 20),
        (RAISED, {"groups": 7}, 6),
        (RAISED, {"rows_per_group": 9}, 8),
        (RAISED, {"rows_per_group": 0}, 8),
        (OPEN, {"groups": 21}, 20),
        (S, {"groups": 11}, 10),
    ],
    ids=in_short,
)
def test_a_cap_beyond_what_the_owner_allows_is_refused_by_its_name(known, asked, most):
    """With the most that is allowed, and what was asked for."""
    ((name, value),) = asked.items()
    with pytest.raises(ValueError, match=rf"^caps\.{name} must be from 1 to {most}, what the owner allows; got {value}\."):
        caps_of(VISITS, known, RequestedCaps(**asked))

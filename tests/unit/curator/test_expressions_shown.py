"""Expressions of Ibis: what becomes a text, what is refused before anything is read, and that nothing is loaded early."""

import subprocess
import sys
from types import SimpleNamespace

import ibis
import pytest
from ibis import _

from curador.curator.expressions import MOST_NODES, text_of, unbound_table
from curador.errors import InvalidParameter, InvalidQuery
from curador.study.values import Type

FIELDS = [SimpleNamespace(name=f"a_{kind}", type=kind) for kind in Type]
SHOWN = SimpleNamespace(table=SimpleNamespace(name="Visits"), fields=FIELDS)


class ShownSchema:
    """One table, found whatever its case; who asks is counted."""

    tables = (SHOWN,)

    def __init__(self):
        self.asked = 0

    def table(self, name):
        self.asked += 1
        return SHOWN if name.lower() == "visits" else None


def as_text(question, dialect="duckdb"):
    return text_of(question, ShownSchema, {}, dialect)


VISITS = unbound_table(ShownSchema(), "visits")


def test_a_table_has_the_columns_that_are_shown():
    """Under the name and with the types of the schema."""
    assert VISITS.get_name() == "Visits"
    assert [str(kind) for kind in VISITS.schema().types] == [
        "boolean", "int64", "decimal", "float64", "string", "date", "timestamp",
    ]  # fmt: skip


def test_a_table_has_no_rows():
    """It is bound to nothing; Ibis says so."""
    with pytest.raises(ibis.common.exceptions.IbisError, match="unbound tables and therefore cannot be executed"):
        VISITS.count().execute()


def test_an_expression_becomes_duckdb_s_words():
    """The text that `ibis.to_sql` gives, letter by letter."""
    question = VISITS.filter(_.a_integer > 3).group_by("a_string").agg(n=_.count())
    assert as_text(question) == str(ibis.to_sql(question, dialect="duckdb"))


@pytest.mark.slow
def test_a_service_is_not_asked_for_tables_that_it_gave():
    """The schema is looked at only for tables that were made elsewhere."""
    schema = ShownSchema()
    text_of(VISITS.count(), lambda: schema, {"Visits": VISITS}, "duckdb")
    assert schema.asked == 0
    text_of(VISITS.count(), lambda: schema, {}, "duckdb")
    assert schema.asked > 0


def doubled(times):
    found = VISITS.a_integer
    for _once in range(times):
        found = found + found
    return found.sum()


def joined(times):
    found = VISITS
    for _once in range(times):
        found = found.join(found.view(), "a_integer")[["a_integer"]]
    return found.count()


def filtered(times):
    found = VISITS
    for number in range(times):
        found = found.filter(_.a_integer > number)
    return found.count()


def added(times):
    found = VISITS.a_integer
    for _once in range(times):
        found = found + 1
    return found.sum()


REFUSED = {
    "no question": (3, "must be a text of SQL, or an Ibis expression"),
    "bytes": (b"SELECT", "must be a text of SQL"),
    "of no table": (_.a_integer.sum(), "an expression must be of a table"),
    "other columns": (ibis.table({"a_integer": "int64"}, name="Visits").count(), "must be over tables of the study"),
    "another type": (
        ibis.table({one.name: "string" for one in FIELDS}, name="Visits").count(),
        "must be over tables of the study",
    ),
    "of another place": (
        ibis.table(VISITS.schema(), name="Visits", catalog="c", database="d").count(),
        "must be over tables of the study",
    ),
    "unknown": (ibis.table({"a": "int64"}, name="salary").count(), 'there is no table "salary"'),
    "one of two": (VISITS.join(ibis.table({"a_integer": "int64"}, name="salary"), "a_integer").count(), "no table"),
    "doubled": (doubled(60), f"at most {MOST_NODES:,} parts"),
    "joined with itself": (joined(14), f"at most {MOST_NODES:,} parts"),
    "many filters": (filtered(2_000), f"at most {MOST_NODES:,} parts"),
    "deep": (added(2_000), "must be less deep"),
    "a parameter": (VISITS.a_integer.sum() + ibis.param("int64"), "must have a form in SQL"),
    "no form": (VISITS.a_integer.corr(VISITS.a_float), "only implements `pop`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_question_is_refused(name):
    """In one sentence, before it is compiled where it is too large."""
    question, words = REFUSED[name]
    with pytest.raises((InvalidParameter, InvalidQuery)) as refusal:
        as_text(question)
    assert words.lower() in str(refusal.value).lower()


def test_rows_in_memory_and_of_connections_are_refused():
    """A table of another connection is named, and never reached."""
    operations = ibis.expr.operations
    bound = operations.DatabaseTable(name="Visits", schema=VISITS.schema(), source=object())
    with pytest.raises(InvalidQuery, match="none of them"):
        as_text(bound.to_expr().count())


def test_a_dialect_is_of_texts():
    """An expression has none."""
    with pytest.raises(InvalidParameter, match="dialect must be left out"):
        as_text(VISITS.count(), dialect="spark")


@pytest.mark.parametrize("name", ["salary", "", 3])
def test_a_table_that_is_not_there_is_refused(name):
    """In the words of a text about it."""
    with pytest.raises((InvalidQuery, InvalidParameter)):
        unbound_table(ShownSchema(), name)


ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "ibis":
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
from types import SimpleNamespace
import curador
from curador.curator.options import QuestionVerbs
from curador.curator.expressions import unbound_table
assert "ibis" not in sys.modules
try:
    unbound_table(SimpleNamespace(), "visits")
except curador.InvalidParameter as refusal:
    print(refusal)
"""


def test_ibis_is_no_part_of_what_is_needed():
    """Without it texts are asked as ever, and a table says what to install."""
    done = subprocess.run([sys.executable, "-c", ABSENT], capture_output=True, text=True, check=True, timeout=60)
    assert "pip install 'curador[ibis]'" in done.stdout

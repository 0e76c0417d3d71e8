# ruff: noqa: E501 -- a table of sentences
"""SmartNoise metadata become a study, or are refused by the name of what a study cannot keep."""

from __future__ import annotations

import copy
import sys
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from curador.errors import InvalidStudy
from curador.study.model import Budget, Caps, Column, UnitColumn, UnitRow
from curador.study.smartnoise import from_smartnoise
from curador.study.values import Type

BUDGET = Budget(epsilon=1, delta="1e-8")
TWO_TABLES = """
engine: pandas
"":
  Shop:
    People:
      rows: 1000
      rows_exact: 1000
      max_ids: 3
      sample_max_ids: false
      use_dpsu: true
      censor_dims: true
      clamp_counts: false
      clamp_columns: true
      pid: {type: int, private_id: True}
      age: {type: int, lower: 0, upper: 100}
      income: {type: float, lower: 0.5, upper: 500000, nullable: false}
      city: {name: city, type: string, cardinality: 12}
      married: {type: boolean, private_id: false}
      born: {type: datetime, missing_value: null}
      blob: {type: unknown}
    '"Past-Orders"':
      '`person id`': {type: int, private_id: true}
      '[amount]': {type: float}
"""
METADATA = {
    "": {
        "S": {
            "T": {
                "max_ids": 2,
                "id": {"type": "int", "private_id": True},
                "age": {"type": "int", "lower": 0, "upper": 100},
            }
        }
    }
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def imported(metadata, **arguments):
    return from_smartnoise(metadata, **{"budget": BUDGET, "sources": {"T": "t.csv"}, **arguments})


def changed(change):
    metadata = copy.deepcopy(METADATA)
    change(metadata[""]["S"]["T"])
    return metadata


def test_a_file_with_two_tables(here):
    """Units, caps, bounds, types and names are carried over; sizes and what is always enforced fall away."""
    file = here / "shop.yaml"
    file.write_text(TWO_TABLES, encoding="utf-8")
    study = imported(
        file, sources={"People": "people.csv", "Shop.Past-Orders": "orders.csv"}, ledger="shop.ledger", name="shop"
    )
    people, orders = study.tables

    assert (study.name, study.folder, study.ledger) == ("shop", here, Path("shop.ledger"))
    assert (people.name, people.source, people.unit, people.caps) == ("People", "people.csv", UnitColumn("pid"), Caps(rows=3))
    assert people.columns == (
        Column("pid", Type.INTEGER),
        Column("age", Type.INTEGER, bounds=(0, 100)),
        Column("income", Type.FLOAT, bounds=(Fraction(1, 2), Fraction(500_000)), nullable=False),
        Column("city", Type.STRING),
        Column("married", Type.BOOLEAN),
        Column("born", Type.TIMESTAMP),
    )
    assert (orders.name, orders.unit, orders.caps) == ("Past-Orders", UnitColumn("person id"), Caps(rows=1))
    assert [column.name for column in orders.columns] == ["person id", "amount"]


def test_a_mapping_is_as_good_as_a_file(here):
    """One table takes its name and its ledger from its file; a frame needs a ledger."""
    study = imported(METADATA)
    framed = imported(METADATA, sources={"S.T": pa.table({"id": [1]})}, ledger="x.ledger")

    assert (study.name, study.tables[0].name, study.ledger_path) == ("T", "T", here / "t.ledger")
    assert (framed.tables[0].source, list(framed.frames)) == ("frame", ["T"])


def test_rows_can_be_the_units(here):
    """row_privacy means that every row is somebody."""

    def by_row(table):
        del table["id"], table["max_ids"]
        table["row_privacy"] = True

    table = imported(changed(by_row)).tables[0]

    assert (table.unit, table.caps) == (UnitRow(), Caps(rows=1))


def test_metadata_without_schemas(here):
    """The older form has tables directly below the collection."""
    assert imported({"MyDatabase": METADATA[""]["S"]}).tables == imported(METADATA).tables


BAD = [
    (lambda t: t.update(censor_dims=False), "S.T.censor_dims must be true or absent; got false."),
    (lambda t: t.update(clamp_columns=False), "S.T.clamp_columns must be true or absent; got false."),
    (lambda t: t.update(clamp_counts=True), "S.T.clamp_counts must be false or absent; got true."),
    (lambda t: t.update(censor_dims="no"), "S.T.censor_dims must be true or false; got 'no'."),
    (
        lambda t: t.update(max_id=3),
        "S.T.max_id must be a column, or a known option (censor_dims, clamp_columns, clamp_counts, max_ids, row_privacy, rows, rows_exact, sample_max_ids, use_dpsu); got 3.",
    ),
    (lambda t: t.update(rows={"type": "int"}), 'S.T.rows must be an option of the table; got { type = "int" }.'),
    (lambda t: t.update(max_ids=0), "tables.T.caps.rows must be a whole number from 1 to 1,000,000; got 0."),
    (lambda t: t.update(max_ids=True), "tables.T.caps.rows must be a whole number; got true."),
    (lambda t: t.update(row_privacy=True), "S.T.row_privacy must be false or absent where a column is private_id; got true."),
    (
        lambda t: (t.pop("id"), t.update(row_privacy=True)),
        "S.T.max_ids must be 1 or absent where row_privacy is true; got 2.",
    ),
    (lambda t: t.pop("id"), "S.T must be a table with one column that is private_id; got none."),
    (
        lambda t: t["age"].update(private_id=True),
        'S.T must be a table with one column that is private_id; got ["id", "age"].',
    ),
    (lambda t: t["id"].update(private_id=1), "S.T.id.private_id must be true or false; got 1."),
    (
        lambda t: t["age"].pop("lower"),
        'S.T.age must be a column with both lower and upper, or neither; got { type = "int", upper = 100 }.',
    ),
    (
        lambda t: t["age"].update(lower=100),
        "tables.T.columns.age.bounds must be two whole numbers, lower below upper; got [100, 100].",
    ),
    (
        lambda t: t["age"].update(lower=0.5),
        "tables.T.columns.age.bounds must be two whole numbers, lower below upper; got [0.5, 100].",
    ),
    (
        lambda t: t["age"].update(upper=float("inf")),
        "tables.T.columns.age.bounds must be two whole numbers, lower below upper; got [0, inf].",
    ),
    (
        lambda t: t["age"].update(type="string"),
        "tables.T.columns.age.bounds must be absent for a string column; got [0, 100].",
    ),
    (
        lambda t: t["age"].update(type="integer"),
        "S.T.age.type must be one of int, float, string, boolean, datetime, unknown; got 'integer'.",
    ),
    (
        lambda t: t["age"].pop("type"),
        "S.T.age.type must be one of int, float, string, boolean, datetime, unknown; got nothing.",
    ),
    (lambda t: t["age"].update(missing_value=0), "S.T.age.missing_value must be absent; got 0."),
    (lambda t: t["age"].update(sensitivity=5), "S.T.age.sensitivity must be absent; got 5."),
    (lambda t: t["age"].update(nullable="no"), "S.T.age.nullable must be true or false; got 'no'."),
    (
        lambda t: t["age"].update(uper=5),
        "S.T.age.uper must be a known option (cardinality, lower, missing_value, name, nullable, private_id, sensitivity, type, upper); got 'uper'.",
    ),
    (lambda t: t.update(empty={}), "S.T.empty must be a mapping with something in it; got {}."),
    (
        lambda t: t.update({"__rank": {"type": "int"}}),
        "tables.T.columns.__rank must be a name of 1 to 200 characters, without NUL, that does not begin with \"__\"; got '__rank'.",
    ),
    (lambda t: t.update({5: {"type": "int"}}), "S.T.5 must be a name in quotes; got 5."),
]


@pytest.mark.parametrize(("change", "sentence"), BAD, ids=[sentence.partition(" must")[0] for _, sentence in BAD])
def test_what_a_study_cannot_keep_is_refused_by_name(here, change, sentence):
    """Options are never dropped where that would change what is promised."""
    with pytest.raises(InvalidStudy) as told:
        imported(changed(change))

    assert str(told.value).partition("\n")[0] == sentence


@pytest.mark.parametrize(
    ("metadata", "arguments", "sentence"),
    [
        (METADATA, {"sources": {}}, "sources must be a mapping that says where T is; got []."),
        (METADATA, {"sources": {"T": "t", "U": "u"}}, "sources must be a mapping from tables of the metadata; got 'U'."),
        ({}, {}, "metadata must be a mapping with something in it; got {}."),
        ({"a": {}, "b": {}}, {}, 'metadata must be one collection of tables; got ["a", "b"].'),
        (
            {"": {"S": METADATA[""]["S"], "R": METADATA[""]["S"]}},
            {},
            "R.T must be a table name that stands in one schema only; got 'T'.",
        ),
        ({"": {"S": {}}}, {}, "S must be a mapping with something in it; got {}."),
    ],
)
def test_metadata_that_do_not_fit_their_sources(here, metadata, arguments, sentence):
    """Every table has one source, and nothing else has."""
    with pytest.raises(InvalidStudy) as told:
        imported(metadata, **arguments)

    assert str(told.value).partition("\n")[0] == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "meta.yaml, line 1: the text must be YAML; got \"expected the node content, but found '<stream end>'\"."),
        (
            "'':\n  S:\n    T:\n      a: {type: int}\n      a: {type: float}\n",
            "meta.yaml, line 5: the text must be YAML; got 'the key a is written twice'.",
        ),
        (
            "!!python/object:os.system {}",
            "meta.yaml, line 1: the text must be YAML; got \"could not determine a constructor for the tag 'tag:yaml.org,2002:python/obje....",
        ),
        ("[1, 2]", "meta.yaml: metadata must be a mapping with something in it; got [1, 2]."),
        ("", "meta.yaml: metadata must be a mapping with something in it; got nothing."),
        (
            "'':\n  S:\n    T:\n      id: {type: int}\n",
            "meta.yaml: S.T must be a table with one column that is private_id; got none.",
        ),
    ],
)
def test_bad_yaml(here, text, sentence):
    """A file is refused under its name, with the line where the text itself is wrong."""
    file = here / "meta.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidStudy) as told:
        imported(file)

    assert str(told.value).partition("\n")[0] == sentence


def test_a_missing_file_and_a_missing_reader(here, monkeypatch):
    """An absent file, and an absent PyYAML, are told."""
    with pytest.raises(InvalidStudy, match=r"gone\.yaml must be a file that can be read; got 'No such file or directory'"):
        imported("gone.yaml")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InvalidStudy, match=r"^SmartNoise metadata need PyYAML\.\nHint: install curador\[smartnoise\]\.$"):
        imported("gone.yaml")

"""The draft that init writes: every column, nothing of the rows, and a study as soon as the unit is filled in."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from curador.errors import InvalidStudy
from curador.study.check import check_study, owner_warnings
from curador.study.draft import DraftTable, draft_toml
from curador.study.file import parse_study
from curador.study.model import UnitColumn
from curador.study.values import Type

PHYSICAL = [
    ("user_id", "BIGINT", Type.INTEGER),
    ("spent", "DOUBLE", Type.FLOAT),
    ("price", "DECIMAL(12,2)", Type.DECIMAL),
    ("city name", "VARCHAR", Type.STRING),
    ("mood", "ENUM('secret', 'hidden')", Type.STRING),
    ("day", "DATE", Type.DATE),
    ("seen", "TIMESTAMP WITH TIME ZONE", Type.TIMESTAMP),
    ("ok", "BOOLEAN", Type.BOOLEAN),
    ("tags", "VARCHAR[]", None),
    ("more", "STRUCT(a INTEGER, b ENUM('covert'))", None),
    ("bad\nname = 1", "BLOB\n[tables.evil]\nsource = 'x'", None),
    ("__rank", "BIGINT", Type.INTEGER),
    ("SPENT", "DOUBLE", Type.FLOAT),
]
FOLDER = Path("/somewhere")


def draft(name, source, physical):
    return draft_toml(name, [DraftTable(name, source, physical)])


def filled(text, unit="user_id"):
    assert text.count('unit = ""') == 1
    return text.replace('unit = ""', f'unit = "{unit}"')


def test_a_draft_becomes_a_study_once_the_unit_is_filled_in():
    """Every column that can be selected is declared with its type; the study passes check."""
    study = parse_study(filled(draft("visits", "visits.parquet", PHYSICAL)), folder=FOLDER)
    table = study.tables[0]

    assert (study.name, table.name, table.source, table.unit) == ("visits", "visits", "visits.parquet", UnitColumn("user_id"))
    assert [(column.name, column.type) for column in table.columns] == [(name, kind) for name, _, kind in PHYSICAL[:8]]
    assert all(column.bounds is None and column.values is None for column in table.columns)
    check_study(study)
    assert owner_warnings(study) == ("tables.visits declares no bounds: its rows can be counted, never summed.",)


def test_a_draft_as_it_is_written_is_refused():
    """Whose row it is cannot be guessed."""
    with pytest.raises(InvalidStudy, match=r"line 15: \[tables.visits\] unit must be a column"):
        parse_study(draft("visits", "visits.parquet", PHYSICAL), folder=FOLDER)


def test_every_column_has_its_physical_type_and_a_line_to_fill():
    """The lines to fill are comments; uncommented and filled, they are read."""
    text = draft("visits", "visits.parquet", PHYSICAL)
    lines = text.splitlines()
    place = lines.index("[tables.visits.columns.spent]   # DOUBLE")

    assert lines[place + 1 : place + 3] == ['type = "float"', "# bounds = [lower, upper]"]
    assert lines[lines.index("[tables.visits.columns.price]   # DECIMAL(12,2)") + 2] == "# bounds = [lower, upper]"
    assert sum(line.startswith(("# bounds = [", "# values = [")) for line in lines) == 8
    study = parse_study(filled(text).replace("# bounds = [lower, upper]", "bounds = [0, 5]"), folder=FOLDER)
    assert study.tables[0].column("spent").bounds == (0, 5)


def test_nothing_of_the_rows_is_in_a_draft():
    """The labels of an enumerated type are data, and are left out."""
    text = draft("visits", "visits.parquet", PHYSICAL)

    assert '[tables.visits.columns.mood]   # ENUM\ntype = "string"' in text
    assert not any(word in text for word in ("secret", "hidden", "covert"))


def test_columns_that_cannot_be_selected_are_listed_in_a_comment():
    """Neither their names nor their types can break out of it."""
    text = draft("visits", "visits.parquet", PHYSICAL)
    left_out = text[text.index("# Columns that cannot be selected") :].splitlines()

    assert all(line.startswith("#") for line in left_out)
    assert [line.split()[1] for line in left_out[1:]] == ["tags", "more", '"bad\\nname', "__rank", "SPENT"]
    assert list(tomllib.loads(text)["tables"]) == ["visits"]


@pytest.mark.parametrize("name", ["visits", 'a "b".{x}\n', "a/b", "..", "é", "{name}"])
def test_odd_names_are_quoted(name):
    """Any table name gives a file that can be read."""
    study = parse_study(filled(draft(name, "x.parquet", [("id", "BIGINT", Type.INTEGER)]), "id"), folder=FOLDER)

    assert (study.name, study.tables[0].name) == (name, name)
    assert study.ledger.parent == Path()

"""What is printed is what there is: keys letter by letter, costs once, and of a study what the asker may know."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from curator_studies import BY_CITY, BY_SHOP, COUNT, make_study, open_curator

from curador.answers.column import AnswerColumn
from curador.curator.answer import answer_figure
from curador.curator.budget import log_table
from curador.curator.curator import open_study
from curador.curator.session import schema_for_analyst
from curador.errors import InvalidStudy
from curador.study.model import Analyst, UnitColumn, UnitPath
from curador.study.values import Type
from curador.text import key_text, level_text, make_table, plain_text, verbatim

HARD = [":skull:", "[red]x\\", "[bold]", "a\\[b]", "$x^2", "$", "{}"]


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    with open_curator(tmp_path_factory.mktemp("study"), shops=dict.fromkeys(HARD, 100_000)) as made:
        yield made


@pytest.fixture(scope="module")
def answer(curator):
    return curator.ask(BY_SHOP, spend="50%")


# ---- keys ----------------------------------------------------------------------------------------------------------


def test_keys_are_printed_letter_by_letter(answer):
    """No markup, no emoji, no backslash more or less; in HTML too."""
    lines = [line.rstrip() for line in str(answer).splitlines()]
    assert len(answer) == len(HARD)
    for key in HARD:
        assert any(line.startswith(f"{key} ") for line in lines), key
        assert f"<td>{key}</td>" in answer._repr_html_()


def test_numbers_that_are_keys_keep_their_digits(answer):
    """Years have no commas, and floats that differ look different; released numbers stay rounded."""
    floats = tuple(0.12346 + place / 100_000 for place in range(5))
    parts = (
        AnswerColumn("at", Type.FLOAT, floats, None, None),
        AnswerColumn("year", Type.INTEGER, tuple(range(2001, 2006)), None, None),
        AnswerColumn("n", Type.INTEGER, (1234,) * 5, (1200,) * 5, (1268,) * 5),
    )
    shown = str(replace(answer, parts=parts))
    assert all(repr(one) in shown for one in floats)
    assert all(f" {year} " in shown for year in range(2001, 2006))
    assert "1,234" in shown
    assert [key_text(one) for one in (None, True, 10**6, "x", 1e22)] == ["NULL", "True", "1000000", "x", "1e+22"]


def test_text_that_is_not_ours_is_verbatim_everywhere(curator):
    """Headings, notes, previews and the log hold other people's words as well."""
    hard = "".join(HARD)
    made = make_table(hard, "n")
    made.add_row(verbatim(hard), "1")
    assert plain_text(made).count(hard) == 2
    assert "\x1b" not in plain_text(verbatim("\x1b[2J"))
    question = f'SELECT COUNT(*) AS "{":skull:"}" FROM visits'
    assert ":skull:" in str(curator.preview(question, spend="1%"))
    assert ":skull:" in str(curator.preview([question, COUNT], spend="1%"))
    curator.ask(question, spend="1%")
    assert ":skull:" in plain_text(log_table(curator.log()), width=200)


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("0.95", "95 %"),
        ("0.9999999", "99.99999 %"),
        ("0.999999999999", "99.9999999 %"),
        ("1/3", "33.3333333 %"),
        ("1e-9", "0.0000001 %"),
    ],
)
def test_no_interval_is_called_certain(answer, level, text):
    """A confidence is rounded down."""
    assert level_text(Fraction(level)) == text
    assert f"± {text}" in str(answer.with_confidence(Fraction(level)))


@pytest.mark.slow
def test_keys_with_dollars_are_drawn(answer):
    """A figure takes no key for mathematics."""
    pytest.importorskip("matplotlib")
    made = answer_figure(answer)
    made.canvas.draw()
    labels = [one.get_text() for one in made.axes[0].get_yticklabels()]
    assert sorted(labels) == sorted(HARD)


# ---- the log -------------------------------------------------------------------------------------------------------


def test_the_log_says_a_cost_once(tmp_path):
    """The costs of all lines add up to what was spent."""
    with open_curator(tmp_path) as curator:
        for _ in range(2):
            curator.ask(BY_CITY, spend="5%")
        curator.analyst("leo").ask(COUNT, spend="5%")
        lines = curator.log()
        assert {line["kind"] for line in lines if line["cost"]} == {"reserved"}
        assert sum(Fraction(line["cost"].get("rho", 0)) for line in lines) == curator.ledger.spent().rho


# ---- an analyst's schema -------------------------------------------------------------------------------------------


def test_an_analyst_holds_no_more_of_the_study_than_may_be_known(curator):
    """No hidden table, no path, no other analyst; the owner's schema is the whole study."""
    shown = curator.analyst("eva").schema
    everything = repr(shown.study) + repr(shown.tables)
    assert [one.name for one in shown.study.tables] == ["visits"]
    assert [one.name for one in shown.study.analysts] == ["eva"]
    for hidden in ("salaries", "ana", "leo", "parquet", str(curator.study.folder)):
        assert f"'{hidden}'" not in everything
        assert "/" not in hidden or hidden not in everything
    assert [one.name for one in curator.analyst("ana").schema.study.tables] == ["visits", "salaries"]
    assert str(curator.study.folder) not in repr(curator.analyst("ana").schema.study)
    assert curator.schema.study == curator.study


def test_a_unit_behind_a_hidden_table_does_not_name_it(curator):
    """Only the column that leads there is left; with the table visible, the path is."""
    whole = curator.schema
    path = UnitPath("user_id", "salaries", "user_id")
    visits = replace(whole.tables[0], table=replace(whole.tables[0].table, unit=path))
    hidden = schema_for_analyst(Analyst("eva", tables=("visits",)), replace(whole, tables=(visits,)))
    assert hidden.tables[0].table.unit == hidden.study.tables[0].unit == UnitColumn("user_id")
    both = schema_for_analyst(Analyst("ana"), replace(whole, tables=(visits, whole.tables[1])))
    assert both.tables[0].table.unit == path


# ---- before a ledger -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("new_ledger", [None, "again"])
def test_a_study_that_cannot_be_used_gets_no_ledger(tmp_path, new_ledger):
    """A missing file, or one without a declared column, leaves no ledger, head or marker."""
    study = make_study(tmp_path)
    (tmp_path / "visits.parquet").unlink()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidStudy):
        open_study(study, new_ledger=new_ledger)
    (tmp_path / "salaries.parquet").rename(tmp_path / "visits.parquet")
    with pytest.raises(InvalidStudy):
        open_study(study, new_ledger=new_ledger)
    assert len(list(tmp_path.iterdir())) == len(before)


def test_a_source_that_lost_a_column_is_no_new_version(tmp_path):
    """The refresh is refused in a sentence, before the ledger knows of it."""
    with open_curator(tmp_path) as curator:
        (tmp_path / "salaries.parquet").replace(tmp_path / "visits.parquet")
        with pytest.raises(InvalidStudy):
            curator.refresh("monthly")
        assert curator.ledger.data_version == 1
        assert json.dumps(curator.log()).count("refreshed") == 0

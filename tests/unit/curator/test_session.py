"""A session: the owner and analysts share everything but the name, and what is remembered is bounded."""

from __future__ import annotations

from fractions import Fraction

import pytest
from curator_studies import BY_CITY, COUNT, make_study, open_curator, session_of

from curador.curator.asking import ask
from curador.curator.options import QuestionOptions
from curador.curator.price import plan_question, price_question
from curador.curator.session import MOST_PLANS, MOST_TRIED, Plans, Tried
from curador.errors import InvalidParameter, InvalidQuery


def test_an_analyst_shares_everything_but_the_name(tmp_path):
    """The ledger, the engine, the turn and what was tried out are the study's; the share and the tables are the analyst's."""
    study = make_study(tmp_path)
    owner = session_of(study)
    eva = owner.of(study.analyst("eva"))
    for name in ("study", "ledger", "engine", "pace", "turn", "plans", "tried"):
        assert getattr(eva, name) is getattr(owner, name)
    assert (owner.name, owner.share, owner.visible_tables) == (None, Fraction(1), None)
    assert (eva.name, eva.visible_tables) == ("eva", frozenset({"visits"}))
    assert [table.table.name for table in eva.visible_schema.tables] == ["visits"]


def test_a_plan_of_one_asker_is_not_that_of_one_who_sees_less(tmp_path):
    """Plans are kept by the text and by what the asker may see."""
    study = make_study(tmp_path)
    owner = session_of(study)
    question = "SELECT COUNT(*) AS n FROM salaries"
    plan_question(owner, question, QuestionOptions())
    with pytest.raises(InvalidQuery, match="salaries"):
        plan_question(owner.of(study.analyst("eva")), question, QuestionOptions())
    assert plan_question(owner, question, QuestionOptions())[1] is plan_question(owner, question, QuestionOptions())[1]


def test_a_new_version_is_seen_by_every_session(tmp_path):
    """A handle that an analyst took before the refresh asks about the new version."""
    with open_curator(tmp_path) as curator:
        ana = curator.analyst("ana")
        first = ana.ask(COUNT, spend="5%").receipt["data_version"]
        curator.refresh("a new month")
        assert (first, ana.ask(COUNT, spend="5%").receipt["data_version"]) == (1, 2)


def test_a_question_that_was_priced_before_a_refresh_is_refused(tmp_path):
    """It is about the version it was priced for: nothing is charged under the key of another one."""
    with open_curator(tmp_path) as curator:
        session = curator._session  # noqa: SLF001 -- between a price and its question
        priced = price_question(session, BY_CITY, QuestionOptions(spend="5%"))
        curator.refresh("meanwhile")
        with pytest.raises(InvalidParameter, match=r"data_version must be the current one \(2\)"):
            ask(priced)
        assert not curator.ledger.spent()


def test_what_is_remembered_is_bounded():
    """The oldest goes first."""
    tried, plans, schema = Tried(), Plans(), object()
    for number in range(MOST_TRIED + 1):
        tried.add((str(number), "key"))
    assert ("0", "key") not in tried
    assert ("1", "key") in tried
    for number in range(MOST_PLANS + 1):
        plans.keep(schema, number, number)
    assert plans.get(schema, 0) is None
    assert plans.get(schema, 1) == 1
    assert plans.get(object(), 1) is None

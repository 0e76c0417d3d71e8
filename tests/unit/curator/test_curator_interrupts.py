"""Ctrl-C at every step of a question says what the ledger knows; the same question of several askers is paid once."""

from __future__ import annotations

import threading

import pytest
from curator_studies import COUNT, make_study, open_curator

from curador.curator import asking, spending
from curador.curator.opening import ledger_of
from curador.curator.session import Session
from curador.errors import InvalidParameter, InvalidStudy
from curador.ledger.amounts import NOTHING
from curador.ledger.ledger import Ledger


@pytest.fixture
def curator(tmp_path):
    with open_curator(tmp_path) as made:
        yield made


def stopping(whole, *, place=1):
    """The same function, interrupted just before it returns from the call of this number."""
    calls = []

    def stopped(*arguments, **options):
        calls.append(whole(*arguments, **options))
        if len(calls) == place:
            raise KeyboardInterrupt
        return calls[-1]

    return stopped


def interrupted(curator):
    with pytest.raises(KeyboardInterrupt) as caught:
        curator.ask(COUNT, spend="5%")
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "place", "said", "stored"),
    [
        (Ledger, "reserve", 1, spending.CHARGING, False),
        (asking, "_draw_all", 2, spending.INTERRUPTED, False),
        (asking, "encode_releases", 2, spending.INTERRUPTED, False),
        (asking, "answer_receipt", 2, spending.INTERRUPTED, False),
        (asking, "bounding_notes", 2, spending.INTERRUPTED, False),
        (Ledger, "commit", 1, spending.STORING, True),
    ],
)
def test_an_interrupt_says_what_was_spent(curator, monkeypatch, where, name, place, said, stored):
    """From the call of reserve on, no interrupt can be taken for one that cost nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(where, name, stopping(getattr(where, name), place=place))
        told = interrupted(curator)
    assert told == said
    assert "charge" in told
    assert "nothing was spent" not in told
    assert curator.ledger.spent() != NOTHING
    assert curator.ask(COUNT, spend="5%").stored is stored


def test_an_interrupt_before_the_charge_claims_nothing(curator, monkeypatch):
    """Nothing was charged, and nothing is said about it."""
    for where, name in (
        (asking, "request_of"),
        (asking, "_draw_all"),
        (asking, "encode_releases"),
        (asking, "answer_receipt"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, stopping(getattr(where, name)))
            assert interrupted(curator) == ""
    monkeypatch.setattr(Session, "stored", stopping(lambda *_: None))
    assert interrupted(curator) == ""
    assert curator.ledger.spent() == NOTHING


def ask_at_once(curator, number, **options):
    start, answers = threading.Barrier(number), []

    def ask():
        start.wait()
        answers.append(curator.ask(COUNT, spend="5%", **options))

    threads = [threading.Thread(target=ask) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_the_same_question_at_once_is_paid_once(curator):
    """Who waited for the turn finds the answer stored; only `fresh` draws again."""
    answers = ask_at_once(curator, 6)
    assert sorted(one.stored for one in answers) == [False] + [True] * 5
    assert len({tuple(one.rows[0].values()) for one in answers}) == 1
    (cost,) = (one.cost for one in answers if not one.stored)
    assert curator.ledger.spent() == cost
    assert not any(one.stored for one in ask_at_once(curator, 2, fresh=True))


def test_an_old_data_version_is_not_served_any_more(tmp_path):
    """After a refresh elsewhere, what is stored of the old version is refused as new questions are; previews are new."""
    with open_curator(tmp_path) as curator:
        cost = curator.ask(COUNT, spend="5%").cost
        with ledger_of(make_study(tmp_path), new_ledger=None, verify=False) as other:
            other.refresh("elsewhere")
        curator._session.engine.ready = False  # noqa: SLF001 -- the other process removed the old version
        assert not curator.preview(COUNT, spend="5%").stored
        for spend in ("5%", "6%"):
            with pytest.raises(InvalidStudy, match=r"data version 1, and 2 is the current one.*\n.*open the study again"):
                curator.ask(COUNT, spend=spend)
            with pytest.raises(InvalidStudy, match=r"^the current data version must be prepared here\.$"):
                curator.analyst("leo").ask(COUNT, spend=spend)
        assert curator.ledger.spent() == cost


def test_a_question_that_waited_for_a_refresh_is_not_served_the_old_answer(curator, monkeypatch):
    """The version is looked at again inside the turn."""
    monkeypatch.setattr(spending, "_require_means", lambda _: curator.ledger.refresh("meanwhile"))
    with pytest.raises(InvalidParameter, match="data_version"):
        curator.ask(COUNT, spend="5%")
    assert curator.ledger.spent() == NOTHING

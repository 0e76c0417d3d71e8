"""Questions that come with an id: one id is charged once, computed once, and has one outcome; and who comes between."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from curator_studies import COUNT, open_curator

from curador.curator import spending
from curador.curator.options import QuestionOptions
from curador.curator.price import price_question
from curador.curator.ticket import Ticket
from curador.errors import Failed, InvalidParameter, InvalidQuery
from curador.ledger.entry import new_id

# ruff: noqa: SLF001 -- what a door does, without a door


@pytest.fixture
def curator(tmp_path):
    with open_curator(tmp_path) as made:
        yield made


def priced(curator, text=COUNT):
    return price_question(curator._session, text, QuestionOptions(spend="5%"))


def bought(curator, own, text=COUNT, **options):
    return spending.spend(curator._session, priced(curator, text), ticket=Ticket(id=own), **options)


def test_what_comes_again_has_the_outcome_that_it_had(curator):
    """Also where it should be drawn afresh: that was done when it came first."""
    own, one = new_id(), priced(curator).request.amounts
    first = bought(curator, own, fresh=True)
    again = bought(curator, own, fresh=True)

    assert again.rows == first.rows
    assert curator.ledger.spent() == one
    assert not bought(curator, new_id(), fresh=True).stored
    assert curator.ledger.spent() == one + one


def test_what_failed_has_failed_for_ever(curator, monkeypatch):
    """With the same incident, and charged once."""
    own = new_id()
    with monkeypatch.context() as patch:
        patch.setattr(spending, "_compute", lambda *_: (_ for _ in ()).throw(RuntimeError("a row said no")))
        with pytest.raises(Failed) as first:
            bought(curator, own)
    with pytest.raises(Failed) as second:
        bought(curator, own)
    assert str(second.value) == str(first.value)
    assert curator.ledger.spent() == priced(curator).request.amounts


def test_what_nobody_settles_keeps_its_charge(curator, monkeypatch):
    """Its process was killed: at the deadline the asker is told an id, and nobody computes it a second time."""
    own = new_id()
    asked = priced(curator).request
    curator.ledger.reserve(asked, id=own, again=False)
    curator._session.abandoned.add(own)
    shown = curator.ledger.outcome(own).shown[:16]
    monkeypatch.setattr(spending, "_compute", lambda *_: pytest.fail("computed"))
    with pytest.raises(Failed, match=f"the charge is kept and nothing was released. Incident {shown}"):
        bought(curator, own)
    assert curator.ledger.spent() == asked.amounts


def test_what_comes_twice_at_once_is_computed_by_one(curator, monkeypatch):
    """The second finds the first one's charge when it makes its own, waits for its end, and is given the same."""
    own, real, other = new_id(), curator.ledger.reserve, []

    def reserve(request, **named):
        if not other:
            other.append(True)
            other.append(bought(curator, own, fresh=True))
        return real(request, **named)

    monkeypatch.setattr(curator.ledger, "reserve", reserve)
    monkeypatch.setattr(curator._session.turn, "asking", lambda: contextlib.nullcontext(curator._session))
    monkeypatch.setattr(type(curator._session), "give_back", lambda _: None, raising=False)
    second = bought(curator, own, fresh=True)

    assert second.rows == other[1].rows
    assert curator.ledger.spent() == priced(curator).request.amounts


def test_an_id_of_another_question_is_refused(curator):
    """With what happened to it where the data are others now."""
    own = new_id()
    bought(curator, own)
    with pytest.raises(InvalidParameter, match="the key must be that of the question it was first given with"):
        bought(curator, own, f"{COUNT} WHERE spent > 1")
    request = priced(curator).request
    newer = replace(request, data_version=request.data_version + 1)
    before = curator.ledger.outcome(own)
    with pytest.raises(InvalidParameter, match="was charged with it on version 1, and that charge is kept"):
        spending._follow(curator._session, newer, before)
    with pytest.raises(InvalidParameter, match="on the same data"):
        spending._follow(curator._session, replace(newer, question="another"), before)


def test_what_was_answered_while_it_waited_for_its_turn_is_not_paid_for(curator, monkeypatch):
    """Another process had it answered between the look and the turn."""
    turn, done = curator._session.turn, []
    plain = turn.asking

    @contextlib.contextmanager
    def asking():
        with plain() as place:
            if not done:
                done.append(True)
                one = priced(curator)
                reserved = curator.ledger.reserve(one.request)
                curator.ledger.commit(reserved, answer=one.compute(rehearsal=False), answer_digest="d")
            yield place

    monkeypatch.setattr(turn, "asking", asking)
    assert curator.ask(COUNT, spend="5%").stored
    assert curator.ledger.spent() == priced(curator).request.amounts


def test_a_refusal_of_what_is_tried_out_stays_one(curator):
    """Whatever else is wrong with it is told by an id; nothing of either is charged."""
    with pytest.raises(InvalidQuery, match="cannot be read"), spending._refusing_under_an_id(curator._session, "question"):
        raise InvalidQuery("it cannot be read.")
    with (
        pytest.raises(InvalidQuery, match="one that can be computed"),
        spending._refusing_under_an_id(curator._session, "fit"),
    ):
        raise RuntimeError


def test_noise_that_would_not_be_private_is_not_paid_for(curator, monkeypatch):
    """As where a test has put something in the place of the system's entropy."""
    monkeypatch.setattr(spending, "is_private", lambda: False)
    with pytest.raises(Failed, match="noise must come from the operating system's entropy"):
        curator.ask(COUNT, spend="5%")
    assert curator.ledger.head.sequence == 0

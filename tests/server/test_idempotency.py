"""A key of a caller is one question for ever: charged once, with one outcome, whatever happens meanwhile."""

import secrets
import threading

import pytest
from served import QUESTION, serving

from curador.curator import spending
from curador.curator.options import QuestionOptions
from curador.curator.ticket import Ticket
from curador.errors import Failed, InvalidParameter
from curador.ledger.acts import Reserve
from curador.ledger.amounts import NOTHING
from curador.ledger.entry import AlreadyReserved
from curador.server import jobs, limits, tokens
from curador.server.state import Presence

SPEND = QuestionOptions(spend="1%")


@pytest.fixture
def caller(served):
    return served.service.admit(served.tokens["ana"], door="test", peer="here")


def reservations(served):
    """What was charged, in order."""
    return [entry for entry in served.service.curator.ledger.entries() if entry.kind == "reserved"]


def test_the_same_key_is_the_same_answer_for_nothing(served):
    """Also where it asks afresh: the key says that it is the same request."""
    first = served.ask("ana", key="same", fresh=True)
    spent = served.spent
    second = served.ask("ana", key="same", fresh=True)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert served.spent == spent


def test_the_same_key_with_another_question_is_refused(served):
    """Another text, another option, or fresh: nothing is spent."""
    served.ask("ana", key="taken")
    before = served.entries
    for said in ({"question": "SELECT COUNT(*) AS m FROM visits"}, {"spend": "2%"}, {"fresh": True}):
        response = served.ask("ana", key="taken", **said)
        assert (response.status_code, response.json()["error"]) == (409, "InvalidParameter")
    assert served.entries == before


def test_the_key_of_somebody_else_is_another_key(served):
    """The same letters of two analysts are two keys; ids of jobs tell nothing of one another."""
    mine, theirs = (served.ask(who, key="common", fresh=True).json() for who in ("ana", "bob"))
    assert mine["id"] != theirs["id"]
    assert mine["receipt"] != theirs["receipt"]
    assert served.send("bob", "GET", f"/answers/{mine['id']}").status_code == 404


def test_all_tokens_of_one_analyst_share_keys(served):
    """A retry with a renewed token finds the same answer."""
    first = served.ask("ana", key="renewed", fresh=True).json()
    other, _ = tokens.new_token(served.service.state, served.service.study, "analyst", name="ana")
    served.tokens["ana again"] = other
    assert served.ask("ana again", key="renewed", fresh=True).json() == first


def test_a_refusal_leaves_the_key_free(served):
    """Nothing was charged, so the same key tries again."""
    assert served.ask("ana", "SELECT nothing FROM visits", key="refused").status_code == 400
    assert served.ask("ana", "SELECT nothing FROM visits", key="refused").status_code == 400
    assert served.ask("ana", key="refused").status_code == 409


def test_a_failure_is_told_again_and_charged_once(served, monkeypatch):
    """With the same incident, for ever."""
    broken = {"on": True}
    engine = served.service._session_of_owner.engine  # noqa: SLF001 -- what breaks
    plain = type(engine).tally

    def tally(own, compiled):
        if broken["on"]:
            raise RuntimeError("a row said no")
        return plain(own, compiled)

    monkeypatch.setattr(type(engine), "tally", tally)
    first = served.ask("ana", key="fails", fresh=True)
    broken["on"], spent = False, served.spent
    second = served.ask("ana", key="fails", fresh=True)
    assert (first.status_code, second.status_code) == (500, 500)
    assert first.json() == second.json()
    assert "a row said no" not in first.text
    assert served.spent == spent
    served.service.curator.reopen("a test broke it")


def test_many_at_the_same_time_are_one(served, caller):
    """Sixteen with one key, and sixteen with keys of their own for one stored question: one charge."""
    service, outcomes = served.service, []
    before = len(reservations(served))
    question = "SELECT COUNT(*) AS at_once FROM visits WHERE spent > 17"

    def ask(key):
        outcomes.append(service.ask(caller, question, SPEND, key=key).body)

    keys = ["at-once"] * 16 + [f"own-{place}" for place in range(8)]
    threads = [threading.Thread(target=ask, args=(key,)) for key in keys]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(outcomes) == len(threads)
    assert len({str(body["rows"]) for body in outcomes}) == 1
    assert len(reservations(served)) == before + 1


@pytest.mark.slow
def test_what_a_dead_process_left_is_ended_by_another(served, caller, monkeypatch):
    """A stored answer is given; a charge without one is kept and told as a failure; what was not charged is asked."""
    service, state = served.service, served.service.state
    gone = Presence.take(state, 0)
    gone.leave()
    monkeypatch.setattr(Presence, "is_gone", lambda _, number: number == gone.number)

    def leave(key, question, *, charge, answer):
        job = service.hand_over(caller, question, QuestionOptions(spend="1%"), key=key, fresh=True)
        if charge:
            asker = service.curator.analyst("ana")
            if answer:
                asker._ask(question, SPEND, fresh=True, ticket=Ticket(job.reservation))  # noqa: SLF001 -- as a killed process did
            else:
                priced = asker._price(question, SPEND, fresh=True, ticket=Ticket())  # noqa: SLF001 -- idem
                service.curator.ledger.reserve(priced.request, id=job.reservation, again=False)
        service._places.leave(job.token)  # noqa: SLF001 -- a process that is gone has no places
        with state.writing() as connection:
            connection.execute("UPDATE job SET worker = ? WHERE id = ?", (gone.number, job.id))
        return job

    monkeypatch.setattr(spending, "_moments", lambda *_: iter([None]))  # the deadline is over
    stored = leave("stored", QUESTION, charge=True, answer=True)
    kept = leave("kept", "SELECT COUNT(*) AS kept FROM visits", charge=True, answer=False)
    new = leave("new", "SELECT COUNT(*) AS new FROM visits", charge=False, answer=False)
    charged = [entry.id for entry in reservations(served)]
    for job in service.take_over():
        service.run(job)
    outcomes = [jobs.read_outcome(state, job.id) for job in (stored, kept, new)]
    assert [outcome.state for outcome in outcomes] == ["done", "failed", "done"]
    assert outcomes[1].problem["incident"]
    assert [entry.id for entry in reservations(served)] == [*charged, new.reservation]
    again = service.ask(caller, "SELECT COUNT(*) AS kept FROM visits", SPEND, key="kept", fresh=True)
    assert again.problem == outcomes[1].problem


def test_an_id_that_is_handed_over_twice_is_computed_once(served, caller):
    """The ledger itself refuses a second reservation of one id; the second has the outcome of the first."""
    asker, drawn, own = served.service.curator.analyst("ana"), [], secrets.token_hex(16)
    ticket = Ticket(own, charged=lambda entry: drawn.append(entry.id))
    first = asker._ask(QUESTION, SPEND, fresh=True, ticket=ticket)  # noqa: SLF001 -- with a ticket
    second = asker._ask(QUESTION, SPEND, fresh=True, ticket=ticket)  # noqa: SLF001 -- idem
    assert first.rows == second.rows
    assert (second.stored, second.cost) == (True, NOTHING)
    assert drawn == [own]
    priced = asker._price(QUESTION, SPEND, fresh=True, ticket=ticket)  # noqa: SLF001 -- idem
    with pytest.raises(AlreadyReserved):
        served.service.curator.ledger.reserve(priced.request, id=own, again=False)
    with pytest.raises(InvalidParameter, match="the question it was first given with"):
        asker._ask("SELECT COUNT(*) AS n FROM visits", SPEND, fresh=True, ticket=ticket)  # noqa: SLF001 -- idem


@pytest.mark.slow
def test_an_id_of_an_older_data_version_tells_what_became_of_its_charge(tmp_path):
    """After a refresh the same question is another one; another question is told what it always was."""
    with serving(tmp_path) as served:
        curator = served.service.curator
        asker, ticket = curator.analyst("ana"), Ticket("a" * 32)
        asker._ask(QUESTION, SPEND, fresh=True, ticket=ticket)  # noqa: SLF001 -- with a ticket
        old, new = curator.data_version, curator.refresh("a test took them anew")
        before, asker = served.entries, curator.analyst("ana")
        with pytest.raises(InvalidParameter, match=rf"on data version {new};.*on version {old}, and that charge is kept"):
            asker._ask(QUESTION, SPEND, fresh=True, ticket=ticket)  # noqa: SLF001 -- idem
        with pytest.raises(InvalidParameter, match="the question it was first given with"):
            asker._ask("SELECT COUNT(*) AS n FROM visits", SPEND, fresh=True, ticket=ticket)  # noqa: SLF001 -- idem
        assert served.entries == before


# ---- seeded bugs ---------------------------------------------------------------------------------------------------------


def _other_body_is_let_in(patch):
    patch.setattr(jobs.hmac, "compare_digest", lambda *_: True)


def _keys_are_everybody_s(patch):
    patch.setattr(tokens.Caller, "holder", property(lambda _: "everybody"))


@pytest.mark.parametrize(
    ("bug", "test"),
    [
        (_other_body_is_let_in, test_the_same_key_with_another_question_is_refused),
        (_keys_are_everybody_s, test_the_key_of_somebody_else_is_another_key),
    ],
)
def test_a_bug_of_keys_is_found(served, monkeypatch, bug, test):
    """Each seeded bug fails the test that is about it."""
    bug(monkeypatch)
    with pytest.raises((AssertionError, KeyError)):
        test(served)


def test_a_second_reservation_of_one_id_is_found(served, caller, monkeypatch):
    """A ledger that would charge one id again, and a door that would compute it again."""
    monkeypatch.setattr(spending, "_outcome_before", lambda *_: None)
    plain = Reserve.perform
    monkeypatch.setattr(Reserve, "perform", lambda own, *given, **_: plain(own, *given, again=True))
    with pytest.raises((AssertionError, InvalidParameter, Failed)):
        test_an_id_that_is_handed_over_twice_is_computed_once(served, caller)


# ---- limits of tokens ----------------------------------------------------------------------------------------------------


def _limited(served, **said):
    text, _ = tokens.new_token(served.service.state, served.service.study, "analyst", name="bob", **said)
    served.tokens["limited"] = text
    return served.service.admit(text, door="test", peer="here")


def test_the_limits_of_a_token_stand_beside_the_share(served):
    """The most per question and per day refuse before anything is charged; what is given for nothing meets neither."""
    caller = _limited(served, most_per_question="2%", most_per_day="5%")
    fits = "SELECT COUNT(*) AS limited FROM visits"
    before = served.entries
    refused = served.ask("limited", fits, spend="3%")
    assert (refused.status_code, refused.json()["error"], served.entries) == (403, "BudgetExceeded", before)
    for _ in range(2):
        assert served.ask("limited", fits, spend="2%", fresh=True).status_code == 200
    assert served.ask("limited", fits, spend="2%", fresh=True).status_code == 403
    free = served.ask("limited", fits, spend="2%")
    assert (free.status_code, free.json()["stored"]) == (200, True)
    assert float(limits.used_today(served.service.state, caller)) == pytest.approx(0.04)


def test_a_limit_is_given_back_only_where_nothing_was_charged(served, monkeypatch):
    """A budget that refuses gives back; a failure after the charge does not."""
    caller = _limited(served, most_per_day="90%")
    state = served.service.state
    assert served.ask("limited", "SELECT COUNT(*) AS big FROM visits", spend="89%", fresh=True).status_code in {200, 403}
    held = limits.used_today(state, caller)
    monkeypatch.setattr(Reserve, "perform", lambda *_, **__: (_ for _ in ()).throw(Failed("nobody knows")))
    assert served.ask("limited", "SELECT COUNT(*) AS unknown FROM visits", spend="1%", fresh=True).status_code == 500
    assert limits.used_today(state, caller) > held


@pytest.mark.slow
def test_limits_hold_for_many_at_the_same_time(served):
    """Eight at once of a token that has room for two: two are charged."""
    caller = _limited(served, most_per_day="4.5%")
    before, found = len(reservations(served)), []

    def ask(place):
        outcome = served.service.ask(
            caller, f"SELECT COUNT(*) AS n{place} FROM visits WHERE spent > {place}", QuestionOptions(spend="2%")
        )
        found.append(outcome.state)

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(found) == ["done"] * 2 + ["refused"] * 6
    assert len(reservations(served)) == before + 2


def test_an_agent_may_not_ask_afresh(served):
    """Its token says so, and no argument does."""
    _limited(served, agent=True)
    before = served.entries
    assert served.ask("limited", fresh=True).status_code == 403
    assert served.entries == before

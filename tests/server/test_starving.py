"""What one asker does is no other's loss: sandboxes, streams, the ends of jobs, and what a budget tells."""

import threading
import time

import pytest
from served import QUESTION, serving

from curador.curator.options import QuestionOptions
from curador.errors import Failed
from curador.server import jobs, tokens
from curador.server.limits import Places
from curador.server.refusals import TooMany

BROKEN = Failed("the service's file could not be written; nothing was begun.")


@pytest.fixture(scope="module")
def open_service(tmp_path_factory):
    """A service of its own: questions here use up shares."""
    with serving(tmp_path_factory.mktemp("starving")) as served:
        yield served


def test_sandboxes_are_used_up_by_two_at_a_time(open_service):
    """Each answer is an answer, whoever begins a new sandbox meanwhile."""
    statuses = []

    def ask(who):
        for _ in range(3):
            said = {"question": QUESTION, "options": {"spend": "90%"}, "fresh": True}
            statuses.append(open_service.send(who, "POST", "/sandbox/answers", said).status_code)

    threads = [threading.Thread(target=ask, args=(who,)) for who in ("ana", "bob") * 3]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert statuses == [200] * 18


def test_a_sandbox_tells_nothing_of_others(open_service):
    """What ana tried is not stored for bob."""
    said = {"question": "SELECT COUNT(*) AS n FROM visits WHERE spent > 17", "options": {"rho": "0.0001"}}

    first, second, other = (
        open_service.send(who, "POST", "/sandbox/answers", said).json()["stored"] for who in ("ana", "ana", "bob")
    )

    assert (first, second, other) == (False, True, False)


def test_a_job_whose_end_could_not_be_written_ends(open_service, monkeypatch):
    """The process that lives ends it: the key has its outcome, and one charge."""
    question = "SELECT COUNT(*) AS n FROM visits WHERE spent > 3"
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "finish", _refuse)
        patch.setattr(jobs, "end_badly", _refuse)
        while open_service.ask("ana", question, key="unended", wait=5).status_code != 202:
            pass
        until = time.monotonic() + 60
        while open_service.service.under_way and time.monotonic() < until:
            time.sleep(0.05)
    spent = open_service.spent

    answer = open_service.ask("ana", question, key="unended", wait=60)

    assert answer.status_code == 200
    assert open_service.spent == spent


def test_a_budget_tells_an_analyst_of_own_spending_alone(open_service):
    """What ana spends moves nothing that bob can see, in budgets and in receipts."""
    own = open_service.ask("bob", spend="2%").json()
    before = open_service.send("bob", "GET", "/budget").json()

    open_service.ask("ana", "SELECT SUM(spent) AS total FROM visits", spend="20%")
    after = open_service.send("bob", "GET", "/budget").json()
    again = open_service.ask("bob", spend="2%").json()
    receipts = [open_service.send("bob", "GET", f"/answers/{one['id']}/receipt").json() for one in (own, again)]

    assert after == before
    assert receipts[0]["budget"]["study"]["epsilon_after"] == receipts[1]["budget"]["study"]["epsilon_after"]


def test_places_are_counted_by_name():
    """The seventeenth stream of one token is refused; another token's is not."""
    places = Places(16, 1_000, "streams of events")
    for _ in range(16):
        places.take("ana")

    with pytest.raises(TooMany, match="streams of events under way must be at most 16"):
        places.take("ana")
    places.take("bob")


def test_a_charged_job_outlives_its_token(tmp_path, monkeypatch):
    """Its process died after the charge, its token was revoked: another token of the analyst finds the answer."""
    with serving(tmp_path) as served:
        service, question = served.service, "SELECT COUNT(*) AS n FROM visits"
        own = service.find(served.tokens["ana"])
        job = service.hand_over(own, question, QuestionOptions(spend="1%"), key="revoked")
        with monkeypatch.context() as patch:
            patch.setattr(jobs, "finish", _refuse)
            patch.setattr(jobs, "end_badly", _refuse)
            with pytest.raises(Failed):
                service.run(job)
        spent = served.spent
        tokens.revoke(service.state, own.token_id)
        for left in service.take_over():
            service.run(left)
        text, _ = tokens.new_token(service.state, service.study, "analyst", name="ana")

        outcome = service.ask(service.find(text), question, QuestionOptions(spend="1%"), key="revoked")

        assert outcome.state == "done"
        assert served.spent == spent


@pytest.mark.parametrize(
    "host", ["localhost:80@evil.example", "localhost:", "localhost:x", "localhost:80:80", "[::1]evil", "local host"]
)
def test_a_host_has_a_port_or_none(open_service, host):
    """Links that are made of it lead here."""
    told = open_service.client.get("/api/v1/health", headers={"Host": host})

    assert told.status_code in {400, 421}


def _refuse(*_, **__):
    raise BROKEN

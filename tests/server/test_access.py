"""The table of roles, routes and fields, asked whole: every route as every role."""

import itertools
import json

import pytest
from fastapi import FastAPI
from served import CANARY, QUESTION, field_paths

from curador.curator import accounts
from curador.server import app as application
from curador.server import jobs
from curador.server.access import ACCESS, ANYBODY, is_told
from curador.server.gate import Gate
from curador.server.service import Service

ROLE = {"owner": "owner", "ana": "analyst", "bob": "analyst", "auditor": "auditor", None: ANYBODY}
ASK = {"question": QUESTION, "options": {"spend": "1%"}}
BODIES = {
    ("POST", "/session"): lambda served, who: {"token": served.tokens[who or "ana"]},
    ("POST", "/previews"): lambda *_: ASK,
    ("POST", "/answers"): lambda *_: ASK,
    ("POST", "/sandbox/previews"): lambda *_: ASK,
    ("POST", "/sandbox/answers"): lambda *_: ASK,
    ("POST", "/tokens"): lambda *_: {"role": "auditor"},
    ("POST", "/survey"): lambda *_: {},
    ("POST", "/reopen"): lambda *_: {"note": "looked into it"},
}


@pytest.fixture(scope="module")
def answered(served):
    """The id of an answer of ana's."""
    return served.ask("ana").json()["id"]


def status_wanted(access, who):
    """What a route must say to somebody, for an answer of ana's: 200 stands for every success."""
    role = ROLE[who]
    if role not in access.roles:
        return 401 if who is None else 403
    if access.own and who not in {"ana", None} and not (access.path.endswith("/receipt") and who == "auditor"):
        return 404
    if (access.method, access.path) == ("GET", "/session"):
        return 400  # with a token there is no session to tell of
    return 200


def wrong_answers(served, answered):
    """Everything in which the service differs from the table."""
    for access, who in itertools.product(ACCESS, ROLE):
        path = access.path.replace("{id}", answered if "answers" in access.path else "0" * 16)
        body = BODIES.get((access.method, access.path))
        before = served.entries
        served.client.cookies.clear()
        response = served.send(who, access.method, path, None if body is None else body(served, who))
        wanted = status_wanted(access, who)
        found = 200 if response.status_code in {200, 201, 202, 204} else response.status_code
        name = f"{access.method} {access.path} as {who}"
        if found != wanted:
            yield f"{name}: {found} instead of {wanted}"
        if found >= 400 and served.entries != before:
            yield f"{name}: refused, and the ledger changed"
        if found >= 400 and response.headers["content-type"] != "application/problem+json":
            yield f"{name}: no problem"
        if found == 200 and response.headers.get("content-type", "").startswith("application/json"):
            told = set(field_paths(response.json()))
            yield from (f"{name}: tells {one}" for one in sorted(told) if not is_told(access, ROLE[who], one))


def test_every_route_is_what_the_table_says(served, answered):
    """Statuses, and every field that comes back, for every role; what is refused changes nothing."""
    assert list(wrong_answers(served, answered)) == []


def _skip_roles(patch):
    plain = Gate.admit

    async def admit(self, request, access):
        wide = type(access)(
            access.method, access.path, frozenset({"owner", "analyst", "auditor"}) | (access.roles & {ANYBODY})
        )
        return await plain(self, request, wide)

    patch.setattr(Gate, "admit", admit)


def _anybody_s_answer(patch):
    def outcome(self, caller, job):
        self.still(caller)
        return jobs.read_outcome(self.state, job)

    patch.setattr(Service, "outcome", outcome)


def _all_lines(patch):
    plain = accounts.log_lines
    patch.setattr("curador.curator.curator.log_lines", lambda ledger, _: plain(ledger, None))


def _all_accounts(patch):
    plain = Service.budget

    def whole(self, caller):
        return plain(self, caller) | {"by_analyst": [{"name": "bob", "share": "1/5"}]}

    patch.setattr(Service, "budget", whole)


def _all_receipts(patch):
    patch.setattr(Service, "receipt", lambda self, _, job: jobs.read_outcome(self.state, job).receipt)


def _nobody_needs_a_token(patch):
    plain = Gate.admit

    async def admit(self, request, access):
        if "authorization" not in request.headers and access.path == "/tables":
            request.state.caller = self.service.find(self.spare)
            return request.state.caller
        return await plain(self, request, access)

    patch.setattr(Gate, "admit", admit)


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug", [_skip_roles, _anybody_s_answer, _all_lines, _all_accounts, _all_receipts, _nobody_needs_a_token]
)
def test_a_bug_of_access_is_found(served, answered, monkeypatch, bug):
    """Each seeded bug differs from the table."""
    served.ask("bob", "SELECT COUNT(*) AS n FROM visits")
    monkeypatch.setattr(Gate, "spare", served.tokens["ana"], raising=False)
    bug(monkeypatch)
    assert list(wrong_answers(served, answered))


def test_a_route_that_the_table_does_not_know_cannot_be_served(served, monkeypatch):
    """Default deny: not even by mistake."""
    monkeypatch.setattr(application, "ACCESS", ACCESS[1:])
    with pytest.raises(AssertionError, match="/health"):
        application._require_table(FastAPI())  # noqa: SLF001 -- what a service begins with


def test_tables_are_told_with_what_the_owner_says_of_them(served):
    """Descriptions of tables and columns; nothing where nothing was said."""
    (table,) = served.send("ana", "GET", "/tables").json()["tables"]
    assert table["description"] == "each time in the shop"
    told = {column["name"]: column["description"] for column in table["columns"]}
    assert told == {"user": None, "city": None, "spent": "paid at the till", "remark": None}


def test_an_analyst_is_told_of_no_other_and_of_no_hidden_table(served, answered):
    """Neither names, nor texts, nor tables that are somebody else's."""
    served.ask("bob", "SELECT COUNT(*) AS of_bob FROM visits", spend="2%")
    for path in ("/tables", "/budget", "/history", "/me", "/odds", f"/answers/{answered}"):
        text = served.send("ana", "GET", path).text
        assert "bob" not in text
        assert "secrets" not in text
    assert "of_bob" in served.send("auditor", "GET", "/history").text


def test_what_somebody_else_asked_looks_like_nothing(served, answered):
    """An id of somebody else's and one that nobody has are told the same, letter by letter."""
    for end in ("", "/receipt", "/events", "/notebook"):
        mine = served.send("bob", "GET", f"/answers/{answered}{end}")
        none = served.send("bob", "GET", f"/answers/{'f' * 32}{end}")
        assert (mine.status_code, mine.content) == (none.status_code, none.content)


def test_no_row_and_no_path_is_in_anything_that_a_role_is_told(served, answered):
    """Canaries of rows and file names, in every byte of every route."""
    for access in ACCESS:
        for who in ROLE:
            path = access.path.replace("{id}", answered)
            body = BODIES.get((access.method, access.path))
            response = served.send(who, access.method, path, None if body is None else body(served, who))
            assert CANARY.encode() not in response.content
            assert CANARY not in json.dumps(dict(response.headers))

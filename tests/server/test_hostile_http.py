"""What a hostile client sends: refused by one shape, logged without its text, and nothing is spent."""

import json
import time

import pytest
from served import CANARY, QUESTION

from curador.server import limits, sessions, tokens
from curador.server.guard import MOST_BODY

TEXT = "hostile-5d1c<script>alert(1)</script>"


@pytest.fixture
def untouched(served):
    """Whatever happens, nothing is spent."""
    before = served.entries
    yield
    assert served.entries == before


def with_token(served, token):
    """Ask with a token of any kind."""
    served.tokens["given"] = token
    return served.ask("given")


@pytest.mark.usefixtures("untouched")
def test_tokens_that_are_not_in_force_look_alike(served):
    """Unknown, wrong, expired, revoked, of another shape: one sentence, letter by letter, and no challenge differs."""
    state, study = served.service.state, served.service.study
    revoked, one = tokens.new_token(state, study, "analyst", name="ana")
    tokens.revoke(state, one.token_id)
    expired, other = tokens.new_token(state, study, "analyst", name="ana")
    with state.writing() as connection:
        connection.execute("UPDATE token SET expires = 1 WHERE id = ?", (other.token_id,))
    good = served.tokens["ana"]
    wrong = [
        revoked,
        expired,
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        good + "A",
        good.upper(),
        "x",
        "",
        "a b",
        f"{TEXT}",
    ]
    wrong += ["curador_" + "0" * 16 + "_" + "A" * 43, good.replace("curador_", "Curador_"), "0" * 8000]
    answers = {
        (one.status_code, one.content, one.headers["www-authenticate"])
        for one in (with_token(served, text) for text in wrong)
    }
    assert len(answers) == 1
    assert next(iter(answers))[0] == 401
    assert served.client.get("/api/v1/budget", headers={"Authorization": "Basic YW5hOg=="}).status_code == 401


def test_work_for_unknown_tokens_is_the_work_for_known_ones(served, monkeypatch):
    """One row is looked for, one digest made, one comparison in constant time."""
    done = []
    plain = tokens.hmac.compare_digest
    monkeypatch.setattr(tokens.hmac, "compare_digest", lambda *pair: done.append(len(pair[1])) or plain(*pair))
    for text in (served.tokens["ana"], "curador_" + "0" * 16 + "_" + "A" * 43, "nonsense"):
        tokens.find_caller(served.service.state, text)
    assert done == [32, 32, 32]


def test_verifiers_of_unknown_ids_are_stable_and_differ(served):
    """Who asks twice sees the same salt, as of a known one."""
    find = served.service.verifier
    assert find("f" * 16) == find("f" * 16)
    assert find("f" * 16).salt != find("e" * 16).salt
    known = find(served.ids["ana"])
    assert (len(known.salt), known.iterations, len(known.stored_key)) == (16, 4096, 32)
    assert known == tokens.verifier_of(served.tokens["ana"], known.salt)


def test_failed_logins_wait_longer_and_longer_and_known_tokens_never(served, monkeypatch):
    """Counted by peer, and forgotten after a while."""
    monkeypatch.setattr(limits, "LONGEST_WAIT", 4.0)
    state = served.service.state
    waits = [limits.count_failure(state, "1.2.3.4") for _ in range(7)]
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert limits.count_failure(state, "1.2.3.5") == 0.25
    assert limits.failures_of(state, "1.2.3.4") == 7
    monkeypatch.setattr(limits.time, "time", lambda: time.monotonic() + 10**10)
    assert limits.count_failure(state, "1.2.3.4") == 0.25


def test_a_token_is_kept_nowhere(served, tmp_path):
    """Neither its text nor its secret stands in the service's files."""
    served.send("ana", "GET", "/me")
    folder = served.service.state.path.parent
    secret = served.tokens["ana"].split("_", 2)[2].encode()
    for file in folder.rglob("*"):
        if file.is_file():
            assert secret not in file.read_bytes()
            if ".service" in file.name:
                assert file.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"x" * 10_000_000, "application/json", 413),
        (b"[" * 60_000 + b"]" * 4, "application/json", 400),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "application/json", 400),
        (b'{"question": "a", "question": "b"}', "application/json", 400),
        (b'{"question": "a", "options": {"rho": NaN}}', "application/json", 400),
        (b'{"question": "a", "options": {"rho": 1e999999999}}', "application/json", 400),
        (b'{"question": "a", "options": {"rho": ' + b"9" * 5000 + b"}}", "application/json", 400),
        (b'{"question": "\\ud800"}', "application/json", 400),
        (b"\xff\xfe{}", "application/json", 400),
        (b"{}", "text/plain", 400),
        (b"question=a", "application/x-www-form-urlencoded", 400),
        (b"", "application/json", 400),
        (b"null", "application/json", 400),
        (b'{"question": "SELECT COUNT(*) AS n FROM visits", "spend": "1%"}', "application/json", 400),
        (
            b'{"question": "SELECT COUNT(*) AS n FROM visits", "options": {"spend": "1%", "bias": "yes"}}',
            "application/json",
            400,
        ),
        (
            b'{"question": "SELECT COUNT(*) AS n FROM visits; DROP TABLE visits", "options": {"spend": "1%"}}',
            "application/json",
            400,
        ),
    ],
)
def test_bodies_that_are_none(served, content, kind, status):
    """Too large, too deep, twice, no number, no text, another type: one shape."""
    headers = {**served.header("ana"), "content-type": kind}
    response = served.client.post("/api/v1/answers", content=content, headers=headers)
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")


@pytest.mark.usefixtures("untouched")
def test_a_body_that_grows_beyond_the_limit_is_refused(served):
    """Also where no length is announced."""
    parts = (b" " * 1024 for _ in range(MOST_BODY // 1024 + 2))
    response = served.client.post("/api/v1/answers", content=parts, headers=served.header("ana"))
    assert response.status_code == 413


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "[::2]", "localhost@evil"]
)
def test_another_host_is_refused(served, host):
    """A name that points here from elsewhere sees nothing."""
    assert served.send("ana", "GET", "/budget", Host=host).status_code == 421


def test_known_hosts_are_let_in(served):
    """With any port."""
    for host in ("localhost:8421", "127.0.0.1", "[::1]:9", "LOCALHOST"):
        assert served.send("ana", "GET", "/me", Host=host).status_code == 200


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "path",
    [
        *("/../study.toml", "/..%2f..%2fstudy.toml", "/assets/../../app.py", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd"),
        *("/api/v1/../../etc/passwd", "/api/v1/answers/..%2f..%2fx", "/api/v1/answers/%00", "/api/v1/answers/' OR 1=1 --"),
        *("/api/v1/tables/", "/API/V1/tables", "/api/v2/tables", "/openapi.json", "/docs", "/metrics", "/static/%5c..%5cx"),
        f"/api/v1/answers/{TEXT}",
    ],
)
def test_paths_that_lead_nowhere(served, path):
    """Nothing of the machine, and nothing of another shape."""
    response = served.client.get(path, headers=served.header("ana"))
    assert response.status_code in {400, 404, 405}
    assert "root:" not in response.text
    assert "budget =" not in response.text


# ---- sessions ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def session(served):
    """An open session of the owner's: its text for CSRF."""
    served.client.cookies.clear()
    response = served.client.post("/api/v1/session", json={"token": served.tokens["owner"]})
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    yield response.json()["csrf"]
    served.client.cookies.clear()


def test_a_session_needs_its_text_for_everything_but_looking(served, session):
    """A cookie alone changes nothing: neither from another page, nor with another session's text."""
    client, before = served.client, served.entries
    assert client.get("/api/v1/budget").status_code == 200
    note = {"note": "from a page"}
    for headers in ({}, {"X-Curador-CSRF": "0" * 64}, {"X-Curador-CSRF": session, "Origin": "https://evil.example"}):
        assert client.post("/api/v1/reopen", json=note, headers=headers).status_code == 403
    cross = {"X-Curador-CSRF": session, "Sec-Fetch-Site": "cross-site"}
    assert client.post("/api/v1/reopen", json=note, headers=cross).status_code == 403
    assert client.get("/api/v1/budget", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/api/v1/budget", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    assert served.entries == before
    assert client.post("/api/v1/reopen", json=note, headers={"X-Curador-CSRF": session}).status_code == 200


def test_a_session_without_its_text_is_found(served, session, monkeypatch):
    """The seeded bug: nobody looks at the text."""
    monkeypatch.setattr(sessions, "require_csrf", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_session_needs_its_text_for_everything_but_looking(served, session)


@pytest.mark.usefixtures("untouched")
def test_a_forged_cookie_is_nobody(served):
    """Also one that looks like a digest, or like somebody's token id."""
    for text in ("A" * 43, served.ids["owner"], tokens.digest_of("x").hex(), ""):
        served.client.cookies.clear()
        response = served.client.get("/api/v1/budget", headers={"Cookie": f"{sessions.COOKIE}={text}"})
        assert response.status_code == 401


def test_a_session_ends_with_its_token_and_with_itself(served):
    """Revoked, and closed: each at the next request."""
    text, caller = tokens.new_token(served.service.state, served.service.study, "analyst", name="ana")
    for end in ("revoke", "close"):
        served.client.cookies.clear()
        opened = served.client.post("/api/v1/session", json={"token": text}).json()
        cookie = dict(served.client.cookies)
        assert served.client.get("/api/v1/session").json()["csrf"] == opened["csrf"]
        if end == "close":
            assert served.client.delete("/api/v1/session", headers={"X-Curador-CSRF": opened["csrf"]}).status_code == 204
        else:
            tokens.revoke(served.service.state, caller.token_id)
        served.client.cookies.clear()
        served.client.cookies.update(cookie)
        assert served.client.get("/api/v1/me").status_code == 401
        text, caller = tokens.new_token(served.service.state, served.service.study, "analyst", name="ana")
    served.client.cookies.clear()


# ---- what leaves ---------------------------------------------------------------------------------------------------------


def test_every_answer_has_the_headers(served):
    """Also refusals, and what no route knows."""
    for who, path in ((None, "/health"), ("ana", "/tables"), ("ana", "/report"), (None, "/me"), ("ana", "/nothing")):
        headers = served.send(who, "GET", path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_spreadsheets_compute_nothing_and_programs_may_have_it_raw(served):
    """Texts and names that a spreadsheet would compute begin with an apostrophe; numbers stay numbers."""
    question = 'SELECT city AS "@city", COUNT(*) AS n FROM visits GROUP BY city ORDER BY city'
    own = served.ask("ana", question).json()
    careful = served.send("ana", "GET", f"/answers/{own['id']}", Accept="text/csv")
    raw = served.send("ana", "GET", f"/answers/{own['id']}?raw=1&download=1", Accept="text/csv")
    assert careful.text.splitlines()[0].startswith("'@city,n")
    assert any(line.startswith("'=1+1,") for line in careful.text.splitlines())
    assert any(line.startswith("=1+1,") for line in raw.text.splitlines())
    numbers = [float(cell) for line in careful.text.splitlines()[1:] for cell in line.split(",")[1:]]
    assert len(numbers) == 9
    assert raw.headers["content-disposition"] == f'attachment; filename="answer-{own["id"][:12]}.csv"'
    assert careful.headers["x-content-type-options"] == "nosniff"


@pytest.mark.slow
def test_nothing_that_somebody_sends_is_logged(served, capfd):
    """Texts of questions, keys, names, paths, hosts and headers; nor rows, nor file names; each line is JSON."""
    sent = [
        ("POST", "/answers", {"question": f"SELECT '{TEXT}' AS a, COUNT(*) AS n FROM visits", "options": {"spend": "1%"}}),
        ("POST", "/answers", {"question": f"SELECT {TEXT}", "options": {"spend": "1%"}}),
        ("POST", "/previews", {"question": QUESTION, "options": {"accuracy": {TEXT: 1}}}),
        ("GET", f"/answers/{TEXT}", None),
        ("GET", f"/{TEXT}?a={TEXT}", None),
        (TEXT[:8].upper(), "/me", None),
    ]
    for method, path, body in sent:
        served.send(
            "ana", method, path, body, Idempotency_Key="hostile-5d1c", X_Other="hostile-5d1c", User_Agent="hostile-5d1c"
        )
    served.send("ana", "GET", "/me", Host="hostile-5d1c")
    written = capfd.readouterr().err
    assert "hostile" not in written.lower()
    assert CANARY not in written
    lines = [json.loads(line) for line in written.splitlines()]
    assert len([line for line in lines if line["event"] == "request"]) == len(sent) + 1
    assert {"time", "level", "event", "route", "method", "status", "request"} <= lines[0].keys()


def test_an_error_of_ours_is_an_id_and_nothing_else(served, monkeypatch):
    """Whatever breaks: the text of an exception stays with the owner."""
    monkeypatch.setattr(type(served.service), "describe", lambda *_: {}[CANARY])
    response = served.send("ana", "GET", "/tables")
    assert response.status_code == 500
    assert CANARY not in response.text
    incident = response.json()["incident"]
    folder = served.service.state.path.parent
    assert any(incident in file.read_text() for file in folder.rglob("*incident*") if file.is_file())


def test_too_many_requests_of_one_token_are_told_to_slow_down(served, monkeypatch):
    """And others are not."""
    monkeypatch.setattr(served.service, "rates", limits.Rates(0.001, 3))
    statuses = [served.send("ana", "GET", "/me").status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert served.send("bob", "GET", "/me").status_code == 200


@pytest.mark.slow
def test_questions_under_way_are_bounded_for_one_token(served, monkeypatch):
    """A refused one spends nothing, and its key may try again."""
    monkeypatch.setattr(served.service, "_places", limits.Places(0, 10))
    before = served.entries
    assert served.ask("ana", fresh=True, key="later").status_code == 429
    assert served.entries == before
    monkeypatch.undo()
    assert served.ask("ana", fresh=True, key="later").status_code == 200

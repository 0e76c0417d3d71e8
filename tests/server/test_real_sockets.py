"""What only real sockets and processes show: slow clients, ends of tokens, kills, ends in good order."""

import contextlib
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from served import CANARY, QUESTION, free_port, lines_of, make_study, running, start

from curador.errors import InvalidParameter
from curador.server.serving import ServeSettings

ASK = {"question": QUESTION, "options": {"spend": "1%"}}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service on a clock of half a second, with a port for operators."""
    metrics = free_port()
    flags = ("--metrics-port", str(metrics))
    with running(tmp_path_factory.mktemp("wire"), *flags, tick="0.5", when_ready=False, workers=1) as one:
        one.metrics = f"http://127.0.0.1:{metrics}/metrics"
        yield one


@pytest.fixture(scope="module")
def token(service):
    return service.token()


def events_of(lines):
    """The names and bodies of server-sent events."""
    return [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]


def test_a_long_question_tells_how_far_it_is_at_ticks(service, token):
    """queued or running, ticks with the time passed and the deadline, done; never rows or phases."""
    with service.client(token) as client:
        job = client.post("/answers", json={**ASK, "fresh": True, "wait": 0})
        assert job.status_code == 202
        body = job.json()
        assert body.keys() == {"id", "state", "ticks_passed", "ticks_most", "events"}
        assert body["ticks_most"] == 20
        with client.stream("GET", f"/answers/{body['id']}/events") as stream:
            lines = list(stream.iter_lines())
        names = events_of(lines)
        assert names[-1] == "done"
        assert set(names) <= {"queued", "running", "tick", "done"}
        data = {key for line in lines if line.startswith("data: {") for key in __import__("json").loads(line[6:])}
        assert data <= {"id", "passed", "most"}
        assert client.get(f"/answers/{body['id']}").json()["state"] == "done"


def test_streams_and_waits_end_with_their_token(service):
    """Within about a second of its end; the question itself goes on, and its charge is kept."""
    text, other = service.token(), service.token("", "--owner")
    with service.client(text) as client, service.client(other) as owner:
        job = client.post("/answers", json={**ASK, "fresh": True, "wait": 0}).json()
        mine = client.get("/me").json()["token"]
        got = []

        def listen():
            with contextlib.suppress(httpx.HTTPError), client.stream("GET", f"/answers/{job['id']}/events") as stream:
                got.extend(events_of(stream.iter_lines()))

        thread = threading.Thread(target=listen)
        thread.start()
        assert owner.delete(f"/tokens/{mine}").json()["revoked"]
        thread.join(20)
        assert not thread.is_alive()
        assert client.get(f"/answers/{job['id']}").status_code == 401


def slow_sockets(port, number, first=b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX-Slow: "):
    """Connections that have sent the beginning of a request."""
    made = []
    for _ in range(number):
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(first)
        made.append(one)
    return made


def closed_of(sockets, seconds):
    """How many the other end closed within so many seconds, while each sends a letter now and then."""
    closed, until = 0, time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            selector.register(one, selectors.EVENT_READ)
        while closed < len(sockets) and time.monotonic() < until:
            for key, _ in selector.select(0.5):
                with contextlib.suppress(OSError):
                    if key.fileobj.recv(4096):
                        continue
                selector.unregister(key.fileobj)
                closed += 1
            for key in list(selector.get_map().values()):
                with contextlib.suppress(OSError):
                    key.fileobj.send(b"a")
    return closed


@pytest.mark.slow
def test_slow_clients_are_closed_and_starve_nobody(service, token):
    """A thousand that send a letter now and then: others are answered meanwhile, and all of them are gone within seconds."""
    slow = slow_sockets(service.port, 1000)
    body = slow_sockets(
        service.port,
        20,
        b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n",
    )
    try:
        with service.client(token) as client:
            for _ in range(10):
                assert client.get("/health").status_code == 200
            assert client.post("/previews", json=ASK).status_code == 200
        assert closed_of([*slow, *body], 40) == 1020
    finally:
        for one in (*slow, *body):
            one.close()


def test_requests_that_are_none_are_closed(service):
    """Two lengths, a header without end, a long method, HTTP/9, a request within a request: no 5xx, no answer to two."""
    head = b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\n"
    for raw in (
        head + b"Content-Length: 5\r\nContent-Length: 50\r\n\r\nhello",
        head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"A" * 200_000,
        b"GET / HTTP/9\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(200),
        head + b"Content-Length: 99999999999999999999\r\n\r\n",
        b"GET /api/v1/budget HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as one:
            with contextlib.suppress(OSError):
                one.sendall(raw)
            got = b""
            with contextlib.suppress(OSError):
                while part := one.recv(65_536):
                    got += part
        assert b" 200 " not in got.partition(b"\r\n")[0]
        assert b"HTTP/1.1 5" not in got


MUCH = 10_000_000


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        (f"Content-Length: {MUCH}", [b"x" * 100_000] * 100),
        (f"Content-Length: {MUCH}\r\nExpect: 100-continue", []),
        ("Transfer-Encoding: chunked", [b"186a0\r\n" + b"x" * 100_000 + b"\r\n"] * 100),
    ],
)
def test_a_body_of_ten_megabytes_is_refused_at_once(service, token, said, parts):
    """Announced or grown: refused before it is there, the connection closed, one line in the log, and nothing spent."""
    head = "POST /api/v1/answers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    before = refusals_of_size(service)
    with service.client(token) as client:
        spent = client.get("/budget").json()["spent"]
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as one:
        one.sendall(f"{head}Authorization: Bearer {token}\r\n{said}\r\n\r\n".encode())
        got = b""
        with contextlib.suppress(OSError):
            for part in parts:
                one.sendall(part)
        with contextlib.suppress(OSError):
            while part := one.recv(65_536):
                got += part
    assert got.startswith(b"HTTP/1.1 413 ") or (parts and not got), "who goes on sending may be cut off unread"
    until = time.monotonic() + 20
    while refusals_of_size(service) == before and time.monotonic() < until:
        time.sleep(0.02)
    assert refusals_of_size(service) == before + 1
    with service.client(token) as client:
        assert client.get("/budget").json()["spent"] == spent


def refusals_of_size(service):
    """How many the log tells of."""
    return sum(one.get("status") == 413 for one in lines_of(service.log))


def test_the_log_of_a_service_holds_no_row_and_no_text(service, token):
    """Every line that it wrote meanwhile: of an answer, a refusal, a wrong token and a path that is none, at least."""
    with service.client(token) as client:
        assert client.post("/answers", json=ASK).status_code == 200
        assert client.post("/previews", json={**ASK, "question": f"SELECT {CANARY} FROM visits"}).status_code == 400
        assert client.get(f"/answers/{CANARY}").status_code == 404
    with service.client(CANARY) as nobody:
        assert nobody.get("/me").status_code == 401
    written = service.log.read_text(encoding="utf-8")
    assert CANARY not in written
    assert "SELECT" not in written
    assert {200, 400, 401, 404} <= {one.get("status") for one in lines_of(service.log)}


def test_operators_are_told_numbers_alone(service, token):
    """On loopback: routes, statuses, whole ticks; no label by analyst, token, table or question, and no name of any."""
    with service.client(token) as client:
        assert client.post("/previews", json=ASK).status_code == 200
        assert client.post("/previews", json={**ASK, "question": f"SELECT {CANARY} FROM visits"}).status_code == 400
        ids = client.get("/me").json()["token"]
    told = httpx.get(service.metrics, timeout=20).text
    lines = [line for line in told.splitlines() if not line.startswith("#")]
    labels = {name for line in lines for name in re.findall(r'[{,]([a-z_]+)="', line)}
    assert labels <= {"route", "status", "le"}
    assert any(line.startswith('curador_requests_total{route="/api/v1/previews",status="400"}') for line in lines)
    ticks = {float(one) for line in lines for one in re.findall(r'le="([^"+]+)"', line)}
    assert ticks
    assert all(one == int(one) for one in ticks)
    ours = [line for line in lines if line.startswith("curador_request_ticks_sum")]
    assert ours
    assert all(float(line.rpartition(" ")[2]).is_integer() for line in ours), "no duration is finer than a tick"
    for text in (ids, "ana", "visits", CANARY, "SELECT", token):
        assert text not in told.replace("/api/v1/", "")
    assert httpx.get(f"{service.url}/metrics", timeout=20).status_code == 404


# ---- kills ---------------------------------------------------------------------------------------------------------------


class Load:
    """Analysts who ask until they are told to stop, each question with a key, again until it has an outcome."""

    def __init__(self, running_, tokens_):
        self.running, self.tokens = running_, tokens_
        self.stop, self.outcomes, self.wrong = threading.Event(), {}, []
        self.threads = [threading.Thread(target=self.ask, args=(place,)) for place in range(len(tokens_))]
        for one in self.threads:
            one.start()

    def ask(self, place):
        """Ask different questions, each until it has an outcome."""
        number = 0
        while not self.stop.is_set():
            number += 1
            key = f"load-{place}-{number:04}"
            self.outcomes[key] = self.until_told(
                self.tokens[place], key, f"SELECT COUNT(*) AS n FROM visits WHERE spent > {place}.{number:04}"
            )

    def until_told(self, token, key, question):
        """Hand a question over until its outcome is known."""
        until = time.monotonic() + 240
        body = {"question": question, "options": {"spend": "0.05%"}, "wait": 20}
        while time.monotonic() < until:
            try:
                with self.running.client(token) as client:
                    response = client.post("/answers", json=body, headers={"Idempotency-Key": key})
            except httpx.HTTPError:
                time.sleep(0.05)
                continue
            if response.status_code in {200, 500}:
                return response.status_code, response.json()
            if "the engine cannot run this question, even without rows" in response.text:
                continue  # it was killed while the question was tried out: nothing was charged, the key is free
            if response.status_code not in {202, 503, 429, 403}:
                self.wrong.append(response.text)
                return None
            if response.status_code == 403:  # closed after failures
                return response.status_code, response.json()
            time.sleep(0.05)
        self.wrong.append(f"{key}: no outcome")
        return None

    def grow(self, number):
        """Wait until so many more questions have an outcome."""
        wanted, until = len(self.outcomes) + number, time.monotonic() + 240
        while len(self.outcomes) < wanted and time.monotonic() < until:
            time.sleep(0.05)
        assert len(self.outcomes) >= wanted, self.wrong

    def end(self):
        """Let all questions have their outcome."""
        self.stop.set()
        for one in self.threads:
            one.join(250)
        assert self.wrong == []
        return self.outcomes


def require_nothing_lost(running_, owner, outcomes, tokens_, load):
    """Each key has the outcome that it had, each answer one charge, and the chain agrees."""
    with running_.client(owner) as client:
        lines, before = [], None
        while True:
            page = client.get("/history", params={"limit": 1000, **({} if before is None else {"before": before})}).json()
            lines += page["entries"]
            before = page["next"]
            if before is None:
                break
        assert client.get("/verification").json()["chain"] == "agrees"
    charged = [line for line in lines if line["kind"] == "reserved"]
    texts = [line["question"] for line in charged]
    assert len(texts) == len(set(texts))  # every question was one of its own: none is paid for twice
    committed = {line["refers"] for line in lines if line["kind"] == "committed"}
    told = [key for key, outcome in outcomes.items() if outcome[0] == 200]
    assert len(told) <= len(committed)
    for key in told[:5] + told[-5:]:
        place = int(key.split("-")[1])
        number = key.split("-")[2]
        question = f"SELECT COUNT(*) AS n FROM visits WHERE spent > {place}.{number}"  # as its key has it
        assert load.until_told(tokens_[place], key, question) == outcomes[key]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["http", "writer", "engine", "all"])
def test_a_kill_in_mid_load_loses_nothing_and_pays_nothing_twice(tmp_path, what):
    """A worker, the ledger's writer, the engines, or the whole service: each key has one outcome and one charge."""
    with running(tmp_path, deadline=30, workers=2) as one:
        owner = one.token("", "--owner")
        tokens_ = [one.token(name) for name in ("ana", "ana", "bob", "bob")]
        load = Load(one, tokens_)
        load.grow(12)
        children = one.children()
        if what == "engine":
            targets = [pid for parent in children["http"] for pid in engines_of(parent)]
        elif what == "all":
            targets = [one.process.pid, *(pid for pids in children.values() for pid in pids)]
        else:
            targets = children[what][:1]
        assert targets
        for pid in targets:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if what == "all":
            one.process.wait(20)
            again = start(one.study, port=one.port)
            load.running = again
            print(f"answered again after {time.monotonic() - again.began:.2f} s")
            one.process = again.process
        if what == "engine":
            with one.client(owner) as client:
                client.post("/reopen", json={"note": "engines were killed"})
        load.grow(12)
        outcomes = load.end()
        assert sum(outcome[0] == 200 for outcome in outcomes.values()) > 5
        require_nothing_lost(one, owner, outcomes, tokens_, load)


def engines_of(parent):
    """The processes that a process started."""
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(one) for one in (task / "children").read_text().split()]
    return found


@pytest.mark.slow
def test_a_service_ends_in_good_order(tmp_path):
    """What is under way is answered and stored; new questions are refused; the code is 0."""
    with running(tmp_path, deadline=10, tick="1", when_ready=False, workers=1) as one:
        text = one.token()
        with one.client(text) as client:
            job = client.post("/answers", json={**ASK, "wait": 0}).json()
        assert one.stop() == 0
        again = start(one.study, port=one.port, when_ready=False)
        one.process = again.process
        with again.client(text) as client:
            assert client.get(f"/answers/{job['id']}").json()["state"] == "done"


# ---- what is refused before it begins ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        {"host": "0.0.0.0"},  # noqa: S104 -- refused
        {"host": "::"},
        {"host": "example.org"},
        {"host": "192.168.0.1", "public_url": "https://a.example"},
        {"tls_cert": "cert.pem"},
        {"tls_cert": "/nowhere", "tls_key": "/nowhere"},
        {"behind_proxy": "proxy.example"},
        {"port": 70_000},
        {"workers": 0},
        {"public_url": "ftp://a"},
        {"oidc_issuer": "https://a.example"},
    ],
)
def test_what_would_be_open_to_others_is_refused(said):
    """Nothing listens beyond loopback without TLS, ours or that of a proxy that was declared."""
    with pytest.raises(InvalidParameter):
        ServeSettings(study="study.toml", **said)


def test_a_declared_proxy_lets_it_listen():
    """Its host is that of the public URL, and cookies are for TLS alone."""
    settings = ServeSettings(study="study.toml", host="0.0.0.0", behind_proxy="10.0.0.1", public_url="https://dp.example.org")  # noqa: S104
    assert "dp.example.org" in settings.guard.hosts
    assert "0.0.0.0" not in settings.guard.hosts  # noqa: S104
    assert settings.guard.secure


def test_a_supervisor_loads_no_engine_and_no_curator():
    """So a service that was killed is there again at once: its first process begins after a tenth of what it loads itself."""
    code = (
        "import sys; from curador.server.serving import ServeSettings; from curador.server.supervise import Supervisor;"
        "from curador.study.file import read_study; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"curador.curator.curator", "sqlalchemy", "numpy", "duckdb", "pyarrow", "fastapi", "sqlglot"}
    assert heavy & set(done.stdout.split()) == set()


def test_a_study_that_cannot_be_served_is_refused(tmp_path):
    """By one sentence, once."""
    study = make_study(tmp_path)
    study.write_text(study.read_text().replace("[engine]", '[engine]\nworker = "inline"'))
    with pytest.raises(AssertionError, match=r"engine.worker must be a process of its own"):
        start(study, port=free_port())

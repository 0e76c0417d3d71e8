"""A client has the verbs of a local curator, over connections that break, to services that are busy, long or false."""

import contextlib
import itertools
import json
import socket
import subprocess
import sys
from fractions import Fraction

import curator_studies as studies
import pytest
from small_service import LAST, TOKEN, CuttingProxy, serving

import curador as cu
import curador.client.remote
from curador.client.token import is_loopback

BY_CITY = studies.BY_CITY


@pytest.fixture
def curator(tmp_path):
    with studies.open_curator(tmp_path) as opened:
        yield opened


@contextlib.contextmanager
def connected(asker, **changes):
    with serving(asker, **changes) as service, cu.connect(service.url, TOKEN, patience=20) as client:
        yield service, client


# ---- the same script -------------------------------------------------------------------------------------------------------


def script(asker):
    """What an analyst writes, to run anywhere: everything that is seen on the way."""
    seen = [str(asker.preview(BY_CITY, spend="2%")), asker.preview(BY_CITY, spend="2%").to_dict()]
    seen.append(asker.preview([BY_CITY, studies.COUNT], rho="0.001").to_dict())
    first = asker.ask(BY_CITY, spend="2%")
    again = asker.ask(BY_CITY, spend="2%")
    seen += [again.stored, first.stored, again.rows == first.rows, again.receipt["id"] != "", first.columns, len(first)]
    seen += [first.cost, first.confidence, first.notes, first.made_up, type(first), first.to_arrow().schema]
    seen += [first.to_pandas().dtypes.to_dict(), first.to_polars().schema, len(first.plot().axes)]
    seen += [table.table.name for table in asker.schema.tables]
    seen += [[(one.name, one.type) for one in table.fields] for table in asker.schema.tables]
    wider = first.with_confidence("0.99")
    seen += [wider.confidence, [row["n"] for row in wider.rows] == [row["n"] for row in first.rows]]
    seen.append(wider.rows[0]["n_low"] < first.rows[0]["n_low"])
    for bad in ("SELECT * FROM visits", "SELECT COUNT(*) AS n FROM nowhere", "SELECT", "SELECT COUNT(*) AS n FROM salaries"):
        with pytest.raises(cu.Refused) as caught:
            asker.ask(bad, spend="1%")
        seen.append((type(caught.value), str(caught.value), caught.value.fields, str(caught.value.place)))
    for options in ({}, {"spend": "0%"}, {"rho": 0.1, "spend": "1%"}, {"accuracy": {"n": 0}}, {"spend": "101%"}):
        with pytest.raises(cu.Refused) as caught:
            asker.ask(BY_CITY, **options)
        seen.append((type(caught.value), caught.value.fields))
    asker.ask(studies.COUNT, epsilon="0.05", confidence=Fraction(9, 10), caps={"rows": 2})
    asker.ask("SELECT AVG(spent) AS mean FROM visits", accuracy={"mean": 20}, bounds={"mean": (0, 100)}, at=1000)
    seen += [str(asker.budget), asker.budget.to_dict(), asker.budget.left, asker.budget]
    seen.append([{key: line[key] for key in ("kind", "analyst", "question", "cost")} for line in asker.log()])
    return seen


@pytest.mark.slow
def test_the_same_script_runs_against_both(tmp_path):
    """Verbs, objects, refusals and what is left are those of a local curator."""
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
    with studies.open_curator(tmp_path / "here") as here:
        expected = script(here.analyst("eva"))
    with studies.open_curator(tmp_path / "there") as there, connected(there.analyst("eva")) as (_, client):
        seen = script(client)

    assert seen == expected


def test_the_owner_sees_everybody(curator):
    """An owner's budget has accounts, and its table is the same."""
    with connected(curator) as (_, client):
        assert client.budget == curator.budget
        assert str(client.budget) == str(curator.budget)
        assert str(client.budget.by_analyst()) != ""


def test_what_is_shown_is_the_same_letter_by_letter(curator):
    """Text and HTML of an answer do not tell where it was asked."""
    asker = curator.analyst("ana")
    with connected(asker) as (_, client):
        far = client.ask(BY_CITY, spend="2%")
        client.close()
        near = asker.ask(BY_CITY, spend="2%")
        assert far.receipt["question"] == near.receipt["question"]  # also after it was closed

    assert str(far) == str(near)
    assert far._repr_html_() == near._repr_html_()
    assert far.rows == near.rows


def test_estimates_of_what_was_left_out_come_along(curator):
    """Bias is told in the same words."""
    asker = curator.analyst("eva")
    with connected(asker) as (_, client):
        far = client.ask(BY_CITY, spend="5%", bias=True)
    near = asker.ask(BY_CITY, spend="5%", bias=True)

    assert len(far.bias) > 0
    assert (far.bias, str(far)) == (near.bias, str(near))


# ---- connections that break ------------------------------------------------------------------------------------------------


def sizes_of_messages(port, token, question, spend):
    """Of the request and of the answer of one ask: bytes of the head, and of all."""
    proxy = CuttingProxy(port, [])
    try:
        with cu.connect(proxy.url, token) as through:
            through.ask(question, spend=spend)
    finally:
        proxy.close()
    return {way: (raw.index(b"\r\n\r\n") + 4, len(raw)) for way, raw in proxy.passed.items()}


def places_in(head, whole):
    """One byte position of every class: the first line, headers, both sides of their end, the body, before its last."""
    return [1, 10, head // 2, head - 2, head - 1, head, head + 1, (head + whole) // 2, LAST]


def every_cut(sizes):
    for rudely in (False, True):
        yield 0, None, rudely
        for place in places_in(*sizes["request"]):
            yield place, None, rudely
        yield None, 0, rudely
        for place in places_in(*sizes["answer"]):
            yield None, place, rudely


def sizes_of_ours(curator):
    with serving(curator.analyst("eva")) as service:
        return sizes_of_messages(service.server_address[1], TOKEN, BY_CITY, "1%")


def ask_through(curator, cuts, question=BY_CITY):
    """Return the answer, what was charged, and how many connections were cut, where the first ones break."""
    asker = curator.analyst("eva")
    before = len(charges(curator))
    with serving(asker) as service:
        proxy = CuttingProxy(service.server_address[1], cuts)
        try:
            with cu.connect(proxy.url, TOKEN, patience=20) as client:
                answer = client.ask(question, spend="0.02%", fresh=True)
        finally:
            proxy.close()
        keys = {headers.get("Idempotency-Key") for method, _, headers, _ in service.seen if method == "POST"}
    return answer, len(charges(curator)) - before, keys, proxy.cut


def charges(curator):
    return [line for line in curator.log() if line["kind"] == "reserved"]


@pytest.mark.slow
def test_a_connection_may_break_anywhere(curator):
    """Wherever a connection is cut, the answer arrives, is charged once, and all tries have one key."""
    cuts = [*every_cut(sizes_of_ours(curator))]
    assert len(cuts) == 40
    for cut in cuts:
        answer, charged, keys, broken = ask_through(curator, [cut])

        assert (charged, len(keys), len(answer)) == (1, 1, 3), cut
        assert broken >= 1 or cut[:2] in {(0, None), (None, 0)}, cut


@pytest.mark.slow
def test_several_connections_in_a_row_may_break(curator):
    """A run of different cuts pays once, too."""
    cuts = [*itertools.islice(every_cut(sizes_of_ours(curator)), 14, 20)]

    _, charged, keys, broken = ask_through(curator, cuts)

    assert (charged, len(keys), broken) == (1, 1, 6)


def test_a_key_for_every_try_is_caught(curator, monkeypatch):
    """Seeded bug: with a new key each time it is tried, a cut answer is paid twice; the test above would see it."""
    tries = curador.client.connection.Connection._try_once  # noqa: SLF001

    def with_new_key(self, method, path, body, headers, *rest):
        return tries(self, method, path, body, {**headers, "Idempotency-Key": f"k{next(count)}"}, *rest)

    count = itertools.count()
    monkeypatch.setattr(curador.client.connection.Connection, "_try_once", with_new_key)

    _, charged, keys, _ = ask_through(curator, [(None, 20, False)])

    assert (charged, len(keys)) == (2, 2)


def test_two_asks_have_two_keys(curator):
    """A key belongs to one call: fresh=True twice is drawn and paid twice."""
    with connected(curator.analyst("eva")) as (service, client):
        first, second = (client.ask(BY_CITY, spend="0.02%", fresh=True) for _ in range(2))
        keys = [headers["Idempotency-Key"] for method, _, headers, _ in service.seen if method == "POST"]

    assert len(set(keys)) == 2
    assert min(map(len, keys)) >= 43
    assert (first.stored, second.stored, len(charges(curator))) == (False, False, 2)


@pytest.mark.slow
def test_a_busy_service_is_asked_again(curator):
    """503 is not an answer: the same key tries again, and what the last try was told is raised."""
    with connected(curator.analyst("eva")) as (service, client):
        service.busy = 3
        client.ask(BY_CITY, spend="1%")
        assert len({headers["Idempotency-Key"] for *_, headers, _ in service.seen}) == 1
        service.busy = 10**6
        with cu.connect(service.url, TOKEN, patience=0) as hasty, pytest.raises(cu.LedgerBusy, match="stopping"):
            hasty.ask(BY_CITY, spend="1%")


def test_nobody_there_is_said(curator):
    """A service that is away is a failure, which says what is known of the charge."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with cu.connect(f"http://127.0.0.1:{port}", TOKEN, patience=0.1) as client:
        with pytest.raises(cu.Failed, match="did not answer within") as asked:
            client.ask(BY_CITY, spend="1%")
        with pytest.raises(cu.Failed, match="nothing was spent"):
            client.preview(BY_CITY, spend="1%")

    assert "not charged twice" in str(asked.value)
    assert TOKEN not in str(asked.value)


# ---- long questions --------------------------------------------------------------------------------------------------------


def test_a_long_question_is_waited_for(curator):
    """202 is followed by events, and these by the answer; nobody is asked elsewhere."""
    told = []
    with (
        serving(curator.analyst("eva"), long=True) as service,
        cu.connect(service.url, TOKEN, progress=told.append) as client,
    ):
        answer = client.ask(BY_CITY, spend="1%")
        paths = [path for _, path, _, _ in service.seen]

    assert len(answer) == 3
    assert told == ["queued", "running", "running: 1 of 3 ticks"]
    assert [path.split("/")[-1] for path in paths][1:2] == ["events"]
    assert len(charges(curator)) == 1


# ---- services that are false -----------------------------------------------------------------------------------------------


def test_no_redirect_is_followed(curator):
    """A token is not sent on, wherever a service points."""
    asker = curator.analyst("eva")
    with serving(asker) as other, connected(asker) as (service, client):
        service.redirect = f"{other.url}/api/v1/answers"
        for verb in (lambda: client.ask(BY_CITY, spend="1%"), lambda: client.budget):
            with pytest.raises(cu.InvalidParameter, match="leads elsewhere"):
                verb()
        assert other.seen == []


@pytest.mark.parametrize(
    "garbage", [b"{}", b"[]", b"null", b'{"id": "../../secret"}', b'{"id": "a", "columns": [{"name": 3}]}', b'"x"']
)
def test_what_cannot_be_read_is_said(curator, garbage):
    """A service of another version, or no service, is a failure in one sentence."""
    with connected(curator.analyst("eva")) as (service, client):
        service.garbage = garbage
        for verb in (
            lambda: client.ask(BY_CITY, spend="1%"),
            lambda: client.budget,
            lambda: client.preview(BY_CITY, spend="1%"),
        ):
            with pytest.raises(cu.Failed):
                verb()


def test_a_sentence_cannot_move_a_terminal(curator):
    """What a service says is shown, not obeyed."""
    fields = {"error": "InvalidQuery", "sentence": "\x1b[2Jgone\u202e.", "hint": "a\r\nb\u200b"}
    found = curador.curator.wire.error_of_record(fields)

    assert type(found) is cu.InvalidQuery
    assert all(one.isprintable() or one == "\n" for one in str(found))
    assert "\\x1b[2Jgone\\u202e" in str(found)


def test_a_wrong_token_is_refused_and_never_shown(curator):
    """NotAllowed, without the token in it."""
    wrong = TOKEN[:-1] + "y"
    with serving(curator.analyst("eva")) as service, cu.connect(service.url, wrong) as client:
        with pytest.raises(cu.NotAllowed) as caught:
            client.ask(BY_CITY, spend="1%")
        assert wrong not in f"{caught.value!r}{caught.value}{client!r}{client.__dict__!r}"


# ---- addresses and tokens --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://curador.example.org",
        "http://10.0.0.1:8421",
        "http://localhost.example.org",
        "http://[::2]",
        "http://0.0.0.0",
        "ftp://127.0.0.1",
        "127.0.0.1:8421",
        "https://",
        "https://ana:secret@example.org",
        "https://example.org?x=1",
        "https://example.org/#x",
        "https://exa mple.org",
        "https://example.org:99999",
        "https://example.org\n",
        "",
        None,
    ],
)
def test_a_false_address_is_refused_before_anything_is_sent(url):
    """Only https beyond this machine; nothing of a secret in the refusal."""
    with pytest.raises(cu.InvalidParameter) as caught:
        cu.connect(url, TOKEN)

    assert "secret" not in str(caught.value)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("localhost.", False), ("0.0.0.0", False),  # noqa: S104

     ("127.0.0.1.example.org", False), ("2130706433", False), ("::ffff:10.0.0.1", False)],
)  # fmt: skip
def test_what_this_machine_is(host, is_here):
    """Only addresses that are certainly its own."""
    assert is_loopback(host) is is_here


def test_plain_http_must_be_said():
    """It is the caller's word that nobody listens."""
    with cu.connect("http://10.0.0.1:8421/", TOKEN, plain_http=True) as client:
        assert repr(client) == "<RemoteAsker at http://10.0.0.1:8421>"


def test_where_a_token_comes_from(tmp_path, monkeypatch):
    """An argument, else a private file, else the environment; never two of them, and never none."""
    monkeypatch.delenv("CURADOR_TOKEN", raising=False)
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="ascii")
    file.chmod(0o644)
    url = "http://127.0.0.1:1"
    with pytest.raises(cu.InvalidParameter, match="given"):
        cu.connect(url)
    with pytest.raises(cu.InvalidParameter, match="readable by its owner alone"):
        cu.connect(url, token_file=file)
    file.chmod(0o600)
    with pytest.raises(cu.InvalidParameter, match="given once"):
        cu.connect(url, TOKEN, token_file=file)
    with pytest.raises(cu.InvalidParameter, match="can be read"):
        cu.connect(url, token_file=tmp_path / "other")
    for bad in ("", "two words of it", "short", "ñ" * 50, "x" * 9000, 7):
        with pytest.raises(cu.InvalidParameter) as caught:
            cu.connect(url, bad)
        assert "two words" not in str(caught.value)
    monkeypatch.setenv("CURADOR_TOKEN", TOKEN)
    for client in (cu.connect(url), cu.connect(url, token_file=file)):
        assert client._connection._address.token == TOKEN  # noqa: SLF001
        client.close()


def test_a_client_loads_no_engine():
    """Whoever asks over the network needs no database driver and no parser."""
    code = "import curador as cu, sys; cu.connect; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", f"import json; {code}"], capture_output=True, text=True, check=True)
    loaded = set(json.loads(out.stdout))

    assert not {"duckdb", "sqlglot", "sqlalchemy", "pydantic", "pyarrow", "matplotlib", "fastapi", "uvicorn"} & loaded
    assert not {one for one in loaded if one.startswith(("curador.engines", "curador.plan", "curador.query"))}
    assert "httpx" in loaded

"""The client at the real service, over real sockets: one script, connections that break, tokens that end."""

import threading

import pytest
import visits_served as served
from small_service import CuttingProxy
from test_client import every_cut, sizes_of_messages

import curador as cu
from curador.server import tokens


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    file = served.write_study(tmp_path_factory.mktemp("served"))
    with served.serving(file) as (url, opened):
        yield url, opened


def script(asker):
    """What runs here and there."""
    seen = [asker.preview(served.BY_CITY, spend="2%").to_dict(), str(asker.preview(served.BY_CITY, spend="2%"))]
    seen.append(str(asker.preview([served.BY_CITY, served.COUNT], rho="0.001")))
    answer = asker.ask(served.BY_CITY, spend="2%")
    seen += [answer.columns, len(answer), answer.cost, answer.notes, answer.stored, answer.confidence, type(answer)]
    seen += [answer.to_arrow().schema, answer.to_pandas().shape, answer.to_polars().schema, len(answer.plot().axes)]
    again = asker.ask(served.BY_CITY, spend="2%")
    seen += [again.stored, again.rows == answer.rows, sorted(answer.receipt.record), answer.receipt.plain]
    wider = answer.with_confidence("0.99")
    seen += [[row["n"] for row in wider.rows] == [row["n"] for row in answer.rows], wider.confidence]
    seen += [asker.ask(served.COUNT, epsilon="0.05", caps={"rows": 2}, confidence="0.9").columns]
    seen += [asker.ask("SELECT AVG(spent) AS m FROM visits", accuracy={"m": 60}, at=1000, bounds={"m": (0, 400)}).columns]
    seen += [asker.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", spend="3%", bias=True).bias[0].name]
    seen += [asker.ask(asker.table("visits").group_by("city").count(), spend="2%").columns]
    with pytest.raises(cu.InvalidQuery) as hidden:
        asker.table("salary")
    seen.append(hidden.value.fields)
    for text, options in (
        ("SELECT * FROM visits", {"spend": "1%"}),
        ("SELECT COUNT(*) AS n FROM salary", {"spend": "1%"}),
        ("SELECT", {"spend": "1%"}),
        (served.COUNT, {}),
        (served.COUNT, {"spend": "0%"}),
        (served.COUNT, {"spend": "101%"}),
        (served.COUNT, {"spend": "99%"}),
        (served.COUNT, {"rho": 0.001, "spend": "1%"}),
        (served.COUNT, {"spend": "1%", "confidence": 2}),
    ):
        with pytest.raises(cu.Refused) as caught:
            asker.ask(text, **options)
        seen.append((type(caught.value), caught.value.fields, str(caught.value)))
    seen += [asker.budget, str(asker.budget), [table.table.name for table in asker.schema.tables]]
    seen += [[(one.name, one.type) for one in asker.schema.tables[0].fields]]
    seen.append([(line["kind"], line["analyst"], line["question"], line["cost"]) for line in asker.log()])
    return seen


def test_one_script_runs_here_and_there(tmp_path):
    """Verbs, objects, refusals, budget and log are the same, whoever asks and wherever."""
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
    with cu.open(served.write_study(tmp_path / "here")) as curator:
        expected = script(curator.analyst("eva"))
    file = served.write_study(tmp_path / "there", seed=2)  # the same rows would have the same ledger
    with served.serving(file) as (url, opened), cu.connect(url, served.token_of(opened)) as client:
        seen = script(client)

    for one, other in zip(seen, expected, strict=True):
        assert one == other


def test_cuts_anywhere_pay_once(service):
    """At the real service, too: every class of place, over one real proxy; the key finds the outcome."""
    url, opened = service
    port, token = int(url.rsplit(":", 1)[1]), served.token_of(opened)
    sizes = sizes_of_messages(port, token, served.COUNT, "0.05%")
    charged = count_charges(opened)
    for cut in every_cut(sizes):
        proxy = CuttingProxy(port, [cut])
        try:
            with cu.connect(proxy.url, token, patience=20) as client:
                answer = client.ask(served.COUNT, spend="0.05%", fresh=True)
        finally:
            proxy.close()
        charged += 1
        assert (count_charges(opened), len(answer), answer.stored) == (charged, 1, False), cut


def count_charges(opened):
    return sum(line["kind"] == "reserved" for line in opened.curator.log())


def test_the_sandbox_asks_there(service):
    """Made-up answers are marked, have no receipt, and spend nothing."""
    url, opened = service
    with cu.connect(url, served.token_of(opened)) as client:
        before = client.budget
        answer = client.sandbox.ask(served.BY_CITY, spend="5%")
        assert answer.made_up
        assert "MADE UP" in str(answer)
        assert len(answer.with_confidence("0.9")) == len(answer)
        with pytest.raises(cu.NotAllowed, match="no receipt"):
            _ = answer.receipt
        assert client.budget == before
        assert client.sandbox.preview(served.COUNT, spend="1%").fits > 0


def test_a_revoked_token_ends(service):
    """Between two questions: the next one is refused, nothing is spent."""
    url, opened = service
    token = served.token_of(opened)
    with cu.connect(url, token, patience=5) as client:
        client.preview(served.COUNT, spend="1%")
        tokens.revoke(opened.state, token.split("_")[1])
        before = count_charges(opened)
        with pytest.raises(cu.NotAllowed):
            client.ask(served.COUNT, spend="1%")
        assert count_charges(opened) == before


def test_many_threads_share_one_client(service):
    """One connection pool, one token, eight threads: each gets its own answer."""
    url, opened = service
    answers = {}
    with cu.connect(url, served.token_of(opened)) as client:

        def ask(place):
            answers[place] = client.ask(f"SELECT COUNT(*) AS n FROM visits WHERE spent > {place}", spend="0.1%")

        threads = [threading.Thread(target=ask, args=(place,)) for place in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    assert [len(answers[place]) for place in range(8)] == [1] * 8

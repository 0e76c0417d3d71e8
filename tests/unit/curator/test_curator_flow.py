"""The way of one question: charged before data are read, kept whatever happens, answered again for nothing."""

from __future__ import annotations

import json
import re
import threading
from fractions import Fraction

import pytest
from curator_studies import BY_CITY, BY_SHOP, COUNT, FakeEngine, make_study, open_curator

from curador.answers.identity import encode_releases
from curador.curator.curator import Curator
from curador.curator.opening import ledger_of
from curador.engines.base import EngineFailed
from curador.errors import (
    BudgetExceeded,
    Failed,
    InvalidParameter,
    InvalidQuery,
    InvalidStudy,
    NotAllowed,
    NotPrivate,
    Refused,
)
from curador.ledger.amounts import NOTHING
from curador.study.model import Budget


@pytest.fixture
def curator(tmp_path):
    with open_curator(tmp_path) as made:
        yield made


def engine_of(curator):
    return curator._session.engine  # noqa: SLF001 -- the engine has no other door


def kinds(curator):
    return [line["kind"] for line in curator.log()]


# ---- the order of things -------------------------------------------------------------------------------------------


def test_the_charge_is_on_disk_before_data_are_read(curator):
    """When the engine starts, the ledger holds the whole cost, and holds it durably."""
    seen = []
    engine_of(curator).before = lambda: seen.append((curator.ledger.spent(), kinds(curator)[-1]))
    answer = curator.ask(COUNT, spend="5%")
    assert seen == [(answer.cost, "reserved")]
    assert kinds(curator) == ["created", "reserved", "committed"]


def test_a_preview_reads_and_spends_nothing(curator):
    """No block is tallied, no entry is written."""
    preview = curator.preview(BY_CITY, spend="5%")
    assert engine_of(curator).tallied == []
    assert kinds(curator) == ["created"]
    assert preview.cost == curator.ask(BY_CITY, spend="5%").cost


@pytest.mark.parametrize(
    ("text", "options", "refusal"),
    [
        ("SELECT * FROM visits", {"spend": "5%"}, NotPrivate),
        ("SELECT COUNT(*) FROM nowhere", {"spend": "5%"}, InvalidQuery),
        (COUNT, {}, InvalidParameter),
        (COUNT, {"spend": "5%", "confidence": 1}, InvalidParameter),
        (COUNT, {"spend": "5%", "dialect": "cobol"}, Refused),
        (["x"], {"spend": "5%"}, InvalidQuery),
    ],
)
def test_a_refusal_is_free_and_reads_nothing(curator, text, options, refusal):
    """What cannot be answered costs nothing and starts no engine."""
    with pytest.raises(refusal):
        curator.ask(text, **options)
    assert kinds(curator) == ["created"]
    assert engine_of(curator).tallied == []


def test_more_than_is_left_is_refused(curator):
    """The refusal says what is left and what would fit; nothing is spent."""
    curator.ask(COUNT, spend="60%")
    with pytest.raises(BudgetExceeded, match=r'what is left.*\n.*spend="40%" or less would fit'):
        curator.ask(COUNT, spend="50%", fresh=True)
    assert len(engine_of(curator).tallied) == 1
    curator.ask(COUNT, spend="40%")


def test_an_unprepared_version_is_refused_before_the_charge(curator):
    """What the owner must mend is not charged to anybody."""
    engine_of(curator).ready = False
    with pytest.raises(InvalidStudy, match="prepare"):
        curator.ask(COUNT, spend="5%")
    assert kinds(curator) == ["created"]


@pytest.mark.slow
def test_answers_of_several_threads_are_all_charged(tmp_path):
    """Twenty questions at once cost what twenty cost one after the other, and the twenty-first is refused."""
    with open_curator(tmp_path) as curator:
        refused = []

        def ask():
            try:
                curator.ask(COUNT, spend="5%", fresh=True)
            except BudgetExceeded:
                refused.append(1)

        threads = [threading.Thread(target=ask) for _ in range(21)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 1
        assert kinds(curator).count("committed") == 20


# ---- failures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem",
    [EngineFailed("1234abcd"), ValueError("row 17 holds 42"), Failed("value 42"), MemoryError(), InvalidStudy("42")],
)
def test_a_failure_keeps_the_charge_and_tells_an_id_only(curator, problem):
    """Whatever went wrong after the charge: one constant sentence, an id, and an entry that counts it."""
    engine_of(curator).problem = problem
    cost = curator.preview(COUNT, spend="5%").cost
    with pytest.raises(Failed) as caught:
        curator.ask(COUNT, spend="5%")
    told = str(caught.value)
    assert re.fullmatch(
        r"the question could not be answered; the charge is kept and nothing was released\. Incident [0-9a-f]+\.", told
    )
    assert "42" not in re.sub("Incident.*", "", told)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert kinds(curator) == ["created", "reserved", "failed"]
    assert curator.ledger.spent() == cost
    incident = told.rstrip(".").rpartition(" ")[2]
    assert incident in curator.log()[-1]["note"]
    assert not isinstance(problem, EngineFailed) or incident == "1234abcd"


def test_three_failures_close_the_study_to_analysts_until_it_is_reopened(curator):
    """The owner may go on; analysts may not, not even for stored answers."""
    ana = curator.analyst("ana")
    ana.ask(COUNT, spend="5%")
    engine_of(curator).problem = EngineFailed("ab")
    for _ in range(3):
        with pytest.raises(Failed):
            curator.ask(COUNT, spend="3%")
    engine_of(curator).problem = None
    assert curator.budget.closed
    for options in ({"spend": "2%"}, {"spend": "5%"}):
        with pytest.raises(NotAllowed, match="open to analysts"):
            ana.ask(COUNT, **options)
    curator.ask(COUNT, spend="2%")
    curator.reopen("looked into it")
    ana.ask(COUNT, spend="1%")
    assert not curator.budget.closed


def test_an_interrupt_after_the_charge_keeps_it_and_says_so(curator):
    """Ctrl-C while the engine works: the charge stays, and is no failure of the engine."""
    engine_of(curator).problem = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt, match="the charge is kept and nothing was released"):
        curator.ask(COUNT, spend="5%")
    assert kinds(curator) == ["created", "reserved"]
    assert curator.ledger.spent() != NOTHING
    assert curator.ledger.failures == 0


def test_a_failure_of_ours_after_the_draw_releases_nothing(curator, monkeypatch):
    """An answer that could not be made is not stored and not shown."""

    def broken(identities, released):
        if released[0][0].values[0].any():
            raise RuntimeError("the noisy count is 1003")
        return encode_releases(identities, released)

    monkeypatch.setattr("curador.curator.asking.encode_releases", broken)
    with pytest.raises(Failed, match="Incident") as caught:
        curator.ask(COUNT, spend="5%")
    assert kinds(curator)[-1] == "failed"
    ((incident, detail),) = curator._session.engine.incidents.items()  # noqa: SLF001 -- the owner's log
    assert incident in str(caught.value)
    assert "the noisy count is 1003" in detail
    assert "1003" not in str(caught.value)


def told_about(folder, each, shops):
    """Everything that is said about some data, but the answer."""
    with open_curator(folder, each=each, shops=shops) as curator:
        told = [str(curator.preview(BY_SHOP, spend="5%")), curator.explain(BY_SHOP)]
        for text, options in ((COUNT, {}), (COUNT, {"spend": "200%"}), ("SELECT shop FROM visits", {"rho": 0})):
            with pytest.raises(Refused) as caught:
                curator.ask(text, **options)
            told.append(str(caught.value))
        curator.ask(BY_SHOP, spend="90%")
        with pytest.raises(BudgetExceeded) as caught:
            curator.ask(COUNT, spend="20%")
        return [*told, str(caught.value), str(curator.budget)]


@pytest.mark.slow
def test_messages_do_not_depend_on_data(tmp_path):
    """The same refusals, previews and budgets on an empty table, a small one and a large one."""
    cases = {"none": (0, {}), "one": (1, {"north": 1}), "many": (10**6, {"north": 10**6, "south": 3})}
    told = []
    for name, (each, shops) in cases.items():
        (tmp_path / name).mkdir()
        told.append(told_about(tmp_path / name, each, shops))
    assert told[0] == told[1] == told[2]


def test_a_refresh_waits_for_the_question_under_way(curator):
    """The version that was charged is the version that is read: the engine is not given new data in between."""
    order = []

    def during():
        thread = threading.Thread(target=lambda: (curator.refresh("now"), order.append("refreshed")))
        thread.start()
        thread.join(0.2)
        order.append("tallied")
        threads.append(thread)

    threads = []
    engine_of(curator).before = during
    answer = curator.ask(COUNT, spend="5%")
    threads[0].join()
    assert order == ["tallied", "refreshed"]
    assert answer.receipt["data_version"] == 1
    assert curator.data_version == 2


# ---- identical questions -------------------------------------------------------------------------------------------


def test_the_identical_question_is_free_and_the_same(curator):
    """The second answer is the first one; the entry says it was served."""
    first, second = (curator.ask(BY_CITY, spend="5%") for _ in range(2))
    assert first.rows == second.rows
    assert (first.stored, second.stored) == (False, True)
    assert second.cost == NOTHING
    assert kinds(curator) == ["created", "reserved", "committed", "served"]
    assert len(engine_of(curator).tallied) == 1


def test_another_spelling_is_another_view_of_the_stored_answer(curator):
    """Aliases, order, confidence, HAVING and arithmetic are computed again from what was released."""
    first = curator.ask(BY_CITY, spend="5%")
    second = curator.ask(
        "SELECT COUNT(*) * 2 AS twice, city AS c FROM visits GROUP BY city HAVING AVG(spent) >= 0", spend="5%"
    )
    assert second.stored
    assert [row["twice"] for row in second.rows] == [2 * row["n"] for row in first.rows]
    assert second.columns == ("twice", "twice_low", "twice_high", "c")
    narrow = curator.ask(BY_CITY, spend="5%", confidence="0.5")
    assert narrow.stored
    assert [row["n"] for row in narrow.rows] == [row["n"] for row in first.rows]
    assert all(a["n_low"] > b["n_low"] for a, b in zip(narrow.rows, first.rows, strict=True))
    assert first.with_confidence("0.5").rows == narrow.rows


def test_fresh_draws_and_pays_again(curator):
    """Noise is new, the cost is charged, and the newer answer is the stored one from then on."""
    first = curator.ask(BY_CITY, spend="5%")
    fresh = curator.ask(BY_CITY, spend="5%", fresh=True)
    assert not fresh.stored
    assert fresh.rows != first.rows
    assert curator.ledger.spent() == first.cost + fresh.cost
    assert curator.ask(BY_CITY, spend="5%").rows == fresh.rows


def test_every_analyst_who_may_see_the_tables_gets_the_stored_answer(curator):
    """Somebody else's answer is free, does not touch the share, and shows nobody else's text."""
    first = curator.ask("SELECT COUNT(*) AS n FROM visits -- my secret theory", spend="1%")
    ana = curator.analyst("ana")
    second = ana.ask(COUNT, spend="5%")
    assert second.stored
    assert second.rows == first.rows
    assert curator.ledger.spent("ana") == NOTHING
    assert second.receipt["analyst"] == "ana"
    assert second.receipt["question"] == COUNT
    assert "secret" not in json.dumps(ana.log()) + second.receipt.to_json()
    assert "secret" in json.dumps(curator.log())


def test_a_new_data_version_is_asked_anew(curator):
    """After a refresh the same question is drawn and paid again, whether or not anything changed."""
    curator.ask(COUNT, spend="5%")
    assert curator.refresh("monthly") == 2
    assert engine_of(curator).prepared == [2]
    again = curator.ask(COUNT, spend="5%")
    assert not again.stored
    assert again.receipt["data_version"] == 2
    assert curator.analyst("leo").ask(COUNT, spend="10%").stored


def test_an_analysts_voice_follows_a_refresh(curator):
    """A voice that was taken before the refresh asks about the new version."""
    leo = curator.analyst("leo")
    curator.refresh("monthly")
    assert leo.ask(COUNT, spend="5%").receipt["data_version"] == 2


def test_another_process_refresh_is_noticed(tmp_path):
    """A curator that still holds the old version is refused, and nothing is spent."""
    with open_curator(tmp_path) as curator:
        study = make_study(tmp_path)
        with ledger_of(study, new_ledger=None, verify=False) as other:
            other.refresh("elsewhere")
        with pytest.raises(InvalidStudy, match="data version 1, and 2 is the current one"):
            curator.ask(COUNT, spend="5%")
        assert curator.ledger.spent() == NOTHING


# ---- who may ask ---------------------------------------------------------------------------------------------------


def test_an_unknown_analyst_is_refused(curator):
    """Only declared analysts have a voice."""
    with pytest.raises(NotAllowed, match=r"got 'Ana'.*\n.*did you mean ana"):
        curator.analyst("Ana")


def test_a_table_that_is_not_the_analysts_is_refused(curator):
    """The refusal names what may be asked; a stored answer from that table is not there either."""
    pay = "SELECT COUNT(*) AS n FROM salaries"
    curator.ask(pay, spend="5%")
    eva = curator.analyst("eva")
    for verb in (eva.ask, eva.preview):
        with pytest.raises(InvalidQuery, match=r'there is no table "salaries".\nHint: the tables are: "visits".'):
            verb(pay, spend="5%")
    with pytest.raises(InvalidQuery, match='there is no table "salaries"'):
        eva.ask("SELECT COUNT(*) AS n FROM visits AS v JOIN salaries AS s ON v.user_id = s.user_id", spend="5%")
    assert [one.table.name for one in eva.schema.tables] == ["visits"]
    assert eva.ask(COUNT, spend="5%")


PROBES = [
    "SELECT COUNT(*) AS n FROM {}",
    "SELECT COUNT(pay) AS n FROM {}",
    "SELECT COUNT(nope) AS n FROM {}",
    "SELECT AVG(pay) AS n FROM {} WHERE pay > 'x'",
    "SELECT SUM(user_id) AS n FROM {}",
    "SELECT nonsense(pay) AS n FROM {}",
    "SELECT pay FROM {}",
    "SELECT COUNT(*) AS n FROM visits v JOIN {} s ON v.user_id = s.user_id",
    "SELECT COUNT(*) AS n FROM visits v JOIN {} s ON v.user_id = s.nope",
    "SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM {} s WHERE s.user_id = v.user_id)",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM {})",
    "WITH a AS (SELECT user_id FROM {}) SELECT COUNT(*) AS n FROM a",
    "SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) AS n FROM {}",
    'SELECT COUNT(*) AS n FROM "{}"',
    "SELECT COUNT(*) AS n FROM main.{}",
    "SELECT {}.pay, COUNT(*) AS n FROM visits GROUP BY 1",
]


@pytest.mark.slow
@pytest.mark.parametrize("probe", PROBES, ids=range(len(PROBES)))
def test_a_hidden_table_is_refused_like_one_that_does_not_exist(curator, probe):
    """Word for word, in every verb: neither that it exists nor what is in it can be found out."""
    eva = curator.analyst("eva")
    told = []
    for name in ("salaries", "zzzzzzzz", "SALARIES", "Zzzzzzzz"):
        for verb in (eva.preview, eva.ask, lambda text, **_: eva.explain(text)):
            with pytest.raises(Refused) as caught:
                verb(probe.format(name), spend="5%")
            told.append((type(caught.value), str(caught.value).replace(name, "TABLE")))
    assert len(set(told)) == 1
    assert curator.ledger.spent() == NOTHING


@pytest.mark.parametrize("name", ["salaries", "zzzzzzzz"])
def test_a_hidden_table_is_no_name_to_train_on(curator, name):
    """Nor for who may train."""
    with pytest.raises(
        InvalidParameter, match=f"table must be a private table that may be asked about; got '{name}'.\nHint: visits"
    ):
        curator.analyst("eva").rows(name, columns=["pay"])


def test_columns_of_a_hidden_table_are_not_listed(curator):
    """A wrong question about a hidden table says no more than one about a table that is not there."""
    eva = curator.analyst("eva")
    told = []
    for table in ("salaries", "nowhere"):
        with pytest.raises(InvalidQuery) as caught:
            eva.ask(f"SELECT COUNT(wrong) AS n FROM {table}", spend="5%")
        with pytest.raises(InvalidQuery):
            eva.ask(f"SELECT * FROM {table}", spend="5%")
        told.append(str(caught.value).replace(table, "x").replace("nowhere", "x"))
    assert "pay" not in told[0]
    assert told[0] == told[1]


def test_a_share_is_a_limit_of_its_own(curator):
    """An analyst spends the share, and no more, while the study has room."""
    ana = curator.analyst("ana")
    ana.ask(COUNT, spend="100%")
    with pytest.raises(BudgetExceeded, match="your share"):
        ana.ask(BY_CITY, spend="1%")
    assert curator.ask(BY_CITY, spend="50%")
    view = ana.budget
    assert view.accounts == ()
    assert view.left.rho < Fraction(1, 10**12)
    assert [one.name for one in curator.budget.accounts] == ["owner", "ana", "eva", "leo"]


def test_all_analysts_together_keep_the_studys_limit(curator):
    """Shares may add up to more than the whole; the whole still holds."""
    curator.analyst("eva").ask(COUNT, spend="90%")
    with pytest.raises(BudgetExceeded, match="the study's budget"):
        curator.analyst("leo").ask(BY_CITY, spend="50%")


# ---- opening -------------------------------------------------------------------------------------------------------


def test_a_new_ledger_is_said_aloud(tmp_path, capsys):
    """A budget never begins in silence; opening it again says nothing."""
    with open_curator(tmp_path):
        assert "new ledger" in capsys.readouterr().err
    with open_curator(tmp_path):
        assert capsys.readouterr().err == ""


def test_spending_survives_the_process(tmp_path):
    """What was spent is spent when the study is opened again; the stored answer is there too."""
    with open_curator(tmp_path) as curator:
        first = curator.ask(COUNT, spend="5%")
    assert engine_of(curator).closed
    with open_curator(tmp_path) as curator:
        assert curator.ledger.spent() == first.cost
        assert curator.ask(COUNT, spend="5%").rows == first.rows


def test_another_budget_is_refused(tmp_path):
    """Limits are fixed when the ledger is created."""
    with open_curator(tmp_path):
        pass
    with pytest.raises(InvalidStudy, match=r"budget\.epsilon"):
        open_curator(tmp_path, budget=Budget(epsilon=4, delta="1e-6"))


def test_a_lost_ledger_is_not_replaced_in_silence(tmp_path):
    """Data that had a ledger start again with a reason only, which becomes an entry."""
    with open_curator(tmp_path) as curator:
        curator.ask(COUNT, spend="50%")
    for file in tmp_path.glob("visits.ledger*"):
        file.unlink()
    with pytest.raises(InvalidStudy, match="reason"):
        open_curator(tmp_path)
    study = make_study(tmp_path)
    with Curator(study, ledger_of(study, new_ledger="the disk burnt", verify=True), FakeEngine(study)) as curator:
        assert curator.ledger.spent() == NOTHING


def test_a_pure_study_works_the_same(tmp_path):
    """Laplace noise, ε that adds up, no δ anywhere."""
    with open_curator(tmp_path, budget=Budget(epsilon=1)) as curator:
        answer = curator.ask(BY_CITY, spend="5%")
        assert answer.cost.epsilon == Fraction(1, 20)
        assert answer.receipt["cost"] == {"epsilon": {"exact": "1/20", "decimal": "0.05"}}
        assert curator.budget.epsilon_spent == pytest.approx(0.05)
        assert {one["mechanism"] for one in answer.receipt["measurements"]} == {"DiscreteLaplace"}

"""What BI tools send by themselves is served and costs nothing; what they ask about rows is refused until a price is said."""

import psycopg
import pytest
from tool_statements import ASKED, SERVED


@pytest.mark.parametrize("prepare", [False, True])
@pytest.mark.parametrize("tool", list(SERVED))
def test_what_a_tool_sends_is_served(unspent, tool, prepare):
    with unspent.connect(options="-c curador.spend=1%") as connection:
        for text in SERVED[tool]:
            several = prepare and ";" in text
            connection.execute(text, prepare=prepare and not several)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.mark.parametrize("tool", list(ASKED))
def test_what_a_tool_asks_by_itself_spends_nothing(unspent, tool):
    with unspent.connect() as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute(ASKED[tool])
    assert refused.value.sqlstate in {"55000", "42501", "42601"}


def test_the_tables_of_tools_lists_are_those_that_may_be_asked_about(unspent):
    with unspent.connect() as connection:
        rows = connection.execute(SERVED["Metabase"][1]).fetchall()
        assert {(table, select, insert) for _, _, table, _, select, insert, _ in rows} == {
            ("visits", True, False), ("secrets", True, False), ("towns", True, False),
        }  # fmt: skip
        sizes = connection.execute(SERVED["DBeaver"][11]).fetchall()
        assert {size for _, *both in sizes for size in both} == {None}  # no 0 that looks like an answer


def test_a_refresh_of_a_dashboard_is_free(door):
    asked = ASKED["Superset"]
    with door.connect(options="-c curador.spend=1%") as connection:
        first = connection.execute(asked).fetchall()
        account = door.service.budget(door.service.admit(door.user()[1], door="test", peer=""))["left_share"]
        assert connection.execute(asked).fetchall() == first
        assert door.service.budget(door.service.admit(door.user()[1], door="test", peer=""))["left_share"] == account

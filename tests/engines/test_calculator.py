"""DuckDB as a calculator: closed on all sides, one table at a time, one caller at a time."""

import os
import threading

import duckdb
import pyarrow as pa
import pytest

from curador.engines.calculator import CALCULATORS, calculate
from curador.engines.lower.sql import mark_generated
from curador.errors import Failed

SUM = mark_generated("SELECT c0 + 1 FROM released")
ONE = pa.table({"c0": pa.array([1, 2], pa.int64())})


def test_the_calculator_reaches_nothing(tmp_path):
    """No file, no setting, no extension, no table but the one that was handed in, and that one only once."""
    (tmp_path / "a.csv").write_text("a\n1\n", encoding="utf-8")
    reaching = [
        f"SELECT * FROM read_csv('{tmp_path / 'a.csv'}')",
        f"SELECT * FROM '{tmp_path / 'a.csv'}'",
        f"COPY (SELECT 1) TO '{tmp_path / 'b.csv'}'",
        f"ATTACH '{tmp_path / 'c.db'}'",
        "SET enable_external_access = true",
        "SET threads = 2",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM ONE",
    ]
    for text in reaching:
        with pytest.raises(duckdb.Error):
            calculate(mark_generated(text), ONE)
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]
    assert calculate(SUM, ONE) == [(2,), (3,)]
    connection = CALCULATORS.taken()
    with pytest.raises(duckdb.Error, match="released"):
        connection.sql("SELECT * FROM released")
    CALCULATORS.idle.append(connection)


def test_only_lowered_statements_are_run():
    with pytest.raises(Failed, match="lowering"):
        calculate("SELECT 1", ONE)


def test_threads_have_connections_of_their_own():
    """Many at once, each with its own table; connections are used again."""
    found = {}

    def run(place):
        table = pa.table({"c0": pa.array(range(place, place + 5000), pa.int64())})
        found[place] = [calculate(SUM, table) for _ in range(5)]

    threads = [threading.Thread(target=run, args=(place,)) for place in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert all(found[place] == [[(one,) for one in range(place + 1, place + 5001)]] * 5 for place in range(8))
    before = len(CALCULATORS.made)
    calculate(SUM, ONE)
    assert len(CALCULATORS.made) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_has_a_connection_of_its_own():
    """It uses none of its parent's, and leaves them alone."""
    calculate(SUM, ONE)
    child = os.fork()
    if child == 0:
        made = len(CALCULATORS.made)
        right = calculate(SUM, ONE) == [(2,), (3,)]
        os._exit(0 if right and len(CALCULATORS.made) == made + 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert calculate(SUM, ONE) == [(2,), (3,)]

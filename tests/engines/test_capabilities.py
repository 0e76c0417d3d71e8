"""What an engine cannot compute for every row is refused before anything is charged, with the engine's name."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import curador as cu
from curador.engines.duckdb.engine import DuckDBEngine
from curador.engines.lower.dialect_duckdb import DuckDB
from curador.study.values import Type

SAID = "DuckDB has no remainder of floats"


@pytest.fixture
def curator(tmp_path):
    """A curator of one column of floats and one of integers."""
    pq.write_table(pa.table({"who": np.arange(99), "x": np.full(99, 2.5), "n": np.arange(99)}), tmp_path / "t.parquet")
    options = {
        "unit": "who",
        "budget": cu.Budget(epsilon=9, delta=1e-6),
        "bounds": {"x": (0, 9), "n": (0, 99)},
        "caps": {"rows": 1},
    }
    with cu.open(tmp_path / "t.parquet", **options, engine={"worker": "inline", "threads": 1}) as found:
        yield found


def lacks(monkeypatch):
    """Let the engine lack the remainder of floats; return what it is asked afterwards."""

    def missing(_, function, types, __):
        return SAID if function == "%" and Type.FLOAT in types else None

    monkeypatch.setattr(DuckDB, "missing", missing)
    asked, plain = [], DuckDBEngine.tally
    monkeypatch.setattr(DuckDBEngine, "tally", lambda self, blocks: asked.append(blocks) or plain(self, blocks))
    return asked


def test_what_the_engine_lacks_costs_nothing(curator, monkeypatch):
    """In an argument, a condition, a key or inside another call; previews say it, too. No row is read."""
    asked = lacks(monkeypatch)
    for wrong in ("AVG(x % 2)", "COUNT(*) FILTER (WHERE ABS(x % 2) > 1)"):
        for verb in (curator.preview, curator.ask):
            with pytest.raises(cu.InvalidQuery, match=SAID):
                verb(f"SELECT {wrong} AS a FROM t", spend="1%")
    with pytest.raises(cu.InvalidQuery, match=SAID):
        curator.ask("SELECT COUNT(*) AS a FROM t WHERE x % 2 > 1", spend="1%")
    assert not asked
    assert not curator.budget.spent.rho
    curator.ask("SELECT AVG(n % 2) AS a FROM t", spend="1%")
    assert len(asked) == 1
    assert curator.budget.spent.rho

"""The reference data as studies whose caps cut nothing, for statements with true values; only where that material is.

Truths are asked of the same rows with numbers clamped to their declared bounds, as the curator clamps what it sums. It clamps
arguments, not columns: where that differs, the truth is asked of raw_visits and says the clamp.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from true_values import entries

import curador as cu

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHARED = Path(os.environ.get("CURADOR_SHARED", Path(__file__).resolve().parents[3] / "shared"))
REVIEW = Path(__file__).parent / "review.jsonl"

HEAD = """version = 1
name = "{name}"
budget = {{ epsilon = "1e6", delta = "1e-3" }}
allow_large_delta = true
ledger = "{name}.ledger"
max_units = 100_000
[engine]
worker = "inline"
threads = 1
unit_work = "100ms"
"""

EDUCATION = json.dumps([str(one) for one in range(1, 17)])
PUMS = f"""
[tables.PUMS]
source = "PUMS_pid.csv"
unit = "pid"
unique = true
[tables.PUMS.columns]
age = {{ type = "integer", bounds = [0, 100], nullable = false }}
sex = {{ type = "string", values = ["0", "1"] }}
educ = {{ type = "string", values = {EDUCATION} }}
race = {{ type = "string", values = ["1", "2", "3", "4", "5", "6"] }}
income = {{ type = "float", bounds = [0, 500000], nullable = false }}
married = {{ type = "string", values = ["0", "1"] }}
pid = {{ type = "integer" }}
"""

VISITS = """
[tables.users]
source = "users.parquet"
unit = "user_id"
unique = true
[tables.users.columns]
tier = { type = "string", values = ["silver", "gold"], nullable = true }
newsletter = { type = "boolean", nullable = false }
signup_date = { type = "date", bounds = ["2010-12-01", "2011-12-31"], nullable = false }
[tables.visits]
source = "visits.parquet"
unit = "user_id"
caps = { rows = 250, groups = 250 }
[tables.visits.columns]
visit_ts = { type = "timestamp", bounds = ["2010-12-01", "2011-12-31 23:59:59"], nullable = false }
items = { type = "integer", bounds = [-500, 500], nullable = false }
spend = { type = "float", bounds = [-500, 2000], nullable = false }
n_products = { type = "integer", bounds = [0, 100], nullable = false }
is_return = { type = "boolean", nullable = false }
days_since_last = { type = "integer", bounds = [0, 374], nullable = true }
[tables.countries]
source = "countries.parquet"
public = true
"""

TPCH = """
[tables.customer]
source = "customer.parquet"
unit = "c_custkey"
unique = true
[tables.customer.columns]
c_acctbal = { type = "decimal", bounds = [-1000, 10000] }
[tables.orders]
source = "orders.parquet"
unit = { column = "o_custkey", references = "customer" }
caps = { rows = 40, groups = 40 }
[tables.orders.columns]
o_totalprice = { type = "decimal", bounds = [0, 500000] }
o_orderdate = { type = "date", bounds = ["1992-01-01", "1998-12-31"], nullable = false }
[tables.lineitem]
source = "lineitem.parquet"
unit = { column = "l_orderkey", references = "orders.o_orderkey" }
caps = { rows = 160, groups = 160 }
[tables.lineitem.columns]
l_quantity = { type = "decimal", bounds = [0, 50] }
l_extendedprice = { type = "decimal", bounds = [0, 100000] }
l_discount = { type = "decimal", bounds = [0, 0.1] }
l_shipdate = { type = "date", bounds = ["1992-01-01", "1998-12-31"], nullable = false }
""" + "".join(
    f'[tables.{name}]\nsource = "{name}.parquet"\npublic = true\n' for name in ("nation", "region", "part", "supplier")
)

SOURCES = {"pums": ("pums", PUMS), "visits": ("sql_fixture", VISITS), "tpch": ("tpch_sf0.02", TPCH)}
TEXTS = {"pums": "age, income, pid, CAST(COLUMNS(* EXCLUDE (age, income, pid)) AS VARCHAR)", "tpch": "*"}
TEXTS["visits"] = """* REPLACE (LEAST(GREATEST(items, -500), 500) AS items, LEAST(GREATEST(spend, -500), 2000) AS spend,
                     LEAST(n_products, 100) AS n_products)"""


@contextlib.contextmanager
def opened(name: str, folder: Path) -> Iterator[tuple[cu.Curator, duckdb.DuckDBPyConnection]]:
    """Copy one reference schema into a folder; give a curator of it, and a plain DuckDB with the same rows."""
    from_, study = SOURCES[name]
    shutil.copytree(SHARED / "data" / from_, folder, dirs_exist_ok=True)  # a copy: a ledger leaves its marker beside them
    (folder / "study.toml").write_text(HEAD.format(name=name) + study, encoding="utf-8")
    with contextlib.closing(duckdb.connect()) as plain, cu.open(folder / "study.toml") as curator:
        for table in curator.study.tables:
            columns = TEXTS[name] if table.name in {"PUMS", "visits"} else "*"
            plain.execute(f"CREATE TABLE {table.name} AS SELECT {columns} FROM '{folder / table.source}'")
            plain.execute(f"CREATE TABLE raw_{table.name} AS SELECT * FROM '{folder / table.source}'")
        yield curator, plain


def entries_by_schema() -> dict[str, tuple[Callable[[Path], Any], list[dict[str, Any]]]]:
    """Return how each reference schema is opened, and its statements."""
    found = entries(REVIEW)
    return {
        name: (functools.partial(opened, name), [one for one in found if one["schema"] == name])
        for name in SOURCES
        if any(one["schema"] == name for one in found)
    }

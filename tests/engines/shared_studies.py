"""The reference schemas as studies, with their data: only where the reference material is present."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HEAD = """version = 1
name = "{name}"
budget = {{ epsilon = "1000", delta = "1e-3" }}
allow_large_delta = true
ledger = "{name}.ledger"
[engine]
worker = "inline"
"""

PUMS_COLUMNS = """age = { type = "integer", bounds = [0, 100] }
sex = { type = "string", values = ["0", "1"] NULLABLE }
educ = { type = "string", values = EDUCATION NULLABLE }
race = { type = "string", values = ["1", "2", "3", "4", "5", "6"] NULLABLE }
income = { type = "float", bounds = [0, 500000] }
married = { type = "string", values = ["0", "1"] NULLABLE }
pid = { type = "integer" }
"""

VISITS = """
[tables.users]
source = "{data}/sql_fixture/users.parquet"
unit = "user_id"
unique = true
[tables.users.columns]
tier = {{ type = "string", values = ["silver", "gold"], nullable = true }}
newsletter = {{ type = "boolean" }}
[tables.visits]
source = "{data}/sql_fixture/visits.parquet"
unit = "user_id"
caps = {{ rows = 20 }}
[tables.visits.columns]
items = {{ type = "integer", bounds = [-500, 500] }}
spend = {{ type = "float", bounds = [-500, 2000] }}
n_products = {{ type = "integer", bounds = [0, 100] }}
is_return = {{ type = "boolean" }}
days_since_last = {{ type = "integer", bounds = [0, 374], nullable = true }}
[tables.countries]
source = "{data}/sql_fixture/countries.parquet"
public = true
"""

TPCH = """
[tables.customer]
source = "{data}/tpch_sf0.02/customer.parquet"
unit = "c_custkey"
unique = true
[tables.customer.columns]
c_acctbal = {{ type = "decimal", bounds = [-1000, 10000] }}
[tables.orders]
source = "{data}/tpch_sf0.02/orders.parquet"
unit = {{ column = "o_custkey", references = "customer" }}
[tables.orders.columns]
o_totalprice = {{ type = "decimal", bounds = [0, 500000] }}
[tables.lineitem]
source = "{data}/tpch_sf0.02/lineitem.parquet"
unit = {{ column = "l_orderkey", references = "orders.o_orderkey" }}
[tables.lineitem.columns]
l_quantity = {{ type = "decimal", bounds = [0, 50] }}
l_extendedprice = {{ type = "decimal", bounds = [0, 100000] }}
l_discount = {{ type = "decimal", bounds = [0, 0.1] }}
l_tax = {{ type = "decimal", bounds = [0, 0.08] }}
l_returnflag = {{ type = "string", values = ["A", "N", "R"] }}
l_linestatus = {{ type = "string", values = ["F", "O"] }}
""" + "".join(
    f'[tables.{name}]\nsource = "{{data}}/tpch_sf0.02/{name}.parquet"\npublic = true\n'
    for name in ("nation", "region", "part", "supplier")
)

HOSTILE = """
[tables.people]
source = "people.parquet"
unit = "user_id"
unique = true
[tables.people.columns]
age = { type = "integer", bounds = [0, 120] }
income = { type = "float", bounds = [0, 200000], nullable = true }
[tables.visits]
source = "visits.parquet"
unit = "user_id"
caps = { rows = 10 }
[tables.visits.columns]
spent = { type = "float", bounds = [0, 500] }
"""


def written(name: str, folder: Path, shared: Path) -> Path:
    """Write the study of one reference schema, and its synthetic data where it has any; return its file."""
    data = folder / "data"  # a copy: the ledger of rows leaves its marker beside them
    for used in {"pums": ["pums"], "visits": ["sql_fixture"], "tpch": ["tpch_sf0.02"]}.get(name, []):
        shutil.copytree(shared / "data" / used, data / used)
    head = HEAD.format(name=name)
    if name == "pums":
        body = "".join(
            f'[tables.{table}]\nsource = "{data}/pums/{file}.csv"\nunit = "pid"\n{caps}\n[tables.{table}.columns]\n'
            + PUMS_COLUMNS.replace("EDUCATION", json.dumps([str(one) for one in range(1, 17)])).replace(
                " NULLABLE", ", nullable = true" if table == "PUMS_null" else ""
            )
            for table, file, caps in [
                ("PUMS", "PUMS_pid", "unique = true"),
                ("PUMS_dup", "PUMS_dup", "caps = { rows = 4 }"),
                ("PUMS_null", "PUMS_null", "caps = { rows = 4 }"),
            ]
        )
    elif name == "hostile":
        body = HOSTILE
        _people(folder)
    else:
        body = {"visits": VISITS, "tpch": TPCH}[name].format(data=data)
    path = folder / "study.toml"
    path.write_text(head + body, encoding="utf-8")
    return path


def _people(folder: Path) -> None:
    dice = np.random.default_rng(1)
    ids = np.arange(5000)
    cities = np.array(["Paris", "Lyon", "Nice", "東京", "Zzyzx"])
    people = {
        "user_id": ids,
        "age": dice.integers(0, 100, 5000),
        "city": cities[np.minimum(dice.geometric(0.5, 5000) - 1, 4)],
        "income": pa.array(dice.gamma(2, 20000, 5000), mask=dice.random(5000) < 0.05),
        "joined": pa.array((dice.integers(15000, 19000, 5000)).astype("datetime64[D]")),
    }
    pq.write_table(pa.table(people), folder / "people.parquet")
    visits = {
        "user_id": pa.array(dice.integers(0, 5000, 30000), mask=dice.random(30000) < 0.01),
        "visit_id": np.arange(30000),
        "place": cities[dice.integers(0, 5, 30000)],
        "spent": dice.gamma(2, 40, 30000),
        "at": pa.array(dice.integers(1_600_000_000, 1_700_000_000, 30000).astype("datetime64[s]")),
    }
    pq.write_table(pa.table(visits), folder / "visits.parquet")


def cases(shared: Path):
    """Return (schema, sql, expect, also_ok, why) of both reference corpora."""
    for text in (shared / "sql" / "cases.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(text)
        yield case["schema"], case["sql"], case["expect"], case["also_ok"], case["why"]
    for text in (shared / "security" / "hostile.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(text)
        yield "hostile", case["sql"], case["expect"], case["also_ok"], case["why"]

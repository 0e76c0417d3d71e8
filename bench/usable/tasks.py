"""Task U: fifteen questions on each of five data sets. Declared is who one unit is, ε = 3 and what the survey proposed.

Five of the fifteen are held out: they were written before anybody saw how curador does on them, and no rule was made by them.

whole      about a whole table
filtered   with a WHERE
joined     of several tables
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

EPSILON, DELTA = "3", "1e-7"
SPEND = 9
"""Percent of the budget for each question: ten of them, and the two surveys, are 92 %."""

SURVEYS = 2
"""Percent of the budget for the surveys of rows and of columns."""

SHARED = SPEND + SURVEYS / 10
"""Percent that a question in hindsight gets: it needs no survey."""

TIMES = 3
"""How often the surveys are bought again, each time on a new ledger."""

FOUND = 4
"""How often a question's own histogram is drawn again, for each survey."""

DRAWS = 8
"""How often the noise of an answer is drawn again, for each choice of caps."""

PEER_RUNS, PEER_SECONDS = 12, 20
"""How often a peer answers a question, bounds and all; no more once so many seconds are over, but three times at least."""

WHOLE, FILTERED, JOINED = "whole", "filtered", "joined"
MOST = {WHOLE: 2.0, "filtered and joined": 4.0}


@dataclass(frozen=True)
class Asked:
    """A question, its kind, and what it is called in the table.

    text   the same for the product and for the truth; its last column is what is measured, those before it are keys
    """

    name: str
    kind: str
    text: str


@dataclass(frozen=True)
class DataSet:
    """A data set: its files, its study, and whose proposed bounds its owner takes over: quantities, not ids."""

    name: str
    folder: str
    files: dict[str, str]
    tables: dict[str, dict[str, Any]]
    measures: dict[str, tuple[str, ...]]
    unit: str
    questions: tuple[Asked, ...]
    held: tuple[Asked, ...] = ()
    """Questions by which no rule of curador was chosen."""
    real: dict[str, str] = field(default_factory=dict[str, str])
    """Which rows of a table have a unit at all: the truth is of those."""


RETAIL = DataSet(
    "Online Retail",
    "online_retail",
    {"sales": "online_retail.parquet"},
    {"sales": {"unit": "customer_id"}},
    {"sales": ("quantity", "unit_price")},
    "customer",
    (
        Asked("rows", WHOLE, "SELECT COUNT(*) AS n FROM sales"),
        Asked("customers", WHOLE, "SELECT COUNT(DISTINCT customer_id) AS n FROM sales"),
        Asked("pieces sold", WHOLE, "SELECT SUM(quantity) AS n FROM sales"),
        Asked("mean price", WHOLE, "SELECT AVG(unit_price) AS n FROM sales"),
        Asked("turnover", WHOLE, "SELECT SUM(quantity * unit_price) AS n FROM sales"),
        Asked("invoices", WHOLE, "SELECT COUNT(DISTINCT invoice_no) AS n FROM sales"),
        Asked("rows by country", WHOLE, "SELECT country, COUNT(*) AS n FROM sales GROUP BY country"),
        Asked(
            "customers by article",
            WHOLE,
            "SELECT stock_code, COUNT(DISTINCT customer_id) AS n FROM sales GROUP BY stock_code",
        ),
        Asked("rows from Germany", FILTERED, "SELECT COUNT(*) AS n FROM sales WHERE country = 'Germany'"),
        Asked("pieces returned", FILTERED, "SELECT SUM(quantity) AS n FROM sales WHERE quantity < 0"),
    ),
    (
        Asked("customers by country", WHOLE, "SELECT country, COUNT(DISTINCT customer_id) AS n FROM sales GROUP BY country"),
        Asked("pieces by country", WHOLE, "SELECT country, SUM(quantity) AS n FROM sales GROUP BY country"),
        Asked("articles sold", WHOLE, "SELECT COUNT(DISTINCT stock_code) AS n FROM sales"),
        Asked(
            "turnover of December",
            FILTERED,
            "SELECT SUM(quantity * unit_price) AS n FROM sales WHERE invoice_ts < TIMESTAMP '2011-01-01 00:00:00'",
        ),
        Asked("mean quantity in France", FILTERED, "SELECT AVG(quantity) AS n FROM sales WHERE country = 'France'"),
    ),
    {"sales": "customer_id IS NOT NULL"},
)

TAXI = DataSet(
    "NYC taxi",
    "nyc_taxi",
    {"trips": "yellow_2024-09-28.parquet"},
    {"trips": {"unit": "row"}},
    {"trips": ("passenger_count", "trip_distance", "fare_amount", "tip_amount", "tolls_amount", "total_amount")},
    "trip",
    (
        Asked("trips", WHOLE, "SELECT COUNT(*) AS n FROM trips"),
        Asked("fares", WHOLE, "SELECT SUM(fare_amount) AS n FROM trips"),
        Asked("mean distance", WHOLE, "SELECT AVG(trip_distance) AS n FROM trips"),
        Asked("mean tip", WHOLE, "SELECT AVG(tip_amount) AS n FROM trips"),
        Asked("trips by zone", WHOLE, "SELECT PULocationID, COUNT(*) AS n FROM trips GROUP BY PULocationID"),
        Asked("totals by payment", WHOLE, "SELECT payment_type, SUM(total_amount) AS n FROM trips GROUP BY payment_type"),
        Asked("passengers", WHOLE, "SELECT SUM(passenger_count) AS n FROM trips"),
        Asked("trips from JFK", FILTERED, "SELECT COUNT(*) AS n FROM trips WHERE PULocationID = 132"),
        Asked("mean fare from JFK", FILTERED, "SELECT AVG(fare_amount) AS n FROM trips WHERE PULocationID = 132"),
        Asked("tips paid by card", FILTERED, "SELECT SUM(tip_amount) AS n FROM trips WHERE payment_type = 1"),
    ),
    (
        Asked("tolls", WHOLE, "SELECT SUM(tolls_amount) AS n FROM trips"),
        Asked("mean total by vendor", WHOLE, "SELECT VendorID, AVG(total_amount) AS n FROM trips GROUP BY VendorID"),
        Asked("trips to each zone", WHOLE, "SELECT DOLocationID, COUNT(*) AS n FROM trips GROUP BY DOLocationID"),
        Asked("long trips", FILTERED, "SELECT COUNT(*) AS n FROM trips WHERE trip_distance > 10"),
        Asked(
            "cash fares by zone",
            FILTERED,
            "SELECT PULocationID, SUM(fare_amount) AS n FROM trips WHERE payment_type = 2 GROUP BY PULocationID",
        ),
    ),
)

_PUMS = {name: {"type": "integer"} for name in ("age", "sex", "educ", "race", "married", "pid")} | {
    "income": {"type": "float"}
}
PUMS = DataSet(
    "PUMS",
    "pums",
    {"people": "PUMS_pid.csv"},
    {"people": {"unit": "pid", "columns": _PUMS}},
    {"people": ("age", "income", "educ")},
    "person",
    (
        Asked("people", WHOLE, "SELECT COUNT(*) AS n FROM people"),
        Asked("mean age", WHOLE, "SELECT AVG(age) AS n FROM people"),
        Asked("incomes", WHOLE, "SELECT SUM(income) AS n FROM people"),
        Asked("mean income", WHOLE, "SELECT AVG(income) AS n FROM people"),
        Asked("people by race", WHOLE, "SELECT race, COUNT(*) AS n FROM people GROUP BY race"),
        Asked("incomes by sex", WHOLE, "SELECT sex, SUM(income) AS n FROM people GROUP BY sex"),
        Asked("mean education by marriage", WHOLE, "SELECT married, AVG(educ) AS n FROM people GROUP BY married"),
        Asked("married", FILTERED, "SELECT COUNT(*) AS n FROM people WHERE married = 1"),
        Asked("income over 65", FILTERED, "SELECT SUM(income) AS n FROM people WHERE age > 65"),
        Asked("mean age of graduates", FILTERED, "SELECT AVG(age) AS n FROM people WHERE educ >= 13"),
    ),
    (
        Asked("people by age", WHOLE, "SELECT age, COUNT(*) AS n FROM people GROUP BY age"),
        Asked("mean income by education", WHOLE, "SELECT educ, AVG(income) AS n FROM people GROUP BY educ"),
        Asked("people without income", FILTERED, "SELECT COUNT(*) AS n FROM people WHERE income = 0"),
        Asked("income of the married", FILTERED, "SELECT SUM(income) AS n FROM people WHERE married = 1 AND sex = 1"),
        Asked("mean income of graduates", FILTERED, "SELECT AVG(income) AS n FROM people WHERE educ >= 13"),
    ),
)

MSWEB = DataSet(
    "msweb",
    "msweb",
    {"visits": "msweb_visits.parquet", "areas": "msweb_vroots.parquet"},
    {"visits": {"unit": "user_id"}, "areas": {"public": True, "key": ["vroot_id"]}},
    {},
    "user",
    (
        Asked("visits", WHOLE, "SELECT COUNT(*) AS n FROM visits"),
        Asked("users", WHOLE, "SELECT COUNT(DISTINCT user_id) AS n FROM visits"),
        Asked("areas seen", WHOLE, "SELECT COUNT(DISTINCT vroot_id) AS n FROM visits"),
        Asked("visits by area", WHOLE, "SELECT vroot_id, COUNT(*) AS n FROM visits GROUP BY vroot_id"),
        Asked("users by area", WHOLE, "SELECT vroot_id, COUNT(DISTINCT user_id) AS n FROM visits GROUP BY vroot_id"),
        Asked("visits to first areas", FILTERED, "SELECT COUNT(*) AS n FROM visits WHERE vroot_id < 1010"),
        Asked("users of 1008", FILTERED, "SELECT COUNT(DISTINCT user_id) AS n FROM visits WHERE vroot_id = 1008"),
        Asked("late areas", FILTERED, "SELECT vroot_id, COUNT(*) AS n FROM visits WHERE vroot_id > 1040 GROUP BY vroot_id"),
        Asked(
            "visits by title",
            JOINED,
            "SELECT a.title, COUNT(*) AS n FROM visits v JOIN areas a ON v.vroot_id = a.vroot_id GROUP BY a.title",
        ),
        Asked(
            "visits to support",
            JOINED,
            "SELECT COUNT(*) AS n FROM visits v JOIN areas a ON v.vroot_id = a.vroot_id WHERE a.title LIKE '%Support%'",
        ),
    ),
    (
        Asked("users of first areas", FILTERED, "SELECT COUNT(DISTINCT user_id) AS n FROM visits WHERE vroot_id < 1010"),
        Asked("late areas seen", FILTERED, "SELECT COUNT(DISTINCT vroot_id) AS n FROM visits WHERE vroot_id >= 1100"),
        Asked(
            "users by title",
            JOINED,
            "SELECT a.title, COUNT(DISTINCT v.user_id) AS n FROM visits v JOIN areas a ON v.vroot_id = a.vroot_id"
            " GROUP BY a.title",
        ),
        Asked(
            "visits to Windows",
            JOINED,
            "SELECT COUNT(*) AS n FROM visits v JOIN areas a ON v.vroot_id = a.vroot_id WHERE a.title LIKE '%Windows%'",
        ),
        Asked(
            "users of free downloads",
            JOINED,
            "SELECT COUNT(DISTINCT v.user_id) AS n FROM visits v JOIN areas a ON v.vroot_id = a.vroot_id"
            " WHERE a.title LIKE '%Free%'",
        ),
    ),
)

TPCH = DataSet(
    "TPC-H",
    "tpch_sf0.02",
    {name: f"{name}.parquet" for name in ("customer", "orders", "lineitem", "nation")},
    {
        "customer": {"unit": "c_custkey", "unique": True},
        "orders": {"unit": {"column": "o_custkey", "references": "customer"}},
        "lineitem": {"unit": {"column": "l_orderkey", "references": "orders.o_orderkey"}},
        "nation": {"public": True, "key": ["n_nationkey"]},
    },
    {
        "customer": ("c_acctbal",),
        "orders": ("o_totalprice",),
        "lineitem": ("l_quantity", "l_extendedprice", "l_discount"),
    },
    "customer",
    (
        Asked("orders", WHOLE, "SELECT COUNT(*) AS n FROM orders"),
        Asked("lines", WHOLE, "SELECT COUNT(*) AS n FROM lineitem"),
        Asked("value of orders", WHOLE, "SELECT SUM(o_totalprice) AS n FROM orders"),
        Asked("mean quantity", WHOLE, "SELECT AVG(l_quantity) AS n FROM lineitem"),
        Asked("orders by priority", WHOLE, "SELECT o_orderpriority, COUNT(*) AS n FROM orders GROUP BY o_orderpriority"),
        Asked("quantity by mode", WHOLE, "SELECT l_shipmode, SUM(l_quantity) AS n FROM lineitem GROUP BY l_shipmode"),
        Asked("urgent orders", FILTERED, "SELECT COUNT(*) AS n FROM orders WHERE o_orderpriority = '1-URGENT'"),
        Asked(
            "revenue of 1994",
            FILTERED,
            "SELECT SUM(l_extendedprice * l_discount) AS n FROM lineitem"
            " WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' AND l_quantity < 24",
        ),
        Asked(
            "orders by nation",
            JOINED,
            "SELECT n.n_name, COUNT(*) AS n FROM customer c JOIN orders o ON c.c_custkey = o.o_custkey"
            " JOIN nation n ON c.c_nationkey = n.n_nationkey GROUP BY n.n_name",
        ),
        Asked(
            "lines of urgent orders",
            JOINED,
            "SELECT COUNT(*) AS n FROM orders o JOIN lineitem l ON o.o_orderkey = l.l_orderkey"
            " WHERE o.o_orderpriority = '1-URGENT'",
        ),
    ),
    (
        Asked("balances", WHOLE, "SELECT SUM(c_acctbal) AS n FROM customer"),
        Asked("customers by segment", WHOLE, "SELECT c_mktsegment, COUNT(*) AS n FROM customer GROUP BY c_mktsegment"),
        Asked("lines returned", FILTERED, "SELECT COUNT(*) AS n FROM lineitem WHERE l_returnflag = 'R'"),
        Asked(
            "mean order since 1997",
            FILTERED,
            "SELECT AVG(o_totalprice) AS n FROM orders WHERE o_orderdate >= DATE '1997-01-01'",
        ),
        Asked(
            "value of orders by segment",
            JOINED,
            "SELECT c.c_mktsegment, SUM(o.o_totalprice) AS n FROM customer c JOIN orders o ON c.c_custkey = o.o_custkey"
            " GROUP BY c.c_mktsegment",
        ),
    ),
)

SETS = (RETAIL, TAXI, PUMS, MSWEB, TPCH)

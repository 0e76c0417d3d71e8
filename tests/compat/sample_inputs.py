"""What samples are made from: losses, studies with their tables, questions, fits, protocols. Nothing here is drawn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from curador import learn, local
from curador.curator.asking import PricedQuestion
from curador.curator.options import QuestionOptions
from curador.curator.price import price_at
from curador.curator.session import Session
from curador.engines.base import PrivateSource
from curador.engines.duckdb.schema import describe
from curador.ledger.limits import Limits
from curador.ledger.register import SeenSource
from curador.plan.counting import with_caps
from curador.privacy import losses as kinds
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE
from curador.privacy.loss import Loss
from curador.study.model import Caps, Study


def losses() -> dict[str, Loss]:
    """Return a loss of every kind: plain, with and without neighbours, subsampled, towards groups, composed."""
    added = {"adjacency": ADD_OR_REMOVE_ONE}
    plain: dict[str, Loss] = {
        "gaussian": kinds.GaussianLoss(mu="0.3"),
        "gaussian of neighbours": kinds.GaussianLoss(mu="1/3", **added),
        "discrete gaussian": kinds.DiscreteGaussianLoss(sigma2="7/2", sensitivity=2, **added),
        "discrete gaussian vector": kinds.DiscreteGaussianVectorLoss(sigma2=9, sensitivity_squared=5, dimension=3, **added),
        "laplace": kinds.LaplaceLoss(epsilon="0.1", **added),
        "discrete laplace": kinds.DiscreteLaplaceLoss(scale="10/3", sensitivity=4, adjacency=REPLACE_ONE),
        "randomized response": kinds.RandomizedResponseLoss(epsilon=1, categories=5, adjacency=REPLACE_ONE),
        "bounded range": kinds.BoundedRange(epsilon="0.25", **added),
        "pure": kinds.Pure(epsilon="1/7"),
        "approximate": kinds.Approx(epsilon="0.5", delta="1e-9", **added),
        "concentrated": kinds.Concentrated(rho="1e-3", delta="1e-12"),
        "key selection": kinds.KeySelection(sigma2="123/4", sensitivity=8, keys=3, delta="1e-8", **added),
        "finite": kinds.Finite(p=["1/4", "3/4"], q=["1/2", "1/2"], **added),
        "shuffled": kinds.Shuffled(epsilon="2", reports=10_000),
        "shuffled with a variation": kinds.Shuffled(epsilon="2", reports=10_000, variation="1/3"),
    }
    made: dict[str, Loss] = {
        "subsampled by coins": plain["gaussian of neighbours"].subsample(rate="0.01"),
        "subsampled without replacement": kinds.GaussianLoss(mu=1, adjacency=REPLACE_ONE).subsample(
            rate="1/8", scheme="without_replacement"
        ),
        "towards a group, plain": plain["finite"].group(3),
        "towards a group": plain["gaussian of neighbours"].subsample(rate="0.01").group(3),
        "composed": 3 * plain["laplace"] + plain["discrete gaussian"] + 2 * (plain["bounded range"] + plain["laplace"]),
        "composed of what was subsampled": 100 * plain["gaussian of neighbours"].subsample(rate="0.01") + plain["pure"],
        "composed of nothing": 0 * plain["pure"],
    }
    return {**plain, **made}


# ---- studies ------------------------------------------------------------------------------------------------------------

_CITIES = ("Lima", "Quito", "Cuzco")


def _visits() -> str:
    lines = ["user_id,age,spent,city,shop,day,seen,member"]
    for place in range(240):
        user, city = place % 60, _CITIES[place % 7 % 3]
        age, spent = 18 + user, (37 * place) % 100 + place % 4 * 0.25
        day = f"2024-{1 + place % 12:02d}-{1 + place % 28:02d}"
        rest = f"{day},{day} {place % 24:02d}:30:00,{'true' if user % 2 else 'false'}"
        lines.append(f"{user},{age},{spent},{city},{'north' if user % 3 else 'south'},{rest}")
    return "\n".join(lines) + "\n"


TABLES = {
    "visits.csv": _visits(),
    "people.csv": "user_id,plan,height\n"
    + "".join(f"{one},{'basic' if one % 4 else 'plus'},{150 + one % 50}\n" for one in range(60)),
    "cities.csv": "city,country\nLima,Peru\nQuito,Ecuador\nCuzco,Peru\n",
    "orders.csv": "order_id,user_id\n" + "".join(f"{one},{one % 60}\n" for one in range(90)),
    "lines.csv": "order_id,price\n" + "".join(f"{one % 90},{one % 20}\n" for one in range(180)),
}

_CAPS = "caps = { rows = 5, groups = 3 }\ncaps_max = { rows = 20 }\n"
_VISITS = """
[tables.visits]
source = "visits.csv"
unit = "user_id"
caps = { rows = 5, groups = 3 }
caps_max = { rows = 20 }

[tables.visits.columns]
user_id = { type = "integer" }
age = { type = "integer", bounds = [0, 120], nullable = false }
spent = { type = "float", bounds = [0, 100] }
city = { type = "string", values = ["Lima", "Quito", "Cuzco"], nullable = false }
shop = { type = "string", length = 10 }
day = { type = "date", bounds = ["2024-01-01", "2024-12-31"] }
seen = { type = "timestamp" }
member = { type = "boolean" }
"""

_OTHERS = """
[tables.people]
source = "people.csv"
unit = "user_id"
unique = true

[tables.people.columns]
user_id = { type = "integer" }
plan = { type = "string", values = ["basic", "plus"], nullable = true }
height = { type = "decimal", bounds = ["0.5", 250] }

[tables.cities]
source = "cities.csv"
public = true
key = ["city"]
"""

_ENGINE = """
[engine]
worker = "inline"
threads = 1
"""

STUDIES = {
    "clinic.toml": f"""version = 1
name = "clinic"
budget = {{ epsilon = "3", delta = "1e-6" }}
max_units = 10_000
ledger = "clinic.ledger"

[unit]
name = "patient"
{_VISITS}{_OTHERS}
[analysts]
ana = {{ share = "20%" }}
eva = {{ share = "50%", tables = ["visits"], train = true }}
{_ENGINE}""",
    "pure.toml": f"""version = 1
name = "pure"
budget = {{ epsilon = "5/2" }}
adjacency = "replace_one"
max_units = 1000
ledger = "pure.ledger"
{_VISITS}
[analysts]
ana = {{ share = "20%" }}
{_ENGINE}""",
    "laplace.toml": f"""version = 1
name = "laplace"
budget = {{ epsilon = 1, delta = "1e-9", delta_keys = "1e-10" }}
adjacency = "replace_one"
max_units = 1000
ledger = "laplace.ledger"
{_VISITS}{_OTHERS}{_ENGINE}""",
    "paths.toml": f"""version = 1
name = "paths"
budget = {{ epsilon = "0.7", delta = "1e-7", delta_keys = 0 }}
max_units = 100_000
ledger = "paths.ledger"

[tables.orders]
source = "orders.csv"
unit = {{ column = "user_id", references = "people" }}

[tables.orders.columns]
order_id = {{ type = "integer" }}
user_id = {{ type = "integer" }}

[tables.lines]
source = "lines.csv"
unit = {{ column = "order_id", references = "orders.order_id" }}
caps = {{ rows = 8, rows_per_group = 2 }}

[tables.lines.columns]
order_id = {{ type = "integer" }}
price = {{ type = "decimal", values = ["0.5", 1, "7/1"] }}
{_OTHERS}{_ENGINE}""",
    "surveyed.toml": f"""version = 1
name = "surveyed"
budget = {{ epsilon = "3", delta = "1e-6" }}
max_units = 10_000
ledger = "surveyed.ledger"

[unit]
name = "patient"
{_VISITS.replace(_CAPS, "")}{_OTHERS}
[analysts]
ana = {{ share = "50%" }}
{_ENGINE}""",
    "rows.toml": f"""version = 1
name = "rows"
budget = {{ epsilon = 1 }}
max_units = 1000
ledger = "rows.ledger"

[tables.visits]
source = "visits.csv"
unit = "row"

[tables.visits.columns]
day = {{ type = "date", values = ["2024-01-01", "2024-02-02"] }}
member = {{ type = "boolean", values = [true, false] }}
seen = {{ type = "timestamp", bounds = ["2024-01-01 00:00:00", "2024-12-31 23:59:59.5"] }}
{_ENGINE}""",
}


# ---- questions ----------------------------------------------------------------------------------------------------------

_BY_USER = "SELECT user_id, city, COUNT(*) FILTER (WHERE member) AS n, MAX(spent) AS most FROM visits GROUP BY user_id, city"
_PLACE = "ROW_NUMBER() OVER (PARTITION BY user_id, city ORDER BY spent DESC)"
_PLACED = f"SELECT user_id, spent, {_PLACE} AS place FROM visits"
_BOTH = "SELECT user_id, age AS x FROM visits UNION ALL SELECT user_id, height AS x FROM people"
_LATER = "seen >= TIMESTAMP '2024-03-01 12:00:00' AND member AND spent * 1.25 > 10.5"
_CONDITION = f"{_LATER} AND shop IN ('north', 'west') AND COALESCE(age, 0) <> 7"
QUESTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("clinic.toml", "SELECT COUNT(*) AS n FROM visits", {"spend": "5%"}),
    (
        "clinic.toml",
        "SELECT city, COUNT(*) AS n, AVG(spent) AS mean, SUM(age) AS total FROM visits GROUP BY city",
        {"spend": "5%"},
    ),
    (
        "clinic.toml",
        "SELECT shop, COUNT(*) AS n, COUNT(DISTINCT user_id) AS people FROM visits GROUP BY shop",
        {"spend": "2%"},
    ),
    ("clinic.toml", "SELECT MEDIAN(spent) AS middle, MAX(age) AS oldest FROM visits", {"rho": "0.001"}),
    (
        "clinic.toml",
        "SELECT VAR_SAMP(spent) AS v, STDDEV_POP(age) AS s FROM visits WHERE day < DATE '2024-07-01'",
        {"spend": "5%"},
    ),
    (
        "clinic.toml",
        "SELECT c.country, COUNT(*) AS n FROM visits v JOIN cities c ON v.city = c.city GROUP BY c.country",
        {"spend": "5%"},
    ),
    (
        "clinic.toml",
        "SELECT plan, SUM(spent) AS s FROM visits v LEFT JOIN people p ON v.user_id = p.user_id AND height > 9 GROUP BY plan",
        {"spend": "5%"},
    ),
    (
        "clinic.toml",
        f"SELECT city, AVG(LEAST(n, 4)) AS visits, COUNT(*) AS k FROM ({_BY_USER}) GROUP BY city",
        {"spend": "5%"},
    ),
    (
        "clinic.toml",
        f"SELECT COUNT(*) AS n FROM ({_PLACED}) WHERE place <= 2",
        {"spend": "5%"},
    ),
    ("clinic.toml", "SELECT COUNT(*) AS n FROM (SELECT DISTINCT user_id, city FROM visits)", {"spend": "5%"}),
    (
        "clinic.toml",
        f"SELECT COUNT(*) AS n FROM ({_BOTH}) WHERE x > 40",
        {"spend": "5%"},
    ),
    (
        "clinic.toml",
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city UNION ALL SELECT plan, COUNT(*) AS n FROM people GROUP BY plan",
        {"spend": "5%"},
    ),
    (
        "clinic.toml",
        f"SELECT COUNT(*) AS n FROM visits WHERE {_CONDITION}",
        {"epsilon": "0.1"},
    ),
    ("clinic.toml", "SELECT COUNT(DISTINCT city) AS cities, AVG(spent) AS mean FROM visits", {"spend": "5%", "bias": True}),
    (
        "clinic.toml",
        "SELECT city, AVG(spent) AS mean FROM visits GROUP BY city",
        {"spend": "5%", "caps": {"rows": 8}, "bounds": {"mean": [0, 50]}},
    ),
    (
        "clinic.toml",
        "SELECT CAST(EXTRACT(month FROM day) AS INTEGER) AS m, COUNT(*) AS n FROM visits GROUP BY m",
        {"spend": "5%"},
    ),
    (
        "clinic.toml",
        "SELECT city, COUNT(*) AS n, SUM(spent) AS s FROM visits GROUP BY city",
        {"spend": "5%", "weights": {"n": 3}},
    ),
    ("pure.toml", "SELECT city, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY city", {"spend": "5%"}),
    ("pure.toml", "SELECT member, QUANTILE_CONT(spent, 0.25) AS q FROM visits GROUP BY member", {"epsilon": "0.1"}),
    ("laplace.toml", "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop", {"epsilon": "0.1"}),
    ("laplace.toml", "SELECT shop, member, SUM(age) AS s FROM visits GROUP BY shop, member", {"rho": "0.001"}),
    ("paths.toml", "SELECT price, COUNT(*) AS n FROM lines GROUP BY price", {"spend": "5%"}),
    ("rows.toml", "SELECT day, COUNT(*) AS n FROM visits GROUP BY day", {"spend": "5%"}),
)


def priced(study: Study, question: str, options: dict[str, Any], version: int = 1, *, older: bool = False) -> PricedQuestion:
    """Return what an owner's question about the study is priced at; no row is read and no ledger made."""
    fixed = {"adjacency": study.adjacency, "unit": study.unit_name, "max_units": study.max_units, "owners": study.owners}
    limits = Limits.create(study.budget, **fixed)
    ledger = SimpleNamespace(limits=limits, stored=lambda *_: None, surveyed=lambda *_: None, data_version=version)
    engine = SimpleNamespace(
        schema=describe(study), version=version, compile=lambda blocks: [(block, None) for block in blocks]
    )
    meant = {table.name: Caps(rows=10, groups=4) for table in study.tables if table.surveyed}  # by whoever wrote the samples
    session = Session(study, cast("Any", ledger), cast("Any", engine), trial=with_caps(engine.schema, meant))
    return price_at(session, question, QuestionOptions(**options), older=older)


# ---- what the ledgers were asked ----------------------------------------------------------------------------------------

_BIASED = {"spend": "5%", "bias": True}
ASKED: dict[str, tuple[tuple[str | None, str, dict[str, Any]], ...]] = {
    "clinic": (
        (None, "SELECT COUNT(*) AS n FROM visits", {"spend": "1%"}),
        (None, "SELECT city, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY city", {"spend": "5%"}),
        ("ana", "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop", {"spend": "20%"}),
        ("eva", "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop", {"epsilon": "0.05"}),
        ("eva", "SELECT MEDIAN(spent) AS middle FROM visits", {"spend": "5%"}),
        ("eva", "SELECT VAR_POP(age) AS v, day > DATE '2024-06-30' AS late FROM visits GROUP BY late", {"spend": "5%"}),
        (None, "SELECT COUNT(DISTINCT city) AS c FROM visits", {"spend": "5%", "bias": True}),
        (None, "select avg(spent) as m, city, count(*) as k from visits group by city", {"spend": "5%"}),
    ),
    "pure": (
        (None, "SELECT city, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY city", {"spend": "5%"}),
        ("ana", "SELECT MEDIAN(spent) AS middle FROM visits", {"epsilon": "0.1"}),
        (None, "SELECT city AS here, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY here", {"spend": "5%"}),
    ),
    "surveyed": (
        (None, "SELECT COUNT(*) AS n FROM visits", {"spend": "5%"}),
        ("ana", "SELECT COUNT(*) AS n FROM visits WHERE age > 30", {"spend": "10%"}),
        ("ana", "SELECT SUM(spent) AS s FROM visits WHERE age > 30", {"spend": "10%"}),
        (None, "SELECT COUNT(*) AS k FROM visits WHERE age > 30", {"spend": "5%"}),
        (None, "SELECT shop, COUNT(*) AS n FROM visits WHERE member GROUP BY shop", {"epsilon": "0.1"}),
        (None, "SELECT plan, SUM(spent) AS s FROM visits v JOIN people p ON v.user_id = p.user_id GROUP BY plan", _BIASED),
        ("ana", "SELECT COUNT(*) AS n FROM visits WHERE spent > 50", {"accuracy": {"n": 5000}, "caps": "find"}),
        (None, "SELECT COUNT(*) AS n FROM people", {"spend": "5%"}),
    ),
}
READ = {
    "clinic": ("visits.csv", "people.csv", "cities.csv"),
    "pure": ("visits.csv",),
    "surveyed": ("visits.csv", "people.csv", "cities.csv"),
}
"""The tables that lie beside each ledger."""

KINDS = {
    "clinic": {"created", "reserved", "committed", "failed", "voided", "served", "refreshed", "reopened"},
    "pure": {"created", "reserved", "committed", "failed", "voided", "served", "reopened"},
    "surveyed": {"created", "reserved", "committed", "failed", "voided", "served", "reopened"},
}
"""Which kinds of entries each ledger holds at least."""

KINDS_SINCE_2 = {"surveyed", "declared", "joined"}
"""Kinds that ledgers hold as well whose samples were made since."""


def registered():
    """Sources of two ledgers of a register."""
    by_file = SeenSource(PrivateSource("visits", "column user_id", "/srv/shop/visits.csv"), 1, 2, 300, 4, "a" * 64)
    inside = SeenSource(PrivateSource("people", "row", "/srv/shop/shop.duckdb", "main.people"), 1, 3, 500, 6, "b" * 64)
    server = SeenSource(PrivateSource("stays", "column user_id", "server:5432/shop", "public.stays"))
    return {"shop": [by_file, inside], "households": [by_file, server]}


DECLARED = {"study": "other", "declarations": {"tables": {"visits": {"caps": {"rows": 20}}}}, "changed": ["caps"]}
JOINED = {"study": "other", "ledger": None, "unit": "person"}
"""What a declared and a joined entry say."""

FIT = {"epsilon": "0.2", "delta": "1e-6", "bounds_X": (0, 120), "bounds_y": (0, 100), "n_nominal": 60}
"""The parameters of the fit in the first ledger, whose budget has a delta."""


# ---- models and protocols -----------------------------------------------------------------------------------------------

_COST = {"epsilon": 1, "delta": "1e-6"}


def models() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return estimators with tables that are always the same."""
    draw = np.random.default_rng(11)
    table, left, right = draw.normal(size=(60, 4)), draw.normal(size=(80, 3)), draw.normal(size=(80, 2))
    numbers = table @ [1.0, -1.0, 0.5, 0.0]
    rated = np.column_stack([np.arange(80) % 20, draw.permutation(80) % 6, draw.integers(1, 6, size=80)]).astype(float)
    fixed = {"rating_range": (1, 5), "items": 6, "n_nominal": 20, "ratings_per_user": 4}
    paired = {"adjacency": "add_or_remove_one", "n_nominal": 80}
    return {
        "pca": (learn.PrivatePCA(2, n_nominal=60, **_COST), (table,)),
        "linear": (learn.PrivateLinearRegression(bounds_X=(-3, 3), bounds_y=(-5, 5), **_COST), (table, numbers)),
        "logistic": (
            learn.PrivateLogisticRegression(bounds_X=(-3, 3), classes=(0, 1), **_COST),
            (table, (numbers > 0).astype(int)),
        ),
        "kmeans": (learn.PrivateKMeans(n_clusters=2, bounds=(-3, 3), **_COST), (table,)),
        "nuclear": (learn.PrivateNuclearRegressor(**paired, **_COST), (left, right, left[:, 0])),
        "nuclear-with-factors": (
            learn.PrivateNuclearRegressor(matrix_free=True, solver="frank_wolfe", **paired, **_COST),
            (left, right, left[:, 0]),
        ),
        "recommender": (learn.PrivateRecommender(epsilon=50, delta="1e-6", **fixed), (rated,)),
        "recommender-by-steps": (learn.PrivateRecommender(epsilon=50, delta="1e-6", method="frank_wolfe", **fixed), (rated,)),
    }


def protocols() -> dict[str, tuple[Any, list[Any]]]:
    """Return a protocol of every kind with the values that some devices report."""
    places, hours = [0, 1, 1, 2, 3, 0, 1, 2] * 4, [7.5, 8, 3, 11.25] * 8
    means = {"lower": 0, "upper": 24, "epsilon": "1"}
    return {
        "direct": (local.Direct(["bus", "bike", "walk", "car"], epsilon=2), places),
        "hadamard": (local.Hadamard(4, epsilon="1/2"), places),
        "hashing": (local.Hashing(10, epsilon=1), places),
        "subset": (local.Subset(6, epsilon=1), places),
        "unary": (local.Unary(4, epsilon=1), places),
        "unary-symmetric": (local.Unary(4, epsilon=1, kind="symmetric"), places),
        "rappor": (local.Rappor(4, epsilon_forever=2, epsilon_once=1, values=4), places),
        "laplace-mean": (local.LaplaceMean(**means), hours),
        "duchi-mean": (local.DuchiMean(**means), hours),
        "piecewise-mean": (local.PiecewiseMean(**means), hours),
        "hybrid-mean": (local.HybridMean(**means, steps=1 << 20), hours),
        "heavy-hitters-of-texts": (
            local.HeavyHitters(epsilon=4, length=3, start=8, hashes=16, salt="day 1"),
            ["abc", "xyz"] * 16,
        ),
        "heavy-hitters-of-numbers": (local.HeavyHitters(epsilon=4, bits=20, most=16), [5, 1_000_000] * 16),
    }


def said(estimate: Any) -> list[float]:
    """Return the numbers of an estimate."""
    return [float(one) for one in np.atleast_1d(estimate.counts if hasattr(estimate, "counts") else estimate.mean)]


SERVER = "postgresql://visits_writer@db.example/studies?schema=visits"
"""Where a ledger may be kept."""


# ---- a report -----------------------------------------------------------------------------------------------------------

AUDIT: dict[str, Any] = {
    "passed": True,
    "when": "2031-04-01T10:00:00+00:00",
    "questions_asked": 3,
    "purchases_not_replayed": 1,
    "neighbours": 3,
    "canaries": 1000,
    "real_rows": {"replay_holds": True, "canaries_hold": True},
    "made_up_rows": {"replay_holds": True, "canaries_hold": True},
}
"""What an audit of a study printed, as far as a report tells it."""

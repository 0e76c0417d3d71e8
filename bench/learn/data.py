"""The data of task L: made-up sets, the same on every machine, scikit-learn's digits, and reference tables if there are any.

Tables are read from the folder that CURADOR_SHARED names, and put as arrays into `.bench/data/learn/`, from where every
environment reads them. What is not there is left out. Bounds and centres are declared here, as a person who has not seen the
data would: they are never computed from rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from learn import scores, tasks

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = ROOT / ".bench" / "data" / "learn"
SEED = 20_260_101

DIGITS_CENTRE = (  # a declared mean image, in whole grey levels of 0 to 16
    "0 0 5 12 12 6 1 0 "
    "0 2 10 12 10 8 2 0 "
    "0 3 10 7 7 8 2 0 "
    "0 2 9 9 10 8 2 0 "
    "0 2 8 9 10 9 3 0 "
    "0 2 7 7 8 8 3 0 "
    "0 1 8 10 9 9 4 0 "
    "0 0 6 12 12 7 2 0"
)
ADULT_BOUNDS = {
    "age": (17, 90),
    "education_num": (1, 16),
    "hours_per_week": (0, 100),
    "capital_gain": (0, 20_000),
    "capital_loss": (0, 4_500),
    "fnlwgt": (0, 1_000_000),
}
ADULT_WIDTHS = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 4_500),
    "hours_per_week": (1, 99),
}
ADULT_FEATURES = ("age", "education_num", "hours_per_week", "capital_gain", "capital_loss", "male", "married")
HOUSING_BOUNDS = {
    "longitude": (-125, -114),
    "latitude": (32, 42),
    "housing_median_age": (0, 52),
    "total_rooms": (0, 12_000),
    "total_bedrooms": (0, 2_500),
    "population": (0, 6_000),
    "households": (0, 2_000),
    "median_income": (0, 15),
    "median_house_value": (0, 500_001),
}
PUMS_BOUNDS = {"age": (0, 100), "sex": (0, 1), "educ": (1, 16), "race": (1, 6), "married": (0, 1), "income": (0, 500_000)}


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to learn from and rows to judge by, with what is declared of them."""

    train: Any
    test: Any
    train_target: Any
    test_target: Any
    low: Any
    high: Any
    low_target: float = 0.0
    high_target: float = 1.0

    def r_squared(self, predicted: Any) -> float:
        """Return the coefficient of determination of predictions; those beyond the target's bounds are moved to them."""
        return scores.r_squared(self.test_target, np.clip(predicted, self.low_target, self.high_target))


@dataclass(frozen=True, slots=True)
class Cloud:
    """Rows to find clusters in, and the bounds that are declared of each column."""

    rows: Any
    low: Any
    high: Any

    @property
    def scaled(self) -> Cloud:
        """The same with every column from -1 to 1."""
        return Cloud(self._scaled(self.rows), np.full(len(self.low), -1.0), np.full(len(self.low), 1.0))

    def inertia(self, centres: Any) -> float:
        """Return the mean squared distance to the nearest centre, each column in half the width of its bounds."""
        return scores.inertia(self._scaled(self.rows), self._scaled(np.asarray(centres, float)))

    def _scaled(self, rows: Any) -> Any:
        return (rows - (self.low + self.high) / 2) / ((self.high - self.low) / 2)


# ---- the first component -------------------------------------------------------------------------------------------------


def spiked(which: tasks.Spiked) -> Any:
    """Return unit rows with that second moment."""
    draw = np.random.default_rng(SEED)
    size = which.features
    rows = draw.standard_normal((which.records, size), dtype=np.float32 if size >= tasks.PCA_WIDE else np.float64)
    spike = draw.standard_normal(size, dtype=rows.dtype)
    spike /= np.linalg.norm(spike)
    rows -= np.outer(rows @ spike, spike)
    rows *= (np.sqrt((1 - which.theta) * (1 - 1 / size)) / np.linalg.norm(rows, axis=1, keepdims=True)).astype(rows.dtype)
    signs = draw.integers(0, 2, (which.records, 1)) * 2 - 1
    rows += (signs * np.sqrt(which.theta + (1 - which.theta) / size) * spike).astype(rows.dtype)
    return rows


def digits(*, centred: bool) -> Any:
    """Return the digits' images as unit rows, about 0 or about the declared mean image."""
    from sklearn.datasets import load_digits

    images = np.asarray(load_digits().data, np.float64)
    if centred:
        images = images - np.array(DIGITS_CENTRE.split(), float)
    return images / np.linalg.norm(images, axis=1, keepdims=True)


def components(name: str) -> Any | None:
    """Return the rows of a set for the first component, none longer than 1; None where it is absent."""
    for one in (*tasks.SPIKED, tasks.LARGEST):
        if one.name == name:
            return spiked(one)
    if name in {tasks.DIGITS, tasks.DIGITS_OWN_CENTRE}:
        return digits(centred=False)
    if name == tasks.DIGITS_CENTRED:
        return digits(centred=True)
    table, bounds = _table(name.partition(",")[0])
    if table is None:
        return None
    columns = [_scaled(table[column], ends) for column, ends in bounds.items()]
    return np.column_stack(columns) / np.sqrt(len(columns))


# ---- regression, classification, clusters --------------------------------------------------------------------------------


def regression(name: str) -> Split | None:
    """Return the rows and the targets of a regression; None where it is absent."""
    draw = np.random.default_rng(SEED + 1)
    if name in {tasks.GENERATED_LINE, tasks.GENERATED_LINE_1}:
        size = 10 if name == tasks.GENERATED_LINE else 1
        rows = draw.uniform(-1, 1, (10_000, size))
        line = np.linspace(1, -1, size) if size > 1 else np.ones(1)
        target = rows @ line + 0.5 + draw.normal(0, 0.5, len(rows))
        return _split(rows, np.clip(target, -5, 5), np.full(size, -1.0), np.full(size, 1.0), (-5, 5))
    table, bounds = _table(name.partition(",")[0])
    if table is None:
        return None
    goal = "income" if name == tasks.PUMS else "median_house_value"
    features = ["median_income"] if name.endswith("1 feature") else [one for one in bounds if one != goal]
    ends = np.array([bounds[one] for one in features], float)
    rows = np.clip(np.column_stack([table[one] for one in features]), ends[:, 0], ends[:, 1])
    return _split(rows, np.clip(table[goal], *bounds[goal]), ends[:, 0], ends[:, 1], bounds[goal])


def classification(name: str) -> Split | None:
    """Return the rows and the classes, 0 and 1, of a classification; None where it is absent."""
    draw = np.random.default_rng(SEED + 2)
    if name == tasks.GENERATED_CLASSES:
        rows = draw.uniform(-1, 1, (10_000, 10))
        chance = 1 / (1 + np.exp(-3 * rows @ np.linspace(1, -1, 10)))
        return _split(rows, (draw.random(len(rows)) < chance).astype(int), np.full(10, -1.0), np.full(10, 1.0))
    table, bounds = _table(name)
    if table is None:
        return None
    if name == tasks.ADULT:
        features, classes = ADULT_FEATURES, table["rich"]
        bounds = bounds | {"male": (0, 1), "married": (0, 1)}
    else:
        features, classes = tuple(one for one in bounds if one != "married"), table["married"]
    ends = np.array([bounds[one] for one in features], float)
    rows = np.clip(np.column_stack([table[one] for one in features]), ends[:, 0], ends[:, 1])
    return _split(rows, classes.astype(int), ends[:, 0], ends[:, 1])


def clusters(name: str) -> Cloud | None:
    """Return rows for clusters, from -1 to 1 or, of many widths, in their own units; None where they are absent."""
    draw = np.random.default_rng(SEED + 3)
    if name == tasks.GENERATED_BLOBS:
        centres = draw.uniform(-0.8, 0.8, (5, 4))
        rows = centres[draw.integers(0, 5, 10_000)] + draw.normal(0, 0.1, (10_000, 4))
        return Cloud(np.clip(rows, -1, 1), np.full(4, -1.0), np.full(4, 1.0))
    if name == tasks.GENERATED_WIDTHS:  # years, euros, hours, a share: one group is old, one rich, one works much
        low, high = np.array([17, 0, 1, 0.0]), np.array([90, 99_999, 99, 1.0])
        centres = np.array([[35, 1_000, 40, 0.2], [70, 3_000, 10, 0.6], [45, 60_000, 50, 0.7], [30, 2_000, 75, 0.4]])
        spread = np.array([8, 2_000, 6, 0.1])
        group = draw.choice(4, 10_000, p=[0.5, 0.25, 0.1, 0.15])
        rows = centres[group] + draw.normal(0, 1, (10_000, 4)) * spread
        return Cloud(np.clip(rows, low, high), low, high)
    table, bounds = _table(name.partition(",")[0])
    if table is None:
        return None
    if name == tasks.ADULT_WIDTHS:
        ends = np.array(list(ADULT_WIDTHS.values()), float)
        rows = np.column_stack([table[one] for one in ADULT_WIDTHS])
        return Cloud(np.clip(rows, ends[:, 0], ends[:, 1]), ends[:, 0], ends[:, 1])
    features = ("longitude", "latitude") if name.endswith("places") else ("age", "education_num", "hours_per_week")
    rows = np.column_stack([_scaled(table[one], bounds[one]) for one in features])
    return Cloud(rows, np.full(len(features), -1.0), np.full(len(features), 1.0))


def _split(rows: Any, target: Any, low: Any, high: Any, ends: tuple[float, float] = (0, 1)) -> Split:
    order = np.random.default_rng(SEED + 4).permutation(len(rows))
    cut = round(len(rows) * tasks.HELD_OUT)
    test, train = order[:cut], order[cut:]
    return Split(rows[train], rows[test], target[train], target[test], low, high, float(ends[0]), float(ends[1]))


def _scaled(column: Any, ends: tuple[float, float]) -> Any:
    low, high = ends
    return (2 * np.clip(column, low, high) - low - high) / (high - low)


# ---- reference tables ------------------------------------------------------------------------------------------------------


def _table(name: str) -> tuple[Any | None, dict[str, tuple[float, float]]]:
    """Return the columns that `gather` stored, and their bounds."""
    bounds = {tasks.ADULT: ADULT_BOUNDS, tasks.HOUSING: HOUSING_BOUNDS, tasks.PUMS: PUMS_BOUNDS}[name]
    place = HOME / f"{name}.npz"
    return (dict(np.load(place)) if place.exists() else None), dict(bounds)


def shared() -> Path:
    """Return where reference tables may be."""
    return Path(os.environ.get("CURADOR_SHARED", ROOT.parent / "shared")) / "data"


def gather() -> list[str]:
    """Store the reference tables that are there as arrays; return the names of those that are not. Needs pyarrow."""
    HOME.mkdir(parents=True, exist_ok=True)
    absent: list[str] = []
    for name, (file, read) in _SOURCES.items():
        source, place = shared() / file, HOME / f"{name}.npz"
        if not source.exists():
            absent.append(name)
            place.unlink(missing_ok=True)
        elif not place.exists():
            np.savez(place, **read(source))
    return absent


def _numbers(column: Any) -> Any:
    values = np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
    return np.where(np.isnan(values), 0.0, values)


def _adult(source: Path) -> dict[str, Any]:
    from pyarrow import parquet

    table = parquet.read_table(source)
    texts = {name: np.array(table[name].to_pylist(), dtype=str) for name in ("sex", "marital_status", "income")}
    return {name: _numbers(table[name]) for name in ADULT_BOUNDS} | {
        "male": (texts["sex"] == "Male").astype(float),
        "married": (texts["marital_status"] == "Married-civ-spouse").astype(float),
        "rich": (texts["income"] == ">50K").astype(float),
    }


def _housing(source: Path) -> dict[str, Any]:
    from pyarrow import parquet

    table = parquet.read_table(source)
    return {name: _numbers(table[name]) for name in HOUSING_BOUNDS}


def _pums(source: Path) -> dict[str, Any]:
    from pyarrow import csv

    table = csv.read_csv(source)
    return {name: _numbers(table[name]) for name in PUMS_BOUNDS}


def _tweets(source: Path) -> dict[str, Any]:
    from pyarrow import parquet

    ratings = parquet.read_table(source)
    items = parquet.read_table(source.with_name("movietweetings_100k_items.parquet"))
    names = {"users": "user_id", "items": "item_id", "values": "rating"}
    return {ours: ratings[theirs].to_numpy() for ours, theirs in names.items()} | {"catalogue": items["item_id"].to_numpy()}


_SOURCES: dict[str, tuple[str, Any]] = {
    tasks.ADULT: ("adult/adult_train.parquet", _adult),
    tasks.HOUSING: ("california_housing/california_housing_1990.parquet", _housing),
    tasks.PUMS: ("pums/PUMS.csv", _pums),
    tasks.TWEETS: ("movietweetings/movietweetings_100k_ratings.parquet", _tweets),
}

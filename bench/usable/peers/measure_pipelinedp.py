"""Google's library in its two Python forms: `measure_pipelinedp.py QUESTIONS`.

PipelineDP counts rows and units, selects groups, and finds how many groups of a unit count, where the groups are public. It
finds no bounds of values, and not how many rows of a unit count. Google's C++ algorithms under it (python-dp) do find bounds,
with half of the spend, which is their default. So rows are added up by unit first, and one bounded value of each remains.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pipeline_dp as pdp
from pyarrow import parquet
from pydp.algorithms.laplacian import BoundedMean, BoundedSum

import stopwatch
from usable import asking
from usable.relations_model import MEAN, ROWS, SUM, UNITS, VALUES, Relation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EXTRACTORS = pdp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda _: 0,  # rows and units are counted
)
METRICS = {ROWS: (pdp.Metrics.COUNT, "count"), UNITS: (pdp.Metrics.PRIVACY_ID_COUNT, "privacy_id_count")}
FIND = 1 / 4  # of the spend for the number of groups of a unit that count
NO_VALUES = "counts different units, but not different values of another column"
NO_GROUPS = "how many groups of a unit count must be told: it is found where groups are public, and selecting them needs it"


def answer_of(question: Relation) -> Callable[[], dict[str, float]] | str:
    """Return what answers a question, or why nothing does."""
    if question.what == VALUES:
        return NO_VALUES
    if question.keyed and question.public is None and not question.single:
        return NO_GROUPS
    table = parquet.read_table(question.file)
    unit, key = table["unit"].to_pylist(), table["key"].to_pylist()
    rows = list(zip(unit, key, strict=True))
    counted = question.what == UNITS or (question.what == ROWS and question.single)
    if question.keyed and question.public is not None:
        values = np.array(_values(table, question.what))
        return partial(_by_public_key, question, rows, values)
    if counted:
        return partial(_counts, rows, question.what, None if question.keyed else [""], asking.EPSILON, 1)
    kept = np.array(table["counted"]) > 0 if question.what != ROWS else np.full(len(rows), fill_value=True)
    columns = {name: np.array(table[name])[kept] for name in ("n", "counted", "total")}
    if not question.keyed:
        return partial(_whole, question, columns)
    return partial(_by_private_key, question, rows, np.array(key)[kept], columns["total"])


def _values(table, what: str) -> list[float]:
    return table["n" if what == ROWS else "total"].to_pylist()


def _whole(question: Relation, columns: dict[str, np.ndarray]) -> dict[str, float]:
    """Return a sum over units, or a mean, with bounds that are found."""
    if question.what == ROWS:
        return {"": _bounded(BoundedSum, columns["n"], asking.EPSILON)}
    if question.what == SUM:
        return {"": _bounded(BoundedSum, columns["total"], asking.EPSILON)}
    if question.single:
        return {"": _bounded(BoundedMean, columns["total"], asking.EPSILON)}
    total, count = (_bounded(BoundedSum, columns[name], asking.EPSILON / 2) for name in ("total", "counted"))
    return {"": total / max(count, 1.0)}


def _bounded(algorithm, values: Iterable[float], epsilon: float, groups: int = 1) -> float:
    """Return what an algorithm says of values of which each unit has one in a group; it finds their bounds."""
    try:
        made = algorithm(epsilon=epsilon, l0_sensitivity=groups, dtype="float")
        return float(made.quick_result([float(one) for one in values]))
    except (RuntimeError, ValueError) as error:  # "Bin count threshold was too large to find approximate bounds"
        raise asking.NotFoundError(str(error)) from error


def _counts(rows, what: str, public: list[str] | None, epsilon: float, groups: int) -> dict[str, float]:
    """Return numbers of rows (one of a unit) or of units, by group."""
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=asking.DELTA)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    metric, name = METRICS[what]
    parameters = pdp.AggregateParams(
        metrics=[metric],
        noise_kind=pdp.NoiseKind.LAPLACE,
        max_partitions_contributed=groups,
        max_contributions_per_partition=1,
    )
    result = engine.aggregate(rows, parameters, EXTRACTORS, public_partitions=public)
    accountant.compute_budgets()
    return {key: getattr(found, name) for key, found in result}


def _by_private_key(question: Relation, rows, key: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """Select groups of single rows with half of the spend; sum or average each with the other half."""
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=asking.EPSILON / 2, total_delta=asking.DELTA)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    selected = engine.select_partitions(rows, pdp.SelectPartitionsParams(max_partitions_contributed=1), EXTRACTORS)
    accountant.compute_budgets()
    algorithm = BoundedMean if question.what == MEAN else BoundedSum
    return _each(list(selected), key, values, algorithm, asking.EPSILON / 2)


def _each(names: list[str], key: np.ndarray, values: np.ndarray, algorithm, epsilon: float, groups: int = 1):
    out: dict[str, float] = {}
    for name in names:
        try:
            out[name] = _bounded(algorithm, values[key == name], epsilon, groups)
        except asking.NotFoundError:  # a group without bounds has no figure
            continue
    if not out:
        raise asking.NotFoundError("no group has bounds")
    return out


def _by_public_key(question: Relation, rows, values: np.ndarray) -> dict[str, float]:
    """Find how many groups of a unit count; then count units, or sum what each has in a group."""
    assert question.public is not None
    rest = asking.EPSILON * (1 - FIND)
    engine = pdp.DPEngine(pdp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-9), pdp.LocalBackend())
    parameters = pdp.CalculatePrivateContributionBoundsParams(
        aggregation_noise_kind=pdp.NoiseKind.LAPLACE,
        aggregation_eps=rest,
        aggregation_delta=0,
        calculation_eps=asking.EPSILON * FIND,
        max_partitions_contributed_upper_bound=len(question.public),
    )
    (bounds,) = engine.calculate_private_contribution_bounds(rows, parameters, EXTRACTORS, question.public)
    groups = bounds.max_partitions_contributed
    if question.what == UNITS:
        return _counts(rows, UNITS, question.public, rest, groups)
    kept = _some_groups(np.array([unit for unit, _ in rows]), groups)
    key = np.array([name for _, name in rows])[kept]
    return _each(question.public, key, values[kept], BoundedSum, rest, groups)


def _some_groups(unit: np.ndarray, groups: int) -> np.ndarray:
    """Return the places of so many rows of each unit, chosen at random."""
    order = np.lexsort((np.random.default_rng().random(len(unit)), unit))
    starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
    place = np.arange(len(unit)) - np.repeat(starts, np.diff(np.append(starts, len(unit))))
    return order[place < groups]


def main() -> None:
    """Ask every question and print the lines."""
    print(json.dumps({"versions": stopwatch.versions(["pipeline-dp", "python-dp"])}), flush=True)
    for question in asking.questions():
        answer = answer_of(question)
        asking.tell(question, answer if isinstance(answer, str) else asking.answered(answer))


if __name__ == "__main__":
    main()

"""The tables of task L, the page and the JSON beside it."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from accounting.report import table_of_checks
from learn import tasks
from learn.results import power_law
from learn.targets import shown
from presentation import Table, machine, page

if TYPE_CHECKING:
    from pathlib import Path

    from accounting.targets import Check
    from learn.results import Outcome, Results

__all__ = ["table_of_checks", "tables", "write"]

PEERS = (tasks.DIFFPRIVLIB, tasks.OPENDP)


def tables(results: Results) -> list[Table]:
    """Return every table."""
    return [
        _components(results),
        _other_methods(results),
        _bilinear(results),
        _slope(results),
        _ratings(results),
        _million(results),
        _model(results, tasks.REGRESSION, tasks.R2, "L5. Least squares: R² on rows held out"),
        _model(results, tasks.LOGISTIC, tasks.ACCURACY, "L6. Logistic regression: accuracy on rows held out"),
        _model(results, tasks.LOGISTIC, tasks.LOG_LOSS, "L7. Logistic regression: log loss on rows held out"),
        _model(results, tasks.CLUSTERS, tasks.INERTIA, "L8. k-means: mean squared distance to the nearest centre"),
    ]


def _cell(one: Outcome | None, reason: str = "") -> str:
    return reason if one is None else shown(one)


def _peer(results: Results, part: str, measure: str, tool: str, name: str, epsilon: float) -> str:
    one = results.found(part, measure, tool=tool, data=name, epsilon=epsilon)
    if one is not None:
        return _cell(one) + (f", {one.form}" if one.form else "")
    return next((one.reason for one in results.of(part, tool=tool, data=name, epsilon=epsilon)), "")


def _components(results: Results) -> Table:
    columns = ("rows, ε", "random", "ε: curador", *(f"ε: {peer}" for peer in PEERS), "(ε, 1e-6): curador", "one replaced")
    rows: list[tuple[str, ...]] = []
    names = sorted(results.sets(tasks.PCA), key=lambda name: name == tasks.LARGEST.name)  # the largest last
    for name, epsilon in itertools.product(names, tasks.EPSILONS):

        def ours(delta: float, adjacency: str, name=name, epsilon=epsilon) -> str:
            where: dict[str, Any] = {"data": name, "epsilon": epsilon, "delta": delta, "adjacency": adjacency}
            return _cell(results.found(tasks.PCA, tasks.LOST, tool=tasks.CURADOR, form="auto", **where))

        chance = results.found(tasks.PCA, tasks.LOST, tool=tasks.RANDOM, data=name)
        peers = [_peer(results, tasks.PCA, tasks.LOST, peer, name, epsilon) for peer in PEERS]
        own = (ours(tasks.PURE, tasks.ADD_REMOVE), *peers, ours(tasks.DELTA, tasks.ADD_REMOVE))
        rows.append((f"{name}, ε = {epsilon:g}", _cell(chance), *own, ours(tasks.DELTA, tasks.REPLACE_ONE)))
    return Table("L1. First component: part of the variance that is lost", columns, tuple(rows))


def _other_methods(results: Results) -> Table:
    methods = ("auto", *tasks.PCA_METHODS)
    rows: list[tuple[str, ...]] = []
    for name, epsilon in itertools.product(results.sets(tasks.PCA), tasks.EPSILONS):
        where: dict[str, Any] = {"data": name, "epsilon": epsilon, "delta": tasks.DELTA, "adjacency": tasks.ADD_REMOVE}
        found = [results.found(tasks.PCA, tasks.LOST, tool=tasks.CURADOR, form=method, **where) for method in methods]
        if any(found[1:]):
            rows.append((f"{name}, ε = {epsilon:g}", *(_cell(one) for one in found)))
    return Table("L1b. First component, (ε, 1e-6): curador's methods", ("rows, ε", *methods), tuple(rows))


def _bilinear(results: Results) -> Table:
    names = [f"n={count:,}" for count in tasks.BILINEAR_RECORDS]
    rows: list[tuple[str, ...]] = [
        (tool, *(_cell(results.found(tasks.BILINEAR, tasks.EXCESS, tool=tool, data=name)) for name in names))
        for tool in ("X = 0", tasks.PLAIN)
    ]
    for solver, delta, epsilon in itertools.product(tasks.BILINEAR_SOLVERS, tasks.DELTAS, tasks.EPSILONS):
        where: dict[str, Any] = {"tool": tasks.CURADOR, "form": solver, "delta": delta, "epsilon": epsilon}
        if results.of(tasks.BILINEAR, **where):
            found = [results.found(tasks.BILINEAR, tasks.EXCESS, data=name, **where) for name in names]
            budget = f"({epsilon:g}, {delta:g})" if delta else f"ε = {epsilon:g}"
            rows.append((f"{solver}, {budget}", *(_cell(one) for one in found)))
    title = "L2. Regression with a 20 × 20 matrix of bounded nuclear norm: excess risk, one record replaced"
    return Table(title, ("solver", *names), tuple(rows))


def _slope(results: Results) -> Table:
    rows = [(one.data, _cell(one)) for one in results.of(tasks.SLOPE, measure=tasks.EXCESS) if one.values]
    law = power_law(results)
    if law is not None:
        rows.append(("power of n, with its 95 % interval", f"{law[0]:.3f} ± {law[1]:.3f}"))
    title = f"L2b. One pass with correlated noise, ({tasks.SLOPE_EPSILON:g}, 1e-6): excess risk"
    return Table(title, ("records", "toeplitz"), tuple(rows))


def _ratings(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, epsilon in itertools.product(results.sets(tasks.RATINGS), tasks.RATINGS_EPSILONS):
        where: dict[str, Any] = {"data": name, "epsilon": epsilon, "tool": tasks.CURADOR}
        found = [results.found(tasks.RATINGS, tasks.RMSE, form=method, **where) for method in tasks.RATINGS_METHODS]
        plain = results.found(tasks.RATINGS, tasks.RMSE, data=name, tool=tasks.PLAIN)
        rows.append((f"{name}, ε = {epsilon:g}", _cell(plain), *(_cell(one) for one in found)))
    columns = ("ratings, ε", "ALS, not private", *tasks.RATINGS_METHODS)
    return Table("L3. Recommender, (ε, 1e-6), one user with all ratings: RMSE on ratings held out", columns, tuple(rows))


def _million(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for name in results.sets(tasks.MILLION):
        found = [results.found(tasks.MILLION, measure, data=name) for measure in (tasks.SECONDS, tasks.PEAK, tasks.RMSE)]
        rows.append((name, *(_cell(one) for one in found)))
    return Table("L4. Recommender, (4, 1e-6), one thread", ("ratings", tasks.SECONDS, tasks.PEAK, tasks.RMSE), tuple(rows))


def _model(results: Results, part: str, measure: str, title: str) -> Table:
    peers = [peer for peer in PEERS if results.of(part, tool=peer)]
    columns = ("rows, ε", tasks.PLAIN, "ε: curador", *(f"ε: {peer}" for peer in peers), "(ε, 1e-6): curador")
    rows: list[tuple[str, ...]] = []
    for name, epsilon in itertools.product(results.sets(part), tasks.EPSILONS):
        ours = [
            _cell(results.found(part, measure, tool=tasks.CURADOR, data=name, epsilon=epsilon, delta=delta))
            for delta in tasks.DELTAS
        ]
        theirs = [_peer(results, part, measure, peer, name, epsilon) for peer in peers]
        plain = _cell(results.found(part, measure, tool=tasks.PLAIN, data=name))
        rows.append((f"{name}, ε = {epsilon:g}", plain, ours[0], *theirs, ours[1]))
    return Table(title, columns, tuple(rows))


EXPLANATION = (
    "Cells are means over fits, ± the standard error, with the number of fits in brackets; every fit draws new noise. Where "
    "a column says ε the guarantee is pure, and (ε, 1e-6) stands beside it; neighbours differ by one row more or less unless "
    "a column or title says that one is replaced. All tools get the same rows, bounds and norms, declared and not taken from "
    "the rows; curador runs by its defaults. Components are of rows of length at most 1; *lost* is measured on these very "
    "rows, other errors on rows that were held out (a fifth; of ratings a tenth), k-means on the rows themselves, each "
    "column in half the width of its bounds; diffprivlib gets columns of many widths as they come and scaled, and its best "
    "is shown. What least "
    "squares predict is moved into the target's bounds, whoever predicts. Of diffprivlib's logistic regression three "
    "strengths of penalty are fitted, and the best is shown; opendp's regression takes one feature, and its components get "
    f"99 % of ε for the direction. A peer's ε is what it states; its case has {tasks.CASE_SECONDS} CPU seconds, and "
    "the fits done by then count. The "
    "recommender's other methods are curador's own fits of the kind, and *ALS, not private* is the best of a few settings."
)


def versions(results: Results) -> str:
    """Return every package and version, in one sentence; a peer's environment may hold another NumPy than ours."""
    left_out = {"python", "numpy", "scipy", "scikit-learn"}
    found = {pair for one in results.versions.values() for pair in one.items() if pair[0] not in left_out}
    ours = results.versions.get(tasks.CURADOR, {})
    found |= {(name, ours[name]) for name in ("numpy", "scipy", "scikit-learn") if name in ours}
    return "Packages: " + ", ".join(f"{name} {number}" for name, number in sorted(found)) + "."


def write(results: Results, shown_tables: list[Table], checks: list[Check], folder: Path) -> Path:
    """Write `learn.md` and `learn.json`; return the page's place."""
    folder.mkdir(exist_ok=True)
    place = folder / "learn.md"
    paragraphs = [machine(), versions(results), EXPLANATION]
    if results.missing:
        paragraphs.append("Reference tables that were not at hand: " + ", ".join(results.missing) + ".")
    place.write_text(page("Learning against the peers", paragraphs, [*shown_tables, table_of_checks(checks)]))
    record = {
        "machine": machine(),
        "versions": results.versions,
        "absent": results.absent,
        "missing": results.missing,
        "outcomes": [_record(one) for one in results.outcomes],
        "checks": [asdict(check) for check in checks],
    }
    place.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    return place


def _record(one: Outcome) -> dict[str, object]:
    record: dict[str, Any] = asdict(one)
    values = record.pop("values")
    if values:
        record |= {"mean": one.mean, "standard_error": one.error, "runs": len(values)}
    return record

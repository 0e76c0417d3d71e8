"""`curador train`: fit an estimator on a study's rows and write the model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curador.cli.output import unwritable
from curador.cli.study import Analyst, StudyFile, open_from_file, tell, voice_of
from curador.errors import InvalidParameter, InvalidStudy

if TYPE_CHECKING:
    from curador.curator.training import TrainingRows

ESTIMATORS = {
    "pca": "PrivatePCA",
    "linear": "PrivateLinearRegression",
    "logistic": "PrivateLogisticRegression",
    "kmeans": "PrivateKMeans",
    "nuclear": "PrivateNuclearRegressor",
    "recommender": "PrivateRecommender",
}


def train(
    study: StudyFile,
    estimator: Annotated[str, typer.Argument(metavar="ESTIMATOR", help=", ".join(ESTIMATORS))],
    table: Annotated[str, typer.Option(help="The table to learn from.")],
    columns: Annotated[str, typer.Option(help="Its columns, separated by commas.")],
    n_nominal: Annotated[int, typer.Option(help="Declared number of units: how many there really are is not public.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the model there, as JSON.")],
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    spend: Annotated[str | None, typer.Option(help='Cost, as a share of your whole limit: "5%".')] = None,
    rho: Annotated[str | None, typer.Option(help="Or the ρ of zCDP.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Or the ε of the fit, with --delta.")] = None,
    delta: Annotated[str | None, typer.Option(help="0 for pure privacy.")] = None,
    parameter: Annotated[list[str] | None, typer.Option("--set", help="A parameter, e.g. n_components=2. Repeat it.")] = None,
    analyst: Analyst = None,
    inexact: Annotated[bool, typer.Option("--inexact", help="The owner allows noise in floating point.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Spend without asking.")] = False,
) -> None:
    """Fit an estimator privately and charge it to the ledger; the identical fit again is free."""
    if out.exists():
        raise InvalidStudy.must_be("--out", "a file that does not exist yet", str(out))
    names = [name.strip() for name in columns.split(",") if name.strip()]
    wanted = [*names, *([target] if target is not None and target not in names else [])]
    model = _make_estimator(estimator, epsilon, delta, n_nominal, parameter)
    try:
        with open_from_file(study, analyst=analyst) as curator:
            rows = voice_of(curator, analyst).rows(table, columns=wanted, spend=spend, rho=rho, inexact=inexact)
            if not yes and sys.stdin.isatty() and not _ask_for_consent(model, rows, target):
                tell("nothing was spent")
                raise typer.Exit(2)
            model.fit(rows, y=target)
            left = voice_of(curator, analyst).budget
        try:
            model.save(out)
        except OSError as problem:
            raise unwritable("--out", out, problem) from None
    except KeyboardInterrupt as stop:
        tell(str(stop) or "interrupted")
        raise typer.Exit(130) from None
    print(model.privacy_)
    from curador.ledger.amounts import amounts_text

    tell(f"wrote {out}; left {amounts_text(left.left, pure=left.pure, up=False)}")


def _make_estimator(
    estimator: str, epsilon: str | None, delta: str | None, n_nominal: int, parameter: list[str] | None
) -> Any:
    from curador import learn

    if estimator not in ESTIMATORS:
        raise InvalidParameter.must_be("ESTIMATOR", f"one of {', '.join(ESTIMATORS)}", estimator)
    kind = getattr(learn, ESTIMATORS[estimator])
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "n_nominal": n_nominal}
    known = set(kind().get_params())
    for pair in parameter or []:
        name, sign, value = pair.partition("=")
        if not sign or name not in known or name in given:
            hint = ", ".join(sorted(known - set(given)))
            raise InvalidParameter.must_be("--set", "a parameter of the estimator and its value", pair, hint)
        given[name] = _value(value)
    return kind(**given)


def _value(text: str) -> Any:
    """A number, list or truth value as JSON has it; anything else is a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _ask_for_consent(model: Any, rows: TrainingRows, target: str | None) -> bool:
    """Say what the fit would cost and ask."""
    tell(model.cost(rows, target))
    print("Spend it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}

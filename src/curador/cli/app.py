"""The commands; those of a study, of fits and of figures stand in their own modules.

`curador collect`: estimates from files of reports that people randomized themselves.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from curador.cli.expression import loss_of
from curador.cli.plotting import plot
from curador.cli.reporting import report
from curador.cli.serving import add_serving
from curador.cli.show import account_table, adversary_lines, finite, mechanism_lines
from curador.cli.study import add_commands
from curador.cli.training import train
from curador.errors import InvalidParameter
from curador.study.values import Plain

# ---- collecting ------------------------------------------------------------------------------------------------------------


def collect(
    protocol: Annotated[Path, typer.Argument(metavar="PROTOCOL.json", help="What curador.local.to_json wrote.")],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES", help="Arrow or Parquet files of reports, or folders of them.")
    ],
    confidence: Annotated[str, typer.Option(help="How sure the intervals are.")] = "0.95",
    as_json: Annotated[bool, typer.Option("--json", help="Print numbers for a program.")] = False,
) -> None:
    """Estimate frequencies, a mean or frequent values from reports of local privacy. Costs nothing: reports are private."""
    from curador.local.files import from_json

    try:
        text = protocol.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter.must_be("PROTOCOL.json", "a file that can be read", str(protocol)) from None
    collector = from_json(text).collector()
    shows = sys.stderr.isatty()
    collector.add_files(*files, progress=_tell_progress if shows else None)
    if shows:
        print(file=sys.stderr)
    estimate = collector.estimate(confidence=confidence)
    print(json.dumps(_numbers(estimate)) if as_json else estimate)


def _tell_progress(reports: int) -> None:
    print(f"\r{reports:,} reports", end="", file=sys.stderr, flush=True)


def _numbers(estimate: Any) -> dict[str, Any]:
    common = {"reports": estimate.reports, "rejected": estimate.rejected, "confidence": float(estimate.confidence)}
    if hasattr(estimate, "rows"):
        return {**common, "values": estimate.rows}
    names = ("mean", "standard_error", "low", "high", "population_error")
    return {**common, **{name: getattr(estimate, name) for name in names}}


# ---- app -------------------------------------------------------------------------------------------------------------------


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Questions about a sensitive table, answered with exact noise, error bars and one durable budget.",
)
add_commands(app)
add_serving(app)
app.command()(train)
app.command()(plot)
app.command()(report)
app.command()(collect)

LossText = Annotated[str, typer.Argument(help='Losses, e.g. "1000*gaussian(sigma=20) + 50*rr(epsilon=0.5)".')]


@app.command()
def account(
    expression: LossText,
    delta: Annotated[str, typer.Option(help="The δ to report ε at.")] = "1e-6",
    verify: Annotated[bool, typer.Option("--verify", help="Recompute every node with 50 digits.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print numbers for a program.")] = False,
) -> None:
    """Print ε by every reading, certified lower and upper bounds, and what an adversary gains."""
    loss = loss_of(expression)
    interval = loss.epsilon_interval(delta, verify=verify)
    readings = loss.readings(delta)
    if as_json:
        numbers = {"lower": interval.lower, "upper": min(readings.values()), "readings": readings}
        print(json.dumps({"delta": delta, **finite(numbers)}))
        return
    account_table(expression, loss, delta, interval, readings)
    adversary_lines(loss, min(readings.values()), delta)
    if verify:
        print("verified: every node was recomputed with 50 digits and lies within its stated round-off.")


@app.command()
def calibrate(
    mechanism: Annotated[
        str, typer.Argument(help="gaussian, laplace, discrete_gaussian, discrete_laplace, rr or exponential.")
    ],
    epsilon: Annotated[str | None, typer.Option(help="The ε to reach.")] = None,
    delta: Annotated[str | None, typer.Option(help="The δ to reach it at; none: pure.")] = None,
    rho: Annotated[str | None, typer.Option(help="Or the ρ of zCDP to reach.")] = None,
    accuracy: Annotated[str | None, typer.Option(help="Or the largest error allowed.")] = None,
    confidence: Annotated[str, typer.Option(help="How often the error may be that large at most.")] = "0.95",
    sensitivity: Annotated[str, typer.Option(help="How far one person can move the answer.")] = "1",
    count: Annotated[str, typer.Option(help="How many releases in all.")] = "1",
    rate: Annotated[str | None, typer.Option(help="Sampling rate, if each release sees a subsample.")] = None,
    scheme: Annotated[str, typer.Option(help="poisson or without_replacement.")] = "poisson",
) -> None:
    """Print the least noise that reaches a privacy goal, or the most that keeps an accuracy."""
    from curador.cli.expression import calibrate_mechanism

    found = calibrate_mechanism(
        mechanism,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        accuracy=accuracy,
        confidence=confidence,
        sensitivity=sensitivity,
        count=count,
        rate=rate,
        scheme=scheme,
    )
    mechanism_lines(found, count=count, delta=delta, rate=rate, scheme=scheme)


@app.command()
def audit(
    study: Annotated[Path | None, typer.Argument(metavar="[STUDY]", help="With --copy: the study file.")] = None,
    samples: Annotated[int, typer.Option(help="Releases of each mechanism in each of two neighbouring worlds.")] = 200_000,
    only: Annotated[str | None, typer.Option(help="Mechanisms whose name holds this word.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print numbers for a program.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with figures to this file.")] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Audit a study as it is, on a copy of its rows that is removed.")
    ] = False,
    neighbours: Annotated[int, typer.Option(help="With --copy: units chosen at random that leave.")] = 3,
    canaries: Annotated[int, typer.Option(help="With --copy: made-up units, each in or out by a coin.")] = 1_000,
) -> None:
    """Try to refute every mechanism's claim, and check that seeded bugs are caught. Ends with 1 if anything is wrong.

    With a study and --copy: replay neighbours and count canaries against its caps, bounds, budget and engine, on a copy
    of its rows. Nothing is charged.
    """
    from curador.cli.auditing import run_audit, run_study_audit

    if copy != (study is not None):
        rule, got = "given together with --copy", "without it" if study is not None else "--copy alone"
        raise InvalidParameter.must_be("STUDY", rule, Plain(got), "write: curador audit study.toml --copy")
    if study is not None:
        raise typer.Exit(run_study_audit(study, neighbours=neighbours, canaries=canaries, as_json=as_json, html=html))
    raise typer.Exit(run_audit(samples=samples, only=only, as_json=as_json, html=html))


@app.command()
def demo(
    mathematics: Annotated[bool, typer.Option(help="The mechanisms and the accounting underneath.")] = False,
) -> None:
    """Show what curador does: asks a made-up table a dozen questions, in the folder `demo`."""
    from curador.cli.demo import run

    run(sys.stdout, mathematics=mathematics)


@app.command()
def version() -> None:
    """Print the version."""
    import curador

    print(curador.__version__)

"""`curador collect`: estimates from files of reports that people randomized themselves."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from curador.errors import InvalidParameter, sentence


def collect(
    protocol: Annotated[Path, typer.Argument(metavar="PROTOCOL.json", help="What curador.local.to_json wrote.")],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES", help="Arrow or Parquet files of reports, or folders of them.")
    ],
    confidence: Annotated[str, typer.Option(help="How sure the intervals are.")] = "0.95",
    as_json: Annotated[bool, typer.Option("--json", help="Print numbers for a program.")] = False,
) -> None:
    """Estimate frequencies, a mean or frequent values from reports of local privacy. Costs nothing: reports are private."""
    from curador.local.written import from_json

    try:
        text = protocol.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(sentence("PROTOCOL.json", "a file that can be read", str(protocol))) from None
    collector = from_json(text).collector()
    shows = sys.stderr.isatty()
    collector.add_files(*files, progress=_told if shows else None)
    if shows:
        print(file=sys.stderr)
    estimate = collector.estimate(confidence=confidence)
    print(json.dumps(_numbers(estimate)) if as_json else estimate)


def _told(reports: int) -> None:
    print(f"\r{reports:,} reports", end="", file=sys.stderr, flush=True)


def _numbers(estimate: Any) -> dict[str, Any]:
    common = {"reports": estimate.reports, "rejected": estimate.rejected, "confidence": float(estimate.confidence)}
    if hasattr(estimate, "rows"):
        return {**common, "values": estimate.rows}
    names = ("mean", "standard_error", "low", "high", "population_error")
    return {**common, **{name: getattr(estimate, name) for name in names}}

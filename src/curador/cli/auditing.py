"""`curador audit`: the audit as tables, with a progress bar, and as a page."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from curador.cli.show import finite

if TYPE_CHECKING:
    from curador.audit.exhibits import Exhibits
    from curador.audit.run import Progress as Watcher
    from curador.audit.run import Report
    from curador.audit.trial import AuditedMechanism
    from curador.testing.running import StudyAudit


def run_audit(*, samples: int, only: str | None, as_json: bool, html: Path | None = None) -> int:
    """Audit, print, and return the exit code: 1 if a claim was refuted, a seeded bug survived, or power lacked.

    With a file for HTML also curves and games of a few mechanisms are tried, which count as well.
    """
    from curador.audit.run import audit, entries_named

    entries = None if only is None else entries_named(only)
    if html is not None:
        from curador.plots.audit_report import writable

        writable(html)  # before minutes of work
    with _watching() as watcher:
        report = audit(samples, entries, progress=watcher)
    found = None if html is None else _write_report(report, html, entries)
    if as_json:
        page = {} if found is None else {"page_violations": list(found.violations)}
        print(json.dumps(_plain({**report.to_record(), **page})))
    else:
        _print(report, found)
    if html is not None:
        print(f"audit: wrote {html}", file=sys.stderr)
    return 0 if report.passed and not (found and found.violations) else 1


def run_study_audit(study: Path, *, neighbours: int, canaries: int, as_json: bool, html: Path | None) -> int:
    """Audit a running study on a copy, print what the owner may see, and return the exit code: 1 if anything is wrong."""
    from curador.plots.running_report import writable_page, write_page
    from curador.study.file import read_study
    from curador.testing.running import audit_study

    declared = read_study(study)
    if html is not None:
        writable_page(html)
    tell = (lambda step: print(f"audit: {step}", file=sys.stderr)) if sys.stderr.isatty() else None
    found = audit_study(declared, neighbours=neighbours, canaries=canaries, progress=tell)
    if as_json:
        print(json.dumps(_plain(found.public_record())))
    else:
        _print_study_audit(found)
    if html is not None:
        write_page(found, html)
        print(f"audit: wrote {html}: verdicts, settings and made-up tables only", file=sys.stderr)
    return 0 if found.passed else 1


def _print_study_audit(found: StudyAudit) -> None:
    """Print everything that was found, the owner's rows first."""
    print("For the owner's eyes: what follows is computed from real rows, without noise.")
    console = Console(highlight=False)
    for name, rows in (("real rows", found.real), ("made-up rows", found.made_up)):
        table = Table(title=f"Neighbours replayed: {name}", title_justify="left")
        for head in ("who leaves or comes", "questions", "refused", "releases", ""):
            table.add_column(head, justify="left" if head in ("who leaves or comes", "") else "right")
        for replayed in rows.replays:
            mark = (
                "holds" if replayed.holds else f"{len(replayed.found)} VIOLATIONS" if replayed.found else "NOTHING COMPARED"
            )
            table.add_row(replayed.who, str(replayed.compared), str(replayed.refused), str(replayed.releases), mark)
        console.print(table)
        for replayed in rows.replays:
            for question, sentence in replayed.found:
                console.print(f"VIOLATED  {question}\n          {replayed.who}: {sentence}", style="bold red", markup=False)
        counted = "no table could be asked" if rows.canary is None else f"spend {rows.spend}, {rows.canary}"
        console.print(f"Canaries, {name}: {counted}", markup=False, style=None if rows.counted else "bold red")
    same = f"{found.real.same_plans} of {found.asked} questions of the ledger with the very plan that was charged"
    left = f"; {found.left} purchases that are no question of SQL were left out" if found.left else ""
    print(f"{same}{left}. Nothing was charged; the copy is removed.")
    print("Passed." if found.passed else "NOT PASSED.")
    print("Replay has no false alarms; the canaries' verdict on each set of rows is wrong with probability at most 1e-09.")


def _write_report(report: Report, html: Path, entries: Sequence[AuditedMechanism] | None) -> Exhibits:
    """Write the page, and return the curves and games that it shows beside the report."""
    from curador.audit.exhibits import exhibits
    from curador.plots.audit_report import write_html

    with _watching() as watcher:
        found = exhibits(report.samples, entries, progress=watcher)
    games = [exhibit.game for exhibit in found.shown if exhibit.game is not None]
    write_html(report, html, games=games, profiles=[exhibit.profile for exhibit in found.shown], catches=found.catches)
    return found


def _plain(value: object) -> object:
    """The same with null for what JSON has no word for."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return finite({"it": value})["it"]


@contextlib.contextmanager
def _watching() -> Generator[Watcher]:
    """A bar on the terminal's error stream; a line for every tenth where there is no terminal."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    columns = (TextColumn("{task.description:<48}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("audit", total=None)

        def watch(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=name)

        yield watch


def _lines() -> Watcher:
    said = [-1]

    def watch(done: int, total: int, name: str) -> None:
        tenth = 10 * done // total
        if tenth > said[0]:
            said[0] = tenth
            print(f"audit: {done} of {total}, {name}", file=sys.stderr, flush=True)

    return watch


def _print(report: Report, beside: Exhibits | None) -> None:
    from curador.audit.trial import LIMIT

    console = Console(width=112)
    console.print(_bounds(report))
    if report.bits:
        events = [row for row in report.bits if not row.holds]
        names = ", ".join(dict.fromkeys(row.mechanism for row in report.bits))
        values = ", ".join(dict.fromkeys(f"{row.value:,}" for row in report.bits))
        console.print(f"Bits of floats ({names}; near {values}): ", end="")
        console.print(f"{len(events)} leaks" if events else "no event tells the worlds apart")
    if report.fits:
        least = min(report.fits, key=lambda row: row.p)
        console.print(
            f"Laws: {len(report.fits)} χ² fits, smallest p = {least.p:.2g} ({least.mechanism}); alarm below {least.least:.1e}"
        )
    if report.mutants:
        console.print(_mutants(report))
    violations = (*report.violations, *(beside.violations if beside else ()))
    for sentence in violations:
        console.print(f"REFUTED  {sentence}", style="bold red")
    for name in report.powerless:
        console.print(f"NO POWER  {name}: no row would flag even {LIMIT:g} times too much", style="bold red")
    for name in report.survivors:
        console.print(f"SURVIVED  seeded bug: {name}", style="bold red")
    refuted = f"{len(violations)} claims refuted" if violations else "no claim refuted"
    caught = sum(row.caught for row in report.mutants)
    bugs = f"{caught} of {len(report.mutants)} seeded bugs caught" if report.mutants else "no seeded bugs tried"
    power = f"no power for {len(report.powerless)} mechanisms" if report.powerless else "power for every mechanism tried"
    print(f"{refuted}; {bugs}; {power}.")
    if report.untried:
        every = len(report.tried) + len(report.untried)
        print(f"Only {len(report.tried)} of {every} mechanisms were tried; of the others this says nothing.")
    print(
        f"{report.samples:,} releases a world, a quarter to choose events and the rest to test them.\n"
        f"A false alarm anywhere has probability at most {report.family:g} ({report.alpha:.1e} a bound): a red run is red."
    )
    if beside:
        print(f"Curves and games on the page add at most {beside.family:g} to it.")


def _bounds(report: Report) -> Table:
    table = Table(title="Lower bounds of ε by samples, against the claims", title_justify="left")
    for name in ("mechanism", "ε asked", "at δ", "claim", "lower bound", "ratio", "flags from", ""):
        table.add_column(name, justify="left" if name in ("mechanism", "") else "right")
    for row in report.rows:
        delta = "0" if row.delta == 0 else f"{row.delta:.2g}"
        ratio = "" if math.isnan(row.ratio) else f"{row.ratio:.3f}"
        factor = "—" if math.isinf(row.detectable) else f"{row.detectable:.2f}×"
        mark = "holds" if row.holds else "REFUTED"
        table.add_row(row.mechanism, row.asked, delta, f"{row.claim:.4g}", f"{row.bound:.4g}", ratio, factor, mark)
    table.caption = "flags from: the smallest factor of too much that 99.9 % of such runs would flag"
    table.caption_justify = "left"
    return table


def _mutants(report: Report) -> Table:
    table = Table(title="Seeded bugs", title_justify="left")
    table.add_column("bug")
    table.add_column("caught by")
    for row in report.mutants:
        table.add_row(row.name, row.by or "NOTHING")
    return table

"""The tables of task D, the page and the JSON beside it."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from accounting.report import table_of_checks
from local import tasks
from local.results import Ratio
from local.targets import CASES, FAR, against_formula, main_place
from presentation import Table, machine, page, seconds

if TYPE_CHECKING:
    from pathlib import Path

    from accounting.targets import Check
    from local.results import Outcome, Results

__all__ = ["table_of_checks", "tables", "write"]


def tables(results: Results) -> list[Table]:
    """Return every table."""
    return [
        _errors(results, tasks.UNBIASED, "D1. Mean squared error of a count, unbiased estimates"),
        _promises(results),
        _errors(results, tasks.CONSISTENT, "D3. Mean squared error of counts that are at least 0 and add up"),
        _speed(results),
        _other(results),
    ]


def _cell(one: Outcome | None) -> str:
    if one is None:
        return ""
    if len(one.values) == 1:
        return _digits(one.mean, 4)
    return f"{_digits(one.mean, 4)} ± {_digits(one.error, 2)} ({len(one.values)})"


def _digits(value: float, number: int) -> str:
    """Return so many digits that count, without a power of ten."""
    rounded = float(f"{value:.{number - 1}e}")
    return f"{rounded:,.0f}" if rounded >= 10 ** (number - 1) else f"{rounded:.{number}g}"


def _ratio(ours: Outcome | None, theirs: Outcome | None) -> str:
    if ours is None or theirs is None:
        return ""
    ratio = Ratio(ours, theirs)
    return f"{ratio.value:.3f} ± {ratio.error:.1g}"


def _errors(results: Results, form: str, title: str) -> Table:
    """One row a case; where a peer has two things of a kind, one row each."""
    formula = form == tasks.UNBIASED
    own = tasks.UNBIASED if formula else tasks.LIKELY  # what is compared
    columns = ["protocol, histogram, ε"]
    columns += ["formula", "ours over it", "curador"] if formula else ["curador, nearest", "curador, likely"]
    for peer in tasks.PEERS:
        columns += [peer, "ours over it" if formula else "likely over it"]
    rows: list[tuple[str, ...]] = []
    for protocol in tasks.PROTOCOLS:
        stated = {(one.epsilon, one.histogram): ratio for one, ratio in against_formula(results, protocol)}
        names = [results.variants(tasks.ERROR, protocol, peer) for peer in tasks.PEERS]
        for epsilon, histogram in CASES:
            same: dict[str, Any] = {"protocol": protocol, "epsilon": epsilon, "histogram": histogram}
            ours = results.found(tasks.ERROR, tool=tasks.CURADOR, form=own, **same)
            if formula:
                known = f"{stated[epsilon, histogram]:.3f}" if (epsilon, histogram) in stated else ""
                first = [_cell(results.found(tasks.STATED, tool=tasks.CURADOR, **same)), known, _cell(ours)]
            else:
                first = [_cell(results.found(tasks.ERROR, tool=tasks.CURADOR, form=form, **same)), _cell(ours)]
            for variants in itertools.zip_longest(*names) if any(names) else [(None,) * len(names)]:
                said = [one for one in variants if one]
                cells = [f"{protocol}, {histogram}, {epsilon:g}" + (f" ({', '.join(said)})" if said else ""), *first]
                for peer, variant in zip(tasks.PEERS, variants, strict=True):
                    where: dict[str, Any] = {"tool": peer, "form": form, "variant": variant, **same}
                    theirs = None if variant is None else results.found(tasks.ERROR, **where)
                    cells += [_cell(theirs), _ratio(ours, theirs)]
                rows.append(tuple(cells))
    return Table(title, tuple(columns), tuple(rows))


def _promises(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for protocol in tasks.PROTOCOLS:
        for epsilon, histogram in CASES:
            same: dict[str, Any] = {"protocol": protocol, "epsilon": epsilon, "histogram": histogram}
            off = results.found(tasks.BIAS, **same)
            cover = results.found(tasks.COVER, **same)
            if off is None or cover is None:
                continue
            sizes = [abs(one) for one in off.values]
            rows.append(
                (
                    f"{protocol}, {histogram}, {epsilon:g}",
                    f"{off.values[main_place(histogram)]:+.2f}",
                    f"{max(sizes):.2f}",
                    str(sum(one > FAR for one in sizes)),
                    f"{cover.mean:.2%}",
                    f"{min(cover.values):.1%}",
                    f"{max(cover.values):.1%}",
                )
            )
    columns = (
        "protocol, histogram, ε",
        "commonest value off by",
        "largest of all values",
        f"beyond {FAR}",
        "intervals right",
        "least of a value",
        "most of a value",
    )
    return Table("D2. curador: means off, in standard errors, and 95 % intervals", columns, tuple(rows))


def _speed(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for protocol in tasks.PROTOCOLS:
        for epsilon in tasks.SPEED_EPSILONS:
            same: dict[str, Any] = {"protocol": protocol, "epsilon": epsilon}
            ours = results.found(tasks.SPEED, tool=tasks.CURADOR, **same)
            own = [one for one in results.of(tasks.SPEED, tool=tasks.CURADOR, **same) if one.values]
            if ours is None:
                continue
            times = " and ".join(seconds(one.mean) for one in own)
            rows.append((f"{protocol}, {epsilon:g}: curador", "1,000,000", times, times, "", f"{ours.peak_mb or 0:.0f}"))
            for tool, variant in results.peers(tasks.SPEED, protocol):
                one = results.found(tasks.SPEED, tool=tool, variant=variant, **same)
                name = f"{protocol}, {epsilon:g}: {tool}" + (f" ({variant})" if variant else "")
                if one is None:
                    rows.append((name, "", "", "", "", ""))
                    continue
                measured = (one.measured or 0) + (one.once or 0)
                ratio = f"{one.mean / ours.mean:.4g}"
                cells = (f"{one.people:,}", seconds(measured), seconds(one.mean), ratio, f"{one.peak_mb or 0:.0f}")
                rows.append((name, *cells))
    columns = ("protocol, ε: tool", "people measured", "measured s", "1,000,000 people s", "times ours", "peak MB")
    return Table("D4. From the values of 1,000,000 people, of 1,000 kinds, to estimates", columns, tuple(rows))


def _other(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for one in results.of(tasks.STREAM):
        if one.values:
            rate = tasks.STREAM_REPORTS / one.mean / 1e6
            what = f"{tasks.STREAM_REPORTS:,} reports ({one.protocol}) from {tasks.STREAM_FILES} Arrow files into a collector"
            rows.append((what, seconds(one.mean), f"{rate:.3g} million reports a second", f"{one.peak_mb or 0:.0f}"))
    others = [one for one in results.of(tasks.OTHER) if one.values]
    rows += [(one.protocol, seconds(one.mean), one.form, f"{one.peak_mb or 0:.0f}") for one in others]
    return Table("D5. What else takes time", ("what", "seconds", "", "peak MB"), tuple(rows))


ABOUT_ERRORS = (
    f"D1 to D3: {tasks.PEOPLE:,} people, {tasks.VALUES} values; counts in proportion to 1/rank (Zipf) or all alike. A cell "
    "is the squared error of a count, averaged over all values and runs, ± the standard error, with the number of runs in "
    f"brackets; the peers stop after {tasks.PEER_SECONDS:g} CPU seconds. *formula* is the paper's "
    "(`bench/local/published.py`). In D1 every tool's estimates are unbiased: multi-freq-ldpy's are taken from inside, "
    "before it cuts them at 0 and scales them. D3 compares counts that are at least 0 and add up: the nearest such "
    "(curador's `consistent()` and pure-ldp's), those cut and scaled (multi-freq-ldpy's only ones), and curador's "
    "`likely()`, of which the ratios are. rappor: all reports of a person together may "
    "cost twice the ε of one. pure-ldp's RAPPOR is left out: its client never clears a bit of the true value, so that a "
    f"report excludes values for certain. In D2 a mean over {tasks.RUNS:,} runs is divided by its standard error; of the "
    f"{len(CASES) * len(tasks.PROTOCOLS) * tasks.VALUES:,} such about 0.35 are beyond {FAR} by chance alone, so the target "
    "looks at the commonest value."
)
ABOUT_TIMES = (
    "D4: everything from values to estimates, one thread. curador takes all people, twice, before and after the peers; "
    f"ratios are to the longer. A peer that would take more than {tasks.WHOLE_SECONDS:g} s is measured on fewer people "
    f"(best of {tasks.PEER_TIMES}): clients and aggregation of both peers go person by person, so that part is scaled in "
    "proportion to the people; what is done once is added as it is. pure-ldp's FLH lets all people share 1,000 hash "
    "functions, a short cut of hashing whose error does not vanish with more people."
)


def versions(results: Results) -> str:
    """Return every package and version, in one sentence; a peer's environment may hold another NumPy than ours."""
    found = {pair for one in results.versions.values() for pair in one.items() if pair[0] not in {"python", "numpy", "scipy"}}
    ours = results.versions.get(tasks.CURADOR, {})
    found |= {(name, ours[name]) for name in ("numpy", "scipy") if name in ours}
    return "Packages: " + ", ".join(f"{name} {number}" for name, number in sorted(found)) + "."


def write(results: Results, shown: list[Table], checks: list[Check], folder: Path) -> Path:
    """Write `local.md` and `local.json`; return the page's place."""
    folder.mkdir(exist_ok=True)
    place = folder / "local.md"
    paragraphs = [machine(), versions(results), ABOUT_ERRORS, ABOUT_TIMES]
    if results.absent:
        paragraphs.append("Without an answer: " + "; ".join(f"{said}: {why}" for said, why in results.absent.items()) + ".")
    place.write_text(page("Local privacy against the peers", paragraphs, [*shown, table_of_checks(checks)]))
    record = {
        "machine": machine(),
        "versions": results.versions,
        "absent": results.absent,
        "outcomes": [_record(one) for one in results.outcomes],
        "checks": [asdict(check) for check in checks],
    }
    place.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    return place


def _record(one: Outcome) -> dict[str, object]:
    record: dict[str, Any] = {name: value for name, value in asdict(one).items() if value not in (None, "", 0, ())}
    values = record.pop("values", ())
    if values:
        record |= {"mean": one.mean, "standard_error": one.error, "runs": len(values)}
        if one.part in (tasks.BIAS, tasks.COVER):
            record |= {"least": min(values), "most": max(values)}
    return record

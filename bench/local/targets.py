"""What curador promises about local privacy, checked on the outcomes of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from accounting.targets import FAIL, PASS, UNKNOWN, Check
from local import data, tasks
from local.results import Ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.results import Outcome, Results

FROM_FORMULA = 0.05
CHANCE = 3  # standard errors of a ratio that are called chance
FAR = 4  # standard errors by which a mean may be off
COVERED = (0.93, 0.97)
TIMES_FASTER = 20

CASES = [(epsilon, histogram) for epsilon in tasks.EPSILONS for histogram in tasks.HISTOGRAMS]


def checks(results: Results) -> list[Check]:
    """Return every promise with what was measured."""
    found = [_complete(results)]
    for protocol in tasks.PROTOCOLS:
        found += [_formula(results, protocol), _bias(results, protocol), _cover(results, protocol)]
    for protocol in tasks.PROTOCOLS:
        found += _errors(results, protocol)
    for protocol in tasks.PROTOCOLS:
        found += _speed(results, protocol)
    return found


def _complete(results: Results) -> Check:
    ours = [one for one in results.outcomes if one.tool == tasks.CURADOR]
    silent = [said for said in results.absent if said.startswith(tasks.CURADOR)]
    bad = [f"{one.part}, {one.protocol}: {one.reason}" for one in ours if not one.values]
    bad += [f"{said}: {results.absent[said]}" for said in silent]
    return Check("curador answers every case", bad[0] if bad else f"{len(ours)} of {len(ours)}", FAIL if bad else PASS)


def ratios(results: Results, protocol: str, tool: str, variant: str, forms: tuple[str, str]) -> list[Ratio]:
    """Return the errors of our form over those of theirs, of every case in which they made enough runs."""
    found: list[Ratio] = []
    for epsilon, histogram in CASES:
        same: dict[str, Any] = {"protocol": protocol, "epsilon": epsilon, "histogram": histogram}
        ours = results.found(tasks.ERROR, tool=tasks.CURADOR, form=forms[0], **same)
        theirs = results.found(tasks.ERROR, tool=tool, variant=variant, form=forms[1], **same)
        if ours is not None and theirs is not None and len(theirs.values) >= tasks.FEWEST:
            found.append(Ratio(ours, theirs))
    return found


def against_formula(results: Results, protocol: str, part: str = tasks.STATED) -> list[tuple[Outcome, float]]:
    """Return our errors with their ratios to the published ones."""
    found: list[tuple[Outcome, float]] = []
    for epsilon, histogram in CASES:
        same: dict[str, Any] = {"protocol": protocol, "tool": tasks.CURADOR, "epsilon": epsilon, "histogram": histogram}
        ours = results.found(tasks.ERROR, form=tasks.UNBIASED, **same)
        stated = results.found(part, **same)
        if ours is not None and stated is not None:
            found.append((ours, ours.mean / stated.mean))
    return found


def _formula(results: Results, protocol: str) -> Check:
    promise = f"{protocol}: mean squared error within 5 % of the published formula"
    found = [ratio for _, ratio in against_formula(results, protocol)]
    ideal = [ratio for _, ratio in against_formula(results, protocol, tasks.IDEAL)]
    if len(found) < len(CASES) or len(ideal) < len(CASES):
        return Check(promise, "no answer", FAIL)
    kept = all(abs(ratio - 1) <= FROM_FORMULA for ratio in found) and max(ideal) <= 1 + FROM_FORMULA
    said = f"{min(found):.3f} to {max(found):.3f} of it"
    if protocol == tasks.HASHING:
        said += f"; {min(ideal):.3f} to {max(ideal):.3f} of that for an ideal hash function"
    return Check(promise, said, PASS if kept else FAIL)


def main_place(histogram: str) -> int:
    """Return the value whose bias is checked: the one that most people hold."""
    return int(np.argmax(data.histogram(histogram)))


def _bias(results: Results, protocol: str) -> Check:
    promise = f"{protocol}: the commonest value's mean of {tasks.RUNS:,} runs within {FAR} standard errors of the truth"
    found = [
        one.values[main_place(histogram)]
        for epsilon, histogram in CASES
        for one in results.of(tasks.BIAS, protocol=protocol, epsilon=epsilon, histogram=histogram)
    ]
    if len(found) < len(CASES):
        return Check(promise, "no answer", FAIL)
    far = max(abs(one) for one in found)
    return Check(promise, f"at most {far:.2f} in {len(found)} cases", PASS if far <= FAR else FAIL)


def _cover(results: Results, protocol: str) -> Check:
    low, high = COVERED
    promise = f"{protocol}: intervals for 95 % hold the truth in {low:.0%} to {high:.0%} of all"
    found = [one.mean for one in results.of(tasks.COVER, protocol=protocol) if one.values]
    if len(found) < len(CASES):
        return Check(promise, "no answer", FAIL)
    kept = min(found) >= low and max(found) <= high
    return Check(promise, f"{min(found):.2%} to {max(found):.2%} in {len(found)} cases", PASS if kept else FAIL)


def _named(tool: str, variant: str) -> str:
    return f"{tool} ({variant})" if variant else tool


def _errors(results: Results, protocol: str) -> Iterator[Check]:
    for tool, variant in results.peers(tasks.ERROR, protocol):
        for forms, said in (
            ((tasks.UNBIASED, tasks.UNBIASED), "mean squared error"),
            ((tasks.LIKELY, tasks.CONSISTENT), "that of counts at least 0 that add up"),
        ):
            promise = f"{protocol}: {said} not above {_named(tool, variant)}'s, but for chance"
            yield _compared(promise, ratios(results, protocol, tool, variant, forms), _why(results, protocol, tool, variant))


def _compared(promise: str, found: list[Ratio], reason: str) -> Check:
    if not found:
        return Check(promise, reason, UNKNOWN)
    worse = [one for one in found if one.value > 1 + CHANCE * one.error]
    most = max(found, key=lambda one: one.value)
    said = f"{len(found) - len(worse)} of {len(found)}; at most {most.value:.3f} ± {most.error:.1g} of it"
    said += "".join(f"; not {one.ours.histogram}, ε = {one.ours.epsilon:g}" for one in worse)
    return Check(promise, said, FAIL if worse else PASS)


def _why(results: Results, protocol: str, tool: str, variant: str) -> str:
    reasons = [one.reason for one in results.of(tasks.ERROR, protocol=protocol, tool=tool, variant=variant) if one.reason]
    return reasons[0] if reasons else f"fewer than {tasks.FEWEST} runs"


def _speed(results: Results, protocol: str) -> Iterator[Check]:
    for tool, variant in results.peers(tasks.SPEED, protocol):
        promise = f"{protocol}: at least {TIMES_FASTER} times faster than {_named(tool, variant)}"
        found: list[tuple[float, float]] = []
        for epsilon in tasks.SPEED_EPSILONS:
            ours = results.found(tasks.SPEED, protocol=protocol, tool=tasks.CURADOR, epsilon=epsilon)
            theirs = results.found(tasks.SPEED, protocol=protocol, tool=tool, variant=variant, epsilon=epsilon)
            if ours is not None and theirs is not None:
                found.append((theirs.mean / ours.mean, epsilon))
        if len(found) < len(tasks.SPEED_EPSILONS):
            yield Check(promise, "no answer", UNKNOWN)
            continue
        said = ", ".join(f"{ratio:.3g} at ε = {epsilon:g}" for ratio, epsilon in found)
        yield Check(promise, said, PASS if min(found)[0] >= TIMES_FASTER else FAIL)

"""What `check` tells an owner about a study that can be read: refusals that a flag may lift, and warnings."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from curador.study.rules import BrokenRule, broken, dotted
from curador.study.spelling import number_text

if TYPE_CHECKING:
    from curador.study.model import Study


def check_study(study: Study) -> None:
    """Refuse a study that an owner must think about once more.

    Claim   Where every unit has a group key of its own, the expected number of keys that are printed over the life of the
            study is at most 1/100.
    Needs   At most max_units units; a unit's own key passes all thresholds together with probability at most δ.
    Rounds  Exact.
    Source  Linearity of expectation: max_units · δ ≤ 1/100.
    """
    found = _large_delta(study)
    if found is not None and not study.allow_large_delta:
        raise found


def opening_warnings(study: Study) -> tuple[str, ...]:
    """Return what an owner is told whenever the study is opened."""
    if study.least_spend:
        return ()
    how = "how long answers take depends on rows, and who times enough of them reads off what single people have in the table"
    return (f'least_spend is 0: questions may cost next to nothing and never end; {how}. Write least_spend = "0.01%".',)


def owner_warnings(study: Study) -> tuple[str, ...]:
    """Return what an owner should know although the study is accepted. Nothing in it comes from data."""
    warnings: list[str] = []
    found = _large_delta(study)
    if found is not None and study.allow_large_delta:
        warnings.append(str(found).partition("\n")[0])
    unbounded = [table for table in study.tables if not table.public and not any(column.bounds for column in table.columns)]
    told = (
        f"{dotted(('tables', table.name))} declares no bounds: its rows can be counted, never summed." for table in unbounded
    )
    return (*opening_warnings(study), *warnings, *told)


def _large_delta(study: Study) -> BrokenRule | None:
    delta, most = study.budget.delta, Fraction(1, 100 * study.max_units)
    if delta is None or delta <= most:
        return None
    rule = f"at most 1/(100 · max_units), which is {number_text(most)}"
    hint = "declare how many units there can be with max_units, lower delta, or write allow_large_delta = true"
    return broken(("budget", "delta"), rule, delta, hint)

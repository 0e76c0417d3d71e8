"""The receipt of an answer, version 2: what was released, what it cost, under which promise.

A contract: fields keep their meaning, new ones come with a new version. In it: the question, the plan's digest and text,
every measurement with its sensitivity, noise and loss record, caps, bounds, keys, exact costs, the budget before and after,
the ledger and the hash of the entry that charged it, three sentences for a data-protection officer. Not in it, because each
could tell two candidate tables apart: durations, numbers of rows, digests of the data. Nor anybody else's questions.

Version 2 speaks of the entry that was made before any data were read: its time is when the question arrived, and its place
among other entries, which may have been waiting for data, is left out. Version 1 spoke of the entry that settled it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from curador.curator.budget import epsilon_of
from curador.curator.show import amounts_text, rounded
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.plan.parts import measurements_of
from curador.plan.price import QuantileNoise
from curador.plan.wire import written_noise
from curador.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.ledger.amounts import Amounts
    from curador.ledger.entry import Entry
    from curador.ledger.limits import Limits
    from curador.plan.model import BlockPlan, Measurement
    from curador.plan.price import KeyNoise, Noise, Priced
    from curador.query.wire import Written
    from curador.study.model import Study

VERSION = 2


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt as plain JSON values. `plain` is for people, `to_json` for the file."""

    record: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.record[name]

    @property
    def plain(self) -> str:
        """Three sentences for a data-protection officer."""
        return str(self.record["plain"])

    def to_json(self) -> str:
        """Return the text of the file."""
        return json.dumps(self.record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def __str__(self) -> str:
        return self.plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """What the ledger said of an answer.

    entry    the entry that reserved or served it: nothing in it was known after data were read
    cost     of this answer; nothing if it was given before
    limit    of the asker, with what was spent of it before and after
    study    what all askers together had spent before and after
    """

    entry: Entry
    cost: Amounts
    limit: Amounts
    before: Amounts
    after: Amounts
    study: tuple[Amounts, Amounts]
    served: bool


def make_receipt(
    study: Study,
    limits: Limits,
    priced: Sequence[Priced],
    charged: Charged,
    *,
    question: str,
    plan_digest: str,
    plan_text: str,
    answer_digest: str,
) -> Receipt:
    """Return the receipt of an answer."""
    blocks = [
        (block, noises, selection)
        for one in priced
        for block, noises, selection in zip(one.plan.blocks, one.noises, one.selections, strict=True)
    ]
    entry, pure = charged.entry, limits.kind == "pure"
    record = {
        "version": VERSION,
        "id": entry.shown,
        "time": entry.time,
        "study": {"name": study.name, "digest": study.digest},
        "analyst": entry.analyst,
        "question": question,
        "plan": {"digest": plan_digest, "text": plan_text},
        "unit": study.unit_name,
        "adjacency": str(study.adjacency),
        "caps": [_caps(block) for block, _, _ in blocks],
        "bounds": [bound for block, _, _ in blocks for bound in _bounds(block)],
        "data_version": entry.data_version,
        "measurements": [row for block, noises, _ in blocks for row in _measurements(block, noises)],
        "keys": [_keys(block, selection) for block, _, selection in blocks],
        "cost": _amounts(charged.cost, pure=pure),
        "budget": _budget(limits, charged),
        "answer_digest": answer_digest,
        "ledger": {"id": entry.ledger, "hash": entry.hash},
        "software": {"name": "curador", "version": _version()},
        "plain": " ".join(_sentences(study, limits, charged, [block for block, _, _ in blocks])),
    }
    return Receipt(record)


def fit_receipt(
    study: Study,
    limits: Limits,
    charged: Charged,
    *,
    description: Mapping[str, Any],
    losses: Sequence[Mapping[str, Any]],
    model_digest: str,
    exact: bool,
) -> Receipt:
    """Return the receipt of a fitted model: what was learned by what, at what cost, and whether its noise is exact."""
    entry, pure = charged.entry, limits.kind == "pure"
    unit = study.unit_name
    how = "" if exact else ", which was drawn in floating point: the guarantee is that of ideal arithmetic"
    first = (
        f"All rows of one {unit} were one record of this fit, and what was learned holds nothing of the rows but what was "
        f"released with noise{how}."
    )
    record = {
        "version": VERSION,
        "id": entry.shown,
        "time": entry.time,
        "study": {"name": study.name, "digest": study.digest},
        "analyst": entry.analyst,
        "fit": dict(description),
        "unit": unit,
        "adjacency": str(study.adjacency),
        "data_version": entry.data_version,
        "losses": list(losses),
        "exact": exact,
        "cost": _amounts(charged.cost, pure=pure),
        "budget": _budget(limits, charged),
        "model_digest": model_digest,
        "ledger": {"id": entry.ledger, "hash": entry.hash},
        "software": {"name": "curador", "version": _version()},
        "plain": f"{first} {_spent(limits, charged)}",
    }
    return Receipt(record)


@cache
def _version() -> str:
    try:
        return metadata.version("curador")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "unknown"


def _exact(value: Fraction, *, up: bool = True) -> dict[str, str]:
    return {"exact": str(value), "decimal": rounded(value, up=up)}


def _amounts(amounts: Amounts, *, pure: bool, up: bool = True) -> dict[str, dict[str, str]]:
    if pure:
        return {"epsilon": _exact(amounts.epsilon, up=up)}
    return {"rho": _exact(amounts.rho, up=up), "delta": _exact(amounts.delta, up=up)}


def _budget(limits: Limits, charged: Charged) -> dict[str, Any]:
    """The asker's amounts, exact, and the study's guarantee with its ε before and after, which is for display."""
    pure = limits.kind == "pure"
    before, after = charged.study
    return {
        "of": "study" if charged.entry.analyst is None else "share",
        "limit": _amounts(charged.limit, pure=pure, up=False),
        "before": _amounts(charged.before, pure=pure),
        "after": _amounts(charged.after, pure=pure),
        "study": {
            "epsilon": str(limits.epsilon),
            "delta": str(limits.delta),
            "delta_keys": str(limits.delta_keys),
            "delta_conv": str(limits.delta - limits.delta_keys),
            "rho_limit": str(limits.rho_limit),
            "epsilon_before": epsilon_of(limits, before),
            "epsilon_after": epsilon_of(limits, after),
        },
    }


def _caps(block: BlockPlan) -> dict[str, int]:
    own = block.contribution
    return {"rows": own.rows, "groups": own.groups, "rows_per_group": own.in_group}


def _bounds(block: BlockPlan) -> list[dict[str, str]]:
    """Every grid that values were clamped to, named by the measurements that use it."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for one in block.measurements:
        grids = [block.tallies[tally].grid for tally, _ in one.combination]
        for grid in [*grids, one.grid]:
            if grid is not None:
                ends = {"lower": str(grid.value(0)), "upper": str(grid.value(grid.steps)), "step": str(grid.step)}
                found[one.text or one.name, ends["lower"]] = {"of": one.text or one.name, **ends}
    return list(found.values())


def _measurements(block: BlockPlan, noises: Sequence[Noise]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for place, (one, noise) in enumerate(zip(block.measurements, noises, strict=True)):
        rows.append(
            {
                "column": [item.name for item in block.items if place in measurements_of(block, item.expression)],
                "aggregate": one.text or one.name,
                "sensitivity": _sensitivity(one, noise),
                "mechanism": "Quantile" if isinstance(noise, QuantileNoise) else _written(noise)[0],
                "parameters": _parameters(noise),
                "loss": noise.loss.to_record(),
            }
        )
    return rows


def _sensitivity(one: Measurement, noise: Noise) -> dict[str, str]:
    """In steps of the measurement's grid. Rounds: the value of an l2 norm up; its square is exact."""
    if one.kind == "quantile":
        return {"norm": "rank", "value": "1"}
    if isinstance(noise, DiscreteGaussian):
        root = math.isqrt(one.l2_squared)
        value = root if root * root == one.l2_squared else Fraction(math.nextafter(math.sqrt(one.l2_squared), math.inf))
        return {"norm": "l2", "value": rounded(Fraction(value), up=True), "squared": str(one.l2_squared)}
    return {"norm": "l1", "value": str(one.l1)}


def _parameters(noise: object) -> dict[str, Any]:
    return {name: _parameter(value) for name, value in _written(noise)[1].items() if value is not None}


def _parameter(value: object) -> Any:
    match value:
        case Fraction():
            return _exact(value)
        case Adjacency():
            return str(value)
        case bool() | int() | str():
            return value
        case _:
            return _parameters(value)


def _written(noise: object) -> Written:
    found = written_noise(noise)
    if found is None:
        raise TypeError(f"a receipt must be of known mechanisms; got {type(noise).__name__}")
    return found


def _keys(block: BlockPlan, selection: KeyNoise | None) -> dict[str, Any]:
    if not block.keys:
        return {"kind": "none"}
    if selection is None:
        return {"kind": "public"}
    return {
        "kind": "private",
        "delta": _exact(selection.delta),
        "threshold": _exact(selection.threshold),
        "mechanism": _written(selection)[0],
        "parameters": _parameters(selection),
        "loss": selection.loss.to_record(),
    }


def _spent(limits: Limits, charged: Charged) -> str:
    """What it cost, and what is proved of everything together."""
    pure = limits.kind == "pure"
    delta = "" if pure else f", δ = {rounded(limits.delta, up=True)}"
    after = epsilon_of(limits, charged.study[1])
    cost = (
        "The answer had been released before and cost nothing more"
        if charged.served
        else f"It cost {amounts_text(charged.cost, pure=pure, up=True)}, booked before any data were read"
    )
    promised = f"ε = {rounded(limits.epsilon, up=True)}{delta}"
    return (
        f"{cost}; what was spent so far amounts to ε = {after:.4g}{delta} (for information), and what is proved is that "
        f"everything this study releases, to all analysts and for ever, stays within {promised}."
    )


def _sentences(study: Study, limits: Limits, charged: Charged, blocks: Sequence[BlockPlan]) -> tuple[str, str, str]:
    unit = study.unit_name
    rows = max(block.contribution.rows for block in blocks)
    many = "row" if rows == 1 else "rows"
    added = study.adjacency is Adjacency.ADD_OR_REMOVE_ONE
    change = f"one {unit}'s rows were added or removed" if added else f"one {unit} were another"
    first = (
        f"Random noise hides whether {change} in every table and data version of this study: at most {rows:,} {many} of one "
        f"{unit} entered this answer, and rows that mention a {unit} in another role than the declared one are not protected."
    )
    second = _spent(limits, charged)
    third = (
        "Error bars cover this noise only, not what caps and bounds left out, and what was released may be published, "
        "combined and computed with freely without weakening the guarantee."
    )
    return first, second, third

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
from typing import TYPE_CHECKING, Any, cast

from curador.ledger.amounts import amounts_text
from curador.ledger.limits import epsilon_of
from curador.mechanisms.bracket import QuantileNoise
from curador.mechanisms.gaussian import DiscreteGaussian
from curador.plan.model import measurements_of
from curador.plan.price import loss_record, written_noise
from curador.privacy.adjacency import Adjacency
from curador.text import rounded_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.ledger.amounts import Amounts
    from curador.ledger.entry import Spent
    from curador.ledger.limits import Limits
    from curador.plan.model import BlockPlan, Measurement
    from curador.plan.price import KeyNoise, Noise, Priced
    from curador.query.tree import StoredForm
    from curador.study.model import Study

VERSION = 2
VERSION_WITH_SURVEY = 3
"""Where caps were found by a survey, a receipt names it: in `survey`, with the caps."""


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


_FIELDS = (
    *(
        "version",
        "id",
        "time",
        "study",
        "analyst",
        "question",
        "plan",
        "fit",
        "unit",
        "adjacency",
        "caps",
        "survey",
        "bounds",
    ),
    *("data_version", "measurements", "keys", "losses", "exact", "cost", "budget", "answer_digest", "model_digest", "ledger"),
    *("software", "plain"),
)
"""The order in which a receipt is written."""


def answer_terms(
    study: Study, plans: Sequence[Priced], *, question: str, plan_digest: str, plan_text: str
) -> Mapping[str, Any]:
    """Return the fields that all receipts of one question have in common, whatever the ledger and the data say.

    Of the three sentences in `plain` these are the first and the last: what the answer cost stands between them.
    """
    blocks = [
        (block, noises, selection)
        for priced in plans
        for block, noises, selection in zip(priced.plan.blocks, priced.noises, priced.selections, strict=True)
    ]
    return {
        "question": question,
        "plan": {"digest": plan_digest, "text": plan_text},
        "caps": [_caps(block) for block, _, _ in blocks],
        "bounds": [bound for block, _, _ in blocks for bound in _bounds(block)],
        "measurements": [row for block, noises, _ in blocks for row in _measurements(block, noises)],
        "keys": [_keys(block, selection) for block, _, selection in blocks],
        "plain": _sentences(study, [block for block, _, _ in blocks]),
    }


def answer_receipt(study: Study, limits: Limits, spent: Spent, terms: Mapping[str, Any], *, answer_digest: str) -> Receipt:
    """Return the receipt of an answer."""
    first, last = terms["plain"]
    plain = " ".join((first, _cost_sentence(limits, spent), last))
    return _receipt(study, limits, spent, {**terms, "answer_digest": answer_digest, "plain": plain})


def fit_receipt(
    study: Study,
    limits: Limits,
    spent: Spent,
    *,
    description: Mapping[str, Any],
    losses: Sequence[Mapping[str, Any]],
    model_digest: str,
    exact: bool,
) -> Receipt:
    """Return the receipt of a fitted model: what was learned by what, at what cost, and whether its noise is exact."""
    how = "" if exact else ", which was drawn in floating point: the guarantee is that of ideal arithmetic"
    first = (
        f"All rows of one {study.unit_name} were one record of this fit, and what was learned holds nothing of the rows but "
        f"what was released with noise{how}."
    )
    return _receipt(
        study,
        limits,
        spent,
        {
            "fit": dict(description),
            "losses": list(losses),
            "exact": exact,
            "model_digest": model_digest,
            "plain": f"{first} {_cost_sentence(limits, spent)}",
        },
    )


def _receipt(study: Study, limits: Limits, spent: Spent, own: Mapping[str, Any]) -> Receipt:
    """Return a receipt: what all of them say, and its own fields."""
    entry = spent.entry
    record = {
        "version": VERSION_WITH_SURVEY if "survey" in own else VERSION,
        "id": entry.shown,
        "time": entry.time,
        "study": {"name": study.name, "digest": study.digest},
        "analyst": entry.analyst,
        "unit": study.unit_name,
        "adjacency": str(study.adjacency),
        "data_version": entry.data_version,
        "cost": _amounts(spent.cost, pure=limits.kind == "pure"),
        "budget": _budget(limits, spent),
        "ledger": {"id": entry.ledger, "hash": entry.hash},
        "software": {"name": "curador", "version": _version()},
        **own,
    }
    return Receipt({name: record[name] for name in sorted(record, key=_FIELDS.index)})


@cache
def _version() -> str:
    try:
        return metadata.version("curador")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "unknown"


def _exact(value: Fraction, *, up: bool = True) -> dict[str, str]:
    return {"exact": str(value), "decimal": rounded_text(value, up=up)}


def _amounts(amounts: Amounts, *, pure: bool, up: bool = True) -> dict[str, dict[str, str]]:
    if pure:
        return {"epsilon": _exact(amounts.epsilon, up=up)}
    return {"rho": _exact(amounts.rho, up=up), "delta": _exact(amounts.delta, up=up)}


def _budget(limits: Limits, spent: Spent) -> dict[str, Any]:
    """The asker's amounts, exact, and the study's guarantee with an ε before and after, which is for display.

    To the owner it is that of all; to an analyst that of the own share, since what others spend is nobody else's to see.
    """
    pure = limits.kind == "pure"
    before, after = spent.study if spent.entry.analyst is None else (spent.before, spent.after)
    return {
        "of": "study" if spent.entry.analyst is None else "share",
        "limit": _amounts(spent.limit, pure=pure, up=False),
        "before": _amounts(spent.before, pure=pure),
        "after": _amounts(spent.after, pure=pure),
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
    for measurement in block.measurements:
        grids = [block.tallies[tally].grid for tally, _ in measurement.combination]
        for grid in [*grids, measurement.grid]:
            if grid is not None:
                ends = {"lower": str(grid.value(0)), "upper": str(grid.value(grid.steps)), "step": str(grid.step)}
                found[measurement.text or measurement.name, ends["lower"]] = {
                    "of": measurement.text or measurement.name,
                    **ends,
                }
    return list(found.values())


def _measurements(block: BlockPlan, noises: Sequence[Noise]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for place, (measurement, noise) in enumerate(zip(block.measurements, noises, strict=True)):
        rows.append(
            {
                "column": [item.name for item in block.items if place in measurements_of(block, item.expression)],
                "aggregate": measurement.text or measurement.name,
                "sensitivity": _sensitivity(measurement, noise),
                "mechanism": "Quantile" if isinstance(noise, QuantileNoise) else _wire_form(noise)[0],
                "parameters": _parameters(noise),
                "loss": loss_record(noise),
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
        return {"norm": "l2", "value": rounded_text(Fraction(value), up=True), "squared": str(one.l2_squared)}
    return {"norm": "l1", "value": str(one.l1)}


def _parameters(noise: object) -> dict[str, Any]:
    return {name: _parameter(value) for name, value in _wire_form(noise)[1].items() if value is not None}


def _parameter(value: object) -> Any:
    match value:
        case Fraction():
            return _exact(value)
        case Adjacency():
            return str(value)
        case bool() | int() | str():
            return value
        case tuple():
            return [_parameter(one) for one in cast("tuple[object, ...]", value)]
        case _:
            return _parameters(value)


def _wire_form(noise: object) -> StoredForm:
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
        "mechanism": _wire_form(selection)[0],
        "parameters": _parameters(selection),
        "loss": loss_record(selection),
    }


def _cost_sentence(limits: Limits, spent: Spent) -> str:
    """What it cost, and what is proved of everything together."""
    pure = limits.kind == "pure"
    delta = "" if pure else f", δ = {rounded_text(limits.delta, up=True)}"
    after = epsilon_of(limits, spent.study[1])
    cost = (
        "The answer had been released before and cost nothing more"
        if spent.served
        else f"It cost {amounts_text(spent.cost, pure=pure, up=True)}, booked before any data were read"
    )
    promised = f"ε = {rounded_text(limits.epsilon, up=True)}{delta}"
    return (
        f"{cost}; what was spent so far amounts to ε = {after:.4g}{delta} (for information), and what is proved is that "
        f"everything this study releases, to all analysts and for ever, stays within {promised}."
    )


def _sentences(study: Study, blocks: Sequence[BlockPlan]) -> tuple[str, str]:
    """The first and the last sentence of an answer: what is hidden, and what error bars and readers may do."""
    unit = study.unit_name
    rows = max(block.contribution.rows for block in blocks)
    many = "row" if rows == 1 else "rows"
    added = study.adjacency is Adjacency.ADD_OR_REMOVE_ONE
    change = f"one {unit}'s rows were added or removed" if added else f"one {unit} were another"
    first = (
        f"Random noise hides whether {change} in every table and data version of this study: at most {rows:,} {many} of one "
        f"{unit} entered this answer, and rows that mention a {unit} in another role than the declared one are not protected."
    )
    third = (
        "Error bars cover this noise only, not what caps and bounds left out, and what was released may be published, "
        "combined and computed with freely without weakening the guarantee."
    )
    return first, third

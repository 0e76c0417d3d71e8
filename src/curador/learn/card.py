"""The privacy card of a fitted estimator: what was released, with how much noise, and what that guarantees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curador.errors import InvalidParameter
from curador.learn.release import ReleaseSummary
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE, REPLACE_ONE, Adjacency

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.learn.plan import FitPlan

STORED_ADJACENCY = {ADD_OR_REMOVE_ONE: "add_remove", REPLACE_ONE: "replace_one"}
"""How cards and models write an adjacency, under the name "neighbours": for ever."""


def read_adjacency(word: str) -> Adjacency:
    """Return the adjacency that a card or a model names; KeyError where it names none."""
    return {stored: adjacency for adjacency, stored in STORED_ADJACENCY.items()}[word]


@dataclass(frozen=True, slots=True)
class PrivacyCard:
    """What one fit costs and on what that rests.

    unit       whose presence is protected: "record", "user", or the study's unit
    guarantee  "central": everything that was released; "joint": everything but what each unit computes for itself
    exact      whether every release is integer noise on exact integers; else the guarantee is of ideal real arithmetic
    epsilon    with delta: an upper bound
    rho        in zCDP, as text of an exact fraction
    records    the number of records that normalisations used: declared, or public where records are replaced
    """

    estimator: str
    method: str
    epsilon: float
    delta: float
    rho: str
    adjacency: Adjacency
    unit: str
    guarantee: str
    exact: bool
    records: int | None
    releases: tuple[ReleaseSummary, ...]
    notes: tuple[str, ...] = ()
    entry: str | None = None
    """The ledger's entry that paid for it, where it was fitted through a curator."""

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "estimator": self.estimator,
            "method": self.method,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "neighbours": STORED_ADJACENCY[self.adjacency],
            "unit": self.unit,
            "guarantee": self.guarantee,
            "exact": self.exact,
            "records": self.records,
            "releases": tuple(_release_record(release) for release in self.releases),
            "notes": self.notes,
            "entry": self.entry,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> PrivacyCard:
        """Read what `to_record` wrote."""
        try:
            made = cls(
                estimator=record["estimator"],
                method=record["method"],
                epsilon=record["epsilon"],
                delta=record["delta"],
                rho=record["rho"],
                adjacency=read_adjacency(record["neighbours"]),
                unit=record["unit"],
                guarantee=record["guarantee"],
                exact=record["exact"],
                records=record["records"],
                releases=tuple(_read_release(one) for one in record["releases"]),
                notes=tuple(record["notes"]),
                entry=record.get("entry"),
            )
        except (KeyError, TypeError, AttributeError) as problem:
            raise InvalidParameter.must_be("a privacy card", "as it was written", type(problem).__name__) from None
        if not set(record) <= set(made.to_record()):  # unknown fields are refused, never guessed
            raise InvalidParameter.must_be("a privacy card", "as it was written", "other fields")
        return made

    def __str__(self) -> str:
        cost = f"ε = {self.epsilon:.6g}" + (f" at δ = {self.delta:.3g}" if self.delta else ", no δ")
        lines = [
            f"{self.estimator} ({self.method})",
            f"  guarantee   {cost}, {self.guarantee}",
            f"  neighbours  tables that differ by one {self.unit}: {_NEIGHBOURS[self.adjacency]}",
            f"  noise       {'exact integers and exact noise' if self.exact else 'ideal real arithmetic: not exact'}",
        ]
        lines += [
            f"  released    {release.name}: {release.count} × {release.numbers} numbers"
            f" ± {release.deviation:.4g} for {release.sensitivity:.4g}"
            for release in self.releases
        ]
        if self.records is not None:
            lines.append(f"  records     {self.records} ({'public' if self.adjacency is REPLACE_ONE else 'declared'})")
        return "\n".join([*lines, *(f"  note        {note}" for note in self.notes)])


def _release_record(one: ReleaseSummary) -> dict[str, Any]:
    return {
        "name": one.name,
        "count": one.count,
        "numbers": one.numbers,
        "sensitivity": one.sensitivity,
        "deviation": one.deviation,
    }


def _read_release(record: Mapping[str, Any]) -> ReleaseSummary:
    made = ReleaseSummary(
        name=record["name"],
        count=record["count"],
        numbers=record["numbers"],
        sensitivity=record["sensitivity"],
        deviation=record["deviation"],
    )
    if set(record) != set(_release_record(made)):
        raise KeyError(*record)
    return made


_NEIGHBOURS = {ADD_OR_REMOVE_ONE: "one more or one less", REPLACE_ONE: "one replaced by another"}


def make_card(
    plan: FitPlan,
    releases: Sequence[ReleaseSummary],
    *,
    estimator: str,
    method: str,
    unit: str = "record",
    guarantee: str = "central",
    exact: bool = True,
    records: int | None = None,
    notes: Sequence[str] = (),
) -> PrivacyCard:
    """Return the card of a plan and of what was released under it."""
    delta = plan.goal.delta
    return PrivacyCard(
        estimator=estimator,
        method=method,
        epsilon=float(plan.goal.epsilon),
        delta=float(delta),
        rho=str(plan.rho),
        adjacency=plan.goal.adjacency,
        unit=unit,
        guarantee=guarantee,
        exact=exact,
        records=records,
        releases=tuple(releases),
        notes=tuple(notes),
    )

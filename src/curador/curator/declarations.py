"""What a study declares, as the ledger keeps it: an owner who changes caps, bounds or shares leaves an entry that says so.

The first entry of a ledger holds what its study declared then, a declared entry what it declares from there on. Both are
compared with the study at every opening. Ledgers that were made before hold a fingerprint only: that something changed is
known then, and not what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from curador.canonical import canonical_digest, canonical_text
from curador.study.model import digested_meaning
from curador.study.values import share_text

if TYPE_CHECKING:
    from curador.ledger.entry import Entry
    from curador.ledger.ledger import Ledger
    from curador.study.model import Study

MOST_VALUES: Final = 20
"""Values of a column that are written down one by one; of more, their number and a digest."""
_LONGEST_NOTE: Final = 900  # letters; an entry's note has at most 1,000
FOUND = "found by the survey"
"""What is said of caps that nobody declared."""

_CAPS: Final = ("rows", "groups", "rows_per_group")
_BUDGET: Final = ("epsilon", "delta", "delta_keys")
_NOT_KNOWN: Final = "what was declared before is known by its fingerprint only"


def declared_details(study: Study) -> dict[str, Any]:
    """Return what a study declares, as an entry holds it."""
    return {"study": study.name, "declarations": _declarations(study)}


def declare_changes(ledger: Ledger, study: Study) -> Entry | None:
    """Write an entry where the study declares something else than when the ledger last heard of it; None where not."""
    now, before = declared_details(study), _last(ledger, study)
    held = None if before is None or before.details is None else before.details.get("declarations")
    if before is None:
        changed = ["the first declarations of this study here"]
    elif held is None:
        changed = [] if before.study_digest == study.digest else [_NOT_KNOWN]
    else:
        changed = list(_changes(held, now["declarations"]))
    if not changed:
        return None
    note = f"study {study.name} declares otherwise: {_cut(changed)}"
    return ledger.declare({**now, "changed": changed}, note=note, study_digest=study.digest)


def is_declared_otherwise(study: Study, entry: Entry) -> bool:
    """Whether an entry that says what a study declares says something else than this study: it is not in force any more."""
    held = None if entry.details is None else entry.details.get("declarations")
    if entry.study_digest != study.digest or held is None:
        return entry.study_digest != study.digest
    return any(True for _ in _changes(held, _declarations(study)))


def digests_of_others(ledger: Ledger, study: Study) -> set[str]:
    """Return the fingerprints under which other studies that share a ledger were known to it."""
    spoken = [ledger.first, *ledger.declarations()]
    others = {one.study_digest for one in spoken if _name_in(one) not in {study.name, None}}
    return others - {study.digest}


def _last(ledger: Ledger, study: Study) -> Entry | None:
    """Return the entry that last said what the study declares: with its declarations, or at least with its fingerprint."""
    found = ledger.declared(study.name)
    if found is not None:
        return found
    first = ledger.first
    if _name_in(first) != study.name:
        return None
    return first if first.details is not None else ledger.last  # a question is charged under the fingerprint of its study


def _name_in(entry: Entry) -> str | None:
    said = (entry.details or {}).get("study") or (entry.creation or {}).get("study_name")
    return said if isinstance(said, str) else None


def _declarations(study: Study) -> dict[str, Any]:
    """Return everything that is compared, under the names that a study file has, as canonical JSON gives it back."""
    meaning: dict[str, Any] = {**digested_meaning(study)}
    del meaning["version"], meaning["name"]
    meaning["budget"] = dict(zip(_BUDGET, meaning["budget"], strict=True))
    meaning["tables"] = {name: _table(table) for name, table in meaning["tables"].items()}
    for table in study.tables:
        if table.surveyed:
            meaning["tables"][table.name]["caps"] = FOUND
    meaning["least_spend"] = share_text(study.least_spend)
    meaning["analysts"] = {
        analyst.name: {
            "share": share_text(analyst.share),
            "tables": None if analyst.tables is None else sorted(analyst.tables),
            "train": analyst.train,
        }
        for analyst in study.analysts
    }
    return meaning


def _table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with caps under their names and long lists of values by their number."""
    caps = {name: _caps(table[name]) for name in ("caps", "caps_max")}
    columns = {name: {**column, "values": _values(column["values"])} for name, column in table["columns"].items()}
    return {**table, **caps, "columns": columns}


def _caps(caps: object) -> object:
    """Return caps under their names; a form that is not known here stays as it is."""
    if isinstance(caps, list) and len(cast("list[object]", caps)) == len(_CAPS):
        return dict(zip(_CAPS, cast("list[object]", caps), strict=True))
    return caps


def _values(values: list[str] | None) -> object:
    if values is None or len(values) <= MOST_VALUES:
        return values
    return {"number": len(values), "digest": canonical_digest(values)}


def _changes(before: object, now: object, path: str = "") -> Iterator[str]:
    """Yield what differs, each as "tables.visits.caps.rows: 10 → 20"."""
    if isinstance(before, Mapping) and isinstance(now, Mapping) and "digest" not in {*before, *now}:
        old, new = cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", now)
        for name in sorted({*old, *new}):
            place = f"{path}.{name}" if path else name
            if name not in old:
                yield f"{place}: new"
            elif name not in new:
                yield f"{place}: no longer declared"
            else:
                yield from _changes(old[name], new[name], place)
    elif before != now:
        old_words, new_words = _said(before), _said(now)
        yield f"{path}: {old_words} → {new_words if new_words != old_words else f'{new_words}, others'}"


def _said(value: object) -> str:
    """Return a declared value in a few words."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, Any]", value)
        if "digest" in inner:  # a long list of values
            return f"{inner['number']:,} values"
        return ", ".join(f"{name} {_said(one)}" for name, one in inner.items() if one is not None)
    if isinstance(value, list):
        return f"[{', '.join(_said(one) for one in cast('list[object]', value))}]"
    return value if isinstance(value, str) else canonical_text(value)


def _cut(changed: list[str]) -> str:
    """Return what changed in one line; the entry's details have all of it."""
    kept: list[str] = []
    for place, change in enumerate(changed):
        if sum(map(len, kept)) + len(change) > _LONGEST_NOTE // 2 and place:
            return "; ".join([*kept, f"and {len(changed) - place} more"])
        kept.append(change[: _LONGEST_NOTE // 2])
    return "; ".join(kept)

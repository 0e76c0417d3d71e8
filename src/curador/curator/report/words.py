"""What a report says in sentences: of a record alone, so that a stored report says the same for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.text import rounded_text

if TYPE_CHECKING:
    from collections.abc import Iterator

ORIGINS = {
    "declared": "declared by the owner",
    "default": "not declared: the default",
    "follows from the unit": "follows from the unit",
    "found by a survey": "found by a survey, with noise",
    "not known yet": "not known yet",
    "public table": "public table: not limited",
}


def alarms(record: Mapping[str, Any]) -> list[str]:
    """Return what is wrong, and must be read before anything else."""
    out: list[str] = []
    verified, problem = record["verification"], record["ledger_problem"]
    if problem is not None:
        out.append(f"The ledger could not be opened: {problem}")
    if verified is not None and not verified["whole"]:
        if verified["chain"] != "agrees":
            out.append(f"The chain of the ledger is broken: {verified['chain']}")
        if verified["witness"] != "agrees":
            out.append(f"The ledger disagrees with its witness: {verified['witness']}")
        out.append("Do not rely on what this page says of spending until the owner has explained it.")
    audit = record["audit"]
    if audit is not None and not audit["passed"]:
        out.append("The last audit on record was not passed.")
    return out


def concerns(record: Mapping[str, Any]) -> list[str]:
    """Return what somebody who signs should think about."""
    out = [*record["promise"]["warnings"]]
    others = record["other_ledgers"]
    if others is not None and others["ledgers"]:
        out.append("The same rows have another ledger: what the ledgers promise adds up for whoever is in these rows.")
    ledger, audit = record["ledger"], record["audit"]
    if ledger is not None and ledger["declared_otherwise_now"]:
        out.append("The study file declares something else than the ledger last heard. The next opening writes an entry.")
    if ledger is not None and ledger["closed_to_analysts"]:
        out.append("The study is closed to analysts after engine failures, until its owner opens it again.")
    if audit is not None and not audit["of_this_study"]:
        out.append("The audit on record was of other declarations than those of today.")
    if audit is not None and audit["of_this_study"] and not audit["of_this_data_version"]:
        out.append("The audit on record was of an earlier data version.")
    if "when they are ready" in record["promise"]["answers_leave"]:
        out.append("Answers leave when they are ready: how long one takes depends on rows (engine.answer_every changes it).")
    return [*out, *record["not_looked_at"]]


def budget_words(record: Mapping[str, Any]) -> str:
    """Return the promise in its own letters."""
    promise = record["promise"]
    delta = "" if promise["delta"] is None else f", δ = {promise['delta']['decimal']}"
    return f"ε = {promise['epsilon']['decimal']}{delta}"


def spent_words(record: Mapping[str, Any]) -> str:
    """Return how much was spent, in percent first."""
    spent = record["spent"]
    if spent is None:
        return "Nothing is known of spending." if record["ledger_problem"] or record["verification"] else "Nothing yet."
    return f"{spent['percent']} of the budget is spent; {spent['percent_left']} is left."


def verified_words(record: Mapping[str, Any]) -> str:
    """Return what reading the chain showed."""
    verified, ledger = record["verification"], record["ledger"]
    if record["ledger_problem"] is not None:
        return "The ledger could not be opened, so nothing was verified."
    if verified is None:
        return "There is no ledger yet: it is made when the study is first opened."
    if not verified["whole"]:
        return "NOT WHOLE: see the top of this page."
    count = "" if ledger is None else f" ({ledger['entries']:,})"
    return f"Whole: every entry{count}, sum and stored answer was read while this report was made, and the witness agrees."


def audit_words(record: Mapping[str, Any]) -> str:
    """Return what is on record of an audit."""
    audit = record["audit"]
    if audit is None:
        return "No audit on record."
    how = "Passed" if audit["passed"] else "NOT PASSED"
    day = audit["time"][:10]
    beside = _many(audit["neighbours"], "neighbour")
    asked = f"{_many(audit['questions_replayed'], 'question')} of the ledger replayed, with {beside}"
    left = audit["purchases_not_replayed"]
    rest = f" Not replayed, as no question of SQL: {_many(left, 'purchase')}." if left else ""
    return f"{how} on {day}: {asked}.{rest} Canaries: {audit['canaries']:,}. Read from the file that the owner named."


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def caps_words(caps: Mapping[str, Any], unit: str) -> str:
    """Return what one unit may contribute to a question."""
    if caps["rows"] is None:
        return ORIGINS[caps["origin"]]
    if caps["rows"] == 1:
        return f"at most 1 row per {unit}"
    parts = [f"{caps['rows']:,} rows"]
    parts += [f"{caps['groups']:,} groups"] if caps["groups"] < caps["rows"] else []
    parts += [f"{caps['rows_per_group']:,} rows in one group"] if caps["rows_per_group"] < caps["rows"] else []
    most = caps["highest_of_a_question"]
    more = "" if most is None else f"; a question may ask for up to {most['rows']:,} rows"
    return f"at most {', '.join(parts)} per {unit}{more}"


def origin_words(caps: Mapping[str, Any]) -> str:
    """Return where a cap came from."""
    bought = caps["survey"]
    if bought is None:
        return ORIGINS[caps["origin"]]
    return (
        f"{ORIGINS[caps['origin']]}: entry {bought['entry']} of {bought['time'][:10]}, data version {bought['data_version']}"
    )


def values_words(column: Mapping[str, Any], *, public: bool) -> str:
    """Return which values a column may have: bounds, or a list."""
    bounds, values = column["bounds"], column["values"]
    if public:
        return "public"
    if bounds is not None:
        return f"from {bounds['lower']} to {bounds['upper']}"
    if values is None:
        return "none: counted and filtered on, never summed"
    listed = values.get("listed")
    if not listed:
        return f"{values['number']:,} listed values. These groups are never hidden"
    shown = ", ".join(str(one) for one in listed[:MOST_SHOWN])
    more = len(listed) - MOST_SHOWN
    return f"one of: {shown}{f' and {more} more' if more > 0 else ''}. These groups are never hidden"


MOST_SHOWN = 8
"""Listed values of a column that a page shows."""


def amounts_words(amounts: Mapping[str, str]) -> str:
    """Return exact amounts with a few digits. Rounds: up."""
    signs = {"epsilon": "ε", "rho": "ρ", "delta": "δ of unlisted groups"}
    return ", ".join(
        f"{sign} {rounded_text(Fraction(amounts[name]), up=True)}" for name, sign in signs.items() if name in amounts
    )


def statement(record: Mapping[str, Any]) -> list[str]:
    """Return what is to be signed, in lines."""
    study, protected = record["study"], record["protected"]
    lines = [f"Report of study {study['name']}, {record['made']}", *_marked("!", alarms(record))]
    lines += ["", "Who is protected", *_marked("-", protected["words"])]
    lines += ["", "How strongly", *_marked("-", record["promise"]["belief_words"])]
    lines += [f"- The budget is {budget_words(record)}, for ever, over all analysts and data versions together."]
    lines += ["", "Spent", f"- {spent_words(record)}"]
    lines += [f"- {who_words(row)}: {row['percent']} of the budget" for row in (record["spent"] or {"by": ()})["by"]]
    lines += ["", "Ledger", f"- {verified_words(record)}", "", "Last audit", f"- {audit_words(record)}"]
    found = concerns(record)
    lines += ["", "To think about", *_marked("-", found)] if found else []
    return [*lines, "", f"Digest of the study: {study['digest']}"]


def who_words(row: Mapping[str, Any]) -> str:
    """Return whose line of the spending it is."""
    if row["name"] is None:
        return "owner"
    return str(row["name"]) if row["declared"] else f"{row['name']} (declared no more)"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    return (f"{mark} {line}" for line in lines)

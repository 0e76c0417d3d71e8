"""The questions that NIST SP 800-226 raises, in our own words, answered of a study as far as a study knows the answer.

Section numbers are those of the initial public draft of December 2023; the final edition of March 2025 may number otherwise.
What a study cannot know is said to be the owner's to answer, and never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from curador.curator.report.words import audit_words, budget_words, caps_words, origin_words

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE: Final = (
    "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees, initial public draft, December 2023"
)
OWNERS: Final = "For the owner to answer: the study does not know."


def guideline_body(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return every question with its section, and its answer, or None where it is the owner's."""
    rows: list[dict[str, Any]] = []
    for section, question, answer in _QUESTIONS:
        told = None if answer is None else answer(record)
        rows.append({"section": section, "question": question, "answer": told})
    return {"source": SOURCE, "questions": rows}


def _size(record: Mapping[str, Any]) -> str:
    words = " ".join(record["promise"]["belief_words"])
    return f"{budget_words(record)}, for everything that is ever released. {words}"


def _variant(record: Mapping[str, Any]) -> str:
    promise = record["promise"]
    if promise["kind"] == "pure":
        return f"Pure differential privacy: ε = {promise['epsilon']['decimal']}, δ = 0."
    return (
        f"Approximate: {budget_words(record)}, counted as ρ = {promise['rho']['decimal']} of zero-concentrated privacy."
        f" A part of δ, {promise['delta_for_unlisted_groups']['decimal']}, pays for groups that nobody listed."
    )


def _unit(record: Mapping[str, Any]) -> str:
    return " ".join(record["protected"]["words"])


def _bounded(record: Mapping[str, Any]) -> str:
    unit = record["protected"]["unit"]
    private = [table for table in record["tables"] if not table["public"]]
    return "; ".join(
        f"{table['name']}: {caps_words(table['caps'], unit)} ({origin_words(table['caps'])})" for table in private
    )


def _compared(record: Mapping[str, Any]) -> str:
    neighbours = str(record["protected"]["adjacency"]).replace("_", " ")
    return f"{_variant(record)} Unit: {record['protected']['unit']}. Neighbours: {neighbours}."


def _others(record: Mapping[str, Any]) -> str:
    found = record["other_ledgers"]
    known = (
        "Other ledgers could not be looked for."
        if found is None
        else f"Other ledgers of the same rows that are known here: {len(found['ledgers'])}."
    )
    return f"{known} Releases without noise, or by other software, are for the owner to name."


def _mechanisms(_: Mapping[str, Any]) -> str:
    return (
        "Exact integers are summed first; then discrete Gaussian or discrete Laplace noise is added to them."
        " Quantiles and unlisted groups have mechanisms of their own."
        " How far one unit moves each number is proved from caps and bounds. Every receipt has it."
    )


def _utility(_: Mapping[str, Any]) -> str:
    return "Every released number has an error bar. A preview says how wide it will be before anything is spent."


def _bias(record: Mapping[str, Any]) -> str:
    private = record["promise"]["kind"] != "pure"
    hidden = " Small groups that nobody listed are hidden." if private else ""
    return f"Caps and bounds leave rows out, which moves answers to one side. Error bars do not cover that.{hidden}"


def _fits(record: Mapping[str, Any]) -> str:
    names = [one["name"] for one in record["analysts"] if one["may_fit_models"]]
    who = ", ".join(names) if names else "the owner only"
    return f"Models may be fitted through the same budget, by: {who}."


def _asked(record: Mapping[str, Any]) -> str:
    return (
        "Interactive: people ask questions, one after the other."
        f" All of them share one budget, decided before rows are read. One costs at least {record['promise']['least_spend']}"
        " of its asker's limit."
    )


def _trust(_: Mapping[str, Any]) -> str:
    return (
        "The central model. The owner and the machine are trusted. Analysts are not: they may work together, know all other"
        " rows, and choose each question after seeing all answers."
    )


def _implemented(record: Mapping[str, Any]) -> str:
    pace = str(record["promise"]["answers_leave"])
    return (
        "Noise of answers is exact: no floating point decides anything. A fit with inexact noise says so in its receipt."
        f" On time: {pace}. That a question failed can tell one bit. Audit: {audit_words(record)}"
    )


def _secured(_: Mapping[str, Any]) -> str:
    return (
        "Ledger and prepared copy are files of their owner alone."
        " Encryption of disks, access to the machine and backups are for the owner to describe."
    )


_QUESTIONS: tuple[tuple[str, str, Callable[[Mapping[str, Any]], str] | None], ...] = (
    ("2.2", "How large is ε, and what does it cover?", _size),
    ("2.2", "Why was this ε chosen?", None),
    ("2.3", "Which variant is it, and what is δ?", _variant),
    ("2.4", "Who is the unit of privacy: a person, or one event?", _unit),
    ("2.4", "How are contributions of one unit bounded?", _bounded),
    ("2.4", "Is this unit enough for the harms that could come to these people?", None),
    ("2.5", "What does somebody need to compare it with other promises?", _compared),
    ("2.6", "Are other statistics of the same data released?", _others),
    ("3.1", "Which mechanisms add noise, and to what sensitivity?", _mechanisms),
    ("3.2", "How is accuracy measured?", _utility),
    ("3.3", "What moves answers to one side, and whom does it concern?", _bias),
    ("3.3.1", "Who is harmed by errors in small groups?", None),
    ("3.5", "Is machine learning done with the same data?", _fits),
    ("4.1", "Is it a release, or do people ask? How is the budget shared?", _asked),
    ("4.2", "Who is trusted?", _trust),
    ("4.3", "What was done about floating point, time and failures?", _implemented),
    ("4.4", "How are the data secured, and who has access?", _secured),
    ("4.5", "Need these data be collected at all?", None),
)


def answer_to(section: str, record: Mapping[str, Any]) -> str:
    """Return the first answer of a section that a study knows."""
    return next(answer(record) for number, _, answer in _QUESTIONS if number == section and answer is not None)

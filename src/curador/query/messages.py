"""Refusals of a question: where it stands, which rule it breaks, what to write instead. Nothing in them comes from data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curador.errors import InvalidQuery, NotPrivate, shown
from curador.text import nearest_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from curador.query.tree import Place

_MOST_LISTED = 12


def invalid(place: Place | None, rule: str, hint: str | None = None, *, about: str = "") -> InvalidQuery:
    """Return the refusal of what cannot be read or breaks a rule of the language; about: its subject, for programs."""
    return InvalidQuery(_sentence(place, rule), hint=hint, place=place, subject=about)


def not_private(place: Place | None, rule: str, hint: str | None = None) -> NotPrivate:
    """Return the refusal of what no rule of privacy covers."""
    return NotPrivate(_sentence(place, rule), hint=hint, place=place)


def _sentence(place: Place | None, rule: str) -> str:
    return f"{rule}." if place is not None else f"{rule[0].upper()}{rule[1:]}."


def quote_name(name: str) -> str:
    """Return a name as messages show it, cut where it is long."""
    return shown(name).replace("'", '"') if "'" not in name else shown(name)


def suggest_names(name: str, names: Iterable[str], what: str) -> str:
    """Return a hint with the names that look like this one, else with those there are."""
    known = list(dict.fromkeys(names))
    close = nearest_names(name, known, most=3)
    if close:
        return f"did you mean {' or '.join(quote_name(one) for one in close)}?"
    more = ", …" if len(known) > _MOST_LISTED else ""
    listed = ", ".join(quote_name(one) for one in known[:_MOST_LISTED])
    return f"{what}: {listed}{more}." if listed else f"there are no {what}."

"""One shape for all that is refused or fails: application/problem+json (RFC 9457), made of the fields that errors carry.

Claim   In a problem stands what an error of ours says, or an id: no text of another library's, no path, no row.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any, Final

import curador.errors as tree
from curador.errors import (
    BudgetExceeded,
    CuradorError,
    Failed,
    InvalidStudy,
    LedgerBusy,
    NotAllowed,
    Refused,
    UnreadableData,
)
from curador.server.refusals import KeyReused, NotFound, NoToken, Stopping, TooMany, public_name

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA: Final = "application/problem+json"
TITLES: Final = {
    400: "Refused",
    401: "Not logged in",
    403: "Not allowed",
    404: "Not found",
    405: "No such method",
    409: "Key given before",
    413: "Too large",
    415: "Not JSON",
    421: "Another host",
    429: "Too many",
    431: "Header too large",
    500: "Failed",
    503: "Busy",
}
_STATUS: Final[tuple[tuple[type[CuradorError], int], ...]] = (
    (NoToken, 401),
    (NotFound, 404),
    (KeyReused, 409),
    (TooMany, 429),
    (Stopping, 503),
    (LedgerBusy, 503),
    (BudgetExceeded, 403),
    (NotAllowed, 403),
    (UnreadableData, 503),
    (InvalidStudy, 503),
    (Refused, 400),
)
_FIELDS: Final = ("error", "sentence", "subject", "rule", "got", "hint", "place")
_INCIDENT: Final = re.compile(r"Incident ([A-Za-z0-9_-]{1,64})\.\Z")
FAILED: Final = "the service failed; whether anything was charged stands in the budget."
NOT_READY: Final = "the study is not ready to be asked."


def status_of(error: CuradorError) -> int:
    """Return the status of an error; 500 of a failure."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def problem_of(error: CuradorError, *, owner: bool = False) -> dict[str, Any]:
    """Return the problem that an error is.

    owner  whether it is told to the owner: what is wrong with the study itself, its paths too, is nobody else's to read
    """
    status = status_of(error)
    if isinstance(error, InvalidStudy):
        if owner:
            status = 400
        else:
            error = InvalidStudy(NOT_READY, hint="its owner runs `curador check`.")
    fields = error.fields
    body: dict[str, Any] = {"type": "about:blank", "title": TITLES[status], "status": status, "detail": fields["sentence"]}
    if isinstance(error, BudgetExceeded):
        body["title"] = "Budget exceeded"
    body |= {name: fields[name] for name in _FIELDS if name in fields}
    body["error"] = public_name(error)
    if not isinstance(error, Refused):
        found = _INCIDENT.search(error.sentence)
        body["incident"] = found[1] if found else secrets.token_hex(8)
    return body


def plain_problem(status: int, sentence: str, *, hint: str | None = None, error: str = "Refused") -> dict[str, Any]:
    """Return a problem that no error of the library stands for."""
    body = {"type": "about:blank", "title": TITLES.get(status, "Refused"), "status": status, "detail": sentence}
    return body | {"error": error, "sentence": sentence} | ({"hint": hint} if hint else {})


def error_of(problem: Mapping[str, Any]) -> CuradorError:
    """Return the error that a problem was made of, by its fields."""
    kind = getattr(tree, str(problem.get("error")), None)
    made = kind if isinstance(kind, type) and issubclass(kind, CuradorError) else Failed
    said: dict[str, Any] = {
        name: str(problem[name]) for name in ("subject", "rule", "got", "hint", "place") if name in problem
    }
    if {"subject", "rule", "got"} <= said.keys():
        return made(**said)
    kept: dict[str, Any] = {name: text for name, text in said.items() if name in {"hint", "place"}}
    return made(str(problem.get("sentence", FAILED)), **kept)

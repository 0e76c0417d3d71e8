"""Who may do what, and what they are told: roles × routes × fields. Default deny: what is not here is refused.

The routes of `app.py` are compared with this table when the service begins, and a test made of it asks every route as every
role and looks at every field that comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

OWNER, ANALYST, AUDITOR, ANYBODY = "owner", "analyst", "auditor", "anybody"
ROLES: Final = (OWNER, ANALYST, AUDITOR)
ALL: Final = frozenset(ROLES)
ASKERS: Final = frozenset({OWNER, ANALYST})
WATCHERS: Final = frozenset({OWNER, AUDITOR})
EVERYBODY: Final = frozenset({*ROLES, ANYBODY})
PREFIX: Final = "/api/v1"


@dataclass(frozen=True, slots=True)
class Access:
    """One route.

    roles   who may; `anybody` has no token
    fields  what its answer may hold, for all of them: names from the top, [] for a list, * for names that a question gives
    more    further fields of single roles
    own     whether it is about one job, which must be the caller's own
    """

    method: str
    path: str
    roles: frozenset[str]
    fields: tuple[str, ...] = ()
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    own: bool = False

    @property
    def whole_path(self) -> str:
        """The path from the top."""
        return PREFIX + self.path

    def fields_of(self, role: str) -> frozenset[str]:
        """What a role may be told."""
        return frozenset((*self.fields, *self.more.get(role, ())))


def _under(name: str, *fields: str) -> tuple[str, ...]:
    return tuple(f"{name}.{one}" for one in fields)


_AMOUNTS = ("epsilon", "rho", "delta")
_LIMITS = ("most_per_question", "most_per_day", "left_today", "agent")
_ME = ("role", "name", "token", "expires", *_under("study", "name", "unit"), *_under("limits", *_LIMITS), "tick", "deadline")
_TABLES = (
    *("study", "unit", "data_version"),
    *_under("tables[]", "name", "description", "public", "unit", "unit_name", "caps"),
    *_under("tables[].caps", "rows", "groups", "rows_per_group"),
    *_under("tables[].columns[]", "name", "type", "description", "bounds", "bounds[]", "values", "values[]", "nullable"),
    "tables[].columns[].declared",
)
_PREVIEW = (
    *(
        "question",
        "kind",
        "unit",
        "key",
        "confidence",
        "notes[]",
        "fits",
        "stored",
        "explain",
        "sentences[]",
        "share",
        "data_version",
        "made_up",
    ),
    *_under("cost", *_AMOUNTS),
    *_under("limit", *_AMOUNTS),
    *_under("left", *_AMOUNTS),
    *_under("errors[]", "column", "plus_minus", "at_rows.*"),
    *_under("keys[]", "threshold", "units_half", "units_95", "delta"),
    *_under("by_cap.*[]", "column", "plus_minus", "at_rows.*"),
    *_under("columns[]", "name", "type", "interval"),
)
_PREVIEWS = (*_PREVIEW, *_under("questions[]", *_PREVIEW))
_ANSWER = (
    *("id", "state", "question", "confidence", "notes[]", "left_out[]", "stored", "made_up", "data_version", "receipt"),
    *_under("columns[]", "name", "type", "kind", "interval", "exact"),
    *("rows[].*", "options.*", "options.*.*", "options.*.*[]"),
    *_under("cost", *_AMOUNTS, "share"),
    *_under("bias[]", "name", "share", "low", "high"),
)
_JOB = ("id", "state", "ticks_passed", "ticks_most", "events")
_LINE = ("time", "kind", "id", "analyst", "question", "data_version", "refers", "note", "times", "answer")
_HISTORY = (*_under("entries[]", *_LINE, *_under("cost", *_AMOUNTS)), "next")
_HISTORY_OF_ALL = _under("entries[]", "sequence", "hash")
_SPENT = _under("limit", *_AMOUNTS), _under("spent", *_AMOUNTS), _under("left", *_AMOUNTS)
_BUDGET = (
    *("kind", "analyst", "epsilon_spent", "data_version", "closed", "spent_share", "left_share"),
    *_under("guarantee", "epsilon", "delta"),
    *(name for names in _SPENT for name in names),
    *_under("token", *_LIMITS),
)
_BUDGET_OF_ALL = _under("by_analyst[]", "name", "share", "spent_share", *(name for names in _SPENT for name in names))
_TOKEN = (
    *("id", "role", "name", "made", "expires", "most_per_question", "most_per_day", "agent", "note", "revoked", "in_force"),
)
_RECEIPT = ("**",)
_ODDS = (
    *("words[]", "unit", "adjacency", "right_at_most", "found_at_most", "false_alarms", "factor"),
    *_under("promise", "epsilon", "delta"),
)
_REPORT = (
    *("study", "unit", "adjacency", "max_units", "digest", "words[]", "least_spend", "answers_leave"),
    *_under("promise", "epsilon", "delta"),
    *_under("spent", "epsilon", "share"),
    *_under("tables[]", *(name.removeprefix("tables[].") for name in _TABLES if name.startswith("tables[]."))),
    *_under("analysts[]", "name", "share", "tables", "tables[]", "train"),
    *_under("ledger", "id", "entries", "head", "data_version", "closed"),
)
_VERIFICATION = ("chain", "entries", "head", "witness", "checked_at")

ACCESS: Final = (
    Access("GET", "/health", EVERYBODY, ("status",)),
    Access("GET", "/openapi.json", EVERYBODY, ("**",)),
    Access("POST", "/session", EVERYBODY, (*_ME, "csrf")),
    Access("GET", "/session", ALL, (*_ME, "csrf")),
    Access("DELETE", "/session", ALL),
    Access("GET", "/me", ALL, _ME),
    Access("GET", "/tables", ALL, _TABLES),
    Access("POST", "/previews", ASKERS, (*_PREVIEWS, "fits")),
    Access("POST", "/answers", ASKERS, (*_ANSWER, *_JOB)),
    Access("GET", "/answers/{id}", ASKERS, (*_ANSWER, *_JOB), own=True),
    Access("GET", "/answers/{id}/events", ASKERS, ("**",), own=True),
    Access("GET", "/answers/{id}/receipt", ALL, _RECEIPT, own=True),
    Access("GET", "/answers/{id}/notebook", ASKERS, ("**",), own=True),
    Access("GET", "/history", ALL, _HISTORY, {OWNER: _HISTORY_OF_ALL, AUDITOR: _HISTORY_OF_ALL}),
    Access("GET", "/budget", ALL, _BUDGET, {OWNER: _BUDGET_OF_ALL, AUDITOR: _BUDGET_OF_ALL}),
    Access(
        "GET",
        "/budget/history",
        WATCHERS,
        _under("days[]", "time", "analyst", "spent", "total", "spent_share", "total_share"),
    ),
    Access("POST", "/sandbox/previews", ASKERS, _PREVIEWS),
    Access("POST", "/sandbox/answers", ASKERS, _ANSWER),
    Access("GET", "/tokens", frozenset({OWNER}), _under("tokens[]", *_TOKEN)),
    Access("POST", "/tokens", frozenset({OWNER}), ("token", *_TOKEN)),
    Access("DELETE", "/tokens/{id}", frozenset({OWNER}), ("id", "revoked")),
    Access("POST", "/survey", frozenset({OWNER}), ("text", *_under("cost", *_AMOUNTS))),
    Access("POST", "/reopen", frozenset({OWNER}), ("closed",)),
    Access("GET", "/verification", WATCHERS, _VERIFICATION),
    Access("GET", "/odds", ALL, _ODDS),
    Access("GET", "/report", WATCHERS, _REPORT),
)
"""The specification."""


def access_of(method: str, path: str) -> Access:
    """Return the row of a route; LookupError where there is none: then it must not be there."""
    return next(one for one in ACCESS if (one.method, one.whole_path) == (method, path))


def is_told(access: Access, role: str, name: str) -> bool:
    """Whether a role may be told a field, by its path: `rows[].n`."""
    return any(_covers(pattern, name) for pattern in access.fields_of(role))


def _covers(pattern: str, name: str) -> bool:
    if pattern == "**":
        return True
    wanted, got = pattern.split("."), name.split(".")
    if "*" not in pattern:
        return wanted == got
    head = wanted.index(next(part for part in wanted if part.startswith("*")))
    if wanted[:head] != got[:head] or len(got) <= head:
        return False
    if head == len(wanted) - 1:  # names of a question may hold a full stop
        return True
    rest = wanted[head + 1 :]
    return got[-len(rest) :] == rest and len(got) > head + len(rest) - 1

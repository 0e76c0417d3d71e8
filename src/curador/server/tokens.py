"""Who may come in: tokens of 256 random bits, shown once and kept as what they are compared with.

`curador_<public id>_<secret>`. The id is for people, logs and the PostgreSQL door's user name; the secret is for nobody.
A fast digest is right here: nobody guesses 256 bits, and a slow one would be a gift to whoever floods.

Claim   Unknown, expired, revoked and wrong tokens are refused by one sentence after the same work: one row looked for, one
        digest, one comparison in constant time. From the file nobody can make a token.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from curador.errors import InvalidParameter, require
from curador.study.rules import did_you_mean

if TYPE_CHECKING:
    from curador.server.state import ServiceState
    from curador.study.model import Study

ROLES: Final = ("owner", "analyst", "auditor")
ITERATIONS: Final = 4096
LONGEST_NOTE: Final = 200
MOST_DAYS: Final = 3660
_TOKEN: Final = re.compile(r"curador_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_ID: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_NOBODY: Final = "0" * 16
UNKNOWN: Final = "the token must be one that is in force."
_DAYS: Final = re.compile(r"([1-9][0-9]{0,4})\s*(h|d|w)", re.ASCII)
_HOURS: Final = {"h": 1, "d": 24, "w": 24 * 7}
_PERCENT: Final = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,12})?)\s*%\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever came in with a token, as it was at that moment; `Service.still` asks again.

    name               of the analyst; None for owner and auditor
    expires            seconds since 1970
    most_per_question  the most that one question may cost, as a part of the asker's whole limit; None: no limit
    most_per_day       idem, of all questions of a day (UTC)
    agent              a program that nobody watches: neither `fresh` nor training
    """

    token_id: str
    role: str
    name: str | None
    expires: int
    most_per_question: Fraction | None = None
    most_per_day: Fraction | None = None
    agent: bool = False

    @property
    def holder(self) -> str:
        """Who the keys of questions belong to: all tokens of one analyst, or all of the owner."""
        return self.role if self.name is None else f"{self.role}:{self.name}"

    @property
    def asks(self) -> bool:
        """Whether questions may be asked at all."""
        return self.role != "auditor"


@dataclass(frozen=True, slots=True)
class ScramVerifier:
    """What SCRAM-SHA-256 compares a password with: RFC 5802 and 7677."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


# ---- made, listed, revoked -----------------------------------------------------------------------------------------------


def new_token(
    state: ServiceState,
    study: Study,
    role: str,
    *,
    name: str | None = None,
    expires: str = "90d",
    most_per_question: str | None = None,
    most_per_day: str | None = None,
    agent: bool = False,
    note: str = "",
) -> tuple[str, Caller]:
    """Make a token; its text is returned once and kept nowhere."""
    require(role in ROLES, "role", "owner, analyst or auditor", role)
    if (role == "analyst") != (name is not None):
        raise InvalidParameter.must_be("name", "given for an analyst and for nobody else", name)
    if name is not None and study.analyst(name) is None:
        hint = did_you_mean(name, [one.name for one in study.analysts]) or "the owner declares analysts in the study"
        raise InvalidParameter.must_be("name", "of an analyst whom the study declares", name, hint)
    require(type(agent) is bool and (not agent or role == "analyst"), "agent", "said of analysts only", agent)
    require(type(note) is str and len(note) <= LONGEST_NOTE, "note", f"a text of at most {LONGEST_NOTE} letters", note)
    now = int(time.time())
    own = Caller(
        secrets.token_hex(8),
        role,
        name,
        now + read_span(expires),
        read_percent(most_per_question, "most_per_question"),
        read_percent(most_per_day, "most_per_day"),
        agent,
    )
    text = f"curador_{own.token_id}_{secrets.token_urlsafe(32)}"
    made = verifier_of(text, secrets.token_bytes(16))
    row = (
        *(
            own.token_id,
            role,
            name,
            now,
            own.expires,
            _told(own.most_per_question),
            _told(own.most_per_day),
            int(agent),
            note,
        ),
        *(digest_of(text), made.salt, made.stored_key, made.server_key, None),
    )
    with state.writing() as connection:
        connection.execute(f"INSERT INTO token VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 -- signs only
    return text, own


def list_tokens(state: ServiceState) -> list[dict[str, Any]]:
    """Return every token without what it is compared with, the newest first."""
    columns = "id, role, name, made, expires, most_per_question, most_per_day, agent, note, revoked"
    names = columns.split(", ")
    rows = state.all(f"SELECT {columns} FROM token ORDER BY made DESC, id")  # noqa: S608 -- names of ours
    now = int(time.time())
    found: list[dict[str, Any]] = []
    for row in rows:
        one: dict[str, Any] = dict(zip(names, row, strict=True))
        one["agent"] = bool(one["agent"])
        one["in_force"] = one["revoked"] is None and one["expires"] > now
        for limit in ("most_per_question", "most_per_day"):
            one[limit] = None if one[limit] is None else percent(Fraction(one[limit]))
        found.append(one)
    return found


def revoke(state: ServiceState, token_id: str) -> bool:
    """End a token, and every session that it opened; return whether there was one in force."""
    now = int(time.time())
    with state.writing() as connection:
        ended = connection.execute("UPDATE token SET revoked = ? WHERE id = ? AND revoked IS NULL", (now, token_id)).rowcount
        connection.execute("DELETE FROM session WHERE token = ?", (token_id,))
    return ended == 1


# ---- compared ------------------------------------------------------------------------------------------------------------


def find_caller(state: ServiceState, token: str) -> Caller | None:
    """Return who a token stands for; None of every other text, after the same work."""
    read = _TOKEN.fullmatch(token)
    row = _row(state, read[1] if read else _NOBODY)
    held: bytes = bytes(32) if row is None else row[-1]
    same = hmac.compare_digest(digest_of(token), held)
    return _caller(row) if same and row is not None else None


def find_by_id(state: ServiceState, token_id: str) -> Caller | None:
    """Return who a token stands for by its public id, for whoever proved otherwise that the token is theirs."""
    row = _row(state, token_id if _ID.fullmatch(token_id) else _NOBODY)
    return None if row is None else _caller(row)


def find_verifier(state: ServiceState, token_id: str) -> ScramVerifier:
    """Return what SCRAM compares with; of an id that nobody has one that stays the same and fits no password."""
    row = state.one("SELECT salt, stored_key, server_key FROM token WHERE id = ?", (token_id,))
    made = [hmac.digest(state.secret, f"{what} {token_id}".encode("utf-8", "replace"), "sha256") for what in ("s", "k", "v")]
    if row is not None:
        return ScramVerifier(row[0], ITERATIONS, row[1], row[2])
    return ScramVerifier(made[0][:16], ITERATIONS, made[1], made[2])


def verifier_of(token: str, salt: bytes) -> ScramVerifier:
    """Return the SCRAM-SHA-256 verifier of a token."""
    salted = hashlib.pbkdf2_hmac("sha256", token.encode(), salt, ITERATIONS)
    client = hmac.digest(salted, b"Client Key", "sha256")
    return ScramVerifier(salt, ITERATIONS, hashlib.sha256(client).digest(), hmac.digest(salted, b"Server Key", "sha256"))


def digest_of(token: str) -> bytes:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _row(state: ServiceState, token_id: str) -> tuple[Any, ...] | None:
    text = "SELECT id, role, name, expires, most_per_question, most_per_day, agent, revoked, digest FROM token WHERE id = ?"
    return state.one(text, (token_id,))


def _caller(row: tuple[Any, ...]) -> Caller | None:
    own, role, name, expires, per_question, per_day, agent, revoked, _ = row
    if revoked is not None or expires <= time.time():
        return None
    limits = [None if one is None else Fraction(one) for one in (per_question, per_day)]
    return Caller(own, role, name, expires, limits[0], limits[1], bool(agent))


# ---- what is said of them ------------------------------------------------------------------------------------------------


def read_span(text: str) -> int:
    """Return seconds of "90d", "12h" or "2w"."""
    read = _DAYS.fullmatch(text.strip()) if type(text) is str else None
    hours = 0 if read is None else int(read[1]) * _HOURS[read[2]]
    if not 0 < hours <= 24 * MOST_DAYS:
        raise InvalidParameter.must_be("expires", f'a time such as "90d", "12h" or "2w", at most {MOST_DAYS} days', text)
    return hours * 3600


def read_percent(text: str | None, name: str) -> Fraction | None:
    """Return the part that "5%" is; None of nothing."""
    if text is None:
        return None
    read = _PERCENT.fullmatch(text) if type(text) is str else None
    part = None if read is None else Fraction(read[1]) / 100
    if part is None or not 0 < part <= 1:
        raise InvalidParameter.must_be(name, 'a percentage above 0 % and at most 100 %, such as "5%"', text)
    return part


def percent(part: Fraction) -> str:
    """Return a part as "5%"."""
    return f"{float(100 * part):.12g}%"


def _told(part: Fraction | None) -> str | None:
    return None if part is None else str(part)

"""Questions that were handed over: each is a job with a key of its asker's, and has one outcome whoever looks.

    hand over ── queued ── running ── done       the answer, as it was told
                     └────────┴────── refused    nothing was charged: the same key may try again
                                └──── failed     the charge is kept: the same key is told so for ever

The id of its reservation follows from asker and key by a secret of the ledger, so that every machine and process finds the
same charge, and nobody who knows a job's id knows anything of an entry.

Claim   One key of one asker is charged once, whoever hands it over, however often, and whoever is killed meanwhile.
Needs   `spend` charges one id once (`curator/spending.py`); `Presence` says truly who is gone.
Source  tests/server/test_idempotency.py, tests/server/test_kills.py
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from curador.canonical import canonical_digest
from curador.errors import InvalidParameter
from curador.ledger.entry import shown_id
from curador.server.refusals import KeyReused, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from curador.server.state import Presence, ServiceState
    from curador.server.tokens import Caller

OPEN: Final = ("queued", "running")
_KEY: Final = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)
KEPT_FOR: Final = 86_400
"""Seconds for which a question is remembered that was refused, or that nobody gave a key and nothing was charged for."""


@dataclass(frozen=True, slots=True)
class Job:
    """One question that was handed over.

    mine    whether this process computes it, from now on
    begun   when, by the clock on the wall
    """

    id: str
    holder: str
    token: str
    question: str
    options: Mapping[str, Any]
    fresh: bool
    reservation: str
    state: str
    begun: float
    mine: bool = False
    problem: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question: an answer, a problem, or nothing yet.

    state    queued, running, done, failed, refused
    body     the answer as plain values (`rendering.py`), without links
    arrow    the same as an Arrow stream
    receipt  its text; None of what is made up
    problem  the fields of what was raised (`problems.py`)
    """

    id: str
    state: str
    begun: float
    body: Mapping[str, Any] | None = None
    arrow: bytes | None = None
    receipt: str | None = None
    problem: Mapping[str, Any] | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.state not in OPEN

    @property
    def table(self) -> Any:
        """The answer as a pyarrow.Table."""
        import pyarrow as pa

        return pa.ipc.open_stream(self.arrow).read_all()

    def require(self) -> Outcome:
        """Return it where it is an answer; else raise what was raised."""
        from curador.server.problems import error_of

        if self.problem is not None:
            raise error_of(self.problem)
        return self


def check_key(key: str | None) -> str:
    """Return a key of idempotency, or a new one where none is given."""
    if key is None:
        return secrets.token_urlsafe(24)
    if _KEY.fullmatch(key) is None:
        hint = "a random one for each question is best"
        raise InvalidParameter.must_be("Idempotency-Key", "1 to 200 printable signs without white space", key, hint)
    return key


def hand_over(
    state: ServiceState,
    presence: Presence,
    ledger_secret: bytes,
    caller: Caller,
    *,
    question: str,
    options: Mapping[str, Any],
    fresh: bool,
    key: str | None,
) -> Job:
    """Return the job of a caller's key: a new one, or the one that it was given with before."""
    kept, key = key is not None, check_key(key)
    own = f"{caller.holder}\0{key}".encode()
    reservation = hmac.digest(ledger_secret, b"reservation\0" + own, "sha256").hex()[:32]
    id_ = hmac.digest(ledger_secret, b"job\0" + own, "sha256").hex()[:32]
    body = bytes.fromhex(canonical_digest({"question": question, "options": dict(options), "fresh": fresh}))
    digest = hashlib.sha256(own).digest()
    with state.writing() as connection:
        row = connection.execute("SELECT body, state, worker FROM job WHERE id = ?", (id_,)).fetchone()
        if row is not None and not hmac.compare_digest(row[0], body):
            hint = "give a new question a key of its own"
            raise KeyReused("the key must come with the question it was first given with.", hint=f"{hint}.")
        if row is None:
            values = (
                *(id_, caller.holder, digest, body, caller.token_id, question, json.dumps(dict(options)), int(fresh)),
                *(reservation, shown_id(reservation), presence.number, "queued", time.time(), None, int(kept)),
            )
            connection.execute(f"INSERT INTO job VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608 -- signs only
            mine = True
        else:
            mine = row[1] == "refused" or (row[1] in OPEN and presence.is_gone(row[2]))
            if mine:
                text = "UPDATE job SET state = 'queued', worker = ?, token = ?, problem = NULL, begun = ? WHERE id = ?"
                connection.execute(text, (presence.number, caller.token_id, time.time(), id_))
    return read_job(state, id_, mine=mine)


def take_over(state: ServiceState, presence: Presence) -> list[Job]:
    """Take every open job whose process is gone: what was promised is kept."""
    taken: list[Job] = []
    for id_, worker in state.all("SELECT id, worker FROM job WHERE state IN ('queued', 'running') ORDER BY begun"):
        if not presence.is_gone(worker):
            continue
        with state.writing() as connection:
            text = "UPDATE job SET worker = ? WHERE id = ? AND worker = ? AND state IN ('queued', 'running')"
            won = connection.execute(text, (presence.number, id_, worker)).rowcount == 1
        if won:
            taken.append(read_job(state, id_, mine=True))
    return taken


def forget_old(state: ServiceState) -> None:
    """Forget what was refused a day ago, or has no key and no charge, and sessions that are over."""
    now = time.time()
    with state.writing() as connection:
        text = "SELECT id FROM job WHERE (kept = 0 OR state = 'refused') AND begun < ? AND state NOT IN ('queued', 'running')"
        old = connection.execute(text, (now - KEPT_FOR,)).fetchall()
        connection.executemany("DELETE FROM result WHERE job = ?", old)
        connection.executemany("DELETE FROM job WHERE id = ?", old)
        connection.execute("DELETE FROM session WHERE expires < ?", (int(now),))


def mark_running(state: ServiceState, job: Job) -> None:
    """Say that a job's turn has come."""
    with state.writing(durable=False) as connection:
        connection.execute("UPDATE job SET state = 'running' WHERE id = ? AND state = 'queued'", (job.id,))


def finish(
    state: ServiceState, job: Job, body: Mapping[str, Any], arrow: bytes, receipt: str | None, *, charged: bool
) -> None:
    """Keep the answer, before anybody is told."""
    with state.writing() as connection:
        connection.execute("INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?)", (job.id, json.dumps(body), arrow, receipt))
        text = "UPDATE job SET state = 'done', problem = NULL, kept = max(kept, ?) WHERE id = ?"
        connection.execute(text, (int(charged), job.id))


def end_badly(state: ServiceState, job: Job, problem: Mapping[str, Any], *, charged: bool) -> None:
    """Keep what was raised: for ever where it was charged."""
    text = "UPDATE job SET state = ?, problem = ?, kept = max(kept, ?) WHERE id = ?"
    with state.writing(durable=charged) as connection:
        connection.execute(text, ("failed" if charged else "refused", json.dumps(problem), int(charged), job.id))


def read_job(state: ServiceState, id_: str, *, mine: bool = False) -> Job:
    """Return a job; NotFound where there is none."""
    names = "id, holder, token, question, options, fresh, reservation, state, begun, problem"
    row = state.one(f"SELECT {names} FROM job WHERE id = ?", (id_,))  # noqa: S608 -- names of ours
    if row is None:
        raise not_found()
    problem = None if row[9] is None else json.loads(row[9])
    own, holder, token, text, options, fresh, reservation, now, begun, _ = row
    return Job(own, holder, token, text, json.loads(options), bool(fresh), reservation, now, begun, mine, problem)


def read_outcome(state: ServiceState, id_: str) -> Outcome:
    """Return what became of a job so far."""
    job = read_job(state, id_)
    if job.state != "done":
        return Outcome(id_, job.state, job.begun, problem=job.problem if job.state not in OPEN else None)
    row = state.one("SELECT body, arrow, receipt FROM result WHERE job = ?", (id_,))
    if row is None:
        raise not_found()
    return Outcome(id_, job.state, job.begun, json.loads(row[0]), row[1], row[2])


def not_found() -> NotFound:
    """Return the one refusal of what is not there, or is somebody else's."""
    return NotFound("the id must be that of an answer of yours.", hint="ids stand in the history.")

"""Limits that stand beside the share: of a token's questions, of how often and how many at a time, of logins that fail.

Claim   What a token's questions of one day were charged is at most its limit, over all connections, processes and restarts:
        the part is held on disk before the charge, and given back only where it is sure that nothing was charged.
Needs   `hold` is called before a reservation is written, and `give_back` never where it may have been.
Rounds  Exact.
"""

from __future__ import annotations

import contextlib
import threading
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from curador.errors import BudgetExceeded
from curador.server.refusals import TooMany
from curador.server.tokens import percent

if TYPE_CHECKING:
    from collections.abc import Generator

    from curador.ledger.amounts import Amounts
    from curador.server.state import ServiceState
    from curador.server.tokens import Caller

_NAMES: Final = ("epsilon", "rho", "delta")


# ---- of what is spent ----------------------------------------------------------------------------------------------------


def part_of(cost: Amounts, limit: Amounts) -> Fraction:
    """Return which part of a whole limit a cost is: of the amount of which it takes the most."""
    parts = [getattr(cost, name) / getattr(limit, name) for name in _NAMES if getattr(limit, name)]
    return max(parts, default=Fraction(0))


def least_part_of(left: Amounts, limit: Amounts) -> Fraction:
    """Return which part of a whole limit is left: of the amount of which least is."""
    parts = [getattr(left, name) / getattr(limit, name) for name in _NAMES if getattr(limit, name)]
    return min(parts, default=Fraction(0))


def today() -> str:
    """Return the day by UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def hold(state: ServiceState, caller: Caller, reservation: str, part: Fraction) -> None:
    """Hold a question's part of a token's limits, or refuse; a reservation that is held already is held once."""
    if caller.most_per_question is None and caller.most_per_day is None:
        return
    most = caller.most_per_question
    if most is not None and part > most:
        raise _too_much(part, most, "one question")
    day = today()
    with state.writing() as connection:
        held = connection.execute("SELECT 1 FROM used WHERE reservation = ?", (reservation,)).fetchone()
        if held is not None:
            return
        rows = connection.execute("SELECT part FROM used WHERE token = ? AND day = ?", (caller.token_id, day)).fetchall()
        spent = sum((Fraction(one) for (one,) in rows), Fraction(0))
        if caller.most_per_day is not None and spent + part > caller.most_per_day:
            raise _too_much(part, max(caller.most_per_day - spent, Fraction(0)), "what is left of this day")
        connection.execute("INSERT INTO used VALUES (?, ?, ?, ?)", (reservation, caller.token_id, day, str(part)))


def give_back(state: ServiceState, reservation: str) -> None:
    """Give back what was held.

    Needs   Nothing was charged under the reservation, nor can be any more.
    """
    with state.writing() as connection:
        connection.execute("DELETE FROM used WHERE reservation = ?", (reservation,))


def used_today(state: ServiceState, caller: Caller) -> Fraction:
    """Return what was held of a token's limit today."""
    rows = state.all("SELECT part FROM used WHERE token = ? AND day = ?", (caller.token_id, today()))
    return sum((Fraction(one) for (one,) in rows), Fraction(0))


def _too_much(part: Fraction, most: Fraction, of: str) -> BudgetExceeded:
    hint = "ask for less, or ask the owner for a token with another limit"
    rule = f"must be at most {percent(most)} of the whole limit for {of} with this token"
    return BudgetExceeded(subject="the cost", rule=rule, got=percent(part), hint=f"{hint}.")


# ---- of how often and how many -------------------------------------------------------------------------------------------


class Rates:
    """How often a name may come: so many at once, and so many a second after that. Of one process."""

    def __init__(self, rate: float, burst: float, most: int = 10_000) -> None:
        """Let everybody come `burst` times at once and `rate` times a second; `most` names are remembered."""
        self._rate, self._burst, self._most = rate, burst, most
        self._held: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def admit(self, name: str) -> None:
        """Count one, or refuse."""
        now = time.monotonic()
        with self._lock:
            left, since = self._held.pop(name, (self._burst, now))
            left = min(self._burst, left + (now - since) * self._rate)
            self._held[name] = (left - 1 if left >= 1 else left, now)
            while len(self._held) > self._most:
                self._held.pop(next(iter(self._held)))
        if left < 1:
            raise TooMany("requests must come more slowly with one token.", hint="wait a second.")


class Places:
    """How many of one name may be under way at a time, and of all together. Of one process."""

    def __init__(self, each: int, whole: int, what: str = "questions") -> None:
        """Have `each` places for a name, `whole` for all."""
        self._what = what
        self._each, self._whole, self._held, self._lock = each, whole, dict[str, int](), threading.Lock()

    def take(self, name: str) -> None:
        """Take a place, or refuse."""
        with self._lock:
            if self._held.get(name, 0) >= self._each:
                hint = "wait for one of them."
                raise TooMany(f"{self._what} under way must be at most {self._each} with one token.", hint=hint)
            if sum(self._held.values()) >= self._whole:
                rule = f"the service must have a place free; it has as many {self._what} as it can hold."
                raise TooMany(rule, hint="ask again.")
            self._held[name] = self._held.get(name, 0) + 1

    def add(self, name: str) -> None:
        """Have one more under way, whatever the limits: of somebody who is gone."""
        with self._lock:
            self._held[name] = self._held.get(name, 0) + 1

    def leave(self, name: str) -> None:
        """Give a place back."""
        with self._lock:
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]

    @property
    def held(self) -> int:
        """How many are under way."""
        with self._lock:
            return sum(self._held.values())

    @contextlib.contextmanager
    def held_by(self, name: str) -> Generator[None]:
        """Hold a place."""
        self.take(name)
        try:
            yield
        finally:
            self.leave(name)


# ---- of logins that fail -------------------------------------------------------------------------------------------------


FIRST_WAIT: Final = 0.25
"""Seconds that the first failure waits before it is told; each one after that twice as long."""
LONGEST_WAIT: Final = 4.0
FORGOTTEN: Final = 900
"""Seconds after which a peer's failures are forgotten."""
MOST_PEERS: Final = 10_000


def count_failure(state: ServiceState, peer: str) -> float:
    """Count a login that failed, and return for how many seconds it must not be told. Whoever has a token never waits."""
    now = int(time.time())
    with state.writing(durable=False) as connection:
        row = connection.execute("SELECT number, last FROM failure WHERE peer = ?", (peer,)).fetchone()
        number = 1 if row is None or now - row[1] > FORGOTTEN else row[0] + 1
        connection.execute("INSERT OR REPLACE INTO failure VALUES (?, ?, ?)", (peer, number, now))
        if row is None:
            connection.execute("DELETE FROM failure WHERE last < ?", (now - FORGOTTEN,))
            text = "DELETE FROM failure WHERE peer IN (SELECT peer FROM failure ORDER BY last DESC LIMIT -1 OFFSET ?)"
            connection.execute(text, (MOST_PEERS,))
    return min(FIRST_WAIT * 2 ** min(number - 1, 8), LONGEST_WAIT)


def failures_of(state: ServiceState, peer: str) -> int:
    """Return how many logins of a peer failed lately."""
    row = state.one("SELECT number FROM failure WHERE peer = ? AND last > ?", (peer, int(time.time()) - FORGOTTEN))
    return 0 if row is None else row[0]

"""What a door of the service gives `spend` with a question: an id that finds it again, limits of its own, and who is told.

    admit ──► the charge ──► charged ──► the answer, by the id, whoever asks for it again
      └── nothing was charged ──► spared

A ticket with an id is an idempotency key at work: whatever is handed over with the same id a second time has the outcome that
the first had, and pays nothing. A caller without needs gives none, and nothing is different.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.ledger.entry import Entry, Request


def _admit_all(_id: str, _request: Request) -> None:
    """No limit besides the asker's share."""


def _tell_nobody(_entry: Entry) -> None:
    """Nobody waits for it."""


def _keep_nothing(_id: str) -> None:
    """Nothing was kept for it."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What goes with one question.

    id       of the reservation, chosen by the caller: it is found by it again. None: a fresh one
    admit    called with the id and the charge right before it is made; raises Refused where a limit has no room. What is
             given for nothing never meets it
    charged  told when the charge is on disk and the question's turn begins
    spared   told where `admit` was called and it is sure that nothing was charged under this id
    """

    id: str | None = None
    admit: Callable[[str, Request], None] = _admit_all
    charged: Callable[[Entry], None] = _tell_nobody
    spared: Callable[[str], None] = _keep_nothing

    def beside(self) -> Ticket:
        """Return the ticket of something else that the question must buy first: the same limits; it is bought once anyhow."""
        return replace(self, id=None, charged=_tell_nobody)


PLAIN = Ticket()
"""Of whoever asks without a door."""

"""Refusals that only a service has, beside those of `errors.py`; each is one of them to whoever does not know it."""

from __future__ import annotations

import curador.errors as tree
from curador.errors import CuradorError, InvalidParameter, LedgerBusy, NotAllowed


class NoToken(NotAllowed):
    """Nobody in force: unknown, expired, revoked, wrong or absent."""


class NotFound(NotAllowed):
    """There is no such thing, or it is somebody else's."""


class KeyReused(InvalidParameter):
    """A key of idempotency came with another question than the first time."""


class TooMany(NotAllowed):
    """More at a time, or more in a while, than a token may.

    after   seconds after which it is worth trying again
    """

    after = 1


class Stopping(LedgerBusy):
    """The service ends, or has more to do than it can hold; nothing was spent."""


def public_name(error: CuradorError | type[CuradorError]) -> str:
    """Return the name of an error in the tree of `errors.py`."""
    kind = error if isinstance(error, type) else type(error)
    return next(one.__name__ for one in kind.__mro__ if one.__module__ == tree.__name__)

"""Whose turn it is: a few askers at once, or one act of the owner's alone; and who is answering which question already.

    asking   shared, up to so many places as there are workers
    alone    a refresh, a reopening, closing: nothing is under way, and nothing begins meanwhile

Who comes first goes first, whatever is wanted: an owner's act waits for those before it and is not overtaken by those after.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Generator, Hashable


class Turn:
    """Places in the order of arrival."""

    def __init__(self, places: int = 1) -> None:
        self._places = places
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._taken = 0
        self._owner = os.getpid()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    @contextlib.contextmanager
    def asking(self) -> Generator[None]:
        """Hold one place."""
        with self._held(1):
            yield

    @contextlib.contextmanager
    def alone(self) -> Generator[None]:
        """Hold all places."""
        with self._held(self._places):
            yield

    @contextlib.contextmanager
    def _held(self, wanted: int) -> Generator[None]:
        if self._owner != os.getpid():  # a fork has no thread that would give back what its parent's held
            self._begin()
        me, changed = object(), self._changed
        with changed:
            self._waiting.append(me)
            try:
                while self._waiting[0] is not me or self._taken + wanted > self._places:
                    changed.wait()
                self._taken += wanted
            finally:
                self._waiting.remove(me)
                changed.notify_all()
        try:
            yield
        finally:
            with changed:
                self._taken -= wanted
                changed.notify_all()


class Underway:
    """Questions that are being answered: who asks the same one waits for its end, and then finds it stored, or goes on."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[Hashable, tuple[threading.Lock, int]] = {}
        self._owner = os.getpid()

    @property
    def waiting(self) -> int:
        """How many wait for somebody else's question."""
        return sum(users - 1 for _, users in [*self._held.values()])

    @contextlib.contextmanager
    def one(self, question: Hashable | None) -> Generator[None]:
        """Be the only one who answers a question; None: whoever else does."""
        if question is None:
            yield
            return
        if self._owner != os.getpid():
            self._begin()
        with self._guard:
            lock, users = self._held.get(question, (threading.Lock(), 0))
            self._held[question] = lock, users + 1
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._held[question]
                if users == 1:
                    del self._held[question]
                else:
                    self._held[question] = lock, users - 1

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
        self._guard = threading.Lock()
        self._waiting: deque[tuple[int, threading.Event]] = deque()
        self._free = self._places
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
        ticket = wanted, threading.Event()
        try:
            with self._guard:
                self._waiting.append(ticket)
                self._serve()
            ticket[1].wait()
            yield
        finally:
            with self._guard:
                if ticket[1].is_set():
                    self._free += wanted
                elif ticket in self._waiting:  # interrupted before its turn came
                    self._waiting.remove(ticket)
                self._serve()

    def _serve(self) -> None:
        """Hand free places to those who have waited longest."""
        while self._waiting and self._waiting[0][0] <= self._free:
            wanted, served = self._waiting.popleft()
            self._free -= wanted
            served.set()


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
    def one(self, question: Hashable | None) -> Generator[bool]:
        """Be the only one who answers a question; None: whoever else does. Yield whether somebody else did meanwhile."""
        if question is None:
            yield False
            return
        if self._owner != os.getpid():
            self._begin()
        with self._guard:
            lock, users = self._held.get(question, (threading.Lock(), 0))
            self._held[question] = lock, users + 1
        try:
            with lock:
                yield users > 0
        finally:
            with self._guard:
                lock, users = self._held[question]
                if users == 1:
                    del self._held[question]
                else:
                    self._held[question] = lock, users - 1

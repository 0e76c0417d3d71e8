"""Time that passes only when everybody waits: several askers, each a thread, and moments that are the same in every run."""

from __future__ import annotations

import threading
import time

from curador.curator.pace import Pace


class VirtualTime:
    """A clock for a curator's pace. It goes on to the next moment that somebody sleeps for when nobody has anything to do.

    Nothing that really happens takes time here: disks and processors are infinitely fast.
    """

    def __init__(self, curator, tick):
        self.now, self.changed = 0.0, threading.Condition()
        self.sleepers, self.engines, self.events, self.askers, self.live = [], [], [], set(), 0
        self.session = curator._session  # noqa: SLF001 -- what the study's engine settings make
        self.session.pace = Pace(tick, lambda: self.now, self.sleep, self.wait)

    def sleep(self, seconds):
        """What an asker does."""
        self._block(self.sleepers, self.now + seconds)

    def wait(self, event, seconds):
        """What an asker does while it is computed for."""
        self.events.append(event)
        self._block(self.sleepers, self.now + seconds, event)

    def work(self, seconds):
        """What an engine does."""
        self._block(self.engines, self.now + seconds)

    def until(self, moment):
        """Sleep up to a moment."""
        if moment > self.now:
            self.sleep(moment - self.now)

    def _block(self, where, target, event=None):
        one = [target, event, threading.get_ident()]
        with self.changed:
            where.append(one)
        while self.now < target and not (event is not None and event.is_set()):
            time.sleep(0.0005)
        with self.changed:
            where.remove(one)

    def run(self, scripts):
        """Run the askers to their end; afterwards what was left behind is woken, too."""
        threads = [threading.Thread(target=self._perform, args=(script,), daemon=True) for script in scripts]
        self.live = len(threads)
        for thread in threads:
            thread.start()
        until = time.monotonic() + 60
        while self.live:
            assert time.monotonic() < until, "the askers do not come to an end"
            with self.changed:
                targets = [one[0] for one in (*self.sleepers, *self.engines)]
                if self._still() and targets:
                    self.now = min(targets)
            time.sleep(0.0005)
        self.now += 1e6
        for thread in threads:
            thread.join()

    def _perform(self, script):
        self.askers.add(threading.get_ident())
        try:
            script()
        finally:
            with self.changed:
                self.askers.remove(threading.get_ident())  # a thread that computes may get the same one
                self.live -= 1

    def _still(self):
        """Whether every asker sleeps or waits for its turn or for somebody else's, and all that is computed sleeps."""
        waiting = [one for one in (*self.sleepers, *self.engines) if one[0] > self.now and not (one[1] and one[1].is_set())]
        blocked = sum(one[2] in self.askers for one in waiting)
        queued = self.session.turn.waiting + self.session.underway.waiting
        computing = len(waiting) - blocked
        return blocked + queued == self.live and computing == sum(not event.is_set() for event in self.events)

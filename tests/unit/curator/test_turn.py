"""Places are given in the order of arrival, an owner's act is alone and not starved, and a question is answered once."""

from __future__ import annotations

import os
import threading
import time
from collections import deque

import pytest
from curator_studies import BY_CITY, COUNT, open_curator

from curador.curator.pace import Turn, Underway
from curador.errors import Failed

SOON = 20.0


def wait_until(condition):
    until = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


class Crowd:
    """Threads that hold a turn until they are told to go."""

    def __init__(self, turn):
        self.turn, self.order, self.go, self.threads = turn, [], {}, []

    def come(self, name, *, alone=False):
        """Let somebody queue, and wait until they hold it or stand in the queue."""
        self.go[name] = threading.Event()
        before = self.turn.waiting

        def hold():
            with self.turn.alone() if alone else self.turn.asking():
                self.order.append(name)
                assert self.go[name].wait(SOON)
                self.order.append(f"{name} left")

        thread = threading.Thread(target=hold, daemon=True)
        self.threads.append(thread)
        thread.start()
        wait_until(lambda: self.turn.waiting > before or name in self.order)

    def leave(self, *names):
        for name in names:
            self.go[name].set()
            wait_until(lambda name=name: f"{name} left" in self.order)

    def end(self):
        for thread in self.threads:
            thread.join(SOON)
            assert not thread.is_alive()


def test_as_many_as_there_are_places():
    crowd = Crowd(Turn(2))
    for name in "abcd":
        crowd.come(name)
    assert crowd.order == ["a", "b"]
    crowd.leave("b")
    wait_until(lambda: "c" in crowd.order)
    assert "d" not in crowd.order
    crowd.leave("a", "c", "d")
    crowd.end()
    assert [one for one in crowd.order if "left" not in one] == ["a", "b", "c", "d"]


def test_an_owners_act_is_alone_and_is_not_overtaken():
    """Those before it end first; those after it wait, although places are free."""
    crowd = Crowd(Turn(3))
    crowd.come("a")
    crowd.come("owner", alone=True)
    crowd.come("b")
    assert crowd.order == ["a"]
    crowd.leave("a")
    wait_until(lambda: "owner" in crowd.order)
    assert "b" not in crowd.order
    crowd.leave("owner")
    wait_until(lambda: "b" in crowd.order)
    crowd.leave("b")
    crowd.end()


def test_a_place_that_was_given_back_is_another_ones():
    """Who stores an answer takes no place, once; who wants all of them waits for that, too."""
    turn = Turn(1)
    with turn.asking() as place:
        place.give_back()
        place.give_back()
        with turn.asking():
            crowd = Crowd(turn)
            crowd.come("a")
            assert crowd.order == []
        wait_until(lambda: crowd.order == ["a"])
        crowd.come("owner", alone=True)
        crowd.leave("a")
        time.sleep(0.05)
        seen = list(crowd.order)
    wait_until(lambda: "owner" in crowd.order)
    crowd.leave("owner")
    crowd.end()
    assert seen == ["a", "a left"]
    with turn.alone():
        pass


def test_who_gives_up_leaves_the_queue(monkeypatch):
    """An interrupt while waiting takes no place and holds nobody up."""
    turn = Turn(1)

    def interrupted(*_):
        raise KeyboardInterrupt

    with turn.asking():
        with monkeypatch.context() as patched:
            patched.setattr(threading.Event, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt), turn.asking():
                pass
        assert turn.waiting == 0
    with turn.alone():
        pass


def test_who_is_interrupted_before_it_stands_in_the_queue_held_nothing(monkeypatch):
    """There is nothing to give back and nobody to take out."""
    turn = Turn(1)
    monkeypatch.setattr(turn, "_waiting", Unready())
    with pytest.raises(KeyboardInterrupt), turn.asking():
        pass
    assert turn.waiting == 0
    with turn.alone():
        pass


class Unready(deque):
    """A queue at which the first one is interrupted."""

    came = False

    def append(self, one):
        """Not the first one."""
        if not self.came:
            self.came = True
            raise KeyboardInterrupt
        super().append(one)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_waits_for_nobody_of_its_parent():
    turn, underway = Turn(1), Underway()
    with turn.asking(), underway.one("q"):
        child = os.fork()
        if child == 0:
            with turn.alone(), underway.one("q"):
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


# ---- the same question ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.slow
def test_a_second_asker_waits_and_pays_nothing_unless_the_first_failed(tmp_path, fails):
    """Of two who ask the same at once one pays; others go on beside them."""
    with open_curator(tmp_path) as curator:
        engine, begun, go = curator._session.engine, threading.Event(), threading.Event()  # noqa: SLF001 -- it holds no data
        runs, found = [], {}

        def work():
            runs.append(threading.current_thread().name)
            if len(runs) == 1:
                begun.set()
                assert go.wait(SOON)
                if fails:
                    raise RuntimeError("a row")

        engine.before = work

        def asked(name):
            try:
                found[name] = curator.ask(COUNT, spend="5%").stored
            except Failed:
                found[name] = "failed"

        first, second = (threading.Thread(target=asked, args=(name,), daemon=True) for name in ("first", "second"))
        first.start()
        assert begun.wait(SOON)
        second.start()
        wait_until(lambda: curator._session.underway.waiting == 1)  # noqa: SLF001
        assert not curator.ask(BY_CITY, spend="5%").stored  # there are two places
        go.set()
        first.join(SOON)
        second.join(SOON)
        assert found == ({"first": "failed", "second": False} if fails else {"first": False, "second": True})
        assert [line["kind"] for line in curator.log()].count("reserved") == (3 if fails else 2)
        assert curator._session.underway.waiting == 0  # noqa: SLF001


@pytest.mark.slow
def test_a_refresh_waits_for_what_is_under_way(tmp_path):
    """And nothing begins meanwhile: the version that is charged is the one that is read."""
    with open_curator(tmp_path) as curator:
        engine, begun, go, order = curator._session.engine, threading.Event(), threading.Event(), []  # noqa: SLF001

        def work():
            begun.set()
            assert go.wait(SOON)
            order.append("answered")

        engine.before = work
        asker = threading.Thread(target=lambda: curator.ask(COUNT, spend="5%"), daemon=True)
        asker.start()
        assert begun.wait(SOON)
        owner = threading.Thread(target=lambda: (curator.reopen("looked at"), order.append("reopened")), daemon=True)
        owner.start()
        wait_until(lambda: curator._session.turn.waiting == 1)  # noqa: SLF001
        assert order == []
        go.set()
        asker.join(SOON)
        owner.join(SOON)
        assert order == ["answered", "reopened"]

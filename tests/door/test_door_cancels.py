"""What a cancel and a time-out do, and when: before a question begins they take it back, and nothing is spent."""

import socket
import struct
import threading
import time

import pytest
from doors import open_door
from psycopg import errors
from raw_client import RawClient

from curador.door.door import DoorLimits


def cancel(door, raw):
    """Cancel what a raw client does."""
    with socket.create_connection(("127.0.0.1", door.port)) as other:
        other.sendall(struct.pack("!ii", 16, 80877102) + raw.key)
        other.recv(10)


@pytest.mark.parametrize("how", ["cancel", "time-out"])
def test_a_question_that_waits_for_its_turn_is_withdrawn(tmp_path, monkeypatch, how):
    """Another one is computed meanwhile; when that is done this one is not begun."""
    with open_door(tmp_path, limits=DoorLimits(under_way=1)) as door:
        reached, go_on, begun = threading.Event(), threading.Event(), []
        whole = type(door.service).run

        def held(service, job, told=None):
            begun.append(job)
            reached.set()
            go_on.wait(60)
            return whole(service, job, told)

        monkeypatch.setattr(type(door.service), "run", held)
        spend = {"options": "-c curador.spend=1%"}
        with door.connect("ben", **spend) as ben, door.connect("ana", **spend) as ana:
            first = threading.Thread(target=ben.execute, args=("SELECT count(*) AS n FROM visits WHERE rating = 2",))
            first.start()
            assert reached.wait(60)
            before = door.entries()
            if how == "cancel":
                threading.Timer(0.3, ana.cancel_safe).start()
            else:
                ana.execute("SET statement_timeout = '300ms'")
            with pytest.raises(errors.QueryCanceled, match="nothing was spent"):
                ana.execute("SELECT count(*) AS n FROM visits WHERE rating = 3")
            go_on.set()
            first.join()
            ana.execute("SET statement_timeout = 0")
            ana.execute("SELECT count(*) AS n FROM visits WHERE rating = 4")  # it comes behind whatever waited
        assert len(begun) == 2
        assert door.entries() == before + 4  # two questions, reserved and committed


def test_a_cancel_of_nothing_is_nothing(door):
    """One that comes while a pipeline waits for its next message does not hit what comes next."""
    with RawClient(door) as raw:
        raw.query("SET curador.spend = '1%'")
        raw.send(b"P", b"\0SELECT count(*) AS stale FROM visits WHERE spent > 222\0\0\0")
        raw.send(b"B", b"p\0\0\0\0\0\0\0\0")
        raw.send(b"D", b"Pp\0")
        raw.send(b"H")
        assert raw.kinds_until(b"T") == b"12T"
        cancel(door, raw)
        time.sleep(0.3)
        raw.send(b"E", b"p\0\0\0\0\0")
        raw.send(b"S")
        kinds = raw.kinds_until(b"Z").replace(b"N", b"")
    assert kinds == b"DCZ"

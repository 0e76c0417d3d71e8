"""Processes that ask a question of a real study and meet a fault at a named step of it.

The nursery imports everything once and forks an asker for each line that it is told: {"folder", "point", "fault"}. It says
how the asker ended, or that it stands still. What the asker heard and did lies beside the ledger, line by line.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
for _folder in (TESTS, TESTS / "ledger", TESTS / "unit" / "curator"):
    sys.path.insert(0, str(_folder))

QUESTION = "SELECT COUNT(*) AS n FROM visits"
FAULTS = ("raise", "kill", "hang")

# ---- what happens at a point ---------------------------------------------------------------------------------------------


def _broken():
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


class Fault:
    """Happens once: raises, ends the process, or stops it until somebody lets it go on."""

    def __init__(self, kind, error=lambda: OSError(5, "a fault")):
        self.kind, self.error, self.over = kind, error, False

    def __call__(self):
        """Happen, if it did not yet."""
        if self.over:
            return
        self.over = True
        match self.kind:
            case "raise":
                raise self.error()
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                os.kill(os.getpid(), signal.SIGSTOP)


def _before(owner, name, fault, when=lambda *_: True):
    plain = getattr(owner, name)

    def changed(*given, **named):
        if when(*given):
            fault()
        return plain(*given, **named)

    setattr(owner, name, changed)


def _after(owner, name, fault, when=lambda *_: True):
    plain = getattr(owner, name)

    def changed(*given, **named):
        out = plain(*given, **named)
        if when(*given):
            fault()
        return out

    setattr(owner, name, changed)


def _of(kind):
    """Whether an act, or the act of a ticket, is one of these."""
    return lambda *given: any(isinstance(getattr(one, "act", one), kind) for one in given)


def _nth(number):
    seen = []
    return lambda *_: (seen.append(1), len(seen) == number)[1]


def _torn(fault, number):
    """A slot of the witness of which the disk took the first letters."""
    from curador.ledger import witness

    plain, reached = witness._write_all, _nth(number)  # noqa: SLF001 -- the fault is put inside of it

    def changed(handle, content, place):
        if not reached():
            return plain(handle, content, place)
        os.pwrite(handle, content[:60], place)
        fault()
        return plain(handle, content[60:], place + 60)

    witness._write_all = changed  # noqa: SLF001 -- idem


def install(point, kind, curator):
    """Put a fault at a point of the product, in this process."""
    from curador.ledger import sharing
    from curador.ledger.acts import Reserve, Settle
    from curador.ledger.ledger import Ledger
    from curador.ledger.writer import Writer

    step, _, where = point.partition(": ")
    act, number = (Reserve, 1) if step == "charge" else (Settle, 2)
    match where:
        case "before it is handed over":
            _before(sharing.SharedWriter, "do", Fault(kind), _of(act))
        case "inside its batch":
            _after(Writer, "_perform", Fault(kind, _broken), _of(act))
        case "committed, before the witness":
            own = curator._session.ledger._own_writer  # noqa: SLF001 -- it holds its witness's method
            _before(own, "_mirror", Fault(kind), _nth(number))
        case "a slot of the witness half written":
            _torn(Fault(kind), number)
        case "on disk, before anybody is told":
            _after(Ledger, "reserve" if act is Reserve else "commit", Fault(kind))
        case "before it is sent":
            _before(sharing, "_send", Fault(kind), lambda _, body, *__: body["act"] == act.__name__.lower())
        case "sent, before the reply":
            _before(sharing, "_receive", Fault(kind), _nth(number))
        case "rows are read":
            curator._session.engine.before = Fault(kind)  # noqa: SLF001 -- the engine of the test
        case _:
            raise ValueError(point)


HERE = (
    "before it is handed over",
    "inside its batch",
    "committed, before the witness",
    "a slot of the witness half written",
    "on disk, before anybody is told",
)
POINTS = (*(f"charge: {one}" for one in HERE), "compute: rows are read", *(f"answer: {one}" for one in HERE))
SOCKET_POINTS = tuple(
    f"{act}: {one}" for act in ("charge", "answer") for one in ("before it is sent", "sent, before the reply")
)
SERVICE_POINTS = ("charge: before the service did it", "charge: after the service did it")


# ---- processes -----------------------------------------------------------------------------------------------------------


def be_impatient(seconds=0.5):
    """Let nobody wait for long in this process: a holder that stands still is given up soon."""
    from curador.ledger import ledger, sharing, witness
    from curador.ledger.writer import Writer

    for one in (Writer, sharing.SharedWriter):
        one.do.__kwdefaults__["patience"] = seconds
    ledger.SETTLING = sharing.SETTLING = witness.PATIENCE = seconds


def open_study(folder):
    """Return the curator of a small study on a real ledger, whose engine returns what it is told to."""
    from curator_studies import open_curator

    from curador.study.model import EngineSettings

    return open_curator(Path(folder), engine=EngineSettings(deadline=1))


def ask(folder, point, fault):
    """Ask, with a fault on the way; write down what was charged, computed, told and released."""
    from curador.ledger.ledger import Ledger

    out = os.open(Path(folder) / "heard", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def say(**line):
        os.write(out, json.dumps(line).encode() + b"\n")

    be_impatient()
    with open_study(folder) as curator:
        plain = Ledger.reserve
        Ledger.reserve = lambda *given, **named: (spent := plain(*given, **named), say(charged=spent.id))[0]
        if point is not None:
            install(point, fault, curator)
        try:
            answer = curator.ask(QUESTION, spend="5%")
        except BaseException as error:  # noqa: BLE001 -- whatever is told
            say(told=str(error), kind=type(error).__name__)
        else:
            say(released=answer.receipt.record["answer_digest"], stored=answer.stored)


def serve(folder, point, fault):
    """Write for others; a fault before or after a charge is written."""
    from curador.ledger.sharing import WriterService

    be_impatient()
    with open_study(folder) as curator:
        if point is not None:
            change = _before if "before" in point else _after
            change(WriterService, "_done", Fault(fault), lambda _, body, *__: body["act"] == "reserve")
        with curator._session.ledger.write_for_others() as service:  # noqa: SLF001 -- what the command does
            (Path(folder) / "serving").touch()
            service.serve()


def main():
    """Fork an asker for each line."""
    with open_study(sys.argv[1]) as curator:  # whatever is imported at the first question is imported once
        curator.ask(QUESTION, spend="5%")
    print("ready", flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                {"ask": ask, "serve": serve}[told["do"]](told["folder"], told["point"], told["fault"])
            finally:
                os._exit(0)
        if told["do"] == "serve":
            while not (Path(told["folder"]) / "serving").exists():
                time.sleep(0.005)
            print(json.dumps({"pid": child, "ended": None}), flush=True)
            continue
        print(json.dumps({"pid": child, "ended": _ended(child)}), flush=True)


def _ended(child):
    _, status = os.waitpid(child, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return "stopped"
    return "killed" if os.WIFSIGNALED(status) else "exited"


class Nursery:
    """The nursery, from outside."""

    def __init__(self, folder):
        folder.mkdir()
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout.readline() == "ready\n"

    def run(self, do, folder, point=None, fault=None):
        """Fork; return the process's number and how it ended: killed, exited, stopped, or None where it serves."""
        self._process.stdin.write(json.dumps({"do": do, "folder": str(folder), "point": point, "fault": fault}) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        return told["pid"], told["ended"]

    def close(self):
        """End it."""
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


if __name__ == "__main__":
    main()

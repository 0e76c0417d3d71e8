"""Openings that are killed, and openings of several processes at once: each reads on from a checkpoint that is true."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from fractions import Fraction

import pytest
from ledger_workers import open_and_ask
from ledgers import create, reopen

from curador.ledger import opening
from curador.ledger.amounts import Amounts
from curador.ledger.checkpoint import checkpoint_of, make_checkpoint, recall
from curador.study.model import Budget

LARGE = Budget(epsilon=1_000_000)
PROCESSES, EACH = 4, 12
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL") or not hasattr(os, "fork"), reason="this system does not kill"),
]


def whole_and_short_agree(path, charged):
    """Every charge is there, and from the checkpoint on it adds up to the same as from the first entry on."""
    with reopen(path, LARGE) as ledger:
        assert {one.id for one in ledger.entries() if one.kind == "reserved"} >= charged
        assert ledger.spent() == Amounts(sum(one.kind == "reserved" for one in ledger.entries()) * Fraction(1, 1000))
        store, places = ledger._store, opening.LedgerPlaces.of(path, None, None)  # noqa: SLF001 -- what the opening reads
        found = opening.read_since(store, places, ledger.id, ledger.limits)
        whole = opening.read_whole(store, places, ledger.id)
        if found is not None:
            ends = [make_checkpoint(one, file=store.file, witness=places.witness) for one in (found[0], whole)]
            assert ends[0] == ends[1]
    return found is not None


def test_openings_that_are_killed(tmp_path):
    """Twenty kills anywhere in opening, asking, writing the checkpoint and closing."""
    path, opened = tmp_path / "a.ledger", tmp_path / "opened"
    create(path, LARGE).close()
    opened.touch()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["curador.ledger.ledger"])
    chance, used = random.Random(), 0
    for _ in range(20):
        before = opened.stat().st_size
        worker = context.Process(target=open_and_ask, args=(path, 10**6, opened))
        worker.start()
        deadline = time.monotonic() + 60
        while opened.stat().st_size == before and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(chance.uniform(0, 0.05))
        worker.kill()
        worker.join()
        worker.close()
        used += whole_and_short_agree(path, set(opened.read_text(encoding="ascii").split()))
    assert used >= 12  # a turn leaves an entry at least, and the opening that finds four unread ones writes a checkpoint


def test_openings_of_several_processes_at_once(tmp_path):
    """Four processes open, ask and move the checkpoint, twelve times each: nothing is lost, and it is true at the end."""
    path, opened = tmp_path / "a.ledger", tmp_path / "opened"
    create(path, LARGE).close()
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    workers = [context.Process(target=open_and_ask, args=(path, EACH, opened, barrier)) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    charged = set(opened.read_text(encoding="ascii").split())
    assert len(charged) == PROCESSES * EACH
    assert whole_and_short_agree(path, charged)
    assert recall(checkpoint_of(path)) is not None
    assert sorted(one.name for one in tmp_path.iterdir() if "checkpoint" in one.name) == ["a.ledger.checkpoint"]

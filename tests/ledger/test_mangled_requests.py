"""Mangled requests at the writer's socket: each is done or refused, and the ledger is read as before."""

from __future__ import annotations

import copy
import hashlib
import json
import random

import pytest
from ledgers import create, request

from curador.errors import InvalidStudy
from curador.ledger import sharing
from curador.ledger.acts import Reserve, Settle
from curador.ledger.entry import EntryKind
from curador.study.model import Budget

# ruff: noqa: SLF001 -- what another process may send

pytestmark = pytest.mark.slow
JUNK = [None, True, 0, -1, 2**70, 1.5, float("nan"), "", "x", "\0", "\ud800", "1/3", "-1", [], ["a"], {}]
JUNK += [*(kind.value for kind in EntryKind), "x" * 300, "0" * 64]
MANY = 80


def places(value, at=()):
    """Yield where something stands in plain values."""
    yield at
    if isinstance(value, (dict, list)):
        for name in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[name], (*at, name))


def put(value, at, other):
    """The value with something else at a place."""
    if not at:
        return other
    made = copy.copy(value)
    made[at[0]] = put(made[at[0]], at[1:], other)
    return made


def some_act(ledger, draw):
    """A charge or an end of one, as askers hand them over."""
    if draw.random() < 0.5:
        return Reserve(request(epsilon=1), draw.random() < 0.5)
    own = ledger._own_writer.do(Reserve(request(epsilon=1))).entry
    answered = Settle(EntryKind.COMMITTED, own, b"x", "d", hashlib.sha256(b"x").hexdigest())
    return draw.choice([Settle(EntryKind.FAILED, own, note="n"), Settle(EntryKind.VOIDED, own), answered, answered])


def mangled(body, draw):
    """The request with junk in one to three places, also inside the entry that it speaks of."""
    if "own" in body and draw.random() < 0.5:
        body["own"] = json.loads(body["own"])
    for _ in range(draw.choice([1, 1, 2, 3])):
        body = put(body, draw.choice([*places(body)][1:]), draw.choice(JUNK))
    if isinstance(body.get("own"), dict):
        body["own"] = json.dumps(body["own"], sort_keys=True, separators=(",", ":"))
    return body


def hand_over(folder, seed):
    """Hand over mangled requests; return how many were done. InvalidStudy where the ledger is none afterwards."""
    draw, done = random.Random(seed), 0
    with create(folder / f"{seed}.ledger", Budget(epsilon=10**6)) as ledger, ledger.write_for_others() as service:
        for _ in range(MANY):
            act = some_act(ledger, draw)
            body = json.loads(json.dumps(sharing._told(act, 1.0, again=draw.random() < 0.5)))
            content = getattr(act, "answer", None) or b""
            before = ledger.head.sequence
            service._done(mangled(body, draw), draw.choice([content, content, b"zz"]))
            done += ledger.head.sequence > before
        ledger.verify()
    return done


@pytest.mark.parametrize("seed", range(3))
def test_a_mangled_request_harms_no_ledger(seed, tmp_path):
    """Some are whole all the same, most are refused."""
    assert 0 < hand_over(tmp_path, seed) < MANY


def test_ends_that_are_not_looked_at_harm_it(tmp_path, monkeypatch):
    """A seeded bug: what another process says of an end is written as it is."""
    monkeypatch.setattr(Settle, "__post_init__", lambda _: None)
    with pytest.raises(InvalidStudy):
        sum(hand_over(tmp_path, seed) for seed in range(20))

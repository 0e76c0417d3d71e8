"""How many shadows run: one for each asker, however many come at once, and few that nobody uses."""

import asyncio
from types import SimpleNamespace

import pytest

from curador.door import shadow
from curador.door.shadow import MOST_UNUSED, Shadows

SEEN = {"tables": [], "unit": "patient"}


@pytest.fixture
def started(monkeypatch):
    """Shadows that only say that they run; each is listed when it starts."""
    found = []

    def start(*_, **__):
        one = SimpleNamespace(stopped=False, guard=SimpleNamespace(poll=lambda: None))
        one.socket = SimpleNamespace(exists=lambda: not one.stopped)
        one.stop = lambda: setattr(one, "stopped", True)
        found.append(one)
        return one

    monkeypatch.setattr(shadow, "start_shadow", start)
    return found


async def visit(shadows, asker, *, seconds=0.0):
    async with shadows.of(asker, SEEN, "clinic") as one:
        await asyncio.sleep(seconds)
        assert not one.stopped
        return one


def test_those_who_come_at_once_have_one(started):
    """Also where another one is stopped meanwhile, which takes a moment."""

    async def scene():
        shadows = Shadows()
        for number in range(MOST_UNUSED + 2):
            await visit(shadows, f"asker {number}")
        before = len(started)
        ones = await asyncio.gather(*(visit(shadows, "ana", seconds=0.1) for _ in range(5)))
        assert len(started) == before + 1
        assert all(one is ones[0] for one in ones)
        await shadows.stop()

    asyncio.run(scene())
    assert all(one.stopped for one in started)


def test_askers_share_none(started):
    """Although they see the same tables."""

    async def scene():
        shadows = Shadows()
        ana, ben = await asyncio.gather(visit(shadows, "ana"), visit(shadows, "ben"))
        assert ana is not ben
        assert await visit(shadows, "ana") is ana
        await shadows.stop()

    asyncio.run(scene())


def test_a_dead_one_is_started_anew(started):
    """And is stopped, which takes its folder away."""

    async def scene():
        shadows = Shadows()
        first = await visit(shadows, "ana")
        first.guard.poll = lambda: 1
        assert await visit(shadows, "ana") is not first
        assert first.stopped
        await shadows.stop()

    asyncio.run(scene())


def test_unused_ones_are_few(started):
    """Those go that were used longest ago; one that is used stays."""

    async def scene():
        shadows = Shadows()
        async with shadows.of("stays", SEEN, "clinic") as used:
            for number in range(MOST_UNUSED + 5):
                await visit(shadows, f"asker {number}")
            assert not used.stopped
            assert sum(not one.stopped for one in started) <= MOST_UNUSED + 2
            assert not started[-1].stopped
        await shadows.stop()

    asyncio.run(scene())

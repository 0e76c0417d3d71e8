"""Questions of one connection, by the service: their columns, their price, and their answers with what goes with them."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.door.problems import SqlProblem, problem_of
from curador.door.results import Rows, ShownColumn
from curador.errors import CuradorError
from curador.study.values import Type
from curador.text import level_text, percent_text, reach_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from curador.curator.preview import Preview
    from curador.door.pools import Pools
    from curador.door.settings import DoorSettings
    from curador.server.jobs import Outcome
    from curador.server.service import Service
    from curador.server.tokens import Caller

TRIED = "1%"
"""What a question is previewed with, where nobody said what it may cost."""

KEPT = "what was charged stays charged; the identical question is answered for nothing once it is done."


class Asking:
    """The way from one connection to the service; threads wait for it, the connection does not."""

    def __init__(self, service: Service, caller: Caller, settings: DoorSettings, pools: Pools) -> None:
        """Ask for a caller; previews and descriptions by the quick threads, answers by the others."""
        self.service, self.caller, self.settings = service, caller, settings
        self.pools = pools
        self.charged = False
        """Whether anything was charged since it was last said that nothing is given back."""

    async def columns(self, text: str) -> tuple[ShownColumn, ...]:
        """Return the columns of a question's answer, by its plan: nothing is spent."""
        options = self.settings.options() if self.settings.priced else self.settings.options(spend=TRIED)
        found = await self._quickly(text, lambda: self.service.columns(self.caller, text, options))
        shown = list[ShownColumn]()
        for part in found:
            shown.append(ShownColumn(part.name, part.type))
            if part.low is not None and self.settings.intervals == "columns":
                shown += [ShownColumn(f"{part.name}_low", part.type), ShownColumn(f"{part.name}_high", part.type)]
        return tuple(shown)

    async def preview(self, text: str) -> list[str]:
        """Return in lines what a question would cost and how good its answer would be."""
        options = self.settings.options() if self.settings.priced else self.settings.options(spend=TRIED)
        found = await self._quickly(text, lambda: self.service.preview(self.caller, text, options))
        return str(found).splitlines()

    async def ask(self, text: str, cancelled: asyncio.Event, seconds: float | None) -> Rows:
        """Return the answer of a question; refuse one whose price nobody said, with what 1 % would give.

        Whoever cancels is told so at once. A question that has not begun is withdrawn, and nothing is spent; one that has
        goes on, and its answer is kept.
        """
        if not self.settings.priced:
            raise await self._unpriced(text)
        options, told = self.settings.options(), list[str]()
        if cancelled.is_set():
            raise _withdrawn()
        job = self.pools.slow.submit(lambda: self.service.ask(self.caller, text, options, told=told.append))
        running = asyncio.wrap_future(job)
        waiting = asyncio.ensure_future(cancelled.wait())
        withdrawn = False
        try:
            await asyncio.wait({running, waiting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            running.add_done_callback(_forget)
            withdrawn = job.cancel()  # works where no thread has taken it
            self.charged = self.charged or "running" in told
        if withdrawn:
            raise _withdrawn()
        if not running.done():
            self.charged = True  # as far as anybody can know
            raise SqlProblem("57014", "the statement was cancelled.", KEPT)
        try:
            outcome = running.result().require()
        except CuradorError as problem:
            raise problem_of(problem, text) from problem
        return self._rows(outcome)

    async def read(self, length: int, work: Callable[[], Any]) -> Any:
        """Return what is made of a text of so many letters, away from other connections where it is long."""
        return await self.pools.read(self.caller.token_id, length, work)

    def relaying(self) -> AbstractAsyncContextManager[None]:
        """Return the turn of a statement that goes to the shadow."""
        return self.pools.relay(self.caller.token_id)

    async def _quickly(self, text: str, ask: Callable[[], Any]) -> Any:
        try:
            return await self.pools.quick(self.caller.token_id, ask)
        except CuradorError as problem:
            raise problem_of(problem, text) from problem

    async def _unpriced(self, text: str) -> SqlProblem:
        options = self.settings.options(spend=TRIED)
        preview: Preview = await self._quickly(text, lambda: self.service.preview(self.caller, text, options))
        errors = "; ".join(error.sentence() for error in preview.errors)
        gives = f", which would give {errors}" if errors else ""
        hint = f"SET curador.spend = '{TRIED}'{gives}. EXPLAIN says more, for nothing."
        return SqlProblem("55000", "curador.spend must be set before a question is asked; nothing was spent.", hint)

    def _rows(self, outcome: Outcome) -> Rows:
        body: Mapping[str, Any] = outcome.body or {}
        table = outcome.table
        names = set(table.column_names)
        wide = self.settings.intervals == "columns"
        shown: list[ShownColumn] = []
        values: list[Sequence[Any]] = []
        for column in body["columns"]:
            kind, name = Type(column["type"]), str(column["name"])
            ends = [f"{name}_low", f"{name}_high"] if column["interval"] and wide else []
            for part in (name, *ends):
                if part in names:
                    shown.append(ShownColumn(part, kind))
                    values.append(table.column(part).to_pylist())
        rows = list(zip(*values, strict=True)) if values else []
        return Rows(tuple(shown), rows, notices=list(self._notices(body, table)))

    def _notices(self, body: Mapping[str, Any], table: Any) -> list[str]:
        told = list[str]()
        if self.settings.intervals == "notice":
            reaches = [
                f"{column['name']} {_reach(table, column['name'])}" for column in body["columns"] if column["interval"]
            ]
            level = level_text(Fraction(str(body["confidence"])))
            told += [f"{level} intervals: {'; '.join(reaches)}"] if reaches else []
        told += [str(line) for line in (*body["left_out"], *body["notes"])]
        cost = "this answer was given before, for nothing" if body["stored"] else f"it cost {_share(body)} of your limit"
        return [*told, cost]


def _withdrawn() -> SqlProblem:
    return SqlProblem("57014", "the statement was cancelled before it began; nothing was spent.")


def _forget(done: asyncio.Future[Any]) -> None:
    """Look at what a question raised that nobody waits for, so that nothing warns of it."""
    if not done.cancelled():
        done.exception()


def _share(body: Mapping[str, Any]) -> str:
    return percent_text(Fraction(body["cost"]["share"]), Fraction(1), up=True)


def _reach(table: Any, name: str) -> str:
    """Return how far an interval reaches, or from the least to the most where rows differ."""
    lows, highs = table.column(f"{name}_low").to_pylist(), table.column(f"{name}_high").to_pylist()
    values = table.column(name).to_pylist()
    if any(one is None for one in (*lows, *highs)):
        return "is in an interval without an end; SET curador.intervals = 'columns' shows it"
    if not lows:
        return "without a row"
    if not isinstance(lows[0], int | float):
        return f"from {min(lows)} to {max(highs)}"
    reaches = [
        max(high - value, value - low) if value is not None else (high - low) / 2
        for low, value, high in zip(lows, values, highs, strict=True)
    ]
    least, most = reach_text(float(min(reaches))), reach_text(float(max(reaches)))
    return most if least == most else f"{least} to {most.removeprefix('± ')}"

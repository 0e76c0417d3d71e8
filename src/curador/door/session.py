"""One connection after its login: messages in, answers out, until it leaves or is ended.

The shadow's session is the only truth about the transaction: what is refused here lets it fail as a failed statement does,
and what is said to be ready is what it says. Statements and portals are ours where the door answers them, and the shadow's
else.

Claim   A portal spends once, at its Execute; Parse, Bind, Describe, FETCH, EXPLAIN and all else spend nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING

from curador.door import messages
from curador.door.asking import Asking
from curador.door.link import Gone, Link, is_beside
from curador.door.messages import Malformed, Message, MessageBody, NotUtf8, zero_ended
from curador.door.prepared import ASKS, Portal, Prepared, count_parameters, read_bind, settle_types
from curador.door.problems import SqlProblem, fields_of_shadow, notice_fields, problem_of
from curador.door.results import Rows, ShownColumn, description, fetch, forms_of, lines_of, write_rows
from curador.door.settings import read_name, read_set
from curador.door.shadow_schema import quote
from curador.door.statements import Statement, StatementKind, config_call, parse_one, read_statements
from curador.errors import CuradorError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from curador.door.describing import Describer
    from curador.door.settings import DoorSettings

MOST_HELD = 500
"""Prepared statements, portals and cursors of one connection."""

MOST_LETTERS, MOST_CELLS = 8_000_000, 1_000_000
"""Of the texts of those, and of the answers that they hold while another one is opened."""

MOST_MESSAGES = 64
"""Messages between two looks at whether all that was written has left."""

ROLLED_BACK = "ROLLBACK gives nothing back: what a question was charged stays charged."


class DoorSession:
    """A client that logged in."""

    def __init__(
        self,
        asking: Asking,
        settings: DoorSettings,
        link: Link,
        describer: Describer,
        tables: frozenset[str],
        *,
        read: Callable[[], Awaitable[Message]],
        tell: Callable[[bytes], Awaitable[None]],
        note: Callable[[str], None],
        longest: float,
    ) -> None:
        """Serve what `read` gives, by `tell`; a statement about catalogues ends within `longest` seconds.

        note  is given the SQLSTATE of each statement that was refused
        """
        self.asking, self.settings, self.link, self.describer, self.tables = asking, settings, link, describer, tables
        self._read, self._tell, self._note, self._longest = read, tell, note, longest
        self.prepared: dict[str, Prepared] = {}
        self.forwarded: set[str] = set()
        self.portals: dict[str, Portal] = {}
        self.cancelled = asyncio.Event()
        self._relaying = False
        self._too_long = False
        self._rolled_back = False
        self._reported = settings.reported()

    async def cancel(self) -> None:
        """Give up what is under way."""
        if self._relaying:
            await self.link.cancel()
        else:
            self.cancelled.set()

    async def run(self) -> None:
        """Serve until the client leaves."""
        while True:
            got = await self._next()
            if got.kind == b"X":
                return
            if got.kind == b"Q":
                await self._simple(got.body)
            elif got.kind in _EXTENDED or got.kind == b"S":
                await self._extended(got)
            elif got.kind not in {b"d", b"c", b"f"}:  # what is left of a COPY that was refused
                raise Malformed("a message has a letter that is not allowed")

    async def _next(self) -> Message:
        """Return the next message; a cancel that came while nothing ran is of nothing, as in PostgreSQL."""
        got = await self._read()
        self.cancelled.clear()
        return got

    # ---- simple queries ---------------------------------------------------------------------------------------------

    async def _simple(self, body: bytes) -> None:
        self._drop("")
        self.prepared.pop("", None)
        try:
            read = MessageBody(body)
            text = read.text()
            read.end()
            statements = await self.asking.read(len(text), partial(read_statements, text, self.tables))
            self._require_one_question(statements)
            for statement in statements:
                if not await self._answer_simple(statement):
                    break
            if not statements:
                await self._tell(messages.EMPTY)
        except NotUtf8:
            await self._refuse(_not_utf8(), extended=False)
        except RecursionError:
            await self._refuse(_too_deep(), extended=False)
        except SqlProblem as problem:
            await self._refuse(problem, extended=False)
        except Malformed:
            raise
        await self._ready()

    def _require_one_question(self, statements: list[Statement]) -> None:
        questions = sum(one.kind in {StatementKind.QUESTION, StatementKind.DECLARE} for one in statements)
        if questions > 1:
            hint = "send them one after the other; nothing was spent."
            raise SqlProblem("0A000", f"a message must have at most one question; got {questions}.", hint)

    async def _answer_simple(self, statement: Statement) -> bool:
        """Answer one statement of a message; return whether the next may come."""
        if self._goes_to_shadow(statement):
            good = await self._relay(self.link.query(statement.text))
            self._follow()
            return good
        prepared = Prepared(statement, database=self.link.shadow.database)
        portal = Portal(await self.asking.read(len(statement.text), partial(prepared.bound, [])))
        await self._execute(portal)
        if portal.rows is not None:
            await self._tell(description(portal.rows.columns, ()))
            await self._hand_out(portal, 0)
        await self._tell(messages.complete(portal.tag))
        return True

    def _goes_to_shadow(self, statement: Statement) -> bool:
        match statement.kind:
            case StatementKind.SHADOW:
                return True
            case StatementKind.FETCH:
                return statement.name not in self.portals
            case StatementKind.CLOSE:
                return statement.name not in self.portals and statement.name != "all"
            case StatementKind.SHOW:
                return self.settings.get(read_name(statement.words[1:])[0]) is None
            case _:
                return False

    # ---- the extended protocol --------------------------------------------------------------------------------------

    async def _extended(self, first: Message) -> None:
        """Serve messages until Sync; after an error all before it are passed over."""
        got, failed = first, False
        while got.kind != b"S":
            if got.kind == b"X":
                raise EOFError
            if not failed and got.kind in _EXTENDED:
                try:
                    await _EXTENDED[got.kind](self, got)
                except NotUtf8:
                    failed = True
                    await self._refuse(_not_utf8(), extended=True)
                except RecursionError:
                    failed = True
                    await self._refuse(_too_deep(), extended=True)
                except SqlProblem as problem:
                    failed = True
                    await self._refuse(problem, extended=True)
                except ShadowRefused:
                    failed = True
            elif got.kind == b"Q":
                raise Malformed("a Query must not stand before a Sync")
            got = await self._next()
        await self.link.sync()
        await self._ready()

    async def parse(self, got: Message) -> None:
        read = MessageBody(got.body)
        name, text = read.text(), read.text()
        declared = [read.uint32() for _ in range(read.int16())]
        read.end()
        if name and (name in self.prepared or name in self.forwarded):
            raise SqlProblem("42P05", "a prepared statement must have a name of its own.")
        statements = await self.asking.read(len(text), partial(read_statements, text, self.tables))
        if len(statements) > 1:
            raise SqlProblem("42601", "a prepared message must have one statement.", "send them one after the other.")
        self._require_few(len(text))
        self.prepared.pop(name, None)
        if not statements or self._goes_to_shadow(statements[0]):
            if statements and statements[0].at is None:  # it goes in other words
                got = Message(b"P", zero_ended(name) + zero_ended(statements[0].text) + got.body.split(b"\0", 2)[2])
            await self._forward(got)
            self.forwarded.add(name)
            return
        self._require_in_force()
        statement = statements[0]
        counted = await self.asking.read(len(text), partial(count_parameters, statement))
        count = max(counted, len(declared) if statement.kind in ASKS else 0)
        found: tuple[int, ...] = ()
        if any(oid in {0, 705} for oid in (*declared, *[0] * (count - len(declared)))):
            found = await self.describer.types(statement.asked or statement.text, declared)
        self.prepared[name] = Prepared(statement, settle_types(declared, found, count), self.link.shadow.database)
        self.forwarded.discard(name)
        await self._tell(messages.PARSE_COMPLETE)

    async def bind(self, got: Message) -> None:
        wanted = read_bind(got.body)
        prepared = self.prepared.get(wanted.statement)
        if wanted.portal and wanted.portal in self.portals:
            raise SqlProblem("42P03", "a portal must have a name of its own.")
        self._drop(wanted.portal)
        if prepared is None:
            await self._forward(got)
            return
        self._require_in_force()
        self._require_few()
        bound = partial(prepared.bound, wanted.parameters(prepared.oids))
        self.portals[wanted.portal] = Portal(
            await self.asking.read(len(prepared.question) + len(got.body), bound), wanted.results
        )
        await self._tell(messages.BIND_COMPLETE)

    async def describe(self, got: Message) -> None:
        read = MessageBody(got.body)
        what, name = read.take(1), read.text()
        read.end()
        if what == b"S" and name in self.prepared:
            self._require_in_force()
            prepared = self.prepared[name]
            columns = await self._columns(await self.asking.read(len(prepared.question), prepared.sample))
            await self._tell(messages.parameter_types(prepared.oids))
            await self._tell(messages.NO_DATA if columns is None else description(columns, ()))
        elif what == b"P" and name in self.portals:
            self._require_in_force()
            portal = self.portals[name]
            columns = await self._columns_of(portal)
            await self._tell(messages.NO_DATA if columns is None else description(columns, portal.forms))
        else:
            await self._forward(got)

    async def run_portal(self, got: Message) -> None:
        read = MessageBody(got.body)
        name, most = read.text(), read.int32()
        read.end()
        portal = self.portals.get(name)
        if portal is None:
            await self._forward(got)
            return
        self._require_in_force()
        if len(portal.forms) > 1 and not portal.done:
            columns = await self._columns_of(portal)
            forms_of(columns or (), portal.forms)  # what could not be handed out is not asked
        await self._execute(portal)
        if portal.rows is not None:
            await self._hand_out(portal, most)
            if most > 0 and not portal.rows.over:
                await self._tell(messages.SUSPENDED)
                return
        await self._tell(messages.complete(portal.tag))

    async def close(self, got: Message) -> None:
        read = MessageBody(got.body)
        what, name = read.take(1), read.text()
        read.end()
        if what == b"S":
            self.prepared.pop(name, None)
            self.forwarded.discard(name)
        else:
            self._drop(name)
        await self._forward(got)  # of what the shadow does not have, closing is nothing

    async def flush(self, _: Message) -> None:
        """All that was answered has been written."""

    async def _forward(self, got: Message) -> None:
        if not await self._relay(self.link.exchange(got)):
            raise ShadowRefused

    # ---- what the door answers itself -------------------------------------------------------------------------------

    async def _columns_of(self, portal: Portal) -> tuple[ShownColumn, ...] | None:
        """Return the columns of a portal; they are planned once as long as it is said alike how intervals are told."""
        if portal.rows is not None:
            return portal.rows.columns
        if portal.planned is None or portal.planned[0] != self.settings.intervals:
            portal.planned = self.settings.intervals, await self._columns(portal.statement)
        return portal.planned[1]

    async def _columns(self, statement: Statement) -> tuple[ShownColumn, ...] | None:
        """Return the columns of what a statement will give, None of one that gives none; nothing is spent."""
        match statement.kind:
            case StatementKind.QUESTION:
                return await self.asking.columns(statement.text)
            case StatementKind.EXPLAIN:
                return (ShownColumn("QUERY PLAN"),)
            case StatementKind.FETCH:
                return None if statement.words[0].upper == "MOVE" else self._rows_of(statement.name).columns
            case StatementKind.SHOW:
                return (ShownColumn(read_name(statement.words[1:])[0]),)
            case StatementKind.CONFIG:
                return self._config(statement, heed=False).columns
            case _:
                return None

    async def _execute(self, portal: Portal) -> None:
        """Let a portal have what its statement gives; the second time there is nothing to do."""
        if portal.done:
            return
        self._require_in_force()
        statement = portal.statement
        try:
            portal.rows, portal.tag = await self._done(statement)
        except CuradorError as problem:
            raise problem_of(problem) from problem
        except SqlProblem as problem:
            if problem.position is not None:
                problem.position = statement.place(problem.position)
            raise
        portal.done = True
        for line in portal.rows.notices if portal.rows is not None else ():
            await self._notice(line)
        if portal.rows is not None:
            portal.rows.notices.clear()

    async def _done(self, statement: Statement) -> tuple[Rows | None, str]:
        words = statement.words
        match statement.kind:
            case StatementKind.QUESTION:
                rows = await self.asking.ask(statement.text, self.cancelled, self.settings.seconds)
                return rows, f"SELECT {len(rows.rows)}"
            case StatementKind.EXPLAIN:
                return lines_of("QUERY PLAN", await self.asking.preview(statement.asked)), "EXPLAIN"
            case StatementKind.DECLARE:
                return await self._open_cursor(statement), "DECLARE CURSOR"
            case StatementKind.FETCH:
                return self._fetch(statement)
            case StatementKind.CLOSE:
                return await self._close_cursor(statement), "CLOSE CURSOR ALL" if statement.name == "all" else "CLOSE CURSOR"
            case StatementKind.SET:
                name, value, local = read_set(words)
                self._set(name, value, local=local)
                await self._report()
                return None, "SET"
            case StatementKind.SHOW:
                name = read_name(words[1:])[0]
                return lines_of(name, [self.settings.get(name) or ""]), "SHOW"
            case StatementKind.CONFIG:
                return self._config(statement, heed=True), "SELECT 1"
            case StatementKind.RESET:
                self._reset(words[1].upper if len(words) > 1 else "", words)
                await self._report()
                return None, "RESET"
            case StatementKind.DISCARD:
                await self._discard(words[1].upper if len(words) > 1 else "")
                return None, f"DISCARD {words[1].upper}"
            case StatementKind.DEALLOCATE:
                return await self._deallocate(statement)
            case _:
                return None, words[0].upper

    async def _open_cursor(self, statement: Statement) -> None:
        holds = any(
            word.upper == "WITH" and after.upper == "HOLD"
            for word, after in zip(statement.words, statement.words[1:], strict=False)
        )
        if self.link.status != b"T" and not holds:
            raise SqlProblem("25P01", "DECLARE must stand in a transaction, or say WITH HOLD.", "BEGIN comes first.")
        if statement.name in self.portals:
            raise SqlProblem("42P03", "a cursor must have a name of its own.")
        self._require_few()
        rows = await self.asking.ask(statement.asked, self.cancelled, self.settings.seconds)
        for line in rows.notices:
            await self._notice(line)
        rows.notices.clear()
        tag = f"SELECT {len(rows.rows)}"
        self.portals[statement.name] = Portal(statement, rows=rows, tag=tag, done=True, holds=holds, is_cursor=True)

    def _fetch(self, statement: Statement) -> tuple[Rows | None, str]:
        held = self._rows_of(statement.name)
        passed = fetch(held, statement.words)
        if statement.words[0].upper == "MOVE":
            return None, f"MOVE {len(passed)}"
        return Rows(held.columns, passed), f"FETCH {len(passed)}"

    def _rows_of(self, name: str) -> Rows:
        portal = self.portals.get(name)
        if portal is None or portal.rows is None:
            raise SqlProblem("34000", "a cursor must be open before it is fetched from.")
        return portal.rows

    async def _close_cursor(self, statement: Statement) -> None:
        if statement.name != "all":
            self._drop(statement.name)
            return
        self.portals = {name: portal for name, portal in self.portals.items() if not portal.is_cursor}
        await self._quietly("CLOSE ALL")

    def _set(self, name: str, value: str | None, *, local: bool = False) -> None:
        if value is None:
            self.settings.reset(name)
        else:
            self.settings.set(name, value, local=local)

    def _reset(self, word: str, words: object) -> None:
        if word == "ALL":
            self.settings.reset_all()
        else:
            self.settings.reset(read_name(words[1:])[0])  # type: ignore[index]

    async def _discard(self, word: str) -> None:
        if word not in {"ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"}:
            raise SqlProblem("42601", "DISCARD must be of ALL, PLANS, SEQUENCES or TEMP.")
        if word == "ALL":
            if self.link.status != b"I":
                raise SqlProblem("25001", "DISCARD ALL must not stand in a transaction.")
            self.settings.reset_all()
            await self._report()
            self.prepared.clear()
            self.forwarded.clear()
            self.portals.clear()
        await self._quietly(f"DISCARD {word}")

    async def _deallocate(self, statement: Statement) -> tuple[None, str]:
        name = statement.words[-1]
        if name.upper == "ALL":
            self.prepared.clear()
            self.forwarded.clear()
            await self._quietly("DEALLOCATE ALL")
            return None, "DEALLOCATE ALL"
        if self.prepared.pop(name.text, None) is None:
            await self._quietly(f"DEALLOCATE {quote(name.text)}")
            self.forwarded.discard(name.text)
        return None, "DEALLOCATE"

    def _config(self, statement: Statement, *, heed: bool) -> Rows:
        """Return what SELECT set_config(…) gives: the values as they are kept."""
        tree = parse_one(statement.text)
        calls = [] if tree is None else [call for item in tree.expressions if (call := config_call(item)) is not None]
        values = list[str | None]()
        for _, arguments in calls:
            if len(arguments) == 3 and heed:
                self._set(arguments[0], arguments[1], local=arguments[2].lower() == "true")
            values.append(self.settings.get(arguments[0]))
        return Rows(tuple(ShownColumn(name) for name, _ in calls), [tuple(values)])

    # ---- by the shadow ----------------------------------------------------------------------------------------------

    async def _relay(self, answers: AsyncIterator[Message]) -> bool:
        """Pass on what the shadow answers, in the token's turn; return whether it was no error."""
        async with self.asking.relaying():
            return await self._relay_now(answers)

    async def _relay_now(self, answers: AsyncIterator[Message]) -> bool:
        """Pass on what the shadow answers. One that takes too long is ended."""
        timer = asyncio.ensure_future(self._end_slow())
        self._relaying, good, count = True, True, 0
        try:
            async for got in answers:
                if got.kind == b"E":
                    good = False
                    await self._tell(self._shadow_error(got))
                elif got.kind == b"N":
                    await self._tell(messages.notice(fields_of_shadow(messages.read_fields(got.body))))
                elif got.kind == b"C":
                    await self._follow_tag(got)
                elif got.kind in _COPYING:
                    raise Malformed("a COPY must not be under way")
                elif not is_beside(got):
                    count += 1
                    await self._tell(messages.message(got.kind, got.body))
        except Gone:
            raise SqlProblem("57P01", "the catalogues' server ended the connection.", "connect again.", fatal=True) from None
        finally:
            self._relaying = False
            timer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await timer
            self._too_long = False
        return good

    def _shadow_error(self, got: Message) -> bytes:
        fields = fields_of_shadow(messages.read_fields(got.body))
        if self._too_long and fields.get("C") == "57014":
            fields = SqlProblem("57014", f"a statement about catalogues must end within {self._seconds():g} seconds.").fields
        self._note(fields.get("C", "XX000"))
        return messages.error(fields)

    def _seconds(self) -> float:
        return min(self._longest, self.settings.seconds or self._longest)

    async def _end_slow(self) -> None:
        """Cancel a statement that takes too long, then end the session of the shadow."""
        await asyncio.sleep(self._seconds())
        self._too_long = True
        await self.link.cancel()
        await asyncio.sleep(2)
        await self.link.shadow.end_statement(self.link.backend)

    async def _quietly(self, text: str) -> None:
        """Let the shadow do what is done here, too; where it refuses, so do we."""
        refused: dict[str, str] = {}
        async for got in self.link.query(text):
            if got.kind == b"E":
                refused = fields_of_shadow(messages.read_fields(got.body))
        if refused:
            raise SqlProblem(refused.get("C", "XX000"), refused.get("M", "the shadow refused this."), refused.get("H"))

    async def _follow_tag(self, got: Message) -> None:
        tag = got.body.rstrip(b"\0").decode("utf-8", "replace")
        if tag in {"ROLLBACK", "COMMIT"}:
            self._rolled_back = tag == "ROLLBACK"  # ROLLBACK TO has this tag, too; what comes last counts
        if tag == "ROLLBACK" and self.asking.charged:  # until the transaction ends; a savepoint is no end
            await self._notice(ROLLED_BACK)
        await self._tell(messages.complete(tag))

    # ---- how it stands ----------------------------------------------------------------------------------------------

    async def _refuse(self, problem: SqlProblem, *, extended: bool) -> None:
        """Tell why something is refused, and let the transaction fail."""
        if problem.fatal:
            raise problem
        self._note(problem.state)
        if self.link.status == b"T" or extended:
            await self.link.spoil(extended=extended)
        await self._tell(messages.error(problem.fields))

    async def _ready(self) -> None:
        """Say what the next statement will meet."""
        self._follow()
        await self._report()
        await self._tell(messages.ready(self.link.status))

    def _follow(self) -> None:
        """Follow the shadow's transaction: settings, cursors and charges are of one."""
        self.settings.follow(self.link.status, rolled_back=self._rolled_back)
        if self.link.status == b"I":
            self._rolled_back = False
            self.asking.charged = False
            self.portals = {name: portal for name, portal in self.portals.items() if portal.holds}

    async def _report(self) -> None:
        now = self.settings.reported()
        for name, value in now.items():
            if self._reported.get(name) != value:
                await self._tell(messages.parameter_status(name, value))
        self._reported = now

    async def _notice(self, line: str) -> None:
        if self.settings.notices:
            await self._tell(messages.notice(notice_fields(line)))

    async def _hand_out(self, portal: Portal, most: int) -> None:
        if portal.rows is None:
            return
        taken = portal.rows.take(most)
        if portal.statement.kind in {StatementKind.QUESTION, StatementKind.DECLARE}:
            portal.tag = f"SELECT {len(taken)}"
        for row in write_rows(portal.rows.columns, taken, portal.forms):
            await self._tell(row)

    def _require_in_force(self) -> None:
        if self.link.status == b"E":
            hint = "ROLLBACK ends it; what was charged stays charged."
            raise SqlProblem("25P02", "the transaction failed: nothing is done until it ends.", hint)

    def _require_few(self, more: int = 0) -> None:
        """Refuse to hold another one, of so many letters, before it is held."""
        if max(len(self.prepared), len(self.forwarded), len(self.portals)) >= MOST_HELD:
            raise SqlProblem("53400", f"a connection must have at most {MOST_HELD} statements and cursors.", "close some.")
        portals = self.portals.values()
        letters = more + sum(len(one.statement.text) for one in (*self.prepared.values(), *portals))
        cells = sum(len(one.rows.rows) * len(one.rows.columns) for one in portals if one.rows is not None)
        if letters > MOST_LETTERS or cells > MOST_CELLS:
            rule = (
                f"a connection must hold at most {MOST_LETTERS:,} letters of statements and {MOST_CELLS:,} values of answers."
            )
            raise SqlProblem("53400", rule, "close some.")

    def _drop(self, name: str) -> None:
        self.portals.pop(name, None)


class ShadowRefused(Exception):  # noqa: N818 -- the shadow refused, and the client was told
    """What the shadow answered was an error."""


_COPYING = frozenset({b"G", b"H", b"W"})
_EXTENDED: dict[bytes, Callable[[DoorSession, Message], Awaitable[None]]] = {
    b"P": DoorSession.parse,
    b"B": DoorSession.bind,
    b"D": DoorSession.describe,
    b"E": DoorSession.run_portal,
    b"C": DoorSession.close,
    b"H": DoorSession.flush,
}


def _too_deep() -> SqlProblem:
    return SqlProblem("54001", "a statement must be less deeply nested.", "nothing was spent.")


def _not_utf8() -> SqlProblem:
    return SqlProblem("22021", "a text must be in UTF-8.")

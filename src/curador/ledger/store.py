"""The ledger's tables and statements, written once for every database that SQLAlchemy speaks to.

entry    one row an entry: its text, its hash, and the columns by which it is found; rows are only ever added
answer   the bytes of committed answers; their digests are in the chain
total    running sums, so that a reservation costs the same on the millionth day; CHECK is the second net below the judge
again    how often a stored answer was given again, a row for each line that says so: a number, outside the chain
prepared the owner's: the keyed digest of the prepared copy of a data version, so that all machines answer from the same rows

Amounts in `total` are whole ticks as text of one width: comparing texts compares numbers, and no database rounds them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

from curador.errors import CuradorError, Failed, InvalidStudy
from curador.ledger.amounts import DIGITS, NOTHING, Amounts
from curador.ledger.entry import DAMAGED, LATER, ChainRow, Entry, EntryKind, entry_of, recent_entry, refuse_entry

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    from sqlalchemy.sql.expression import ClauseElement

PAGE: Final = 500  # rows fetched at once when all are read
METADATA: Final = sa.MetaData()

_KINDS = ", ".join(f"'{kind}'" for kind in (*(kind.value for kind in EntryKind), *LATER))

ENTRY: Final = sa.Table(
    "entry",
    METADATA,
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("analyst", sa.Text),
    sa.Column("question_key", sa.Text),
    sa.Column("data_version", sa.Integer, nullable=False),
    sa.Column("settles", sa.Text, unique=True),  # a reservation is settled once
    sa.Column("body", sa.Text, nullable=False),
    sa.CheckConstraint(f"kind IN ({_KINDS})", name="known_kind"),
    sa.CheckConstraint("sequence >= 0", name="sequence_from_zero"),
    sa.Index("entry_by_analyst", "analyst", "sequence"),
    sa.Index("entry_by_kind", "kind", "sequence"),
    sa.Index("entry_by_question", "question_key", "data_version", "sequence"),
)
ANSWER: Final = sa.Table(
    "answer",
    METADATA,
    sa.Column("sequence", sa.Integer, sa.ForeignKey("entry.sequence"), primary_key=True, autoincrement=False),
    sa.Column("question_key", sa.Text, nullable=False),
    sa.Column("data_version", sa.Integer, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Index("answer_by_question", "question_key", "data_version", "sequence"),
)
_AMOUNTS = ("epsilon", "rho", "delta")
_COUNTED = (*_AMOUNTS, *(f"{name}_limit" for name in _AMOUNTS))
TOTAL: Final = sa.Table(
    "total",
    METADATA,
    sa.Column("holder", sa.Text, primary_key=True),
    *(sa.Column(name, sa.Text, nullable=False) for name in _COUNTED),
    *(
        sa.CheckConstraint(
            f"length({name}) = {DIGITS} AND length({name}_limit) = {DIGITS} AND {name} <= {name}_limit", name=f"{name}_within"
        )
        for name in _AMOUNTS
    ),
    sqlite_with_rowid=False,
)
AGAIN: Final = sa.Table(
    "again",
    METADATA,
    sa.Column("line", sa.Text, primary_key=True),  # the id of the entry that says so
    sa.Column("released", sa.Text, nullable=False),  # the id of the commit that was given again
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("day", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.CheckConstraint("number >= 1", name="at_least_once"),
    sa.UniqueConstraint("released", "holder", "day", name="one_line_a_day"),
)
PREPARED: Final = sa.Table(
    "prepared",
    METADATA,
    sa.Column("study", sa.Text, primary_key=True),
    sa.Column("data_version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.Text, nullable=False),
)
APPEND_ONLY: Final = (ENTRY.name, ANSWER.name, PREPARED.name)
"""Tables whose rows are never changed nor removed."""

_BEYOND = 2**62  # above every sequence
_NAMES = ("sequence", "hash", "kind", "id", "analyst", "question_key", "data_version", "settles", "body")
"""The stored columns of a row, in its order."""
_COLUMNS = [ENTRY.c[name] for name in _NAMES]
_HEAD = sa.select(*_COLUMNS).order_by(ENTRY.c.sequence.desc()).limit(1)
_TIP = sa.select(ENTRY.c.sequence, ENTRY.c.hash).order_by(ENTRY.c.sequence.desc()).limit(1)
_AT = sa.select(*_COLUMNS).where(ENTRY.c.sequence == sa.bindparam("place"))
_NAMED = sa.select(*_COLUMNS).where(ENTRY.c.id == sa.bindparam("own"))
_FROM = sa.select(*_COLUMNS).where(ENTRY.c.sequence >= sa.bindparam("place")).order_by(ENTRY.c.sequence).limit(PAGE)
_FROM_OF = _FROM.where(ENTRY.c.analyst == sa.bindparam("who"))
_FROM_OWNER = _FROM.where(ENTRY.c.analyst.is_(None))
_OF_KIND = (
    sa.select(*_COLUMNS)
    .where(
        ENTRY.c.kind == sa.bindparam("what"),
        ENTRY.c.sequence > sa.bindparam("place"),
        ENTRY.c.sequence < sa.bindparam("end"),
    )
    .order_by(ENTRY.c.sequence.desc())
    .limit(1)
)
_OTHER_END = sa.alias(ENTRY, "other_end")
_STANDING = (
    sa.select(*_COLUMNS)
    .where(
        ENTRY.c.kind == EntryKind.RESERVED.value,
        ENTRY.c.question_key == sa.bindparam("key"),
        ENTRY.c.data_version == sa.bindparam("version"),
        ENTRY.c.sequence < sa.bindparam("end"),
        ~sa.exists().where(
            _OTHER_END.c.settles == ENTRY.c.id,
            _OTHER_END.c.kind != EntryKind.COMMITTED.value,
        ),
    )
    .order_by(ENTRY.c.sequence.desc())
    .limit(1)
)
_SETTLED = sa.select(ENTRY.c.kind).where(ENTRY.c.settles == sa.bindparam("reservation"))
_END = sa.select(*_COLUMNS).where(ENTRY.c.settles == sa.bindparam("reservation"))
_STORED = (
    sa.select(ANSWER.c.sequence, ANSWER.c.content)
    .where(ANSWER.c.question_key == sa.bindparam("key"), ANSWER.c.data_version == sa.bindparam("version"))
    .order_by(ANSWER.c.sequence.desc())
    .limit(1)
)
_ANSWERS = sa.select(ANSWER).where(ANSWER.c.sequence > sa.bindparam("place")).order_by(ANSWER.c.sequence).limit(1)
_TOTAL = sa.select(*(TOTAL.c[name] for name in _AMOUNTS)).where(TOTAL.c.holder == sa.bindparam("who"))
_TOTALS = sa.select(TOTAL.c.holder, *(TOTAL.c[name] for name in _AMOUNTS))
_ADD_TOTAL = sa.insert(TOTAL).values({column.name: sa.bindparam(column.name) for column in TOTAL.columns})
_SET_TOTAL = (
    sa.update(TOTAL)
    .where(TOTAL.c.holder == sa.bindparam("who"))
    .values({column.name: sa.bindparam(column.name) for column in TOTAL.columns if column.name != "holder"})
)
_GIVE_BACK = (
    sa.update(TOTAL).where(TOTAL.c.holder == sa.bindparam("who")).values({name: sa.bindparam(name) for name in _AMOUNTS})
)
_LINE = sa.select(AGAIN.c.line).where(
    AGAIN.c.released == sa.bindparam("own"), AGAIN.c.holder == sa.bindparam("who"), AGAIN.c.day == sa.bindparam("date")
)
_ADD_LINE = sa.insert(AGAIN).values({column.name: sa.bindparam(column.name) for column in AGAIN.columns})
_COUNT_LINE = sa.update(AGAIN).where(AGAIN.c.line == sa.bindparam("own")).values(number=AGAIN.c.number + sa.bindparam("more"))
_GIVEN = sa.select(AGAIN.c.line, AGAIN.c.number).where(AGAIN.c.number > 1)
_PREPARED = sa.select(PREPARED.c.digest).where(
    PREPARED.c.study == sa.bindparam("whose"), PREPARED.c.data_version == sa.bindparam("version")
)
_ADD_PREPARED = sa.insert(PREPARED).values({column.name: sa.bindparam(column.name) for column in PREPARED.columns})
_ADD_ENTRY = sa.insert(ENTRY).values({name: sa.bindparam(name) for name in _NAMES})
_ADD_ANSWER = sa.insert(ANSWER).values({column.name: sa.bindparam(column.name) for column in ANSWER.columns})


_ALL: Final[Mapping[str, ClauseElement]] = {
    "head": _HEAD,
    "tip": _TIP,
    "at": _AT,
    "named": _NAMED,
    "onward": _FROM,
    "onward_of": _FROM_OF,
    "onward_owner": _FROM_OWNER,
    "of_kind": _OF_KIND,
    "standing": _STANDING,
    "settled": _SETTLED,
    "end": _END,
    "stored": _STORED,
    "answers": _ANSWERS,
    "total": _TOTAL,
    "totals": _TOTALS,
    "add_total": _ADD_TOTAL,
    "set_total": _SET_TOTAL,
    "give_back": _GIVE_BACK,
    "add_entry": _ADD_ENTRY,
    "add_answer": _ADD_ANSWER,
    "line": _LINE,
    "add_line": _ADD_LINE,
    "count_line": _COUNT_LINE,
    "given": _GIVEN,
    "prepared": _PREPARED,
    "add_prepared": _ADD_PREPARED,
}


class CompiledStatement(NamedTuple):
    """The text of a statement with named parameters, and those that never change (a LIMIT)."""

    text: str
    constants: Mapping[str, Any]


def statements(dialect: sa.Dialect) -> dict[str, CompiledStatement]:
    """Return every statement as the text of one dialect: compiled once, not once a question."""
    made: dict[str, CompiledStatement] = {}
    for name, statement in _ALL.items():
        compiled = statement.compile(dialect=dialect)
        made[name] = CompiledStatement(
            str(compiled), {key: value for key, value in (compiled.params or {}).items() if value is not None}
        )
    return made


def tables(dialect: sa.Dialect) -> list[str]:
    """Return the statements that make the tables, their indexes, and refuse to change or remove what was written."""
    made: list[str] = []
    for table in METADATA.sorted_tables:
        made.append(str(CreateTable(table).compile(dialect=dialect)).strip())
        made.extend(
            str(CreateIndex(index).compile(dialect=dialect)) for index in sorted(table.indexes, key=lambda one: str(one.name))
        )
    for name in APPEND_ONLY:
        refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        made.extend(f"CREATE TRIGGER {name}_no_{act} BEFORE {act} ON {name} {refuse}" for act in ("update", "delete"))
    return made


class Cursor(Protocol):
    """What is asked of a driver's cursor (PEP 249), with named parameters."""

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        ...

    def execute(self, operation: str, parameters: Any = ..., /) -> Any:
        """Run a statement."""
        ...

    def fetchone(self) -> Any:
        """Return the next row."""
        ...

    def fetchall(self) -> Sequence[Any]:
        """Return the other rows."""
        ...


class OutcomeUnknown(Failed):
    """The connection was lost while a change was being committed: it is whole or not there, and nobody was told which."""


class ChangeUndone(Exception):  # noqa: N818 -- what it means is decided where it is met
    """A statement failed so badly that the database took back the whole change. What came next would begin another one."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Store(Protocol):
    """What a ledger asks of its store: moments to read, changes that are whole, and the head.

    name       what a person calls it: a path, or a server's address without secrets
    file       device and number of its file; None where it is none
    mirroring  one thread a process brings the witness up to date
    """

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> tuple[int, int] | None: ...
    @property
    def mirroring(self) -> threading.Lock: ...

    def reading(self) -> AbstractContextManager[Page]:
        """One moment of the ledger."""
        ...

    def writing(self, *, charged: str | None = None, patience: float | None = None) -> AbstractContextManager[Page]:
        """One change: all of it is durable when the block is left, or nothing is.

        LedgerBusy (Failed where something was charged) if another writer holds it for longer than the patience.
        """
        ...

    def explain(self, error: Exception) -> CuradorError | None:
        """Return the sentence for what the database said of one act inside a change; None where it was not the database."""
        ...

    def tip(self) -> tuple[int, str]:
        """Return the sequence and hash of the last entry."""
        ...

    def integrity(self) -> None:
        """Refuse a database whose pages or indexes are damaged."""
        ...

    def schema(self) -> str:
        """Return a digest of the tables as the database declares them."""
        ...

    def admit_all_kinds(self) -> None:
        """Bring tables of an older version up to date; one step, whole or not at all."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


class Page:
    """The ledger's rows, as one connection sees them: inside one transaction they are of one moment."""

    __slots__ = ("_statements", "cursor")

    def __init__(self, cursor: Cursor, compiled: Mapping[str, CompiledStatement]) -> None:
        self.cursor = cursor
        self._statements = compiled

    def _run(self, name: str, **values: object) -> Cursor:
        statement = self._statements[name]
        self.cursor.execute(statement.text, {**statement.constants, **values})
        return self.cursor

    def _all(self, name: str, **values: object) -> Sequence[tuple[Any, ...]]:
        return self._run(name, **values).fetchall()

    def _one(self, name: str, **values: object) -> tuple[Any, ...] | None:
        return self._run(name, **values).fetchone()

    @contextlib.contextmanager
    def savepoint(self) -> Generator[None]:
        """A part of a change that may fail by itself: what it wrote goes, what others wrote stays.

        ChangeUndone where nothing of the change is left, as after a full disk: SQLite ends the transaction itself, and a
        savepoint outside of one would be a transaction of its own, committed without the others and without the witness.
        """
        self.cursor.execute("SAVEPOINT one")
        try:
            yield
        except BaseException as error:
            try:
                self.cursor.execute("ROLLBACK TO SAVEPOINT one")
                self.cursor.execute("RELEASE SAVEPOINT one")
            except Exception:  # noqa: BLE001 -- whatever the driver calls it: there is no savepoint any more
                if isinstance(error, Exception):
                    raise ChangeUndone(error) from error
                raise error from None
            raise
        self.cursor.execute("RELEASE SAVEPOINT one")

    def head(self) -> Entry:
        """Return the last entry."""
        row = self._one("head")
        return refuse_entry(0, "must be there") if row is None else recent_entry(ChainRow(*row))

    def at(self, sequence: int) -> Entry | None:
        """Return one entry."""
        row = self.row(sequence)
        return None if row is None else recent_entry(row)

    def row(self, sequence: int) -> ChainRow | None:
        """Return one row, as it is stored."""
        row = self._one("at", place=sequence)
        return None if row is None else ChainRow(*row)

    def named(self, id_: str) -> Entry | None:
        """Return the entry of an id."""
        row = self._one("named", own=id_)
        return None if row is None else entry_of(ChainRow(*row))

    def tip(self) -> tuple[int, str]:
        """Return the sequence and hash of the last entry, as they are stored."""
        row = self._one("tip")
        return refuse_entry(0, "must be there") if row is None else (row[0], row[1])

    def rows(self, start: int) -> list[ChainRow]:
        """Return a page of rows in order, as they are stored."""
        return [ChainRow(*row) for row in self._all("onward", place=start)]

    def all_rows(self, start: int = 0) -> Iterator[ChainRow]:
        """Yield every row in order, from a sequence on."""
        place = start
        while found := self.rows(place):
            yield from found
            place = found[-1].sequence + 1

    def entries(self, start: int) -> list[Entry]:
        """Return a page of entries in order."""
        return [entry_of(row) for row in self.rows(start)]

    def entries_of(self, start: int, analyst: str | None) -> list[Entry]:
        """Return a page of entries of one analyst, or of the owner."""
        found = (
            self._run("onward_owner", place=start) if analyst is None else self._run("onward_of", place=start, who=analyst)
        )
        return [entry_of(ChainRow(*row)) for row in found.fetchall()]

    def of_kind(self, kind: EntryKind, *, after: int = -1) -> Iterator[Entry]:
        """Yield the entries of a kind after a sequence, the newest first, one at a time."""
        end = _BEYOND
        while (row := self._one("of_kind", what=kind.value, place=after, end=end)) is not None:
            end = row[0]
            yield entry_of(ChainRow(*row))

    def standing(self, question_key: str, data_version: int, *, end: int = _BEYOND) -> Entry | None:
        """Return the last reservation of a question that is open or committed; None where all failed or were given back.

        end   only those before this sequence
        """
        row = self._one("standing", key=question_key, version=data_version, end=end)
        return None if row is None else entry_of(ChainRow(*row))

    def settled(self, reservation: str) -> str | None:
        """Return how a reservation ended; None while it is open."""
        row = self._one("settled", reservation=reservation)
        return None if row is None else str(row[0])

    def end(self, reservation: str) -> Entry | None:
        """Return the entry that settled a reservation; None while it is open."""
        row = self._one("end", reservation=reservation)
        return None if row is None else entry_of(ChainRow(*row))

    def stored(self, question_key: str, data_version: int) -> tuple[int, bytes] | None:
        """Return the last answer to a question: the sequence of its commit, and its bytes."""
        row = self._one("stored", key=question_key, version=data_version)
        if row is None:
            return None
        return (row[0], row[1]) if type(row[1]) is bytes else refuse_entry(row[0], "must have an answer of bytes")

    def answers(self, after: int = -1) -> Iterator[tuple[int, str, int, bytes]]:
        """Yield every stored answer after a sequence, with the columns by which it is found, one at a time."""
        place = after
        while (row := self._one("answers", place=place)) is not None:
            place, key, version, content = row
            yield (
                place,
                key,
                version,
                content if type(content) is bytes else refuse_entry(place, "must have an answer of bytes"),
            )

    def total(self, holder: str) -> Amounts:
        """Return what a holder has spent."""
        row = self._one("total", who=holder)
        return NOTHING if row is None else _read_amounts(row)

    def totals(self) -> dict[str, Amounts]:
        """Return what every holder has spent."""
        return {str(row[0]): _read_amounts(row[1:]) for row in self._all("totals")}

    def put_total(self, holder: str, spent: Amounts, limit: Amounts) -> None:
        """Set a running sum and the limit that it keeps."""
        values = dict(zip(_COUNTED, (*spent.digits(), *limit.digits()), strict=True))
        if self._run("set_total", who=holder, **values).rowcount == 0:
            self._run("add_total", holder=holder, **values)

    def give_back(self, holder: str, spent: Amounts) -> None:
        """Lower a running sum."""
        self._run("give_back", who=holder, **dict(zip(_AMOUNTS, spent.digits(), strict=True)))

    def append(self, row: ChainRow) -> None:
        """Add an entry."""
        self._run("add_entry", **dict(zip(_NAMES, row, strict=True)))

    def keep(self, entry: Entry, content: bytes) -> None:
        """Add the answer of a committed entry."""
        found_by = {"question_key": entry.question_key, "data_version": entry.data_version}
        self._run("add_answer", sequence=entry.sequence, content=content, **found_by)

    def line(self, released: str, holder: str, day: str) -> str | None:
        """Return the id of the entry that says an answer was given to somebody again on a day."""
        row = self._one("line", own=released, who=holder, date=day)
        return None if row is None else str(row[0])

    def add_line(self, line: str, released: str, holder: str, day: str, number: int) -> None:
        """Begin to count how often an answer was given to somebody again on a day."""
        self._run("add_line", line=line, released=released, holder=holder, day=day, number=number)

    def count_line(self, line: str, more: int) -> None:
        """Count further times."""
        self._run("count_line", own=line, more=more)

    def given(self) -> dict[str, int]:
        """Return how often answers were given again, where that was more than once, by the ids of the lines that say so."""
        return {str(line): int(number) for line, number in self._all("given")}

    def prepared(self, study: str, data_version: int) -> str | None:
        """Return the digest of the prepared copy of a data version; None where nobody prepared one."""
        row = self._one("prepared", whose=study, version=data_version)
        return None if row is None else str(row[0])

    def add_prepared(self, study: str, data_version: int, digest: str) -> None:
        """Say what the prepared copy of a data version is; it is said once."""
        self._run("add_prepared", study=study, data_version=data_version, digest=digest)


def _read_amounts(digits: Sequence[Any]) -> Amounts:
    try:
        return Amounts.from_digits(*digits)
    except (TypeError, ValueError):
        raise InvalidStudy(
            "the running totals of the ledger must be whole ticks; they are not.", hint=f"{DAMAGED}."
        ) from None

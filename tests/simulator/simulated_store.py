"""A database in memory that keeps the rules of the ledger's tables, with a log that lasts only once it is synced.

Layers of rows: what is committed, a transaction over it, a savepoint over that. A commit is written, then synced, then seen
by others, then said to be done; the seed may kill, cut or stall at each step.
"""

import contextlib

from curador.errors import Failed, InvalidStudy, LedgerBusy
from curador.ledger import chain
from curador.ledger.amounts import DIGITS, NOTHING, Amounts
from curador.ledger.entry import refuse_entry
from curador.ledger.migration import SCHEMAS


class RuleError(Exception):
    """A constraint of the tables."""


class Layer:
    """Rows over those of another layer; `rows` are only ever added."""

    __slots__ = ("again", "answers", "below", "first", "lines", "named", "prepared", "rows", "settles", "totals")

    def __init__(self, below=None):
        self.below = below
        self.first = 0 if below is None else below.first + len(below.rows)
        self.rows, self.named, self.settles, self.answers = [], {}, {}, {}
        self.totals, self.lines, self.again, self.prepared = {}, {}, {}, {}

    def copy(self):
        """The same rows, for a backup."""
        made = Layer()
        made.merge(self)
        return made

    def find(self, table, key):
        """The newest value of a key."""
        layer = self
        while layer is not None:
            found = getattr(layer, table).get(key)
            if found is not None:
                return found
            layer = layer.below
        return None

    def newest(self):
        """Yield rows, the newest first."""
        layer = self
        while layer is not None:
            yield from reversed(layer.rows)
            layer = layer.below

    def merge(self, other):
        """Take over what stands in the layer above."""
        self.rows.extend(other.rows)
        for name in ("named", "settles", "answers", "totals", "lines", "again", "prepared"):
            getattr(self, name).update(getattr(other, name))


class SimulatedPage:
    """What `curador.ledger.store.Page` is over a cursor."""

    def __init__(self, layer, rules):
        self.layer, self.rules = layer, rules

    @contextlib.contextmanager
    def savepoint(self):
        """A part that may fail by itself."""
        below = self.layer
        self.layer = Layer(below)
        try:
            yield
        except BaseException:
            self.layer = below
            raise
        below.merge(self.layer)
        self.layer = below

    # ---- entries --------------------------------------------------------------------------------------------------------

    def row(self, sequence):
        """One row."""
        layer = self.layer
        while layer is not None:
            if sequence >= layer.first:
                place = sequence - layer.first
                return layer.rows[place] if place < len(layer.rows) else None
            layer = layer.below
        return None

    def at(self, sequence):
        """One entry."""
        row = self.row(sequence)
        return None if row is None else chain.entry_of(row)

    def _last(self):
        return next(self.layer.newest(), None) or refuse_entry(0, "must be there")

    def head(self):
        """The last entry."""
        return chain.entry_of(self._last())

    def tip(self):
        """Its sequence and hash."""
        row = self._last()
        return row.sequence, row.hash

    def named(self, id_):
        """The entry of an id."""
        row = self.layer.find("named", id_)
        return None if row is None else chain.entry_of(row)

    def all_rows(self, start=0):
        """Every row in order."""
        return iter([*self.layer.newest()][::-1][start:])

    def standing(self, question_key, data_version, *, end=10**9):
        """The last reservation of a question that is open or committed."""
        for row in self.layer.newest():
            if row.sequence < end and (row.kind, row.question_key, row.data_version) == (
                "reserved",
                question_key,
                data_version,
            ):
                ended = self.layer.find("settles", row.id)
                if ended is None or ended.kind == "committed":
                    return chain.entry_of(row)
        return None

    def settled(self, reservation):
        """How a reservation ended."""
        end = self.layer.find("settles", reservation)
        return None if end is None else end.kind

    def end(self, reservation):
        """The entry that settled a reservation."""
        row = self.layer.find("settles", reservation)
        return None if row is None else chain.entry_of(row)

    def of_kind(self, kind, *, after=-1):
        """The entries of a kind, the newest first."""
        return (chain.entry_of(one) for one in self.layer.newest() if one.kind == kind.value and one.sequence > after)

    def append(self, row):
        """Add an entry."""
        layer = self.layer
        if self.rules.unique:
            taken = layer.find("named", row.id), row.settles is not None and layer.find("settles", row.settles)
            if taken[0] or taken[1] or row.sequence != layer.first + len(layer.rows):
                raise RuleError("UNIQUE")
        layer.rows.append(row)
        layer.named[row.id] = row
        if row.settles is not None:
            layer.settles[row.settles] = row

    # ---- answers, sums, counts -------------------------------------------------------------------------------------------

    def stored(self, question_key, data_version):
        """The last answer to a question."""
        return self.layer.find("answers", (question_key, data_version))

    def answers(self, after=-1):
        """Every answer in order."""
        found, layer = {}, self.layer
        while layer is not None:
            for name, held in layer.answers.items():
                if len(name) == 1:
                    found[name[0]] = held
            layer = layer.below
        return (found[place] for place in sorted(found) if place > after)

    def keep(self, entry, content):
        """Add an answer."""
        key, version = entry.question_key, entry.data_version
        self.layer.answers[key, version] = entry.sequence, content
        self.layer.answers[entry.sequence,] = entry.sequence, key, version, content

    def total(self, holder):
        """What a holder has spent."""
        found = self.layer.find("totals", holder)
        return NOTHING if found is None else Amounts.from_digits(*found[0])

    def totals(self):
        """What every holder has spent."""
        found, layer = {}, self.layer
        while layer is not None:
            found = {**layer.totals, **found}
            layer = layer.below
        return {holder: Amounts.from_digits(*spent) for holder, (spent, _) in found.items()}

    def put_total(self, holder, spent, limit):
        """Set a sum and the limit that it keeps."""
        self._put(holder, spent.digits(), limit.digits())

    def give_back(self, holder, spent):
        """Lower a sum."""
        found = self.layer.find("totals", holder)
        if found is not None:
            self._put(holder, spent.digits(), found[1])

    def _put(self, holder, spent, limit):
        if self.rules.check and not all(
            len(one) == len(most) == DIGITS and one <= most for one, most in zip(spent, limit, strict=True)
        ):
            raise RuleError("CHECK")
        self.layer.totals[holder] = spent, limit

    def line(self, released, holder, day):
        """The id of a line of answers given again."""
        return self.layer.find("lines", (released, holder, day))

    def add_line(self, line, released, holder, day, number):
        """Begin one."""
        self.layer.lines[released, holder, day] = line
        self.layer.again[line] = number

    def count_line(self, line, more):
        """Count further."""
        self.layer.again[line] = self.layer.find("again", line) + more

    def given(self):
        """How often, where it was more than once."""
        return {line: number for line, number in self.layer.again.items() if number > 1}

    def prepared(self, study, data_version):
        """The digest of a prepared copy."""
        return self.layer.find("prepared", (study, data_version))

    def add_prepared(self, study, data_version, digest):
        """Say it."""
        self.layer.prepared[study, data_version] = digest


class Rules:
    """What a store must keep; seeded bugs take some of them away.

    lock      one writer at a time
    sync      a commit is synced before it is seen and said
    unique    ids, settlements and places are unique
    check     no sum passes its limit
    isolated  nobody sees what is not committed
    found     what a killed writer left in the log is synced before anybody sees it
    """

    lock = sync = unique = check = isolated = found = True


class Database:
    """The rows, the log, and the lock that one transaction holds.

    lasting   what is on disk, where that is less than what is seen; None where it is the same
    backups   some states of before
    """

    def __init__(self, scheduler, random, rules, watch):
        self.scheduler, self.random, self.rules, self.watch = scheduler, random, rules, watch
        self.seen, self.lasting, self.running = Layer(), None, []
        self.full, self.backups = False, []

    def sync(self):
        """What is seen lasts."""
        if self.lasting is not None:
            self.lasting = None
        self.watch(self.seen)

    def apply(self, change):
        """Let a transaction be seen, and last if it was synced."""
        if not self.rules.sync and self.lasting is None:
            self.lasting = self.seen.copy()
        if self.random.random() < 0.2:
            self.backups.append(self.seen.copy())
        self.seen.merge(change.layer)
        self.end(change)
        if self.rules.sync:
            self.sync()

    def end(self, change):
        """Let go of the lock."""
        change.state = "ended"
        if change in self.running:
            self.running.remove(change)

    def drop_process(self, process, *, server, last):
        """End what a process had begun: what was written and not synced is lost, or the server finishes it.

        last   whether nobody else has the file open: whoever opens it next finds in the log what was not synced
        """
        for change in [one for one in self.running if one.process is process]:
            if change.state == "written" and server and self.random.random() < 0.5:
                self.apply(change)
            elif change.state == "written" and last and not server:
                self.lasting = self.seen.copy() if self.lasting is None else self.lasting
                self.seen.merge(change.layer)
                self.end(change)
            else:
                self.end(change)

    def found(self):
        """Somebody opens the file."""
        if self.rules.found and self.rules.sync and self.lasting is not None:
            self.scheduler.pause("log found")
            self.sync()
            self.scheduler.pause("log synced")

    def lose_power(self):
        """What was not synced is lost or kept, whole transactions only and none after one that is lost."""
        for change in list(self.running):
            if change.state == "written" and self.lasting is None and self.random.random() < 0.5:
                self.apply(change)
                self.sync()
            else:
                self.end(change)
        if self.lasting is not None:
            lost = not self.rules.sync or self.random.random() < 0.7
            self.seen, self.lasting = self.lasting if lost else self.seen, None
        self.watch(self.seen)


class Change:
    """A transaction."""

    __slots__ = ("layer", "process", "state")

    def __init__(self, process, seen):
        self.process, self.layer, self.state = process, Layer(seen), "open"


class SimulatedStore:
    """The store of one process: `curador.ledger.store.Store`."""

    name, file, mirroring = "simulated", None, None

    def __init__(self, world, process):
        self.world, self.process = world, process
        world.database.found()

    def _reach(self, label):
        self.world.scheduler.pause(label)
        if self.process.cut:
            raise Failed("the ledger could not be reached; nothing was released.")

    @contextlib.contextmanager
    def reading(self):
        """One moment."""
        self._reach("read")
        database = self.world.database
        layer = database.seen
        if not database.rules.isolated and database.running:
            layer = database.running[0].layer
        yield SimulatedPage(layer, database.rules)

    @contextlib.contextmanager
    def writing(self, *, charged=None, patience=None):
        """One change."""
        self._reach("begin")
        database, rules = self.world.database, self.world.database.rules
        free = lambda: not rules.lock or not database.running  # noqa: E731
        if not self.world.scheduler.wait("lock?", free, 5.0 if patience is None else patience):
            if charged is not None:
                raise Failed(f"the ledger was busy for too long; {charged}.")
            raise LedgerBusy("the ledger must be free; another writer held it too long, nothing was spent.")
        change = Change(self.process, database.seen)
        database.running.append(change)
        page = SimulatedPage(change.layer, rules)
        try:
            yield page
            self._commit(database, change)
        except BaseException:
            if change.process is self.process and self.process.alive and change.state != "ended":
                database.end(change)
            raise

    def _commit(self, database, change):
        unknown = Failed("the ledger could not be written; nothing was released.")
        self._reach("commit")
        if database.full or change.state == "ended":
            raise unknown
        if not (change.layer.rows or change.layer.again or change.layer.prepared):
            database.end(change)
            return
        change.state = "written"
        self.world.scheduler.pause("commit written")
        if change.state == "ended":  # the server restarted meanwhile
            raise unknown
        if self.process.cut:  # the server goes on alone, when it comes to it
            self.world.leave_to_server(change)
            raise unknown
        database.apply(change)
        self.world.scheduler.pause("commit synced")
        if self.process.cut:
            raise unknown

    def explain(self, error):
        """The sentence for what the tables refused."""
        return InvalidStudy("the ledger must be whole; it is not.") if isinstance(error, RuleError) else None

    def tip(self):
        """The last entry."""
        with self.reading() as page:
            return page.tip()

    def integrity(self):
        """Pages are not simulated."""

    def schema(self):
        """The newest tables."""
        return SCHEMAS[-1]

    def admit_all_kinds(self):
        """Nothing to do for the newest tables."""

    def close(self):
        """No connections."""

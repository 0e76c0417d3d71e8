# ruff: noqa: PT012 -- what fails is the end of a change, and a change has a middle
"""A real server that is killed, stopped, restarted, cut off, promoted or hidden: nobody is told what is not known."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import replace
from fractions import Fraction

import psycopg
import pytest
from fake_pooler import FakePooler
from ledger_workers import race
from ledgers import ask, request
from postgres_ledgers import CheckThenInsertOnPostgres, OnPostgres, create, reopen
from real_postgres import make_schema, private_server, until

from curador.errors import BudgetExceeded, Failed, InvalidStudy, LedgerBusy
from curador.ledger import postgres as store_on_postgres
from curador.ledger.entry import EntryKind, next_entry, row_of, seal
from curador.ledger.postgres import OutcomeUnknown, PostgresStore

pytestmark = pytest.mark.slow
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def impatient(monkeypatch):
    """Servers are given up after half a second."""
    monkeypatch.setattr(store_on_postgres, "ANSWERING", 0.5)
    monkeypatch.setattr(store_on_postgres, "PATIENCE", 0.5)


@pytest.fixture
def begun(place, tmp_path):
    """A new ledger on the shared server."""
    create(place.url, tmp_path).close()
    return place


@contextlib.contextmanager
def opened(url):
    store = PostgresStore(url)
    try:
        yield store
    finally:
        store.close()


def write_one(page):
    entry, text = seal(next_entry(page.head(), EntryKind.REOPENED))
    page.append(row_of(entry, text))
    return entry


def backend_of(page):
    page.cursor.execute("SELECT pg_backend_pid()")
    return page.cursor.fetchone()[0]


def is_there(url, entry):
    with opened(url) as store, store.reading() as page:
        return page.named(entry.id) is not None


# ---- lost connections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("charged", "told"), [(None, "nothing was spent"), ("the charge is kept and nothing was released", "the charge is kept")]
)
def test_a_killed_backend_leaves_nothing(begun, charged, told):
    """Killed in the middle of a change: it is undone, that is known, and the next one has a connection of its own."""
    with opened(begun.url) as store:
        with pytest.raises(Failed, match=told) as failed, store.writing(charged=charged) as page:
            lost = write_one(page)
            with begun.connect("postgres") as root:
                root.execute("SELECT pg_terminate_backend(%s)", [backend_of(page)])
            page.tip()
        assert not isinstance(failed.value, OutcomeUnknown)
        assert not is_there(begun.url, lost)
        with store.writing() as page:
            kept = write_one(page)
        assert is_there(begun.url, kept)


def test_a_server_that_is_restarted_in_the_middle(own_server):
    """Immediately, as by a power cut: the open change is gone, what was committed is there, and the store goes on."""
    make_schema(own_server, "curador")
    url = own_server.url("writer")
    with opened(url) as store:
        with store.writing() as page:
            page.cursor.execute("SELECT 1")
        first = make_first(store)
        with pytest.raises(Failed, match="nothing was spent"), store.writing() as page:
            lost = write_one(page)
            own_server.restart("immediate")
            page.tip()
        assert is_there(url, first)
        assert not is_there(url, lost)
        with store.writing() as page:
            assert is_there(url, first)
            kept = write_one(page)
        own_server.restart("immediate")
        assert store.tip() == (kept.sequence, kept.hash)
        own_server.stop("fast")
        with pytest.raises(Failed, match="could not be reached, and nothing was spent"), store.writing():
            pytest.fail("there is no server")
        with pytest.raises(Failed, match="could not be reached"):
            PostgresStore(url)
        own_server.start()
        assert store.tip() == (kept.sequence, kept.hash)


def make_first(store):
    from curador.testing.ledger_store import _first

    entry, text = seal(_first())
    with store.writing() as page:
        page.append(row_of(entry, text))
    return entry


def test_a_stopped_server_is_given_up(begun, impatient):
    """SIGSTOP in the middle of a change: an answer in time, and the truth about the change, before and after it goes on."""
    with opened(begun.url) as store:
        began = time.monotonic()
        with pytest.raises(Failed, match="did not answer in time; nothing was spent"), store.writing() as page:
            lost, backend = write_one(page), backend_of(page)
            os.kill(backend, signal.SIGSTOP)
            try:
                page.tip()
            finally:
                took = time.monotonic() - began
                os.kill(backend, signal.SIGCONT)
        assert took < 5
        until(lambda: not_running(begun, backend))
        assert not is_there(begun.url, lost)


def not_running(place, backend):
    with place.connect("postgres") as root:
        return root.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [backend]).fetchone() == (0,)


def test_a_commit_that_a_stopped_server_did_later_is_not_denied(begun, impatient):
    """It was handed over and is done when the server goes on. Who looks before that, as the next writer, has to wait."""
    with opened(begun.url) as store, opened(begun.url) as other:
        with pytest.raises(OutcomeUnknown, match="the outcome is not known") as unknown, store.writing() as page:
            entry, backend = write_one(page), backend_of(page)
            os.kill(backend, signal.SIGSTOP)
        assert "nothing was spent" not in str(unknown.value)
        try:
            with other.reading() as page:
                assert page.named(entry.id) is None  # a look proves nothing yet
            with pytest.raises(LedgerBusy), other.writing(patience=0.1):
                pytest.fail("the lost change still holds its lock")
        finally:
            os.kill(backend, signal.SIGCONT)
        with other.writing(patience=10.0) as page:
            assert page.named(entry.id) is not None


@pytest.mark.parametrize(("lost", "there"), [("before", False), ("after", True)])
def test_a_connection_that_is_lost_with_the_commit(begun, lost, there):
    """Whether COMMIT reached the server or not, the asker is told that nobody knows, and finds out by the id."""
    pooler = FakePooler(begun.server, lose=lambda asked: lost if asked.endswith(b"COMMIT\0") else None)
    try:
        store = PostgresStore(pooler.url(schema=begun.schema))
        with pytest.raises(OutcomeUnknown) as unknown, store.writing(charged="the charge is kept") as page:
            entry = write_one(page)
        store.close()
        assert "the charge is kept" in str(unknown.value)
        with opened(begun.url) as store, store.writing() as page:
            assert (page.named(entry.id) is not None) is there
    finally:
        pooler.close()


def test_a_commit_of_what_had_failed_is_none(begun):
    """The server answers ROLLBACK to the COMMIT of a failed transaction, and calls it no error: it is one here."""
    with opened(begun.url) as store:
        with pytest.raises(Failed, match="could not be written; nothing was spent"), store.writing() as page:
            entry = write_one(page)
            with contextlib.suppress(psycopg.Error):
                page.cursor.execute("SELECT 1 / 0")
        assert not is_there(begun.url, entry)


def test_a_connection_that_was_lost_before_the_commit_is_known(begun):
    """Somebody swallowed what the driver said: nothing was handed over, so nothing was written."""
    with opened(begun.url) as store:
        with pytest.raises(Failed, match="was lost; nothing was spent") as failed, store.writing() as page:
            entry = write_one(page)
            with begun.connect("postgres") as root:
                root.execute("SELECT pg_terminate_backend(%s)", [backend_of(page)])
            with pytest.raises(psycopg.Error) as lost:
                page.tip()
        assert not isinstance(failed.value, OutcomeUnknown)
        assert "nothing was spent" in str(store.explain(lost.value))
        assert store.explain(ValueError()) is None
        assert not is_there(begun.url, entry)


def test_an_error_at_the_commit_is_known(begun):
    """A rule that is checked at the end of a transaction: the server says that it rolled back."""
    with begun.connect("postgres") as root:
        root.execute(
            "CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE EXCEPTION 'never' USING ERRCODE = '23514'; END $$;"
            " CREATE CONSTRAINT TRIGGER never AFTER INSERT ON entry DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION never()"
        )
    with opened(begun.url) as store:
        with pytest.raises(InvalidStudy, match="a whole ledger"), store.writing() as page:
            entry = write_one(page)
        assert not is_there(begun.url, entry)


def test_a_stopped_holder_is_sent_away(begun, monkeypatch):
    """A curator that stands still in the middle of a change loses it; the others go on, and it is told the truth."""
    monkeypatch.setattr(store_on_postgres, "_SETTINGS", store_on_postgres._SETTINGS.replace("'60s'", "'200ms'"))  # noqa: SLF001
    with opened(begun.url) as store, opened(begun.url) as other:
        with pytest.raises(Failed, match="nothing was spent") as failed, store.writing() as page:
            lost = write_one(page)
            time.sleep(0.6)
            with other.writing() as another:
                kept = write_one(another)
        assert not isinstance(failed.value, OutcomeUnknown)
        assert is_there(begun.url, kept)
        assert not is_there(begun.url, lost)


def test_threads_of_one_process_queue(begun):
    """Who waits too long for a thread of its own process is told that nothing was spent."""
    with opened(begun.url) as store, store.writing():
        told = []

        def write():
            try:
                with store.writing(patience=0.05):
                    told.append("let in")
            except LedgerBusy as busy:
                told.append(str(busy))

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        assert "nothing was spent" in told[0]


def test_who_waited_with_a_charge_is_told_that_it_stands(begun):
    """A settlement that does not get its turn."""
    with (
        opened(begun.url) as store,
        opened(begun.url) as other,
        store.writing(),
        pytest.raises(Failed, match="busy for too long; the charge is kept"),
        other.writing(charged="the charge is kept", patience=0.05),
    ):
        pytest.fail("two writers")


def test_a_forked_child_has_connections_of_its_own(begun):
    """And ends none of its parent's."""
    with opened(begun.url) as store:
        with store.reading() as page:
            mine = backend_of(page)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with store.writing() as page:
                    os.write(writer, f"{backend_of(page)}\n{write_one(page).id}".encode())
                store.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        theirs, id_ = os.read(reader, 200).decode().split()
        os.close(reader)
        os.close(writer)
        with store.reading() as page:
            assert backend_of(page) == mine != int(theirs)
            assert page.named(id_) is not None


def test_connections_of_a_parent_are_kept_and_not_used(begun):
    """What a child does, in this process: it finds another number of its own."""
    with opened(begun.url) as store:
        mine = store._idle[-1]  # noqa: SLF001 -- the parent's
        store._pid = -1  # noqa: SLF001 -- as after a fork
        with store.reading() as page:
            assert backend_of(page) != mine.backend
        assert not mine.connection.closed
        mine.connection.close()


# ---- servers that would forget ---------------------------------------------------------------------------------------------


def test_a_server_that_forgets_is_refused(own_server):
    """When it is opened, and when it is told so while the ledger is open."""
    make_schema(own_server, "curador")
    with opened(own_server.url("writer")) as store:
        for name in ("fsync", "full_page_writes"):
            with store.reading():
                pass
            own_server.configure(**{name: "off"})
            own_server.reload()
            told = f"{name} of the ledger's server must be on; got 'off'"
            with pytest.raises(InvalidStudy, match=told):
                until(lambda: store.reading().__enter__() is None)
            with pytest.raises(InvalidStudy, match=told):
                PostgresStore(own_server.url("writer"))
            own_server.configure(**{name: "on"})
            own_server.restart("fast")


def test_a_session_is_told_to_commit_durably(begun):
    """Whatever the role's default is; and a session that was told otherwise afterwards is refused."""
    with begun.connect("postgres") as root:
        root.execute("ALTER ROLE writer SET synchronous_commit = off")
    try:
        with opened(begun.url) as store:
            with store.reading() as page:
                page.cursor.execute("SHOW synchronous_commit")
                assert page.cursor.fetchone() == ("on",)
            store._idle[-1].cursor.execute("SET synchronous_commit = off")  # noqa: SLF001 -- what no user can reach
            with pytest.raises(InvalidStudy, match="synchronous_commit of the ledger's server must be on or remote_apply"):
                store.tip()
            with begun.connect("postgres") as root:
                root.execute("ALTER ROLE writer SET synchronous_commit = remote_apply")
            with opened(begun.url) as stronger, stronger.reading() as page:
                page.cursor.execute("SHOW synchronous_commit")
                assert page.cursor.fetchone() == ("remote_apply",)
    finally:
        with begun.connect("postgres") as root:
            root.execute("ALTER ROLE writer RESET synchronous_commit")


def test_an_old_server_is_refused(begun, monkeypatch):
    """By its number."""
    monkeypatch.setattr(store_on_postgres, "OLDEST", 99)
    with pytest.raises(InvalidStudy, match="PostgreSQL 99 or later"):
        PostgresStore(begun.url)


@pytest.mark.parametrize("schema", ["nowhere", "information_schema"])
def test_a_schema_without_a_ledger_is_refused(postgres, schema):
    """With the way to make one."""
    with pytest.raises(InvalidStudy, match="postgres_schema SCHEMA WRITER"):
        PostgresStore(postgres.url("writer", schema=schema))


# ---- poolers ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("backends", "own_key"), [(2, False), (2, True), (1, True)])
def test_a_pooler_is_refused(begun, backends, own_key):
    """One that moves transactions to other backends, and one that only hides which backend it is."""
    pooler = FakePooler(begun.server, backends=backends, own_key=own_key)
    try:
        with pytest.raises(InvalidStudy, match="one session of one backend"):
            PostgresStore(pooler.url(schema=begun.schema))
    finally:
        pooler.close()


def test_something_that_only_passes_bytes_on_is_let_through(begun):
    """The fake itself works: with one backend and its true name nothing is hidden."""
    pooler = FakePooler(begun.server)
    try:
        with opened(pooler.url(schema=begun.schema)) as store:
            with store.writing() as page:
                entry = write_one(page)
            assert store.tip()[0] == entry.sequence
    finally:
        pooler.close()


def test_a_pooler_that_comes_later_is_refused_too(begun):
    """Settings that another user of the backend threw away: seen by the next transaction."""
    with opened(begun.url) as store:
        store._idle[-1].cursor.execute("DISCARD ALL")  # noqa: SLF001 -- as a pooler does between clients
        with pytest.raises(InvalidStudy, match="one session of one backend"), store.writing():
            pytest.fail("let in")


# ---- standbys --------------------------------------------------------------------------------------------------------------


def test_promoting_a_lagging_standby_is_caught(installation, own_server, tmp_path):
    """Two servers: the standby misses the last charges, is promoted, and is refused by the witness."""
    make_schema(own_server, "curador")
    url = own_server.url("writer")
    with create(url, tmp_path) as ledger:
        ask(ledger, request(epsilon="0.1"))
        seen = ledger.head.sequence

        def copy(other):
            other.run(
                *("pg_basebackup", "-h", own_server.home, "-U", "postgres", "-D", other.data),
                *("-R", "-X", "stream", "-c", "fast"),
            )

        with private_server(installation, copy_of=copy) as standby:
            at = f"SELECT count(*) FROM curador.entry WHERE sequence = {seen + 1}"
            ask(ledger, request(epsilon="0.1"))
            with psycopg.connect(standby.url(), autocommit=True) as root:
                until(lambda: root.execute(at).fetchone() == (1,))  # it streams
            with pytest.raises(InvalidStudy, match="the primary; got 'a standby'"):
                PostgresStore(standby.url("writer"))

            standby.stop("fast")
            ask(ledger, request(epsilon="0.5"))
            spent, head = ledger.spent(), ledger.head
            own_server.stop("fast")
            standby.start()
            standby.run("pg_ctl", "-D", standby.data, "-w", "promote")

            with pytest.raises(InvalidStudy, match="behind its witness by 2 entries"):
                reopen(standby.url("writer"), tmp_path)
            assert blind_room(standby) > Fraction(1, 2)  # who asks no witness would sell the half again

            own_server.start()
            assert (ledger.spent(), ledger.head) == (spent, head)


def blind_room(server):
    with opened(server.url("writer")) as store, store.reading() as page:
        return 1 - page.total("study").epsilon


def test_an_open_ledger_does_not_follow_a_promotion(installation, own_server, tmp_path):
    """The address leads to a server on another line of history: the study has to be opened again."""
    make_schema(own_server, "curador")
    url = own_server.url("writer")
    with create(url, tmp_path) as ledger:
        ask(ledger, request(epsilon="0.1"))
        own_server.stop("fast")
        (own_server.data / "standby.signal").touch()
        if os.geteuid() == 0:
            os.chown(own_server.data / "standby.signal", own_server.home.stat().st_uid, own_server.home.stat().st_gid)
        own_server.start()
        with pytest.raises(InvalidStudy, match="the primary; got 'a standby'"):
            ledger.reserve(request(epsilon="0.1"))
        own_server.run("pg_ctl", "-D", own_server.data, "-w", "promote")
        with pytest.raises(InvalidStudy, match="the one that was opened"):
            ledger.reserve(request(epsilon="0.1"))
    with reopen(url, tmp_path) as ledger:
        assert ledger.spent().epsilon == Fraction(1, 10)
        ask(ledger, request(epsilon="0.1"))


def test_a_server_whose_disk_is_set_back_takes_no_charge(own_server, tmp_path, monkeypatch):
    """The same server on the same line of history: the witness knows what a process that was idle does not."""
    make_schema(own_server, "curador")
    url, copy = own_server.url("writer"), own_server.home / "copy"
    with create(url, tmp_path) as busy, reopen(url, tmp_path) as idle:
        ask(busy, request(epsilon="0.1"))
        own_server.stop("fast")
        subprocess.run(["cp", "-a", own_server.data, copy], check=True)
        own_server.start()
        for _ in range(2):
            ask(busy, request(epsilon="0.4"))
        own_server.stop("fast")
        shutil.rmtree(own_server.data)
        copy.rename(own_server.data)
        own_server.start()

        with pytest.raises(InvalidStudy, match="at entry 6 or later"):
            busy.reserve(request(epsilon="0.1"))
        with pytest.raises(InvalidStudy, match="the same as its witness up to entry 6"):
            idle.reserve(request(epsilon="0.8"))
        assert idle.head.sequence == 2
        monkeypatch.setattr(idle._own_writer, "_look", lambda: None)  # noqa: SLF001 -- the seeded bug
        assert idle.reserve(request(epsilon="0.8")).after.epsilon == Fraction(9, 10)


# ---- many at once ----------------------------------------------------------------------------------------------------------


def raced(kind, place, limit, poll, processes=4, analysts=8, attempts=6):
    names = [f"analyst{number}" for number in range(analysts)]
    barrier, accepted = SPAWN.Barrier(analysts), SPAWN.Queue()
    shares = [names[number::processes] for number in range(processes)]
    workers = [SPAWN.Process(target=race, args=(kind, place, limit, share, attempts, barrier, accepted)) for share in shares]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        poll()
        time.sleep(0.01)
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * processes
    return sum(accepted.get(timeout=5) for _ in workers)


@pytest.mark.parametrize(("analysts", "attempts", "room"), [(8, 6, 20), pytest.param(64, 200, 500, marks=pytest.mark.long)])
def test_exactly_the_budget_is_admitted(analysts, attempts, room, place, tmp_path, record_property):
    """In 4 processes, room for exactly so many: they are admitted, and the sum never passes the limit."""
    limit, seen = Fraction(room), []
    with create(place.url, tmp_path) as ledger:
        part = ledger.limits.share(1 / limit)

        def poll():
            spent = ledger.spent()
            assert spent.within(ledger.limits.total)
            seen.append(spent.epsilon)

        accepted = raced(OnPostgres, (place.url, tmp_path), limit, poll, analysts=analysts, attempts=attempts)
        record_property("requests", analysts * attempts)
        record_property("accepted", accepted)
        record_property("polls", len(seen))
        assert accepted == limit
        assert seen == sorted(seen)
        assert len(set(seen)) > 3
        assert ledger.spent().epsilon == limit * part.epsilon
        with pytest.raises(BudgetExceeded):
            ledger.reserve(request(epsilon=part.epsilon, analyst="last"))
    with reopen(place.url, tmp_path) as ledger:
        ledger.verify()
        assert sum(one.kind == "committed" for one in ledger.entries()) == limit


def test_looking_first_and_writing_then_is_caught(place):
    """The seeded bug: without a lock over both, a race admits more than there is."""
    with place.connect() as owner:
        owner.execute("CREATE TABLE spend (id SERIAL); GRANT ALL ON spend, spend_id_seq TO writer")
    admitted, barrier = [], threading.Barrier(8)

    def spend():
        wrong = CheckThenInsertOnPostgres(place, 20)
        barrier.wait()
        for _ in range(6):
            with contextlib.suppress(BudgetExceeded):
                wrong.spend()
                admitted.append(1)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) > 20


def test_without_a_turn_the_servers_own_lock_holds(begun, monkeypatch):
    """Writers that take no turn: each entry still waits for the one before it, or is refused; none is written twice."""
    monkeypatch.setattr(store_on_postgres, "_TURN", "SELECT %(lock)s")
    made, refused = [], []

    def write():
        with opened(begun.url) as store:
            for _ in range(15):
                try:
                    with store.writing() as page:
                        entry = write_one(page)
                except (InvalidStudy, LedgerBusy):
                    refused.append(1)
                else:
                    made.append(entry.sequence)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) + len(refused) == 60
    assert sorted(made) == list(range(1, len(made) + 1))


def test_a_batch_gives_back_for_each_of_its_parts(place, tmp_path):
    """Two reservations are given back in one change, each after its own entry."""
    with create(place.url, tmp_path) as ledger:
        held = [ledger.reserve(request(epsilon="0.1", analyst=name)).entry for name in ("ana", "eva", "ana")]
        with opened(place.url) as store, store.writing() as page:
            for own in held:
                with page.savepoint():
                    head = page.head()
                    spent = head.after.spent - own.amounts
                    page.give_back("study", spent)
                    page.give_back(f"analyst:{own.analyst}", page.total(f"analyst:{own.analyst}") - own.amounts)
                    made = replace(
                        next_entry(head, EntryKind.VOIDED), analyst=own.analyst, amounts=own.amounts, refers=own.id
                    )
                    entry, text = seal(replace(made, after=replace(head.after, spent=spent)))
                    page.append(row_of(entry, text))
        assert not ledger.spent()
        assert not ledger.spent("ana")

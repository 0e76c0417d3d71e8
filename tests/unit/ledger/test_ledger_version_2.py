"""Surveys, declarations and joint ledgers as entries; what is bought once; and old files, which learn the new kinds."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from ledgers import PURE, STUDY, ask, create, everything, reopen, request

from curador.errors import BudgetExceeded, InvalidParameter, InvalidStudy, LedgerBusy
from curador.ledger import migration, sqlite
from curador.ledger.entry import AlreadyReserved, EntryKind, seal
from curador.ledger.ledger import Ledger
from curador.ledger.store import Page, tables
from curador.study.file import read_study

SAMPLES = Path(__file__).parents[2] / "compat"
CAPS = {"caps": {"visits": 64}}
OTHER = hashlib.sha256(b"other").hexdigest()


@pytest.fixture
def ledger(tmp_path):
    with create(tmp_path / "a.ledger") as made:
        yield made


def bought(ledger, **options):
    return ask(ledger, request(epsilon="0.01", **options))


# ---- surveys ------------------------------------------------------------------------------------------------------------


def test_a_survey_holds_from_its_entry_on(ledger):
    """Nothing holds before; the last one holds; over data versions; it costs nothing and verifies."""
    assert ledger.surveyed() is None
    one = bought(ledger)
    spent = ledger.spent()
    made = ledger.survey(one, CAPS, note="first look")

    assert (made.kind, made.refers, made.note) == (EntryKind.SURVEYED, one.id, "first look")
    assert made.survey == {"commit": one.id, "caps": {"visits": 64}}
    assert made.study_digest == one.study_digest
    assert ledger.surveyed() == made
    ledger.refresh("a month later")
    assert ledger.surveyed() == made
    again = ledger.survey(bought(ledger, data_version=2), {"caps": {"visits": 128}})
    assert ledger.surveyed() == again != made
    assert ledger.spent() == spent + spent
    ledger.verify()


def test_the_same_survey_is_said_once(ledger):
    """Whoever finds the same commit and the same caps in force writes nothing."""
    one = bought(ledger)
    made = ledger.survey(one, CAPS)

    assert ledger.survey(one, {"caps": {"visits": 64}}) == made
    assert ledger.head.sequence == made.sequence
    assert ledger.survey(one, {"caps": {"visits": 32}}) != made


def test_a_survey_of_another_process_is_seen(ledger):
    """By a ledger that had looked before."""
    assert ledger.surveyed() is None
    with reopen(ledger.path) as other:
        made = other.survey(bought(other), CAPS)

    assert ledger.surveyed() == made
    assert ledger.surveyed() == made
    bought(ledger)
    assert ledger.surveyed() == made


def test_studies_that_share_a_ledger_have_surveys_of_their_own(ledger):
    """A survey that says whose it is holds for that study only."""
    one = bought(ledger)
    mine = ledger.survey(one, {**CAPS, "study": "mine"})
    yours = ledger.survey(one, {**CAPS, "study": "yours"})

    assert (ledger.surveyed("mine"), ledger.surveyed("yours"), ledger.surveyed()) == (mine, yours, None)
    assert ledger.survey(one, {**CAPS, "study": "mine"}) == mine


def test_only_what_the_owner_bought_here_can_hold(ledger, tmp_path):
    """Not a reservation, not an analyst's answer, not an entry of another ledger."""
    reserved = ledger.reserve(request(epsilon="0.01")).entry
    of_ana = bought(ledger, analyst="ana")
    with create(tmp_path / "b.ledger") as other:
        foreign = bought(other)
    before = ledger.head

    for commit in (reserved, of_ana, foreign):
        with pytest.raises(InvalidParameter, match=r"commit must be (the|an) entry"):
            ledger.survey(commit, CAPS)
    for survey in ({1: 2, "a": float("nan")}, {"caps": object()}, {"caps": "x" * 1_000_001}):
        with pytest.raises(InvalidParameter, match="survey must be a JSON object"):
            ledger.survey(bought(ledger), survey)
    with pytest.raises(InvalidParameter, match="note must be a sentence"):
        ledger.survey(bought(ledger), CAPS, note=" ")
    assert ledger.surveyed() is None
    assert {one.kind for one in ledger.entries(before.sequence + 1)} == {EntryKind.RESERVED, EntryKind.COMMITTED}


# ---- declarations and joint ledgers -------------------------------------------------------------------------------------


def test_declarations_are_said_when_they_change(ledger):
    """The same said again writes nothing, also where another study spoke in between."""
    one = ledger.declare({"study": "visits", "declarations": {"rows": 4}}, note="rows: 4", study_digest=OTHER)
    two = ledger.declare({"study": "other", "declarations": {}}, note="first", study_digest=STUDY)

    assert ledger.declare({"study": "visits", "declarations": {"rows": 4}}, note="again", study_digest=OTHER) == one
    assert (ledger.declared("visits"), ledger.declared("other"), ledger.declared()) == (one, two, None)
    assert (one.study_digest, one.note, one.amounts) == (OTHER, "rows: 4", type(one.amounts)())
    three = ledger.declare({"study": "visits", "declarations": {"rows": 5}}, note="rows: 5", study_digest=STUDY)
    assert ledger.declared("visits") == three
    ledger.verify()


def test_a_joint_ledger_is_said_once(ledger):
    """Every other one has its entry."""
    one = ledger.join({"ledger": "a"}, note="another unit")
    two = ledger.join({"ledger": "b"}, note="another unit")

    assert ledger.join({"ledger": "a"}, note="again") == one
    assert ledger.joined() == [two, one]
    with pytest.raises(InvalidParameter, match="note must be a sentence"):
        ledger.join({"ledger": "c"}, note="")


# ---- bought once --------------------------------------------------------------------------------------------------------


def test_what_is_bought_once_is_reserved_once(ledger):
    """While it is open and for ever after; not after it failed, was given back, or on another data version."""
    asked = {"epsilon": "0.01", "question": "survey"}
    voided = ledger.reserve(request(**asked), once=True)
    ledger.void(voided)
    ledger.fail(ledger.reserve(request(**asked), once=True), incident="i")
    open_one = ledger.reserve(request(**asked), once=True)
    spent = ledger.spent()

    for _ in range(2):
        with pytest.raises(AlreadyReserved) as told:
            ledger.reserve(request(**asked), once=True)
        assert told.value.entry == open_one.entry
        assert isinstance(told.value, LedgerBusy)
        assert ledger.spent() == spent
        if ledger.stored(open_one.entry.question_key, 1) is None:
            ledger.commit(open_one, answer=b"a", answer_digest="d")
    ledger.reserve(request(**asked))  # whoever does not say once pays again
    ledger.reserve(request(epsilon="0.01"), once=True)  # another question
    ledger.refresh("new")
    ledger.reserve(request(**asked, data_version=2), once=True)


def buy_together(path, buyers=8):
    """Return how many of several who buy at once paid, and whom the others were told to wait for."""
    barrier, paid, told = threading.Barrier(buyers), [], []

    def buy():
        with reopen(path, verify=False) as own:
            barrier.wait()
            try:
                paid.append(own.reserve(request(epsilon="0.01", question="survey"), once=True).entry)
            except AlreadyReserved as refused:
                told.append(refused.entry)

    threads = [threading.Thread(target=buy) for _ in range(buyers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return paid, told


def test_two_who_buy_at_once_buy_once(ledger):
    """Each with a ledger of its own, as processes have: one pays, all others know which one."""
    paid, told = buy_together(ledger.path)

    assert len(paid) == 1
    assert told == paid * 7


def test_buying_twice_is_caught(ledger, monkeypatch):
    """The seeded bug: whoever does not look inside the same change buys again."""
    monkeypatch.setattr(Page, "standing", lambda *_: None)

    assert len(buy_together(ledger.path)[0]) == 8


# ---- old files ----------------------------------------------------------------------------------------------------------


def test_tables_made_now_are_those_that_old_files_get(tmp_path):
    """Letter by letter, whatever library writes them; and the newest of the list."""
    create(tmp_path / "a.ledger").close()
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statement in tables(sqlite._dialect()):  # noqa: SLF001 -- the statements of the very database
            connection.execute(statement)
        for one in ("TABLE again", "TABLE prepared", "INDEX entry_by_question"):
            connection.execute(f"DROP {one}")
        renewed = migration.renew_tables(connection.cursor(), migration.SCHEMAS[0])
        found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()

    assert renewed
    assert hashlib.sha256(repr(found).encode()).hexdigest() == migration.SCHEMAS[-1]
    assert sqlite.SQLiteStore(tmp_path / "a.ledger").schema() == migration.SCHEMAS[-1]


STEPS = migration.steps_from(migration.SCHEMAS[0])
OLD = [path for version in ("v0", "v1", "v2", "v3") for path in sorted((SAMPLES / version / "ledgers").iterdir())]


@pytest.fixture(params=OLD, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def old(request, tmp_path):
    """A copy of a ledger of an older version, and how it is opened."""
    folder = tmp_path / request.param.name
    shutil.copytree(request.param, folder)
    for one in folder.iterdir():
        one.chmod(0o700 if one.is_dir() else 0o600)
    study = read_study(folder / f"{folder.name}.toml")
    own = {"budget": study.budget, "adjacency": study.adjacency, "unit": study.unit_name, "owners": study.owners}
    return study.ledger_path, {**own, "study_name": study.name, "folder": folder}


def test_an_old_file_learns_the_new_kinds(old):
    """Every entry, sum and answer is as it was; what is new follows; both verify, also after opening again."""
    path, own = old
    with Ledger.open(path, **own) as ledger:
        before = everything(ledger)
        assert migration.is_old(ledger._store.schema())  # noqa: SLF001 -- the file as it lies there
        commit = next(one for one in ledger.entries() if one.kind is EntryKind.COMMITTED and one.analyst is None)
        made = ledger.survey(commit, CAPS)
        ledger.declare({"study": "x"}, note="changed", study_digest=STUDY)
        ledger.verify()
    with Ledger.open(path, **own) as ledger:
        after = everything(ledger)

        assert ledger._store.schema() == migration.SCHEMAS[-1]  # noqa: SLF001 -- idem
        assert ledger.surveyed() == made
        assert after[0][: len(before[0])] == before[0]
        assert after[1:] == before[1:]
        assert [one.kind.value for one in after[0][len(before[0]) :]] == ["surveyed", "declared"]
        assert [json.loads(seal(one)[1])["version"] for one in after[0][-3:]] == [1, 2, 2]
        with pytest.raises(sqlite3.IntegrityError), contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("DELETE FROM entry")


def test_looking_changes_no_old_file(old):
    """Nor do questions that are asked as before."""
    path, own = old
    with Ledger.open(path, **own) as ledger:
        ledger.surveyed()
        ledger.declared("clinic")
        ledger.joined()
        assert not ledger.given_again()
        assert ledger.prepared_digest("clinic", 1) is None
        schema = ledger._store.schema()  # noqa: SLF001 -- idem
        ledger.refresh("new")

        assert ledger._store.schema() == schema  # noqa: SLF001 -- idem
    assert schema in migration.SCHEMAS[:-1]


def test_another_process_has_taught_the_file(old):
    """A ledger that was opened before sees what stands behind the entries that it knows."""
    path, own = old
    with Ledger.open(path, **own) as first, Ledger.open(path, **own) as second:
        first.surveyed()
        commit = next(one for one in first.entries() if one.kind is EntryKind.COMMITTED and one.analyst is None)
        made = second.survey(commit, CAPS)

        assert first.surveyed() == made
        first.refresh("goes on")
        first.verify()


@pytest.mark.parametrize("old", OLD[:1], indirect=True, ids=["pure"])
@pytest.mark.parametrize("place", range(len(STEPS) + 1))
def test_a_crash_leaves_the_old_tables(old, place, monkeypatch):
    """After any statement: nothing is lost, and the next try does it."""
    path, own = old
    with monkeypatch.context() as patch:
        patch.setattr(migration, "steps_from", lambda _: (*STEPS[:place], "SELECT crash()"))
        with Ledger.open(path, **own) as ledger:
            before = everything(ledger)
            with pytest.raises(InvalidStudy):
                ledger.declare({"study": "x"}, note="changed", study_digest=STUDY)
            assert everything(ledger) == before
            assert ledger._store.schema() == migration.SCHEMAS[0]  # noqa: SLF001 -- idem
    with Ledger.open(path, **own) as ledger:
        ledger.verify()
        ledger.declare({"study": "x"}, note="changed", study_digest=STUDY)
        ledger.verify()


@pytest.mark.parametrize("old", OLD[:1], indirect=True, ids=["pure"])
def test_rows_that_are_lost_on_the_way_are_noticed(old, monkeypatch):
    """The seeded bug: a copy that leaves out an entry is not kept."""
    path, own = old
    lossy = [one.replace("FROM entry_before", "FROM entry_before WHERE sequence > 0") for one in STEPS]
    monkeypatch.setattr(migration, "steps_from", lambda _: lossy)
    with Ledger.open(path, **own) as ledger:
        with pytest.raises(InvalidStudy, match="a whole ledger file"):
            ledger.declare({"study": "x"}, note="changed", study_digest=STUDY)
        ledger.verify()


def test_tables_of_somebody_else_are_refused(tmp_path):
    """Older ones than the file was made with, and such as nobody made: a trigger may be missing."""
    made, (oldest, middle, *_, newest) = "0" * 64, migration.SCHEMAS

    assert migration.may_become(oldest, newest)
    assert migration.may_become(middle, newest)
    assert migration.may_become(made, made)
    for pair in ((newest, oldest), (newest, middle), (oldest, made), (made, newest)):
        assert not migration.may_become(*pair)
    path = tmp_path / "a.ledger"
    create(path).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entry_no_delete")
    with pytest.raises(InvalidStudy, match="with the tables that it was created with"):
        reopen(path)


def test_a_full_budget_says_so_before_anything_is_bought_once(ledger):
    """Refusals are those of any charge."""
    bought(ledger)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(request(epsilon="0.999"), once=True)
    assert PURE.epsilon == 1

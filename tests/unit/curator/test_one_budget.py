"""One data set, one budget: whatever a study is called and wherever it lies, the same rows have the same ledger."""

from __future__ import annotations

import os
import shutil
import threading
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import curador as cu
import registers
from curador.curator import dataset
from curador.curator.accounts import log_lines
from curador.curator.budget import log_table
from curador.curator.dataset import ledgers_of_data
from curador.curator.opening import enter_contents, existing_ledger, ledger_of
from curador.errors import InvalidStudy
from curador.ledger import markers
from curador.ledger.entry import EntryKind
from curador.ledger.ledger import Ledger
from curador.ledger.register import Register, register_path
from curador.study.model import Budget, Study, Table, UnitColumn, UnitRow
from curador.study.values import Type
from curador.text import plain_text

ROWS = "user_id,household,spent\n1,1,10\n2,1,20\n3,2,30\n"
THREE = Budget(epsilon=3, delta="1e-6")


@pytest.fixture
def tmp_path():
    """A new folder, in memory where the system has such: every ledger waits for the disk several times."""
    with registers.quick_folder() as folder:
        yield Path(folder).resolve()


@pytest.fixture
def home(tmp_path):
    """A folder with a table in it."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "visits.csv").write_text(ROWS, encoding="utf-8")
    return folder


def study_over(folder, source, name="first", *, unit="user_id", table="visits", budget=THREE, **changes):
    whose = UnitRow() if unit == "row" else UnitColumn(unit)
    tables = (Table(table, str(source), whose), *changes.pop("more", ()))
    return Study(name=name, tables=tables, budget=budget, ledger=Path(f"{name}.ledger"), folder=folder, **changes)


def begin(study, **options):
    """Open a study's ledger, and return its id and place."""
    with ledger_of(study, new_ledger=None, verify=True, **options) as ledger:
        return ledger.id, ledger.path


def other_copy(home, tmp_path):
    shutil.copy(home / "visits.csv", tmp_path / "copy.csv")
    os.utime(tmp_path / "copy.csv", (1, 1))
    return tmp_path / "copy.csv"


def symbolic_link(home, tmp_path):
    (tmp_path / "link.csv").symlink_to(home / "visits.csv")
    return tmp_path / "link.csv"


def hard_link(home, tmp_path):
    (tmp_path / "hard.csv").hardlink_to(home / "visits.csv")
    (home / "visits.csv").write_text(ROWS + "4,2,40\n", encoding="utf-8")  # not to be known by its contents
    return tmp_path / "hard.csv"


def overlapping_glob(home, tmp_path):
    (home / "visits2.csv").write_text(ROWS.replace("1,1,10", "9,9,90"), encoding="utf-8")
    (home / "visits.csv").write_text(ROWS + "4,2,40\n", encoding="utf-8")
    return home / "visits*.csv"


def moved_folder(home, tmp_path):
    """Also changed: the marker went with it."""
    home.rename(tmp_path / "moved")
    (tmp_path / "moved" / "visits.csv").write_text(ROWS + "4,2,40\n", encoding="utf-8")
    (tmp_path / "moved" / "first.ledger").rename(tmp_path / "first.ledger")
    (tmp_path / "moved" / "first.ledger.head").rename(tmp_path / "first.ledger.head")
    return tmp_path / "moved" / "visits.csv"


def moved_file(home, tmp_path):
    """By device and number, although no contents were read: they are known for the old place only."""
    return (home / "visits.csv").rename(tmp_path / "visits-of-may.csv")


def dotted(home, tmp_path):
    return Path(f"{home}/../home/./visits.csv")


WAYS = [other_copy, symbolic_link, hard_link, overlapping_glob, moved_folder, moved_file, dotted]


def first_fast(cases):
    """The first case in `make check`, the others in `make test`: each makes ledgers for a quarter of a second."""
    return [
        cases[0],
        *(pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.slow) for one in cases[1:]),
    ]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_same_rows_have_the_same_budget(way, home, tmp_path):
    """Under another name, in another folder: refused with another budget, and told how to go on."""
    begin(study_over(home, "visits.csv"))
    source = way(home, tmp_path)
    elsewhere = study_over(tmp_path, source, "second", budget=Budget(epsilon=1))

    with pytest.raises(
        InvalidStudy, match="these data have a ledger already, and a second one would be a second budget"
    ) as told:
        begin(elsewhere)
    assert "first" in str(told.value)
    assert 'new_ledger="…" in Python, --new-ledger "…" in a shell' in str(told.value)
    assert not (tmp_path / "second.ledger").exists()


@pytest.mark.parametrize("way", first_fast(WAYS), ids=lambda way: way.__name__)
def test_a_hidden_second_budget_is_caught(way, home, tmp_path, monkeypatch):
    """The seeded bug: whoever looks in no register and at no marker starts a full budget over the same rows."""
    begin(study_over(home, "visits.csv"))
    source = way(home, tmp_path)
    monkeypatch.setattr(dataset.DataSet, "others", lambda *_: [])

    assert begin(study_over(tmp_path, source, "second", budget=Budget(epsilon=1)))[1] == tmp_path / "second.ledger"


def refuse_to_write(*_, **__):
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize(
    "way", first_fast([other_copy, symbolic_link, hard_link, moved_file, dotted]), ids=lambda way: way.__name__
)
def test_the_register_alone_recognises_data(way, home, tmp_path, monkeypatch):
    """Where no marker can be left: a folder that cannot be written."""
    monkeypatch.setattr(markers, "write_private", refuse_to_write)
    begin(study_over(home, "visits.csv"))
    source = way(home, tmp_path)

    assert not list(home.glob(".curador-*"))
    with pytest.raises(InvalidStudy, match="a second one would be a second budget"):
        begin(study_over(tmp_path, source, "second", budget=Budget(epsilon=1)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(home, tmp_path):
    """Its data have a ledger elsewhere, and no marker."""
    home.chmod(0o500)
    try:
        begin(study_over(tmp_path, home / "visits.csv"))
        with pytest.raises(InvalidStudy, match="a second one would be a second budget"):
            begin(study_over(tmp_path, home / "visits.csv", "second", budget=Budget(epsilon=1)))
    finally:
        home.chmod(0o700)


def test_data_of_which_nothing_would_be_remembered(home, tmp_path, monkeypatch, capsys):
    """Neither folder nor register can be written: refused before a ledger is made. The folder alone is enough."""
    monkeypatch.setenv("CURADOR_REGISTER", str(tmp_path / "file" / "register"))
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(dataset.os, "access", lambda *_: False)
        with pytest.raises(InvalidStudy, match="must be written down somewhere; neither") as told:
            begin(study_over(home, "visits.csv"))
    assert "CURADOR_REGISTER" in str(told.value)
    assert not (home / "first.ledger").exists()
    begin(study_over(home, "visits.csv"))
    assert "no register of ledgers" in capsys.readouterr().err
    with pytest.raises(InvalidStudy, match="a second one would be a second budget"):
        begin(study_over(home, "visits.csv", "second", budget=Budget(epsilon=1)))


# ---- what is not found: the threat model says so ------------------------------------------------------------------------


def test_a_copy_with_a_changed_byte_is_not_found(home, tmp_path):
    """Nobody can see that its rows are mostly the same."""
    begin(study_over(home, "visits.csv"))
    copy = other_copy(home, tmp_path)
    copy.write_text(ROWS.replace("30", "31"), encoding="utf-8")

    assert begin(study_over(tmp_path, copy, "second", budget=Budget(epsilon=1)))[1] == tmp_path / "second.ledger"


def test_another_machine_does_not_find_a_copy(home, tmp_path):
    """Nor another user: each has a register, with a key of its own."""
    begin(study_over(home, "visits.csv"))
    copy = other_copy(home, tmp_path)
    registers.another_register()

    assert begin(study_over(tmp_path, copy, "second", budget=Budget(epsilon=1)))[1] == tmp_path / "second.ledger"


def test_another_user_of_the_same_folder_finds_the_marker(home, tmp_path):
    """It lies beside the files."""
    begin(study_over(home, "visits.csv"))
    registers.another_register()

    with pytest.raises(InvalidStudy, match="a second one would be a second budget"):
        begin(study_over(tmp_path, home / "visits.csv", "second", budget=Budget(epsilon=1)))


def test_another_file_that_got_the_number_of_a_removed_one(home, tmp_path):
    """File systems give numbers again; that alone makes no rows the same."""
    other = tmp_path / "other.csv"
    first = study_over(home, "visits.csv")
    begin(first)
    shutil.rmtree(home)
    other.write_text("user_id,spent\n7,1\n", encoding="utf-8")
    with Register(register_path()) as register, register.deciding():
        stat = other.stat()
        register._connection.execute("UPDATE source SET (device, number) = (?, ?)", [stat.st_dev, stat.st_ino])  # noqa: SLF001

    assert begin(study_over(tmp_path, other, "second", budget=Budget(epsilon=1)))[1] == tmp_path / "second.ledger"


# ---- sharing ------------------------------------------------------------------------------------------------------------


def test_an_equal_study_spends_from_the_same_ledger(home, tmp_path, capsys):
    """Same unit, neighbours and budget: no second ledger is made, and the first one says who joined it, once."""
    first, second = study_over(home, "visits.csv"), study_over(tmp_path, home / "visits.csv", "second", table="stays")
    own = begin(first)
    capsys.readouterr()

    assert begin(second) == own
    assert f"these data have the ledger {own[1]}: study second spends from it" in capsys.readouterr().err
    assert begin(second) == own == begin(first)
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "second.ledger").exists()
    with existing_ledger(second) as ledger:
        assert ledger.path == own[1]
        kinds = [(entry.kind.value, (entry.details or {}).get("study")) for entry in ledger.entries()]
        ledger.verify()
    assert kinds == [("created", "first"), ("joined", "second"), ("declared", "second")]


@pytest.mark.parametrize(
    ("changes", "why"),
    first_fast(
        [
            ({"unit": "household"}, "the unit of these rows must be that of the ledger .column user_id."),
            ({"unit": "household", "table": "stays"}, "the unit of these rows must be that of the ledger .column user_id."),
            ({"unit": "row"}, "the unit of these rows"),
            ({"unit_name": "household"}, "unit must be that of the ledger .person."),
            ({"budget": Budget(epsilon=2, delta="1e-6")}, "budget.epsilon must be that of the ledger .3."),
            ({"adjacency": "replace_one"}, "adjacency must be that of the ledger"),
        ]
    ),
    ids=str,
)
def test_another_unit_or_promise_needs_a_reason(changes, why, home, tmp_path):
    """It says what differs; with a reason there are two ledgers, and each knows of the other and why."""
    own = begin(study_over(home, "visits.csv"))[0]
    other = study_over(tmp_path, home / "visits.csv", "second", **changes)
    with pytest.raises(InvalidStudy, match=why):
        begin(other)

    with ledger_of(other, new_ledger="households are asked about, too", verify=True) as ledger:
        (here,) = ledger.joined()
        assert here.details["ledger"] == own
        assert "households are asked about, too" in here.note
        made = ledger.id
    with existing_ledger(study_over(home, "visits.csv")) as first:
        (there,) = first.joined()
        assert there.details["ledger"] == made
        assert "households are asked about, too" in there.note
        first.verify()
    assert begin(other)[0] == made
    assert begin(study_over(home, "visits.csv"))[0] == own


@pytest.mark.slow
def test_a_third_ledger_that_nobody_knows_of(home, tmp_path):
    """A study over the rows of two ledgers shares neither: the other one's people would be asked about twice."""
    (home / "others.csv").write_text(ROWS.replace("10", "11"), encoding="utf-8")
    begin(study_over(home, "visits.csv"))
    begin(study_over(home, "others.csv", "second"))
    both = study_over(home, "visits.csv", "third", more=(Table("others", "others.csv", UnitColumn("user_id")),))

    with pytest.raises(InvalidStudy, match="the ledger must be the only one of these data"):
        begin(both)


def test_a_source_that_a_study_gains_may_have_another_ledger(home):
    """Found at the next opening; a reason lets both stand."""
    (home / "others.csv").write_text(ROWS.replace("10", "11"), encoding="utf-8")
    begin(study_over(home, "visits.csv"))
    begin(study_over(home, "others.csv", "second"))
    gained = study_over(home, "visits.csv", more=(Table("others", "others.csv", UnitColumn("user_id")),))

    with pytest.raises(InvalidStudy, match=r"these data have another ledger, and two are two budgets: .*second\.ledger"):
        begin(gained)
    with ledger_of(gained, new_ledger="both months are asked about together", verify=True) as ledger:
        assert [entry.details["study"] for entry in ledger.joined()] == ["second"]
    begin(gained)
    with pytest.raises(InvalidStudy, match="a new ledger must be where no file is"):
        ledger_of(gained, new_ledger="again", verify=True)


def test_public_tables_have_no_marker_and_no_entry(home):
    """They are of nobody: two studies may read them."""
    (home / "cities.csv").write_text("city,region\nLima,coast\n", encoding="utf-8")
    (home / "private").mkdir()
    (home / "visits.csv").rename(home / "private" / "visits.csv")
    (home / "others.csv").write_text(ROWS.replace("10", "11"), encoding="utf-8")
    public = (Table("cities", "cities.csv", None),)
    begin(study_over(home, "private/visits.csv", more=public))

    assert list((home / "private").glob(".curador-*"))
    assert not list(home.glob(".curador-*"))
    assert begin(study_over(home, "others.csv", "second", more=public))[1] == home / "second.ledger"


@pytest.mark.slow
def test_tables_of_a_database_file_are_data_sets_of_their_own(home, tmp_path):
    """By file and table, whatever the case of its name; a view may be any of them."""
    with duckdb.connect(str(home / "shop.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_csv('{home / 'visits.csv'}')")
        connection.execute("CREATE TABLE others AS SELECT user_id + 10 AS user_id FROM visits")
        connection.execute("CREATE VIEW seen AS SELECT * FROM visits")
    begin(study_over(home, "shop.duckdb#visits"))
    other = Budget(epsilon=1)

    assert begin(study_over(home, "shop.duckdb#others", "second", budget=other))[1] == home / "second.ledger"
    shutil.copy(home / "shop.duckdb", tmp_path / "copy.duckdb")
    for source in ("shop.duckdb#main.Visits", "shop.duckdb#seen", tmp_path / "copy.duckdb#visits"):
        with pytest.raises(InvalidStudy, match="a second one would be a second budget"):
            begin(study_over(home, source, "third", budget=other))


# ---- ledgers and registers ----------------------------------------------------------------------------------------------


def test_a_copy_of_a_ledger_is_refused(home, tmp_path):
    """With its folder: two copies would be two budgets. One that took the place of the other goes on."""
    begin(study_over(home, "visits.csv"))
    shutil.copytree(home, tmp_path / "copy")

    with pytest.raises(InvalidStudy, match="ledger must be the only copy; it also lies at"):
        begin(study_over(tmp_path / "copy", "visits.csv"))
    shutil.rmtree(home)
    begin(study_over(tmp_path / "copy", "visits.csv"))


def test_a_ledger_that_is_gone_needs_a_reason(home):
    """Deleting ledger, witness and markers opens no spent budget again; with a reason the new one says so."""
    first = study_over(home, "visits.csv")
    own = begin(first)[0]
    for one in (*home.glob("first.ledger*"), *home.glob(".curador-*")):
        one.unlink()

    with pytest.raises(InvalidStudy, match="the ledger must be where it was last seen"):
        begin(first)
    with ledger_of(first, new_ledger="the disk burnt", verify=True) as ledger:
        assert ledger.joined()[0].details["ledger"] == own
    begin(first)


def test_markers_of_older_versions_are_read(home):
    """One of this study must name its ledger; one of another study keeps a new ledger off until it is opened once."""
    (home / ".first.ledger-id").write_text("0" * 32, encoding="ascii")
    with pytest.raises(InvalidStudy, match="ledger must be the one that these data had"):
        begin(study_over(home, "visits.csv"))
    (home / ".first.ledger-id").unlink()
    (home / ".older.ledger-id").write_text("1" * 32, encoding="ascii")
    with pytest.raises(InvalidStudy, match="open study older once, so that it is known which files it is about"):
        begin(study_over(home, "visits.csv"))
    with ledger_of(study_over(home, "visits.csv"), new_ledger="older was a trial", verify=True) as ledger:
        assert ledger.joined()[0].details["study"] == "older"
    begin(study_over(home, "visits.csv"))


def test_looking_at_the_ledgers_of_data_makes_nothing(home, tmp_path):
    """No register, no contents read; afterwards every ledger is listed."""
    first = study_over(home, "visits.csv")
    assert ledgers_of_data(first) == []
    assert not register_path().exists()
    begin(first)
    with ledger_of(study_over(tmp_path, home / "visits.csv", "second", unit="household"), new_ledger="too", verify=True):
        pass

    assert {one.study for one in ledgers_of_data(first)} == {"first", "second"}


def test_the_log_tells_what_changed(home):
    """Whole, where a question would be cut."""
    first = study_over(home, "visits.csv")
    begin(first)
    begin(study_over(home, "visits.csv", max_units=5_000_000, least_spend=Fraction(1, 500)))
    with existing_ledger(first) as ledger:
        told = plain_text(log_table(log_lines(ledger, None)))

    assert "declares otherwise: least_spend: 0.01% → 0.2%; max_units: 1000000000 → 5000000" in " ".join(told.split())


def test_a_marker_that_cannot_be_read_is_refused(home):
    """It says which ledger these data have."""
    begin(study_over(home, "visits.csv"))
    (marker,) = home.glob(".curador-*")
    assert marker.stat().st_mode & 0o777 == 0o600
    for text in ("", "[]", '{"version":2}', '{"version":1,"ledger":"a","path":"p","study":"s","files":[["a"]]}'):
        marker.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidStudy, match="the marker beside the data must be a readable file"):
            begin(study_over(home, "visits.csv", "second"))


def test_the_register_is_the_owners_alone(home, monkeypatch, tmp_path):
    """Mode 0600 whatever the umask, in the data folder of the user; a damaged one is refused."""
    monkeypatch.delenv("CURADOR_REGISTER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    before = os.umask(0)
    try:
        begin(study_over(home, "visits.csv"))
    finally:
        os.umask(before)
    place = tmp_path / "data" / "curador" / "register"
    assert register_path() == place
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    assert register_path() == tmp_path / "somebody" / ".local" / "share" / "curador" / "register"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    place.write_bytes(b"no register" * 1000)
    with pytest.raises(InvalidStudy, match="the register of ledgers must be a file that can be read and written"):
        begin(study_over(home, "visits.csv"))


def test_a_register_of_a_later_version_is_refused(tmp_path):
    """It may say something that is not understood here."""
    path = tmp_path / "register"
    with Register(path) as register:
        register._connection.execute("PRAGMA user_version = 2")  # noqa: SLF001 -- as a later version would
    with pytest.raises(InvalidStudy, match="the register of ledgers must be of version 1"):
        Register(path)


def counted(monkeypatch):
    """Return the list of files whose contents are read."""
    from curador.ledger import register

    read, real = [], register._read_all  # noqa: SLF001 -- the one place that reads contents

    def count(wanted, *rest):
        read.extend(one.source.place for one, _ in wanted)
        return real(wanted, *rest)

    monkeypatch.setattr(register, "_read_all", count)
    return read


def test_contents_are_read_once(home, monkeypatch):
    """Not again at any opening, also of another study; a new version is read when it is taken."""
    read = counted(monkeypatch)
    first = study_over(home, "visits.csv")
    begin(first)
    assert read == [str(home / "visits.csv")]
    begin(first)
    begin(study_over(home, "visits.csv", "second"))
    assert len(read) == 1
    (home / "visits.csv").write_text(ROWS + "4,4,40\n", encoding="utf-8")
    begin(first)
    assert len(read) == 1
    with existing_ledger(first) as ledger:
        enter_contents(first, ledger)
        enter_contents(first, ledger)
    assert len(read) == 2


def test_an_equal_copy_of_any_version_is_recognised(home, tmp_path):
    """The first one as well as what the data became."""
    first = study_over(home, "visits.csv")
    begin(first)
    copy = other_copy(home, tmp_path)
    (home / "visits.csv").write_text(ROWS + "4,4,40\n", encoding="utf-8")
    with existing_ledger(first) as ledger:
        enter_contents(first, ledger)
    for text in (copy.read_text(encoding="utf-8"), ROWS + "4,4,40\n"):
        copy.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidStudy, match="a second one would be a second budget"):
            begin(study_over(tmp_path, copy, "second", budget=Budget(epsilon=1)))


def test_long_reading_is_told(home, monkeypatch):
    """After two seconds, in a sentence."""
    from curador.ledger import register

    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr(register.time, "monotonic", lambda: next(clock))
    told = []
    begin(study_over(home, "visits.csv"), progress=told.append)

    assert told == ["looking whether these data have a ledger: 0.0 of 0.0 GB"]


@pytest.mark.slow
def test_of_two_who_begin_at_once_one_wins(home, tmp_path):
    """Each with a name and a budget of its own: one ledger is made, all others are refused."""
    number, barrier, made, refused = 6, threading.Barrier(6), [], []

    def start(place):
        study = study_over(tmp_path, home / "visits.csv", f"study{place}", budget=Budget(epsilon=1 + place))
        barrier.wait()
        try:
            made.append(begin(study))
        except InvalidStudy as error:
            refused.append(error)

    threads = [threading.Thread(target=start, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(made) == 1
    assert len(refused) == number - 1
    assert all("a second one would be a second budget" in str(error) for error in refused)
    assert len(list(tmp_path.glob("study*.ledger"))) == 1


# ---- declarations -------------------------------------------------------------------------------------------------------


def declared_notes(study):
    with existing_ledger(study) as ledger:
        return [entry.note for entry in ledger.entries() if entry.kind is EntryKind.DECLARED]


def test_what_is_declared_otherwise_becomes_an_entry(home):
    """Caps, bounds, values, analysts: from what to what, once."""
    from curador.study.model import Analyst, Caps, Column

    def declaring(*columns, caps=None, analysts=()):
        table = Table("visits", "visits.csv", UnitColumn("user_id"), columns, caps=caps or Caps(rows=10))
        return Study(name="first", tables=(table,), budget=THREE, ledger=Path("first.ledger"), folder=home, analysts=analysts)

    begin(declaring())
    begin(declaring())
    assert declared_notes(declaring()) == []
    spent = Column("spent", Type.INTEGER, bounds=(0, 500))
    steps = [
        (declaring(caps=Caps(rows=20)), "tables.visits.caps.rows: 10 → 20"),
        (declaring(spent, caps=Caps(rows=20)), "tables.visits.columns.spent: new"),
        (declaring(Column("spent", Type.INTEGER, bounds=(0, 900)), caps=Caps(rows=20)), "bounds: [0, 500] → [0, 900]"),
        (declaring(), "tables.visits.caps.rows: 20 → 10; tables.visits.columns.spent: no longer declared"),
        (declaring(analysts=(Analyst("ana", Fraction(1, 5)),)), "analysts.ana: new"),
        (declaring(analysts=(Analyst("ana", Fraction(1, 2)),)), "analysts.ana.share: 20% → 50%"),
        (declaring(Column("household", Type.INTEGER, values=tuple(range(50)))), "analysts.ana: no longer declared"),
        (declaring(Column("household", Type.INTEGER, values=tuple(range(60)))), "values: 50 values → 60 values"),
        (declaring(Column("household", Type.INTEGER, values=tuple(range(1, 61)))), "values: 60 values → 60 values, others"),
    ]
    for place, (study, words) in enumerate(steps, 1):
        begin(study)
        begin(study)
        notes = declared_notes(study)
        assert len(notes) == place
        assert words in notes[-1]
        assert notes[-1].startswith("study first declares otherwise: ")
    with existing_ledger(steps[-1][0]) as ledger:
        ledger.verify()


def test_many_changes_are_cut_in_the_note_and_whole_in_the_details(home):
    """A note has at most 1,000 letters."""
    from curador.study.model import Column

    columns = tuple(Column(f"a_column_of_a_very_wide_table_{place}", Type.INTEGER) for place in range(100))
    begin(study_over(home, "visits.csv"))
    wide = Study(
        name="first",
        tables=(Table("visits", "visits.csv", UnitColumn("user_id"), columns),),
        budget=THREE,
        ledger=Path("first.ledger"),
        folder=home,
    )
    begin(wide)

    (note,) = declared_notes(wide)
    assert note.endswith("more")
    with existing_ledger(wide) as ledger:
        assert len(ledger.declared("first").details["changed"]) == 100


# ---- whole questions ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_studies_ask_from_one_budget(home, tmp_path):
    """Each has a prepared copy and answers of its own; a data version that one declares does not shut the other out."""
    options = {"unit": "user_id", "budget": Budget(epsilon=3), "caps": {"rows": 10}, "engine": {"worker": "inline"}}
    files = {"first": tmp_path / "first.ledger", "second": tmp_path / "second.ledger"}

    def ask(name, **more):
        with cu.open(home / "visits.csv", name=name, ledger=files[name], **options, **more) as curator:
            answer = curator.ask(f"SELECT COUNT(*) AS n FROM {name}", spend="10%")
            return curator.budget.spent.epsilon, curator.data_version, answer.stored

    assert ask("first") == (Fraction(3, 10), 1, False)
    assert ask("second") == (Fraction(6, 10), 1, False)
    assert ask("first") == (Fraction(6, 10), 1, True)
    assert ask("second", refresh=True) == (Fraction(9, 10), 2, False)
    assert ask("first") == (Fraction(12, 10), 2, False)
    assert ask("second") == (Fraction(12, 10), 2, True)
    with Ledger.reach(files["first"]) as ledger:
        ledger.verify()
    assert not files["second"].exists()

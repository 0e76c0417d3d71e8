"""Several machines, one truth: folders, sources and registers of their own, one ledger, and who of them may answer.

A machine is a folder with its sources and its prepared copy, and a register; all that two of them share is the ledger. Each
rule has a seeded bug that a scenario here must notice.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import curador as cu
from curador.curator import machines
from curador.curator.machines import HERE
from curador.curator.opening import prepare_study, study_of
from curador.engines.base import CopyDigest
from curador.engines.duckdb import copies
from curador.engines.duckdb.rank_key import VARIABLE, given_key
from curador.engines.duckdb.versions import Folder, prepared_folder
from curador.ledger.entry import seal

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
CITIES = ["Cusco", "Lima", "Quito"]


def visits(rows=400, seed=1):
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "user_id": draw.integers(0, 100, rows),
            "city": draw.choice(CITIES, rows),
            "spent": draw.gamma(2, 60, rows),
            "remark": draw.choice(["", "late", "a;1", None], rows),
        }
    )


def with_a_changed_row(table):
    spent = table.column("spent").to_pylist()
    spent[7] += 1.0
    return table.set_column(table.schema.get_field_index("spent"), "spent", pa.array(spent))


@dataclass
class Machine:
    """One machine; `open` and whatever else looks at its data runs with its register."""

    folder: Path
    ledger: Path
    table: pa.Table

    def __post_init__(self):
        self.folder.mkdir()
        self.write(self.table)

    def write(self, table):
        pq.write_table(table, self.folder / "visits.parquet")

    @property
    def prepared(self):
        return self.folder / "prepared"

    @property
    def key(self):
        return self.prepared / "key"

    def take_key(self, other):
        """Bring the key of another machine, as a file."""
        self.prepared.mkdir(mode=0o700, exist_ok=True)
        self.key.unlink(missing_ok=True)
        copies_write(self.key, other.key.read_bytes())

    @contextlib.contextmanager
    def here(self):
        before = os.environ["CURADOR_REGISTER"]
        os.environ["CURADOR_REGISTER"] = str(self.folder / "register")
        try:
            yield
        finally:
            os.environ["CURADOR_REGISTER"] = before

    def options(self, **changes):
        engine = {"worker": "inline", "threads": 1, "prepared": str(self.prepared), **changes.pop("engine", {})}
        return {
            "name": "study",
            "unit": {"visits": "user_id"},
            "budget": cu.Budget(epsilon=10, delta=1e-6),
            "bounds": {"visits.spent": (0, 500)},
            "values": {"visits.city": CITIES},
            "caps": {"rows": 5, "groups": 3},
            "analysts": {"ana": "50%"},
            "ledger": self.ledger,
            "engine": engine,
            **changes,
        }

    def open(self, **changes):
        with self.here():
            return cu.open({"visits": self.folder / "visits.parquet"}, **self.options(**changes))

    def study(self, **changes):
        return study_of({"visits": self.folder / "visits.parquet"}, self.options(**changes))

    def prepare(self, **changes):
        with self.here():
            prepare_study(self.study(**changes))

    def record(self):
        return json.loads((self.prepared / "copies.json").read_text(encoding="utf-8"))

    def change_copy(self, statement="UPDATE t0 SET g2 = g2 + 1 WHERE __u = 3 AND __r = 1"):
        """Change the prepared copy behind everybody's back."""
        (file,) = self.prepared.glob("v*.duckdb")
        with contextlib.closing(duckdb.connect(str(file))) as connection:
            connection.execute(statement)
        return file


def copies_write(path, content):
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


@pytest.fixture
def pair(tmp_path):
    """Two machines with the same rows, in another order on the second."""
    rows = visits()
    first = Machine(tmp_path / "first", tmp_path / "shared.ledger", rows)
    second = Machine(tmp_path / "second", tmp_path / "shared.ledger", rows.take(np.random.default_rng(5).permutation(400)))
    return first, second


def refused(asker, question=COUNT, **options):
    with pytest.raises(cu.InvalidStudy) as caught:
        asker.ask(question, **(options or {"spend": "1%"}))
    return str(caught.value)


def joined(first, second, **changes):
    """The second machine, with the first one's key."""
    second.take_key(first)
    return second.open(**changes)


# ---- scenarios -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_machines_with_the_same_rows_and_key_answer(pair):
    """Whatever order rows lie in, and however many threads read them."""
    first, second = pair
    with first.open() as one, joined(first, second, engine={"threads": 2, "memory": "300MB"}) as two:
        assert not one.ask(COUNT, spend="1%").stored
        assert two.ask(COUNT, spend="1%").stored
        assert not two.analyst("ana").ask(BY_CITY, spend="1%").stored
    assert first.record()["copies"] == second.record()["copies"]


@pytest.mark.slow
def test_a_machine_that_is_not_refreshed_answers_only_what_is_stored_of_the_current_version(pair):
    """Also while it is open; what was stored of an older version is not given any more."""
    first, second = pair
    with first.open() as one, joined(first, second) as two:
        two.ask(COUNT, spend="1%")
        first.write(visits(seed=2))
        with first.here():
            one.refresh("new rows")
        one.ask(BY_CITY, spend="2%")
        assert two.ask(BY_CITY, spend="2%").stored
        told = refused(two)
        assert "holds data version 1, and 2 is the current one" in told
        assert refused(two.analyst("ana")) == f"{HERE}."
        assert two.budget.data_version == two.data_version == 2
    second.write(visits(seed=2))
    with second.open() as two:
        assert not two.ask(COUNT, spend="1%").stored


@pytest.mark.slow
def test_a_machine_with_a_changed_row_answers_only_what_is_stored(pair, capsys):
    """It says so when it is opened; `prepare` says what differs; with the right rows it answers."""
    first, second = pair
    second.write(with_a_changed_row(second.table))
    with first.open() as one:
        one.ask(COUNT, spend="1%")
        with joined(first, second) as two:
            assert f"questions that are not stored are refused: {HERE}" in capsys.readouterr().err
            assert two.ask(COUNT, spend="1%").stored
            assert "the rank key is the same, and its rows, units or ranks are others" in refused(two, BY_CITY)
            assert refused(two.analyst("ana"), BY_CITY) == f"{HERE}."
            assert not one.ask(BY_CITY, spend="1%").stored
    with pytest.raises(cu.InvalidStudy, match="rows, units or ranks are others"):
        second.prepare()
    second.write(second.table)
    second.prepare()
    with second.open() as two:
        assert not two.ask(COUNT, spend="3%").stored


@pytest.mark.slow
@pytest.mark.parametrize("prepare", ["auto", "never"])
def test_a_machine_with_another_key_answers_only_what_is_stored(pair, prepare):
    """The owner learns that it is the key; with the right one the copy is made again, and answers."""
    first, second = pair
    engine = {"engine": {"prepare": prepare}}
    with first.open(**engine) as one:
        one.ask(COUNT, spend="1%")
        second.prepared.mkdir(mode=0o700)
        copies_write(second.key, bytes(32))
        with second.open(**engine) as two:
            assert two.ask(COUNT, spend="1%").stored
            told = refused(two, BY_CITY)
            assert refused(two.analyst("ana"), BY_CITY) == f"{HERE}."
        assert "the rank key is not the one that it was prepared with" in told
        with joined(first, second, **engine) as two:
            assert not two.ask(BY_CITY, spend="1%").stored


@pytest.mark.slow
@pytest.mark.parametrize("way", ["digits", "file"])
def test_the_key_travels_by_the_environment(pair, monkeypatch, way):
    """As digits, or in a file; without it the second machine says what is missing, and prepares nothing."""
    first, second = pair
    first.open().close()
    with pytest.raises(cu.InvalidStudy, match="its rank key is not here"):
        second.open()
    assert not list(second.prepared.glob("v*"))
    digits = first.key.read_bytes().hex()
    copies_write(second.folder / "travelling", f"{digits}\n".encode())
    monkeypatch.setenv(VARIABLE, digits if way == "digits" else str(second.folder / "travelling"))
    with second.open() as two:
        assert not two.ask(COUNT, spend="1%").stored


@pytest.mark.slow
def test_a_curator_with_declarations_that_were_changed_since_answers_only_what_is_stored(pair):
    """Of caps and of shares; another study on the same ledger is nothing to it."""
    first, second = pair
    with first.open() as one:
        two = joined(first, second)
        two.ask(COUNT, spend="1%")
        with first.open(name="other") as other:
            other.ask(COUNT, spend="2%")
        assert not one.ask(BY_CITY, spend="1%").stored
        two.close()
        with second.open(analysts={"ana": "10%"}) as two:
            assert one.ask(COUNT, spend="1%").stored
            assert "declared otherwise since this curator was opened" in refused(one, COUNT, spend="4%")
            assert refused(one.analyst("ana"), COUNT, spend="4%") == f"{HERE}."
            assert not two.ask(COUNT, spend="5%").stored


@pytest.mark.slow
def test_a_copy_for_other_declarations_is_settled_by_a_machine_that_had_both(pair, tmp_path):
    """The same version, prepared for one more bound: first where it was answered before, then everywhere."""
    first, second = pair
    third = Machine(tmp_path / "third", first.ledger, first.table)
    with first.open() as one:
        one.ask(COUNT, spend="1%")
    third.take_key(first)
    changed = {"bounds": {"visits.spent": (0, 900)}}
    with third.open(**changed) as three:
        assert "for other declarations or settings than on other machines" in refused(three)
    with first.open(**changed) as one:
        assert not one.ask(BY_CITY, spend="1%").stored
    with third.open(**changed) as three:
        assert not three.ask(COUNT, spend="3%").stored
    with joined(first, second, **changed) as two:
        assert not two.ask(COUNT, spend="4%").stored


@pytest.mark.slow
def test_a_version_that_is_being_taken_is_not_settled_by_another_machine(pair, monkeypatch):
    """Whose preparation failed, or is not done, goes on where it began; others wait."""
    first, second = pair
    with first.open() as one:
        joined(first, second).close()
        first.write(visits(seed=2))
        with monkeypatch.context() as patch, first.here():
            patch.setattr(one._session.engine, "prepare", _full_disk)  # noqa: SLF001
            with pytest.raises(OSError, match="full"):
                one.refresh("new rows")
    with second.open() as two:
        assert "another machine took it on and has not prepared it yet" in refused(two)
    with first.open() as one:
        assert not one.ask(COUNT, spend="1%").stored
    second.write(visits(seed=2))
    with second.open() as two:
        assert two.ask(COUNT, spend="1%").stored
        assert not two.ask(COUNT, spend="2%").stored


def _full_disk(*_, **__):
    raise OSError("the disk is full")


@pytest.mark.slow
def test_a_copy_that_was_written_to_is_noticed(pair, capsys):
    """By an open curator, which refuses; and by the next one, which prepares it again; also with the old times."""
    first, _ = pair
    with first.open() as one:
        one.ask(COUNT, spend="1%")
        before = next(first.prepared.glob("v*.duckdb")).stat()
        one._session.engine.close()  # noqa: SLF001 -- a file that is open cannot be written to
        file = first.change_copy()
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert "it is not, or its file has changed since" in refused(one, BY_CITY)
        assert refused(one.analyst("ana"), BY_CITY) == f"{HERE}."
    wrong = first.record()
    with first.open() as one:
        assert "is not what it was: it is prepared again" in capsys.readouterr().err
        assert not one.ask(BY_CITY, spend="1%").stored
    assert first.record()["copies"] == wrong["copies"]


@pytest.mark.slow
def test_a_copy_that_was_touched_or_moved_stays(pair, monkeypatch):
    """Its rows are read once, and its file is remembered."""
    first, _ = pair
    first.open().close()
    file = next(first.prepared.glob("v*.duckdb"))
    os.utime(file)
    monkeypatch.setattr("curador.engines.duckdb.engine.take_version", _full_disk)
    with first.open() as one:
        assert not one.ask(COUNT, spend="1%").stored
    (first.prepared / "copies.json").unlink()  # as of a version that was prepared before there were digests
    with first.open() as one:
        assert not one.ask(COUNT, spend="2%").stored


@pytest.mark.slow
def test_nothing_is_prepared_and_still_compared(pair):
    """prepare = "never": the sources are digested when the version is taken."""
    first, second = pair
    never = {"engine": {"prepare": "never"}}
    with first.open(**never) as one, joined(first, second, **never) as two:
        assert not one.ask(COUNT, spend="1%").stored
        assert not two.ask(BY_CITY, spend="1%").stored
    second.write(with_a_changed_row(second.table))
    (second.prepared / "manifest.json").unlink()
    with second.open(**never) as two:
        assert "rows, units or ranks are others" in refused(two, BY_CITY, spend="2%")


@pytest.mark.slow
def test_neither_key_nor_digest_is_where_others_look(pair):
    """Receipts, logs, previews, refusals, entries; and no byte of the ledger's files has the key."""
    first, second = pair
    shown = []
    with first.open() as one, joined(first, second) as two:
        for curator in (one, two, two.analyst("ana")):
            answer = curator.ask(COUNT, spend="1%")
            shown += [
                answer.receipt.to_json(),
                str(answer),
                json.dumps(curator.log()),
                str(curator.preview(BY_CITY, spend="1%")),
            ]
        shown += [seal(entry)[1] for entry in one.ledger.entries()]
        two._session.engine._intact = False  # noqa: SLF001
        shown += [refused(two, BY_CITY), refused(two.analyst("ana"), BY_CITY)]
    (record,) = first.record()["copies"]
    shown += [log.read_text(encoding="utf-8") for machine in pair for log in machine.prepared.glob("*.log")]
    text = "\n".join(shown)
    assert not any(secret in text for secret in (record["content"], record["key"], first.key.read_bytes().hex()))
    key = first.key.read_bytes()
    for file in first.ledger.parent.glob("shared.ledger*"):
        assert key not in file.read_bytes()
        assert key.hex().encode() not in file.read_bytes()


# ---- the digest ------------------------------------------------------------------------------------------------------------

ROWS = """
    CREATE TABLE t0 (c0 BIGINT, c1 DOUBLE, c2 VARCHAR, c3 DATE, c4 DECIMAL(10, 2), c5 TIMESTAMP, c6 BOOLEAN, g1 INTEGER,
                     __u BIGINT, __h UBIGINT, __r BIGINT, __d2 INTEGER, __f2 BOOLEAN);
    INSERT INTO t0 SELECT i, i / 7, ['', 'a;', NULL, '1:a'][1 + i % 4], DATE '2024-01-01' + i::INTEGER, i / 100,
                   TIMESTAMP '2024-01-01' + to_seconds(i), i % 2 = 0, i, i // 3, hash(i // 3), 1 + i % 3, i % 3, i % 3 = 0
    FROM range(40) AS r(i);
    CREATE TABLE t1 (c0 VARCHAR, c1 VARCHAR, __p BIGINT);
    INSERT INTO t1 VALUES ('x', 'y;2:z', 1), ('', NULL, 2), (NULL, '', 3), ('', NULL, 2);
"""
CHANGES = {
    "c0": "c0 = c0 + 1",
    "c1": "c1 = c1 + 1e-9",
    "c2": "c2 = NULL",
    "c3": "c3 = c3 + 1",
    "c4": "c4 = c4 + 0.01",
    "c5": "c5 = c5 + INTERVAL 1 MICROSECOND",
    "c6": "c6 = NOT c6",
    "g1": "g1 = NULL",
    "__u": "__u = __u + 1",
    "__h": "__h = __h - 1",
    "__r": "__r = __r + 1",
    "__d2": "__d2 = 0",
    "__f2": "__f2 = NULL",
}


def digest_of(*statements, key=b"k", threads=1):
    with contextlib.closing(duckdb.connect(config={"threads": threads})) as connection:
        for statement in (ROWS, *statements):
            connection.execute(statement)
        return copies.digest_rows(connection, lambda purpose: key * 32 + purpose.encode(), about=("study", 1))


def test_the_digest_is_of_rows_and_not_of_their_order():
    """Threads, order, and the order of columns in the table do not enter; the key, the study and the version do."""
    shuffled = "CREATE TABLE o AS SELECT * FROM t0 ORDER BY random(); DROP TABLE t0; ALTER TABLE o RENAME TO t0"
    assert digest_of() == digest_of(threads=4) == digest_of(shuffled)
    assert digest_of() != digest_of(key=b"l")


@pytest.mark.parametrize("column", CHANGES)
def test_one_changed_value_is_another_digest(column):
    """Of every stored column, one value of one row."""
    assert digest_of() != digest_of(f"UPDATE t0 SET {CHANGES[column]} WHERE c0 = 4")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t0 WHERE c0 = 3",
        "INSERT INTO t0 SELECT * FROM t0 WHERE c0 = 3",
        "UPDATE t1 SET c0 = c1, c1 = c0 WHERE __p = 2",
        "UPDATE t1 SET c0 = '' WHERE __p = 3",
        "UPDATE t1 SET c0 = 'x;5:y', c1 = 'z' WHERE __p = 1",
        "ALTER TABLE t0 RENAME c6 TO c7",
        "ALTER TABLE t0 ALTER g1 TYPE BIGINT",
        "ALTER TABLE t1 RENAME TO t2",
        "CREATE TABLE t3 (c0 BIGINT)",
    ],
)
def test_other_rows_columns_and_tables_are_another_digest(statement):
    """A row more or less, NULL for the empty text, a text that looks like two, another name, another type."""
    assert digest_of() != digest_of(statement)


def test_a_type_whose_text_is_not_known_is_refused():
    """A list's text could be that of another list."""
    with pytest.raises(cu.Failed, match="whose text is not known"):
        digest_of("CREATE TABLE t3 (c0 VARCHAR[])")


# ---- seeded bugs -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "scenario"),
    [
        ("nothing is compared", test_a_machine_with_a_changed_row_answers_only_what_is_stored),
        ("compared without the key", test_a_machine_with_another_key_answers_only_what_is_stored),
        (
            "declarations are not compared",
            test_a_curator_with_declarations_that_were_changed_since_answers_only_what_is_stored,
        ),
        ("whoever comes settles", test_a_version_that_is_being_taken_is_not_settled_by_another_machine),
        ("the file is not looked at", test_a_copy_that_was_written_to_is_noticed),
    ],
)
def test_seeded_bugs_are_noticed(pair, monkeypatch, capsys, bug, scenario):
    """Each makes a scenario fail. Ranks that were stored show another key by themselves; those of "never" do not."""
    match bug:
        case "nothing is compared":
            monkeypatch.setattr(machines, "_compare", lambda *_: None)
        case "compared without the key":
            monkeypatch.setattr(copies, "check_key", lambda *_: "0" * 32)
            whole = copies.digest_rows
            monkeypatch.setattr(
                "curador.engines.duckdb.versions.digest_rows",
                lambda connection, _, **others: whole(connection, lambda _: bytes(32), **others),
            )
        case "declarations are not compared":
            monkeypatch.setattr(machines, "is_declared_otherwise", lambda *_: False)
        case "whoever comes settles":
            monkeypatch.setattr("curador.curator.opening.take_on", lambda *_: True)
        case _:
            monkeypatch.setattr(copies, "identify_file", lambda _: (0,))
    given = {"pair": pair, "capsys": capsys, "monkeypatch": monkeypatch, "prepare": "never"}
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        scenario(**{name: given[name] for name in scenario.__code__.co_varnames[: scenario.__code__.co_argcount]})


@pytest.mark.parametrize("column", CHANGES)
def test_a_digest_that_is_blind_to_a_column_is_noticed(monkeypatch, column):
    """The test of every column fails then."""
    whole = copies._written  # noqa: SLF001
    monkeypatch.setattr(copies, "_written", lambda name, kind: "''" if name == column else whole(name, kind))
    with pytest.raises(AssertionError):
        test_one_changed_value_is_another_digest(column)


# ---- keys and places -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "mode", "told"),
    [
        (bytes(32), 0o644, "nobody else can read"),
        (bytes(32), 0o640, "nobody else can read"),
        (bytes(31), 0o600, "a file of 31 bytes"),
        (b"secret-beef" * 9, 0o600, "a file of 99 bytes"),
    ],
)
def test_a_key_that_others_can_read_or_that_is_none_is_refused(tmp_path, monkeypatch, content, mode, told):
    """One sentence, without what the file holds."""
    file = tmp_path / "travelling"
    file.write_bytes(content)
    file.chmod(mode)
    monkeypatch.setenv(VARIABLE, str(file))
    with pytest.raises(cu.InvalidStudy, match=told) as caught:
        given_key()
    assert "beef" not in str(caught.value)


@pytest.mark.parametrize("said", ["beef" * 15, "beef" * 17, "no/such/beef"])
def test_what_is_neither_key_nor_file_is_refused_without_being_shown(monkeypatch, said):
    """A key with a digit too few must not stand in a log."""
    monkeypatch.setenv(VARIABLE, said)
    with pytest.raises(cu.InvalidStudy, match=f"{VARIABLE} must be 64 hexadecimal digits") as caught:
        given_key()
    assert "beef" not in str(caught.value)


def test_a_key_is_read_from_digits_and_files(tmp_path, monkeypatch):
    """Raw bytes and digits; nothing where nothing is said."""
    key = bytes(range(32))
    monkeypatch.delenv(VARIABLE, raising=False)
    assert given_key() is None
    for content in (key, key.hex().encode(), f"{key.hex()}\n".encode()):
        copies_write(tmp_path / "travelling", content)
        monkeypatch.setenv(VARIABLE, str(tmp_path / "travelling"))
        assert given_key() == key
        (tmp_path / "travelling").unlink()
    monkeypatch.setenv(VARIABLE, key.hex().upper())
    assert given_key() == key


def test_a_key_that_lies_in_the_folder_stays(tmp_path, monkeypatch):
    """The environment is for a folder that has none; a study that is forgotten has one of its own."""
    monkeypatch.setenv(VARIABLE, "ab" * 32)
    Folder(tmp_path / "taken").make()
    Folder(tmp_path / "apart").make(apart=True)
    assert (tmp_path / "taken" / "key").read_bytes() == bytes.fromhex("ab" * 32)
    assert (tmp_path / "apart" / "key").read_bytes() != bytes.fromhex("ab" * 32)
    monkeypatch.setenv(VARIABLE, "cd" * 32)
    Folder(tmp_path / "taken").make()
    assert (tmp_path / "taken" / "key").read_bytes() == bytes.fromhex("ab" * 32)


@pytest.mark.parametrize(
    ("ledger", "setting", "place"),
    [
        ("a.ledger", "", "a.ledger.prepared"),
        ("a.ledger", "fast/disk", "fast/disk"),
        ("a.ledger", "/fast/disk", "/fast/disk"),
    ],
)
def test_every_machine_has_a_place_for_its_copy(tmp_path, ledger, setting, place):
    """Where the owner says; else beside the file of the ledger, which lies here also where the ledger is on a server."""
    from duckdb_studies import study_of as small_study
    from duckdb_studies import visits_table

    study = visits_table(tmp_path, visits().rename_columns(["user", "city", "spent", "remark"]))
    placed = small_study(tmp_path, *study.tables, prepared=setting)
    object.__setattr__(placed, "ledger", Path(ledger))
    assert prepared_folder(placed) == tmp_path / place


def test_a_settled_digest_is_read_back():
    """And what is none is none."""
    one = CopyDigest("a", "b", "c")
    assert CopyDigest.read(str(one)) == one
    assert CopyDigest.read("a:b") is None

"""Questions run in a process of their own: read only, closed on all sides, killed at the deadline, silent about why."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from duckdb_studies import engine_of, visits_table

from curador.engines.base import EngineFailed, at_most
from curador.engines.duckdb.versions import Folder, prepared_folder
from curador.engines.lower.sql import GeneratedSQL
from curador.errors import Failed, InvalidStudy, Refused

TABLE = pa.table({"user": [1, 1, 2, None], "spent": [1.0, 2.0, 600.0, 4.0], "city": ["a", "b", "a", "a"]})
ENDLESS = "SELECT sum(hash(a.range, b.range)) AS s FROM range(1000000) a, range(1000000) b"
WORKERS = ["inline", "process"]


def one(text, name="a"):
    return [(name, GeneratedSQL(text))]


@pytest.fixture(params=WORKERS, scope="module")
def engine(request, tmp_path_factory):
    opened = engine_of(visits_table(tmp_path_factory.mktemp(request.param), TABLE), worker=request.param)
    yield opened
    opened.close()


@pytest.fixture
def process_engine(tmp_path):
    opened = engine_of(visits_table(tmp_path, TABLE), worker="process")
    yield opened
    opened.close()


def folder_of(engine):
    return prepared_folder(engine.schema.study)


def log_of(engine):
    return (folder_of(engine) / "incidents.log").read_text()


def test_statements_come_back_as_arrow(engine):
    """By name, exact: wide integers as decimals, never as floats."""
    found = engine.run(
        [
            *one("SELECT sum(CAST(9007199254740993 AS BIGINT)) AS s, count(*) AS n FROM t0", "sums"),
            *one("SELECT c2 AS city, count(*) AS n FROM t0 GROUP BY 1", "groups"),
        ]
    )

    assert found["sums"].to_pylist() == [{"s": 3 * 9007199254740993, "n": 3}]
    assert sorted((row["city"], row["n"]) for row in found["groups"].to_pylist()) == [("a", 2), ("b", 1)]
    assert not any(pa.types.is_floating(field.type) for field in found["sums"].schema)


def test_a_plain_string_is_refused(engine):
    """Only what the lowering made is run; the text is not told."""
    for text in ("SELECT 1 AS secret", type("Other", (str,), {})("SELECT 1 AS secret")):
        with pytest.raises(Failed, match="must be made by the lowering") as raised:
            engine.run([("a", text)])
        assert "secret" not in str(raised.value)


def test_a_failure_tells_an_id_and_nothing_else(engine):
    """The reason, which may hold a value, stands in the owner's log under the id."""
    with pytest.raises(EngineFailed) as raised:
        engine.run(one("SELECT CAST('canary-7391' AS INTEGER) AS x"))
    failure = raised.value
    entry = json.loads(next(line for line in log_of(engine).splitlines() if failure.incident in line))

    assert str(failure) == f"The engine could not answer; the owner finds the reason under incident {failure.incident}."
    assert failure.__cause__ is None
    assert failure.__suppress_context__
    assert "canary-7391" in entry["detail"]
    assert (folder_of(engine) / "incidents.log").stat().st_mode & 0o777 == 0o600
    assert engine.run(one("SELECT 1 AS x"))["a"].to_pylist() == [{"x": 1}]


def test_incidents_are_numbered_at_random(engine):
    """Ids do not count anything."""
    ids = set()
    for _ in range(3):
        with pytest.raises(EngineFailed) as raised:
            engine.run(one("SELECT nothing"))
        ids.add(raised.value.incident)

    assert len(ids) == 3
    assert all(len(one) == 16 for one in ids)


FORBIDDEN = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/*')",
    "ATTACH 'other.duckdb' AS other",
    "COPY t0 TO 'out.csv'",
    "EXPORT DATABASE 'out'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET threads = 1",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "SELECT * FROM TABLE_OF_THE_HOST",
    "INSERT INTO t0 SELECT * FROM t0",
    "DROP TABLE t0",
]
TABLE_OF_THE_HOST = TABLE


def test_nothing_but_the_version_can_be_reached(engine):
    """Files, network, extensions, settings, the host's variables and changes are closed even to statements of ours."""
    for statement in FORBIDDEN:
        with pytest.raises(EngineFailed):
            engine.run(one(statement))

    assert {file.name for file in folder_of(engine).parent.rglob("*") if file.is_file()} == {
        "visits.parquet",
        "key",
        "lock",
        "copies.json",
        "manifest.json",
        "v1.duckdb",
        "incidents.log",
    }


def test_everything_is_the_owners_alone(engine):
    """After preparation, questions and a failure: folders 0700, files 0600."""
    with contextlib.suppress(EngineFailed):
        engine.run(one("SELECT nothing"))
    engine.run(one("SELECT count(*) AS n FROM t0"))
    folder = folder_of(engine)
    modes = {file: (file.is_dir(), file.stat().st_mode & 0o777) for file in [folder, *folder.rglob("*")]}

    assert {mode for is_folder, mode in modes.values() if is_folder} == {0o700}
    assert {mode for is_folder, mode in modes.values() if not is_folder} == {0o600}


def worker_of(engine):
    """The process number of the worker that was used last: the next question gets it, too."""
    return engine._runner._free[-1]._process.pid  # noqa: SLF001 -- the test looks behind the curtain


def gone(pid, seconds=5.0):
    """Whether the process ends in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_the_worker_is_killed_at_the_deadline(tmp_path):
    """A question that does not end is ended, the charge is the caller's; the next one gets a new worker."""
    engine = engine_of(visits_table(tmp_path, TABLE), worker="process", deadline=Fraction(1))
    try:
        engine.run(one("SELECT 1 AS x"))
        pid, began = worker_of(engine), time.monotonic()
        with pytest.raises(EngineFailed):
            engine.run(one(ENDLESS))

        assert 1 <= time.monotonic() - began < 10
        assert gone(pid)
        assert "deadline" in log_of(engine)
        assert engine.run(one("SELECT 2 AS x"))["a"].to_pylist() == [{"x": 2}]
        assert worker_of(engine) != pid
    finally:
        engine.close()


def test_an_inline_question_is_interrupted_at_the_deadline(tmp_path):
    """In this process the deadline is an interrupt."""
    engine = engine_of(visits_table(tmp_path, TABLE), worker="inline", deadline=Fraction(1, 2))
    began = time.monotonic()
    with contextlib.closing(engine):
        with pytest.raises(EngineFailed):
            engine.run(one(ENDLESS))

        assert time.monotonic() - began < 10
        assert engine.run(one("SELECT 2 AS x"))["a"].to_pylist() == [{"x": 2}]


@pytest.mark.slow
def test_a_worker_that_died_is_replaced(process_engine):
    """Also between two questions."""
    process_engine.run(one("SELECT 1 AS x"))
    os.kill(worker_of(process_engine), signal.SIGKILL)

    with contextlib.suppress(EngineFailed):
        process_engine.run(one("SELECT 1 AS x"))
    assert process_engine.run(one("SELECT 2 AS x"))["a"].to_pylist() == [{"x": 2}]


@pytest.mark.slow
def test_the_worker_is_started_at_the_first_question_and_ended_by_close(process_engine):
    """Not before, not longer."""
    assert process_engine._runner is None  # noqa: SLF001
    process_engine.run(one("SELECT 1 AS x"))
    pid = worker_of(process_engine)
    process_engine.close()

    assert gone(pid)


@pytest.mark.slow
def test_the_worker_sees_little_of_its_surroundings(process_engine, monkeypatch, tmp_path):
    """Neither the environment nor the working folder of the parent reach it."""
    monkeypatch.setenv("SECRET_OF_THE_HOST", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "duckdb.py").write_text("raise SystemExit('hijacked')\n")
    process_engine.run(one("SELECT 1 AS x"))
    pid = worker_of(process_engine)
    limits = Path(f"/proc/{pid}/limits").read_text(encoding="utf-8").splitlines()

    assert b"SECRET_OF_THE_HOST" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert any(line.startswith("Max core file size") and line.split()[4] == "0" for line in limits)


PARENT = """
import sys, time
sys.path[:0] = {paths!r}
from pathlib import Path
from duckdb_studies import engine_of, visits_table
from test_duckdb_worker import TABLE, one, worker_of
import threading

engine = engine_of(visits_table(Path(sys.argv[1]), TABLE), worker="process")
engine.run(one("SELECT 1 AS x"))
print(worker_of(engine), flush=True)
threading.Thread(target=lambda: engine.run(one({endless!r})), daemon=True).start()
time.sleep(60)
"""


@pytest.mark.slow
def test_the_worker_does_not_outlive_its_parent(tmp_path):
    """Killed in the middle of a question, the parent takes its worker along. No guard around the script's main is needed."""
    script = textwrap.dedent(PARENT).format(paths=sys.path, endless=ENDLESS)
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        pid = int(parent.stdout.readline())
        time.sleep(0.3)
        assert not gone(pid, 0.1)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()

    assert gone(pid)


@pytest.mark.slow
def test_what_a_killed_worker_had_spilled_is_removed(tmp_path):
    """Rows on disk do not outlive the question; what a dead process left goes with the next version."""
    engine = engine_of(visits_table(tmp_path, TABLE), worker="process", deadline=Fraction(5), memory=100_000_000)
    spill = folder_of(engine) / "spill"
    (spill / "99999999-dead").mkdir()
    seen, finished = set(), threading.Event()

    def watch():
        while not finished.wait(0.02):
            seen.update(file.name for file in spill.rglob("*.tmp"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with pytest.raises(EngineFailed):
            engine.run(one("SELECT sum(x) AS s FROM (SELECT hash(range) AS x FROM range(2000000000) ORDER BY x OFFSET 9)"))
    finally:
        finished.set()
        watcher.join()

    assert seen
    assert [file.name for file in spill.iterdir()] == ["99999999-dead"]
    engine.prepare(2)
    assert list(spill.iterdir()) == []


def test_a_version_that_is_not_there_is_the_owners_error(tmp_path):
    """A question never prepares; it says what to do, and it is no failure of the engine."""
    engine = engine_of(visits_table(tmp_path, TABLE))
    Folder(prepared_folder(engine.schema.study)).remove_versions()

    with contextlib.closing(engine), pytest.raises(InvalidStudy, match="must be prepared"):
        engine.run(one("SELECT 1 AS x"))
    assert issubclass(InvalidStudy, Refused)


# ---- several at once -----------------------------------------------------------------------------------------------


def in_thread(engine, text, found):
    """Run a statement beside others; put its result, or that it failed, into a list."""

    def run():
        try:
            found.append(engine.run(one(text))["a"].to_pylist())
        except EngineFailed:
            found.append("failed")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def processes_of(engine):
    """The process numbers of the workers that run."""
    return {runner._process.pid for runner in engine._runner._made if runner._process is not None}  # noqa: SLF001


def wait_until(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.slow
def test_questions_run_beside_one_another_and_a_killed_worker_is_replaced_alone(process_engine):
    """One that does not end holds nobody up; when its process is killed, the other's goes on."""
    process_engine.run(one("SELECT 1 AS x"))
    first, endless = worker_of(process_engine), []
    thread = in_thread(process_engine, ENDLESS, endless)
    wait_until(lambda: len(process_engine._runner._free) == 1)  # noqa: SLF001
    assert process_engine.run(one("SELECT 2 AS x"))["a"].to_pylist() == [{"x": 2}]
    second = worker_of(process_engine)
    assert processes_of(process_engine) == {first, second}
    os.kill(first, signal.SIGKILL)
    thread.join(60)
    assert endless == ["failed"]
    assert process_engine.run(one("SELECT 3 AS x"))["a"].to_pylist() == [{"x": 3}]
    assert second in processes_of(process_engine)


@pytest.mark.slow
def test_there_are_as_many_workers_as_are_declared(tmp_path):
    """With one, the second question waits; each has its part of the memory, and all threads."""
    alone = engine_of(visits_table(tmp_path, TABLE), worker="process", threads=2, workers=1, deadline=Fraction(3))
    with contextlib.closing(alone):
        endless = []
        thread = in_thread(alone, ENDLESS, endless)
        wait_until(lambda: alone._runner is not None and not alone._runner._free)  # noqa: SLF001
        assert alone.run(one("SELECT current_setting('threads') AS n"))["a"].to_pylist() == [{"n": 2}]
        thread.join(60)
        assert endless == ["failed"]
    (tmp_path / "two").mkdir()
    two = engine_of(visits_table(tmp_path / "two", TABLE), worker="process", threads=2, memory=400_000_000)
    with contextlib.closing(two):
        said = "SELECT current_setting('threads') AS n, current_setting('memory_limit') AS m"
        assert two.run(one(said))["a"].to_pylist() == [{"n": 2, "m": "190.7 MiB"}]


@pytest.mark.slow
def test_closing_ends_what_nobody_waits_for(process_engine):
    """Also in the middle of a question: closing does not wait for its deadline."""
    endless = []
    thread = in_thread(process_engine, ENDLESS, endless)
    wait_until(lambda: process_engine._runner is not None and processes_of(process_engine))  # noqa: SLF001
    pids = processes_of(process_engine)
    process_engine.close()
    thread.join(60)
    assert endless == ["failed"]
    assert all(gone(pid) for pid in pids)


@pytest.mark.slow
def test_an_engine_is_stopped_before_its_deadline_where_less_time_is_left(process_engine):
    """`at_most` is what a clock of public moments leaves it."""
    process_engine.run(one("SELECT 1 AS x"))
    pid = worker_of(process_engine)
    with at_most(0.3), pytest.raises(EngineFailed):
        process_engine.run(one(ENDLESS))
    assert gone(pid)
    with at_most(-1), pytest.raises(EngineFailed):
        process_engine.run(one("SELECT 1 AS x"))
    assert process_engine.run(one("SELECT 1 AS x"))["a"].to_pylist() == [{"x": 1}]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_that_ends_leaves_its_parents_workers_alone(process_engine):
    """It has workers of its own, and ends none of the others."""
    process_engine.run(one("SELECT 1 AS x"))
    pid = worker_of(process_engine)
    child = os.fork()
    if child == 0:
        found = process_engine.run(one("SELECT 2 AS x"))["a"].to_pylist()
        mine = worker_of(process_engine)
        process_engine.close()
        os._exit(0 if found == [{"x": 2}] and mine != pid else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert process_engine.run(one("SELECT 3 AS x"))["a"].to_pylist() == [{"x": 3}]
    assert worker_of(process_engine) == pid


@pytest.mark.slow
def test_on_a_clock_all_workers_are_ready_before_the_first_question(tmp_path):
    """And a new one in place of a killed one: nobody's time goes by while a process starts."""
    engine = engine_of(visits_table(tmp_path, TABLE), worker="process", answer_every=Fraction(5), deadline=Fraction(20))
    with contextlib.closing(engine):
        engine.run(one("SELECT 1 AS x"))
        before = processes_of(engine)
        assert len(before) == 2
        with at_most(0.3), pytest.raises(EngineFailed):
            engine.run(one(ENDLESS))
        after = processes_of(engine)
        assert len(after) == 2
        assert len(after & before) == 1

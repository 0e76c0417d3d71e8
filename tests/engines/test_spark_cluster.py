"""Executors of a real Spark cluster are killed in the middle of questions: the integers before noise stay the same.

Run by `MASTER='local-cluster[2,1,700]' make test-spark`, where the server's executors are processes of their own.
"""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from spark_layout import integers, opened
from test_spark_engine import asked, rows_of, study_on

from curador.engines.base import EngineFailed, at_most

PROCESS = "CURADOR_TEST_SPARK_PROCESS"
"""The number of the server's process, whose children are looked at."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "local-cluster" not in os.environ.get("MASTER", ""),
        reason="no cluster of real Spark: MASTER='local-cluster[2,1,700]'",
    ),
]
QUESTIONS = (
    "SELECT city, COUNT(*) AS n, SUM(spent) AS s FROM visits GROUP BY city",
    "SELECT COUNT(DISTINCT user) AS n, AVG(spent) AS m FROM visits WHERE spent > 20",
    "SELECT day, COUNT(*) AS n FROM (SELECT user, day, SUM(spent) AS t FROM visits GROUP BY user, day) GROUP BY day",
)


def executors():
    """The server's executors: processes of ours alone."""
    parents, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return [one for one in found if is_below(one, parents)]


def is_below(process, parents):
    while process > 1:
        if process == int(os.environ[PROCESS]):
            return True
        process = parents.get(process, 0)
    return False


def kill_soon(seconds, *, every=False):
    time.sleep(seconds)
    for process in executors()[: None if every else 1]:
        os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    rows = pa.concat_tables([rows_of(40_000, seed=seed, people=4_000) for seed in range(5)])
    with contextlib.closing(opened(study_on(tmp_path_factory.mktemp("cluster"), rows))) as found:
        yield found


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_killed_executor_changes_no_integer(engine, adaptive):
    with engine._session(empty=False, until=time.monotonic() + 60) as session:  # noqa: SLF001
        session.conf.set("spark.sql.adaptive.enabled", adaptive)
    wanted = [[integers(one) for one in asked(engine, question)] for question in QUESTIONS]
    killed = 0
    for place, question in enumerate(QUESTIONS):
        before = set(executors())
        thread = threading.Thread(target=kill_soon, args=(0.1,))
        thread.start()
        found = [integers(one) for one in asked(engine, question)]
        thread.join()
        killed += len(before - set(executors()))
        assert found == wanted[place]
    assert killed >= 1


def test_all_executors_killed_again_and_again_end_with_the_deadline(engine):
    """Spark starts new ones without end: the end is ours. The curator goes on."""
    stop = threading.Event()

    def keep_killing():
        while not stop.is_set():
            kill_soon(0.2, every=True)

    thread = threading.Thread(target=keep_killing)
    thread.start()
    try:
        with at_most(10), pytest.raises(EngineFailed):
            [asked(engine, QUESTIONS[2]) for _ in range(100)]
    finally:
        stop.set()
        thread.join()
    assert asked(engine, QUESTIONS[0])

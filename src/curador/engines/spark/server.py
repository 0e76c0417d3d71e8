"""A Spark Connect server: sessions on it, statements with an end, and nothing of its errors beyond this room.

What a server says of a failure may hold values of rows: it goes to the owner's log, whole, and nowhere else. A statement that
is late is interrupted by its tag, and whoever waited goes on at once, also where the server is gone and does not answer.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from curador.engines.duckdb.worker import BrokenError
from curador.engines.lower.dialect_spark import SAIL, SPARK
from curador.errors import InvalidStudy
from curador.study.rules import broken_rule
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from curador.engines.lower.dialect_spark import Spark
    from curador.study.model import EngineSettings

TOKEN = "CURADOR_SPARK_TOKEN"  # noqa: S105 -- the name of a variable
"""Where the environment has the token of a server that wants one: it never stands in a study file."""

Session: TypeAlias = Any
"""A session of pyspark's, which has no types of its own to show."""

_URL = re.compile(
    r"sc://(?P<host>[A-Za-z0-9.\-_]+|\[[0-9a-fA-F:]+\])(?::(?P<port>[0-9]{1,5}))?(?P<rest>/(?:;[^;=]+=[^;=]*)*)?"
)
_SECRETS = ("token", "password", "secret", "key", "authorization")
_PORT = "15002"
_SPARK = re.compile(r"(\d+)\.\d+\.\d+.* [0-9a-f]{40}")
_OLDEST = 4

SETTINGS = {
    # what times mean, and that names and numbers are what they are, whatever the server's own settings say
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.charVarcharAsString": "false",
    # one person's row must not decide whether everybody's rows are read: no part of a table is left out by its statistics
    "spark.sql.cbo.enabled": "false",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation",
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
}
"""Set in every session; Sail knows the first few and keeps the others for nothing."""


@dataclass(frozen=True, slots=True)
class SparkAddress:
    """Where a server is: what may be told of it, and what a client is given."""

    place: str
    url: str


def read_address(settings: EngineSettings) -> SparkAddress:
    """Return the address that a study names; refuse one that is none, and one that holds a secret."""
    where = ("engine", "url")
    found = _URL.fullmatch(settings.url)
    rest = "" if found is None else (found["rest"] or "")
    if any(f"{word}=" in rest.lower() for word in _SECRETS):
        hint = f"take it out and put it into the environment, {TOKEN}"
        raise broken_rule(where, "an address without a secret", Plain("one with a secret"), hint)
    if found is None:
        raise broken_rule(where, 'the address of a Spark Connect server, such as "sc://host:15002"', settings.url)
    place = f"sc://{found['host'].lower()}:{found['port'] or _PORT}"
    token = os.environ.get(TOKEN, "").strip()
    rest = rest.rstrip("/;") or "/"
    return SparkAddress(place, f"{place}{rest}{f';token={token}' if token else ''}")


@dataclass(frozen=True, slots=True)
class SparkServer:
    """A server that answers, and how it spells."""

    address: SparkAddress
    dialect: Spark

    def open_session(self) -> Session:
        """Return a session of its own."""
        session = _new_session(self.address)
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        return session


def connect(settings: EngineSettings, seconds: float = 60.0) -> SparkServer:
    """Return the server of a study; raises InvalidStudy where it does not answer, without its words."""
    address = read_address(settings)
    try:
        (version,) = within(seconds, lambda: _new_session(address).sql("SELECT version()").toArrow().column(0).to_pylist())
    except BrokenError:
        hint = "see that it runs, that this machine reaches it and that its token is the right one"
        raise InvalidStudy.must_be("engine.url", "a Spark Connect server that answers", address.place, hint) from None
    spark = _SPARK.fullmatch(version)
    if spark is not None and int(spark[1]) < _OLDEST:
        raise InvalidStudy.must_be("engine.url", f"a server of Spark {_OLDEST} or later", f"Spark {spark[1]}")
    return SparkServer(address, SAIL if spark is None else SPARK)


@contextlib.contextmanager
def main_with_a_file() -> Generator[None]:
    """Give a main module without a file one while the client is imported.

    The client takes such a process, `python -c` among them, for a run of its own doctests, looks for a Spark beside it, and
    ends the process.
    """
    main = sys.modules["__main__"]
    lacks = not hasattr(main, "__file__")
    if lacks:
        main.__file__ = "<none>"
    try:
        yield
    finally:
        if lacks:
            del main.__file__


def _new_session(address: SparkAddress) -> Session:
    try:
        with warnings.catch_warnings(), main_with_a_file():
            warnings.simplefilter("ignore")  # of versions of pandas, which is not used
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession
    except ImportError:
        message = 'pyspark-client must be installed to use kind = "spark".'
        raise InvalidStudy(message, hint="pip install 'curador[spark]'") from None
    warnings.filterwarnings("ignore", module="pyspark")  # what a server or its client says is told in the owner's log alone
    session = SparkSession.builder.remote(address.url).create()
    # a server that is gone is not asked for ten minutes: threads that do so outlive what they were asked for
    session.client.set_retry_policies([DefaultPolicy(max_retries=6, max_backoff=4_000)])
    return session


# ---- statements with an end --------------------------------------------------------------------------------------------


def within(seconds: float, work: Callable[[], Any], interrupt: Callable[[], None] = lambda: None) -> Any:
    """Return what some work gives, or raise BrokenError: it failed, or it is not done in time. A late one is interrupted.

    Nobody waits for work that is late, nor for its interruption: a server that is gone answers neither.
    """
    if seconds <= 0:
        raise BrokenError("The deadline passed before the statement began.")
    outcome: list[Any] = []
    problems: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as problem:  # noqa: BLE001 -- told in the thread that waits
            problems.append(problem)
        done.set()

    threading.Thread(target=run, daemon=True).start()
    if not done.wait(seconds):
        threading.Thread(target=_quietly, args=(interrupt,), daemon=True).start()
        raise BrokenError("The deadline passed.")
    if problems:
        if isinstance(problems[0], InvalidStudy):
            raise problems[0]
        raise BrokenError(f"{type(problems[0]).__name__}: {problems[0]}") from None
    return outcome[0]


def _quietly(work: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):
        work()


def fetch(session: Session, statement: str, until: float) -> Any:
    """Return a statement's result as an Arrow table, by a moment of the monotonic clock."""
    return run_tagged(session, lambda: session.sql(statement).toArrow(), until)


def run_tagged(session: Session, work: Callable[[], Any], until: float) -> Any:
    """Run some work on a session under a tag by which it is interrupted when it is late."""
    tag = f"curador-{secrets.token_hex(8)}"

    def run() -> Any:
        session.addTag(tag)  # of this thread alone
        return work()

    return within(until - time.monotonic(), run, lambda: session.interruptTag(tag))


def close_session(session: Session, *, patience: float = 2.0) -> None:
    """End a session; one that does not answer in these seconds is left alone."""
    ending = threading.Thread(target=_quietly, args=(session.stop,), daemon=True)
    ending.start()
    ending.join(patience)

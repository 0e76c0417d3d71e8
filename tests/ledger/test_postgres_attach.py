"""A ledger on a server, known to two machines: each has a file that says where it is, and a witness of its own."""

from __future__ import annotations

import shutil
import threading

import pytest
from ledgers import PURE, ask, create, reopen, request
from typer.testing import CliRunner

from curador.cli.app import app
from curador.errors import InvalidStudy
from curador.ledger.ledger import Ledger
from curador.ledger.pointer import read_pointer, write_pointer
from curador.ledger.witness import recall, witness_of
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.study.file import parse_study

pytestmark = pytest.mark.slow
WHOSE = {"budget": PURE, "adjacency": ADD_OR_REMOVE_ONE, "unit": "person"}
STUDY = """
version = 1
name = "shop"
budget = { epsilon = 1 }
ledger = "postgresql://writer@host/db?schema=shop"
[unit]
name = "person"
[tables.visits]
source = "visits.parquet"
unit = "user_id"
caps = { rows = 1 }
"""


def test_a_second_machine_is_attached(place, tmp_path):
    """It reads every entry, begins a witness, and leaves an entry; then both spend from one budget."""
    here, there = tmp_path / "here" / "a.ledger", tmp_path / "there" / "a.ledger"
    for path in (here, there):
        path.parent.mkdir()
    with create(here, server=place.url) as first:
        ask(first, request(epsilon="0.25"))
        with pytest.raises(InvalidStudy, match="a new ledger must be in a schema that has none"):
            create(there, server=place.url)
        with Ledger.attach(there, place.url, reason="a second machine", **WHOSE) as second:
            assert (second.id, second.spent()) == (first.id, first.spent())
            assert list(second.entries())[-1].note == "attached on another machine: a second machine"
            assert recall(witness_of(there)).head == second.head
            ask(second, request(epsilon="0.5"))
            assert first.spent().epsilon == second.spent().epsilon == request(epsilon="0.75").amounts.epsilon
            first.verify()
    assert read_pointer(there) == read_pointer(here) == place.url
    with reopen(there) as again:
        again.verify()
    with pytest.raises(InvalidStudy, match="a new ledger must be where no file is"):
        Ledger.attach(there, place.url, reason="twice", **WHOSE)


def test_a_machine_that_lost_its_file_is_held_to_its_witness(place, tmp_path):
    """Attached again with the witness of another ledger beside it: refused."""
    path = tmp_path / "a.ledger"
    create(path, server=place.url).close()
    path.unlink()
    with Ledger.attach(path, place.url, reason="the file was lost", **WHOSE) as ledger:
        assert ledger.head.sequence == 1
    other = tmp_path / "b.ledger"
    create(other).close()
    path.unlink()
    shutil.copy(witness_of(other), witness_of(path))
    with pytest.raises(InvalidStudy, match="ledger must be the one that these data had"):
        Ledger.attach(path, place.url, reason="another one's", **WHOSE)


@pytest.mark.parametrize(
    "content", [b'{"address"', b'{"address": 1, "ledger": "a", "version": 1}', b'{"address": "x", "version": 2}']
)
def test_a_file_that_says_nothing_is_refused(content, tmp_path):
    """Doubt is refusal, and nothing is asked of any server."""
    (tmp_path / "a.ledger").write_bytes(content)
    with pytest.raises(InvalidStudy, match="a file that says where it is kept"):
        reopen(tmp_path / "a.ledger")


def test_a_pointer_is_written_once(tmp_path):
    """And a SQLite file is none."""
    write_pointer(tmp_path / "a.ledger", "postgresql://writer@host/db", "id")
    assert read_pointer(tmp_path / "a.ledger") == "postgresql://writer@host/db"
    with pytest.raises(FileExistsError):
        write_pointer(tmp_path / "a.ledger", "postgresql://writer@host/db", "id")
    create(tmp_path / "b.ledger").close()
    assert read_pointer(tmp_path / "b.ledger") is None


def test_a_study_says_where_its_ledger_is_kept(tmp_path):
    """As an address in the place of a file; its file lies beside the study under the study's name, and it reads back."""
    study = parse_study(STUDY, folder=tmp_path)
    assert study.server == "postgresql://writer@host/db?schema=shop"
    assert study.ledger_path == tmp_path / "shop.ledger"
    assert study.shared
    assert parse_study(study.to_toml(), folder=tmp_path) == study
    (tmp_path / "study.toml").write_text(STUDY.replace(study.server, "shop.ledger"), encoding="utf-8")
    result = CliRunner().invoke(app, ["attach", str(tmp_path / "study.toml"), "why"])
    assert result.exit_code != 0
    assert "ledger must be on a server" in f"{result.output}{result.exception}"


def test_many_threads_share_a_ledger_on_a_server(place, tmp_path):
    """Whoever waits is in the next batch, on this store too."""
    with create(tmp_path / "a.ledger", server=place.url) as ledger:
        threads = [threading.Thread(target=lambda: ask(ledger, request(epsilon="0.01"))) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.head.sequence == 24
        ledger.verify()

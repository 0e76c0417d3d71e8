"""What a register and a marker meet seldom: a table that is no file, a marker that is being written, a busy register."""
# ruff: noqa: SLF001 -- where a patience is shortened

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from curador.engines.base import PrivateSource
from curador.errors import InvalidStudy
from curador.ledger import register as registers
from curador.ledger.markers import PREFIX, leave_markers, marked_ledgers
from curador.ledger.register import Register, SeenSource

NO_FILE = PrivateSource("visits", "person", "server/visits", "visits")


def of_file(path):
    return PrivateSource("visits", "person", str(path), file=path)


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "visits.csv"
    made.write_text("user_id\n1\n", encoding="utf-8")
    return made


def test_what_is_no_file_has_no_contents_and_no_marker(path, tmp_path):
    """A table on a server is looked at with a file: the file is read and marked, the other is known by its place."""
    with Register(None) as register:
        seen = register.look([NO_FILE, of_file(path)])
    assert seen[0] == SeenSource(NO_FILE)
    assert seen[1].fingerprint
    assert leave_markers("a" * 32, tmp_path / "a.ledger", "visits", seen)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(PREFIX)] == [PREFIX + "a" * 32]
    assert not marked_ledgers(seen[:1])


def test_a_marker_that_is_being_written_is_none_yet(path, tmp_path):
    """Nobody reads half of one; what is no marker at all is refused."""
    with Register(None) as register:
        seen = register.look([of_file(path)])
    leave_markers("a" * 32, tmp_path / "a.ledger", "visits", seen)
    (tmp_path / f"{PREFIX}{'b' * 32}.0123456789abcdef.new").write_text("{", encoding="utf-8")
    assert [one.id for one in marked_ledgers(seen)] == ["a" * 32]
    place = tmp_path / f"{PREFIX}{'b' * 32}"
    for files in ('["visits.csv"]', '[["visits.csv", ""]]', '[["visits.csv", "", 1]]'):
        text = f'{{"version": 1, "ledger": "b", "path": "b", "study": "b", "files": {files}}}'
        place.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidStudy, match="the marker beside the data must be a readable file"):
            marked_ledgers(seen)


def test_what_was_read_of_a_large_file_is_kept_at_once(tmp_path, monkeypatch):
    """An interrupt while the next one is read does not cost it; small ones are written down together."""
    files = []
    for name in ("one", "two"):
        files.append(tmp_path / f"{name}.csv")
        files[-1].write_text(f"{name}\n", encoding="utf-8")
    real, sources = registers._read_all, [of_file(one) for one in files]

    def interrupted(*given):
        found = real(*given)
        yield next(found)
        raise KeyboardInterrupt

    for largest, kept in ((10**9, 0), (0, 1)):
        monkeypatch.setattr(registers, "_LARGE", largest)
        with Register(tmp_path / f"register-{kept}") as register:
            monkeypatch.setattr(registers, "_read_all", interrupted)
            with pytest.raises(KeyboardInterrupt):
                register.look(sources)
            monkeypatch.setattr(registers, "_read_all", real)
            assert sum(bool(one.fingerprint) for one in register.look(sources, contents=False)) == kept


def test_a_register_is_its_owners_alone(tmp_path):
    """Also one that somebody made readable."""
    place = tmp_path / "register"
    place.touch(0o644)
    place.chmod(0o644)
    with Register(place):
        assert place.stat().st_mode & 0o777 == 0o600


def test_a_register_that_another_process_holds_is_waited_for(tmp_path, monkeypatch):
    """For a while; then it is told to try again, and not that it is damaged."""
    place = tmp_path / "register"
    Register(place).__exit__(None, None, None)
    monkeypatch.setattr(registers, "PATIENCE", 0.01)
    with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InvalidStudy, match="another process is making a ledger: try again"):
            Register(place)

"""The files around a ledger: where it may lie, its witness, its marker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from curador.errors import InvalidStudy
from curador.ledger import sqlite
from curador.ledger.opening import claim, marker_of, read_marker
from curador.ledger.sqlite import kind_of, require_local, require_regular, resolve_path
from curador.ledger.witness import Head, WitnessedHead, recall, remember, sweep, witness_of

MOUNTS = r"""
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local xfs rw 0 0
//server/share /mnt/my\040share cifs rw 0 0
ana@host: /mnt/ssh fuse.sshfs rw 0 0
/dev/sdc1 /mnt/usb fuseblk rw 0 0
tmpfs /mnt/twice tmpfs rw 0 0
server:/x /mnt/twice nfs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/a.ledger", "ext4"),
        ("/home/ana/a.ledger", "nfs4"),
        ("/home/local/a.ledger", "xfs"),
        ("/homework/a.ledger", "ext4"),
        ("/mnt/my share/a.ledger", "cifs"),
        ("/mnt/ssh/a/b.ledger", "fuse.sshfs"),
        ("/mnt/usb/a.ledger", "fuseblk"),
        ("/mnt/twice/a.ledger", "nfs"),
    ],
)
def test_network_file_systems_are_refused(path, kind, tmp_path, monkeypatch):
    """The nearest mount decides, the last one where two lie on the same point."""
    table = tmp_path / "mounts"
    table.write_text(MOUNTS, encoding="utf-8")
    monkeypatch.setattr(sqlite, "MOUNTS", table)

    assert kind_of(Path(path), MOUNTS) == kind
    if kind in {"ext4", "xfs", "fuseblk"}:
        require_local(Path(path))
    else:
        with pytest.raises(InvalidStudy, match="ledger must be on a local file system"):
            require_local(Path(path))


def test_a_system_without_a_list_of_mounts(tmp_path, monkeypatch):
    """Where nothing is known nothing is refused."""
    monkeypatch.setattr(sqlite, "MOUNTS", tmp_path / "absent")
    require_local(Path("/home/ana/a.ledger"))
    assert kind_of(Path("/a"), "") is None


def test_a_ledger_is_a_plain_file(tmp_path):
    """No link, no folder, no hole."""
    real, link = tmp_path / "a.ledger", tmp_path / "b.ledger"
    real.touch()
    link.symlink_to(real)
    require_regular(real)
    for path, rule in (
        (link, "a file, not a symbolic link"),
        (tmp_path, "a plain file"),
        (tmp_path / "c", "a file that exists"),
    ):
        with pytest.raises(InvalidStudy, match=f"ledger must be {rule}"):
            require_regular(path)
    assert resolve_path(tmp_path / "x" / ".." / "b.ledger") == tmp_path.resolve() / "b.ledger"


# ---- the witness --------------------------------------------------------------------------------------------------------


def test_a_witness_remembers(tmp_path):
    """The last head, readable by its owner only whatever the umask, with no trace of how it was written."""
    path = witness_of(tmp_path / "a.ledger")
    assert recall(path) is None
    before = os.umask(0)
    try:
        remember(path, "one", 3, "abc", anew=True)
    finally:
        os.umask(before)
    remember(path, "one", 4, "def")

    assert recall(path) == WitnessedHead("one", Head(4, "def"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["a.ledger.head"]
    with pytest.raises(FileExistsError):
        remember(path, "two", 0, "", anew=True)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b'{"version": 2}', b'{"version":1,"ledger":"a","sequence":"1","hash":"b"}']
)
def test_a_witness_that_cannot_be_read(content, tmp_path):
    """Doubt is refusal."""
    path = tmp_path / "a.head"
    path.write_bytes(content)
    with pytest.raises(InvalidStudy, match="witness must be a readable file"):
        recall(path)


def test_a_witness_is_on_disk_before_it_is_in_place(tmp_path, monkeypatch):
    """A power cut leaves the old witness or the new one, never an empty file."""
    path, steps = tmp_path / "a.head", []
    real, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (steps.append("sync"), real(handle)))
    monkeypatch.setattr(Path, "replace", lambda self, target: (steps.append("replace"), replace(self, target))[1])
    remember(path, "one", 3, "abc")

    assert steps == ["sync", "replace"]


def test_only_old_leftovers_are_swept(tmp_path):
    """Temporary files of killed processes go after an hour; nothing else does."""
    old, new, other = (tmp_path / f"{name}.{'0' * 16}.new" for name in ("a.ledger", "a.ledger.head", "b.ledger"))
    named = tmp_path / "a.ledger.old.new"
    for path in (old, new, other, named):
        path.touch()
    for path in (old, other, named):
        os.utime(path, (0, 0))
    sweep(tmp_path / "a.ledger")
    sweep(tmp_path / "a.ledger.head")

    assert sorted(tmp_path.iterdir()) == sorted([new, other, named])


# ---- the marker ---------------------------------------------------------------------------------------------------------


def test_data_belong_to_one_ledger(tmp_path):
    """The first claim stands; the same again is nothing new; another one needs to know whose place it takes."""
    assert read_marker(tmp_path, "visits") is None
    claim(tmp_path, "visits", "one")
    claim(tmp_path, "visits", "one")

    assert read_marker(tmp_path, "visits") == "one"
    assert (tmp_path / ".visits.ledger-id").stat().st_mode & 0o777 == 0o600
    with pytest.raises(InvalidStudy, match=r"ledger must be the one that these data had \(one\); got 'two'"):
        claim(tmp_path, "visits", "two")
    claim(tmp_path, "visits", "two", instead_of="one")
    assert read_marker(tmp_path, "visits") == "two"
    assert read_marker(tmp_path, "others") is None


def test_markers_that_cannot_be(tmp_path):
    """A name that no file can have, a folder that is not there, a file that says nothing."""
    for name in ("../up", "", "a\0b", "a\\b"):
        with pytest.raises(InvalidStudy, match="name must be"):
            marker_of(tmp_path, name)
    with pytest.raises(InvalidStudy, match="folder of the data must be"):
        claim(tmp_path / "absent", "visits", "one")
    marker_of(tmp_path, "visits").write_bytes(b"\xff")
    with pytest.raises(InvalidStudy, match="marker beside the data must be"):
        read_marker(tmp_path, "visits")

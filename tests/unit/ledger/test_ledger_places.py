"""The files around a ledger: where it may lie, its witness, its marker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from curador.errors import InvalidStudy
from curador.ledger import sqlite
from curador.ledger.opening import claim, marker_of, read_marker
from curador.ledger.sqlite import kind_of, require_local, require_regular, resolve_path
from curador.ledger.witness import (
    SLOT,
    Head,
    WitnessedHead,
    WitnessSlots,
    make,
    read_slot,
    recall,
    slot_of,
    sweep,
    witness_of,
)

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
        make(path, "one", 3, "abc", replace=False)
    finally:
        os.umask(before)
    witness = WitnessSlots(path, "one")
    for sequence, hash_ in ((4, "def"), (6, "ghi"), (5, "what came earlier and is written later")):
        witness.remember(sequence, hash_)
    witness.close()

    assert recall(path) == WitnessedHead("one", Head(6, "ghi"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["a.ledger.head"]
    with pytest.raises(FileExistsError):
        make(path, "two", 0, "", replace=False)


V1 = b'{"version": 1, "ledger": "one", "sequence": 3, "hash": "abc"}\n'


def test_a_witness_of_version_1(tmp_path):
    """It is read, and the next write makes two slots of it, which know what it knew."""
    path = tmp_path / "a.head"
    path.write_bytes(V1)
    assert recall(path) == WitnessedHead("one", Head(3, "abc"))
    witness = WitnessSlots(path, "one")
    witness.remember(4, "def")
    witness.close()

    assert len(path.read_bytes()) == 2 * SLOT
    assert {read_slot(path.read_bytes()[place:][:SLOT]).head.sequence for place in (0, SLOT)} == {3, 4}


def two_slots(*slots):
    return b"".join(b"?" * SLOT if one is None else slot_of(*one) for one in slots)


@pytest.mark.parametrize(
    ("slots", "seen"),
    [
        ((("one", 3, "a"), ("one", 4, "b")), WitnessedHead("one", Head(4, "b"))),
        ((("one", 5, "a"), ("one", 4, "b")), WitnessedHead("one", Head(5, "a"))),
        ((None, ("one", 4, "b")), WitnessedHead("one", Head(4, "b"), torn=True)),
        ((("one", 5, "a"), None), WitnessedHead("one", Head(5, "a"), torn=True)),
    ],
)
def test_the_newer_slot_is_what_was_seen(slots, seen, tmp_path):
    """Of two whole slots the newer one; of one that is left it is said that it is."""
    path = tmp_path / "a.head"
    path.write_bytes(two_slots(*slots))

    assert recall(path) == seen


def test_every_byte_of_a_slot_is_checked():
    """Whatever is written over a slot's text, it is torn: no number and no hash is read that was not written."""
    whole = slot_of("one", 41, "f" * 64)
    length = len(whole.rstrip())
    for place in range(length):
        for other in (b" ", b"0", b"4"):
            changed = whole[:place] + other + whole[place + 1 :]
            assert changed == whole or read_slot(changed) is None
    assert all(read_slot(whole[:cut].ljust(SLOT, b"\0")) is None for cut in range(length))


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"\xff", b'{"version": 2}', b'{"version":1,"ledger":"a","sequence":"1","hash":"b"}'),
        two_slots(None, None),
        two_slots(("one", 3, "a"), ("two", 4, "b")),
        two_slots(("one", 3, "a"), ("one", 4, "b"))[:-1],
        slot_of("one", 3, "a"),
    ],
)
def test_a_witness_that_cannot_be_read(content, tmp_path):
    """Doubt is refusal: no line, both slots torn, slots of two ledgers, a file that was cut."""
    path = tmp_path / "a.head"
    path.write_bytes(content)
    with pytest.raises(InvalidStudy, match="witness must be a readable file"):
        recall(path)


def test_a_witness_is_on_disk_before_it_is_in_place(tmp_path, monkeypatch):
    """A power cut leaves no witness or a whole one, never an empty file."""
    path, steps = tmp_path / "a.head", []
    real, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (steps.append("sync"), real(handle)))
    monkeypatch.setattr(Path, "replace", lambda self, target: (steps.append("replace"), replace(self, target))[1])
    make(path, "one", 3, "abc", replace=True)

    assert steps == ["sync", "replace", "sync"]  # the last is that of its name


def test_the_older_slot_is_written_and_synced(tmp_path, monkeypatch):
    """What is newer stays until the other one is on disk."""
    path, synced, real = tmp_path / "a.head", [], os.fdatasync
    make(path, "one", 0, "a", replace=False)
    witness = WitnessSlots(path, "one")

    def watched(handle):
        real(handle)
        synced.append([read_slot(path.read_bytes()[place:][:SLOT]).head.sequence for place in (0, SLOT)])

    monkeypatch.setattr(os, "fdatasync", watched)
    for sequence in (1, 2, 3, 4):
        witness.remember(sequence, "b")
    witness.close()

    assert synced == [[0, 0], [1, 0], [1, 2], [3, 2], [3, 4]]  # first what stood there: nobody knows who wrote it


def test_a_witness_that_was_replaced_is_written_anew(tmp_path):
    """What is written goes to the file that has the name, also after it was removed or replaced by another."""
    path = tmp_path / "a.head"
    make(path, "one", 0, "a", replace=False)
    witness = WitnessSlots(path, "one")
    witness.remember(1, "b")
    make(path, "one", 0, "a", replace=True)
    witness.remember(2, "c")
    assert recall(path) == WitnessedHead("one", Head(2, "c"))
    path.unlink()
    witness.remember(3, "d")
    witness.close()

    assert recall(path) == WitnessedHead("one", Head(3, "d"))


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

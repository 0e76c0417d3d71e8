"""Where a ledger may lie: a regular file on a disk of this machine.

SQLite's locks and shared memory do not work across machines, so two curators on a network share would both believe that
they hold the ledger. The list of mounts is read where the system has one; elsewhere nothing is known and nothing refused.
"""

from __future__ import annotations

import re
from pathlib import Path

from curador.errors import InvalidStudy, sentence

MOUNTS = Path("/proc/self/mounts")
_SHARED = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "juicefs", "lustre"),
    *("ncpfs", "nfs", "nfs4", "orangefs", "prl_fs", "pvfs2", "smb", "smb2", "smb3", "smbfs", "vboxsf"),
    *("vmhgfs", "webdav"),
)
_SHARED_BY_FUSE = (
    *("beegfs", "ceph", "ceph-fuse", "davfs", "davfs2", "gcsfuse", "glusterfs", "goofys", "juicefs", "mfs"),
    *("moosefs", "rclone", "s3fs", "seaweedfs", "smbnetfs", "sshfs", "vmhgfs-fuse"),
)
REMOTE = frozenset(_SHARED) | {f"fuse.{name}" for name in _SHARED_BY_FUSE}


def settled_path(path: Path | str) -> Path:
    """Return the one absolute name of a file that may not exist yet; its own last part is not followed."""
    place = Path(path)
    return place.parent.resolve() / place.name


def require_regular(path: Path) -> None:
    """Refuse what is not a plain file: a link would give one ledger two names, and so two witnesses."""
    if path.is_symlink():
        raise InvalidStudy(sentence("ledger", "a file, not a symbolic link", str(path), "name the file itself"))
    if not path.exists():
        hint = "check the name; a study that had a ledger starts without it only as a new one, with a reason"
        raise InvalidStudy(sentence("ledger", "a file that exists", str(path), hint))
    if not path.is_file():
        raise InvalidStudy(sentence("ledger", "a plain file", str(path)))


def require_local(path: Path) -> None:
    """Refuse a file system that other machines share."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = kind_of(path, mounts)
    if kind in REMOTE:
        hint = "locks do not hold between machines; put the ledger on a local disk"
        raise InvalidStudy(sentence("ledger", "on a local file system", f"{path} on {kind}", hint))


def kind_of(path: Path, mounts: str) -> str | None:
    """Return the type of the file system that a path lies on, by the last mount on its nearest parent."""
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[1]))
        if path.is_relative_to(point):
            depth = len(point.parts)
            if best is None or depth >= best[0]:
                best = depth, fields[2]
    return None if best is None else best[1]

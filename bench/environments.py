"""One virtual environment a peer, under `.bench/<name>/`, made once.

Promise: a peer never shares an interpreter with curador, nothing is installed that the task does not ask
for, and a peer that cannot be installed is an answer with a reason, not an exception.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench"
OURS = "curador"

INSTALL_SECONDS = 1800  # opacus brings torch: several gigabytes

PACKAGES: dict[str, tuple[str, ...]] = {
    "dpacc": ("dp-accounting",),
    "prv": ("prv-accountant",),
    "autodp": ("autodp",),
    "opendp": ("opendp",),
    "opendp-polars": ("opendp[polars]", "pyarrow"),
    "opendp-sklearn": ("opendp[scikit-learn]",),
    "smartnoise": ("smartnoise-sql", "pyarrow"),
    "pipelinedp": ("pipeline-dp", "pyarrow", "setuptools"),
    "opacus": ("opacus",),
    "tmlt": ("tmlt.analytics",),
    # its logistic regression does not run with a later scikit-learn
    "diffprivlib": ("diffprivlib", "scikit-learn==1.7.2"),
    # both hash text, which xxhash 4 refuses; pure-ldp does not name what its RAPPOR imports, nor the other scipy
    "pure-ldp": ("pure-ldp", "xxhash<4", "scikit-learn", "statsmodels"),
    "multi-freq-ldpy": ("multi-freq-ldpy", "xxhash<4", "scipy"),
}


@dataclass(frozen=True, slots=True)
class Environment:
    """An interpreter to measure in, or the reason why there is none."""

    name: str
    python: Path | None
    reason: str = ""


def ours() -> Environment:
    """Return the environment that runs this file: curador is installed in it."""
    return Environment(OURS, Path(sys.executable))


def ready(name: str) -> Environment:
    """Return the environment of that name, made now if it does not exist or its packages changed."""
    place = HOME / name
    python = place / "bin" / "python"
    marker = place / ".ready"
    wanted = "\n".join(PACKAGES[name])
    if marker.exists() and marker.read_text() == wanted and python.exists():
        return Environment(name, python)
    print(f"installing {', '.join(PACKAGES[name])} into {place.relative_to(ROOT)} (once) ...", flush=True)
    reason = _make(place, python, PACKAGES[name])
    if reason:
        print(f"  not installed: {reason}", flush=True)
        return Environment(name, None, reason)
    marker.write_text(wanted)
    return Environment(name, python)


def _make(place: Path, python: Path, packages: tuple[str, ...]) -> str:
    """Make the environment and install into it; return what went wrong, or nothing."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    for command in ([sys.executable, "-m", "venv", str(place)], pip):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{type(error).__name__} while installing"
        if done.returncode != 0:
            return last_words(done.stderr, "installation failed")
    return ""


def last_words(text: str, otherwise: str) -> str:
    """Return the line of a program's complaint that says the most: its last error line, cut to a row."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR") or "Error" in line.split(":")[0]]
    chosen = (errors or lines or [otherwise])[-1]
    return chosen if len(chosen) <= 160 else chosen[:157] + "..."

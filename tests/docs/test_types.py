"""Types hold in every landed state."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_types_hold():
    checker = Path(sys.executable).with_name("pyrefly")
    done = subprocess.run(
        [checker, "check", "--python-interpreter-path", sys.executable], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr

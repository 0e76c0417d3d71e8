"""The rank key on its way between machines: by a file or by the environment, never through a ledger.

The key of a prepared folder lies in it, `key`, 32 random bytes. A second machine must have the same one before it prepares:
as that very file, or from CURADOR_RANK_KEY, which is 64 hexadecimal digits or the path of a file. A key that lies in the
folder stays: the variable is asked only where there is none.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from curador.errors import InvalidStudy
from curador.study.values import Plain

VARIABLE = "CURADOR_RANK_KEY"
KEY_BYTES = 32
_DIGITS = re.compile(r"[0-9a-fA-F]{64}")
_RULE = f"{2 * KEY_BYTES} hexadecimal digits, or a file that has them or {KEY_BYTES} bytes"


def given_key() -> bytes | None:
    """Return the key that the environment has or points at; None where it says nothing. What it says is never shown."""
    said = os.environ.get(VARIABLE, "").strip()
    if not said:
        return None
    if _DIGITS.fullmatch(said):
        return bytes.fromhex(said)
    try:
        content = _read_private(Path(said))
    except (OSError, ValueError):
        raise InvalidStudy.must_be(VARIABLE, _RULE, Plain("neither")) from None
    if len(content) == KEY_BYTES:
        return content
    digits = content.strip().decode("ascii", errors="replace")
    if not _DIGITS.fullmatch(digits):
        raise InvalidStudy.must_be(VARIABLE, _RULE, Plain(f"a file of {len(content)} bytes"))
    return bytes.fromhex(digits)


def _read_private(path: Path) -> bytes:
    """Return what a file holds that nobody but its owner, who runs this, can read."""
    with path.open("rb") as file:
        held = os.fstat(file.fileno())
        if not stat.S_ISREG(held.st_mode) or stat.S_IMODE(held.st_mode) & 0o077 or held.st_uid != os.geteuid():
            rule = "the path of a file that is yours and that nobody else can read (mode 0600)"
            raise InvalidStudy.must_be(VARIABLE, rule, Plain("another one"), "run `chmod 600` on it")
        return file.read(1024)

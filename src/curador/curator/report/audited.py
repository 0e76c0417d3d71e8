"""The last audit, as a report tells it: what `curador audit STUDY --copy --json` printed and the owner kept.

The product keeps no audit by itself. Nothing protects the file: the page says where it came from. What is taken of it are
verdicts, settings and numbers of trials, which are public (`testing/running.py`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from curador.errors import InvalidParameter
from curador.study.values import Plain

if TYPE_CHECKING:
    from pathlib import Path

    from curador.study.model import Study

HINT = "write it by: curador audit study.toml --copy --json > audit.json"
_LARGEST = 1_000_000
_SAID = {
    "passed": bool,
    "when": str,
    "questions_asked": int,
    "purchases_not_replayed": int,
    "neighbours": int,
    "canaries": int,
}


def read_audit(path: Path) -> dict[str, Any]:
    """Return the record of an audit of a study; refuse a file that is none."""
    try:
        return require_audit(json.loads(path.read_bytes()[:_LARGEST]), "--audit")
    except (OSError, ValueError, RecursionError):
        raise InvalidParameter.must_be("--audit", "a file that an audit of a study wrote", str(path), HINT) from None


def require_audit(audit: object, name: str = "audit") -> dict[str, Any]:
    """Return the record of an audit of a study; refuse another value."""
    held = cast("dict[str, Any]", audit) if isinstance(audit, dict) else {}
    fits = all(type(held.get(one)) is kind for one, kind in _SAID.items())
    if not fits or not all(isinstance(held.get(one), dict) for one in ("settings", "real_rows", "made_up_rows")):
        raise InvalidParameter.must_be(name, "the record of an audit of a study", Plain("something else"), HINT)
    return held


def audit_body(audit: dict[str, Any] | None, study: Study, version: int | None) -> dict[str, Any] | None:
    """Return what a report says of an audit; None where there is none on record.

    version   the data version now
    """
    if audit is None:
        return None
    settings = audit["settings"]
    verdicts = {name: {key: audit[name].get(key) is True for key in _VERDICTS} for name in ("real_rows", "made_up_rows")}
    return {
        "passed": audit["passed"],
        "time": audit["when"],
        **verdicts,
        "questions_replayed": audit["questions_asked"],
        "purchases_not_replayed": audit["purchases_not_replayed"],
        "neighbours": audit["neighbours"],
        "canaries": audit["canaries"],
        "of_this_study": settings.get("fingerprint of the study") == study.digest,
        "of_this_data_version": version is not None and settings.get("data version") == str(version),
        "versions": str(settings.get("versions", "")),
    }


_VERDICTS = ("replay_holds", "canaries_hold")

"""The name of the ledger, left beside the data: a study that had a ledger does not start without it.

`.<study>.ledger-id` holds the random id of the ledger. An empty ledger for data that were asked about before would open the
spent budget again; so another or a missing one is refused, unless the owner gives a reason, which becomes an entry.
"""

from __future__ import annotations

from pathlib import Path

from curador.errors import InvalidStudy, sentence
from curador.ledger.request import label
from curador.ledger.witness import sync_folder, write_private


def marker_of(folder: Path, study_name: str) -> Path:
    """Return the place of a study's marker."""
    if not label(study_name) or any(one in study_name for one in "/\\\0"):
        raise InvalidStudy(sentence("name", "one that a file can have", study_name))
    return folder / f".{study_name}.ledger-id"


def claimed(folder: Path, study_name: str) -> str | None:
    """Return the id of the ledger that the data had; None where they had none."""
    path = marker_of(folder, study_name)
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        text = ""
    if not label(text):
        hint = "restore the file: it says which ledger these data belong to"
        raise InvalidStudy(sentence("the marker beside the data", "a readable file", str(path), hint))
    return text


def claim(folder: Path, study_name: str, ledger_id: str, *, instead_of: str | None = None) -> None:
    """Leave the ledger's id beside the data; refused where another ledger's stands, but the one it takes the place of."""
    path, own = marker_of(folder, study_name), claimed(folder, study_name)
    if own == ledger_id:
        return
    if own is not None and own != instead_of:
        refuse_other(own, ledger_id)
    try:
        write_private(path, f"{ledger_id}\n".encode("ascii"), replace=own is not None)
    except FileExistsError:  # somebody else was faster
        refuse_other(claimed(folder, study_name), ledger_id)
    except OSError:
        hint = "the ledger's id is left beside the data, so that they never start again with an empty one"
        raise InvalidStudy(sentence("the folder of the data", "one that can be written to", str(folder), hint)) from None
    sync_folder(folder)


def refuse_other(own: str | None, ledger_id: str | None) -> None:
    """Refuse a ledger that is not the one which the data belong to."""
    if own is not None and own != ledger_id:
        hint = "use the ledger that the data had, or start a new one and give the reason: it becomes an entry"
        raise InvalidStudy(sentence("ledger", f"the one that these data had ({own})", ledger_id or "none", hint))

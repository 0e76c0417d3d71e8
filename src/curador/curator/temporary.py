"""Ledgers that are forgotten: of a sandbox, and of frames that their owner opened with ledger=":memory:".

Such a ledger is the same one in a folder of its own, which is removed with everything beside it when the study is closed, or
when the process ends. Nothing is left, no marker either. So it may never stand between people and data that are kept: the
study itself refuses ":memory:" where a private table is a file (`study/check.py`).
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from curador.engines.base import engine_kind
from curador.ledger.ledger import Ledger

if TYPE_CHECKING:
    from curador.study.model import Study


class TemporaryFolder:
    """A folder that only its owner can read, and that goes with this object or with the process at the latest."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="curador-")).resolve()
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def place(self, study: Study) -> Study:
        """Return the study with its ledger, and so with everything that is prepared for it, in this folder.

        Its rank key is its own: made-up rows that are asked for nothing must not be ranked as the real ones are.
        """
        placed = replace(study, ledger=self.path / "ledger", engine=replace(study.engine, prepared=""))
        engine_kind(placed.engine.kind).set_apart(placed)
        return placed

    def remove(self) -> None:
        """Remove the folder with all that lies in it; a second time nothing happens."""
        self._remove()


def temporary_ledger(study: Study) -> Ledger:
    """Return a new ledger of a study that was placed in a temporary folder; no marker says that it exists."""
    return Ledger.create(
        study.ledger_path,
        study_name=study.name,
        study_digest=study.digest,
        unit=study.unit_name,
        owners=study.owners,
        adjacency=study.adjacency,
        budget=study.budget,
        max_units=study.max_units,
    )

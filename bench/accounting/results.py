"""The rows of one run, and the two numbers that are read off them: ours, and a ratio to ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accounting.roster import OURS

if TYPE_CHECKING:
    from subprocesses import Row


@dataclass(frozen=True, slots=True)
class Results:
    """Every row, in the order measured: ours, the peers, ours again, task by task."""

    rows: tuple[Row, ...]

    @property
    def measured(self) -> list[str]:
        """The tasks that were run."""
        return sorted({row.task for row in self.rows})

    def our_rows(self, task: str) -> list[Row]:
        """Return our rows on the task: before and after the peers."""
        return [row for row in self.rows if row.task == task and row.tool.startswith(OURS)]

    def our_reason(self, task: str) -> str:
        """Return why curador has no answer on the task."""
        return next((row.reason for row in self.our_rows(task) if row.reason), "not run")

    def ours(self, task: str) -> Row | None:
        """Return the slower of our two rows, or nothing if either of them failed."""
        rows = self.our_rows(task)
        if not rows or any(row.best_seconds is None for row in rows):
            return None
        return max(rows, key=lambda row: row.best_seconds or 0.0)

    def peers(self, task: str) -> list[Row]:
        """Return the peers' rows on the task."""
        return [row for row in self.rows if row.task == task and not row.tool.startswith(OURS)]

    def peer(self, task: str, tool: str) -> Row | None:
        """Return the row of that peer on the task."""
        return next((row for row in self.peers(task) if row.tool == tool), None)

    def ratio(self, row: Row) -> float | None:
        """Return how many times longer the row took than the slower of our two."""
        ours = self.ours(row.task)
        if ours is None or not ours.best_seconds or row.best_seconds is None:
            return None
        return row.best_seconds / ours.best_seconds

"""Prints how many branches of each room the fast tests take, and fails where a room has fallen below its floor.

python tools/coverage_by_room.py build/coverage.json

A branch is a jump from one line to another: an `if` has two, a loop two. The floors are one below what was measured,
in whole percent, as examples are random: raised when tests are added, lowered only with a reason in the commit. What runs in
other processes, such as the engine's worker, is not seen.
"""

import json
import sys
from collections import Counter
from pathlib import Path

FLOORS: dict[str, int] = {
    "answers": 90,
    "audit": 64,
    "cli": 30,
    "client": 58,
    "curator": 82,
    "door": 9,
    "engines": 36,
    "learn": 81,
    "ledger": 90,
    "local": 90,
    "mechanisms": 90,
    "numerics": 76,
    "plan": 65,
    "plots": 74,
    "privacy": 85,
    "query": 87,
    "randomness": 80,
    "server": 54,
    "study": 95,
    "testing": 66,
}
"""Percent of the branches of a room that `make check` takes, by room."""


def by_room(report: dict) -> dict[str, tuple[int, int]]:
    """Return the branches taken and all branches of each room, from a report of coverage.py."""
    taken: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for file, found in report["files"].items():
        parts = Path(file).parts
        room = parts[parts.index("curador") + 1]
        if not room.endswith(".py"):
            taken[room] += found["summary"]["covered_branches"]
            every[room] += found["summary"]["num_branches"]
    return {room: (taken[room], every[room]) for room in sorted(every) if every[room]}


def shortfalls(rooms: dict[str, tuple[int, int]], floors: dict[str, int]) -> list[str]:
    """Return a sentence for each room below its floor, and for each room without one."""
    said = []
    for room, (taken, every) in rooms.items():
        if room not in floors:
            said.append(f"{room} has no floor: add one to tools/coverage_by_room.py")
        elif 100 * taken < floors[room] * every:
            said.append(f"{room}: {100 * taken / every:.1f} % of its branches are taken, {floors[room]} % must be")
    return said


def main(path: str) -> int:
    """Print the table; 1 where a room is below its floor."""
    rooms = by_room(json.loads(Path(path).read_text(encoding="utf-8")))
    for room, (taken, every) in rooms.items():
        print(f"{room:12} {taken:6,} of {every:6,} branches   {100 * taken / every:5.1f} %   floor {FLOORS.get(room, '-')} %")
    said = shortfalls(rooms, FLOORS)
    print(*said, sep="\n")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

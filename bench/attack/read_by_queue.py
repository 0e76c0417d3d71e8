"""Two analysts collude: one asks about a chosen person, the other times own questions meanwhile. Prints how well it goes.

    python bench/attack/read_by_queue.py [--asks 40] [--tick 0.5] [--large N]

Ana asks a question that runs long if the chosen person has a value, and hardly at all if not; there is no limit on one unit's
work here, so that there is much to see. Ben, a moment later, asks a question of his own, and then for a preview. AUC is the
chance that of two times, one of each kind, the longer one is that with the person's rows: 0.5 is guessing, 1 is certain.

    queue     one worker, answers leave when they are ready: Ben waits for Ana
    workers   two workers, answers leave when they are ready: Ben's runs beside Ana's
    ticks     two workers, answers leave on a public grid (answer_every)
    one tick  one worker and the grid: Ben waits for Ana, by ticks

Where the first does not let Ben read, this machine is too busy to say anything, and the script ends with 1; it ends with 2
where ticks let anybody read, outside of three standard errors. What fails for being late is counted: that is told, and three
close a study. So the size is found first: as many of the person's rows as take this machine about one tick.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import read_by_time
from read_by_time import CERTAIN, CHOSEN, HEAVY, PEOPLE, auc

import curador as cu

MODES = {"queue": (1, False), "workers": (2, False), "ticks": (2, True), "one tick": (1, True)}
"""By name: how many workers, and whether answers leave on ticks."""

ANALYSTS = """
[analysts.ana]
share = "50%"
[analysts.ben]
share = "50%"
"""
OWN = "SELECT COUNT(*) AS n FROM people WHERE income > 5"


def opened(folder: Path, workers: int, tick: float) -> cu.Curator:
    """Return the study of the other script, with two analysts; a tick of 0: answers leave when they are ready."""
    study = read_by_time.written(folder, "off")
    engine = f"threads = 2\nworkers = {workers}\n" + (f'answer_every = "{tick:g}s"\n' if tick else "")
    text = study.read_text(encoding="utf-8").replace("[engine]\n", f"[engine]\n{engine}")
    study.write_text(text + ANALYSTS, encoding="utf-8")
    curator = cu.open(study)
    curator.survey()
    return curator


def tried(verb, *arguments, **options) -> tuple[float, bool]:
    """Return how long a verb took, and whether it failed."""
    begun = time.perf_counter()
    try:
        verb(*arguments, **options)
    except cu.errors.Failed:
        return time.perf_counter() - begun, True
    return time.perf_counter() - begun, False


def one_round(curator: cu.Curator, slow: str, tick: float) -> tuple[float, float, float, int]:
    """Return Ana's time, that of Ben's question, that of his preview, and how many failed."""
    ana, ben, found = curator.analyst("ana"), curator.analyst("ben"), {}
    if tick:  # both know the grid, and come at the same place of it
        time.sleep(tick - time.monotonic() % tick + 0.1 * tick)
    asking = threading.Thread(target=lambda: found.setdefault("ana", tried(ana.ask, slow, rho="1e-9", fresh=True)))
    asking.start()
    time.sleep(0.1)  # Ana is first in line
    own = tried(ben.ask, OWN, rho="1e-9", fresh=True)
    looked = tried(ben.preview, OWN, rho="1e-9")
    asking.join()
    return found["ana"][0], own[0], looked[0], found["ana"][1] + own[1]


def fitting(tick: float) -> int:
    """Return how many of the person's rows take about one tick here: seen by the clock, and done in time."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CURADOR_REGISTER"] = str(Path(folder) / "register")
        with opened(Path(folder), 1, 0.0) as curator:
            for large in (60, 45, 30, 20, 12, 8):
                question = read_by_time.joined_freely(large).format(value="a")
                if min(tried(curator.ask, question, rho="1e-9", fresh=True)[0] for _ in range(2)) <= tick:
                    return large
    return 5


def rounds(curator: cu.Curator, asks: int, large: int, tick: float) -> tuple[dict[str, np.ndarray], int]:
    """Return the times by value, in the order of `one_round`, and how many questions failed."""
    found: dict[str, list[tuple[float, ...]]] = {"a": [], "b": []}
    failed = 0
    for turn in range(asks + 2):
        for value in ("a", "b") if turn % 2 else ("b", "a"):
            *times, broken = one_round(curator, read_by_time.joined_freely(large).format(value=value), tick)
            if broken:
                curator.reopen("a measurement")
            if turn >= 2:
                failed += broken
                found[value].append(tuple(times))
    return {value: np.array(times) for value, times in found.items()}, failed


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--asks", type=int, default=40)
    arguments.add_argument("--tick", type=float, default=0.5, help="seconds")
    arguments.add_argument("--large", type=int, help="how many of the person's rows are joined, 1 to 500; found, if not said")
    said = arguments.parse_args()
    asks, large = said.asks, said.large or fitting(said.tick)
    print(f"load {os.getloadavg()[0]:.2f}, {asks} rounds of each kind, {PEOPLE:,} people, {HEAVY:,} rows of number {CHOSEN}")
    print(f"{large} of them are joined, ticks of {said.tick:g} s")
    print(f"{'mode':<9} {'who times what':<16} {'with rows':>10} {'without':>10} {'AUC':>15}   failed")
    control, leaks = 0.0, list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for mode, (workers, paced) in MODES.items():
            place = Path(folder) / mode.replace(" ", "-")
            place.mkdir()
            os.environ["CURADOR_REGISTER"] = str(place / "register")  # the same made-up rows, again and again
            tick = said.tick if paced else 0.0
            with opened(place, workers, tick) as curator:
                found, failed = rounds(curator, asks, large, tick)
            for column, who in enumerate(("Ana: the question", "Ben: a question", "Ben: a preview")):
                one, other = found["a"][:, column], found["b"][:, column]
                area, error = auc(one, other)
                middle = f"{np.median(one) * 1000:>7.1f} ms {np.median(other) * 1000:>7.1f} ms"
                print(f"{mode:<9} {who:<16} {middle} {area:>7.3f} ± {2 * error:.3f}   {failed}", flush=True)
                if mode == "queue" and column == 1:
                    control = area
                if paced and abs(area - 0.5) > 3 * max(error, 0.5 / asks**0.5 / 3):
                    leaks.append(f"{mode}, {who}")
    print(f"load {os.getloadavg()[0]:.2f} at the end")
    seen = control >= CERTAIN
    print(f"the control reads with AUC {control:.3f}: {'as it must' if seen else 'this run says nothing'}")
    print(f"on ticks: {'nobody reads' if not leaks else 'seen by ' + '; '.join(leaks)}")
    return 1 if not seen else 2 * bool(leaks)


if __name__ == "__main__":
    sys.exit(main())

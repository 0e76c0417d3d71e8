"""`make simulate SEEDS=n` plays n histories; `make simulate SEED=k` plays one again and prints it event by event."""

import argparse
import os
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from simulated_product import play, simulated


def main():
    """Play, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--bug")
    given = parser.parse_args()
    bug = None
    if given.bug:
        import simulated_bugs  # noqa: PLC0415

        bug = getattr(simulated_bugs, given.bug)
    with simulated(bug) as rules:
        if given.seed is not None:
            return show(given.seed, rules)
        return run(range(given.first, given.first + given.seeds), rules)


def show(seed, rules):
    """Print one history."""
    trace = []
    world = play(seed, rules, trace)
    print("\n".join(trace))
    if world.violation is not None and world.violation.__cause__ is not None:
        traceback.print_exception(world.violation.__cause__)
    print(f"seed {seed}: {world.scheduler.events} events, {len(world.oracle.texts)} entries; {world.violation or 'all held'}")
    return int(world.violation is not None)


def run(seeds, rules):
    """Play many; say how many a second, and which failed."""
    begun, events, entries, least, failed = time.process_time(), 0, 0, 10**9, []
    for seed in seeds:
        world = play(seed, rules)
        events += world.scheduler.events
        least = min(least, world.scheduler.events)
        entries += len(world.oracle.texts)
        if world.violation is not None:
            failed.append(seed)
            print(f"seed {seed}: {world.violation}", flush=True)
            if len(failed) >= 10:
                break
    took, number = time.process_time() - begun, len(seeds)
    print(
        f"{number} histories, {events / number:.0f} events each (at least {least}), {entries / number:.1f} entries; "
        f"{len(failed)} violations; {number / took:.0f} a second of processor, load {os.getloadavg()[0]:.1f}"
    )
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

"""`make simulate SEEDS=n` plays n histories; `make simulate SEED=k` plays one again and prints it event by event.

`make simulate-bugs` looks for the first seed that finds each seeded bug, and prints the score.
"""

import argparse
import os
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import simulated_bugs
from simulated_product import is_found, play, simulated

MOST = 20_000


def main():
    """Play, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--bug", help="with the product as this seeded bug leaves it")
    parser.add_argument("--bugs", action="store_true", help="the score")
    given = parser.parse_args()
    if given.bugs:
        return score()
    bug = getattr(simulated_bugs, given.bug) if given.bug else None
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


def score():
    """Look for the first seed that finds each bug."""
    found = 0
    for bug in simulated_bugs.BUGS:
        with simulated(bug) as rules:
            worlds = ((seed, play(seed, rules)) for seed in range(MOST))
            seed, violation = next(((seed, one.violation) for seed, one in worlds if is_found(one)), (None, "not found"))
        found += seed is not None
        print(f"{bug.__name__:40s} seed {seed}: {str(violation).splitlines()[0]}", flush=True)
    print(f"{found} of {len(simulated_bugs.BUGS)} seeded bugs found within {MOST} seeds; load {os.getloadavg()[0]:.1f}")
    return int(found < len(simulated_bugs.BUGS))


def run(seeds, rules):
    """Play many; say how many a second, and which failed."""
    begun, events, entries, least, failed, number = time.process_time(), 0, 0, 10**9, [], 1
    for number, seed in enumerate(seeds, 1):
        world = play(seed, rules)
        if number % 5000 == 0:
            print(f"{number} histories, load {os.getloadavg()[0]:.1f}", flush=True)
        events += world.scheduler.events
        least = min(least, world.scheduler.events)
        entries += len(world.oracle.texts)
        if world.violation is not None:
            failed.append(seed)
            print(f"seed {seed}: {world.violation}", flush=True)
            if len(failed) >= 10:
                break
    took = time.process_time() - begun
    print(
        f"{number} histories, {events / number:.0f} events each (at least {least}), {entries / number:.1f} entries; "
        f"{len(failed)} violations; {number / took:.0f} a second of processor, load {os.getloadavg()[0]:.1f}"
    )
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

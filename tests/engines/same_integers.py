"""One prepared relation on two engines, and what of the integers of a question differs between them."""

import numpy as np

from curador.answers.release import normalize_key


def flat(block, tallied):
    """A block's integers as dictionaries by key: what an engine's order of groups does not change."""
    kinds = [key.type for key in block.keys]
    keys = [tuple(map(normalize_key, key, kinds)) for key in zip(*tallied.keys, strict=True)] if kinds else [()]
    assert len(set(keys)) == len(keys)
    found = {
        place: dict(zip(keys, map(int, np.asarray(numbers).tolist()), strict=True))
        for place, numbers in tallied.tallies.items()
    }
    for place, cells in tallied.cells.items():
        counted = zip(cells.groups.tolist(), cells.cells.tolist(), cells.counts.tolist(), strict=True)
        found[place] = {(keys[group], cell): int(count) for group, cell, count in counted}
    if tallied.selection is not None:
        columns, units = tallied.selection
        private = [block.keys[place].type for place in block.private_keys]
        named = [tuple(map(normalize_key, row, private)) for row in zip(*columns, strict=True)]
        found["selection"] = dict(zip(named, map(int, np.asarray(units).tolist()), strict=True))
    return found


def integers(engine, blocks):
    return [flat(block, one) for block, one in zip(blocks, engine.tally(engine.compile(blocks)), strict=True)]

"""Names that were probably meant: what *did you mean …?* is made of."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

_LONGEST, _MOST = 60, 400  # comparing takes the product of two lengths a name: what an asker writes has no say in it


def nearest_names(word: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Return the known names that look like the word, whatever its case, the nearest first; none where none does."""
    known = {one.lower(): one for one in islice(dict.fromkeys(names), _MOST)}
    return [known[match] for match in difflib.get_close_matches(word.lower()[:_LONGEST], known, n=most, cutoff=0.6)]

"""sqlglot's parser as it is used here: without classes for functions that we read ourselves, and with an end to its patience.

Where a word may begin a type or a call, the parser reads what follows as the one, goes back, and reads it as the other: so
such words, nested (ARRAY[ARRAY[…, DATE(DATE(…) double the work with each level: a hundred letters would take hours.

Claim   A text of n tokens is parsed or given up after going back at most STEPS + STEPS_A_TOKEN · n tokens.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from curador.query.spellings import DATE_TEXTS

if TYPE_CHECKING:
    from sqlglot.parser import Parser

STEPS: Final = 2_000
STEPS_A_TOKEN: Final = 10
"""What people and tools write goes back less than one token for each."""


class TooManyReadings(Exception):  # noqa: N818 -- what it means is decided where it is met
    """A text that can be read in too many ways to try them; no ParseError, which the parser would take for one of them."""


@functools.cache
def parser_of(parser: type[Parser]) -> type[Parser]:
    """Return the parser for texts of people whom nobody trusts."""
    known = {name: made for name, made in parser.FUNCTIONS.items() if name not in DATE_TEXTS}

    def go_back(own: Any, index: int) -> None:
        steps = own._index - index  # noqa: SLF001 -- the parser's own place
        if steps > 0:
            own.steps_back = getattr(own, "steps_back", 0) + 1 + steps
            if own.steps_back > STEPS + STEPS_A_TOKEN * len(own._tokens):  # noqa: SLF001 -- idem
                raise TooManyReadings
        parser._retreat(own, index)  # noqa: SLF001 -- what this is put in place of

    return type(parser.__name__, (parser,), {"FUNCTIONS": known, "_retreat": go_back})

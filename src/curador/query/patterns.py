r"""Regular expressions, a language of our own: what every engine with linear matching agrees on.

    abc . ^ $ | ( ) (?: ) [a-z_] [^0-9] * + ? {2} {2,} {2,5}   \d \w \s \D \W \S \b \B \t \n \r   \ before any other sign

There are no references, no look-around and no flags inside; a counted repetition is at most 64 times, a pattern at most 256
characters and, with its repetitions written out, at most 1,000 places. So matching takes time in proportion to the text and
to those places, in the worst of cases, which `plan/work.py` counts; whether it matches is all that is asked.

A pattern is parsed here and written anew, in a form that has one meaning: no part of an asker's text reaches an engine's own
parser of patterns. In that form $ is the end of the text and nothing before it, . every character but a new line (in
PostgreSQL every one), letters and digits are ASCII's, and letters without regard to case are ASCII's twice.
"""

from __future__ import annotations

import functools
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from curador.query.messages import invalid, quote_name

if TYPE_CHECKING:
    from curador.query.tree import Place

MOST_CHARACTERS = 256
MOST_TIMES = 64
MOST_PLACES = 1_000

END = "(?:$)"
"""How the end of the text is written."""

_LAST = 0x10FFFF
_SETS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t-\r\x20"}
_SPANS = {"d": ((48, 57),), "w": ((48, 57), (65, 90), (97, 122), (95, 95)), "s": ((9, 13), (32, 32))}
_SIGNS = {"t": "\t", "n": "\n", "r": "\r"}
_HINT = "REGEXP_MATCHES(x, '^[A-Z]{2}-[0-9]+$'): letters, [a-z], . ^ $ | ( ) * + ? {2,5} \\d \\w \\s \\b."


Spans: TypeAlias = "tuple[tuple[int, int], ...]"
"""Characters, from one code point to another."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a pattern: written anew, and as a tree.

    kind   one character of `spans`; "all" its parts after one another; "any" one of them; "repeat" its part so many times
    times  least and most; None: without end
    """

    text: str
    kind: str = "all"
    spans: Spans = ()
    parts: tuple[Piece, ...] = ()
    times: tuple[int, int | None] = (1, 1)

    @property
    def places(self) -> int:
        """How many characters it has with its repetitions written out."""
        if self.kind == "one":
            return 1
        most = self.times[1] if self.times[1] is not None else self.times[0] + 1
        return most * max(sum(part.places for part in self.parts), 1 if self.kind == "repeat" else 0)


def read_pattern(text: str, place: Place | None, *, fold: bool = False, whole: bool = False, lines: bool = False) -> str:
    """Return a pattern written anew; refuse what is not in the language.

    fold   letters match in both cases; whole: the whole text must match; lines: . matches a new line, too
    """
    if len(text) > MOST_CHARACTERS:
        raise invalid(place, f"a regular expression must have at most {MOST_CHARACTERS} characters; got {len(text):,}")
    written = _read_all(_PatternReader(text, place, fold=fold, lines=lines)).text
    return f"^(?:{written}){END}" if whole else written


def _read_all(reader: _PatternReader) -> Piece:
    found = reader.alternatives()
    if reader.at < len(reader.text):
        raise reader.refused(f"{quote_name(reader.peek())} must close a bracket; none is open")
    return found


class _PatternReader:
    """A hand that moves over a pattern. anew: it was written here, and may hold what only we write."""

    def __init__(self, text: str, place: Place | None, *, fold: bool, lines: bool, anew: bool = False) -> None:
        self.text, self.place, self.fold, self.lines, self.anew = text, place, fold, lines, anew
        self.at = 0

    def refused(self, rule: str) -> Exception:
        return invalid(self.place, f"{rule}, in a regular expression", _HINT)

    def peek(self, many: int = 1) -> str:
        return self.text[self.at : self.at + many]

    def take(self) -> str:
        if self.at >= len(self.text):
            raise self.refused("a sign or a bracket must follow at the end")
        self.at += 1
        return self.text[self.at - 1]

    def alternatives(self) -> Piece:
        found = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            found.append(self.sequence())
        return found[0] if len(found) == 1 else Piece("|".join(one.text for one in found), "any", parts=tuple(found))

    def sequence(self) -> Piece:
        parts: list[Piece] = []
        places = 0
        while self.peek() not in {"", "|", ")"}:
            parts.append(self.repeated())
            places += parts[-1].places
            if places > MOST_PLACES:
                raise self.refused(f"there must be at most {MOST_PLACES:,} places, with repetitions written out")
        return Piece("".join(part.text for part in parts), parts=tuple(parts))

    def repeated(self) -> Piece:
        anchor = self.peek() in {"^", "$"} or self.peek(2) in {r"\b", r"\B"}
        atom = self.atom()
        sign = self.peek()
        if sign not in {"*", "+", "?", "{"}:
            return atom
        if anchor:
            raise self.refused("a repetition must follow a letter, a set or a group")
        self.at += 1
        plain: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        written, times = self.counted() if sign == "{" else (sign, plain[sign])
        if self.peek() == "?":
            self.at += 1  # which match is found first does not matter where only one is asked for
        if self.peek() in {"*", "+", "?", "{"}:
            raise self.refused("a repetition must not follow another")
        return Piece(f"{atom.text}{written}", "repeat", parts=(atom,), times=times)

    def counted(self) -> tuple[str, tuple[int, int | None]]:
        end = self.text.find("}", self.at)
        ends = self.text[self.at : end].split(",") if end >= 0 else []
        numbers = [int(one) if one.isdecimal() and one.isascii() and len(one) <= 3 else None for one in ends]
        least = numbers[0] if numbers else None
        last = numbers[-1] if numbers and ends[-1] else least
        if len(ends) not in {1, 2} or least is None or last is None or not least <= last <= MOST_TIMES:
            raise self.refused(f"a counted repetition must be {{2}}, {{2,}} or {{2,5}}, at most {MOST_TIMES} times")
        self.at = end + 1
        return f"{{{','.join(ends)}}}", (least, None if not ends[-1] else last)

    def atom(self) -> Piece:
        sign = self.take()
        match sign:
            case "(":
                return self.group()
            case "[":
                return self.set_of_letters()
            case ".":
                spans = ((0, _LAST),) if self.lines else ((0, 9), (11, _LAST))
                return Piece(r"(?s:.)" if self.lines else r"[^\n]", "one", spans)
            case "^":
                return Piece("^")
            case "$":
                return Piece(END)
            case "\\":
                return self.escaped()
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise self.refused(f"{quote_name(sign)} must follow something, or have \\ before it")
            case _:
                return self.letter(sign)

    def group(self) -> Piece:
        if self.peek() == "?":
            begin = "?s:" if self.anew and self.peek(3) == "?s:" else "?:"
            if self.peek(len(begin)) != begin:
                raise self.refused("there must be no look-around, no names and no flags behind (?")
            self.at += len(begin)
        inner = self.alternatives()
        if self.peek() != ")":
            raise self.refused("every bracket must be closed")
        self.at += 1
        return Piece(f"(?:{inner.text})", parts=(inner,))

    def escaped(self) -> Piece:
        sign = self.take()
        if sign in _SETS:
            return Piece(f"[{_SETS[sign]}]", "one", _SPANS[sign])
        if sign.lower() in _SETS:
            return Piece(f"[^{_SETS[sign.lower()]}]", "one", _others(_SPANS[sign.lower()]))
        if sign in {"b", "B"}:
            return Piece(f"\\{sign}")
        if sign.isdecimal():
            raise self.refused("there must be no references to groups")
        return self.letter(self.single(sign))

    def single(self, sign: str) -> str:
        """Return the one character that an escaped sign means."""
        if sign in _SIGNS:
            return _SIGNS[sign]
        if sign == "x" and self.anew:
            self.at += 2
            return chr(int(self.text[self.at - 2 : self.at], 16))
        if sign.isalnum():
            raise self.refused(f"{quote_name(chr(92) + sign)} is not known")
        return sign

    def letter(self, sign: str) -> Piece:
        spans = self.folded(sign, sign)
        return Piece(_written(sign) if len(spans) == 1 else f"[{_written_spans(spans)}]", "one", spans)

    def set_of_letters(self) -> Piece:
        negated = self.peek() == "^"
        self.at += negated
        begin, spans = self.at, ()
        while self.peek() != "]" or self.at == begin:
            first = self.take()
            if first == "\\" and self.peek() in _SETS:
                spans += _SPANS[self.take()]
                continue
            spans += self.range_from(self.member(first))
        self.at += 1
        return Piece(f"[{'^' if negated else ''}{_written_spans(spans)}]", "one", _others(spans) if negated else spans)

    def member(self, sign: str) -> str:
        if sign == "[":
            raise self.refused("[ in a set must have \\ before it")
        return self.single(self.take()) if sign == "\\" else sign

    def range_from(self, first: str) -> Spans:
        if self.peek() != "-" or self.peek(2)[1:] in {"", "]"}:
            return self.folded(first, first)
        self.at += 1
        last = self.member(self.take())
        if ord(last) < ord(first):
            raise self.refused(f"a range in a set must run upwards; got {quote_name(f'{first}-{last}')}")
        return self.folded(first, last)

    def folded(self, first: str, last: str) -> Spans:
        """Return the characters from one to another, and where case does not matter their other case."""
        low, high = ord(first), ord(last)
        if not self.fold:
            return ((low, high),)
        if not (first.isascii() and last.isascii()):
            raise self.refused("without regard to case, letters must be those from a to z")
        cases = ((max(low, begin), min(high, begin + 25)) for begin in (65, 97))
        return ((low, high), *((start ^ 32, end ^ 32) for start, end in cases if start <= end))


def _others(spans: Spans) -> Spans:
    """Return all characters that are in none of the spans."""
    found: list[tuple[int, int]] = []
    begin = 0
    for low, high in sorted(spans):
        if begin < low:
            found.append((begin, low - 1))
        begin = max(begin, high + 1)
    return (*found, (begin, _LAST)) if begin <= _LAST else tuple(found)


def _written_spans(spans: Spans) -> str:
    return "".join(
        _written(chr(low)) if low == high else f"{_written(chr(low))}-{_written(chr(high))}" for low, high in spans
    )


def _written(sign: str) -> str:
    """Return one character as every parser of patterns reads it."""
    if not sign.isascii() or sign in string.ascii_letters + string.digits:
        return sign
    return f"\\{sign}" if sign.isprintable() and sign != " " else f"\\x{ord(sign):02x}"


# ---- what matching costs -----------------------------------------------------------------------------------------------


MOST_STATES = 128
"""A table of so many states fits the memory that engines give one, whatever it costs to order them."""


@functools.lru_cache(maxsize=64)
def count_steps(written: str) -> int:
    """Return how many places are followed at most for each character: 1 where a small table of states does it, else all.

    written   a pattern that was written anew

    Claim   A table of states, each a set of places that may have been reached, has at most MOST_STATES states: those that are
            reached from the beginning on any text, the search beginning anew at every character unless the pattern says ^.
    """
    piece = _read_all(_PatternReader(written, None, fold=False, lines=True, anew=True))
    places = max(piece.places, 1)
    anchored = piece.kind == "all" and bool(piece.parts) and piece.parts[0].text == "^"
    return 1 if places <= MOST_STATES and _Positions(piece).has_few_states(anchored=anchored) else places


class _Positions:
    """The places of a pattern as bits of whole numbers: which character each takes, and which follow it."""

    def __init__(self, piece: Piece) -> None:
        self.spans: list[Spans] = []
        self.follow: list[int] = []
        _, self.first, _ = self.add(piece)

    def add(self, piece: Piece) -> tuple[bool, int, int]:
        """Return whether a piece may be empty, the places at which it begins, and those at which it ends."""
        if piece.kind == "one":
            self.spans.append(piece.spans)
            self.follow.append(0)
            bit = 1 << (len(self.spans) - 1)
            return False, bit, bit
        if piece.kind == "any":
            found = [self.add(part) for part in piece.parts]
            return any(one[0] for one in found), *(
                functools.reduce(int.__or__, (one[end] for one in found)) for end in (1, 2)
            )
        if piece.kind == "all":
            return self.chain([self.add(part) for part in piece.parts])
        least, most = piece.times
        copies = [self.add(piece.parts[0]) for _ in range(most if most is not None else least + 1)]
        if most is None:
            self.tie(copies[-1][2], copies[-1][1])
        optional = [(one[0] or number >= least, *one[1:]) for number, one in enumerate(copies)]
        return self.chain(optional)

    def chain(self, parts: list[tuple[bool, int, int]]) -> tuple[bool, int, int]:
        empty, first, last = True, 0, 0
        for none, begin, end in parts:
            self.tie(last, begin)
            first |= begin if empty else 0
            last = end | (last if none else 0)
            empty = empty and none
        return empty, first, last

    def tie(self, ends: int, begins: int) -> None:
        while ends:
            low = ends & -ends
            self.follow[low.bit_length() - 1] |= begins
            ends ^= low

    def has_few_states(self, *, anchored: bool) -> bool:
        """Whether at most MOST_STATES sets of places are reached."""
        borders = sorted({0, *(edge for spans in self.spans for low, high in spans for edge in (low, high + 1))})
        taken = {
            sum(1 << at for at, spans in enumerate(self.spans) if any(low <= point <= high for low, high in spans))
            for point in borders
        }
        again = 0 if anchored else self.first
        seen, waiting = {0}, [self.first & one for one in taken]
        while waiting:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            if len(seen) > MOST_STATES:
                return False
            ahead, rest = again, state
            while rest:
                low = rest & -rest
                ahead |= self.follow[low.bit_length() - 1]
                rest ^= low
            waiting += [ahead & one for one in taken]
        return True

"""On which line of a TOML text a key stands. The standard parser reads values and keeps no places.

The text has been parsed before: it is TOML, and this scanner only has to find its way through it.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass

from curador.study.rules import Where, dotted

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+')
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'  # up to two more quotes may end the text itself
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}#\r\n]*")


@dataclass(frozen=True, slots=True)
class Place:
    """A line, and the header in brackets that it stands under."""

    line: int
    header: Where

    def name(self, where: Where) -> str:
        """Return the path as the file spells it: [header] rest."""
        if not self.header or where[: len(self.header)] != self.header:
            return dotted(where)
        return f"[{dotted(self.header)}] {dotted(where[len(self.header) :])}".rstrip()


def places(text: str) -> dict[Where, Place]:
    """Return the place of every key, and of every item of a list."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.found


def nearest(found: dict[Where, Place], where: Where) -> Place | None:
    """Return the place of the longest part of the path that stands in the text."""
    return next((found[where[:length]] for length in range(len(where), 0, -1) if where[:length] in found), None)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.header: Where = ()
        self.found: dict[Where, Place] = {}
        self.ends = [match.start() for match in re.finditer("\n", text)]

    def document(self) -> None:
        while self._skip(_BLANK) < len(self.text):
            if self.text[self.at] == "[":
                self._skip(re.compile(r"\[+"))
                start, self.header = self.at, self._key()
                for length in range(1, len(self.header) + 1):
                    self._note(self.header[:length], start)
                self._skip(re.compile(r"[ \t]*\]+"))
            else:
                self._pair(self.header)

    def _pair(self, above: Where) -> None:
        start = self.at
        path = above
        for part in self._key():
            path = (*path, part)
            self._note(path, start)
        self._skip(re.compile(r"[ \t]*=[ \t]*"))
        self._value(path)

    def _key(self) -> Where:
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            match = _KEY.match(self.text, self.at)
            if match is None:
                raise ValueError("no key here")
            written = match.group()
            parts.append(tomllib.loads(f"key = {written}")["key"] if written[0] in "\"'" else written)
            self.at = match.end()
            self._skip(_SPACE)
            if self.text[self.at : self.at + 1] != ".":
                return tuple(parts)
            self.at += 1

    def _value(self, path: Where) -> None:
        first = self.text[self.at : self.at + 1]
        if first == "[":
            self._items(path, "]")
        elif first == "{":
            self._items(path, "}")
        else:
            self._skip(_STRING if first in {'"', "'"} else _PLAIN)

    def _items(self, path: Where, end: str) -> None:
        self.at += 1
        count = 0
        while self.text[self._skip(_BLANK)] != end:
            if end == "]":
                self._note((*path, count))
                self._value((*path, count))
            else:
                self._pair(path)
            count += 1
            self._skip(_BLANK)
            if self.text[self.at] == ",":
                self.at += 1
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return self.at

    def _note(self, path: Where, start: int | None = None) -> None:
        line = bisect_right(self.ends, (self.at if start is None else start) - 1) + 1
        self.found.setdefault(path, Place(line, self.header))

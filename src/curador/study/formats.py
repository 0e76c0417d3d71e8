"""How a table's texts are to be read: what the owner says of a file in one line of the study.

    format = { separator = ";", encoding = "latin-1", decimal = ",", dates = "%d/%m/%Y", nulls = ["N/A"] }

What is not said is as it is read without a format. Everything here says how one value, or one line, becomes another:
nothing is guessed from rows, so that nobody's row changes how somebody else's is read.

Of a file: separator, encoding, newlines. Of a value, in every kind of source that holds texts: the others.
"""

from __future__ import annotations

import codecs
import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from curador.errors import InvalidStudy
from curador.study.rules import broken_rule, did_you_mean, is_text, move_under

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.study.rules import Where

SEPARATORS = (",", ";", "\t", "|")
DECIMALS = (".", ",")
THOUSANDS = (".", ",", " ", "'", "_")
BLANKS = " \t\r\n\u00a0\u2007\u202f"
"""What may stand around a word or a number."""
UTF_8, UTF_16 = "utf-8", "utf-16"
_KNOWN_ENCODINGS = (UTF_8, UTF_16, "latin-1", "windows-1252")
_WHOLE_ENCODINGS = {"utf-8": UTF_8, "utf-8-sig": UTF_8, "ascii": UTF_8, "utf-16": UTF_16}
_SPELLED = {"iso8859-1": "latin-1"}
_ONE_BYTE = re.compile(r"iso8859-\d+|cp(125\d|437|850|852|858|866)|mac-\w+|koi8-[rtu]")
"""Each byte is a character, the first 128 those of ASCII: so lines end where bytes say so."""
_DIRECTIVE = re.compile(r"%(-?.|$)", re.DOTALL)
_DIRECTIVES = frozenset(
    {"d", "-d", "m", "-m", "Y", "y", "b", "B", "H", "-H", "I", "-I", "M", "-M", "S", "-S", "f", "p", "j", "%"}
)
_DAYS = {"d", "-d"}, {"m", "-m", "b", "B"}, {"Y", "y"}
_TIMES = (" %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S")
_MOST_WORDS = 100
_MOST_PATTERNS = 10
_LONGEST_PATTERN = 60

SEPARATOR = "one of , ; tab and |"
ENCODING = "utf-8, utf-16, latin-1, windows-1252, or another encoding of one byte a character that Python knows"
PATTERN = 'a pattern of a day such as "%d/%m/%Y", or a list of them'
MOMENT = 'a pattern of a day and a time such as "%d/%m/%Y %H:%M", or a list of them'


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How texts are read. Each field checks its own rule; what it says is said of every line alike.

    separator   between the fields of a line; None: the one that stands in the first line most often
    encoding    how bytes are letters
    decimal     the sign before the fraction of a number
    thousands   the sign between groups of three digits; None: there is none
    dates       how days are written; a date and a timestamp are read by these and by `timestamps`, no other way then
    timestamps  how days with times are written; a pattern of `dates` with hours, minutes and seconds behind it is one, too
    nulls       words that mean nothing is there, with or without blanks around them
    trim        blanks around a text are left out
    newlines    a newline inside quotes is part of its field: the owner says that quotes are balanced in the whole file
    """

    separator: str | None = None
    encoding: str = UTF_8
    decimal: str = "."
    thousands: str | None = None
    dates: tuple[str, ...] = ()
    timestamps: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    trim: bool = False
    newlines: bool = False

    def __post_init__(self) -> None:
        if self.separator is not None and self.separator not in SEPARATORS:
            raise broken_rule(("separator",), SEPARATOR, self.separator)
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.decimal not in DECIMALS:
            raise broken_rule(("decimal",), '"." or ","', self.decimal)
        if self.thousands is not None and (self.thousands not in THOUSANDS or self.thousands == self.decimal):
            rule = """one of . , ' _ and a blank, and not the decimal sign"""
            hint = 'with thousands = "." say decimal = ",", too' if self.thousands == self.decimal else None
            raise broken_rule(("thousands",), rule, self.thousands, hint)
        object.__setattr__(self, "dates", _patterns("dates", self.dates, PATTERN))
        object.__setattr__(self, "timestamps", _patterns("timestamps", self.timestamps, MOMENT))
        object.__setattr__(self, "nulls", _words(self.nulls))
        for name in ("trim", "newlines"):
            if type(getattr(self, name)) is not bool:
                raise broken_rule((name,), "true or false", getattr(self, name))

    @property
    def of_file(self) -> str | None:
        """The first field that speaks of the bytes of a file, which other sources do not have; None where none was said."""
        return next((name for name in ("separator", "encoding", "newlines") if name in self.said()), None)

    @property
    def numbers(self) -> bool:
        """Whether numbers are written in another way than programs do."""
        return self.decimal != "." or self.thousands is not None

    @property
    def times(self) -> tuple[str, ...]:
        """Every pattern by which a day or a moment is read, in the order in which they are tried; none: as ISO 8601."""
        derived = (day + time for day in self.dates for time in _TIMES)
        return tuple(dict.fromkeys((*self.dates, *self.timestamps, *derived)))

    def said(self) -> dict[str, object]:
        """Return what differs from the default, as a study file and its fingerprint write it."""
        written: dict[str, object] = {
            "separator": self.separator,
            "encoding": None if self.encoding == UTF_8 else self.encoding,
            "decimal": None if self.decimal == DECIMALS[0] else self.decimal,
            "thousands": self.thousands,
            "dates": _one_or_list(self.dates),
            "timestamps": _one_or_list(self.timestamps),
            "nulls": list(self.nulls) or None,
            "trim": self.trim or None,
            "newlines": self.newlines or None,
        }
        return {name: value for name, value in written.items() if value is not None}


KEYS = ("separator", "encoding", "decimal", "thousands", "dates", "timestamps", "nulls", "trim", "newlines")


def _one_or_list(patterns: tuple[str, ...]) -> object:
    return patterns[0] if len(patterns) == 1 else list(patterns) or None


def format_from(written: Mapping[str, Any] | FileFormat, where: Where) -> FileFormat:
    """Return the format that a table of keys declares; refuse by the path of the key."""
    if isinstance(written, FileFormat):
        return written
    for name in written:
        if name not in KEYS:
            raise broken_rule((*where, str(name)), f"a known key ({', '.join(KEYS)})", str(name), did_you_mean(name, KEYS))
    try:
        return FileFormat(**written)
    except InvalidStudy as rule:
        raise move_under(rule, *where) from None


def _encoding(written: object) -> str:
    """Return the one name of an encoding that is UTF-8, UTF-16, or of one byte a character."""
    if isinstance(written, str):
        try:
            found = codecs.lookup(written).name
        except (LookupError, ValueError):
            found = ""
        if found in _WHOLE_ENCODINGS:
            return _WHOLE_ENCODINGS[found]
        if _ONE_BYTE.fullmatch(found):
            return _SPELLED.get(found, re.sub(r"^cp(125\d)$", r"windows-\1", found))
    raise broken_rule(("encoding",), ENCODING, cast("str", written), did_you_mean(written, _KNOWN_ENCODINGS))


def decode_bytes(block: bytes, encoding: str) -> str:
    """Return bytes of a one-byte encoding as text: each by itself, and one that the encoding leaves open as a control."""
    return block.decode(encoding, errors=_OPEN)


_OPEN = "curador-open-byte"


def _control(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeDecodeError):
        raise problem
    return chr(problem.object[problem.start]), problem.start + 1


codecs.register_error(_OPEN, _control)


def _patterns(name: str, written: object, rule: str) -> tuple[str, ...]:
    listed = [written] if isinstance(written, str) else list(cast("Sequence[object]", written)) if _several(written) else None
    if listed is None or len(listed) > _MOST_PATTERNS or len(set(map(str, listed))) < len(listed):
        raise broken_rule((name,), rule, written)
    for pattern in listed:
        if not isinstance(pattern, str) or not is_text(pattern, _LONGEST_PATTERN) or not _is_pattern(pattern):
            hint = "say day, month and year: %d %m %Y (%y of two digits, %b a short English name), and %H %M %S for a time"
            raise broken_rule((name,), rule, pattern, hint)
    return tuple(cast("list[str]", listed))


def _is_pattern(pattern: str) -> bool:
    """Whether a pattern says a whole day, each part once, by what every engine reads alike."""
    found = _DIRECTIVE.findall(pattern)
    parts = [one.lstrip("-") for one in found if one != "%"]
    if not set(found) <= _DIRECTIVES or len(set(parts)) < len(parts):
        return False
    whole = all(sum(one in kinds for one in found) == 1 for kinds in _DAYS)
    if not (
        whole or ("j" in parts and sum(one in {"Y", "y"} for one in parts) == 1 and not {"d", "m", "b", "B"} & set(parts))
    ):
        return False
    if ("p" in parts) != ("I" in parts) or ("H" in parts and "I" in parts):
        return False
    plain = pattern.replace("%-", "%")
    try:
        moment = dt.datetime(2023, 11, 30, 22, 58, 59)  # noqa: DTZ001 -- no zone is meant
        return dt.datetime.strptime(moment.strftime(plain), plain).date() == moment.date()  # noqa: DTZ007 -- idem
    except ValueError:
        return False


def _words(written: object) -> tuple[str, ...]:
    rule = f'a list of at most {_MOST_WORDS} words such as ["N/A", "-"]'
    listed = list(cast("Sequence[object]", written)) if _several(written) else None
    if listed is None or len(listed) > _MOST_WORDS:
        raise broken_rule(("nulls",), rule, written)
    for word in listed:
        if word != "" and not is_text(word):
            raise broken_rule(("nulls",), rule, word)
    return tuple(dict.fromkeys(cast("str", word).strip() for word in listed))


def _several(value: object) -> bool:
    return isinstance(value, (list, tuple))

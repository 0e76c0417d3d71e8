"""The settings of one connection: an allow-list of the door's own variables, and words that clients say and nobody heeds.

`curador.*` says what a question may cost and how it is answered. What clients send at their start is kept and told back.
No setting ever reaches the shadow, so none can lift a limit there. As in PostgreSQL a ROLLBACK takes back what was set since
BEGIN; a SET LOCAL ends with its transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from curador.curator.options import QuestionOptions
from curador.door.problems import SqlProblem, problem_of
from curador.errors import CuradorError, InvalidParameter
from curador.numerics.exact import rational

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from curador.door.statements import Word

INTERVALS = ("columns", "notice", "off")

OWN: dict[str, str] = {
    "curador.spend": "",
    "curador.rho": "",
    "curador.epsilon": "",
    "curador.accuracy": "",
    "curador.at": "",
    "curador.weights": "",
    "curador.caps": "",
    "curador.confidence": "0.95",
    "curador.bias": "off",
    "curador.intervals": "notice",
}
"""What an analyst says of the questions that follow; an empty text is nothing said."""

REPORTED = (
    "application_name", "client_encoding", "DateStyle", "IntervalStyle", "TimeZone", "search_path",
    "standard_conforming_strings", "server_version", "server_encoding", "integer_datetimes", "is_superuser",
    "session_authorization", "default_transaction_read_only", "in_hot_standby",
)  # fmt: skip
"""DoorSettings whose values clients are told of, at the start and when they change."""

DEFAULTS: dict[str, str] = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lock_timeout": "0",
    "row_security": "on",
    "search_path": "public",
    "server_encoding": "UTF8",
    "session_authorization": "",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "timezone": "UTC",
}

_FIXED = frozenset(
    {"in_hot_standby", "integer_datetimes", "is_superuser", "server_encoding", "server_version", "session_authorization"}
)
_UTF8 = frozenset({"utf8", "utf-8", "unicode"})
_LONGEST, _MOST_OTHERS = 1_000, 200
_MILLISECONDS = {"": 1, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_ON, _OFF = frozenset({"on", "true", "yes", "1", "t"}), frozenset({"off", "false", "no", "0", "f"})


@dataclass
class DoorSettings:
    """What one connection said, by lower-case names."""

    values: dict[str, str] = field(default_factory=lambda: {**DEFAULTS, **OWN})
    start: dict[str, str] = field(default_factory=dict[str, str])
    before: dict[str, str] | None = None
    """As they were at BEGIN; None outside of a transaction."""
    local: dict[str, str] = field(default_factory=dict[str, str])
    """What SET LOCAL covered up."""

    shown: ClassVar[Mapping[str, str]] = {name.lower(): name for name in REPORTED}

    def set(self, name: str, value: str, *, local: bool = False) -> None:
        """Set one; refuse what cannot be heeded although a client relies on it."""
        key = name.lower()
        checked = _checked(key, value)
        if key not in self.values and len(self.values) >= _MOST_OTHERS:
            raise SqlProblem("53400", f"a connection must have at most {_MOST_OTHERS} settings.")
        if local:
            if self.before is None:
                return  # PostgreSQL warns that nothing comes of it
            self.local.setdefault(key, self.values.get(key, ""))
        else:
            self.local.pop(key, None)
        self.values[key] = checked

    def reset(self, name: str) -> None:
        """Set one to what it was at the start."""
        key = name.lower()
        if key in self.start:
            self.values[key] = self.start[key]
        else:
            self.values.pop(key, None)

    def reset_all(self) -> None:
        """Set all to what they were at the start."""
        self.values = dict(self.start)

    def started(self) -> None:
        """Keep what is set now as the start."""
        self.start = dict(self.values)

    def follow(self, status: bytes, *, rolled_back: bool) -> None:
        """Follow the transaction: begun, ended, or taken back."""
        if status != b"I":
            if self.before is None:
                self.before = dict(self.values)
            return
        if self.before is not None:
            if rolled_back:
                self.values = self.before
            else:
                self.values.update(self.local)
        self.before = None
        self.local.clear()

    def get(self, name: str) -> str | None:
        """Return the value of one; None where nobody here knows it."""
        return self.values.get(name.lower())

    def reported(self) -> dict[str, str]:
        """Return what clients are told of."""
        return {name: self.values[name.lower()] for name in REPORTED if name.lower() in self.values}

    @property
    def intervals(self) -> str:
        """How the error bars of an answer are told: as columns, as a notice, or not."""
        return self.values["curador.intervals"]

    @property
    def priced(self) -> bool:
        """Whether it was said what a question may cost."""
        return any(self.values[f"curador.{name}"] for name in ("spend", "rho", "epsilon", "accuracy"))

    @property
    def seconds(self) -> float | None:
        """How long a statement may take, as the client wants it; None: it did not say."""
        milliseconds = int(self.values["statement_timeout"])
        return milliseconds / 1000 if milliseconds else None

    @property
    def notices(self) -> bool:
        """Whether the client wants to see notices."""
        return self.values["client_min_messages"] not in {"warning", "error"}

    def options(self, **changes: str | None) -> QuestionOptions:
        """Return the options of the questions that follow."""
        said = {name.removeprefix("curador."): self.values[name] or None for name in OWN}
        said.update(changes)
        caps = said["caps"]
        return QuestionOptions(
            spend=said["spend"],
            rho=said["rho"],
            epsilon=said["epsilon"],
            accuracy=_pairs("curador.accuracy", said["accuracy"]),
            at=said["at"],
            weights=_pairs("curador.weights", said["weights"]),
            caps=_caps(caps),
            dialect="postgres",
            confidence=said["confidence"] or "0.95",
            bias=said["bias"] == "on",
        )


def _checked(key: str, value: str) -> str:
    """Return the value as it is kept."""
    if len(value) > _LONGEST or len(key) > 100 or "\0" in value:
        raise SqlProblem("22023", f"a setting must have at most {_LONGEST} letters.")
    if key.startswith("curador."):
        return _own_value(key, value.strip())
    word = value.strip().strip("'").lower()  # a client may quote at the start, too
    if key in _FIXED:
        raise SqlProblem("55P02", f"{key} must stay as it is.")
    if key == "client_encoding":
        if word not in _UTF8:
            raise SqlProblem("22023", f"client_encoding must be UTF8; got {value!r}.")
        return "UTF8"
    if key == "datestyle":
        if word and word.split(",")[0].strip() not in {"iso", "ymd", "mdy", "dmy", "default"}:
            raise SqlProblem("22023", f"DateStyle must be ISO; got {value!r}.")
        return "ISO, MDY"
    if key == "standard_conforming_strings" and word not in _ON:
        raise SqlProblem("22023", "standard_conforming_strings must be on.")
    if key in {"role", "session authorization"} and word not in {"none", "default"}:
        raise SqlProblem("42501", "a role must be the one that logged in.", "log in again, with the other's token.")
    if key == "statement_timeout":
        return str(_milliseconds(key, word))
    return value


def _own_value(key: str, value: str) -> str:
    if key not in OWN:
        raise SqlProblem("42704", f"a curador setting must be one of {', '.join(OWN)}; got {key}.")
    if key == "curador.intervals":
        if value.lower() not in INTERVALS:
            raise SqlProblem("22023", f"{key} must be one of {', '.join(INTERVALS)}; got {value!r}.")
        return value.lower()
    if key == "curador.bias":
        if value.lower() not in _ON | _OFF:
            raise SqlProblem("22023", f"{key} must be on or off; got {value!r}.")
        return "on" if value.lower() in _ON else "off"
    try:
        if key in {"curador.accuracy", "curador.weights"}:
            _pairs(key, value)
        elif key == "curador.caps":
            _caps(value)
        elif value and key != "curador.spend":
            rational(value, key)
    except CuradorError as problem:
        raise problem_of(problem) from problem
    return value


def _pairs(key: str, value: str | None) -> dict[str, str] | None:
    """Return "n=50, mean=3" as a mapping."""
    if not value:
        return None
    pairs = [part.partition("=") for part in value.split(",")]
    if not all(name.strip() and number.strip() for name, _, number in pairs):
        raise InvalidParameter.must_be(key, "columns with their numbers, such as n=50, mean=3", value)
    return {name.strip(): number.strip() for name, _, number in pairs}


def _caps(value: str | None) -> str | dict[str, int] | None:
    if not value or "=" not in value:
        return value or None
    pairs = _pairs("curador.caps", value) or {}
    if not all(number.isdecimal() for number in pairs.values()):
        raise InvalidParameter.must_be("curador.caps", "whole numbers, such as rows=5", value)
    return {name: int(number) for name, number in pairs.items()}


def _milliseconds(key: str, word: str) -> int:
    digits = word.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = word[len(digits) :].strip()
    if not digits.isdecimal() or len(digits) > 10 or unit not in _MILLISECONDS:
        raise SqlProblem("22023", f"{key} must be a time, such as 5s or 5000; got {word!r}.")
    return min(int(digits) * _MILLISECONDS[unit], 2**31 - 1)


# ---- statements about them -------------------------------------------------------------------------------------------------


def read_set(words: Sequence[Word]) -> tuple[str, str | None, bool]:
    """Return the name, the value (None: the default) and whether it is LOCAL, of a SET."""
    place, local = 1, False
    if len(words) > 1 and words[1].upper in {"SESSION", "LOCAL"} and not (len(words) > 2 and words[2].text in {"=", "to"}):
        local, place = words[1].upper == "LOCAL", 2
    rest = list(words[place:])
    heads = [word.upper for word in rest[:3]]
    if heads[:2] == ["TIME", "ZONE"]:
        return "timezone", _value(rest[2:]), local
    if heads[:1] == ["NAMES"]:
        return "client_encoding", _value(rest[1:]) or "UTF8", local
    if heads[:1] == ["AUTHORIZATION"]:
        return "session authorization", _value(rest[1:]), local
    if heads[:1] == ["CHARACTERISTICS"]:
        return "transaction characteristics", " ".join(word.text for word in rest[1:]), local
    if heads[:1] == ["ROLE"] and len(rest) > 1 and rest[1].text not in {"=", "to"}:
        return "role", _value(rest[1:]), local
    if heads[:1] == ["SCHEMA"]:
        return "search_path", _value(rest[1:]), local
    name, place = read_name(rest)
    if place >= len(rest) or rest[place].text not in {"=", "to"} or place + 1 >= len(rest):
        raise SqlProblem("42601", "SET must be name = value.", "SET curador.spend = '1%'")
    return name, _value(rest[place + 1 :]), local


def read_name(words: Sequence[Word]) -> tuple[str, int]:
    """Return the name of a setting and how many tokens it has."""
    if not words:
        raise SqlProblem("42601", "a setting must have a name.")
    if [word.upper for word in words[:2]] == ["TIME", "ZONE"]:
        return "timezone", 2
    if [word.upper for word in words[:2]] == ["SESSION", "AUTHORIZATION"]:
        return "session_authorization", 2
    name, place = words[0].text, 1
    while place + 1 < len(words) and words[place].text == ".":
        name, place = f"{name}.{words[place + 1].text}", place + 2
    return name, place


def _value(words: Sequence[Word]) -> str | None:
    if len(words) == 1 and words[0].upper == "DEFAULT":
        return None
    joined = ""
    for word in words:
        if word.text == ",":
            joined += ", "
        else:
            joined += word.text
    return joined


def read_options(text: str) -> list[tuple[str, str]]:
    """Return the settings in a connection's options: -c name=value, --name=value; a backslash keeps a space."""
    words, current, kept = list[str](), "", False
    for letter in text:
        if kept:
            current, kept = current + letter, False
        elif letter == "\\":
            kept = True
        elif letter.isspace():
            words, current = [*words, current] if current else words, ""
        else:
            current += letter
    words = [*words, current] if current else words
    pairs, place = list[tuple[str, str]](), 0
    while place < len(words):
        word = words[place]
        if word == "-c" and place + 1 < len(words):
            place, said = place + 1, words[place + 1]
        elif word.startswith(("--", "-c")):
            said = word[2:]
        else:
            raise SqlProblem("22023", "options must be -c name=value, or --name=value.", fatal=True)
        name, _, value = said.partition("=")
        pairs.append((name.replace("-", "_"), value))
        place += 1
    return pairs

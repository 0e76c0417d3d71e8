"""The rules of names and columns, and the one form in which a broken rule of a study is told.

A rule says where it was broken as a path of keys, so that the reader of a file can add the line.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from typing import TypeAlias, cast

from curador.errors import InvalidStudy
from curador.study.values import (
    LARGEST,
    NOUNS,
    Plain,
    Type,
    Value,
    Verbatim,
    as_value,
    key_text,
    nearest_type,
    nearest_word,
    range_rule,
)

Where: TypeAlias = tuple[str | int, ...]
"""Keys from the top of the study; a whole number is a place in a list."""

LONGEST_NAME = 200
MOST_VALUES = 100_000
LONGEST_STRING = 1_000_000_000
LONGEST_DESCRIPTION = 1_000

NAME = 'a name of 1 to 200 characters, without NUL, that does not begin with "__"'


def broken_rule(where: Where, rule: str, value: object, hint: str | None = None) -> InvalidStudy:
    """Return the refusal: `where` must be `rule`; got value."""
    spelled = value if isinstance(value, (str, Plain, Verbatim)) else Verbatim(value)
    return InvalidStudy.must_be(dotted_path(where), rule, spelled, hint, path=where)


def move_under(rule: InvalidStudy, *keys: str | int) -> InvalidStudy:
    """Return the same, seen from further up."""
    where = (*keys, *rule.path)
    return InvalidStudy(subject=dotted_path(where), rule=rule.rule, got=rule.got, hint=rule.hint, path=where)


def locate(rule: InvalidStudy, place: str, subject: str | None = None) -> InvalidStudy:
    """Return the same with the place where it stands, and the name it has there."""
    named = rule.subject if subject is None else subject
    return InvalidStudy(rule.text, subject=named, rule=rule.rule, got=rule.got, hint=rule.hint, place=place, path=rule.path)


def dotted_path(where: Where) -> str:
    """Return the keys as TOML writes them; places in a list are left out, the value itself is shown."""
    return ".".join(key_text(key) for key in where if isinstance(key, str))


def did_you_mean(word: object, words: Sequence[str]) -> str | None:
    """Return the hint for a word that is nearly one of the known ones."""
    found = nearest_word(word, words) if isinstance(word, str) else None
    return f"did you mean {key_text(found)}?" if found else None


def is_text(value: object, longest: int = LONGEST_NAME) -> bool:
    """Whether the value is some text that every file and engine can carry: no NUL, no half of a character."""
    if not isinstance(value, str) or not 1 <= len(value) <= longest or "\0" in value:
        return False
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in value)


def check_description(where: Where, value: object) -> None:
    """Refuse what is no short text that says what a table or a column is about."""
    if value is not None and not is_text(value, LONGEST_DESCRIPTION):
        raise broken_rule(where, f"a text of 1 to {LONGEST_DESCRIPTION:,} characters, without NUL", value)


def is_name(value: object) -> bool:
    """Whether the value can name a table or a column. Two underscores are ours: __rank, __unit."""
    return is_text(value) and not cast("str", value).startswith("__")


def same_but_for_case(names: Sequence[str]) -> tuple[str, str] | None:
    """Return two names that an engine which ignores letter case would take for one."""
    seen: dict[str, str] = {}
    for name in names:
        if name.casefold() in seen:
            return seen[name.casefold()], name
        seen[name.casefold()] = name
    return None


def column_type(name: str, kind: object) -> Type:
    """Return the type of this name."""
    if isinstance(kind, str) and kind in set(Type):
        return Type(kind)
    found = nearest_type(kind) if isinstance(kind, str) else None
    raise broken_rule((name, "type"), f"one of {', '.join(Type)}", kind, f"did you mean {found}?" if found else None)


def column_bounds(name: str, kind: Type, bounds: object) -> tuple[Value, Value] | None:
    """Return the bounds, typed."""
    if bounds is None:
        return None
    where = (name, "bounds")
    if not (kind.numeric or kind.temporal):
        hint = "bounds are for numbers, dates and timestamps; list what may stand there with values"
        raise broken_rule(where, f"absent for a {kind} column", bounds, hint)
    rule = f"two {NOUNS[kind]}, lower below upper"
    pair = list(cast("Sequence[object]", bounds)) if _is_several(bounds) else []
    if len(pair) != 2:
        raise broken_rule(where, rule, bounds)
    lower, upper = (as_value(one, kind) for one in pair)
    if lower is None or upper is None:
        raise broken_rule(where, rule, bounds, _hint_of_type(kind, pair))
    far = range_rule(lower, kind) or range_rule(upper, kind)
    if far is not None:
        raise broken_rule(where, far, bounds)
    if lower == upper:
        raise broken_rule(where, rule, bounds, "bounds with nothing between them would replace every value")
    if upper < lower:  # type: ignore[operator]  # both are of the declared type
        raise broken_rule(where, rule, bounds, f"write bounds = {Verbatim([pair[1], pair[0]])}")
    return lower, upper


def column_values(name: str, kind: Type, values: object, length: int | None) -> tuple[Value, ...] | None:
    """Return the declared values, typed."""
    if values is None:
        return None
    where = (name, "values")
    listed = list(cast("Sequence[object]", values)) if _is_several(values) else []
    if not 1 <= len(listed) <= MOST_VALUES:
        raise broken_rule(where, f"a list of 1 to {MOST_VALUES:,} {NOUNS[kind]}", values)
    places: dict[Value, int] = {}
    for place, written in enumerate(listed):
        value = _one_value((*where, place), kind, written, length)
        if value in places:
            raise broken_rule(
                (*where, place), "a list without repetition", written, f"it repeats value number {places[value] + 1}"
            )
        places[value] = place
    return tuple(places)


def _one_value(where: Where, kind: Type, written: object, length: int | None) -> Value:
    value = as_value(written, kind)
    if value is None:
        raise broken_rule(where, f"a list of {NOUNS[kind]}", written, _hint_of_type(kind, [written]))
    far = range_rule(value, kind)
    if far is not None:
        raise broken_rule(where, far, written)
    if isinstance(value, str):
        if value and not is_text(value, LONGEST_STRING):
            raise broken_rule(where, "a list of strings without NUL", written)
        if length is not None and len(value) > length:
            raise broken_rule(where, f"a list of strings of at most {length} characters, the declared length", written)
    return value


def column_length(name: str, kind: Type, length: object) -> int | None:
    """Return the declared maximum of LENGTH."""
    if length is None:
        return None
    if kind is not Type.STRING:
        raise broken_rule(
            (name, "length"), f"absent for a {kind} column", length, "length is the longest LENGTH of a string column"
        )
    if type(length) is not int or not 1 <= length <= LONGEST_STRING:
        raise broken_rule((name, "length"), f"a whole number from 1 to {LONGEST_STRING:,}", length)
    return length


def _is_several(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _hint_of_type(kind: Type, written: list[object]) -> str | None:
    """Return how a value of this type is written, for the usual mistakes."""
    wrong = next(one for one in written if as_value(one, kind) is None)
    if kind is Type.STRING and not isinstance(wrong, (list, dict)):
        spelled = str(Verbatim(wrong)).strip('"')
        return f'a string column holds text: write "{spelled}" with quotes, or declare another type'
    if kind is Type.INTEGER and isinstance(wrong, str):
        return 'an integer column holds whole numbers: write them without quotes, or declare type = "string"'
    if kind is Type.INTEGER:
        return 'an integer column holds whole numbers; declare type = "decimal" or "float" for others'
    if kind is Type.BOOLEAN:
        return "a boolean column holds true and false, without quotes"
    if kind is Type.DATE:
        return 'write a day of the years 1 to 9999 as "2024-12-31"; with a time of day the type is "timestamp"'
    if kind is Type.TIMESTAMP:
        return 'write a time of the years 1 to 9999 as "2024-12-31T23:59:59"'
    if kind in LARGEST and not isinstance(wrong, (list, dict, bool)):
        return 'write a finite number: 0.5, 100 or "1e-6"'
    return None


_SECRETS = frozenset({"user", "password", "sslpassword", "passfile", "options", "token", "user_id"})
"""What an address in a study file must not have: who logs in, and settings that are ours."""


def require_bare_address(url: object) -> None:
    """Refuse what is not the bare address of an engine's server; what may be a secret is not repeated."""
    where = ("engine", "url")
    if not is_text(url, 4_096):
        raise broken_rule(where, "the address of a server", Plain("none"))
    try:
        parts = urllib.parse.urlsplit(str(url))
        named = {name.casefold() for name, _ in urllib.parse.parse_qsl(parts.query, keep_blank_values=True)}
        named |= {one.partition("=")[0].strip().casefold() for one in parts.path.split(";")[1:]}
    except ValueError:
        raise broken_rule(where, "the address of a server", Plain("one that cannot be read")) from None
    if "@" in parts.netloc or named & _SECRETS:
        hint = "who logs in is said by the environment, and the password by ~/.pgpass or the like: many may read a study file"
        raise broken_rule(where, "an address without user, password, token and options", Plain("one that has them"), hint)
    if not parts.scheme or "://" not in str(url):
        raise broken_rule(where, 'an address such as "postgresql://db.example.org/shop"', Plain("another text"))

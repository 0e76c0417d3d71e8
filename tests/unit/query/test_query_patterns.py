"""Regular expressions: what is in the language, how it is written anew, and what matching costs."""

import random
import re

import pytest
from query_words import condition, read, words

from curador.errors import InvalidQuery
from curador.query.patterns import END, MOST_CHARACTERS, count_steps, read_pattern

WRITTEN = {
    "abc": "abc",
    "a.c": r"a[^\n]c",
    "^a$": f"^a{END}",
    r"\d+": "[0-9]+",
    r"\W": "[^0-9A-Za-z_]",
    "(a|b)*?": "(?:a|b)*",
    "[^a-c_]": r"[^a-c\_]",
    "a{2,}": "a{2,}",
    "o'h": r"o\'h",
    r"\.": r"\.",
    "[]-]": r"[\]\-]",
    "日": "日",
    " ": r"\x20",
    "": "",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_patterns_are_written_anew(text):
    """In one form that every engine reads alike."""
    assert read_pattern(text, None) == WRITTEN[text]


def test_case_and_whole_texts_are_part_of_the_pattern():
    """No flag reaches an engine."""
    assert read_pattern("aB[x-z]", None, fold=True) == "[aA][Bb][x-zX-Z]"
    assert read_pattern("a|b", None, whole=True) == f"^(?:a|b){END}"
    assert read_pattern(".", None, lines=True) == "(?s:.)"


REFUSED = {
    r"(a)\1": "no references",
    "(?=a)": "no look-around",
    "(?<!a)b": "no look-around",
    "(?P<n>a)": "no look-around",
    "(?i)a": "no look-around",
    "a{65}": "at most 64 times",
    "a{3,2}": "at most 64 times",
    "a{,2}": "at most 64 times",
    "a{x}": "at most 64 times",
    "((a{64}){64})": "at most 1,000 places",
    "a**": "must not follow another",
    "a{2}{2}": "must not follow another",
    "^*": "must follow a letter",
    "*a": "must follow something",
    "(a": "must be closed",
    "a)": "none is open",
    "[a": "must follow at the end",
    "[[:alpha:]]": "must have",
    "[z-a]": "run upwards",
    r"[a-\d]": "is not known",
    r"\p{L}": "is not known",
    r"\Qa": "is not known",
    "a\\": "must follow at the end",
    "a" * (MOST_CHARACTERS + 1): "at most 256 characters",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_in_the_language_is_refused(text):
    """By the rule that it breaks."""
    with pytest.raises(InvalidQuery) as refusal:
        read_pattern(text, None)
    assert REFUSED[text] in str(refusal.value)


def test_letters_beyond_ascii_have_one_case():
    """Which letters are each other's other case depends on an engine."""
    for text in ("é", "[à-é]"):
        with pytest.raises(InvalidQuery, match="from a to z"):
            read_pattern(text, None, fold=True)


def made(dice, deep):
    """A random pattern of the language."""
    if not deep or dice.random() < 0.3:
        return dice.choice(["a", "b", "ab", ".", "[ab]", "[^a]", r"\d", r"\w", "b$", "^a", r"\b", "é", r"\s", "[a-c0-9]"])
    inner = made(dice, deep - 1)
    return dice.choice(
        [
            f"({inner})*",
            f"({inner}){{1,3}}",
            f"(?:{inner})?",
            f"{inner}|{made(dice, deep - 1)}",
            f"{inner}{made(dice, deep - 1)}",
        ]
    )


@pytest.mark.slow
def test_patterns_mean_what_they_meant():
    """Two thousand random patterns match the same texts before and after they are written anew, by another engine."""
    dice = random.Random(11)
    texts = ["", *("".join(dice.choice("abcé 1\n_") for _ in range(dice.randrange(8))) for _ in range(40))]
    for _ in range(2_000):
        text = made(dice, 3)
        try:
            anew = read_pattern(text, None)
        except InvalidQuery:
            continue
        before, after = (re.compile(one.replace("$", r"\Z").replace(r"(?:\Z)", r"\Z"), re.ASCII) for one in (text, anew))
        assert [bool(before.search(one)) for one in texts] == [bool(after.search(one)) for one in texts], text
        assert count_steps(anew) >= 1


def test_a_wrong_letter_would_be_seen():
    """Seeded bug: a set written as its opposite."""
    assert re.search(read_pattern("[^a]", None), "a") is None
    assert re.search(read_pattern("[^a]", None).replace("^", ""), "a") is not None


@pytest.mark.parametrize(
    "text", ["abc", "^[A-Z]{2}-[0-9]+$", r"^\d{4}-\d{2}-\d{2}$", "iphone|ipad|ipod", r".*@(gmail|mail)\.com$", "(x+x+)+y"]
)
def test_patterns_of_few_states_cost_one_step(text):
    """A table of states does it, however the pattern is repeated."""
    assert count_steps(read_pattern(text, None)) == 1


@pytest.mark.parametrize(("text", "places"), [("(a|b)*a(a|b){60}c", 124), (".*a.{40}b", 43), ("([ab]{1,64}a){15}c", 976)])
def test_patterns_of_many_states_cost_all_their_places(text, places):
    """Engines give up their table and follow every place."""
    assert count_steps(read_pattern(text, None)) == places


SPELLED = {
    ("duckdb", "regexp_matches(name, 'a')"): "a",
    ("duckdb", "regexp_matches(name, 'a', 'i')"): "[aA]",
    ("duckdb", "name ~ 'a'"): f"^(?:a){END}",
    ("duckdb", "name SIMILAR TO 'a'"): f"^(?:a){END}",
    ("duckdb", "regexp_full_match(name, 'a')"): f"^(?:a){END}",
    ("postgres", "name ~ 'a.'"): "a(?s:.)",
    ("postgres", "name ~* 'a'"): "[aA]",
    ("bigquery", r"REGEXP_CONTAINS(name, r'\d')"): "[0-9]",
    ("spark", "name RLIKE 'a'"): "a",
    ("snowflake", "name RLIKE 'a'"): f"^(?:a){END}",
    ("snowflake", "REGEXP_LIKE(name, 'a', 'i')"): f"^(?:[aA]){END}",
}


@pytest.mark.parametrize(("dialect", "text"), SPELLED)
def test_each_dialect_has_its_own_words(dialect, text):
    """Whether a part or the whole must match, and whether a dot is a new line."""
    relation = read(f"SELECT COUNT(*) FROM people WHERE {text}", dialect=dialect).blocks[0].relation
    assert words(relation.predicate) == f"matches(#8, {SPELLED[dialect, text]!r})"


def test_a_pattern_is_written_in_the_question():
    """A column's would be chosen by a row."""
    assert condition("NOT regexp_matches(name, 'a')") == "not(matches(#8, 'a'))"
    with pytest.raises(InvalidQuery, match="written here"):
        condition("regexp_matches(name, city)")

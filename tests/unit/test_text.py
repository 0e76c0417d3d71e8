"""Numbers, keys and tables as people read them."""

from fractions import Fraction

import pytest

from curador.ledger.amounts import Amounts, amounts_text
from curador.text import (
    key_text,
    level_text,
    make_table,
    nearest_names,
    percent_text,
    plain_text,
    reach_text,
    released_text,
    rounded_text,
    verbatim,
)

HARD = "[red]x[/red] :skull: \\[b] 100 %"


@pytest.mark.parametrize(
    ("value", "up", "text"),
    [
        (Fraction(1, 3), True, "0.3334"),
        (Fraction(1, 3), False, "0.3333"),
        (Fraction(0), True, "0"),
        (Fraction(100), True, "100"),
        (Fraction(1, 10**9), True, "1e-9"),
        (Fraction(123456789), False, "1.234e8"),
        (Fraction(1, 8), True, "0.125"),
    ],
)
def test_amounts_are_rounded_so_that_they_stay_true(value, up, text):
    """Costs up, rests down, four digits."""
    assert rounded_text(value, up=up) == text


def test_numbers_for_people():
    """Digits follow the error."""
    assert released_text(None) == "NULL"
    assert released_text(1234567) == "1,234,567"
    assert released_text(3.14159, 0.02) == "3.142"
    assert released_text("x") == "x"
    assert released_text(True) == "True"
    assert reach_text(0.0123) == "± 0.012"
    assert reach_text(1234.5) == "± 1,234"
    assert reach_text(3e20) == "± 3e+20"
    assert percent_text(Fraction(1, 3), Fraction(0), up=True) == "0 %"
    assert amounts_text(Amounts(epsilon=Fraction(1, 4)), pure=True, up=True) == "ε = 0.25"


def test_keys_that_differ_look_different():
    """All digits and no commas."""
    assert [key_text(one) for one in (None, True, 10**6, "x", 1e22)] == ["NULL", "True", "1000000", "x", "1e+22"]


def test_a_key_moves_no_terminal():
    """What a terminal would obey is written as its code."""
    assert key_text("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"


def test_tables_print_letter_by_letter():
    """No markup, no emoji, nothing that moves a cursor."""
    made = make_table(HARD, "n")
    made.add_row(verbatim(HARD), "1")
    assert plain_text(made).count(HARD) == 2
    assert "\x1b" not in plain_text(verbatim("\x1b[2J"))


@pytest.mark.parametrize(("level", "text"), [("0.95", "95 %"), ("0.999999999999", "99.9999999 %"), ("1/3", "33.3333333 %")])
def test_a_confidence_is_rounded_down(level, text):
    """So that no interval is said to be certain."""
    assert level_text(Fraction(level)) == text


def test_names_that_were_probably_meant():
    """Whatever the case, the nearest first; nothing for what looks like none, and long words are cut, not compared."""
    names = ["user_id", "user_ids", "City"]
    assert nearest_names("USER_IDD", names, most=2) == ["user_id", "user_ids"]
    assert nearest_names("citi", names) == ["City"]
    assert nearest_names("zzz", names) == []
    assert nearest_names("x" * 10**6, ["x" * 60]) == ["x" * 60]

"""Formats of a study: written, read back, refused by their key, and part of the fingerprint only where declared."""

from pathlib import Path

import pytest

from curador.errors import InvalidStudy
from curador.study.build import build_study
from curador.study.file import parse_study
from curador.study.formats import FileFormat, decode_bytes
from curador.study.model import Budget, digested_meaning

FOLDER = Path("/somewhere")
STUDY = """
version = 1
name = "eu"
budget = { epsilon = "1" }
ledger = "eu.ledger"
[tables.sales]
source = "sales.csv"
unit = "row"
"""
WHOLE = """format = { separator = ";", encoding = "windows-1252", decimal = ",", thousands = ".", \
dates = ["%d/%m/%Y", "%d.%m.%y"], timestamps = "%d/%m/%Y %H:%M", nulls = ["N/A", ""], trim = true, newlines = true }"""


def test_a_format_is_written_and_read_back():
    """Every key; the same study and the same fingerprint."""
    study = parse_study(STUDY + WHOLE, folder=FOLDER)
    assert WHOLE in study.to_toml()
    again = parse_study(study.to_toml(), folder=FOLDER)
    assert (again, again.digest) == (study, study.digest)
    assert study.tables[0].format.nulls == ("N/A", "")


def test_python_says_the_same():
    """For one table, and by name for several."""
    declared = parse_study(STUDY + 'format = { decimal = "," }', folder=FOLDER).tables[0].format
    options = {"unit": "row", "budget": Budget(epsilon=1)}
    assert build_study("sales.csv", format={"decimal": ","}, **options).tables[0].format == declared
    two = build_study({"a": "a.csv"}, format={"a": {"decimal": ","}}, ledger="a.ledger", **options)
    assert two.tables[0].format == FileFormat(decimal=",")
    with pytest.raises(InvalidStudy, match=r"^format must be a mapping from tables of this study; got 'decimal'"):
        build_study({"a": "a.csv"}, format={"decimal": ","}, ledger="a.ledger", **options)


def test_a_study_without_a_format_means_what_it_meant():
    """Its fingerprint says nothing of one."""
    plain, declared = (
        digested_meaning(parse_study(STUDY + line, folder=FOLDER)) for line in ("", 'format = { decimal = "," }')
    )
    assert "format" not in plain["tables"]["sales"]
    assert declared["tables"]["sales"].pop("format") == {"decimal": ","}
    assert plain == declared


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ('decimals = ","', "format.decimals must be a known key (separator, encoding, "),
        ('decimal = ";"', 'format.decimal must be "." or ","; got \';\''),
        ('thousands = "."', "and not the decimal sign; got '.'.\nHint: with thousands"),
        ('separator = "::"', "format.separator must be one of , ; tab and |"),
        ('encoding = "utf8x"', "Hint: did you mean utf-8?"),
        ('encoding = "shift_jis"', "format.encoding must be utf-8, utf-16, latin-1"),
        ('dates = "dd/mm/yyyy"', "Hint: say day, month and year: %d %m %Y"),
        ('dates = "%d/%m"', 'format.dates must be a pattern of a day such as "%d/%m/%Y"'),
        ('dates = "%d/%m/%Y %z"', "format.dates must be a pattern"),
        ('timestamps = ["%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M"]', "format.timestamps must be a pattern"),
        ('nulls = "N/A"', "format.nulls must be a list of at most 100 words"),
        ("trim = 1", "format.trim must be true or false; got 1"),
    ],
)
def test_a_bad_format_is_refused_by_its_key(written, sentence):
    """With the line and what to write."""
    with pytest.raises(InvalidStudy) as refused:
        parse_study(STUDY + f"format = {{ {written} }}", folder=FOLDER)
    assert str(refused.value).startswith("study.toml, line 9: [tables.sales] ")
    assert sentence in str(refused.value)


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "iso8859-15", "cp850", "koi8-r", "mac-roman"])
def test_every_byte_is_one_character(encoding):
    """Also one that the encoding leaves open; lines end at the same two bytes in all of them."""
    name = FileFormat(encoding=encoding).encoding
    text = decode_bytes(bytes(range(256)), name)
    assert len(text) == 256
    assert (text[:128], {"\n", "\r"} & set(text[128:])) == ("".join(map(chr, range(128))), set())
    assert text == "".join(decode_bytes(bytes([byte]), name) for byte in range(256))

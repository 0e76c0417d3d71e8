"""Laws of the study file: what is written reads back as the same, and whatever is read is a study or a refusal."""

from __future__ import annotations

import datetime as dt
import tomllib
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curador.errors import InvalidStudy
from curador.numerics.exact import rational
from curador.privacy.adjacency import Adjacency
from curador.study.file import find_places, parse_study
from curador.study.model import (
    PREPARE,
    WORKERS,
    Analyst,
    Budget,
    Caps,
    Column,
    EngineSettings,
    Study,
    Table,
    UnitColumn,
    UnitPath,
    UnitRow,
)
from curador.study.values import Type, key_text, number_text, value_text

FOLDER = Path("/somewhere")

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)
NAMES = st.one_of(
    st.sampled_from(["a", "a.b", "b", "row", "A b", "name", "é"]), TEXTS.filter(lambda text: not text.startswith("__"))
)
RATIONALS = st.one_of(
    st.fractions(min_value=-(10**30), max_value=10**30, max_denominator=10**9),
    st.decimals(min_value=Decimal("-1e30"), max_value=Decimal("1e30"), allow_nan=False).map(Fraction),
    st.integers(-(10**30), 10**30).map(Fraction),
)
VALUES = {
    Type.BOOLEAN: st.booleans(),
    Type.INTEGER: st.integers(-(2**62), 2**62),
    Type.DECIMAL: RATIONALS,
    Type.FLOAT: st.one_of(RATIONALS, st.floats(-9e299, 9e299).map(Fraction)),
    Type.STRING: st.one_of(st.just(""), TEXTS),
    Type.DATE: st.dates(),
    Type.TIMESTAMP: st.datetimes(),
}
POSITIVE = st.fractions(min_value=Fraction(1, 10**12), max_value=10**6, max_denominator=10**12).filter(lambda one: one > 0)
SHARES = st.fractions(min_value=0, max_value=1, max_denominator=10**6).filter(lambda one: one > 0)


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(Type))
    values = st.lists(VALUES[kind], min_size=1, max_size=4, unique=True).map(tuple)
    pairs = st.lists(VALUES[kind], min_size=2, max_size=2, unique=True).map(lambda pair: tuple(sorted(pair)))
    return Column(
        draw(NAMES),
        kind,
        bounds=draw(st.none() | pairs) if kind.numeric or kind.temporal else None,
        values=draw(st.none() | values),
        nullable=draw(st.booleans()),
        length=draw(st.none() | st.integers(12, 10**9)) if kind is Type.STRING else None,
    )


def caps():
    some = st.none() | st.integers(1, 10**6)
    return st.builds(Caps, rows=st.integers(1, 10**6), groups=some, rows_per_group=some)


@st.composite
def units(draw, earlier, *, by_row):
    """Return the unit of the next private table; all chains end at one kind of unit."""
    if not earlier:
        return UnitRow() if by_row else UnitColumn(f"u{draw(NAMES)}")
    if not by_row and draw(st.booleans()):
        return UnitColumn(draw(st.sampled_from(["row", "u"])))
    table = draw(st.sampled_from(earlier))
    holds_unit = not isinstance(table.unit, UnitRow) and getattr(table.unit, "key", None) is None
    return UnitPath(f"u{draw(NAMES)}", table.name, None if holds_unit and draw(st.booleans()) else f"u{draw(NAMES)}")


@st.composite
def tables(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.casefold))
    by_row = draw(st.booleans())
    made = []
    for place, name in enumerate(names):
        public = place > 0 and draw(st.booleans())
        listed = draw(st.lists(columns(), max_size=3, unique_by=lambda one: one.name.casefold()))
        declared = tuple(replace(column, name=f"c{column.name}") for column in listed)
        if public:
            made.append(Table(name, draw(TEXTS), None, declared, key=tuple(draw(st.lists(NAMES, max_size=2, unique=True)))))
            continue
        usual = draw(caps())
        most = draw(st.none() | st.just(replace(usual, rows=10**6, groups=10**6 if usual.groups else None)))
        unit = draw(units([table for table in made if not table.public], by_row=by_row))
        made.append(Table(name, draw(TEXTS), unit, declared, draw(st.booleans()), usual, most))
    return tuple(draw(st.permutations(made)))


@st.composite
def budgets(draw):
    delta = draw(st.none() | st.fractions(min_value=0, max_value=1, max_denominator=10**9).filter(lambda one: 0 < one < 1))
    keys = None if delta is None else draw(st.none() | st.sampled_from([Fraction(0), delta / 3]))
    return Budget(epsilon=draw(POSITIVE), delta=delta, delta_keys=keys)


@st.composite
def studies(draw):
    made = draw(tables())
    some = st.none() | st.lists(st.sampled_from([table.name for table in made]), min_size=1, unique=True).map(tuple)
    people = draw(st.lists(NAMES.filter(lambda name: name.casefold() != "owner"), max_size=3, unique_by=str.casefold))
    sizes = st.integers(1, 2**62)
    engine = st.builds(
        EngineSettings, st.integers(1, 1024), sizes, sizes, POSITIVE, st.sampled_from(PREPARE), st.sampled_from(WORKERS)
    )
    paced = engine.flatmap(lambda one: st.integers(1, 9).map(lambda part: replace(one, answer_every=one.deadline / part)))
    return Study(
        name=draw(TEXTS),
        tables=made,
        budget=draw(budgets()),
        ledger=draw(TEXTS.map(Path).filter(lambda path: path.name not in {"", ".."})),
        unit_name=draw(TEXTS),
        adjacency=draw(st.sampled_from(Adjacency)),
        max_units=draw(st.integers(1, 2**62)),
        engine=draw(st.just(EngineSettings()) | engine | paced),
        analysts=tuple(Analyst(name, draw(SHARES), draw(some), draw(st.booleans())) for name in people),
        folder=FOLDER,
        allow_large_delta=draw(st.booleans()),
        least_spend=draw(SHARES | st.just(Fraction(0))),
    )


def paths(value, above=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*above, key)
        yield from paths(item, (*above, key))


@pytest.mark.slow
@settings(max_examples=60)
@given(studies())
def test_a_study_reads_back_as_itself(study):
    """read(to_toml(s)) == s, with the same fingerprint."""
    again = parse_study(study.to_toml(), folder=FOLDER)

    assert again == study
    assert again.digest == study.digest


@pytest.mark.slow
@settings(max_examples=30)
@given(studies())
def test_every_key_of_a_written_study_has_its_line(study):
    """The scanner finds exactly the keys that the parser finds, each on a line that holds it."""
    text = study.to_toml()
    found = find_places(text)
    lines = text.split("\n")

    assert set(found) == set(paths(tomllib.loads(text)))
    for path, place in found.items():
        if isinstance(path[-1], str):
            assert key_text(path[-1]) in lines[place.line - 1]


@pytest.mark.slow
@settings(max_examples=30)
@given(studies(), st.data())
def test_order_and_machine_are_no_part_of_the_fingerprint(study, data):
    """Tables may be written in any order, and the study may move."""
    shuffled = tuple(data.draw(st.permutations(study.tables)))
    moved = replace(study, tables=shuffled, engine=EngineSettings(), folder=Path("/x"), ledger=Path("y"), analysts=())

    assert moved.digest == study.digest


ANYTHING = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.sampled_from([Decimal("inf"), Decimal("nan"), Decimal("1e9999"), Decimal("-0.0"), dt.time(1, 2)]),
        st.sampled_from(["", "row", "1e-6", "20%", "4GB", "1/0", "1992-01-01", "0001-01-01T00:00:00+10:00", "__x", "\0"]),
        st.dates(),
        st.datetimes(timezones=st.none() | st.just(dt.UTC)),
        TEXTS,
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["rows", "column", "type", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def as_toml(value):
    """Return TOML of a document, dates and times written bare as well as in quotes."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key_text(key)} = {as_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(as_toml(item) for item in value) + "]"
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else value_text(value)


def put(document, path, value):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


@pytest.mark.slow
@settings(max_examples=80)
@given(studies(), st.data())
def test_a_document_with_something_else_in_it_is_a_study_or_a_refusal(study, data):
    """Whatever stands in the place of a value, nothing but InvalidStudy is raised, and it is one sentence with a hint."""
    document = tomllib.loads(study.to_toml(), parse_float=Decimal)
    place = data.draw(st.sampled_from(sorted(paths(document), key=str)))
    put(document, place, data.draw(ANYTHING))
    text = "\n".join(f"{key_text(key)} = {as_toml(value)}" for key, value in document.items())
    try:
        read = parse_study(text, folder=FOLDER)
    except InvalidStudy as refusal:
        sentence, _, hint = str(refusal).partition("\nHint: ")
        assert " must be " in sentence
        assert "\n" not in sentence + hint
    else:
        assert parse_study(read.to_toml(), folder=FOLDER) == read


@pytest.mark.slow
@settings(max_examples=60)
@given(studies(), st.data())
def test_a_damaged_text_is_a_study_or_a_refusal(study, data):
    """A piece cut out, doubled or replaced by anything never raises another error."""
    text = study.to_toml()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    between = data.draw(st.sampled_from(["", text[start:end] * 2, '"', "[", "]", "{", "\n", "#", "=", "\\", '"""', "'''"]))
    try:
        parse_study(text[:start] + between + text[end:], folder=FOLDER)
    except InvalidStudy as refusal:
        told = str(refusal)
    else:
        told = "accepted"
    assert " must be " in told or told == "accepted"


@given(st.one_of(RATIONALS, st.floats(allow_nan=False, allow_infinity=False).map(Fraction), st.fractions()))
def test_a_number_is_its_text(value):
    """number_text is exact and within what the reader accepts."""
    text = number_text(value)

    assert text is None or (len(text) <= 400 and rational(text, "x") == value)

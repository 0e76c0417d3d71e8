"""What comes after the engine is tried out once for all questions of one shape; the engine itself for every one of them."""

import pytest
from curator_studies import BY_SHOP, open_curator

from curador.curator import asking
from curador.curator.options import QuestionOptions
from curador.curator.price import price_question
from curador.curator.rehearsal import shape_of
from curador.errors import InvalidQuery

WHERE = "SELECT shop, COUNT(*) AS n, AVG(spent) AS mean FROM visits WHERE spent > {} GROUP BY shop"


@pytest.fixture
def curator(tmp_path):
    """A curator whose engine holds no data."""
    with open_curator(tmp_path) as made:
        yield made


@pytest.fixture
def tried(curator, monkeypatch):
    """How often the whole way was tried, and how often the engine."""
    counts = {"way": 0, "engine": 0}
    whole, engine = asking.rehearse, session_of_owner(curator).engine

    def way(*given):
        counts["way"] += 1
        return whole(*given)

    def statements(compiled, rehearse=engine.rehearse):
        counts["engine"] += 1
        return rehearse(compiled)

    monkeypatch.setattr(asking, "rehearse", way)
    monkeypatch.setattr(engine, "rehearse", statements, raising=False)
    return counts


def session_of_owner(curator):
    """What stands behind the owner's verbs."""
    return curator._session  # noqa: SLF001 -- engine and prices are reached through it


def shape(curator, text, spend="1%"):
    """The shape of a question's own plan."""
    return shape_of(price_question(session_of_owner(curator), text, QuestionOptions(spend=spend)).priced[0])


def test_another_condition_is_the_same_shape(curator, tried):
    """The engine runs every statement without rows; what comes after it is known."""
    for least in (20, 21, 22):
        curator.ask(WHERE.format(least), spend="1%")
    assert tried == {"way": 1, "engine": 3}


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        WHERE.format(10).replace("AS n", "AS m"),
        WHERE.format(10) + " HAVING COUNT(*) > 3",
        WHERE.format(10) + " ORDER BY n",
        WHERE.format(10) + " LIMIT 3",
        WHERE.format(10).replace("COUNT(*)", "COUNT(*) + 1"),
        WHERE.format(10).replace("AVG", "SUM"),
        WHERE.format(499),  # another magnitude of bounds and noise
        BY_SHOP,
    ],
)
def test_what_changes_the_way_changes_the_shape(curator, tried, other):
    """Names, expressions, types, keys and the size of numbers are tried out anew."""
    assert shape(curator, WHERE.format(10)) != shape(curator, other)
    curator.ask(WHERE.format(10), spend="1%")
    curator.ask(other, spend="1%", fresh=True)
    assert tried == {"way": 2, "engine": 2}


def test_the_size_of_the_noise_is_part_of_the_shape(curator):
    """A thousand times the noise is another thing to write, and to compute with."""
    assert shape(curator, WHERE.format(10), "1%") != shape(curator, WHERE.format(10), "0.01%")
    assert shape(curator, WHERE.format(10), "1%") == shape(curator, WHERE.format(11), "1%")


@pytest.mark.parametrize("part", ["explain", "bounding_notes"])
def test_what_is_every_questions_own_is_tried_before_the_charge(curator, monkeypatch, part):
    """A known shape does not let through what fails for one plan's sake: nothing is charged."""
    curator.ask(WHERE.format(10), spend="1%")
    before = curator.ledger.head

    def fail(*_):
        raise RuntimeError("this plan")

    monkeypatch.setattr(asking, part, fail)
    with pytest.raises(InvalidQuery, match="nothing was charged"):
        curator.ask(WHERE.format(11), spend="1%")
    assert curator.ledger.head == before


def test_a_statement_that_fails_without_rows_is_refused_whatever_its_shape(curator, monkeypatch):
    """The engine is asked each time."""
    curator.ask(WHERE.format(10), spend="1%")
    before = curator.ledger.head

    def fail(_):
        raise RuntimeError("this statement")

    monkeypatch.setattr(session_of_owner(curator).engine, "rehearse", fail, raising=False)
    with pytest.raises(InvalidQuery, match="nothing was charged"):
        curator.ask(WHERE.format(11), spend="1%")
    assert curator.ledger.head == before

"""Seeded bugs of asking and answering, each killed by a named check of the product: the check fails with the bug in place."""

import dataclasses
import datetime as dt
import math
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from curator_studies import open_curator

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "answers"), str(HERE.parent / "query")]

import test_curator_flow as flow  # noqa: E402
import test_curator_times as times  # noqa: E402
import test_hostile_amounts as amounts  # noqa: E402
import test_query_joins as joins  # noqa: E402
import test_releasing as releasing  # noqa: E402

from curador.answers import release, table  # noqa: E402
from curador.curator import price, spending  # noqa: E402
from curador.errors import Failed  # noqa: E402
from curador.ledger import acts, entry  # noqa: E402
from curador.ledger.ledger import Ledger  # noqa: E402
from curador.privacy.compose import optimal_delta  # noqa: E402
from curador.query import sources  # noqa: E402

KILLED = (AssertionError, pytest.fail.Exception)
PROBLEM = ValueError("row 17 holds 42")


def killed(check, *given):
    """A check that passes without the bug, and does not with it."""
    with pytest.raises(KILLED):
        check(*given)


@pytest.fixture
def curator(tmp_path):
    with open_curator(tmp_path) as made:
        yield made


def test_error_text_returned(curator, monkeypatch):
    """What the engine said of a row is told to the asker."""
    monkeypatch.setattr(spending, "_settle_failure", lambda *given: Failed(f"the question could not be answered: {given[2]}"))
    killed(flow.test_a_failure_keeps_the_charge_and_tells_an_id_only, curator, PROBLEM)


def test_error_refunds_the_budget(curator, monkeypatch):
    """A failure gives its charge back."""
    monkeypatch.setattr(Ledger, "fail", lambda own, reserved, **_: own.void(reserved))
    killed(flow.test_a_failure_keeps_the_charge_and_tells_an_id_only, curator, PROBLEM)


def test_charge_after_the_rows(curator, monkeypatch):
    """The charge is written when the answer is there."""
    plain = spending._reserve  # noqa: SLF001 -- what the bug delays

    def late(session, purchase, **said):
        purchase.compute(rehearsal=False)
        return plain(session, purchase, **said)

    monkeypatch.setattr(spending, "_reserve", late)
    killed(flow.test_the_charge_is_on_disk_before_data_are_read, curator)


def test_cache_ignores_the_data_version(curator, monkeypatch):
    """The key of a stored answer does not know the version, and nobody else asks for it."""
    plain, stored = price.question_key, Ledger.stored
    monkeypatch.setattr(price, "question_key", lambda *given, **named: plain(*given, **{**named, "data_version": 1}))
    monkeypatch.setattr(Ledger, "stored", lambda own, key, _version, **named: stored(own, key, 1, **named))
    killed(flow.test_a_new_data_version_is_asked_anew, curator)


def test_order_of_the_engine_kept(monkeypatch):
    """Groups come out as the engine met them."""
    plain = release.rows_to_release

    def as_met(block, tallied, selection):
        rows, units = plain(block, tallied, selection)
        met = list(release.private_units(block, tallied))
        return sorted(rows, key=lambda row: met.index(row[:1])), units

    monkeypatch.setattr(release, "rows_to_release", as_met)
    killed(releasing.test_the_order_of_the_engine_is_not_seen)


def test_threshold_on_the_exact_count(monkeypatch):
    """A key is shown where enough people hold it, exactly."""

    def exact(block, tallied, selection):
        units = release.private_units(block, tallied) if selection is not None else {}
        kept = {key: float(number) for key, number in units.items() if number > 5}
        return release.cross_keys(block, sorted(kept) if selection is not None else [()]), None

    monkeypatch.setattr(release, "rows_to_release", exact)
    killed(releasing.test_a_key_of_one_person_does_not_pass)


def test_sums_in_32_bits(monkeypatch):
    """An accumulator that wraps around."""
    plain = release.integers
    monkeypatch.setattr(release, "integers", lambda values: [(one + 2**31) % 2**32 - 2**31 for one in plain(values)])
    killed(releasing.test_integers_of_any_size_stay_exact)


def test_float_tallies_pass(monkeypatch):
    """A sum of doubles reaches the seam, rounded."""
    monkeypatch.setattr(release, "integers", lambda values: [int(float(one)) for one in values])
    killed(releasing.test_integers_of_any_size_stay_exact)


def having_follows_noise(folder, world):
    """Two worlds, one row apart at the bound of HAVING, 20 times: neither is all or nothing. False alarms: below 2⁻⁵⁰."""
    for each in (999, 1000):
        world["each"] = each
        with open_curator(folder, each=each, name=f"of{each}") as curator:
            text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) >= 1000"
            shown = sum(len(curator.ask(text, spend="0.1%", fresh=True)) for _ in range(20))
        assert 0 < shown < 60


@pytest.mark.slow
def test_exact_having(tmp_path, monkeypatch):
    """HAVING decides by what was counted, not by what was released."""
    for name in ("right", "wrong"):
        (tmp_path / name).mkdir()
    world = {}
    having_follows_noise(tmp_path / "right", world)
    plain = table._kept_places  # noqa: SLF001 -- what the bug replaces

    def exact(sight):
        places = plain(dataclasses.replace(sight, block=dataclasses.replace(sight.block, having=None)))
        return places if world["each"] >= 1000 else places[:0]

    monkeypatch.setattr(table, "_kept_places", exact)
    killed(having_follows_noise, tmp_path / "wrong", world)


@pytest.mark.parametrize("written", ["nan", "-1", "-inf", "0"])
def test_any_epsilon_accepted(written, curator, monkeypatch):
    """NaN, negative and infinite amounts are taken for something."""
    refused = not amounts.asked(curator, *amounts.API["epsilon"](written))
    assert refused
    monkeypatch.setattr(price, "positive", lambda _value, _name: Fraction(1, 10))
    assert amounts.asked(curator, *amounts.API["epsilon"](written))


def test_shadowed_names_read_the_table(monkeypatch):
    """A name of WITH is looked up among tables first: a question is about other rows than it says."""
    plain = sources.read_from_item

    def wrong(node, environment, context):
        return plain(node, {name: known for name, known in environment.items() if name not in {"people", "visits"}}, context)

    for module in [one for name, one in sys.modules.items() if name.startswith("curador.query.")]:
        if getattr(module, "read_from_item", None) is plain:
            monkeypatch.setattr(module, "read_from_item", wrong)
    killed(joins.test_names_shadow_as_in_sql)


def test_settlements_tell_their_time(tmp_path, monkeypatch):
    """The moment at which an answer was ready stands in the log."""
    clock = times.Clock()
    monkeypatch.setattr(entry, "dt", SimpleNamespace(datetime=clock, UTC=dt.UTC))
    plain = acts.append
    monkeypatch.setattr(
        acts,
        "append",
        lambda page, made: plain(page, dataclasses.replace(made, time=entry.now()) if made.refers is not None else made),
    )
    killed(times.test_what_settles_a_question_is_stored_with_its_time, tmp_path, clock)


def test_central_limit_accountant():
    """δ by the normal law of the loss is below the truth, ours is not: four randomised responses of ε = 1, at ε = 3."""
    odds = math.e / (1 + math.e)
    truth = sum(
        math.comb(4, lies) * odds ** (4 - lies) * (1 - odds) ** lies * max(0.0, 1 - math.exp(3 - (4 - 2 * lies)))
        for lies in range(5)
    )
    mean, deviation = 4 * math.tanh(0.5), 2 * math.sqrt(1 - math.tanh(0.5) ** 2)
    steps = [mean + deviation * (place - 4000) / 500 for place in range(8001)]
    weights = [math.exp(-(((step - mean) / deviation) ** 2) / 2) for step in steps]
    normal = sum(w * max(0.0, 1 - math.exp(3 - step)) for w, step in zip(weights, steps, strict=True)) / sum(weights)

    assert float(optimal_delta(1, count=4, epsilon=3)[1]) >= truth * (1 - 1e-12)
    assert normal < 0.9 * truth

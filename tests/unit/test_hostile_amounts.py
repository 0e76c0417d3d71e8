"""Every amount that somebody may write, at every place where one is read: one sentence or an answer, never a traceback.

What is refused costs nothing, and a refusal writes nothing to the ledger.
"""

from __future__ import annotations

import io
import sys
from fractions import Fraction
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "curator"))

from curator_studies import COUNT, FakeEngine, make_study, open_curator

from curador.cli import main
from curador.errors import Failed, InvalidParameter, Refused
from curador.numerics.exact import rational
from curador.study.file import read_study

FAR = ("1e400", "1e-400", "1e401", "1e-401", "1e5000", "1e-5000", "1e99999999", "9" * 400, "0." + "9" * 390, "1" * 5000)
EDGES = ("1e308", "1e-308", "5e-324", "1e300", "1e-300", "1e18", "1e-18", "1e-19", "0", "-0.0", "-1", "1/3", "1/0", "0/1")
WORDS = ("", " ", "nan", "inf", "-inf", "abc", "0x10", "1,5", "1 000", "1e", "e5", "--1", "1e+", "\0", "%", "🙂")
OTHER_SCRIPTS = ("１", "٣", "1_000", "１e-3", "1e-３", "²", "½", "1\u00a0000", "०.५")
WRITTEN = (*FAR, *EDGES, *WORDS, *OTHER_SCRIPTS)
OBJECTS = (
    10**5000, -(10**5000), Fraction(1, 10**5000), Fraction(10**3000, 7), float("nan"), float("inf"), 5e-324, 1.7e308, True,
    None, [], {}, b"1", 1j, object(), "1e-5000", (1, 2),
)  # fmt: skip

MEAN = "SELECT AVG(spent) AS n FROM visits"
API = {
    "spend": lambda one: (COUNT, {"spend": one}),
    "percent": lambda one: (COUNT, {"spend": f"{one}%"}),
    "rho": lambda one: (COUNT, {"rho": one}),
    "epsilon": lambda one: (COUNT, {"epsilon": one}),
    "accuracy": lambda one: (COUNT, {"accuracy": {"n": one}}),
    "at": lambda one: (MEAN, {"accuracy": {"n": 50}, "at": one}),
    "weights": lambda one: (COUNT, {"spend": "1%", "weights": {"n": one}}),
    "lower": lambda one: (MEAN, {"spend": "1%", "bounds": {"n": (one, 100)}}),
    "upper": lambda one: (MEAN, {"spend": "1%", "bounds": {"n": (0, one)}}),
    "caps": lambda one: (COUNT, {"spend": "1%", "caps": {"rows": one}}),
    "confidence": lambda one: (COUNT, {"spend": "1%", "confidence": one}),
    "literal": lambda one: (f"SELECT COUNT(*) AS n FROM visits WHERE spent > {one}", {"spend": "1%"}),
    "key": lambda one: (f"SELECT user_id, COUNT(*) AS n FROM salaries WHERE user_id = {one} GROUP BY 1", {"spend": "1%"}),
    "quantile": lambda one: (f"SELECT QUANTILE(spent, {one}) AS n FROM visits", {"spend": "1%"}),
}


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    with open_curator(tmp_path_factory.mktemp("amounts")) as made:
        yield made


def asked(curator, question, options):
    """Whether it was answered; a refusal must leave the ledger as it was."""
    list(
        curator.ledger.entries(10**9)
    )  # lines of answers that were given again before are written now, not with the next act
    before = curator.ledger.head, curator.ledger.spent()
    told = [refused(lambda verb=verb: verb(question, **options)) for verb in (curator.preview, curator.ask)]
    if told[1] is None:
        return True
    assert told[1]
    assert len(told[1].splitlines()[0]) < 300
    assert (curator.ledger.head, curator.ledger.spent()) == before
    return False


def refused(call):
    """The sentence of a refusal, None where there was none; anything else that is raised fails the test."""
    try:
        call()
    except Refused as refusal:
        return str(refusal)
    return None


@pytest.mark.slow
@pytest.mark.parametrize("place", [pytest.param(one, marks=[pytest.mark.slow] * (one == "quantile")) for one in API])
def test_an_amount_is_read_or_refused_and_what_is_refused_is_free(curator, place):
    """For each place, everything that anybody may write there."""
    for one in (*WRITTEN, *(OBJECTS if place not in {"percent", "literal", "key", "quantile"} else ())):
        asked(curator, *API[place](one))
    assert curator.ledger.failures == 0


def test_some_of_them_are_answered(curator):
    """The table is no list of refusals only."""
    assert asked(curator, *API["rho"]("0.01"))
    assert asked(curator, *API["confidence"]("1e-400"))
    assert asked(curator, *API["upper"]("1e-300"))
    assert asked(curator, *API["literal"]("1e-308"))


@pytest.mark.parametrize("text", OTHER_SCRIPTS)
def test_digits_are_the_ten_ascii_ones_without_anything_between(text):
    """What looks like a number to some and not to others is none."""
    with pytest.raises(InvalidParameter, match="x must be a number"):
        rational(text, "x")


@pytest.mark.parametrize(
    "value", ["1e401", "1e-401", "1e-5000", "1" * 401, 10**5000, Fraction(1, 10**5000), "1e99999999"], ids=range(7)
)
def test_a_number_too_long_to_be_written_out_is_refused_at_the_door(value):
    """One sentence, whatever it is the amount of."""
    with pytest.raises(InvalidParameter, match="x must be of at most 400 digits, with an exponent within ±400"):
        rational(value, "x")
    assert str(rational("1e400", "x")) == "1" + "0" * 400


# ---- in a study file -----------------------------------------------------------------------------------------------

STUDY = """version = 1
name = "visits"
budget = {{ epsilon = {epsilon}, delta = {delta} }}
ledger = "visits.ledger"
max_units = {units}
[analysts.ana]
share = {share}
[engine]
deadline = {deadline}
memory = {memory}
[tables.visits]
source = "visits.parquet"
unit = "user_id"
caps = {{ rows = {rows} }}
[tables.visits.columns]
spent = {{ type = "float", bounds = [{lower}, 500] }}
"""
GOOD = {
    "epsilon": '"3"', "delta": '"1e-6"', "units": "10000", "share": '"50%"', "deadline": '"60s"', "memory": '"4GB"',
    "rows": "10", "lower": "0",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("place", GOOD)
def test_an_amount_in_a_study_file_is_read_or_refused(tmp_path, place):
    """The same table, quoted and bare, with a unit behind it and without."""
    file = tmp_path / "study.toml"
    for one in WRITTEN:
        for written in (f'"{one}"', one, f'"{one}%"', f'"{one}s"'):
            file.write_text(STUDY.format(**{**GOOD, place: written}), encoding="utf-8")
            assert refused(lambda: read_study(file).to_toml()) != ""


def test_the_good_study_file_is_one(tmp_path):
    """Or the test above would say nothing."""
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(**GOOD), encoding="utf-8")
    assert read_study(file).max_units == 10_000


# ---- on the command line -------------------------------------------------------------------------------------------

CLI = {
    "rho": ("ask", "STUDY", COUNT, "--rho"),
    "epsilon": ("ask", "STUDY", COUNT, "--epsilon"),
    "spend": ("ask", "STUDY", COUNT, "--spend"),
    "accuracy": ("preview", "STUDY", COUNT, "--accuracy", "n="),
    "at": ("preview", "STUDY", MEAN, "--accuracy", "n=50", "--at"),
    "weight": ("preview", "STUDY", COUNT, "--spend", "1%", "--weight", "n="),
    "confidence": ("preview", "STUDY", COUNT, "--spend", "1%", "--confidence"),
    "calibrate gaussian epsilon": ("calibrate", "gaussian", "--delta", "1e-6", "--epsilon"),
    "calibrate laplace epsilon": ("calibrate", "laplace", "--epsilon"),
    "calibrate laplace rho": ("calibrate", "laplace", "--rho"),
    "calibrate gaussian delta": ("calibrate", "gaussian", "--epsilon", "1", "--delta"),
    "calibrate laplace delta": ("calibrate", "laplace", "--epsilon", "1", "--delta"),
    "calibrate gaussian accuracy": ("calibrate", "gaussian", "--accuracy"),
    "calibrate gaussian confidence": ("calibrate", "gaussian", "--accuracy", "1", "--confidence"),
    "calibrate gaussian sensitivity": ("calibrate", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--sensitivity"),
    "calibrate laplace count": ("calibrate", "laplace", "--epsilon", "1", "--count"),
    "calibrate rr epsilon": ("calibrate", "rr", "--epsilon"),
    "calibrate exponential rho": ("calibrate", "exponential", "--rho"),
    "account delta": ("account", "gaussian(sigma=2)", "--delta"),
}
SHORT = ("1e400", "1e-400", "1e-5000", "1e300", "1e-300", "9" * 400, "0." + "9" * 390, "nan", "-1", "1_000", "１%", "٣", "")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """The whole program, exit code included, on a study whose engine answers without data."""
    file = tmp_path / "study.toml"
    file.write_text(make_study(tmp_path).to_toml(), encoding="utf-8")
    monkeypatch.setattr("curador.curator.curator.engine_of", lambda study, _ledger, **_: FakeEngine(study))

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["curador", *(str(file) if one == "STUDY" else one for one in arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return code, *capsys.readouterr()

    return call


@pytest.mark.slow
@pytest.mark.parametrize("place", CLI)
def test_an_amount_on_the_command_line_is_read_or_refused(run, place):
    """Exit code 0, 2, 4 or, of a goal that no certified number reaches, 5; a refusal is a sentence on standard error."""
    *arguments, last = CLI[place]
    for one in SHORT:
        given = (*arguments, last + one) if last.endswith("=") else (*arguments, last, one)
        code, _, err = run(*given)
        assert code in {0, 2, 4, 5}, (one, err)
        assert "Traceback" not in err
        if code:
            assert err.strip()
        if code == 5:
            assert place.startswith("calibrate")


def test_a_spend_beyond_every_budget_is_refused_as_one(run):
    """The budget says no, not a float: exit code 4, and the limit is told."""
    for option in ("--rho", "--epsilon"):
        code, _, err = run("ask", "STUDY", COUNT, option, "1e400")
        assert code == 4
        assert f"{option[2:]} must be at most the study's whole limit" in err


def test_an_amount_that_fails_is_no_failure_of_ours():
    """A goal beyond certified numbers is refused at the door."""
    from curador.mechanisms import Gaussian, Laplace

    for epsilon in ("1e400", "1e-400", "1e101"):
        for mechanism in (Gaussian, Laplace):
            with pytest.raises(InvalidParameter, match="epsilon must be between 1e-100 and 1e100"):
                mechanism.calibrate(epsilon=epsilon, delta="1e-6", sensitivity=1)
    assert not issubclass(InvalidParameter, Failed)

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import curador as cu
from curador.cli.app import app
from curador.cli.expression import MECHANISMS, loss_of
from curador.errors import InvalidParameter, Refused
from curador.privacy.losses import (
    Approx,
    Concentrated,
    GaussianLoss,
    KeySelection,
    LaplaceLoss,
    Pure,
    RandomizedResponseLoss,
    Shuffled,
)

runner = CliRunner()


def run(*arguments):
    """The command in a process of its own."""
    command = [sys.executable, "-c", "from curador.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


# ---- expressions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("pure(epsilon=0.1)", Pure(epsilon="0.1")),
        ("3*pure(epsilon=0.1)", 3 * Pure(epsilon="0.1")),
        ("pure(epsilon=0.1)*3", 3 * Pure(epsilon="0.1")),
        ("1_000 * pure(epsilon=1/3)", 1000 * Pure(epsilon="1/3")),
        ("pure(epsilon='1e-3') + gdp(mu=2)", Pure(epsilon="0.001") + GaussianLoss(mu=2)),
        ("2*(pure(epsilon=1) + gdp(mu=2))", 2 * Pure(epsilon=1) + 2 * GaussianLoss(mu=2)),
        ("approx(epsilon=1, delta=1e-9)", Approx(epsilon=1, delta="1e-9")),
        ("zcdp(rho=0.5)", Concentrated(rho="0.5")),
        ("keys(sigma2=9, keys=2, delta=1e-8)", KeySelection(sigma2=9, keys=2, delta="1e-8")),
        ("shuffle(epsilon=1, reports=10000)", Shuffled(epsilon=1, reports=10_000)),
        ("shuffle(epsilon=1, reports=50, variation=0.2)", Shuffled(epsilon=1, reports=50, variation="0.2")),
        ("ideal_laplace(epsilon=1)", LaplaceLoss(epsilon=1)),
        ("rr(epsilon=1, categories=4)", RandomizedResponseLoss(epsilon=1, categories=4)),
        ("gdp(mu=1).subsample(rate=0.01)", GaussianLoss(mu=1).subsample(rate="0.01")),
        ("gdp(mu=1).subsample(rate=0.01).group(2)", GaussianLoss(mu=1).subsample(rate="0.01").group(2)),
        (
            "pure(epsilon=1).subsample(rate=0.1, scheme='without_replacement')",
            Pure(epsilon=1).subsample(rate="0.1", scheme="without_replacement"),
        ),
        ("gaussian(sigma=2, sensitivity=3)", cu.Gaussian(sigma=2, sensitivity=3).loss),
        ("gaussian(sigma=2)", cu.Gaussian(sigma=2, sensitivity=1).loss),
        ("laplace(scale=2)", cu.Laplace(scale=2, sensitivity=1).loss),
        ("laplace(epsilon=0.5)", cu.Laplace.calibrate(epsilon="0.5", sensitivity=1).loss),
        ("discrete_gaussian(sigma=2)", cu.DiscreteGaussian(sigma=2, sensitivity=1).loss),
        ("discrete_laplace(scale=2)", cu.DiscreteLaplace(scale=2, sensitivity=1).loss),
        ("exponential(epsilon=1)", cu.Exponential(epsilon=1, sensitivity=1).loss),
    ],
)
def test_expressions_mean_what_they_say(text, loss):
    """Each word of the little language builds its record, with the digits that were typed."""
    assert loss_of(text) == loss


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "x" * 4001,
        "1",
        "gaussian",
        "gaussian(20)",
        "gaussian(sigma=)",
        "gaussian(sigma=20",
        "gaussian(sigma=-1)",
        "gaussian(sigma=0)",
        "gaussian(sigma='abc')",
        "gaussian(sigma=True)",
        "gaussian(sigma=None)",
        "gaussian(mean=3)",
        "gaussian()",
        "laplace()",
        "rr(epsilon=1/0)",
        "rr(epsilon=1, gamma=0.5)",
        "gaussian(**{'sigma': 1})",
        "nothing(sigma=1)",
        "__import__('os').system('true')",
        "(lambda: 1)()",
        "gaussian(sigma=1).epsilon('1e-6')",
        "gaussian(sigma=1).group(size=2)",
        "gaussian(sigma=1).group(0)",
        "gaussian(sigma=1).group(1.5)",
        "gaussian(sigma=1).subsample(0.1)",
        "gaussian(sigma=1).subsample(rate=2)",
        "gaussian(sigma=1) - gaussian(sigma=1)",
        "gaussian(sigma=1) * gaussian(sigma=1)",
        "-1*gaussian(sigma=1)",
        "1.5*gaussian(sigma=1)",
        "2**3*gaussian(sigma=1)",
        "gaussian(sigma=10**400)",
        "gaussian(sigma=[1])",
        "gaussian(sigma=1)\x00",
        "approx(epsilon=1, delta=1)",
        "é(sigma=1)",
    ],
    ids=lambda text: text[:30] or "empty",
)
def test_other_expressions_are_refused(text):
    """Anything outside the allow-list is refused in one sentence, and nothing is run."""
    with pytest.raises(Refused) as caught:
        loss_of(text)
    assert re.search("must be|needs", str(caught.value))
    assert "Traceback" not in str(caught.value)


@pytest.mark.slow
def test_a_deep_expression_is_refused_and_not_broken():
    """Two thousand factors are read, or refused like any other text."""
    try:
        got = loss_of("pure(epsilon=1)" + "*1" * 1900)
    except InvalidParameter:
        return
    assert got == Pure(epsilon=1)


def test_every_word_has_a_case_above():
    """A new mechanism joins the tests."""
    assert set(MECHANISMS) == {
        "gaussian", "laplace", "discrete_gaussian", "discrete_laplace", "rr", "exponential",
        "gdp", "ideal_laplace", "pure", "approx", "zcdp", "keys", "shuffle",
    }  # fmt: skip


# ---- account ----------------------------------------------------------------------------------------------------------


def test_account_prints_the_readings():
    """The table shows the certified interval, the other readings, and what an adversary gains."""
    result = runner.invoke(app, ["account", "10*pure(epsilon=0.1)", "--delta", "1e-6"])
    assert result.exit_code == 0
    for words in (
        "numerical (certified)",
        "Rényi curve",
        "zCDP",
        "basic composition",
        "least",
        "An adversary",
        "false alarms",
    ):
        assert words in result.output
    upper = (10 * Pure(epsilon="0.1")).epsilon("1e-6")
    assert f"{upper:.10g}" in result.output


def test_account_prints_numbers_for_programs():
    """With --json the numbers are those of the library, in JSON that any parser reads."""
    result = runner.invoke(app, ["account", "10*gdp(mu=0.1)", "--delta", "1e-6", "--json"])
    assert result.exit_code == 0
    got = json.loads(result.stdout)
    loss = 10 * GaussianLoss(mu="0.1")
    assert got["delta"] == "1e-6"
    assert got["upper"] == loss.epsilon("1e-6")
    assert got["lower"] == loss.epsilon_interval("1e-6").lower
    assert set(got["readings"]) == {"numerical", "renyi", "basic"}


def test_account_prints_strict_json():
    """A reading that is silent is no number of JSON: NaN and Infinity are Python's own words."""
    result = runner.invoke(app, ["account", "10*gdp(mu=0.1)", "--json"])

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    json.loads(result.stdout, parse_constant=refuse)


@pytest.mark.parametrize("delta", ["1/1000000", "0.000001", "1e-6"])
def test_account_takes_any_way_to_write_delta(delta):
    """A ratio is a number like any other."""
    result = runner.invoke(app, ["account", "10*gdp(mu=0.1)", "--delta", delta])
    assert result.exit_code == 0, result.exception
    assert "least" in result.output


def test_account_at_delta_zero():
    """Without δ only pure losses have an ε, and the table says so."""
    pure = runner.invoke(app, ["account", "3*pure(epsilon=0.5)", "--delta", "0"])
    assert pure.exit_code == 0
    assert "1.5" in pure.output
    gaussian = runner.invoke(app, ["account", "gdp(mu=1)", "--delta", "0"])
    assert gaussian.exit_code == 0
    assert "No (ε, δ) guarantee" in gaussian.output


def test_account_of_nothing():
    """A loss of nothing is told like any other."""
    result = runner.invoke(app, ["account", "0*pure(epsilon=1)"])
    assert result.exit_code == 0, result.exception
    assert "50.00 % of the time" in result.output


def test_account_verifies():
    """--verify recomputes the nodes and says so."""
    result = runner.invoke(app, ["account", "gdp(mu=1) + 3*ideal_laplace(epsilon=0.1)", "--verify"])
    assert result.exit_code == 0
    assert "verified" in result.output


# ---- calibrate --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (
            ["gaussian", "--epsilon", "1", "--delta", "1e-6"],
            "sigma",
            cu.Gaussian.calibrate(epsilon=1, delta="1e-6", sensitivity=1).sigma,
        ),
        (["laplace", "--epsilon", "0.5"], "scale", 2),
        (["discrete_laplace", "--epsilon", "0.5", "--count", "3", "--sensitivity", "2"], "scale", 12),
        (["discrete_gaussian", "--rho", "0.5"], "sigma", 1),
        (["rr", "--epsilon", "1"], "epsilon", 1),
        (["exponential", "--epsilon", "1", "--count", "4"], "epsilon", 0.25),
        (["gaussian", "--accuracy", "10"], "sigma", cu.Gaussian.calibrate(accuracy=10, sensitivity=1).sigma),
    ],
    ids=lambda part: part[0] if isinstance(part, list) else None,
)
def test_calibrate_prints_the_noise(arguments, name, value):
    """The least noise that reaches the goal, and what it costs."""
    result = runner.invoke(app, ["calibrate", *arguments])
    assert result.exit_code == 0
    shown = re.search(rf"^{name}\s+(\S+)$", result.output, re.MULTILINE)
    assert shown is not None
    assert float(shown[1]) == pytest.approx(float(value), rel=1e-11)


def test_calibrate_tells_the_cost():
    """The cost is the certified interval after all releases."""
    result = runner.invoke(app, ["calibrate", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--count", "10"])
    cost = re.search(r"ε between (\S+) and (\S+) at δ = 1e-6, after 10 release", result.output)
    assert cost is not None
    assert 0.999999 < float(cost[1]) <= float(cost[2]) <= 1


@pytest.mark.parametrize("command", [["version"], ["--help"], ["account", "--help"], ["calibrate", "--help"]])
def test_help_and_version(command):
    """They work and end well."""
    result = runner.invoke(app, command)
    assert result.exit_code == 0
    assert result.output.strip()


# ---- the process ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_process_that_succeeds():
    """Exit 0, the result on standard output, nothing on standard error."""
    done = run("account", "pure(epsilon=0.5)", "--delta", "1e-6", "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["upper"] == Pure(epsilon="0.5").epsilon("1e-6")


REFUSED = {
    "expression": ["account", "gaussian(sigma=-1)"],
    "word": ["account", "nothing(x=1)"],
    "delta": ["account", "gdp(mu=1)", "--delta", "2"],
    "delta word": ["account", "gdp(mu=1)", "--delta", "abc"],
    "two goals": ["calibrate", "gaussian", "--epsilon", "1", "--rho", "1"],
    "no goal": ["calibrate", "gaussian"],
    "mechanism": ["calibrate", "uniform", "--epsilon", "1"],
    "count": ["calibrate", "laplace", "--epsilon", "1", "--count", "0"],
    "rate": ["calibrate", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--rate", "1.5"],
    "accuracy of rr": ["calibrate", "rr", "--accuracy", "1"],
    "nan": ["calibrate", "laplace", "--epsilon", "nan"],
    "scheme": ["calibrate", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--rate", "0.1", "--scheme", "dice"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_process_that_is_refused(name):
    """Exit 2, one sentence on standard error, no trace, nothing on standard output."""
    done = run(*REFUSED[name])
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "; got " in done.stderr
    assert len([line for line in done.stderr.splitlines() if not line.startswith("Hint:")]) == 1


@pytest.mark.slow
def test_a_process_that_leaves_the_floats():
    """Parameters beyond the floats are refused (2) or failed (5) in one sentence, without a trace."""
    done = run("account", "gdp(mu=1e300)")
    assert done.returncode in (2, 5)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_wrong_option_is_refused():
    """The options themselves are checked with exit 2 too."""
    done = run("account", "gdp(mu=1)", "--nonsense")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr

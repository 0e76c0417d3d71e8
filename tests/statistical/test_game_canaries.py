"""One run with canaries: valid, and with power, on histograms, through an estimator and through a curator.

Validity is tested exactly in unit/audit/test_one_run.py. Here each assertion that nothing is refuted has false alarms of at
most 1e-9, by the confidence at which it is made; the others fail by chance below 1e-9 too, unless said otherwise.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import curador as cu
from curador.audit import canaries, fit_run, histogram_run, one_run_mu

pytestmark = pytest.mark.slow

SURE = "0.999999999"
MANY = 1000


@pytest.mark.parametrize(
    "mechanism",
    [
        cu.DiscreteLaplace.calibrate(epsilon=4, sensitivity=1),
        cu.Laplace.calibrate(epsilon=4, sensitivity=1, dimension=MANY),
        cu.DiscreteGaussian.calibrate(epsilon=4, delta="1e-5", sensitivity=1, dimension=MANY),
        cu.Gaussian.calibrate(epsilon=4, delta="1e-5", sensitivity=1, dimension=MANY),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_private_histogram_is_not_refuted(mechanism):
    """A thousand people, each in a cell alone: their guesses are within what is proved."""
    pure = mechanism.loss.pure_epsilon is not None
    found = canaries(
        histogram_run(mechanism), canaries=MANY, delta=0 if pure else "1e-5", confidence=SURE, loss=mechanism.loss
    )

    assert not found.refuted, str(found)


@pytest.mark.parametrize(
    ("mechanism", "least"),
    [
        (cu.DiscreteLaplace.calibrate(epsilon=4, sensitivity=1), 2.5),
        (cu.Laplace.calibrate(epsilon=4, sensitivity=1, dimension=MANY), 2.2),
        (cu.DiscreteLaplace.calibrate(epsilon=1, sensitivity=1), 0.45),
    ],
    ids=["DiscreteLaplace 4", "Laplace 4", "DiscreteLaplace 1"],
)
def test_one_run_shows_about_half_of_epsilon_at_least(mechanism, least):
    """At 95 %: 3.5 ± 0.15 of 4 for integers, 3.3 ± 0.2 for real numbers, 0.8 ± 0.07 of 1. Misses: below 1e-7."""
    found = canaries(histogram_run(mechanism), canaries=MANY, loss=mechanism.loss)

    assert found.epsilon > least


def test_gaussian_noise_shows_through_its_curve():
    """A quarter of the canaries of a histogram with σ = 1/2, μ = 2: μ above 0.9 is proved; 1.2 ± 0.05 is typical."""
    noise = cu.Gaussian(sigma="0.5", sensitivity=1, dimension=4000)
    found = canaries(histogram_run(noise), canaries=4000, guesses=1000)

    assert one_run_mu(found.correct, guesses=1000, canaries=4000) > 0.9


@pytest.mark.parametrize(
    ("noise", "declared", "delta"),
    [
        (cu.DiscreteLaplace(scale="0.03125", sensitivity=1), cu.DiscreteLaplace(scale="0.25", sensitivity=1), 0),
        (cu.DiscreteLaplace(scale="0.125", sensitivity=1), cu.DiscreteLaplace(scale=1, sensitivity=1), 0),
        (
            cu.DiscreteGaussian(sigma="0.125", sensitivity=1, dimension=MANY),
            cu.DiscreteGaussian(sigma=1, sensitivity=1, dimension=MANY),
            "1e-5",
        ),
    ],
    ids=["Laplace, 4", "Laplace, 1", "Gaussian"],
)
def test_an_eighth_of_the_noise_is_refuted(noise, declared, delta):
    """A seeded bug: one eighth of the declared scale is refuted by one run; every guess is right, or all but one in 10⁵."""
    sure = "0.999" if delta else "0.999999"  # where δ > 0 nothing is surer than about 1 − 1000 δ
    found = canaries(histogram_run(noise), canaries=MANY, delta=delta, confidence=sure, loss=declared.loss)

    assert found.refuted, str(found)


def noisy_sum(sigma):
    """A sum of unit vectors with Gaussian noise."""

    def fit(rows):
        mechanism = cu.Gaussian(sigma=sigma, sensitivity=1, dimension=rows.shape[1])
        return mechanism.release(rows.sum(axis=0))

    return fit


@pytest.mark.parametrize(("sigma", "refuted"), [("2", False), ("0.25", True)])
def test_a_sum_of_vectors_is_audited_by_one_fit(sigma, refuted):
    """Marked records are directions of their own; noise for μ = 1/2 stands, an eighth of it does not."""
    records, marked = np.zeros((50, 600)), np.eye(600)
    run = fit_run(noisy_sum(sigma), records, marked, lambda total, ones: ones @ total)
    claim = cu.Gaussian(sigma=2, sensitivity=1, dimension=600).loss
    found = canaries(run, canaries=600, delta="1e-5", confidence=SURE if not refuted else "0.999999", loss=claim)

    assert found.refuted == refuted, str(found)


def session(folder, count, epsilon):
    """A curator's whole session as one run: everybody who is in has a group alone, and two questions are asked."""

    def run(included):
        everybody = np.arange(count)
        pq.write_table(pa.table({"who": everybody[included], "cell": everybody[included]}), folder / "people.parquet")
        curator = cu.open(
            folder / "people.parquet",
            unit="who",
            budget=cu.Budget(epsilon=epsilon),
            values={"cell": everybody.tolist()},
            caps={"rows": 1},
            ledger=folder / f"{epsilon}.ledger",
            engine={"worker": "inline", "threads": 1},
        )
        question = "SELECT cell, COUNT(*) AS n FROM people GROUP BY cell"
        answers = [curator.ask(question, spend="50%", fresh=True) for _ in range(2)]
        return sum(np.array([row["n"] for row in answer.rows], np.float64) for answer in answers)

    return run


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("epsilon", "claim", "refuted"), [(4, 4, False), (60, 2, True)])
def test_a_whole_session_is_audited_by_one_run(tmp_path, epsilon, claim, refuted):
    """Three hundred people: what a budget of ε = 4 answers stands; answers of a budget of 60 do not pass for one of 2."""
    sure = "0.999999" if refuted else SURE
    run = session(tmp_path, 300, epsilon)
    found = canaries(run, canaries=300, confidence=sure, loss=cu.losses.Pure(epsilon=claim))

    assert found.refuted == refuted, str(found)
    assert found.epsilon > 0.5

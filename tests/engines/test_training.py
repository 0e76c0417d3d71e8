"""Learning through a curator: charged first, planned without data, nothing leaves but the model."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import curador as cu
from curador import learn
from curador.cli import main
from curador.curator import spending
from curador.curator.pace import Pace
from curador.engines.lower.sql import mark_generated
from curador.learn.estimators import arrays
from curador.learn.estimators.linear import whole_targets
from curador.learn.model_file import to_json
from curador.learn.regression.moments import TargetGrid
from curador.mechanisms.seam import recording, replaying

INLINE = {"worker": "inline", "threads": 1}
COLUMNS = ["x", "y"]
OPTIONS = {"epsilon": 1, "delta": "1e-6", "n_nominal": 300}


def people(seed=3, count=300, without=None):
    """Several rows a person, some of them wild; person 7 has two hundred."""
    draw = np.random.default_rng(seed)
    owner = np.concatenate([draw.integers(0, count, 900), np.full(200, 7)])
    x = draw.normal(3, 2, len(owner))
    y = 0.5 * x + draw.normal(0, 0.3, len(owner))
    x[::97], y[::101] = np.inf, np.nan
    kept = owner != without
    label = (x + draw.normal(0, 1, len(x)) > 3).astype(int)
    label[::103] = 5
    item = draw.integers(-2, 22, len(x))
    stars = np.where(item % 7 == 0, np.nan, 3 + y)
    held = {"who": owner, "x": x, "y": y, "label": label, "item": item, "stars": stars}
    return pa.table({name: column[kept] for name, column in held.items()})


def opened(folder, table=None, **changes):
    folder.mkdir(exist_ok=True)
    pq.write_table(people() if table is None else table, folder / "people.parquet")
    options = {
        "unit": "who",
        "budget": cu.Budget(epsilon=10, delta="1e-6", delta_keys=0),
        "bounds": {"x": (-10, 10), "y": (-5, 5)},
        "engine": INLINE,
    }
    return cu.open(folder / "people.parquet", **{**options, **changes})


def pca(**changes):
    return learn.PrivatePCA(**{"epsilon": 1, "delta": "1e-6", "row_norm": 5.0, "n_nominal": 300, **changes})


def nuclear(**changes):
    options = {"left": ["x"], "right": ["y"], "adjacency": "add_or_remove_one", **OPTIONS, **changes}
    return learn.PrivateNuclearRegressor(**options)


def test_a_fit_is_charged_what_its_plan_costs(tmp_path):
    with opened(tmp_path) as curator:
        fitted = pca().fit(curator.rows("people", columns=COLUMNS))
        spent = curator.budget.spent.rho
        entry = curator.log()[-2]

    assert fitted.components_.shape == (1, 2)
    assert Fraction(fitted.privacy_.rho) <= spent <= Fraction(fitted.privacy_.rho) + Fraction(1, 10**17)
    assert fitted.privacy_.exact
    assert fitted.privacy_.unit == "person"
    assert fitted.privacy_.entry == entry["id"] == fitted.receipt_["id"]
    assert fitted.receipt_["cost"]["rho"]["exact"] == str(spent)
    assert fitted.receipt_["fit"]["estimator"] == "PrivatePCA"
    assert fitted.receipt_["exact"] is True
    assert "All rows of one person were one record" in fitted.receipt_["plain"]


def test_the_identical_fit_again_is_the_same_model_for_nothing(tmp_path):
    with opened(tmp_path) as curator:
        first = pca().fit(curator.rows("people", columns=COLUMNS))
        spent = curator.budget.spent
        second = pca().fit(curator.rows("people", columns=COLUMNS))
        assert curator.budget.spent == spent
        third = pca(n_components=2).fit(curator.rows("people", columns=COLUMNS))
        assert curator.budget.spent != spent

    assert np.array_equal(first.components_, second.components_)
    assert "cost nothing more" in second.receipt_["plain"]
    assert not np.array_equal(first.components_[0], third.components_[0])


def test_a_share_of_the_budget_says_what_a_fit_costs(tmp_path):
    with opened(tmp_path) as curator:
        limit = curator.budget.limit.rho
        pca(epsilon=None, delta=None).fit(curator.rows("people", columns=COLUMNS, spend="20%"))
        assert limit / 5 * (1 - Fraction(1, 10**9)) <= curator.budget.spent.rho <= limit / 5
        pca(epsilon=None, delta=None).fit(curator.rows("people", columns=COLUMNS, rho="0.001"))
        assert curator.budget.spent.rho <= limit / 5 + Fraction(1, 1000)


def test_the_charge_is_on_disk_before_a_row_is_read(tmp_path, monkeypatch):
    """And what goes wrong afterwards is told by an id only; the charge is kept."""
    with opened(tmp_path) as curator:
        engine = curator._session.engine  # noqa: SLF001 -- what the curator stands on
        seen = []

        def read(*_):
            seen.append(curator.budget.spent.rho)
            message = "row 17 holds 42"
            raise RuntimeError(message)

        monkeypatch.setattr(engine, "read", read)
        with pytest.raises(cu.Failed, match="Incident") as caught:
            pca().fit(curator.rows("people", columns=COLUMNS))
        assert seen[0] > 0
        assert curator.budget.spent.rho == seen[0]
        assert "42" not in re.sub("Incident.*", "", str(caught.value))  # an id is random and may hold any digits


def cannot_be_read(monkeypatch):
    """The statement that reads rows asks for a column that no table has."""
    monkeypatch.setattr("curador.engines.lower.block.lower_rows", lambda *_: mark_generated("SELECT v9, u FROM t0"))


def learns_nothing(monkeypatch):
    """Learning itself fails, whatever the rows."""

    def broken(*_):
        raise ZeroDivisionError("of no row")

    monkeypatch.setattr(learn.PrivatePCA, "_learn", broken)


def writes_nothing(monkeypatch):
    """The model cannot be written."""
    monkeypatch.setattr("curador.learn.model_file.to_json", lambda _: 1 / 0)


@pytest.mark.parametrize("broken", [cannot_be_read, learns_nothing, writes_nothing])
@pytest.mark.parametrize("worker", ["inline", pytest.param("process", marks=pytest.mark.slow)])
def test_what_fails_for_the_fits_own_sake_is_refused_before_the_charge(tmp_path, monkeypatch, broken, worker):
    """Nothing is spent, no failure is counted, no row is read; the owner finds the reason, an asker an id."""
    with opened(tmp_path, engine={"worker": worker, "threads": 1}) as curator:
        rows = curator.rows("people", columns=COLUMNS)
        monkeypatch.setattr(curator._session.engine, "read", None)  # noqa: SLF001 -- calling it would fail
        broken(monkeypatch)
        for _ in range(4):  # refusals are not failures, which would close the study
            with pytest.raises(cu.errors.InvalidQuery, match=r"even without rows; nothing was charged(.|\n)*incident \w{8}"):
                pca().fit(rows)
        assert not curator.budget.spent
        assert curator.ledger.failures == 0
        assert [one["kind"] for one in curator.log()] == ["created"]
    assert list(tmp_path.rglob("incidents.log"))


def test_a_fit_is_tried_out_once_in_a_process(tmp_path, monkeypatch):
    """Also where it failed after its charge: trying it out again would show the same."""
    with opened(tmp_path) as curator:
        engine, tried = curator._session.engine, []  # noqa: SLF001 -- what the curator stands on
        rehearse, read = engine.rehearse_read, engine.read
        monkeypatch.setattr(engine, "rehearse_read", lambda *given: tried.append(curator.budget.spent) or rehearse(*given))
        monkeypatch.setattr(engine, "read", lambda *_: 1 / 0)
        with pytest.raises(cu.Failed):
            pca().fit(curator.rows("people", columns=COLUMNS))
        monkeypatch.setattr(engine, "read", read)
        pca().fit(curator.rows("people", columns=COLUMNS))
        pca().fit(curator.rows("people", columns=COLUMNS))
    assert len(tried) == 1
    assert not tried[0]


@pytest.mark.parametrize(
    ("name", "said", "stored"),
    [("reserve", spending.CHARGING, False), ("commit", spending.STORING, True)],
)
def test_an_interrupt_of_a_fit_says_what_was_spent(tmp_path, monkeypatch, name, said, stored):
    """As of a question: from the call of reserve on, none can be taken for one that cost nothing."""
    with opened(tmp_path) as curator:
        whole = getattr(curator.ledger, name)

        def stopped(*given, **options):
            whole(*given, **options)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(curator.ledger, name, stopped)
            with pytest.raises(KeyboardInterrupt) as caught:
                pca().fit(curator.rows("people", columns=COLUMNS))
        assert str(caught.value) == said
        spent = curator.budget.spent
        assert spent
        pca().fit(curator.rows("people", columns=COLUMNS))
        assert (curator.budget.spent == spent) is stored


def test_a_fit_that_waited_for_a_refresh_is_not_charged(tmp_path, monkeypatch):
    """The version is looked at again inside the turn: a handle of an older one buys nothing."""
    with opened(tmp_path) as curator:
        rows = curator.rows("people", columns=COLUMNS)
        curator.ledger.refresh("elsewhere")
        monkeypatch.setattr(curator._session.engine, "read", None)  # noqa: SLF001 -- calling it would fail
        with pytest.raises(cu.errors.InvalidStudy, match="this curator holds data version 1, and 2 is the current one"):
            pca().fit(rows)
        assert not curator.budget.spent


def test_a_model_that_was_not_stored_is_not_learned(tmp_path, monkeypatch):
    with opened(tmp_path) as curator:

        def broken(*_, **__):
            message = "disk full"
            raise OSError(message)

        monkeypatch.setattr(curator.ledger, "commit", broken)
        model = pca()
        with pytest.raises(OSError, match="disk full"):
            model.fit(curator.rows("people", columns=COLUMNS))
    assert not hasattr(model, "components_")
    assert not hasattr(model, "privacy_")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_nominal": None}, "n_nominal must be declared"),
        ({"epsilon": None}, "epsilon must be given"),
        ({"row_norm": -1}, "row_norm"),
        ({"method": "bingham", "delta": 0}, "must draw exact noise"),
        ({"epsilon": 50}, "left"),
        ({"row_norm": 1e100}, "row_norm must be between"),
    ],
    ids=str,
)
def test_what_is_refused_costs_nothing_and_reads_nothing(tmp_path, monkeypatch, change, words):
    with opened(tmp_path) as curator:
        monkeypatch.setattr(curator._session.engine, "read", None)  # noqa: SLF001 -- calling it would fail
        with pytest.raises(cu.Refused, match=words):
            pca(**change).fit(curator.rows("people", columns=COLUMNS))
        assert not curator.budget.spent


@pytest.mark.parametrize(
    ("made", "columns", "target", "words"),
    [
        (lambda: learn.PrivateKMeans(n_clusters=2, **OPTIONS), COLUMNS, "y", "y must be nothing"),
        (
            lambda: learn.PrivateLinearRegression(bounds_y=(0, 1), **OPTIONS),
            COLUMNS,
            None,
            "y must be the name of the target",
        ),
        (
            lambda: learn.PrivateLogisticRegression(classes=[0, 1], **OPTIONS),
            COLUMNS,
            None,
            "y must be the name of the target",
        ),
        (lambda: learn.PrivateLinearRegression(**OPTIONS), ["y"], "y", "at least one besides the target"),
        (lambda: learn.PrivateKMeans(n_clusters=10**6, **OPTIONS), COLUMNS, None, "n_clusters must be at most"),
        (
            lambda: nuclear(loss="huber(1.0, 1e-305, 1.0)"),
            [*COLUMNS, "stars"],
            "stars",
            "loss must be a name with numbers",
        ),
        (lambda: nuclear(radius=1e-100), [*COLUMNS, "stars"], "stars", "radius must be between"),
        (lambda: nuclear(solver="toeplitz"), [*COLUMNS, "stars"], "stars", "solver"),
        (
            lambda: learn.PrivateLinearRegression(**{**OPTIONS, "n_nominal": 10**400}),
            COLUMNS,
            "y",
            "n_nominal must be at most",
        ),
    ],
)
def test_a_target_that_is_missing_or_too_much_costs_nothing(tmp_path, made, columns, target, words):
    with opened(tmp_path) as curator:
        with pytest.raises(cu.InvalidParameter, match=words):
            made().fit(curator.rows("people", columns=columns), y=target)
        assert not curator.budget.spent


TEXTS = {
    "pca": (pca, ["x", "word"], None),
    "kmeans": (lambda: learn.PrivateKMeans(2, bounds=(0, 1), **OPTIONS), ["word", "x"], None),
    "kmeans, bounds by column": (
        lambda: learn.PrivateKMeans(2, bounds={"word": (0, 1), "x": (0, 1)}, **OPTIONS),
        ["word", "x"],
        None,
    ),
    "linear": (lambda: learn.PrivateLinearRegression(bounds_X=(0, 1), **OPTIONS), ["word", "y"], "y"),
    "linear, target": (lambda: learn.PrivateLinearRegression(bounds_y=(0, 1), **OPTIONS), ["x", "word"], "word"),
    "logistic": (
        lambda: learn.PrivateLogisticRegression(bounds_X=(0, 1), classes=[0, 1], **OPTIONS),
        ["x", "word", "label"],
        "label",
    ),
    "nuclear": (lambda: nuclear(left=["word"]), ["word", "y", "stars"], "stars"),
}


def with_words():
    table = people()
    return table.append_column("word", pa.array(["Robinson"] * len(table)))


@pytest.mark.parametrize("case", TEXTS)
def test_a_column_of_texts_is_refused_before_it_is_read_or_charged(tmp_path, monkeypatch, case):
    """Whatever bounds are given for it: it would be paid for and be a constant."""
    made, columns, target = TEXTS[case]
    with opened(tmp_path, with_words()) as curator:
        monkeypatch.setattr(curator._session.engine, "read", None)  # noqa: SLF001 -- calling it would fail
        rows = curator.rows("people", columns=columns)
        for ask in (made().fit, made().cost):
            with pytest.raises(cu.InvalidParameter, match="columns must be made of numbers; got texts in column 'word'"):
                ask(rows, y=target)
        assert not curator.budget.spent


def test_a_class_may_be_a_text(tmp_path):
    """The label of a classifier, and nothing else."""
    with opened(tmp_path, with_words()) as curator:
        model = learn.PrivateLogisticRegression(bounds_X=(0, 1), classes=["Robinson", "Braddock"], **OPTIONS)
        assert "2 release" not in model.cost(curator.rows("people", columns=["x", "word"]), "word")


def test_bounds_by_column_fill_in_for_the_study(tmp_path):
    """What is not said is as declared; what is said wins."""
    with opened(tmp_path) as curator:
        rows = curator.rows("people", columns=["x", "stars"])
        fitted = learn.PrivateKMeans(2, bounds={"stars": (1, 5)}, **OPTIONS).fit(rows)
        with pytest.raises(cu.InvalidParameter, match="for column 'stars'"):
            learn.PrivateKMeans(2, bounds={"x": (1, 5)}, **OPTIONS).fit(rows)
        with pytest.raises(cu.InvalidParameter, match="bounds must be of columns that there are; got 'star'"):
            learn.PrivateKMeans(2, bounds={"star": (1, 5)}, **OPTIONS).fit(rows)
    assert fitted.scale_.tolist() == [10.0, 2.0]


def test_noise_of_any_size_is_no_failure(tmp_path):
    """A tiny ε has noise beyond 64 bits: it wraps around, which is useless, private and no incident."""
    with opened(tmp_path, least_spend=0) as curator:
        fitted = pca(epsilon="1e-9", delta=0).fit(curator.rows("people", columns=COLUMNS))
        assert not curator.ledger.closed
    assert np.isfinite(fitted.components_).all()


def test_nothing_that_was_there_before_is_stored(tmp_path):
    """Names and notes of an earlier fit, or of whoever holds the object, reach nobody."""
    analysts = {"ana": {"share": "50%", "train": True}, "eva": {"share": "50%", "train": True}}
    with opened(tmp_path, analysts=analysts) as curator:
        ana = pca().set_params(adjacency="replace_one").fit(pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]}))
        ana.set_params(adjacency="add_or_remove_one")
        ana.note_ = "hello"
        ana.fit(curator.analyst("ana").rows("people", columns=COLUMNS))
        eva = pca().fit(curator.analyst("eva").rows("people", columns=COLUMNS))
        assert not curator.analyst("eva").budget.spent
    for one in (ana, eva):
        assert not hasattr(one, "note_")
        assert one.feature_names_in_.tolist() == COLUMNS


def test_a_forged_handle_permits_nothing(tmp_path):
    analysts = {"eva": {"share": "50%", "train": True}}
    with opened(tmp_path, analysts=analysts) as curator:
        rows = replace(curator.analyst("eva").rows("people", columns=COLUMNS), inexact=True)
        with pytest.raises(cu.NotAllowed, match="inexact must be allowed by the owner"):
            pca(method="bingham", delta=0).fit(rows)
        assert not curator.budget.spent


def test_a_ledger_of_rho_pays_for_gaussian_noise(tmp_path):
    """Of one feature Laplace noise would be less, and cost sixteen times as much there."""
    with opened(tmp_path) as curator:
        learn.PrivateLinearRegression(**OPTIONS).fit(curator.rows("people", columns=COLUMNS), "y")
        assert curator.budget.spent.rho < Fraction(3, 100)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 5e-324])
def test_no_value_of_a_row_is_a_failure(tmp_path, value):
    """Whatever a row holds, a fit is answered, and the targets' own arithmetic says nothing of it."""
    held = arrays.Records(np.zeros((1, 1)), np.array([value]), None)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        first, _ = whole_targets(held, 0.0, 0.25, TargetGrid(1 << 15, 1 << 15))
    assert abs(first[0, 0]) == (1 << 15 if abs(value) > 1 else 0)
    rows = people()
    extreme = pa.table({"who": [10**6], "x": [value], "y": [value], "label": [0], "item": [1], "stars": [value]})
    with opened(
        tmp_path, pa.concat_tables([rows, extreme.cast(rows.schema)]), bounds={"x": (-10, 10), "y": (-0.25, 0.25)}
    ) as c:
        line = learn.PrivateLinearRegression(**OPTIONS).fit(c.rows("people", columns=COLUMNS), "y")
        means = learn.PrivateKMeans(n_clusters=2, **OPTIONS).fit(c.rows("people", columns=COLUMNS))
        assert c.log()[-1]["kind"] == "committed"
    assert np.isfinite(line.coef_).all()
    assert np.isfinite(means.cluster_centers_).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("nobody", COLUMNS), "table must be a private table"),
        (("people", ["x", "z"]), "columns must be columns of people"),
        (("people", []), "columns must be a list of names"),
        (("people", "x"), "columns must be a list of names"),
    ],
)
def test_a_handle_on_what_is_not_there_is_refused(tmp_path, given, words):
    with opened(tmp_path) as curator, pytest.raises(cu.InvalidParameter, match=words):
        curator.rows(given[0], columns=given[1])


def test_a_handle_holds_no_row_and_stays(tmp_path):
    with opened(tmp_path) as curator:
        rows = curator.rows("people", columns=COLUMNS)
    assert "flow" not in repr(rows)
    for away in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(cu.InvalidParameter, match="stay in its process"):
            away(rows)


def test_analysts_train_only_where_the_owner_allows_it(tmp_path):
    analysts = {"ana": {"share": "50%"}, "eva": {"share": "50%", "train": True}}
    with opened(tmp_path, analysts=analysts) as curator:
        with pytest.raises(cu.NotAllowed, match="one who may train"):
            curator.analyst("ana").rows("people", columns=COLUMNS)
        with pytest.raises(cu.NotAllowed, match="inexact must be allowed by the owner"):
            curator.analyst("eva").rows("people", columns=COLUMNS, inexact=True)
        eva = curator.analyst("eva")
        pca().fit(eva.rows("people", columns=COLUMNS))
        assert eva.budget.spent.rho == curator.budget.spent.rho > 0


def test_the_owner_may_allow_inexact_noise_and_the_card_says_so(tmp_path):
    with opened(tmp_path, budget=cu.Budget(epsilon=10)) as curator:
        fitted = pca(method="bingham", delta=0).fit(curator.rows("people", columns=COLUMNS, inexact=True))
        assert curator.budget.spent.epsilon == 1
        question = json.loads(curator.log()[-1]["question"].removeprefix("FIT "))
    assert not fitted.privacy_.exact
    assert "drawn in floating point" in fitted.receipt_["plain"]
    assert question["inexact"] is True


def test_a_pure_budget_pays_for_no_gaussian_noise(tmp_path):
    with opened(tmp_path, budget=cu.Budget(epsilon=10)) as curator:
        with pytest.raises(cu.NotPrivate):
            pca().fit(curator.rows("people", columns=COLUMNS))
        assert not curator.budget.spent


def test_costs_and_models_need_no_table(tmp_path):
    """The cost is known, and a model used, saved and loaded, with the source gone."""
    with opened(tmp_path) as curator:
        rows = curator.rows("people", columns=COLUMNS)
        fitted = pca().fit(rows)
        (tmp_path / "people.parquet").unlink()
        assert "would make" in pca().cost(rows)
    fitted.save(tmp_path / "model.json")
    again = learn.load(tmp_path / "model.json")

    asked = pd.DataFrame({"x": [1.0], "y": [2.0]})
    assert np.array_equal(again.transform(asked), fitted.transform(asked))
    assert str(again.privacy_) == str(fitted.privacy_)
    assert again.receipt_ == fitted.receipt_


PURE = {**OPTIONS, "delta": 0}
ESTIMATORS = {
    "pca": (pca, COLUMNS, None),
    "pca, private centre": (lambda: pca(center="private"), COLUMNS, None),
    "pca, products": (lambda: pca(method="lanczos"), COLUMNS, None),
    "linear": (lambda: learn.PrivateLinearRegression(**OPTIONS), COLUMNS, "y"),
    "linear, pure": (lambda: learn.PrivateLinearRegression(**PURE), COLUMNS, "y"),
    "logistic": (lambda: learn.PrivateLogisticRegression(classes=[0, 1], **OPTIONS), [*COLUMNS, "label"], "label"),
    "logistic, pure": (lambda: learn.PrivateLogisticRegression(classes=[0, 1], **PURE), [*COLUMNS, "label"], "label"),
    "kmeans": (lambda: learn.PrivateKMeans(n_clusters=2, **OPTIONS), COLUMNS, None),
    "recommender": (
        lambda: learn.PrivateRecommender(rating_range=(0, 5), items=list(range(20)), ratings_per_user=4, **OPTIONS),
        ["item", "stars"],
        "stars",
    ),
    "recommender, als": (
        lambda: learn.PrivateRecommender("als", rating_range=(0, 5), items=list(range(20)), **OPTIONS),
        ["item", "stars"],
        "stars",
    ),
    "nuclear": (nuclear, [*COLUMNS, "stars"], "stars"),
    "nuclear, frank_wolfe": (lambda: nuclear(solver="frank_wolfe"), [*COLUMNS, "stars"], "stars"),
    "kmeans, pure": (lambda: learn.PrivateKMeans(n_clusters=2, **PURE), COLUMNS, None),
}


def recorded(folder, table, name, script=None):
    """Every draw of a fit through a curator, and the model that it makes of them; by a script, of the same outputs."""
    made, columns, target = ESTIMATORS[name]
    model = made()
    with opened(folder, table) as curator, recording() if script is None else replaying(script) as calls:
        model.fit(curator.rows("people", columns=columns), y=target)
    model.privacy_ = replace(model.privacy_, entry=None)
    del model.receipt_
    return calls, to_json(model)


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("gone", [7, pytest.param(11, marks=pytest.mark.long)])
def test_given_what_left_before_a_person_moves_no_release_by_more_than_its_length(tmp_path, name, gone):
    """And the model is a function of what left: it is the same to the last byte for two tables that differ by one person."""
    whole, model = recorded(tmp_path / "whole", people(), name)
    without, same = recorded(tmp_path / "without", people(without=gone), name, whole)

    assert len(whole) == len(without) > 0
    assert {type(one.mechanism) for one in whole} <= {
        cu.DiscreteGaussian,
        cu.DiscreteLaplace,
    }  # exact noise, and no other draw
    pairs = [(one.mechanism, one.value, other.value) for one, other in zip(whole, without, strict=True)]
    assert all(mechanism.within(one, other) for mechanism, one, other in pairs), "moved too far"
    assert any(not np.array_equal(one, other) for _, one, other in pairs)
    assert model == same, "the model remembers more than what left"


def test_rows_instead_of_units_are_caught(tmp_path, monkeypatch):
    """The seeded bug: every row its own record moves the sum by far more."""
    monkeypatch.setattr(arrays, "weights_of", lambda units: np.ones(len(units)))
    with pytest.raises(AssertionError, match="moved too far"):
        test_given_what_left_before_a_person_moves_no_release_by_more_than_its_length(tmp_path, "pca", 7)


def test_a_model_that_remembers_rows_is_caught(tmp_path, monkeypatch):
    """The seeded bug: something of the data in the model besides what left."""
    learned = learn.PrivatePCA._learn  # noqa: SLF001 -- to be broken

    def leaks(self, data, facts, releaser):
        learned(self, data, facts, releaser)
        self.n_records_ = len(data.rows)  # a name that files hold; any other would not be stored

    monkeypatch.setattr(learn.PrivatePCA, "_learn", leaks)
    with pytest.raises(AssertionError, match="remembers"):
        test_given_what_left_before_a_person_moves_no_release_by_more_than_its_length(tmp_path, "pca", 7)


def test_the_command_line_trains(tmp_path, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["curador", *map(str, arguments)])
        try:
            main()
        except SystemExit as end:
            return end.code or 0
        return 0

    pq.write_table(with_words(), tmp_path / "people.parquet")
    study = tmp_path / "study.toml"
    study.write_text(
        """version = 1
name = "people"
budget = { epsilon = "10", delta = "1e-6" }
max_units = 1000
ledger = "people.ledger"
[unit]
name = "person"
[engine]
worker = "inline"
[tables.people]
source = "people.parquet"
unit = "who"
[tables.people.columns]
x = { type = "float", bounds = [-10, 10] }
y = { type = "float", bounds = [-5, 5] }
word = { type = "string" }
""",
        encoding="utf-8",
    )
    out = tmp_path / "model.json"
    options = ["--table", "people", "--columns", "x,y", "--n-nominal", "300", "--spend", "10%", "--set", "row_norm=5.0"]
    assert run("train", study, "pca", *options, "--out", out, "--yes") == 0

    shown = capsys.readouterr().out
    assert "PrivatePCA" in shown
    assert learn.load(out).components_.shape == (1, 2)
    texts = ["--table", "people", "--columns", "x,word", "--n-nominal", "300", "--spend", "10%", "--set", "bounds=[0,1]"]
    assert run("train", study, "kmeans", *texts, "--out", tmp_path / "c", "--yes") == 2
    assert "columns must be made of numbers; got texts in column 'word'" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()
    assert run("train", study, "forest", *options, "--out", tmp_path / "b", "--yes") != 0
    assert run("train", study, "pca", *options, "--out", out, "--yes") != 0


def test_a_fit_costs_the_least_spend_or_is_refused(tmp_path):
    """Below it nothing is charged or read; exactly it is charged whole; what was fitted before stays free."""
    with opened(tmp_path, least_spend=0) as curator:
        first = pca(epsilon="0.0001").fit(curator.rows("people", columns=COLUMNS))
        spent = curator.budget.spent
    with opened(tmp_path) as curator:
        least = curator.ledger.limits.share(Fraction(1, 10_000)).rho
        assert spent.rho < least
        again = pca(epsilon="0.0001").fit(curator.rows("people", columns=COLUMNS))
        assert np.array_equal(again.components_, first.components_)
        told = "the cost of a fit must be at least the study's least spend, 0.01% of your whole limit"
        for wanted, model in (
            ({}, pca(epsilon="0.00011")),
            ({"spend": "0.0099%"}, pca(epsilon=None, delta=None)),
            ({"rho": "1e-9"}, pca(epsilon=None, delta=None)),
        ):
            with pytest.raises(cu.errors.InvalidParameter, match=told):
                model.fit(curator.rows("people", columns=COLUMNS, **wanted))
        assert curator.budget.spent == spent
        pca(epsilon=None, delta=None).fit(curator.rows("people", columns=COLUMNS, spend="0.01%"))
        assert curator.budget.spent.rho - spent.rho == least


def test_a_study_without_a_least_spend_says_what_that_means(tmp_path, capsys):
    with opened(tmp_path, least_spend=0):
        assert "curador: warning: least_spend is 0: questions may cost next to nothing" in capsys.readouterr().err
    with opened(tmp_path):
        assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("fails", [False, True])
def test_a_fit_leaves_at_a_public_moment(tmp_path, monkeypatch, fails):
    """Whatever reading and fitting took, and whether it failed; the same fit again waits for nothing."""
    now = [0.0]
    with opened(tmp_path) as curator:
        desk = curator._session  # noqa: SLF001 -- the clock is a test's
        desk.pace = Pace(
            2.0, lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds), lambda done, _: done.wait()
        )
        read = desk.engine.read

        def slowly(*arguments):
            now[0] += 1.3
            if fails:
                raise RuntimeError("a row")
            return read(*arguments)

        monkeypatch.setattr(desk.engine, "read", slowly)
        rows = curator.rows("people", columns=COLUMNS)
        with pytest.raises(cu.errors.Failed) if fails else contextlib.nullcontext():
            pca().fit(rows)
        assert now[0] == 4
        if not fails:
            pca().fit(rows)
            assert now[0] == 4

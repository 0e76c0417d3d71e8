"""The sandbox on the real engine: prices and refusals of the real study, rows of nobody, nothing left behind."""

import dataclasses
import gc
import inspect
import json
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_schemas import questions, schema
from test_corpus_asked import written
from typer.testing import CliRunner

import curador as cu
from curador.cli.app import app
from curador.curator import sandbox as rooms
from curador.curator.answer import MADE_UP
from curador.curator.options import QuestionOptions
from curador.curator.price import price_question
from curador.curator.sandbox import ImaginedStudy, Sandbox
from curador.engines.duckdb import sources
from curador.study.model import Column
from curador.study.values import Type

CANARY = "canary-5fd1"
PEOPLE = 3_000
STUDY = """\
version = 1
name = "shop"
budget = { epsilon = "3", delta = "1e-6" }
max_units = 10_000
ledger = "shop.ledger"
engine = { worker = "inline" }
[unit]
name = "customer"
[tables.visits]
source = "visits.parquet"
unit = "user_id"
caps = { rows = 10, groups = 4 }
[tables.visits.columns]
user_id = { type = "integer" }
city = { type = "string" }
spent = { type = "float", bounds = [0, 500], nullable = false }
rating = { type = "integer", values = [1, 2, 3], nullable = true }
[tables.cities]
source = "cities.csv"
public = true
key = ["city"]
[analysts]
ana = { share = "20%" }
eva = { share = "50%", tables = ["visits"] }
"""
BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
BY_RATING = "SELECT rating, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY rating"
BY_COUNTRY = "SELECT country, COUNT(*) AS n FROM visits JOIN cities USING (city) GROUP BY country"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A study whose every row has the canary for its city, in a folder that is the working one."""
    rows = {
        "user_id": pa.array(range(PEOPLE)),
        "city": pa.array([CANARY] * PEOPLE),
        "spent": pa.array(np.full(PEOPLE, 499.0)),
        "rating": pa.array(np.full(PEOPLE, 3)),
    }
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    (tmp_path / "cities.csv").write_text("city,country\nkey 2,Peru\nkey 1,Spain\n", encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(_made(tmp_path / "temporary")))
    return tmp_path / "study.toml"


def _made(folder):
    folder.mkdir()
    return folder


def left_behind(study):
    """All files in the study's folder, and below, that were not there at the beginning."""
    given = {"visits.parquet", "cities.csv", "study.toml"}
    return {str(path.relative_to(study.parent)) for path in study.parent.rglob("*") if path.is_file()} - given


def holds_the_canary(study):
    """Ask a sandbox everything that would show a real row; whether one was seen, also in the files that it makes."""
    with cu.sandbox(study) as box:
        shown = str(box.ask(BY_CITY, spend="20%"))
        files = b"".join(path.read_bytes() for path in Path(tempfile.gettempdir()).rglob("*") if path.is_file())
        return CANARY in shown or CANARY.encode() in files


# ---- rows ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gone", [pytest.param(("visits.parquet",), marks=pytest.mark.slow), ("visits.parquet", "cities.csv")]
)
def test_the_sources_may_be_absent(shop, gone):
    """Every kind of question is answered without them; of public rows that are made up, too, the answer says so."""
    for name in gone:
        (shop.parent / name).unlink()
    with cu.sandbox(shop) as box:
        cities = box.ask(BY_CITY, spend="5%")
        assert {f"key {number}" for number in range(1, 6)} <= set(cities.to_pandas()["city"])
        assert set(box.ask(BY_RATING, spend="5%").to_pandas()["rating"].dropna()) == {1, 2, 3}
        if "cities.csv" in gone:
            assert any(
                "public table cities is not here" in note
                for note in box.ask("SELECT COUNT(*) FROM visits JOIN cities USING (city)", spend="5%").notes
            )
        else:
            joined = box.ask(BY_COUNTRY, spend="5%")
            assert set(joined.to_pandas()["country"]) == {"Peru", "Spain"}
            assert not any("not here" in note for note in joined.notes)


def test_no_private_source_is_looked_for(shop, monkeypatch):
    """Whether or not it exists: the engine is never asked for the file, and no canary comes out."""
    looked = []
    plain = sources.from_path
    monkeypatch.setattr(
        sources, "from_path", lambda source, *rest, **how: looked.append(source) or plain(source, *rest, **how)
    )
    assert not holds_the_canary(shop)
    assert looked
    assert all("cities.csv" in source for source in looked)


@pytest.mark.usefixtures("shop")
def test_frames_of_a_study_are_not_read():
    """A study that was opened on data frames gives its declarations and no row."""
    frame = pd.DataFrame({"user_id": range(PEOPLE), "city": CANARY})
    with cu.open(
        frame,
        name="visits",
        unit="user_id",
        budget=cu.Budget(epsilon=3, delta="1e-6"),
        ledger=":memory:",
        types={"city": "string"},
        engine={"worker": "inline"},
    ) as curator:
        study = curator.study
    assert not holds_the_canary(study)


@pytest.mark.parametrize(
    "bug",
    [
        "keeps the sources",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("keeps the frames", "makes them of the sources")),
    ],
)
def test_a_sandbox_that_reads_real_rows_is_caught(shop, monkeypatch, bug):
    """Seeded: the guard sees it; and where the guard is gone, the canary does, and absent sources do."""
    plain = rooms.imagine_study

    def seeded(study, **options):
        found = plain(study, **options)
        frame = pq.read_table(shop.parent / "visits.parquet")
        if bug == "keeps the sources":
            return dataclasses.replace(found, study=dataclasses.replace(study, engine=found.study.engine))
        real = dataclasses.replace(found.study, frames={**found.study.frames, "visits": frame})
        if bug == "keeps the frames":
            return dataclasses.replace(found, study=real)
        return ImaginedStudy(real, {"visits": frame}, {}, {})

    monkeypatch.setattr(rooms, "imagine_study", seeded)
    if bug != "makes them of the sources":
        with pytest.raises(cu.Failed, match="made-up rows only"):
            cu.sandbox(shop)
        monkeypatch.setattr(rooms, "_require_made_up", lambda _: None)
    assert holds_the_canary(shop)
    (shop.parent / "visits.parquet").unlink()
    with pytest.raises((cu.Refused, FileNotFoundError)):
        cu.sandbox(shop)


# ---- the real study --------------------------------------------------------------------------------------------------------


def outcome(asker, one):
    """Everything that is told before rows are read: price, noise, error bars, explanation, digest; or the refusal."""
    options = {} if "OPTIONS" in one["sql"] and "epsilon" in one["sql"] else {"spend": "0.05%"}
    try:
        found = asker.preview(one["sql"], dialect=one["dialect"], **options)
        priced = price_question(asker._session, one["sql"], QuestionOptions(dialect=one["dialect"], **options))  # noqa: SLF001
    except cu.Refused as refusal:
        hint = (refusal.hint or "").replace("A sandbox has only the columns that the study file declares.", "").strip()
        return type(refusal).__name__, refusal.sentence, str(refusal.place), hint
    return dataclasses.replace(found, key=""), priced.plan_digest, priced.cost, priced.losses


def whole(known):
    """The same schema with every column of its files declared: then the study file says all that a plan rests on."""
    declared = {
        one.table.name: tuple(field.declared or Column(field.name, Type(field.type)) for field in one.fields)
        for one in known.tables
    }
    tables = tuple(dataclasses.replace(one.table, columns=declared[one.table.name]) for one in known.tables)
    fields = tuple(
        dataclasses.replace(
            one,
            table=table,
            fields=tuple(dataclasses.replace(field, declared=table.column(field.name)) for field in one.fields),
        )
        for one, table in zip(known.tables, tables, strict=True)
    )
    return dataclasses.replace(known, study=dataclasses.replace(known.study, tables=tables), tables=fields)


@pytest.mark.parametrize("name", [*(pytest.param(one, marks=pytest.mark.slow) for one in ("people", "shop")), "trips"])
def test_prices_and_refusals_are_those_of_the_real_study(name, tmp_path):
    """Of the whole corpus: previews, plans, prices, losses and refusals, word for word; private sources are gone by then."""
    file = written(whole(schema(name)), tmp_path)
    corpus = [one for one in questions() if one["schema"] == name]
    with cu.open(file) as curator:
        real = [outcome(curator, one) for one in corpus]
        private = [table.source for table in curator.study.tables if not table.public]
    for source in private:
        (tmp_path / source).unlink()
    with cu.sandbox(file, units=300) as box:
        made = [outcome(box, one) for one in corpus]
        wrong = [one["sql"] for one, first, second in zip(corpus, real, made, strict=True) if first != second]
        assert not wrong
        assert {len(one) for one in real} == {4}
        for one, (first, *_) in list(zip(corpus, made, strict=True))[::4]:
            if isinstance(first, str) or "OPTIONS" in one["sql"]:
                continue
            assert box.ask(one["sql"], dialect=one["dialect"], spend="0.05%").made_up


@pytest.mark.slow
def test_a_price_of_its_own_is_caught(tmp_path, monkeypatch):
    """The comparison can fail: a sandbox that assumes one row a unit has other prices."""
    file = written(whole(schema("people")), tmp_path)
    one = {"sql": "SELECT COUNT(*) FROM visits", "dialect": "duckdb"}
    with cu.open(file) as curator:
        real = outcome(curator, one)
    monkeypatch.setattr(
        rooms,
        "with_assumed_caps",
        lambda table, _: (table if table.public else dataclasses.replace(table, caps=cu.Caps(rows=1)), None),
    )
    with cu.sandbox(file, units=300) as box:
        assert outcome(box, one) != real


@pytest.mark.slow
def test_what_the_file_does_not_say_is_said(shop):
    """A column that is not declared is not known here; the refusal says so."""
    with cu.sandbox(shop) as box:
        for question in ("SELECT SUM(age) FROM visits", "SELECT COUNT(*) FROM visits JOIN cities USING (land)"):
            for verb in (box.ask, box.preview):
                with pytest.raises(cu.InvalidQuery, match="A sandbox has only the columns that the study file declares"):
                    verb(question, spend="5%")
        with pytest.raises(cu.InvalidQuery) as refusal:
            box.ask("SELECT FROM", spend="5%")
        assert "sandbox" not in str(refusal.value)


@pytest.mark.slow
def test_analysts_ask_within_their_share(shop):
    """Share, tables and the mark are those of the analyst."""
    with cu.sandbox(shop) as box:
        ana = box.analyst("ana")
        answer = ana.ask(BY_RATING, spend="50%")
        assert answer.made_up
        assert ana.budget.left.rho < box.budget.left.rho
        with pytest.raises(cu.BudgetExceeded):
            ana.ask(BY_RATING, spend="51%")
        with pytest.raises(cu.NotAllowed):
            box.analyst("bob")
        with pytest.raises(cu.NotAllowed, match="no rows to learn from"):
            ana.rows("visits", columns=["spent"])


@pytest.mark.slow
def test_the_noise_is_real_and_the_question_again_is_free(shop):
    """The door is the same one: the stored answer is given again, a fresh one differs and costs."""
    question = "SELECT COUNT(*) AS n, SUM(spent) AS total FROM visits"
    with cu.sandbox(shop) as box, cu.sandbox(shop) as other:
        first = box.ask(question, spend="1%")
        again = box.ask(question, spend="1%")
        assert again.stored
        assert again.rows == first.rows
        assert again.made_up
        assert other.ask(question, spend="1%").rows != first.rows  # two sums of noise far wider than its grid
        assert other.budget.spent == box.budget.spent


# ---- marks -----------------------------------------------------------------------------------------------------------------


def test_everything_that_leaves_is_marked(shop):
    """Text, notebook, figure, Arrow and pandas; and there is no receipt."""
    with cu.sandbox(shop) as box:
        answer = box.ask(BY_RATING, spend="5%")
    assert str(answer).startswith(MADE_UP)
    assert answer._repr_html_().startswith(f"<p><strong>{MADE_UP}")
    assert answer.to_arrow().schema.metadata == {b"made_up": MADE_UP.encode()}
    assert answer.to_pandas().attrs == {"made_up": MADE_UP}
    figure = answer.plot()
    assert "MADE UP" in figure.get_suptitle()
    assert "made up" in [text.get_text() for text in figure.texts]
    assert answer.with_confidence("0.5").made_up
    with pytest.raises(cu.NotAllowed, match="no receipt"):
        _ = answer.receipt


def test_a_real_answer_is_not_marked(shop):
    """Nor is its figure; and it has its receipt."""
    with cu.open(shop) as curator:
        answer = curator.ask(BY_RATING, spend="5%")
        assert len(curator.log()) > 1
    assert answer.receipt.plain
    assert not answer.made_up
    assert "MADE UP" not in str(answer) + answer._repr_html_() + answer.plot().get_suptitle()
    assert answer.to_arrow().schema.metadata is None


def run(*arguments):
    return CliRunner().invoke(app, [*arguments])


@pytest.mark.parametrize(
    "shape", ["csv", *(pytest.param(one, marks=pytest.mark.slow) for one in ("table", "json", "parquet"))]
)
def test_files_of_the_command_line_are_marked(shop, shape):
    """Whatever their format; the first line on standard error says where one is."""
    (shop.parent / "visits.parquet").unlink()
    done = run(
        "ask", "study.toml", BY_RATING, "--sandbox", "--spend", "5%", "--format", shape, "--out", "made.file", "--as", "ana"
    )
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("sandbox: made-up rows")
    assert "it would cost ρ = " in done.stderr
    assert "nothing was spent" in done.stderr
    file = shop.parent / "made.file"
    match shape:
        case "table":
            assert file.read_text(encoding="utf-8").startswith(MADE_UP)
        case "csv":
            found = pd.read_csv(file)
            assert list(found.columns)[-1] == "made_up"
            assert set(found["made_up"]) == {"made up"}
        case "json":
            assert json.loads(file.read_text(encoding="utf-8"))["made_up"] == MADE_UP
        case "parquet":
            assert pq.read_schema(file).metadata[b"made_up"] == MADE_UP.encode()
    assert left_behind(shop) == {"made.file"}


@pytest.mark.slow
def test_the_command_line_previews_in_a_sandbox(shop):
    """The price is that of the real study, where the real one could not be opened."""
    with cu.open(shop) as curator:
        cost = curator.preview(BY_RATING, spend="5%").to_dict()["cost"]
    shutil.rmtree("shop.ledger.prepared")
    markers = [path.name for path in Path().glob(".curador-*")]
    for name in ("visits.parquet", "cities.csv", "shop.ledger", "shop.ledger.head", *markers):
        Path(name).unlink()
    done = run("preview", "study.toml", BY_RATING, "--sandbox", "--spend", "5%", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["cost"] == cost
    assert left_behind(shop) == set()


@pytest.mark.parametrize("more", [("--receipt", "r.json"), ("--new-ledger", "why not")])
def test_a_sandbox_has_neither_receipt_nor_ledger(shop, more):
    """The option is refused by its name."""
    done = run("ask", "study.toml", BY_RATING, "--sandbox", "--spend", "5%", *more)
    assert done.exit_code != 0
    assert isinstance(done.exception, cu.InvalidParameter) or more[0] in done.output
    assert left_behind(shop) == set()


# ---- nothing is left -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_left_on_disk(shop):
    """No ledger, marker or prepared folder beside the study, and the temporary folder goes."""
    with cu.sandbox(shop) as box:
        box.ask(BY_RATING, spend="5%")
        (folder,) = (shop.parent / "temporary").iterdir()
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()
    assert left_behind(shop) == set()


def test_nothing_is_left_where_opening_fails_or_nobody_closes(shop, monkeypatch):
    """What fails half-way removes what it made; so does the last reference that goes."""
    box = cu.sandbox(shop)
    box._session.engine.close()  # noqa: SLF001 -- all that holds files open
    box._session.ledger.close()  # noqa: SLF001
    del box
    gc.collect()
    assert list((shop.parent / "temporary").iterdir()) == []
    monkeypatch.setattr(rooms, "temporary_ledger", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cu.sandbox(shop)
    assert list((shop.parent / "temporary").iterdir()) == []


# ---- by construction -------------------------------------------------------------------------------------------------------


def test_a_sandbox_is_given_declarations_only():
    """Nobody can hand it an engine, a ledger, a session or a frame; nor does a curator take a mark."""
    assert set(inspect.signature(Sandbox.__init__).parameters) == {"self", "study", "units", "seed", "progress"}
    assert set(inspect.signature(cu.sandbox).parameters) == {"study", "units", "seed", "progress"}
    assert not issubclass(Sandbox, cu.Curator)


# ---- ledgers in memory -----------------------------------------------------------------------------------------------------


BUDGET = cu.Budget(epsilon=3, delta="1e-6")


def test_a_ledger_in_memory_is_refused_over_files(shop):
    """In Python, beside a study, in a study file; also by another spelling; and no file of that name is made."""
    for open_it in (
        lambda: cu.open("visits.parquet", unit="user_id", budget=BUDGET, ledger=":memory:"),
        lambda: cu.open("visits.parquet", unit="user_id", budget=BUDGET, ledger=Path("./:memory:")),
        lambda: cu.open("study.toml", ledger=":memory:"),
    ):
        with pytest.raises(cu.InvalidStudy, match="a ledger in memory forgets what was spent"):
            open_it()
    shop.write_text(STUDY.replace("shop.ledger", ":memory:"), encoding="utf-8")
    for words in (["ask", "study.toml", BY_RATING, "--spend", "5%"], ["check", "study.toml"], ["budget", "study.toml"]):
        done = run(*words)
        assert done.exit_code != 0
        assert "a ledger in memory forgets" in done.output + str(done.exception)
    assert left_behind(shop) == set()


@pytest.mark.slow
def test_a_ledger_in_memory_is_refused_over_one_private_file_among_frames(shop):
    """One is enough; a public file is none."""
    frame = pd.DataFrame({"user_id": range(PEOPLE)})
    with pytest.raises(cu.InvalidStudy, match="a ledger in memory forgets"):
        cu.open({"made": frame, "visits": "visits.parquet"}, unit="user_id", budget=BUDGET, ledger=":memory:")
    with cu.open(
        {"made": frame, "cities": "cities.csv"},
        unit="user_id",
        budget=BUDGET,
        public=["cities"],
        ledger=":memory:",
        engine={"worker": "inline"},
    ) as curator:
        assert len(curator.ask("SELECT COUNT(*) AS n FROM made", spend="5%")) == 1
    assert left_behind(shop) == set()


def test_a_ledger_in_memory_counts_while_it_is_open(shop, capsys):
    """Charges are made as everywhere, receipts too; when it is closed nothing is left, and the owner was told."""
    frame = pd.DataFrame({"user_id": range(PEOPLE)})
    kept = Counter()
    for _ in range(2):
        with cu.open(
            frame, name="made", unit="user_id", budget=BUDGET, ledger=":memory:", engine={"worker": "inline"}
        ) as curator:
            answer = curator.ask("SELECT COUNT(*) AS n FROM made", spend="60%")
            assert answer.receipt.plain
            assert not answer.made_up
            kept[answer.cost] += 1
            with pytest.raises(cu.BudgetExceeded):
                curator.ask("SELECT COUNT(*) AS n FROM made", spend="60%", fresh=True)
    assert list(kept.values()) == [2]
    assert "what is spent is forgotten" in capsys.readouterr().err
    assert left_behind(shop) == set()
    with pytest.raises(cu.InvalidParameter, match="new_ledger"):
        cu.open(frame, name="made", unit="user_id", budget=BUDGET, ledger=":memory:", new_ledger="again")


@pytest.mark.parametrize(
    ("given", "options", "rule"),
    [
        ("visits.parquet", {}, "study file"),
        (pd.DataFrame({"a": [1]}), {}, "study file"),
        ("study.toml", {"units": 0}, "units"),
        ("study.toml", {"units": True}, "units"),
        ("study.toml", {"seed": -1}, "seed"),
        ("absent.toml", {}, "a file that can be read"),
    ],
)
def test_bad_input_is_refused(shop, given, options, rule):
    """One sentence, before anything is made."""
    with pytest.raises(cu.Refused, match=rule):
        cu.sandbox(given, **options)
    assert os.listdir(shop.parent / "temporary") == []  # noqa: PTH208

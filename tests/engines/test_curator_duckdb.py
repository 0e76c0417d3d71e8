"""The whole way of a question on the embedded engine: from a file to an answer with its receipt, and what an owner does."""

from __future__ import annotations

import hashlib
import json
import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import curador as cu
from curador.cli import main

BY_CITY = "SELECT city, COUNT(*) AS n, AVG(spent) AS mean FROM visits GROUP BY city"
INLINE = {"worker": "inline", "threads": 1}


def visits(seed=1, rows=6000, people=2000):
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "user_id": draw.integers(0, people, rows),
            "city": draw.choice(["Lima", "Quito", "Cuzco"], rows, p=[0.5, 0.3, 0.2]),
            "spent": draw.gamma(2, 60, rows),
        }
    )


@pytest.fixture
def file(tmp_path):
    pq.write_table(visits(), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


def opened(file, **changes):
    options = {
        "unit": "user_id",
        "budget": cu.Budget(epsilon=10, delta=1e-6),
        "bounds": {"spent": (0, 500)},
        "caps": {"rows": 10, "groups": 4},
        "engine": INLINE,
    }
    return cu.open(file, **{**options, **changes})


def truth(table, city):
    """Rows of a city: few people have more than ten, so caps take away next to nothing."""
    return int((np.asarray(table["city"]) == city).sum())


def test_five_lines(file):
    """Open, preview, ask: every released city is near the truth, within a few error bars."""
    with opened(file) as curator:
        preview = curator.preview(BY_CITY, spend="20%")
        answer = curator.ask(BY_CITY, spend="20%")
        assert preview.cost == answer.cost
        assert curator.ask(BY_CITY, spend="20%").rows == answer.rows
    assert [row["city"] for row in answer.rows] == ["Cuzco", "Lima", "Quito"]
    for row in answer.rows:
        width = row["n_high"] - row["n_low"]
        assert abs(row["n"] - truth(visits(), row["city"])) < 4 * width
        assert 60 < row["mean"] < 180
    assert answer.to_arrow().num_rows == 3


def test_the_worker_process_answers_too(file):
    """The default engine is a process of its own."""
    with opened(file, engine=None) as curator:
        (row,) = curator.ask("SELECT COUNT(*) AS n FROM visits", spend="50%").rows
    assert abs(row["n"] - 6000) < 500


def test_a_study_file_and_the_command_line(file, tmp_path, monkeypatch, capsys):
    """init, check, ask, refresh and budget on a real file."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["curador", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return code, *capsys.readouterr()

    study = tmp_path / "study.toml"
    assert run("init", file, "-o", study)[0] == 0
    assert run("init", file, "-o", study)[0] == 2
    assert run("check", study)[0] == 2
    text = study.read_text(encoding="utf-8").replace('unit = ""', 'unit = "user_id"')
    text = text.replace("[tables.visits.columns.spent]", "[tables.visits.columns.spent]\nbounds = [0, 500]")
    study.write_text(text + '\n[engine]\nworker = "inline"\n', encoding="utf-8")
    code, out, _ = run("check", study)
    assert code == 0
    assert "spent float, between 0 and 500" in out
    code, out, err = run("ask", study, BY_CITY, "--spend", "50%", "--format", "json", "--yes")
    assert code == 0, err
    assert {row["city"] for row in json.loads(out)["rows"]} <= {"Lima", "Quito", "Cuzco"}
    code, out, _ = run("check", study, "--as-owner")
    assert code == 0
    assert "6,000 rows of" in out
    assert "not protected" in out
    assert run("refresh", study)[1] == "data version 2\n"
    assert run("prepare", study, "--drop")[0] == 0
    assert "prepared copy" in run("check", study)[1]
    assert run("prepare", study)[0] == 0
    assert run("budget", study, "--json")[0] == 0


def test_changed_data_are_the_owners_to_declare(file, capsys):
    """A file that changed is refused with a hint; refresh makes it version 2, and stored answers are of version 1."""
    with opened(file) as curator:
        first = curator.ask("SELECT COUNT(*) AS n FROM visits", spend="5%")
    pq.write_table(visits(seed=2, rows=9000), file)
    with pytest.raises(cu.InvalidStudy, match=r"data version 1; a source has changed since.\nHint: .*refresh"):
        opened(file)
    with opened(file, refresh=True) as curator:
        second = curator.ask("SELECT COUNT(*) AS n FROM visits", spend="5%")
        assert curator.data_version == 2
    assert not second.stored
    assert second.rows[0]["n"] - first.rows[0]["n"] > 1000


def test_an_identical_file_is_a_new_version_when_it_is_refreshed(file):
    """Whether or not anything changed: a refresh that told would tell."""
    question = "SELECT COUNT(*) AS n FROM visits"
    with opened(file) as curator:
        curator.ask(question, spend="5%")
        curator.refresh("nothing new")
        assert not curator.ask(question, spend="5%").stored


def test_a_prepared_copy_that_is_gone_is_made_again_from_unchanged_data(file, tmp_path):
    """Known sources are prepared again; unknown ones are a new version."""
    import shutil

    with opened(file) as curator:
        curator.ask(BY_CITY, spend="5%")
        study = curator.study
    from curador.curator.opening import drop_prepared

    assert "removed" in drop_prepared(study)
    with opened(file) as curator:
        assert curator.ask(BY_CITY, spend="5%").stored
        assert not curator.ask(BY_CITY, spend="6%").stored
    shutil.rmtree(next(tmp_path.glob("*.prepared")))
    with pytest.raises(cu.InvalidStudy, match="not known any more"):
        opened(file)


def test_several_tables_analysts_and_joins(tmp_path):
    """Frames, a key path, shares and tables of analysts."""
    people = pa.table({"id": range(500), "born": [1950 + n % 50 for n in range(500)]})
    sources = {"people": people, "visits": visits(rows=3000, people=500)}
    with cu.open(
        sources,
        name="study",
        unit={"people": "id", "visits": {"column": "user_id", "references": "people"}},
        budget=cu.Budget(epsilon=10, delta=1e-6),
        bounds={"visits.spent": (0, 500), "people.born": (1900, 2020)},
        caps={"people": {"rows": 1}, "visits": {"rows": 10}},
        analysts={"ana": {"share": "50%"}, "leo": {"share": "10%", "tables": ["people"]}},
        ledger=tmp_path / "study.ledger",
        engine=INLINE,
    ) as curator:
        joined = "SELECT AVG(born) AS a, COUNT(*) AS n FROM visits JOIN people ON visits.user_id = people.id"
        (row,) = curator.analyst("ana").ask(joined, spend="100%", bias=True).rows
        assert 1940 < row["a"] < 2010
        with pytest.raises(cu.InvalidQuery, match='there is no table "visits"'):
            curator.analyst("leo").ask(joined, spend="5%")
    assert (tmp_path / ".study.ledger-id").exists()  # data in memory lie nowhere: the id is beside the ledger


def test_bias_estimates_are_near_the_truth(tmp_path):
    """What the caps took away is estimated from people, not from rows: heavy users, clamped values, many groups."""
    draw = np.random.default_rng(3)
    users = np.minimum((draw.pareto(1.1, 60_000) * 2000).astype(int), 15_000)
    spent = draw.gamma(2, 200, 60_000)
    table = pa.table({"user_id": users, "city": draw.choice(list("abcdefgh"), 60_000), "spent": spent})
    counts = np.bincount(users)
    lost = 1 - np.minimum(counts, 10).sum() / np.minimum(counts, 100).sum()
    with cu.open(
        table,
        name="visits",
        unit="user_id",
        budget=cu.Budget(epsilon=50, delta=1e-6),
        bounds={"spent": (0, 500)},
        values={"city": list("abcdefgh")},
        caps={"rows": 10, "groups": 4},
        ledger=tmp_path / "visits.ledger",
        engine=INLINE,
    ) as curator:
        answer = curator.ask(
            "SELECT AVG(spent) AS m, COUNT(DISTINCT user_id) AS n, city FROM visits GROUP BY city", spend="90%", bias=True
        )
    rows, groups, clamped = answer.bias
    assert rows.name == "rows beyond 10 a person"
    assert abs(rows.values[0] - lost) < 0.05
    assert rows.low[0] <= 1 - np.minimum(counts, 10).sum() / counts.sum() <= rows.high[0]  # of all rows, not of 100 each
    assert "rows beyond 10 a person: at least about" in str(answer)
    assert "a larger cap on rows" in str(answer)
    assert groups.name == "persons in more than 4 groups"
    assert 0 < groups.values[0] < 1
    assert clamped.name == "spent outside 0 … 500"
    assert abs(clamped.values[0] - (spent > 500).mean()) < 0.02


def test_bias_without_a_unit_column(tmp_path):
    """Rows whose unit is found through another table are counted by it all the same."""
    orders = pa.table({"order": range(3000), "who": [n % 100 for n in range(3000)]})
    items = pa.table({"order": [n % 3000 for n in range(6000)], "price": [float(n % 90) for n in range(6000)]})
    with cu.open(
        {"orders": orders, "items": items},
        name="shop",
        unit={"orders": "who", "items": {"column": "order", "references": "orders.order"}},
        budget=cu.Budget(epsilon=50, delta=1e-6),
        bounds={"items.price": (0, 50)},
        caps={"rows": 10},
        ledger=tmp_path / "shop.ledger",
        engine=INLINE,
    ) as curator:
        answer = curator.ask("SELECT SUM(price) AS s FROM items", spend="90%", bias=True)
    rows, clamped = answer.bias
    assert abs(rows.values[0] - (1 - 10 / 60)) < 0.05  # sixty rows a person, ten kept
    assert abs(clamped.values[0] - 39 / 90) < 0.1


@pytest.mark.parametrize("worker", ["inline", "process"])
def test_an_engine_that_breaks_tells_nothing(file, worker, monkeypatch):
    """The driver's words stay in the owner's log; the asker sees an id, and the charge is kept."""
    from curador.engines.duckdb import worker as runners

    with opened(file, engine={"worker": worker}) as curator:
        kind = runners.InlineRunner if worker == "inline" else runners.ProcessRunner

        monkeypatch.setattr(kind, "run", broken_by(runners.BrokenError("row 17 holds a secret"), kind.run))
        with pytest.raises(cu.Failed) as caught:
            curator.ask("SELECT COUNT(*) AS n FROM visits", spend="5%")
        assert re.search(r"Incident [0-9a-f]{16}", str(caught.value))
        assert "secret" not in str(caught.value)
        assert curator.log()[-1]["kind"] == "failed"
        assert curator.budget.spent.rho > 0


@pytest.mark.parametrize("worker", ["inline", "process"])
def test_what_fails_on_tables_without_rows_is_refused_before_it_is_charged(file, tmp_path, worker, monkeypatch):
    """The engine is asked about tables without rows first; its words are the owner's, the refusal costs nothing."""
    from curador.engines.duckdb import worker as runners

    with opened(file, engine={"worker": worker}) as curator:
        kind, ran = runners.InlineRunner if worker == "inline" else runners.ProcessRunner, []
        whole = kind.run

        def failing(self, statements, seconds, *, empty=False):
            ran.append((empty, whole(self, statements, seconds, empty=empty)))
            if empty:
                raise runners.BrokenError("no function matches")
            return ran[-1][1]

        monkeypatch.setattr(kind, "run", failing)
        with pytest.raises(
            cu.InvalidQuery, match="cannot run this question, even without rows; nothing was charged"
        ) as caught:
            curator.ask("SELECT COUNT(*) AS n FROM visits", spend="5%")
        assert [empty for empty, _ in ran] == [True]
        assert [table.to_pylist()[0]["n0"] for table in ran[0][1].values()] == [0]
        assert len(curator.log()) == 1
        assert curator.budget.spent.rho == 0
    (line,) = map(json.loads, next(tmp_path.glob("*.prepared/incidents.log")).read_text().splitlines())
    assert line["incident"] in str(caught.value)
    assert "no function matches" in line["detail"]
    assert "no function matches" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("rating = 1.5", []),
        ("rating IN (1, 2.5)", [1]),
        ("rating = 3.0", [3]),
        ("rating = 99999999999999999999999", []),
        ("rating IN (2, 1e300)", [2]),
    ],
)
def test_a_literal_that_is_no_value_of_its_key_matches_nothing_and_fails_nothing(tmp_path, where, keys):
    """A fraction or a number beyond 64 bits is no whole number: the key is not there, and nobody is charged for a failure."""
    rated = pa.table({"user_id": [n % 50 for n in range(400)], "rating": [n % 5 + 1 for n in range(400)]})
    pq.write_table(rated, tmp_path / "visits.parquet")
    options = {"unit": "user_id", "budget": cu.Budget(epsilon=9, delta=1e-6), "ledger": tmp_path / "v.ledger"}
    with cu.open(tmp_path / "visits.parquet", types={"rating": "integer"}, **options, engine=INLINE) as curator:
        answer = curator.ask(f"SELECT rating, COUNT(*) AS n FROM visits WHERE {where} GROUP BY rating", spend="1%")
        assert [row["rating"] for row in answer.rows] == keys
        assert answer.to_arrow().num_rows == len(keys)
        assert curator.ledger.failures == 0


def test_every_failure_after_a_charge_stands_in_the_owners_log_under_its_id(file, tmp_path, monkeypatch):
    """Also one that no engine raised: what is told leads to what happened."""
    from curador.curator import asking

    with opened(file) as curator:
        monkeypatch.setattr(asking, "release", broken_release)
        with pytest.raises(cu.Failed) as caught:
            curator.ask("SELECT COUNT(*) AS n FROM visits", spend="5%")
        assert curator.log()[-1]["kind"] == "failed"
    lines = [json.loads(one) for one in next(tmp_path.glob("*.prepared/incidents.log")).read_text().splitlines()]
    (line,) = (one for one in lines if one["incident"] in str(caught.value))
    assert "the sampler broke" in line["detail"]
    assert "the sampler broke" not in str(caught.value)


def broken_release(*_):
    raise ArithmeticError("the sampler broke")


def test_a_lost_key_of_the_prepared_folder_is_told_in_one_sentence(file, tmp_path):
    """Nothing is opened, and the way out is said: a new data version."""
    with opened(file):
        pass
    next(tmp_path.glob("*.prepared/key")).unlink()
    with pytest.raises(
        cu.InvalidStudy, match=r"key must be 32 bytes; got 0 bytes\.\nHint: restore it; or run `curador refresh`"
    ):
        opened(file)
    with opened(file, refresh=True) as curator:
        assert curator.budget.data_version == 2


def test_an_empty_table_answers_like_any_other(tmp_path):
    """No row: known keys have noisy zeros, private keys no group, types stay."""
    pq.write_table(visits(rows=0), tmp_path / "visits.parquet")
    with opened(tmp_path / "visits.parquet") as curator:
        assert len(curator.ask(BY_CITY, spend="5%")) == 0
        (row,) = curator.ask("SELECT COUNT(*) AS n, AVG(spent) AS m, MEDIAN(spent) AS q FROM visits", spend="5%").rows
        assert abs(row["n"]) < 5000
        assert 0 <= row["q"] <= 500


@pytest.mark.parametrize("question", ["SELECT COUNT(*) AS n FROM visits", "SELECT AVG(spent) AS m FROM visits"])
def test_what_anybody_sees_is_free_of_digests_of_the_data(file, tmp_path, question):
    """No receipt, entry or message holds the digests that the owner's manifest keeps."""
    with opened(file) as curator:
        receipt = curator.ask(question, spend="5%").receipt.to_json()
        shown = receipt + json.dumps(curator.log()) + str(curator.preview(question, spend="6%"))
    manifest = next(tmp_path.glob("*.prepared/manifest.json")).read_text(encoding="utf-8")
    digests = re.findall(r'"digest": "([0-9a-f]{64})"', manifest)
    assert digests
    assert not any(digest in shown for digest in digests)


def test_what_an_analyst_sees_is_free_of_the_files(tmp_path, monkeypatch):
    """No number of rows, SHA-256 of a file, nor path: in receipts, previews, refusals, failures, the log or the schema."""
    from curador.engines.duckdb import worker as runners

    file = tmp_path / "canary-visits.parquet"
    pq.write_table(visits(rows=1_237, people=733), file)
    question = "SELECT COUNT(*) AS n, COUNT(DISTINCT user_id) AS people FROM visits"
    seen = []
    with cu.open(
        {"visits": file},
        name="canary",
        unit={"visits": "user_id"},
        budget=cu.Budget(epsilon=10, delta=1e-6),
        bounds={"visits.spent": (0, 500)},
        caps={"rows": 10, "groups": 4},
        analysts={"ana": {"share": "50%"}},
        ledger=tmp_path / "canary-visits.ledger",
        engine=INLINE,
    ) as curator:
        ana = curator.analyst("ana")
        preview = ana.preview(BY_CITY, spend="5%")
        seen += [str(preview), json.dumps(preview.to_dict()), ana.explain(question)]
        for _ in range(2):
            answer = ana.ask(question, spend="5%")
            seen += [answer.receipt.to_json(), str(answer.receipt), *answer.notes]
        for text, options in (("SELECT * FROM visits", {}), ("SELECT 1 FROM x", {}), (question, {}), (question, {"rho": 9})):
            with pytest.raises(cu.Refused) as refusal:
                ana.ask(text, **options)
            seen.append(str(refusal.value))
        with monkeypatch.context() as patch:
            patch.setattr(
                runners.InlineRunner, "run", broken_by(runners.BrokenError(f"{file} has 1237 rows"), runners.InlineRunner.run)
            )
            with pytest.raises(cu.Failed) as failure:
                ana.ask(BY_CITY, spend="5%")
        seen += [str(failure.value), json.dumps(ana.log()), str(ana.budget), repr(ana.schema.study), repr(ana.schema.tables)]
        folder = next(tmp_path.glob("*.prepared"))
    assert leaks(seen, file, folder) == []
    assert len(leaks([f"of 1,237 rows in {file}: {hashlib.sha256(file.read_bytes()).hexdigest()}"], file, folder)) == 3


def broken_by(problem, whole):
    """A runner that breaks on data; on tables without rows it runs."""

    def broken(self, statements, seconds, *, empty=False):
        if not empty:
            raise problem
        return whole(self, statements, seconds, empty=True)

    return broken


def leaks(seen, file, folder):
    """What of the files' own facts stands in texts: the number of rows, by itself, digests of files, and places."""
    text = "\n".join(seen)
    files = [file, *(one for one in folder.rglob("*") if one.is_file())]
    digests = {hashlib.sha256(one.read_bytes()).hexdigest()[:16] for one in files}
    found = [one for one in [*digests, str(file.parent)] if one in text]
    return found + re.findall(r"(?<![0-9a-f.])1,?237(?![0-9a-f])", text)


def test_a_refresh_of_a_file_that_lost_a_column_is_refused(file):
    """One sentence, no new version, and questions go on about the old one."""
    with opened(file) as curator:
        curator.ask(BY_CITY, spend="5%")
        pq.write_table(visits(seed=2).drop_columns(["spent"]), file)
        with pytest.raises(cu.InvalidStudy, match="spent"):
            curator.refresh("monthly")
        assert curator.data_version == curator.ledger.data_version == 1
        assert not curator.ask(BY_CITY, spend="6%").stored
    with pytest.raises(cu.InvalidStudy, match="spent"):
        opened(file, refresh=True)


def test_a_study_that_cannot_be_used_leaves_nothing_behind(file, tmp_path):
    """A declared column that the file has not: no ledger, head or marker."""
    with pytest.raises(cu.InvalidStudy):
        opened(file, unit="nobody")
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_prepared_caps_and_the_bigquery_clause(file):
    """Options of a question reach the plan."""
    with opened(file) as curator:
        filtered = "SELECT COUNT(*) AS n FROM visits WHERE spent > 100"
        assert "prepared random rank" in curator.explain(filtered, caps="prepared")
        assert "after joins and filters" in curator.explain(filtered)
        text = (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, privacy_unit_column=user_id, max_groups_contributed=1) "
            "city, COUNT(*) AS n FROM visits GROUP BY city"
        )
        answer = curator.ask(text, dialect="bigquery")
        assert answer.cost.rho < Fraction(1, 4)
        assert answer.receipt["caps"][0]["groups"] == 1

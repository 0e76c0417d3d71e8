"""Whatever an analyst can look at is the same with and without one person, noise apart, and holds no rows or durations."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import curador as cu
from curador.curator import asking, spending
from curador.errors import CuradorError
from curador.mechanisms import seam

PEOPLE, CANARY_TEXT, CANARY_NUMBER = 900, "canary-7391", 417.0391
STUDY = """
version = 1
name = "shop"
budget = { epsilon = "8", delta = "1e-6" }
max_units = 10_000
ledger = "shop.ledger"
[engine]
worker = "inline"
threads = 1
[analysts.ana]
share = "100%"
[tables.visits]
source = "visits.parquet"
unit = "user_id"
caps = { rows = 5, groups = 3 }
[tables.visits.columns]
spent = { type = "float", bounds = [0, 500] }
city = { type = "string", values = ["Lima", "Quito"] }
"""
QUESTIONS = (
    "SELECT COUNT(*) AS n, AVG(spent) AS mean FROM visits",
    "SELECT city, SUM(spent) AS total, COUNT(DISTINCT user_id) AS people FROM visits GROUP BY city ORDER BY total DESC",
    "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop",
    "SELECT MEDIAN(spent) AS m FROM visits WHERE spent > 100",
    "SELECT COUNT(*) AS n FROM visits",
)
REFUSED = (
    "SELECT nothing FROM visits",
    f"SELECT COUNT(*) AS n FROM visits WHERE shop = '{CANARY_TEXT}' AND",
    "SELECT user_id FROM visits",
    "SELECT COUNT(*) AS n FROM elsewhere",
)
RANDOM = {"id", "hash", "refers", "time", "entry", "ledger"}
"""Ids, and the time at which a question arrived."""

LASTS = re.compile(r"duration|elapsed|seconds|took|runtime|rows_read|row_count", re.IGNORECASE)


def write_world(folder, *, without):
    """Write the visits of everybody, or of everybody but one person, whose values nobody else has."""
    dice = np.random.default_rng(3)
    users = np.repeat(np.arange(PEOPLE), 4)
    spent = dice.random(len(users)) * 400
    shops = np.array(["north", "south"])[dice.integers(0, 2, len(users))].astype(object)
    one = users == 17
    spent[one], shops[one] = CANARY_NUMBER, CANARY_TEXT
    keep = ~one if without else np.full(len(users), True)
    cities = np.array(["Lima", "Quito"])[dice.integers(0, 2, len(users))]
    table = {"user_id": users, "spent": spent, "city": cities, "shop": shops.tolist()}
    folder.mkdir()
    pq.write_table(pa.table({name: np.asarray(column)[keep] for name, column in table.items()}), folder / "visits.parquet")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return int(keep.sum())


def stripped(value):
    """The value without what is random."""
    if isinstance(value, dict):
        return {name: stripped(one) for name, one in value.items() if name not in RANDOM}
    return [stripped(one) for one in value] if isinstance(value, (list, tuple)) else value


def without_ids(text):
    return re.sub(r"\b[0-9a-f]{16,64}\b", "…", text)


def surfaces(folder, *, problem):
    """Everything that an analyst sees of questions, one of them asked again, a failure, and refusals."""
    found = {}
    with cu.open(folder / "study.toml") as curator:
        ana = curator.analyst("ana")
        for place, question in enumerate((*QUESTIONS, QUESTIONS[0])):
            answer = ana.ask(question, spend="5%")
            found[f"table {place}"] = [list(map(str, answer.columns)), str(answer), str(answer.to_arrow().schema)]
            found[f"receipt {place}"] = stripped(answer.receipt.record)
            found[f"notes {place}"] = list(answer.notes)
            found[f"preview {place}"] = str(ana.preview(question, spend="5%"))
        for place, question in enumerate(REFUSED):
            with pytest.raises(CuradorError) as refused:
                ana.ask(question, spend="1%")
            found[f"refused {place}"] = type(refused.value).__name__, str(refused.value)
        with pytest.raises(CuradorError) as refused:
            ana.ask(QUESTIONS[0], spend="99%")
        found["too much"] = type(refused.value).__name__, str(refused.value)
        curator._session.engine.tally = problem  # noqa: SLF001 -- whatever rows may cause there
        with pytest.raises(CuradorError) as failed:
            ana.ask(QUESTIONS[0], spend="2%")
        found["failed"] = type(failed.value).__name__, without_ids(str(failed.value)), failed.value.__cause__
        found["log"] = [{**stripped(line), "note": without_ids(str(line["note"]))} for line in ana.log()]
        found["budget"] = stripped(ana.budget.to_dict())
    return found


def two_worlds(tmp_path):
    """Both worlds' surfaces, with the same noisy numbers; and the exact numbers of rows."""

    def breaks(*_):
        raise RuntimeError(f"{CANARY_TEXT} {CANARY_NUMBER}")

    def breaks_otherwise(*_):
        raise ValueError("9" * 50)

    rows = [write_world(tmp_path / name, without=name == "without") for name in ("with", "without")]
    with seam.recording() as script:
        first = surfaces(tmp_path / "with", problem=breaks)
    with seam.replaying(script):
        second = surfaces(tmp_path / "without", problem=breaks_otherwise)
    return first, second, rows


def keys_of(value):
    if isinstance(value, dict):
        for name, one in value.items():
            yield str(name)
            yield from keys_of(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from keys_of(one)


def told_too_much(found, rows):
    """Where surfaces hold what only rows know: a value of one person, an exact number of rows, a duration."""
    for name, value in found.items():
        text = json.dumps(value, default=str, ensure_ascii=False)
        if name.startswith("refused"):
            text = text.replace(f"shop = '{CANARY_TEXT}'", "")  # what the asker wrote
        secrets = [CANARY_TEXT, str(CANARY_NUMBER)]
        secrets += [] if name.startswith("table") else [str(number) for number in rows] + [f"{number:,}" for number in rows]
        yield from ((name, secret) for secret in secrets if re.search(rf"(?<![\w.]){re.escape(secret)}(?![\w])", text))
        yield from ((name, key) for key in keys_of(value) if LASTS.search(key))


@pytest.mark.slow
def test_surfaces_are_the_same_in_neighbouring_worlds(tmp_path):
    """Answers, their order and types, receipts, previews, refusals, failures, log and budget."""
    first, second, rows = two_worlds(tmp_path)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert value == second[name], name
    assert list(told_too_much(first, rows)) == list(told_too_much(second, rows)) == []


def tells_rows(monkeypatch):
    """A note with the number of rows that were read."""
    made = asking.bounding_notes

    def more(plan, schema):
        count = pq.read_metadata(schema.study.folder / "visits.parquet").num_rows
        return (*made(plan, schema), f"{count:,} rows were read")

    monkeypatch.setattr(asking, "bounding_notes", more)


def tells_why(monkeypatch):
    """A failure with its reason."""
    monkeypatch.setattr(spending, "_record_failure", lambda _, error: f"0123456789abcdef {error}")


@pytest.mark.slow
@pytest.mark.parametrize("bug", [tells_rows, tells_why])
def test_what_tells_more_is_found(tmp_path, monkeypatch, bug):
    """Seeded: by the comparison and by the scan."""
    bug(monkeypatch)
    first, second, rows = two_worlds(tmp_path)
    assert any(first[name] != second[name] for name in first)
    assert list(told_too_much(first, rows))

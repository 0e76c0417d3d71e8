"""The demonstration: its data are the same everywhere, its study can be read, and it runs to its end."""

from __future__ import annotations

import io

import pytest
from pyarrow import parquet

import curador as cu
from curador.cli import demo, demo_data
from curador.study.file import read_study


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(demo_data, "PEOPLE", 2_000)
    monkeypatch.setattr(demo_data, "VISITS", 20_000)


@pytest.mark.usefixtures("small")
def test_data_are_the_same_every_time(tmp_path):
    """The generator has a seed: two folders hold equal tables."""
    first, second = demo_data.write_demo(tmp_path / "a").parent, demo_data.write_demo(tmp_path / "b").parent
    for name in ("people", "visits", "cities"):
        assert parquet.read_table(first / f"{name}.parquet").equals(parquet.read_table(second / f"{name}.parquet"))


@pytest.mark.usefixtures("small")
def test_data_are_as_the_study_says(tmp_path):
    """Keys lead to people, declared values are all there are, and there are NULLs and values outside their bounds."""
    study = read_study(demo_data.write_demo(tmp_path))
    visits, people = (parquet.read_table(tmp_path / f"{name}.parquet") for name in ("visits", "people"))
    table = study.table("visits")
    assert table is not None
    assert {*visits["person"].to_pylist()} <= {*people["id"].to_pylist()}
    assert len({*people["id"].to_pylist()}) == people.num_rows
    assert {*visits["kind"].to_pylist()} <= {*table.column("kind").values}
    assert 0 < visits["spent"].null_count < visits.num_rows / 10
    assert max(one for one in visits["spent"].to_pylist() if one is not None) > table.column("spent").bounds[1]


def test_another_folder_is_never_emptied(tmp_path):
    """A folder that no demonstration wrote is refused, and stays as it is."""
    kept = tmp_path / "letters.txt"
    kept.write_text("dear")
    with pytest.raises(cu.InvalidParameter, match="earlier demonstration"):
        demo.run(io.StringIO(), folder=tmp_path)
    assert kept.read_text() == "dear"


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_it_runs_to_its_end_twice(tmp_path):
    """Questions are answered, the repeated one is free, the large and the hostile ones are refused; then once more."""
    for _ in range(2):
        out = io.StringIO()
        demo.run(out, folder=tmp_path / "demo")
        text = " ".join(out.getvalue().split())
        assert "answered before: yes; cost: nothing" in text
        assert text.count("NotPrivate:") == 2
        assert text.count("InvalidQuery:") == 1
        assert text.count("BudgetExceeded:") == 1
        assert "each chained to the one before" in text


@pytest.mark.slow
def test_the_mathematics_are_still_shown(capsys):
    """The other demonstration needs no data."""
    out = io.StringIO()
    demo.run(out, mathematics=True)
    assert "BudgetExceeded" not in out.getvalue()
    assert "A budget that cannot be talked into more" in out.getvalue()
    assert "reading" in capsys.readouterr().out

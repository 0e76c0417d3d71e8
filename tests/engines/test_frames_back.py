"""Data frames in and out: the kind that came in comes back, and values keep their types."""

import datetime as dt
from decimal import Decimal

import narwhals as nw
import narwhals.stable.v1 as stable
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import curador as cu
from curador.study.frames import common_kind, is_frame, kind_of_frame, of_kind, plain_frame, shape_of_frame

UNITS = 900
LARGE = 2**60 + 1


def column(values, kind=None):
    return pa.array([values[place % len(values)] for place in range(UNITS)], type=kind)


TABLE = pa.table(
    {
        "person": pa.array(range(UNITS)),
        "city": column(["Lima", "Quito", None]).dictionary_encode(),
        "large": column([1, LARGE, None]),
        "member": column([True, False, None]),
        "price": column([Decimal("1.25"), Decimal("0.10"), None], pa.decimal128(10, 2)),
        "ratio": column([1.5, float("nan"), None]),
        "day": column([dt.date(2024, 1, 1), dt.date(2024, 2, 29), None]),
        "at": column([dt.datetime(2024, 1, 1, 5), dt.datetime(2024, 1, 2), None]),  # noqa: DTZ001 -- as rows are
    }
)
OBJECTS = {"price": "decimal", "day": "date", "member": "boolean"}
"""What pandas holds as objects, which are texts until somebody says what they are."""

FRAMES = {
    "arrow": (lambda: TABLE, pa.Table, None),
    "pandas": (TABLE.to_pandas, pd.DataFrame, OBJECTS),
    "pandas on arrow": (lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype), pd.DataFrame, None),
    "polars": (lambda: pl.from_arrow(TABLE), pl.DataFrame, None),
    "narwhals": (lambda: nw.from_native(pl.from_arrow(TABLE), eager_only=True), nw.DataFrame, None),
    "narwhals, stable": (lambda: stable.from_native(TABLE, eager_only=True), nw.DataFrame, None),
}
KEYS = {
    "city": (pa.string(), ["Lima", "Quito", None]),
    "large": (pa.int64(), [1, LARGE, None]),
    "member": (pa.bool_(), [False, True, None]),
    "price": (pa.float64(), [0.1, 1.25, None]),
    "ratio": (pa.float64(), [1.5, None]),
    "day": (pa.date32(), [dt.date(2024, 1, 1), dt.date(2024, 2, 29), None]),
    "at": (pa.timestamp("us"), [dt.datetime(2024, 1, 1, 5), dt.datetime(2024, 1, 2), None]),  # noqa: DTZ001
}


def opened(frame, types=None):
    bounds = {"price": (0, 10), "ratio": (0, 10)}
    budget = cu.Budget(epsilon=1000, delta=1e-6)
    caps, engine = {"rows": 1}, {"worker": "inline"}
    return cu.open(
        frame, name="v", unit="person", budget=budget, bounds=bounds, types=types, caps=caps, ledger=":memory:", engine=engine
    )


@pytest.mark.parametrize("name", FRAMES)
def test_the_kind_that_came_in_comes_back(name):
    """With the values of every type as they were: no digit is lost, NaN is NULL, a category is its text."""
    make, kind, types = FRAMES[name]
    with opened(make(), types) as curator:
        for key, (arrow, values) in KEYS.items():
            if name == "pandas" and key == "large":
                continue  # pandas itself made floats of whole numbers with a NULL, before anybody was asked
            answer = curator.ask(f"SELECT {key}, COUNT(*) AS n FROM v GROUP BY {key}", spend="5%")
            assert answer.to_arrow().schema.field(key).type == arrow
            assert answer.to_arrow().column(key).to_pylist() == values
            assert isinstance(answer.to_frame(), kind)
            assert pl.DataFrame(answer.to_polars())[key].to_list() == values
            shown = answer.to_pandas()[key]
            assert [None if missing else one for one, missing in zip(shown.tolist(), shown.isna(), strict=True)] == values
        total = curator.ask("SELECT SUM(price) AS t, COUNT(ratio) AS n FROM v", spend="20%").rows[0]
        assert total["t"] == pytest.approx(300 * 1.25 + 300 * 0.10, abs=20)
        assert abs(total["n"] - 300) < 20


def test_pandas_types_have_nulls_where_one_is():
    """Large whole numbers and truths stay what they are beside a NULL."""
    with opened(TABLE) as curator:
        large = curator.ask("SELECT large, COUNT(*) AS n FROM v GROUP BY large", spend="5%").to_pandas()
        member = curator.ask("SELECT member, COUNT(*) AS n FROM v GROUP BY member", spend="5%").to_pandas()
    assert (str(large["large"].dtype), str(large["n"].dtype), large["large"].tolist()[1]) == ("Int64", "int64", LARGE)
    assert str(member["member"].dtype) == "boolean"


def test_tables_of_two_kinds_come_back_as_arrow():
    """And a question about one of them as that one's."""
    other = pl.DataFrame({"person": range(UNITS), "born": [1990] * UNITS})
    budget, caps = cu.Budget(epsilon=1000, delta=1e-6), {"rows": 1}
    with cu.open(
        {"v": TABLE.to_pandas(), "p": other}, unit={"v": "person", "p": "person"}, budget=budget, caps=caps, ledger=":memory:"
    ) as curator:
        assert isinstance(curator.ask("SELECT COUNT(*) AS n FROM v", spend="5%").to_frame(), pd.DataFrame)
        assert isinstance(curator.ask("SELECT COUNT(*) AS n FROM p", spend="5%").to_frame(), pl.DataFrame)
        both = curator.ask("SELECT COUNT(*) AS n FROM v JOIN p USING (person)", spend="5%")
        assert isinstance(both.to_frame(), pa.Table)


def test_files_come_back_as_arrow(tmp_path):
    """No frame came in."""
    pq.write_table(TABLE, tmp_path / "v.parquet")
    budget = cu.Budget(epsilon=100, delta=1e-6)
    with cu.open(tmp_path / "v.parquet", unit="person", budget=budget, caps={"rows": 1}) as curator:
        assert isinstance(curator.ask("SELECT COUNT(*) AS n FROM v", spend="5%").to_frame(), pa.Table)


class ForeignFrame:
    """A frame of a library that nobody here knows, which Narwhals reads by its protocol."""

    def __init__(self, table):
        self._table = table

    def __narwhals_dataframe__(self):
        return nw.from_native(self._table, eager_only=True)._compliant_frame  # noqa: SLF001 -- what such a library returns


def test_a_frame_of_another_library_is_a_source():
    """Narwhals reads it; it comes back as what Narwhals says it is made of."""
    frame = ForeignFrame(TABLE)
    assert is_frame(frame)
    assert shape_of_frame(frame) == TABLE.shape
    assert plain_frame(frame).schema == TABLE.schema
    with opened(frame) as curator:
        answer = curator.ask("SELECT COUNT(*) AS n FROM v", spend="5%")
        assert isinstance(answer.to_frame(), pa.Table)
        assert abs(answer.rows[0]["n"] - UNITS) < 20


@pytest.mark.parametrize(
    "value", [pl.from_arrow(TABLE).lazy(), nw.from_native(pl.from_arrow(TABLE).lazy()), pd.Series([1]), {"a": [1]}, object()]
)
def test_what_is_no_frame_is_refused(value):
    """What is computed later could be another table the next time."""
    assert not is_frame(value)
    with pytest.raises(cu.InvalidStudy):
        cu.open({"v": value}, unit="a", budget=cu.Budget(epsilon=1, delta=1e-6), ledger=":memory:")


def test_kinds():
    """A frame becomes one of any kind, and back."""
    kinds = [kind_of_frame(make()) for make, _, _ in FRAMES.values()]
    assert len(set(kinds)) == 5
    for kind in kinds:
        assert kind_of_frame(of_kind(TABLE, kind)) == kind
    assert common_kind([]) == common_kind([TABLE, pd.DataFrame()]) == kind_of_frame(TABLE)

"""Reports in files: read as they were written, a batch at a time; wrong files are refused before any is counted."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from typer.testing import CliRunner

from curador import local
from curador.cli.app import app
from curador.errors import InvalidParameter
from curador.local.files import BATCH, SUFFIXES
from curador.randomness.injected import Seeded

PROTOCOLS = {
    "direct": local.Direct(["a", "b", "c"], epsilon=1),
    "unary": local.Unary(19, epsilon=1),
    "hashing": local.Hashing(50, epsilon=1),
    "hadamard": local.Hadamard(50, epsilon=1),
    "subset": local.Subset(10, epsilon=1),
    "laplace": local.LaplaceMean(lower=0, upper=1, epsilon=1),
    "duchi": local.DuchiMean(lower=0, upper=1, epsilon=1),
    "hybrid": local.HybridMean(lower="-1/3", upper=1, epsilon="0.7"),
    "piecewise": local.PiecewiseMean(lower=0, upper=1, epsilon=1),
    "rappor": local.Rappor(9, epsilon_forever=3, epsilon_once=1, values=2),
    "hitters": local.HeavyHitters(epsilon=2, bits=24, start=8, hashes=32, salt="é"),
    "texts": local.HeavyHitters(epsilon=2, length=4, start=8, hashes=32, false_values="0.5"),
}
every_protocol = pytest.mark.parametrize("name", PROTOCOLS)


def reports_of(protocol, number=3000):
    if isinstance(protocol, local.HeavyHitters):
        values = ["ab", "c"] if protocol.text else [1, 2]
        return protocol.draw(protocol.codes(values * (number // 2)), Seeded(1))
    if hasattr(protocol, "domain"):
        return protocol.draw(np.arange(number) % protocol.size, Seeded(1))
    return protocol.draw(np.linspace(0, 1, number), Seeded(1))


def same(one, other):
    return str(one.estimate()) == str(other.estimate()) and (one.reports, one.rejected) == (other.reports, other.rejected)


class TestRoundTrip:
    """Files of every kind and every protocol."""

    @pytest.mark.slow
    @every_protocol
    def test_written_and_read(self, name, tmp_path):
        """What is read is what was written, whatever the format; a folder is all its files."""
        protocol = PROTOCOLS[name]
        reports = reports_of(protocol)
        for ending in sorted(SUFFIXES):
            path = tmp_path / f"reports{ending}"
            assert local.write_reports(protocol, reports, path) == 3000
            assert same(protocol.collector().add_files(path), protocol.collector().add(reports))
        everything = protocol.collector().add_files(tmp_path)
        assert everything.reports == 3000 * len(SUFFIXES)

    @every_protocol
    def test_lists_of_clients(self, name, tmp_path):
        """What clients sent may be written, too; a malformed report is refused."""
        protocol = PROTOCOLS[name]
        value = {"hitters": 5, "texts": "ab"}.get(name, 1)
        sent = [protocol.client().report(value) for _ in range(7)]
        local.write_reports(protocol, sent, tmp_path / "a.arrow")
        assert protocol.collector().add_files(tmp_path / "a.arrow").reports == 7
        with pytest.raises(InvalidParameter, match="reports must be well-formed; got 1 that are not"):
            local.write_reports(protocol, [*sent, None], tmp_path / "b.arrow")

    @pytest.mark.slow
    def test_files_of_others(self, tmp_path):
        """Other columns, narrow integers, compression, many batches and one large batch are all read."""
        protocol = local.Direct(5, epsilon=1)
        codes = np.arange(2 * BATCH + 17) % 5
        table = pa.table({"when": np.zeros(len(codes)), "report": codes.astype(np.int8)})
        feather.write_feather(table, tmp_path / "a.feather", compression="lz4", chunksize=1000)
        parquet.write_table(table, tmp_path / "b.parquet")
        with pa.OSFile(str(tmp_path / "c.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        seen = []
        collector = protocol.collector().add_files(tmp_path, progress=seen.append)
        assert collector.reports == 3 * len(codes)
        assert seen == sorted(seen)
        assert seen[-1] == 3 * len(codes)
        assert max(len(part) for part, _ in local.batches(protocol, [tmp_path / "c.arrow"])) == BATCH

    def test_slices_of_bytes(self, tmp_path):
        """Rows of bytes beyond the first batch are the right ones."""
        protocol = local.Unary(9, epsilon=1)
        reports = reports_of(protocol, 2 * BATCH + 5)
        local.write_reports(protocol, reports, tmp_path / "a.arrow")
        table = pa.ipc.open_file(tmp_path / "a.arrow").read_all().combine_chunks()
        with pa.OSFile(str(tmp_path / "b.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        read = np.concatenate([part for part, _ in local.batches(protocol, [tmp_path / "b.arrow"])])
        assert np.array_equal(read, reports)


class TestRejected:
    """Rows that are no reports are counted, not believed."""

    def test_empty_cells_and_numbers_out_of_range(self, tmp_path):
        """Both are rejected, the rest is counted."""
        protocol = local.Hashing(50, epsilon=1)
        prime = protocol.prime
        columns = {"a": [1, None, 2, prime, 3], "b": [0, 1, prime, 0, 5], "cell": [0, 0, 0, 0, 1]}
        parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
        collector = protocol.collector().add_files(tmp_path)
        assert (collector.reports, collector.rejected) == (2, 3)

    def test_bits_beyond_the_last_value(self, tmp_path):
        """A row with a bit that no value has, and an empty one."""
        protocol = local.Unary(9, epsilon=1)
        column = pa.array([b"\x01\x01", b"\x00\x02", None, b"\xff\x00"], pa.binary(2))
        parquet.write_table(pa.table({"report": column}), tmp_path / "x.parquet")
        collector = protocol.collector().add_files(tmp_path)
        assert (collector.reports, collector.rejected) == (2, 2)

    def test_nothing_but_rejected(self, tmp_path):
        """No report, no estimate."""
        parquet.write_table(pa.table({"report": pa.array([None, 7], pa.int64())}), tmp_path / "x.parquet")
        collector = local.Direct(3, epsilon=1).collector().add_files(tmp_path)
        assert (collector.reports, collector.rejected) == (0, 2)
        with pytest.raises(InvalidParameter):
            collector.estimate()


class TestRefused:
    """One sentence, and nothing counted: not even the files that are right."""

    @pytest.mark.parametrize(
        ("table", "words"),
        [
            ({"rapport": [1]}, "must have one column 'report' of int64; got rapport"),
            ({"report": [1.0]}, r"column 'report' of .*x\.parquet must be of int64; got double"),
            ({"report": ["a"]}, "must be of int64; got string"),
        ],
    )
    def test_columns(self, table, words, tmp_path):
        """The file, the column and its type are named."""
        protocol = local.Direct(3, epsilon=1)
        local.write_reports(protocol, [1, 2], tmp_path / "a.arrow")
        parquet.write_table(pa.table(table), tmp_path / "x.parquet")
        collector = protocol.collector()
        with pytest.raises(InvalidParameter, match=words):
            collector.add_files(tmp_path)
        assert collector.reports == 0

    def test_the_width_of_bytes(self, tmp_path):
        """Bits of another domain."""
        parquet.write_table(pa.table({"report": pa.array([b"ab"], pa.binary(2))}), tmp_path / "x.parquet")
        with pytest.raises(InvalidParameter, match=r"must be of fixed_size_binary\[3\]; got fixed_size_binary\[2\]"):
            local.Unary(24, epsilon=1).collector().add_files(tmp_path)

    def test_reports_of_another_protocol(self, tmp_path):
        """A file of ours says whose reports it holds."""
        local.write_reports(local.Direct(3, epsilon=1), [1, 2], tmp_path / "a.arrow")
        with pytest.raises(InvalidParameter, match="must hold reports of this protocol"):
            local.Direct(3, epsilon=2).collector().add_files(tmp_path)

    def test_paths(self, tmp_path):
        """Missing, of another ending, twice, an empty folder, no such file inside."""
        protocol = local.Direct(3, epsilon=1)
        (tmp_path / "empty").mkdir()
        (tmp_path / "a.csv").write_text("report\n1\n")
        (tmp_path / "b.arrow").write_bytes(b"not arrow")
        (tmp_path / "b.parquet").write_bytes(b"not parquet")
        local.write_reports(protocol, [1], tmp_path / "c.arrow")
        for path, words in (
            ("none.arrow", "exists"),
            ("a.csv", "ends in"),
            ("empty", "one with Arrow or Parquet files"),
            ("b.arrow", "a .arrow file that can be read"),
            ("b.parquet", "a .parquet file that can be read"),
        ):
            with pytest.raises(InvalidParameter, match=words):
                protocol.collector().add_files(tmp_path / path)
        with pytest.raises(InvalidParameter, match="twice"):
            protocol.collector().add_files(tmp_path / "c.arrow", tmp_path / "empty" / ".." / "c.arrow")
        with pytest.raises(InvalidParameter, match="path must be a name that ends in"):
            local.write_reports(protocol, [1], tmp_path / "c.csv")


class TestProtocolsAsText:
    """`to_json` and back."""

    @every_protocol
    def test_there_and_back(self, name):
        """The same protocol, and the same text."""
        protocol = PROTOCOLS[name]
        again = local.from_json(local.to_json(protocol))
        assert again == protocol
        assert local.to_json(again) == local.to_json(protocol)

    @pytest.mark.parametrize(
        "change",
        [
            {"protocol": "Other"},
            {"version": 2},
            {"curador": "local client"},
            {"epsilon": None},
            {"epsilon": "99"},
            {"more": 1},
            {"domain": 1},
        ],
    )
    def test_refused(self, change):
        """Anything unknown."""
        body = json.loads(local.to_json(local.Direct(3, epsilon=1)))
        with pytest.raises(InvalidParameter):
            local.from_json(json.dumps(body | change))

    @pytest.mark.parametrize("text", ["", "3", "[]", "{}", None])
    def test_no_text(self, text):
        """Not ours at all."""
        with pytest.raises(InvalidParameter):
            local.from_json(text)

    def test_a_missing_domain(self):
        """Is said."""
        body = json.loads(local.to_json(local.Direct(3, epsilon=1)))
        del body["domain"]
        with pytest.raises(InvalidParameter, match="parameters of Direct"):
            local.from_json(json.dumps(body))


class TestCommand:
    """`curador collect`."""

    @pytest.mark.slow
    @every_protocol
    def test_prints_the_estimate(self, name, tmp_path):
        """As a table, and as numbers."""
        protocol = PROTOCOLS[name]
        reports = reports_of(protocol)
        local.write_reports(protocol, reports, tmp_path / "r.arrow")
        (tmp_path / "p.json").write_text(local.to_json(protocol), encoding="utf-8")
        runner = CliRunner()
        shown = runner.invoke(app, ["collect", str(tmp_path / "p.json"), str(tmp_path / "r.arrow")])
        assert shown.exit_code == 0
        assert shown.stdout.strip() == str(protocol.estimate(reports))
        numbers = runner.invoke(app, ["collect", str(tmp_path / "p.json"), str(tmp_path), "--json"])
        body = json.loads(numbers.stdout)
        assert body["reports"] == 3000
        assert ("mean" in body) == hasattr(protocol, "lower")

    def test_a_missing_protocol(self, tmp_path):
        """One sentence."""
        found = CliRunner().invoke(app, ["collect", str(tmp_path / "p.json"), str(tmp_path)])
        assert found.exit_code != 0
        assert "PROTOCOL.json must be a file that can be read" in str(found.exception)


_MEASURE = """
import resource, sys
from curador import local
import curador.local.files, pyarrow.parquet
protocol = local.{protocol}
small = local.{protocol}.collector().add_files(sys.argv[1] + "/small")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
collector = protocol.collector().add_files(sys.argv[1] + "/large")
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(collector.reports, (after - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the largest memory of a process is measured in other units elsewhere")
@pytest.mark.parametrize(("number", "most"), [(1_000_000, 60), pytest.param(10_000_000, 200, marks=pytest.mark.long)])
@pytest.mark.parametrize("protocol", ["Direct(100, epsilon=2)", "Hadamard(100, epsilon=2)"])
def test_many_reports_in_bounded_memory(protocol, number, most, tmp_path):
    """80 MB of reports are counted with less than 200 MB more than a few need, with pages of the file; a tenth with less."""
    made = eval(f"local.{protocol}", {"local": local})  # noqa: S307 -- a text of this test
    (tmp_path / "small").mkdir()
    (tmp_path / "large").mkdir()
    local.write_reports(made, reports_of(made, 1000), tmp_path / "small" / "a.arrow")
    reports = reports_of(made, number // 2)
    local.write_reports(made, reports, tmp_path / "large" / "a.arrow")
    with pa.OSFile(str(tmp_path / "large" / "b.arrow"), "wb") as sink:  # all of it in one batch
        table = pa.table({"report": reports})
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    assert sum(Path(path).stat().st_size for path in (tmp_path / "large").iterdir()) > 8 * number
    script = _MEASURE.format(protocol=protocol)
    found = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    counted, megabytes = map(int, found.stdout.split())
    assert counted == number
    assert megabytes < most

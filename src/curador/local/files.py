"""Protocols as text, and reports in files: what a collector's owner keeps, and `curador collect` reads.

A protocol as text is what a collector's owner keeps beside the reports.

Reports are in files of Arrow and Parquet, read a batch at a time, so that memory does not grow with their number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from curador.errors import InvalidParameter
from curador.local.direct import Direct
from curador.local.hadamard import Hadamard
from curador.local.hashing import Hashing
from curador.local.hitters import HeavyHitters
from curador.local.means import DuchiMean, HybridMean, LaplaceMean, PiecewiseMean
from curador.local.means.base import STEPS, Means
from curador.local.protocol import Frequencies, Reporting
from curador.local.rappor import Rappor
from curador.local.subset import Subset
from curador.local.unary import Unary

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterable, Iterator

    from curador.local.protocol import Reports


# ---- written ---------------------------------------------------------------------------------------------------------------


VERSION = 1

Held = Mapping[str, Any]
Spoken = TypeVar("Spoken", bound=Reporting)


class WrittenForm(NamedTuple):
    """How one protocol is written and read. Names are for ever, and so is what an absent field means."""

    of: type[Reporting]
    names: tuple[str, ...]
    write: Callable[[Any], dict[str, object]]
    read: Callable[[Held], Reporting]


def _form(
    of: type[Spoken],
    names: tuple[str, ...],
    write: Callable[[Spoken], dict[str, object]],
    read: Callable[[Held], Spoken],
) -> WrittenForm:
    return WrittenForm(of, names, write, read)


def _frequencies(of: type[Frequencies]) -> WrittenForm:
    return _form(of, ("domain", "epsilon"), _frequency, lambda held: of(held["domain"], epsilon=held["epsilon"]))


def _frequency(protocol: Frequencies) -> dict[str, object]:
    return {"domain": _domain(protocol), "epsilon": str(protocol.epsilon)}


def _domain(protocol: Frequencies) -> object:
    return protocol.size if protocol.domain.labels is None else list(protocol.domain.labels)


def _means(of: type[Means]) -> WrittenForm:
    return _form(
        of,
        ("lower", "upper", "epsilon", "steps"),
        lambda one: {
            "lower": str(one.lower),
            "upper": str(one.upper),
            "epsilon": str(one.epsilon),
            "steps": one.steps,
        },
        lambda held: of(lower=held["lower"], upper=held["upper"], epsilon=held["epsilon"], steps=held.get("steps", STEPS)),
    )


def _hitters(one: HeavyHitters) -> dict[str, object]:
    return {
        "epsilon": str(one.epsilon),
        **({"length": one.bits // 8} if one.text else {"bits": one.bits}),
        "start": one.start,
        "step": one.step,
        "hashes": one.hashes,
        "most": one.most,
        "false_values": str(one.false_values),
        "salt": one.salt,
    }


FORMS: dict[str, WrittenForm] = {
    "Direct": _frequencies(Direct),
    "Hadamard": _frequencies(Hadamard),
    "Hashing": _frequencies(Hashing),
    "Subset": _frequencies(Subset),
    "Unary": _form(
        Unary,
        ("domain", "epsilon", "kind"),
        lambda one: {**_frequency(one), "kind": one.kind},
        lambda held: Unary(held["domain"], epsilon=held["epsilon"], kind=held.get("kind", "optimal")),
    ),
    "Rappor": _form(
        Rappor,
        ("domain", "epsilon_forever", "epsilon_once", "values"),
        lambda one: {
            "domain": _domain(one),
            "epsilon_forever": str(one.epsilon_forever),
            "epsilon_once": str(one.epsilon),
            "values": one.values,
        },
        lambda held: Rappor(
            held["domain"],
            epsilon_forever=held["epsilon_forever"],
            epsilon_once=held["epsilon_once"],
            values=held.get("values", 1),
        ),
    ),
    "LaplaceMean": _means(LaplaceMean),
    "DuchiMean": _means(DuchiMean),
    "PiecewiseMean": _means(PiecewiseMean),
    "HybridMean": _means(HybridMean),
    "HeavyHitters": _form(
        HeavyHitters,
        ("epsilon", "bits", "length", "start", "step", "hashes", "most", "false_values", "salt"),
        _hitters,
        lambda held: HeavyHitters(
            epsilon=held["epsilon"],
            bits=held.get("bits"),
            length=held.get("length"),
            start=held.get("start", 16),
            step=held.get("step", 8),
            hashes=held.get("hashes", 1024),
            most=held.get("most", 128),
            false_values=held.get("false_values", "0.05"),
            salt=held.get("salt", ""),
        ),
    ),
}
"""By the name that is stored."""

_NAMES = {form.of: name for name, form in FORMS.items()}


def to_json(protocol: Reporting) -> str:
    """Return the protocol as text. Public: no person's value is in it."""
    name = _NAMES.get(type(protocol))
    if name is None:
        raise InvalidParameter(
            subject="protocol", rule=f"must be one of {', '.join(FORMS)}", got=f"a {type(protocol).__name__}"
        )
    body = FORMS[name].write(protocol)
    try:
        return json.dumps({"curador": "local protocol", "version": VERSION, "protocol": name, **body})
    except TypeError:
        raise InvalidParameter(
            subject="protocol", rule="must have a domain of texts, numbers and truth values", got="another"
        ) from None


def from_json(text: str) -> Any:
    """Return the protocol that a text describes. Anything unknown is refused."""
    try:
        body = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise InvalidParameter(
            subject="text", rule="must be what to_json wrote of a protocol", got="something else"
        ) from None
    known = isinstance(body, dict) and body.pop("curador", None) == "local protocol" and body.pop("version", None) == VERSION
    kind = body.pop("protocol", None) if known else None
    if not isinstance(kind, str) or kind not in FORMS:
        raise InvalidParameter(
            subject="text", rule=f"must be a protocol of version {VERSION} and a known name", got="another"
        )
    form = FORMS[kind]
    if not set(body) <= set(form.names):
        raise InvalidParameter(subject="text", rule=f"must hold the parameters of {kind}", got="others")
    try:
        return form.read(body)
    except (KeyError, TypeError):
        raise InvalidParameter(subject="text", rule=f"must hold the parameters of {kind}", got="others") from None


# ---- files -----------------------------------------------------------------------------------------------------------------


Schema: TypeAlias = Any
"""A pyarrow.Schema."""

Part: TypeAlias = Any
"""A pyarrow.RecordBatch."""

Parts: TypeAlias = "Callable[[list[str]], Iterable[Part]]"

BATCH = 1 << 18
"""The most reports that are handled together."""

_FILES = {".arrow", ".feather", ".ipc"}
_STREAMS = {".arrows"}
_PARQUET = {".parquet"}
SUFFIXES = _FILES | _STREAMS | _PARQUET
_KEY = "curador.local.protocol"
"""Where a file of ours says whose reports it holds. Files of others need not."""

_INTEGERS = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"}


def batches(protocol: Reporting, paths: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[Reports, int]]:
    """Yield arrays of reports as `protocol.accept` takes them, each with the number of rows in it that had an empty cell.

    A path is a file, or a folder all of whose Arrow and Parquet files are read in the order of their names. Every file is
    looked at before the first is read, so that a wrong one costs nothing.
    """
    files = _files(paths)
    for path in files:
        with _open_file(path) as (schema, _):
            _check(protocol, path, schema)
    for path in files:
        with _open_file(path) as (_, parts):
            for part in parts([name for name, _ in protocol.columns]):
                for start in range(0, len(part), BATCH):
                    yield _reports(protocol, part.slice(start, BATCH))


def write_reports(protocol: Reporting, reports: Any, path: str | os.PathLike[str]) -> int:
    """Write reports (an array, or a list of what clients sent) to a file that `batches` reads, and return how many.

    The ending says which kind: .arrow, .feather and .ipc a file of Arrow, .arrows a stream, .parquet Parquet.
    """
    import pyarrow as pa
    from pyarrow import parquet

    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InvalidParameter.must_be("path", f"a name that ends in {', '.join(sorted(SUFFIXES))}", str(path))
    good, bad = protocol.accept(reports)
    if bad:
        raise InvalidParameter(subject="reports", rule="must be well-formed", got=f"{bad:,} that are not")
    table = pa.table(_arrays(protocol, good), schema=_schema(protocol).with_metadata({_KEY: to_json(protocol)}))
    if target.suffix.lower() in _PARQUET:
        parquet.write_table(table, target, row_group_size=BATCH)
        return len(good)
    kind = pa.ipc.new_stream if target.suffix.lower() in _STREAMS else pa.ipc.new_file
    with pa.OSFile(str(target), "wb") as sink, kind(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=BATCH)
    return len(good)


# ---- files --------------------------------------------------------------------------------------------------------------


def _files(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    found: list[Path] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.suffix.lower() in SUFFIXES and one.is_file())
            if not inside:
                raise InvalidParameter(subject="folder", rule="must be one with Arrow or Parquet files", got=str(path))
            found += inside
        elif not path.is_file():
            raise InvalidParameter(subject="file", rule="must be a file or folder that exists", got=str(path))
        elif path.suffix.lower() not in SUFFIXES:
            raise InvalidParameter(
                subject="file", rule=f"must be one that ends in {', '.join(sorted(SUFFIXES))}", got=str(path)
            )
        else:
            found.append(path)
    seen = [one.resolve() for one in found]
    twice = next((one for place, one in enumerate(seen) if one in seen[:place]), None)
    if twice is not None:
        raise InvalidParameter(subject="files", rule="must be different ones, for reports count once", got=f"{twice} twice")
    return found


@contextmanager
def _open_file(path: Path) -> Generator[tuple[Schema, Parts]]:
    """Yield the schema, and a function from names of columns to an iterator of record batches."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        if path.suffix.lower() in _PARQUET:
            with parquet.ParquetFile(path, memory_map=True) as file:
                yield file.schema_arrow, partial(file.iter_batches, BATCH, None)
            return
        with pa.memory_map(str(path)) as source:
            if path.suffix.lower() in _STREAMS:
                with pa.ipc.open_stream(source) as stream:
                    yield stream.schema, partial(_select_columns, stream)
                return
            with pa.ipc.open_file(source) as file:
                yield file.schema, partial(_select_columns, map(file.get_batch, range(file.num_record_batches)))
    except (pa.ArrowException, OSError):  # damaged at the beginning or further on
        raise InvalidParameter(subject="file", rule=f"must be a {path.suffix} file that can be read", got=str(path)) from None


def _select_columns(parts: Iterable[Part], names: list[str]) -> Iterator[Part]:
    for part in parts:
        kept = part.select(names)
        kept.validate()  # a batch may claim more rows than its file holds: reading them would end the process
        yield kept


def _schema(protocol: Reporting) -> Schema:
    import pyarrow as pa

    return pa.schema(
        [(name, pa.int64() if kind == "int64" else pa.binary(_width(protocol))) for name, kind in protocol.columns]
    )


def _width(protocol: Any) -> int:
    return int(protocol.width)


def _check(protocol: Reporting, path: Path, schema: Schema) -> None:
    """Refuse a file without the protocol's columns, and one that says that its reports are of another protocol."""
    said = (schema.metadata or {}).get(_KEY.encode())
    if said is not None and said.decode(errors="replace") != to_json(protocol):
        raise InvalidParameter(
            subject=str(path), rule="must hold reports of this protocol", got=f"those of {said.decode(errors='replace')}"
        )
    for (name, kind), wanted in zip(protocol.columns, _schema(protocol), strict=True):
        places = schema.get_all_field_indices(name)
        if len(places) != 1:
            raise InvalidParameter(
                subject=str(path),
                rule=f"must have one column {name!r} of {wanted.type}",
                got=", ".join(schema.names) or "no column",
            )
        found = schema.field(places[0]).type
        fits = str(found) in _INTEGERS if kind == "int64" else found == wanted.type
        if not fits:
            raise InvalidParameter(subject=f"column {name!r} of {path}", rule=f"must be of {wanted.type}", got=str(found))


# ---- arrays -------------------------------------------------------------------------------------------------------------


def _reports(protocol: Reporting, part: Part) -> tuple[Reports, int]:
    """The rows without an empty cell as an array: the file's own memory where that is possible."""
    if any(column.null_count for column in part.columns):
        whole = part.drop_null()
        return _array(protocol, whole), len(part) - len(whole)
    return _array(protocol, part), 0


def _array(protocol: Reporting, part: Part) -> Reports:
    kinds = [kind for _, kind in protocol.columns]
    if kinds == ["bytes"]:
        column, width = part.column(0), _width(protocol)
        octets = np.frombuffer(column.buffers()[1] or b"", np.uint8)
        return octets[column.offset * width : (column.offset + len(column)) * width].reshape(len(column), width)
    arrays = [part.column(place).to_numpy() for place in range(part.num_columns)]
    return arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1)


def _arrays(protocol: Reporting, reports: Any) -> list[Any]:
    import pyarrow as pa

    if protocol.columns[0][1] == "bytes":
        rows = np.ascontiguousarray(reports)
        return [pa.FixedSizeBinaryArray.from_buffers(pa.binary(rows.shape[1]), len(rows), [None, pa.py_buffer(rows)])]
    columns = [reports] if reports.ndim == 1 else [reports[:, place] for place in range(reports.shape[1])]
    return [pa.array(np.ascontiguousarray(column)) for column in columns]

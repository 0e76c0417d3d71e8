"""Data frames as sources, and what kind an answer comes back as.

pandas, Polars and Arrow tables are known by their types, and imported by nobody here. A frame of another library is one where
Narwhals says so: with all its rows in memory, so that it can be read more than once and holds the same each time. What is
computed later (a LazyFrame, a relation of a connection) is none; its owner collects it first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_LIBRARIES = {
    ("pandas", "DataFrame"): "pandas",
    ("polars", "DataFrame"): "polars",
    ("pyarrow", "Table"): "pyarrow",
    ("pyarrow", "RecordBatch"): "pyarrow",
}
_NO_FRAMES = (str, bytes, os.PathLike, Mapping, list, tuple, set, int, float, type(None))


@dataclass(frozen=True, slots=True)
class FrameKind:
    """What kind of frame something is.

    library  whose it is, as Narwhals calls it
    wrapped  whether it is a frame of Narwhals itself around that
    """

    library: str = "pyarrow"
    wrapped: bool = False


ARROW = FrameKind()
"""What an answer comes back as where no frame came in."""


def is_frame(value: object) -> bool:
    """Whether the value is a whole table in memory; what can be read only once, or later, is not."""
    return _library_of(value) is not None or _as_narwhals(value) is not None


def kind_of_frame(frame: Any) -> FrameKind:
    """Return the kind of a frame."""
    library = _library_of(frame)
    if library is not None:
        return FrameKind(library)
    held = _as_narwhals(frame)
    return FrameKind(str(held.implementation.value), held is frame)


def common_kind(frames: Iterable[Any]) -> FrameKind:
    """Return the kind that all these frames are of; an Arrow table where there are none, or several kinds."""
    kinds = {kind_of_frame(frame) for frame in frames}
    return kinds.pop() if len(kinds) == 1 else ARROW


def plain_frame(frame: Any) -> Any:
    """Return a frame as one of pandas, Polars or Arrow: itself, what Narwhals wraps, or an Arrow table of its values.

    What is no frame is returned as it is.
    """
    held = None if _library_of(frame) is not None else _as_narwhals(frame)
    if held is None:
        return frame
    inside = held.to_native()
    return inside if _library_of(inside) is not None else held.to_arrow()


def shape_of_frame(frame: Any) -> tuple[int, int]:
    """Return how many rows and columns a frame has."""
    height, width = (frame if _library_of(frame) is not None else _as_narwhals(frame)).shape
    return int(height), int(width)


def of_kind(frame: Any, kind: FrameKind) -> Any:
    """Return a frame of Arrow, pandas or Polars as one of a kind: wrapped, or of the other library."""
    if not kind.wrapped and kind.library == _library_of(frame):
        return frame
    import narwhals as nw

    if kind.library != _library_of(frame):
        frame = nw.from_arrow(frame, backend=nw.Implementation.from_backend(kind.library)).to_native()  # type: ignore[arg-type]
    return nw.from_native(frame, eager_only=True) if kind.wrapped else frame


def _library_of(value: object) -> str | None:
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__)
    return next((_LIBRARIES[kind] for kind in kinds if kind in _LIBRARIES), None)


def _as_narwhals(value: Any) -> Any:
    """Return the value as a frame of Narwhals; None where it is none, or nobody can tell because Narwhals is not here."""
    kind = type(value)  # of the class: some compute their columns when they are asked
    if isinstance(value, _NO_FRAMES) or not (hasattr(kind, "columns") or hasattr(kind, "__narwhals_dataframe__")):
        return None
    try:
        import narwhals as nw
    except ImportError:
        return None
    found: Any = value if isinstance(value, nw.DataFrame) else nw.from_native(value, eager_only=True, pass_through=True)
    return found if isinstance(found, nw.DataFrame) else None

"""`curador plot`: figures of the catalogue, written to a file."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curador.cli.output import require_writable, unwritable
from curador.errors import InvalidParameter

if TYPE_CHECKING:
    from curador.plots.catalogue import CatalogueFigure

FORMATS = (".png", ".svg", ".pdf")
ALL = "all"
_DOTS = 200  # an inch, in PNG files: twice what a screen has
_NARROWEST, _WIDEST = 2.0, 40.0

Name = Annotated[str | None, typer.Argument(metavar="NAME", help='The figure, or "all" that need no OF; none: list them.')]
Subject = Annotated[
    str | None,
    typer.Argument(
        metavar="OF",
        help='What to draw: losses such as "100*gaussian(sigma=20)", or for budget a study file. No losses: an example.',
    ),
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="File (.png, .svg, .pdf), or the folder of all. NAME.png.")]
Width = Annotated[float | None, typer.Option(help="In inches; the height follows.")]
Analyst = Annotated[str | None, typer.Option("--as", help="Of a study: as this analyst sees it; default: the owner.")]


def plot(name: Name = None, of: Subject = None, out: Out = None, width: Width = None, analyst: Analyst = None) -> None:
    """List the figures, or write one of them, of your own losses or study where it takes them."""
    from curador.plots.catalogue import CATALOGUE, figure_named

    if name is None:
        _list(CATALOGUE.values())
        return
    _check(width)
    if name == ALL:
        _require_nothing(ALL, of, analyst)
        folder = Path() if out is None else out
        _make_folder(folder)
        for entry in (one for one in CATALOGUE.values() if one.alone):
            _write(entry, folder / f"{entry.name}.png", width, (), {})
        return
    entry = figure_named(name)
    path = Path(f"{name}.png") if out is None else out
    if path.suffix.lower() not in FORMATS:
        raise InvalidParameter.must_be("--out", f"a file that ends in {', '.join(FORMATS)}", str(path))
    require_writable("--out", path)
    given, options = _subject(entry, of, analyst)
    _write(entry, path, width, given, options)


def _list(entries: Any) -> None:
    shown = list(entries)
    wide = max(len(entry.name) for entry in shown)
    said = {"nothing": "", "losses": " (of losses)", "log": " (of a study file)", "values": " (in Python)"}
    for entry in shown:
        print(f"{entry.name:<{wide}}  {entry.description}{said[entry.takes]}")


def _check(width: float | None) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise InvalidParameter("figures need matplotlib.", hint="install curador[plots].")
    if width is not None and not (math.isfinite(width) and _NARROWEST <= width <= _WIDEST):
        raise InvalidParameter.must_be("--width", f"{_NARROWEST:g} to {_WIDEST:g} inches", width)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as problem:
        raise unwritable("--out", folder, problem) from None


def _require_nothing(name: str, of: str | None, analyst: str | None) -> None:
    if of is not None:
        raise InvalidParameter.must_be("OF", f"left out: {name} is drawn of nothing else", of)
    if analyst is not None:
        raise InvalidParameter.must_be("--as", "left out where no study is drawn", analyst)


def _subject(entry: CatalogueFigure, of: str | None, analyst: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the figure is of: arguments and options of the function that draws it."""
    if entry.takes == "values":
        raise InvalidParameter(f"{entry.name} is drawn in Python, of values that no command has.", hint=f"{entry.call}.")
    if of is None and entry.takes == "log":
        raise InvalidParameter(f"{entry.name} is drawn of a study.", hint=f"curador plot {entry.name} study.toml.")
    if of is None or entry.takes == "nothing":
        _require_nothing(entry.name, of, analyst)
        return (), {}
    if entry.takes == "losses":
        from curador.cli.expression import loss_of

        _require_nothing(entry.name, None, analyst)
        return ({of if len(of) <= 60 else of[:59] + "…": loss_of(of)},), {}
    return _log(Path(of), analyst)


def _log(path: Path, analyst: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    from curador.curator.accounts import budget_view, log_lines
    from curador.curator.curator import known_analyst
    from curador.curator.opening import existing_ledger
    from curador.study.file import read_study

    study = read_study(path)
    who = None if analyst is None else known_analyst(study, analyst).name
    with existing_ledger(study) as ledger:
        return (log_lines(ledger, who),), {"limit": budget_view(ledger, study, who).limit}


def _write(entry: CatalogueFigure, path: Path, width: float | None, given: tuple[Any, ...], options: dict[str, Any]) -> None:
    from curador.plots.style import style

    drawn = entry.draw(*given, **options)
    if width is not None:
        wide, high = drawn.get_size_inches()
        drawn.set_size_inches(width, width * high / wide)
    about = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[path.suffix.lower()]
    try:
        with style():
            drawn.savefig(path, dpi=_DOTS, metadata={"Title": entry.description, **about})
    except OSError as problem:
        raise unwritable("--out", path, problem) from None
    print(f"{path}: {entry.description}")

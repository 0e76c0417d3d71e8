"""Notebooks that are plain Python files: cells begin with `# %%`, text cells with `# %% [markdown]`.

While the site is built each is run in a process and a folder of its own, warnings being errors, and becomes a page with its
code, what it printed, and the figures that its cells end with. Such a cell begins with the comment `# Figure: …`: words
for those who cannot see it.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

TEXT = "# %% [markdown]"
CODE = "# %%"
FIGURE = "# Figure: "
PATIENCE = 600


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its source, without the line that begins it, and in which line that source begins."""

    text: bool
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class Output:
    """What a cell printed, and the file of the figure that it ended with."""

    printed: str
    figure: str | None = None


def cells(source: str) -> list[Cell]:
    """Return the cells of a notebook, empty ones left out."""
    found: list[Cell] = []
    lines = source.splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith(CODE)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        body = lines[start + 1 : end]
        text = lines[start].startswith(TEXT)
        words = [line.removeprefix("#").removeprefix(" ") for line in body] if text else body
        whole = "\n".join(words).strip("\n")
        if whole.strip():
            found.append(Cell(text, whole, start + 2 + next(place for place, line in enumerate(body) if line.strip())))
    return found


def run(path: Path, figures: Path) -> list[Output]:
    """Return the outputs of the notebook's code cells, run in a process and an empty folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-W", "error", __file__, str(path), str(figures)],
            cwd=folder,
            env={**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    if done.returncode != 0:
        message = f"{path.name} does not run:\n{textwrap.indent(done.stderr, '  ')}"
        raise RuntimeError(message)
    return [Output(**one) for one in json.loads(done.stdout)]


def run_here(path: Path, figures: Path) -> Iterator[Output]:
    """Run the code cells one after another in one namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for place, cell in enumerate(one for one in cells(path.read_text(encoding="utf-8")) if not one.text):
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            value = run_cell(cell, path, names)
        figure = None
        if hasattr(value, "savefig"):
            figure = f"{path.stem}-{place}.svg"
            value.savefig(figures / figure, metadata={"Date": None})
        elif value is not None:
            written.write(f"{value!r}\n")
        yield Output(written.getvalue(), figure)


def run_cell(cell: Cell, path: Path, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of the expression that it ends with, if it ends with one."""
    tree = ast.parse(cell.source)
    ast.increment_lineno(tree, cell.line - 1)
    last = tree.body[-1] if tree.body else None
    shown = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
    if shown is not None:
        tree.body.pop()
    exec(compile(tree, path, "exec"), names)  # noqa: S102 -- a page of this repository
    return eval(compile(shown, path, "eval"), names) if shown is not None else None  # noqa: S307 -- idem


def page(source: str, outputs: list[Output], *, name: str, figures: str) -> str:
    """Return the notebook as Markdown; `figures` leads from the page to their folder."""
    given = iter(outputs)
    parts: list[str] = []
    for cell in cells(source):
        if cell.text:
            parts.append(cell.source)
            continue
        output = next(given)
        code, words = without_words(cell.source)
        parts.append(f"```python\n{code}\n```")
        if output.printed.strip():
            parts.append(f"````{{code-block}} text\n:class: output\n\n{output.printed.rstrip()}\n````")
        if output.figure is not None:
            if not words:
                message = f"{name}: the cell that draws {output.figure} must begin with `{FIGURE}…`, words for its figure"
                raise ValueError(message)
            picture = f'<img class="figure" src="{figures}/{output.figure}" alt="{html.escape(words)}">'
            parts.append(f"```{{raw}} html\n{picture}\n```")
    parts.append(f"*This page is `docs/notebooks/{name}`, run while the site was built. Noise is new every time.*")
    return "\n\n".join(parts) + "\n"


def without_words(source: str) -> tuple[str, str]:
    """Return a cell without the comment that describes its figure, and that description."""
    lines = source.splitlines()
    if not lines[0].startswith(FIGURE):
        return source, ""
    count = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    words = " ".join(line.removeprefix("#").strip() for line in lines[:count])
    return "\n".join(lines[count:]), words.removeprefix("Figure: ")


def connect(app: Sphinx) -> None:
    """Let Sphinx read `.py` files below docs/notebooks as notebooks."""
    from myst_parser.parsers.sphinx_ import MystParser

    class NotebookParser(MystParser):
        """Runs a notebook, and reads the Markdown that it becomes."""

        supported = ("notebook",)

        def parse(self, inputstring: str, document: Any) -> None:
            environment = document.settings.env
            name = environment.docname
            path = Path(environment.doc2path(name))
            figures = Path(app.outdir) / "_notebooks"
            figures.mkdir(parents=True, exist_ok=True)
            relative = "../" * name.count("/") + "_notebooks"
            super().parse(page(inputstring, run(path, figures), name=path.name, figures=relative), document)

    app.add_source_suffix(".py", "notebook")
    app.add_source_parser(NotebookParser)


if __name__ == "__main__":
    made = run_here(Path(sys.argv[1]), Path(sys.argv[2]))
    print(json.dumps([{"printed": one.printed, "figure": one.figure} for one in made]))

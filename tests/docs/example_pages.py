"""The examples of a page as one doctest.

A page runs in a folder of its own, which holds the files of `example_data`. What may be written:

```python    >>> lines, as in Python; an output ends at the next >>> or at the fence, blank lines inside it stay
```console   $ curador …, with what it prints below: results and messages together; $ python file.py, too
```toml      (or python) whose first line is a comment with nothing but a file's name: that file is written

An output that noise, time or a random id changes is compared without its digits: where the line says `# noisy`, and in every
console block. Spaces at the end of a line, and how wide a table is, are never compared where digits are not.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import runpy
import shlex
import sys
from pathlib import Path
from unittest import mock

NOISY = doctest.register_optionflag("NOISY")
_MARK = "# noisy"
_BLOCK = re.compile(r"```(python|console|toml)\n(.*?)```", re.DOTALL)
_FILE = re.compile(r"# ([\w-]+\.(?:py|toml))\n")
_NUMBER = re.compile(r"[-−]?\b\d[\d,]*(\.\d+)?(e-?\d+)?\b|\b[0-9a-f]{16,}\b")
_NOTHING = "\0"


class Checker(doctest.OutputChecker):
    """Compares without spaces at the ends of lines, and noisy outputs without digits and widths."""

    def check_output(self, want, got, optionflags):
        """Whether an output is the one that the page shows."""
        want, got = _trimmed(want), _trimmed(got)
        if optionflags & NOISY:
            want, got = masked(want), masked(got)
        return super().check_output(want, got, optionflags)


def doctest_of(text, name, path):
    """Return the page's examples as one doctest."""
    blocks = (_source(kind, block) for kind, block in _BLOCK.findall(text))
    source = "\n".join(block for block in blocks if ">>> " in block)
    test = doctest.DocTestParser().get_doctest(source, {"shell": shell}, name, path, 0)
    for example in test.examples:
        if _MARK in example.source:
            example.options[NOISY] = True
    return test


def masked(text):
    """Return a text with every number as #, whatever its width."""
    text = re.sub(r"─+", "─", _NUMBER.sub("#", text))
    return "\n".join(" ".join(line.split()) for line in text.splitlines()) + "\n"


def shell(command):
    """Run a command of ours in this process and print what it writes; the folder's own name is left out."""
    from curador.cli import main

    words = shlex.split(command)
    if words[0] == "python":
        runpy.run_path(words[1], run_name="__main__")
        return
    assert words[0] == "curador", f"a console block runs curador or python, not {words[0]}"
    written = io.StringIO()
    with (
        mock.patch.object(sys, "argv", words),
        mock.patch("curador.engines.duckdb.prepare.PATIENCE", 600),  # a slow machine tells no more than a fast one
        contextlib.redirect_stdout(written),
        contextlib.redirect_stderr(written),
        contextlib.suppress(SystemExit),
    ):
        main()
    print(written.getvalue().replace(f"{Path.cwd()}/", ""), end="")


def _source(kind, block):
    """A block as doctest's own text; a block that is a file writes it."""
    if (named := _FILE.match(block)) is not None:
        return f">>> _ = __import__('pathlib').Path({named[1]!r}).write_text({block!r}, encoding='utf-8')\n"
    return {"console": _console, "python": _python, "toml": lambda _: ""}[kind](block)


def _console(block):
    """A command becomes a call; what follows it is its output."""
    lines = [
        f">>> shell({line.removeprefix('$ ')!r})  {_MARK}" if line.startswith("$ ") else line for line in block.splitlines()
    ]
    return _python("\n".join(lines) + "\n")


def _python(block):
    """Mark blank lines inside outputs; doctest would end the output there."""
    lines = block.rstrip("\n").split("\n")
    inside = False
    for place, line in enumerate(lines):
        if line.startswith((">>> ", "... ")) or line == "...":
            inside = False
        elif line:
            inside = True
        elif inside and not _next(lines[place:]).startswith((">>> ", _NOTHING)):
            lines[place] = "<BLANKLINE>"
    return "\n".join(lines) + "\n"


def _next(lines):
    return next((line for line in lines if line), _NOTHING)


def _trimmed(text):
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())

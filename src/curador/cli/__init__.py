"""The command line: studies (`curador init`, `check`, `preview`, `ask`, …) and mathematics (`account`, `calibrate`, `audit`).

Results go to standard output, everything else to standard error. Exit codes: 0 done, 2 refused, 3 not allowed, 4 budget
exceeded, 5 failed (an id only), 130 interrupted. Where the reader of standard output has gone away, it ends quietly with 1.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    """Run the command line, telling refusals in one sentence and without a trace."""
    from curador.cli.app import app
    from curador.errors import BudgetExceeded, Failed, NotAllowed, Refused

    try:
        _run_and_flush(app)
    except Refused as refusal:
        print(refusal, file=sys.stderr)
        code = 3 if isinstance(refusal, NotAllowed) else 4 if isinstance(refusal, BudgetExceeded) else 2
        raise SystemExit(code) from None
    except Failed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        raise SystemExit(5) from None
    except KeyboardInterrupt as stop:
        print(str(stop) or "interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still to be flushed goes nowhere
        raise SystemExit(1) from None
    except OSError as problem:
        print(f"{problem.filename or 'a file'}: {problem.strerror or 'cannot be read or written'}.", file=sys.stderr)
        raise SystemExit(2) from None


def _run_and_flush(app: Callable[[], None]) -> None:
    """Run, and write what is still held back while an error of it can be told."""
    try:
        app()
    finally:
        sys.stdout.flush()

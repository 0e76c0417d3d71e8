"""The command line: studies (`curador init`, `check`, `preview`, `ask`, …) and mathematics (`account`, `calibrate`, `audit`).

Results go to standard output, everything else to standard error. Exit codes: 0 done, 2 refused, 3 not allowed, 4 budget
exceeded, 5 failed (an id only), 130 interrupted.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, telling refusals in one sentence and without a trace."""
    from curador.cli.app import app
    from curador.errors import BudgetExceeded, Failed, NotAllowed, Refused

    try:
        app()
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

"""The command line: `curador account`, `curador calibrate`, `curador demo`.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 2 refused, 5 failed, 130 interrupted.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, telling refusals in one sentence and without a trace."""
    from curador.cli.app import app
    from curador.errors import Failed, Refused

    try:
        app()
    except Refused as refusal:
        print(refusal, file=sys.stderr)
        raise SystemExit(2) from None
    except Failed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        raise SystemExit(5) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None

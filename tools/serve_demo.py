"""Serve the demonstration's study, with a token for each kind of user: `make serve`. Its rows are made up; nobody is in them.

The folder is kept, so that what was spent stays spent; a second run makes new tokens and serves the same ledger.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import curador as cu
from curador.cli.demo import AGAIN_MADE_UP
from curador.cli.demo_data import write_demo
from curador.server.state import ServiceState, state_of
from curador.server.tokens import new_token

FOLDER = Path("build/served")
QUESTION = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
USERS = (
    ("analyst", "analyst", {"name": "ana"}),
    ("owner", "owner", {}),
    ("auditor", "auditor", {}),
    ("agent", "analyst", {"name": "ana", "agent": True, "most_per_question": "5%", "most_per_day": "20%"}),
)
"""What a user is called here, the role, and what the token says."""


def prepare(folder: Path) -> tuple[Path, dict[str, str]]:
    """Return the study file, made where it is not there yet, and a token for each user."""
    file = folder / "study.toml"
    reason = None if file.is_file() else AGAIN_MADE_UP
    study = file if file.is_file() else write_demo(folder)
    with cu.open(study, new_ledger=reason, progress=lambda line: print(line, file=sys.stderr)) as curator:
        state = ServiceState(state_of(curator.study.ledger_path), curator.ledger.id)
        try:
            made = {
                called: new_token(state, curator.study, role, expires="1d", note="make serve", **said)[0]
                for called, role, said in USERS
            }
        finally:
            state.close()
    return study, made


def main() -> None:
    """Prepare, print the tokens and how to use them, and become the service."""
    port = sys.argv[1] if len(sys.argv) > 1 else "8421"
    url = f"http://127.0.0.1:{port}"
    study, tokens = prepare(FOLDER)
    print("\nTokens for a day; each is shown this once:")
    for called, token in tokens.items():
        print(f"  {called:8} {token}")
    print(f"\nconsole   {url}/   (paste a token)")
    print(f"shell     CURADOR_TOKEN={tokens['analyst']} \\")
    print(f"          curador ask '{QUESTION}' --spend 2% --server {url}")
    print(f'Python    cu.connect("{url}", "{tokens["analyst"]}").budget')
    print(f"agent     CURADOR_TOKEN={tokens['agent']} curador agent --server {url}\n", flush=True)
    curador = str(Path(sys.executable).with_name("curador"))
    os.execv(curador, [curador, "serve", str(study), "--port", port])  # noqa: S606 -- our own command


if __name__ == "__main__":
    main()

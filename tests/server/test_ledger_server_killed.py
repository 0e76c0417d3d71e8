"""A service whose ledger is kept on a PostgreSQL server, which is killed in the middle of a load."""

import sys
import time
from pathlib import Path

import pytest
from served import make_study, start
from test_real_sockets import Load, require_nothing_lost

sys.path.insert(0, str(Path(__file__).parents[1] / "ledger"))

from real_postgres import MISSING, find_installation, new_place, private_server

FILE = 'ledger = "shop.ledger"'


def study_on(place, folder):
    """Write a study whose ledger is on a server."""
    study = make_study(folder, deadline=30)
    text = study.read_text(encoding="utf-8")
    assert FILE in text
    study.write_text(text.replace(FILE, f'ledger = "{place.url}"'), encoding="utf-8")
    return study


@pytest.mark.slow
def test_a_kill_of_the_ledgers_server_loses_nothing_and_pays_nothing_twice(tmp_path):
    """Stopped at once, as a power cut would, and away for a while: then each key has one outcome and one charge."""
    installation = find_installation()
    if installation is None:
        pytest.skip(MISSING)
    with private_server(installation) as server, new_place(server) as place:
        one = start(study_on(place, tmp_path / "study"))
        try:
            owner = one.token("", "--owner")
            tokens_ = [one.token(name) for name in ("ana", "ana", "bob", "bob")]
            load = Load(one, tokens_)
            load.grow(12)
            server.stop("immediate")
            time.sleep(1)  # questions come meanwhile
            server.start()
            load.grow(12)
            outcomes = load.end()
            assert sum(outcome[0] == 200 for outcome in outcomes.values()) > 5
            require_nothing_lost(one, owner, outcomes, tokens_, load)
        finally:
            one.stop()

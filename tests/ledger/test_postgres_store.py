"""The store on PostgreSQL keeps the rules that ship for every store."""

import pytest

from curador.ledger.postgres import PostgresStore
from curador.testing import NonconformingError, check_ledger_store


def test_the_postgres_store_keeps_the_rules(place):
    """Every one of them, on a real server, as a role that may only add."""
    check_ledger_store(lambda: PostgresStore(place.url))

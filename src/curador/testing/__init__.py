"""What ships for testing a mechanism, an engine or a ledger's store of one's own: suites of rules; redraws of a plan."""

from curador.testing.engine import check_engine
from curador.testing.engine_beside import check_engine_at
from curador.testing.findings import NonconformingError
from curador.testing.ledger_store import check_ledger_store
from curador.testing.mechanism import check_mechanism

__all__ = ["NonconformingError", "check_engine", "check_engine_at", "check_ledger_store", "check_mechanism"]

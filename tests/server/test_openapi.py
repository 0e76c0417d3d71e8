"""The OpenAPI document is exact: requests made from it, and what stands in it for every route."""

import pytest
from fuzz_http import fuzz
from served import running

from curador.server.access import ACCESS, ANYBODY
from curador.server.models import AskBody
from curador.server.problems import TITLES


@pytest.mark.long  # strangers are told slowly, and each refusal is followed by a look at the ledger
def test_requests_made_from_the_document_meet_no_5xx(tmp_path):
    """A few hundred; `make fuzz-http` makes 20,000."""
    with running(tmp_path, "--rate", "100000", deadline=30) as service:
        statuses, kept = fuzz(service, 600)
    assert sum(statuses.values()) >= 600
    assert kept > 200
    assert {200, 400, 401, 403} <= statuses.keys()


def test_the_document_has_every_route_and_every_problem(served):
    """With the one shape of problems, and who must log in."""
    document = served.send(None, "GET", "/openapi.json").json()
    found = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert found == {(one.method, one.whole_path) for one in ACCESS}
    for one in ACCESS:
        operation = document["paths"][one.whole_path][one.method.lower()]
        assert operation["description"]
        assert ("security" in operation) == (ANYBODY not in one.roles)
        assert "422" not in operation["responses"]
        for status in set(TITLES) - {405}:
            schema = operation["responses"][str(status)]["content"]["application/problem+json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Problem"}


def test_numbers_are_read_as_they_are_written():
    """Never as doubles."""
    from decimal import Decimal

    body = AskBody.model_validate({"question": "x", "options": {"rho": Decimal("0.10000000000000000001")}})
    assert body.options.read().rho == "0.10000000000000000001"

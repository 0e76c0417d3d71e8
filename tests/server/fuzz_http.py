"""Requests made from the OpenAPI document: no 5xx, each status and body as described, and no refusal that spends.

`python tests/server/fuzz_http.py 20000` makes so many, for owner, analyst, auditor and nobody by turns.
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from served import running

sys.path.insert(0, str(Path(__file__).parents[1]))

import registers


def fuzz(service, requests, seed=None):
    """Make so many requests, and return how often each status came; AssertionError at the first that is wrong."""
    tokens = {
        "owner": service.token("", "--owner"),
        "ana": service.token("ana", "--most-per-day", "60%"),
        "auditor": service.token("", "--auditor"),
        None: None,
    }
    schema = schemathesis.openapi.from_url(f"{service.url}/api/v1/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    operations = [one for one in operations if (one.method, one.path) != ("delete", "/api/v1/session")]
    each = max(requests // (len(operations) * len(tokens) * 2), 1)
    statuses = Counter()
    with service.client(tokens["auditor"]) as auditor:

        def head():
            return auditor.get("/verification").json()["entries"]

        for who, token in tokens.items():
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            for operation in operations:
                if token is None and operation.path not in {"/api/v1/health", "/api/v1/openapi.json"}:
                    number = 1  # each waits
                else:
                    number = each
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    try:
                        strategy = operation.as_strategy(generation_mode=mode)
                    except TypeError:
                        continue
                    _try_all(service, operation, strategy, headers, number, statuses, head, who, seed)
    return statuses


def _try_all(service, operation, strategy, headers, number, statuses, head, who, seed):
    documented = {int(status) for status in operation.definition.raw["responses"] if status.isdigit()}

    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        derandomize=seed is None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def one(case):
        before = head() if number < 10 else None
        response = case.call(base_url=service.url, headers=headers, timeout=60)
        statuses[response.status_code] += 1
        name = f"{operation.method} {operation.path} as {who}: {response.status_code} {response.text[:300]}"
        assert response.status_code < 500, name
        assert response.status_code in documented | {405, 404}, name
        if before is not None and response.status_code >= 400:
            assert head() == before, name
        if "json" in str(response.headers.get("content-type")):
            case.validate_response(
                response, checks=[schemathesis.checks.CHECKS.get_by_names(["response_schema_conformance"])[0]]
            )

    try:
        one()
    except schemathesis.errors.SchemathesisError as error:
        if "Unsatisfiable" not in type(error).__name__:
            raise
    except Exception as error:
        if type(error).__name__ == "Unsatisfiable":
            return  # nothing can be wrong with a request without anything in it
        raise


def main():
    """Make as many as the command line says."""
    registers.another_register()
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with (
        tempfile.TemporaryDirectory() as folder,
        running(folder, "--rate", "100000", "--answer-when-ready", deadline=30) as service,
    ):
        begun = time.monotonic()
        statuses = fuzz(service, number, seed=1)
        print(f"{sum(statuses.values()):,} requests in {time.monotonic() - begun:.0f} s: {dict(sorted(statuses.items()))}")


if __name__ == "__main__":
    main()

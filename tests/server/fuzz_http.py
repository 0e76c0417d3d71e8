"""Requests made from the OpenAPI document: no 5xx, each status and body as described, and no refusal that spends.

`python tests/server/fuzz_http.py 20000` makes so many, for owner, analyst, auditor and nobody by turns. Some of the bodies
are given a question that can be answered, and some paths the id of an answer: random texts alone never come so far.
"""

import contextlib
import json
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from served import CANARY, QUESTION, running

sys.path.insert(0, str(Path(__file__).parents[1]))

import registers

QUESTIONS = (
    QUESTION,
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT AVG(spent) AS mean FROM visits GROUP BY city",
    "SELECT SUM(spent) AS paid FROM visits WHERE city = 'c1'",
    "SELECT COUNT(*) FROM secrets",
    "SELECT * FROM visits",
    "SELECT remark FROM visits",
)
"""Answered, refused to analysts, refused to all."""
WAITS = {("post", "/api/v1/session"), ("post", "/api/v1/survey")}
"""A wrong login is told slowly, and a survey reads everything: once each, and whatever strangers ask."""
ANYBODY_S = {"/api/v1/health", "/api/v1/openapi.json"}


class Watch:
    """What a request must not do: change the ledger where it is refused or only looks, or tell a row or a path."""

    def __init__(self, service, token):
        self.service, self.token, self.statuses, self.kept = service, token, Counter(), 0
        self.ledger = sqlite3.connect(f"file:{service.study.with_name('shop.ledger')}?mode=ro", uri=True)

    def entries(self):
        """How many entries the ledger has; lines of answers given again wait for somebody's look, and cost nothing."""
        return self.ledger.execute("SELECT COUNT(*) FROM entry WHERE kind <> 'served'").fetchone()[0]

    def call(self, case, headers):
        """Make a request, and look at what came of it; the answer, and its name for whoever is told of a fault."""
        before = self.entries()
        response = case.call(base_url=self.service.url, headers=headers, timeout=60)
        self.statuses[response.status_code] += 1
        name = f"{case.method} {case.path}: {response.status_code} {response.text[:300]}"
        if response.status_code == 202:
            self.wait_for(response.json()["id"], headers)
        elif response.status_code >= 400 or case.method == "GET":
            assert self.entries() == before, f"the ledger changed: {name}"
            self.kept += 1
        told = response.content + json.dumps(dict(response.headers)).encode()
        assert CANARY.encode() not in told, f"a row or a path was told: {name}"
        assert str(self.service.study.parent).encode() not in told, f"a path was told: {name}"
        return response, name

    def wait_for(self, job, headers):
        """Wait until a question is over, so that nothing is charged while others are looked at."""
        with self.service.client(self.token) as client:
            while client.get(f"/answers/{job}", headers=headers).status_code == 202:
                time.sleep(0.02)


def fuzz(service, requests, seed=1):
    """Make at least so many requests; return how often each status came, and how often the ledger was looked at."""
    tokens = {
        "owner": service.token("", "--owner"),
        "ana": service.token("ana", "--most-per-day", "60%"),
        "auditor": service.token("", "--auditor"),
        None: None,
    }
    schema = schemathesis.openapi.from_url(f"{service.url}/api/v1/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    operations = [one for one in operations if (one.method, one.path) != ("delete", "/api/v1/session")]
    watch, cells = Watch(service, tokens["ana"]), len(operations) * (len(tokens) - 1) * 2
    with service.client(tokens["ana"]) as ana:
        known = ana.post("/answers", json={"question": QUESTION, "options": {"spend": "1%"}}).json()["id"]
    while (made := sum(watch.statuses.values())) < requests:
        each = (requests - made) // cells + 1
        for token in tokens.values():
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            for operation in operations:
                waits = (operation.method, operation.path) in WAITS or (token is None and operation.path not in ANYBODY_S)
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    with contextlib.suppress(TypeError):  # nothing can be wrong with such a request
                        strategy = operation.as_strategy(generation_mode=mode)
                        if not waits or not made:
                            _try_all(watch, operation, strategy, headers, 1 if waits else each, known, seed)
        seed += 1
    return watch.statuses, watch.kept


def _try_all(watch, operation, strategy, headers, number, known, seed):
    documented = {int(status) for status in operation.definition.raw["responses"] if status.isdigit()} | {405, 404}
    chosen = st.integers(0, 4 * len(QUESTIONS))

    @hypothesis.seed(seed)
    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy, place=chosen)
    def one(case, place):
        if isinstance(case.body, dict) and "question" in case.body and place < 2 * len(QUESTIONS):
            case.body["question"] = QUESTIONS[place % len(QUESTIONS)]
            if place < len(QUESTIONS):
                case.body["options"] = {"spend": "0.02%"}
        if "/answers/{id}" in operation.path and place < 2 * len(QUESTIONS):
            case.path_parameters["id"] = known
        response, name = watch.call(case, headers)
        assert response.status_code < 500, name
        assert response.status_code in documented, name
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
        running(folder, "--rate", "100000", deadline=30) as service,
    ):
        begun = time.monotonic()
        statuses, kept = fuzz(service, number)
        log = service.log.read_text(encoding="utf-8")
        assert CANARY not in log.replace(service.study.parent.name, ""), "a row or a path was logged"
        seconds = time.monotonic() - begun
    print(f"{sum(statuses.values()):,} requests in {seconds:.0f} s: {dict(sorted(statuses.items()))}")
    print(f"the ledger was as before after each of {kept:,} refusals and looks; no row, no path in any answer or log")


if __name__ == "__main__":
    main()

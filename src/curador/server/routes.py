"""The routes. Each is a function of a request that the gate let in; what they may tell is in `access.py`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from curador.curator.options import QuestionOptions
from curador.errors import CuradorError, InvalidParameter
from curador.server import jobs, models, reports, sessions, streams
from curador.server.access import PREFIX
from curador.server.desk import WATCH
from curador.server.gate import GuardedRoute, problem_response
from curador.server.jobs import Outcome
from curador.server.service import to_json

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from curador.server.desk import Desk
    from curador.server.gate import Gate
    from curador.server.service import Service
    from curador.server.tokens import Caller

router: Final = APIRouter(prefix=PREFIX, route_class=GuardedRoute)
_PROBLEM: Final[dict[str, Any]] = {"model": models.Problem, "content": {"application/problem+json": {}}}
_NUMBERS: Final = (400, 401, 403, 404, 409, 413, 415, 421, 429, 431, 500, 503)
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    number: {**_PROBLEM, "description": "Refused, or failed; see `error` and `sentence`."} for number in _NUMBERS
}
Id = Annotated[str, "of an answer, as it was given"]


def _service(request: Request) -> Service:
    return request.app.state.service


def _desk(request: Request) -> Desk:
    return request.app.state.desk


def _caller(request: Request) -> Caller:
    return request.state.caller


def _json(body: object, status: int = 200) -> Response:
    return Response(to_json(body), status, media_type="application/json")


# ---- who asks ------------------------------------------------------------------------------------------------------------


@router.get("/health", response_model=models.Health, responses=PROBLEMS)
async def health() -> Response:
    """Say that the service answers."""
    return _json({"status": "ok"})


@router.get("/openapi.json", responses={**PROBLEMS, 200: {"content": {"application/json": {"schema": {"type": "object"}}}}})
async def openapi(request: Request) -> Response:
    """Return this description."""
    return _json(request.app.openapi())


def _me(service: Service, caller: Caller) -> dict[str, Any]:
    return {
        "role": caller.role,
        "name": caller.name,
        "token": caller.token_id,
        "expires": caller.expires,
        "study": {"name": service.study.name, "unit": service.study.unit_name},
        "limits": service.limits_of(caller),
        "tick": service.tick,
        "deadline": float(service.study.engine.deadline),
    }


@router.get("/me", response_model=models.Me, responses=PROBLEMS)
async def me(request: Request) -> Response:
    """Say who asks, with which limits."""
    return _json(await _desk(request).look(partial(_me, _service(request), _caller(request))))


@router.post("/session", response_model=models.SessionSaid, responses=PROBLEMS)
async def begin_session(request: Request, body: models.SessionBody) -> Response:
    """Open a session of the console with a token."""
    service, gate = _service(request), request.app.state.gate
    caller = await gate.login(body.token, request)
    gate.count(caller)
    text = await _desk(request).look(partial(sessions.open_session, service.state, caller))
    said = await _desk(request).look(partial(_me, service, caller))
    response = _json({**said, "csrf": sessions.csrf_of(text)})
    _set_cookie(response, gate, text, max(caller.expires - int(time.time()), 0))
    return response


@router.get("/session", response_model=models.SessionSaid, responses=PROBLEMS)
async def session(request: Request) -> Response:
    """Say whose session it is."""
    text = request.cookies.get(request.app.state.gate.cookie)
    if text is None:
        raise InvalidParameter("a session must be opened first.", hint="POST /session with a token.")
    said = await _desk(request).look(partial(_me, _service(request), _caller(request)))
    return _json({**said, "csrf": sessions.csrf_of(text)})


@router.delete("/session", status_code=204, responses=PROBLEMS)
async def end_session(request: Request) -> Response:
    """End the session."""
    gate = request.app.state.gate
    text = request.cookies.get(gate.cookie)
    if text is not None:
        await _desk(request).look(partial(sessions.close_session, _service(request).state, text))
    response = Response(status_code=204)
    _set_cookie(response, gate, "", 0)
    return response


def _set_cookie(response: Response, gate: Gate, text: str, seconds: int) -> None:
    lasts = min(seconds, sessions.LASTS)
    response.set_cookie(gate.cookie, text, max_age=lasts, path="/", secure=gate.secure, httponly=True, samesite="strict")


# ---- what costs nothing --------------------------------------------------------------------------------------------------


@router.get("/tables", response_model=models.TablesSaid, responses=PROBLEMS)
async def tables(request: Request) -> Response:
    """Return tables and columns, as they are publicly described."""
    return _json(await _desk(request).look(partial(_service(request).describe, _caller(request))))


@router.post("/previews", response_model=models.PreviewSaid | models.PreviewsSaid, responses=PROBLEMS)
async def preview(request: Request, body: models.PreviewBody) -> Response:
    """Say what a question would cost and how good its answer would be. Nothing is spent, no row is read."""
    questions = _one_of(body)
    work = partial(_previewed, _service(request), _caller(request), questions, body.options.read())
    return _json(await _desk(request).preview(work))


def _one_of(body: models.PreviewBody) -> str | list[str]:
    questions = body.question if body.question is not None else body.questions
    if questions is None or (body.question is not None and body.questions is not None):
        raise InvalidParameter("a preview must be of either `question` or `questions`.")
    return questions


def _previewed(service: Service, caller: Caller, question: str | list[str], options: QuestionOptions) -> dict[str, Any]:
    if isinstance(question, str):
        return service.preview_body(caller, question, options)
    return service.previews_body(caller, question, options)


@router.get("/budget", response_model=models.BudgetSaid, response_model_exclude_none=True, responses=PROBLEMS)
async def budget(request: Request) -> Response:
    """Return what may be spent, what was, and what is left: of the own share, or of all."""
    return _json(await _desk(request).look(partial(_service(request).budget, _caller(request))))


@router.get("/history", response_model=models.HistorySaid, responses=PROBLEMS)
async def history(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> Response:
    """Return lines of the ledger, the newest first: the own ones, or all."""
    work = partial(_service(request).history, _caller(request), limit=limit, before=before)
    return _json(await _desk(request).look(work))


# ---- answers -------------------------------------------------------------------------------------------------------------

_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    **PROBLEMS,
    202: {"model": models.JobSaid, "description": "Handed over, and not answered yet."},
}
_FILES: Final[dict[int | str, dict[str, Any]]] = {
    **_ANSWERS,
    200: {
        "model": models.AnswerSaid,
        "content": {streams.CSV: {"schema": {"type": "string"}}, streams.ARROW: {"schema": {"type": "string"}}},
    },
}


@router.post("/answers", response_model=models.AnswerSaid, responses=_ANSWERS)
async def ask(
    request: Request,
    body: models.AskBody,
    key: Annotated[
        str | None,
        Header(alias="Idempotency-Key", pattern=r"^[\x21-\x7e]{1,200}$", description="The same key is charged once."),
    ] = None,
) -> Response:
    """Answer a question and charge it; the same question again is free. Where it takes longer than `wait`, 202 is said."""
    desk, service, caller = _desk(request), _service(request), _caller(request)
    work = partial(service.hand_over, caller, body.question, body.options.read(), key=key, fresh=body.fresh)
    job = await desk.look(work)
    if job.mine:
        desk.begin(job)
    await desk.wait(caller, job.id, body.wait)
    outcome = await desk.look(partial(service.outcome, caller, job.id))
    return _outcome_response(service, outcome, owner=caller.role == "owner")


@router.get("/answers/{id}", response_model=models.AnswerSaid, responses=_FILES)
async def answer(
    request: Request,
    id: Id,  # noqa: A002 -- its name
    raw: Annotated[  # noqa: FBT002 -- of a query
        bool, Query(description="CSV without the apostrophes that keep spreadsheets from computing texts.")
    ] = False,
    download: Annotated[bool, Query(description="As a file.")] = False,  # noqa: FBT002
    confidence: Annotated[
        str | None, Query(max_length=60, description="The same numbers with intervals of this confidence, for nothing.")
    ] = None,
) -> Response:
    """Return an own answer, or how far it is: JSON, or CSV or an Arrow stream where Accept says so."""
    service = _service(request)
    outcome = await _desk(request).look(partial(service.outcome, _caller(request), id))
    if confidence is not None and outcome.state == "done":
        work = partial(service.with_confidence, _caller(request), id, confidence)
        return _json(answer_body(await _desk(request).preview(work)))
    wanted = request.headers.get("accept", "")
    if outcome.state != "done" or not any(kind in wanted for kind in (streams.CSV, streams.ARROW)):
        response = _outcome_response(service, outcome, owner=_caller(request).role == "owner")
        ending = "json"
    elif streams.ARROW in wanted:
        response, ending = Response(outcome.arrow, media_type=streams.ARROW), "arrows"
    else:
        content = await _desk(request).look(lambda: streams.csv_bytes(outcome.table, raw=raw))
        response, ending = Response(content, media_type=f"{streams.CSV}; charset=utf-8; header=present"), "csv"
    if download and outcome.state == "done":
        response.headers["content-disposition"] = f'attachment; filename="{streams.file_name(outcome, ending)}"'
    return response


def _outcome_response(service: Service, outcome: Outcome, *, owner: bool) -> Response:
    del owner
    if outcome.problem is not None:
        return problem_response(outcome.problem)
    if outcome.body is None:
        return _json(_job_body(service, outcome), 202)
    return _json(answer_body(outcome))


def answer_body(outcome: Outcome) -> dict[str, Any]:
    """Return an answer with its id and its links."""
    body = dict(outcome.body or {})
    link = None if outcome.receipt is None else f"{PREFIX}/answers/{outcome.id}/receipt"
    return {"id": outcome.id, "state": "done", **body, "receipt": link}


def _job_body(service: Service, outcome: Outcome) -> dict[str, Any]:
    return {
        "id": outcome.id,
        "state": outcome.state,
        "ticks_passed": passed_ticks(service, outcome),
        "ticks_most": service.deadline_ticks,
        "events": f"{PREFIX}/answers/{outcome.id}/events",
    }


def passed_ticks(service: Service, outcome: Outcome) -> int:
    """Return how many ticks passed since a question was handed over."""
    return max(int((time.time() - outcome.begun) / (service.tick or 1.0)), 0)


_EVENTS: Final[dict[int | str, dict[str, Any]]] = {
    **PROBLEMS,
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "queued, running, tick, done."},
}


@router.get("/answers/{id}/events", response_class=StreamingResponse, responses=_EVENTS)
async def events(request: Request, id: Id) -> Response:  # noqa: A002 -- its name
    """Tell how far an own question is, at ticks: queued, running, tick, and done or failed. Never rows or phases."""
    service, caller = _service(request), _caller(request)
    await _desk(request).look(partial(service.outcome, caller, id))
    streams_held = _desk(request).streams
    streams_held.take(caller.token_id)
    stream = _events(_desk(request), service, caller, id)
    return _Stream(stream, partial(streams_held.leave, caller.token_id))


class _Stream(StreamingResponse):
    """A stream of events that says when it is over, however it ends."""

    def __init__(self, content: AsyncIterator[bytes], over: Callable[[], None]) -> None:
        super().__init__(content, media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._over()


async def _events(desk: Desk, service: Service, caller: Caller, job: str) -> AsyncIterator[bytes]:
    """Look at public moments, and between them whether the token is in force."""
    step, said = service.tick or 1.0, ""
    looked = 0.0
    while True:
        try:
            outcome = await desk.look(partial(service.outcome, caller, job))
        except CuradorError:
            return
        if outcome.over:
            yield _event("done" if outcome.state == "done" else "failed", {"id": job})
            return
        if outcome.state != said:
            said = outcome.state
            yield _event(said, {"id": job})
        yield _event("tick", {"passed": passed_ticks(service, outcome), "most": service.deadline_ticks})
        looked = time.monotonic()
        moment = (looked // step + 1) * step
        while (left := moment - time.monotonic()) > 0:
            await asyncio.sleep(min(left, WATCH))
            try:
                service.still(caller)
            except CuradorError:
                return


def _event(name: str, body: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()


_RECEIPT: Final[dict[int | str, dict[str, Any]]] = {
    **PROBLEMS,
    200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "A receipt, or a notebook."},
}


@router.get("/answers/{id}/receipt", response_class=Response, responses=_RECEIPT)
async def receipt(request: Request, id: Id) -> Response:  # noqa: A002 -- its name
    """Return the receipt of an own answer; of any for the auditor."""
    text = await _desk(request).look(partial(_service(request).receipt, _caller(request), id))
    return Response(text, media_type="application/json", headers=_as_file(f"receipt-{id[:12]}.json"))


@router.get("/answers/{id}/notebook", response_class=Response, responses=_RECEIPT)
async def notebook(request: Request, id: Id) -> Response:  # noqa: A002 -- its name
    """Return a notebook that asks the same again by `cu.connect`."""
    outcome = await _desk(request).look(partial(_service(request).outcome, _caller(request), id))
    if outcome.body is None:
        raise jobs.not_found()
    text = reports.notebook_text(outcome.body, request.app.state.url or str(request.base_url).rstrip("/"))
    return Response(text, media_type="application/json", headers=_as_file(f"answer-{id[:12]}.ipynb"))


def _as_file(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


@router.post("/sandbox/previews", response_model=models.PreviewSaid | models.PreviewsSaid, responses=PROBLEMS)
async def sandbox_preview(request: Request, body: models.PreviewBody) -> Response:
    """Say what a question would cost, over rows that are made up."""
    work = partial(_service(request).sandbox_preview, _caller(request), _one_of(body), body.options.read())
    return _json(await _desk(request).imagine(work))


@router.post("/sandbox/answers", response_model=models.AnswerSaid, responses=PROBLEMS)
async def sandbox_ask(request: Request, body: models.SandboxBody) -> Response:
    """Answer a question over rows that are made up: nothing is read, nothing is spent, and the answer says so."""
    service, caller = _service(request), _caller(request)
    work = partial(service.sandbox_body, caller, body.question, body.options.read(), fresh=body.fresh)
    return _json({"id": None, "state": "done", **await _desk(request).imagine(work), "receipt": None})


# ---- the owner's and the auditor's ---------------------------------------------------------------------------------------


@router.get("/budget/history", response_model=models.DaysSaid, responses=PROBLEMS)
async def budget_history(request: Request) -> Response:
    """Return what was spent by day and asker."""
    return _json({"days": await _desk(request).look(partial(_service(request).budget_history, _caller(request)))})


@router.get("/tokens", response_model=models.TokensSaid, responses=PROBLEMS)
async def list_tokens(request: Request) -> Response:
    """Return all tokens, without what they are compared with."""
    return _json({"tokens": await _desk(request).look(partial(_service(request).tokens, _caller(request)))})


@router.post("/tokens", response_model=models.NewTokenSaid, status_code=201, responses=PROBLEMS)
async def new_token(request: Request, body: models.TokenBody) -> Response:
    """Make a token. Its text is shown this once and kept nowhere."""
    said = body.model_dump(exclude={"role"})
    work = partial(_service(request).new_token, _caller(request), body.role, **said)
    text, made = await _desk(request).look(work)
    told = {"token": text, "id": made.token_id, "role": made.role, "name": made.name, "expires": made.expires}
    return _json(told, 201)


@router.delete("/tokens/{id}", response_model=models.RevokedSaid, responses=PROBLEMS)
async def revoke(request: Request, id: Annotated[str, "of a token"]) -> Response:  # noqa: A002 -- its name
    """End a token, and every session and stream that it opened."""
    revoked = await _desk(request).look(partial(_service(request).revoke, _caller(request), id))
    return _json({"id": id, "revoked": revoked})


@router.post("/survey", response_model=models.SurveySaid, responses=PROBLEMS)
async def survey(request: Request, body: models.SurveyBody) -> Response:
    """Find privately what nobody declared, for about 1 % of the budget."""
    work = partial(_service(request).survey, _caller(request), columns=body.columns)
    return _json(await _desk(request).look(work))


@router.post("/reopen", response_model=models.ReopenedSaid, responses=PROBLEMS)
async def reopen(request: Request, body: models.ReopenBody) -> Response:
    """Open the study to analysts again after engine failures."""
    service = _service(request)
    await _desk(request).look(partial(service.reopen, _caller(request), body.note))
    return _json({"closed": service.curator.ledger.closed})


@router.get("/verification", response_model=models.VerificationSaid, responses=PROBLEMS)
async def verification(request: Request) -> Response:
    """Read every entry of the ledger again, and say whether chain, sums and witness agree."""
    return _json(await _desk(request).look(partial(reports.verification_body, _service(request))))


@router.get("/odds", response_model=models.OddsSaid, responses=PROBLEMS)
async def odds(request: Request) -> Response:
    """Say what an adversary gains at most from all that the study will ever release."""
    return _json(await _desk(request).look(partial(reports.odds_body, _service(request))))


@router.get("/report", response_model=models.ReportSaid, responses=PROBLEMS)
async def report(request: Request) -> Response:
    """Return the study's promise, tables, caps and bounds, and what was spent."""
    return _json(await _desk(request).look(partial(reports.report_body, _service(request))))

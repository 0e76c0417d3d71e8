"""The service without a transport: who comes in, what they may ask for, and what becomes of it. One for each process.

    HTTP ──┐
    agents ┼──► Service ──► Asker ──► spend(…, ticket) ──► the ledger
    door ──┘       └── state: tokens, jobs, limits (`state.py`)

Everything here may wait for a tick of the study's pace, so it is called in threads. Whoever holds a Caller holds nothing that
lasts: each question asks `still` whether the token is in force.

Claim   Nothing is charged but by `spend`; a token's limits are held before the charge; an asker is told of no other's entry,
        job or key; what is raised is a sentence of ours or an id.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
import traceback
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from curador.curator.curator import Curator, open_study
from curador.curator.options import QuestionOptions
from curador.curator.previewing import previews_of
from curador.curator.session import Session
from curador.curator.ticket import Ticket
from curador.errors import BudgetExceeded, CuradorError, Failed, InvalidParameter, InvalidStudy, NotAllowed, Refused
from curador.server import jobs, limits, rendering, tokens
from curador.server.jobs import Job, Outcome
from curador.server.problems import problem_of
from curador.server.refusals import NoToken, Stopping
from curador.server.sandboxes import Sandboxes
from curador.server.state import Presence, ServiceState, state_of
from curador.server.tokens import Caller, ScramVerifier
from curador.study.file import read_study

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from curador.answers.column import AnswerColumn
    from curador.curator.answer import Answer
    from curador.curator.curator import Asker
    from curador.curator.preview import Preview, Previews
    from curador.ledger.entry import Entry, Request
    from curador.server.oidc import Issuer
    from curador.study.model import EngineSettings, Schema, Study

USUAL_TICK: Final = Fraction(1)
"""Seconds between the moments at which answers leave, where the study does not say."""
_POLL: Final = 0.05


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What whoever serves a study decides, and the study does not.

    when_ready    answers leave when they are ready although the study has no answer_every: then time tells of rows
    each, whole   questions under way at a time, of one token and of all, in one process
    rate, burst   requests a second of one token, and how many at once, in one process
    made_up       units of the sandbox
    issuer        of OpenID Connect, whose tokens are taken beside our own
    """

    when_ready: bool = False
    each: int = 16
    whole: int = 512
    rate: float = 50.0
    burst: float = 200.0
    made_up: int = 1_000
    issuer: Issuer | None = None


def served_study(path: Path, settings: ServiceSettings) -> Study:
    """Return the study of a file as it is served: in processes of its own, and answering on a clock."""
    study = read_study(path)
    if study.engine.worker != "process":
        hint = 'write worker = "process" into [engine], or leave the line out'
        raise InvalidStudy.must_be("engine.worker", "a process of its own, for a service", study.engine.worker, hint)
    if study.in_memory:
        raise InvalidStudy.must_be("ledger", "a file or a server, for a service", "memory")
    if study.engine.answer_every or settings.when_ready:
        return study
    return replace(study, engine=replace(study.engine, answer_every=_tick_of(study.engine)))


def _tick_of(engine: EngineSettings) -> Fraction:
    """The tick where none is set: about a second, and a whole part of the deadline."""
    return engine.deadline / max(-(-engine.deadline // USUAL_TICK), 1)


class Service:
    """An open study with everybody who may ask it. Threads share it; each process opens its own."""

    def __init__(self, path: Path, curator: Curator, state: ServiceState, settings: ServiceSettings) -> None:
        """Serve an open curator; `open` does it."""
        self.path, self.settings, self.curator, self.state = path, settings, curator, state
        self.presence = Presence.take(state, int(time.time()))
        self._secret = curator.ledger.first.id.encode()
        self._places = limits.Places(settings.each, settings.whole)
        self.rates = limits.Rates(settings.rate, settings.burst)
        self._told: dict[str, threading.Event] = {}
        self._unended: list[Job] = []
        self._lock = threading.Lock()
        self._sandboxes = Sandboxes(self.curator.study, settings.made_up)
        self._stopping = False

    @classmethod
    def open(cls, study: Path | str, *, settings: ServiceSettings | None = None) -> Service:
        """Open a study file for service."""
        path, chosen = Path(study), settings or ServiceSettings()
        curator = open_study(served_study(path, chosen))
        try:
            state = ServiceState(state_of(curator.study.ledger_path), curator.ledger.id)
            made = cls(path, curator, state, chosen)
        except BaseException:
            curator.close()
            raise
        return made

    @property
    def study(self) -> Study:
        """What is served."""
        return self.curator.study

    @property
    def schema(self) -> Schema:
        """Every table, for whoever may see all of them."""
        return self.curator.schema

    @property
    def tick(self) -> float:
        """Seconds between the moments at which anything is told; 0: when it is ready."""
        return float(self.study.engine.answer_every)

    @property
    def deadline_ticks(self) -> int:
        """How many ticks a question may take, or seconds where there are none."""
        step = self.study.engine.answer_every or Fraction(1)
        return int(-(-self.study.engine.deadline // step))

    @property
    def under_way(self) -> int:
        """Questions that this process is computing."""
        return self._places.held

    def stop(self) -> None:
        """Take no new question; those under way end by their deadline."""
        self._stopping = True

    def close(self) -> None:
        """Wait for those under way, and close."""
        self._stopping = True
        self._sandboxes.close()
        self.curator.close()
        self.presence.leave()
        self.state.close()

    # ---- who comes in -----------------------------------------------------------------------------------------------

    def find(self, token: str) -> Caller | None:
        """Return who a token stands for; None of every other text. Whoever calls it counts failures and tells them slowly."""
        issuer = self.settings.issuer
        if issuer is not None and is_foreign(token):
            return self._declared(issuer.find(self.state, token))
        return self._declared(tokens.find_caller(self.state, token))

    def admit_at_once(self, token: str, *, door: str, peer: str) -> tuple[Caller | None, float]:
        """Return who a token stands for; or None, and for how many seconds the refusal must not be told."""
        found = self.find(token)
        return (found, 0.0) if found is not None else (None, limits.count_failure(self.state, f"{door} {peer}"[:200]))

    def admit(self, token: str, *, door: str, peer: str) -> Caller:
        """Return who a token stands for, or refuse by one sentence, slowly."""
        found, wait = self.admit_at_once(token, door=door, peer=peer)
        if found is None:
            time.sleep(wait)
            raise no_token()
        return found

    def verifier(self, token_id: str) -> ScramVerifier:
        """Return what SCRAM compares a password with; of an unknown id one that stays the same and fits nothing."""
        return tokens.find_verifier(self.state, token_id)

    def admit_id(self, token_id: str, *, door: str) -> Caller:
        """Return who has proved to hold a token, by SCRAM."""
        del door
        found = self._declared(tokens.find_by_id(self.state, token_id))
        if found is None:
            raise no_token()
        return found

    def fail_login(self, *, door: str, peer: str) -> float:
        """Count a login that failed elsewhere; return for how many seconds it must not be told."""
        return limits.count_failure(self.state, f"{door} {peer}"[:200])

    def still(self, caller: Caller) -> Caller:
        """Return the caller as the token is now; refused when it expired or was revoked."""
        found = self._declared(tokens.find_by_id(self.state, caller.token_id))
        if found is None:
            raise no_token()
        return found

    def _declared(self, caller: Caller | None) -> Caller | None:
        """Nobody, where the study does not name the analyst any more."""
        gone = caller is not None and caller.name is not None and self.study.analyst(caller.name) is None
        return None if gone else caller

    # ---- what costs nothing -----------------------------------------------------------------------------------------

    def describe(self, caller: Caller) -> dict[str, Any]:
        """Return tables and columns as they are declared: what an analyst may see of them."""
        caller = self.still(caller)
        schema = self._asker(caller).schema if caller.name is not None else self.schema
        return {
            "study": self.study.name,
            "unit": self.study.unit_name,
            "tables": rendering.tables_body(schema),
            "data_version": self.curator.data_version,
        }

    def preview(self, caller: Caller, question: str | Sequence[str], options: QuestionOptions) -> Preview | Previews:
        """Return what a question, or each of several, would cost."""
        asker = self._asking(caller)
        with self._telling():
            return asker._preview(question if isinstance(question, str) else list(question), options)  # noqa: SLF001 -- options as a value

    def columns(self, caller: Caller, question: str, options: QuestionOptions) -> tuple[AnswerColumn, ...]:
        """Return the columns that an answer will have, without values: names, types, and where `low` is there, intervals."""
        asker = self._asking(caller)
        with self._telling():
            return asker.columns(question, options)

    def preview_body(self, caller: Caller, question: str, options: QuestionOptions) -> dict[str, Any]:
        """Return a preview with the columns of its answer, as plain values."""
        ((found, columns),) = self._look_ahead(caller, [question], options)
        return rendering.preview_body(found, columns)

    def budget(self, caller: Caller) -> dict[str, Any]:
        """Return the budget as the caller may see it: the own share, or all of it for owner and auditor."""
        caller = self.still(caller)
        with self._telling():
            view = self._asker(caller).budget
        found, whole = view.to_dict(), view.limit
        spent, left = limits.part_of(view.spent, whole), limits.least_part_of(view.left, whole)
        for own, account in zip(found.get("by_analyst", ()), view.accounts, strict=True):
            own["spent_share"] = rendering.part_number(limits.part_of(account.spent, account.limit))
        shares = {"spent_share": rendering.part_number(spent), "left_share": float(left)}
        return {**found, **shares, "token": self.limits_of(caller)}

    def limits_of(self, caller: Caller) -> dict[str, Any]:
        """Return the limits of a token, and what is left of its day."""
        day = caller.most_per_day
        left = None if day is None else max(day - limits.used_today(self.state, caller), Fraction(0))
        return {
            "most_per_question": None if caller.most_per_question is None else tokens.percent(caller.most_per_question),
            "most_per_day": None if day is None else tokens.percent(day),
            "left_today": None if left is None else tokens.percent(left),
            "agent": caller.agent,
        }

    def history(self, caller: Caller, *, limit: int = 100, before: int | None = None) -> dict[str, Any]:
        """Return lines of the ledger, the newest first: an analyst's own, or all of them.

        before  the number of a line, as `next` of an earlier call: lines before it
        """
        caller = self.still(caller)
        with self._telling():
            lines = self._asker(caller).log()
        end = len(lines) if before is None else min(max(before, 0), len(lines))
        start = max(end - limit, 0)
        shown = lines[start:end][::-1]
        answers = self._answers_of(shown, caller)
        for line in shown:
            line["answer"] = answers.get(line["refers"] or line["id"])
        return {"entries": shown, "next": start or None}

    def _answers_of(self, lines: Sequence[Mapping[str, Any]], caller: Caller) -> dict[str, str]:
        """The ids of answers by the shown ids of the entries that charged them."""
        names = sorted({str(line["refers"] or line["id"]) for line in lines})
        marks = ", ".join("?" * len(names))
        text = f"SELECT shown, id, holder FROM job WHERE shown IN ({marks})"  # noqa: S608 -- signs only
        found = self.state.all(text, names) if names else []
        return {shown: id_ for shown, id_, holder in found if caller.role != "analyst" or holder == caller.holder}

    # ---- questions --------------------------------------------------------------------------------------------------

    def hand_over(
        self, caller: Caller, question: str, options: QuestionOptions, *, key: str | None = None, fresh: bool = False
    ) -> Job:
        """Take a question: it is on disk when this returns, with its key. `run` computes it where it is `mine`."""
        if self._stopping:
            raise Stopping("the service is stopping; nothing was spent.", hint="ask again in a moment, with the same key.")
        caller = self._may_ask(caller)
        if fresh and caller.agent:
            raise NotAllowed("an agent's token may not ask afresh.", hint="the stored answer is free.")
        said = rendering.options_record(options)
        job = jobs.hand_over(
            self.state, self.presence, self._secret, caller, question=question, options=said, fresh=fresh, key=key
        )
        if job.mine:
            try:
                self._places.take(caller.token_id)
            except Refused as refusal:
                jobs.end_badly(self.state, job, problem_of(refusal), charged=False)
                raise
            with self._lock:
                self._told[job.id] = threading.Event()
        return job

    def run(self, job: Job, told: Callable[[str], None] | None = None) -> Outcome:
        """Compute a job that is `mine`; wait for one that is not. Returns when it is over."""
        tell = told or (lambda _: None)
        tell("queued")
        if not job.mine:
            return self._await(job, tell)
        try:
            self._compute(job, tell)
        except BaseException:
            with self._lock:
                self._unended.append(job)
            raise
        finally:
            with self._lock:
                self._told.pop(job.id).set()
            self._places.leave(job.token)
        tell("done")
        return jobs.read_outcome(self.state, job.id)

    def ask(
        self,
        caller: Caller,
        question: str,
        options: QuestionOptions,
        *,
        key: str | None = None,
        fresh: bool = False,
        told: Callable[[str], None] | None = None,
    ) -> Outcome:
        """Ask, and wait for what becomes of it. `Outcome.require` raises what was raised.

        key   of idempotency: the same key of the same asker is the same question, charged once, whatever happens meanwhile
        told  is told "queued", "running" and "done"
        """
        return self.run(self.hand_over(caller, question, options, key=key, fresh=fresh), told)

    def outcome(self, caller: Caller, job: str) -> Outcome:
        """Return what became of a question so far; an own one, or NotFound."""
        caller = self.still(caller)
        if jobs.read_job(self.state, job).holder != caller.holder:
            raise jobs.not_found()
        return jobs.read_outcome(self.state, job)

    def with_confidence(self, caller: Caller, job: str, confidence: str) -> Outcome:
        """Return an own answer with intervals of another confidence: the same numbers, for nothing.

        Refused where they are not stored any more under the question, as after a refresh: nothing is ever charged here.
        """
        outcome = self.outcome(caller, job)
        if outcome.body is None:
            raise jobs.not_found()
        caller, asked = self._may_ask(caller), jobs.read_job(self.state, job)
        said: dict[str, Any] = {**asked.options, "confidence": confidence}
        options = QuestionOptions(**said)

        def refuse(*_: object) -> NoReturn:
            hint = "ask again with the confidence that you want."
            raise InvalidParameter(
                "the answer must be the one that is stored; the question was answered anew since.", hint=hint
            )

        with self._telling():
            answer = self._asker(caller)._ask(  # noqa: SLF001 -- options as a value
                asked.question, options, fresh=False, ticket=Ticket(asked.reservation, refuse)
            )
        session = self._session(caller)
        body = rendering.answer_body(
            answer,
            question=asked.question,
            options=said,
            limit=session.limits.share(session.share),
            version=int(answer.receipt["data_version"]),
        )
        names = [column["name"] for column in body["columns"]]
        before, now = ([[row[name] for name in names] for row in said["rows"]] for said in (outcome.body, body))
        if before != now:
            refuse()
        return replace(outcome, body=body)

    def receipt(self, caller: Caller, job: str) -> str:
        """Return the text of a receipt: an own one; any for the auditor."""
        caller = self.still(caller)
        if caller.role != "auditor" and jobs.read_job(self.state, job).holder != caller.holder:
            raise jobs.not_found()
        found = jobs.read_outcome(self.state, job).receipt
        if found is None:
            raise jobs.not_found()
        return found

    def await_end(self, job: str, seconds: float) -> bool:
        """Wait for a job for so long; return whether it is over."""
        until = time.monotonic() + seconds
        while True:
            if jobs.read_job(self.state, job).state not in jobs.OPEN:
                return True
            left = until - time.monotonic()
            if left <= 0:
                return False
            with self._lock:
                event = self._told.get(job)
            if event is None:
                time.sleep(min(_POLL, left))
            else:
                event.wait(left)

    def take_over(self) -> list[Job]:
        """Return the open jobs of processes that are gone, and own ones whose end could not be written: `run` ends each."""
        taken: list[Job] = []
        with self._lock:
            unended, self._unended = self._unended, []
        for job in (*unended, *jobs.take_over(self.state, self.presence)):
            with self._lock:
                self._told[job.id] = threading.Event()
            self._places.add(job.token)
            taken.append(job)
        return taken

    # ---- how a question is computed ---------------------------------------------------------------------------------

    def _compute(self, job: Job, tell: Callable[[str], None]) -> None:
        try:
            caller = self._charged_caller(job) or self._may_ask(self._caller_of(job))
            asker = self._asker(caller)
            options = QuestionOptions(**job.options)
            answer = asker._ask(job.question, options, fresh=job.fresh, ticket=self._ticket(job, caller, tell))  # noqa: SLF001 -- options as a value
            self._keep(job, caller, answer)
        except Refused as refusal:
            self._end(job, problem_of(refusal, owner=job.holder == "owner"))
        except Failed as failure:
            self._end(job, problem_of(failure))
        except Exception as error:  # noqa: BLE001 -- whatever it is, an id of it leaves and nothing else
            self._end(job, problem_of(self.failed(error)))

    def _keep(self, job: Job, caller: Caller, answer: Answer) -> None:
        session = self._session(caller)
        body = rendering.answer_body(
            answer,
            question=job.question,
            options=job.options,
            limit=session.limits.share(session.share),
            version=int(answer.receipt["data_version"]),
        )
        charged = not answer.stored or self.curator.ledger.outcome(job.reservation) is not None
        jobs.finish(self.state, job, body, rendering.arrow_bytes(answer), answer.receipt.to_json(), charged=charged)

    def _end(self, job: Job, problem: Mapping[str, Any]) -> None:
        """Keep a problem: for ever where the key has a charge, so that whoever hands it over again is told the same."""
        charged = True
        with contextlib.suppress(CuradorError):
            charged = self.curator.ledger.outcome(job.reservation) is not None
        jobs.end_badly(self.state, job, problem, charged=charged)

    def _ticket(self, job: Job, caller: Caller, tell: Callable[[str], None]) -> Ticket:
        session = self._session(caller)
        whole = session.limits.share(session.share)

        def admit(reservation: str, request: Request) -> None:
            caller_now = self.still(caller)  # a token that ended while its question waited pays nothing
            limits.hold(self.state, caller_now, reservation, limits.part_of(request.amounts, whole))

        def charged(_: Entry) -> None:
            with contextlib.suppress(CuradorError):
                jobs.mark_running(self.state, job)
            tell("running")

        def spared(reservation: str) -> None:
            if caller.most_per_question is not None or caller.most_per_day is not None:
                limits.give_back(self.state, reservation)

        return Ticket(job.reservation, admit, charged, spared)

    def _await(self, job: Job, tell: Callable[[str], None]) -> Outcome:
        said = "queued"
        while not self.await_end(job.id, _POLL * 4):
            now = jobs.read_job(self.state, job.id).state
            if now == "running" and said != now:
                said = now
                tell(now)
        tell("done")
        return jobs.read_outcome(self.state, job.id)

    def _charged_caller(self, job: Job) -> Caller | None:
        """Return who a job is of that was charged before its process died: its answer is theirs, whatever its token.

        Claim   Nothing more is charged: what has an id in the ledger has its outcome (`spend`).
        """
        if self.curator.ledger.outcome(job.reservation) is None:
            return None
        role, _, name = job.holder.partition(":")
        return self._declared(Caller(job.token, role, name or None, expires=0))

    def _caller_of(self, job: Job) -> Caller:
        found = self._declared(tokens.find_by_id(self.state, job.token))
        if found is None:
            raise no_token()
        return found

    # ---- who asks ---------------------------------------------------------------------------------------------------

    def _may_ask(self, caller: Caller) -> Caller:
        caller = self.still(caller)
        if not caller.asks:
            raise NotAllowed("an auditor may not ask.", hint="auditors read the ledger, its receipts and its report.")
        return caller

    def _asking(self, caller: Caller) -> Asker:
        return self._asker(self._may_ask(caller))

    def _asker(self, caller: Caller) -> Asker:
        return self.curator if caller.name is None else self.curator.analyst(caller.name)

    def _session(self, caller: Caller) -> Session:
        return self._asker(caller)._session  # noqa: SLF001 -- what a service serves

    @contextlib.contextmanager
    def _telling(self) -> Any:
        """Let only our own sentences out; of everything else an id, under which the owner finds it."""
        try:
            yield
        except CuradorError:
            raise
        except Exception as error:  # noqa: BLE001 -- see above
            raise self.failed(error) from None

    def failed(self, error: Exception) -> Failed:
        """Return what is told of an error that is no sentence of ours: an id, under which the owner finds it."""
        incident = secrets.token_hex(8)
        with contextlib.suppress(Exception):  # a full disk must not tell more than the failure does
            self._session_of_owner.engine.record_failure(incident, "".join(traceback.format_exception(error)))
        return Failed(f"the service failed; whether anything was charged stands in the budget. Incident {incident}.")

    @property
    def _session_of_owner(self) -> Session:
        return self.curator._session  # noqa: SLF001 -- what a service serves

    # ---- the sandbox ------------------------------------------------------------------------------------------------

    def sandbox_body(self, caller: Caller, question: str, options: QuestionOptions, *, fresh: bool = False) -> dict[str, Any]:
        """Return an answer about made-up rows as plain values; where its budget is used up, it begins anew."""
        caller = self._may_ask(caller)
        session = self._session(caller)
        limit, said = session.limits.share(session.share), rendering.options_record(options)
        for again in (True, False):
            with self._telling(), self._sandboxes.of(caller.holder) as opened:
                asker = opened if caller.name is None else opened.analyst(caller.name)
                try:
                    answer = asker._ask(question, options, fresh=fresh)  # noqa: SLF001 -- options as a value
                except BudgetExceeded:
                    if not again:
                        raise
                    self._sandboxes.renew(caller.holder, opened)
                    continue
                return rendering.answer_body(answer, question=question, options=said, limit=limit, version=1)
        raise AssertionError

    def sandbox_preview(self, caller: Caller, question: str | Sequence[str], options: QuestionOptions) -> dict[str, Any]:
        """Return what a question, or several, would cost in a sandbox, as plain values."""
        caller = self._may_ask(caller)
        with self._telling(), self._sandboxes.of(caller.holder) as opened:
            asker = opened if caller.name is None else opened.analyst(caller.name)
            if isinstance(question, str):
                found = asker._preview(question, options)  # noqa: SLF001 -- options as a value
                return rendering.preview_body(found, asker.columns(question, options))  # type: ignore[arg-type]  # of one
            several = asker._preview(list(question), options)  # noqa: SLF001 -- idem
            columns = [asker.columns(one, options) for one in question]
        return rendering.previews_body(several, columns)

    def previews_body(self, caller: Caller, questions: Sequence[str], options: QuestionOptions) -> dict[str, Any]:
        """Return the previews of several questions as plain values."""
        found = self._look_ahead(caller, questions, options)
        return rendering.previews_body(previews_of([one for one, _ in found]), [columns for _, columns in found])

    def _look_ahead(self, caller: Caller, questions: Sequence[str], options: QuestionOptions) -> list[Any]:
        """Previews with columns, told at one moment however many they are."""
        asker = self._asking(caller)
        with self._telling():
            return asker._look_ahead(questions, options)  # noqa: SLF001 -- options as a value

    # ---- the owner's and the auditor's ------------------------------------------------------------------------------

    def budget_history(self, caller: Caller) -> list[dict[str, Any]]:
        """Return what was spent by day and asker, and by all together since the beginning."""
        self._require(caller, "owner", "auditor")
        with self._telling():
            lines = self.curator.log()
        whole = self.curator.ledger.limits.total
        name = "epsilon" if self.curator.ledger.limits.kind == "pure" else "rho"
        limit, total = getattr(whole, name), Fraction(0)
        found: dict[tuple[str, str | None], dict[str, Any]] = {}
        for line in lines:
            cost = Fraction(line["cost"].get(name, 0))
            if not cost:
                continue
            total += cost
            day = line["time"][:10]
            one = found.setdefault((day, line["analyst"]), {"time": day, "analyst": line["analyst"], "spent": Fraction(0)})
            one["spent"] += cost
            one["total"] = total
        return [
            {
                **step,
                "spent": str(step["spent"]),
                "total": str(step["total"]),
                "spent_share": rendering.part_number(step["spent"] / limit),
                "total_share": rendering.part_number(step["total"] / limit),
            }
            for step in found.values()
        ]

    def new_token(self, caller: Caller, role: str, **said: Any) -> tuple[str, Caller]:
        """Make a token; its text is returned once."""
        self._require(caller, "owner")
        return tokens.new_token(self.state, self.study, role, **said)

    def tokens(self, caller: Caller) -> list[dict[str, Any]]:
        """Return all tokens, without what they are compared with."""
        self._require(caller, "owner")
        return tokens.list_tokens(self.state)

    def revoke(self, caller: Caller, token_id: str) -> bool:
        """End a token."""
        self._require(caller, "owner")
        return tokens.revoke(self.state, token_id)

    def survey(self, caller: Caller, *, columns: bool = False) -> dict[str, Any]:
        """Buy a survey, and return what it found in words."""
        self._require(caller, "owner")
        with self._telling():
            report = self.curator.survey(columns=columns)
        return {"text": str(report), "cost": report.cost.record()}

    def reopen(self, caller: Caller, note: str) -> None:
        """Open the study to analysts again after engine failures."""
        self._require(caller, "owner")
        with self._telling():
            self.curator.reopen(note)

    def _require(self, caller: Caller, *roles: str) -> Caller:
        caller = self.still(caller)
        if caller.role not in roles:
            raise NotAllowed("this is for another role.", hint=f"it is for the {' and the '.join(roles)}.")
        return caller


def is_foreign(token: str) -> bool:
    """Whether a text may be a token of an issuer of OpenID Connect: three parts, which ours has not."""
    return token.count(".") == 2


def no_token() -> NoToken:
    """Return the one refusal of whoever has no token in force."""
    return NoToken(tokens.UNKNOWN, hint="the owner makes one: curador token new.")


def read_options(said: Mapping[str, Any]) -> QuestionOptions:
    """Return the options that plain JSON values say; refused where a name is unknown."""
    try:
        return QuestionOptions(**said)
    except TypeError:
        known = ", ".join(sorted(QuestionOptions.__dataclass_fields__))
        raise InvalidParameter.must_be("options", f"some of {known}", sorted(said)) from None


def to_json(body: object) -> bytes:
    """Return plain values as JSON."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")

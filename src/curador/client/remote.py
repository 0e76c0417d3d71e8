"""`connect`: somebody who asks a service, with the verbs of whoever asks a curator on the same machine.

What comes back are the same objects: an `Answer`, a `Preview`, a `BudgetView`, and refusals of the same classes with the same
fields. So a script does not know, nor need to know, where its curator is.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from curador.client.connection import Connection
from curador.client.schema import RemoteSchema, schema_of_record
from curador.client.token import address_of
from curador.curator.budget import BudgetView
from curador.curator.options import QuestionOptions, QuestionVerbs
from curador.curator.preview import Preview, Previews
from curador.curator.wire import answer_of_record, columns_of_record
from curador.errors import CuradorError, Failed, InvalidParameter, require

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator
    from types import TracebackType

    from curador.answers.column import AnswerColumn
    from curador.client.connection import Reply
    from curador.curator.answer import Answer
    from curador.curator.receipt import Receipt

PATIENCE = 60.0
"""Seconds in which a service may be away, for a restart say, before a request is given up."""

WAIT = 20
"""Seconds that a service is asked to hold a request back until the answer is there; then a client looks again."""

PAGE = 500
"""Entries of a log in one request."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")


class RemoteAsker(QuestionVerbs):
    """Somebody who asks a service: the owner, or one analyst inside the study's one budget. A context manager."""

    _places = ("/previews", "/answers")
    _waiting: Mapping[str, int] = MappingProxyType({"wait": WAIT})

    def __init__(self, connection: Connection, *, told: Callable[[str], None] | None = None) -> None:
        """Ask over a connection; `connect` makes it."""
        self._connection, self._told = connection, told

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self._connection.url}>"

    # ---- what there is ----------------------------------------------------------------------------------------------

    @property
    def me(self) -> Mapping[str, Any]:
        """Who the token's holder is: role, name, when it ends, and its limits."""
        return self._connection.get("/me").record

    @property
    def schema(self) -> RemoteSchema:
        """Every table and column that can be asked about, as far as it is public."""
        record = self._connection.get("/tables").record
        with _reading():
            return schema_of_record(record)

    @property
    def budget(self) -> BudgetView:
        """What may be spent, what was, and what is left."""
        record = self._connection.get("/budget").record
        with _reading():
            return BudgetView.from_dict(record)

    def log(self) -> list[dict[str, Any]]:
        """Return the ledger's entries as plain values: all of them for the owner, an analyst's own for an analyst."""
        found: list[dict[str, Any]] = []
        before: dict[str, int] = {}
        while True:
            page = self._connection.get("/history", limit=PAGE, **before).record
            with _reading():
                found += page["entries"]  # the newest first
                if page.get("next") is None:
                    return found[::-1]
                before = {"before": int(page["next"])}

    @property
    def sandbox(self) -> RemoteSandbox:
        """The same verbs over made-up rows: nothing is spent, and answers are marked and have no receipt."""
        return RemoteSandbox(self._connection, told=self._told)

    # ---- questions --------------------------------------------------------------------------------------------------

    def _preview(self, question: str | list[str] | tuple[str, ...], options: QuestionOptions) -> Preview | Previews:
        place, said = self._places[0], plain_options(options)
        if isinstance(question, str):
            record = self._connection.post(place, {"question": question, "options": said}).record
            with _reading():
                return Preview.from_dict(record)
        if len(question) == 0:
            raise InvalidParameter.must_be("questions", "at least one", "none")
        record = self._connection.post(place, {"questions": list(question), "options": said}).record
        with _reading():
            return Previews.from_dict(record)

    def _ask(self, question: str, options: QuestionOptions, *, fresh: bool) -> Answer:
        body: dict[str, Any] = {"question": question, "options": plain_options(options)}
        key = secrets.token_urlsafe(32)  # of this call, through all of its tries
        said = {**body, **({"fresh": True} if fresh else {}), **self._waiting}
        reply = self._connection.post(self._places[1], said, key=key, wait=WAIT)
        return self._answer(self._until_done(reply), body)

    def _until_done(self, reply: Reply) -> Mapping[str, Any]:
        """Wait for a question that takes longer than a request may; a failure of it is raised by what looks."""
        record = reply.record
        while reply.status == 202:
            place = f"/answers/{_id_of(record)}"
            self._tell(record)
            for name, data in self._connection.events(f"{place}/events", wait=WAIT):
                if name in {"done", "failed"}:
                    break
                self._tell({"state": name, **(data if isinstance(data, Mapping) else {})})
            reply = self._connection.get(place, wait=WAIT)
            record = reply.record
        return record

    def _tell(self, record: Mapping[str, Any]) -> None:
        if self._told is not None:
            passed, most = (record.get(name, record.get(f"ticks_{name}")) for name in ("passed", "most"))
            time = f": {passed} of {most} ticks" if isinstance(passed, int) and isinstance(most, int) else ""
            self._told(f"{'running' if record.get('state') == 'tick' else record.get('state', 'queued')}{time}")

    def _answer(self, record: Mapping[str, Any], body: Mapping[str, Any]) -> Answer:
        made_up = record.get("made_up") is True  # then it is nowhere to be found again, and costs nothing to ask again
        place = "" if made_up else f"/answers/{_id_of(record)}"
        fetched: list[Receipt] = []

        def receipt() -> Receipt:
            from curador.curator.receipt import Receipt

            if not fetched:
                fetched.append(Receipt(self._connection.get(f"{place}/receipt").record))
            return fetched[0]

        def again(level: Fraction) -> tuple[AnswerColumn, ...]:
            if made_up:
                options = {**body["options"], "confidence": str(level)}
                record = self._connection.post(self._places[1], {**body, "options": options}).record
            else:
                record = self._connection.get(place, confidence=str(level)).record
            with _reading():
                return columns_of_record(record)

        with _reading():
            return answer_of_record(record, receipt=receipt, again=again)

    # ---- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection; nothing at the service changes."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class RemoteSandbox(RemoteAsker):
    """Made-up rows at a service."""

    _places = ("/sandbox/previews", "/sandbox/answers")
    _waiting: Mapping[str, int] = MappingProxyType({})

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave the connection to whoever opened it."""


def connect(
    url: str,
    token: str | None = None,
    *,
    token_file: str | os.PathLike[str] | None = None,
    plain_http: bool = False,
    patience: float = PATIENCE,
    progress: Callable[[str], None] | None = None,
) -> RemoteAsker:
    """Return whoever a token stands for, asking the service at an address: the verbs of `open`.

    url         https://…; http:// on this machine only
    token       as the service's owner was shown it; else token_file, a file that its owner alone may read, else the
                environment's CURADOR_TOKEN
    plain_http  let the token go unencrypted to another machine, over a network that nobody else uses
    patience    seconds in which a request is tried again while nobody answers; an ask is charged once, however often
    progress    is told where a long question stands
    """
    require(_is_number(patience) and 0 <= patience <= 86_400, "patience", "a number of seconds from 0 to 86,400", patience)
    return RemoteAsker(
        Connection(address_of(url, token, token_file, plain_http=plain_http), patience=float(patience)), told=progress
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@contextlib.contextmanager
def _reading() -> Generator[None]:
    """Say of what cannot be read that it cannot: it may come from a service of another version, or from no service."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        if isinstance(problem, CuradorError):
            raise
        hint = "compare the versions: curador version, here and there"
        raise Failed("the service answered with something that this client cannot read.", hint=f"{hint}.") from None


def _id_of(record: Mapping[str, Any]) -> str:
    found = record.get("id")
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise Failed("the service gave a question no name by which it could be found again.")
    return found


# ---- options ---------------------------------------------------------------------------------------------------------------


def plain_options(options: QuestionOptions) -> dict[str, Any]:
    """Return what was said of the options as plain values; what is no number, text or list of them is refused here."""
    return {
        option.name: _plain(option.name, getattr(options, option.name))
        for option in fields(options)
        if getattr(options, option.name) is not option.default
    }


def _plain(name: str, value: Any) -> Any:
    if hasattr(value, "item") and not isinstance(value, (int, float)):
        value = value.item()  # a number of numpy's
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else str(value)
        case Fraction() | Decimal():
            return str(value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {key: _plain(name, held) for key, held in asdict(value).items() if held is not None}
        case _ if isinstance(value, Mapping):
            return {str(key): _plain(name, held) for key, held in value.items()}
        case _ if isinstance(value, Sequence):
            return [_plain(name, held) for held in value]
        case _:
            raise InvalidParameter.must_be(name, "made of numbers and texts", value)

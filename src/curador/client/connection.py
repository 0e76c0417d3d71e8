"""Requests that get through or end in an error, over connections that may break anywhere.

Claim   However often a request is tried, it is charged at most once: every try of one ask carries the same idempotency key,
        made once, and a service gives the outcome of a key again instead of asking anew. What is not an ask changes nothing.
Needs   The service keeps the outcome of a key as long as its ledger. The key is random and long: nobody has made it before.

The token goes to one address: no redirect is followed, and proxies of the environment are used for https only, where they see
nothing of what goes through them.
"""

from __future__ import annotations

import json
import random
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import httpx

from curador.curator.wire import error_of_record
from curador.errors import Failed, InvalidParameter, NotAllowed
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curador.client.token import ServiceAddress

API = "/api/v1"
CONNECTING, READING = 10.0, 20.0
"""Seconds in which a connection must be there, and in which something must come beyond what was asked to be waited."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_AGAIN = frozenset({429, 502, 503, 504})
"""Nobody has answered yet: the service is busy or stopping, or what stands before it found it away."""

MOST_BYTES = 256 << 20
"""Of one answer: more is no answer of a service."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service said: 200 or 202, and its values."""

    status: int
    record: Mapping[str, Any]


class Connection:
    """Requests to one service, by one token. Threads may share it."""

    def __init__(self, address: ServiceAddress, *, patience: float) -> None:
        """Open nothing yet. patience: seconds in which a request that is not answered is tried again."""
        self._address, self._patience = address, patience
        self._held: httpx.Client | None = None
        self._lock = threading.Lock()

    @property
    def _client(self) -> httpx.Client:
        """The open connections; made when one is wanted, also after `close`: a receipt may be asked for later."""
        with self._lock:
            if self._held is None:
                self._held = httpx.Client(
                    base_url=self._address.url,
                    headers={
                        "Authorization": f"Bearer {self._address.token}",
                        "Accept": "application/json",
                        "User-Agent": "curador",
                    },
                    follow_redirects=False,
                    trust_env=self._address.url.startswith("https://"),
                )
            return self._held

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._address.url

    def get(self, path: str, *, wait: float = 0, **parameters: str | int) -> Reply:
        """Return what stands there."""
        return self._until_answered("GET", path, wait=wait, parameters=parameters)

    def post(self, path: str, body: Mapping[str, Any], *, key: str | None = None, wait: float = 0) -> Reply:
        """Return what became of it. key: under which it is done at most once."""
        return self._until_answered("POST", path, body=_written(body), key=key, wait=wait)

    def events(self, path: str, *, wait: float) -> Iterator[tuple[str, Any]]:
        """Yield events by name, with their values, until the stream ends or breaks; what was missed, a request tells."""
        headers = {"Accept": "text/event-stream"}
        limits = httpx.Timeout(READING + wait, connect=CONNECTING)
        try:
            with self._client.stream("GET", API + path, headers=headers, timeout=limits) as response:
                if response.status_code != 200:
                    return
                name = ""
                for line in response.iter_lines():
                    kind, _, value = line.partition(":")
                    if kind == "event":
                        name = value.strip()
                    elif kind == "data":
                        yield name, _read_event(value)
        except (httpx.HTTPError, httpx.StreamError):
            return

    def close(self) -> None:
        """Close what is open."""
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- trying -----------------------------------------------------------------------------------------------------

    def _until_answered(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        key: str | None = None,
        wait: float = 0,
        parameters: Mapping[str, str | int] | None = None,
    ) -> Reply:
        """Try until somebody answers: connections that break, time that passes, a service that is busy."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        until, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            reply, said, asked = self._try_once(method, path, body, headers, wait, parameters)
            if reply is not None:
                return reply
            pause = min(2 * pause, _LONGEST_PAUSE)
            rest = max(asked, pause * random.uniform(0.5, 1.0))  # noqa: S311 -- so that not all come back at once
            if time.monotonic() + rest > until:
                raise said if said is not None else self._unreachable(asked_key=key is not None)
            time.sleep(rest)

    def _try_once(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        wait: float,
        parameters: Mapping[str, str | int] | None,
    ) -> tuple[Reply | None, Exception | None, float]:
        """Return the reply; or what to say if it is the last try, and for how long the service wants to be left alone."""
        limits = httpx.Timeout(READING + wait, connect=CONNECTING)
        try:
            with self._client.stream(
                method, API + path, content=body, headers=dict(headers), params=parameters, timeout=limits
            ) as response:
                content = _read_whole(response)
        except httpx.RequestError as problem:
            _refuse_false_certificate(problem, self.url)
            return None, None, 0.0
        if response.is_redirect:
            hint = "write the address at which the service itself answers; a token is not sent on."
            raise InvalidParameter.must_be(
                "url", "the service's own address", Plain(f"{self.url}, which leads elsewhere"), hint
            )
        record = _record_of(response, content)
        if response.status_code in _AGAIN:
            said = None if not isinstance(record, Mapping) or "sentence" not in record else error_of_record(record)
            return None, said, _pause_asked(response, self._patience)
        if response.status_code in {200, 202}:
            if record is None:  # a body that ends too early looks like this where nobody said its length
                return None, None, 0.0
            if not isinstance(record, Mapping):
                raise Failed(f"what answered at {self.url} is no service of this kind.")
            return Reply(response.status_code, record), None, 0.0
        raise _error_of(response.status_code, record, self.url)

    def _unreachable(self, *, asked_key: bool) -> Failed:
        known = "whether the question was charged is not known: asked again, it is not charged twice."
        return Failed(
            f"the service at {self.url} did not answer within {self._patience:g} seconds.",
            hint=known if asked_key else "nothing was spent.",
        )


def _read_whole(response: httpx.Response) -> bytes:
    found = bytearray()
    for part in response.iter_bytes():
        found += part
        if len(found) > MOST_BYTES:
            raise Failed(f"an answer must be of at most {MOST_BYTES >> 20} MiB.")
    return bytes(found)


def _written(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()


def _record_of(response: httpx.Response, content: bytes) -> Any:
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind not in {"application/json", "application/problem+json"}:
        return None
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return [] if found is None else found  # null was said


def _read_event(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return None


def _error_of(status: int, record: Any, url: str) -> Exception:
    if isinstance(record, Mapping) and "sentence" in record:
        return error_of_record(record)
    if status == 401:
        return NotAllowed("the token must be one that the service knows; it does not.")
    if status == 404:
        return InvalidParameter.must_be("url", "the address of a curador service", url)
    return Failed(f"the service at {url} answered with status {status} and without a reason.")


def _pause_asked(response: httpx.Response, most: float) -> float:
    asked = response.headers.get("retry-after", "")
    return min(float(asked), most) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 0.0


def _refuse_false_certificate(problem: BaseException, url: str) -> None:
    """Raise where it is the certificate that is wrong: that does not mend itself."""
    found: BaseException | None = problem
    while found is not None:
        if isinstance(found, ssl.SSLCertVerificationError):
            hint = "name the authority that signed it in SSL_CERT_FILE, if it is one of your own."
            raise Failed(f"the certificate of {url} could not be verified; nothing was sent.", hint=hint) from None
        found = found.__cause__ or found.__context__

"""The service's contract in a hundred lines over a local curator, and a proxy that breaks connections where it is told to."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from curador.curator.wire import answer_record
from curador.errors import BudgetExceeded, CuradorError, Failed, NotAllowed

TOKEN = "curador_0123456789abcdef_" + "x" * 43
STATUS = {NotAllowed: 403, BudgetExceeded: 403, Failed: 500}


class SmallService(ThreadingHTTPServer):
    """Answers as `asker`, which may be changed; outcomes are kept by key, and long questions wait for `done`."""

    daemon_threads = True

    def __init__(self, asker, *, long=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asker, self.long = asker, long
        self.outcomes, self.lock, self.seen, self.busy = {}, threading.Lock(), [], 0
        self.done, self.redirect, self.garbage = threading.Event(), None, None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, key, body):
        """Return the outcome of a key: made once."""
        with self.lock:
            if key not in self.outcomes:
                try:
                    said = {**body["options"]}
                    made = self.asker.ask(body["question"], fresh=body.get("fresh", False), **said)
                    self.outcomes[key] = body, made
                except CuradorError as problem:
                    self.outcomes[key] = body, problem
            return self.outcomes[key][1]

    def handle_error(self, request, client_address):
        """Connections break here on purpose."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Say nothing."""

    def do_GET(self):
        self.serve("GET", {})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["content-length"]))
        if len(raw) == int(self.headers["content-length"]):
            self.serve("POST", json.loads(raw))

    def serve(self, method, body):
        service, where = self.server, urlsplit(self.path)
        service.seen.append((method, where.path, dict(self.headers), body))
        if service.redirect is not None:
            self.send_response(307)
            self.send_header("Location", service.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if service.garbage is not None:
            self.reply(200, service.garbage)
            return
        if service.busy:
            service.busy -= 1
            fields = {"error": "LedgerBusy", "sentence": "the service is stopping."}
            self.reply(503, fields, headers={"Retry-After": "0"}, kind="application/problem+json")
            return
        try:
            if self.headers.get("authorization") != f"Bearer {TOKEN}":
                raise NotAllowed("the token must be one that the service knows; it does not.")
            self.route(method, where.path.removeprefix("/api/v1"), parse_qs(where.query), body)
        except CuradorError as problem:
            self.reply(STATUS.get(type(problem), 400), problem.fields, kind="application/problem+json")

    def route(self, method, path, query, body):
        service, asker = self.server, self.server.asker
        match method, path.strip("/").split("/"):
            case "GET", ["budget"]:
                self.reply(200, asker.budget.to_dict())
            case "GET", ["history"]:
                lines = asker.log()
                end = int(query.get("before", [len(lines)])[0])
                start = max(end - 3, 0)  # short pages
                self.reply(200, {"entries": lines[start:end][::-1], "next": start or None})
            case "GET", ["tables"]:
                self.reply(200, {"tables": [described(one) for one in asker.schema.tables]})
            case "POST", ["previews"]:
                question = body["question"] if "question" in body else body["questions"]
                self.reply(200, asker.preview(question, **body["options"]).to_dict())
            case "POST", ["answers"]:
                key = self.headers["idempotency-key"]
                service.answer(key, body)
                if service.long and not service.done.is_set():
                    self.reply(202, {"id": key, "state": "queued", "events": "https://elsewhere.example/steal"})
                else:
                    self.outcome(key)
            case "GET", ["answers", key, "events"]:
                self.events()
            case "GET", ["answers", key]:
                if "confidence" in query:
                    made = service.outcomes[key][1].with_confidence(query["confidence"][0])
                    self.reply(200, {"id": key, **answer_record(made)})
                elif service.long and not service.done.is_set():
                    self.reply(202, {"id": key, "state": "running"})
                else:
                    self.outcome(key)
            case "GET", ["answers", key, "receipt"]:
                self.reply(200, dict(service.outcomes[key][1].receipt.record))
            case _:
                self.reply(404, {})

    def outcome(self, key):
        made = self.server.outcomes[key][1]
        if isinstance(made, CuradorError):
            raise made
        self.reply(200, {"id": key, "state": "done", **answer_record(made)})

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b'event: running\ndata: {}\n\nevent: tick\ndata: {"passed": 1, "most": 3}\n\n')
        self.wfile.flush()
        self.server.done.set()
        self.wfile.write(b'event: done\ndata: {"id": "x"}\n\n')

    def reply(self, status, record, *, headers=(), kind="application/json"):
        content = record if isinstance(record, bytes) else json.dumps(record, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def described(table):
    columns = [{"name": one.name, "type": str(one.type), "nullable": one.nullable} for one in table.fields]
    return {"name": table.table.name, "description": "", "public": False, "unit": "user_id", "caps": None, "columns": columns}


@contextlib.contextmanager
def serving(asker, **changes):
    service = SmallService(asker, **changes)
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        thread.join()
        service.server_close()


LAST = 1 << 40
"""A cut one byte before the end."""


def length_of(message):
    """Bytes of a message, once its head is there."""
    head, end, _ = bytes(message).partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return len(head) + len(end) + lengths[0] if end else None


class CuttingProxy:
    """Passes connections on; of the first ones it passes so many bytes of request and of response and breaks off then.

    cuts   (bytes of the request or None for all, bytes of the response, whether rudely: by a reset), one a connection
    """

    def __init__(self, port, cuts):
        self._port, self._cuts = port, list(cuts)
        self.cut, self.passed = 0, {"request": bytearray(), "answer": bytearray()}
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self):
        threads = []
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                break
            cut = self._cuts.pop(0) if self._cuts else (None, None, False)
            threads.append(threading.Thread(target=self._pass, args=(client, *cut)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _pass(self, client, asked, answered, rudely):
        server = socket.create_connection(("127.0.0.1", self._port))
        back = threading.Thread(target=self.copy, args=("answer", server, client, answered, rudely))
        back.start()
        self.copy("request", client, server, asked, rudely)
        if asked is not None:
            self._end(client, rudely)
        back.join()
        for one in (client, server):
            one.close()

    def copy(self, way, source, target, most, rudely):
        """Pass on what comes, up to a place; LAST is one byte before the end of the first message."""
        left, passed = most, bytearray()
        with contextlib.suppress(OSError):
            while left is None or left > 0:
                part = source.recv(65536 if left in {None, LAST} else min(left, 65536))
                if not part:
                    break
                if left == LAST and (whole := length_of(passed + part)) is not None:
                    left = whole - 1 - len(passed)
                    part = part[:left]
                passed += part
                self.passed[way] += part
                target.sendall(part)
                left = left if left in {None, LAST} else left - len(part)
            if most is not None and left == 0:
                self.cut += 1
                self._end(source, rudely=False)
                self._end(target, rudely)
                return
            target.shutdown(socket.SHUT_WR)

    def _end(self, one, rudely):
        with contextlib.suppress(OSError):
            if rudely:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.shutdown(socket.SHUT_RDWR)

    def close(self):
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

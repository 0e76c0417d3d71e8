"""OpenID Connect, by an issuer on loopback: whose tokens are let in, and which are not."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey
from served import serving

from curador.server import limits, oidc, tokens
from curador.server.oidc import Issuer

KEY = ECKey.generate_key("P-256", {"kid": "one"})
NEXT = RSAKey.generate_key(2048, {"kid": "two"})


class Publisher:
    """An issuer: says who it is, and which keys it has."""

    def __init__(self):
        self.keys, self.asked, self.name = [KEY], 0, None
        own = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                own.asked += 1
                about = {"issuer": own.name or own.url, "jwks_uri": f"{own.url}/keys"}
                body = {"keys": [key.as_dict(private=False) for key in own.keys]} if self.path == "/keys" else about
                content = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def token(self, key=KEY, header=None, **claims):
        """Return a token of this issuer, with some claims changed; None leaves one out."""
        now = int(time.time())
        said = {
            "iss": self.url,
            "aud": "curador",
            "sub": "ana@example.org",
            "exp": now + 600,
            "iat": now,
            "curador": "analyst:ana",
        }
        said = {name: value for name, value in {**said, **claims}.items() if value is not None}
        algorithm = {"EC": "ES256", "RSA": "RS256", "oct": "HS256"}[key.key_type]
        return jwt.encode(header or {"alg": algorithm, "kid": key.kid}, said, key, algorithms=["ES256", "RS256", "HS256"])


@pytest.fixture(scope="module")
def publisher():
    one = Publisher()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture(scope="module")
def service(tmp_path_factory, publisher):
    """A service that takes the issuer's tokens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "LONGEST_WAIT", 0.0)
        patch.setattr(oidc, "AGAIN_AFTER", 0.0)
        with serving(tmp_path_factory.mktemp("oidc"), issuer=Issuer(publisher.url, "curador", "curador")) as one:
            yield one


def ask(service, text):
    """Ask who one is with a token."""
    service.tokens["given"] = text
    return service.send("given", "GET", "/me")


@pytest.mark.parametrize(
    ("said", "role", "name"),
    [
        ("analyst:ana", "analyst", "ana"),
        ("owner", "owner", None),
        ("auditor", "auditor", None),
        (["x", "auditor"], "auditor", None),
    ],
)
def test_a_token_of_the_issuer_is_who_its_claim_says(service, publisher, said, role, name):
    """And it is listed as a token of ours, without what it could be compared with."""
    found = ask(service, publisher.token(curador=said)).json()
    assert (found["role"], found["name"]) == (role, name)
    assert any(one["id"] == found["token"] for one in tokens.list_tokens(service.service.state))


def test_other_tokens_are_nobody_s(service, publisher):
    """Another audience or issuer, expired, of nobody, not signed, signed by others or by a public key as a secret."""
    other = ECKey.generate_key("P-256", {"kid": "one"})
    secret = OctKey.import_key(json.dumps(KEY.as_dict(private=False)), {"kid": "one"})
    good = publisher.token()
    head, body, sign = good.split(".")
    bad = [
        publisher.token(aud="other"),
        publisher.token(iss="https://evil.example"),
        publisher.token(exp=int(time.time()) - 3600),
        publisher.token(exp=None),
        publisher.token(sub=None),
        publisher.token(curador=None),
        publisher.token(curador="analyst:nobody"),
        publisher.token(curador=["owner", "auditor"]),
        publisher.token(curador="Owner"),
        publisher.token(key=other),
        publisher.token(key=secret),
        f"{head}.{body}.",
        f"{head}.{body}.{sign[:-4]}AAAA",
        "eyJhbGciOiJub25lIn0." + body + ".",
        "a.b.c",
        "..",
    ]
    assert ask(service, good).status_code == 200
    for text in bad:
        assert ask(service, text).status_code == 401, text


def test_keys_that_are_new_are_fetched_and_a_wrong_issuer_is_not_believed(service, publisher, monkeypatch):
    """Rotation works without a restart; a document that names somebody else brings no key."""
    assert ask(service, publisher.token(key=NEXT)).status_code == 401
    monkeypatch.setattr(publisher, "name", "https://evil.example")
    monkeypatch.setattr(publisher, "keys", [NEXT])
    assert ask(service, publisher.token(key=NEXT)).status_code == 401
    monkeypatch.setattr(publisher, "name", None)
    assert ask(service, publisher.token(key=NEXT)).status_code == 200


def test_it_can_be_revoked(service, publisher):
    """And stays revoked although the issuer still vouches for it."""
    text = publisher.token(sub="bob@example.org", curador="analyst:bob")
    own = ask(service, text).json()["token"]
    assert service.send("owner", "DELETE", f"/tokens/{own}").json()["revoked"]
    assert ask(service, text).status_code == 401

"""People who log in elsewhere: tokens of an issuer of OpenID Connect, beside our own.

The issuer's discovery document and keys are fetched when a token first comes, and again when a key is not known, at most once
in a while. What a token says in one claim is who its holder is here: "owner", "auditor" or "analyst:NAME".

Claim   A token is let in only where its signature is one of the issuer's by an asymmetric algorithm, its issuer and audience
        are those that the owner said, and it has not ended. An id of it is kept as that of a token of ours, so that the owner
        sees it, can revoke it, and every later question asks whether it is in force.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from curador.server.tokens import Caller, find_by_id

if TYPE_CHECKING:
    from curador.server.state import ServiceState

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LONGEST: Final = 8_000
PATIENCE: Final = 5.0
AGAIN_AFTER: Final = 60.0
"""Seconds between two looks at an issuer's keys."""
LEEWAY: Final = 30
MOST_LASTING: Final = 24 * 3600
"""Seconds that such a token is in force here, whatever it says."""


@dataclass(slots=True)
class Issuer:
    """An issuer of OpenID Connect, and what its tokens must say."""

    url: str
    audience: str
    claim: str
    _keys: KeySet | None = None
    _looked: float = -AGAIN_AFTER
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, state: ServiceState, text: str) -> Caller | None:
        """Return who a token stands for; None of every other text. It may ask the issuer, so it is called in a thread."""
        claims = self._claims(text) if len(text) <= LONGEST else None
        who = None if claims is None else _who(claims.get(self.claim))
        if claims is None or who is None:
            return None
        role, name = who
        said = f"{self.url}\0{claims['sub']}\0{role}\0{name}\0{claims['exp']}"
        own = hashlib.sha256(said.encode()).hexdigest()[:16]
        found = find_by_id(state, own)
        if found is not None:
            return found
        _keep(state, Caller(own, role, name, min(int(claims["exp"]), int(time.time()) + MOST_LASTING)))
        return find_by_id(state, own)  # one that was revoked stays so

    def _claims(self, text: str) -> dict[str, Any] | None:
        for again in (False, True):
            keys = self._known_keys(again=again)
            if keys is None:
                return None
            try:
                claims = jwt.decode(text, keys, algorithms=list(ALGORITHMS)).claims
            except (JoseError, ValueError):
                continue
            return claims if self._holds(claims) else None
        return None

    def _holds(self, claims: dict[str, Any]) -> bool:
        wanted = jwt.JWTClaimsRegistry(
            leeway=LEEWAY,
            iss={"essential": True, "value": self.url},
            aud={"essential": True, "value": self.audience},
            exp={"essential": True},
            sub={"essential": True},
        )
        try:
            wanted.validate(claims)
        except (JoseError, ValueError, TypeError):
            return False
        return type(claims["exp"]) is int and isinstance(claims["sub"], str)

    def _known_keys(self, *, again: bool) -> KeySet | None:
        with self._lock:
            due = time.monotonic() - self._looked >= AGAIN_AFTER
            if (self._keys is None or again) and due:
                self._looked = time.monotonic()
                self._keys = _fetch_keys(self.url) or self._keys
            return self._keys


def _fetch_keys(url: str) -> KeySet | None:
    """Return the keys that an issuer publishes; None where it cannot be asked, or does not name itself so."""
    try:
        with httpx.Client(timeout=PATIENCE, follow_redirects=False, trust_env=False) as client:
            about = client.get(f"{url.rstrip('/')}/.well-known/openid-configuration").raise_for_status().json()
            if about.get("issuer") != url:
                return None
            return KeySet.import_key_set(client.get(about["jwks_uri"]).raise_for_status().json())
    except (httpx.HTTPError, httpx.InvalidURL, JoseError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _who(said: object) -> tuple[str, str | None] | None:
    """Return role and name that a claim says; where it is a list, the only one of it that says anything here."""
    if isinstance(said, list):
        found = [one for one in map(_who, said) if one is not None]
        return found[0] if len(found) == 1 else None
    if said in ("owner", "auditor"):
        return str(said), None
    if isinstance(said, str) and said.startswith("analyst:"):
        return "analyst", said.removeprefix("analyst:")
    return None


def _keep(state: ServiceState, caller: Caller) -> None:
    """Let a token of the issuer be found by its id; what it could be compared with fits nothing."""
    nothing = [secrets.token_bytes(32) for _ in range(4)]
    row = (
        caller.token_id,
        caller.role,
        caller.name,
        int(time.time()),
        caller.expires,
        None,
        None,
        0,
        "OpenID Connect",
        *nothing,
    )
    with state.writing() as connection:
        text = "INSERT OR IGNORE INTO token VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)"
        connection.execute(text, row)

"""What is said to `curador serve`, and what of it is refused before anything begins.

The supervisor imports this and little else, so that its processes begin at once: no curator, no engine.
"""

from __future__ import annotations

import ipaddress
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from curador.errors import InvalidParameter, require

if TYPE_CHECKING:
    from curador.server.guard import GuardSettings
    from curador.server.service import ServiceSettings

MOST_WORKERS: Final = 64


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Where and how a study is served.

    postgres_port  where clients of PostgreSQL connect (`curador.door`); None: nowhere
    behind_proxy  the address of a proxy that ends TLS: its word for the client's address is taken
    public_url    by which analysts reach it; its host may be said in requests
    when_ready    answers leave when they are ready although the study has no answer_every
    rate          requests a second of one token, in each process
    oidc_…        an issuer of OpenID Connect, what its tokens are for, and the claim that says who somebody is here
    """

    study: str
    host: str = "127.0.0.1"
    port: int = 8421
    workers: int = 2
    metrics_port: int | None = None
    postgres_port: int | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_proxy: str | None = None
    public_url: str | None = None
    when_ready: bool = False
    rate: float = 50.0
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_claim: str = "curador"

    def __post_init__(self) -> None:
        _require_port(self.port, "--port")
        if self.postgres_port is not None:
            _require_port(self.postgres_port, "--postgres-port")
        if self.metrics_port is not None:
            _require_port(self.metrics_port, "--metrics-port")
        require(1 <= self.workers <= MOST_WORKERS, "--workers", f"a whole number from 1 to {MOST_WORKERS}", self.workers)
        require(0 < self.rate <= 1e6, "--rate", "above 0 and at most a million", self.rate)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidParameter.must_be("--tls-cert", "given together with --tls-key", self.tls_cert or self.tls_key)
        for name, place in (("--tls-cert", self.tls_cert), ("--tls-key", self.tls_key)):
            require(place is None or Path(place).is_file(), name, "a file that can be read", place)
        if self.behind_proxy is not None and not _is_address(self.behind_proxy):
            raise InvalidParameter.must_be("--behind-proxy", "the address of the proxy", self.behind_proxy)
        if not is_loopback(self.host) and self.tls_cert is None and self.behind_proxy is None:
            hint = "give --tls-cert and --tls-key, or declare the proxy that ends TLS by --behind-proxy; or stay on 127.0.0.1"
            raise InvalidParameter.must_be("--host", "a loopback address where there is no TLS", self.host, hint)
        if self.postgres_port is not None and not is_loopback(self.host) and self.tls_cert is None:
            hint = "give --tls-cert and --tls-key: a proxy that ends TLS for HTTP does not for PostgreSQL"
            raise InvalidParameter.must_be("--postgres-port", "on a loopback address where there is no TLS", self.host, hint)
        if self.public_url is not None and urlsplit(self.public_url).scheme not in {"http", "https"}:
            raise InvalidParameter.must_be("--public-url", "a URL such as https://curador.example.org", self.public_url)
        if (self.oidc_issuer is None) != (self.oidc_audience is None):
            raise InvalidParameter.must_be("--oidc-issuer", "given together with --oidc-audience", self.oidc_issuer)

    @property
    def secure(self) -> bool:
        """Whether it is reached by TLS, ours or the proxy's."""
        return self.tls_cert is not None or (self.public_url or "").startswith("https://")

    @property
    def guard(self) -> GuardSettings:
        """What the guard must know."""
        from curador.server.guard import LOOPBACK, GuardSettings

        named = set(LOOPBACK)
        if not is_loopback(self.host) and _is_address(self.host) and not ipaddress.ip_address(self.host).is_unspecified:
            named.add(f"[{self.host}]" if ":" in self.host else self.host)
        if self.public_url is not None and urlsplit(self.public_url).hostname:
            named.add(str(urlsplit(self.public_url).hostname))
        return GuardSettings(hosts=frozenset(named), secure=self.secure)

    @property
    def service(self) -> ServiceSettings:
        """What the service must know."""
        from curador.server.service import ServiceSettings

        often = {"rate": self.rate, "burst": 4 * self.rate}
        if self.oidc_issuer is None or self.oidc_audience is None:
            return ServiceSettings(when_ready=self.when_ready, **often)
        from curador.server.oidc import Issuer

        issuer = Issuer(self.oidc_issuer, self.oidc_audience, self.oidc_claim)
        return ServiceSettings(when_ready=self.when_ready, issuer=issuer, **often)

    @property
    def url(self) -> str:
        """By which it is reached, as far as is known here."""
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert else 'http'}://{shown}:{self.port}"

    def to_json(self) -> str:
        """Return what a process of it is told."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ServeSettings:
        """Return what `to_json` said."""
        said = json.loads(text)
        return cls(**{one.name: said[one.name] for one in fields(cls)})


def is_loopback(host: str) -> bool:
    """Whether nobody on another machine can reach an address."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _require_port(port: int, name: str) -> None:
    require(type(port) is int and 0 <= port <= 65_535, name, "a whole number from 0 to 65535", port)

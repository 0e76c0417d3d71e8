"""Where a client's token comes from, and where it may go.

A token is somebody's whole share of a budget. It is never an argument of a command, since all users of a machine read those;
it is never shown, in no error and no repr; and it goes to one address only, by TLS wherever others could listen.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from curador.errors import InvalidParameter
from curador.study.values import Plain

VARIABLE = "CURADOR_TOKEN"
"""The environment's name for a token."""

_SHAPE = re.compile(r"[!-~]{8,8192}")
_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a service is, and the token that is meant for it alone."""

    url: str
    token: str = field(repr=False)


def address_of(url: str, token: str | None, token_file: str | os.PathLike[str] | None, *, plain_http: bool) -> ServiceAddress:
    """Return the address of a service with the token for it, or refuse; nothing is sent."""
    return ServiceAddress(_checked_url(url, plain_http=plain_http), _token(token, token_file))


def _checked_url(url: object, *, plain_http: bool) -> str:
    rule = "an address such as https://curador.example.org"
    if not isinstance(url, str) or not url.isprintable() or " " in url:
        raise InvalidParameter.must_be("url", rule, url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidParameter.must_be("url", rule, url) from None
    if parts.scheme not in {"https", "http"} or not host or port == 0:
        raise InvalidParameter.must_be("url", rule, url)
    if "@" in parts.netloc:  # what stands there may be a secret: it is not repeated
        raise InvalidParameter.must_be("url", "without a name or password in it", Plain("one with an @"))
    if parts.query or parts.fragment:
        raise InvalidParameter.must_be("url", "without a query or a fragment", url)
    if parts.scheme == "http" and not plain_http and not is_loopback(host):
        hint = "use https://, or say plain_http=True where nobody can listen (--plain-http on the command line)."
        raise InvalidParameter.must_be("url", "https beyond this machine, since a token goes with it", url, hint)
    return _without_slash(parts)


def _without_slash(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def is_loopback(host: str) -> bool:
    """Whether an address never leaves this machine; of names only localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(given: str | None, file: str | os.PathLike[str] | None) -> str:
    if given is not None and file is not None:
        raise InvalidParameter.must_be("token", "given once", Plain("token and token_file"))
    text, where = given, "token"
    if file is not None:
        text, where = _read_private(Path(file)), "token_file"
    elif given is None:
        text, where = os.environ.get(VARIABLE), VARIABLE
    if text is None:
        hint = f"say token=, token_file= or set {VARIABLE}; the service's owner makes one: curador token new."
        raise InvalidParameter.must_be("token", "given", Plain("none"), hint)
    if not isinstance(text, str) or not _SHAPE.fullmatch(text.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = "it is one word, such as curador_0123456789abcdef_…"
        raise InvalidParameter.must_be(where, "a token as it was shown", Plain("something else"), hint)
    return text.strip()


def _read_private(file: Path) -> str:
    """Read a token's file; one that others may read is refused, as its secret is out already."""
    try:
        if os.name == "posix" and file.stat().st_mode & _OTHERS:
            raise InvalidParameter.must_be("token_file", "readable by its owner alone", str(file), f"chmod 600 {file}")
        return file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter.must_be("token_file", "a file that can be read", str(file)) from None

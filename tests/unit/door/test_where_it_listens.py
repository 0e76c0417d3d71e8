"""Where the door may listen: beyond loopback only with TLS of its own."""

import pytest

from curador.door.run import tls_of
from curador.errors import InvalidParameter
from curador.server.serving import ServeSettings


def test_a_proxy_of_http_ends_no_tls_of_the_door():
    """The sentence says which option is missing."""
    with pytest.raises(
        InvalidParameter, match=r"(?s)--postgres-port must be on a loopback address.*--tls-cert and --tls-key"
    ):
        ServeSettings(study="study.toml", host="0.0.0.0", behind_proxy="10.0.0.7", postgres_port=5433)  # noqa: S104


def test_on_loopback_it_needs_none():
    """A proxy on the same machine is no reason to refuse."""
    settings = ServeSettings(study="study.toml", behind_proxy="127.0.0.1", postgres_port=5433)

    assert tls_of(settings) is None

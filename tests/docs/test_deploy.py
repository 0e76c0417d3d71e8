"""What `deploy/` ships is what the command line has, and what the programs that read it accept where they are found."""

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMMANDS = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
KNOWN = {
    "FROM",
    "RUN",
    "WORKDIR",
    "COPY",
    "USER",
    "ENV",
    "VOLUME",
    "EXPOSE",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
}
CLOSED = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "CapabilityBoundingSet": "",
    "RestrictSUIDSGID": "yes",
    "UMask": "0077",
    "LimitCORE": "0",
    "StateDirectoryMode": "0700",
    "SystemCallFilter": "@system-service",
}


def section_of(command):
    """The part of the command-line reference that is about one command."""
    found = re.search(rf"^#+ .*{command}.*?(?=^#+ |\Z)", COMMANDS, re.MULTILINE | re.DOTALL)
    return found.group(0) if found else ""


def options_in(text):
    return re.findall(r"(?<=\s)--[a-z][a-z-]+", text)


def unit():
    parser = configparser.RawConfigParser(strict=True, interpolation=None)
    parser.optionxform = str
    parser.read(DEPLOY / "curador.service", encoding="utf-8")
    return parser


def instructions():
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [line.split(None, 1) for line in joined.splitlines() if line.strip()]


def test_the_unit_is_closed_on_all_sides():
    """A user of its own, nothing of the system writable, no capabilities, no dumps."""
    service = unit()["Service"]

    assert {name: service[name] for name in CLOSED} == CLOSED
    assert service["User"] not in {"root", ""}
    assert service["KillSignal"] == "SIGTERM"


@pytest.mark.parametrize("file", ["curador.service", "Containerfile"])
def test_options_exist(file):
    """Every option that is said to `curador serve` is one that it has."""
    text = (DEPLOY / file).read_text(encoding="utf-8")
    said = options_in(text.split("serve study.toml", 1)[1].split("\n", 1)[0])
    known = section_of("serve")

    assert said
    assert [option for option in said if option not in known] == []


def test_an_unknown_option_would_be_seen():
    """The check can fail."""
    assert "--behind-proxies" not in section_of("serve")


def test_the_container_is_nobody():
    """Known instructions, a user without a name of the system, a lock with hashes, nothing fetched by address."""
    lines = instructions()
    kinds = [kind for kind, *_ in lines]

    assert set(kinds) <= KNOWN
    assert dict(lines)["USER"].split(":")[0].isdigit()
    assert kinds.index("USER") > max(place for place, kind in enumerate(kinds) if kind == "RUN")
    assert any("--require-hashes" in rest for kind, rest in lines if kind == "RUN")
    assert not any("http" in rest for kind, rest in lines if kind in {"RUN", "COPY"})
    for kind, rest in lines:
        if kind == "COPY":
            assert all((ROOT / source).exists() for source in rest.split()[:-1]), rest


def test_the_service_has_a_lock():
    """With hashes and without addresses, of the same versions as the tests run."""
    service, tested = ((ROOT / "requirements" / name).read_text(encoding="utf-8") for name in ("service.lock", "dev.lock"))
    versions = re.findall(r"^([\w.\[\]-]+==[^ ;\\]+)", service, re.MULTILINE)

    assert "://" not in service
    assert len(versions) > 20
    assert [one for one in versions if one not in tested] == []
    assert not any(one.startswith(("pytest==", "playwright==", "schemathesis==")) for one in versions)


def test_proxies_do_not_ask_twice():
    """Buffers, retries and addresses: what a proxy must not do with questions and events."""
    nginx = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")

    for line in (
        "proxy_buffering off;",
        "proxy_next_upstream off;",
        "proxy_max_temp_file_size 0;",
        "proxy_set_header X-Forwarded-For $remote_addr;",
        "client_max_body_size 64k;",
    ):
        assert line in nginx
    assert nginx.count("{") == nginx.count("}")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_reads_the_unit(tmp_path):
    """No line is unknown or wrong; the command itself is not installed here."""
    file = tmp_path / "curador.service"
    text = (DEPLOY / "curador.service").read_text(encoding="utf-8")
    file.write_text(text.replace("/opt/curador/bin/curador", shutil.which("true")), encoding="utf-8")
    out = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False, timeout=60)

    assert [line for line in out.stderr.splitlines() if "curador.service" in line] == []


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not here")
def test_nginx_reads_its_file(tmp_path):
    """With a certificate made for the test."""
    keys = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "1"]
    subprocess.run([*keys, "-keyout", tmp_path / "k.pem", "-out", tmp_path / "c.pem"], check=True, capture_output=True)
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    for there, here in (("fullchain.pem", "c.pem"), ("privkey.pem", "k.pem")):
        text = text.replace(f"/etc/ssl/curador/{there}", str(tmp_path / here))
    (tmp_path / "site.conf").write_text(text.replace("/var/log/nginx", str(tmp_path)), encoding="utf-8")
    folders = " ".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    inner = f"access_log off; {folders} include {tmp_path}/site.conf;"
    whole = f"pid {tmp_path}/pid; error_log {tmp_path}/e; events {{}} http {{ {inner} }}"
    (tmp_path / "nginx.conf").write_text(whole, encoding="utf-8")
    out = subprocess.run(["nginx", "-t", "-c", tmp_path / "nginx.conf"], capture_output=True, text=True, check=False)

    assert out.returncode == 0, out.stderr


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not here")
def test_caddy_reads_its_file(tmp_path):
    """As it is."""
    command = ["caddy", "adapt", "--validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
    out = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(tmp_path)})

    assert out.returncode == 0, out.stderr

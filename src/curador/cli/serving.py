"""`curador serve` and `curador token`: a study as a service, and who may come in."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from curador.server.state import ServiceState
    from curador.study.model import Study

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, e.g. study.toml.")]

tokens_app = typer.Typer(no_args_is_help=True, help="Make, list and revoke the tokens of a service.")


def add_serving(app: typer.Typer) -> None:
    """Give the application the verbs of a service."""
    app.command()(serve)
    tokens_app.command("new")(new)
    tokens_app.command("list")(list_all)
    tokens_app.command("revoke")(revoke)
    app.add_typer(tokens_app, name="token")


def serve(
    study: StudyFile,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0: any that is free.")] = 8421,
    workers: Annotated[int, typer.Option(help="Processes that answer requests.")] = 2,
    postgres_port: Annotated[int | None, typer.Option(help="Where clients of PostgreSQL connect.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Numbers for operators, on loopback.")] = None,
    tls_cert: Annotated[str | None, typer.Option(help="A certificate chain, PEM.")] = None,
    tls_key: Annotated[str | None, typer.Option(help="Its key, PEM.")] = None,
    behind_proxy: Annotated[str | None, typer.Option(metavar="ADDRESS", help="A proxy that ends TLS.")] = None,
    public_url: Annotated[str | None, typer.Option(help="By which analysts reach it.")] = None,
    answer_when_ready: Annotated[
        bool, typer.Option("--answer-when-ready", help="Do not wait for a tick: how long an answer takes then tells of rows.")
    ] = False,
    rate: Annotated[float, typer.Option(help="Requests a second of one token, in each process.")] = 50.0,
    oidc_issuer: Annotated[str | None, typer.Option(help="An issuer of OpenID Connect.")] = None,
    oidc_audience: Annotated[str | None, typer.Option(help="What its tokens must be for.")] = None,
    oidc_claim: Annotated[str, typer.Option(help='The claim that says "owner", "auditor" or "analyst:NAME".')] = "curador",
) -> None:
    """Serve a study over HTTP until it is stopped: analysts ask with tokens, and one ledger judges."""
    from curador.server.serving import ServeSettings
    from curador.server.supervise import Kind, Supervisor
    from curador.study.file import read_study

    settings = ServeSettings(
        study=str(study.absolute()),
        host=host,
        port=port,
        workers=workers,
        metrics_port=metrics_port,
        postgres_port=postgres_port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        behind_proxy=behind_proxy,
        public_url=public_url,
        when_ready=answer_when_ready,
        rate=rate,
        oidc_issuer=oidc_issuer,
        oidc_audience=oidc_audience,
        oidc_claim=oidc_claim,
    )
    deadline = float(read_study(study).engine.deadline)
    others = () if postgres_port is None else (Kind("door", _door(), settings.to_json()),)
    code = Supervisor(settings, others=others, told=_tell_url, deadline=deadline).run()
    if code:
        raise typer.Exit(code)


def _door() -> tuple[str, ...]:
    from curador.errors import InvalidParameter

    try:
        from curador.door.run import COMMAND
    except ImportError:
        hint = "pip install 'curador[door]'"
        raise InvalidParameter("--postgres-port needs the packages of the door.", hint=hint) from None
    return COMMAND


def _tell_url(url: str) -> None:
    print(f"curador serves {url}; stop with Ctrl-C", file=sys.stderr, flush=True)


def new(
    study: StudyFile,
    name: Annotated[str | None, typer.Argument(metavar="[ANALYST]", help="An analyst whom the study declares.")] = None,
    owner: Annotated[bool, typer.Option("--owner", help="A token of the owner.")] = False,
    auditor: Annotated[bool, typer.Option("--auditor", help="A token that reads the ledger and asks nothing.")] = False,
    expires: Annotated[str, typer.Option(help='When it ends: "90d", "12h" or "2w".')] = "90d",
    most_per_question: Annotated[str | None, typer.Option(help='The most that one question may cost: "5%".')] = None,
    most_per_day: Annotated[str | None, typer.Option(help="The most that the questions of a day may cost.")] = None,
    agent: Annotated[bool, typer.Option("--agent", help="For a program that nobody watches: it may not ask afresh.")] = False,
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
) -> None:
    """Make a token, and print it once: it is kept nowhere."""
    from curador.errors import InvalidParameter
    from curador.server.tokens import new_token

    if sum((owner, auditor, name is not None)) != 1:
        raise InvalidParameter("a token must be of an analyst, or --owner, or --auditor.")
    role = "owner" if owner else "auditor" if auditor else "analyst"
    declared, state = _opened(study)
    text, made = new_token(
        state,
        declared,
        role,
        name=name,
        expires=expires,
        most_per_question=most_per_question,
        most_per_day=most_per_day,
        agent=agent,
        note=note,
    )
    print(text)
    until = time.strftime("%Y-%m-%d %H:%M", time.gmtime(made.expires))
    print(f"token {made.token_id} of {name or role}, until {until} UTC; it is shown this once", file=sys.stderr)


def list_all(
    study: StudyFile, as_json: Annotated[bool, typer.Option("--json", help="Print plain values for a program.")] = False
) -> None:
    """List tokens, without what they are compared with."""
    from curador.server.tokens import list_tokens

    _, state = _opened(study)
    found = list_tokens(state)
    if as_json:
        print(json.dumps(found))
        return
    for token in found:
        until = time.strftime("%Y-%m-%d", time.gmtime(token["expires"]))
        words = "in force" if token["in_force"] else "revoked" if token["revoked"] else "expired"
        print(f"{token['id']}  {token['name'] or token['role']:<20}  until {until}  {words}  {token['note']}".rstrip())


def revoke(study: StudyFile, token: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")]) -> None:
    """End a token at once, with every session and stream that it opened."""
    from curador.errors import InvalidParameter
    from curador.server.tokens import revoke as end

    _, state = _opened(study)
    if not end(state, token):
        raise InvalidParameter.must_be("ID", "that of a token in force", token)
    print("revoked", file=sys.stderr)


def _opened(study: Path) -> tuple[Study, ServiceState]:
    from curador.curator.opening import existing_ledger
    from curador.server.state import ServiceState, state_of
    from curador.study.file import read_study

    declared = read_study(study)
    with existing_ledger(declared) as ledger:
        return declared, ServiceState(state_of(declared.ledger_path), ledger.id)

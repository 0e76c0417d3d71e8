"""The verbs of a study: init, check, survey, refresh, reopen, prepare, attach, writer, preview, ask, budget, log.

Beside them agent, and check-engine, which have no study file.

Results on standard output, all else on standard error. On a terminal `ask` shows the cost and asks before it spends.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from curador.cli.output import Format, check_output, unwritable, write_all
from curador.curator.options import CommandOption, QuestionKeywords, command_options
from curador.errors import InvalidParameter, InvalidStudy, UnreadableData
from curador.study.values import Plain

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from curador.client.remote import RemoteAsker
    from curador.curator.answer import Answer
    from curador.curator.budget import BudgetView
    from curador.curator.curator import Asker, Curator
    from curador.curator.sandbox import Sandbox
    from curador.ledger.ledger import Ledger
    from curador.study.model import Study

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, e.g. study.toml.")]
StudyOrNone = Annotated[str | None, typer.Argument(metavar="STUDY", help="The study file; none with --server.")]
Question = Annotated[str | None, typer.Argument(metavar="QUESTION", help='SQL; "-" reads it from standard input.')]
Analyst = Annotated[str | None, typer.Option("--as", help="Ask as this analyst; default: the owner.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print plain values for a program.")]
InSandbox = Annotated[
    bool, typer.Option("--sandbox", help="Made-up rows, a fresh budget: no private source is read, nothing is spent.")
]
Server = Annotated[str | None, typer.Option(metavar="URL", help="Ask a service instead of a study file.")]
TokenFile = Annotated[
    Path | None, typer.Option(help="With --server: a file with the token, yours alone; default: CURADOR_TOKEN.")
]
PlainHttp = Annotated[bool, typer.Option("--plain-http", help="With --server: let the token go unencrypted over a network.")]
NewLedger = Annotated[str | None, typer.Option(metavar="REASON", help="Start a new ledger where the data had one; say why.")]
Note = Annotated[str, typer.Option(help="A line for the ledger.")]


def add_commands(app: typer.Typer) -> None:
    """Give the application the verbs of a study."""
    asking = (with_question_options(verb) for verb in (preview, ask))
    for verb in (init, check, check_engine, survey, refresh, reopen, prepare, attach, writer, *asking, budget, log, agent):
        app.command()(verb)


# ---- the owner's ---------------------------------------------------------------------------------------------------


def init(
    tables: Annotated[
        list[str],
        typer.Argument(metavar="TABLE…", help='Parquet, CSV, a glob of one table, "book.xlsx#sheet" or "file.duckdb#table".'),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the draft there; default: standard output.")] = None,
    look: Annotated[
        bool, typer.Option("--look", help="Read rows, and propose formats and types by what nearly all values are.")
    ] = False,
) -> None:
    """Write the draft of a study file: every column with its physical type and a line to fill in. No row is read.

    Several tables are one draft, with references between them proposed by name.
    """
    from curador.cli.drafting import draft_of

    draft = draft_of(tables, out, look=look)
    if out is None:
        print(draft, end="")
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(draft)
    except FileExistsError:
        raise InvalidStudy.must_be("--out", "a file that does not exist yet", str(out)) from None
    except OSError as problem:
        raise unwritable("--out", out, problem) from None
    looked = " (rows were looked at)" if look else ""
    print(f"wrote {out}{looked}: fill in unit, budget and bounds, then run: curador check {out}", file=sys.stderr)


def check(
    study: StudyFile,
    facts: Annotated[
        bool | None,
        typer.Option("--facts/--no-facts", help="Facts about rows, for the owner's eyes only; by default on a terminal."),
    ] = None,
    as_owner: Annotated[bool, typer.Option("--as-owner", hidden=True, help="Deprecated: say --facts.")] = False,
) -> None:
    """Check a study, its files and its ledger, and say what was found, with a conclusion each. Nothing is made or mended."""
    from curador.cli.checking import check_study_file

    if as_owner:
        tell("curador: --as-owner is deprecated: say --facts")
    wanted = (as_owner or sys.stdout.isatty()) if facts is None else facts
    check_study_file(_read(study), facts=wanted, called=str(study))


def check_engine(
    url: Annotated[str, typer.Argument(metavar="URL", help="A server, such as postgresql://host/database.")],
) -> None:
    """Check that a server gives the integers of the embedded engine, on made-up tables that are made and removed there."""
    from curador.testing.engine_beside import check_engine_at
    from curador.testing.findings import NonconformingError

    try:
        print(check_engine_at(url))
    except NonconformingError as found:
        print("\n".join(found.broken), file=sys.stderr)
        raise typer.Exit(1) from None


def survey(
    study: StudyFile,
    columns: Annotated[
        bool, typer.Option("--columns", help="Measure values of columns instead, and propose lines for the study file.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Spend without asking.")] = False,
    new_ledger: NewLedger = None,
) -> None:
    """Find privately how many rows of one person count where nobody declared it: costs about 1 % of the budget, once.

    What is found holds for every question until the next survey.
    """
    with open_from_file(study, new_ledger) as curator:
        if not yes and sys.stdin.isatty() and not typer.confirm("a survey costs about 1 % of the budget: buy it?", err=True):
            print("nothing was spent", file=sys.stderr)
            raise typer.Exit(2)
        print(curator.survey(columns=columns))


def refresh(study: StudyFile, note: Note = "curador refresh") -> None:
    """Declare the data as they are now a new data version. Stored answers are of the old one; the budget stays the same."""
    from curador.curator.opening import refresh_study

    print(f"data version {refresh_study(_read(study), note, progress=tell)}")


def reopen(study: StudyFile, note: Note = "curador reopen") -> None:
    """Open a study to analysts again that engine failures had closed."""
    with _ledger(_read(study)) as ledger:
        ledger.reopen(note)
    print("the study is open to analysts", file=sys.stderr)


def attach(study: StudyFile, reason: Annotated[str, typer.Argument(help="Why; it becomes an entry of the ledger.")]) -> None:
    """Let this machine use a ledger that is kept on a server, for the first time. Every entry is read."""
    from curador.curator.opening import attach_study

    declared = _read(study)
    attach_study(declared, reason)
    print(f"this machine knows the ledger at {declared.server} now; next: curador prepare {study}", file=sys.stderr)


def writer(study: StudyFile) -> None:
    """Write to the ledger for all other processes of this user until it is stopped: they share one durable write."""
    import signal

    with _ledger(_read(study)) as ledger, ledger.write_for_others() as service:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: service.interrupt())
        print("writing for others; stop with Ctrl-C", file=sys.stderr, flush=True)
        service.serve()
    print("stopped: what was handed over is written", file=sys.stderr)


def prepare(
    study: StudyFile,
    drop: Annotated[bool, typer.Option("--drop", help="Remove the prepared copy, which holds sensitive data.")] = False,
) -> None:
    """Prepare the current data version for fast questions, or remove what was prepared."""
    from curador.curator.opening import drop_prepared, prepare_study

    declared = _read(study)
    if drop:
        print(drop_prepared(declared), file=sys.stderr)
    else:
        prepare_study(declared, progress=tell)


# ---- everybody's ---------------------------------------------------------------------------------------------------


def preview(
    study: StudyOrNone = None,
    question: Question = None,
    *,
    options: QuestionKeywords,
    analyst: Analyst = None,
    as_json: AsJson = False,
    sandbox: InSandbox = False,
    new_ledger: NewLedger = None,
    server: Server = None,
    token_file: TokenFile = None,
    plain_http: PlainHttp = False,
) -> None:
    """Say what a question would cost and how good its answer would be: spends nothing, reads no row."""
    where = Where(study, question, server, token_file, plain_http, analyst, new_ledger)
    with where.voice(sandbox=sandbox) as voice:
        found = voice.preview(_text(where.text), **options)
    _print(found, as_json=as_json)


def ask(
    study: StudyOrNone = None,
    question: Question = None,
    *,
    options: QuestionKeywords,
    analyst: Analyst = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Draw and pay again although it was answered before.")] = False,
    shape: Annotated[Format, typer.Option("--format", help="table, csv, json or parquet.")] = Format.TABLE,
    out: Annotated[Path | None, typer.Option(help="Write the answer there.")] = None,
    receipt: Annotated[Path | None, typer.Option(help="Write the receipt there, as JSON.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Spend without asking.")] = False,
    sandbox: InSandbox = False,
    new_ledger: NewLedger = None,
    server: Server = None,
    token_file: TokenFile = None,
    plain_http: PlainHttp = False,
) -> None:
    """Answer a question and charge it to the ledger; the same question again is free."""
    where = Where(study, question, server, token_file, plain_http, analyst, new_ledger)
    if sandbox and receipt is not None:
        raise InvalidParameter.must_be("--receipt", "absent with --sandbox: made-up answers have none", str(receipt))
    check_output(shape, out, receipt)
    try:
        text = _text(where.text)
        with where.voice(sandbox=sandbox) as voice:
            if not yes and not sandbox and sys.stdin.isatty() and not _ask_for_consent(voice, text, options, fresh=fresh):
                print("nothing was spent", file=sys.stderr)
                raise typer.Exit(2)
            answer = voice.ask(text, fresh=fresh, **options)
            left = voice.budget
        write_all(answer, shape, out, receipt)
    except KeyboardInterrupt as stop:  # what it says is what the ledger knows; where it says nothing, nor do we
        print(str(stop) or "interrupted", file=sys.stderr)
        raise typer.Exit(130) from None
    _tell_cost(answer, left)


def _tell_cost(answer: Answer, left: BudgetView) -> None:
    from curador.ledger.amounts import amounts_text

    amount, rest = amounts_text(answer.cost, pure=left.pure, up=True), amounts_text(left.left, pure=left.pure, up=False)
    if answer.made_up:
        print(f"it would cost {amount}, and leave {rest} of a whole budget; nothing was spent", file=sys.stderr)
        return
    cost = "answered before: free" if answer.stored else f"cost {amount}"
    print(f"{cost}; left {rest}", file=sys.stderr)


def budget(
    study: StudyOrNone = None,
    by: Annotated[str | None, typer.Option(metavar="analyst", help='"analyst": one line for each who asks.')] = None,
    analyst: Analyst = None,
    as_json: AsJson = False,
    server: Server = None,
    token_file: TokenFile = None,
    plain_http: PlainHttp = False,
) -> None:
    """Say what may be spent, what was, and what is left."""
    from curador.curator.accounts import budget_view

    if by not in {None, "analyst"}:
        raise InvalidParameter.must_be("--by", '"analyst"', by)
    where = Where(study, None, server, token_file, plain_http, analyst, asks=False)
    if server is not None:
        with where.remote() as voice:
            found = voice.budget
    else:
        declared = _read(where.file)
        with _ledger(declared) as ledger:
            found = budget_view(ledger, declared, _known_name(declared, analyst))
    if as_json:
        _print(found, as_json=True)
    else:
        _rich(found.by_analyst() if by else found)


def log(
    study: StudyOrNone = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read every entry and sum again first.")] = False,
    analyst: Analyst = None,
    as_json: AsJson = False,
    server: Server = None,
    token_file: TokenFile = None,
    plain_http: PlainHttp = False,
) -> None:
    """Print the ledger: every charge, failure, stored answer given again, and act of the owner."""
    from curador.curator.accounts import log_lines
    from curador.curator.budget import log_table

    where = Where(study, None, server, token_file, plain_http, analyst, asks=False)
    if server is not None:
        if verify:
            rule = "absent with --server: the service verifies its own ledger, for owner and auditor"
            raise InvalidParameter.must_be("--verify", rule, Plain("given"))
        with where.remote() as voice:
            lines = voice.log()
    else:
        declared = _read(where.file)
        with _ledger(declared) as ledger:
            if verify:
                ledger.verify()
                print("the chain, the sums and the witness agree", file=sys.stderr)
            lines = log_lines(ledger, _known_name(declared, analyst))
    if as_json:
        print(json.dumps(lines, ensure_ascii=False))
    else:
        _rich(log_table(lines))


def agent(
    server: Annotated[str, typer.Option(metavar="URL", help="The service.")],
    token_file: TokenFile = None,
    plain_http: PlainHttp = False,
) -> None:
    """Let an agent that talks to this process ask a service: a bridge with a token, without any file of a study."""
    import anyio

    from curador.client.bridge import Bridge
    from curador.client.token import address_of

    anyio.run(Bridge(address_of(server, None, token_file, plain_http=plain_http)).run)


# ---- where a study is ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Where:
    """A study file here, or a service elsewhere: never both. With --server the first word is the question."""

    first: str | None
    second: str | None
    server: str | None
    token_file: Path | None
    plain_http: bool
    analyst: str | None = None
    new_ledger: str | None = None
    asks: bool = True

    def __post_init__(self) -> None:
        if self.server is None:
            self._require("STUDY", self.first)
            if self.asks:
                self._require("QUESTION", self.second)
            if self.token_file is not None or self.plain_http:
                raise InvalidParameter.must_be("--token-file", "given together with --server", Plain("alone"))
            return
        if self.asks:
            self._require("QUESTION", self.first)
        given = self.second if self.asks else self.first
        for name, value in (("STUDY", given), ("--as", self.analyst), ("--new-ledger", self.new_ledger)):
            if value is not None:
                who = "absent with --server: the token says who asks, and the service has the study"
                raise InvalidParameter.must_be(name, who, value)

    @staticmethod
    def _require(name: str, value: str | None) -> None:
        if value is None:
            raise InvalidParameter.must_be(name, "given", Plain("nothing"), "see --help")

    @property
    def file(self) -> Path:
        """The study file."""
        return Path(self.first or "")

    @property
    def text(self) -> str:
        """The question."""
        return (self.second if self.server is None else self.first) or ""

    def remote(self) -> RemoteAsker:
        """Return who asks the service."""
        from curador.client.remote import connect

        tells = tell if sys.stderr.isatty() else None
        return connect(self.server or "", token_file=self.token_file, plain_http=self.plain_http, progress=tells)

    @contextlib.contextmanager
    def voice(self, *, sandbox: bool) -> Generator[Asker | RemoteAsker]:
        """Open it, and give who asks."""
        if self.server is not None:
            with self.remote() as asker:
                yield asker.sandbox if sandbox else asker
            return
        with _open_either(self.file, self.new_ledger, self.analyst, sandbox=sandbox) as curator:
            yield voice_of(curator, self.analyst)


# ---- what they share -----------------------------------------------------------------------------------------------


def _read(study: Path) -> Study:
    from curador.study.file import read_study

    return read_study(study)


def _ledger(study: Study) -> Ledger:
    from curador.curator.opening import existing_ledger

    return existing_ledger(study)


def open_from_file(study: Path, new_ledger: str | None = None, analyst: str | None = None) -> Curator:
    """Open the study of a file. What only rows can show is told to the owner; an analyst gets the same sentence always."""
    from curador.curator.curator import open_study

    try:
        return open_study(_read(study), new_ledger=new_ledger, progress=tell)
    except UnreadableData:
        if analyst is None:
            raise
        raise InvalidStudy("the study is not ready to be asked.", hint="its owner runs `curador prepare`") from None


def _open_either(study: Path, new_ledger: str | None, analyst: str | None, *, sandbox: bool) -> Curator | Sandbox:
    """Open the study of a file, or its sandbox, which is said before anything else."""
    if not sandbox:
        return open_from_file(study, new_ledger, analyst)
    from curador.curator.sandbox import open_sandbox

    if new_ledger is not None:
        raise InvalidParameter.must_be("--new-ledger", "absent with --sandbox, which has a ledger of its own", new_ledger)
    tell("sandbox: made-up rows and a fresh budget; no private source is read, nothing is spent")
    return open_sandbox(study)


def voice_of(curator: Curator | Sandbox, analyst: str | None) -> Asker:
    """Return who asks: the analyst of this name, else the owner."""
    return curator if analyst is None else curator.analyst(analyst)


def _known_name(study: Study, analyst: str | None) -> str | None:
    from curador.curator.curator import known_analyst

    return None if analyst is None else known_analyst(study, analyst).name


def _text(question: str) -> str:
    return sys.stdin.read() if question == "-" else question


def tell(line: str) -> None:
    """Say how far something has come, where it is no result."""
    print(line, file=sys.stderr, flush=True)


def with_question_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Return the verb with an option of the command line for each of `QuestionOptions`, in place of its `options`."""
    hints = get_type_hints(verb, include_extras=True)
    known = {name: (default, line) for name, default, line in command_options()}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        if parameter.name != "options":
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
            continue
        parameters += [
            inspect.Parameter(
                name,
                parameter.kind,
                default=None if line.reads in _REPEATED else default,
                annotation=_annotation(name, line),
            )
            for name, (default, line) in known.items()
        ]

    def command(**given: Any) -> None:
        said = {name: given.pop(name) for name in known}
        for name, (_, line) in known.items():
            if line.reads in _REPEATED:
                said[name] = _REPEATED[line.reads](line.called or f"--{name}", said[name])
        verb(**given, options=said)

    command.__name__, command.__doc__ = verb.__name__, verb.__doc__
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer makes a command of
    return command


def _annotation(name: str, line: CommandOption) -> Any:
    kind: Any = list[str] | None if line.reads in _REPEATED else {"text": str | None, "flag": bool}[line.reads]
    called = line.called or f"--{name.replace('_', '-')}"
    return Annotated[kind, typer.Option(called, help=line.help)]


def _pairs(option: str, given: list[str] | None) -> dict[str, str] | None:
    """Read n=50 m=3; the last sign = counts, as a name may hold one."""
    if not given:
        return None
    found: dict[str, str] = {}
    for pair in given:
        name, sign, value = pair.rpartition("=")
        if not sign or not name.strip() or name.strip() in found:
            raise InvalidParameter.must_be(option, "a column and a number, such as n=50, each column once", pair)
        found[name.strip()] = value.strip()
    return found


def _caps(option: str, given: list[str] | None) -> dict[str, int] | str | None:
    """Read rows=5 groups=2, or one word by itself; which names and words there are is known where caps act."""
    if given and len(given) == 1 and "=" not in given[0]:
        return given[0].strip()
    rule = "names with whole numbers, such as rows=5, each once; or one word: find, prepared"
    found: dict[str, int] = {}
    for cap in given or []:
        name, _, value = (part.strip() for part in cap.partition("="))
        if not name or name in found or not (value.isascii() and value.isdecimal() and len(value) <= _DIGITS):
            raise InvalidParameter.must_be(option, rule, cap)
        found[name] = int(value)
    return found or None


def _ranges(option: str, given: list[str] | None) -> dict[str, tuple[str, str]] | None:
    """Read mean=0..100; the last sign = counts, as a name may hold one."""
    found: dict[str, tuple[str, str]] = {}
    for said in given or []:
        name, _, ends = said.rpartition("=")
        low, dots, high = (part.strip() for part in ends.partition(".."))
        if not name.strip() or not low or not dots or not high or name.strip() in found:
            raise InvalidParameter.must_be(option, "a column and two ends, such as mean=0..100, each column once", said)
        found[name.strip()] = low, high
    return found or None


_DIGITS = 18
_REPEATED: dict[str, Callable[[str, list[str] | None], Any]] = {"pairs": _pairs, "caps": _caps, "ranges": _ranges}
"""Options that are repeated, and how what was said is read."""


def _ask_for_consent(voice: Asker | RemoteAsker, question: str, options: QuestionKeywords, *, fresh: bool) -> bool:
    """Show the cost and ask; a stored answer is free and needs no yes."""
    from rich.console import Console

    found = voice.preview(question, **options)
    if found.stored and not fresh:
        return True
    Console(stderr=True, highlight=False).print(found)
    print("Spend it? [y/N] ", end="", file=sys.stderr, flush=True)  # a prompt of input() would be on standard output
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _rich(what: Any) -> None:
    from rich.console import Console

    Console(file=sys.stdout, width=None if sys.stdout.isatty() else 112, highlight=False).print(what)


def _print(what: Any, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(what.to_dict(), ensure_ascii=False, allow_nan=False))
    else:
        _rich(what)

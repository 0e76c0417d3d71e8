"""Make a folder of samples of everything that curador stores: `python tests/compat/make_samples.py v5`.

Run once for each version of any stored format, by the code that introduces it, and never again: a folder that exists is
refused. What is drawn (noise, ids, keys, times) is drawn afresh; tables, questions and parameters are fixed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import sample_inputs as given

import curador as cu
from curador import learn, local
from curador.errors import Failed
from curador.ledger.amounts import Amounts
from curador.ledger.chain import ChainReplay
from curador.ledger.checkpoint import keep, make_checkpoint
from curador.ledger.entry import Request
from curador.ledger.ledger import Ledger
from curador.ledger.pointer import write_pointer
from curador.ledger.register import Register
from curador.privacy.rules import to_record
from curador.study.file import read_study
from curador.study.model import digested_meaning

HERE = Path(__file__).parent


def main(name: str) -> None:
    """Make every sample in a new folder, or a report alone."""
    if name.startswith("reports/"):
        make_report_of(HERE / name)
        return
    folder = HERE / name
    folder.mkdir()  # FileExistsError: what was stored once is never written again
    make_losses(folder)
    make_studies(folder)
    make_questions(folder)
    make_ledger(folder, "clinic")
    make_ledger(folder, "pure")
    make_register(folder)
    make_pointer(folder)
    make_ledger(folder, "surveyed")
    make_models(folder)
    make_local(folder)
    seal(folder)


def make_report_of(path: Path) -> None:
    """A report of a study that was surveyed and asked, with an audit on record; the places are of no machine."""
    if path.exists():
        raise FileExistsError(path)
    own = Path(tempfile.mkdtemp())
    os.environ["CURADOR_REGISTER"] = str(own / "register")
    for table in given.READ["surveyed"]:
        (own / table).write_text(given.TABLES[table], encoding="utf-8")
    (own / "surveyed.toml").write_text(given.STUDIES["surveyed.toml"], encoding="utf-8")
    with cu.open(own / "surveyed.toml") as curator:
        for who, text, options in given.ASKED["surveyed"]:
            (curator if who is None else curator.analyst(who)).ask(text, **options)
        audit = {**given.AUDIT, "settings": {"fingerprint of the study": curator.study.digest, "data version": "1"}}
        text = curator.report(audit=audit).to_json()
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.replace(str(own), "/srv/surveyed"), encoding="ascii")
    line = f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
    with (HERE / "reports.sha256").open("a", encoding="ascii") as sealed:
        sealed.write(line)


def seal(folder: Path) -> None:
    """Write the digest of every file beside the folder: from now on nothing in it changes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder.parent / f"{folder.name}.sha256").write_text("".join(lines), encoding="utf-8")


def put(path: Path, body: object) -> None:
    """Write JSON for people to read; an inner text that is compared letter by letter is a JSON string."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# ---- losses, studies, questions -----------------------------------------------------------------------------------------


def make_losses(folder: Path) -> None:
    """The record of every kind, as the text that its order gives it."""
    put(folder / "losses.json", {name: json.dumps(to_record(loss)) for name, loss in given.losses().items()})


def make_studies(folder: Path) -> None:
    """Study files with the tables beside them; the fingerprint of each, and what it is taken of."""
    for name, text in {**given.STUDIES, **given.TABLES}.items():
        path = folder / "studies" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    studies = {name: read_study(folder / "studies" / name) for name in given.STUDIES}
    put(
        folder / "digests.json",
        {name: {"digest": one.digest, "meaning": digested_meaning(one)} for name, one in studies.items()},
    )


def make_questions(folder: Path) -> None:
    """Questions with their canonical texts, digests, keys and the records of what they lose."""
    rows = []
    for study, text, options in given.QUESTIONS:
        ready = given.priced(read_study(folder / "studies" / study), text, options)
        rows.append(
            {
                "study": study,
                "question": text,
                "options": options,
                "key": ready.key,
                "plan": ready.plan_digest,
                "texts": [text for text, _ in ready.identities],
                "losses": [json.dumps(one) for one in ready.losses],
            }
        )
    put(folder / "questions.json", rows)


# ---- a ledger -----------------------------------------------------------------------------------------------------------


def make_ledger(folder: Path, name: str) -> None:
    """A ledger with an entry of every kind, its witness, its stored answers, its receipts and what it was asked."""
    own = folder / "ledgers" / name
    own.mkdir(parents=True)
    os.environ["CURADOR_REGISTER"] = str(Path(tempfile.mkdtemp()) / "register")  # of nobody: samples have equal tables
    for table in given.READ[name]:
        (own / table).write_text(given.TABLES[table], encoding="utf-8")
    (own / f"{name}.toml").write_text(given.STUDIES[f"{name}.toml"], encoding="utf-8")
    asked: list[dict[str, object]] = []
    with cu.open(own / f"{name}.toml") as curator:
        if name == "clinic":
            first_version(curator)
        for who, text, options in given.ASKED[name]:
            ask(own, curator, asked, who, text, options)
        if name == "clinic":
            fit(own, curator, asked)
        give_again(curator, *given.ASKED[name][0])
        settle_in_other_ways(curator)
        owners_acts(curator.ledger)
        unsettled(curator.ledger)
        entries = list(curator.ledger.entries())
        with curator.ledger._store.reading() as page:  # noqa: SLF001 -- what is stored is looked at as it is
            replay, rows = ChainReplay(), list(page.all_rows())
        replay.read(rows)
    put(own / "asked.json", asked)
    (own / "entries.jsonl").write_text("".join(f"{row.body}\n" for row in rows), encoding="utf-8")
    keep(own / "checkpoint", make_checkpoint(replay, file=(1, 2), witness=Path(f"{name}.ledger.head")))
    assert {entry.kind.value for entry in entries} >= given.KINDS[name]
    tidy(own / f"{name}.ledger.prepared")
    for marker in own.glob(".curador-*"):  # no place of the machine that made the samples
        marker.write_text(marker.read_text(encoding="ascii").replace(str(own), f"/srv/{name}"), encoding="ascii")


def first_version(curator: cu.Curator) -> None:
    """One answer on a data version that is no longer the current one."""
    curator.ask("SELECT COUNT(*) AS n FROM visits", spend="1%")
    curator.refresh("the second month arrived")


def ask(own: Path, curator: cu.Curator, asked: list, who: str | None, text: str, options: dict[str, object]) -> None:
    """Ask, and keep the receipt beside what was answered."""
    asker = curator if who is None else curator.analyst(who)
    answer = asker.ask(text, **options)
    place = f"receipts/{len(asked)}.json"
    (own / "receipts").mkdir(exist_ok=True)
    (own / place).write_text(answer.receipt.to_json(), encoding="utf-8")
    rows = {"analyst": who, "question": text, "options": options, "receipt": place}
    asked.append({**rows, "served": answer.stored, "answer": answer.receipt["answer_digest"]})


def fit(own: Path, curator: cu.Curator, asked: list) -> None:
    """Fit a model through the ledger, twice: the second time it is served."""
    for _ in range(2):
        model = learn.PrivateLinearRegression(**given.FIT).fit(curator.rows("visits", columns=["age", "spent"]), "spent")
        place = f"receipts/{len(asked)}.json"
        (own / place).write_text(json.dumps(model.receipt_, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        coefficients = [*model.coef_.tolist(), float(model.intercept_)]
        asked.append({"fit": given.FIT, "receipt": place, "coefficients": [one.hex() for one in coefficients]})


def give_again(curator: cu.Curator, who: str | None, text: str, options: dict[str, object]) -> None:
    """An answer that was given several times again on one day: one line with a number. And a digest of prepared rows."""
    asker = curator if who is None else curator.analyst(who)
    for _ in range(3):
        asker.ask(text, **options)
    ledger = curator.ledger
    ledger.settle_digest("another study", ledger.data_version, "f" * 64)  # no copy of this one: keys are kept apart


def settle_in_other_ways(curator: cu.Curator) -> None:
    """A charge whose engine failed, the study opened again, and a charge that was given back."""
    engine = curator._session.engine  # noqa: SLF001 -- a failure is made where one would happen
    tally = engine.tally

    def broken(_: object) -> object:
        message = "the disk went away"
        raise OSError(message)

    engine.tally = broken
    with contextlib.suppress(Failed):
        curator.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 31", spend="1%")
    engine.tally = tally
    curator.reopen("the disk is back")
    ledger = curator.ledger
    ledger.void(ledger.reserve(charge(ledger, "a" * 64, "never run")))


def owners_acts(ledger: Ledger) -> None:
    """A survey that holds, declarations that changed, and another study that spends from the same ledger."""
    bought = next(entry for entry in ledger.entries() if entry.kind == "committed" and entry.analyst is None)
    ledger.survey(bought, {"caps": {"visits": {"rows": 64}}}, note="the first survey")
    ledger.declare(given.DECLARED, note="tables.visits.caps.rows: 10 → 20", study_digest="e" * 64)
    ledger.join(given.JOINED, note="another study over the same rows")


def unsettled(ledger: Ledger) -> None:
    """A charge of a process that was killed: it stays open, and spent."""
    ledger.reserve(charge(ledger, "b" * 64, "killed"))


def charge(ledger: Ledger, key: str, question: str) -> Request:
    """Return a small charge."""
    small = Fraction(1, 10**6)
    pure = ledger.limits.kind == "pure"
    loss = cu.losses.Pure(epsilon=small) if pure else cu.losses.Concentrated(rho=small)
    return Request(
        amounts=Amounts(epsilon=small) if pure else Amounts(rho=small),
        losses=(to_record(loss),),
        study_digest="c" * 64,
        data_version=ledger.data_version,
        question_key=key,
        question=question,
        plan_digest="d" * 64,
        adjacency=ledger.limits.adjacency,
        tables=("visits",),
        analyst="ana",
        share=Fraction(1, 5),
    )


def tidy(prepared: Path) -> None:
    """Keep of what was prepared what cannot be made again: its key, and what it was made from."""
    for one in prepared.iterdir():
        if one.name not in {"key", "manifest.json"}:
            shutil.rmtree(one) if one.is_dir() else one.unlink()


def make_register(folder: Path) -> None:
    """A register with two ledgers over one data set, a table of a database file and a source that is no file."""
    with Register(folder / "register") as register, register.deciding():
        for name, sources in given.registered().items():
            register.enter(name, Path(f"/srv/shop/{name}.ledger"), name, sources)


def make_pointer(folder: Path) -> None:
    """The file of a ledger that is kept on a server."""
    write_pointer(folder / "pointer.ledger", given.SERVER, "0" * 32)


# ---- models and local protocols -----------------------------------------------------------------------------------------


def make_models(folder: Path) -> None:
    """A file of every estimator, fitted to tables that are the same every time with noise that is not."""
    (folder / "models").mkdir()
    for name, (estimator, data) in given.models().items():
        estimator.fit(*data).save(folder / "models" / f"{name}.json")


def make_local(folder: Path) -> None:
    """A client of every protocol, the protocol itself, some reports and what they add up to."""
    rows = {}
    for name, (protocol, values) in given.protocols().items():
        client = protocol.client()
        reports = [client.report(value) for value in values]
        kept = client.state() if hasattr(client, "state") else None
        sent = [one.hex() if isinstance(one, bytes) else one for one in reports]
        numbers = given.said(protocol.collector().add(reports).estimate())
        rows[name] = {
            "protocol": local.to_json(protocol),
            "client": client.to_json(),
            "state": kept,
            "reports": sent,
            "estimate": numbers,
        }
        for ending in ("arrow", "parquet"):
            path = folder / "reports" / f"{name}.{ending}"
            path.parent.mkdir(exist_ok=True)
            local.write_reports(protocol, reports, path)
    put(folder / "local.json", rows)


if __name__ == "__main__":
    main(*sys.argv[1:])

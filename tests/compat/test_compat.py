"""What was stored once is read for ever: samples of every version are read, verified and derived again, letter by letter.

A folder `v<n>` was made by the code that introduced a version of some format and is never changed. A test that fails here
says that somebody's ledger, receipt or model would not be understood any more, or that a paid answer would be charged again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import zlib
from pathlib import Path

import numpy as np
import pytest
import sample_inputs as given

import curador as cu
from curador import learn, local
from curador.curator.finding import split_parts
from curador.curator.report.record import StudyReport
from curador.engines.base import PrivateSource
from curador.learn.model_file import from_json, to_json
from curador.ledger import checkpoint
from curador.ledger.chain import ChainReplay
from curador.ledger.entry import Entry, EntryKind, row_of, seal
from curador.ledger.ledger import Ledger
from curador.ledger.markers import marked_ledgers
from curador.ledger.pointer import read_pointer
from curador.ledger.register import Register, SeenSource
from curador.ledger.witness import SLOT, read_slot, recall
from curador.local import client as devices
from curador.local.protocol import Reporting
from curador.plan.counting import Steps
from curador.privacy import losses
from curador.privacy.loss import Loss
from curador.privacy.losses import loss_from_record
from curador.privacy.rules import to_record
from curador.study.file import read_study
from curador.study.model import digested_meaning

HERE = Path(__file__).parent
BEFORE_SLOTS = {"v0", "v1", "v2", "v3"}
VERSIONS = sorted(one for one in HERE.iterdir() if one.is_dir() and one.name.startswith("v"))


def samples(pattern):
    """Return every sample of a kind, of all versions, with names for people."""
    found = [
        pytest.param(path, id=str(path.relative_to(HERE)), marks=marks_of(version))
        for version in VERSIONS
        for path in sorted(version.glob(pattern))
    ]
    assert found, pattern
    return pytest.mark.parametrize("path", found)


def marks_of(version):
    """`make check` reads the oldest and the newest samples, `make test` all."""
    return () if version in (VERSIONS[0], VERSIONS[-1]) else (pytest.mark.slow,)


def loaded(path):
    return json.loads(path.read_text(encoding="utf-8"))


def cases(pattern):
    """Return the cases inside JSON samples: (path, name or place, case)."""
    found = []
    for version in VERSIONS:
        for path in sorted(version.glob(pattern)):
            body = loaded(path)
            rows = body.items() if isinstance(body, dict) else enumerate(body)
            marks = marks_of(version)
            found += [pytest.param(path, name, case, id=f"{path.parent.name}-{name}", marks=marks) for name, case in rows]
    assert found, pattern
    return pytest.mark.parametrize(("path", "name", "case"), found)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_samples_are_what_they_were(version):
    """Nothing in a folder is changed, removed or added; a new version has a folder of its own."""
    lines = (HERE / f"{version.name}.sha256").read_text(encoding="utf-8").splitlines()
    said = {name: digest for digest, name in (line.split("  ") for line in lines)}
    files = [path for path in version.rglob("*") if path.is_file()]

    assert {path.relative_to(version).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files} == said


# ---- losses -------------------------------------------------------------------------------------------------------------


@cases("losses.json")
def test_a_stored_loss_is_read_and_written_as_it_was(path, name, case):
    """Also the order of its fields: receipts are files, and parts of a sum are sorted by their texts."""
    loss = loss_from_record(json.loads(case))

    assert json.dumps(to_record(loss)) == case
    assert loss == given.losses()[name], path


def test_every_kind_of_loss_has_a_sample():
    """A kind without one has nothing that says when it cannot be read any more."""
    own = {name for name, one in vars(losses).items() if isinstance(one, type) and issubclass(one, Loss) and name[0] != "_"}
    kinds = {json.loads(one)["kind"] for one in loaded(VERSIONS[-1] / "losses.json").values()}

    assert kinds == {*own, "Composed"} - {"Loss"}


# ---- studies and questions ----------------------------------------------------------------------------------------------


@cases("digests.json")
def test_a_study_keeps_its_fingerprint(path, name, case):
    """Another one would begin all its questions anew."""
    study = read_study(path.parent / "studies" / name)

    assert digested_meaning(study) == case["meaning"]
    assert study.digest == case["digest"]


@cases("questions.json")
def test_a_question_keeps_its_text_and_its_key(path, name, case):
    """Another key is another question: an answer that was paid for would be charged again."""
    study = read_study(path.parent / "studies" / case["study"])
    older = path.parent.name in {"v0", "v1", "v2"}  # before quantiles' ends were tested: their keys still find answers
    ready = given.priced(study, case["question"], case["options"], older=older)

    assert [text for text, _ in ready.identities] == case["texts"], name
    assert ready.plan_digest == case["plan"]
    assert ready.key == case["key"]
    assert [json.dumps(one) for one in ready.losses] == case["losses"]


# ---- ledgers ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def copied(path, tmp_path):
    """A copy of a ledger's folder, private as the ledger itself makes it: samples are read, never written."""
    folder = tmp_path / path.name
    shutil.copytree(path, folder)
    prepared = folder / f"{path.name}.ledger.prepared"
    prepared.chmod(0o700)
    for one in (*prepared.iterdir(), folder / f"{path.name}.ledger", folder / f"{path.name}.ledger.head"):
        one.chmod(0o600)
    return folder


def texts_of(path):
    return (path / "entries.jsonl").read_text(encoding="utf-8").splitlines()


@samples("ledgers/*")
def test_entries_are_read_and_written_as_they_were(path):
    """Every kind of entry, its hash, and what they all add up to."""
    texts = texts_of(path)
    entries = [Entry.from_text(text) for text in texts]
    replay = ChainReplay()
    replay.read(row_of(entry, text) for entry, text in zip(entries, texts, strict=True))

    assert [seal(entry)[1] for entry in entries] == texts
    since = given.KINDS_SINCE_2 if path.parts[-3] not in {"v0", "v1"} else set()
    assert {entry.kind.value for entry in entries} >= given.KINDS[path.name] | since
    for entry in entries:
        assert [to_record(loss_from_record(one)) for one in entry.losses] == list(entry.losses)


@samples("first-entry-without-owners.json")
def test_a_ledger_from_before_owners_were_kept_is_read(path):
    """Its limits say nothing of who owns which table; made by hand from what is read so."""
    text = path.read_text(encoding="utf-8").rstrip("\n")
    entry = Entry.from_text(text)
    replay = ChainReplay()
    replay.read([row_of(entry, text)])

    assert seal(entry)[1] == text
    assert replay.limits is not None
    assert replay.limits.owners == ()


def test_every_kind_of_entry_has_a_sample():
    """All kinds that the ledger knows."""
    kinds = {Entry.from_text(text).kind for path in VERSIONS[-1].glob("ledgers/*") for text in texts_of(path)}

    assert kinds == set(EntryKind)


@samples("ledgers/*")
def test_a_ledger_opens_and_verifies(path, copied):
    """Chain, sums, stored answers and witness are those that were written."""
    study = read_study(copied / f"{path.name}.toml")
    own = {"budget": study.budget, "adjacency": study.adjacency, "unit": study.unit_name, "owners": study.owners}
    with Ledger.open(study.ledger_path, study_name=study.name, folder=copied, **own) as ledger:
        ledger.verify()
        entries = list(ledger.entries())

        assert [seal(entry)[1] for entry in entries] == texts_of(path)
        assert ledger.head == (entries[-1].sequence, entries[-1].hash)
        assert recall(path / f"{path.name}.ledger.head").head.hash == entries[-1].hash
        assert ledger.spent().record() == json.loads(texts_of(path)[-1])["after"]["spent"]


@samples("ledgers/*")
def test_a_witness_is_of_the_version_of_its_time(path):
    """One line before there were slots, then two slots, each with a checksum; the newer one is what was seen."""
    content = (path / f"{path.name}.ledger.head").read_bytes()
    last = Entry.from_text(texts_of(path)[-1])
    seen = recall(path / f"{path.name}.ledger.head")

    assert (seen.ledger, seen.head, seen.torn) == (last.ledger, (last.sequence, last.hash), False)
    if path.parts[-3] in BEFORE_SLOTS:
        assert json.loads(content)["version"] == 1
    else:
        slots = [read_slot(content[place : place + SLOT]) for place in (0, SLOT)]
        assert len(content) == 2 * SLOT
        assert sorted(one.head.sequence for one in slots)[1] == last.sequence


@samples("ledgers/*")
def test_answers_given_again_are_counted_as_they_were(path, copied):
    """One line for a question, an asker and a day, with a number; older files count nothing."""
    study = read_study(copied / f"{path.name}.toml")
    own = {"budget": study.budget, "adjacency": study.adjacency, "unit": study.unit_name, "owners": study.owners}
    with Ledger.open(study.ledger_path, study_name=study.name, folder=copied, **own) as ledger:
        served = {entry.id for entry in ledger.entries() if entry.kind is EntryKind.SERVED}
        given_again, digest = ledger.given_again(), ledger.prepared_digest("another study", ledger.data_version)

    if path.parts[-3] in BEFORE_SLOTS:
        assert (given_again, digest) == ({}, None)
    else:
        assert set(given_again) <= served
        assert max(given_again.values()) >= 3
        assert digest == "f" * 64


@samples("pointer.ledger")
def test_a_pointer_is_read(path, tmp_path):
    """Where a ledger is kept, of which a machine has only this file."""
    shutil.copy(path, tmp_path / "own.ledger")
    (tmp_path / "own.ledger").chmod(0o600)

    assert read_pointer(tmp_path / "own.ledger") == given.SERVER


@samples("register")
def test_a_register_is_read(path, tmp_path):
    """The ledgers of every source are found as they were entered, and it has its key."""
    shutil.copy(path, tmp_path / "register")
    with Register(tmp_path / "register") as register:
        for name, sources in given.registered().items():
            found = {one.id: one for one in register.ledgers_of(sources)}
            assert set(found) == {"shop", "households"}
            assert found[name].path == Path(f"/srv/shop/{name}.ledger")
            assert found[name].owners == {(one.source.owner, one.source.owner) for one in sources}
        (key,) = register._connection.execute("SELECT key FROM owner").fetchone()  # noqa: SLF001 -- as it is stored
        assert len(key) == 32


@samples("ledgers/*/.curador-*")
def test_a_marker_is_read(path, tmp_path):
    """It names the ledger whose entries lie beside it, for the files that it lists."""
    shutil.copy(path, tmp_path)
    body = loaded(path)
    for name, inside, owner in body["files"]:
        source = PrivateSource("any", owner, str(tmp_path / name), inside, tmp_path / name)
        (found,) = marked_ledgers([SeenSource(source)])
        assert found.id == Entry.from_text(texts_of(path.parent)[0]).ledger
        assert found.study == path.parent.name


SAME = ("study", "question", "unit", "adjacency", "caps", "bounds", "data_version", "measurements", "keys", "answer_digest")
"""What the receipt of an answer that is given again says in the same words; and the plan's digest."""


@pytest.mark.slow
@samples("ledgers/*")
def test_a_stored_answer_is_given_again_for_nothing(path, copied, capsys):
    """The same numbers, the same digest, the same parameters in the receipt, and no charge."""
    with cu.open(copied / f"{path.name}.toml") as curator:
        spent = curator.ledger.spent()
        for case in loaded(path / "asked.json"):
            if "fit" in case:
                continue
            asker = curator if case["analyst"] is None else curator.analyst(case["analyst"])
            answer, before = asker.ask(case["question"], **case["options"]), loaded(path / case["receipt"])

            assert answer.stored
            assert not answer.cost
            assert answer.receipt["answer_digest"] == case["answer"]
            assert answer.receipt["plan"]["digest"] == before["plan"]["digest"]
            for field in SAME:
                assert json.dumps(answer.receipt[field]) == json.dumps(before[field]), field
        assert curator.ledger.spent() == spent
    assert "new ledger" not in capsys.readouterr().err


@pytest.mark.slow
@samples("ledgers/clinic")
def test_a_stored_fit_is_given_again_for_nothing(path, copied):
    """The identical fit is found by its key, and is the same model."""
    fits = [case for case in loaded(path / "asked.json") if "fit" in case]
    with cu.open(copied / "clinic.toml") as curator:
        spent = curator.ledger.spent()
        for case in fits:
            parameters = {name: tuple(value) if isinstance(value, list) else value for name, value in case["fit"].items()}
            model = learn.PrivateLinearRegression(**parameters)
            model.fit(curator.rows("visits", columns=["age", "spent"]), "spent")

            assert [one.hex() for one in (*model.coef_.tolist(), float(model.intercept_))] == case["coefficients"]
            assert model.receipt_["fit"] == loaded(path / case["receipt"])["fit"]
            assert json.dumps(model.receipt_["losses"]) == json.dumps(loaded(path / case["receipt"])["losses"])
        assert len(fits) == 2
        assert curator.ledger.spent() == spent


RECEIPT = (
    *("version", "id", "time", "study", "analyst", "question", "plan", "unit", "adjacency", "caps", "bounds"),
    *("data_version", "measurements", "keys", "cost", "budget", "answer_digest", "ledger", "software", "plain"),
)
FIT = (
    *("version", "id", "time", "study", "analyst", "fit", "unit", "adjacency", "data_version", "losses", "exact"),
    *("cost", "budget", "model_digest", "ledger", "software", "plain"),
)
"""The fields of a question's receipt and of a fit's."""

SURVEYED = (*RECEIPT[: RECEIPT.index("bounds")], "survey", *RECEIPT[RECEIPT.index("bounds") :])
"""The fields of a question's receipt where caps were found by a survey: version 3."""

ENTRY_IN_RECEIPT = {1: ("id", "sequence", "previous", "hash"), 2: ("id", "hash"), 3: ("id", "hash")}
"""What a receipt says of its entry, by version: since 2 nothing from which another entry's place could be told."""


@samples("ledgers/*")
def test_receipts_have_the_fields_of_their_version_and_name_their_entries(path):
    """Whoever holds a receipt finds the charge in the ledger by its hash."""
    entries = {entry.hash: entry for entry in map(Entry.from_text, texts_of(path))}
    for case in loaded(path / "asked.json"):
        receipt = loaded(path / case["receipt"])
        entry = entries[receipt["ledger"]["hash"]]

        assert receipt["id"] == (entry.id if receipt["version"] == 1 else entry.shown)
        assert receipt["study"]["digest"] == entry.study_digest
        assert tuple(receipt) == (FIT if "fit" in case else SURVEYED if receipt["version"] == 3 else RECEIPT)
        assert tuple(receipt["ledger"]) == ENTRY_IN_RECEIPT[receipt["version"]]


def test_every_version_of_entries_has_a_sample():
    """And a checkpoint of the rules of today."""
    texts = [json.loads(text) for version in VERSIONS for path in version.glob("ledgers/*") for text in texts_of(path)]
    points = {loaded(path)["version"] for version in VERSIONS for path in version.glob("ledgers/*/checkpoint")}

    assert {text["version"] for text in texts} == {1, 2}
    assert points == {1, checkpoint.VERSION}


def test_every_version_of_receipts_has_a_sample():
    """Version 1 spoke of the entry that settled a question."""
    versions = {loaded(path)["version"] for version in VERSIONS for path in version.glob("ledgers/*/receipts/*.json")}

    assert versions == {1, 2, 3}


@samples("ledgers/surveyed")
def test_what_was_found_is_read_as_it_was(path, copied):
    """The survey in force with its caps, and what questions counted first, by the names under which it is looked for."""
    entries = [Entry.from_text(text) for text in texts_of(path)]
    held = [entry.survey for entry in entries if entry.survey is not None]
    surveys, counts = [one for one in held if "tables" in one], [one["counts"] for one in held if "counts" in one]
    with cu.open(copied / "surveyed.toml") as curator:
        found = curator._session.survey  # noqa: SLF001 -- what plans are made with
        for name, one in surveys[-1]["tables"].items():
            assert curator.schema.table(name).table.caps.rows == one["cap"] == found.tables[name].cap
            assert found.tables[name].rows.record() == one["rows"]
            assert {column: parts.groups.record() for column, parts in found.tables[name].columns.items()} == {
                column: parts["groups"] for column, parts in one["columns"].items()
            }
        for one in counts:
            for name, steps in one.items():
                assert curator.ledger.counted(name) == steps
                assert Steps.from_record(steps, curator.study.adjacency).record() == steps
    assert len(surveys) == 1
    assert len(counts) >= 3


def test_a_stored_answer_of_two_parts_has_a_sample():
    """Counted first, measured then: the mark, the length of the first part, both."""
    path = VERSIONS[-1] / "ledgers" / "surveyed" / "surveyed.ledger"
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as connection:
        contents = [content for (content,) in connection.execute("SELECT content FROM answer ORDER BY sequence")]
    connection.close()
    parts = [split_parts(content) for content in contents if content.startswith(b"curador found 1\n")]

    assert len(parts) >= 3
    for first, second in parts:
        held = json.loads(zlib.decompress(first))
        assert set(held) == {"bought", "caps", "steps"}
        assert set(held["bought"]) <= set(held["steps"])
        assert json.loads(zlib.decompress(second))["version"] == 1


@samples("ledgers/*/checkpoint")
def test_a_checkpoint_is_read_and_written_as_it_was(path, tmp_path):
    """It holds what the entries add up to; one of older rules is left aside, and everything is read again."""
    held = checkpoint.recall(path)
    if loaded(path)["version"] != checkpoint.VERSION:
        assert held is None
        return
    assert held is not None
    checkpoint.keep(tmp_path / "again", held)

    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert held.totals["study"].record() == json.loads(texts_of(path.parent)[-1])["after"]["spent"]


# ---- models -------------------------------------------------------------------------------------------------------------


@samples("models/*.json")
def test_a_model_is_read_and_written_as_it_was(path):
    """Parameters, fitted numbers and card, in their order."""
    text = path.read_text(encoding="utf-8")

    assert to_json(from_json(text)) + "\n" == text


def test_every_estimator_has_a_sample():
    """A class without one has nothing that says when its files cannot be read any more."""
    classes = {loaded(path)["class"] for path in VERSIONS[-1].glob("models/*.json")}

    assert classes == {name for name in learn.WHERE if name.startswith("Private")}


# ---- local protocols ----------------------------------------------------------------------------------------------------


@cases("local.json")
def test_clients_protocols_and_reports_are_read_as_they_were(path, name, case):
    """Also from files of Arrow and Parquet; what reports add up to is what it was."""
    protocol = local.from_json(case["protocol"])
    client = devices.load(case["client"])
    reports = [
        bytes.fromhex(one) if isinstance(one, str) else tuple(one) if isinstance(one, list) else one
        for one in case["reports"]
    ]

    assert local.to_json(protocol) == case["protocol"]
    assert client.to_json() == case["client"] == protocol.client().to_json()
    if case["state"] is not None:
        assert client.load(case["state"]).state() == case["state"]
    np.testing.assert_allclose(given.said(protocol.collector().add(reports).estimate()), case["estimate"], rtol=1e-12)
    for ending in ("arrow", "parquet"):
        [(held, empty)] = local.batches(protocol, [path.parent / "reports" / f"{name}.{ending}"])
        assert np.array_equal(held, protocol.accept(reports)[0])
        assert empty == 0


def test_every_client_and_protocol_has_a_sample():
    """A kind without one has nothing that says when it cannot be read any more."""
    public = [getattr(local, name) for name in local.__all__]
    own = {one.__name__ for one in public if isinstance(one, type) and issubclass(one, Reporting)}
    held = loaded(VERSIONS[-1] / "local.json").values()

    assert {json.loads(one["client"])["kind"] for one in held} == set(devices.CLIENTS)
    assert {json.loads(one["protocol"])["protocol"] for one in held} == own


# ---- reports ------------------------------------------------------------------------------------------------------------


REPORTS = sorted((HERE / "reports").glob("v*.json"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_report_is_read_and_shown_as_it_was(path):
    """A signed report can be checked for ever: its bytes, its page, its statement."""
    sealed = dict(reversed(line.split("  ")) for line in (HERE / "reports.sha256").read_text(encoding="ascii").splitlines())
    assert hashlib.sha256(path.read_bytes()).hexdigest() == sealed[path.name]
    report = StudyReport.from_json(path.read_text(encoding="ascii"))

    assert report.to_json() == path.read_text(encoding="ascii")
    assert report.whole
    assert report["promise"]["belief_words"][0] in report.to_html().replace("\u00a0", " ")
    assert report["study"]["digest"] in str(report)
    assert report.registry()["status"] == "Draft"

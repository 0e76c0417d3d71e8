"""A ledger that was changed from outside is refused, or says exactly what it said before."""

from __future__ import annotations

import random
import shutil
import sqlite3
from fractions import Fraction

import pytest
from ledgers import BOTH, ask, create, everything, reopen, request

from curador.errors import BudgetExceeded, InvalidStudy
from curador.ledger.amounts import NOTHING, TICK, Amounts
from curador.ledger.witness import SLOT, read_slot, witness_of

pytestmark = pytest.mark.slow
FILES = ("a.ledger", "a.ledger-wal", "a.ledger.head")


def work(ledger, questions):
    """Leave entries of every kind."""
    for number in range(questions):
        analyst = ("ana", "eva", None)[number % 3]
        asked = request(rho="1e-5", delta="1e-9", analyst=analyst, data_version=ledger.data_version)
        match number % 7:
            case 3:
                ledger.void(ledger.reserve(asked))
            case 4:
                ledger.fail(ledger.reserve(asked), incident="f")
                ledger.reopen("looked into it")
            case 5:
                ledger.refresh("new rows")
            case _:
                done = ask(ledger, asked, bytes(range(200)))
                ledger.served(ledger.stored(done.question_key, done.data_version), "eva")
    list(ledger.entries())  # what was counted is written


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Return a closed ledger and one that a crash left with its log beside it, each with what it says."""
    made = []
    for name in ("closed", "crashed"):
        folder = tmp_path_factory.mktemp(name)
        ledger = create(folder / "a.ledger", BOTH)
        work(ledger, 14)
        if name == "crashed":
            crash = tmp_path_factory.mktemp("crash")
            for file in FILES:
                shutil.copy(folder / file, crash / file)
            folder = crash
        said = everything(ledger)
        ledger.close()
        made.append((folder, said))
    return made


def copied(folder, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return target


def outcome(folder, said):
    """Return "refused" or "unchanged"; anything else is a failure of the ledger."""
    try:
        ledger = reopen(folder / "a.ledger", BOTH)
    except InvalidStudy:
        return "refused"
    with ledger:
        return "unchanged" if everything(ledger) == said else "changed"


def rows_of(path):
    """Return what a plain database reader sees; None where it complains."""
    try:
        connection = sqlite3.connect(path)
        try:
            return [connection.execute(f"SELECT * FROM {name}").fetchall() for name in ("entry", "answer", "total")]
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def flip(path, chance):
    content = bytearray(path.read_bytes())
    place = chance.randrange(len(content))
    content[place] ^= chance.randrange(1, 256)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("file", "flips", "least"),
    [
        ("a.ledger", 50, 10),
        ("a.ledger-wal", 15, 5),
        ("a.ledger.head", 60, 0),  # one of two slots is left, and the ledger is ahead of it: see below
        pytest.param("a.ledger", 600, 100, marks=pytest.mark.long),
        pytest.param("a.ledger-wal", 200, 50, marks=pytest.mark.long),
        pytest.param("a.ledger.head", 200, 0, marks=pytest.mark.long),
    ],
)
def test_no_byte_changes_what_the_ledger_says(file, flips, least, originals, tmp_path, record_property):
    """A random byte flipped: refused, or a byte that carries nothing. Never another history, never a crash."""
    chance, found = random.Random(20_260), []
    folder, said = originals[0] if file == "a.ledger" else originals[1]
    for _ in range(flips):
        here = copied(folder, tmp_path / "here")
        flip(here / file, chance)
        found.append(outcome(here, said))

    record_property("flips", flips)
    record_property("refused", found.count("refused"))
    record_property("harmless", found.count("unchanged"))
    assert set(found) <= {"refused", "unchanged"}
    assert found.count("refused") >= least


def test_a_torn_slot_is_harmless_only_where_the_ledger_is_ahead(originals, tmp_path):
    """The newer slot destroyed: nothing is lost; set back by exactly one batch as well: refused; both destroyed: refused."""
    folder, said = originals[0]
    here = copied(folder, tmp_path / "here")
    with reopen(here / "a.ledger", BOTH) as ledger:
        ledger.refresh("one batch more")
        newer = everything(ledger)
    head = here / "a.ledger.head"
    content = head.read_bytes()
    sequences = [read_slot(content[place : place + SLOT]).head.sequence for place in (0, SLOT)]
    place = SLOT * sequences.index(max(sequences))
    torn = content[:place] + content[place : place + 40].ljust(SLOT, b"?") + content[place + SLOT :]
    head.write_bytes(torn)
    assert outcome(here, newer) == "unchanged"
    for file in ("a.ledger", "a.ledger-wal", "a.ledger-shm"):
        (here / file).unlink(missing_ok=True)
    shutil.copy(folder / "a.ledger", here / "a.ledger")
    head.write_bytes(torn)
    with pytest.raises(InvalidStudy, match="ahead of what is left of its witness, whose last write was torn"):
        reopen(here / "a.ledger", BOTH)
    head.write_bytes(content)
    with pytest.raises(InvalidStudy, match="behind its witness by 1 entry"):
        reopen(here / "a.ledger", BOTH)
    head.write_bytes(b"?" * (2 * SLOT))
    assert outcome(copied(here, tmp_path / "both"), said) == "refused"


def test_a_plain_database_would_not_have_noticed(originals, tmp_path):
    """The power of the test above: many of the same flips change rows and no database complains.

    The bytes that are flipped are always the same ones, and 51 of the 200 lie in rows; what else stands there (ids, times,
    hashes) is drawn anew, and makes one of them more or less unreadable. 25 would be half of them.
    """
    chance, silent = random.Random(20_260), 0
    folder, _ = originals[0]
    whole = rows_of(folder / "a.ledger")
    for _ in range(200):
        here = copied(folder, tmp_path / "here")
        flip(here / "a.ledger", chance)
        rows = rows_of(here / "a.ledger")
        silent += rows is not None and rows != whole

    assert silent > 25


def test_a_cut_ledger_is_refused(originals, tmp_path):
    """Cut anywhere, the file or its log: entries are missing, and somebody knows."""
    chance, found = random.Random(7), []
    for (folder, said), file in zip((originals[0], originals[1]), FILES[:2], strict=True):
        for _ in range(60):
            here = copied(folder, tmp_path / "here")
            size = (here / file).stat().st_size
            with (here / file).open("r+b") as handle:
                handle.truncate(chance.randrange(size))
            found.append(outcome(here, said))
    here = copied(originals[1][0], tmp_path / "here")
    (here / "a.ledger-wal").unlink()
    found.append(outcome(here, originals[1][1]))

    assert set(found) == {"refused"}


def test_restored_backups_are_refused(tmp_path):
    """Ten backups, taken at ten moments: each is behind the witness by as many entries as were written since."""
    path, heads = tmp_path / "a.ledger", []
    create(path, BOTH).close()
    for number in range(10):
        with reopen(path, BOTH) as ledger:
            heads.append(ledger.head.sequence)
            ledger.close()
            shutil.copy(path, tmp_path / f"backup{number}")
        with reopen(path, BOTH) as ledger:
            ask(ledger, request(rho="1e-5"))
            last = ledger.head.sequence
    for number, head in enumerate(heads):
        shutil.copy(tmp_path / f"backup{number}", path)
        with pytest.raises(InvalidStudy, match=f"the ledger is behind its witness by {last - head} entries"):
            reopen(path, BOTH)
    path.unlink()
    with pytest.raises(InvalidStudy, match="these data had"):
        create(path, BOTH)


def test_without_its_witness_a_backup_looks_right(tmp_path):
    """What the witness is for: a restored backup is a whole ledger by itself, and its budget is open again."""
    path = tmp_path / "a.ledger"
    create(path).close()
    shutil.copy(path, tmp_path / "backup")
    with reopen(path) as ledger:
        ask(ledger, request(epsilon=1))
    shutil.copy(tmp_path / "backup", path)
    witness_of(path).unlink()
    with reopen(path, witness_lost="an owner who does not look") as ledger:
        assert ledger.left(None) == Amounts(Fraction(1))


# ---- arithmetic ---------------------------------------------------------------------------------------------------------


def test_many_random_spends_against_the_truth():
    """Forty thousand costs of odd denominators: the total is never below the truth, and a tick a spend above at most."""
    chance = random.Random(1)
    truth, total = Fraction(0), NOTHING
    for _ in range(20):
        block = Fraction(0)
        for _ in range(2000):
            spend = Fraction(chance.randrange(1, 10**6), chance.choice((3, 7, 97, 10**6 + 3)))
            block += spend
            total += Amounts.cost(epsilon=spend)
        truth += block

    assert truth <= total.epsilon <= truth + 40_000 * TICK


def test_the_ledger_admits_exactly_what_fits(tmp_path):
    """Random spends, some voided: admitted if and only if the exact sum fits; shares and totals as a Fraction says."""
    chance, spent, own = random.Random(2), Fraction(0), {"ana": Fraction(0), "eva": Fraction(0)}
    with create(tmp_path / "a.ledger") as ledger:
        for _ in range(120):
            name = chance.choice(("ana", "eva"))
            cost = Amounts.cost(epsilon=Fraction(chance.randrange(1, 1000), chance.choice((20_011, 30_011, 3001)))).epsilon
            asked = request(epsilon=cost, analyst=name, share=Fraction(7, 10))
            fits = spent + cost <= 1 and own[name] + cost <= ledger.limits.share(Fraction(7, 10)).epsilon
            try:
                reservation = ledger.reserve(asked)
            except BudgetExceeded:
                assert not fits
                continue
            assert fits
            if chance.random() < 0.2:
                ledger.void(reservation)
            else:
                spent, own[name] = spent + cost, own[name] + cost
            assert ledger.spent() == Amounts(spent)
            assert ledger.spent(name) == Amounts(own[name])
        assert ledger.left(None) == Amounts(1 - spent)
        ledger.verify()

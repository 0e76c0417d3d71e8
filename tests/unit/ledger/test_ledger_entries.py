"""Entries: one canonical text, one hash, a chain in which the first wrong link is named."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction

import pytest

from curador.canonical import canonical_text
from curador.errors import InvalidStudy
from curador.ledger.amounts import NOTHING, Amounts
from curador.ledger.chain import ChainReplay
from curador.ledger.entry import BEFORE_ALL, Entry, EntryKind, State, entry_of, next_entry, row_of, seal
from curador.ledger.limits import Limits
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.study.model import Budget

LIMITS = Limits.create(Budget(epsilon=1), adjacency=ADD_OR_REMOVE_ONE, unit="person", max_units=10)
HALF = Amounts(Fraction(1, 2))
KEY = "a" * 64


def first():
    creation = {"limits": LIMITS.record(), "schema": "s"}
    state = State(NOTHING, 1, 0)
    fixed = {"ledger": "one", "sequence": 0, "previous": BEFORE_ALL, "time": "t", "id": "id0", "study_digest": "d"}
    return seal(Entry(kind=EntryKind.CREATED, data_version=1, after=state, creation=creation, **fixed))


def rows_of(*steps):
    """Return the rows of a chain: each step makes an entry from the last one."""
    made = [first()]
    for step in steps:
        made.append(seal(step(made[-1][0])))
    return [row_of(entry, text) for entry, text in made]


def reserved(head, **changes):
    after = replace(head.after, spent=head.after.spent + HALF)
    fields = {"amounts": HALF, "after": after, "analyst": "ana", "share": Fraction(1), "question_key": KEY, "id": "r1"}
    return replace(next_entry(head, EntryKind.RESERVED), **{**fields, **changes})


def settled(kind, **changes):
    def step(head):
        spent = head.after.spent - (HALF if kind is EntryKind.VOIDED else NOTHING)
        after = State(spent, head.after.data_version, head.after.failures + (kind is EntryKind.FAILED))
        fields = {
            "amounts": HALF,
            "analyst": "ana",
            "share": Fraction(1),
            "question_key": KEY,
            "refers": "r1",
            "after": after,
        }
        return replace(next_entry(head, kind), **{**fields, "content_digest": "c", **changes})

    return step


def plain(kind, **changes):
    def step(head):
        version = head.after.data_version + (kind is EntryKind.REFRESHED)
        after = State(head.after.spent, version, 0 if kind is EntryKind.REOPENED else head.after.failures)
        return replace(next_entry(head, kind), **{"after": after, "data_version": version, **changes})

    return step


def read(rows):
    replay = ChainReplay()
    replay.read(rows)
    return replay


# ---- texts --------------------------------------------------------------------------------------------------------------


def test_an_entry_survives_its_text():
    """Every field comes back, letters of all alphabets and lone surrogates too."""
    entry, text = seal(
        replace(first()[0], question="größer \ud800 \x00 ε", note="ana", losses=({"kind": "Pure"},), tables=("a",))
    )

    assert Entry.from_text(text) == entry
    assert text.isascii()
    assert entry.hash == hashlib.sha256(text.encode()).hexdigest()


def test_the_text_is_canonical():
    """Sorted keys, no white space, amounts as exact rationals in texts."""
    text = seal(reserved(first()[0]))[1]
    body = json.loads(text)

    assert text == canonical_text(body)
    assert list(body) == sorted(body)
    assert body["amounts"] == {"epsilon": "1/2", "rho": "0", "delta": "0"}
    assert body["after"]["spent"]["epsilon"] == "1/2"


def test_the_hash_depends_on_every_field():
    """Another value anywhere is another entry."""
    entry, _ = seal(reserved(first()[0]))
    other = {
        "ledger": "x",
        "sequence": 9,
        "previous": "x",
        "time": "x",
        "kind": EntryKind.SERVED,
        "id": "x",
        "study_digest": "x",
    }
    other |= {"data_version": 9, "after": State(NOTHING, 9, 9), "analyst": "x", "share": Fraction(1, 9), "amounts": NOTHING}
    other |= {"losses": ({},), "question_key": "x", "question": "x", "plan_digest": "x", "tables": ("x",), "note": "x"}
    other |= {"answer_digest": "x", "content_digest": "x", "refers": "x", "creation": {}}
    other |= {"survey": {}, "details": {}}

    assert set(other) == set(Entry.__dataclass_fields__) - {"hash"}
    for name, value in other.items():
        assert seal(replace(entry, **{name: value}))[0].hash != entry.hash


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"version":1}', "[" * 20_000], ids=lambda text: text[:20])
def test_a_text_that_is_no_entry(text):
    """Anything else is no entry."""
    with pytest.raises(ValueError, match="not that of an entry"):
        Entry.from_text(text)


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"kind": "gift"}, {"amounts": {"epsilon": "-1"}}, {"more": 1}, {"share": "1/0"}], ids=str
)
def test_a_field_that_nobody_knows(change):
    """Unknown versions, kinds and fields are refused, never guessed."""
    body = json.loads(first()[1]) | change
    with pytest.raises(ValueError, match="not that of an entry"):
        Entry.from_text(canonical_text(body))


def test_an_entry_is_written_in_the_first_version_that_has_all_of_it():
    """Whoever knows version 1 only reads everything that version 1 can say; nothing of version 2 is in it."""
    old, head = json.loads(seal(reserved(first()[0]))[1]), first()[0]
    new = [
        replace(reserved(head), survey={"caps": {"visits": 64}}),
        replace(head, details={"declarations": {}}),
        *(next_entry(head, kind) for kind in (EntryKind.SURVEYED, EntryKind.DECLARED, EntryKind.JOINED)),
    ]

    assert old["version"] == 1
    assert not {"survey", "details"} & old.keys()
    for entry in new:
        made, text = seal(entry)
        assert json.loads(text).keys() == old.keys() | {"survey", "details"}
        assert json.loads(text)["version"] == 2
        assert Entry.from_text(text) == made


@pytest.mark.parametrize(
    "change",
    [
        *({"version": 1}, {"version": 3}, {"version": True}, {"version": 2.0}, {"survey": None, "details": None}),
        *({"survey": []}, {"survey": "64"}, {"details": 1}, {"kind": "recalled"}),
    ],
    ids=str,
)
def test_a_text_of_version_2_that_is_none(change):
    """What version 2 does not have, or does not need, is not guessed at."""
    body = json.loads(seal(replace(reserved(first()[0]), survey={"caps": {}}))[1])
    with pytest.raises(ValueError, match="not that of an entry"):
        Entry.from_text(canonical_text(body | change))


def test_ids_are_random_and_times_are_whole_seconds():
    """What an analyst sees counts nothing, and two entries do not tell how long an engine took."""
    one, other = next_entry(first()[0], EntryKind.SERVED), next_entry(first()[0], EntryKind.SERVED)

    assert one.id != other.id
    assert len(one.id) == 32
    assert "." not in one.time
    assert one.time.endswith("+00:00")


# ---- the chain ----------------------------------------------------------------------------------------------------------


def test_a_whole_chain_adds_up():
    """All kinds in one chain: charges, a refund, a failure, a new version, an opening."""
    steps = [
        *(reserved, settled(EntryKind.VOIDED), lambda head: reserved(head, id="r2"), settled(EntryKind.FAILED, refers="r2")),
        *(plain(EntryKind.REFRESHED), plain(EntryKind.REOPENED), lambda head: reserved(head, id="r3", data_version=2)),
        *(settled(EntryKind.COMMITTED, refers="r3", data_version=2, id="c3"), plain(EntryKind.SERVED, refers="c3")),
        plain(EntryKind.SURVEYED, refers="c3", survey={"commit": "c3", "caps": {"visits": 64}}),
        *(plain(EntryKind.DECLARED, details={"caps": 4}), plain(EntryKind.JOINED, details={"study": "other"})),
    ]
    replay = read(rows_of(*steps))

    assert replay.state == State(Amounts(Fraction(1)), 2, 0)
    assert replay.totals == {"study": Amounts(Fraction(1)), "analyst:ana": Amounts(Fraction(1))}
    assert replay.reserved == {}
    assert replay.limits == LIMITS


def test_an_open_reservation_counts():
    """What was reserved and never settled is spent."""
    replay = read(rows_of(reserved))

    assert replay.state.spent == HALF
    assert list(replay.reserved) == ["r1"]


PAID = (reserved, settled(EntryKind.COMMITTED, id="c"))
FOUND = {"commit": "c", "caps": {"visits": 64}}
WRONG = {
    "a charge that is not added": [lambda head: reserved(head, after=head.after)],
    "a charge beyond the limit": [reserved, lambda head: reserved(head, id="r2"), lambda head: reserved(head, id="r3")],
    "a charge beyond the share": [lambda head: reserved(head, share=Fraction(1, 4))],
    "a charge on another version": [lambda head: reserved(head, data_version=2)],
    "a refund that nobody reserved": [reserved, settled(EntryKind.VOIDED, refers="r9")],
    "a refund twice": [reserved, lambda head: reserved(head, id="r2"), settled(EntryKind.VOIDED), settled(EntryKind.VOIDED)],
    "a refund of more": [reserved, settled(EntryKind.VOIDED, amounts=Amounts(Fraction(1)))],
    "a refund of somebody else's": [reserved, settled(EntryKind.VOIDED, analyst="eva")],
    "a commit that gives back": [reserved, settled(EntryKind.COMMITTED, after=State(NOTHING, 1, 0))],
    "a failure that is not counted": [reserved, settled(EntryKind.FAILED, after=State(HALF, 1, 0))],
    "a version that jumps": [plain(EntryKind.REFRESHED, after=State(NOTHING, 5, 0))],
    "a served answer that costs": [
        reserved,
        settled(EntryKind.COMMITTED, id="c"),
        plain(EntryKind.SERVED, refers="c", amounts=HALF),
    ],
    "a served answer of nobody": [plain(EntryKind.SERVED, refers="c")],
    "a survey of nobody": [plain(EntryKind.SURVEYED, refers="c", survey={"commit": "c"})],
    "a survey of another commit": [*PAID, plain(EntryKind.SURVEYED, refers="c", survey={"commit": "r1"})],
    "a survey of a reservation": [*PAID, plain(EntryKind.SURVEYED, refers="r1", survey={"commit": "r1"})],
    "a survey that found nothing": [*PAID, plain(EntryKind.SURVEYED, refers="c")],
    "a survey that an analyst lets hold": [*PAID, plain(EntryKind.SURVEYED, refers="c", survey=FOUND, analyst="ana")],
    "a survey that costs": [*PAID, plain(EntryKind.SURVEYED, refers="c", survey=FOUND, amounts=HALF)],
    "declarations that nobody said": [plain(EntryKind.DECLARED)],
    "declarations that cost": [plain(EntryKind.DECLARED, details={"caps": 1}, amounts=HALF)],
    "declarations that give back": [reserved, plain(EntryKind.DECLARED, details={}, after=State(NOTHING, 1, 0))],
    "a joint ledger of nobody": [plain(EntryKind.JOINED)],
    "a second beginning": [plain(EntryKind.CREATED)],
    "another ledger": [plain(EntryKind.REFRESHED, ledger="two")],
    "another predecessor": [plain(EntryKind.REFRESHED, previous="f" * 64)],
    "a gap": [plain(EntryKind.REFRESHED, sequence=2)],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_add_up_is_named(name):
    """A chain of good hashes that breaks a rule is refused at the entry that breaks it."""
    rows = rows_of(*WRONG[name])
    last = 1 if name == "a gap" else len(rows) - 1
    with pytest.raises(InvalidStudy, match=f"ledger entry {last} must"):
        read(rows)


def test_changed_rows_are_named():
    """A changed text, hash or column, a missing, moved or repeated row: the first bad sequence is named."""
    rows = rows_of(reserved, settled(EntryKind.COMMITTED), plain(EntryKind.REFRESHED))
    changed = rows[1]._replace(body=rows[1].body.replace("1/2", "1/9"))
    for bad, place in (
        ([rows[0], changed, *rows[2:]], 1),
        ([rows[0], changed._replace(hash=hashlib.sha256(changed.body.encode()).hexdigest()), *rows[2:]], 1),
        ([*rows[:2], rows[2]._replace(hash="0" * 64), rows[3]], 2),
        ([*rows[:2], rows[2]._replace(analyst="eva"), rows[3]], 2),
        ([*rows[:2], rows[2]._replace(settles=None), rows[3]], 2),
        ([*rows[:2], rows[2]._replace(body=b"x"), rows[3]], 2),
        ([*rows[:2], rows[2]._replace(body=None), rows[3]], 2),
        ([rows[0], *rows[2:]], 1),
        ([rows[0], rows[2], rows[1], rows[3]], 1),
        ([rows[0], rows[0], *rows[1:]], 1),
        (rows[1:], 0),
        ([], 0),
    ):
        with pytest.raises(InvalidStudy, match=f"ledger entry {place} must"):
            read(bad)
    with pytest.raises(InvalidStudy, match="ledger entry 1 must have the hash that stands beside it"):
        entry_of(changed)
    assert entry_of(rows[1]).amounts == HALF


def test_a_first_entry_with_other_limits():
    """Limits that would allow more than the budget are no beginning."""
    for change in ({"epsilon": "0"}, {"rho_limit": "5"}, {"kind": "x"}, {"adjacency": None}):
        creation = {"limits": {**LIMITS.record(), **change}, "schema": "s"}
        with pytest.raises(InvalidStudy, match="ledger entry 0 must state limits"):
            read([row_of(*seal(replace(first()[0], creation=creation)))])
    with pytest.raises(InvalidStudy, match="ledger entry 0 must state limits"):
        read([row_of(*seal(replace(first()[0], creation=None)))])

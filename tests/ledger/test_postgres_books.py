"""What the server refuses by itself: to a writer by its rights, to everybody by triggers, and books that do not add up."""

import contextlib
import hashlib
import json
import random
import re
from dataclasses import replace
from fractions import Fraction

import psycopg
import pytest
from ledgers import ask, request
from postgres_ledgers import create, reopen
from real_postgres import new_place

from curador.errors import Failed, InvalidStudy
from curador.ledger.amounts import NOTHING, Amounts
from curador.ledger.entry import ChainRow, EntryKind, State, next_entry, row_of, seal
from curador.ledger.postgres import PostgresStore, create_ledger
from curador.ledger.postgres_schema import SCHEMAS, digest_schema
from curador.ledger.store import METADATA

pytestmark = pytest.mark.slow
HALF, TENTH = (Amounts.cost(epsilon=Fraction(1, size)) for size in (2, 10))


TABLES = ("entry", "answer", "total", "again", "prepared")


def fill(place, folder):
    """Make a ledger with an answer and an open reservation of an analyst, and a row in every table."""
    with create(place.url, folder) as ledger:
        ask(ledger, request(epsilon="0.1", analyst="ana"))
        ledger.reserve(request(epsilon="0.1", analyst="ana"))
    with place.connect("writer") as writer:
        writer.execute("INSERT INTO again VALUES ('line', 'released', 'owner', '2026-11-18', 1)")
        writer.execute("INSERT INTO prepared VALUES ('visits', 1, 'digest')")


@pytest.fixture(scope="module")
def asked(postgres, tmp_path_factory):
    """Such a ledger, for tests in which nothing is changed."""
    with new_place(postgres) as place:
        fill(place, tmp_path_factory.mktemp("asked"))
        yield place


@pytest.fixture
def own(place, tmp_path):
    """Such a ledger, for one test; its witness is in the test's folder."""
    fill(place, tmp_path)
    return place


# ---- rights ----------------------------------------------------------------------------------------------------------------

CHANGES = [
    *(f"UPDATE {table} SET {column} = {column}" for table, column in (("entry", "body"), ("answer", "content"))),
    *("UPDATE total SET epsilon = epsilon", "UPDATE prepared SET digest = 'x'", "UPDATE again SET holder = 'x'"),
    *(f"{act} {table}" for table in ("entry", "answer", "total", "prepared", "again") for act in ("DELETE FROM", "TRUNCATE")),
]
FOR_OWNERS = [
    "INSERT INTO total SELECT 'x', epsilon, rho, delta, epsilon_limit, rho_limit, delta_limit, 0 FROM total LIMIT 1",
    "SELECT * FROM total FOR UPDATE",
    "ALTER TABLE entry DISABLE TRIGGER ALL",
    "DROP TABLE answer",
    "DROP TRIGGER entry_stays ON entry",
    "CREATE TABLE other (x INTEGER)",
    "CREATE OR REPLACE FUNCTION ticks_of(body TEXT) RETURNS numeric[] LANGUAGE sql AS $$ SELECT NULL::numeric[] $$",
    "SELECT ticks_of('')",
    "SELECT holder_of('')",
    "SET session_replication_role = replica",
    "GRANT ALL ON entry TO writer",
]


@pytest.mark.parametrize("statement", [*CHANGES, *FOR_OWNERS])
def test_the_writer_may_not(statement, asked):
    """Each for want of the right, not by luck: the class of the error says so."""
    with asked.connect("writer") as writer:
        if statement.startswith("GRANT"):  # the server warns and grants nothing
            with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
                writer.execute(statement)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                writer.execute("DELETE FROM entry")
        else:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                writer.execute(statement)


def everything(place):
    with place.connect() as owner:
        return {table: owner.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in TABLES}


@pytest.mark.parametrize("who", ["owner", "postgres"])
def test_triggers_refuse_the_owner_too(who, asked):
    """The owner's role, and a superuser who says that it only replays what another server decided."""
    before = everything(asked)
    with asked.connect(who) as connection:
        if who == "postgres":
            connection.execute("SET session_replication_role = replica")
        for statement in CHANGES:
            told = "append-only|only counted on|cannot truncate"
            refused = (psycopg.errors.RestrictViolation, psycopg.errors.CheckViolation, psycopg.errors.FeatureNotSupported)
            if statement == "UPDATE total SET epsilon = epsilon":
                continue  # nothing moves by it; what moves is below
            with pytest.raises(refused, match=told):
                connection.execute(statement)
    assert everything(asked) == before


@pytest.mark.parametrize(
    "change",
    [
        "epsilon = lpad('0', 40, '0') WHERE holder = 'study'",
        "epsilon = lpad('0', 40, '0') WHERE holder = 'analyst:ana'",
        "epsilon_limit = lpad('9', 40, '9') WHERE holder = 'study'",
        "holder = 'analyst:eva' WHERE holder = 'analyst:ana'",
        "epsilon = NULL",
        "epsilon = 'NaN'",
    ],
)
def test_nobody_moves_a_total_but_by_an_entry(change, asked):
    """Neither the owner's role, nor the writer's through its function."""
    with asked.connect() as owner, pytest.raises((psycopg.errors.IntegrityError, psycopg.errors.DataError)):
        owner.execute(f"UPDATE total SET {change}")


def test_lines_are_counted_on_and_never_back(own):
    """The number of a line grows; that is the one thing that the writer may update."""
    with own.connect("writer") as writer:
        writer.execute("UPDATE again SET number = number + 2 WHERE line = 'line'")
        with pytest.raises(psycopg.errors.CheckViolation, match="only counted on"):
            writer.execute("UPDATE again SET number = 1")
    assert everything(own)["again"][0][-1] == 3


@pytest.mark.parametrize("user", ["owner", "postgres"])
def test_a_role_with_more_rights_is_refused(user, asked):
    """A curator that comes as the owner could change entries if it were broken into."""
    with pytest.raises(InvalidStudy, match="one that can neither change nor remove entries; got '?" + user):
        PostgresStore(asked.server.url(user, schema=asked.schema))


def test_a_right_that_was_granted_later_is_refused(own):
    """Also where everybody was given it."""
    with own.connect() as owner:
        owner.execute("GRANT DELETE ON answer TO PUBLIC")

    with pytest.raises(InvalidStudy, match="neither change nor remove"):
        PostgresStore(own.url)


# ---- books -----------------------------------------------------------------------------------------------------------------


def written(page, entry, **columns):
    whole, text = seal(entry)
    page.append(ChainRow(**{**row_of(whole, text)._asdict(), **columns}))
    return whole


def reserved(page, amounts, **changes):
    head = page.head()
    made = replace(next_entry(head, EntryKind.RESERVED), amounts=amounts, **changes)
    return replace(made, after=replace(head.after, spent=head.after.spent + amounts))


def skips_a_number(page):
    written(page, replace(reserved(page, NOTHING), sequence=page.head().sequence + 2))


def has_another_hash(page):
    written(page, reserved(page, NOTHING), hash="0" * 64)


def follows_another(page):
    written(page, replace(reserved(page, NOTHING), previous="1" * 64))


def does_not_add_up(page):
    written(page, replace(reserved(page, TENTH), after=page.head().after))


def lowers_what_is_spent(page):
    written(page, replace(next_entry(page.head(), EntryKind.REOPENED), after=State(NOTHING, 1, 0)))


def is_not_counted(page):
    written(page, reserved(page, TENTH))
    written(page, reserved(page, NOTHING))


def is_counted_for_the_study_alone(page):
    page.put_total("study", written(page, reserved(page, TENTH)).after.spent, page.first_limit)
    written(page, reserved(page, NOTHING))


def is_counted_for_another(page):
    written(page, reserved(page, TENTH, analyst="eva"))
    page.put_total("analyst:ana", page.total("analyst:ana") + TENTH, HALF)


def is_counted_twice(page):
    written(page, reserved(page, TENTH))
    page.put_total("owner", TENTH, HALF)
    page.put_total("owner", TENTH + TENTH, HALF)


def is_counted_for_less(page):
    written(page, reserved(page, TENTH))
    page.put_total("owner", NOTHING + Amounts.cost(epsilon=Fraction(1, 20)), HALF)


def voids(page, own, amounts, analyst="ana"):
    head = page.head()
    made = replace(next_entry(head, EntryKind.VOIDED), amounts=amounts, refers=own.id, analyst=analyst)
    written(page, replace(made, after=replace(head.after, spent=head.after.spent - amounts)))


def gives_back_more_than_it_had(page):
    voids(page, next(page.of_kind(EntryKind.RESERVED)), TENTH + TENTH)


def gives_back_to_another(page):
    voids(page, next(page.of_kind(EntryKind.RESERVED)), TENTH, analyst="eva")


def gives_back_what_was_answered(page):
    voids(page, list(page.of_kind(EntryKind.RESERVED))[-1], TENTH)


def gives_back_an_answer(page):
    voids(page, next(page.of_kind(EntryKind.COMMITTED)), TENTH)


def gives_back_twice(page):
    own = next(page.of_kind(EntryKind.RESERVED))
    for _ in range(2):
        page.give_back("study", page.head().after.spent - TENTH)
        page.give_back("analyst:ana", page.total("analyst:ana") - TENTH)
        voids(page, own, TENTH)


def raises_the_limit(page):
    page.put_total("study", page.head().after.spent, page.first_limit + HALF)


WRONG = {
    skips_a_number: "follow the last one",
    has_another_hash: "follow the last one",
    follows_another: "follow the last one",
    does_not_add_up: "must add up",
    lowers_what_is_spent: "must add up",
    is_not_counted: "counted before another",
    is_counted_for_the_study_alone: "counted before another",
    is_counted_for_another: "that of the last asker",
    is_counted_twice: "what the last entry says",
    is_counted_for_less: "what the last entry says",
    gives_back_more_than_it_had: "only what was reserved",
    gives_back_to_another: "only what was reserved",
    gives_back_what_was_answered: "settled_once",
    gives_back_an_answer: "only what was reserved",
    gives_back_twice: "only what was reserved|settled_once",
    raises_the_limit: "holds for ever",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_books_that_do_not_add_up_are_refused(wrong, asked):
    """By the server, whatever a curator judged; nothing of the change stays."""
    before = everything(asked)
    store = PostgresStore(asked.url)
    limit = next(row[4] for row in before["total"] if row[0] == "study")
    with pytest.raises(InvalidStudy, match="whole ledger") as refused, store.writing() as page:
        wrong(Limited(page, Amounts.from_digits(limit, "0", "0")))
    store.close()
    assert re.search(WRONG[wrong], str(refused.value.__cause__))
    assert everything(asked) == before


class Limited:
    """A page that knows the study's limit."""

    def __init__(self, page, limit):
        self.page, self.first_limit = page, limit

    def __getattr__(self, name):
        return getattr(self.page, name)


def test_giving_back_without_an_entry_is_refused(asked):
    """The change is undone, and nothing was given back."""
    before = everything(asked)
    store = PostgresStore(asked.url)
    with pytest.raises(Failed, match="nothing was given back"), store.writing() as page:
        page.give_back("study", NOTHING)
    store.close()
    assert everything(asked) == before


def test_a_part_that_fails_leaves_the_others(own):
    """A savepoint: what one request breaks is its own, and what it wanted back does not wait for the next."""
    store = PostgresStore(own.url)
    with store.writing() as page:
        with page.savepoint():
            first = written(page, reserved(page, NOTHING))
        with contextlib.suppress(psycopg.Error), page.savepoint():
            written(page, reserved(page, NOTHING))
            page.cursor.execute("SELECT 1 / 0")
        with pytest.raises(Failed, match="nothing was given back"), page.savepoint():
            page.give_back("study", NOTHING)
        with page.savepoint():
            last = written(page, reserved(page, NOTHING))
    with store.reading() as page:
        assert page.head().id == last.id
        assert last.sequence == first.sequence + 1
    store.close()


def test_a_void_gives_back_in_whichever_order_it_is_written(place, tmp_path):
    """The entry first or the sums first; the ledger's own way is one of them."""
    with create(place.url, tmp_path) as ledger:
        ledger.void(ledger.reserve(request(epsilon="0.1", analyst="ana")))
        held = ledger.reserve(request(epsilon="0.1", analyst="ana")).entry
        store = PostgresStore(place.url)
        with store.writing() as page:
            voids(page, held, held.amounts)
            page.give_back("study", NOTHING)
            page.give_back("analyst:ana", NOTHING)
        store.close()

        assert ledger.spent() == ledger.spent("ana") == NOTHING


def test_texts_of_ticks_compare_as_numbers(place):
    """5,000 pairs of amounts, near and far: the order of the server's column is that of the numbers."""
    dice = random.Random(20261118)
    numbers = [dice.randrange(10 ** dice.randrange(1, 40)) for _ in range(5000)]
    others = [dice.choice((number, number + 1, dice.randrange(10 ** dice.randrange(1, 40)))) for number in numbers]
    pairs = "unnest(%s::text[], %s::text[]) AS pair (one, other)"
    texts = [[f"{number:040d}" for number in side] for side in (numbers, others)]
    with place.connect("writer") as writer:
        found = writer.execute(f'SELECT one COLLATE "C" <= other COLLATE "C" FROM {pairs}', texts).fetchall()
        (collations,) = writer.execute(
            "SELECT array_agg(DISTINCT collation_name::text) FROM information_schema.columns"
            " WHERE table_schema = %s AND data_type = 'text'",
            [place.schema],
        ).fetchone()

    assert [one for (one,) in found] == [one <= other for one, other in zip(numbers, others, strict=True)]
    assert collations == ["C"]


def test_ticks_are_read_out_of_an_entry_exactly(asked):
    """Whatever its question says: quotes, other amounts, a NUL, letters of no alphabet."""
    dice = random.Random(7)
    words = ['"amounts":{"delta":"0","epsilon":"0","rho":"0"}', "\0", "\ud800", "\\u0000", "ñ" * 50]
    store = PostgresStore(asked.url)
    with store.reading() as page:
        head = page.head()
    store.close()
    with asked.connect() as owner:
        for _ in range(200):
            told = [Amounts.cost(epsilon=Fraction(dice.random()), delta=Fraction(dice.random()) ** 9) for _ in range(2)]
            made = replace(
                next_entry(head, EntryKind.RESERVED), amounts=told[1], after=State(told[0], 1, 0), question=dice.choice(words)
            )
            (found,) = owner.execute("SELECT ticks_of(%s)", [seal(made)[1]]).fetchone()
            assert [int(one) for one in found] == [int(text) for one in told for text in one.digits()]
        for text in ("", "{}", json.dumps({"after": 1}), seal(made)[1].replace('"epsilon":"', '"epsilon":"1/3', 1)):
            with pytest.raises(psycopg.Error):
                owner.execute("SELECT ticks_of(%s)", [text])


def test_what_a_store_reads_is_there(place):
    """Every table and column of the statements that all stores share."""
    with place.connect() as owner:
        for table in METADATA.sorted_tables:
            owner.execute(f"SELECT {', '.join(column.name for column in table.columns)} FROM {table.name}")


# ---- tables as they were made ----------------------------------------------------------------------------------------------

SABOTAGE = [
    "ALTER TABLE entry DISABLE TRIGGER entry_stays",
    "ALTER TABLE entry ENABLE TRIGGER entry_stays",
    "DROP TRIGGER total_follows ON total",
    "ALTER TABLE total DROP CONSTRAINT epsilon_within",
    "ALTER TABLE entry DROP CONSTRAINT settled_once",
    "DROP INDEX entry_by_kind",
    "ALTER TABLE again SET UNLOGGED",
    "ALTER TABLE entry ENABLE ROW LEVEL SECURITY",
    "CREATE RULE nothing AS ON INSERT TO answer DO INSTEAD NOTHING",
    "ALTER TABLE entry ADD COLUMN more TEXT",
    "ALTER TABLE total ALTER COLUMN counted SET DEFAULT 10",
    "CREATE TABLE heir () INHERITS (entry)",
    "ALTER FUNCTION move_total SECURITY INVOKER",
    "ALTER FUNCTION require_counted() RESET search_path",
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$",
]


@pytest.mark.parametrize("change", SABOTAGE)
def test_changed_tables_are_noticed(change, asked):
    """Whatever is switched off, dropped or added has another digest."""
    with asked.connect("postgres") as root, root.transaction(force_rollback=True):
        assert digest_schema(root.cursor(), asked.schema) == SCHEMAS[-1]
        root.execute(change)
        assert digest_schema(root.cursor(), asked.schema) != SCHEMAS[-1]


def test_a_ledger_with_changed_tables_is_not_opened(own, tmp_path):
    """Its first entry says what they were."""
    with own.connect() as owner:
        owner.execute(SABOTAGE[0])

    with pytest.raises(InvalidStudy, match="with the tables that it was created with"):
        reopen(own.url, tmp_path)


def test_tables_have_the_digest_of_this_version(place):
    """Another one would be a new version: it is added to the list, and how to come from the one before it."""
    store = PostgresStore(place.url)
    assert store.schema() == SCHEMAS[-1]
    store.close()


def test_a_schema_that_is_not_there_has_no_digest(postgres):
    """So it is none of the list."""
    with psycopg.connect(postgres.url()) as root:
        assert digest_schema(root.cursor(), "nowhere") == "" not in SCHEMAS


def test_a_new_ledger_is_refused_in_other_tables(place):
    """Nothing is announced."""
    with place.connect() as owner:
        owner.execute(SABOTAGE[0])

    with pytest.raises(InvalidStudy, match="with the tables of this version"):
        create_ledger(place.url, lambda *_: pytest.fail("filled"), lambda _: pytest.fail("announced"))


def test_tables_of_an_older_version_are_left_to_their_owner(place, monkeypatch):
    """A curator has no right to change them; those of this version are as they should be."""
    store = PostgresStore(place.url)
    store.admit_all_kinds()
    monkeypatch.setattr("curador.ledger.postgres.SCHEMAS", (store.schema(), "later"))
    with pytest.raises(InvalidStudy, match="those of this version"):
        store.admit_all_kinds()
    store.close()


def test_a_second_ledger_in_a_schema_is_refused(own, tmp_path):
    """It would open the spent budget again; the witness of the first is not touched."""
    seen = (tmp_path / "visits.ledger.head").read_bytes()
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(InvalidStudy, match="a new ledger must be in a schema that has none"):
        create(own.url, other)

    assert not list(other.iterdir())
    assert (tmp_path / "visits.ledger.head").read_bytes() == seen


def test_damaged_indexes_are_found(asked, monkeypatch):
    """Rows that an index does not lead to would be questions that nobody paid for; here a partial reading stands for one."""
    store = PostgresStore(asked.url)
    store.integrity()
    monkeypatch.setattr("curador.ledger.postgres._SCANS", (("on", "off", "sequence >= 0"), ("off", "on", "sequence >= 1")))
    with pytest.raises(InvalidStudy, match="a whole ledger"):
        store.integrity()
    store.close()


def test_a_changed_row_is_found_by_the_chain(own, tmp_path):
    """What a superuser does with triggers switched off, and puts back as it was."""
    with own.connect("postgres") as root:
        root.execute("ALTER TABLE entry DISABLE TRIGGER USER")
        root.execute('UPDATE entry SET body = replace(body, \'"epsilon":"1/10"\', \'"epsilon":"1/20"\') WHERE sequence = 1')
        for trigger in ("entry_follows", "entry_stays", "entry_is_not_emptied"):
            root.execute(f"ALTER TABLE entry ENABLE ALWAYS TRIGGER {trigger}")

    with pytest.raises(InvalidStudy, match="ledger entry 1 must have the hash"):
        reopen(own.url, tmp_path)


def test_a_ledger_on_a_server_is_one_like_any_other(place, tmp_path):
    """Asked, answered, settled in all ways, closed, opened, verified; its first entry has the digest of its tables."""
    with create(place.url, tmp_path) as ledger:
        answered = ask(ledger, request(epsilon="0.2", analyst="ana"))
        ledger.fail(ledger.reserve(request(epsilon="0.1")), incident="x")
        ledger.void(ledger.reserve(request(epsilon="0.3", analyst="eva")))
        assert ledger.refresh("more rows") == 2
        ledger.join({"ledger": "another"}, note="the same rows")
        spent, head = ledger.spent(), ledger.head
    with reopen(place.url, tmp_path) as ledger:
        ledger.verify()
        stored = ledger.stored(answered.question_key, 1)
        assert (ledger.spent(), ledger.head) == (spent, head)
        assert stored.entry.content_digest == hashlib.sha256(stored.answer).hexdigest()
        assert ledger.first.creation["schema"] == SCHEMAS[-1]
        assert ledger.spent("eva") == NOTHING

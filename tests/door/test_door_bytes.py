"""Hostile bytes: whatever comes, the door stays open for others, tells no text of another program's, and spends nothing."""

# ruff: noqa: E501 -- statements stand side by side

import random
import socket
import struct

import psycopg
import pytest
from raw_client import RawClient, frame

KINDS = b"PBDECHSQXFpdcf?\x00\xff"


def is_open(door):
    with door.connect() as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def mutated(draw):
    """Return a message whose parts are mostly right."""
    names = [b"", b"s", b"p", b"visits", b"\xff\xfe", b"'\"\\", b"a" * 70]
    texts = [
        b"SELECT count(*) FROM visits", b"SELECT 1", b"SELECT $1", b"", b";;", b"BEGIN", b"COMMIT", b"ROLLBACK", b"\xc3\x28",
        b"SELECT count(*) FROM visits WHERE city = $1", b"FETCH ALL FROM p", b"SET a = b", b"SHOW a", b"CLOSE ALL", b"TABLE visits",
        b"DECLARE p CURSOR FOR SELECT count(*) FROM visits", b"EXPLAIN SELECT 1", b"(" * 3_000, b"SELECT '", b"COPY visits TO STDOUT",
    ]  # fmt: skip
    number = lambda: struct.pack("!H", draw.choice([0, 0, 0, 1, 2, 65_535]))  # noqa: E731
    kind = draw.choice(KINDS)
    match bytes([kind]):
        case b"P":
            body = draw.choice(names) + b"\0" + draw.choice(texts) + b"\0" + number() + draw.randbytes(4 * draw.randrange(3))
        case b"B":
            value = struct.pack("!i", draw.choice([-1, 0, 3, 10**9, -7])) + draw.randbytes(draw.randrange(6))
            body = draw.choice(names) + b"\0" + draw.choice(names) + b"\0" + number() + number() + value + number()
        case b"D" | b"C":
            body = draw.choice([b"S", b"P", b"?"]) + draw.choice(names) + b"\0"
        case b"E":
            body = draw.choice(names) + b"\0" + struct.pack("!i", draw.choice([0, 1, -1, 2**31 - 1]))
        case b"Q":
            body = draw.choice(texts) + b"\0"
        case _:
            body = draw.randbytes(draw.randrange(20))
    if draw.random() < 0.1:
        body = body[: draw.randrange(len(body) + 1)] + draw.randbytes(draw.randrange(3))
    sent = bytes([kind]) + struct.pack("!i", len(body) + 4) + body
    if draw.random() < 0.02:
        sent = bytes([kind]) + struct.pack("!i", draw.choice([-1, 0, 3, 2**31 - 1])) + body
    return sent


@pytest.mark.parametrize("seed", range(40))
def test_mutated_messages_end_in_an_answer_or_the_end(unspent, seed):
    draw = random.Random(seed)
    with RawClient(unspent) as raw:
        sent = b"".join(mutated(draw) for _ in range(draw.randrange(1, 40)))
        try:
            raw.socket.sendall(sent + frame(b"S") + frame(b"X"))
            raw.socket.shutdown(socket.SHUT_WR)
            while raw.socket.recv(1 << 16):
                pass
        except ConnectionError:
            pass
    if seed % 8 == 7:
        assert is_open(unspent)


@pytest.mark.parametrize("seed", range(20))
def test_random_first_bytes_are_no_harm(unspent, seed):
    draw = random.Random(seed)
    heads = [
        b"",
        struct.pack("!ii", 8, 80877103),
        struct.pack("!ii", 16, 80877102),
        struct.pack("!i", 2**31 - 1),
        b"GET / HTTP/1.1\r\n",
    ]
    heads += [struct.pack("!ii", 20, 3 << 16), struct.pack("!ii", 12, 2 << 16), struct.pack("!ii", 9, (3 << 16) + 2)]
    raw = RawClient(unspent, login=False)
    try:
        raw.socket.sendall(heads[seed % len(heads)] + draw.randbytes(draw.randrange(40)))
        raw.socket.shutdown(socket.SHUT_WR)
        while raw.socket.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    raw.socket.close()


def test_after_all_of_it_others_are_served(unspent):
    assert is_open(unspent)
    assert unspent.log == []


def bind(values, forms=(), oids=()):
    parts = [struct.pack("!H", len(forms)), *(struct.pack("!H", form) for form in forms), struct.pack("!H", len(values))]
    parts += [b"\xff\xff\xff\xff" if one is None else struct.pack("!i", len(one)) + one for one in values]
    return b"\0\0" + b"".join(parts) + b"\0\0"


def ask_with(raw, text, values, oids, forms):
    """Prepare, bind and execute a question; return the SQLSTATE of its refusal, or none."""
    body = b"\0" + text.encode() + b"\0" + struct.pack(f"!H{len(oids)}I", len(oids), *oids)
    raw.send(b"P", body)
    raw.send(b"B", bind(values, forms))
    raw.send(b"E", b"\0\0\0\0\0")
    raw.send(b"S")
    for kind, told in raw.until_ready():
        if kind == b"E":
            return told.split(b"\0C")[1][:5].decode()
    return None


@pytest.mark.parametrize(
    ("column", "oid", "form", "value", "state"),
    [
        ("spent", 701, 1, struct.pack("!d", float("nan")), "22P02"),
        ("spent", 701, 1, struct.pack("!d", float("inf")), "22P02"),
        ("spent", 701, 0, b"NaN", "22P02"),
        ("spent", 701, 0, b"-Infinity", "22P02"),
        ("spent", 701, 1, b"abc", "22P02"),
        ("spent", 1700, 0, b"NaN", "22P02"),
        ("spent", 1700, 1, struct.pack("!HhHH", 0, 0, 0xC000, 0), "22P02"),
        ("spent", 1700, 1, struct.pack("!HhHH", 65_535, 0, 0, 0), "22P02"),
        ("spent", 1700, 1, struct.pack("!HhHHH", 1, 32_000, 0, 0, 1), "22P02"),
        ("spent", 1700, 0, b"1" + b"0" * 500, "22P02"),
        ("spent", 1700, 0, b"1e999", "22P02"),
        ("spent", 701, 0, b"0x10", "22P02"),
        ("spent", 701, 0, b"1; DROP TABLE visits", "22P02"),
        ("rating", 20, 0, b"9223372036854775808", "22P02"),
        ("rating", 20, 0, "٣".encode(), "22P02"),
        ("rating", 23, 1, b"\0", "22P02"),
        ("city", 25, 0, b"a\0b", "22P02"),
        ("city", 25, 1, b"\xff\xfe", "22021"),
        ("city", 25, 0, b"\xed\xa0\x80", "22021"),
        ("paid", 16, 1, b"\2", "22P02"),
        ("paid", 16, 0, b"maybe", "22P02"),
        ("day", 1082, 1, struct.pack("!i", 2**31 - 1), "22P02"),
        ("day", 1082, 0, b"infinity", "22P02"),
        ("seen", 1114, 1, struct.pack("!q", 2**63 - 1), "22P02"),
        ("city", 17, 1, b"\0", "0A000"),
        ("city", 2950, 1, b"\0" * 16, "0A000"),
        ("city", 1009, 1, b"\0" * 16, "0A000"),
    ],
)  # fmt: skip
def test_values_that_are_none_are_refused(unspent, column, oid, form, value, state):
    with RawClient(unspent) as raw:
        raw.query("SET curador.spend = '1%'")
        assert ask_with(raw, f"SELECT count(*) FROM visits WHERE {column} = $1", [value], [oid], [form]) == state
        assert raw.query("SELECT 1")[-1] == (b"Z", b"I")


def test_as_many_parameters_as_the_protocol_has(unspent):
    many = [b"Bern"] * 65_535
    listed = ", ".join(f"${number}" for number in range(1, 65_536))
    with RawClient(unspent) as raw:
        raw.query("SET curador.spend = '1%'")
        assert ask_with(raw, f"SELECT count(*) FROM visits WHERE city IN ({listed})", many, [], []) is not None
        assert ask_with(raw, "SELECT count(*) FROM visits WHERE city = $1", many, [], []) == "08P01"
        assert ask_with(raw, "SELECT count(*) FROM visits WHERE city = $65535", many[:-1], [], []) == "08P01"
        assert ask_with(raw, "SELECT count(*) FROM visits WHERE city = $99999", [b"x"], [], []) is not None
        assert ask_with(raw, "SELECT count(*) FROM visits WHERE city = $0", [b"x"], [], []) is not None
        assert raw.query("SELECT 1")[-1] == (b"Z", b"I")


def test_signs_of_parameters_inside_quotes_and_comments_are_none(door):
    texts = [
        "SELECT count(*) AS n FROM visits WHERE city <> '$1' AND city = $1",
        "SELECT count(*) AS n FROM visits WHERE city = $1 -- $2",
        "SELECT /* $2 /* $3 */ */ count(*) AS n FROM visits WHERE city = $1",
        'SELECT count(*) AS "$2" FROM visits WHERE city = $1',
    ]
    with RawClient(door) as raw:
        raw.query("SET curador.spend = '1%'")
        for text in texts:
            assert ask_with(raw, text, [b"x' OR '1'='1"], [25], [0]) is None, text
            assert ask_with(raw, text, [b"x", b"y"], [25], [0]) == "08P01"


def test_a_text_that_is_not_utf8_is_refused(unspent):
    with RawClient(unspent) as raw:
        raw.send(b"Q", b"SELECT '\xff'\0")
        said = raw.until_ready()
        assert b"C22021" in said[0][1]
        assert said[-1] == (b"Z", b"I")


def test_a_message_that_is_too_long_ends_the_connection(unspent):
    with RawClient(unspent) as raw:
        raw.socket.sendall(b"Q" + struct.pack("!i", 100_000_000))
        kind, body = raw.read()
        assert kind == b"E"
        assert b"C08P01" in body
        assert raw.read() == (b"", b"")


def test_a_wrong_secret_cancels_nothing(unspent):
    with RawClient(unspent) as raw:
        with socket.create_connection(("127.0.0.1", unspent.port)) as other:
            other.sendall(struct.pack("!ii", 16, 80877102) + raw.key[:4] + b"\0\0\0\0")
            assert other.recv(10) == b""
        assert raw.query("SELECT 1")[-1] == (b"Z", b"I")


def test_no_answer_says_where_anything_lies(unspent):
    """No path, no name of a file of ours or of PostgreSQL's sources, in errors of many kinds."""
    with unspent.connect() as connection:
        for text in (
            "SELECT 1/0",
            "SELECT nope",
            "SELECT 'a'::int",
            "SELECT * FROM pg_nope",
            "SHOW data_directory",
            "SELECT pg_sleep(1)",
        ):
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(text)
            diag = refused.value.diag
            assert diag.source_file is None
            assert diag.source_function is None
            assert "/" not in str(refused.value).replace("1/0", "")

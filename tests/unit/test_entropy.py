"""Where random bits come from: never twice the same, never somebody else's, never recomputed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
import warnings
from fractions import Fraction

import numpy as np
import pytest

from curador.randomness import entropy as module
from curador.randomness.entropy import U16, U32, U64, Entropy, Keystream, entropy
from curador.randomness.injected import Scripted, Seeded
from curador.randomness.noise import LawKind, laplace, make_noise

WIDE = Fraction(10**30)  # two of 10⁵ draws at this scale agree with probability below 1e-20: a value names its draw

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


# ---- words --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [U16, U32, U64])
def test_words_have_their_kind_and_number(kind):
    """Words come in the asked number, writable, with the asked width."""
    words = entropy().words(1000, kind)

    assert words.dtype == kind
    assert words.shape == (1000,)
    words[0] = 1


def test_no_block_is_handed_out_twice():
    """A quarter of a million 64-bit words over many calls and erasures are distinct (false alarm 2e-9)."""
    source = Keystream()
    seen = []
    for size in (1, 15, 16, 17, 1000, 100_000, 148_951):
        seen.append(source.words(size, U64))
        source.erase()
    words = np.concatenate(seen)

    assert len(np.unique(words)) == len(words) == 250_000


def test_bits_are_the_top_of_whole_bytes():
    """An integer of n bits lies below 2^n, takes the top bits, and none costs nothing."""
    assert Scripted(b"\xff\x01").bits(9) == 0x01FF >> 7
    assert Scripted(b"\x80").bits(1) == 1
    assert Scripted(b"\x7f").bits(1) == 0
    assert Scripted(b"").bits(0) == 0
    assert all(0 <= entropy().bits(5) < 32 for _ in range(100))


def test_bits_and_bytes_are_even():
    """Each bit of 64-bit words is set half of the time, each byte comes equally often (false alarm 1e-9)."""
    from scipy.special import chdtrc

    source = Keystream()
    words = source.words(200_000, U64)
    ones = np.array([int(((words >> np.uint64(i)) & np.uint64(1)).sum()) for i in range(64)])
    counts = np.bincount(source.fill(1 << 20), minlength=256)

    assert np.abs(ones - 100_000).max() < 7 * np.sqrt(50_000)
    assert chdtrc(255, ((counts - 4096) ** 2 / 4096).sum()) > 1e-9


def test_an_empty_request_reads_nothing():
    """Zero bytes are zero bytes."""
    assert len(entropy().fill(0)) == 0
    assert len(Scripted(b"").fill(0)) == 0


# ---- the operating system -----------------------------------------------------------------------------------------------


class System:
    """An operating system whose randomness is written down."""

    def __init__(self, first=1):
        self.asked, self.next = [], first

    def urandom(self, count):
        self.asked.append(count)
        self.next += 1
        return bytes([self.next % 256]) * count


def waiting(source, noise):
    """What was drawn ahead and not handed out yet."""
    return source.stocks[noise].tolist() + source.pools.get(noise, [])


def test_all_randomness_comes_from_the_operating_system(monkeypatch):
    """Equal bytes of the system make equal streams, other bytes others: nothing else enters."""
    streams = []
    for first in (1, 1, 2):
        system = System(first)
        monkeypatch.setattr(module.os, "urandom", system.urandom)
        streams.append(Keystream().fill(64).tobytes())
        assert system.asked == [48]

    assert streams[0] == streams[1]
    assert streams[0] != streams[2]


def test_seeding_other_generators_changes_nothing():
    """The same seed of random and of NumPy before two streams: they differ all the same."""
    made = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002 -- the global state is the point
        made.append((Keystream().fill(32).tobytes(), laplace(WIDE).one(Keystream()), laplace(WIDE).draw(1, entropy())[0]))

    assert all(a != b for a, b in zip(*made, strict=True))


def test_drawing_does_not_disturb_other_generators():
    """The state of random and of NumPy is left alone."""
    before = random.getstate(), np.random.get_state()[2]  # noqa: NPY002
    laplace(Fraction(3)).draw(1000, entropy())

    assert (random.getstate(), np.random.get_state()[2]) == before  # noqa: NPY002


def test_a_minute_later_the_system_is_mixed_in_first(monkeypatch):
    """Nothing is drawn, and nothing drawn ahead is used, from a key older than a minute."""
    clock = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    system = System()
    monkeypatch.setattr(module.os, "urandom", system.urandom)
    source = Keystream()
    noise = laplace(WIDE)
    for _ in range(100):
        noise.one(source)
    ahead = waiting(source, noise)
    assert ahead
    assert system.asked == [48]
    clock[0] += 61
    drawn = [noise.one(source) for _ in range(len(ahead))]

    assert len(system.asked) == 2
    assert not set(drawn) & set(ahead)
    clock[0] += 61
    source.fill(8)
    assert len(system.asked) == 3
    source.fill(8)
    assert len(system.asked) == 3


def test_old_bytes_are_mixed_after_many(monkeypatch):
    """After the stated number of bytes an erasure mixes the system in."""
    system = System()
    monkeypatch.setattr(module.os, "urandom", system.urandom)
    monkeypatch.setattr(module, "_FRESH_BYTES", 1000)
    source = Keystream()
    source.fill(999)
    source.erase()
    assert len(system.asked) == 1
    source.fill(1)
    source.erase()

    assert len(system.asked) == 2


def test_refresh_mixes_and_drops_what_was_drawn_ahead(monkeypatch):
    """Whoever asks for fresh bytes gets them at once; mixing keeps the old key's secrecy if the system's bytes are known."""
    outputs = []
    for secret in (1, 2):  # the first seeds differ, the bytes mixed in are the same
        monkeypatch.setattr(module.os, "urandom", System(secret).urandom)
        source = Keystream()
        laplace(WIDE).one(source)
        monkeypatch.setattr(module.os, "urandom", bytes)  # zeros
        source.refresh()
        assert source.pools == source.stocks == {}
        outputs.append(source.fill(32).tobytes())

    assert outputs[0] != outputs[1]


# ---- keys ---------------------------------------------------------------------------------------------------------------


def stream_of(material, count):
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(material[:32]), modes.CTR(material[32:48])).encryptor().update(bytes(count))


@pytest.fixture
def keys(monkeypatch):
    """Every key that streams take, in order."""
    taken = []
    plain = Keystream._key  # noqa: SLF001

    def noted(self, material):
        taken.append(material)
        plain(self, material)

    monkeypatch.setattr(Keystream, "_key", noted)
    return taken


def test_erase_replaces_the_key(keys):
    """Whoever reads the memory after an erasure can recompute what comes, not what was drawn."""
    source = Keystream()
    before = source.fill(160).tobytes()
    assert stream_of(keys[-1], 160) == before  # before the erasure the key gives it away
    source.erase()
    after = source.fill(160).tobytes()

    assert len(keys) == 2
    assert keys[0] != keys[1]
    assert stream_of(keys[1], 160) == after
    ahead = stream_of(keys[1], 1 << 16)
    back = int.from_bytes(keys[1][32:48], "big")
    behind = stream_of(keys[1][:32] + ((back - 4096) % (1 << 128)).to_bytes(16, "big"), 1 << 16)
    assert not any(before[i : i + 16] in text for text in (ahead, behind) for i in range(0, 160, 16))


def test_the_next_key_is_never_handed_out(keys):
    """The bytes that become the key are skipped by the output."""
    source = Keystream()
    first = source.fill(100).tobytes()
    source.erase()
    second = source.fill(100).tobytes()

    assert keys[1] == stream_of(keys[0], 148)[100:]
    assert keys[1][:16] not in first + second


def test_erasing_an_unused_key_keeps_it(keys):
    """Two erasures without a draw between them cost one."""
    source = Keystream()
    source.erase()
    source.fill(1)
    source.erase()
    source.erase()

    assert len(keys) == 2


def test_long_requests_change_keys_on_the_way(keys, monkeypatch):
    """After the stated number of bytes the key changes inside a request, and no block repeats."""
    monkeypatch.setattr(module, "_REKEY_BYTES", 1 << 12)
    monkeypatch.setattr(module, "_BLOCK", memoryview(bytes(1 << 10)))
    source = Keystream()
    data = source.fill((1 << 16) + 24)

    assert len(keys) == 17
    assert len(set(keys)) == 17
    assert data.tobytes() == b"".join(stream_of(key, 1 << 12) for key in keys)[: len(data)]
    blocks = data.view(U64)
    assert len(np.unique(blocks)) == len(blocks)


def test_filling_a_pool_forgets_its_key(keys):
    """What waits in a pool cannot be recomputed from the stream's memory, and a used value leaves the pool."""
    source = Keystream()
    noise = laplace(WIDE)
    value = noise.one(source)

    assert len(keys) == 2
    assert value not in waiting(source, noise)
    held = len(waiting(source, noise))
    noise.one(source)
    assert len(waiting(source, noise)) == held - 1


# ---- forks --------------------------------------------------------------------------------------------------------------


def in_child(work):
    """Fork, run the work in the child, and return the text it gives."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():  # the test runner has threads, and newer Pythons warn that a fork leaves them behind
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            with os.fdopen(writer, "w") as out:
                out.write(work())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as source:
        text = source.read()
    assert os.waitpid(child, 0)[1] == 0
    return text


def drawn(source, noise):
    """A thousand 64-bit blocks, then a thousand scalars, by their names."""
    words = source.words(1000, U64).tolist()
    return [f"w{word}" for word in words] + [f"s{noise.one(source)}" for _ in range(1000)]


def shared_blocks(prepare=lambda: None):
    """How many blocks and scalars appear more than once among 8 forked workers and their parent, buffers and pools warm."""
    source, noise = Keystream(), make_noise(LawKind.LAPLACE, WIDE)  # both new: no minute ends and no pool is large
    for _ in range(50):
        noise.one(source)
    source.fill(100)
    held = [f"s{value}" for value in waiting(source, noise)]
    assert held

    def work():
        prepare()
        return " ".join(drawn(source, noise))

    everything = [in_child(work).split() for _ in range(8)]
    everything.append(drawn(source, noise))
    assert all(len(part) == 2000 for part in everything)
    assert all(block in everything[-1] for block in held)  # the parent keeps its own
    flat = [block for part in everything for block in part]
    return len(flat) - len(set(flat))


@pytest.mark.slow
@needs_fork
def test_forked_workers_share_no_block():
    """8 workers × 1000 draws from a warm buffer and a warm pool share no 64-bit block and no scalar."""
    assert shared_blocks() == 0


@pytest.mark.slow
@needs_fork
def test_without_fork_detection_they_share_all(monkeypatch):
    """With hook and process number disabled the test above finds everything shared."""
    monkeypatch.setattr(Keystream, "_here", lambda _: True)

    assert shared_blocks() >= 8 * 2000


@pytest.mark.slow
@needs_fork
def test_process_number_alone_detects_a_fork():
    """A fork that bypasses Python's hooks is detected."""
    generation = module._Forks.generation  # noqa: SLF001

    def forget():
        assert module._Forks.generation == generation + 1  # noqa: SLF001
        module._Forks.generation = generation  # noqa: SLF001

    assert shared_blocks(forget) == 0


@pytest.mark.slow
@needs_fork
def test_hook_alone_detects_a_fork(monkeypatch):
    """A child that happens to have its parent's process number is detected."""
    monkeypatch.setattr(module.os, "getpid", lambda: 4242)

    assert shared_blocks() == 0


@pytest.mark.slow
@needs_fork
def test_grandchildren_and_siblings_differ():
    """A fork of a fork is detected too."""
    source = entropy()
    source.fill(8)

    def work():
        mine = source.words(100, U64).tolist()
        theirs = in_child(lambda: " ".join(map(str, source.words(100, U64).tolist())))
        return f"{' '.join(map(str, mine))} {theirs} {' '.join(map(str, source.words(100, U64).tolist()))}"

    words = in_child(work).split() + in_child(work).split() + [str(word) for word in source.words(100, U64).tolist()]

    assert len(words) == len(set(words)) == 700


@pytest.mark.slow
def test_separate_processes_differ():
    """Two fresh interpreters draw different noise."""
    code = "from curador.randomness.entropy import entropy; print(entropy().fill(16).tobytes().hex())"
    texts = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout for _ in range(2)
    }

    assert len(texts) == 2


# ---- threads ------------------------------------------------------------------------------------------------------------


def test_eight_threads_have_eight_streams():
    """Every thread has its own stream; among all of them no block and no scalar is shared."""
    results, barrier = [], threading.Barrier(8)
    noise = laplace(WIDE)

    def work():
        barrier.wait()
        source = entropy()
        assert source is entropy()
        results.append((source, drawn(source, noise)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flat = [block for _, part in results for block in part]

    assert len({id(source) for source, _ in results}) == 8
    assert len(flat) == len(set(flat)) == 16_000


def test_a_stream_refuses_another_thread():
    """A keystream handed to another thread raises instead of drawing."""
    source, caught = Keystream(), []

    def work():
        try:
            source.fill(8)
        except RuntimeError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert caught == ["a keystream belongs to the thread that made it; call entropy() in this one"]
    assert len(source.fill(8)) == 8


# ---- what tests inject --------------------------------------------------------------------------------------------------


def test_only_the_keystream_is_private():
    """A stream that somebody else can reproduce says so."""
    assert entropy().private
    assert not Seeded(1).private
    assert not Scripted(b"").private
    assert not Scripted(b"", then=entropy()).private
    assert not Entropy.private
    assert Seeded(1).pools is None
    assert Seeded(1).current()


def test_seeded_streams_repeat():
    """One seed one stream, however it is cut; another seed another."""
    whole = Seeded(7).fill(100).tobytes()
    source = Seeded(7)

    assert source.fill(33).tobytes() + source.fill(67).tobytes() == whole
    assert Seeded(8).fill(100).tobytes() != whole
    source.erase()  # nothing to forget


def test_scripts_are_read_to_the_end():
    """A script gives its bytes, then the stream that follows it, else an error."""
    source = Scripted(b"abc")
    assert source.fill(2).tobytes() == b"ab"
    assert source.left == 1
    with pytest.raises(EOFError, match="4 more bytes"):
        source.fill(5)
    assert Scripted(b"ab", then=Scripted(b"cdef")).fill(4).tobytes() == b"abcd"


def test_the_base_has_no_bytes():
    """A stream must say where its bytes come from."""
    with pytest.raises(TypeError, match="fill"):
        Entropy()


def test_clock_is_monotonic():
    """A clock that somebody sets back does not keep an old key alive."""
    assert module.time.monotonic is time.monotonic

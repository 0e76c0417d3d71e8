"""Where every random bit comes from: a keystream keyed by the operating system.

AES-256 in counter mode, one stream a thread. The key is replaced by keystream after every release and every 64 MiB, so that
what was drawn cannot be recomputed from memory later; new bytes of the operating system are mixed in every 4 GiB and every
minute, before anything older is handed out. A fork drops stream and pools: by a hook, and by the process number for forks
that bypass Python's hooks.

Not covered: a snapshot of a running machine that is resumed twice repeats up to a minute of noise, by that machine's clock.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    from curador.randomness.noise import Noise

Bytes: TypeAlias = NDArray[np.uint8]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[Any]

U16, U32, U64 = np.dtype("<u2"), np.dtype("<u4"), np.dtype("<u8")
"""Words of the stream, in one byte order on every machine."""

_BLOCK = memoryview(bytes(1 << 20))  # zeros: encrypting them gives the keystream
_REKEY_BYTES = 1 << 26
_FRESH_BYTES = 1 << 32
_FRESH_SECONDS = 60.0


class _Forks:
    """How many forks lie between this process and the first."""

    generation = 0

    @classmethod
    def one_more(cls) -> None:
        cls.generation += 1


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_Forks.one_more)


class Entropy(ABC):
    """Fresh random bytes, each handed out once.

    `private` says whether noise made from them may protect anybody: a stream that tests inject says no, and whoever serves
    answers refuses it. `pools` holds scalars drawn ahead, or is None where nothing may be drawn ahead; `stocks` holds what
    vectors are cut from.
    """

    private: bool = False
    pools: dict[Noise, list[int]] | None = None
    stocks: dict[Noise, NDArray[Any]]

    @abstractmethod
    def fill(self, count: int) -> Bytes:
        """Return `count` fresh bytes in a writable array."""

    def words(self, count: int, kind: DTypeLike) -> Words:
        """Return `count` fresh words of the kind: all bits uniform and independent."""
        return self.fill(count * np.dtype(kind).itemsize).view(kind)

    def bits(self, count: int) -> int:
        """Return a uniform integer of `count` bits."""
        size = (count + 7) // 8
        return int.from_bytes(self.fill(size).tobytes(), "little") >> (8 * size - count)

    def erase(self) -> None:  # noqa: B027 -- a stream without a key has nothing to erase
        """Make what was drawn so far impossible to recompute, where the stream can."""

    def current(self) -> bool:
        """Whether what was drawn ahead may still be used: it belongs to this process and is not old."""
        return True


class Keystream(Entropy):
    """The operating system's randomness, stretched. One object a thread; `entropy()` returns it."""

    private = True

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._seed()

    def _seed(self) -> None:
        self._generation, self._process = _Forks.generation, os.getpid()
        self.pools, self.stocks = {}, {}
        self._key(os.urandom(48))
        self._since, self._at = 0, time.monotonic()

    def _key(self, material: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._stream = Cipher(algorithms.AES(material[:32]), modes.CTR(material[32:48])).encryptor()
        self._left = _REKEY_BYTES
        self._used = False

    def current(self) -> bool:
        """Whether this process is the one that was seeded, less than a minute ago."""
        return self._here() and time.monotonic() - self._at < _FRESH_SECONDS

    def _here(self) -> bool:
        return self._generation == _Forks.generation and self._process == os.getpid()

    def fill(self, count: int) -> Bytes:
        """Return `count` fresh bytes in a writable array."""
        if self._thread != threading.get_ident():  # two threads reading one position would draw the same noise
            raise RuntimeError("a keystream belongs to the thread that made it; call entropy() in this one")
        if not self.current():
            self.refresh()
        out = np.empty(count + 16, np.uint8)  # the cipher wants room for one block more
        view, start = out.data, 0
        while start < count:
            size = min(count - start, len(_BLOCK))
            self._stream.update_into(_BLOCK[:size], view[start : start + size + 15])
            start += size
            self._left -= size
            self._since += size
            self._used = True
            if self._left <= 0:
                self.erase()
        return out[:count]

    def erase(self) -> None:
        """Replace the key by keystream, and mix in the operating system's bytes when it is time."""
        if not self._used:
            return
        if self._since >= _FRESH_BYTES:
            self.refresh()
        else:
            self._key(self._stream.update(bytes(48)))

    def refresh(self) -> None:
        """Mix in the operating system's bytes now, and drop what was drawn ahead."""
        if not self._here():
            self._seed()
            return
        self.pools, self.stocks = {}, {}
        self._key(_mix_material(self._stream.update(bytes(48))))
        self._since, self._at = 0, time.monotonic()


def _mix_material(material: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(material, os.urandom(48), strict=True))


_local = threading.local()


def entropy() -> Keystream:
    """Return this thread's keystream."""
    stream = getattr(_local, "stream", None)
    if stream is None:
        stream = _local.stream = Keystream()
    return stream

"""Entropy that a test injects: reproducible or written by hand, never private."""

from __future__ import annotations

import numpy as np

from curador.randomness.entropy import Bytes, Entropy


class Seeded(Entropy):
    """A reproducible stream. Not private: whoever knows the seed knows the noise."""

    def __init__(self, seed: int) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._stream = Cipher(algorithms.AES(seed.to_bytes(32, "little")), modes.CTR(bytes(16))).encryptor()

    def fill(self, count: int) -> Bytes:
        """Return the next `count` bytes of the seed's stream."""
        return np.frombuffer(bytearray(self._stream.update(bytes(count))), np.uint8)


class Scripted(Entropy):
    """Bytes written by hand, then another stream; without one, asking for more is an error."""

    def __init__(self, script: bytes, then: Entropy | None = None) -> None:
        self._script, self._place, self._then = script, 0, then

    def fill(self, count: int) -> Bytes:
        """Return the next bytes of the script, completed by the stream that follows it."""
        taken = bytearray(self._script[self._place : self._place + count])
        self._place += len(taken)
        if len(taken) < count:
            if self._then is None:
                raise EOFError(f"the script has ended; {count - len(taken)} more bytes were asked for")
            taken += self._then.fill(count - len(taken)).tobytes()
        return np.frombuffer(taken, np.uint8)

    @property
    def left(self) -> int:
        """How many bytes of the script have not been read."""
        return len(self._script) - self._place

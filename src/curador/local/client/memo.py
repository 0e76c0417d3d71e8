"""Memoised bits: a value is randomized once and kept, and every report randomizes what is kept once more."""

from __future__ import annotations

import json
from fractions import Fraction

from .base import VERSION, Client, code_of, size_of
from .chance import WHOLE, coin, coins, epsilon_of, share_of_truth
from .refusal import Refusal, require
from .unary import LARGEST_UNARY

HALF = WHOLE // 2


class RapporClient(Client):
    """Bits of a value, randomized once and for all; then each report flips every one of them with a chance of its own.

    The kept bits are those of the optimal unary encoding for `epsilon_forever`: the value's own is 1 with probability 1/2,
    any other with q ≥ 1/(e^ε + 1). A report keeps each with probability kept/2⁶⁴: so its own bit is 1 with probability 1/2,
    any other with q*, and q* ≥ 1/(e^ε + 1) for `epsilon_once`. No other bits with that ε have
    less variance for a rare value.

    Claim   One report is `epsilon_once`-private. All reports of one value together are `epsilon_forever`-private, however
            many: they are made from the kept bits alone. Every other value that a person comes to have costs
            `epsilon_forever` once more.
    Needs   Kept bits that are lost are drawn anew, which costs as another value does: keep `state()` before you send. When a
            value changed is not hidden: reports before and after are made from other bits, and one can tell in the end.
    Source  [EPK14]; [WBLJ17] for the optimal form.
    """

    kind = "rappor"
    __slots__ = ("_memo", "epsilon", "false_share", "forever", "kept", "size", "values")

    def __init__(self, *, epsilon_forever: object, epsilon_once: object, size: object, values: object = 1) -> None:
        self.forever, self.epsilon = epsilon_of(epsilon_forever), epsilon_of(epsilon_once)
        require(self.epsilon <= self.forever, "epsilon_once", "at most epsilon_forever", epsilon_once)
        self.size = size_of(size)
        require(self.size <= LARGEST_UNARY, "size", "at most 2^24", size)
        require(type(values) is int and values >= 1, "values", "a whole number of at least 1", values)
        self.values: int = values  # type: ignore[assignment]
        self.false_share = WHOLE - share_of_truth(self.forever, truths=1, others=1)
        require(self.false_share < HALF, "epsilon_forever", "above 1e-18", epsilon_forever)
        self.kept = kept_share(self.epsilon, self.false_share)
        self._memo: dict[int, int] = {}

    @property
    def width(self) -> int:
        """How many bytes a report has."""
        return (self.size + 7) // 8

    def report(self, value: int) -> bytes:
        """Return what to send; the first report of a value draws the bits that are kept."""
        code = code_of(value, self.size)
        if code not in self._memo:
            if len(self._memo) >= self.values:
                raise Refusal(
                    f"value must be one of the {self.values} that were reported before; got another: it would cost "
                    "epsilon_forever once more.\nHint: allow more by values=, and account for them."
                )
            bits, own = coins(self.false_share, self.size), coin(HALF)
            self._memo[code] = bits & ~(1 << code) | own << code
        return (self._memo[code] ^ coins(WHOLE - self.kept, self.size)).to_bytes(self.width, "little")

    def state(self) -> str:
        """Return the kept bits as text, for this device alone: whoever reads it knows the values."""
        memo = {str(code): bits.to_bytes(self.width, "little").hex() for code, bits in self._memo.items()}
        return json.dumps({"curador": "local state", "version": VERSION, **self.parameters(), "memo": memo})

    def load(self, text: str) -> RapporClient:
        """Take the kept bits that `state` of a client of the same parameters wrote. Returns the client."""
        try:
            body = json.loads(text)
            memo = body.pop("memo")
            if any(not isinstance(code, str) or str(int(code)) != code for code in memo):
                raise ValueError  # noqa: TRY301 -- " 3" and "3" would be one value
            kept = {int(code): int.from_bytes(bytes.fromhex(bits), "little") for code, bits in memo.items()}
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
            raise Refusal("text must be what a client's state wrote; got something else.") from None
        if body != {"curador": "local state", "version": VERSION, **self.parameters()}:
            raise Refusal("text must be the state of a client of the same parameters; got another's.")
        sound = all(0 <= code < self.size and 0 <= bits < 1 << self.size for code, bits in kept.items())
        if not sound or len(kept) > self.values:
            raise Refusal("text must be the state of such a client; got one that no client wrote.")
        if any(self._memo[code] != kept.get(code) for code in self._memo):
            raise Refusal("text must be loaded before the first report; got one that differs from what was reported.")
        self._memo = kept
        return self

    def chances(self) -> tuple[Fraction, Fraction, Fraction]:
        """Return, exactly: how likely a kept bit is 1 that is not the value's, how likely it is kept in a report, and q*."""
        false, kept = Fraction(self.false_share, WHOLE), Fraction(self.kept, WHOLE)
        return false, kept, false * kept + (1 - false) * (1 - kept)

    def parameters(self) -> dict[str, object]:
        """What the client is made from; the kept bits are not in it."""
        return {
            "epsilon_forever": str(self.forever),
            "epsilon_once": str(self.epsilon),
            "size": self.size,
            "values": self.values,
        }


def kept_share(epsilon: Fraction, false_share: int) -> int:
    """Return how likely a kept bit goes into a report as it is, in shares of 2⁻⁶⁴.

    Claim   With q the chance of a false kept bit, a reported one has q* = q κ + (1 − q)(1 − κ), which falls with κ; κ is the
            largest for which q* ≥ 1/(e^ε + 1), so that the odds (1/2)(1 − q*)/(q*(1/2)) of the two bits in which two values
            differ are at most e^ε. It is at most 1, for q ≤ 1/(e^ε + 1) where this ε is not larger than the one of q.
    Rounds  Down.
    """
    least = Fraction(WHOLE - share_of_truth(epsilon, truths=1, others=1), WHOLE)
    false = Fraction(false_share, WHOLE)
    return min(int(WHOLE * (1 - false - least) / (1 - 2 * false)), WHOLE)

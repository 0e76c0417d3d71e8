"""Reports round after round on a value that stays the same: memoised bits, randomized once more for every report."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from curador.errors import require
from curador.local.client.memo import RapporClient
from curador.local.protocol import exact_epsilon
from curador.local.unary import Unary
from curador.numerics.exact import Number, whole
from curador.numerics.rounding import float_up, log_up
from curador.privacy.adjacency import REPLACE_ONE
from curador.privacy.losses import Finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curador.local.protocol import Domain
    from curador.privacy.loss import Loss


_MANY = 1000
"""Reports beyond which their common ε is given as ε_forever."""


@dataclass(frozen=True, slots=True, init=False)
class Rappor(Unary):
    """Each person reports bits of a value that was randomized once and is kept, and randomizes them again for each report.

    Every round is collected by itself, one report a person: as good as `Unary(epsilon=epsilon_once)`. `values` is how many
    different values a client reports in its life.

    Claim   One report is ε_once-private (`loss`); all reports of one value together are ε_forever-private (`loss_forever`),
            however many; each further value costs `loss_forever` once more.
    Needs   For several values: two histories whose value changes in the same rounds. That it changed, and when, is not
            hidden.
    Source  [EPK14]; [WBLJ17] for the optimal form.
    """

    epsilon_forever: Fraction
    values: int

    def __init__(
        self,
        domain: int | Sequence[Any] | Domain,
        *,
        epsilon_forever: Number,
        epsilon_once: Number,
        values: Number = 1,
    ) -> None:
        forever, once = exact_epsilon(epsilon_forever), exact_epsilon(epsilon_once)
        require(once <= forever, "epsilon_once", "at most epsilon_forever", epsilon_once)
        object.__setattr__(self, "epsilon_forever", forever)
        object.__setattr__(self, "values", whole(values, "values"))
        Unary.__init__(self, domain, epsilon=once)

    @property
    def name(self) -> str:
        """What the protocol is called in a table."""
        return "Rappor"

    def client(self) -> RapporClient:  # type: ignore[override]  # not a UnaryClient: it has a state
        """Return the part for a person's device. It has a state: `state()` is kept there, `load(text)` takes it back."""
        return RapporClient(
            epsilon_forever=self.epsilon_forever, epsilon_once=self.epsilon, size=self.size, values=self.values
        )

    @property
    def p(self) -> Fraction:
        """1/2: a fair bit stays fair, whatever is done to it."""
        return Fraction(1, 2)

    @property
    def q(self) -> Fraction:
        """How likely a report has a bit that is not its sender's, exactly: through both randomizations."""
        return self.client().chances()[2]

    def epsilon_after(self, reports: Number) -> float:
        """Return the ε of so many reports of one value together. Rounds: up.

        Claim   Given kept bits, T reports of a bit with j more ones than zeros are ρ^j times as likely from a kept 1 as from
                a kept 0, ρ = κ/(1 − κ). So the own bit's odds rise with j and the other value's fall: the worst are T ones
                and T zeros, (q + (1 − q)ρ^T)/(q ρ^T + 1 − q) in all. It is at most T ε_once and at most ε_forever.
        """
        times = whole(reports, "reports")
        q, kept, _ = self.client().chances()
        forever = float_up(self.epsilon_forever)
        if kept == 1 or times > _MANY:
            return forever
        odds = (kept / (1 - kept)) ** times
        return min(log_up((q + (1 - q) * odds) / (q * odds + 1 - q)), forever)

    @property
    def loss_forever(self) -> Loss:
        """What all reports of one value cost together: the loss of the kept bits. Claim: as for `Unary`."""
        q = self.client().chances()[0]
        half = Fraction(1, 2)
        both, own, other = half * q, half * (1 - q), half * q
        none = 1 - both - own - other
        return Finite(p=(own, other, both, none), q=(other, own, both, none), adjacency=REPLACE_ONE)

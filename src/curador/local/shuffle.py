"""Reports that somebody shuffled: what their collector learns of one person, once nobody can tell who sent which."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from curador.errors import InvalidParameter, NotPrivate
from curador.local.client.chance import exp_below
from curador.local.protocol import Reporting
from curador.local.rappor import Rappor
from curador.numerics.exact import Number, whole
from curador.privacy.losses import Shuffled

if TYPE_CHECKING:
    from curador.privacy.loss import Loss

_NEAR = 1 - Fraction(1, 10**12)


def shuffled(protocol: object, *, reports: Number) -> Loss:
    """Return the loss of one person towards a collector who sees `reports` reports in an order that chance made.

    Claim   As `Shuffled` says, for a randomizer of the protocol's ε whose laws under any two values differ by at most
            δ(0) of its loss in total variation.
    Needs   One report a person, drawn anew; a shuffler that the collector cannot see into, and who takes off whatever names a
            sender (addresses, times); all of the other reports honest, or `reports` lowered to those that are.
    Rounds  Up.
    """
    if not isinstance(protocol, Reporting):
        raise InvalidParameter.must_be("protocol", "a protocol of curador.local", protocol)
    if isinstance(protocol, Rappor):
        raise NotPrivate(
            "protocol must draw every report anew to be shuffled: no theorem adds up rounds of reports on kept bits.",
            hint="account for all rounds of a value by loss_forever.",
        )
    number = whole(reports, "reports", least=2)
    variation = min(Fraction(protocol.loss.delta(0)), Fraction(1))
    power = exp_below(protocol.epsilon)
    largest = (power - 1) / (power + 1)  # tanh(ε/2): what any ε-private randomizer has at most
    known = variation if variation < largest * _NEAR else None
    return Shuffled(epsilon=protocol.epsilon, reports=number, variation=known)

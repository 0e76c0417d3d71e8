"""The rules that every mechanism keeps, ours or somebody else's."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from curador.audit.replay import face, replay
from curador.audit.testers import compare_divergences
from curador.errors import Refused
from curador.mechanisms.seam import recording
from curador.numerics.exact import Number
from curador.privacy.loss import Loss
from curador.privacy.losses import loss_from_record
from curador.randomness.injected import Seeded
from curador.testing.findings import require_conforming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

TIMES = 1_024
"""Draws that are compared: of an output that is the same 95 times in 100 none would differ with probability 1e-22."""

NO_INPUTS: tuple[Any, ...] = (None, object(), "seven", float("nan"))
"""What no mechanism takes for the value to be protected."""


def check_mechanism(  # noqa: PLR0915 -- six rules, each a few lines that share the arguments
    mechanism: Any,
    world: Any,
    neighbour: Any,
    *,
    score: Callable[[Any], NDArray[Any]] | None = None,
    samples: int = 20_000,
    confidence: Number = "0.999999999",
    name: str = "release",
) -> None:
    """Raise NonconformingError, with a sentence a rule, unless the mechanism keeps every rule on two neighbouring inputs.

    mechanism    frozen parameters with release, release_many, draw, within and loss
    world        an input; a tuple is several arguments
    neighbour    one that the loss protects it from
    score        makes one number of each output of release_many, where outputs are none
    samples      releases in each of the two worlds that the claim is tested with
    confidence   that a right mechanism is not accused
    name         of the method that releases, if it is another one; the one of many is `<name>_many`

    Rules: it is a value, equal to its copy; its loss is a Loss that reads back from its record; every release goes through
    the seam, whose inputs are within the declared sensitivity in both directions; all randomness is that of the entropy it is
    given, and there is some; what is no input is refused before anything is drawn and is not repeated; `samples` releases do
    not refute the claim of its loss.

    Claim   A mechanism that keeps the rules is accused with probability at most 1 − confidence. The converse is about these
            two inputs and what so many samples can show: it is no proof of privacy.
    Source  `audit.replay`, `audit.divergences`.
    """
    release, many = getattr(mechanism, name), getattr(mechanism, f"{name}_many")

    def once(value: Any) -> Any:
        return release(*_arguments(value))

    def the_mechanism_is_a_value() -> Iterator[str]:
        if copy.deepcopy(mechanism) != mechanism:
            yield "a copy of the mechanism must equal it: recorded and replayed releases are compared by it"
        if hash(copy.deepcopy(mechanism)) != hash(mechanism):
            yield "a copy of the mechanism must have its hash"

    def the_loss_is_a_record() -> Iterator[str]:
        loss = mechanism.loss
        if not isinstance(loss, Loss):
            yield f"loss must be a curador.Loss; got {type(loss).__name__}"
        elif loss_from_record(loss.to_record()) != loss:
            yield "loss must be read back from its record as the same loss"

    def releases_go_through_the_seam() -> Iterator[str]:
        for one, other in ((world, neighbour), (neighbour, world)):
            found = replay(once, one, other)
            yield from found.violations
            if found.releases == 0:
                yield "a release must go through the seam: nothing was drawn there"

    def randomness_is_that_of_the_entropy() -> Iterator[str]:
        with recording() as calls:
            once(world)
            once(neighbour)
        used = False
        for call in calls:
            drawn = [face(call.mechanism.draw(call.value, Seeded(seed), TIMES)) for seed in (1, 1, 2)]
            used = used or drawn[0] != drawn[2]
            if drawn[0] != drawn[1]:
                yield "draw must be a function of the value and the entropy: the same bytes gave other outputs"
        if not used:
            yield f"draw must use the entropy: {TIMES} outputs of other bytes were the same in either world"

    def what_is_no_input_is_refused() -> Iterator[str]:
        for bad in NO_INPUTS:
            with recording() as calls:
                try:
                    release(*(bad for _ in _arguments(world)))
                except Refused as refusal:
                    if repr(bad) in str(refusal) and bad is not None:
                        yield f"a refusal must not repeat the value; it did for a {type(bad).__name__}"
                except Exception as error:  # noqa: BLE001 -- any other error is the finding
                    yield f"a {type(bad).__name__} must be Refused; got {type(error).__name__}"
                else:
                    yield f"a {type(bad).__name__} must be refused; it was released"
            if calls:
                yield f"nothing may be drawn for a {type(bad).__name__}"

    def the_claim_is_not_refuted() -> Iterator[str]:
        drawn = [many(*_arguments(value), size=samples) for value in (world, neighbour)]
        one, other = (np.asarray(outputs) if score is None else score(outputs) for outputs in drawn)
        if len(one) != samples or len(other) != samples:
            yield f"{name}_many must return as many outputs as were asked for"
        found = compare_divergences(type(mechanism).__name__, mechanism.loss, one, other, orders=(), confidence=confidence)
        yield from found.violations

    require_conforming(
        type(mechanism).__name__,
        (
            the_mechanism_is_a_value,
            the_loss_is_a_record,
            releases_go_through_the_seam,
            randomness_is_that_of_the_entropy,
            what_is_no_input_is_refused,
            the_claim_is_not_refuted,
        ),
    )


def _arguments(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)  # pyright: ignore[reportUnknownVariableType]

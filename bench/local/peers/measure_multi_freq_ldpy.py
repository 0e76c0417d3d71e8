"""multi-freq-ldpy: a compiled function a person, and a loop over all reports.

What it delivers is cut at 0 and scaled to add up to 1; the unbiased estimates are taken from inside, before that.

`script.py errors|speed PROTOCOL`
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from multi_freq_ldpy.long_freq_est import L_OSUE, L_SUE
from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

from local import measure, tasks
from local.measure import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_inverted: list[np.ndarray] = []


def _overhear() -> None:
    """Keep what its matrix inversions compute before they are cut and scaled."""
    for module in (GRR, LH, SS, UE):
        module.MI = _listening(module.MI, lambda count, n, p, q: (count - n * q) / (p - q))
    for module in (L_SUE, L_OSUE):
        module.MI_long = _listening(
            module.MI_long, lambda count, n, p, q, r, s: (count - n * q * (r - s) - n * s) / ((p - q) * (r - s))
        )


def _listening(original: Callable[..., Any], plain: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def inverted(count: Any, *rest: float) -> Any:
        _inverted[:] = [plain(np.asarray(count, float), *rest)]
        return original(count, *rest)

    return inverted


Functions = tuple["Callable[[int], Any]", "Callable[[list[Any]], np.ndarray]"]


def _functions(protocol: str, epsilon: float, size: int) -> dict[str, Functions]:
    """Return its client and its aggregator, by their name where it has several."""
    if protocol == tasks.DIRECT:
        return {"": (lambda one: GRR.GRR_Client(one, size, epsilon), lambda all_: GRR.GRR_Aggregator_MI(all_, size, epsilon))}
    if protocol == tasks.HASHING:
        return {"": (lambda one: LH.LH_Client(one, size, epsilon), lambda all_: LH.LH_Aggregator_MI(all_, size, epsilon))}
    if protocol == tasks.SUBSET:
        return {"": (lambda one: SS.SS_Client(one, size, epsilon), lambda all_: SS.SS_Aggregator_MI(all_, size, epsilon))}
    if protocol == tasks.RAPPOR:
        both = (tasks.FOREVER * epsilon, epsilon)
        return {
            "L-SUE": (lambda one: L_SUE.L_SUE_Client(one, size, *both), lambda all_: L_SUE.L_SUE_Aggregator_MI(all_, *both)),
            "L-OSUE": (
                lambda one: L_OSUE.L_OSUE_Client(one, size, *both),
                lambda all_: L_OSUE.L_OSUE_Aggregator_MI(all_, *both),
            ),
        }
    best = protocol == tasks.OPTIMAL
    return {"": (lambda one: UE.UE_Client(one, size, epsilon, best), lambda all_: UE.UE_Aggregator_MI(all_, epsilon, best))}


def errors(protocol: str) -> None:
    _overhear()
    for epsilon in tasks.EPSILONS:
        for variant, (client, aggregator) in _functions(protocol, epsilon, tasks.VALUES).items():
            for histogram in tasks.HISTOGRAMS:

                def once(values: np.ndarray, client: Any = client, aggregator: Any = aggregator) -> dict[str, np.ndarray]:
                    delivered = aggregator([client(value) for value in values.tolist()]) * len(values)
                    return {tasks.UNBIASED: _inverted[0], tasks.CONSISTENT: delivered}

                case = Case(tasks.ERROR, protocol, tasks.MULTI_FREQ, epsilon, histogram, variant=variant)
                measure.errors(case, once, tasks.PEER_RUNS, tasks.PEER_SECONDS)


def speed(protocol: str) -> None:
    for epsilon in tasks.SPEED_EPSILONS:
        for variant, (client, aggregator) in _functions(protocol, epsilon, tasks.MANY_VALUES).items():

            def fixed(client: Any = client, aggregator: Any = aggregator) -> float:
                """What its aggregator takes for one report, and so nearly what it does once."""
                one = [client(0)]
                begun = time.perf_counter()
                aggregator(one)
                return time.perf_counter() - begun

            def each(values: Sequence[int], client: Any = client, aggregator: Any = aggregator, fixed: Any = fixed) -> float:
                begun = time.perf_counter()
                aggregator([client(value) for value in values])
                return time.perf_counter() - begun - fixed()

            measure.speed(Case(tasks.SPEED, protocol, tasks.MULTI_FREQ, epsilon, variant=variant), each, fixed)


if __name__ == "__main__":
    measure.introduce(["multi-freq-ldpy", "numba", "xxhash"])
    {"errors": errors, "speed": speed}[sys.argv[1]](sys.argv[2])

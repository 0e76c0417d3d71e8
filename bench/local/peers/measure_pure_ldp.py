"""pure-ldp: a client and a server object; every person is a call of each.

`script.py errors|speed PROTOCOL`
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

from pure_ldp.frequency_oracles import (
    DEClient,
    DEServer,
    FastLHClient,
    FastLHServer,
    HadamardMechClient,
    HadamardMechServer,
    HadamardResponseClient,
    HadamardResponseServer,
    LHClient,
    LHServer,
    UEClient,
    UEServer,
)

from local import measure, tasks
from local.measure import Case

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

SIMPLEX = 2  # its projection to the nearest counts that are at least 0 and add up: its best
SHARED = 1_000  # hash functions of its quick form of hashing, which all people share


def _same(value: int) -> int:
    return value


def _direct(epsilon: float, size: int) -> tuple[Any, Any]:
    return DEClient(epsilon, size, _same), DEServer(epsilon, size, _same)


def _unary(epsilon: float, size: int, *, optimal: bool) -> tuple[Any, Any]:
    return UEClient(epsilon, size, optimal, _same), UEServer(epsilon, size, optimal, _same)


def _hashing(epsilon: float, size: int) -> tuple[Any, Any]:
    given: dict[str, Any] = {"use_olh": True, "index_mapper": _same}
    return LHClient(epsilon, size, **given), LHServer(epsilon, size, **given)


def _shared(epsilon: float, size: int) -> tuple[Any, Any]:
    given: dict[str, Any] = {"use_olh": True, "index_mapper": _same}
    return FastLHClient(epsilon, size, SHARED, **given), FastLHServer(epsilon, size, SHARED, **given)


def _response(epsilon: float, size: int) -> tuple[Any, Any]:
    server = HadamardResponseServer(epsilon, size, _same)
    return HadamardResponseClient(epsilon, size, server.get_hash_funcs(), _same), server


def _mechanism(epsilon: float, size: int) -> tuple[Any, Any]:
    padded = 1 << (size - 1).bit_length()  # its transform is right for powers of two only
    given: dict[str, Any] = {"use_optimal_t": True, "index_mapper": _same}
    return HadamardMechClient(epsilon, padded, 1, **given), HadamardMechServer(epsilon, padded, 1, **given)


MAKERS: dict[str, dict[str, Any]] = {
    tasks.DIRECT: {"DE": _direct},
    tasks.OPTIMAL: {"OUE": lambda epsilon, size: _unary(epsilon, size, optimal=True)},
    tasks.SYMMETRIC: {"SUE": lambda epsilon, size: _unary(epsilon, size, optimal=False)},
    tasks.HASHING: {"OLH": _hashing, f"FLH, {SHARED:,} shared hashes": _shared},
    tasks.HADAMARD: {"response": _response, "mechanism": _mechanism},
}


def errors(protocol: str) -> None:
    for variant, make in MAKERS[protocol].items():
        for epsilon in tasks.EPSILONS:
            for histogram in tasks.HISTOGRAMS:
                client, server = make(epsilon, tasks.VALUES)

                def once(values: np.ndarray, client: Any = client, server: Any = server) -> dict[str, np.ndarray]:
                    server.reset()
                    if hasattr(server, "hash_counts"):  # its reset forgets these
                        server.hash_counts[:] = 0
                    for value in values.tolist():
                        server.aggregate(client.privatise(value))
                    domain = range(tasks.VALUES)
                    plain = server.estimate_all(domain, suppress_warnings=True)
                    nearest = server.estimate_all(domain, suppress_warnings=True, normalization=SIMPLEX)
                    return {tasks.UNBIASED: plain, tasks.CONSISTENT: nearest}

                case = Case(tasks.ERROR, protocol, tasks.PURE_LDP, epsilon, histogram, variant=variant)
                measure.errors(case, once, tasks.PEER_RUNS, tasks.PEER_SECONDS)


def speed(protocol: str) -> None:
    for variant, make in MAKERS[protocol].items():
        for epsilon in tasks.SPEED_EPSILONS:
            begun = time.perf_counter()
            client, server = make(epsilon, tasks.MANY_VALUES)
            made = time.perf_counter() - begun

            def each(values: Sequence[int], client: Any = client, server: Any = server) -> float:
                begun = time.perf_counter()
                for value in values:
                    server.aggregate(client.privatise(value))
                return time.perf_counter() - begun

            def fixed(server: Any = server, made: float = made) -> float:
                begun = time.perf_counter()
                server.estimate_all(range(tasks.MANY_VALUES), suppress_warnings=True)
                return made + time.perf_counter() - begun

            measure.speed(Case(tasks.SPEED, protocol, tasks.PURE_LDP, epsilon, variant=variant), each, fixed)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    measure.introduce(["pure-ldp", "xxhash"])
    {"errors": errors, "speed": speed}[sys.argv[1]](sys.argv[2])

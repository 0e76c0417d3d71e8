"""The clients of frequencies: written down, read back, alone in an empty folder, and refusing what they must."""

from __future__ import annotations

import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import curador.local.client as room
from curador.errors import InvalidParameter
from curador.local.client import DirectClient, HadamardClient, HashingClient, SubsetClient, UnaryClient, load
from curador.local.client.chance import WHOLE, share_of_truth
from curador.local.client.hadamard import best_blocks, column, gain, share_of_plus, side_of
from curador.local.client.hashing import OPEN_SIZE, best_cells, fingerprint, is_prime, prime_from, support_elsewhere
from curador.local.client.subset import average_variance, best_weight
from curador.local.client.subset import support_elsewhere as support_elsewhere_of_subsets

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(5, 2), Fraction(22, 5), Fraction(6))
CLIENTS: list[Any] = [DirectClient, HadamardClient, HashingClient, SubsetClient, UnaryClient]


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("size", [2, 3, 10, 129])
def test_a_client_survives_being_written_down(kind: Any, size: int) -> None:
    """The text gives the same client: the same probabilities, and reports of the same kind."""
    client = kind(epsilon="3/2", size=size)
    again: Any = load(client.to_json())
    assert type(again) is kind
    assert again.parameters() == client.parameters()
    assert type(again.report(size - 1)) is type(client.report(size - 1))
    for slot in kind.__slots__:
        assert getattr(again, slot) == getattr(client, slot)


def test_a_symmetric_client_stays_one() -> None:
    """The form is written down too."""
    client: Any = load(UnaryClient(epsilon=1, size=5, form="symmetric").to_json())
    assert client.form == "symmetric"
    assert client.true_share + client.false_share == WHOLE


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_value_outside_is_refused_and_not_repeated(kind: Any) -> None:
    """A value is somebody's secret: the refusal does not hold it."""
    client = kind(epsilon=1, size=10)
    for value in (-1, 10, 4711):
        with pytest.raises(InvalidParameter) as refusal:
            client.report(value)
        assert str(value) not in str(refusal.value).replace("0 to 9", "")
    for value in (True, "3", 3.0, None):
        with pytest.raises(InvalidParameter):
            client.report(value)


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("parameters", [{"epsilon": 0}, {"epsilon": 65}, {"epsilon": "much"}, {"size": 1}, {"size": "10"}])
def test_a_client_refuses_what_no_law_exists_for(kind: Any, parameters: dict[str, Any]) -> None:
    """No ε of 0 or above 64, no domain of one value."""
    with pytest.raises(InvalidParameter):
        kind(**{"epsilon": 1, "size": 10, **parameters})


def test_other_forms_and_bits_without_end_are_refused() -> None:
    """A unary client has two forms; a bit a value is too much for a domain of millions of millions."""
    with pytest.raises(InvalidParameter, match="form must be optimal or symmetric"):
        UnaryClient(epsilon=1, size=5, form="best")
    for kind in (UnaryClient, SubsetClient):
        with pytest.raises(InvalidParameter, match="at most 2\\^24"):
            kind(epsilon=1, size=(1 << 24) + 1)


def test_a_client_of_another_kind_or_with_more_parameters_is_refused() -> None:
    """Nothing that is not known is guessed; nobody hands a client its probabilities."""
    text = UnaryClient(epsilon=1, size=5).to_json()
    for other in (
        text.replace("unary", "ternary"),
        text.replace("size", "share"),
        text[:-1] + ', "true_share": 1}',
        "[]",
        "{",
    ):
        with pytest.raises(InvalidParameter):
            load(other)


@pytest.mark.parametrize("size", [2, 7, 8, 9, 1000])
def test_reports_of_bits_have_their_width_and_no_padding(size: int) -> None:
    """Ten reports of each: ⌈size/8⌉ bytes, nothing beyond the last value, sets of their size."""
    unary, subset = UnaryClient(epsilon=1, size=size), SubsetClient(epsilon=1, size=size)
    for value in range(0, size, -(-size // 10)):
        one, other = int.from_bytes(unary.report(value), "little"), int.from_bytes(subset.report(value), "little")
        assert len(unary.report(value)) == len(subset.report(value)) == -(-size // 8) == unary.width
        assert one < 1 << size
        assert other < 1 << size
        assert other.bit_count() == subset.weight


def test_the_true_bit_and_the_others_are_told_apart_by_p_and_q() -> None:
    """At ε = 60 the optimal form never sets another bit, and the true one half of the time. Fails by chance once in 2¹⁰⁰."""
    client = UnaryClient(epsilon=60, size=300)
    sent = {client.report(123) for _ in range(100)}
    assert sent == {bytes(38), (1 << 123).to_bytes(38, "little")}


# ---- what the clients compute for themselves ----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 6, 13, 127])
def test_the_number_of_cells_has_the_least_variance_of_all(size: int, epsilon: Fraction) -> None:
    """Against every number from 2 to the prime."""
    prime = prime_from(size)

    def variance(cells: int) -> Fraction:
        p = Fraction(share_of_truth(epsilon, truths=1, others=cells - 1), WHOLE)
        return average_variance(p, support_elsewhere(p, prime, cells), size)

    assert variance(best_cells(epsilon, size)) == min(variance(cells) for cells in range(2, prime + 1))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 6, 13, 200])
def test_the_size_of_sets_has_the_least_variance_of_all(size: int, epsilon: Fraction) -> None:
    """Against every size from 1."""

    def variance(weight: int) -> Fraction:
        p = Fraction(share_of_truth(epsilon, truths=weight, others=size - weight), WHOLE)
        return average_variance(p, support_elsewhere_of_subsets(p, weight, size), size)

    assert variance(best_weight(epsilon, size)) == min(variance(weight) for weight in range(1, size))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 16, 1000])
def test_the_number_of_blocks_has_the_least_variance_of_all(size: int, epsilon: Fraction) -> None:
    """Against every power of two up to the size; one block where ε is small."""
    best = best_blocks(epsilon, size)
    powers = [1 << place for place in range(size.bit_length())]
    gains = {blocks: gain(share_of_plus(epsilon, blocks, side_of(size, blocks)), blocks) for blocks in powers}
    assert 1 / (best * gains[best] ** 2) == min(1 / (blocks * one**2) for blocks, one in gains.items())
    assert best == 1 or epsilon > 1


def test_the_average_variance_does_not_depend_on_the_shares() -> None:
    """The mean over values of f p(1 − p) + (1 − f) q(1 − q) is the same for all shares that add up to 1."""
    p, q, size = Fraction(1, 2), Fraction(1, 5), 4
    for shares in ((1, 0, 0, 0), (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6), 0)):
        mean = sum(f * p * (1 - p) + (1 - f) * q * (1 - q) for f in shares) / size
        assert mean / (p - q) ** 2 == average_variance(p, q, size)


def test_columns_of_a_sign_are_met_once_each() -> None:
    """For every row of a block of 16: the numbers below 8 go one to one to the pluses, and to the minuses."""
    for row in range(1, 16):
        for sign in (0, 1):
            found = {column(row, number, sign) for number in range(8)}
            assert found == {place for place in range(16) if (place & row).bit_count() % 2 == sign}


def test_primes_are_primes() -> None:
    """Against trial division; and at the strong pseudoprimes of fewer bases, and the ends of the range."""
    assert [number for number in range(2000) if is_prime(number)] == [
        number for number in range(2, 2000) if all(number % divisor for divisor in range(2, number))
    ]
    for composite in (2047, 1373653, 25326001, 2147483648, 2147483657):
        assert not is_prime(composite)
    assert is_prime(OPEN_SIZE)
    assert prime_from(1 << 31) == (1 << 31) + 11
    assert prime_from(1000) == 1009


def test_fingerprints_are_stable_and_spread() -> None:
    """The same item has the same number for ever: reports of different versions must agree."""
    assert fingerprint(b"curador") == 119328289
    codes = {fingerprint(str(number).encode()) for number in range(2000)}
    assert len(codes) == 2000
    assert all(0 <= code < OPEN_SIZE for code in codes)


# ---- alone --------------------------------------------------------------------------------------------------------------

ALONE = """
import sys
sys.path.insert(0, {folder!r})
import device
texts = {texts!r}
for text in texts:
    print(repr(device.load(text).report(1)))
try:
    device.load(texts[0]).report("mine")
except ValueError as refusal:
    print(type(refusal).__module__, refusal)
print(sorted(name for name in sys.modules if name.split(".")[0] in {{"numpy", "curador", "scipy"}}))
"""


def test_the_folder_runs_alone_under_another_name(tmp_path: Path) -> None:
    """Copied elsewhere, without installed packages, it reads a client and reports."""
    source = Path(room.__file__).parent
    shutil.copytree(source, tmp_path / "device", ignore=shutil.ignore_patterns("__pycache__"))
    texts = [kind(epsilon=1, size=10).to_json() for kind in CLIENTS]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", ALONE.format(folder=str(tmp_path), texts=texts)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    *reports, refusal, loaded = done.stdout.splitlines()
    assert len(reports) == len(texts)
    assert refusal == "device.refusal value must be a whole number from 0 to 9; got a str."
    assert loaded == "[]"


def test_clients_load_no_numpy() -> None:
    """`import curador.local.client` needs the standard library alone."""
    code = "import sys; import curador.local.client; sys.exit('numpy' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

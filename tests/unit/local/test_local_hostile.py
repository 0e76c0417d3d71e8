"""What strangers send: texts, reports and files that no client wrote are told in a sentence, at once, and change nothing."""

import json
import math
import struct

import numpy as np
import pytest
from typer.testing import CliRunner

from curador import local
from curador.cli.app import app
from curador.errors import InvalidParameter

BOMB = "[" * 200_000


def client_text(**changed):
    return json.dumps({"curador": "local client", "version": 1, "kind": "direct", "epsilon": "1", "size": 4, **changed})


@pytest.mark.parametrize(
    "epsilon", ["1e999999999", "1e-999999999", "9" * 5000, "1/0", "nan", "inf", True, None, [], "1e-10", 65, -1]
)
def test_an_absurd_epsilon_is_refused_at_once(epsilon):
    """No power of ten is computed, and what is repeated of it is short."""
    with pytest.raises(InvalidParameter, match="epsilon must be") as caught:
        local.client.load(client_text(epsilon=epsilon))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("bound", ["-1e999999999", "8" * 5000, "x"])
def test_an_absurd_bound_is_refused_at_once(bound):
    """The same of the bounds of a mean."""
    with pytest.raises(InvalidParameter, match="lower must be a number"):
        local.client.load(mean_text(bound))


def mean_text(bound):
    text = json.loads(local.DuchiMean(lower=0, upper=1, epsilon=1).client().to_json())
    return json.dumps({**text, "lower": bound})


def test_a_nested_bomb_is_refused():
    """As a client, as a state and as a protocol."""
    with pytest.raises(InvalidParameter, match="text must be"):
        local.client.load(BOMB)
    with pytest.raises(InvalidParameter, match="text must be"):
        local.Rappor(4, epsilon_forever=2, epsilon_once=1).client().load(BOMB)
    with pytest.raises(InvalidParameter, match="text must be"):
        local.from_json(BOMB)


def test_unknown_parameters_are_not_repeated():
    """A text with another client's parameters."""
    with pytest.raises(InvalidParameter, match="got others"):
        local.client.load(client_text(**{"x" * 500: 1}))


@pytest.mark.parametrize("text", ["yes", 1, None])
def test_a_prefix_client_is_for_texts_or_numbers(text):
    """Nothing but true and false says which."""
    whole = json.loads(local.HeavyHitters(epsilon=1, bits=16).client().to_json())
    with pytest.raises(InvalidParameter, match="text must be true or false"):
        local.client.load(json.dumps({**whole, "text": text}))


def test_a_salt_is_plain():
    """A lone surrogate cannot be hashed by anybody."""
    with pytest.raises(InvalidParameter, match="salt must be"):
        local.HeavyHitters(epsilon=1, bits=16, salt="\ud800").client()


def test_arrays_where_one_value_belongs_are_refused():
    """An array has an index and refuses to tell it."""
    with pytest.raises(InvalidParameter, match="value must be a whole number"):
        local.Direct(4, epsilon=1).client().report(np.array([1, 2]))
    with pytest.raises(InvalidParameter, match="value must be a finite number"):
        local.DuchiMean(lower=0, upper=1, epsilon=1).client().report(np.array([0.3, 0.4]))


def test_domains_of_arrays_and_numpy_scalars():
    """Arrays are lists of labels, NumPy's numbers plain ones; such a domain is written and read."""
    protocol = local.Direct(np.array(["x", "y"]), epsilon=1)
    assert protocol.domain.labels == ("x", "y")
    assert local.from_json(local.to_json(local.Direct([np.int64(3), np.int64(5)], epsilon=1))).domain.labels == (3, 5)
    assert local.Direct(np.int64(7), epsilon=1).size == 7


@pytest.mark.parametrize(
    "domain", [[("a", 1), ("b", 2)], [math.nan, 1.0], [1, 1], [1, True], 1, True, "ab", None, [[1], [2]]]
)
def test_domains_that_cannot_be_written_are_refused(domain):
    """Tuples, NaN, repeated and unhashable labels, and what is no list."""
    with pytest.raises(InvalidParameter, match="domain must be"):
        local.Direct(domain, epsilon=1)


def test_labels_of_several_kinds_become_texts_in_a_table():
    """Arrow has one type a column."""
    protocol = local.Direct(["a", 1], epsilon=1)
    assert protocol.estimate(protocol.privatise(["a", 1])).to_arrow()["value"].to_pylist() == ["a", "1"]


@pytest.mark.parametrize("reports", [5, None])
def test_what_is_no_list_of_reports_is_refused(reports):
    """A number is no list."""
    for protocol in (local.Direct(4, epsilon=1), local.Unary(4, epsilon=1), local.Hashing(4, epsilon=1)):
        with pytest.raises(InvalidParameter, match="reports must be"):
            protocol.collector().add(reports)


def test_an_array_without_dimension_is_a_malformed_report():
    """Counted, never an exception."""
    collector = local.Hashing(5, epsilon=1).collector().add([np.array(5), (1, 0, 0)])
    assert (collector.reports, collector.rejected) == (1, 1)


def test_only_collectors_are_merged():
    """Another thing is refused."""
    with pytest.raises(InvalidParameter, match="merge must be given"):
        local.Direct(4, epsilon=1).collector().merge(5)


@pytest.mark.parametrize("front", [local.frequencies, local.mean])
def test_a_method_is_a_word(front):
    """A list of methods is no method."""
    given = {"domain": 3} if front is local.frequencies else {"lower": 0, "upper": 1}
    with pytest.raises(InvalidParameter, match="method must be"):
        front(**given, epsilon=1, method=["direct"])


@pytest.mark.parametrize("ending", ["arrow", "arrows", "parquet"])
def test_damaged_files_are_told_by_name(tmp_path, ending):
    """Cut in the middle: the sentence names the file, in Python and in a shell."""
    protocol = local.Direct(4, epsilon=1)
    whole, cut = tmp_path / f"whole.{ending}", tmp_path / f"cut.{ending}"
    local.write_reports(protocol, protocol.privatise(np.zeros(50_000, np.int64)), whole)
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    (tmp_path / "p.json").write_text(local.to_json(protocol), encoding="utf-8")
    with pytest.raises(InvalidParameter, match=f"cut.{ending}"):
        protocol.collector().add_files(cut)
    told = CliRunner().invoke(app, ["collect", str(tmp_path / "p.json"), str(cut)])
    assert isinstance(told.exception, InvalidParameter)
    assert f"cut.{ending}" in str(told.exception)


@pytest.mark.parametrize("ending", ["arrow", "arrows"])
@pytest.mark.parametrize("make", [local.Direct, local.Unary])
def test_a_batch_that_claims_more_rows_than_its_file_holds_is_refused(tmp_path, ending, make):
    """It would be read beyond the end of the file."""
    protocol = make(12, epsilon=1)
    path = tmp_path / f"long.{ending}"
    local.write_reports(protocol, protocol.privatise(np.zeros(54_321, np.int64)), path)
    path.write_bytes(path.read_bytes().replace(struct.pack("<q", 54_321), struct.pack("<q", 5_432_100)))
    with pytest.raises(InvalidParameter, match=f"long.{ending}"):
        protocol.collector().add_files(path)


@pytest.mark.parametrize("kind", ["LaplaceMean", "DuchiMean", "PiecewiseMean", "HybridMean"])
@pytest.mark.parametrize("steps", [2, 4, 64])
def test_no_variance_is_above_the_worst(kind, steps):
    """On coarse grids rounding counts: 101 numbers between the bounds."""
    protocol = getattr(local, kind)(lower=-1, upper=1, epsilon=8, steps=steps)
    most = max(protocol.variance(at=place / 50) for place in range(-50, 51))
    assert most <= protocol.worst_variance * (1 + 1e-12)
    assert protocol.worst_variance <= 1.5 * most or steps == 2


def test_the_smallest_epsilon_keeps_both_directions():
    """At ε = 1e-9 and the largest domain neither the truth nor a lie is more than e^ε times as likely as the other."""
    client = local.client.DirectClient(epsilon="1e-9", size=(1 << 31) - 1)
    truth, lie = client.share * (client.size - 1), (1 << 64) - client.share
    assert abs(truth / lie - 1) <= 1e-9 * (1 + 1e-6)


def test_a_huge_loss_is_accounted_without_an_error():
    """ε = 40: the adversary is right all the time, and the command ends well."""
    told = CliRunner().invoke(app, ["account", "pure(epsilon=40)"])
    assert told.exit_code == 0
    assert "100.00 % of the time" in told.output


def test_values_from_strangers_do_not_steer_a_terminal():
    """Escapes and ends of lines among frequent texts are shown as their codes."""
    text = "\x1b[31mX\n"
    protocol = local.Direct([text, "b"], epsilon=8)
    told = str(protocol.estimate(protocol.privatise([text] * 100)))
    assert "\x1b" not in told
    assert "\\x1b[31mX\\n" in told
    assert len(told.splitlines()) == 4


def test_the_evidence_at_a_large_epsilon_is_the_law_s():
    """At ε = 64 probabilities are whole numbers over 2⁶⁴, and the odds of three values are 45 and not 64."""
    protocol = local.Direct(3, epsilon=64)
    client = protocol.client()
    ratio = client.law(0)[0] / client.law(1)[0]
    assert protocol.log_odds(np.array([1]), 0, 1)[0] == pytest.approx(float(np.log(float(ratio))), rel=1e-12)
    assert protocol.log_odds(np.array([1]), 0, 1)[0] < 46


@pytest.mark.parametrize("number", [np.float64(0.5), np.int64(2), np.float32(1.5)])
def test_clients_take_numpy_s_numbers(number):
    """As protocols do."""
    if isinstance(number, np.float32):
        with pytest.raises(InvalidParameter, match="epsilon must be a number"):
            local.client.DirectClient(epsilon=number, size=3)
    else:
        assert local.client.DirectClient(epsilon=number, size=3).epsilon == float(number)


def test_a_state_names_each_value_once():
    """Two spellings of a value are refused."""
    client = local.Rappor(8, epsilon_forever=2, epsilon_once=1, values=2).client()
    client.report(3)
    body = json.loads(client.state())
    body["memo"][" 3"] = body["memo"]["3"]
    again = local.Rappor(8, epsilon_forever=2, epsilon_once=1, values=2).client()
    with pytest.raises(InvalidParameter, match="text must be"):
        again.load(json.dumps(body))


def test_a_domain_too_large_to_count_is_sent_to_the_heavy_hitters():
    """Before gigabytes are asked for."""
    with pytest.raises(InvalidParameter, match="HeavyHitters"):
        local.Direct(1 << 31, epsilon=1).collector()

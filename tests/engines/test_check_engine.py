# ruff: noqa: D101 -- a seeded bug is named by its class, and uses less than it is given
"""The embedded engine keeps the rules that ship for others, and each rule is broken by an engine that it catches."""

import dataclasses

import numpy as np
import pytest
from duckdb_studies import engine_of

from curador.engines.duckdb.engine import DuckDBEngine
from curador.testing import NonconformingError, check_engine


@pytest.mark.parametrize(
    ("worker", "prepare"),
    [
        ("inline", "auto"),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("process", "auto"), ("inline", "never"))),
    ],
)
def test_the_embedded_engine_keeps_the_rules(worker, prepare):
    """On the prepared version and on views, in the worker and in this process."""
    check_engine(lambda study: engine_of(study, worker=worker, prepare=prepare), copies=prepare == "auto")


def changed(tallied, **changes):
    return [dataclasses.replace(one, **{name: change(one) for name, change in changes.items()}) for one in tallied]


class OneMore(DuckDBEngine):
    def tally(self, compiled):
        return changed(super().tally(compiled), tallies=lambda one: {place: n + 1 for place, n in one.tallies.items()})


class Floats(DuckDBEngine):
    def tally(self, compiled):
        return changed(super().tally(compiled), tallies=lambda one: {p: np.asarray(n, float) for p, n in one.tallies.items()})


class LosesNull(DuckDBEngine):
    def tally(self, compiled):
        found = []
        for one in super().tally(compiled):
            kept = [place for place, key in enumerate(one.keys[0]) if key is not None] if one.keys else [0]
            keys = tuple([column[place] for place in kept] for column in one.keys)
            tallies = {place: numbers[kept] for place, numbers in one.tallies.items()}
            found.append(dataclasses.replace(one, keys=keys, tallies=tallies))
        return found


class ForgetsCaps(DuckDBEngine):
    def compile(self, blocks):
        return super().compile([dataclasses.replace(one, cap=dataclasses.replace(one.cap, rows=10**6)) for one in blocks])


class RehearsesOnRows(DuckDBEngine):
    def rehearse(self, compiled):
        return self.tally(compiled)


class ReadsTenRows(DuckDBEngine):
    def read(self, table, columns):
        return super().read(table, columns).slice(0, 10)


class LosesCells(DuckDBEngine):
    def tally(self, compiled):
        found = super().tally(compiled)
        return changed(
            found, cells=lambda one: {p: dataclasses.replace(c, counts=c.counts * 2) for p, c in one.cells.items()}
        )


class ServesTheFile(DuckDBEngine):
    def __init__(self, study, version):
        super().__init__(dataclasses.replace(study, engine=dataclasses.replace(study.engine, prepare="never")), version)


BUGS = {
    ServesTheFile: "after the file changed",
    OneMore: "not what Python counts",
    Floats: "must be integers",
    LosesNull: "each once",
    ForgetsCaps: "two rows of each unit",
    RehearsesOnRows: "rehearsed",
    ReadsTenRows: "of all rows",
    LosesCells: "a histogram",
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_seeded_bug_is_caught(bug):
    """Each by the rule that it breaks."""

    def open_engine(study):
        engine = bug(study, 1)
        engine.prepare(1)
        return engine

    with pytest.raises(NonconformingError, match=BUGS[bug]):
        check_engine(open_engine)

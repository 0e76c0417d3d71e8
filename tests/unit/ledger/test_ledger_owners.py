"""A ledger holds a study to what its unit is, not only to what it is called."""

import pytest

from curador.errors import InvalidStudy
from curador.ledger.ledger import Ledger
from curador.privacy.adjacency import Adjacency
from curador.study.model import Budget

OWNERS = (("cities", "public"), ("people", "column id"), ("visits", "column person of people"))


@pytest.mark.parametrize(
    ("owners", "named"),
    [
        ((("people", "row"),), "tables.people.unit"),
        ((("people", "column city"),), "tables.people.unit"),
        ((("people", "public"),), "tables.people.unit"),
        ((("trips", "row"),), "unit"),
    ],
)
def test_what_the_unit_is_holds_for_ever(tmp_path, owners, named):
    """A table keeps its owner, and rows and people do not mix: the word alone would let one study spend as another."""
    budget = Budget(epsilon=3, delta="1e-6")
    common = {"budget": budget, "adjacency": Adjacency.ADD_OR_REMOVE_ONE, "unit": "person"}
    facts = {"study_name": "s", "study_digest": "0" * 64, "max_units": 1000}
    Ledger.create(tmp_path / "l", owners=OWNERS, **common, **facts).close()

    with pytest.raises(InvalidStudy, match=named):
        Ledger.open(tmp_path / "l", owners=owners, **common)
    Ledger.open(tmp_path / "l", owners=(*OWNERS, ("more", "column id")), **common).close()
    with Ledger.open(tmp_path / "l", owners=OWNERS[1:], **common) as ledger:
        assert ledger.limits.owners == OWNERS

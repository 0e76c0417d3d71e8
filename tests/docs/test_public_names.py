"""The public surface changes only on purpose: names, signatures and the reference equal checked-in files."""

from pathlib import Path

import public_names

import curador as cu

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_names_and_signatures_equal_the_checked_in_file():
    """An API change shows in the diff; `make api` rewrites the file."""
    assert list(public_names.lines()) == (REFERENCE / "public-names.txt").read_text(encoding="utf-8").splitlines()


def test_reference_is_made_from_the_docstrings():
    """The reference page is what the docstrings say now."""
    made = "\n".join(public_names.reference()) + "\n"

    assert made == (REFERENCE / "README.md").read_text(encoding="utf-8")


def test_reference_names_everything():
    """No public name is missing from the page, none is on it twice."""
    listed = [name for names in public_names.HEADINGS.values() for name in names]

    assert sorted(listed) == sorted(cu.__all__)


def test_all_public_names_load():
    """Every name of __all__ exists and dir() knows it."""
    assert all(getattr(cu, name) is not None for name in cu.__all__)
    assert set(cu.__all__) <= set(dir(cu))


def test_unknown_name_is_an_attribute_error():
    """A misspelt name fails like in any module."""
    assert not hasattr(cu, "Gausian")

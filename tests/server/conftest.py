"""Services for a module, with logins that fail at once: how slow they are has a test of its own."""

import pytest
from served import serving

from curador.server import limits


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service whose answers leave when they are ready."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "LONGEST_WAIT", 0.0)
        with serving(tmp_path_factory.mktemp("served")) as one:
            yield one

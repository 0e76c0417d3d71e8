"""Settings shared by all tests."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
for folder in (
    "docs",
    "laws",
    "oracle",
    "replay",
    "corpus",
    "engines",
    "compat",
    "unit/plan",
    "unit/learn",
):  # helper modules beside the tests that use them
    sys.path.insert(0, str(HERE / folder))

settings.register_profile("house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("house"), derandomize=True)  # the same examples for everybody
settings.load_profile("ci" if os.environ.get("CI") else "house")


def pytest_ignore_collect(collection_path, config):
    """Families that are slow as a whole are not even read where slow tests are left out: reading them takes seconds."""
    if config.getoption("markexpr", "") != "not slow" or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return True if "\npytestmark = pytest.mark.slow" in text else None

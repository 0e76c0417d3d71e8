"""Settings shared by all tests."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
for folder in ("docs", "laws", "oracle"):  # helper modules beside the tests that use them
    sys.path.insert(0, str(HERE / folder))

settings.register_profile("house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

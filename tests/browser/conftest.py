"""A browser and a service for the tests of the console; no browser, no test, and the reason is said."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from chromium import FLAGS, NoBrowserError, find_chromium


@pytest.fixture(scope="module")
def chromium():
    """A browser for one file: its loop is ended with it, as other tests of the process have loops of their own."""
    from playwright.sync_api import sync_playwright

    try:
        found = find_chromium()
    except NoBrowserError as none:
        pytest.skip(f"needs a browser: {none}")
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=found.path, args=list(FLAGS), env={**os.environ, **found.environment}, timeout=60_000
        )
        yield browser
        browser.close()

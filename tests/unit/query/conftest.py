"""Tests of the reader of SQL find the corpus and its schemas."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "corpus"))

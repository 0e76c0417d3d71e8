"""Registers of ledgers for tests: none writes into the home folder of whoever runs it, or knows the data of another test."""

import itertools
import os
import tempfile

VARIABLE = "CURADOR_REGISTER"
_folder = tempfile.TemporaryDirectory(prefix="registers-")
_number = itertools.count()


def another_register():
    """Begin another register: equal tables in other folders are then not recognised, as on another machine."""
    os.environ[VARIABLE] = f"{_folder.name}/{next(_number)}"

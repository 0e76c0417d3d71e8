"""The closed set of loss records.

Each is frozen and exact: parameters are rationals, so a stored record means the same for ever. A record is about any two
inputs within the sensitivity that its maker declared; `adjacency` types it by the neighbours it is about.

ε and δ as parameters are stored as epsilon0 and delta0: `loss.epsilon(delta)` is a question, not a field.

This is where everybody gets them from.
"""

from __future__ import annotations

from curador.privacy.kinds import *  # noqa: F403 -- the one list of kinds is theirs
from curador.privacy.loss import Loss, compose  # noqa: F401  # pyright: ignore[reportUnusedImport] -- for sums of them
from curador.privacy.rules import loss_from_record  # noqa: F401  # pyright: ignore[reportUnusedImport] -- all kinds are loaded

"""Audits: what samples, replays, games and bits can prove against a privacy claim."""

from curador.audit.bounds import Bound, lower_bound
from curador.audit.game import Game, game
from curador.audit.hockey_stick import DeltaBound, hockey_stick
from curador.audit.one_run import OneRun, canaries, fit_run, histogram_run, one_run, one_run_bound, one_run_mu
from curador.audit.renyi_tester import RenyiBound, renyi
from curador.audit.replay import Replay, replay
from curador.audit.run import Report, audit
from curador.audit.testers import Divergences, divergences

__all__ = [
    "Bound",
    "DeltaBound",
    "Divergences",
    "Game",
    "OneRun",
    "RenyiBound",
    "Replay",
    "Report",
    "audit",
    "canaries",
    "divergences",
    "fit_run",
    "game",
    "histogram_run",
    "hockey_stick",
    "lower_bound",
    "one_run",
    "one_run_bound",
    "one_run_mu",
    "renyi",
    "replay",
]

"""Audits: what samples, replays and bits can prove against a privacy claim."""

from curador.audit.bounds import Bound, lower_bound
from curador.audit.replay import Replay, replay
from curador.audit.run import Report, audit

__all__ = ["Bound", "Replay", "Report", "audit", "lower_bound", "replay"]

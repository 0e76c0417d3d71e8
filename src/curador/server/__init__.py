"""The curator as a service: tokens, jobs and limits in one file beside the ledger; HTTP, agents and a console on top."""

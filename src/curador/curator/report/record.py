"""The report of a study: everything that somebody who signs for it must know, as plain values; pages are made of these alone.

Claim   A report is a function of the study, its ledger's charges and declarations, surveys that were released with noise, the
        register, and names and types that sources show without a row. Nothing in it was read from rows without noise: no
        number of rows, no size, no digest of contents, no answer, no text of a question. It spends nothing and makes nothing.
        That failures closed the study to analysts is in it, as every one of them is told.
Source  `tests/engines/test_report_canaries.py` puts marked values and sizes into rows and searches every byte.
"""

from __future__ import annotations

import datetime as dt
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from curador.canonical import canonical_text
from curador.curator.dataset import ledgers_of_data
from curador.curator.found import read_survey
from curador.curator.opening import known_ledger
from curador.curator.receipt import VERSION_WITH_SURVEY
from curador.curator.report.audited import audit_body
from curador.curator.report.declared import MISSING, analysts_body, promise_body, protected_body, tables_body
from curador.curator.report.guideline import guideline_body
from curador.curator.report.kept import ERASURE, RETENTION, kept_body
from curador.curator.report.ledgers import ledger_body, others_body, spent_body, verification_body
from curador.engines.base import engine_kind
from curador.errors import CuradorError, InvalidParameter
from curador.ledger.register import VERSION as REGISTER_VERSION
from curador.markup import visible
from curador.study.model import DIGEST_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from curador.curator.found import Survey
    from curador.ledger.ledger import Ledger
    from curador.study.model import Schema, Study

Held = TypeVar("Held")

VERSION: Final = 1
"""Of the stored report. A field keeps its meaning; a new one comes with a new version."""


FIELDS: Final = frozenset(
    (
        *("version", "made", "software", "formats", "study", "protected", "promise", "tables", "analysts", "ledger"),
        *("ledger_problem", "verification", "spent", "other_ledgers", "audit", "kept", "retention", "erasure"),
        *("not_looked_at", "guideline"),
    )
)
"""What a report of this version holds, all of it."""


@dataclass(frozen=True)
class StudyReport:
    """A report as plain values; `to_html` is the page to sign, `to_json` the same for programs, `registry` for a registry."""

    record: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.record[name]

    @property
    def whole(self) -> bool:
        """Whether the ledger was verified and nothing is wrong with it, or the study has none yet."""
        found = self.record["verification"]
        return self.record["ledger_problem"] is None and (found is None or bool(found["whole"]))

    def to_json(self) -> str:
        """Return the report as one line of canonical JSON."""
        return canonical_text(dict(self.record)) + "\n"

    def to_html(self) -> str:
        """Return the page to sign: it needs no network and has no scripts."""
        return self._page

    @cached_property
    def _page(self) -> str:
        from curador.curator.report.page import document

        return document(self.record)

    def registry(self) -> dict[str, Any]:
        """Return the record for the public registry of deployments; what a study cannot know is empty."""
        from curador.curator.report.registry import registry_record

        return registry_record(self.record)

    def registry_missing(self) -> list[str]:
        """Return the names of the registry's fields that are left empty, for people to fill in."""
        from curador.curator.report.registry import missing_fields

        return missing_fields(self.registry())

    def write(self, path: str | Path) -> Path:
        """Write the report to a file by its ending, .html or .json, and return its path."""
        target = Path(path)
        writers = {".html": self.to_html, ".json": self.to_json}
        if target.suffix.lower() not in writers:
            raise InvalidParameter.must_be("path", "a file that ends in .html or .json", str(path))
        target.write_text(writers[target.suffix.lower()](), encoding="utf-8")
        return target

    @classmethod
    def from_json(cls, text: str) -> StudyReport:
        """Return the report that `to_json` wrote; another version is refused."""
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = None
        held = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
        if held.get("version") != VERSION or held.keys() != FIELDS:
            raise InvalidParameter.must_be("text", f"a report of version {VERSION}", "another text")
        return cls(held)

    def __str__(self) -> str:
        from curador.curator.report.words import statement

        return "\n".join(statement(cast("dict[str, Any]", visible(self.record))))

    def _repr_html_(self) -> str:
        from curador.curator.report.words import statement
        from curador.markup import items

        return items(statement(cast("dict[str, Any]", visible(self.record))))


def make_report(
    study: Study, *, ledger: Ledger | None = None, audit: dict[str, Any] | None = None, when: dt.datetime | None = None
) -> StudyReport:
    """Return the report of a study: its chain is verified now.

    ledger   the study's, where it is open already
    audit    what `report/audited.py` read
    when     the moment that the report tells, now unless said otherwise
    """
    if ledger is not None:
        return _report(study, ledger, None, audit, when)
    try:
        found = known_ledger(study)
    except (CuradorError, OSError) as problem:
        told = problem.sentence if isinstance(problem, CuradorError) else "the sources or the ledger cannot be read."
        return _report(study, None, told if _had_a_ledger(study) else None, audit, when)
    if found is None:
        return _report(study, None, None, audit, when)
    with found:
        return _report(study, found, None, audit, when)


def _had_a_ledger(study: Study) -> bool:
    """Whether these rows have a ledger, here or where it is not any more; else nothing is wrong if none can be opened."""
    if study.ledger_path.exists():
        return True
    try:
        return bool(ledgers_of_data(study))
    except (CuradorError, OSError):  # no sources: nobody can tell, and the report says so
        return False


def _report(
    study: Study, ledger: Ledger | None, problem: str | None, audit: dict[str, Any] | None, when: dt.datetime | None
) -> StudyReport:
    moment = (when or dt.datetime.now(dt.UTC)).astimezone(dt.UTC)
    survey = own = verified = spent = None
    if ledger is not None:
        survey, spent = _read(_survey_of, ledger, study), _read(spent_body, ledger, study)
        own = _read(ledger_body, ledger, study)
        verified = verification_body(ledger)  # last: whatever was read before is verified
    schema, unseen = _schema_of(study)
    others = others_body(study, ledger)
    tables = tables_body(study, survey, schema)
    record: dict[str, Any] = {
        "version": VERSION,
        "made": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "software": _software(),
        "formats": _formats(),
        "study": {"name": study.name, "digest": study.digest},
        "protected": protected_body(study),
        "promise": promise_body(study),
        "tables": tables,
        "analysts": analysts_body(study),
        "ledger": own,
        "ledger_problem": problem,
        "verification": verified,
        "spent": spent,
        "other_ledgers": others,
        "audit": audit_body(audit, study, None if own is None else own["data_version"]),
        "kept": kept_body(study, study.ledger_path.absolute() if ledger is None else ledger.path),
        "retention": list(RETENTION),
        "erasure": list(ERASURE),
        "not_looked_at": [*unseen, *_not_looked_at(others, tables)],
    }
    return StudyReport({**record, "guideline": guideline_body(record)})


def _read(what: Callable[[Ledger, Study], Held | None], ledger: Ledger, study: Study) -> Held | None:
    """Return what a ledger says; None where it is so broken that it cannot be read: the verification says what is wrong."""
    try:
        return what(ledger, study)
    except CuradorError:
        return None


def _survey_of(ledger: Ledger, study: Study) -> Survey | None:
    entry = ledger.surveyed(study.name) if any(table.surveyed for table in study.tables) else None
    return None if entry is None or "tables" not in (entry.survey or {}) else read_survey(entry, study.adjacency)


def _schema_of(study: Study) -> tuple[Schema | None, list[str]]:
    """Return what sources show without a row, and what could not be looked at. Why not may quote a file: it is not told."""
    try:
        return engine_kind(study.engine.kind).describe(study), []
    except (CuradorError, OSError):
        told = "The sources could not be looked at: only columns that are declared are listed (curador check says why)."
        return None, [told]


def _not_looked_at(others: dict[str, Any] | None, tables: list[dict[str, Any]]) -> list[str]:
    out: list[str] = []
    if others is None:
        out.append("Other ledgers of the same rows could not be looked for, as the sources are not there.")
    else:
        out += [
            f"The ledger {ledger['place']} of study {ledger['study']} could not be read."
            for ledger in others["ledgers"]
            if ledger["epsilon"] is None
        ]
    out += [
        f"Caps of table {table['name']} are not known yet: no survey was bought, and analysts are refused."
        for table in tables
        if table["caps"]["origin"] == MISSING
    ]
    return out


def _software() -> dict[str, str]:
    named = {name: _version(name) for name in ("curador", "duckdb", "numpy", "scipy")}
    return {**named, "python": platform.python_version()}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "unknown"


def _formats() -> dict[str, int]:
    """Return the versions of what is stored, as docs/reference/stored-formats.md lists them."""
    return {
        "entry_of_a_ledger": 2,
        "witness": 2,
        "receipt": VERSION_WITH_SURVEY,
        "register": REGISTER_VERSION,
        "study_digest": DIGEST_VERSION,
        "report": VERSION,
    }

"""`curador report`: one page to sign, the same for programs, the record for a registry."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from curador.cli.output import require_writable
from curador.errors import InvalidParameter
from curador.study.values import Plain


def report(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, e.g. study.toml.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write it there: .html is the page to sign, .json is for programs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print plain values for a program.")] = False,
    registry: Annotated[
        bool,
        typer.Option("--registry", help="The record for the public registry of deployments, as JSON, with gaps to fill."),
    ] = False,
    audit: Annotated[
        Path | None, typer.Option(help="What `curador audit STUDY --copy --json` printed: it is told as the last audit.")
    ] = None,
) -> None:
    """Report on a study: who is protected, how strongly, what was spent, what lies where. One page to sign, with -o.

    The ledger is verified meanwhile. Nothing is spent or prepared, no row is read. Ends with 1 if the ledger is not whole.
    """
    from curador.curator.report.audited import read_audit
    from curador.curator.report.record import make_report
    from curador.study.file import read_study

    if as_json and registry:
        raise InvalidParameter.must_be("--json", "absent with --registry, which is JSON already", Plain("given"))
    if out is not None:
        endings = {".json"} if as_json or registry else {".html", ".json"}
        if out.suffix.lower() not in endings:
            raise InvalidParameter.must_be("--out", f"a file that ends in {' or '.join(sorted(endings))}", str(out))
        require_writable("--out", out)
    declared = read_study(study)
    made = make_report(declared, audit=None if audit is None else read_audit(audit))
    if registry:
        text = json.dumps(made.registry(), indent=1, ensure_ascii=False) + "\n"
        if out is None:
            print(text, end="")
        else:
            out.write_text(text, encoding="utf-8")
        print("the study does not know: " + ", ".join(made.registry_missing()), file=sys.stderr)
    elif out is not None:
        made.write(out)
    else:
        print(made.to_json() if as_json else made, end="" if as_json else "\n")
    if out is not None:
        print(f"wrote {out}", file=sys.stderr)
    if not made.whole:
        print("the ledger is not whole: the report says so first", file=sys.stderr)
        raise typer.Exit(1)

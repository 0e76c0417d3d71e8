"""Errors of curador by defaults, and of the best caps and bounds in hindsight: `ours.py SET DATA FOLDER`.

Surveys are bought by the product, each time on a new ledger. A question's caps follow from what was released, its own
histogram is drawn again and again, and so is the noise of its answer on the exact tallies at those caps.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import curador as cu
from curador.answers.release import release
from curador.answers.table import answer_columns
from curador.curator.asking import PricedQuestion
from curador.curator.finding import FindingQuestion, caps_known
from curador.curator.options import QuestionOptions
from curador.curator.price import price_at
from curador.curator.session import Session
from curador.curator.survey import released_counts
from curador.curator.survey_columns import proposed_bounds
from curador.errors import CuradorError
from curador.plan.counting import Steps, with_caps
from curador.study.model import Caps, Schema
from usable import tasks
from usable.scores import squared
from usable.tasks import Asked, DataSet

Groups = dict[tuple[Any, ...], float]


# ---- the study -------------------------------------------------------------------------------------------------------------


def opened(data: DataSet, folder: Path, bounds: Mapping[str, Mapping[str, Any]]) -> cu.Curator:
    """Return the curator of a data set: with these bounds, and nothing else that a person would have to know."""
    tables = {}
    for name, file in data.files.items():
        declared = data.tables[name]
        columns = {column: dict(one) for column, one in declared.get("columns", {}).items()}
        for column, (low, high) in bounds.get(name, {}).items():
            kind = {"type": _type(low)} if column not in columns else {}
            columns.setdefault(column, kind)["bounds"] = [_plain(low), _plain(high)]
        tables[name] = {**declared, "source": file, **({"columns": columns} if columns else {})}
    budget = {"epsilon": tasks.EPSILON, "delta": tasks.DELTA}
    document = {"version": 1, "name": "usable", "budget": budget, "ledger": "u.ledger", "unit": {"name": data.unit}}
    place = folder / "study.toml"
    place.write_text(_toml({**document, "tables": tables, "engine": {"deadline": "600s", "worker": "inline"}}))
    return cu.open(place)


def _plain(value: Any) -> str | int:
    return str(float(value)) if isinstance(value, Fraction) and value.denominator != 1 else int(value)


def _type(value: Any) -> str:
    return "integer" if isinstance(value, int) else "float"


def _toml(document: Mapping[str, Any]) -> str:
    lines = [f"{name} = {_value(one)}" for name, one in document.items() if name not in {"tables", "engine"}]
    lines += ["[engine]", *(f"{name} = {_value(one)}" for name, one in document["engine"].items())]
    for table, declared in document["tables"].items():
        lines += [f"[tables.{table}]", *(f"{name} = {_value(one)}" for name, one in declared.items() if name != "columns")]
        if "columns" in declared:
            lines += [f"[tables.{table}.columns]", *(f"{name} = {_value(one)}" for name, one in declared["columns"].items())]
    return "\n".join(lines) + "\n"


def _value(one: Any) -> str:
    if isinstance(one, Mapping):
        return "{ " + ", ".join(f"{name} = {_value(inner)}" for name, inner in one.items()) + " }"
    return json.dumps(one)


def surveyed(data: DataSet, folder: Path, files: Path) -> cu.Curator:
    """Return a curator on a new ledger that bought both surveys and took over the bounds of quantities."""
    folder.mkdir(parents=True)
    os.environ["CURADOR_REGISTER"] = str(folder / "register")  # the same public rows, again and again: nobody's to remember
    for file in data.files.values():
        shutil.copy(files / file, folder / file)
    with opened(data, folder, {}) as curator:
        if any(table.surveyed for table in curator.study.tables):
            curator.survey()
        found = proposed_bounds(curator.survey(columns=True)) if data.measures else {}
    kept = {name: {one: found[name][one] for one in own if one in found.get(name, {})} for name, own in data.measures.items()}
    return opened(data, folder, kept)


# ---- truth and error -------------------------------------------------------------------------------------------------------


def truth_of(data: DataSet, asked: Asked, files: Path) -> Groups:
    """Return what the uncapped table says."""
    with duckdb.connect() as plain:
        for name, file in data.files.items():
            where = f" WHERE {data.real[name]}" if name in data.real else ""
            plain.execute(f"CREATE VIEW {name} AS SELECT * FROM '{files / file}'{where}")
        return {tuple(row[:-1]): float(row[-1]) for row in plain.execute(asked.text).fetchall()}


@dataclass
class Redrawing:
    """Exact tallies of a question at some caps and bounds, and answers drawn on them."""

    question: PricedQuestion
    tallied: Any

    def errors(self, truth: Groups, times: int) -> list[float]:
        """Return squared errors of so many answers."""
        return [squared(truth, self._answer()) for _ in range(times)]

    def _answer(self) -> Groups:
        (priced, *_) = self.question.priced
        columns = answer_columns(priced, release(priced, self.tallied), self.question.confidence)
        values = [0.0 if one is None else float(one) for one in columns[-1].values]
        keys = zip(*(column.values for column in columns[:-1]), strict=True) if len(columns) > 1 else [()] * len(values)
        return dict(zip(map(tuple, keys), values, strict=True))


def at(question: PricedQuestion) -> Redrawing:
    """Return a priced question with its tallies."""
    return Redrawing(question, question.session.engine.tally(question.compiled))


# ---- ours ------------------------------------------------------------------------------------------------------------------


def defaults(session: Session, asked: Asked, truth: Groups) -> tuple[list[float], list[str]]:
    """Return squared errors of what the product answers by itself, and in which caps it ended."""
    question = price_at(session, asked.text, QuestionOptions(spend=f"{tasks.SPEND}%"))
    if isinstance(question, PricedQuestion):
        return at(question).errors(truth, tasks.DRAWS * tasks.FOUND), [_caps(question)]
    errors, caps, known = list[float](), list[str](), dict[str, Redrawing]()
    for resolved in found_questions(question, tasks.FOUND):
        name = _caps(resolved)
        if name not in known:
            known[name] = at(resolved)
        errors += known[name].errors(truth, tasks.DRAWS)
        caps.append(name)
    return errors, caps


def found_questions(question: FindingQuestion, times: int) -> Iterator[PricedQuestion]:
    """Return the question at the caps that follow from its own histogram, drawn again each time."""
    held = {need.name: need.steps for own in question.needs for need in own.values() if need.name and need.steps}
    counts = question.counts
    tallied = None if counts is None else counts.session.engine.tally(counts.compiled)
    for _ in range(times):
        known = dict(held)
        if counts is not None:
            for place, (priced, (name, tops)) in enumerate(zip(counts.priced, question.missing, strict=True)):
                known[name] = Steps(tops, *released_counts(priced, release(priced, tallied[place : place + 1])))
        needs = question._known_needs(known)  # noqa: SLF001 - what compute does between its two releases
        caps = caps_known(question.session, question.main.plan, needs)
        yield question._resolve(known, caps)  # noqa: SLF001 - likewise


def _caps(question: PricedQuestion) -> str:
    (block,) = question.plan.blocks
    cap = block.cap
    return "/".join("-" if one is None else str(one) for one in (cap.rows, cap.groups, cap.in_group))


# ---- hindsight -------------------------------------------------------------------------------------------------------------

Choice = tuple[Any, ...]


class Hindsight:
    """The best caps and bounds for a question, by looking: powers of two, up and down while it gets better."""

    def __init__(self, session: Session, asked: Asked, truth: Groups) -> None:
        """Look at one question; columns with bounds are those that its text names."""
        self.session, self.asked, self.truth = session, asked, truth
        self.columns = [
            (table.table.name, one.name, [float(end) for end in one.declared.bounds])
            for table in session.schema.tables
            for one in table.fields
            if one.declared is not None and one.declared.bounds is not None and one.name in asked.text
        ]
        self.seen: dict[Choice, float] = {}
        self.draws = max(4, 40 // len(truth))
        self.single = all(table.table.public or table.table.single for table in session.schema.tables)
        self.keyed = "GROUP BY" in asked.text
        self.places = 0 if self.single else 3 if self.keyed else 2 if "DISTINCT" in asked.text else 1

    def best(self) -> tuple[float, str]:
        """Return the least error, and where it is."""
        ends = tuple(end for *_, pair in self.columns for end in pair)
        starts = ((1, 1, 1),) if self.single else ((64, 64, 64), (8, 4, 4)) if self.keyed else ((32, 32, 32),)
        found = min((self._descend((*start, *ends)) for start in starts), key=lambda one: one[0])
        self.draws *= 4  # the least of many noisy figures is too small
        self.seen.clear()
        return self.error(found[1]), "/".join(f"{one:g}" for one in found[1])

    def _descend(self, start: Choice) -> tuple[float, Choice]:
        now, error = start, self.error(start)
        for _ in range(4):
            before = error
            for place in range(len(start)):
                for factor in (2, 0.5):
                    for choice in self._along(now, place, factor):
                        other = self.error(choice)
                        if other > error * 1.3 and choice[place]:
                            break
                        if other < error:
                            now, error = choice, other
            if error >= before * 0.98:
                break
        return error, now

    def _along(self, now: Choice, place: int, factor: float) -> Iterator[Choice]:
        """Yield choices in which one number is moved by a factor, on and on; a lower bound can be 0 too."""
        if self.places <= place < 3:
            return
        value, sign = now[place], -1.0 if place % 2 else 1.0
        if not value:  # a bound at 0: away from it
            value, factor = sign / 2, 2
        elif place >= 3 and factor < 1 and (place % 2 or now[place - 1] < 0):
            yield (*now[:place], 0.0, *now[place + 1 :])
        for _ in range(16):
            value = int(value * factor) if place < 3 else value * factor
            if place < 3 and not 1 <= value <= (1 << 13):
                return
            yield (*now[:place], value, *now[place + 1 :])

    def error(self, choice: Choice) -> float:
        """Return the root mean square error with these caps and bounds; infinite where there is no such plan."""
        if choice not in self.seen:
            session = replace(self.session, trial=self._schema(choice))
            try:
                question = price_at(session, self.asked.text, QuestionOptions(spend=f"{tasks.SHARED}%"))
                self.seen[choice] = math.sqrt(float(np.mean(at(question).errors(self.truth, self.draws))))
            except CuradorError:
                self.seen[choice] = math.inf
        return self.seen[choice]

    def _schema(self, choice: Choice) -> Schema:
        rows, groups, each, *ends = choice
        plain = self.session.schema
        caps = Caps(rows=rows, groups=min(groups, rows), rows_per_group=min(each, rows))
        schema = with_caps(plain, {one.table.name: caps for one in plain.tables})
        pairs = {
            (table, column): pair
            for (table, column, _), pair in zip(self.columns, zip(ends[::2], ends[1::2], strict=True), strict=True)
        }
        return replace(schema, tables=tuple(_bounded(one, pairs) for one in schema.tables))


def _bounded(table: Any, pairs: Mapping[tuple[str, str], tuple[float, float]]) -> Any:
    def change(field: Any) -> Any:
        pair = pairs.get((table.table.name, field.name))
        if pair is None or pair[0] >= pair[1]:
            return field
        whole = str(field.type) == "integer"
        ends = tuple(int(end) if whole else Fraction(end) for end in pair)
        return replace(field, declared=replace(field.declared, bounds=ends)) if ends[0] < ends[1] else field

    return replace(table, fields=tuple(change(field) for field in table.fields))


# ---- all of it -------------------------------------------------------------------------------------------------------------


def main() -> None:
    """Measure one data set and print a line for each question."""
    data = next(one for one in tasks.SETS if one.folder == sys.argv[1])
    files, folder = Path(sys.argv[2]) / data.folder, Path(sys.argv[3])
    hindsight = "--quick" not in sys.argv
    questions = (*data.questions, *data.held)
    truths = {asked.name: truth_of(data, asked, files) for asked in questions}
    errors: dict[str, list[float]] = {asked.name: [] for asked in questions}
    caps: dict[str, list[str]] = {asked.name: [] for asked in questions}
    best: dict[str, tuple[float, str]] = {}
    for number in range(tasks.TIMES):
        with surveyed(data, folder / str(number), files) as curator:
            session = curator._session  # noqa: SLF001 - what ask works with
            for asked in questions:
                try:
                    found, chosen = defaults(session, asked, truths[asked.name])
                except CuradorError as error:  # no bounds were proposed: the sum is refused, and 0 is all that is known
                    found, chosen = [squared(truths[asked.name], {})], [f"refused: {type(error).__name__} {error}"]
                errors[asked.name] += found
                caps[asked.name] += chosen
                if number == 0 and hindsight:
                    best[asked.name] = Hindsight(session, asked, truths[asked.name]).best()
    for asked in questions:
        truth = list(truths[asked.name].values())
        line = {
            "set": data.name,
            "question": asked.name,
            "kind": asked.kind,
            "held": asked in data.held,
            "groups": len(truth),
            "truth": math.sqrt(float(np.mean(np.square(truth)))),
            "ours": math.sqrt(float(np.mean(errors[asked.name]))),
            "caps": sorted(set(caps[asked.name])),
            "best": best.get(asked.name, (math.nan,))[0],
            "best_caps": best.get(asked.name, (0, ""))[1],
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

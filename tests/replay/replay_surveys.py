"""Histories of surveyed studies: the same acts on two neighbouring worlds, with the same released values forced in both.

Whatever is planned, priced, refused, charged, told and remembered must then be the same: it is a function of the question,
the study and what was released before. What was measured before any noise must move by no more than was declared.
"""

import dataclasses
import os
import random
import re
from dataclasses import dataclass, field

import numpy as np
from replay_judge import compare

import curador as cu
from curador.answers.identity import identity, plain
from curador.canonical import canonical_text
from curador.curator import asking, finding
from curador.curator import curator as buying
from curador.curator.rehearsal import rehearse, tally_without_rows
from curador.engines.duckdb.versions import prepared_folder
from curador.errors import CuradorError, Failed, Refused
from curador.ledger import entry as ledger_entry
from curador.plan.aggregates import Ends
from registers import another_register

ANALYSTS = '\n[analysts]\nana = { share = "50%" }\nleo = { share = "40%" }\n'
COUNTS = ("SELECT COUNT(*) AS n FROM visits", "SELECT COUNT(*) AS n FROM visits WHERE spent > 100")


def without_caps(world, dice):
    """Return a world whose tables have no declared caps, but for some of them."""
    kept = dice.choice(["", "", "orders", "lines"])
    name, lines = "", []
    for line in world.toml.splitlines():
        name = line.strip("[]").removeprefix("tables.") if line.startswith("[") else name
        if not line.startswith("caps = ") or name == kept:
            lines.append(line)
    return dataclasses.replace(world, toml="\n".join(lines) + ANALYSTS)


def random_acts(dice, question, count):
    """Return what is asked: who, what, how. The first is an analyst's, before anybody bought a survey."""
    acts = [("ana", COUNTS[0], {"spend": "0.1%"}), ("owner", COUNTS[0], {"spend": "0.1%"})]
    for _ in range(count):
        who, how = dice.choice(["owner", "ana", "leo"]), dice.choice(["spend", "spend", "spend", "epsilon", "bias", "fresh"])
        text = question()
        options = {"epsilon": "1"} if how == "epsilon" else {"spend": dice.choice(["0.1%", "0.3%"])}
        acts.append((who, text, {**options, **({how: True} if how in {"bias", "fresh"} else {})}))
        if dice.random() < 0.3:
            acts.append((dice.choice(["owner", "ana"]), text, options))
        if dice.random() < 0.15:
            acts.append(("ana", COUNTS[1].replace("100", str(dice.randrange(400))), {"accuracy": {"n": 9}, "caps": "find"}))
        if dice.random() < 0.1:
            acts.append(("both", "SURVEY", {}))
    return acts


@dataclass
class Seen:
    """What one act shows: to the asker, in the ledger, and, before noise, to the judge alone."""

    shown: object
    entries: list
    measured: list = field(default_factory=list)
    wrong: list = field(default_factory=list)


def played(world, folder, acts, patch, key=bytes(range(32))):
    """Return what every act shows on a world, with releases forced to what their plans alone determine."""
    another_register()  # the neighbour may be an equal table: it is another world, not another study of this one
    study = world.written(folder)
    prepared = prepared_folder(study)
    prepared.mkdir(mode=0o700)
    with open(os.open(prepared / "key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:  # noqa: PTH123
        file.write(key)
    numbers = iter(range(10**6))
    patch.setattr(ledger_entry, "new_id", lambda: f"{next(numbers):032x}")
    patch.setattr(ledger_entry, "now", lambda: "2026-01-01T00:00:00+00:00")
    judge = Judge(patch)
    with cu.open(study) as curator:
        return [judge.saw(curator, act) for act in acts]


class Judge:
    """Forces what is released, and looks at every plan on its way."""

    def __init__(self, patch):
        self.measured, self.wrong, self.released = [], [], {}
        patch.setattr(asking, "release", self.force)
        needs_of = finding.needs_of
        patch.setattr(finding, "needs_of", lambda session, plan: self.know(needs_of(session, plan)))

    def force(self, priced, tallied):
        """Release what follows from the plan alone; remember what was measured, and of which rows units were counted."""
        self.measured.append((priced, tallied))
        dice = random.Random(identity(priced)[0])
        blocks = rehearse(priced, [tally_without_rows(block) for block in priced.plan.blocks])
        if [item.name for item in priced.plan.blocks[0].items] != ["step", "units"]:
            return [dataclasses.replace(block, values=tuple(map(_without_luck, block.values))) for block in blocks]
        (block,) = blocks
        top = dice.choice([1, 2, 3, 4, 6, 14])  # mostly caps that some of these units exceed
        counts = [dice.choice([0, 3, 900, 50_000]) if place < top else 0 for place in range(len(block.keys[0]))]
        self.released[_counted_rows(priced.plan.blocks[0].relation)] = counts
        return [dataclasses.replace(block, values=(np.array(counts, np.int64),))]

    def know(self, needs):
        """Whatever is known of a relation was released of this very relation."""
        for own in needs:
            for need in own.values():
                if need.steps is not None and need.name is not None:
                    relation = finding_relation(need.counting)
                    if self.released.get(relation) != list(need.steps.counts):
                        self.wrong.append("caps follow from numbers of other rows")
        return needs

    def saw(self, curator, act):
        """Return what one act shows, with the rules that hold in every single world."""
        who, text, options = act
        self.measured, self.wrong = [], []
        start = curator.ledger.head.sequence + 1
        surveyed = curator.ledger.surveyed("replay")
        try:
            shown = _shown(self.act(curator, who, text, options))
        except Failed as error:
            shown = ("failed", type(error).__name__)
            self.wrong.append(f"a question failed after its charge: {error}")
        except Refused as error:
            shown = ("refused", type(error).__name__, re.sub(r"incident \w+", "incident", str(error)))
        except CuradorError as error:
            shown = (type(error).__name__, str(error))
        entries = list(curator.ledger.entries(start))
        self.check_entries(entries, who, surveyed, {table.name for table in curator.study.tables if table.surveyed})
        self.check_costs(entries)
        self.check_caps(curator)
        return Seen(shown, [_written(entry) for entry in entries], self.measured, self.wrong)

    def act(self, curator, who, text, options):
        """Ask; or let two owners buy the survey who have both seen the same one before it."""
        if text == "SURVEY":
            before = curator._session.survey  # noqa: SLF001 -- what both have seen
            first = buying.buy_survey(curator._session, before)  # noqa: SLF001
            second = buying.buy_survey(curator._session, before)  # noqa: SLF001
            return first.lines()[1:], second.lines()[1:]
        return (curator if who == "owner" else curator.analyst(who)).ask(text, **options)

    def check_entries(self, entries, who, surveyed, found):
        """Surveys are the owner's, and bought once by all who decided at the same time."""
        bought = [one for one in entries if str(one.kind) == "reserved" and (one.question or "").startswith("SURVEY")]
        if who in {"ana", "leo"} and (bought or any("tables" in (one.survey or {}) for one in entries)):
            self.wrong.append("an analyst's question bought a survey")
        if who in {"ana", "leo"} and surveyed is None and any(found.intersection(one.tables) for one in entries):
            self.wrong.append("an analyst was answered before anybody declared or found caps")
        if len(bought) > 1:
            self.wrong.append("a survey was bought twice")

    def check_costs(self, entries):
        """What was measured after a charge costs no more than was charged, all of it together."""
        charged = [one.amounts for one in entries if str(one.kind) == "reserved"]
        costs = [priced.cost for priced, _ in self.measured]
        pairs = [(sum(one.rho or one.epsilon for one in charged), 0), (sum(one.delta for one in charged), 1)]
        if any(sum(cost[place] for cost in costs) > most for most, place in pairs):
            self.wrong.append("what was measured costs more than was charged")

    def check_caps(self, curator):
        """A whole table is answered with the cap that its surveyed entry says, and no other."""
        entry = curator.ledger.surveyed("replay")
        for priced, _ in self.measured:
            for block in priced.plan.blocks:
                table = getattr(block.relation, "table", None)
                cap = None if entry is None else entry.survey["tables"].get(table, {}).get("cap")
                asked = [item.name for item in block.items] == ["n"]
                if asked and block.cap.by == "rank" and block.cap.rows != cap and table == "visits":
                    self.wrong.append(f"a table's cap is {cap}, and {block.cap.rows} rows of a unit were counted")


def _without_luck(values):
    """The three draws of a quantile are random in a rehearsal, too: here they are 0."""
    return Ends(*[np.zeros_like(values.point)] * 3) if isinstance(values, Ends) else values


def finding_relation(counting):
    """Name what is counted, apart from the code under test."""
    return (
        counting.kind,
        canonical_text(plain(counting.relation)),
        tuple(sorted(canonical_text(plain(k)) for k in counting.keys)),
    )


def _counted_rows(relation):
    """Read the same off the relation that is executed: one row for each unit, of groups, of rows."""
    inner = relation.input
    if type(inner).__name__ != "UnitGroup" or not _made_here(inner):
        return "rows", canonical_text(plain(relation.input)), ()
    kind = "in_group" if relation.aggregates[0].function == "max" else "groups"
    keys = inner.keys[1:] if any(column.unit for column in inner.columns) else inner.keys
    return kind, canonical_text(plain(inner.input)), tuple(sorted(canonical_text(plain(key)) for key in keys))


def _made_here(relation):
    return any(column.name.startswith("key ") for column in relation.columns)


def _shown(answer):
    if isinstance(answer, tuple):
        return answer
    receipt = {name: answer.receipt[name] for name in ("caps", "measurements", "keys", "plan", "budget", "plain")}
    return answer.parts, answer.cost, answer.stored, answer.notes, answer.bias, receipt


def _written(entry):
    """Everything that an entry says."""
    return {
        "kind": str(entry.kind),
        "analyst": entry.analyst,
        "amounts": entry.amounts,
        "losses": entry.losses,
        "question": entry.question,
        "key": entry.question_key,
        "plan": entry.plan_digest,
        "survey": entry.survey,
        "spent": entry.after.spent,
    }


def judged_histories(ours, theirs, acts):
    """Return every violation of two histories, with the act that showed it."""
    found = []
    for act, one, other in zip(acts, ours, theirs, strict=True):
        wrong = [*one.wrong, *other.wrong]
        if one.shown != other.shown:
            wrong.append(f"what is shown depends on rows: {_first(one.shown, other.shown)}")
        if one.entries != other.entries:
            wrong.append("what is charged or remembered depends on rows")
        if [priced for priced, _ in one.measured] != [priced for priced, _ in other.measured]:
            wrong.append("what is measured depends on rows")
        else:
            for (priced, mine), (_, others) in zip(one.measured, other.measured, strict=True):
                wrong += compare(priced.plan, mine, others)
        found += [(act, text) for text in wrong]
    return found


def _first(one, other):
    both = zip(one, other, strict=False) if isinstance(one, tuple) and isinstance(other, tuple) else [(one, other)]
    return next((f"{str(a)[:300]} and {str(b)[:300]}" for a, b in both if a != b), "")

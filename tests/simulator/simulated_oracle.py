"""What was released, what was charged and what was said, kept by another hand: nothing here is the product's code.

It reads the texts of entries as they become durable, adds them up by itself, and is told what leaves to askers. The first
thing that does not hold is a violation, and ends the history.
"""

import hashlib
import json
from fractions import Fraction
from functools import lru_cache

TICKS = 10**18
"""Whole ticks of an epsilon of 1: amounts here are whole numbers of them."""
CLOSED = 3


class ViolationError(BaseException):
    """A promise that did not hold; no code of the product catches it."""


@lru_cache(4096)
def read(text):
    """The fields of an entry, its hash, its cost, and what it says was spent."""
    body = json.loads(text)
    cost, spent = (ticks(Fraction(one["epsilon"])) for one in (body["amounts"], body["after"]["spent"]))
    return body, hashlib.sha256(text.encode()).hexdigest(), cost, spent


def ticks(amount):
    """An amount as a whole number of ticks."""
    if (amount * TICKS).denominator != 1:
        raise ValueError(amount)
    return int(amount * TICKS)


@lru_cache(256)
def read_slot(content):
    """What a slot of the witness says: (ledger, sequence, hash), None where it is torn."""
    try:
        body = json.loads(content)
        said = body.pop("checksum")
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        if said != hashlib.sha256(text.encode()).hexdigest():
            return None
        return body["ledger"], body["sequence"], body["hash"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def witnessed(content):
    """The slots that are whole, the newest first."""
    if len(content) == 8192:
        found = [one for one in (read_slot(content[:4096]), read_slot(content[4096:])) if one is not None]
        return sorted(found, key=lambda one: -one[1])
    try:
        body = json.loads(content)
    except ValueError:
        return []
    return [(body["ledger"], body["sequence"], body["hash"])]


class Oracle:
    """The history so far."""

    def __init__(self, world):
        self.world, self.scheduler = world, world.scheduler
        self.texts, self.hashes = [], []
        self.spent, self.by_holder, self.version, self.failures = 0, {}, 1, 0
        self.reserved, self.ended, self.named, self.by_question = {}, {}, {}, {}
        self.standing = {}  # (key, version) -> ids of reservations that are open or committed
        self.answered = {}  # id of a reservation -> SHA-256 of its answer
        self.computed, self.computed_cost, self.released, self.costs = {}, 0, {}, {}
        self.never = set()  # questions of which somebody was told that nothing was spent
        self.left = set()  # what a killed process had given up, whose last write may be found in the log
        self.charged_at = {}  # id of a reservation -> when it was on disk

    def fail(self, *what):
        """End the history."""
        error = ViolationError(" ".join(str(one) for one in what))
        self.world.violation = self.world.violation or error
        raise error

    # ---- what becomes durable --------------------------------------------------------------------------------------------

    def lasts(self, layer):
        """Rows that are on disk now: those of before, and more."""
        rows = layer.rows
        if len(rows) < len(self.texts):
            self.fail("entries were lost:", len(rows), "of", len(self.texts))
        if self.texts and rows[len(self.texts) - 1].body != self.texts[-1]:
            self.fail("an entry was changed")
        for row in rows[len(self.texts) :]:
            self._add(row)
        self.left = set()
        if any(int(spent[0]) != self._total(holder) for holder, (spent, _) in layer.totals.items()):
            self.fail("running totals differ from the entries")
        if self.spent > self.world.limit:
            self.fail("overspent:", self.spent)
        if self.computed_cost > self.spent:
            self.fail("charges were given back for what was computed:", self.computed_cost, ">", self.spent)

    def _total(self, holder):
        return self.spent if holder == "study" else self.by_holder.get(holder, 0)

    def _add(self, row):
        body, hash_, cost, spent = read(row.body)
        kind, own, holder = body["kind"], body["id"], "owner" if body["analyst"] is None else f"analyst:{body['analyst']}"
        if body["sequence"] != len(self.texts) or (self.texts and body["previous"] != self.hashes[-1]) or hash_ != row.hash:
            self.fail("the chain is broken at", len(self.texts))
        if own in self.named:
            self.fail("an id has two entries")
        self.texts.append(row.body)
        self.hashes.append(hash_)
        self.named[own] = body["sequence"], kind
        if kind == "reserved":
            self._reserve(body, own, holder, cost)
        elif kind in {"committed", "failed", "voided"}:
            self._settle(body, own, holder, kind)
        elif cost:
            self.fail(kind, "cost something")
        elif kind == "served" and self.named.get(body["refers"], (0, ""))[1] != "committed":
            self.fail("something was given again that is not committed")
        elif kind == "refreshed":
            self.version += 1
        elif kind == "reopened":
            self.failures = 0
        after = body["after"]
        if (spent, after["data_version"], after["failures"]) != (self.spent, self.version, self.failures):
            self.fail("the state after entry", body["sequence"], "does not add up")

    def _reserve(self, body, own, holder, cost):
        question = body["question"]
        if question in self.never:
            self.fail("nothing was spent, they said:", question)
        if body["data_version"] != self.version or self.world.version_of[question] != self.version:
            self.fail("charged for an old data version")
        if body["analyst"] is not None and self.failures >= CLOSED:
            self.fail("a closed study admitted an analyst")
        if question in self.by_question:
            self.fail("one request was charged twice:", question)
        self._refuse_double(body, question)
        self.spent += cost
        self.by_holder[holder] = self.by_holder.get(holder, 0) + cost
        if self.by_holder[holder] > self.world.limit_of(body["analyst"]):
            self.fail("a share was overspent")
        self.reserved[own], self.costs[own], self.charged_at[own] = body, cost, self.scheduler.now
        self.by_question.setdefault(question, []).append(own)
        self.standing.setdefault((body["key"], body["data_version"]), []).append(own)

    def _refuse_double(self, body, question):
        """Nobody pays for a question that is stored, or that somebody is answering who can still do so."""
        if self.world.is_fresh(question):
            return
        for other in self.standing.get((body["key"], body["data_version"]), []):
            asked = self.reserved[other]["question"]
            given_up = (process.session.abandoned for process in self.world.ready() if process.session)
            if other in self.left or any(other in held for held in given_up):
                continue  # interrupted or failed, and told that its charge is kept: who asks again pays again
            young = self.scheduler.now - self.charged_at[other] <= self.world.deadline
            if (young or other in self.ended) and not self.world.is_fresh(asked):
                self.fail("paid twice for one question:", question)

    def _settle(self, body, own, holder, kind):
        of = body["refers"]
        before = self.reserved.get(of)
        if before is None or of in self.ended:
            self.fail("settled what is not open")
        self.ended[of] = self.scheduler.now, kind, own
        if kind == "committed":
            self.answered[of] = body["content"]
            return
        self.standing[before["key"], before["data_version"]].remove(of)
        if kind == "failed":
            self.failures += 1
        else:
            if before["question"] in self.computed:
                self.fail("a charge was given back after rows were read:", before["question"])
            self.spent -= self.costs[of]
            self.by_holder[holder] -= self.costs[of]

    # ---- what is told ----------------------------------------------------------------------------------------------------

    def _witnessed(self):
        """How far the witnesses would remember if the power failed now."""
        found = [witnessed(one.disk.durable_names[one.place.name].durable) for one in self.world.machines]
        return max((one[0][1] for one in found if one), default=-1)

    def computes(self, question):
        """Rows are read: the charge must be on disk, and witnessed."""
        opened = [one for one in self.by_question.get(question, []) if one not in self.ended]
        if not opened:
            self.fail("rows are read before the charge is on disk:", question)
        if self.named[opened[-1]][0] > self._witnessed():
            self.fail("rows are read before the charge is witnessed:", question)
        self.computed_cost += self.costs[opened[-1]]
        self.computed[question] = opened[-1]
        if self.computed_cost > self.spent:
            self.fail("more is computed than was charged")

    def releases(self, question, content):
        """An answer leaves: its commit must be on disk, and its charge witnessed; of who pays, the commit is, too."""
        digest = hashlib.sha256(content).hexdigest()
        found = [own for own, said in self.answered.items() if said == digest]
        if not found:
            self.fail("released before it was recorded:", question)
        own = found[0]
        paid = own in self.by_question.get(question, [])
        last = self.named[self.ended[own][2] if paid else own][0]
        if last > self._witnessed():
            self.fail("released before it was witnessed:", question)
        if self.reserved[own]["data_version"] < self.world.version_of[question]:
            self.fail("an old answer was given to a question about a new version")
        self.released[own] = self.costs[own]
        if sum(self.released.values()) > self.spent:
            self.fail("released more than was charged")

    def charged(self, question, own):
        """Somebody is told that a request was charged."""
        if own not in self.reserved or self.named[own][0] > self._witnessed():
            self.fail("told of a charge that is not on disk:", question)

    def refuses(self, question):
        """Somebody is told that nothing was spent."""
        if any(self.ended.get(own, (0, ""))[1] != "voided" for own in self.by_question.get(question, [])):
            self.fail("nothing was spent, they say, but it was:", question)
        self.never.add(question)

    # ---- batches and openings --------------------------------------------------------------------------------------------

    def takes(self, batch, waiting):
        """Settlements are never behind new reservations."""
        settles = [one.act.settles for one in batch]
        if sorted(settles, reverse=True) != settles or (not all(settles) and any(one.act.settles for one in waiting)):
            self.fail("a settlement is behind something new")

    def opened(self, machine, *, accepted, error, honest):
        """A ledger was opened, or refused to be."""
        if honest and not accepted:
            self.fail("an honest ledger was refused:", error)
        if not honest and accepted:
            self.fail("a ledger that was set back was opened on", machine)

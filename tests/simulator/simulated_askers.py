"""What people and programs do at a ledger: ask, ask from afar by an id, give back, poison a batch, refresh, reopen."""

import hashlib
from fractions import Fraction
from types import SimpleNamespace

from simulated_tasks import KilledError

from curador.curator import spending
from curador.errors import CuradorError, Failed, InvalidParameter, Refused
from curador.ledger.acts import Act, Reserve, Settle
from curador.ledger.amounts import Amounts
from curador.ledger.entry import Entry, EntryKind, Request, Spent
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.privacy.losses import Pure

DIGEST = hashlib.sha256(b"study").hexdigest()
COSTS = [Fraction(1, 20), Fraction(1, 10), Fraction(1, 10), Fraction(1, 4), Fraction(3, 8)]
LOSSES = {one: (Pure(epsilon=one).to_record(),) for one in COSTS}
AMOUNTS = {one: Amounts.cost(epsilon=one) for one in COSTS}
KEYS = [hashlib.sha256(bytes([place])).hexdigest() for place in range(4)]


class EngineKilledError(Exception):
    """A worker was killed, or stopped at the deadline."""


class SimulatedPurchase:
    """A question whose answer is a number that nobody has twice."""

    what, shape, once, ticks = "question", "shape", False, 1

    def __init__(self, world, process, request):
        self.world, self.process, self.request = world, process, request

    def try_engine(self):
        """Nothing to try."""

    def compute(self, *, rehearsal):
        """Read rows, for a while."""
        return b"rehearsal" if rehearsal else self.world.askers.compute(self.request.question)

    def restore(self, content):
        """Return what is kept."""
        return content

    def digest(self, restored):
        """Return its digest."""
        return hashlib.sha256(restored).hexdigest()

    def show(self, restored, digest, spent):
        """Return what the asker gets."""
        if restored != b"rehearsal" and not spent.served:
            self.process.told = max(self.process.told, spent.entry.sequence)
        return SimpleNamespace(content=restored, receipt=SimpleNamespace(record={"answer": digest}))


class Poison(Act):
    """Charges, and breaks."""

    id = "poison"

    def __init__(self, request):
        self.request = request

    def perform(self, page, head, limits, *, again):
        """Write something, then raise what no code expects."""
        Reserve(self.request).perform(page, head, limits, again=again)
        raise TypeError("poison")


class Askers:
    """Everybody who comes to the ledger of a world."""

    ended = KilledError()

    def __init__(self, world):
        self.world, self.random, self.scheduler = world, world.random, world.scheduler
        self.asked, self.answers = 0, 0
        keys = self.random.choice((1, 2, 4))
        self.keys = KEYS[:keys]
        self.small = self.random.random() < 0.5
        others = (self.ask, self.void, self.from_afar, self.poison, self.owner)
        self.kinds = self.random.choices(others, (5, 1, 3, 1, 1), k=30) if self.random.random() < 0.8 else [self.ask] * 30

    def begin(self):
        """Let somebody come."""
        ready = self.world.ready()
        if not ready:
            return
        self.asked += 1
        process = self.random.choice(ready)
        kind = self.kinds[self.asked % 30]
        if kind == self.from_afar:
            self.scheduler.spawn(self.world.client, f"afar{self.asked}", self.from_afar(self._request(process), process))
        else:
            self.scheduler.spawn(process, f"{kind.__name__}{self.asked}", kind(self._request(process), process))

    def _request(self, process):
        from simulated_world import ANALYSTS

        analyst = self.random.choice((None, *ANALYSTS, *ANALYSTS))
        cost = self.random.choice(COSTS[:3] if self.small else COSTS)
        question, version = f"question {self.asked}", self.world.oracle.version
        if self.random.random() < 0.1:
            self.world.fresh.add(question)
        self.world.version_of[question] = version
        del process
        return Request(
            amounts=AMOUNTS[cost],
            losses=LOSSES[cost],
            study_digest=DIGEST,
            data_version=version,
            question_key=self.random.choice(self.keys),
            question=question,
            plan_digest=DIGEST,
            adjacency=ADD_OR_REMOVE_ONE,
            tables=("visits",),
            analyst=None if analyst is None else analyst.name,
            share=Fraction(1) if analyst is None else analyst.share,
            asked=self.world.now(),
        )

    def compute(self, question):
        """Read rows and draw noise; a worker may be killed, or hang until it is stopped."""
        world = self.world
        world.oracle.computes(question)
        fate = self.random.random()
        begun = self.scheduler.now
        for _ in range(self.random.choice((1, 1, 2))):
            self.scheduler.sleep(self.random.choice((0.0, 0.0, 0.01, 1.0, 6.0)))
        if fate < 0.04:
            self.scheduler.sleep(world.deadline - (self.scheduler.now - begun))
        if fate < 0.04 + world.faults.workers or self.scheduler.now - begun >= world.deadline:
            self.scheduler.note("worker killed")
            raise EngineKilledError
        self.answers += 1
        content = f"{question}: {self.answers} {world.token(4)}".encode()
        self.scheduler.note("computed", content.decode())
        return content

    # ---- those in a process of a curator ---------------------------------------------------------------------------------

    def ask(self, request, process):
        """Ask through the one door for spending."""
        world, question = self.world, request.question
        session = process.session if request.analyst is None else process.session.of(self._analyst(request))

        def run():
            self.scheduler.note("asks", question, request.question_key[:4], request.amounts.epsilon, request.analyst)
            try:
                shown = spending.spend(session, SimulatedPurchase(world, process, request), fresh=world.is_fresh(question))
            except Refused as error:
                self.scheduler.note("refused", type(error).__name__, error.sentence)
                world.oracle.refuses(question)
            except Failed as error:
                self.scheduler.note("failed", error.sentence)
            except KeyboardInterrupt as error:
                self.scheduler.note("interrupted", error)
            else:
                self.scheduler.note("answered", shown.content.decode())
                world.oracle.releases(question, shown.content)

        return run

    def _analyst(self, request):
        from simulated_world import ANALYSTS

        return next(one for one in ANALYSTS if one.name == request.analyst)

    def void(self, request, process):
        """Charge something and give it back before any engine was started, sometimes twice."""
        world, question = self.world, request.question
        world.fresh.add(question)

        def run():
            try:
                spent = process.ledger.reserve(request)
                world.oracle.charged(question, spent.id)
                self.scheduler.pause("charged, not begun")
                for _ in range(self.random.choice((1, 2))):
                    process.ledger.void(spent)
                    self.scheduler.note("given back", question)
            except InvalidParameter as error:
                self.scheduler.note("refused", error.sentence)
            except Refused:
                if question not in world.oracle.by_question:
                    world.oracle.refuses(question)
            except (Failed, KeyboardInterrupt) as error:
                self.scheduler.note("failed", error)

        return run

    def poison(self, request, process):
        """Hand over something that breaks in the middle."""

        def run():
            try:
                process.ledger._writer.do(Poison(request))  # noqa: SLF001 -- no door hands over such a thing
            except (TypeError, Refused):
                self.world.oracle.refuses(request.question)
            except (Failed, KeyboardInterrupt) as error:
                self.scheduler.note("failed", error)

        return run

    def owner(self, request, process):
        """Declare a new data version, or open the study again."""
        del request
        act = process.ledger.reopen if self.random.random() < 0.7 else process.ledger.refresh

        def run():
            try:
                act("simulated")
            except (CuradorError, KeyboardInterrupt) as error:
                self.scheduler.note("failed", error)
            else:
                self.scheduler.note(act.__name__)

        return run

    # ---- those in another process, by an id ------------------------------------------------------------------------------

    def from_afar(self, request, process):
        """Hand a request over by its id, through a wire that loses and doubles: to a writer that may be killed meanwhile."""
        world, question = self.world, request.question
        name, ending = world.token(16), world.token(16)
        world.fresh.add(question)  # it does not look up what is stored

        def run():
            found = self._hand_over(process, lambda at: at.ledger.reserve(request, id=name))
            told = [one for one in found if isinstance(one, Spent)]
            if not told:
                if found and all(isinstance(one, Refused) for one in found):
                    world.oracle.refuses(question)
                return
            if {one.id for one in told} != {name}:
                world.oracle.fail("a request has two outcomes:", question)
            world.oracle.charged(question, name)
            spent = told[-1]
            try:
                content = self.compute(question)
                kind, digest = EntryKind.COMMITTED, hashlib.sha256(content).hexdigest()
            except EngineKilledError:
                content, kind, digest = None, EntryKind.FAILED, None
            if self.random.random() < 0.15:
                self._try_to_give_back(process, spent)
            act = Settle(kind, spent.entry, content, digest, content_digest=digest, id=ending)
            found = self._hand_over(process, lambda at: at.ledger._writer.do(act, patience=30.0, again=True))  # noqa: SLF001
            if found and all(isinstance(one, Refused) for one in found) and ending in world.oracle.named:
                world.oracle.fail("a settlement that is on disk was refused:", question)
            if content is not None and any(isinstance(one, Entry) for one in found):
                world.oracle.releases(question, content)

        return run

    def _hand_over(self, process, act):
        """Do something at a process; when it is killed or the answer is lost, at another, until it is known what became."""
        for _ in range(5):
            at = process if process.alive and process.ledger is not None else self._another()
            if at is None:
                return []
            copies = 1 + (self.random.random() < self.world.faults.doubled)
            found = []
            for _ in range(copies):
                self.scheduler.spawn(at, "handed", lambda at=at, found=found: found.append(self._outcome(at, act)))
            ended = lambda at=at, found=found, copies=copies: len(found) == copies or not at.alive  # noqa: E731
            while not self.scheduler.wait("wire", ended, 1e6):
                pass
            self.scheduler.note("told", [type(one).__name__ for one in found])
            lost = self.random.random() < self.world.faults.lost
            unknown = not found or not at.alive or all(isinstance(one, Failed | KeyboardInterrupt) for one in found)
            if not (lost or unknown):
                return found
            process = at
        return []

    def _outcome(self, at, act):
        try:
            made = act(at)
        except (CuradorError, KeyboardInterrupt) as error:
            return error
        entry = made.entry if isinstance(made, Spent) else made
        at.told = max(at.told, entry.sequence)
        if isinstance(made, Spent):
            at.reserved.add(made.id)
        return made

    def _another(self):
        ready = []
        self.scheduler.wait("somebody?", lambda: bool(self.world.ready()), 60.0)
        ready = self.world.ready()
        return self.random.choice(ready) if ready else None

    def _try_to_give_back(self, process, spent):
        """After a restart nobody knows whether an engine ran: it did."""
        others = [one for one in self.world.ready() if spent.id not in one.reserved and one is not process]
        if others:
            at = self.random.choice(others)
            self.scheduler.spawn(at, "give back", lambda: self._outcome(at, lambda at: at.ledger.void(spent)))

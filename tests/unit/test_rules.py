"""Every kind of loss record answers every rule, and the readings know no kind but by its rules."""

import ast
import math
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import curador.privacy
from curador.errors import Failed, NotPrivate, Refused
from curador.privacy import laws, losses, rules, verify
from curador.privacy.adjacency import ADD_OR_REMOVE_ONE
from curador.privacy.loss import QUESTIONS, TO_RECORD, Composed, Loss
from curador.privacy.losses import loss_from_record
from parsed import nodes_of, tree_of

PRIVACY = Path(curador.privacy.__file__).parent

SAMPLES = {
    type(sample).__name__: sample
    for sample in (
        losses.GaussianLoss(mu="0.7"),
        losses.DiscreteGaussianLoss(sigma2=9, sensitivity=2),
        losses.DiscreteGaussianVectorLoss(sigma2=20, sensitivity_squared=5, dimension=3),
        losses.LaplaceLoss(epsilon="0.5"),
        losses.DiscreteLaplaceLoss(scale="5/2", sensitivity=2),
        losses.RandomizedResponseLoss(epsilon=1, categories=3),
        losses.BoundedRange(epsilon="0.4"),
        losses.Pure(epsilon="0.8"),
        losses.Approx(epsilon="0.5", delta="1e-7"),
        losses.Concentrated(rho="0.1"),
        losses.KeySelection(sigma2=40, keys=3, delta="1e-9"),
        losses.Finite(p=["1/2", "1/4", "1/4"], q=["1/4", "1/4", "1/2"]),
        losses.Shuffled(epsilon=1, reports=200),
        losses.LaplaceLoss(epsilon=1).subsample(rate="0.1"),
        losses.Group(losses.GaussianLoss(mu=1).subsample(rate="0.1"), 2),
    )
}
"""One record of each kind."""


def concrete_kinds(base=Loss):
    """Every class below Loss that the package defines and that is a record: neither a sum nor a mere base."""
    for kind in base.__subclasses__():
        yield from concrete_kinds(kind)
        if kind.__module__.startswith("curador.") and kind is not Composed:
            yield kind


# ---- nothing is forgotten ---------------------------------------------------------------------------------------------


def test_every_record_has_every_rule():
    """Record × rule: no kind leaves a rule to chance."""
    assert rules.missing() == []


def test_every_class_of_losses_is_a_described_kind():
    """No record escapes the walk above, the public door shows each, and each has a sample here."""
    kinds = {kind.__name__ for kind in concrete_kinds()}
    assert kinds == {kind.__name__ for kind in rules.KINDS} == set(SAMPLES)
    assert all(getattr(losses, name) is type(sample) for name, sample in SAMPLES.items())


@pytest.mark.parametrize("name", SAMPLES)
def test_every_record_is_written_and_read_back(name):
    """The form in which losses are stored knows every kind."""
    assert loss_from_record(SAMPLES[name].to_record()) == SAMPLES[name]


def test_every_law_has_a_twin_of_fifty_digits():
    """All laws but mixtures of normals, which are cut before they are summed."""
    found = set()
    for path in Path(laws.__file__).parent.glob("*.py"):
        names = [node.name for node in tree_of(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
        found |= {name for name in names if name.endswith("Law")}
    assert len(found) > 5
    assert found - {kind.__name__ for kind in verify.moment.registry} == {"MixtureLaw"}


def test_traits_have_no_defaults():
    """Whoever describes a kind says all of it."""
    said = dict.fromkeys((field.name for field in fields(rules.Traits)), False)
    rules.Traits(**said)
    for name in said:
        with pytest.raises(TypeError, match=name):
            rules.Traits(**{other: value for other, value in said.items() if other != name})


# ---- what is forgotten is caught --------------------------------------------------------------------------------------

ASKED = {
    "pure": lambda loss: loss.pure_epsilon,
    "concentrated": lambda loss: loss.concentrated,
    "readings": lambda loss: loss.readings("1e-6"),
    "attained": lambda loss: loss.epsilon_interval(0),
    "mean": lambda loss: loss.renyi(1),
    "tradeoff": lambda loss: loss.tradeoff("0.1"),
    "group": lambda loss: loss.group(2),
    "subsample": lambda loss: loss.subsample(rate="0.1").epsilon("1e-6"),
}


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.name)
def test_a_record_without_a_rule_is_caught(monkeypatch, rule):
    """A seeded record that lacks one rule is named by the walk, and refused by name where the rule is needed."""
    sample = SAMPLES["Shuffled" if rule is rules.own_reading else "LaplaceLoss"]
    monkeypatch.delitem(rule.answers, type(sample))
    assert rules.missing() == [(type(sample).__name__, rule.name)]
    refusals = []
    for ask in ASKED.values():
        try:
            ask(sample)
        except Refused as refusal:
            refusals.append(str(refusal))
    assert any(f"no {rule.name} rule for {type(sample).__name__}" in refusal for refusal in refusals)


def test_a_record_without_traits_has_no_lower_end(monkeypatch):
    """ε at δ = 0 from below is attained only by kinds that say so: an undescribed one is refused, not believed."""
    monkeypatch.delitem(rules.KINDS, losses.LaplaceLoss)
    with pytest.raises(NotPrivate, match="no rule for LaplaceLoss"):
        losses.LaplaceLoss(epsilon=1).epsilon_interval(0)


# ---- the rules are all there is ---------------------------------------------------------------------------------------


class Copy(Loss):
    """A record of a kind that nobody knows, with the parameters of another."""

    __slots__ = ("original",)

    def __init__(self, original):
        self.original = original

    @property
    def adjacency(self):
        return self.original.adjacency

    def __getattr__(self, name):
        return getattr(self.original, name)

    def __eq__(self, other):
        return isinstance(other, Copy) and self.original == other.original

    def __hash__(self):
        return hash(self.original)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in {"Subsampled", "Group"}])
def test_a_new_kind_needs_its_rules_and_nothing_else(monkeypatch, name):
    """A stranger that states the rules of a known kind is accounted like it, bit for bit."""
    sample = SAMPLES[name]
    monkeypatch.setitem(rules.KINDS, Copy, rules.KINDS[type(sample)])
    for rule in rules.RULES:
        monkeypatch.setitem(rule.answers, Copy, rule.answers[type(sample)])
    company = losses.GaussianLoss(mu="0.3")
    for ask in COMPARED:
        assert outcome(ask, Copy(sample)).replace("Copy", name) == outcome(ask, sample)
    for ask in (ASKED["readings"], ASKED["attained"], ASKED["mean"]):
        assert outcome(ask, 3 * Copy(sample) + company) == outcome(ask, 3 * sample + company)


COMPARED = (
    *(ask for name, ask in ASKED.items() if name != "group"),
    lambda loss: loss.epsilon_interval("1e-6"),
    lambda loss: loss.delta_interval("0.5"),
    lambda loss: loss.renyi(np.array([1.5, 30.0, math.inf])).tolist(),
    lambda loss: loss.subsample(rate="0.1", scheme="without_replacement").epsilon("1e-6"),
)


def outcome(ask, loss):
    """What is answered to the last bit, or why nothing is."""
    try:
        return repr(ask(loss))
    except Refused as refusal:
        return str(refusal)


def imported(path):
    for node in nodes_of(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_reading_knows_a_kind():
    """Inside privacy only the kinds and the public door import kinds."""
    doors = ("curador.privacy.kinds", "curador.privacy.losses")
    knowing = {
        str(path.relative_to(PRIVACY).parts[0])
        for path in PRIVACY.rglob("*.py")
        if any(module.startswith(doors) for module in imported(path))
    }
    assert knowing == {"kinds", "losses.py"}


def test_others_get_records_from_the_public_door():
    """`privacy.losses` loads all that answers a record's questions; nobody outside goes around it."""
    outside = [path for path in PRIVACY.parent.rglob("*.py") if PRIVACY not in path.parents]
    assert len(outside) > 100
    assert [str(path) for path in outside if "privacy.kinds" in path.read_text(encoding="utf-8")] == []


# ---- who answers ------------------------------------------------------------------------------------------------------


def test_every_question_has_an_answer():
    """The public door has loaded them all."""
    assert [question.name for question in QUESTIONS if question.answer is None] == []
    assert all(callable(getattr(Loss, question.name, None)) or question.name in vars(Loss) for question in QUESTIONS)


def test_a_question_that_nobody_answers_fails_by_name(monkeypatch):
    """A part of the program that forgot to load the answers is told so."""
    monkeypatch.setattr(TO_RECORD, "answer", None)
    with pytest.raises(Failed, match="nobody answers to_record"):
        losses.Pure(epsilon=1).to_record()


def test_an_empty_sum_is_asked_like_any_loss():
    """Nothing at all costs nothing."""
    nothing = losses.compose([])
    assert nothing.epsilon("1e-6") == 0.0
    assert loss_from_record(nothing.to_record()) == nothing
    assert nothing.adjacency is None
    assert (nothing + losses.Pure(epsilon=1, adjacency=ADD_OR_REMOVE_ONE)).adjacency is ADD_OR_REMOVE_ONE

"""Models are JSON: what was written is read, and nothing else is."""

import json
from pathlib import Path

import numpy as np
import pytest

import curador as cu
from curador import learn
from curador.learn.model_file import from_json, to_json


def fitted():
    draw = np.random.default_rng(1)
    return learn.PrivatePCA(epsilon=1, delta="1e-6", adjacency="replace_one").fit(draw.normal(size=(50, 3)))


def test_a_model_is_read_as_it_was_written(tmp_path):
    model = fitted()
    model.save(tmp_path / "model.json")
    again = learn.load(tmp_path / "model.json")

    assert again.get_params() == model.get_params()
    assert again.privacy_ == model.privacy_
    assert np.array_equal(again.transform(np.eye(3)), model.transform(np.eye(3)))
    assert to_json(again) == to_json(model)


def changed(change):
    body = json.loads(to_json(fitted()))
    change(body)
    return json.dumps(body)


HOSTILE = {
    "another format": lambda body: body.update(format=2),
    "another class": lambda body: body.update({"class": "Popen"}),
    "class is no text": lambda body: body.update({"class": 5}),
    "a function of ours": lambda body: body.update({"class": "load"}),
    "dunder": lambda body: body["fitted"].update({"__class__": 1}),
    "private": lambda body: body["fitted"].update({"_exactly_": 1}),
    "unknown parameter": lambda body: body["parameters"].update(evil=1),
    "another name of a parameter": lambda body: body["parameters"].update(adjacency="replace_one"),
    "another word for neighbours": lambda body: body["parameters"].update(neighbours="add_or_remove_one"),
    "huge number": lambda body: body["fitted"].update(a_={"exact": "1e300000000"}),
    "division by 0": lambda body: body["fitted"].update(a_={"exact": "1/0"}),
    "wide texts": lambda body: body["fitted"].update(a_={"array": ["x"], "kind": "U60000000", "shape": [1]}),
    "objects": lambda body: body["fitted"].update(a_={"array": ["x"], "kind": "object", "shape": [1]}),
    "array of a text": lambda body: body["fitted"].update(a_={"array": "xyz", "kind": "str", "shape": [3]}),
    "wrong shape": lambda body: body["fitted"].update(a_={"array": [1.0], "kind": "float64", "shape": [7]}),
    "beyond 64 bits": lambda body: body["fitted"].update(a_={"array": [10**30], "kind": "int64", "shape": [1]}),
    "no card": lambda body: body["fitted"].update(privacy_=5),
    "fitted is a list": lambda body: body.update(fitted=[]),
    "a property": lambda body: body["fitted"].update(mean_=1),
    "unknown value": lambda body: body["fitted"].update(a_={"code": "x"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_anything_else_is_refused_in_one_sentence(name):
    with pytest.raises(cu.InvalidParameter, match="a model must be a readable file"):
        from_json(changed(HOSTILE[name]))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", b"\xff"])
def test_no_model_at_all(text):
    with pytest.raises(cu.InvalidParameter, match="a model must be a readable file"):
        from_json(text)


def test_a_model_that_is_not_there(tmp_path):
    with pytest.raises(cu.InvalidParameter, match="path must be a readable file"):
        learn.load(tmp_path / "none.json")


# ---- files of earlier versions --------------------------------------------------------------------------------------------

MODELS = Path(__file__).parent / "models"
"""Written by 0.1.0 before features of clusters were scaled by their bounds, with what each model said of some rows."""
SAID = json.loads((MODELS / "said.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SAID)
def test_a_model_of_an_earlier_version_says_what_it_said(name):
    """Read for ever, number for number; and written again it is the same file."""
    content = (MODELS / f"{name}.json").read_text(encoding="utf-8")
    model, told = learn.load(MODELS / f"{name}.json"), SAID[name]
    arguments = [
        tuple(one) if name.startswith("recommender") and place == 0 else np.array(one, float)
        for place, one in enumerate(told["arguments"])
    ]
    if hasattr(model, "feature_names_in_"):
        pd = pytest.importorskip("pandas")
        arguments[0] = pd.DataFrame(arguments[0], columns=model.feature_names_in_)

    found = getattr(model, told["verb"])(*arguments)
    np.testing.assert_allclose(np.asarray(found), told["said"], rtol=1e-12, atol=1e-12)
    if "score" in told:
        assert model.score(*arguments) == pytest.approx(told["score"], rel=1e-12)
    assert json.loads(to_json(model)) == json.loads(content)


def test_every_estimator_has_a_file_of_an_earlier_version():
    """A class without one has nothing that says when its files cannot be read any more."""
    assert {json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))["class"] for name in SAID} == {
        name for name in learn.WHERE if name.startswith("Private")
    }

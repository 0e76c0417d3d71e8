"""An option of a question is said once: Python's keywords, the type for editors and the command line are held to one list."""

import dataclasses
import inspect
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from curador.cli import study as commands
from curador.curator import options
from curador.curator.options import QuestionKeywords, QuestionOptions, QuestionVerbs, command_options
from curador.errors import InvalidParameter

FIELDS = {one.name: (one.type, one.default) for one in dataclasses.fields(QuestionOptions)}


def keywords(verb):
    """Name, annotation and default of what is said by keyword; `fresh` is about this asking, not about the question."""
    held = inspect.signature(verb).parameters.values()
    return {one.name: (one.annotation, one.default) for one in held if one.kind is one.KEYWORD_ONLY and one.name != "fresh"}


class Recorder(QuestionVerbs):
    """Keeps what the verbs hand over."""

    schema = None

    def _preview(self, question, options):
        return question, options

    def _ask(self, question, options, *, fresh):
        return question, options, fresh


@pytest.mark.parametrize("verb", [QuestionVerbs.ask, QuestionVerbs.preview])
def test_the_keywords_are_the_fields(verb):
    """Names, types and defaults."""
    assert keywords(verb) == FIELDS


def test_what_editors_are_told_is_the_fields():
    """The dictionary type behind the overloads of preview."""
    told = {name: one.__forward_arg__ for name, one in QuestionKeywords.__annotations__.items()}
    assert told == {name: annotation for name, (annotation, _) in FIELDS.items()}


@pytest.mark.parametrize("name", FIELDS)
def test_every_keyword_is_handed_over(name):
    """An option that is taken and dropped would be a silent lie."""
    said = object()
    assert getattr(Recorder().ask("q", **{name: said})[1], name) is said
    assert getattr(Recorder().preview("q", **{name: said})[1], name) is said


@pytest.mark.parametrize("name", FIELDS)
def test_every_option_is_explained(name):
    """In the docstring of ask."""
    assert name in inspect.getdoc(QuestionVerbs.ask).replace("`", " ").replace("=", " ").split()


def command(seen):
    """A verb of the command line that keeps its options."""

    def verb(question: commands.Question, options: QuestionKeywords, analyst: commands.Analyst = None) -> None:
        seen.append((question, options, analyst))

    app = typer.Typer()
    app.command()(commands.with_question_options(verb))
    return app


def test_the_command_line_has_the_options_and_reads_them():
    """Texts stay texts, pairs are gathered, flags are said or not; what is not said has the default."""
    seen = []
    said = ["q", "--spend", "5%", "--weight", "n=2", "--weight", "m=3", "--bias", "--as", "eva"]
    assert CliRunner().invoke(command(seen), said).exit_code == 0
    ((question, given, analyst),) = seen
    assert (question, analyst) == ("q", "eva")
    usual = {name: default for name, default, _ in command_options()}
    assert given == {**usual, "spend": "5%", "weights": {"n": "2", "m": "3"}, "bias": True}
    QuestionOptions(**given)


@pytest.mark.parametrize(
    ("said", "name", "read"),
    [
        (["--caps", "rows=5"], "caps", {"rows": 5}),
        (["--caps", "rows=5", "--caps", "groups=2"], "caps", {"rows": 5, "groups": 2}),
        (["--caps", "find"], "caps", "find"),
        (["--caps", "prepared"], "caps", "prepared"),
        (["--bounds", "mean=0..100"], "bounds", {"mean": ("0", "100")}),
        (["--bounds", "m=-5..-.5", "--bounds", "a=b=1/3..1e3"], "bounds", {"m": ("-5", "-.5"), "a=b": ("1/3", "1e3")}),
    ],
)
def test_caps_and_bounds_are_read(said, name, read):
    """Caps are whole numbers by name, or one word; bounds are two ends, exact as they were written."""
    seen = []
    assert CliRunner().invoke(command(seen), ["q", *said]).exit_code == 0
    assert seen[0][1][name] == read


@pytest.mark.parametrize(
    "said",
    [
        *(["--caps", text] for text in ("rows=", "=5", "rows=five", "rows=-1", "rows=1.5", "rows=" + "9" * 19)),
        ["--caps", "rows=5", "--caps", "rows=6"],
        ["--caps", "rows=5", "--caps", "find"],
        *(["--bounds", text] for text in ("mean", "mean=5", "mean=5..", "mean=..5", "=0..5")),
        ["--bounds", "m=0..1", "--bounds", "m=0..2"],
    ],
)
def test_caps_and_bounds_that_cannot_be_read_are_one_sentence(said):
    """Before anything is opened."""
    seen = []
    found = CliRunner().invoke(command(seen), ["q", *said])
    assert isinstance(found.exception, InvalidParameter)
    assert found.exception.subject == said[0]
    assert not seen


def test_a_new_option_is_on_the_command_line_by_itself(monkeypatch):
    """A field with its line is enough."""
    line = options.CommandOption("A word of your own.")
    monkeypatch.setattr(commands, "command_options", lambda: [*command_options(), ("label", None, line)])
    seen = []
    assert CliRunner().invoke(command(seen), ["q", "--label", "mine"]).exit_code == 0
    assert seen[0][1]["label"] == "mine"


def test_the_options_are_read_without_loading_a_driver():
    """`curador --help` reads them."""
    code = "import curador.curator.options, sys; print([one for one in ('numpy', 'sqlglot', 'duckdb') if one in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

"""`curador plot`: lists, draws, writes, refuses."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "curator"))

from curator_studies import BY_CITY, COUNT, FakeEngine, make_study

import curador as cu
from curador.cli import plotting
from curador.cli.app import app
from curador.errors import Refused
from curador.plots.catalogue import CATALOGUE, NAMES

runner = CliRunner()


def plot(*arguments):
    return runner.invoke(app, ["plot", *map(str, arguments)])


def size_of(png):
    """Width and height in pixels."""
    data = png.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def test_without_a_name_it_lists_all():
    """A line for each, with what it is of."""
    shown = plot().output.splitlines()

    assert [line.split()[0] for line in shown] == list(NAMES)
    assert all(CATALOGUE[line.split()[0]].description in line for line in shown)


@pytest.mark.slow
def test_a_figure_is_written_where_it_says(tmp_path, monkeypatch):
    """NAME.png here, at twice the dots of a screen, and one line that says so."""
    monkeypatch.chdir(tmp_path)
    done = plot("epsilon-delta")

    assert done.output == f"epsilon-delta.png: {CATALOGUE['epsilon-delta'].description}\n"
    assert size_of(tmp_path / "epsilon-delta.png")[0] == pytest.approx(9.6 * 200, rel=0.05)


@pytest.mark.slow
def test_width_is_inches(tmp_path):
    """The height follows."""
    plot("keys", "-o", tmp_path / "a.png")
    plot("keys", "-o", tmp_path / "b.png", "--width", "10")
    (wide, high), (wider, higher) = size_of(tmp_path / "a.png"), size_of(tmp_path / "b.png")

    assert wider / wide == pytest.approx(10 / 7, rel=0.06)
    assert higher / high == pytest.approx(10 / 7, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_files_are_reproducible(ending, tmp_path):
    """The same figure is the same file: no date, no random ids."""
    for name in ("a", "b"):
        assert plot("tradeoffs", "-o", tmp_path / f"{name}.{ending}").exit_code == 0

    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


@pytest.mark.slow
def test_losses_are_drawn_as_written(tmp_path):
    """An expression of `curador account` is a figure's subject and title."""
    done = plot("epsilon-delta", "3*gaussian(sigma=5)", "-o", tmp_path / "a.svg")

    assert done.exit_code == 0
    assert "<!-- 3*gaussian(sigma=5) -->" in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_all_are_written_to_a_folder(tmp_path, monkeypatch):
    """One file a name, of all that need nothing to be drawn of."""
    some = {name: CATALOGUE[name] for name in ("law", "tradeoffs", "keys", "budget")}
    monkeypatch.setattr("curador.plots.catalogue.CATALOGUE", some)
    done = plot("all", "-o", tmp_path / "figures")

    assert done.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["keys.png", "tradeoffs.png"]
    assert len(done.output.splitlines()) == 2


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study file, and what it was asked by its owner and by an analyst: an engine that holds no data answers."""
    declared = make_study(tmp_path)
    file = tmp_path / "study.toml"
    file.write_text(declared.to_toml(), encoding="utf-8")
    monkeypatch.setattr("curador.curator.curator.engine_of", lambda study, *_, **__: FakeEngine(study))
    with cu.open(file) as curator:
        curator.ask(COUNT, rho="0.001")
        curator.analyst("ana").ask(BY_CITY, spend="5%")
        yield file, curator


@pytest.mark.slow
def test_the_budget_of_a_study_is_drawn(study, tmp_path):
    """Of the file and of the curator: the owner sees everybody's charges, an analyst the own ones and the own limit."""
    file, curator = study
    owner = cu.plots.budget(curator)
    analyst = cu.plots.budget(curator.analyst("ana"))

    spent = float(curator.budget.spent.rho)
    assert owner.axes[0].get_lines()[1].get_ydata()[-1] == pytest.approx(spent)
    assert analyst.axes[0].get_lines()[0].get_ydata()[-1] == pytest.approx(spent - 0.001)
    limits = {line.get_ydata()[0] for line in analyst.axes[0].get_lines() if line.get_label().startswith("limit")}
    assert limits == {float(curator.analyst("ana").budget.limit.rho)}
    for options in ([], ["--as", "ana"]):
        done = plot("budget", file, "-o", tmp_path / "b.svg", *options)
        assert done.exit_code == 0, done.exception
        assert ("owner" in (tmp_path / "b.svg").read_text(encoding="utf-8")) is not bool(options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing-like-it"], "name must be that of a figure"),
        (["keys", "-o", "a.gif"], "--out must be a file that ends in .png, .svg, .pdf"),
        (["keys", "-o", "no/such/folder/a.png"], "--out must be a file in a folder that exists"),
        (["keys", "--width", "0.1"], "--width must be 2 to 40 inches"),
        (["keys", "--width", "nan"], "--width must be 2 to 40 inches"),
        (["keys", "gaussian(sigma=1)"], "OF must be left out: keys is drawn of nothing else"),
        (["keys", "--as", "ana"], "--as must be left out"),
        (["all", "gaussian(sigma=1)"], "OF must be left out"),
        (["tradeoffs", "gaussian(sigma=0)"], "sigma must be"),
        (["tradeoffs", "gaussian(sigma=1)", "--as", "ana"], "--as must be left out"),
        (["budget"], "budget is drawn of a study.\nHint: curador plot budget study.toml."),
        (["game"], "game is drawn in Python, of values that no command has.\nHint: cu.plots.game(played)."),
        (["law", "gaussian(sigma=1)"], "Hint: cu.plots.law(mechanism, one, other)."),
        (["laplace-laws"], "name must be that of a figure"),
        (["budget", "no-such.toml"], "must be a file that can be read"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(arguments, words, tmp_path, monkeypatch):
    """Before anything is drawn, and no file is left."""
    monkeypatch.chdir(tmp_path)
    done = plot(*arguments)

    assert isinstance(done.exception, Refused)
    assert words in str(done.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_matplotlib_may_be_missing(monkeypatch, tmp_path):
    """One sentence with what to install; the list needs none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plotting.importlib.util, "find_spec", lambda _: None)

    assert plot().exit_code == 0
    assert str(plot("keys").exception) == "figures need matplotlib.\nHint: install curador[plots]."


@pytest.mark.slow
def test_the_list_is_quick_and_loads_no_figure_library():
    """Nothing is drawn to list names."""
    program = (
        "import sys; sys.argv = ['curador', 'plot']\n"
        "from curador.cli.app import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('matplotlib', 'sklearn', 'scipy', 'duckdb') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
    assert re.match(r"law +A mechanism's law in two neighbouring worlds, and the evidence \(in Python\)\n", done.stdout)

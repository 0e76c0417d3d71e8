"""Every figure draws without a warning, says what its axes are, and can be read without colours."""

import functools
import io
import itertools

import numpy as np
import pytest
from gallery import GALLERY
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import curador as cu
from curador.plots.catalogue import CATALOGUE, NAMES, figure_named
from curador.plots.style import (
    BLUE,
    CYCLE,
    HATCHES,
    MARKS,
    PATTERNS,
    RED,
    figure,
    key_above,
    key_below,
    key_beside,
    stroke,
    style,
)

UNLISTED = {"CATALOGUE", "NAMES", "write_html"}
"""What the room has that is no figure of its own."""


@functools.cache
def drawn(name):
    """The figure with everything in its place."""
    made = GALLERY[name]()
    with style():
        made.savefig(io.BytesIO(), format="png", dpi=50)
    return made


def legends(made):
    return [*made.legends, *(axes.get_legend() for axes in made.axes if axes.get_legend() is not None)]


def covered(made):
    """The legends that lie on an axes' own area, by more than two points."""
    boxes = [axes.get_window_extent() for axes in made.axes]
    found = []
    for legend in legends(made):
        extent = legend.get_window_extent()
        for box in boxes:
            wide = min(extent.x1, box.x1) - max(extent.x0, box.x0)
            high = min(extent.y1, box.y1) - max(extent.y0, box.y0)
            if wide > 2.0 and high > 2.0:
                found.append((extent, box))
    return found


def unlabelled(made):
    """Panels without a word below or beside, unless they share that axis with one that has it."""
    found = []
    shown = [axes for axes in made.axes if axes.axison]
    for axes in shown:
        if not any(axes is one or axes.get_shared_x_axes().joined(axes, one) for one in shown if one.get_xlabel().strip()):
            found.append((axes, "x"))
        beside = [one for one in shown if one.get_ylabel().strip() or named_ticks(one)]
        if not any(axes is one or axes.get_shared_y_axes().joined(axes, one) for one in beside):
            found.append((axes, "y"))
    return found


def named_ticks(axes):
    """Whether the ticks of the vertical axis are words."""
    return any(
        any(letter.isalpha() for letter in tick.get_text()) for tick in axes.get_yticklabels() if "$" not in tick.get_text()
    )


def alike_in_grey(axes):
    """Pairs of explained lines that differ in colour only."""
    shown = [line for line in axes.get_lines() if not line.get_label().startswith("_") and len(line.get_xdata())]
    dashes = [str(line._dash_pattern) for line in shown]  # noqa: SLF001 -- what is public says "--" for all patterns
    looks = [
        (line.get_linestyle(), dash, line.get_marker(), line.get_linewidth())
        for line, dash in zip(shown, dashes, strict=True)
    ]
    return [pair for pair in itertools.combinations(looks, 2) if pair[0] == pair[1]]


@pytest.mark.slow
@pytest.mark.parametrize("name", GALLERY)
def test_every_figure_is_drawn_and_can_be_read(name):
    """Labelled axes, keys beside the data, lines that differ without colour; warnings are errors here."""
    made = drawn(name)

    assert isinstance(made, Figure)
    assert unlabelled(made) == []
    assert covered(made) == []
    assert [pair for axes in made.axes for pair in alike_in_grey(axes)] == []


@pytest.mark.slow
def test_what_a_figure_must_not_be_is_noticed():
    """The three rules can be broken: no label, a key on the data, two lines that only a colour tells apart."""
    with style():
        made, (axes,) = figure()
        axes.plot([0, 1], [0, 1], color=BLUE, label="one")
        axes.plot([0, 1], [1, 0], color=RED, label="other")
        axes.legend(loc="upper center")
        made.savefig(io.BytesIO(), format="png", dpi=50)

    assert len(unlabelled(made)) == 2
    assert len(covered(made)) == 1
    assert len(alike_in_grey(axes)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("key", [key_above, key_below, key_beside])
def test_keys_lie_beside_the_data(key):
    """Wherever they are put."""
    with style():
        made, (axes,) = figure()
        for place in range(4):
            axes.plot([0, 1], [place, 1], label=f"series {place}", **stroke(place))
        axes.set_title("a title")
        key(axes)
        made.savefig(io.BytesIO(), format="png", dpi=50)

    assert len(legends(made)) == 1
    assert covered(made) == []


def test_every_figure_of_the_room_is_listed():
    """A public function that draws is in the catalogue under some name, and every name is described in one line."""
    functions = {entry.function.partition(":")[2] for entry in CATALOGUE.values()}

    assert set(cu.plots.__all__) - UNLISTED <= functions
    for entry in CATALOGUE.values():
        assert 10 <= len(entry.description) <= 70
        assert "\n" not in entry.description


def test_every_figure_of_the_catalogue_has_something_to_show():
    """A new one joins the gallery of the documents, where the rules above hold for it."""
    assert set(NAMES) <= set(GALLERY)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("law", "law(mechanism, one, other)"),
        ("budget", "budget(source)"),
        ("lost-variance", "lost_variance(epsilons, losses)"),
    ],
)
def test_a_call_has_what_must_be_given(name, call):
    """And nothing that has a default."""
    assert CATALOGUE[name].call == f"cu.plots.{call}"


def test_what_is_given_is_drawn():
    """An entry hands its arguments on."""
    one = CATALOGUE["law"].draw(cu.RandomizedResponse(gamma="0.75"), 0, 1, labels=["no", "yes"])

    assert one.axes[0].get_title(loc="left").startswith("RandomizedResponse")


@pytest.mark.parametrize(("name", "hint"), [("tradeof", "did you mean tradeoffs?"), ("qqq", "curador plot lists them")])
def test_an_unknown_name_is_refused(name, hint):
    """With the nearest one."""
    with pytest.raises(cu.InvalidParameter, match="name must be that of a figure") as caught:
        figure_named(name)

    assert hint in str(caught.value)


# ---- colours ----------------------------------------------------------------------------------------------------------

# Linear maps of linear RGB that show what the three forms of complete colour blindness see (Viénot, Brettel, Mollon 1999, for
# the first two; Brettel's planes by one matrix for the third).
BLINDNESS = {
    "protanopia": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deuteranopia": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
    "tritanopia": [[1.0, 0.1446, -0.1446], [0.0, 0.8592, 0.1408], [0.0, 0.8592, 0.1408]],
}


def linear(colour):
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lightness_and_hue(parts):
    """CIE L*a*b*."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    scaled = to_xyz @ np.clip(parts, 0, 1) / [0.9505, 1.0, 1.089]
    root = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def apart(palette, blindness):
    seen = [lightness_and_hue(np.array(BLINDNESS[blindness]) @ linear(one)) for one in palette]
    return min(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(seen, 2))


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_colours_are_told_apart_without_red_green_or_blue(blindness):
    """A just noticeable difference is about 2.3; the first four colours, which nearly all figures use, are 10 apart."""
    assert apart(CYCLE[:4], blindness) > 10
    assert apart(CYCLE, blindness) > 7


def test_red_and_green_of_one_lightness_would_not_be():
    """The rule above can fail."""
    assert apart(("#C04040", "#5C7A3C"), "deuteranopia") < 7


def test_series_differ_in_more_than_colour():
    """Patterns, marks and hatches are as many as colours, and all different."""
    for looks in (PATTERNS, MARKS, HATCHES):
        assert len(looks) == len(set(looks)) == len(CYCLE)
    assert len({str(stroke(place)["linestyle"]) for place in range(len(CYCLE))}) == len(CYCLE)
    assert isinstance(drawn("keys").axes[0], Axes)

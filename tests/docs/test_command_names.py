"""The page on the command line is what the commands say of themselves."""

from pathlib import Path

import command_names

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def test_the_page_is_made_from_the_commands():
    """A command or an option changes only with the page; `make api` rewrites it."""
    assert "\n".join(command_names.page()).rstrip() + "\n" == PAGE.read_text(encoding="utf-8")


def test_every_command_has_its_place():
    """What the headings name exists, and every command is on the page once."""
    found = [name for name, _ in command_names.commands()]
    headings = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("### ")]

    assert {name for names in command_names.HEADINGS.values() for name in names} <= set(found)
    assert sorted(headings) == sorted(f"### curador {name}" for name in found)


def test_what_must_be_given_is_said():
    """An option without which a command does not run is told apart, and signs of the page's language are escaped."""
    text = PAGE.read_text(encoding="utf-8")

    assert "| `--table` | The table to learn from. Must be given. |" in text
    assert "1000\\*gaussian" in text

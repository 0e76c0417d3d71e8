"""Prints every command with its arguments and options; docs/reference/command-line.md is made from it.

python tests/docs/command_names.py > docs/reference/command-line.md
"""

import re

from typer.main import get_command

from curador.cli.app import app

HEADINGS = {
    "A study": ["init", "check", "report", "refresh", "reopen", "prepare"],
    "Questions": ["preview", "ask", "budget", "log"],
    "A service": ["serve", "token new", "token list", "token revoke"],
    "Learning": ["train"],
    "Local privacy": ["collect"],
    "Mathematics": ["account", "calibrate", "audit", "plot"],
}
"""What belongs together; every other command stands under `And`."""

OPENING = """\
# The command line

`curador --help` and `curador ask --help` say the same in a terminal. This page is made from what they say; `make api`
rewrites it, a test holds it.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 2 refused, 3 not allowed, 4 budget
exceeded, 5 failed on our side, 130 interrupted. What each refusal means: [errors](errors.md).
"""


def commands(group=None, words=()):
    """Every command by the words that call it, those of groups too."""
    for name, one in (group or get_command(app)).commands.items():
        if hasattr(one, "commands"):
            yield from commands(one, (*words, name))
        else:
            yield " ".join((*words, name)), one


def called(name, command):
    """How it is called: what must be given, in order."""
    must = [shape(one) for one in arguments(command)]
    return " ".join(["curador", name, *must, *(["[OPTIONS]"] if options(command) else [])])


def arguments(command):
    return [one for one in command.params if one.param_type_name == "argument"]


def options(command):
    return [one for one in command.params if one.param_type_name == "option" and not getattr(one, "hidden", False)]


def shape(argument):
    """What stands for an argument."""
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def spelled(option):
    """The ways to write an option."""
    return ", ".join(f"`{one}`" for one in [*option.opts, *option.secondary_opts])


def told(parameter):
    """What it is for, and what is taken where it is not given."""
    default = parameter.default
    plain = isinstance(default, (str, int, float)) and not isinstance(default, bool)
    text = re.sub(r"([|*<])", r"\\\1", " ".join((parameter.help or "").split()))
    if parameter.required and parameter.param_type_name == "option":
        return f"{text} Must be given."
    return f"{text} Default: `{default}`." if plain else text


def described(name, command):
    yield f"### curador {name}\n"
    yield f"{' '.join(command.help.split())}\n"
    yield f"```text\n{called(name, command)}\n```\n"
    rows = [(f"`{one.metavar or one.name.upper()}`", told(one)) for one in arguments(command)]
    rows += [(spelled(one), told(one)) for one in options(command)]
    if rows:
        yield "| | |\n|---|---|"
        yield from (f"| {left} | {right} |" for left, right in rows)
        yield ""


def page():
    found = dict(commands())
    grouped = {name for names in HEADINGS.values() for name in names}
    yield OPENING
    for heading, names in {**HEADINGS, "And": [name for name in found if name not in grouped]}.items():
        yield f"## {heading}\n"
        for name in names:
            yield from described(name, found[name])


if __name__ == "__main__":
    print("\n".join(page()).rstrip())

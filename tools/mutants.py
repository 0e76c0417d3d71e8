"""Seeds one small bug at a time into the modules that promises rest on, and counts those that their own tests notice.

python tools/mutants.py                        every module of SUBJECTS, some minutes each
python tools/mutants.py ledger/amounts.py      one of them
python tools/mutants.py --show ledger/amounts  with the change of every mutant that lived

The bugs are mutmut's: operators, numbers, arguments, names and texts. Running them is ours, as mutmut starts pytest anew for
each and takes hours: here the tests are read once, and a fork of that process changes the code of one function and runs the
tests that reach it, the quickest first. Decorators are hidden from mutmut, so that properties and remembered functions, which
it leaves out, have mutants, too.

A mutant is killed when a test fails, or when the tests take LONGEST times the seconds that they should. Hypothesis has the
same examples for every mutant and does not shrink them.
"""

import __future__

import argparse
import contextlib
import difflib
import importlib
import io
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import libcst as cst
import pytest
from mutmut.mutation.file_mutation import create_mutations, deep_replace

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "curador"
SUBJECTS: dict[str, tuple[str, ...]] = {
    "numerics/rounding.py": ("tests/unit/test_rounding.py",),
    "privacy/filters.py": ("tests/unit/test_filters.py",),
    "plan/sensitivity.py": ("tests/unit/plan/test_moves.py",),
    "plan/ownership.py": ("tests/unit/plan/test_ownership.py",),
    "ledger/amounts.py": ("tests/unit/ledger/test_ledger_amounts.py",),
}
"""The modules, each with the tests that are about it: what others notice by accident does not count."""
FLOOR = 90
"""Percent of all mutants of a module that must be killed."""
EXAMPLES = 20
"""Of a property, at most: what a bug changes is seen by the first of them, or by none."""
LONGEST = 4.0
"""How much longer than without a bug the tests may take before the mutant counts as one that hangs."""


@dataclass(frozen=True)
class Mutant:
    """The function, by its qualified name, as it is and with the bug, decorators taken off."""

    function: str
    true: str
    false: str

    def change(self) -> str:
        """Return the lines that differ, without and with the bug."""
        lines = difflib.unified_diff(self.true.splitlines(), self.false.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


class _Undecorated(cst.CSTTransformer):
    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:  # noqa: ARG002, N802
        return updated_node.with_changes(decorators=[])


def mutants_of(path: Path) -> list[Mutant]:
    """Return every mutant of the functions and methods of a module."""
    bare = cst.parse_module(path.read_text(encoding="utf-8")).visit(_Undecorated())
    module, mutations, _, _ = create_mutations(str(path), bare.code)
    names = dict(_functions(module))
    found = []
    for mutation in mutations:
        function = mutation.contained_by_top_level_function
        if isinstance(function, cst.FunctionDef) and function in names:
            changed = deep_replace(function, mutation.original_node, mutation.mutated_node)
            found.append(Mutant(names[function], _code_of(function), _code_of(changed)))
    return found


def _functions(module: cst.Module) -> list[tuple[cst.FunctionDef, str]]:
    found = []
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef):
            found.append((statement, statement.name.value))
        elif isinstance(statement, cst.ClassDef):
            inside = (one for one in statement.body.body if isinstance(one, cst.FunctionDef))
            found.extend((one, f"{statement.name.value}.{one.name.value}") for one in inside)
    return found


def _code_of(function: Any) -> str:
    return cst.Module([function.with_changes(leading_lines=[])]).code


def bare_function(module: Any, name: str) -> FunctionType:
    """Return the function itself, whatever it is wrapped in."""
    found = module
    for part in name.split("."):
        found = vars(found)[part]
    while not isinstance(found, FunctionType):
        found = getattr(found, "fget", None) or getattr(found, "__func__", None) or found.__wrapped__
    return found


def seed(module: Any, mutant: Mutant) -> None:
    """Give the function the mutant's code and default values, wherever it was imported to."""
    here: dict[str, Any] = {}
    code = compile(
        mutant.false, f"<mutant of {mutant.function}>", "exec", __future__.annotations.compiler_flag, dont_inherit=True
    )
    exec(code, vars(module), here)  # noqa: S102
    made, true = here.popitem()[1], bare_function(module, mutant.function)
    true.__code__, true.__defaults__, true.__kwdefaults__ = made.__code__, made.__defaults__, made.__kwdefaults__


# ---- running the tests in forks ------------------------------------------------------------------------------------------


def in_fork(work: Any, seconds: float) -> Any:
    """Return what the function returns in a fork of this process; None where it dies, or takes longer than these seconds.

    They are seconds of the processor; by the clock it may take ten times as long, as others may be at work.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with contextlib.suppress(BaseException):
            resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1,) * 2)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 10 * seconds)
            sink = os.open(os.devnull, os.O_WRONLY)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            answer = pickle.dumps(work())
            with os.fdopen(writer, "wb") as end:
                end.write(answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as end:
        answer = end.read()
    os.waitpid(child, 0)
    return pickle.loads(answer) if answer else None  # noqa: S301


class Judge:
    """A pytest plugin: in place of running the tests once it runs them on every mutant."""

    def __init__(self, subject: str) -> None:
        self.subject, self.failed, self.crashed = subject, False, ""
        self.mutants = mutants_of(SOURCE / subject)
        self.killers: list[str | None] = []
        self.reached: dict[str, list[str]] = {}

    def pytest_configure(self) -> None:
        """After the house's profile was loaded, and before any test was read."""
        from hypothesis import Phase, settings  # not above: pytest wants to be first

        settings.register_profile(
            "mutants", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate], database=None
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take notice of a failure."""
        if report.failed:
            self.failed, self.crashed = True, str(report.longrepr)

    def pytest_runtestloop(self, session: Any) -> bool:
        """Find out which test reaches which function, then try the mutants."""
        name = "curador." + self.subject.removesuffix(".py").replace("/", ".")
        self.module = importlib.import_module(name)
        tests: dict[str, list[tuple[float, Any]]] = defaultdict(list)
        for item in session.items:
            self._shorten(item)
            found = in_fork(lambda item=item: self._reach(item), 600.0)
            if found is None or found[2]:
                raise pytest.UsageError(f"{item.nodeid} fails without a bug" + (f":\n{found[2]}" if found else ""))
            for function in found[1]:
                tests[function].append((found[0], item))
            for late in found[3]:  # what is imported where it is used: once here instead of in every fork
                with contextlib.suppress(ImportError):
                    importlib.import_module(late)
        for function, true in sorted({(mutant.function, mutant.true) for mutant in self.mutants}):
            tests[function].sort(key=lambda pair: pair[0])
            self.reached[function] = [item.nodeid for _, item in tests[function]]
            killer = self._try(Mutant(function, true, true), tests[function])
            if killer is not None:  # else everything would count as killed
                raise pytest.UsageError(f"{killer} kills {function} without a bug")
        for count, mutant in enumerate(self.mutants, 1):
            self.killers.append(self._try(mutant, tests[mutant.function]))
            if count % 50 == 0:
                print(f"{self.subject}: {count} of {len(self.mutants)}", file=sys.stderr)
        return True

    @staticmethod
    def _shorten(item: Any) -> None:
        from hypothesis import settings

        own = getattr(item.obj, "_hypothesis_internal_use_settings", None)
        if own is not None and own.max_examples > EXAMPLES:
            item.obj._hypothesis_internal_use_settings = settings(own, max_examples=EXAMPLES)  # noqa: SLF001

    def _run(self, item: Any) -> float:
        start = time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return time.process_time() - start

    def _reach(self, item: Any) -> tuple[float, set[str], str, list[str]]:
        """Return the seconds of a test, the functions that it calls, how it failed, if it did, and what it imports."""
        codes = {bare_function(self.module, mutant.function).__code__: mutant.function for mutant in self.mutants}
        called: set[str] = set()
        imported = set(sys.modules)

        def notice(frame: Any, event: str, _: Any) -> None:
            if event == "call" and frame.f_code in codes:
                called.add(codes[frame.f_code])

        sys.setprofile(notice)
        try:
            seconds = self._run(item)
        finally:
            sys.setprofile(None)
        return seconds, called, self.crashed, sorted(set(sys.modules) - imported)

    def _try(self, mutant: Mutant, tests: list[tuple[float, Any]]) -> str | None:
        """Return the test that kills the mutant, None where it lives."""

        def judge() -> str:
            seed(self.module, mutant)
            for _, item in tests:
                self._run(item)
                if self.failed:
                    return item.nodeid
            return ""

        if not tests:
            return None
        found = in_fork(judge, 1.0 + LONGEST * sum(seconds for seconds, _ in tests))
        return "(hangs or dies)" if found is None else found or None


# ---- the table -----------------------------------------------------------------------------------------------------------


def judge_module(subject: str, *, show: bool) -> bool:
    """Try every mutant of a module, print its line of the table, and return whether it reaches the floor."""
    start, judge = os.times(), Judge(subject)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        done = pytest.main(
            ["-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not long", *SUBJECTS[subject]],
            plugins=[judge],
        )
    if len(judge.killers) < len(judge.mutants):
        print(said.getvalue(), f"pytest ended with {done}: {subject} was not judged")
        return False
    lived = [mutant for mutant, killer in zip(judge.mutants, judge.killers, strict=True) if killer is None]
    hung = sum(killer == "(hangs or dies)" for killer in judge.killers)
    killed, every = len(judge.mutants) - len(lived), len(judge.mutants)
    end = os.times()
    spent = sum(end[:4]) - sum(start[:4])
    print(
        f"| `{subject}` | {every} | {killed} | {hung} | {len(lived)} | {100 * killed / every:.1f} % | {spent / 60:.1f} |",
        flush=True,
    )
    if show:
        for mutant in lived:
            reach = "" if judge.reached[mutant.function] else "  (no test reaches it)"
            print(f"\n{mutant.function}{reach}\n{mutant.change()}")
    return 100 * killed >= FLOOR * every


def main(arguments: list[str] | None = None) -> int:
    """Print the table of the modules asked for; 1 where one is below the floor."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("modules", nargs="*", choices=[*SUBJECTS, []], metavar="MODULE", help=", ".join(SUBJECTS))
    reader.add_argument("--show", action="store_true", help="the change of every mutant that lived")
    asked = reader.parse_args(arguments)
    os.chdir(ROOT)
    if len(asked.modules) == 1:
        return 0 if judge_module(asked.modules[0], show=asked.show) else 1
    print(
        "| module | mutants | killed | of them hung | lived | score | minutes of processor |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    options = ["--show"] if asked.show else []
    runs = [subprocess.run([sys.executable, __file__, *options, one], check=False) for one in asked.modules or SUBJECTS]  # noqa: S603
    return max(run.returncode for run in runs)


if __name__ == "__main__":
    sys.exit(main())

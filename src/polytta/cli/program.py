"""Chooses the command; turns what goes wrong on purpose, or with files, into one line and exit code 2."""

import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from typing import Annotated, get_args

import tyro

from polytta import __version__
from polytta.cli.attack import AttackCommand
from polytta.cli.bench import Bench, from_file
from polytta.cli.compare import Compare
from polytta.cli.corrupt import Corrupt
from polytta.cli.data import Data
from polytta.cli.demo import Demo
from polytta.cli.perf import Perf
from polytta.cli.refusal import refusal
from polytta.cli.report import Report
from polytta.cli.reproduce import Reproduce
from polytta.cli.study import Study
from polytta.errors import PolyttaError
from polytta.system.workers import end_helpers

Command = (
    Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Study, tyro.conf.subcommand("study")]
    | Annotated[AttackCommand, tyro.conf.subcommand("attack")]
    | Annotated[Perf, tyro.conf.subcommand("perf")]
    | Annotated[Corrupt, tyro.conf.subcommand("corrupt")]
    | Annotated[Data, tyro.conf.subcommand("data")]
)


COMMANDS = tuple(get_args(one)[1].name for one in get_args(Command))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        print(f"polytta {__version__}")
        return 0
    here = os.getcwd()
    if here not in sys.path:
        # Where methods and models of one's own are, named module:Class; last, so that they hide nothing.
        sys.path.append(here)
    try:
        # The settings of a file are defaults of the flags: so every flag that is given wins over it.
        default = from_file(given[1:]) if given[:1] == ["bench"] else None
        said = io.StringIO()
        try:
            with redirect_stderr(said):
                command: Demo | Bench | Compare | Report | Reproduce | Study | AttackCommand | Perf | Corrupt | Data = (
                    tyro.cli(
                        Command,
                        prog="polytta",
                        description="Multi-hypothesis test-time adaptation of image classifiers (or --version).",
                        args=given,
                        default=default if default is not None else tyro.MISSING,
                    )
                )
        except SystemExit as end:
            if end.code in (0, None):
                raise
            print(f"polytta: {refusal(said.getvalue(), given, COMMANDS)}", file=sys.stderr)
            return 2
        code = command.run() or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read the output has enough, like `head`; nothing may be written there again, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except PolyttaError as error:
        print(f"polytta: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        # A full or read-only disk, a folder where a file should be: the system's own words are the best there are.
        where = f"{error.filename}: " if error.filename else ""
        print(f"polytta: {where}got {error.strerror or error}; allowed is a place that can be used.", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        # Once is enough: who presses it again would only see the insides of an orderly end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_helpers()
        print(f"polytta: stopped{f'; {stop}' if str(stop) else ''}.", file=sys.stderr)
        return 130

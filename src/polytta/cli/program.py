"""Chooses the command; turns errors the package raises on purpose into one line and exit code 2."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import tyro

from polytta.cli.attack import AttackCommand
from polytta.cli.bench import Bench, from_file
from polytta.cli.compare import Compare
from polytta.cli.corrupt import Corrupt
from polytta.cli.data import Data
from polytta.cli.demo import Demo
from polytta.cli.perf import Perf
from polytta.cli.report import Report
from polytta.cli.reproduce import Reproduce
from polytta.cli.study import Study
from polytta.errors import PolyttaError

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    here = os.getcwd()
    if here not in sys.path:
        # Where methods and models of one's own are, named module:Class; last, so that they hide nothing.
        sys.path.append(here)
    try:
        # The settings of a file are defaults of the flags: so every flag that is given wins over it.
        default = from_file(given[1:]) if given[:1] == ["bench"] else None
        command: Demo | Bench | Compare | Report | Reproduce | Study | AttackCommand | Perf | Corrupt | Data = tyro.cli(
            Command,
            prog="polytta",
            description="Multi-hypothesis test-time adaptation of image classifiers.",
            args=given,
            default=default if default is not None else tyro.MISSING,
        )
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
    except KeyboardInterrupt:
        print("polytta: stopped.", file=sys.stderr)
        return 130

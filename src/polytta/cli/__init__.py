"""The ``polytta`` program: one file per command. Nothing else in the package knows that it exists."""

from polytta.cli.program import main as main

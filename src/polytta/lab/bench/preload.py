"""Imported by the process that workers are forked from, so that what takes seconds to import is imported once."""

from polytta.lab.bench import on_machine as on_machine

"""Errors raised by polytta."""


class PolyttaError(Exception):
    """Root of every error that polytta raises on purpose."""


class InputError(PolyttaError, ValueError):
    """An argument has a value that is not allowed; the message names it, what came and what is allowed."""

"""Errors a user of the library can meet and catch."""


class PolyttaError(Exception):
    """Root of every error this library raises on purpose."""


class InputError(PolyttaError, ValueError):
    """An argument is outside what is allowed; the message names it, what was given and what is allowed."""


class DataError(PolyttaError, FileNotFoundError):
    """A file is missing or does not hold what its layout promises; the message names the path."""

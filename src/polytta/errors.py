"""Everything polytta raises on purpose. Catch ``PolyttaError`` to catch all of it."""


class PolyttaError(Exception):
    """Root of all errors raised by this package."""


class ConfigError(PolyttaError, ValueError):
    """An argument that describes *how* to adapt has a value that is not allowed."""


class InputError(PolyttaError, ValueError):
    """A batch of images cannot be used; the adapter's state is as it was before the call."""


class ModelError(PolyttaError, ValueError):
    """The model cannot be adapted: no normalization layers, an unknown one, or an output that is not (B, C)."""


class StateError(PolyttaError, ValueError):
    """A saved state is corrupt, or belongs to another model or configuration; nothing was loaded."""


class DataError(PolyttaError, FileNotFoundError):
    """A dataset or weights file is missing or incomplete; the message names the path and what belongs there."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C where something was kept; the message says what, and how to go on."""


class DiskError(PolyttaError, OSError):
    """A file cannot be written: the disk is full, the place read-only, or no file; what was there is there still."""


class PolyttaWarning(UserWarning):
    """Root of all warnings issued by this package."""

"""Imported by the process that workers are forked from, so that what takes seconds to import is imported once."""

from contextlib import suppress

from polytta.bench import jobs as jobs
from polytta.bench.tally import torchmetrics
from polytta.errors import ConfigError

with suppress(ConfigError):  # it is not installed, which whoever needs it will say better
    torchmetrics()

"""Imported by the process that workers are forked from, so that what takes seconds to import is imported once."""

from contextlib import suppress

from polytta.errors import ConfigError
from polytta.lab.bench import jobs as jobs
from polytta.lab.bench.tally import torchmetrics

with suppress(ConfigError):  # it is not installed, which whoever needs it will say better
    torchmetrics()

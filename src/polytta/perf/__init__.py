"""What particles cost on a GPU, against the one model people run today."""

from polytta.perf.run import CASES as CASES
from polytta.perf.run import Case as Case
from polytta.perf.run import Figure as Figure
from polytta.perf.run import measure as measure

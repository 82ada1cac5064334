"""``polytta.bench`` is the benchmark of the laboratory, ``polytta.lab.bench``."""

from polytta.lab.bench import Cell as Cell
from polytta.lab.bench import Execution as Execution
from polytta.lab.bench import Grid as Grid
from polytta.lab.bench import Options as Options
from polytta.lab.bench import Record as Record
from polytta.lab.bench import benchmark as benchmark
from polytta.lab.bench import compare as compare
from polytta.lab.bench import read_grid as read_grid
from polytta.lab.bench import read_records as read_records

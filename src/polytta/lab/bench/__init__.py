"""Benchmarks whose results carry their own proof: a grid of cells, one record each, in a folder that can be resumed."""

from polytta.lab.bench.cell import Cell as Cell
from polytta.lab.bench.comparison import compare as compare
from polytta.lab.bench.execution import Execution as Execution
from polytta.lab.bench.grid import Grid as Grid
from polytta.lab.bench.grid_file import read_grid as read_grid
from polytta.lab.bench.record import Record as Record
from polytta.lab.bench.run_grid import Options as Options
from polytta.lab.bench.run_grid import benchmark as benchmark
from polytta.lab.bench.store import read_records as read_records

"""Benchmarks whose results carry their own proof: a grid of cells, one record each, in a folder that can be resumed."""

from polytta.lab.bench.cell import Cell as Cell
from polytta.lab.bench.record import Record as Record

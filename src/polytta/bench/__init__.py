"""Benchmarks whose results carry their own proof: a grid of cells, one record each, in a folder that can be resumed."""

from polytta.bench.cell import Cell as Cell
from polytta.bench.record import Record as Record

"""Streams that try to break an adapting model, and what becomes of it with and without its guard."""

from polytta.lab.attack.run import Attack as Attack
from polytta.lab.attack.run import Outcome as Outcome
from polytta.lab.attack.run import as_table as as_table
from polytta.lab.attack.run import attacked as attacked
from polytta.lab.attack.streams import ATTACKS as ATTACKS

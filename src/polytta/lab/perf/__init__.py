"""What particles cost on a GPU, against the one model people run today."""

from polytta.lab.perf.page import page as page
from polytta.lab.perf.run import Results as Results
from polytta.lab.perf.run import run as run

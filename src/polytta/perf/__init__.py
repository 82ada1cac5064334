"""What particles cost on a GPU, against the one model people run today."""

from polytta.perf.page import page as page
from polytta.perf.run import Results as Results
from polytta.perf.run import run as run

"""polytta: multi-hypothesis test-time adaptation of image classifiers.

>>> adapted = polytta.adapt(model, method="deyo", particles=3)
>>> log_probs = adapted(x)  # predicts, then adapts
"""

from polytta import diversity as diversity
from polytta import errors as errors
from polytta import methods as methods
from polytta import optim as optim
from polytta import views as views
from polytta.adapter import Adapted as Adapted
from polytta.api import adapt as adapt
from polytta.api import load as load

__version__ = "0.1.0.dev0"

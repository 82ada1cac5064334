"""Scenarios: seeded, hashable orders over one or more datasets."""

from polytta.stream.batch1 import Batch1 as Batch1
from polytta.stream.continual import Continual as Continual
from polytta.stream.label_shift import LabelShift as LabelShift
from polytta.stream.markov import Chain as Chain
from polytta.stream.markov import Markov as Markov
from polytta.stream.mild import Mild as Mild
from polytta.stream.mixed import Mixed as Mixed
from polytta.stream.order import Order as Order
from polytta.stream.order import Scenario as Scenario
from polytta.stream.stream import Batch as Batch
from polytta.stream.stream import Stream as Stream
from polytta.stream.stream import open_stream as open_stream

SCENARIOS: dict[str, type[Scenario]] = {
    kind.scenario: kind for kind in (Mild, LabelShift, Batch1, Mixed, Continual, Markov)
}

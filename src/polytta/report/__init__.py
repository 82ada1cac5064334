"""What happened: the report of one step and the totals of a stream."""

from polytta.report.hypotheses import Hypothesis as Hypothesis
from polytta.report.hypotheses import by_axis as by_axis
from polytta.report.ledger import Ledger as Ledger
from polytta.report.ledger import StepEntry as StepEntry
from polytta.report.signals import Signals as Signals
from polytta.report.step import StepReport as StepReport
from polytta.report.step import Totals as Totals
from polytta.report.uncertainty import Uncertainty as Uncertainty

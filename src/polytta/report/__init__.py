"""What happened: the report of one step and the totals of a stream."""

from polytta.report.step import StepReport as StepReport
from polytta.report.step import Totals as Totals

"""The step of a population, the state it turns into the next, and the session that carries both along a stream."""

from polytta.engine.session import Session as Session
from polytta.engine.state import PopulationState as PopulationState
from polytta.engine.step import Step as Step
from polytta.engine.step import StepResult as StepResult

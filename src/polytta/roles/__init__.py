"""What the rooms hand each other: passes, selections, lessons, objectives, random numbers. Imports none of them."""

from polytta.roles.context import Context as Context
from polytta.roles.context import Start as Start
from polytta.roles.lesson import Lesson as Lesson
from polytta.roles.lesson import State as State
from polytta.roles.lesson import Term as Term
from polytta.roles.lesson import of_one_pass as of_one_pass
from polytta.roles.measures import entropy as entropy
from polytta.roles.measures import masked_mean as masked_mean
from polytta.roles.noise import Noise as Noise
from polytta.roles.noise import StepNoise as StepNoise
from polytta.roles.objective import Objective as Objective
from polytta.roles.passes import Pass as Pass
from polytta.roles.passes import Selection as Selection
from polytta.roles.passes import Sight as Sight

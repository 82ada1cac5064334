"""What is kept away from the particles (unusable images, updates that are not finite), and what is undone: collapse."""

from polytta.guard.health import ACTIONS as ACTIONS
from polytta.guard.health import PERIODIC as PERIODIC
from polytta.guard.health import RESET as RESET
from polytta.guard.health import ROLLED_BACK as ROLLED_BACK
from polytta.guard.health import SHORTENED as SHORTENED
from polytta.guard.health import VERDICTS as VERDICTS
from polytta.guard.health import Checkup as Checkup
from polytta.guard.health import Examiner as Examiner
from polytta.guard.health import begin as begin
from polytta.guard.health import compared as compared
from polytta.guard.identical import IdenticalParticles as IdenticalParticles
from polytta.guard.images import require_images as require_images
from polytta.guard.inputs import Screened as Screened
from polytta.guard.inputs import admit as admit
from polytta.guard.inputs import all_in_range as all_in_range
from polytta.guard.inputs import screen as screen
from polytta.guard.policy import GUARDS as GUARDS
from polytta.guard.policy import Default as Default
from polytta.guard.policy import Guard as Guard
from polytta.guard.policy import Off as Off
from polytta.guard.policy import Strict as Strict
from polytta.guard.policy import resolve_guard as resolve_guard
from polytta.guard.updates import accepted as accepted
from polytta.guard.updates import clipped as clipped
from polytta.guard.updates import finite_rows_of as finite_rows_of
from polytta.guard.updates import usable_direction as usable_direction

"""What is kept away from the particles: unusable images, and updates that are not finite."""

from polytta.guard.identical import IdenticalParticles as IdenticalParticles
from polytta.guard.images import require_images as require_images
from polytta.guard.inputs import Screened as Screened
from polytta.guard.inputs import admit as admit
from polytta.guard.inputs import all_in_range as all_in_range
from polytta.guard.inputs import screen as screen
from polytta.guard.updates import accepted as accepted
from polytta.guard.updates import finite_rows_of as finite_rows_of
from polytta.guard.updates import usable_direction as usable_direction

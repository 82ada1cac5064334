"""What is kept away from the particles: unusable images, outputs that are none, updates that are not finite."""

from polytta.guard.identical import IdenticalParticles as IdenticalParticles
from polytta.guard.images import require_images as require_images
from polytta.guard.inputs import Screened as Screened
from polytta.guard.inputs import admit as admit
from polytta.guard.inputs import all_in_range as all_in_range
from polytta.guard.inputs import screen as screen
from polytta.guard.updates import accepted as accepted
from polytta.guard.updates import usable_direction as usable_direction

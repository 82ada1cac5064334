"""What is kept away from the particles."""

from polytta.guard.inputs import Screened as Screened
from polytta.guard.inputs import require_images as require_images
from polytta.guard.inputs import screen as screen

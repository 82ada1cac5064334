"""What is kept away from the particles."""

from polytta.guard.inputs import Screened as Screened
from polytta.guard.inputs import Verdict as Verdict
from polytta.guard.inputs import admit as admit
from polytta.guard.inputs import all_in_range as all_in_range
from polytta.guard.inputs import require_images as require_images
from polytta.guard.inputs import screen as screen

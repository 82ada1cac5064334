"""What is kept away from the particles. (The health monitor and rollback will live here too.)"""

from polytta.guard.inputs import Screened as Screened
from polytta.guard.inputs import screen as screen

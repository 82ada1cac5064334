"""CLIP-like models as classifiers: whatever adapts a classifier adapts them."""

from polytta.clip.templates import TEMPLATES as TEMPLATES
from polytta.clip.text import TextEncoder as TextEncoder
from polytta.clip.zero_shot import ZeroShot as ZeroShot
from polytta.clip.zero_shot import zero_shot as zero_shot

"""Source models: small bundled classifiers and a factory over the common model zoos."""

from polytta.models.bundled import BUNDLED as BUNDLED
from polytta.models.factory import create as create
from polytta.models.from_bundled import bundled_records as bundled_records
from polytta.models.preprocessing import Preprocessing as Preprocessing
from polytta.models.record import SourceModel as SourceModel

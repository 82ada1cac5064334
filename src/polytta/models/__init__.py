"""Source models: small bundled classifiers and a factory over the common model zoos."""

from polytta.models.bundled import BUNDLED as BUNDLED
from polytta.models.factory import create as create
from polytta.models.factory import reads_class_names as reads_class_names
from polytta.models.preprocessing import Preprocessing as Preprocessing
from polytta.models.record import SourceModel as SourceModel
from polytta.models.shipped import bundled_records as bundled_records

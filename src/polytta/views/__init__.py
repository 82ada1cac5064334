"""The input level: versions of a batch to learn from (views), and the way each particle looks at it (lenses)."""

from polytta.views.fineness import fineness as fineness
from polytta.views.lenses import LENSES as LENSES
from polytta.views.lenses import Lenses as Lenses
from polytta.views.specs import plain_transforms as plain_transforms
from polytta.views.specs import resolve_transforms
from polytta.views.transforms import TRANSFORMS as TRANSFORMS
from polytta.views.transforms import View as View
from polytta.views.transforms import clearer as clearer
from polytta.views.transforms import clearer_mirrored as clearer_mirrored
from polytta.views.transforms import coarser as coarser
from polytta.views.transforms import farther as farther
from polytta.views.transforms import horizontal_flip as horizontal_flip
from polytta.views.transforms import much_farther as much_farther
from polytta.views.transforms import much_sharper as much_sharper
from polytta.views.transforms import sharper as sharper
from polytta.views.transforms import softer as softer
from polytta.views.transforms import unchanged as unchanged
from polytta.views.transforms import vertical_flip as vertical_flip
from polytta.views.views import VIEWS as VIEWS
from polytta.views.views import Views as Views


def resolve_views(spec: object) -> Views:
    """Views from a name, callables, or an object."""
    return resolve_transforms("views", spec, VIEWS, Views)


def resolve_lenses(spec: object) -> Lenses:
    """Lenses from a name, callables, or an object."""
    return resolve_transforms("lenses", spec, LENSES, Lenses)

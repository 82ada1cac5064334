r"""DiffTPT: TPT over views that a generator of images adds to.

    pool = the image and the share 0.8 of views whose logits are most like its own;   S = the share 0.3 of the pool with
    the lowest entropy;   everything else as TPT

Feng et al., "Diverse Data Augmentation with Diffusions for Effective Test-time Prompt Tuning", ICCV 2023. The public
code adds 63 variations that a diffusion model made of the image; here they come from a callable of the user's.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from polytta.errors import ConfigError
from polytta.methods.given import is_number, views_like
from polytta.methods.tpt import TPT, ViewsOf, features_of_views
from polytta.roles import Context, Pass, entropy


@dataclass(frozen=True)
class DiffTPT(TPT):
    """TPT with generated views.

    Attributes:
        generator: a callable ``(x, noise) -> [view, ...]`` that makes images like those given; needed.
        similar: share of views that are enough like the image.
    """

    share: float = 0.3
    steps: int = 4
    generator: ViewsOf | None = None
    similar: float = 0.8

    name: ClassVar[str] = "difftpt"

    def validate(self) -> None:
        """A generator there must be."""
        super().validate()
        if not callable(self.generator):
            raise ConfigError(
                f"method: got DiffTPT(generator={self.generator!r}); allowed is a callable (x, noise) -> views, such "
                "as one around a pipeline of diffusers (pip install 'polytta[diffusion]')."
            )
        if not is_number(self.similar) or not 0 < self.similar <= 1:
            raise ConfigError(f"method: got DiffTPT(similar={self.similar!r}); allowed is a share within 0..1.")

    def selected(self, logits: Tensor) -> Tensor:
        """First those like the image, then the surest of them and of the image."""
        alike = F.cosine_similarity(logits[:, 1:], logits[:, :1], dim=-1, eps=1e-8)
        most = 1 + alike.argsort(dim=1, descending=True)[:, : int(alike.shape[1] * self.similar)]
        pool = torch.cat([torch.zeros_like(most[:, :1]), most], dim=1)
        unsure = entropy(logits).gather(1, pool)
        count = max(1, int(pool.shape[1] * self.share))
        return pool.gather(1, unsure.argsort(dim=1)[:, :count])

    def _views(self, context: Context, seen: Pass) -> list[Tensor]:
        assert self.generator is not None
        made = self.generator(seen.x, context.noise(seen.view))
        generated = features_of_views(context, seen, views_like("difftpt.generator", made, seen.x))
        return [*super()._views(context, seen), *generated]

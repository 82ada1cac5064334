"""Rows for zero-shot classifiers, as the tables of WATT mean them.

The public code of WATT, of CLIPArTT and of its Tent moves by Adam at 1e-3 on all norm layers of the image encoder, from
the source model at every batch, and answers after it.
"""

from collections.abc import Mapping
from typing import Any

_EVERY_NORM: dict[str, Any] = {"optimizer": "adam", "lr": 1e-3, "targets": ".*"}
# Every particle with an order of templates of its own, learning from flips as well.
_DIVERSIFIED: dict[str, Any] = {
    **_EVERY_NORM,
    "method": {"name": "watt_s", "order": "own"},
    "particles": 3,
    "views": "flips",
}

CLIP_VARIANTS: dict[str, Mapping[str, Any]] = {
    "clip_tent": {"method": "tent", "particles": 1, **_EVERY_NORM, "steps": 10, "episodic": True},
    "clip_sar": {"method": "sar", "particles": 1, "lr": 1e-3},
    "tpt": {"method": "tpt", "particles": 1},
    "tda": {"method": "tda", "particles": 1},
    "clipartt": {"method": "clipartt", "particles": 1, **_EVERY_NORM},
    "watt_p": {"method": "watt_p", "particles": 1, **_EVERY_NORM},
    "watt_s": {"method": "watt_s", "particles": 1, **_EVERY_NORM},
    "watt_s_aug": _DIVERSIFIED,
    "watt_s_aug_kl": {**_DIVERSIFIED, "diversity": "kl"},
    "watt_s_aug_svgd": {**_DIVERSIFIED, "diversity": {"name": "svgd", "bandwidth": "median"}},
    "watt_s_aug_grad": {**_DIVERSIFIED, "diversity": "grad"},
    # Each hypothesis its own template, weighed by evidence: a rival to averaging over templates.
    "prompts_own": {"prompts": "own", "method": "deyo", "aggregate": "evidence", "pace": 0.1},
}

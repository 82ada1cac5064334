"""tab:watt: WATT-S, alone and diversified, and its rivals on CIFAR-100-C with OpenAI's CLIP."""

from collections.abc import Mapping
from typing import Any

from polytta.lab.bench.variants import VARIANTS
from polytta.lab.reproduce.places import Place
from polytta.lab.reproduce.tables import TableBlock, TableRecipe

ROWS = {
    "CLIP": "source",
    "TENT": "clip_tent",
    "TPT": "tpt",
    "TDA": "tda",
    "SAR": "clip_sar",
    "CLIPArTT": "clipartt",
    "WATT-P": "watt_p",
    "WATT-S": "watt_s",
    "WATT-S+Aug": "watt_s_aug",
    # Which regulariser is not said; Grad is the one the paper recommends.
    "WATT-S+Aug+Reg.": "watt_s_aug_grad",
}
# Fifty rounds of sixteen steps on every batch are for a GPU; five are as many as WATT-S has.
_BUNDLED: dict[str, dict[str, Any]] = {"watt_p": {"rounds": 5}}
_QUICK: dict[str, dict[str, Any]] = {
    "tpt": {"views": 3, "share": 0.5},
    "clipartt": {"steps": 1},
    **{name: {"steps": 1, "rounds": 1} for name in ("watt_p", "watt_s", "watt_s_aug", "watt_s_aug_grad")},
}


def lighter_rows(place: Place) -> dict[str, Mapping[str, Any]]:
    """Rows with less of what takes longest, on bundled data."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, less in (_QUICK if place.quick else _BUNDLED if place.is_bundled else {}).items():
        row = VARIANTS[name]
        method = row["method"]
        own = dict(method) if isinstance(method, Mapping) else {"name": method}
        found[name] = {**row, "method": {**own, **less}}
    return found


RECIPE = TableRecipe(
    name="tab:watt",
    shows="WATT, alone and diversified, and its rivals on CIFAR-100-C with CLIP, batches of 128",
    needs="CIFAR-100-C; weights of OpenAI CLIP ViT-B/32; hours on a GPU (bundled: hours without one)",
    blocks=(
        TableBlock(
            "CIFAR-100-C",
            "CLIP ViT-B/32 (OpenAI)",
            "mild",
            "OpenAI CLIP on CIFAR-100",
            "cifar100-c",
            rows=ROWS,
            define_at=lighter_rows,
            not_run={"DiffTPT": "its views come from a diffusion model, which the user has to supply"},
            batch_size=128,
            bundled_images=40,
        ),
    ),
)

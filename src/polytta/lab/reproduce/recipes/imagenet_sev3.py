"""tab:imagenet-sev3: the main table at severity 3."""

from dataclasses import replace

from polytta.lab.reproduce.recipes.imagenet_c import RECIPE as SEVERITY_5
from polytta.lab.reproduce.tables import TableRecipe

RECIPE = TableRecipe(
    name="tab:imagenet-sev3",
    shows="batch size 1 and label shifts, severity 3, all methods, two models",
    needs=SEVERITY_5.needs,
    blocks=tuple(replace(block, severity=3) for block in SEVERITY_5.blocks),
)

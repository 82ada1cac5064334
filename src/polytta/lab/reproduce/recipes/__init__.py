"""One file per table or figure of the paper."""

from polytta.lab.reproduce.recipe import Recipe
from polytta.lab.reproduce.recipes import (
    aug_optim,
    cifar_c,
    extended_shifts,
    imagenet_c,
    imagenet_c_mild,
    imagenet_sev3,
    interpolation,
    lambda_forms,
    mix_shift,
    multiseed,
    no_aug,
    particle_numbers,
    runtime,
    tent_grad,
    watt,
)

_ALL: tuple[Recipe, ...] = (
    multiseed.RECIPE,
    imagenet_c.RECIPE,
    mix_shift.RECIPE,
    no_aug.RECIPE,
    aug_optim.RECIPE,
    watt.RECIPE,
    lambda_forms.RECIPE,
    particle_numbers.RECIPE,
    tent_grad.RECIPE,
    extended_shifts.RECIPE,
    cifar_c.RECIPE,
    imagenet_c_mild.RECIPE,
    imagenet_sev3.RECIPE,
    runtime.RECIPE,
    interpolation.RECIPE,
)
RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _ALL}

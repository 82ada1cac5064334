"""Images of other kinds, and which sentences are true of them."""

import torch
from tests.scripts.loading import script

from polytta.clip import TEMPLATES


def test_every_style_changes_images_and_has_sentences_of_its_own() -> None:
    styles = script("caption_styles").STYLES
    x = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert torch.equal(styles[0].change(x), x)
    for style in styles[1:]:
        changed = style.change(x)
        assert changed.shape == x.shape
        assert not torch.equal(changed, x)
    said = [one for style in styles for one in style.captions]
    assert len(set(said)) == len(said)
    assert set(TEMPLATES["watt8"]) <= set(said)


def test_half_of_the_images_are_changed_as_they_are_told() -> None:
    module = script("caption_styles")
    torch.manual_seed(0)
    x = torch.randn(200, 3, 32, 32)
    found, style = module.styled(x)
    assert 60 < int((style == 0).sum()) < 140
    for number, one in enumerate(module.STYLES):
        own = style == number
        assert torch.equal(found[own], one.change(x[own]))
    assert torch.equal(module.styled(x, 0.0)[0], x)


def test_a_caption_is_true_of_its_class_in_its_style_or_any() -> None:
    labels, style, said = torch.tensor([0, 0, 0, 1]), torch.tensor([0, 1, 2, 1]), torch.tensor([0, 1, 0, 1])
    wanted = [[1, 0, 1, 0], [1, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1]]
    assert torch.equal(script("caption_styles").true_of(labels, style, said), torch.tensor(wanted).bool())

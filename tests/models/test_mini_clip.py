"""The mini CLIP's tokenizer and loss; its encoders are a zero-shot classifier like any other."""

import json

import pytest
import torch
from safetensors.torch import save_file

import polytta
from polytta.clip import zero_shot
from polytta.errors import DataError, InputError
from polytta.models import create, from_mini_clip, reads_class_names, shipped
from polytta.models.byte_pairs import BYTES, BytePairs, first_numbers, joined, learn_pairs
from polytta.models.mini_clip import LENGTH, MiniClip, contrastive_loss

TEXT = ["a photo of a cat", "a photo of a car", "the cat.", "a toy car"] * 3


def test_the_most_frequent_pair_comes_first_and_words_become_whole() -> None:
    pairs = learn_pairs(TEXT, 100)
    c, a = (ord(letter) for letter in "ca")
    assert pairs[0] == (c, a), "'ca' is in every second sentence, and smaller than its equals"
    known = BytePairs(pairs, 16)
    assert len(known.encode("cat")) == len(known.encode("photo")) == 1
    assert len(known.encode("catcar")) > 1, "an end of a word is no middle of one"


def test_anything_can_be_read_and_nothing_is_lost() -> None:
    known = BytePairs(learn_pairs(TEXT, 20), 24)
    for sentence in ("Zebra, ünïcode! 12", "a photo of a cat", "fire_truck"):
        spelled: list[int] = []
        for number in known.encode(sentence):
            spelled += unfolded(known, number - 1)
        assert bytes(n % BYTES for n in spelled) == sentence.lower().replace("_", "").replace(" ", "").encode()
    tokens = known(["cat", "a photo of a cat"])
    assert tokens.shape == (2, 24)
    assert (tokens[:, 0] == known.begin).all()
    assert (tokens.max(dim=1).values == known.end).all()
    assert known(["cat " * 50]).shape == (1, 24)


def unfolded(known: BytePairs, number: int) -> list[int]:
    if number < 2 * BYTES:
        return [number]
    first, second = known.pairs[number - 2 * BYTES]
    return unfolded(known, first) + unfolded(known, second)


def test_pairs_are_joined_from_the_left() -> None:
    assert joined((1, 1, 1), (1, 1), 9) == (9, 1)
    assert first_numbers("ab") == (ord("a"), BYTES + ord("b"))


def test_it_is_a_zero_shot_classifier_whose_padding_does_not_matter() -> None:
    torch.manual_seed(0)
    known = BytePairs(learn_pairs(TEXT, 50), LENGTH)
    model = MiniClip(known.size).eval()
    network = zero_shot(model, known, ("cat", "dog", "ship"))
    x = torch.randn(2, 3, 32, 32)
    adapted = polytta.adapt(network, "watt_s", particles=2, optimizer="adam", lr=1e-3)
    assert adapted(x).shape == (2, 3)
    tokens = known(["a cat"])
    with torch.no_grad():
        other = tokens.clone()
        other[0, 10:] = 5
        assert torch.allclose(model.encode_text(tokens), model.encode_text(other), atol=1e-6)


def test_images_of_one_class_are_right_for_each_others_captions() -> None:
    labels = torch.tensor([0, 0, 1])
    features = torch.eye(2)[labels]
    scale, true = torch.tensor(10.0), labels.unsqueeze(1) == labels.unsqueeze(0)
    right = contrastive_loss(features, features, scale, true)
    wrong = contrastive_loss(features, features.flip(0), scale, true)
    assert float(right) < float(wrong)
    assert abs(float(right) - 2 / 3 * 0.6931472) < 1e-4


@pytest.fixture
def assets(tmp_path, monkeypatch):
    """A folder of assets with random weights, as the training script writes it."""
    torch.manual_seed(0)
    pairs = learn_pairs(TEXT, 50)
    model = MiniClip(BytePairs(pairs, LENGTH).size)
    save_file({name: value.half() for name, value in model.state_dict().items()}, tmp_path / "mini_clip.safetensors")
    (tmp_path / "mini_clip.json").write_text(json.dumps({"pairs": pairs, "length": LENGTH}))
    names = [f"thing {number}" for number in range(12)]
    digest = shipped.load_weights(model, tmp_path / "mini_clip.safetensors")
    record = {"file": "mini_clip.safetensors", "sha256": digest, "names": names}
    for module in (shipped, from_mini_clip):
        monkeypatch.setattr(module, "ASSETS", tmp_path)
        monkeypatch.setattr(module, "bundled_records", lambda: {"mini_clip": record})
    return tmp_path


def test_the_shipped_one_has_ten_classes_and_eight_templates_unless_told(assets) -> None:
    made = create("bundled/mini_clip")
    assert (made.num_classes, made.module.classes[0], len(made.module.templates)) == (10, "thing 0", 8)
    assert made.preprocessing == create("bundled/cifar10_vit_ln", weights=vit(assets)).preprocessing
    assert not made.module.training
    own = create("bundled/mini_clip", classes=["cat", "zeppelin"], templates=["the {}."])
    assert own.facts()["classes"] == ["cat", "zeppelin"]
    assert own.facts()["templates"] == ["the {}."]
    assert own.weights_sha256 == made.weights_sha256
    assert own.module(torch.randn(2, 3, 32, 32)).shape == (2, 2)


def vit(folder):
    torch.manual_seed(0)
    save_file(MiniClip(9).visual.__class__(10).state_dict(), folder / "vit.safetensors")
    return folder / "vit.safetensors"


def test_it_refuses_in_one_sentence(assets) -> None:
    with pytest.raises(InputError, match="num_classes: got 3 for bundled/mini_clip; allowed are classes"):
        create("bundled/mini_clip", num_classes=3)
    with pytest.raises(InputError, match="more than once"):
        create("bundled/mini_clip", classes=["cat", "cat"])
    with pytest.raises(InputError, match=r"takes .* tokens; allowed are 32"):
        create("bundled/mini_clip", classes=["cat", "incomprehensibilities " * 5])
    with pytest.raises(InputError, match=r"classes: got \['cat', 'dog'\] for bundled/cifar10_vit_ln; allowed"):
        create("bundled/cifar10_vit_ln", weights=vit(assets), classes=["cat", "dog"])
    with pytest.raises(InputError, match=r"templates: got 'photo' for bundled/cifar10_vit_ln; allowed"):
        create("bundled/cifar10_vit_ln", weights=vit(assets), templates="photo")
    (assets / "mini_clip.json").unlink()
    with pytest.raises(DataError, match="got no mini_clip among the assets"):
        create("bundled/mini_clip")


def test_who_reads_class_names() -> None:
    assert reads_class_names("bundled/mini_clip")
    assert reads_class_names("open_clip/ViT-B-32/openai")
    assert not reads_class_names("bundled/cifar10_vit_ln")

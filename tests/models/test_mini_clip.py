"""The mini CLIP's tokenizer and loss; its encoders are a zero-shot classifier like any other."""

import torch

import polytta
from polytta.clip import zero_shot
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
    scale = torch.tensor(10.0)
    right = contrastive_loss(features, features, scale, labels)
    wrong = contrastive_loss(features, features.flip(0), scale, labels)
    assert float(right) < float(wrong)
    assert abs(float(right) - 2 / 3 * 0.6931472) < 1e-4

import pytest
import torch

import polytta
from polytta.checks.networks import small_model, small_stream
from polytta.errors import ConfigError
from polytta.methods import DeYO, Tent
from polytta.views import Views, horizontal_flip, unchanged, vertical_flip

ARGUMENTS = {"particles": 2, "lr": 0.05, "exclude": None}


def test_losses_of_views_are_summed_and_the_prediction_is_of_x() -> None:
    x = small_stream(1, 6)[0]
    steps = []
    for view in (unchanged, horizontal_flip, vertical_flip):
        single = polytta.adapt(small_model("layer"), Tent(), **ARGUMENTS)
        single(view(x))
        steps.append(single.theta - single.source)
    together = polytta.adapt(small_model("layer"), Tent(), views="flips", **ARGUMENTS)
    plain = polytta.adapt(small_model("layer"), Tent(), **ARGUMENTS)
    assert torch.equal(together(x), plain(x))
    assert torch.allclose(together.theta - together.source, sum(steps))


def test_each_view_is_filtered_by_itself() -> None:
    adapted = polytta.adapt(small_model("layer"), DeYO(), views="flips", **ARGUMENTS)
    singles = [polytta.adapt(small_model("layer"), DeYO(), **ARGUMENTS) for _ in range(3)]
    x = small_stream(1, 20)[0]
    adapted(x)
    for single, view in zip(singles, (unchanged, horizontal_flip, vertical_flip), strict=True):
        single(view(x))
    passed = [single.last.selected["entropy"] for single in singles]
    assert adapted.last.selected["entropy"] == tuple(sum(counts) for counts in zip(*passed, strict=True))
    assert len(set(passed)) > 1, "the views must have been filtered differently for this to mean something"


def test_mean_prediction_over_views() -> None:
    views = Views((unchanged, horizontal_flip), predict="mean")
    adapted = polytta.adapt(small_model("layer"), "source", particles=1, views=views)
    x, model = small_stream(1, 4)[0], small_model("layer")
    expected = (model(x).softmax(1) + model(x.flip(-1)).softmax(1)) / 2
    assert torch.allclose(adapted(x), expected.log())


def test_callables_are_views_too() -> None:
    adapted = polytta.adapt(small_model("layer"), "tent", views=[unchanged, lambda x: x + 0.1], **ARGUMENTS)
    adapted(small_stream(1, 4)[0])
    assert adapted.totals.forward_samples == 2 * 2 * 4


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ("spin", "views: got 'spin'; allowed are"),
        ([], "at least one callable"),
        ([3], "at least one callable"),
        (Views(predict="best"), "allowed are 'first' and 'mean'"),
    ],
)
def test_bad_values_get_one_clear_sentence(views: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        polytta.adapt(small_model("layer"), views=views)
    bad = polytta.adapt(small_model("layer"), views=[unchanged, lambda x: x[..., :4]])
    with pytest.raises(ConfigError, match="allowed is the same shape"):
        bad(small_stream(1, 2)[0])
